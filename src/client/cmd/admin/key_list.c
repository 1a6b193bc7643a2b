/* SPDX-License-Identifier: Apache-2.0 */
/* gantry key list: a line for each secret of the file, without the secret. */
#include "client/cmd/admin/key_run.h"

#include "base/printable.h"
#include "client/cmd/common/admin_client.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- last use ---- */

/* The answer of the daemon, with the secrets by "KEY/ID". */
struct usage {
	json_t *answer, *by_name;
};

static void
usage_ask(struct usage *u, const struct key_run *k, const char *path)
{
	char why[1024], line[1200], name[KEY_NAME_BYTES];
	json_t *one;
	size_t i;

	u->by_name = json_object();
	u->answer = key_usage(k, path, why, sizeof why);
	if (!u->answer) {
		snprintf(line, sizeof line, "the last use of each secret is not known: %s", why);
		key_note(k, line);
		return;
	}
	json_array_foreach(json_object_get(u->answer, "keys"), i, one)
	{
		key_name(json_text_at(one, "access_key", ""), json_text_at(one, "secret_id", ""), name);
		json_object_set(u->by_name, name, one);
	}
}

/* Sets the members last_used and used_since, and the sentence in text; nothing if the daemon does not have the secret. */
static void
usage_find(const struct usage *u, const struct auth_key_info *i, char text[64], json_t *o)
{
	char name[KEY_NAME_BYTES];
	const char *since = json_text_at(u->answer, "since", ""), *last;
	json_t *one;

	text[0] = 0;
	key_name(i->access_key, i->secret_id, name);
	one = json_object_get(u->by_name, name);
	if (!one)
		return;
	last = json_text_at(one, "last_used", NULL);
	snprintf(text, 64, "; %s %s", last ? "used" : "not used since", last ? last : since);
	printable(text, "");
	if (o) {
		json_object_set_new(o, "last_used", last ? json_pack("s", last) : json_null());
		json_object_set_new(o, "used_since", json_pack("s", since));
	}
}

/* ---- a line a secret ---- */

static void
print_key(const struct auth_key_info *i, const struct usage *u)
{
	char text[64];

	printf("%-20s  %s  ", i->access_key, i->secret_id);
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
		printf("; until %s%s", auth_time_text(i->expires_s, text),
		       i->expires_s <= (uint64_t)time(NULL) ? ", EXPIRED" : "");
	if (i->have_made)
		printf("; made %s", auth_time_text(i->made_s, text));
	usage_find(u, i, text, NULL);
	fputs(text, stdout);
	if (i->comment)
		printf("; \"%s\"", i->comment);
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

json_t *
key_json(const struct auth_key_info *i)
{
	json_t *o = json_object(), *grants = json_array();
	char text[80];

	json_object_set_new(o, "access_key", json_pack("s", i->access_key));
	json_object_set_new(o, "secret_id", json_pack("s", i->secret_id));
	if (i->comment)
		json_object_set_new(o, "comment", json_pack("s", i->comment));
	if (i->have_made)
		json_object_set_new(o, "made", json_pack("s", auth_time_text(i->made_s, text)));
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
		json_object_set_new(o, "until", json_pack("s", auth_time_text(i->expires_s, text)));
		json_object_set_new(o, "expired", json_boolean(i->expires_s <= (uint64_t)time(NULL)));
	}
	return o;
}

static void
print_key_json(const struct auth_key_info *i, const struct usage *u)
{
	json_t *o = key_json(i);
	char text[64];

	usage_find(u, i, text, o);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int
key_list(struct key_run *k)
{
	struct keyfile *f = key_find_file(k) ? key_open_file(k, false) : NULL;
	struct auth_key_info info;
	struct usage u = { 0 };
	int nr = 0;

	if (!f)
		return EXIT_FAILED;
	if (auth_keys_nr(keyfile_keys(f)))
		usage_ask(&u, k, keyfile_path(f));
	for (; auth_keys_info(keyfile_keys(f), nr, &info); nr++) {
		if (k->c->json)
			print_key_json(&info, &u);
		else
			print_key(&info, &u);
	}
	if (nr == 0)
		key_note(k, "there are no access keys: `gantry key new` makes one");
	json_decref(u.by_name);
	json_decref(u.answer);
	keyfile_close(f);
	return EXIT_OK;
}
