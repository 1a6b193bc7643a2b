/* SPDX-License-Identifier: Apache-2.0 */
/* ETags as text.  Pure functions. */
#include "req/machine.h"

#include "base/hex.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

size_t
etag_text(const struct store_etag *e, char out[48])
{
	size_t n = 32;

	hex_write(out, e->sum, 16);
	if (e->parts == STORE_ETAG_RDMA) {
		memcpy(out + n, "-r", 2);
		n += 2;
	} else if (e->parts) {
		n += (size_t)snprintf(out + n, 16, "-%u", e->parts);
	}
	out[n] = 0;
	return n;
}

int
etag_parse(const char *text, size_t len, struct store_etag *ret_etag)
{
	struct store_etag e = { .parts = 0 };

	if (len < 32 || hex_bytes(text, e.sum, 16) < 0)
		return -EINVAL;
	if (len == 34 && text[32] == '-' && text[33] == 'r') {
		e.parts = STORE_ETAG_RDMA;
	} else if (len > 32) {
		if (text[32] != '-' || len == 33 || len > 38 || text[33] == '0')
			return -EINVAL;
		for (size_t i = 33; i < len; i++) {
			if (text[i] < '0' || text[i] > '9')
				return -EINVAL;
			e.parts = e.parts * 10 + (uint32_t)(text[i] - '0');
		}
	}
	*ret_etag = e;
	return 0;
}
