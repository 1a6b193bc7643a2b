/* SPDX-License-Identifier: Apache-2.0 */
/* gantry key list: a line for each secret of the file, without the secret. */
#include "client/cmd/admin/key_run.h"

#include "base/printable.h"

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

static void
print_key(const struct auth_key_info *i)
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

static void
print_key_json(const struct auth_key_info *i)
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
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int
key_list(struct key_run *k)
{
	struct keyfile *f = key_find_file(k) ? key_open_file(k, false) : NULL;
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
		key_note(k, "there are no access keys: `gantry key new` makes one");
	keyfile_close(f);
	return EXIT_OK;
}
