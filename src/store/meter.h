/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter - the progress of a start, a check or a format of disks, or of the check of a store on a cluster: for each
 * disk or pool the step, and the amount of its work that is done, in bytes or in the units of the step. One thread at
 * a time counts for a disk; any thread may read the counts meanwhile. A NULL disk is allowed and counts nothing.
 */
#ifndef GANTRY_STORE_METER_H
#define GANTRY_STORE_METER_H

#include "base/progress.h"
#include "set/map/disk_table.h"

#include <stdatomic.h>

enum meter_step {
	METER_WAITS,     /* the disk is opened, or waits for other disks */
	METER_INDEX,     /* the snapshot of the index is read */
	METER_LOG,       /* the log is read */
	METER_SPACE,     /* the space of objects is marked as used; counts records */
	METER_CHECK,     /* the objects are compared with their checksums */
	METER_COPIES,    /* the disk is searched for copies of damaged objects; counts objects */
	METER_MAKE,      /* the files of a new disk are written */
	METER_INDEX_ALL, /* the records of an index on a cluster are read; counts records */
	METER_NAMES,     /* the names of data objects of a cluster are checked; counts objects */
	METER_STEPS
};

struct meter_disk {
	char path[256];
	_Atomic bool is_named; /* path is complete */
	_Atomic int step;
	_Atomic uint64_t done, total; /* total 0: unknown */
	_Atomic bool is_estimate;     /* the total is an estimate */
};

struct store_meter {
	int disks; /* number of disks of the store, for the text; 0: unknown */
	_Atomic int nr;
	/* 1 + index of the disk that the text is about, owned by the thread that reads; 0: none */
	int shown;
	struct meter_disk disk[STORE_DISKS_MAX];
};

/* Returns the counts of the disk with this path, which are made if there are none. Returns NULL if m is NULL,
 * or has no room. */
struct meter_disk *meter_of(struct store_meter *m, const char *path);
/* Begins a step of a disk, with the amount of its work; 0: unknown. */
void meter_step(struct meter_disk *d, enum meter_step step, uint64_t total);
/* Counts work of the step. */
void meter_add(struct meter_disk *d, uint64_t amount);
/* Estimates the amount of work of a step from the counted work, which is `part` of `all` units of the step. */
void meter_estimate(struct meter_disk *d, uint64_t part, uint64_t all);
/* Fills in the state of the disk that has the most work left; this disk stays the one that is shown until its
 * step ends. Returns false if no disk is in a step with work. Called by one thread at a time. */
bool meter_view(struct store_meter *m, struct progress_view *v);

#endif
