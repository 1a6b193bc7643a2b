/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry key list --compare: asks `gantry key list` on other gateways by ssh, and shows the differences of their files of
 * keys. Only the output of that command crosses, which has ids of secrets and no secrets.
 */
#include "client/cmd/admin/key_run.h"

#include "base/printable.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/words.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)64 << 20)

extern char **environ;

/* ---- one host ---- */

/* Starts the command; its output comes from *ret_fd, its errors go to the file. */
static int
start(const char *host, FILE *errors, pid_t *ret_pid, int *ret_fd)
{
	const char *env = getenv("GANTRY_SSH");
	char *const argv[] = { "ssh",
			       "-o",
			       "BatchMode=yes",
			       "-o",
			       "ConnectTimeout=10",
			       "-o",
			       "ServerAliveInterval=5",
			       (char *)(uintptr_t)host,
			       "gantry key list --json --quiet",
			       NULL };
	posix_spawn_file_actions_t actions;
	int fd[2], e;

	if (pipe(fd) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
	posix_spawn_file_actions_adddup2(&actions, fd[1], 1);
	posix_spawn_file_actions_adddup2(&actions, fileno(errors), 2);
	posix_spawn_file_actions_addclose(&actions, fd[0]);
	posix_spawn_file_actions_addclose(&actions, fd[1]);
	e = posix_spawnp(ret_pid, env && *env ? env : argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	if (e) {
		close(fd[0]);
		return -e;
	}
	*ret_fd = fd[0];
	return 0;
}

static char *
read_all(int fd)
{
	char *text = NULL, *bigger;
	size_t len = 0;
	ssize_t n;

	do {
		bigger = len < OUTPUT_MAX ? realloc(text, len + 65537) : NULL;
		if (!bigger) {
			free(text);
			return NULL;
		}
		text = bigger;
		n = read(fd, text + len, 65536);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	text[len] = 0;
	return text;
}

/* The last two lines that the command wrote as errors: the cause, and what helps. */
static void
last_lines(FILE *errors, char *out, size_t cap)
{
	char line[256], before[256] = "", last[256] = "";

	rewind(errors);
	while (fgets(line, sizeof line, errors)) {
		line[strcspn(line, "\r\n")] = 0;
		printable(line, "");
		if (!*line)
			continue;
		memcpy(before, last, sizeof before);
		memcpy(last, line, sizeof last);
	}
	snprintf(out, cap, "%s%s%s", before, *before ? "; " : "", last);
}

/* The secrets of a text of `key list --json`, by "KEY/ID"; NULL with the reason in err: it is another text. */
static json_t *
take_list(char *text, char *err, size_t cap)
{
	json_t *all = json_object();
	char *rest = NULL, name[KEY_NAME_BYTES];

	for (char *p = strtok_r(text, "\n", &rest); p; p = strtok_r(NULL, "\n", &rest)) {
		json_t *o = json_loads(p, JSON_ALLOW_NUL, NULL);
		const char *id = json_text_at(o, "secret_id", NULL),
			   *key = json_text_at(o, "access_key", NULL);

		if (!id || !key || strlen(key) > AUTH_ACCESS_KEY_MAX || strlen(id) != AUTH_SECRET_ID_LEN) {
			snprintf(err, cap,
				 "its gantry does not show ids of secrets: is it as new as this one?");
			json_decref(o);
			json_decref(all);
			return NULL;
		}
		key_name(key, id, name);
		/* What has expired is good nowhere, whether it is in the file or not. */
		if (!json_is_true(json_object_get(o, "expired")))
			json_object_set(all, name, o);
		json_decref(o);
	}
	return all;
}

/* The secrets of a host; NULL with the reason in err. */
static json_t *
ask(const char *host, char *err, size_t cap)
{
	FILE *errors = tmpfile();
	json_t *all = NULL;
	char *text = NULL, why[512] = "";
	pid_t pid;
	int fd = -1, status = 0, e = errors ? start(host, errors, &pid, &fd) : -errno;

	if (e < 0) {
		snprintf(err, cap, "ssh cannot be started: %s", strerror(-e));
	} else {
		text = read_all(fd);
		close(fd);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		last_lines(errors, why, sizeof why);
		if (!text)
			snprintf(err, cap, "its answer is too long");
		else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			snprintf(err, cap, "no list from there: %s",
				 *why ? why : "gantry key list fails, without a word");
		else
			all = take_list(text, err, cap);
	}
	free(text);
	if (errors)
		fclose(errors);
	return all;
}

/* ---- differences ---- */

struct compare {
	const struct key_run *k;
	json_t *here; /* the secrets of our file */
	const char *host;
	int found; /* differences of the host */
};

/* what: member that differs; here, there: values, NULL: none. */
static void
say(struct compare *c, const char *name, const char *what, const json_t *here, const json_t *there)
{
	const char *slash = strchr(name, '/');
	int len = (int)(slash - name);
	json_t *o;

	c->found++;
	if (c->k->c->json) {
		o = json_pack("{s:s, s:s#, s:s, s:s, s:O*, s:O*}", "host", c->host, "access_key", name, len,
			      "secret_id", slash + 1, "differs", what, "here", here, "there", there);
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
		return;
	}
	printf("%-20.*s  %s  ", len, name, slash + 1);
	if (here || there) {
		char *a = here ? json_dumps(here, JSON_COMPACT | JSON_ENCODE_ANY) : NULL,
		     *b = there ? json_dumps(there, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

		printf("%s: %s here, %s on %s\n", what, a ? a : "none", b ? b : "none", c->host);
		free(a);
		free(b);
	} else {
		printf("%s %s\n", what, c->host);
	}
}

/* Has the list a secret of the same access key? */
static bool
has_key(json_t *list, const char *name)
{
	size_t len = (size_t)(strchr(name, '/') - name) + 1;
	const char *other;
	json_t *v;

	json_object_foreach(list, other, v)
	{
		if (strncmp(other, name, len) == 0)
			return true;
	}
	return false;
}

static void
compare_secret(struct compare *c, const char *name, const json_t *here, const json_t *there)
{
	static const char *const members[] = { "grants", "read_only", "no_delete", "no_overwrite",
					       "from",   "gids",      "until",     "session_token" };

	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const json_t *a = json_object_get(here, members[i]), *b = json_object_get(there, members[i]);

		if (a != b && (!a || !b || !json_equal(a, b)))
			say(c, name, members[i], a, b);
	}
}

static void
compare_lists(struct compare *c, json_t *there)
{
	const char *name;
	json_t *v, *other;

	json_object_foreach(c->here, name, v)
	{
		other = json_object_get(there, name);
		if (other)
			compare_secret(c, name, v, other);
		else
			say(c, name,
			    has_key(there, name) ? "the key has another secret on" : "the key is not on",
			    NULL, NULL);
	}
	json_object_foreach(there, name, v)
	{
		if (!json_object_get(c->here, name))
			say(c, name, has_key(c->here, name) ? "the secret is only on" : "the key is only on",
			    NULL, NULL);
	}
}

static void
say_away(const struct key_run *k, const char *host, const char *why)
{
	json_t *o;

	if (!k->c->json) {
		fprintf(stderr, "gantry: %s: %s\n", host, why);
		return;
	}
	o = json_pack("{s:s, s:s}", "host", host, "error", why);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static bool
compare_host(const struct key_run *k, json_t *here, const char *host)
{
	struct compare c = { .k = k, .here = here, .host = host };
	char why[640];
	json_t *there;

	fflush(stdout);
	there = ask(host, why, sizeof why);
	if (!there) {
		say_away(k, host, why);
		return false;
	}
	compare_lists(&c, there);
	if (!c.found && !k->c->json && !k->c->quiet)
		printf("%s has the same keys (%zu secrets)\n", host, json_object_size(there));
	json_decref(there);
	return c.found == 0;
}

/* The secrets of our file that have not expired. */
static json_t *
list_here(const struct keyfile *f)
{
	json_t *here = json_object();
	struct auth_key_info info;
	char name[KEY_NAME_BYTES];

	for (int i = 0; auth_keys_info(keyfile_keys(f), i, &info); i++) {
		json_t *o = key_json(&info);

		key_name(info.access_key, info.secret_id, name);
		if (!json_is_true(json_object_get(o, "expired")))
			json_object_set(here, name, o);
		json_decref(o);
	}
	return here;
}

int
key_compare(struct key_run *k, const char *hosts)
{
	char *list = strdup(hosts), *rest = NULL;
	int rc = EXIT_OK, nr = 0;
	struct keyfile *f;
	json_t *here;

	/* A name with a dash in front would be an option of ssh. */
	if (*hosts == '-' || strstr(hosts, ",-"))
		words_bad("key", "--compare wants names of hosts, with commas between", hosts);
	f = key_find_file(k) ? key_open_file(k, false) : NULL;
	if (!f) {
		free(list);
		return EXIT_FAILED;
	}
	here = list_here(f);
	keyfile_close(f);
	for (char *host = list ? strtok_r(list, ",", &rest) : NULL; host;
	     host = strtok_r(NULL, ",", &rest), nr++) {
		if (!compare_host(k, here, host))
			rc = EXIT_FAILED;
	}
	if (nr == 0)
		words_bad("key", "--compare wants names of hosts, with commas between", hosts);
	json_decref(here);
	free(list);
	return rc;
}
