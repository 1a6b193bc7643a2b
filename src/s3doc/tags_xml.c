/* SPDX-License-Identifier: Apache-2.0 */
/* The XML of tags, see tags_xml.h. */
#include "s3doc/tags_xml.h"

#include "base/check.h"
#include "s3doc/xml_int.h"

#include <string.h>

static const char *const tag_paths[] = { [TAG_SET] = "TagSet",
					 [TAG] = "TagSet/Tag",
					 [TAG_KEY] = "TagSet/Tag/Key",
					 [TAG_VALUE] = "TagSet/Tag/Value",
					 NULL };

static enum fault
take(struct span text, char *out, size_t cap, size_t *ret_len, bool *have, const char **ret_why)
{
	if (*have)
		return refuse(ret_why, FAULT_MALFORMED_XML, "A Tag has two keys or two values.");
	if (text.len > cap)
		return refuse(ret_why, FAULT_INVALID_TAG, "A tag is too long.");
	memcpy(out, text.p, text.len);
	*ret_len = text.len;
	*have = true;
	return FAULT_NONE;
}

enum fault
tags_read_end(struct tags_reader *b, enum tag_element e, struct span text, const char **ret_why)
{
	check(b->tags.out && b->tags.max > 0);
	switch (e) {
	case TAG_KEY:
		return take(text, b->tags.key, sizeof b->tags.key, &b->tags.key_len, &b->have_key, ret_why);
	case TAG_VALUE:
		return take(text, b->tags.value, sizeof b->tags.value, &b->tags.value_len, &b->have_value,
			    ret_why);
	case TAG:
		if (!b->have_key || !b->have_value)
			return refuse(ret_why, FAULT_MALFORMED_XML, "A Tag lacks its Key or its Value.");
		b->have_key = b->have_value = false;
		return tags_add(&b->tags, ret_why);
	case TAG_SET:
		if (b->have_set)
			return refuse(ret_why, FAULT_MALFORMED_XML, "There are two sets of tags.");
		b->have_set = true;
		return FAULT_NONE;
	default:
		return FAULT_NONE;
	}
}

static enum fault
on_tag_end(void *cookie, int path, struct span text, const char **ret_why)
{
	return tags_read_end(cookie, (enum tag_element)path, text, ret_why);
}

enum fault
tags_from_xml(const char *body, size_t len, int max, struct text *out, int *ret_nr, const char **ret_why)
{
	struct tags_reader b = { .tags = { .out = out, .from = out->len, .max = max } };
	struct xml_doc doc = { .root = "Tagging", .paths = tag_paths, .end = on_tag_end, .cookie = &b };
	enum fault f = xml_read(&doc, body, len, ret_why);

	check(b.tags.nr <= max && out->len >= b.tags.from);
	*ret_nr = b.tags.nr;
	/* Without a set the intention is unknown; an empty set removes all tags. */
	if (f == FAULT_NONE && !b.have_set)
		return refuse(ret_why, FAULT_MALFORMED_XML, "There is no TagSet.");
	if (f == FAULT_NONE && max == TAGS_OBJECT_MAX && out->len - b.tags.from > DIALECT_TAGS_MAX)
		return refuse(ret_why, FAULT_INVALID_TAG, "The tags are too large.");
	return f;
}

enum fault
bucket_tags_from_xml(const char *body, size_t len, struct text *out, const char **ret_why)
{
	int nr;

	return tags_from_xml(body, len, TAGS_BUCKET_MAX, out, &nr, ret_why);
}

/* ---- writing, by key: clients compare what comes back with what they sent ---- */

struct next_tag {
	struct span last; /* the key written before; p NULL: none */
	bool found;
	size_t key_len, value_len;
	char key[TAG_KEY_BYTES], value[TAG_VALUE_BYTES];
};

static int
compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

/* Keeps the smallest of those after the last. */
static void
on_tag_next(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct next_tag *n = cookie;

	if ((n->last.p && compare(key, key_len, n->last.p, n->last.len) <= 0) ||
	    (n->found && compare(key, key_len, n->key, n->key_len) >= 0))
		return;
	check(key_len <= sizeof n->key && value_len <= sizeof n->value);
	n->found = true;
	memcpy(n->key, key, key_len);
	n->key_len = key_len;
	memcpy(n->value, value, value_len);
	n->value_len = value_len;
}

static void
on_tag_write(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct text *x = cookie;

	text_str(x, "<Tag>");
	text_element(x, "Key", key, key_len);
	text_element(x, "Value", value, value_len);
	text_str(x, "</Tag>");
}

void
tags_to_xml_each(struct text *x, const char *tags, size_t len)
{
	tags_each(tags, len, on_tag_write, x);
}

void
tags_to_xml(struct text *x, const char *tags, size_t len)
{
	char last[TAG_KEY_BYTES];
	struct next_tag n = { .found = false };

	text_str(x, XML_DECL "<Tagging xmlns=\"" XML_NS "\"><TagSet>");
	while (tags_each(tags, len, on_tag_next, &n), n.found) {
		n.found = false;
		on_tag_write(x, n.key, n.key_len, n.value, n.value_len);
		memcpy(last, n.key, n.key_len);
		n.last = (struct span){ last, n.key_len };
	}
	text_str(x, "</TagSet></Tagging>");
}

int
bucket_tags_to_xml(struct text *x, const void *tags, size_t len)
{
	tags_to_xml(x, tags, len);
	return 0;
}
