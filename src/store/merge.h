/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - a page of a list whose entries lie in several sources: the engines of a set, the shards of a bucket.
 *
 * On the port's thread.  For back ends.
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
	struct store_port *port; /* whose page it is */
	struct mailbox *mb;      /* of the port */
	unsigned *inflight;      /* of the port: counts the page while it is under way */
	int nr;                  /* sources */
	int first;               /* list()'s */
	/* NULL, or a number that grows when what one source had shows in another and not yet no more in the first: what was asked before
	 * is asked anew.  Meanwhile both may have it. */
	_Atomic uint64_t *changes;
	const int
		*nr_now; /* nr as it is by then: a page of fewer sources ends with -EAGAIN; NULL: it stays */
	/* Lists the i-th source, as store_list() does: prefix, delimiter and max are heeded. */
	int (*list)(const struct merge_of *of, int i, struct store_list *ls);
	/* NULL, or waits until what was listed so far is settled: 1: it is; 0: w->go() will run; -errno. */
	int (*settle)(const struct merge_of *of, struct merge_wait *w);
	const char *bucket; /* for settle() */
	uint16_t bucket_len;
	void *cookie;
	void (*over)(void *cookie); /* at the end, before done(); NULL: nothing is to be done */
};

/* Returns memory for the slots that a source is asked for, kept as long as what list() was given. */
struct store_slots *merge_slots(struct store_list *ls);

/* Gives a page, as store_list() does.  -EAGAIN: no memory; over() does not run then. */
int merge_list(const struct merge_of *of, struct store_list *ls);

#endif
