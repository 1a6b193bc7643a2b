/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognising descriptors of families that are not served: they are declined, never called malformed, so that
 * their clients go on over HTTP (protocol.md section 8, T1-T4; item 15).  Shapes only; no field is
 * decoded.  Called by token.c.
 */
#include "token/token_int.h"

#include "base/base64.h"
#include "base/hex.h"

#include <string.h>

static bool
all_hex(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (hex_digit(p[i]) < 0)
			return false;
	}
	return true;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Third colon field "ofi" and digits, nothing else in it (protocol.md section 8). */
static bool
is_ofi(struct span s)
{
	const char *end = s.p + s.len, *p = s.p;

	for (int field = 0; field < 2; field++) {
		p = memchr(p, ':', (size_t)(end - p));
		if (!p)
			return false;
		p++;
	}
	if (end - p < 4 || memcmp(p, "ofi", 3) != 0 || !is_digit(p[3]))
		return false;
	for (p += 3; p < end && is_digit(*p); p++)
		;
	return p == end || *p == ':';
}

/* From min to max digits at *p, then the character `sep`; moves *p beyond it. */
static bool
skip_number(const char **p, const char *end, int max, char sep)
{
	int n = 0;

	for (; *p < end && n < max && is_digit(**p); n++)
		(*p)++;
	if (n == 0 || *p == end || **p != sep)
		return false;
	(*p)++;
	return true;
}

/* IP ':' PORT ':' 0xADDR(16) ':' 0xSIZE(8) ':' 0xRKEY(8)  (protocol.md 2.6). */
static bool
is_scal_rc(struct span s)
{
	static const uint8_t width[] = { 16, 8, 8 };
	const char *p = s.p, *end = s.p + s.len;

	if (!skip_number(&p, end, 3, '.') || !skip_number(&p, end, 3, '.') || !skip_number(&p, end, 3, '.') ||
	    !skip_number(&p, end, 3, ':') || !skip_number(&p, end, 5, ':'))
		return false;
	for (int i = 0; i < 3; i++) {
		size_t n = 2u + width[i];

		if ((size_t)(end - p) < n || p[0] != '0' || (p[1] != 'x' && p[1] != 'X') ||
		    !all_hex(p + 2, width[i]))
			return false;
		p += n;
		if (i < 2 && (p == end || *p++ != ':'))
			return false;
	}
	return p == end;
}

/* An object of JSON, by its first and last character: {"type":"seaweed",...}. */
static bool
is_json(struct span s)
{
	struct span in;

	if (s.len < 2 || s.p[0] != '{' || s.p[s.len - 1] != '}')
		return false;
	in = span_trim((struct span){ s.p + 1, s.len - 2 });
	return in.len == 0 || in.p[0] == '"';
}

static bool
is_plain_family(struct span s, bool scal, enum token_kind *ret_kind)
{
	if (s.len >= 3 && memcmp(s.p, "rc:", 3) == 0)
		*ret_kind = TOKEN_RC_SHIM;
	else if (is_ofi(s))
		*ret_kind = TOKEN_OFI;
	else if (s.len >= TOKEN_RC_LEN && (s.len == TOKEN_RC_LEN || s.p[TOKEN_RC_LEN] == ':') &&
		 all_hex(s.p, TOKEN_RC_LEN))
		*ret_kind = TOKEN_RC_V1;
	else if (scal && is_scal_rc(s))
		*ret_kind = TOKEN_RC_SCAL;
	else if (is_json(s))
		*ret_kind = TOKEN_JSON;
	else
		return false;
	return true;
}

/* A token that somebody wrapped: the text of 2.1, 2.2 or of a family, in base64. */
static bool
is_base64(struct span s)
{
	char text[TOKEN_TEXT_MAX];
	struct span in = { text, 0 };
	enum token_kind kind;

	if (s.len > BASE64_LEN(TOKEN_TEXT_MAX) || base64_decode(s.p, s.len, text, sizeof text, &in.len) < 0)
		return false;
	return (in.len >= TOKEN_DC_LEN && token_has_colons(in)) || is_plain_family(in, true, &kind);
}

bool
token_is_family(struct span s, bool scal, enum token_kind *ret_kind)
{
	if (is_plain_family(s, scal, ret_kind))
		return true;
	*ret_kind = TOKEN_BASE64;
	return is_base64(s);
}
