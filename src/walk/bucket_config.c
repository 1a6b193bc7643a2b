/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a bucket: read from the store, and one of them found or replaced among the others. */
#include "walk/bucket_config.h"

#include "base/check.h"
#include "dialect/text.h"
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 5

int
bucket_attrs_read(struct store_port *p, const char *name, size_t name_len, struct bucket_attrs *ba)
{
	ba->p = malloc(STORE_BUCKET_ATTRS_MAX);
	if (!ba->p)
		return -ENOMEM;
	ba->stat.op.result = 0;
	return store_bucket_get_attrs(p, name, name_len, ba->p, STORE_BUCKET_ATTRS_MAX, &ba->stat);
}

void
bucket_attrs_free(struct bucket_attrs *ba)
{
	free(ba->p);
	ba->p = NULL;
}

bool
bucket_attrs_find(const struct bucket_attrs *ba, enum bucket_attr kind, const void **ret_p, uint32_t *ret_len)
{
	const uint8_t *p = ba->p, *end;

	if (!p)
		return false;
	check(ba->stat.attrs_len <= STORE_BUCKET_ATTRS_MAX);
	end = p + ba->stat.attrs_len;
	while (end - p >= HEAD_BYTES) {
		uint32_t len = p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;

		if (len > (size_t)(end - p) - HEAD_BYTES)
			return false;
		if (p[0] == kind) {
			*ret_p = p + HEAD_BYTES;
			*ret_len = len;
			return true;
		}
		p += HEAD_BYTES + len;
	}
	return false;
}

static void
pack(struct text *x, enum bucket_attr kind, const void *p, uint32_t len)
{
	uint8_t head[HEAD_BYTES] = { (uint8_t)kind, (uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
				     (uint8_t)(len >> 24) };

	text_put(x, head, sizeof head);
	text_put(x, p, len);
}

void
bucket_attrs_replace(const struct bucket_attrs *ba, enum bucket_attr kind, const void *p, uint32_t len,
		     struct text *x)
{
	for (enum bucket_attr k = 1; k < BUCKET_ATTR_NR; k++) {
		const void *old;
		uint32_t old_len;

		if (k == kind) {
			if (len)
				pack(x, k, p, len);
		} else if (bucket_attrs_find(ba, k, &old, &old_len)) {
			pack(x, k, old, old_len);
		}
	}
}
