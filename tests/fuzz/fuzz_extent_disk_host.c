/* SPDX-License-Identifier: Apache-2.0 */
/* Host blocks: as they come, and with a CRC that fits. */
#include "base/crc64.h"
#include "extent/disk/host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
look(const uint8_t *buf, size_t len)
{
	uint8_t again[HOST_BYTES];
	struct host_block b, back;

	if (host_decode(buf, len, &b) < 0)
		return;
	/* The name is shown, and what is accepted can be written again and is the same. */
	for (const char *p = b.id.name; *p; p++) {
		if (*p <= ' ' || *p > '~')
			abort();
	}
	host_encode(again, &b);
	if (host_decode(again, sizeof again, &back) < 0 || back.beat != b.beat || back.log_seq != b.log_seq ||
	    back.wall_ns != b.wall_ns || back.closed != b.closed ||
	    memcmp(&back.id, &b.id, sizeof b.id) != 0 || memcmp(back.instance, b.instance, 16) != 0 ||
	    memcmp(back.disk_uuid, b.disk_uuid, 16) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *buf = calloc(1, HOST_BYTES), *exact = malloc(len ? len : 1);
	uint64_t crc;

	memcpy(exact, data, len);
	look(exact, len);
	memcpy(buf, data, len < HOST_BYTES ? len : HOST_BYTES);
	memset(buf + 16, 0, 8);
	crc = crc64_nvme(0, buf, 512);
	memcpy(buf + 16, &crc, 8);
	look(buf, HOST_BYTES);
	free(exact);
	free(buf);
	return 0;
}
