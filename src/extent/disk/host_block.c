/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of the host block; see host.h. */
#include "extent/disk/host.h"

#include "base/crc64.h"
#include "base/cursor.h"

#include <errno.h>
#include <string.h>

static const char host_magic[8] = "GANTRYHB";

/* Moves the fields. Layout, all in the first sector: magic (8), version (4), closed (4), CRC64 of the
 * sector with these 8 bytes zero, then the fields in this order. */
static void
move_block(struct cur *c, struct host_block *b, bool puts)
{
	MOVE(c, b->disk_uuid, puts);
	MOVE(c, b->instance, puts);
	MOVE(c, b->beat, puts);
	MOVE(c, b->log_seq, puts);
	MOVE(c, b->id.machine, puts);
	MOVE(c, b->id.boot, puts);
	MOVE(c, b->id.name, puts);
	/* Zeros in blocks of earlier versions, which ignore these bytes. */
	MOVE(c, b->id.pid, puts);
	MOVE(c, b->id.start, puts);
	MOVE(c, b->id.pid_ns, puts);
	MOVE(c, b->id.time_ns, puts);
	MOVE(c, b->wall_ns, puts);
}

void
host_encode(void *buf, const struct host_block *b)
{
	struct cur c = cursor(buf, HOST_BYTES);
	struct host_block copy = *b;
	uint64_t crc;

	memset(buf, 0, HOST_BYTES);
	put_bytes(&c, host_magic, 8);
	put_u32(&c, HOST_VERSION);
	put_u32(&c, b->closed);
	put_u64(&c, 0);
	move_block(&c, &copy, true);
	crc = crc64_nvme(0, buf, 512);
	memcpy((uint8_t *)buf + 16, &crc, 8);
}

/* Checks a name, which is shown to operators. */
static bool
name_ok(const char *name)
{
	size_t n = strnlen(name, HOST_NAME_MAX);

	for (size_t i = 0; i < n; i++) {
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	}
	return n > 0 && n < HOST_NAME_MAX && is_zero(name + n, HOST_NAME_MAX - n);
}

int
host_decode(const void *buf, size_t len, struct host_block *ret_block)
{
	struct cur c = cursor((void *)(uintptr_t)buf, len);
	struct host_block b = { 0 };
	uint32_t version, closed;
	uint64_t crc, sum;

	if (len < 512 || memcmp(buf, host_magic, 8) != 0)
		return is_zero(buf, len) ? -ENOENT : -EBADMSG;
	take(&c, 8);
	version = take_u32(&c);
	closed = take_u32(&c);
	crc = take_u64(&c);
	sum = crc64_nvme_without(0, buf, 512, 16);
	move_block(&c, &b, false);
	if (sum != crc || c.bad || version != HOST_VERSION || closed > 1 || !name_ok(b.id.name))
		return -EBADMSG;
	b.closed = closed;
	*ret_block = b;
	return 0;
}

/* Compares two hosts. Cloned machines have the same machine-id, and mostly different names. */
enum host_relation
host_compare(const struct host_id *theirs, const struct host_id *here)
{
	bool know_boot = !is_zero(theirs->boot, 16) && !is_zero(here->boot, 16);

	if (know_boot && memcmp(theirs->boot, here->boot, 16) == 0)
		return HOST_RUNNING;
	if (is_zero(theirs->machine, 16) || memcmp(theirs->machine, here->machine, 16) != 0 ||
	    strcmp(theirs->name, here->name) != 0)
		return HOST_OTHER;
	return know_boot ? HOST_REBOOTED : HOST_RUNNING;
}
