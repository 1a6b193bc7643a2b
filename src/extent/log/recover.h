/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover - starting: snapshot, log, tail, damage or end, space, a new epoch (docs/engine.md section 5).
 *
 * Blocking, one thread, nobody else is there yet.  --fsck uses it with check_only or repair.
 */
#ifndef GANTRY_EXTENT_LOG_RECOVER_H
#define GANTRY_EXTENT_LOG_RECOVER_H

#include "extent/log/rec_mem.h"

struct disk;
struct replay; /* a start between reading and writing */
struct ring;
struct vol;

struct recover_report {
	uint64_t cut_records, blocks, snap_records;
	void (*say)(void *cookie, const char *line); /* fsck; NULL: the log */
	void *cookie;
	bool check_only; /* writes nothing */
	bool repair;     /* damage is cut */
	bool was_damaged;
};

/*
 * Recovers vol, whose disk is open, as far as that changes nothing on it; rep is kept until recover_free(), which is
 * due whatever was returned.  0, -ENOTRECOVERABLE: damaged, or -errno; the reason is in err.
 */
int recover(struct vol *vol, struct ring *r, struct recover_report *rep, struct replay **ret_replay,
	    char *err, size_t err_len);
/* Returns the least number that the start of this disk may have. */
uint64_t recover_start_no(const struct replay *rp);
/* Does the rest, with check_only still without a change: afterwards it may be served.  Any thread, once recover()
 * returned 0. */
int recover_begin(struct replay *rp, uint64_t start_no, struct ring *r, char *err, size_t err_len);
/* Frees it.  NULL is fine. */
void recover_free(struct replay *rp);

/* ---- report.c ---- */

/* Says a line to fsck's caller, or the log. */
void report(struct recover_report *rep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- verify.c: data against its record ---- */

/* Reads the data of a record and checks it.  entries: NULL when they lie in the map.  0, -EBADMSG
 * (differs), -EIO and the like, -ENOMEM. */
int verify_data(struct disk *d, struct ring *r, const struct rec_view *v, const uint64_t *entries);
/* Reads a map extent and checks it; *ret_entries is to be freed with sync_free(). */
int verify_map(struct disk *d, struct ring *r, const struct rec_view *v, void **ret_entries);

/* ---- records.c: all of the index ---- */

/* Calls fn for every record of the index whose key has that type byte (0: any), in key order; stops at
 * the first that is not 0 and returns it. */
int each_record(struct vol *vol, uint8_t type,
		int (*fn)(void *cookie, const uint8_t *key, size_t len, struct rec *r), void *cookie);
/* Frees what records hold outside of the index's memory; before the index goes. */
void records_drop_outside(struct vol *vol);

#endif
