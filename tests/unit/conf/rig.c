/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. */
#include "rig.h"

char dir[64], file[96];
char *errors;
struct conf *conf;

int
setup(void **state)
{
	strcpy(dir, "/tmp/test_conf.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/gantryd.yaml", dir);
	conf = NULL;
	errors = NULL;
	return 0;
}

int
teardown(void **state)
{
	char cmd[128];

	conf_free(conf);
	free(errors);
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	return system(cmd) == 0 ? 0 : -1;
}

void
write_file(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

int
load_with(const struct conf_source *src)
{
	size_t len;
	FILE *err;
	int r;

	free(errors);
	errors = NULL;
	conf_free(conf);
	conf = NULL;
	err = open_memstream(&errors, &len);
	assert_non_null(err);
	r = conf_load(src, &conf, err);
	fclose(err);
	return r;
}

int
load(const char *text)
{
	write_file("gantryd.yaml", text);
	return load_with(&(struct conf_source){ .file = file, .file_required = true });
}

int
load_override(const char *text, const char *override)
{
	struct conf_override o = { override };

	write_file("gantryd.yaml", text);
	return load_with(&(struct conf_source){
		.file = file, .file_required = true, .overrides = &o, .override_nr = 1 });
}

void
assert_refused(const char *text, const char *wanted)
{
	int r = load(text);

	if (r != -EINVAL || !strstr(errors, wanted))
		fail_msg("wanted an error with \"%s\", got %d and \"%s\" from\n%s", wanted, r, errors, text);
}

void
assert_good(const char *text)
{
	int r = load(text);

	if (r < 0 || *errors)
		fail_msg("refused: %s\n%s", errors, text);
}

int
count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

char *
printed(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	conf_print(conf, f);
	fclose(f);
	return text;
}

void
forget_environment(void)
{
	for (char **e = environ; *e;) {
		char name[128];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
		if (strncmp(name, "GANTRY_", 7) == 0)
			unsetenv(name);
		else
			e++;
	}
}
