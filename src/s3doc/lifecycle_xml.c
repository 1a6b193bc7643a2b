/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle rules as a client writes them, to the packed form.  See lifecycle.h; called by req/. */
#include "s3doc/lifecycle_int.h"

#include "base/check.h"
#include "dialect/tags.h"
#include "s3doc/xml_int.h"

#include <stdio.h>

#define ID_MAX 255

struct building {
	struct text *out, tags;
	int rules, tag_nr, predicates, made; /* made: the number in the last id of ours */
	struct lifecycle_head h;
	unsigned seen; /* elements of the rule so far, a bit for each path */
	bool have_filter, have_prefix, have_key, have_value;
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

/* Elements that a rule may have more than once, and those whose repetition has a message of its own. */
#define REPEATS                                                                                              \
	(1u << P_RULE | 1u << P_OLD_PREFIX | 1u << P_FILTER | 1u << P_KEY | 1u << P_VALUE |                  \
	 1u << P_AND_TAG | 1u << P_AND_KEY | 1u << P_AND_VALUE)

static bool
has_seen(const struct building *b, int path)
{
	return b->seen & 1u << path;
}

static enum fault
malformed(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_MALFORMED_XML, why);
}

static enum fault
on_begin(void *cookie, int path, const char **ret_why)
{
	struct building *b = cookie;

	if (path >= P_TRANSITION)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "Transitions to other storage classes are not implemented.");
	if (path != P_RULE && has_seen(b, path) && !(REPEATS & 1u << path))
		return malformed(ret_why, "A lifecycle rule has an element twice that it may have once.");
	b->seen |= 1u << path;
	switch (path) {
	case P_RULE:
		if (b->rules++ == LIFECYCLE_RULES_MAX)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "There are more than 1000 lifecycle rules.");
		text_reset(&b->tags);
		memset(&b->h, 0, sizeof b->h);
		b->tag_nr = b->predicates = 0;
		b->seen = 0;
		b->have_filter = b->have_prefix = false;
		b->id_len = b->prefix_len = 0;
		return FAULT_NONE;
	case P_FILTER:
	case P_OLD_PREFIX:
		if (b->have_filter)
			return malformed(ret_why, "A rule has more than one Filter or Prefix.");
		b->have_filter = true;
		b->h.flags |= path == P_OLD_PREFIX ? R_OLD_FORM : 0;
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
	check(flag && least <= most);
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
	if (iso_date_parse(text.p, text.len, &b->h.date_s) < 0)
		return malformed(ret_why, "Date is not a date.");
	if (b->h.date_s % LIFECYCLE_DAY)
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

	if (!on && !span_is(text, "Disabled"))
		return malformed(ret_why, "Status is neither Enabled nor Disabled.");
	b->h.flags |= on ? R_ENABLED : 0;
	return FAULT_NONE;
}

static bool
id_taken(const struct building *b)
{
	struct unpacker u = lifecycle_rules(b->out->p + b->ids_from, b->out->len - b->ids_from);
	struct lifecycle_rule r;

	while (lifecycle_next(&u, &r)) {
		if (r.id.len == b->id_len && memcmp(r.id.p, b->id, b->id_len) == 0)
			return true;
	}
	return false;
}

/* A name where the client gave none: answers name the rule. */
static void
make_id(struct building *b)
{
	check(b->rules > 0 && b->rules <= LIFECYCLE_RULES_MAX);
	if (b->made < b->rules)
		b->made = b->rules - 1;
	do
		b->id_len = (uint16_t)snprintf(b->id, sizeof b->id, "rule-%d", ++b->made);
	while (id_taken(b));
}

static const char *
what_is_wrong(const struct building *b)
{
	unsigned actions = R_DAYS | R_DATE | R_MARKER | R_ABORT | R_NONCURRENT | R_NEWER;
	unsigned expiry = b->h.flags & (R_DAYS | R_DATE | R_MARKER);

	if (!has_seen(b, P_STATUS))
		return "A lifecycle rule lacks its Status.";
	if (!b->have_filter)
		return "A lifecycle rule has neither Filter nor Prefix.";
	if (!(b->h.flags & actions))
		return "A lifecycle rule does nothing.";
	if (expiry & (expiry - 1))
		return "An Expiration has more than one of Days, Date and ExpiredObjectDeleteMarker.";
	if (!has_seen(b, P_AND) && b->predicates > 1)
		return "A Filter has more than one condition without And.";
	if (has_seen(b, P_AND) && b->predicates < 2)
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
	struct lifecycle_rule r;
	int nr;

	if (wrong)
		return malformed(ret_why, wrong);
	if (b->h.flags & R_ABORT && (b->tag_nr || b->h.flags & (R_GREATER | R_LESS)))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "AbortIncompleteMultipartUpload goes with a prefix only.");
	if (b->id_len && id_taken(b))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "Two lifecycle rules have the same ID.");
	if (b->id_len == 0)
		make_id(b);
	if (b->tag_nr)
		f = tags_from_header(b->tags.p, b->tags.len, &tags, &nr, ret_why);
	r = (struct lifecycle_rule){ .h = b->h,
				     .id = { b->id, b->id_len },
				     .prefix = { b->prefix, b->prefix_len },
				     .tags = { tags.p, tags.len } };
	lifecycle_pack(b->out, &r);
	text_free(&tags);
	if (f == FAULT_NONE && !text_ok(b->out))
		return refuse(ret_why, FAULT_BUSY, "There is no memory for the lifecycle rules.");
	/* At once: each rule is compared with those before it. */
	if (f == FAULT_NONE && b->out->len - b->ids_from > LIFECYCLE_PACKED_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "The lifecycle rules are larger than 24 KiB.");
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
		if (text.len > sizeof b->id || has_control(text.p, text.len))
			return refuse(
				ret_why, FAULT_BAD_ARGUMENT,
				"The ID of a rule is longer than 255 bytes, or has control characters.");
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

	pack_number(packed, LIFECYCLE_FORM, 1);
	f = text_ok(packed) ? xml_read(&doc, body, len, ret_why)
			    : refuse(ret_why, FAULT_BUSY, "There is no memory for the lifecycle rules.");
	text_free(&b.tags);
	if (f == FAULT_NONE && b.rules == 0)
		return malformed(ret_why, "There are no lifecycle rules.");
	check(f != FAULT_NONE || packed->len - b.ids_from <= LIFECYCLE_PACKED_MAX);
	return f;
}
