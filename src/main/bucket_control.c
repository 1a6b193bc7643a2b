/* SPDX-License-Identifier: Apache-2.0 */
/* The control call of a bucket: its quota, and the lifecycle rule that the call has in it. On the thread of slow control calls; see
 * admin.h. */
#include "main/daemon.h"

#include "admin/admin.h"
#include "base/log.h"
#include "conf/conf.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
json_bound(FILE *out, const char *before, const char *name, uint64_t value)
{
	fprintf(out, ",\"%s%s\":", before, name);
	if (value == STORE_UNBOUNDED)
		fputs("null", out);
	else
		fprintf(out, "%llu", (unsigned long long)value);
}

static void
json_use(FILE *out, const char *before, const struct store_use *u)
{
	const struct {
		const char *name;
		uint64_t value;
	} member[] = { { "objects", u->objects }, { "bytes", u->bytes }, { "uploads", u->uploads } };

	for (size_t i = 0; i < sizeof member / sizeof *member; i++)
		json_bound(out, before, member[i].name, member[i].value);
}

void
control_quota(const struct store_quota_info *q, const struct bucket_rules *rules, FILE *out)
{
	fprintf(out, "{\"kind\":\"%s\",\"buckets\":", q->is_pattern ? "grant" : "bucket");
	json_string(out, q->name);
	json_use(out, "", &q->used);
	json_use(out, "max_", &q->max);
	if (q->is_pattern) {
		json_bound(out, "", "bucket_number", q->buckets);
		json_bound(out, "max_", "buckets", q->max_buckets);
	}
	if (rules && rules->copies)
		fprintf(out, ",\"copies\":%u", rules->copies);
	if (rules && rules->expire_days)
		fprintf(out, ",\"expire_days\":%u", rules->expire_days);
	if (rules && rules->other_rules)
		fprintf(out, ",\"other_rules\":%d", rules->other_rules);
	fprintf(out, ",\"in_progress\":%llu,\"refused\":%llu}", (unsigned long long)q->in_progress_bytes,
		(unsigned long long)q->refused);
}

/* A bound that was given; "none" takes it away. */
static bool
take_bound(const struct admin_args *args, const char *name, bool is_bytes, uint64_t *bound, bool *any)
{
	const char *text = admin_arg(args, name);

	if (!text)
		return true;
	*any = true;
	if (strcmp(text, "none") != 0)
		return conf_bound_parse(text, is_bytes, bound) == 0;
	*bound = STORE_UNBOUNDED;
	return true;
}

static int
refuse(FILE *out, int status, const char *text)
{
	fputs("{\"error\":", out);
	json_string(out, text);
	putc('}', out);
	return status;
}

/* Answers a change that has failed. */
static int
refuse_change(FILE *out, int r)
{
	return r == -ENXIO    ? refuse(out, 404, "there is no such bucket")
	       : r == -ENOSPC ? refuse(out, 507, "the store is full; nothing was changed")
	       : r == -E2BIG  ? refuse(out, 400, "the bucket has too many lifecycle rules for one more")
	       : r == -EINVAL
		       ? refuse(out, 500, "the lifecycle rules of the bucket are damaged: write them again")
		       : refuse(out, 503, "the store did not take it; nothing is known to have changed");
}

/* Takes the days of the lifecycle rule; 0 removes it. Returns false if the text is no number of days. */
static bool
take_days(const struct admin_args *args, uint32_t *days, bool *any)
{
	const char *text = admin_arg(args, "expire_days");
	unsigned long n;

	*days = 0;
	*any = text != NULL;
	if (!text || strcmp(text, "none") == 0)
		return true;
	n = strspn(text, "0123456789") == strlen(text) && strlen(text) < 10 ? strtoul(text, NULL, 10) : 0;
	*days = (uint32_t)n;
	return n > 0;
}

static int
show(struct store *st, const char *name, FILE *out)
{
	struct store_quota_info q;
	struct bucket_rules rules;

	if (store_bucket_quota(st, name, strlen(name), &q) < 0)
		return refuse(out, 404, "there is no such bucket");
	daemon_bucket_rules(st, name, &rules);
	control_quota(&q, &rules, out);
	return 200;
}

int
control_bucket(void *cookie, const struct admin_args *args, FILE *out)
{
	struct daemon *d = cookie;
	struct store *st = atomic_load(&d->store);
	const char *name = admin_arg(args, "bucket");
	struct store_quota_info q;
	bool any = false, expires;
	uint32_t days;
	int r;

	if (!st || atomic_load(&d->phase) != PHASE_SERVING) {
		fprintf(out, "{\"error\":\"not now: %s\"}", phase_name[atomic_load(&d->phase)]);
		return 503;
	}
	if (!name)
		return refuse(out, 400, "\"bucket\" is missing: the bucket's name");
	r = store_bucket_quota(st, name, strlen(name), &q);
	if (r < 0)
		return refuse(out, r == -ENXIO ? 404 : 501,
			      r == -ENXIO ? "there is no such bucket" : "this store has no quotas");
	if (!take_bound(args, "max_objects", false, &q.max.objects, &any) ||
	    !take_bound(args, "max_bytes", true, &q.max.bytes, &any) ||
	    !take_bound(args, "max_uploads", false, &q.max.uploads, &any))
		return refuse(out, 400,
			      "expected a number for max_objects and max_uploads, a size (bytes, or KiB MiB "
			      "GiB TiB) "
			      "for max_bytes, or none");
	if (!take_days(args, &days, &expires))
		return refuse(out, 400, "expected a number of days for expire_days, at least 1, or none");
	r = any ? daemon_set_bucket_quota(st, name, &q.max) : 0;
	if (r < 0)
		return refuse_change(out, r);
	if (any)
		log_event(LOG_EV_CONTROL, LOG_NOTE, "the quota of bucket %s was set", name);
	r = expires ? daemon_set_bucket_expiry(st, name, days) : 0;
	if (r < 0)
		return refuse_change(out, r);
	if (expires && days)
		log_event(LOG_EV_CONTROL, LOG_NOTE, "objects of bucket %s expire after %u days", name, days);
	else if (expires)
		log_event(LOG_EV_CONTROL, LOG_NOTE,
			  "the rule by which objects of bucket %s expire was removed", name);
	return show(st, name, out);
}
