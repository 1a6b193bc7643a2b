/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - what is done with the disks of a set before it serves, and instead of that: start, look, forget, fsck, format.
 *
 * Knows engines and the placement map, and nothing of the set that serves afterwards: it says what it found.  Any thread, one call at
 * a time.  docs/set.md is the reference.
 */
#ifndef GANTRY_SET_START_H
#define GANTRY_SET_START_H

#include "set/map/disk_table.h"
#include "store/ops.h"

#define SET_NOWHERE 255 /* in place of an engine: its disk is missing */

struct quota_book;

/* One disk of the store. */
struct set_member {
	uint8_t engine; /* SET_NOWHERE: it is missing */
	char uuid[UUID_TEXT];
	char path[256]; /* of one that is missing, where it is known */
};

/* The result of a start.  The caller owns engines and quotas, and stops the former before it frees the latter. */
struct set_found {
	struct quota_book *quotas; /* each engine is a counter of it */
	struct disk_table table;   /* that is effective */
	uint8_t store_uuid[UUID_BYTES];
	uint64_t start_no; /* of this start */
	bool has_two;      /* there may be buckets with two copies */
	int nr;            /* engines */
	struct store *engine[STORE_DISKS_MAX];
	uint8_t number[STORE_DISKS_MAX];    /* of the engines' disks in the table */
	uint8_t engine_of[STORE_DISKS_MAX]; /* by number in the table; SET_NOWHERE: none */
	int missing_nr;                     /* members of the table that are not there */
	int member_nr;
	struct set_member member[STORE_DISKS_MAX];
	uint64_t drained; /* bitmap of member[]: disks that learned in this start that they are drained */
};

/* ---- start.c ---- */

int set_check_conf(const struct store_conf *conf, char *err, size_t err_len);
/* Returns what the i-th engine is made from. */
struct store_conf set_engine_conf(const struct store_conf *conf, int i);
/* Starts the engines of a set that have a table.  0, or -errno with the reason in err. */
int set_start_disks(const struct store_conf *conf, struct set_found *ret_found, char *err, size_t err_len);
int set_forget(const struct store_conf *conf, char *said, size_t said_len);
int set_look(const struct store_conf *conf, char *err, size_t err_len);
int set_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
	     void *cookie);
int set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len);

/* ---- align_buckets.c ---- */

/*
 * Makes the buckets of all engines those of the first, with their attributes and bounds.  A bucket of the same name that
 * was made at another time is another one: what is in it goes.  Before there is a port.
 */
int set_align_buckets(struct store *const *engine, int nr, char *err, size_t err_len);

/* ---- find_two.c ---- */

/* Finds a bucket with two copies that an engine has, a store of its own.  1: *ret_name is one; 0: it has none; -errno. */
int set_find_two(struct store *engine, char ret_name[STORE_BUCKET_MAX + 1]);

/* Less than this no engine can begin with. */
#define SET_SHARE_MIN ((uint64_t)4 << 20)

/* Returns how much of what all disks share is one's: by its size, and beside much larger ones what it needs all the same. */
static inline uint64_t
set_share_of(uint64_t all, uint64_t size_bytes, uint64_t total_bytes)
{
	uint64_t least = all < SET_SHARE_MIN ? all : SET_SHARE_MIN, share = all;

	if (total_bytes)
		share = (uint64_t)((long double)all * (long double)size_bytes / (long double)total_bytes);
	return share < least ? least : share;
}

#endif
