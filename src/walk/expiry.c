/*
 * x-amz-expiration: when a rule of the bucket's lifecycle will delete the object that a reply speaks of.
 * Called by reply.c for PUT, GET and HEAD, on the core's thread.
 *
 * Each core keeps the rules of the buckets that it met last, and looks them up anew after a second: the usual
 * request pays a comparison of names, and no request waits for anything.  What the header says may so be a
 * second behind the rules.
 */
#include "req/machine.h"

#include "base/clock.h"
#include "s3doc/lifecycle.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 16
#define FRESH_NS NS_PER_S

struct expiry_slot {
	uint64_t until_ns; /* 0: empty */
	void *rules;       /* packed, malloc'd; NULL: none */
	uint32_t rules_len;
	uint16_t bucket_len;
	char bucket[64];
};

struct expiry {
	struct expiry_slot slot[SLOTS];
};

static void
slot_clear(struct expiry_slot *s)
{
	free(s->rules);
	*s = (struct expiry_slot){ .rules = NULL };
}

/* What cannot be read now is as if there were no rules: the header is advice. */
static void
slot_fill(struct expiry_slot *s, struct req *rq)
{
	const struct target *t = &rq->target;
	struct store_port *port = rq->rs->env.store;
	struct bucket_attrs ba;
	const void *packed;

	slot_clear(s);
	memcpy(s->bucket, t->bucket, t->bucket_len);
	s->bucket_len = t->bucket_len;
	s->until_ns = rq->began_ns + FRESH_NS;
	/* Most buckets have nothing: no memory is taken to find that out. */
	if (store_bucket_get_attrs(port, t->bucket, t->bucket_len, NULL, 0, NULL) <= 0 ||
	    bucket_attrs_read(port, t->bucket, t->bucket_len, &ba) < 0)
		return;
	if (bucket_attrs_find(&ba, BUCKET_LIFECYCLE, &packed, &s->rules_len)) {
		s->rules = malloc(s->rules_len ? s->rules_len : 1);
		if (s->rules)
			memcpy(s->rules, packed, s->rules_len);
	}
	bucket_attrs_free(&ba);
}

static const struct expiry_slot *
slot_of(struct req *rq)
{
	const struct target *t = &rq->target;
	struct reqs *rs = rq->rs;
	unsigned h = t->bucket_len;
	struct expiry_slot *s;

	if (!rs->expiry) {
		rs->expiry = calloc(1, sizeof *rs->expiry);
		if (!rs->expiry)
			return NULL;
	}
	for (uint16_t i = 0; i < t->bucket_len; i++)
		h = h * 31 + (unsigned char)t->bucket[i];
	s = &rs->expiry->slot[h % SLOTS];
	if (rq->began_ns >= s->until_ns || s->bucket_len != t->bucket_len ||
	    memcmp(s->bucket, t->bucket, t->bucket_len) != 0)
		slot_fill(s, rq);
	return s;
}

const char *
expiry_text(struct req *rq, uint64_t size_bytes, const void *attrs, size_t attrs_len, uint64_t mtime_ns)
{
	const struct target *t = &rq->target;
	const struct expiry_slot *s;
	const char *tags, *id;
	size_t tags_len = 0, id_len;
	uint64_t at_s;
	char date[30];

	/* Where a day is none, dates say nothing. */
	if (rq->listen->dialect != DIALECT_S3 || rq->rs->env.conf->lifecycle.day_ns != 86400 * NS_PER_S)
		return NULL;
	s = slot_of(rq);
	if (!s || !s->rules)
		return NULL;
	tags = dialect_attr(attrs, attrs_len, ATTR_TAGGING, &tags_len);
	at_s = lifecycle_expiry(s->rules, s->rules_len, t->key, t->key_len, size_bytes, tags ? tags : "",
				tags ? tags_len : 0, mtime_ns / NS_PER_S, &id, &id_len);
	if (!at_s)
		return NULL;
	http_date_format(at_s, date);
	text_reset(&rq->out);
	text_fmt(&rq->out, "expiry-date=\"%s\", rule-id=\"", date);
	text_url(&rq->out, id, id_len, false);
	text_put(&rq->out, "\"", 2);
	return text_ok(&rq->out) ? rq->out.p : NULL;
}

void
expiry_free(struct reqs *rs)
{
	for (int i = 0; rs->expiry && i < SLOTS; i++)
		slot_clear(&rs->expiry->slot[i]);
	free(rs->expiry);
	rs->expiry = NULL;
}
