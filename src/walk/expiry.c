/*
 * When a rule will delete an object.  Each core keeps the rules of the buckets that it met last, and looks them
 * up anew after a second: the usual request pays a comparison of names, and no request waits for anything.
 * What the header says may so be a second behind the rules.
 */
#include "walk/expiry.h"

#include "base/clock.h"
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
	uint64_t until_ns; /* 0: empty */
	void *rules;       /* packed, malloc'd; NULL: none */
	uint32_t rules_len;
	uint16_t bucket_len;
	char bucket[STORE_BUCKET_MAX];
};

struct expiry {
	struct store_port *store;
	struct expiry_slot slot[SLOTS];
};

int
expiry_new(struct store_port *store, struct expiry **ret_expiry)
{
	struct expiry *ex = calloc(1, sizeof *ex);

	if (!ex)
		return -ENOMEM;
	ex->store = store;
	*ret_expiry = ex;
	return 0;
}

static void
slot_clear(struct expiry_slot *s)
{
	free(s->rules);
	*s = (struct expiry_slot){ .rules = NULL };
}

void
expiry_free(struct expiry *ex)
{
	for (int i = 0; ex && i < SLOTS; i++)
		slot_clear(&ex->slot[i]);
	free(ex);
}

/* What cannot be read now is as if there were no rules: the header is advice. */
static void
slot_fill(struct expiry *ex, struct expiry_slot *s, const struct store_key *k, uint64_t now_ns)
{
	struct bucket_attrs ba;
	const void *packed;

	slot_clear(s);
	memcpy(s->bucket, k->bucket, k->bucket_len);
	s->bucket_len = k->bucket_len;
	s->until_ns = now_ns + FRESH_NS;
	/* Most buckets have nothing: no memory is taken to find that out. */
	if (store_bucket_get_attrs(ex->store, k->bucket, k->bucket_len, NULL, 0, NULL) <= 0 ||
	    bucket_attrs_read(ex->store, k->bucket, k->bucket_len, &ba) < 0)
		return;
	if (bucket_attrs_find(&ba, BUCKET_LIFECYCLE, &packed, &s->rules_len)) {
		s->rules = malloc(s->rules_len ? s->rules_len : 1);
		if (s->rules)
			memcpy(s->rules, packed, s->rules_len);
	}
	bucket_attrs_free(&ba);
}

static const struct expiry_slot *
slot_of(struct expiry *ex, const struct store_key *k, uint64_t now_ns)
{
	unsigned h = k->bucket_len;
	struct expiry_slot *s;

	for (uint16_t i = 0; i < k->bucket_len; i++)
		h = h * 31 + (unsigned char)k->bucket[i];
	s = &ex->slot[h % SLOTS];
	if (now_ns >= s->until_ns || s->bucket_len != k->bucket_len ||
	    memcmp(s->bucket, k->bucket, k->bucket_len) != 0)
		slot_fill(ex, s, k, now_ns);
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
	if (!s->rules)
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
