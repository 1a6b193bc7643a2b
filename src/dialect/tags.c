/* SPDX-License-Identifier: Apache-2.0 */
/* Tags as canonical text, see tags.h. */
#include "dialect/tags.h"

#include "dialect/dialect_int.h"

#include <errno.h>

#define WHY_MANY "There are more tags than an object (10) or a bucket (50) can have."

static void
put_plain(struct text *out, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		if (c < 0x20 || c == 0x7f || strchr("%&=+", c))
			text_fmt(out, "%%%02X", c);
		else
			text_put(out, p + i, 1);
	}
}

struct finder {
	struct span key, value;
	bool found, any_value;
};

static void
on_tag_find(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct finder *f = cookie;

	if (key_len == f->key.len && memcmp(key, f->key.p, key_len) == 0 &&
	    (f->any_value || (value_len == f->value.len && memcmp(value, f->value.p, value_len) == 0)))
		f->found = true;
}

enum fault
tags_add(struct tags_builder *b, const char **ret_why)
{
	struct finder find = { .key = { b->key, b->key_len }, .any_value = true };

	if (b->key_len == 0 || utf8_count(b->key, b->key_len) > TAG_KEY_CHARS)
		return refuse(ret_why, FAULT_INVALID_TAG, "The key of a tag has not 1 to 128 characters.");
	if (utf8_count(b->value, b->value_len) > TAG_VALUE_CHARS)
		return refuse(ret_why, FAULT_INVALID_TAG, "The value of a tag has more than 256 characters.");
	if (!is_utf8(b->key, b->key_len) || !is_utf8(b->value, b->value_len))
		return refuse(ret_why, FAULT_INVALID_TAG, "A tag is not UTF-8.");
	if (b->key_len >= 4 && strncasecmp(b->key, "aws:", 4) == 0)
		return refuse(ret_why, FAULT_INVALID_TAG, "The key of a tag begins with aws:.");
	if (b->nr == b->max)
		return refuse(ret_why, FAULT_INVALID_TAG, WHY_MANY);
	if (text_ok(b->out) && b->out->len > b->from)
		tags_each(b->out->p + b->from, b->out->len - b->from, on_tag_find, &find);
	if (find.found)
		return refuse(ret_why, FAULT_INVALID_TAG, "Two tags have the same key.");
	if (b->nr++)
		text_put(b->out, "&", 1);
	put_plain(b->out, b->key, b->key_len);
	text_put(b->out, "=", 1);
	put_plain(b->out, b->value, b->value_len);
	return text_ok(b->out) ? FAULT_NONE : refuse(ret_why, FAULT_BUSY, "There is no memory for the tags.");
}

/* Cuts the next "key[=value]" off *form; false at the end. */
static bool
pair_next(struct span *form, struct span *ret_key, struct span *ret_value)
{
	while (form->len) {
		struct span pair = span_cut(form, '&');

		if (pair.len == 0)
			continue;
		*ret_key = span_cut(&pair, '=');
		*ret_value = pair;
		return true;
	}
	return false;
}

enum fault
tags_from_header(const char *value, size_t len, struct text *out, int *ret_nr, const char **ret_why)
{
	struct tags_builder b = { .out = out, .from = out->len, .max = TAGS_OBJECT_MAX };
	struct span rest = { value, len }, key, val;

	*ret_nr = 0;
	while (pair_next(&rest, &key, &val)) {
		int k = span_decode(key, DECODE_STRICT | DECODE_PLUS, b.key, sizeof b.key);
		int v = span_decode(val, DECODE_STRICT | DECODE_PLUS, b.value, sizeof b.value);
		enum fault f;

		if (k == -E2BIG || v == -E2BIG)
			return refuse(ret_why, FAULT_INVALID_TAG, "A tag is too long.");
		if (k < 0 || v < 0)
			return refuse(ret_why, FAULT_BAD_ARGUMENT,
				      "The tags have a bad percent sequence or a NUL.");
		b.key_len = (size_t)k;
		b.value_len = (size_t)v;
		f = tags_add(&b, ret_why);
		if (f != FAULT_NONE)
			return f;
	}
	if (out->len - b.from > DIALECT_TAGS_MAX)
		return refuse(ret_why, FAULT_INVALID_TAG, "The tags are too large.");
	*ret_nr = b.nr;
	return FAULT_NONE;
}

int
tags_each(const char *tags, size_t len,
	  void (*fn)(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len),
	  void *cookie)
{
	struct span rest = { tags, len }, key, val;
	char k[TAG_KEY_BYTES], v[TAG_VALUE_BYTES];

	while (pair_next(&rest, &key, &val)) {
		int kn = span_decode(key, DECODE_STRICT, k, sizeof k);
		int vn = span_decode(val, DECODE_STRICT, v, sizeof v);

		if (kn <= 0 || vn < 0)
			return -EINVAL;
		fn(cookie, k, (size_t)kn, v, (size_t)vn);
	}
	return 0;
}

static void
on_tag_count(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len)
{
	++*(int *)cookie;
}

int
tags_count(const char *tags, size_t len)
{
	int nr = 0;

	tags_each(tags, len, on_tag_count, &nr);
	return nr;
}

void
tags_cut(const char *tags, size_t len, struct tags_cut *ret_cut)
{
	struct span rest = { tags, len };

	ret_cut->nr = 0;
	while (rest.len && ret_cut->nr < TAGS_BUCKET_MAX)
		ret_cut->tag[ret_cut->nr++] = span_cut(&rest, '&');
}

static bool
has_tag(const struct tags_cut *have, struct span tag)
{
	for (int i = 0; i < have->nr; i++) {
		if (have->tag[i].len == tag.len && memcmp(have->tag[i].p, tag.p, tag.len) == 0)
			return true;
	}
	return false;
}

bool
tags_have_all(const struct tags_cut *have, const char *want, size_t want_len)
{
	struct span rest = { want, want_len };

	while (rest.len) {
		struct span tag = span_cut(&rest, '&');

		if (!memchr(tag.p, '=', tag.len) || !has_tag(have, tag))
			return false;
	}
	return true;
}
