/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start - operations on the disks of a set before it serves, and instead of that: start, check, forget, fsck,
 * format.
 *
 * Uses engines and the placement map, and does not know the set that serves afterwards: its result is struct
 * set_found. Any thread, one call at a time. docs/set.md is the reference.
 */
#ifndef GANTRY_SET_START_H
#define GANTRY_SET_START_H

#include "set/map/disk_table.h"
#include "store/ops.h"

#define SET_NOWHERE 255 /* in place of an engine: the disk is missing */

struct quota_book;

/* One disk of the store. */
struct set_member {
	uint8_t engine; /* index of its engine; SET_NOWHERE: missing */
	char uuid[UUID_TEXT];
	char path[256]; /* path of a missing disk, if known */
};

/* The result of a start. The caller owns engines and quotas, and stops the former before it frees the
 * latter. */
struct set_found {
	struct quota_book *quotas; /* usage table, in which each engine has a counter */
	struct disk_table table;   /* the effective map */
	uint8_t store_uuid[UUID_BYTES];
	uint64_t start_no; /* of this start */
	bool has_two;      /* there may be buckets with two copies */
	int nr;            /* number of engines */
	struct store *engine[STORE_DISKS_MAX];
	uint8_t number[STORE_DISKS_MAX];    /* numbers of the engines' disks in the map */
	uint8_t engine_of[STORE_DISKS_MAX]; /* by number in the map; SET_NOWHERE: none */
	int missing_nr;                     /* members of the map that are not present */
	int member_nr;
	struct set_member member[STORE_DISKS_MAX];
	uint64_t drained; /* bitmap of member[]: disks that learned in this start that they are drained */
};

/* ---- start.c ---- */

int set_check_conf(const struct store_conf *conf, char *err, size_t err_len);
/* Returns the configuration of the i-th engine. */
struct store_conf set_engine_conf(const struct store_conf *conf, int i);
/* Starts the engines of a set that have a map. 0, or -errno with the reason in err. */
int set_start_disks(const struct store_conf *conf, struct set_found *ret_found, char *err, size_t err_len);
int set_forget(const struct store_conf *conf, char *said, size_t said_len);
int set_look(const struct store_conf *conf, char *err, size_t err_len);
int set_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	     void *cookie);
int set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len);

/* ---- align_buckets.c ---- */

/*
 * Makes the buckets of all engines equal to those of the first, with their attributes and limits. A bucket of
 * the same name with another creation time is another bucket: its contents are removed. Before there is a
 * port.
 */
int set_align_buckets(struct store *const *engine, int nr, char *err, size_t err_len);

/* ---- find_two.c ---- */

/* Finds a bucket with two copies on an engine. 1: *ret_name is its name; 0: there is none; -errno. */
int set_find_two(struct store *engine, char ret_name[STORE_BUCKET_MAX + 1]);

/* Minimum share of an engine. */
#define SET_SHARE_MIN ((uint64_t)4 << 20)

/* Returns an engine's part of memory shared by all disks: by size, but at least the minimum. */
static inline uint64_t
set_share_of(uint64_t all, uint64_t size_bytes, uint64_t total_bytes)
{
	uint64_t least = all < SET_SHARE_MIN ? all : SET_SHARE_MIN, share = all;

	if (total_bytes)
		share = (uint64_t)((long double)all * (long double)size_bytes / (long double)total_bytes);
	return share < least ? least : share;
}

#endif
