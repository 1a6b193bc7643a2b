/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a set whose engines have a table of disks: one path for every start, whatever was before
 * (docs/set.md).
 *
 *	open all, who are they? --> the newest table --> enough of its members? --> recover --> start number on all
 *	--> buckets as on the head --> a table of those present, on all --> serve
 *
 * Up to the start number nothing is written. A disk that fails on the way counts as missing from there on,
 * and all of it begins again without it. Ordered by the table, not by the configuration.
 */
#ifndef GANTRY_SET_START_INT_H
#define GANTRY_SET_START_INT_H

#include "set/start/start.h"
#include "store/record.h"

#include <pthread.h>

#define AGAIN 1 /* the start must begin again, with a disk fewer */

/* One of the configured disks. */
struct disk {
	struct start *of;
	struct store_conf conf;
	struct store *st; /* NULL: not present */
	struct store_member id;
	int number; /* number in the map */
	uint64_t start_no;
	bool is_out; /* failed in a previous attempt */
	bool is_behind;
	bool is_drained;
	struct store *drained; /* a drained disk that does not know it yet, until it does */
	/* a member that the configuration does not name, from the record; NULL: a configured disk */
	const struct store_record_disk *unnamed;
	struct store_disk_conf unnamed_conf;
	int error; /* reason why it is not present */
	char err[512];
	pthread_t thread;
	bool has_thread;
};

struct start {
	const struct store_conf *conf;
	const struct store_member_ops *ops;
	struct quota_book *quotas;
	struct disk_table table; /* the newest map */
	struct disk_table next;  /* the next map, with the present disks */
	struct store_slots lost; /* places that begin empty, because a disk is forgotten */
	uint64_t present;        /* bitmap of numbers */
	uint64_t behind;         /* stale disks: older copies of themselves */
	uint64_t forgotten;      /* disks to be forgotten */
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

/* Writes the reason for refusing the start, and returns error. */
int start_refuse(struct start *s, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Returns the path of a disk. */
const char *start_path(const struct disk *d);
/* Runs fn() for each present disk (all: for each that did not fail yet), all in parallel. */
void start_each(struct start *s, bool all, int (*fn)(struct disk *d));
/* Opens a disk.  For start_each(). */
int start_open_one(struct disk *d);
/* Returns true if the disk has been identified. */
bool start_is_known(const struct disk *d);
/* Refuses the start with the error of a disk, and names the disk if the reason does not. */
int start_refuse_disk(struct start *s, const struct disk *d);
/* Returns true if it is known that a disk has no store. */
bool start_is_unmade(const struct disk *d);
/* Returns true if no disk has any part of a store, as far as can be seen, and none is configured as one that
 * may be missing. */
bool start_is_none_made(const struct start *s);
/* Returns true if the place of a disk could be examined, and has no store. */
bool start_is_bare(const struct disk *d);
/* Writes the problem of a disk without a store. If it could be examined it can be formatted; if the others
 * are a store it must not be made one, which would lose them. */
void start_say_unmade(const struct disk *d, char *err, size_t err_len);
/* Checks that the disks which are not present may be missing. 0 or -errno. */
int start_check_opened(struct start *s);
/* Returns a disk of the store to which most of the disks belong. */
const struct disk *start_find_store(const struct start *s);
/* Checks that all disks belong to one store. 0 or -errno. */
int start_check_store(struct start *s);

/* ---- unnamed.c: members that the configuration does not name ---- */

/* Opens those members of the record that no configured disk is; they become disks of the start, present or not.  After the others
 * are open. */
void start_open_unnamed(struct start *s);
/* Leaves those alone that are no member of the newest map any more. */
void start_leave_unnamed(struct start *s);

/* ---- numbers.c ---- */

/* Leaves drained disks alone that know that they are not members: a start before their removal from the
 * configuration succeeds. */
int start_leave_drained(struct start *s);
/* Finds the newest placement map, which is valid as a whole (M1). 0 or -errno. */
int start_find_table(struct start *s);
/* Finds the number of each disk, and the present numbers. 0 or -errno. */
int start_find_numbers(struct start *s);

/* ---- missing.c ---- */

/* Returns the configured disk that a missing member is, if known: by its UUID, or because no other is left.
 * NULL: unknown; *ret_unknown are then the candidates. */
const struct disk *start_absent_of(const struct start *s, int number, int *ret_unknown);
/* Appends to a text. */
void start_add(char *to, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Appends the path of a missing disk, and the reason why it is not present. */
void start_add_why(const struct start *s, int number, char *to, size_t len);
/* Returns the number of a member as in /disks: by the order of the map's numbers, which may have gaps. */
int start_shown_number(const struct start *s, int number);
/* Checks that enough members are present (M2, M3), or are allowed to be missing. 0 or -errno. */
int start_check_missing(struct start *s);
/* Finds the disks to be forgotten. 0 or -errno. */
int start_find_forgotten(struct start *s);

/* ---- judge_start.c ---- */

/* Collects the sizes of the disks, by number. */
void start_sizes(const struct start *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Removes missing and stale disks from a placement map. */
void start_lose(const struct start *s, struct disk_table *t);
/* Decides about the opened disks: 0, or the reason for not starting. */
int start_judge(struct start *s);

/* ---- begin_disks.c ---- */

/* Returns the number of the metadata leader, whose buckets are authoritative: the lowest that took part in
 * the newest map. */
int start_find_head(const struct start *s);
/* Recovers a disk.  For start_each(). */
int start_recover_one(struct disk *d);
/* Writes the placement map to a disk.  For start_each(). */
int start_set_table_one(struct disk *d);
/* Makes a disk serve. For start_each(). */
int start_serve_one(struct disk *d);
/* Marks failed disks as missing from here on. 0; AGAIN: there is one; or -errno, if it is the only one of the
 * store. */
int start_drop_failed(struct start *s);
/* Writes a start number above all known ones to all disks, before a map carries it (M5). */
int start_begin_all(struct start *s);
/* Writes the placement map of this start to all disks (M6, M7). A store of one disk keeps its map. With
 * several disks, a missing one may have a newer map, begun in its last start, which would be valid when it
 * returns; and the map identifies stale disks (M41). */
int start_write_table(struct start *s);

/* ---- align_disks.c ---- */

/* Returns the disk with that number, or NULL. */
struct disk *start_disk_at(struct start *s, int number);
/* Makes the buckets of all disks equal to those of the metadata leader (M30), and removes foreign records. 0;
 * AGAIN: a disk failed; -errno. */
int start_align_all(struct start *s);

/* ---- align_copies.c ---- */

/* Makes secondary copies equal to the primary ones. 0, AGAIN or -errno. */
int start_align_copies(struct start *s);

/* ---- start.c ---- */

/* Stops all engines. */
void start_stop_all(struct start *s);
/* Prepares a start of these disks. 0 or -ENOMEM. */
int start_new(const struct store_conf *conf, struct start **ret_start, char *err, size_t err_len);

#endif
