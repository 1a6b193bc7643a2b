/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_int - the steps of the start of a set whose engines store a placement map. Every start takes the same
 * steps, whatever happened before (docs/set.md):
 *
 * 1. Open all disks and identify them.
 * 2. Find the newest map, and check that enough of its members are present.
 * 3. Recover each disk.
 * 4. Write a start number to all disks.
 * 5. Make the buckets equal to those of the metadata leader.
 * 6. Write a map of the present disks to all of them.
 * 7. Serve.
 *
 * Nothing is written to a disk before step 4. A disk that fails during a step counts as missing from there
 * on, and the start begins again without it. The order of disks is that of the map, not that of the
 * configuration.
 */
#ifndef GANTRY_SET_START_INT_H
#define GANTRY_SET_START_INT_H

#include "set/start/start.h"
#include "base/advice.h"
#include "base/disk_name.h"
#include "base/refuse.h"
#include "store/record.h"

#include <pthread.h>

#define AGAIN 1 /* result of a step: a disk has failed, and the start must begin again without it */

/* One of the configured disks. */
struct disk {
	struct start *of;
	struct store_conf conf;
	struct store *st; /* open disk; NULL: the disk is not present */
	struct store_member id;
	int number;  /* number of the disk in the map */
	int counter; /* index of the engine's counter in the quota ledger, from start_recover_one() on */
	uint64_t start_no;
	bool is_out; /* true: the disk failed in an earlier attempt */
	bool is_behind;
	bool is_drained;
	/* open disk that was drained, if the map without the disk must still be written to it; NULL: no such
	 * write is left */
	struct store *drained;
	/* entry of the record of the store, for a member that the configuration does not name; NULL: the
	 * configuration names the disk */
	const struct store_record_disk *unnamed;
	struct store_disk_conf unnamed_conf;
	int error; /* negative errno: reason why the disk is not present */
	char err[1200];
	/* step of start_each(), and its thread */
	int (*step)(struct disk *d);
	pthread_t thread;
	bool has_thread;
};

struct start {
	const struct store_conf *conf;
	const struct store_member_ops *ops;
	struct quota_book *quotas;
	struct disk_table table; /* newest map found on the disks */
	struct disk_table next;  /* map that this start writes, with the present disks */
	struct store_slots lost; /* partitions that begin empty, because a disk is forgotten */
	uint64_t present;        /* bitmap of the numbers of present disks */
	uint64_t behind;         /* bitmap of stale disks, which are older copies of themselves */
	uint64_t forgotten;      /* bitmap of disks that this call removes from the map (--forget) */
	uint64_t start_no;
	bool has_two; /* true: buckets with two copies may exist */
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

/* Writes the reason for refusing the start to s->err, and returns error. */
#define start_refuse(s, error, ...) refuse((s)->err, (s)->err_len, error, __VA_ARGS__)
/* Refuses the start with a reason and the remedies for it. path: the disk to name in the remedies. Returns
 * error. */
int start_refuse_with(struct start *s, int error, enum advice_id advice, const char *path, const char *fmt,
		      ...) __attribute__((format(printf, 5, 6)));
/* Returns the path of a disk in the configuration. */
const char *start_path(const struct disk *d);
/* Runs fn() in parallel for each present disk; all: for each disk that has not failed yet, present or not. */
void start_each(struct start *s, bool all, int (*fn)(struct disk *d));
/* Opens a disk, as a step of start_each(). */
int start_open_one(struct disk *d);
/* Returns true if the disk has been identified. */
bool start_is_known(const struct disk *d);
/* Refuses the start with the error of a disk. The message names the disk. */
int start_refuse_disk(struct start *s, const struct disk *d);
/* Returns true if a disk was examined and has no store. */
bool start_is_unmade(const struct disk *d);
/* Returns true if the configured disks have no store yet: every disk was examined and has no data of a store,
 * and the configuration names no disk that may be missing (store.accept_missing). */
bool start_is_none_made(const struct start *s);
/* Returns true if a disk has, or had, a store. */
bool start_was_made(const struct disk *d);
/* Returns true if the path of a disk could be examined, and has no store. */
bool start_is_bare(const struct disk *d);
/* Writes to err that a disk has no store, and how the operator can proceed. Formatting is proposed only if no
 * disk has a store, because a format destroys an existing store. */
void start_say_unmade(const struct disk *d, char *err, size_t err_len);
/* Checks that a start is permitted without the disks that are not present. Returns 0 or -errno. */
int start_check_opened(struct start *s);
/* Returns a disk of the store to which most of the present disks belong. */
const struct disk *start_find_store(const struct start *s);
/* Checks that all disks belong to one store. Returns 0 or -errno. */
int start_check_store(struct start *s);

/* ---- missing.c ---- */

/* Returns the configured disk that is the missing member `number`. The disk is known by its UUID, or if
 * exactly one disk is absent and `number` is the only member without a known disk. Returns NULL if the disk
 * is unknown; *ret_unknown is then the number of absent disks that may be the member. */
const struct disk *start_absent_of(const struct start *s, int number, int *ret_unknown);
/* Appends formatted text to `to`, whose size is len. */
void start_add(char *to, size_t len, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Appends the path of a missing disk and the reason why it is not present. */
void start_add_why(const struct start *s, int number, char *to, size_t len);
/* Writes the share of the store's objects, in per cent, that is lost with the disks of the bitmap `disks`. */
void start_say_loss(const struct start *s, uint64_t disks, char *text, size_t len);
/* Writes the name of a missing member, with the path of the record if store.disks has none for it, and returns text. */
const char *start_name(const struct start *s, int number, char text[DISK_NAME_BYTES]);
/* Checks that enough members are present (M2, M3), and that the missing members are allowed to be missing.
 * Returns 0 or -errno. */
int start_check_missing(struct start *s);
/* Finds the disks that are to be forgotten according to the configuration. Returns 0 or -errno. */
int start_find_forgotten(struct start *s);

/* ---- judge_start.c ---- */

/* Opens all configured disks, then the members that are in the record of the store and not in the configuration. Adds
 * these members to the disks of the start, whether present or not. */
void start_open_all(struct start *s);
/* Writes the sizes of the present disks in bytes to ret_size[], by number in the map; 0: the disk is not
 * present. */
void start_sizes(const struct start *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Removes missing and stale disks from a placement map. */
void start_lose(const struct start *s, struct disk_table *t);
/* Decides whether the start is allowed with the opened disks. Returns 0, or the error with which the start is
 * refused. */
int start_judge(struct start *s);

/* ---- begin_disks.c ---- */

/* Returns the number of the metadata leader, whose buckets are authoritative: the lowest number among the
 * disks that took part in the newest map. */
int start_find_head(const struct start *s);
/* Recovers a disk, as a step of start_each(). */
int start_recover_one(struct disk *d);
/* Writes the placement map to a disk, as a step of start_each(). */
int start_set_table_one(struct disk *d);
/* Makes a disk serve, as a step of start_each(). */
int start_serve_one(struct disk *d);
/* Marks failed disks as missing from now on. Returns 0: no disk has failed; AGAIN: a disk has failed; -errno:
 * the only disk of the store has failed. */
int start_drop_failed(struct start *s);
/* Writes a start number, greater than all known start numbers, to all disks, before a map contains this
 * number (M5). */
int start_begin_all(struct start *s);
/* Writes the placement map of this start to all disks (M6, M7). A store of one disk keeps its map. With
 * several disks there are two reasons for a new map: a missing disk may have a map of an earlier start whose
 * write was not completed, and this map would be the newest one when the disk returns; and the new map
 * identifies stale disks (M41). */
int start_write_table(struct start *s);

/* ---- align_disks.c ---- */

/* Returns the present disk with this number, or NULL. */
struct disk *start_disk_at(struct start *s, int number);
/* Makes the buckets of all disks equal to those of the metadata leader (M30), and removes foreign records.
 * Returns 0, AGAIN if a disk failed, or -errno. */
int start_align_all(struct start *s);

/* Makes secondary copies that are in sync equal to the primary copies. Returns 0, AGAIN or -errno. */
int start_align_copies(struct start *s);

/* ---- start.c ---- */

/* Stops the engines of all disks. */
void start_stop_all(struct start *s);
/* Allocates the state of a start of the configured disks. Returns 0 or -ENOMEM. */
int start_new(const struct store_conf *conf, struct start **ret_start, char *err, size_t err_len);

#endif
