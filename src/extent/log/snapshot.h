/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot - the index, pinned at a block boundary, written into space of its own, so that the log before
 * it can go.
 *
 * The leader decides and pins, the helper thread writes (snapshot.c draws it); `state` hands the rest of
 * struct snapshot between the two.
 *
 * Errors of snapshot_write(): -ENOSPC, -ENOMEM, -ECANCELED (the engine stops): another try later.  Anything
 * else has failed the disk.
 */
#ifndef GANTRY_EXTENT_LOG_SNAPSHOT_H
#define GANTRY_EXTENT_LOG_SNAPSHOT_H

#include "extent/disk/alloc.h"
#include "extent/disk/format.h"

#include <stdatomic.h>

struct ring;
struct tree_node;
struct vol;

enum snap_state { SNAP_IDLE, SNAP_WANTED, SNAP_WALKED };

/* The space of one snapshot's chain. */
struct snap_space {
	struct extent *ext;
	uint32_t nr, cap;
};

struct snapshot {
	_Atomic int state;
	int pin;
	const struct tree_node *root;
	uint64_t gen;
	uint64_t bytes;      /* of the records that it will hold */
	bool at_start;       /* nobody is served meanwhile */
	struct snap_ref ref; /* of the one being made: leader fills in begin and version, helper the rest */
	_Atomic uint64_t trim_at;  /* linear log position up to which the log is free again */
	_Atomic uint64_t begin;    /* linear position of the current snapshot */
	_Atomic uint64_t retry_ns; /* after a failed one: not before */
	_Atomic bool
		asked; /* one is due, however little came since: an operator asked, or there is but one */
	_Atomic bool one_left; /* the older one was given up, and there is no other yet */
	_Atomic uint32_t load; /* bytes of snapshots for ten of the log, where that is too many; else 0 */
	struct snap_space space[2]; /* helper: of the superblock's snap[] */
};

/* Begins a snapshot if one is due: pins and hands over to the helper.  Leader, right after publishing. */
void snapshot_check(struct vol *vol);
/* Unpins what the helper has walked.  Leader. */
void snapshot_done(struct vol *vol);
/* Walks, writes, verifies, writes the superblock, trims the log.  Helper. */
int snapshot_write(struct vol *vol, struct ring *r);
/* Makes one at once.  At start. */
int snapshot_now(struct vol *vol, struct ring *r);
/* Forgets the older one, whose space and log go back: the superblock is to be written without it before either
 * is used. */
void snapshot_drop_older(struct vol *vol);
/* Adds an extent to s.  0 or -ENOMEM. */
int snap_space_add(struct snap_space *s, const struct extent *x);

#endif
