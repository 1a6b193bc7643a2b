/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request target, decoded: once, in place, before anything is made of it.  See struct uri; called by req/.
 *
 * Whatever the daemon does, and whatever a signature is held against (auth/canon.c), follows from the path
 * and the parameters that are found here.  Nobody looks at the bytes that were sent again, and nobody decodes
 * a second time: so two targets with one canonical form are one request.
 */
#include "dialect/dialect_int.h"

#include "base/hex.h"

/* The bytes that mean something, one bit each. */
enum { WRONG = 1, PERCENT = 2, PLUS = 4, QUESTION = 8, AMPERSAND = 16, EQUALS = 32 };
static const uint8_t kinds[256] = {
	[0 ... ' '] = WRONG, [0x7f] = WRONG,   ['#'] = WRONG,     ['%'] = PERCENT,
	['+'] = PLUS,        ['?'] = QUESTION, ['&'] = AMPERSAND, ['='] = EQUALS,
};

const bool uri_unreserved[256] = {
	['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['-'] = true,
	['.'] = true,         ['_'] = true,         ['~'] = true,
};

struct decoder {
	char *text; /* len bytes and a NUL */
	size_t len, at;
	const char *why;
};

/*
 * Decodes from d->at up to the first byte of those kinds, or the end, and puts a NUL after the result where there is
 * room; d->at is then at that byte, and *ret_end tells which it was.  Returns the length, or -1.
 *
 * What has no escape stays where it is.
 */
static int
decode_to(struct decoder *d, unsigned ends, bool plus, char *ret_end)
{
	unsigned stops = ends | WRONG | PERCENT | (plus ? PLUS : 0);
	size_t begin = d->at, to = d->at;

	for (;;) {
		size_t run = d->at;
		unsigned char c;

		while (d->at < d->len && !(kinds[(unsigned char)d->text[d->at]] & stops))
			d->at++;
		if (to != run)
			memmove(d->text + to, d->text + run, d->at - run);
		to += d->at - run;
		if (d->at == d->len)
			break;
		c = (unsigned char)d->text[d->at];
		if (kinds[c] & ends)
			break;
		if (kinds[c] & WRONG) {
			d->why = "The request target has a character that must be encoded.";
			return -1;
		}
		if (c == '%') {
			int high = d->len - d->at > 2 ? hex_digit(d->text[d->at + 1]) : -1;
			int low = high < 0 ? -1 : hex_digit(d->text[d->at + 2]);

			if (low < 0 || (high == 0 && low == 0)) {
				d->why = "The request target has a bad percent sequence or a NUL.";
				return -1;
			}
			c = (unsigned char)(high << 4 | low);
			d->at += 2;
		} else {
			c = ' ';
		}
		d->text[to++] = (char)c;
		d->at++;
	}
	*ret_end = d->at == d->len ? 0 : d->text[d->at];
	if (to < d->len)
		d->text[to] = 0;
	return (int)(to - begin);
}

/* The order of the encoded names, without making them: a '%' is less than every byte that stays as it is. */
static int
compare(struct span a, struct span b)
{
	size_t n = a.len < b.len ? a.len : b.len;

	for (size_t i = 0; i < n; i++) {
		unsigned char x = (unsigned char)a.p[i], y = (unsigned char)b.p[i];

		if (x == y)
			continue;
		if (uri_unreserved[x] != uri_unreserved[y])
			return uri_unreserved[x] ? 1 : -1;
		return x < y ? -1 : 1;
	}
	return (a.len > b.len) - (a.len < b.len);
}

/* Finds where a name stands, or would stand. */
static int
find(const struct uri *uri, struct span name, bool *ret_there)
{
	int lo = 0, hi = uri->param_nr;

	*ret_there = false;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2, c = compare(uri_name(uri, mid), name);

		if (c == 0)
			*ret_there = true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Headers have no case, and neither have their names here when one is there twice. */
static bool
has_header(const struct uri *uri, struct span name)
{
	for (int i = 0; i < uri->param_nr; i++) {
		struct span s = uri_name(uri, i);

		if (s.len == name.len && strncasecmp(s.p, name.p, s.len) == 0)
			return true;
	}
	return false;
}

static enum fault
add(struct uri *uri, struct uri_param p, const char **ret_why)
{
	struct span name = { uri->text + p.name, p.name_len };
	bool there, header;
	int at;

	/* "=v": nobody's. */
	if (name.len == 0)
		return FAULT_NONE;
	at = find(uri, name, &there);
	header = query_key_is_header(name);
	if (there ? header || query_key_known(name) : header && has_header(uri, name))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "A key of the query came more than once.");
	/* A stranger's: the first counts, as on S3, and nobody acts on it. */
	if (there)
		return FAULT_NONE;
	if (uri->param_nr == DIALECT_PARAMS_MAX)
		return refuse(ret_why, FAULT_BAD_REQUEST, "The query has more than 128 parameters.");
	memmove(&uri->param[at + 1], &uri->param[at], (size_t)(uri->param_nr - at) * sizeof p);
	uri->param[at] = p;
	uri->param_nr++;
	return FAULT_NONE;
}

/* Cuts come before decoding: an encoded '&' or '=' is a byte of a name or value. */
static enum fault
decode_query(struct decoder *d, struct uri *uri, const char **ret_why)
{
	enum fault f = FAULT_NONE;

	while (f == FAULT_NONE && d->at < d->len) {
		struct uri_param p = { .name = (uint16_t)d->at };
		int name, value = 0;
		char end;

		name = decode_to(d, AMPERSAND | EQUALS, true, &end);
		p.value = (uint16_t)(p.name + name);
		if (name >= 0 && end == '=') {
			d->at++;
			p.value = (uint16_t)d->at;
			value = decode_to(d, AMPERSAND, true, &end);
		}
		if (name < 0 || value < 0)
			return refuse(ret_why, FAULT_BAD_URI, d->why);
		d->at++;
		p.name_len = (uint16_t)name;
		p.value_len = (uint16_t)value;
		f = add(uri, p, ret_why);
	}
	return f;
}

/* Takes "http://authority" off an absolute form, which RFC 9112 section 3.2.2 wants every server to take.  It
 * says that the authority counts and not Host; somebody on the way may have gone by either. */
static enum fault
skip_authority(const struct dialect_in *in, struct decoder *d, const char **ret_why)
{
	struct span s = { d->text, d->len };
	const struct field *host;
	size_t skip, end;

	if (s.len == 0 || s.p[0] == '/')
		return FAULT_NONE;
	skip = span_begins_nocase(s, "http://") ? 7 : span_begins_nocase(s, "https://") ? 8 : 0;
	if (skip == 0)
		return FAULT_NONE;
	host = dialect_field(in, "host", NULL);
	end = skip;
	while (end < d->len && d->text[end] != '/' && d->text[end] != '?')
		end++;
	if (!host || field_text(host).len != end - skip ||
	    strncasecmp(field_text(host).p, d->text + skip, end - skip) != 0)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The request target names another host than the field Host.");
	d->at = end;
	return FAULT_NONE;
}

static enum fault
decode_all(const struct dialect_in *in, struct decoder *d, struct uri *uri, const char **ret_why)
{
	enum fault f;
	size_t begin;
	char end;
	int len;

	if (d->len > DIALECT_TARGET_MAX)
		return refuse(ret_why, FAULT_BAD_URI, "The request target is longer than 8192 bytes.");
	f = skip_authority(in, d, ret_why);
	if (f != FAULT_NONE)
		return f;
	begin = d->at;
	if (begin > 0 && begin == d->len) {
		uri->path = span_of("/");
		return FAULT_NONE;
	}
	if (begin == d->len || d->text[begin] != '/')
		return refuse(ret_why, FAULT_BAD_URI, "The request target does not begin with a slash.");
	if (in->listen->dialect == DIALECT_SCALITY) {
		uri->path = (struct span){ d->text + begin, d->len - begin };
		return FAULT_NONE;
	}
	len = decode_to(d, QUESTION, false, &end);
	if (len < 0)
		return refuse(ret_why, FAULT_BAD_URI, d->why);
	uri->path = (struct span){ d->text + begin, (size_t)len };
	d->at++;
	/* A preflight brings the query of a request to come, for which somebody else has signed or will: it
	 * says nothing here, however it is made. */
	return dialect_is_preflight(in) ? FAULT_NONE : decode_query(d, uri, ret_why);
}

void
dialect_read_target(const struct dialect_in *in, char *target, size_t len, struct uri *uri)
{
	struct decoder d = { .text = target, .len = len };

	uri->text = target;
	uri->param_nr = 0;
	uri->path = span_of("");
	uri->why = "";
	uri->fault = decode_all(in, &d, uri, &uri->why);
	if (uri->fault == FAULT_NONE)
		return;
	uri->path = span_of("");
	uri->param_nr = 0;
}
