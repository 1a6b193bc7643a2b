/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded words (RFC 2047): how a value that is no ASCII goes out in a header, since HTTP stacks that insist on
 * ASCII fail the whole answer otherwise.  See dialect.h; pure, any thread.
 */
#include "dialect/dialect_int.h"

#include "base/base64.h"

#define BEGIN "=?UTF-8?B?"
#define END "?="
#define WORD_BYTES 45 /* as Base64 60 characters; a word may have 75 with what is around them */
#define WORD_CHARS (sizeof BEGIN - 1 + BASE64_LEN(WORD_BYTES) + sizeof END - 1)
_Static_assert(WORD_CHARS <= 75, "RFC 2047, section 2");

bool
dialect_needs_words(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)value[i] >= 0x80)
			return true;
	}
	return false;
}

/* Takes one character off the front, as UTF-8: 1 to 4 bytes. */
static size_t
take_character(struct span *s, bool utf8, char out[4])
{
	unsigned char c = (unsigned char)*s->p;
	size_t n = utf8 ? (size_t)utf8_length(s->p, s->len) : 1;

	memcpy(out, s->p, n);
	s->p += n;
	s->len -= n;
	if (utf8 || c < 0x80)
		return n;
	out[0] = (char)(0xc0 | c >> 6);
	out[1] = (char)(0x80 | (c & 0x3f));
	return 2;
}

size_t
dialect_words(const char *value, size_t len, char *out, size_t cap)
{
	struct span rest = { value, len };
	bool utf8 = is_utf8(value, len);
	char bytes[WORD_BYTES + 4];
	size_t n = 0, have = 0;

	while (rest.len || have) {
		size_t whole = have;

		/* No character is cut in two. */
		while (rest.len && have <= WORD_BYTES) {
			whole = have;
			have += take_character(&rest, utf8, bytes + have);
		}
		if (have <= WORD_BYTES)
			whole = have;
		if (cap - n < 1 + WORD_CHARS + 1)
			return 0;
		if (n)
			out[n++] = ' ';
		memcpy(out + n, BEGIN, sizeof BEGIN - 1);
		n += sizeof BEGIN - 1;
		base64_encode(bytes, whole, out + n);
		n += BASE64_LEN(whole);
		memcpy(out + n, END, sizeof END);
		n += sizeof END - 1;
		memmove(bytes, bytes + whole, have - whole);
		have -= whole;
	}
	return n;
}
