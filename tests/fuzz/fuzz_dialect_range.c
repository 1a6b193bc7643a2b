/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and dates: eight bytes of object size, or of time, then the text, tried as all.  A range resolves
 * inside the object or not at all; a date that was understood is written so that it means the same.
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
digits(char *to, int nr, unsigned n)
{
	for (; nr > 0; n /= 10)
		to[--nr] = (char)('0' + n % 10);
}

/* The form of XML bodies. */
static void
try_iso(const char *text, size_t len, uint64_t any)
{
	uint64_t s, back;
	char out[30], iso[24];
	struct civil c;

	if (iso_date_parse(text, len, &s) == 0) {
		http_date_format(s, out);
		must(http_date_parse(out, 29, &back) == 0 && back == s);
		/* What stands in front of a time does not depend on the time. */
		must(len <= 10 || iso_date_parse(text, 10, &back) < 0 || s < 86400 ||
		     back == s / 86400 * 86400 || s == back + 86400); /* a leap second */
	}
	/* Any time there is can be written in both forms; the format ends with the year 9999. */
	http_date_format(any, out);
	must(http_date_parse(out, 29, &back) == 0);
	must(back == any || (any > 253402300799ull && back == 253402300799ull));
	any = back;
	civil_from_unix(any, &c);
	memcpy(iso, "0000-00-00T00:00:00.123Z", 24);
	digits(iso, 4, (unsigned)c.year);
	digits(iso + 5, 2, (unsigned)c.month);
	digits(iso + 8, 2, (unsigned)c.day);
	digits(iso + 11, 2, (unsigned)c.hour);
	digits(iso + 14, 2, (unsigned)c.minute);
	digits(iso + 17, 2, (unsigned)c.second);
	must(iso_date_parse(iso, 24, &back) == 0 && back == any);
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
	try_iso(text, len, size);
	try_base64(text, len);
	free(text);
	return 0;
}
