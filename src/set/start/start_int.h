/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a set whose engines have a table of disks: one path for every start, whatever was before (docs/set.md).
 *
 *	open all, who are they? --> the newest table --> enough of its members? --> recover --> start number on all
 *	--> buckets as on the head --> a table of those present, on all --> serve
 *
 * Up to the start number nothing is written.  A disk that fails on the way counts as missing from there on, and all of
 * it begins anew without it.  Ordered by the table, not by the configuration.
 */
#ifndef GANTRY_SET_START_INT_H
#define GANTRY_SET_START_INT_H

#include "set/start/start.h"

#include <pthread.h>

#define AGAIN 1 /* what is done begins again, with a disk less */

/* One of the configured disks. */
struct disk {
	struct start *of;
	struct store_conf conf;
	struct store *st; /* NULL: it is not there */
	struct store_member id;
	int number; /* in the table */
	uint64_t start_no;
	bool is_out; /* it failed in an attempt before */
	bool is_behind;
	bool is_drained;
	struct store *drained; /* one that does not know yet that it is drained, until it does */
	int error;             /* why it is not there */
	char err[512];
	pthread_t thread;
	bool has_thread;
};

struct start {
	const struct store_conf *conf;
	const struct store_member_ops *ops;
	struct quota_book *quotas;
	struct disk_table table; /* the newest */
	struct disk_table next;  /* what it will be with those present */
	struct store_slots lost; /* places that begin empty, as a disk is given up */
	uint64_t present;        /* bitmap of numbers */
	uint64_t behind;         /* those that are older copies of themselves */
	uint64_t forgotten;      /* those that are given up */
	uint64_t start_no;
	bool has_two; /* there may be buckets with two copies */
	char *err;
	size_t err_len;
	int nr;
	struct disk disk[STORE_DISKS_MAX];
};

static inline int
start_count(uint64_t bitmap)
{
	return __builtin_popcountll(bitmap);
}

/* ---- discover.c ---- */

/* Writes why the start is refused, and returns error. */
int start_refuse(struct start *s, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns the path of a disk. */
const char *start_path(const struct disk *d);
/* Runs fn() for each disk that is there (all: for each that did not fail yet), all at the same time. */
void start_each(struct start *s, bool all, int (*fn)(struct disk *d));
/* Opens a disk.  For start_each(). */
int start_open_one(struct disk *d);
/* Tells whether the disk has said who it is. */
bool start_is_known(const struct disk *d);
/* Refuses the start with the error of a disk, and names the disk if the reason does not. */
int start_refuse_disk(struct start *s, const struct disk *d);
/* Tells whether it is known that there is no store on a disk. */
bool start_is_unmade(const struct disk *d);
/* Tells whether no disk has anything of a store, as far as can be seen, and none is configured as one that may be missing. */
bool start_is_none_made(const struct start *s);
/* Says what is wrong with one where none is made.  Where it could be looked at it can be made; where others are a store nobody should make one
 * of it, and lose them. */
void start_say_unmade(const struct disk *d, char *err, size_t err_len);
/* Tells whether disks that are not there may be missing.  0 or -errno. */
int start_check_opened(struct start *s);
/* Returns a disk of the store that most of the disks are of. */
const struct disk *start_find_store(const struct start *s);
/* Tells whether all disks are of one store.  0 or -errno. */
int start_check_store(struct start *s);

/* ---- numbers.c ---- */

/* Leaves disks alone that were drained, and know that they are no members: a start before they are taken off the configuration goes well. */
int start_leave_drained(struct start *s);
/* Finds the newest placement map, which counts whole (M1).  0 or -errno. */
int start_find_table(struct start *s);
/* Finds the number of each disk, and which are there.  0 or -errno. */
int start_find_numbers(struct start *s);

/* ---- missing.c ---- */

/* Returns the configured disk that a missing one is, as far as that can be known: it says so, or no other is left for it.  NULL: it is
 * not known; *ret_unknown are then those of which it may be one. */
const struct disk *start_absent_of(const struct start *s, int number, int *ret_unknown);
/* Adds to a text. */
void start_add(char *to, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Adds where a missing disk was looked for, and why it is not there. */
void start_add_why(const struct start *s, int number, char *to, size_t len);
/* Returns the number of a member as /disks has it: in the order of the table's, which may have gaps. */
int start_shown_number(const struct start *s, int number);
/* Tells whether enough members are there (M2, M3), or are allowed to be missing.  0 or -errno. */
int start_check_missing(struct start *s);
/* Finds those that are to be given up.  0 or -errno. */
int start_find_forgotten(struct start *s);

/* ---- judge_start.c ---- */

/* Says how large the disks are, by number. */
void start_sizes(const struct start *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Takes from a placement map what is not there, or is an older copy. */
void start_lose(const struct start *s, struct disk_table *t);
/* Judges what was opened: 0, or why there is no start. */
int start_judge(struct start *s);

/* ---- begin_disks.c ---- */

/* Returns the number of the head, which has what counts of buckets: the lowest that took part in the newest table. */
int start_find_head(const struct start *s);
/* Recovers a disk.  For start_each(). */
int start_recover_one(struct disk *d);
/* Writes the placement map to a disk.  For start_each(). */
int start_set_table_one(struct disk *d);
/* Has a disk serve.  For start_each(). */
int start_serve_one(struct disk *d);
/* Takes disks that failed for missing from here on.  0; AGAIN: one did; or -errno, if it is the only one of the store. */
int start_drop_failed(struct start *s);
/* Writes a start number above all that any disk knows to all of them, before a table has it (M5). */
int start_begin_all(struct start *s);
/* Writes the placement map of this start to all disks (M6, M7).  The table of one disk needs no successor; of several, one that is missing may have a newer
 * one, which was begun in its last start and would count when it is back, and who is put back from an older copy is known by it (M41). */
int start_write_table(struct start *s);

/* ---- align_disks.c ---- */

/* Returns the disk that has that number, or NULL. */
struct disk *start_disk_at(struct start *s, int number);
/* Makes the buckets of all disks those of the head (M30), and removes foreign records.  0; AGAIN: a disk failed; -errno. */
int start_align_all(struct start *s);

/* ---- align_copies.c ---- */

/* Makes second copies equal to first ones.  0, AGAIN or -errno. */
int start_align_copies(struct start *s);

/* ---- start.c ---- */

/* Stops all engines. */
void start_stop_all(struct start *s);
/* Makes a start of these disks.  0 or -ENOMEM. */
int start_new(const struct store_conf *conf, struct start **ret_start, char *err, size_t err_len);

#endif
