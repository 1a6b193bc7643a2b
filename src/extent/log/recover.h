/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover - starting: snapshot, log, tail, damage or end, space, a new epoch (docs/engine.md section 3).
 *
 * Blocking, one thread, before all other threads of the volume. --fsck uses recover() with check_only or
 * repair.
 */
#ifndef GANTRY_EXTENT_LOG_RECOVER_H
#define GANTRY_EXTENT_LOG_RECOVER_H

#include "extent/log/rec_mem.h"

struct disk;
struct meter_disk;
struct ring;
struct store_damage;
struct vol;

struct recover_report {
	uint64_t cut_records;
	/* receives the lines of fsck; NULL: the lines are logged */
	void (*say)(void *cookie, const char *line);
	void *cookie;
	bool check_only; /* true: the recovery writes nothing */
	bool repair;     /* damage is cut */
	bool was_damaged;
	unsigned lost_files; /* number of segments whose files lack bytes of records */
	/* list of damaged objects, and the path under which they are added; NULL: each is reported at once */
	struct store_damage *damage;
	const char *disk;
	struct meter_disk *meter; /* counts of the progress (store/meter.h); NULL: none */
};

/*
 * Recovers vol, whose disk is open, without a change of the disk; rep must exist until recover_free(), which
 * the caller calls after any result. Returns 0, -ENOTRECOVERABLE: damaged, or -errno; the reason is in
 * vol->disk.why. *ret_start_no: the smallest number that the start of this disk may have.
 */
int recover(struct vol *vol, struct ring *r, struct recover_report *rep, uint64_t *ret_start_no);
/* Completes the recovery, with check_only without a change of the disk: afterwards the volume may be
 * served. Any thread, after recover() returned 0. */
int recover_begin(struct vol *vol, uint64_t start_no, struct ring *r);
/* Frees the state of the recovery, if there is one. */
void recover_free(struct vol *vol);

/* ---- report.c ---- */

/* Passes a line to fsck's caller, or logs it. */
void report(struct recover_report *rep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- verify.c: comparison of data with its record ---- */

/* Reads the data of a record and checks it. entries: NULL if they are in the map. Returns 0, -EBADMSG
 * (differs), -EIO and the like, -ENOMEM. */
int verify_data(struct disk *d, struct ring *r, const struct rec_view *v, const uint64_t *entries);
/* Returns true if a CRC block belongs to a record of this size and checksum. Any thread. */
bool crc_block_fits(const uint64_t *crc, uint64_t size_bytes, uint64_t crc64);
/* Checks len bytes, which begin with a granule, against the checksums of the granules. Returns 0 or -EBADMSG. Any thread. */
int check_granules(const void *bytes, uint64_t len, const uint64_t *crc);
/* Reads and checks a map; the caller frees *ret_entries with free(). Returns 0, -EBADMSG if the map is
 * damaged, or another -errno. */
int verify_map(struct disk *d, struct ring *r, const struct rec_view *v, void **ret_entries);

/* ---- lost.c ---- */

/* Returns true if bytes of a record, or of its map, are missing in the files of the disk. Entries in a map
 * that is not loaded are not checked. */
bool disk_lost(const struct disk *d, const struct rec_view *v);

/* ---- records.c: iteration over the index ---- */

/* Calls fn for every record of the index whose key has that type byte (0: any), in key order; stops at the
 * first result of fn that is not 0 and returns that result. */
int each_record(struct vol *vol, uint8_t type,
		int (*fn)(void *cookie, const uint8_t *key, size_t len, struct rec *r), void *cookie);
/* Frees the memory of records outside of the index's memory, before the index is freed. */
void records_drop_outside(struct vol *vol);

#endif
