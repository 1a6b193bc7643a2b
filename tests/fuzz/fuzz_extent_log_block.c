/* SPDX-License-Identifier: Apache-2.0 */
/* Log blocks: as they come, and with a CRC that fits (somebody who knew the nonce), down to the records. */
#include "base/crc64.h"
#include "extent/log/rec_codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CRC_OFF 120 /* in the header; see record.c */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
walk(const uint8_t *buf, const struct block_head *h)
{
	struct geometry geo;
	uint32_t at = BLOCK_HEAD_BYTES;

	if (geo_choose((uint64_t)1 << 30, 0, &geo) < 0)
		abort();
	if (h->used_bytes > h->len_bytes || h->len_bytes > FMT_BLOCK_MAX)
		abort();
	for (uint32_t i = 0; i < h->record_nr && at < h->used_bytes; i++) {
		struct rec_view v;
		int n = rec_decode(buf + at, h->used_bytes - at, &geo, &v);

		if (n < 0)
			return;
		at += (uint32_t)n;
	}
}

/* What was opened can be sealed, and opens as the same. */
static void
seal_again(uint8_t *buf, size_t len, const uint8_t nonce[16], const struct block_head *h)
{
	static const uint8_t other[16] = { 9 };
	struct block_head sealed = *h, back;

	block_seal(buf, &sealed, nonce);
	if (block_open(buf, len, nonce, &back) < 0 || back.crc64 != sealed.crc64 || back.kind != h->kind ||
	    back.len_bytes != h->len_bytes || back.used_bytes != h->used_bytes ||
	    back.record_nr != h->record_nr || back.epoch != h->epoch || back.seq != h->seq ||
	    back.lap != h->lap || back.pos != h->pos || back.prev_crc != h->prev_crc ||
	    back.flushed_upto != h->flushed_upto || back.new_epoch != h->new_epoch ||
	    memcmp(back.new_nonce, h->new_nonce, 16) != 0)
		abort();
	/* Of another epoch it is not. */
	if (block_open(buf, len, other, &back) != -EBADMSG)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint8_t nonce[16] = { 1, 2, 3 }, zero8[8];
	uint8_t *buf;
	struct block_head h;
	size_t padded;
	uint64_t crc;

	if (len > FMT_BLOCK_MAX)
		return 0;
	/* Short ones are as good as long ones: blocks are whole, and zero behind their records. */
	padded = len ? align_up(len, FMT_ALIGN) : FMT_ALIGN;
	buf = aligned_alloc(16, padded);
	memset(buf, 0, padded);
	memcpy(buf, data, len);
	len = padded;
	block_peek(buf);
	block_claims(buf, &h);
	if (block_open(buf, len, nonce, &h) == 0)
		walk(buf, &h);
	if (block_peek(buf) && block_peek(buf) <= len) {
		uint32_t n = block_peek(buf);

		crc = crc64_nvme(0, nonce, 16);
		crc = crc64_nvme(crc, buf, CRC_OFF);
		crc = crc64_nvme(crc, zero8, 8);
		crc = crc64_nvme(crc, buf + BLOCK_HEAD_BYTES, n - BLOCK_HEAD_BYTES);
		memcpy(buf + CRC_OFF, &crc, 8);
		if (block_open(buf, len, nonce, &h) == 0) {
			walk(buf, &h);
			seal_again(buf, len, nonce, &h);
		}
	}
	free(buf);
	return 0;
}
