/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - operations on the disks of a set that does not serve yet: start, check, forget, fsck and format.
 * The functions use engines and the placement map, and do not depend on the set that serves after the start:
 * the result of a start is struct set_found. Any thread may call them, one call at a time. docs/set.md is the
 * reference.
 */
#ifndef GANTRY_SET_START_H
#define GANTRY_SET_START_H

#include "set/map/disk_table.h"
#include "store/ops.h"

#define SET_NOWHERE 255 /* value in place of an engine's index: the disk is missing */

struct quota_book;

/* A disk of the store, as the start found it. */
struct set_member {
	uint8_t engine; /* index of the disk's engine; SET_NOWHERE: the disk is missing */
	uint8_t number; /* number of the disk in the map; TABLE_NO_DISK: the disk was drained before the start */
	char uuid[UUID_TEXT];
	char path[256]; /* path of a missing disk; empty: unknown */
};

/* The result of a start. The caller owns the engines and the quota ledger, and stops the engines before it
 * frees the ledger. */
struct set_found {
	struct quota_book *quotas; /* quota ledger, in which each engine has a counter */
	struct disk_table table;   /* effective placement map */
	uint8_t store_uuid[UUID_BYTES];
	uint64_t start_no; /* number of this start */
	bool has_two;      /* true: buckets with two copies may exist */
	int nr;            /* number of entries in engine[] and number[] */
	struct store *engine[STORE_DISKS_MAX];
	uint8_t number[STORE_DISKS_MAX];  /* number in the map of each engine's disk */
	uint8_t counter[STORE_DISKS_MAX]; /* index of each engine's counter in the quota ledger */
	/* engine of each disk, by number in the map; SET_NOWHERE: no engine */
	uint8_t engine_of[STORE_DISKS_MAX];
	int missing_nr; /* number of members of the map that are not present */
	int member_nr;
	struct set_member member[STORE_DISKS_MAX];
	/* bitmap of indexes of member[]: drained disks to which this start has written that they are no
	 * longer members */
	uint64_t drained;
};

/* ---- start.c ---- */

int set_check_conf(const struct store_conf *conf, char *err, size_t err_len);
/* Returns the configuration of the i-th engine. */
struct store_conf set_engine_conf(const struct store_conf *conf, int i);
/* Starts the engines of a set whose disks store a map. Returns 0, or -errno with the reason in err. */
int set_start_disks(const struct store_conf *conf, struct set_found *ret_found, char *err, size_t err_len);
int set_forget(const struct store_conf *conf, char *said, size_t said_len);
int set_look(const struct store_conf *conf, char *err, size_t err_len);
int set_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	     void *cookie);
int set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len);

/* ---- align_buckets.c ---- */

/*
 * Makes the buckets of all engines equal to those of the first engine, with their attributes and quotas. A
 * bucket with the same name and another creation time is another bucket: it is removed with its contents.
 * Called before the first port is attached.
 */
int set_align_buckets(struct store *const *engine, int nr, char *err, size_t err_len);

/* Finds a bucket with two copies on an engine. Returns 1 with the name of the bucket in ret_name; 0: no
 * bucket has two copies; or -errno. */
int set_find_two(struct store *engine, char ret_name[STORE_BUCKET_MAX + 1]);

/* Smallest memory share of an engine, in bytes. */
#define SET_SHARE_MIN ((uint64_t)4 << 20)

/* Returns the share of one engine, in bytes, of the memory that all disks share. The share is in proportion
 * to the size of the disk, but at least the minimum. */
static inline uint64_t
set_share_of(uint64_t all, uint64_t size_bytes, uint64_t total_bytes)
{
	uint64_t least = all < SET_SHARE_MIN ? all : SET_SHARE_MIN, share = all;

	if (total_bytes)
		share = (uint64_t)((long double)all * (long double)size_bytes / (long double)total_bytes);
	return share < least ? least : share;
}

#endif
