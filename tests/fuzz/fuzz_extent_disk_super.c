/* SPDX-License-Identifier: Apache-2.0 */
/* Superblocks: as they come, and with a CRC that fits. */
#include "base/crc64.h"
#include "extent/disk/format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
look(const uint8_t *buf)
{
	static struct super sb, back;
	static uint8_t again[FMT_SUPER_BYTES], twice[FMT_SUPER_BYTES];

	if (super_decode(buf, FMT_SUPER_BYTES, &sb) < 0)
		return;
	/* What is accepted can be worked with, and written again. */
	if (sb.geo.seg_nr == 0 || sb.geo.unit_bytes == 0 || sb.geo.seg_bytes % sb.geo.unit_bytes ||
	    !(sb.table.members >> sb.table.home[0] & 1) || sb.start_no == 0)
		abort();
	super_encode(again, &sb);
	if (super_decode(again, sizeof again, &back) < 0)
		abort();
	/* And is the same: read, written, read, written. */
	super_encode(twice, &back);
	if (memcmp(again, twice, sizeof again) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *buf = calloc(1, FMT_SUPER_BYTES);
	struct super sb;
	uint64_t crc;

	super_decode(data, len, &sb);
	memcpy(buf, data, len < FMT_SUPER_BYTES ? len : FMT_SUPER_BYTES);
	look(buf);
	memset(buf + 16, 0, 8);
	crc = crc64_nvme(0, buf, FMT_SUPER_BYTES);
	memcpy(buf + 16, &crc, 8);
	look(buf);
	free(buf);
	return 0;
}
