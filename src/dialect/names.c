/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of names: percent-encoding, UTF-8, what a bucket and a key may be called, upload ids.  See
 * dialect_int.h; called by the parsers of targets, headers, XML and forms.
 */
#include "dialect/dialect_int.h"

#include "base/hex.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#define UPLOAD_ID_MARK 'u'
#define UPLOAD_ID_DIGITS (DIALECT_UPLOAD_ID_LEN - 1)

/* Shortest form, no surrogates, nothing above U+10FFFF. */
int
utf8_length(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	uint32_t v, min;
	int more;

	if (len == 0)
		return 0;
	v = *p;
	if (v < 0x80)
		return 1;
	if ((v & 0xe0) == 0xc0) {
		more = 1;
		min = 0x80;
		v &= 0x1f;
	} else if ((v & 0xf0) == 0xe0) {
		more = 2;
		min = 0x800;
		v &= 0x0f;
	} else if ((v & 0xf8) == 0xf0) {
		more = 3;
		min = 0x10000;
		v &= 0x07;
	} else {
		return 0;
	}
	if (len <= (size_t)more)
		return 0;
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (p[i] & 0x3f);
	}
	return v < min || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff) ? 0 : more + 1;
}

bool
is_utf8(const char *text, size_t len)
{
	while (len) {
		int n = len >= 8 && word_is_ascii(word_at(text)) ? 8 : utf8_length(text, len);

		if (n == 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

size_t
utf8_count(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

bool
has_control(const char *text, size_t len)
{
	for (; len >= 8; text += 8, len -= 8) {
		if (word_has_control(word_at(text)))
			return true;
	}
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return true;
	}
	return false;
}

static bool
is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool
is_bucket_name(const char *name, size_t len)
{
	bool may_be_address = true;
	char text[64];
	struct in_addr ip;

	if (len < 3 || len > 63 || !is_lower_alnum(name[0]) || !is_lower_alnum(name[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_lower_alnum(name[i]) && name[i] != '-' && (name[i] != '.' || name[i - 1] == '.'))
			return false;
		may_be_address &= name[i] == '.' || (name[i] >= '0' && name[i] <= '9');
	}
	if (!may_be_address)
		return true;
	memcpy(text, name, len);
	text[len] = 0;
	return inet_pton(AF_INET, text, &ip) != 1;
}

bool
is_new_bucket_name(const char *name, size_t len)
{
	for (size_t i = 1; i < len; i++) {
		if ((name[i] == '-' && name[i - 1] == '.') || (name[i] == '.' && name[i - 1] == '-'))
			return false;
	}
	return true;
}

enum fault
key_check(const char *key, size_t len, const char **ret_why)
{
	if (len > DIALECT_KEY_MAX)
		return refuse(ret_why, FAULT_KEY_TOO_LONG, "The key is longer than 1024 bytes.");
	if (len == 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "The key is empty.");
	if (!is_utf8(key, len))
		return refuse(ret_why, FAULT_BAD_URI, "The key is not UTF-8.");
	if (has_control(key, len))
		return refuse(ret_why, FAULT_BAD_URI, "The key has a control character.");
	return FAULT_NONE;
}

void
dialect_upload_id_text(const uint8_t id[16], char out[DIALECT_UPLOAD_ID_LEN + 1])
{
	out[0] = UPLOAD_ID_MARK;
	hex_write(out + 1, id, 16);
	out[DIALECT_UPLOAD_ID_LEN] = 0;
}

int
dialect_upload_id_parse(const char *text, size_t len, uint8_t ret_id[16])
{
	if (len == DIALECT_UPLOAD_ID_LEN && text[0] == UPLOAD_ID_MARK) {
		text++;
		len--;
	}
	if (len != UPLOAD_ID_DIGITS)
		return -EINVAL;
	/* What we gave out is in lower case. */
	for (size_t i = 0; i < len; i++) {
		if (text[i] >= 'A' && text[i] <= 'F')
			return -EINVAL;
	}
	return hex_bytes(text, ret_id, 16);
}
