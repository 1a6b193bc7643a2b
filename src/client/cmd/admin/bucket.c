/* SPDX-License-Identifier: Apache-2.0 */
/* gantry bucket: what buckets hold and may hold, and setting that, through the daemon's admin listener. */
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"
#include "conf/conf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_S ((uint64_t)86400)
#define EXPIRE_MAX_DAYS ((uint64_t)36500)

/* "3.1 GiB of 10 GiB", "12 of 100", "12". */
static void
print_use(const json_t *q, const char *name, bool is_bytes, const char *unit)
{
	char member[32], used[32], max[32];
	const json_t *bound;

	snprintf(member, sizeof member, "max_%s", name);
	bound = json_object_get(q, member);
	if (is_bytes) {
		size_text((uint64_t)json_at(q, name), used);
		size_text((uint64_t)json_number_value(bound), max);
	} else {
		snprintf(used, sizeof used, "%.0f", json_at(q, name));
		snprintf(max, sizeof max, "%.0f", json_number_value(bound));
	}
	printf("%s%s%s%s", used, json_is_number(bound) ? " of " : "", json_is_number(bound) ? max : "", unit);
}

static void
print_quota(const struct cmd *c, const json_t *q)
{
	if (c->json) {
		json_dumpf(q, stdout, JSON_COMPACT);
		putchar('\n');
		return;
	}
	printf("%-7s %-24s ", json_text_at(q, "kind", "?"), json_text_at(q, "buckets", "?"));
	print_use(q, "objects", false, " objects, ");
	print_use(q, "bytes", true, ", ");
	print_use(q, "uploads", false, " uploads under way");
	if (json_is_number(json_object_get(q, "max_buckets")))
		printf(", %.0f of %.0f buckets", json_at(q, "bucket_number"), json_at(q, "max_buckets"));
	if (json_at(q, "copies") > 1)
		printf(", %.0f copies of each object", json_at(q, "copies"));
	if (json_at(q, "expire_days") > 0)
		printf(", objects expire after %.0f day%s", json_at(q, "expire_days"),
		       json_at(q, "expire_days") > 1 ? "s" : "");
	if (json_at(q, "other_rules") > 0)
		printf(", %.0f %slifecycle rule%s", json_at(q, "other_rules"),
		       json_at(q, "expire_days") > 0 ? "other " : "",
		       json_at(q, "other_rules") > 1 ? "s" : "");
	if (json_at(q, "refused") > 0)
		printf("; %.0f refused", json_at(q, "refused"));
	putchar('\n');
}

static int
show_all(const struct cmd *c, const char *admin)
{
	char err[1024];
	json_t *list, *q;
	int status;
	size_t i;

	if (admin_json(admin, "/quotas", &list, &status, err, sizeof err) < 0) {
		fprintf(stderr, "gantry: %s\n", err);
		return EXIT_FAILED;
	}
	json_array_foreach(list, i, q) print_quota(c, q);
	if (json_array_size(list) == 0 && !c->json && !c->quiet)
		fprintf(stderr, "gantry: no bucket and no access key has a quota\n");
	json_decref(list);
	return EXIT_OK;
}

static void
print_said(const struct cmd *c, const json_t *q)
{
	if (!c->quiet)
		print_quota(c, q);
}

/* The daemon's answer about one bucket. */
static int
tell(const struct cmd *c, const char *admin, const char *body)
{
	return admin_tell(c, admin, "bucket", "/control/bucket", body, print_said);
}

static void
add_bound(json_t *o, const char *name, const char *text, bool is_bytes)
{
	uint64_t bound;

	if (!text)
		return;
	if (strcmp(text, "none") != 0 && conf_bound_parse(text, is_bytes, &bound) < 0)
		words_bad("bucket",
			  is_bytes ? "--max-bytes wants a size, 10TiB or 10995116277760, or none"
				   : "--max-objects and --max-uploads want a number, or none",
			  text);
	json_object_set_new(o, name, json_pack("s", text));
}

/* Lifecycle rules count whole days, as S3 has it. */
static void
add_expiry(json_t *o, const char *text)
{
	char days[32];
	uint64_t s = 0;

	if (!text)
		return;
	if (strcmp(text, "none") != 0 && !duration_parse(text, EXPIRE_MAX_DAYS * DAY_S, &s))
		words_bad("bucket", "--expire wants a number of days, 1d or 30d, or none", text);
	if (s % DAY_S)
		words_bad("bucket",
			  "--expire wants whole days, 1d or 30d: lifecycle rules know no shorter times",
			  text);
	snprintf(days, sizeof days, "%" PRIu64, s / DAY_S);
	json_object_set_new(o, "expire_days", json_pack("s", s ? days : "none"));
}

int
cmd_bucket(struct cmd *c, const char *what, const char *name)
{
	const char *admin = admin_name(c->admin);
	bool is_set = !strcmp(what, "set"),
	     any = c->max_objects || c->max_bytes || c->max_uploads || c->expire;
	json_t *o;
	char *body;
	int rc = EXIT_FAILED;

	if (!is_set && strcmp(what, "show") != 0)
		words_bad("bucket", "there are set and show", what);
	if (is_set && (!any || !name))
		words_bad("bucket",
			  "set wants the BUCKET and at least one of --max-objects, --max-bytes, "
			  "--max-uploads, --expire",
			  NULL);
	if (!name)
		return show_all(c, admin);
	o = json_pack("{s:s}", "bucket", name);
	add_bound(o, "max_objects", c->max_objects, false);
	add_bound(o, "max_bytes", c->max_bytes, true);
	add_bound(o, "max_uploads", c->max_uploads, false);
	add_expiry(o, c->expire);
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (body)
		rc = tell(c, admin, body);
	else
		words_bad("bucket", "this is no bucket's name", NULL);
	free(body);
	json_decref(o);
	return rc;
}
