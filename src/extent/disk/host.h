/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the host block: which host has the disk open, so that a second host that reaches the same disk (a
 * shared device, a volume that was attached twice) does not open the disk, too.
 *
 *	directory	the file host
 *	device		4 KiB at FMT_HOST_OFF
 *
 * The host block is separate, with a CRC, and never part of a superblock: it is written without a flush,
 * every HOST_BEAT_NS, and its loss at a power cut does no harm. The block contains the host (name,
 * machine-id), the boot, the instance (random, one for each opening), a counter of beats, whether the
 * instance closed the disk, and the newest log block that it knows to be flushed: a log that ends before that
 * one is an older copy.
 *
 * A start that finds a block of another host that is not closed waits for two heartbeats. If a heartbeat is
 * written, the start is refused, otherwise the start continues. After a crash of the same host the start
 * continues immediately: the locks of the kernel exclude another process. No clock is compared with another
 * host's. The holder of the disk reads the block before each heartbeat: if another host has written to it,
 * the holder stops all writes.
 *
 * Blocking, on the thread that starts, and then the helper's; never a core. A block that is absent, damaged
 * or unreadable has no effect.
 */
#ifndef GANTRY_EXTENT_DISK_HOST_H
#define GANTRY_EXTENT_DISK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring;

#define HOST_VERSION 1u
#define HOST_BYTES 4096u
#define HOST_NAME_MAX 64
#define HOST_BEAT_NS ((uint64_t)5000000000)

/* Identity of a host. Zeros: unknown. */
struct host_id {
	char name[HOST_NAME_MAX];
	uint8_t machine[16], boot[16];
};

struct host_block {
	struct host_id id;
	uint8_t disk_uuid[16], instance[16];
	uint64_t beat;
	uint64_t log_seq; /* newest log block known to be flushed */
	bool closed;
};

/* Writes a block to buf, of HOST_BYTES. */
void host_encode(void *buf, const struct host_block *b);
/* Reads a block. 0; -ENOENT: none; -EBADMSG: damaged, or of another version. */
int host_decode(const void *buf, size_t len, struct host_block *ret_block);
/* Returns true if both are the same machine, even after a reboot. */
bool host_is_same(const struct host_id *a, const struct host_id *b);

struct host {
	int fd; /* -1: the file does not exist yet */
	uint64_t off;
	bool there;             /* true if `seen` is the block on the disk; false: no readable block */
	bool damaged;           /* true if a block exists and is invalid */
	bool ours;              /* true if this instance has written the block */
	struct host_block seen; /* the last block read */
	/* contents of the last successful write, and of the last write begun */
	struct host_block mine, tried;
	uint64_t due_ns; /* time of the next heartbeat */
};

/* Initializes h, whose block was not read yet. */
void host_init(struct host *h);
/* Reads the block into h->there and h->seen. 0, also for a bad sector; or another read error. */
int host_look(struct host *h, struct ring *r);
/* Waits until it is certain that no other host has the disk. 0, or -EBUSY with the reason in err; path: the
 * path of the disk. */
int host_wait(struct host *h, struct ring *r, const char *path, char *err, size_t err_len);
/* Claims the block for this instance, if the block is unchanged since host_wait(). 0, -EBUSY, -errno; the
 * reason is in err. */
int host_claim(struct host *h, struct ring *r, const uint8_t *disk_uuid, uint64_t log_seq, const char *path,
	       char *err, size_t err_len);
/* Writes a heartbeat if one is due and this instance has the block. 0; -EAGAIN: the error says nothing about
 * the disk, the next call tries again; -EBUSY: another host has written to it, and h->seen has its identity;
 * -errno. */
int host_beat(struct host *h, struct ring *r, uint64_t log_seq);
/* Writes that the disk is closed, not flushed. 0, also if another instance has the block; or an error as from
 * host_beat(). */
int host_close(struct host *h, struct ring *r, uint64_t log_seq);
/* Writes a sentence about the holder of the disk to buf: "" without a holder. */
void host_text(const struct host *h, char *buf, size_t len);

#endif
