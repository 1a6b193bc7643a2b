/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry key: makes, rotates and removes access keys in the daemon's credentials file, and has the daemon read it again.
 * The pair goes to standard output and into the file, nowhere else.
 */
#include "client/cmd/admin/key_run.h"

#include "client/cmd/common/words.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SIMILAR_MAX 3
#define ROTATE_UNTIL "7d" /* how long the previous secret can be used by default */
#define UNTIL_MAX_S (100 * UINT64_C(365) * 86400)

/* ---- new ---- */

/* Cuts a list with commas.  Ends the program when a part of it is not good. */
static int
take_list(char *text, const char **out, int max, bool (*good)(const char *), const char *what)
{
	char *rest = NULL;
	int nr = 0;

	for (char *p = strtok_r(text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		if (!good(p))
			words_bad("key", what, p);
		if (nr == max)
			words_bad("key", "more than 64 of them", what);
		out[nr++] = p;
	}
	if (nr == 0)
		words_bad("key", what, "");
	return nr;
}

/* As the file has it: a time, or how long from now. */
static const char *
take_until(const char *text, char out[AUTH_TIME_BYTES])
{
	uint64_t s, now = (uint64_t)time(NULL);

	if (duration_parse(text, UNTIL_MAX_S, &s))
		return auth_time_text(now + s, out);
	if (!key_wish_expires(text, &s))
		words_bad("key",
			  "--until wants a time such as 2030-12-31T23:59:59Z, or how long from now: 12h, 90d",
			  text);
	if (s <= now)
		words_bad("key", "--until is in the past", text);
	return text;
}

/* As a word of a shell: an access key that an operator chose may have characters that mean something there. */
static void
print_word(const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.+@_-";

	if (strspn(text, plain) == strlen(text)) {
		fputs(text, stdout);
		return;
	}
	putchar('\'');
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){ *text, 0 }, stdout);
	putchar('\'');
}

/* The pair for a shell. */
static void
print_pair(const struct key_pair *p)
{
	fputs("export AWS_ACCESS_KEY_ID=", stdout);
	print_word(p->access_key);
	printf("\nexport AWS_SECRET_ACCESS_KEY=%s\n", p->secret);
	fflush(stdout);
}

/* Shows a secret that is in the file now, and has the daemon read the file.  more: members for --json, which are
 * released; NULL: none. */
static int
show_pair(const struct key_run *k, const struct key_pair *p, const char *path, const char *line, json_t *more)
{
	char says[2048];
	bool reloaded;
	json_t *o;
	int rc;

	if (!k->c->json)
		print_pair(p);
	key_note(k, line);
	reloaded = key_reload(k, path, says, sizeof says, &rc);
	key_note(k, says);
	if (k->c->json) {
		o = json_pack("{s:s, s:s, s:s, s:s, s:b}", "access_key", p->access_key, "secret_key",
			      p->secret, "secret_id", p->secret_id, "file", path, "reloaded", reloaded);
		json_object_update(o, more);
		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	}
	json_decref(more);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return rc;
	fprintf(stderr,
		"gantry: key: the secret could not be printed, and %s has it: revoke it with `gantry key "
		"revoke %s --secret "
		"%s`\n",
		path, p->access_key, p->secret_id);
	return EXIT_FAILED;
}

static void
judge_bounds(const struct key_wish *w)
{
	if (!w->max_objects && !w->max_bytes && !w->max_uploads && !w->max_buckets)
		return;
	if (!w->bucket_nr || w->prefix)
		words_bad("key",
			  "--max-objects, --max-bytes, --max-uploads and --max-buckets limit the buckets of "
			  "--bucket, as a whole: they need it, and no --prefix",
			  NULL);
	for (int i = 0; i < w->bucket_nr && w->max_buckets; i++) {
		if (!strchr(w->bucket[i], '*'))
			words_bad("key",
				  "--max-buckets counts the buckets of a pattern: --bucket needs NAME*",
				  w->bucket[i]);
	}
	if ((w->max_objects && !key_wish_bound(w->max_objects, false)) ||
	    (w->max_uploads && !key_wish_bound(w->max_uploads, false)) ||
	    (w->max_buckets && !key_wish_bound(w->max_buckets, false)) ||
	    (w->max_bytes && !key_wish_bound(w->max_bytes, true)))
		words_bad("key",
			  "--max-objects, --max-uploads and --max-buckets want a number, --max-bytes a size, "
			  "10TiB or 10995116277760",
			  NULL);
}

static int
key_new(struct key_run *k)
{
	const char *bucket[AUTH_GRANTS_MAX], *from[AUTH_FROM_MAX];
	struct key_wish w = { .bucket = bucket,
			      .from = from,
			      .read_only = k->c->key.read_only,
			      .no_delete = k->c->key.no_delete,
			      .no_overwrite = k->c->key.no_overwrite,
			      .comment = k->c->key.comment,
			      .max_objects = k->c->max_objects,
			      .max_bytes = k->c->max_bytes,
			      .max_uploads = k->c->max_uploads,
			      .max_buckets = k->c->max_buckets };
	char until[AUTH_TIME_BYTES], line[PATH_MAX + 64], *list = NULL, *nets = NULL;
	struct keyfile *f = NULL;
	struct key_pair pair;
	int rc = EXIT_FAILED;

	if (k->c->key.bucket && (list = strdup(k->c->key.bucket)) != NULL)
		w.bucket_nr = take_list(list, bucket, AUTH_GRANTS_MAX, key_wish_bucket,
					"--bucket wants buckets' names, beginnings of some with *, or *, "
					"with commas between");
	if (k->c->key.from && (nets = strdup(k->c->key.from)) != NULL)
		w.from_nr = take_list(nets, from, AUTH_FROM_MAX, key_wish_from,
				      "--from wants addresses and blocks without bits after their length, "
				      "10.0.0.5,10.1.0.0/16,fd00::/8");
	w.prefix = k->c->key.prefix;
	if (w.prefix && !key_wish_prefix(w.prefix))
		words_bad("key", "--prefix is too long, not UTF-8, or has characters that cannot be seen",
			  NULL);
	if (w.comment && !key_wish_comment(w.comment))
		words_bad("key", "--comment wants a line of 1 to 200 bytes", NULL);
	judge_bounds(&w);
	if (k->c->key.until)
		w.expires = take_until(k->c->key.until, until);
	if (key_find_file(k))
		f = key_open_file(k, true);
	if (f && keyfile_new(f, &w, &pair, stderr) == 0) {
		snprintf(line, sizeof line, "%s is in %s", pair.access_key, keyfile_path(f));
		rc = show_pair(k, &pair, keyfile_path(f), line, NULL);
		explicit_bzero(&pair, sizeof pair);
	}
	keyfile_close(f);
	free(list);
	free(nets);
	return rc;
}

/* ---- revoke ---- */

/* What was meant, perhaps: the same beginning, or a few letters apart. */
static bool
is_similar(const char *a, const char *b)
{
	size_t len = strlen(a), least = len < strlen(b) ? len : strlen(b);
	int limit = len < 12 ? 3 : (int)len / 4 + 1;

	return (least >= 4 && strncasecmp(a, b, least) == 0) || conf_edit_distance(a, b, limit) < limit;
}

static void
say_not_there(const struct keyfile *f, const char *access_key)
{
	struct auth_key_info info;
	int shown = 0;

	fprintf(stderr, "gantry: key: no access key %.*s in %s", AUTH_ACCESS_KEY_MAX, access_key,
		keyfile_path(f));
	for (int i = 0; auth_keys_info(keyfile_keys(f), i, &info) && shown < SIMILAR_MAX; i++) {
		if (is_similar(access_key, info.access_key))
			fprintf(stderr, "%s%s", shown++ ? ", " : "; similar: ", info.access_key);
	}
	fprintf(stderr, "\ngantry: `gantry key list` shows them all\n");
}

/* Says which secrets there are, if the access key is there. */
static void
say_no_secret(const struct keyfile *f, const char *access_key, const char *id)
{
	struct auth_key_info info;
	int shown = 0;

	for (int i = 0; auth_keys_info(keyfile_keys(f), i, &info); i++) {
		if (strcmp(access_key, info.access_key) != 0)
			continue;
		if (shown++ == 0)
			fprintf(stderr, "gantry: key: %s has no secret with the id %.*s; there are",
				access_key, AUTH_ACCESS_KEY_MAX, id);
		fprintf(stderr, "%s %s", shown > 1 ? "," : "", info.secret_id);
	}
	if (shown)
		putc('\n', stderr);
	else
		say_not_there(f, access_key);
}

static int
key_revoke(struct key_run *k, const char *access_key)
{
	struct keyfile *f = key_find_file(k) ? key_open_file(k, true) : NULL;
	const char *id = k->c->secret;
	char says[2048], line[PATH_MAX + 512];
	int rc = EXIT_FAILED, e;
	bool reloaded;

	if (!f)
		return EXIT_FAILED;
	e = keyfile_revoke(f, access_key, id, stderr);
	if (e == -ENOENT) {
		say_no_secret(f, access_key, id ? id : "");
		rc = EXIT_NOT_FOUND;
	} else if (e == 0) {
		reloaded = key_reload(k, keyfile_path(f), says, sizeof says, &rc);
		if (k->c->json) {
			json_t *o = json_pack("{s:s, s:s*, s:b}", "access_key", access_key, "secret_id", id,
					      "reloaded", reloaded);

			json_dumpf(o, stdout, JSON_COMPACT);
			putchar('\n');
			json_decref(o);
		}
		snprintf(line, sizeof line, "%s%s%s%s is gone from %s%s", id ? "secret " : "", id ? id : "",
			 id ? " of " : "", access_key, keyfile_path(f),
			 reloaded
				 ? ", and gantryd has read the file: requests with it are refused from now on"
				 : "");
		key_note(k, line);
		if (!reloaded)
			key_note(k, says);
	}
	keyfile_close(f);
	return rc;
}

/* ---- rotate ---- */

static int
key_rotate(struct key_run *k, const char *access_key)
{
	const char *until = k->c->key.until ? k->c->key.until : ROTATE_UNTIL;
	char at[AUTH_TIME_BYTES], line[PATH_MAX + 512];
	uint64_t until_s = UINT64_MAX;
	struct keyfile *f = NULL;
	struct key_pair pair;
	struct key_end old;
	int rc = EXIT_FAILED, e;

	if (strcmp(until, "never") != 0)
		key_wish_expires(take_until(until, at), &until_s);
	if (key_find_file(k))
		f = key_open_file(k, true);
	if (!f)
		return EXIT_FAILED;
	e = keyfile_rotate(f, access_key, until_s, &pair, &old, stderr);
	if (e == -ENOENT) {
		say_not_there(f, access_key);
		rc = EXIT_NOT_FOUND;
	} else if (e == 0) {
		if (old.ends)
			auth_time_text(old.expires_s, at);
		snprintf(line, sizeof line,
			 "%s has a new secret in %s, %s; the previous one, %s, can be used %s%s", access_key,
			 keyfile_path(f), pair.secret_id, old.secret_id,
			 old.ends ? "until " : "without an end", old.ends ? at : "");
		rc = show_pair(k, &pair, keyfile_path(f), line,
			       json_pack("{s:s, s:o}", "previous_secret_id", old.secret_id, "previous_until",
					 old.ends ? json_pack("s", at) : json_null()));
	}
	explicit_bzero(&pair, sizeof pair);
	keyfile_close(f);
	return rc;
}

/* ---- the command ---- */

int
cmd_key(struct cmd *c, const char *what, const char *access_key)
{
	static const struct {
		const char *name;
		bool takes_key;
	} all[] = { { "new", false }, { "list", false }, { "rotate", true }, { "revoke", true } };
	struct key_run k = { .c = c };
	size_t i = 0;
	int rc;

	while (i < sizeof all / sizeof *all && strcmp(what, all[i].name) != 0)
		i++;
	if (i == sizeof all / sizeof *all)
		words_bad("key", "there are new, list, rotate and revoke", what);
	if (all[i].takes_key && !access_key)
		words_bad("key", "rotate and revoke want the KEY", NULL);
	if (!all[i].takes_key && access_key)
		words_bad("key", "one word too many", access_key);
	rc = i == 0   ? key_new(&k)
	     : i == 1 ? (c->key.compare ? key_compare(&k, c->key.compare) : key_list(&k))
	     : i == 2 ? key_rotate(&k, access_key)
		      : key_revoke(&k, access_key);
	conf_free(k.conf);
	return rc;
}
