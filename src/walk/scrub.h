/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrub: a paced scan of all objects that reads every byte, so that damage on the disk is found before a
 * client reads it (scrub.c). Core 0 has the scrub. All functions run on its thread, except those on struct
 * scrub_public.
 */
#ifndef GANTRY_WALK_SCRUB_H
#define GANTRY_WALK_SCRUB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bufpool;
struct scrub;
struct store_port;
struct timers;

/* State of the scrub as shown to operators. */
enum scrub_state { SCRUB_IDLE, SCRUB_RUNNING, SCRUB_PAUSED };
struct scrub_info {
	int state;
	/* counters since the start: complete scans; objects and bytes read; objects that did not match a
	 * checksum; objects that the disk could not read */
	uint64_t walks, objects, bytes, damaged, unreadable;
	/* counters of the current scan; if no scan is in progress, of the last one */
	uint64_t walk_objects, walk_bytes, walk_errors;
	/* times in ns since 1970: start of the latest scan, and end of the last complete one; 0: none */
	uint64_t started_ns, finished_ns;
	/* number of damaged objects that the last complete scan found, or the current scan if it has found
	 * more */
	uint64_t known_bad;
};

/* The state of the scrub that other threads read; struct scrub_info describes its members. Written by the
 * scrub alone. */
struct scrub_public {
	_Atomic int state;
	_Atomic uint64_t walks, objects, bytes, damaged, unreadable;
	_Atomic uint64_t walk_objects, walk_bytes, walk_errors, last_errors;
	_Atomic uint64_t started_ns, finished_ns;
};

struct scrub_env {
	struct store_port *store;
	struct bufpool *bufs; /* pool of small buffers, which are taken only while most of them are free */
	struct timers *timers;
	struct scrub_public *pub; /* state for other threads; the caller owns it and has zeroed it */
};

/* Makes a scrub that starts a scan interval_ns after the end of the last scan (0: only on request), and reads
 * at most `rate` (> 0) bytes per second. Returns 0 or -ENOMEM. */
int scrub_new(const struct scrub_env *env, uint64_t interval_ns, uint64_t rate, struct scrub **ret_scrub);
/* Changes the arguments interval_ns and rate of scrub_new() from now on. s may be NULL in this function and
 * the following ones. */
void scrub_set(struct scrub *s, uint64_t interval_ns, uint64_t rate);
/* Pauses or resumes the scan at its current position. */
void scrub_pause(struct scrub *s, bool on);
/* Begins a scan now. Returns 0; -EALREADY: a scan is in progress; -EBUSY: the scrub is paused; -ENOSYS: there
 * is no store. */
int scrub_begin(struct scrub *s);
/* Ends the scan. Returns 0; -EALREADY: no scan is in progress; -ENOSYS: there is no store. */
int scrub_cancel(struct scrub *s);
/* Returns the number of store operations in flight. */
int scrub_busy(const struct scrub *s);
/* Frees a scrub without operations in flight. */
void scrub_free(struct scrub *s);

/* Copies the public state. Any thread may call this function. */
void scrub_get_info(const struct scrub_public *pub, struct scrub_info *ret_info);

#endif
