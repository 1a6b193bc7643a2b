/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry key: makes, lists and removes access keys in the daemon's credentials file, and has the daemon read it again.
 * The pair goes to standard output and into the file, nowhere else.
 */
#include "auth/keyfile.h"
#include "base/printable.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"
#include "conf/conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SIMILAR_MAX 3
#define UNTIL_MAX_S (100 * UINT64_C(365) * 86400)

struct key_run {
	struct cmd *c;
	const char *path;  /* of the credentials file */
	struct conf *conf; /* NULL: --file, and no --conf */
};

/* ---- which file ---- */

static bool
find_file(struct key_run *k)
{
	const struct conf_source src = { .file = k->c->key.conf ? k->c->key.conf : CONF_DEFAULT_FILE,
					 .file_required = true,
					 .partial = true };

	k->path = k->c->key.file;
	if (k->path && !k->c->key.conf)
		return true;
	if (conf_load(&src, &k->conf, stderr) < 0) {
		fprintf(stderr, "gantry: --conf FILE names gantryd's configuration, --file FILE the file of "
				"keys itself\n");
		return false;
	}
	if (!k->path)
		k->path = k->conf->auth.credentials_file;
	if (!k->path)
		fprintf(stderr,
			"gantry: %s: auth.credentials_file is not set: set it, or name the file with "
			"--file\n",
			src.file);
	return k->path;
}

static struct keyfile *
open_file(struct key_run *k, bool change)
{
	struct keyfile *f;
	int e = keyfile_open(k->path, change,
			     k->conf && k->conf->store.disk_nr ? k->conf->store.disks[0].path : NULL, &f,
			     stderr);

	if (e == 0)
		return f;
	if (e == -EACCES || e == -EPERM)
		fprintf(stderr, "gantry: it is for root and the daemon's user: sudo gantry key ...\n");
	else if (e == -ENOENT && !change)
		fprintf(stderr, "gantry: `gantry key new` makes it, with a first key\n");
	return NULL;
}

/* ---- the daemon ---- */

/* "*:9001" is where it listens and nowhere to go. */
static void
admin_of(const struct key_run *k, char *out, size_t cap)
{
	const char *env = getenv("GANTRY_ADMIN");
	const struct conf *c = k->conf;

	if (k->c->admin || (env && *env) || !c || (!c->admin.socket && !c->admin.address))
		snprintf(out, cap, "%s", admin_name(k->c->admin));
	else if (c->admin.socket)
		snprintf(out, cap, "%s", c->admin.socket);
	else
		snprintf(out, cap, "%s%s", c->admin.address[0] == '*' ? "127.0.0.1" : "",
			 c->admin.address + (c->admin.address[0] == '*'));
}

/* Does the daemon at that address read another file than ours? */
static bool
reads_another(const char *admin, const char *path, char *err, size_t cap)
{
	json_t *conf;
	const char *theirs;
	char *real;
	bool other;

	if (admin_json(admin, "/config", &conf, NULL, err, cap) < 0)
		return false;
	theirs = json_string_value(json_object_get(json_object_get(conf, "auth.credentials_file"), "value"));
	real = theirs ? realpath(theirs, NULL) : NULL;
	other = !real || strcmp(real, path) != 0;
	if (other)
		snprintf(err, cap, "the gantryd at %s reads another file: its auth.credentials_file is %s",
			 admin, theirs ? theirs : "not set");
	free(real);
	json_decref(conf);
	return other;
}

static void
take_reasons(const struct answer *a, char *err, size_t cap)
{
	json_t *o = json_loadb(a->text, a->len, 0, NULL), *line;
	size_t i, at = (size_t)snprintf(err, cap, "%d: %s", a->status,
					json_text_at(o, "error", "no reason given"));

	json_array_foreach(json_object_get(o, "messages"), i, line)
	{
		if (at < cap)
			at += (size_t)snprintf(err + at, cap - at, "\n  %s", json_string_value(line));
	}
	json_decref(o);
}

/* Has a running daemon read the file.  Whether it has, with a sentence; *ret_exit is the program's status. */
static bool
reload(const struct key_run *k, const char *path, char *says, size_t cap, int *ret_exit)
{
	char admin[512], err[1024];
	struct answer a;

	*ret_exit = EXIT_OK;
	admin_of(k, admin, sizeof admin);
	if (admin_post(admin, "/control/reload", "", &a, err, sizeof err) < 0) {
		snprintf(says, cap,
			 "%s\na gantryd that runs reads the file at `systemctl reload gantryd`, any other "
			 "when it starts",
			 err);
		return false;
	}
	if (a.status == 200) {
		free(a.text);
		if (reads_another(admin, path, says, cap))
			return false;
		snprintf(says, cap, "gantryd has read the file");
		return true;
	}
	take_reasons(&a, err, sizeof err);
	free(a.text);
	/* Who may not tell it can have somebody else do so; what it refuses is to be put right. */
	if (a.status == 401 || a.status == 403 || a.status == 404) {
		snprintf(says, cap,
			 "gantryd was not told, %s\n`systemctl reload gantryd` has it read the file", err);
	} else {
		snprintf(says, cap, "gantryd continues with the previous keys, %s", err);
		*ret_exit = EXIT_FAILED;
	}
	return false;
}

static void
note(const struct key_run *k, const char *text)
{
	if (!k->c->quiet)
		fprintf(stderr, "gantry: %s\n", text);
}

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
take_until(const char *text, char out[32])
{
	uint64_t s, now = (uint64_t)time(NULL);
	time_t at;
	struct tm tm;

	if (duration_parse(text, UNTIL_MAX_S, &s)) {
		at = (time_t)(now + s);
		strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
		return out;
	}
	if (!key_wish_expires(text, &s))
		words_bad("key",
			  "--until wants a time such as 2030-12-31T23:59:59Z, or how long from now: 12h, 90d",
			  text);
	if (s <= now)
		words_bad("key", "--until is in the past", text);
	return text;
}

static void
print_pair(const struct key_run *k, const struct key_pair *p, const char *path, bool reloaded)
{
	json_t *o;

	if (!k->c->json) {
		printf("export AWS_ACCESS_KEY_ID=%s\nexport AWS_SECRET_ACCESS_KEY=%s\n", p->access_key,
		       p->secret);
		return;
	}
	o = json_pack("{s:s, s:s, s:s, s:b}", "access_key", p->access_key, "secret_key", p->secret, "file",
		      path, "reloaded", reloaded);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
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

/* ", at most 10 objects" */
static void
print_bound(const char *what, uint64_t bound, bool is_bytes)
{
	char text[32];

	if (bound == AUTH_UNBOUNDED)
		return;
	if (is_bytes)
		size_text(bound, text);
	else
		snprintf(text, sizeof text, "%" PRIu64, bound);
	printf(" (at most %s%s)", text, what);
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
			      .max_objects = k->c->max_objects,
			      .max_bytes = k->c->max_bytes,
			      .max_uploads = k->c->max_uploads,
			      .max_buckets = k->c->max_buckets };
	char until[32], says[2048], line[256], *list = NULL, *nets = NULL;
	struct keyfile *f = NULL;
	struct key_pair pair;
	int rc = EXIT_FAILED;
	bool reloaded;

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
	judge_bounds(&w);
	if (k->c->key.until)
		w.expires = take_until(k->c->key.until, until);
	if (find_file(k))
		f = open_file(k, true);
	if (f && keyfile_new(f, &w, &pair, stderr) == 0) {
		if (!k->c->json) {
			print_pair(k, &pair, NULL, false);
			fflush(stdout);
		}
		snprintf(line, sizeof line, "%s is in %s", pair.access_key, keyfile_path(f));
		note(k, line);
		reloaded = reload(k, keyfile_path(f), says, sizeof says, &rc);
		note(k, says);
		if (k->c->json)
			print_pair(k, &pair, keyfile_path(f), reloaded);
		explicit_bzero(&pair, sizeof pair);
	}
	keyfile_close(f);
	free(list);
	free(nets);
	return rc;
}

/* ---- list ---- */

static const char *
time_text(uint64_t s, char out[32])
{
	time_t at = (time_t)s;
	struct tm tm;

	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	return out;
}

/* "scratch-*", and with a prefix "scratch-*: a/". */
static void
print_grant(const struct auth_grant *g)
{
	char *prefix = strdup(g->prefix_len ? g->prefix : "");

	printf("%.*s%s", g->bucket_len, g->bucket, g->any_suffix ? "*" : "");
	if (prefix && *prefix) {
		printable(prefix, "");
		printf("/%s", prefix);
	}
	if (g->read_only || g->no_delete || g->no_overwrite)
		printf(" (%s%s%s)", g->read_only ? "read only" : "",
		       g->no_delete ? &", no delete"[g->read_only ? 0 : 2] : "",
		       g->no_overwrite ? &", no overwrite"[g->read_only || g->no_delete ? 0 : 2] : "");
	print_bound(" objects", g->max_objects, false);
	print_bound("", g->max_bytes, true);
	print_bound(" uploads", g->max_uploads, false);
	print_bound(" buckets", g->max_buckets, false);
	free(prefix);
}

static void
print_nets(const char *what, const struct conf_net *net, int nr)
{
	char text[64];

	for (int n = 0; n < nr; n++) {
		conf_net_format(&net[n], text, sizeof text);
		printf("%s%s%s%s", n ? ", " : "; ", n ? "" : what, n ? "" : " ", text);
	}
}

static void
print_key(const struct auth_key_info *i)
{
	char text[64];

	printf("%-20s  ", i->access_key);
	for (int g = 0; g < i->grant_nr; g++) {
		printf("%s", g ? ", " : "");
		print_grant(&i->grant[g]);
	}
	printf("%s", i->grant_nr ? "" : "everything");
	printf("%s%s", i->read_only ? "; read only" : "", i->session_token ? "; with a session token" : "");
	printf("%s%s", i->no_delete ? "; no delete" : "", i->no_overwrite ? "; no overwrite" : "");
	print_nets("from", i->from, i->from_nr);
	print_nets("tokens of", i->gid, i->gid_nr);
	if (i->have_expires)
		printf("; until %s%s", time_text(i->expires_s, text),
		       i->expires_s <= (uint64_t)time(NULL) ? ", EXPIRED" : "");
	putchar('\n');
}

static json_t *
nets_json(const struct conf_net *net, int nr)
{
	json_t *list = json_array();

	for (int n = 0; n < nr; n++) {
		char text[64];

		conf_net_format(&net[n], text, sizeof text);
		json_array_append_new(list, json_pack("s", text));
	}
	return list;
}

static json_t *
bound_json(uint64_t bound)
{
	return bound == AUTH_UNBOUNDED ? json_null() : json_integer((json_int_t)bound);
}

static void
print_key_json(const struct auth_key_info *i)
{
	json_t *o = json_object(), *grants = json_array();
	char text[80];

	json_object_set_new(o, "access_key", json_pack("s", i->access_key));
	json_object_set_new(o, "read_only", json_boolean(i->read_only));
	json_object_set_new(o, "no_delete", json_boolean(i->no_delete));
	json_object_set_new(o, "no_overwrite", json_boolean(i->no_overwrite));
	json_object_set_new(o, "from", nets_json(i->from, i->from_nr));
	json_object_set_new(o, "session_token", json_boolean(i->session_token));
	for (int n = 0; n < i->grant_nr; n++) {
		const struct auth_grant *g = &i->grant[n];

		snprintf(text, sizeof text, "%.*s%s", g->bucket_len, g->bucket, g->any_suffix ? "*" : "");
		json_array_append_new(
			grants,
			json_pack("{s:s, s:s#, s:b, s:b, s:b, s:o, s:o, s:o, s:o}", "bucket", text, "prefix",
				  g->prefix_len ? g->prefix : "", (int)g->prefix_len, "read_only",
				  g->read_only, "no_delete", g->no_delete, "no_overwrite", g->no_overwrite,
				  "max_objects", bound_json(g->max_objects), "max_bytes",
				  bound_json(g->max_bytes), "max_uploads", bound_json(g->max_uploads),
				  "max_buckets", bound_json(g->max_buckets)));
	}
	json_object_set_new(o, "grants", grants);
	json_object_set_new(o, "gids", nets_json(i->gid, i->gid_nr));
	if (i->have_expires) {
		json_object_set_new(o, "until", json_pack("s", time_text(i->expires_s, text)));
		json_object_set_new(o, "expired", json_boolean(i->expires_s <= (uint64_t)time(NULL)));
	}
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static int
key_list(struct key_run *k)
{
	struct keyfile *f = find_file(k) ? open_file(k, false) : NULL;
	struct auth_key_info info;
	int nr = 0;

	if (!f)
		return EXIT_FAILED;
	for (; auth_keys_info(keyfile_keys(f), nr, &info); nr++) {
		if (k->c->json)
			print_key_json(&info);
		else
			print_key(&info);
	}
	if (nr == 0)
		note(k, "there are no access keys: `gantry key new` makes one");
	keyfile_close(f);
	return EXIT_OK;
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

static int
key_revoke(struct key_run *k, const char *access_key)
{
	struct keyfile *f = find_file(k) ? open_file(k, true) : NULL;
	char says[2048], line[512];
	int rc = EXIT_FAILED, e;
	bool reloaded;

	if (!f)
		return EXIT_FAILED;
	e = keyfile_revoke(f, access_key, stderr);
	if (e == -ENOENT) {
		say_not_there(f, access_key);
		rc = EXIT_NOT_FOUND;
	} else if (e == 0) {
		reloaded = reload(k, keyfile_path(f), says, sizeof says, &rc);
		if (k->c->json)
			printf("{\"access_key\":\"%s\",\"reloaded\":%s}\n", access_key,
			       reloaded ? "true" : "false");
		snprintf(line, sizeof line, "%s is gone from %s%s", access_key, keyfile_path(f),
			 reloaded
				 ? ", and gantryd has read the file: requests with it are refused from now on"
				 : "");
		note(k, line);
		if (!reloaded)
			note(k, says);
	}
	keyfile_close(f);
	return rc;
}

int
cmd_key(struct cmd *c, const char *what, const char *access_key)
{
	struct key_run k = { .c = c };
	bool is_new = !strcmp(what, "new");
	int rc;

	if (!is_new && strcmp(what, "list") != 0 && strcmp(what, "revoke") != 0)
		words_bad("key", "there are new, list and revoke", what);
	if (!strcmp(what, "revoke") ? !access_key : access_key != NULL)
		words_bad("key", access_key ? "one word too many" : "revoke wants the KEY", access_key);
	if (!is_new && (c->key.bucket || c->key.prefix || c->key.until || c->key.from || c->key.read_only ||
			c->key.no_delete || c->key.no_overwrite || c->max_objects || c->max_bytes ||
			c->max_uploads || c->max_buckets))
		words_bad("key",
			  "--bucket, --prefix, --read-only, --no-delete, --no-overwrite, --from, --until and "
			  "--max-... "
			  "are for new",
			  NULL);
	rc = is_new ? key_new(&k) : access_key ? key_revoke(&k, access_key) : key_list(&k);
	conf_free(k.conf);
	return rc;
}
