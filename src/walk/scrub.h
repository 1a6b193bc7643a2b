/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrub: a paced walk over all objects that reads every byte, so that what rots on the disk is found
 * before a client asks for it (scrub.c).  Core 0 has one; everything on its thread, but for what is public.
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

/* What operators see of it. */
enum scrub_state { SCRUB_IDLE, SCRUB_RUNNING, SCRUB_PAUSED };
struct scrub_info {
	int state;
	/* since the start: walks that came to their end; objects that did not match a checksum, and that the
	 * disk would not read */
	uint64_t walks, objects, bytes, damaged, unreadable;
	uint64_t walk_objects, walk_bytes, walk_errors; /* of the walk under way, or the last one */
	/* wall clock: when the latest began, and when one last came to its end; 0: none */
	uint64_t started_ns, finished_ns;
	uint64_t known_bad; /* objects that the last whole walk found bad, or this one if they are more */
};

/* What other threads read: struct scrub_info says what each is.  Written by the scrub alone. */
struct scrub_public {
	_Atomic int state;
	_Atomic uint64_t walks, objects, bytes, damaged, unreadable;
	_Atomic uint64_t walk_objects, walk_bytes, walk_errors, last_errors;
	_Atomic uint64_t started_ns, finished_ns;
};

struct scrub_env {
	struct store_port *store;
	struct bufpool *bufs; /* small ones are taken, while most of them are free */
	struct timers *timers;
	struct scrub_public *pub; /* zeroed, kept by the caller */
};

/* Makes one that walks interval_ns after the end of the last walk (0: only when it is asked), at rate bytes a
 * second, > 0.  0 or -ENOMEM. */
int scrub_new(const struct scrub_env *env, uint64_t interval_ns, uint64_t rate, struct scrub **ret_scrub);
/* Takes another interval and rate from now on.  NULL is fine, here and below. */
void scrub_set(struct scrub *s, uint64_t interval_ns, uint64_t rate);
/* Begins nothing more, until it may again; a walk goes on where it was. */
void scrub_pause(struct scrub *s, bool on);
/* Begins a walk now.  0; -EALREADY: one is under way; -EBUSY: paused; -ENOSYS: there is no store. */
int scrub_begin(struct scrub *s);
/* Ends the walk.  0, or -EALREADY: there is none; -ENOSYS. */
int scrub_cancel(struct scrub *s);
/* Returns how many operations of the store are in flight. */
int scrub_busy(const struct scrub *s);
/* Frees it; no operation may be in flight. */
void scrub_free(struct scrub *s);

/* Copies what others see of it.  Any thread. */
void scrub_get_info(const struct scrub_public *pub, struct scrub_info *ret_info);

#endif
