/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc - removes records that nobody owns any more, a record of the log for each.
 *
 * Jobs come from ports (gc_orphans()), from what the leader publishes, and from a start; the leader packs
 * their removals behind whatever else is in its block.  Without memory for a job what is left waits for the
 * next start.
 *
 * Threads: gc_orphans(), gc_upload_job(), gc_bucket_job() on any; the rest is the leader's.
 */
#ifndef GANTRY_EXTENT_LOG_GC_H
#define GANTRY_EXTENT_LOG_GC_H

#include "extent/log/commit.h"

struct dead;
struct vol;

enum gc_kind {
	GC_DEAD,   /* what a dead manifest names: chunks, or parts */
	GC_RANGE,  /* chunks or parts (type): one id, indexes from at up to nr */
	GC_PARTS,  /* the parts of an upload that are not in skip */
	GC_BUCKET, /* what is left of a bucket that was removed: uploads and attributes older than `before` */
};

/* Records to be removed, one after the other. */
struct gc_job {
	struct gc_job *next;
	enum gc_kind kind;
	uint8_t type;
	struct dead *dead; /* of the manifest; NULL: an operation's, freed with free() */
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t at, nr;
	const uint8_t *skip;      /* a bit per part number; NULL: none; behind the job, in its memory */
	struct gc_bucket *bucket; /* so is this */
};

struct gc_bucket {
	uint64_t before; /* versions */
	uint16_t at_len, name_len;
	uint8_t name[STORE_BUCKET_MAX];
	uint8_t at[KEY_BYTES_MAX]; /* keys from here on */
};

/* The removal of one record, the leader's own commit. */
struct gc_commit {
	struct gc_commit *next;
	struct vol *vol;
	struct commit c;
	uint8_t key[KEY_BYTES_MAX];
};
#define GC_COMMITS 64

/* Packs removals while there is room in the block. */
void gc_pack(struct vol *vol);
/* Removes the chunks (or parts: type is KEY_CHUNK or KEY_PART) {id, from ... nr - 1}, which have no
 * owner and never will. */
void gc_orphans(struct vol *vol, uint8_t type, const uint8_t id[CHUNK_ID_BYTES], uint32_t from, uint32_t nr);
/* Makes a job to be begun when the end of an upload is published, or NULL: no memory.  parts: those that
 * stay. */
struct gc_job *gc_upload_job(const uint8_t id[CHUNK_ID_BYTES], const struct store_part_ref *parts,
			     uint32_t nr);
/* Makes one for the end of a bucket; its name, without type byte. */
struct gc_job *gc_bucket_job(const uint8_t *name, size_t len);
/* Begins a job. */
void gc_add(struct vol *vol, struct gc_job *job);
int gc_init(struct vol *vol);
void gc_fini(struct vol *vol);

#endif
