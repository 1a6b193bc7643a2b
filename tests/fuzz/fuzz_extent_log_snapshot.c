/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot blocks: as they come, and with a CRC that fits, down to the records. */
#include "base/crc64.h"
#include "extent/log/rec_codec.h"

#include <stdlib.h>
#include <string.h>

#define CRC_OFF 72 /* in the header; see record.c */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
look(uint8_t *buf, size_t len)
{
	struct geometry geo;
	struct snap_head h, back;
	uint32_t at = SNAP_HEAD_BYTES;
	volatile uint64_t again;

	if (geo_choose((uint64_t)1 << 30, 0, &geo) < 0)
		abort();
	if (snap_open(buf, len, &h) < 0)
		return;
	if (h.used_bytes > len || (h.next_ext != SNAP_LAST && h.next_bytes > FMT_BLOCK_MAX))
		abort();
	for (uint32_t i = 0; i < h.record_nr && at < h.used_bytes; i++) {
		struct rec_view v;
		int n = rec_decode(buf + at, h.used_bytes - at, &geo, &v);

		if (n < 0)
			return;
		at += (uint32_t)n;
	}
	for (uint32_t i = 0; i < h.older_nr; i++)
		again = snap_older(buf, &h, i);
	/* What was opened can be sealed, and opens as the same. */
	back = h;
	snap_seal(buf, len, &back);
	again = back.crc64;
	if (snap_open(buf, len, &back) < 0 || back.crc64 != again || back.id != h.id ||
	    back.index != h.index || back.used_bytes != h.used_bytes || back.record_nr != h.record_nr ||
	    back.next_ext != h.next_ext || back.next_bytes != h.next_bytes || back.older_id != h.older_id ||
	    back.older_nr != h.older_nr || memcmp(back.disk_uuid, h.disk_uuid, 16) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *buf = aligned_alloc(16, align_up(len ? len : 1, 16));

	memcpy(buf, data, len);
	look(buf, len);
	if (len >= SNAP_HEAD_BYTES) {
		uint64_t crc;

		memset(buf + CRC_OFF, 0, 8);
		crc = crc64_nvme(0, buf, len);
		memcpy(buf + CRC_OFF, &crc, 8);
		look(buf, len);
	}
	free(buf);
	return 0;
}
