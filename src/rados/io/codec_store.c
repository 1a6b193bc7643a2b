/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the table of gateways, the description of the store, and trailers of data objects; see codec.h. */
#include "rados/io/codec.h"

#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/codec_int.h"

#include <errno.h>

/* ---- gateways ---- */

#define GATEWAY_FIELDS (offsetof(struct gateway_row, version) + sizeof(uint32_t))
_Static_assert(GATEWAY_FIELDS == 5 * 8 + 3 * GATEWAY_TEXT + 4,
	       "the fields of a row are encoded as they are in memory");
_Static_assert(4 + GATEWAY_FIELDS + 8 <= GATEWAY_ROW_BYTES, "a row has room for its texts");

void
gateway_encode(uint8_t out[GATEWAY_ROW_BYTES], const struct gateway_row *g)
{
	struct cur c = put_head(memset(out, 0, GATEWAY_ROW_BYTES), GATEWAY_ROW_BYTES, VALUE_GATEWAY);

	check(g->first <= g->last);
	put_bytes(&c, g, GATEWAY_FIELDS);
	c.p = out + GATEWAY_ROW_BYTES - 8;
	put_end(&c, out);
}

int
gateway_decode(const void *buf, size_t len, struct gateway_row *ret_row)
{
	struct gateway_row g;

	if (!take_whole(buf, len, GATEWAY_ROW_BYTES, VALUE_GATEWAY, &g, GATEWAY_FIELDS) || g.first > g.last)
		return -EBADMSG;
	g.host[sizeof g.host - 1] = g.addrs[sizeof g.addrs - 1] = 0;
	*ret_row = g;
	return 0;
}

_Static_assert(sizeof(struct gateway_addrs) == GATEWAY_ADDRS_BYTES - 4 - 8,
	       "the fields are encoded as they are in memory");

void
gateway_addrs_encode(uint8_t out[GATEWAY_ADDRS_BYTES], const struct gateway_addrs *a)
{
	struct cur c = put_head(out, GATEWAY_ADDRS_BYTES, VALUE_GATEWAY_ADDRS);

	put_bytes(&c, a, sizeof *a);
	put_end(&c, out);
}

int
gateway_addrs_decode(const void *buf, size_t len, struct gateway_addrs *ret_addrs)
{
	struct gateway_addrs a;

	if (!take_whole(buf, len, GATEWAY_ADDRS_BYTES, VALUE_GATEWAY_ADDRS, &a, sizeof a) || a.nr == 0 ||
	    a.nr > GATEWAY_ADDRS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < GATEWAY_ADDRS_MAX; i++)
		a.addr[i][sizeof a.addr[i] - 1] = 0;
	*ret_addrs = a;
	return 0;
}

/* ---- the store ---- */

_Static_assert(sizeof(struct store_format_row) == 4 + 16 + 4, "the fields are encoded as they are in memory");

void
format_encode(uint8_t out[STORE_FORMAT_BYTES], const struct store_format_row *f)
{
	struct cur c = put_head(memset(out, 0, STORE_FORMAT_BYTES), STORE_FORMAT_BYTES, VALUE_FORMAT);

	check(f->version > 0 && f->version <= STORE_FORMAT_VERSION);
	put_bytes(&c, f, sizeof *f);
	c.p = out + STORE_FORMAT_BYTES - 8;
	put_end(&c, out);
}

int
format_decode(const void *buf, size_t len, struct store_format_row *ret_row)
{
	struct store_format_row f;

	if (!take_whole(buf, len, STORE_FORMAT_BYTES, VALUE_FORMAT, &f, sizeof f))
		return -EBADMSG;
	if (f.version == 0 || f.version > STORE_FORMAT_VERSION) {
		ret_row->version = f.version;
		return -EPROTONOSUPPORT;
	}
	if (f.object_bytes < 2 * STORE_PIECE || f.object_bytes > DATA_OBJECT_MAX ||
	    f.object_bytes % STORE_PIECE)
		return -EBADMSG;
	*ret_row = f;
	return 0;
}

/* ---- trailers ---- */

static uint64_t
trailer_crc(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	const struct label name = data_name(id, n);
	uint64_t crc;

	check(data_bytes > 0 && data_bytes <= DATA_OBJECT_MAX);
	crc = crc64_nvme(0, name.text, strlen(name.text));
	crc = crc64_nvme(crc, &data_bytes, sizeof data_bytes);
	return crc64_nvme(crc, trailer, trailer_bytes(data_bytes) - 8);
}

void
trailer_seal(uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	uint64_t crc = trailer_crc(trailer, data_bytes, id, n);

	memcpy(trailer + trailer_bytes(data_bytes) - 8, &crc, 8);
}

int
trailer_check(const uint8_t *trailer, uint32_t data_bytes, struct rid id, uint32_t n)
{
	uint64_t crc = trailer_crc(trailer, data_bytes, id, n);

	return memcmp(trailer + trailer_bytes(data_bytes) - 8, &crc, 8) == 0 ? 0 : -EBADMSG;
}
