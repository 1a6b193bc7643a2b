/* SPDX-License-Identifier: Apache-2.0 */
/* Text of URLs and check values.  Pure functions. */
#include "client/client_int.h"

#include "base/base64.h"
#include "base/crc64.h"

#include <stdlib.h>
#include <string.h>

static const char hex[] = "0123456789ABCDEF";

static char *
encode(const char *text, size_t len, bool (*must)(unsigned char c), char *out)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (must(c)) {
			*out++ = '%';
			*out++ = hex[c >> 4];
			*out++ = hex[c & 15];
		} else {
			*out++ = (char)c;
		}
	}
	*out = 0;
	return out;
}

static char *
encode_new(const char *text, bool (*must)(unsigned char c))
{
	size_t len = strlen(text);
	char *out = malloc(3 * len + 1);

	if (out)
		encode(text, len, must, out);
	return out;
}

/* What can never stand in a request line; everything else is the caller's choice. */
static bool
never(unsigned char c)
{
	return c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}#", c);
}

bool
url_is_unreserved(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("-._~", c));
}

static bool
not_in_key(unsigned char c)
{
	return c != '/' && !url_is_unreserved(c);
}

char *
url_clean(const char *url)
{
	return encode_new(url, never);
}

bool
url_names_key(const char *url)
{
	const char *authority = strstr(url, "://"), *path;

	authority = authority ? authority + 3 : url;
	path = authority + strcspn(authority, "/?#");
	if (*path != '/')
		return false;
	path++;
	path += strcspn(path, "/?#");
	return *path == '/' && path[1] && path[1] != '?' && path[1] != '#';
}

static bool
not_in_value(unsigned char c)
{
	return !url_is_unreserved(c);
}

char *
url_query(const char *url, const struct field *pair, int nr)
{
	char separator = strchr(url, '?') ? '&' : '?', *out, *at;
	size_t len = strlen(url) + 1;

	for (int i = 0; i < nr; i++)
		len += pair[i].value ? strlen(pair[i].name) + 3 * strlen(pair[i].value) + 2 : 0;
	out = malloc(len);
	if (!out)
		return NULL;
	at = stpcpy(out, url);
	for (int i = 0; i < nr; i++) {
		if (!pair[i].value)
			continue;
		*at++ = separator;
		at = stpcpy(at, pair[i].name);
		*at++ = '=';
		at = encode(pair[i].value, strlen(pair[i].value), not_in_value, at);
		separator = '&';
	}
	return out;
}

char *
url_encode_all(const char *text)
{
	return encode_new(text, not_in_value);
}

char *
gantry_url_join(const char *base, const char *key)
{
	size_t base_len = strlen(base), len = strlen(key);
	char *out = malloc(base_len + 3 * len + 2);

	if (!out)
		return NULL;
	memcpy(out, base, base_len);
	if (base_len && base[base_len - 1] != '/')
		out[base_len++] = '/';
	encode(key, len, not_in_key, out + base_len);
	return out;
}

uint64_t
gantry_crc64nvme(uint64_t crc, const void *data, size_t len)
{
	return crc64_nvme(crc, data, len);
}

uint64_t
gantry_crc64nvme_combine(uint64_t crc_a, uint64_t crc_b, uint64_t len_b)
{
	return crc64_nvme_combine(crc_a, crc_b, len_b);
}

void
gantry_crc64nvme_text(uint64_t crc, char text[13])
{
	unsigned char be[8];

	for (int i = 0; i < 8; i++)
		be[i] = (unsigned char)(crc >> (56 - 8 * i));
	base64_encode(be, sizeof be, text);
}
