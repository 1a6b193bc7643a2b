/* SPDX-License-Identifier: Apache-2.0 */
/* One byte range of RFC 9110 section 14; what is not one is ignored, as S3 does (protocol.md 4.3).  See
 * dialect.h. */
#include "dialect/dialect_int.h"

#include <errno.h>

/* Digits at *p; more than 64 bits saturate, which later clips or misses
 * the object as the true number would. */
static bool
take_number(const char **p, const char *end, uint64_t *ret_value)
{
	const char *from = *p;
	uint64_t v = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
			v = UINT64_MAX;
	}
	*ret_value = v;
	return *p > from;
}

void
range_parse(struct span text, struct range *ret_range)
{
	const char *p = text.p, *end = p + text.len;
	struct range r = { 0 };
	bool have_first, have_last;

	*ret_range = r;
	if (text.len < 6 || strncasecmp(p, "bytes=", 6) != 0)
		return;
	p += 6;
	have_first = take_number(&p, end, &r.first);
	if (p == end || *p++ != '-')
		return;
	have_last = take_number(&p, end, &r.last);
	if (p != end || (!have_first && !have_last) || (have_first && have_last && r.last < r.first))
		return;
	r.kind = !have_first ? RANGE_SUFFIX : have_last ? RANGE_FROM_TO : RANGE_FROM;
	*ret_range = r;
}

int
range_resolve(const struct range *r, uint64_t size_bytes, uint64_t *ret_off, uint64_t *ret_len,
	      bool *ret_partial)
{
	uint64_t first = r->first, last = size_bytes - 1;

	if (r->kind == RANGE_NONE) {
		*ret_off = 0;
		*ret_len = size_bytes;
		*ret_partial = false;
		return 0;
	}
	if (r->kind == RANGE_SUFFIX) {
		if (r->last == 0)
			return -ERANGE;
		first = r->last < size_bytes ? size_bytes - r->last : 0;
	}
	if (first >= size_bytes)
		return -ERANGE;
	if (r->kind == RANGE_FROM_TO && r->last < last)
		last = r->last;
	*ret_off = first;
	*ret_len = last - first + 1;
	*ret_partial = true;
	return 0;
}
