/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrub: a paced scan of all objects that reads every byte, so that damage on the disk is found before a
 * client reads it (scrub.c). Its findings are for any thread (scrub_public.c).
 */
#ifndef GANTRY_WALK_SCRUB_H
#define GANTRY_WALK_SCRUB_H

#include "walk/walk.h"

#include <stdatomic.h>
#include <stdint.h>

/* State of the scrub as shown to operators. */
struct scrub_info {
	int state; /* enum walk_state */
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
	struct walk_public walk;
	_Atomic uint64_t walks, objects, bytes, damaged, unreadable;
	_Atomic uint64_t walk_objects, walk_bytes, walk_errors, last_errors;
	_Atomic uint64_t started_ns, finished_ns;
};

/* Copies the public state of the scrub. */
void scrub_get_info(const struct walk_public *pub, struct scrub_info *ret_info);
/* Functions of struct walk_ops. */
void scrub_metrics(const struct walk_public *pub, struct stats_out *out);
void scrub_show(const struct walk_public *pub, struct store *store, FILE *out);

#endif
