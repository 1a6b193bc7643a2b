/*
 * Lifecycle rules, see lifecycle.h.
 *
 * Packed: a byte for the form, then rules one behind the other, each a fixed head (struct head) and the
 * strings id, prefix, tags.
 */
#include "dialect/lifecycle.h"

#include "dialect/pack.h"
#include "dialect/tags.h"
#include "dialect/xml_int.h"

#include <errno.h>
#include <stdio.h>

#define FORM 1
#define DAY ((uint64_t)86400)
#define ID_MAX 255

enum {
	R_ENABLED = 1,
	R_DAYS = 2,
	R_DATE = 4,
	R_MARKER = 8, /* ExpiredObjectDeleteMarker: kept, without effect */
	R_ABORT = 16,
	R_GREATER = 32,
	R_LESS = 64,
	R_OLD_FORM = 128, /* Prefix in the rule itself */
	R_NONCURRENT = 256,
	R_NEWER = 512
};

/* What a rule is but for its strings. */
struct head {
	unsigned flags;
	uint32_t days, abort_days, noncurrent_days, newer;
	uint64_t date_s, greater, less;
};

struct rule {
	struct head h;
	struct span id, prefix, tags;
};

struct building {
	struct text *out, tags;
	int rules, tag_nr, predicates;
	struct head h;
	bool have_status, have_filter, have_prefix, have_and, have_id, have_key, have_value;
	uint16_t id_len, prefix_len;
	uint16_t key_len, value_len;
	char id[ID_MAX], prefix[DIALECT_KEY_MAX];
	char key[512], value[1024];
	size_t ids_from; /* where the packed rules begin, to find an id twice */
};

enum {
	P_RULE,
	P_ID,
	P_STATUS,
	P_OLD_PREFIX,
	P_FILTER,
	P_PREFIX,
	P_TAG,
	P_KEY,
	P_VALUE,
	P_GREATER,
	P_LESS,
	P_AND,
	P_AND_PREFIX,
	P_AND_TAG,
	P_AND_KEY,
	P_AND_VALUE,
	P_AND_GREATER,
	P_AND_LESS,
	P_EXPIRATION,
	P_DAYS,
	P_DATE,
	P_MARKER,
	P_ABORT,
	P_ABORT_DAYS,
	P_NONCURRENT,
	P_NONCURRENT_DAYS,
	P_NEWER,
	P_TRANSITION, /* from here on: not served */
};

static const char *const paths[] = { [P_RULE] = "Rule",
				     [P_ID] = "Rule/ID",
				     [P_STATUS] = "Rule/Status",
				     [P_OLD_PREFIX] = "Rule/Prefix",
				     [P_FILTER] = "Rule/Filter",
				     [P_PREFIX] = "Rule/Filter/Prefix",
				     [P_TAG] = "Rule/Filter/Tag",
				     [P_KEY] = "Rule/Filter/Tag/Key",
				     [P_VALUE] = "Rule/Filter/Tag/Value",
				     [P_GREATER] = "Rule/Filter/ObjectSizeGreaterThan",
				     [P_LESS] = "Rule/Filter/ObjectSizeLessThan",
				     [P_AND] = "Rule/Filter/And",
				     [P_AND_PREFIX] = "Rule/Filter/And/Prefix",
				     [P_AND_TAG] = "Rule/Filter/And/Tag",
				     [P_AND_KEY] = "Rule/Filter/And/Tag/Key",
				     [P_AND_VALUE] = "Rule/Filter/And/Tag/Value",
				     [P_AND_GREATER] = "Rule/Filter/And/ObjectSizeGreaterThan",
				     [P_AND_LESS] = "Rule/Filter/And/ObjectSizeLessThan",
				     [P_EXPIRATION] = "Rule/Expiration",
				     [P_DAYS] = "Rule/Expiration/Days",
				     [P_DATE] = "Rule/Expiration/Date",
				     [P_MARKER] = "Rule/Expiration/ExpiredObjectDeleteMarker",
				     [P_ABORT] = "Rule/AbortIncompleteMultipartUpload",
				     [P_ABORT_DAYS] =
					     "Rule/AbortIncompleteMultipartUpload/DaysAfterInitiation",
				     [P_NONCURRENT] = "Rule/NoncurrentVersionExpiration",
				     [P_NONCURRENT_DAYS] = "Rule/NoncurrentVersionExpiration/NoncurrentDays",
				     [P_NEWER] = "Rule/NoncurrentVersionExpiration/NewerNoncurrentVersions",
				     [P_TRANSITION] = "Rule/Transition",
				     "Rule/Transition/Days",
				     "Rule/Transition/Date",
				     "Rule/Transition/StorageClass",
				     "Rule/NoncurrentVersionTransition",
				     "Rule/NoncurrentVersionTransition/NoncurrentDays",
				     "Rule/NoncurrentVersionTransition/NewerNoncurrentVersions",
				     "Rule/NoncurrentVersionTransition/StorageClass",
				     NULL };

static enum fault
malformed(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_MALFORMED_XML, why);
}

/* ---- packed rules ---- */

static struct unpacker
rules_of(const void *packed, size_t len)
{
	struct unpacker u = { packed, (const unsigned char *)packed + len, len == 0 };

	if (unpack_number(&u, 1) != FORM)
		u.bad = true;
	return u;
}

static bool
next_rule(struct unpacker *u, struct rule *r)
{
	if (u->bad || u->p == u->end)
		return false;
	r->h.flags = (unsigned)unpack_number(u, 2);
	r->h.days = (uint32_t)unpack_number(u, 4);
	r->h.abort_days = (uint32_t)unpack_number(u, 4);
	r->h.noncurrent_days = (uint32_t)unpack_number(u, 4);
	r->h.newer = (uint32_t)unpack_number(u, 4);
	r->h.date_s = unpack_number(u, 8);
	r->h.greater = unpack_number(u, 8);
	r->h.less = unpack_number(u, 8);
	r->id = unpack_span(u);
	r->prefix = unpack_span(u);
	r->tags = unpack_span(u);
	return !u->bad;
}

static void
pack_rule(struct text *x, const struct rule *r)
{
	pack_number(x, r->h.flags, 2);
	pack_number(x, r->h.days, 4);
	pack_number(x, r->h.abort_days, 4);
	pack_number(x, r->h.noncurrent_days, 4);
	pack_number(x, r->h.newer, 4);
	pack_number(x, r->h.date_s, 8);
	pack_number(x, r->h.greater, 8);
	pack_number(x, r->h.less, 8);
	pack_span(x, r->id);
	pack_span(x, r->prefix);
	pack_span(x, r->tags);
}

/* ---- from XML ---- */

static enum fault
on_begin(void *cookie, int path, const char **ret_why)
{
	struct building *b = cookie;

	if (path >= P_TRANSITION)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "Transitions to other storage classes are not implemented.");
	switch (path) {
	case P_RULE:
		if (b->rules++ == LIFECYCLE_RULES_MAX)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "There are more than 1000 lifecycle rules.");
		text_reset(&b->tags);
		memset(&b->h, 0, sizeof b->h);
		b->tag_nr = b->predicates = 0;
		b->have_status = b->have_filter = b->have_prefix = b->have_and = b->have_id = false;
		b->id_len = b->prefix_len = 0;
		return FAULT_NONE;
	case P_FILTER:
	case P_OLD_PREFIX:
		if (b->have_filter)
			return malformed(ret_why, "A rule has more than one Filter or Prefix.");
		b->have_filter = true;
		b->h.flags |= path == P_OLD_PREFIX ? R_OLD_FORM : 0;
		return FAULT_NONE;
	case P_AND:
		if (b->have_and)
			return malformed(ret_why, "A Filter has more than one And.");
		b->have_and = true;
		return FAULT_NONE;
	case P_TAG:
	case P_AND_TAG:
		b->have_key = b->have_value = false;
		return FAULT_NONE;
	default:
		return FAULT_NONE;
	}
}

static enum fault
take_number(struct building *b, struct span text, unsigned flag, uint64_t least, uint64_t most, uint64_t *ret,
	    const char **ret_why)
{
	if (b->h.flags & flag)
		return malformed(ret_why, "A lifecycle rule says a number twice.");
	b->h.flags |= flag;
	if (span_decimal(text, ret) < 0)
		return malformed(ret_why, "A number of a lifecycle rule is not one.");
	if (*ret < least || *ret > most)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "A number of a lifecycle rule is too small or too large.");
	return FAULT_NONE;
}

static enum fault
take_days(struct building *b, struct span text, unsigned flag, uint32_t *ret, const char **ret_why)
{
	uint64_t v = 0;
	enum fault f = take_number(b, text, flag, 1, INT32_MAX, &v, ret_why);

	*ret = (uint32_t)v;
	return f;
}

static enum fault
take_date(struct building *b, struct span text, const char **ret_why)
{
	if (b->h.flags & R_DATE || iso_date_parse(text.p, text.len, &b->h.date_s) < 0)
		return malformed(ret_why, "Date is not one date.");
	if (b->h.date_s % DAY)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "Date is not at midnight UTC.");
	b->h.flags |= R_DATE;
	return FAULT_NONE;
}

static enum fault
take_prefix(struct building *b, struct span text, const char **ret_why)
{
	if (b->have_prefix)
		return malformed(ret_why, "A rule has more than one Prefix.");
	if (text.len > sizeof b->prefix || !is_utf8(text.p, text.len))
		return refuse(ret_why, FAULT_BAD_REQUEST, "A Prefix is longer than 1024 bytes.");
	b->have_prefix = true;
	b->predicates++;
	memcpy(b->prefix, text.p, text.len);
	b->prefix_len = (uint16_t)text.len;
	return FAULT_NONE;
}

static enum fault
take_tag_text(struct span text, char *out, size_t cap, uint16_t *ret_len, bool *have, const char **ret_why)
{
	if (*have || text.len > cap)
		return refuse(ret_why, FAULT_INVALID_TAG, "A Tag is too long, or has two keys or values.");
	*have = true;
	*ret_len = (uint16_t)text.len;
	memcpy(out, text.p, text.len);
	return FAULT_NONE;
}

/* Through the header's form, whose rules are the same. */
static enum fault
take_tag(struct building *b, const char **ret_why)
{
	struct text one = { 0 };
	enum fault f;
	int nr;

	if (!b->have_key || !b->have_value)
		return malformed(ret_why, "A Tag lacks its Key or its Value.");
	b->predicates++;
	if (b->tags.len)
		text_str(&one, "&");
	text_url(&one, b->key, b->key_len, false);
	text_str(&one, "=");
	text_url(&one, b->value, b->value_len, false);
	/* All of them again each time: they are few, and two of one key are found. */
	text_put(&b->tags, one.p, one.len);
	text_free(&one);
	if (!text_ok(&b->tags))
		return refuse(ret_why, FAULT_BUSY, "There is no memory for the tags.");
	f = tags_from_header(b->tags.p, b->tags.len, &one, &nr, ret_why);
	text_free(&one);
	b->tag_nr = nr;
	return f;
}

static enum fault
take_status(struct building *b, struct span text, const char **ret_why)
{
	bool on = span_is(text, "Enabled");

	if (b->have_status || (!on && !span_is(text, "Disabled")))
		return malformed(ret_why, "Status is neither Enabled nor Disabled.");
	b->have_status = true;
	b->h.flags |= on ? R_ENABLED : 0;
	return FAULT_NONE;
}

static bool
id_taken(const struct building *b)
{
	struct unpacker u = rules_of(b->out->p + b->ids_from, b->out->len - b->ids_from);
	struct rule r;

	while (next_rule(&u, &r)) {
		if (r.id.len == b->id_len && memcmp(r.id.p, b->id, b->id_len) == 0)
			return true;
	}
	return false;
}

/* A name where the client gave none: answers name the rule. */
static void
make_id(struct building *b)
{
	for (int i = b->rules;; i++) {
		b->id_len = (uint16_t)snprintf(b->id, sizeof b->id, "rule-%d", i);
		if (!id_taken(b))
			return;
	}
}

static const char *
what_is_wrong(const struct building *b)
{
	unsigned actions = R_DAYS | R_DATE | R_MARKER | R_ABORT | R_NONCURRENT | R_NEWER;
	unsigned expiry = b->h.flags & (R_DAYS | R_DATE | R_MARKER);

	if (!b->have_status)
		return "A lifecycle rule lacks its Status.";
	if (!b->have_filter)
		return "A lifecycle rule has neither Filter nor Prefix.";
	if (!(b->h.flags & actions))
		return "A lifecycle rule does nothing.";
	if (expiry & (expiry - 1))
		return "An Expiration has more than one of Days, Date and ExpiredObjectDeleteMarker.";
	if (!b->have_and && b->predicates > 1)
		return "A Filter has more than one condition without And.";
	if (b->have_and && b->predicates < 2)
		return "An And has fewer than two conditions.";
	if (b->h.flags & R_GREATER && b->h.flags & R_LESS && b->h.greater >= b->h.less)
		return "ObjectSizeGreaterThan is not below ObjectSizeLessThan.";
	return NULL;
}

static enum fault
end_rule(struct building *b, const char **ret_why)
{
	struct text tags = { 0 };
	const char *wrong = what_is_wrong(b);
	enum fault f = FAULT_NONE;
	struct rule r;
	int nr;

	if (wrong)
		return malformed(ret_why, wrong);
	if (b->h.flags & R_ABORT && (b->tag_nr || b->h.flags & (R_GREATER | R_LESS)))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "AbortIncompleteMultipartUpload goes with a prefix only.");
	if (b->have_id && b->id_len && id_taken(b))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "Two lifecycle rules have the same ID.");
	if (b->id_len == 0)
		make_id(b);
	if (b->tag_nr)
		f = tags_from_header(b->tags.p, b->tags.len, &tags, &nr, ret_why);
	r = (struct rule){ .h = b->h,
			   .id = { b->id, b->id_len },
			   .prefix = { b->prefix, b->prefix_len },
			   .tags = { tags.p, tags.len } };
	pack_rule(b->out, &r);
	text_free(&tags);
	if (f == FAULT_NONE && !text_ok(b->out))
		return refuse(ret_why, FAULT_BUSY, "There is no memory for the lifecycle rules.");
	return f;
}

static enum fault
on_action(struct building *b, int path, struct span text, const char **ret_why)
{
	uint64_t v = 0;
	enum fault f;

	switch (path) {
	case P_DAYS:
		return take_days(b, text, R_DAYS, &b->h.days, ret_why);
	case P_DATE:
		return take_date(b, text, ret_why);
	case P_MARKER:
		if (!span_is(text, "true") && !span_is(text, "false"))
			return malformed(ret_why, "ExpiredObjectDeleteMarker is neither true nor false.");
		b->h.flags |= span_is(text, "true") ? R_MARKER : 0;
		return FAULT_NONE;
	case P_ABORT_DAYS:
		return take_days(b, text, R_ABORT, &b->h.abort_days, ret_why);
	case P_NONCURRENT_DAYS:
		return take_days(b, text, R_NONCURRENT, &b->h.noncurrent_days, ret_why);
	case P_NEWER:
		f = take_number(b, text, R_NEWER, 1, 100, &v, ret_why);
		b->h.newer = (uint32_t)v;
		return f;
	default:
		return FAULT_NONE;
	}
}

static enum fault
on_end(void *cookie, int path, struct span text, const char **ret_why)
{
	struct building *b = cookie;

	switch (path) {
	case P_RULE:
		return end_rule(b, ret_why);
	case P_ID:
		if (b->have_id || text.len > sizeof b->id || has_control(text.p, text.len))
			return refuse(ret_why, FAULT_BAD_ARGUMENT,
				      "The ID of a rule is longer than 255 bytes.");
		b->have_id = true;
		b->id_len = (uint16_t)text.len;
		memcpy(b->id, text.p, text.len);
		return FAULT_NONE;
	case P_STATUS:
		return take_status(b, text, ret_why);
	case P_OLD_PREFIX:
	case P_PREFIX:
	case P_AND_PREFIX:
		return take_prefix(b, text, ret_why);
	case P_KEY:
	case P_AND_KEY:
		return take_tag_text(text, b->key, sizeof b->key, &b->key_len, &b->have_key, ret_why);
	case P_VALUE:
	case P_AND_VALUE:
		return take_tag_text(text, b->value, sizeof b->value, &b->value_len, &b->have_value, ret_why);
	case P_TAG:
	case P_AND_TAG:
		return take_tag(b, ret_why);
	case P_GREATER:
	case P_AND_GREATER:
		b->predicates++;
		return take_number(b, text, R_GREATER, 0, INT64_MAX, &b->h.greater, ret_why);
	case P_LESS:
	case P_AND_LESS:
		b->predicates++;
		return take_number(b, text, R_LESS, 1, INT64_MAX, &b->h.less, ret_why);
	default:
		return on_action(b, path, text, ret_why);
	}
}

enum fault
lifecycle_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why)
{
	struct building b = { .out = packed, .ids_from = packed->len };
	struct xml_doc doc = { .root = "LifecycleConfiguration",
			       .other_root = "BucketLifecycleConfiguration",
			       .paths = paths,
			       .begin = on_begin,
			       .end = on_end,
			       .cookie = &b };
	enum fault f;

	pack_number(packed, FORM, 1);
	f = text_ok(packed) ? xml_read(&doc, body, len, ret_why)
			    : refuse(ret_why, FAULT_BUSY, "There is no memory for the lifecycle rules.");
	text_free(&b.tags);
	if (f == FAULT_NONE && b.rules == 0)
		return malformed(ret_why, "There are no lifecycle rules.");
	if (f == FAULT_NONE && packed->len - b.ids_from > LIFECYCLE_PACKED_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "The lifecycle rules are larger than 24 KiB.");
	return f;
}

/* ---- to XML ---- */

static void
on_tag(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct text *x = cookie;

	text_str(x, "<Tag>");
	text_element(x, "Key", key, key_len);
	text_element(x, "Value", value, value_len);
	text_str(x, "</Tag>");
}

static void
put_filter(struct text *x, const struct rule *r)
{
	int tags = tags_count(r->tags.p, r->tags.len);
	bool greater = r->h.flags & R_GREATER, less = r->h.flags & R_LESS;
	bool and = (r->prefix.len > 0) + tags + greater + less > 1;

	if (r->h.flags & R_OLD_FORM) {
		text_element(x, "Prefix", r->prefix.p, r->prefix.len);
		return;
	}
	text_str(x, and? "<Filter><And>" : "<Filter>");
	if (r->prefix.len || (!tags && !greater && !less))
		text_element(x, "Prefix", r->prefix.p, r->prefix.len);
	tags_each(r->tags.p, r->tags.len, on_tag, x);
	if (greater)
		text_element_u64(x, "ObjectSizeGreaterThan", r->h.greater);
	if (less)
		text_element_u64(x, "ObjectSizeLessThan", r->h.less);
	text_str(x, and? "</And></Filter>" : "</Filter>");
}

static void
put_actions(struct text *x, const struct head *h)
{
	if (h->flags & (R_DAYS | R_DATE | R_MARKER)) {
		text_str(x, "<Expiration>");
		if (h->flags & R_DAYS)
			text_element_u64(x, "Days", h->days);
		if (h->flags & R_DATE)
			text_element_date(x, "Date", h->date_s);
		if (h->flags & R_MARKER)
			text_str(x, "<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>");
		text_str(x, "</Expiration>");
	}
	if (h->flags & (R_NONCURRENT | R_NEWER)) {
		text_str(x, "<NoncurrentVersionExpiration>");
		if (h->flags & R_NONCURRENT)
			text_element_u64(x, "NoncurrentDays", h->noncurrent_days);
		if (h->flags & R_NEWER)
			text_element_u64(x, "NewerNoncurrentVersions", h->newer);
		text_str(x, "</NoncurrentVersionExpiration>");
	}
	if (h->flags & R_ABORT) {
		text_str(x, "<AbortIncompleteMultipartUpload>");
		text_element_u64(x, "DaysAfterInitiation", h->abort_days);
		text_str(x, "</AbortIncompleteMultipartUpload>");
	}
}

int
lifecycle_to_xml(struct text *x, const void *packed, size_t packed_len)
{
	struct unpacker u = rules_of(packed, packed_len);
	struct rule r;

	text_str(x, XML_DECL "<LifecycleConfiguration xmlns=\"" XML_NS "\">");
	while (next_rule(&u, &r)) {
		text_str(x, "<Rule>");
		text_element(x, "ID", r.id.p, r.id.len);
		put_filter(x, &r);
		text_element_str(x, "Status", r.h.flags & R_ENABLED ? "Enabled" : "Disabled");
		put_actions(x, &r.h);
		text_str(x, "</Rule>");
	}
	text_str(x, "</LifecycleConfiguration>");
	return u.bad ? -EINVAL : 0;
}

/* ---- what is due ---- */

struct wanted {
	const char *object_tags;
	size_t len;
	bool all;
};

static void
on_wanted(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct wanted *w = cookie;

	w->all = w->all && tags_have(w->object_tags, w->len, key, key_len, value, value_len);
}

static bool
has_prefix(const struct rule *r, const char *key, size_t key_len)
{
	return key_len >= r->prefix.len && memcmp(key, r->prefix.p, r->prefix.len) == 0;
}

static bool
applies(const struct rule *r, const char *key, size_t key_len, uint64_t size, const char *tags,
	size_t tags_len)
{
	struct wanted w = { tags, tags_len, true };

	if (!(r->h.flags & R_ENABLED) || !has_prefix(r, key, key_len))
		return false;
	if ((r->h.flags & R_GREATER && size <= r->h.greater) || (r->h.flags & R_LESS && size >= r->h.less))
		return false;
	return tags_each(r->tags.p, r->tags.len, on_wanted, &w) == 0 && w.all;
}

/* The first midnight after that many days. */
static uint64_t
midnight_after(uint64_t from_s, uint64_t days)
{
	return ((from_s + days * DAY) / DAY + 1) * DAY;
}

uint64_t
lifecycle_expiry(const void *packed, size_t packed_len, const char *key, size_t key_len, uint64_t size_bytes,
		 const char *tags, size_t tags_len, uint64_t mtime_s, const char **ret_id, size_t *ret_id_len)
{
	struct unpacker u = rules_of(packed, packed_len);
	uint64_t first = 0;
	struct rule r;

	*ret_id = "";
	*ret_id_len = 0;
	while (next_rule(&u, &r)) {
		uint64_t at;

		if (!(r.h.flags & (R_DAYS | R_DATE)) ||
		    !applies(&r, key, key_len, size_bytes, tags, tags_len))
			continue;
		at = r.h.flags & R_DAYS ? midnight_after(mtime_s, r.h.days) : r.h.date_s;
		if (at == 0 || (first && at >= first))
			continue;
		first = at;
		*ret_id = r.id.p;
		*ret_id_len = r.id.len;
	}
	return u.bad ? 0 : first;
}

bool
lifecycle_due(const void *packed, size_t packed_len, const char *key, size_t key_len, uint64_t size_bytes,
	      const char *tags, size_t tags_len, uint64_t mtime_s, uint64_t now_s)
{
	const char *id;
	size_t id_len;
	uint64_t at = lifecycle_expiry(packed, packed_len, key, key_len, size_bytes, tags, tags_len, mtime_s,
				       &id, &id_len);

	return at && now_s >= at;
}

bool
lifecycle_upload_due(const void *packed, size_t packed_len, const char *key, size_t key_len, uint64_t began_s,
		     uint64_t now_s)
{
	struct unpacker u = rules_of(packed, packed_len);
	bool due = false;
	struct rule r;

	while (next_rule(&u, &r)) {
		if (r.h.flags & R_ABORT && r.h.flags & R_ENABLED && has_prefix(&r, key, key_len) &&
		    now_s >= midnight_after(began_s, r.h.abort_days))
			due = true;
	}
	return due && !u.bad;
}

bool
lifecycle_wants_tags(const void *packed, size_t packed_len)
{
	struct unpacker u = rules_of(packed, packed_len);
	struct rule r;

	while (next_rule(&u, &r)) {
		if (r.h.flags & R_ENABLED && r.tags.len)
			return true;
	}
	return false;
}
