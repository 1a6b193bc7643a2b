/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that live with an object: content headers and x-amz-meta-*, packed for the store and given back
 * on GET and HEAD. See dialect.h; attrs_parse() is called by parse.c on a PUT.
 *
 * A pair is two little-endian 16-bit lengths, the name in lower case, the value.  What is read back is
 * checked as if a client had sent it: these bytes become response headers.
 */
#include "dialect/dialect_int.h"
#include "dialect/tags.h"

#include <errno.h>

#define META_PREFIX "x-amz-meta-"
#define META_PREFIX_LEN (sizeof META_PREFIX - 1)
#define PAIR_HEAD 4
#define CHECKSUMS_ROOM 512 /* kept free for what is added after parsing */

static const struct {
	const char *name, *repeated;
	bool list; /* its lines are one list */
} content_headers[] = {
	{ "content-type", "Content-Type came more than once.", false },
	{ "content-encoding", "Content-Encoding came more than once.", true },
	{ "content-language", "Content-Language came more than once.", true },
	{ "content-disposition", "Content-Disposition came more than once.", false },
	{ "cache-control", "Cache-Control came more than once.", true },
	{ "expires", "Expires came more than once.", false },
};

static unsigned char
lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

int
dialect_attrs_add(unsigned char *attrs, uint32_t *len, uint32_t cap, const char *name, size_t name_len,
		  const char *value, size_t value_len)
{
	unsigned char *p = attrs + *len;

	if (name_len > UINT16_MAX || value_len > UINT16_MAX || *len > cap ||
	    PAIR_HEAD + name_len + value_len > cap - *len)
		return -ENOSPC;
	p[0] = (unsigned char)name_len;
	p[1] = (unsigned char)(name_len >> 8);
	p[2] = (unsigned char)value_len;
	p[3] = (unsigned char)(value_len >> 8);
	for (size_t i = 0; i < name_len; i++)
		p[PAIR_HEAD + i] = lower(name[i]);
	if (value_len)
		memcpy(p + PAIR_HEAD + name_len, value, value_len);
	*len += (uint32_t)(PAIR_HEAD + name_len + value_len);
	return 0;
}

static bool
is_clean(const unsigned char *p, size_t len, bool name)
{
	for (size_t i = 0; i < len; i++) {
		if ((p[i] < 0x20 && (name || p[i] != '\t')) || p[i] == 0x7f)
			return false;
		if (name && (p[i] == ' ' || p[i] == ':' || p[i] >= 0x80 || lower((char)p[i]) != p[i]))
			return false;
	}
	return true;
}

int
dialect_attrs_each(const void *attrs, size_t len,
		   void (*fn)(void *cookie, const char *name, size_t name_len, const char *value,
			      size_t value_len),
		   void *cookie)
{
	const unsigned char *p = attrs, *end = len ? p + len : p;

	while (p < end) {
		size_t name_len, value_len;

		if (end - p < PAIR_HEAD)
			return -EINVAL;
		name_len = p[0] | (size_t)p[1] << 8;
		value_len = p[2] | (size_t)p[3] << 8;
		p += PAIR_HEAD;
		if (name_len == 0 || name_len + value_len > (size_t)(end - p) ||
		    !is_clean(p, name_len, true) || !is_clean(p + name_len, value_len, false))
			return -EINVAL;
		fn(cookie, (const char *)p, name_len, (const char *)p + name_len, value_len);
		p += name_len + value_len;
	}
	return 0;
}

enum fault
attrs_put(struct target *t, const char *name, size_t name_len, struct span value, const char **ret_why)
{
	enum fault f = target_get(t, TARGET_ATTRS, ret_why);

	if (f != FAULT_NONE)
		return f;
	if (dialect_attrs_add(t->attrs, &t->attrs_len, DIALECT_ATTRS_MAX - CHECKSUMS_ROOM, name, name_len,
			      value.p, value.len) < 0)
		return refuse(ret_why, FAULT_META_TOO_LARGE,
			      "The content headers are too large to be stored.");
	return FAULT_NONE;
}

static bool
is_meta(const struct target *t, const struct field *f)
{
	return name_begins(f, META_PREFIX) && !wire_carries(t->wire, (struct span){ f->name, f->name_len });
}

static bool
same_name(const struct field *a, const struct field *b)
{
	return a->name_len == b->name_len && strncasecmp(a->name, b->name, a->name_len) == 0;
}

/* All values of that name, joined with commas as S3 does; *sum grows by what counts.
 * -E2BIG past the limit. */
static int
join_meta(const struct dialect_in *in, int at, char *out, size_t *sum)
{
	const struct field *f = &in->fields[at];
	size_t n = 0, name_len = f->name_len - META_PREFIX_LEN;

	if (name_len > DIALECT_META_MAX - *sum)
		return -E2BIG;
	*sum += name_len;
	for (int i = at; i < in->field_nr; i++) {
		struct span s;
		size_t comma = i > at;

		if (!same_name(f, &in->fields[i]))
			continue;
		s = field_text(&in->fields[i]);
		if (comma + s.len > DIALECT_META_MAX - *sum)
			return -E2BIG;
		if (comma)
			out[n++] = ',';
		memcpy(out + n, s.p, s.len);
		n += s.len;
		*sum += comma + s.len;
	}
	return (int)n;
}

static enum fault
parse_meta(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	char value[DIALECT_META_MAX];
	size_t sum = 0;

	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];
		bool seen = false;
		enum fault r;
		int n;

		if (!is_meta(t, f))
			continue;
		if (f->name_len == META_PREFIX_LEN)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "A metadata header has no name after x-amz-meta-.");
		for (int k = 0; k < i && !seen; k++)
			seen = same_name(f, &in->fields[k]);
		if (seen)
			continue;
		n = join_meta(in, i, value, &sum);
		if (n < 0)
			return refuse(ret_why, FAULT_META_TOO_LARGE, "The user metadata exceeds 2048 bytes.");
		r = attrs_put(t, f->name, f->name_len, (struct span){ value, (size_t)n }, ret_why);
		if (r != FAULT_NONE)
			return r;
	}
	return FAULT_NONE;
}

/* As it was sent, without aws-chunked, which is how the body travelled and not what the object is. */
static enum fault
put_encoding(struct target *t, struct span s, const char **ret_why)
{
	char value[1024];
	size_t n = 0;
	bool any = false;

	if (s.len > sizeof value)
		return refuse(ret_why, FAULT_META_TOO_LARGE, "Content-Encoding is longer than 1024 bytes.");
	while (s.len) {
		struct span one = span_cut(&s, ',');

		if (span_is_nocase(span_trim(one), "aws-chunked"))
			continue;
		any |= span_trim(one).len > 0;
		if (n)
			value[n++] = ',';
		memcpy(value + n, one.p, one.len);
		n += one.len;
	}
	return any ? attrs_put(t, "content-encoding", strlen("content-encoding"),
			       span_trim((struct span){ value, n }), ret_why)
		   : FAULT_NONE;
}

/* Labels: all objects are kept alike.  Those whose objects must be restored before they can be read would be
 * a lie. */
enum fault
attrs_parse_class(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	static const char *const labels[] = { "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA",
					      "INTELLIGENT_TIERING", "GLACIER_IR" };
	static const char *const others[] = { "GLACIER",         "DEEP_ARCHIVE", "OUTPOSTS", "SNOW",
					      "EXPRESS_ONEZONE", "FSX_OPENZFS",  "FSX_ONTAP" };
	static const char name[] = "x-amz-storage-class";
	const struct field *f;
	enum fault r = field_one(in, name, "x-amz-storage-class came more than once.", &f, ret_why);

	if (r != FAULT_NONE || !f || field_text(f).len == 0 || span_is(field_text(f), "STANDARD"))
		return r;
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
		if (span_is(field_text(f), labels[i]))
			return attrs_put(t, name, strlen(name), field_text(f), ret_why);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		if (span_is(field_text(f), others[i]))
			return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				      "x-amz-storage-class: this class is not implemented.");
	}
	return refuse(ret_why, FAULT_INVALID_STORAGE_CLASS, "x-amz-storage-class is not known.");
}

enum fault
attrs_parse_tags(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	static const char name[] = "x-amz-tagging";
	const struct field *f;
	struct text x = { 0 };
	enum fault r = field_one(in, name, "x-amz-tagging came more than once.", &f, ret_why);

	if (r != FAULT_NONE || !f || field_text(f).len == 0)
		return r;
	r = tags_from_header(field_text(f).p, field_text(f).len, &x, &t->tag_nr, ret_why);
	if (r == FAULT_NONE && t->tag_nr)
		r = attrs_put(t, name, strlen(name), (struct span){ x.p, x.len }, ret_why);
	text_free(&x);
	return r;
}

bool
dialect_attr_is_header(const char *name, size_t name_len)
{
	return !span_is((struct span){ name, name_len }, "x-amz-tagging");
}

struct search {
	const char *name, *value;
	size_t value_len;
};

static void
on_pair(void *cookie, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct search *s = cookie;

	if (!s->value && span_is((struct span){ name, name_len }, s->name)) {
		s->value = value;
		s->value_len = value_len;
	}
}

const char *
dialect_attr(const void *attrs, size_t len, const char *name, size_t *ret_len)
{
	struct search s = { .name = name };

	*ret_len = 0;
	if (dialect_attrs_each(attrs, len, on_pair, &s) < 0)
		return NULL;
	*ret_len = s.value_len;
	return s.value;
}

static enum fault
parse_content(const struct dialect_in *in, struct target *t, size_t row, const char **ret_why)
{
	const char *name = content_headers[row].name;
	char joined[DIALECT_ATTRS_MAX];
	int nr;
	struct span s = dialect_field_list(in, name, joined, sizeof joined, &nr);

	if (nr == 0)
		return FAULT_NONE;
	if (nr > 1 && (!content_headers[row].list || in->listen->dialect != DIALECT_S3))
		return refuse(ret_why, FAULT_BAD_REQUEST, content_headers[row].repeated);
	if (!s.p)
		return refuse(ret_why, FAULT_META_TOO_LARGE,
			      "The content headers are too large to be stored.");
	if (strcmp(name, "content-encoding") == 0)
		return put_encoding(t, s, ret_why);
	return s.len ? attrs_put(t, name, strlen(name), s, ret_why) : FAULT_NONE;
}

enum fault
attrs_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	for (size_t i = 0; i < sizeof content_headers / sizeof *content_headers; i++) {
		enum fault r = parse_content(in, t, i, ret_why);

		if (r != FAULT_NONE)
			return r;
	}
	return in->listen->dialect == DIALECT_S3 ? parse_meta(in, t, ret_why) : FAULT_NONE;
}
