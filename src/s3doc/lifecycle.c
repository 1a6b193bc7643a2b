/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle rules, see lifecycle.h: their packed form, how they are written as XML, what they say of an
 * object.
 *
 * Packed: a byte for the form, then rules one after the other, each a fixed head (struct lifecycle_head) and
 * the strings id, prefix, tags.
 */
#include "s3doc/lifecycle_int.h"

#include "base/check.h"
#include "s3doc/tags_xml.h"
#include "s3doc/xml_int.h"

#include <errno.h>

struct unpacker
lifecycle_rules(const void *packed, size_t len)
{
	struct unpacker u = { packed, (const unsigned char *)packed + len, len == 0 };

	if (unpack_number(&u, 1) != LIFECYCLE_FORM)
		u.bad = true;
	return u;
}

bool
lifecycle_next(struct unpacker *u, struct lifecycle_rule *r)
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

void
lifecycle_pack(struct text *x, const struct lifecycle_rule *r)
{
	/* A rule has one of the three, and a date is a midnight (lifecycle_xml.c). */
	check(!(r->h.flags & R_DATE) || r->h.date_s % LIFECYCLE_DAY == 0);
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

/* ---- to XML ---- */

static void
put_filter(struct text *x, const struct lifecycle_rule *r)
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
	tags_to_xml_each(x, r->tags.p, r->tags.len);
	if (greater)
		text_element_u64(x, "ObjectSizeGreaterThan", r->h.greater);
	if (less)
		text_element_u64(x, "ObjectSizeLessThan", r->h.less);
	text_str(x, and? "</And></Filter>" : "</Filter>");
}

static void
put_actions(struct text *x, const struct lifecycle_head *h)
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
	struct unpacker u = lifecycle_rules(packed, packed_len);
	struct lifecycle_rule r;

	text_str(x, XML_DECL "<LifecycleConfiguration xmlns=\"" XML_NS "\">");
	while (lifecycle_next(&u, &r)) {
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

static bool
has_prefix(const struct lifecycle_rule *r, const char *key, size_t key_len)
{
	return key_len >= r->prefix.len && memcmp(key, r->prefix.p, r->prefix.len) == 0;
}

static bool
applies(const struct lifecycle_rule *r, const char *key, size_t key_len, uint64_t size,
	const struct tags_cut *tags)
{
	if (!(r->h.flags & R_ENABLED) || !has_prefix(r, key, key_len))
		return false;
	if ((r->h.flags & R_GREATER && size <= r->h.greater) || (r->h.flags & R_LESS && size >= r->h.less))
		return false;
	return tags_have_all(tags, r->tags.p, r->tags.len);
}

/* The first midnight after that many days. */
static uint64_t
midnight_after(uint64_t from_s, uint64_t days)
{
	return ((from_s + days * LIFECYCLE_DAY) / LIFECYCLE_DAY + 1) * LIFECYCLE_DAY;
}

uint64_t
lifecycle_expiry(const void *packed, size_t packed_len, const char *key, size_t key_len, uint64_t size_bytes,
		 const char *tags, size_t tags_len, uint64_t mtime_s, const char **ret_id, size_t *ret_id_len)
{
	struct unpacker u = lifecycle_rules(packed, packed_len);
	uint64_t first = 0;
	struct lifecycle_rule r;
	struct tags_cut cut;

	tags_cut(tags, tags_len, &cut);
	*ret_id = "";
	*ret_id_len = 0;
	while (lifecycle_next(&u, &r)) {
		uint64_t at;

		if (!(r.h.flags & (R_DAYS | R_DATE)) || !applies(&r, key, key_len, size_bytes, &cut))
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
	struct unpacker u = lifecycle_rules(packed, packed_len);
	bool due = false;
	struct lifecycle_rule r;

	while (lifecycle_next(&u, &r)) {
		if (r.h.flags & R_ABORT && r.h.flags & R_ENABLED && has_prefix(&r, key, key_len) &&
		    now_s >= midnight_after(began_s, r.h.abort_days))
			due = true;
	}
	return due && !u.bad;
}
