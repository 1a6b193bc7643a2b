/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks in memory: engines of a set that have a placement map (store/ops.h, struct store_member_ops), for tests that run in one
 * thread and are replayed from a seed.
 *
 * A disk is known by its path, and stays when its engine stops.  Engines have no thread: mem_disks_step() does one of the
 * operations that were started, at random.  Every change is flushed when it is done, and none is half done.
 */
#ifndef TESTS_FAKE_MEM_DISKS_H
#define TESTS_FAKE_MEM_DISKS_H

#include "store/store.h"

/* The engine: disks.engine of struct store_conf. */
extern const struct store_ops mem_engine_ops;

/* Forgets all disks, none of which is open, and begins with that seed. */
void mem_disks_begin(uint64_t seed);
/* Does one of the operations that were started on some disk that does not hang.  False: none was found that does not wait for others. */
bool mem_disks_step(void);

/* ---- what a disk suffers; by path, of one that is there ---- */

/* Takes a disk away from the next start on, or brings it back. */
void mem_disk_absent(const char *path, bool absent);
/* Fails after so many further changes (0: now): changes are -EROFS from then on, and the set is told.  Until the next start; of a disk
 * that is not in use, or that is not made yet, those of the next life count. */
void mem_disk_fail(const char *path, unsigned changes);
/* Lets reads of bytes fail with -EIO, or not. */
void mem_disk_unreadable(const char *path, bool unreadable);
/* Lets a disk take no records of other disks (-ENOMEM), or again. */
void mem_disk_refuse(const char *path, bool refuse);
/* Puts a placement map on a disk that is not in use. */
void mem_disk_put_map(const char *path, const struct disk_table *t);
/* Lets nothing that was started end, or goes on. */
void mem_disk_hang(const char *path, bool hang);
/* Lets no write of a placement map end while the disk serves, or no change at all, which a gate is not, or no change of a record that is not
 * the disk's own, or all again. */
enum mem_hold { HOLD_NOTHING, HOLD_MAPS, HOLD_CHANGES, HOLD_FOREIGN };
void mem_disk_hold(const char *path, enum mem_hold what);
/* Tells whether something waits for the end of a hold. */
bool mem_disk_holds_any(const char *path);
/* Tells whether a disk, which is in use, refuses changes of a key, as another disk is about to get it. */
bool mem_disk_is_frozen(const char *path, const char *bucket, const char *key);
/* Makes a disk, which is in use, so small that so many bytes are free. */
void mem_disk_leave_free(const char *path, uint64_t bytes);
/* Damages the bytes of an object: reads are -EBADMSG.  0 or -ENOENT. */
int mem_disk_spoil(const char *path, const char *bucket, const char *key);
/* Damages a part of the first upload of that key. */
int mem_disk_spoil_part(const char *path, const char *bucket, const char *key, uint32_t number);

/* ---- power cuts and old copies ---- */

/* What all disks have at one moment, or one of them. */
struct mem_image;
/* Copies what all disks have, or (path) one of them. */
struct mem_image *mem_disks_copy(const char *path);
/* Puts back what disks had, none of which is open.  The image stays the caller's. */
void mem_disks_put_back(const struct mem_image *image);
/* Frees it; NULL is fine. */
void mem_image_free(struct mem_image *image);
/* Returns how many changes disks have made since mem_disks_begin(). */
uint64_t mem_disks_changes(void);
/* Keeps an image after so many further changes, which mem_disks_cut() gives: as if the power had gone then.  None is kept yet. */
void mem_disks_cut_after(uint64_t changes);
/* Tells whether that image was taken. */
bool mem_disks_is_cut(void);
/* Returns that image, which is the caller's; NULL: there were not so many changes.  None is kept any more. */
struct mem_image *mem_disks_cut(void);

/* ---- what a disk has ---- */

/* Tells whether a disk has something of a store. */
bool mem_disk_is_made(const char *path);
/* Tells whether a disk was taken away. */
bool mem_disk_is_absent(const char *path);
/* Tells whether a disk is in use. */
bool mem_disk_is_open(const char *path);
/* Tells whether a disk, which is in use, has failed. */
bool mem_disk_has_failed(const char *path);
/* Returns the UUID of a disk. */
const uint8_t *mem_disk_uuid(const char *path);
/* Returns the placement map on a disk. */
const struct disk_table *mem_disk_table(const char *path);
/* Tells whether a disk has an object; *ret_version is its version.  Damaged bytes count. */
bool mem_disk_has(const char *path, const char *bucket, const char *key, uint64_t *ret_version);
/* Counts the objects and uploads on a disk, copies and leftovers included. */
unsigned mem_disk_records(const char *path);
/* Tells whether two disks have the same of all keys with two copies of which both have one: the first difference is printed.  Of a key
 * that only one of them has nothing is said. */
bool mem_disks_same(const char *a, const char *b);

#endif
