/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header fields as such: finding them, and the check against requests that two servers could read in two ways
 * (protocol.md 4.3).  Called by the other files of dialect/, dialect_field() also by auth/ and req/.
 */
#include "dialect/dialect_int.h"

#include <errno.h>

const struct field *
dialect_field_search(const struct dialect_in *in, const char *name, size_t len, int *ret_nr)
{
	const struct field *first = NULL, *end = in->fields + in->field_nr;
	int nr = 0;

	for (const struct field *f = in->fields; f < end; f++) {
		if (f->name_len != len || !span_is_name(f->name, name, len))
			continue;
		if (!first)
			first = f;
		nr++;
	}
	if (ret_nr)
		*ret_nr = nr;
	return first;
}

struct span
dialect_field_list(const struct dialect_in *in, const char *name, char *buf, size_t cap, int *ret_nr)
{
	int nr;
	const struct field *f = dialect_field(in, name, &nr);
	size_t n = 0;

	if (ret_nr)
		*ret_nr = nr;
	if (nr <= 1)
		return f ? field_text(f) : (struct span){ NULL, 0 };
	for (int i = 0; i < in->field_nr; i++) {
		struct span s = field_text(&in->fields[i]);

		if (!name_is(&in->fields[i], name) || s.len == 0)
			continue;
		if (s.len + 2 > cap - n)
			return (struct span){ NULL, 0 };
		if (n) {
			memcpy(buf + n, ", ", 2);
			n += 2;
		}
		memcpy(buf + n, s.p, s.len);
		n += s.len;
	}
	return (struct span){ buf, n };
}

#define PAYLOAD_HASH "x-amz-content-sha256"

/* A URL whose signature covers no header of that name. */
static bool
is_presigned_without_hash(const struct uri *uri)
{
	for (int i = 0; i < uri->param_nr; i++) {
		struct span list = uri_value(uri, i);

		if (!span_is(uri_name(uri, i), "X-Amz-SignedHeaders"))
			continue;
		while (list.len) {
			if (span_is(span_cut(&list, ';'), PAYLOAD_HASH))
				return false;
		}
		return true;
	}
	return false;
}

const struct field *
dialect_payload_hash(const struct dialect_in *in, int *ret_nr)
{
	const struct field *f = dialect_field(in, PAYLOAD_HASH, ret_nr);

	if (!f || !is_presigned_without_hash(in->uri))
		return f;
	for (int i = 0; i < in->field_nr; i++) {
		if (name_is(&in->fields[i], PAYLOAD_HASH) &&
		    span_begins(field_text(&in->fields[i]), "STREAMING-"))
			return &in->fields[i];
	}
	if (ret_nr)
		*ret_nr = 0;
	return NULL;
}

/* RFC 9110 5.6.2: the characters of a token. */
static const bool is_tchar[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,

	['!'] = true,         ['#'] = true,         ['$'] = true,         ['%'] = true, ['&'] = true,
	['\''] = true,        ['*'] = true,         ['+'] = true,         ['-'] = true, ['.'] = true,
	['^'] = true,         ['_'] = true,         ['`'] = true,         ['|'] = true, ['~'] = true,
};

bool
dialect_is_field_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!is_tchar[(unsigned char)text[i]])
			return false;
	}
	return len > 0;
}

static bool
bytes_are_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* Every value of every request is read here: eight bytes at a time, and one at a time where one is a tab. */
bool
dialect_is_text(const char *text, size_t len)
{
	for (; len >= 8; text += 8, len -= 8) {
		if (word_has_control(word_at(text)) && !bytes_are_text(text, 8))
			return false;
	}
	return bytes_are_text(text, len);
}

/* Folded lines, stray CR or NUL: what a proxy in front may have read as something else. */
static enum fault
check_chars(const struct field *f, const char **ret_why)
{
	if (f->name_len == 0)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A header field has no name.");
	if (!dialect_is_field_name(f->name, f->name_len))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The name of a header field has a character that names cannot have.");
	return dialect_is_text(f->value, f->value_len)
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_BAD_REQUEST,
				"The value of a header field has a control character.");
}

/* Where the body ends: exactly one statement about it, or none. */
static enum fault
check_framing(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *coding, *cl;
	enum fault f;

	f = field_one(in, "transfer-encoding", "Transfer-Encoding came more than once.", &coding, ret_why);
	if (f == FAULT_NONE)
		f = field_one(in, "content-length", "Content-Length came more than once.", &cl, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (coding && cl)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Content-Length and Transfer-Encoding came together.");
	/* RFC 9112 6.1: such a message has faulty framing, as who speaks HTTP/1.0 cannot mean it. */
	if (coding && in->http_1_0)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Transfer-Encoding came in a request of HTTP/1.0, which has none.");
	if (coding) {
		if (!span_is_nocase(field_text(coding), "chunked"))
			return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				      "Transfer-Encoding other than chunked is not implemented.");
		t->chunked = true;
	}
	if (cl) {
		if (span_decimal(field_text(cl), &t->content_length) < 0)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "Content-Length is not a decimal number of 64 bits.");
		t->have_content_length = true;
	}
	return FAULT_NONE;
}

enum fault
fields_check_head(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *host, *expect;
	enum fault f = FAULT_NONE;

	for (int i = 0; i < in->field_nr && !in->is_clean && f == FAULT_NONE; i++)
		f = check_chars(&in->fields[i], ret_why);
	if (f == FAULT_NONE)
		f = field_one(in, "host", "Host came more than once.", &host, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (!host)
		return refuse(ret_why, FAULT_BAD_REQUEST, "Host is missing.");
	f = check_framing(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	expect = dialect_field(in, "expect", NULL);
	t->expect_continue = expect && span_is_nocase(field_text(expect), "100-continue");
	return FAULT_NONE;
}
