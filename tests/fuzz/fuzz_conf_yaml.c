/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration file.  Whatever it holds, conf_load() returns with it or with errors; and what it took
 * must print as something that it takes again.
 *
 * Lines "#o section.key=value" in front are options of the command line.  Behind a line "#next" stands the
 * file of a reload: the two are merged, and what was printed and read again has to be the same in every key.
 */
#include "conf/conf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define OPTIONS 4
#define OPTION_MAX 256
#define NEXT "\n#next\n"

static struct conf *
load(const char *text, size_t len, FILE *err)
{
	struct conf_override overrides[OPTIONS];
	struct conf_source src = { .file_required = true, .overrides = overrides };
	char option[OPTIONS][OPTION_MAX], path[64];
	struct conf *conf = NULL;
	static int fd = -1;
	const char *nl;

	while (src.override_nr < OPTIONS && len > 3 && memcmp(text, "#o ", 3) == 0 &&
	       (nl = memchr(text, '\n', len))) {
		snprintf(option[src.override_nr], OPTION_MAX, "%.*s", (int)(nl - text) - 3, text + 3);
		overrides[src.override_nr].text = option[src.override_nr];
		src.override_nr++;
		len -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	if (fd < 0)
		fd = memfd_create("conf", MFD_CLOEXEC);
	must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, text, len, 0) == (ssize_t)len);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	src.file = path;
	if (conf_load(&src, &conf, err) < 0)
		conf = NULL;
	return conf;
}

/* It was printed, and is printed here, in case it is refused. */
static struct conf *
load_again(const char *text, size_t len)
{
	char *errors = NULL;
	size_t errors_len;
	FILE *err = open_memstream(&errors, &errors_len);
	struct conf *again;

	must(err);
	again = load(text, len, err);
	must(fclose(err) == 0);
	if (!again) {
		fprintf(stderr, "printed, and refused: %s\n%s", errors, text);
		abort();
	}
	free(errors);
	return again;
}

static void
on_change(void *cookie, const char *path, const char *from, const char *to, bool applied)
{
	if (cookie) {
		fprintf(stderr, "%s was \"%s\", and is \"%s\" after printing and reading\n%s", path, from, to,
			(const char *)cookie);
		abort();
	}
}

/* What a reload makes of it can be printed and read as well. */
static void
reload(const struct conf *running, const char *text, size_t len)
{
	char *out = NULL;
	size_t out_len;
	FILE *err = open_memstream(&out, &out_len);
	struct conf *fresh;

	must(err);
	fresh = load(text, len, err);
	fclose(err);
	free(out);
	if (!fresh)
		return;
	must(conf_merge(fresh, running, on_change, NULL) == 0);
	out = NULL;
	err = open_memstream(&out, &out_len);
	must(err);
	conf_print_json(fresh, err);
	fclose(err);
	must(out_len > 2 && out[0] == '{');
	free(out);
	conf_free(fresh);
}

static void
print_and_read(const struct conf *conf, bool compare)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct conf *again;

	must(out);
	conf_print(conf, out);
	fclose(out);
	/* A secret is masked and cannot come back. */
	if (!strstr(text, "********")) {
		again = load_again(text, len);
		must(!compare || conf_merge(again, conf, on_change, text) == 0);
		conf_free(again);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data, *next = memmem(text, len, NEXT, sizeof NEXT - 1);
	size_t first = next ? (size_t)(next - text) + 1 : len, errors_len;
	char *errors = NULL;
	FILE *err = open_memstream(&errors, &errors_len);
	struct conf *conf;

	must(err);
	conf = load(text, first, err);
	fclose(err);
	/* A refusal says why. */
	must(!conf == (errors_len > 0));
	free(errors);
	if (!conf)
		return 0;
	print_and_read(conf, next != NULL);
	if (next)
		reload(conf, next + sizeof NEXT - 1, len - first - (sizeof NEXT - 2));
	conf_free(conf);
	return 0;
}
