/*
 * Ranges and dates: eight bytes of object size, then the text, tried as both.  A range resolves inside the
 * object or not at all; a date that was understood is written so that it means the same.
 */
#include "dialect/dialect_int.h"

#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static void
try_range(const char *text, size_t len, uint64_t size)
{
	uint64_t off = 0, n = 0;
	bool partial = false;
	struct range r;
	int res;

	range_parse((struct span){ text, len }, &r);
	res = range_resolve(&r, size, &off, &n, &partial);
	must(res == 0 || res == -ERANGE);
	must(partial == (res == 0 && r.kind != RANGE_NONE));
	if (r.kind == RANGE_NONE) {
		must(res == 0 && off == 0 && n == size);
		return;
	}
	if (res == 0)
		must(n > 0 && off < size && n <= size - off);
	if (r.kind == RANGE_FROM_TO) {
		must(r.first <= r.last);
		must((res == 0) == (r.first < size));
		must(res || (off == r.first && n - 1 <= r.last - r.first));
	}
}

static void
try_date(const char *text, size_t len)
{
	uint64_t s, back;
	char out[30];

	if (http_date_parse(text, len, &s) < 0)
		return;
	http_date_format(s, out);
	must(strlen(out) == 29);
	must(http_date_parse(out, 29, &back) == 0);
	must(back == s || s > 253402300799ull);
}

static void
try_base64(const char *text, size_t len)
{
	uint8_t bytes[96];
	char again[BASE64_LEN(sizeof bytes) + 1];
	size_t n = 0;

	if (base64_decode(text, len, bytes, sizeof bytes, &n) < 0)
		return;
	must(n <= sizeof bytes);
	base64_encode(bytes, n, again);
	must(strlen(again) == len && memcmp(again, text, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t size;
	char *text;

	if (len < 8)
		return 0;
	memcpy(&size, data, 8);
	len -= 8;
	text = malloc(len ? len : 1);
	must(text);
	memcpy(text, data + 8, len);
	try_range(text, len, size);
	try_date(text, len);
	try_base64(text, len);
	free(text);
	return 0;
}
