/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a rule will delete an object.  Each core keeps the rules of the buckets that it met last, and looks
 * them up again after a second: the usual request pays a comparison of names, and no request waits for
 * anything. So the header may lag the rules by a second.  While a store that is far away is
 * asked, the rules of before are believed, and those of a bucket not met before are none.
 */
#include "walk/expiry.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "dialect/dialect.h"
#include "dialect/tags.h"
#include "s3doc/lifecycle.h"
#include "store/store.h"
#include "walk/bucket_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16
#define FRESH_NS NS_PER_S

struct expiry_slot {
	struct store_port *store;
	struct bucket_attrs attrs; /* being read, with is_reading */
	bool is_reading;
	uint64_t until_ns; /* 0: empty */
	void *rules;       /* packed, malloc'd; NULL: none */
	uint32_t rules_len;
	uint16_t bucket_len;
	char bucket[STORE_BUCKET_MAX];
};

struct expiry {
	struct expiry_slot slot[SLOTS];
};

int
expiry_new(struct store_port *store, struct expiry **ret_expiry)
{
	struct expiry *ex = calloc(1, sizeof *ex);

	if (!ex)
		return -ENOMEM;
	for (int i = 0; i < SLOTS; i++)
		ex->slot[i].store = store;
	*ret_expiry = ex;
	return 0;
}

static void
slot_clear(struct expiry_slot *s)
{
	free(s->rules);
	s->rules = NULL;
}

void
expiry_free(struct expiry *ex)
{
	for (int i = 0; ex && i < SLOTS; i++) {
		check(!ex->slot[i].is_reading);
		slot_clear(&ex->slot[i]);
	}
	free(ex);
}

/* What cannot be read now is as if there were no rules: the header is advice. */
static void
slot_filled(struct expiry_slot *s)
{
	const void *packed;
	uint32_t len;

	s->is_reading = false;
	slot_clear(s);
	if (s->attrs.p && s->attrs.stat.op.result >= 0 &&
	    bucket_attrs_find(&s->attrs, BUCKET_LIFECYCLE, &packed, &len)) {
		s->rules = malloc(len ? len : 1);
		s->rules_len = len;
		if (s->rules)
			memcpy(s->rules, packed, len);
	}
	bucket_attrs_free(&s->attrs);
}

static void
on_read(struct store_op *op)
{
	slot_filled(container_of(container_of(op, struct store_stat, op), struct expiry_slot, attrs.stat));
}

/* Most buckets have nothing: no memory is taken to find that out. */
static void
slot_seen(struct expiry_slot *s)
{
	int r = -ENOENT;

	if (s->attrs.stat.op.result >= 0 && s->attrs.stat.attrs_len > 0) {
		s->attrs.stat.op.done = on_read;
		r = bucket_attrs_read(s->store, s->bucket, s->bucket_len, &s->attrs);
	}
	if (r < 0)
		bucket_attrs_free(&s->attrs);
	if (r != 0)
		slot_filled(s);
}

static void
on_seen(struct store_op *op)
{
	slot_seen(container_of(container_of(op, struct store_stat, op), struct expiry_slot, attrs.stat));
}

static void
slot_read(struct expiry_slot *s, uint64_t now_ns)
{
	int r;

	s->until_ns = now_ns + FRESH_NS;
	s->is_reading = true;
	s->attrs.stat.op.done = on_seen;
	r = store_bucket_get_attrs(s->store, s->bucket, s->bucket_len, NULL, 0, &s->attrs.stat);
	if (r < 0)
		slot_filled(s);
	else if (r > 0)
		slot_seen(s);
}

/* NULL: the place is taken by a bucket that is being read. */
static const struct expiry_slot *
slot_of(struct expiry *ex, const struct store_key *k, uint64_t now_ns)
{
	unsigned h = k->bucket_len;
	struct expiry_slot *s;
	bool same;

	for (uint16_t i = 0; i < k->bucket_len; i++)
		h = h * 31 + (unsigned char)k->bucket[i];
	s = &ex->slot[h % SLOTS];
	same = s->bucket_len == k->bucket_len && memcmp(s->bucket, k->bucket, k->bucket_len) == 0;
	if (same && (s->is_reading || now_ns < s->until_ns))
		return s;
	if (s->is_reading)
		return NULL;
	if (!same) {
		slot_clear(s);
		memcpy(s->bucket, k->bucket, k->bucket_len);
		s->bucket_len = k->bucket_len;
	}
	slot_read(s, now_ns);
	return s;
}

bool
expiry_text(struct expiry *ex, const struct store_key *k, uint64_t size_bytes, const struct store_meta *meta,
	    uint64_t now_ns, struct text *out)
{
	const struct expiry_slot *s;
	const char *tags, *id;
	size_t tags_len = 0, id_len;
	uint64_t at_s;
	char date[30];

	if (!ex || k->bucket_len > STORE_BUCKET_MAX)
		return false;
	s = slot_of(ex, k, now_ns);
	if (!s || !s->rules)
		return false;
	tags = dialect_attr(meta->attrs, meta->attrs_len, ATTR_TAGGING, &tags_len);
	at_s = lifecycle_expiry(s->rules, s->rules_len, k->key, k->key_len, size_bytes, tags ? tags : "",
				tags ? tags_len : 0, meta->mtime_ns / NS_PER_S, &id, &id_len);
	if (!at_s)
		return false;
	http_date_format(at_s, date);
	text_reset(out);
	text_fmt(out, "expiry-date=\"%s\", rule-id=\"", date);
	text_url(out, id, id_len, false);
	text_put(out, "\"", 2);
	return text_ok(out);
}
