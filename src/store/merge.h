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

/* A caller that waits for the end of all current changes of a bucket's keys. Embedded by the caller. */
struct merge_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	_Atomic unsigned left;
	/* result after go(): -EAGAIN: the state of a key is unknown; -ENOMEM: not all keys are known */
	_Atomic int error;
};

struct merge_of {
	struct store_port *port; /* port of the page */
	struct mailbox *mb;      /* of the port */
	unsigned *inflight;      /* counter of the port for pages in progress */
	int nr;                  /* number of sources */
	int first;               /* first argument of list() */
	/* NULL, or a counter that is incremented when an entry moves from one source to another, both of
	 * which have the entry for a while: after a change of the counter all sources are asked again. */
	_Atomic uint64_t *changes;
	/* current number of sources: a page of fewer sources ends with -EAGAIN; NULL: nr is constant */
	const int *nr_now;
	/* Lists the i-th source, as store_list() does, with prefix, delimiter and max. */
	int (*list)(const struct merge_of *of, int i, struct store_list *ls);
	/* NULL, or waits until the keys listed so far have no change in progress: 1: no change is in
	 * progress; 0: w->go() follows; -errno. */
	int (*settle)(const struct merge_of *of, struct merge_wait *w);
	const char *bucket; /* for settle() */
	uint16_t bucket_len;
	void *cookie;
	void (*over)(void *cookie); /* called at the end of the page, before done(); NULL: no action */
};

/* Returns memory for the slots requested from a source, valid as long as the argument of list(). */
struct store_slots *merge_slots(struct store_list *ls);

/* Produces a page, as store_list(). -EAGAIN: no memory; over() does not run then. */
int merge_list(const struct merge_of *of, struct store_list *ls);

#endif
