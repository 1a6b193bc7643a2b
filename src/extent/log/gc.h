/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc - removes records that no longer have an owner, with a log record for each removal.
 *
 * Jobs are added by ports (gc_orphans()), by the leader when it publishes a block, and by a start; the
 * leader packs the removals after the other records of its block. Without memory for a job the records
 * remain until the next start.
 *
 * Threads: gc_orphans(), gc_upload_job(), gc_bucket_job() on any; the other functions belong to the leader.
 */
#ifndef GANTRY_EXTENT_LOG_GC_H
#define GANTRY_EXTENT_LOG_GC_H

#include "extent/log/commit.h"

struct dead;
struct vol;

/* Records to be removed, one after the other: the chunks or parts of a dead manifest; the chunks or parts of one id;
 * or the uploads and attributes that a removed bucket has left. */
struct gc_job {
	struct gc_job *next;
	uint8_t type; /* KEY_CHUNK or KEY_PART */
	/* dead record of the manifest; NULL: the job is allocated for an operation, and is freed with
	 * free() */
	struct dead *dead;
	uint8_t id[CHUNK_ID_BYTES];
	uint32_t at, nr; /* of an id: indexes from `at` to nr - 1 are removed; of a manifest: its entries */
	/* one bit for each part number that is skipped, in the memory after the job; NULL: no part is
	 * skipped */
	const uint8_t *skip;
	/* the removed bucket, in the memory after the job; NULL: another kind of job */
	struct gc_bucket *bucket;
};

struct gc_bucket {
	uint64_t before; /* version below which records are removed */
	uint16_t at_len, name_len;
	uint8_t name[STORE_BUCKET_MAX];
	uint8_t at[KEY_BYTES_MAX]; /* key at which the removal continues */
};

/* The removal of one record, a commit of the leader. */
struct gc_commit {
	struct vol *vol;
	struct commit c;
	uint8_t key[KEY_BYTES_MAX];
};
#define GC_COMMITS 64

/* Packs removals while the block has room. */
void gc_pack(struct vol *vol);
/* Removes the records of chunks (type KEY_CHUNK) or parts (KEY_PART) with this id and the indexes from `from`
 * to nr - 1, which have no owner and will not get one. */
void gc_orphans(struct vol *vol, uint8_t type, const uint8_t id[CHUNK_ID_BYTES], uint32_t from, uint32_t nr);
/* Makes a job that removes the parts of an upload, except `parts`, when the end of the upload is published.
 * Returns NULL if there is no memory. */
struct gc_job *gc_upload_job(const uint8_t id[CHUNK_ID_BYTES], const struct store_part_ref *parts,
			     uint32_t nr);
/* Makes a job that removes the remaining records of a bucket, with versions below `before` (0: below that of the commit with
 * which the job begins). name: without type byte. Returns NULL if there is no memory. */
struct gc_job *gc_bucket_job(const uint8_t *name, size_t len, uint64_t before);
/* Begins a job. */
void gc_add(struct vol *vol, struct gc_job *job);
int gc_init(struct vol *vol);
void gc_fini(struct vol *vol);

#endif
