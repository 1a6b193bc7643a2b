/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - the host block: it names the host that has the disk open, so that a second host that reaches the
 * same disk (a shared device, a volume that was attached twice) does not open the disk, too.
 *
 * 	directory	the file host
 * 	device		4 KiB at FMT_HOST_OFF
 *
 * The host block is separate, with a CRC, and never part of a superblock: it is written without a flush,
 * every HOST_BEAT_NS, and its loss at a power cut does no harm. The block contains the host (name,
 * machine-id), the boot, the instance (random, one for each opening), a counter of heartbeats, a flag that
 * the instance has closed the disk, the number of the newest log block known to be flushed (a log that ends
 * before that block is an older copy), and the time of the heartbeat, with which the next start compares the
 * clock (base/age_clock.h).
 *
 * A start that finds a block that is not closed waits for two heartbeats. If a heartbeat is written during
 * the wait, the start is refused; otherwise the start continues. The start does not wait if the process that
 * wrote the block is known to be gone: after a reboot of the same machine, or if the process cannot exist any
 * more (its id and start time are in the block). The start is refused at once if that process is known to
 * run. A free lock of the kernel does not prove that the process is gone: a lock taken by another path to the
 * disk may be invisible (FUSE, an overlay, NFS with local locks). For a process of another PID namespace, or
 * with an unknown id, the start waits, because the state of such a process is unknown. The clocks of two
 * hosts are never compared. The holder of the disk reads the block before each heartbeat: if another host has
 * written to it, the holder stops all writes.
 *
 * All functions block. They are called on the thread that starts the disk, and then on the helper thread,
 * never on a core. A block that is absent, damaged or unreadable has no effect.
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

/* Identity of a host and of one of its processes. Zeros: unknown. */
struct host_id {
	char name[HOST_NAME_MAX];
	uint8_t machine[16], boot[16];
	/* id of the process, its start time in clock ticks since the boot, and the inode numbers of the PID
	 * namespace and the time namespace in which the id and the start time are valid */
	uint64_t pid, start, pid_ns, time_ns;
};

struct host_block {
	struct host_id id;
	uint8_t disk_uuid[16], instance[16];
	uint64_t beat;
	uint64_t log_seq; /* number of the newest log block known to be flushed */
	uint64_t wall_ns; /* time of age_clock_ns() of the heartbeat, in ns since 1970; 0: unknown */
	bool closed;
};

/* Encodes a host block into buf, HOST_BYTES long. */
void host_encode(void *buf, const struct host_block *b);
/* Decodes a host block. Returns 0; -ENOENT if buf has no host block; -EBADMSG if the block is damaged or of
 * another version. */
int host_decode(const void *buf, size_t len, struct host_block *ret_block);
/* The relation of this host to the host that wrote a block. */
enum host_relation {
	HOST_OTHER,
	/* this machine has written the block before its last boot: the processes of that time are gone */
	HOST_REBOOTED,
	/* this machine has written the block, in the present boot as far as known: the process may exist */
	HOST_RUNNING,
};
/* Compares the identity in a block with that of this host. */
enum host_relation host_compare(const struct host_id *theirs, const struct host_id *here);

struct host {
	int fd; /* descriptor of the file or device; -1: the file does not exist yet */
	uint64_t off;
	bool there;             /* true: `seen` is the block on the disk; false: there was no readable
	                         * block */
	bool damaged;           /* true: the block on the disk is damaged or unreadable */
	bool ours;              /* true: this instance has written the block */
	struct host_block seen; /* block that was read last */
	/* mine: block of the last successful write; tried: block of the last write that was begun */
	struct host_block mine, tried;
	uint64_t due_ns; /* time of clock_ns() at which the next heartbeat is due */
};

/* Initializes the state of a host block that was not read yet. */
void host_init(struct host *h);
/* Reads the block into h->there and h->seen. Returns 0, also if a bad sector makes the block unreadable; or
 * the -errno of another read error. */
int host_look(struct host *h, struct ring *r);
/* Waits until it is certain that no other host uses the disk. path: path of the disk, for the reason. Returns
 * 0; -EBUSY if another host uses the disk; or the -errno of a read. The reason of an error is in err. */
int host_wait(struct host *h, struct ring *r, const char *path, char *err, size_t err_len);
/* Claims the block for this instance. Returns 0; -EBUSY if the block has changed since host_wait(); or
 * another -errno. The reason of an error is in err. */
int host_claim(struct host *h, struct ring *r, const uint8_t *disk_uuid, uint64_t log_seq, const char *path,
	       char *err, size_t err_len);
/* Writes a heartbeat if one is due and this instance owns the block. Returns 0; -EAGAIN if the write failed
 * for a cause other than the disk, so that the next call tries again; -EBUSY if another host has written to
 * the block, with its identity in h->seen; or another -errno. */
int host_beat(struct host *h, struct ring *r, uint64_t log_seq);
/* Writes, without a flush, that the disk is closed. Returns 0, also if this instance does not own the block;
 * -EBUSY if another host has written to the block; or another -errno. */
int host_close(struct host *h, struct ring *r, uint64_t log_seq);
/* Writes a sentence about the host that uses the disk to buf; "" if no host uses it. */
void host_text(const struct host *h, char *buf, size_t len);

#endif
