/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - a page of a list whose entries are in several sources: the engines of a set, the shards of a
 * bucket.
 *
 * On the port's thread. For back ends.
 */
#ifndef GANTRY_STORE_MERGE_H
#define GANTRY_STORE_MERGE_H

#include "store/store.h"

#include <stdatomic.h>

/* A caller that waits until all changes of keys of a bucket that are in progress now are done.  Embedded by the caller. */
struct merge_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	_Atomic unsigned left;
	_Atomic int error; /* after go(): -EAGAIN: one of the keys is in doubt; -ENOMEM: not all are known */
};

struct merge_of {
	struct store_port *port; /* port of the page */
	struct mailbox *mb;      /* of the port */
	unsigned *inflight;      /* of the port: counts the page while it is in progress */
	int nr;                  /* number of sources */
	int first;               /* first argument of list() */
	/* NULL, or a counter that is incremented when an entry appears in another source before it disappears
	 * from the first: then all sources are asked again. Meanwhile both may have the entry. */
	_Atomic uint64_t *changes;
	/* nr at that time: a page of fewer sources ends with -EAGAIN; NULL: nr is constant */
	const int *nr_now;
	/* Lists the i-th source, as store_list() does, with prefix, delimiter and max. */
	int (*list)(const struct merge_of *of, int i, struct store_list *ls);
	/* NULL, or waits until the keys listed so far have no change in progress: 1: none has; 0: w->go()
	 * will run; -errno. */
	int (*settle)(const struct merge_of *of, struct merge_wait *w);
	const char *bucket; /* for settle() */
	uint16_t bucket_len;
	void *cookie;
	void (*over)(void *cookie); /* called at the end, before done(); NULL: no action */
};

/* Returns memory for the slots requested from a source, valid as long as the argument of list(). */
struct store_slots *merge_slots(struct store_list *ls);

/* Produces a page, as store_list(). -EAGAIN: no memory; over() does not run then. */
int merge_list(const struct merge_of *of, struct store_list *ls);

#endif
