/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot - the index, pinned at a block boundary and written to separate space, so that the log before
 * the boundary can be trimmed.
 *
 * The leader decides and pins, the helper thread writes (snapshot.c has a diagram); `state` determines
 * whether the leader or the helper owns the other fields of struct snapshot.
 *
 * Errors of snapshot_write(): -ENOSPC, -ENOMEM, -ECANCELED (the engine stops): the snapshot is tried again
 * later. Any other error has made the disk fail.
 */
#ifndef GANTRY_EXTENT_LOG_SNAPSHOT_H
#define GANTRY_EXTENT_LOG_SNAPSHOT_H

#include "extent/log/rec_codec.h"

#include <stdatomic.h>

struct ring;
struct tree_node;
struct vol;

enum snap_state { SNAP_IDLE, SNAP_WANTED, SNAP_WALKED };

/* The space of one snapshot's chain. */
struct snap_space {
	uint64_t *ext;
	uint32_t nr, cap;
};

/* The chain of blocks of a snapshot, while it is read. */
struct snap_chain {
	const struct snap_ref *ref;
	uint64_t ext; /* extent of the next block */
	uint32_t len; /* bytes of the next block */
	uint64_t index, crc64, record_nr;
};

struct snapshot {
	_Atomic int state;
	const struct tree_node *root;
	uint64_t gen;
	uint64_t bytes; /* encoded size of the records in the snapshot */
	bool at_start;  /* true: the snapshot is made at the start, when no requests are served */
	/* reference of the snapshot being made: the leader sets begin and version, the helper the other
	 * fields */
	struct snap_ref ref;
	_Atomic uint64_t trim_at;  /* linear log position up to which the log may be overwritten */
	_Atomic uint64_t begin;    /* linear position of the current snapshot */
	_Atomic uint64_t retry_ns; /* earliest time of the next snapshot after a failed one */
	/* true: a snapshot is due regardless of the log's growth: requested by an operator, or only one
	 * snapshot exists */
	_Atomic bool asked;
	_Atomic bool one_left; /* true: the older snapshot was dropped, and only one exists */
	_Atomic uint32_t load; /* bytes of snapshots per ten bytes of the log, if too many; otherwise 0 */
	/* space of the snapshots in the superblock's snap[]; owned by the helper */
	struct snap_space space[2];
};

/* Begins a snapshot if one is due: pins the index and wakes the helper. Leader, directly after
 * publishing. */
void snapshot_check(struct vol *vol);
/* Unpins the index after the helper has read it. Leader. */
void snapshot_done(struct vol *vol);
/* Writes and verifies the snapshot, writes the superblock, and trims the log. Helper. */
int snapshot_write(struct vol *vol, struct ring *r);
/* Makes a snapshot immediately. At the start. */
int snapshot_now(struct vol *vol, struct ring *r);
/* Drops the older snapshot and releases its space and log: the caller writes the superblock without the
 * older snapshot before the space or log is reused. */
void snapshot_drop_older(struct vol *vol);
/* Adds an extent to s. Returns 0 or -ENOMEM. */
int snap_space_add(struct snap_space *s, uint64_t ext);

/* ---- reading a chain. Any thread, with its own struct snap_chain ---- */

/* Begins with the first block of a snapshot, which has none if ref->block_nr is 0. */
static inline void
snap_chain_begin(struct snap_chain *c, const struct snap_ref *ref)
{
	*c = (struct snap_chain){ .ref = ref, .ext = ref->head_ext, .len = ref->head_bytes };
}
/* Returns 0, or -EBADMSG: the next block is not on the disk, or longer than its extent or FMT_BLOCK_MAX. */
int snap_chain_ok(const struct snap_chain *c, const struct geometry *geo);
/* Checks the next block, whose bytes are in buf, and moves to the block after it. Returns 0 or -EBADMSG. */
int snap_chain_take(struct snap_chain *c, const struct super *sb, const void *buf,
		    struct snap_head *ret_head);
/* Compares the blocks with the reference after the last one. Returns 0 or -EBADMSG. */
int snap_chain_end(const struct snap_chain *c);

#endif
