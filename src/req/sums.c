/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums as they are stored: under the name of their header among an object's or a part's attributes, and
 * CRC64-NVME in the store's own record.  Of a multipart object: put together from those of its parts
 * (protocol.md 4.6).  The core's thread; no I/O.
 */
#include "req/machine.h"

#include "base/base64.h"
#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLY_CRC32 0xedb88320u
#define POLY_CRC32C 0x82f63b78u

/* The store computes CRC64-NVME itself; these are the others. */
enum digest_kind
digest_of_sum(enum checksum_kind k)
{
	static const enum digest_kind of[SUM_NR] = {
		[SUM_CRC32] = DIGEST_CRC32,   [SUM_CRC32C] = DIGEST_CRC32C, [SUM_SHA1] = DIGEST_SHA1,
		[SUM_SHA256] = DIGEST_SHA256, [SUM_MD5] = DIGEST_MD5,
	};

	check(k != SUM_CRC64NVME);
	return of[k];
}

void
sum_of_u64(uint64_t v, uint8_t out[8])
{
	for (int i = 0; i < 8; i++)
		out[i] = (uint8_t)(v >> (56 - 8 * i));
}

uint64_t
sum_to_u64(const uint8_t b[8])
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | b[i];
	return v;
}

void
sum_text64(uint64_t v, char out[16])
{
	uint8_t b[8];

	sum_of_u64(v, b);
	base64_encode(b, sizeof b, out);
}

int
sums_find_algorithm(const char *name, size_t len, enum checksum_kind *ret_kind)
{
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		const char *n = checksum_name(k);

		if (strlen(n) == len && memcmp(n, name, len) == 0) {
			*ret_kind = k;
			return 0;
		}
	}
	return -ENOENT;
}

/* ---- stored ones ---- */

/* "value" or "value-N". */
static bool
parse_stored(const char *text, size_t len, enum checksum_kind k, struct xml_sums *out)
{
	size_t chars = BASE64_LEN(checksum_len(k)), n;
	uint32_t parts = 0;

	if (len < chars || base64_decode(text, chars, out->sum[k].value, sizeof out->sum[k].value, &n) < 0 ||
	    n != checksum_len(k))
		return false;
	if (len > chars) {
		if (text[chars] != '-' || len == chars + 1 || len > chars + 6)
			return false;
		for (size_t i = chars + 1; i < len; i++) {
			if (text[i] < '0' || text[i] > '9')
				return false;
			parts = parts * 10 + (uint32_t)(text[i] - '0');
		}
		out->composite_parts = parts;
		out->type = SUM_TYPE_COMPOSITE;
	}
	return true;
}

void
sums_stored(const void *attrs, size_t attrs_len, const uint64_t *crc64, struct xml_sums *out)
{
	bool other = false;

	memset(out, 0, sizeof *out);
	out->type = SUM_TYPE_FULL_OBJECT;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		size_t len;
		const char *v =
			k == SUM_CRC64NVME ? NULL : dialect_attr(attrs, attrs_len, checksum_header[k], &len);

		if (v && parse_stored(v, len, k, out))
			other = out->sum[k].have = true;
	}
	/* Every object has one, but S3 knows one checksum per object: the one that was asked for. */
	if (!other && crc64) {
		out->sum[SUM_CRC64NVME].have = true;
		sum_of_u64(*crc64, out->sum[SUM_CRC64NVME].value);
	}
}

void
sums_of_obj(const struct store_obj *obj, struct xml_sums *out)
{
	size_t len;
	const char *type;

	sums_stored(obj->meta.attrs, obj->meta.attrs_len, &obj->crc64, out);
	type = dialect_attr(obj->meta.attrs, obj->meta.attrs_len, ATTR_SUM_TYPE, &len);
	if (type && len == 9)
		out->type = SUM_TYPE_COMPOSITE;
}

const char *
algorithm_of(const void *attrs, size_t attrs_len, enum checksum_type *ret_type)
{
	struct xml_sums sums;
	uint64_t crc64 = 0;
	size_t len;
	const char *type = dialect_attr(attrs, attrs_len, ATTR_SUM_TYPE, &len);

	sums_stored(attrs, attrs_len, &crc64, &sums);
	*ret_type = type && len == strlen("COMPOSITE") ? SUM_TYPE_COMPOSITE : sums.type;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (sums.sum[k].have)
			return checksum_name(k);
	}
	return NULL;
}

const char *
storage_class_of(const void *attrs, size_t attrs_len, char out[32])
{
	size_t len;
	const char *v = dialect_attr(attrs, attrs_len, "x-amz-storage-class", &len);

	if (!v || len >= 32)
		return NULL;
	memcpy(out, v, len);
	out[len] = 0;
	return out;
}

size_t
sum_text(const uint8_t *value, enum checksum_kind k, uint32_t parts, char out[64])
{
	size_t n = BASE64_LEN(checksum_len(k));

	base64_encode(value, checksum_len(k), out);
	if (parts)
		n += (size_t)snprintf(out + n, 64 - n, "-%u", parts);
	return n;
}

/* ---- CRCs of a whole from those of its parts ---- */

static uint32_t
times(const uint32_t m[32], uint32_t v)
{
	uint32_t r = 0;

	for (int i = 0; v; i++, v >>= 1) {
		if (v & 1)
			r ^= m[i];
	}
	return r;
}

static void
square(uint32_t out[32], const uint32_t m[32])
{
	for (int i = 0; i < 32; i++)
		out[i] = times(m, m[i]);
}

uint32_t
sum_crc32_combine(enum checksum_kind k, uint32_t a, uint32_t b, uint64_t len_b)
{
	uint32_t odd[32], even[32];

	/* The operator of one zero bit; squared three times, that of a zero byte. */
	odd[0] = k == SUM_CRC32 ? POLY_CRC32 : POLY_CRC32C;
	for (int i = 1; i < 32; i++)
		odd[i] = 1u << (i - 1);
	square(even, odd);
	square(odd, even);
	square(even, odd);
	while (len_b) {
		if (len_b & 1)
			a = times(even, a);
		len_b >>= 1;
		if (!len_b)
			break;
		square(odd, even);
		memcpy(even, odd, sizeof even);
	}
	return a ^ b;
}
