/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge - produces a page of a list whose entries are in several sources, such as the engines of a set or the
 * shards of a bucket. Runs on the port's thread. For back ends.
 */
#ifndef GANTRY_MODEL_MERGE_H
#define GANTRY_MODEL_MERGE_H

#include "store/store.h"

#include <stdatomic.h>

/* A caller that waits until all current changes of a bucket's keys have ended. Embedded by the caller. */
struct merge_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	_Atomic unsigned left;
	/* result, valid when go() runs: 0; -EAGAIN: the state of a key is unknown; -ENOMEM: some keys could
	 * not be watched */
	_Atomic int error;
};

struct merge_of {
	struct store_port *port; /* port on which the page is requested */
	struct mailbox *mb;      /* mailbox of the port */
	unsigned *inflight;      /* counter of the pages in progress at the port, owned by the port */
	int nr;                  /* number of sources of the list */
	int first; /* for list(): number, among the caller's sources, of the source that is listed as i = 0 */
	/* Counter that is incremented when entries begin to move from one source to another, and when the
	 * move has ended. Between these two increments both sources list the entries. If the counter has
	 * changed during a page, all sources are read again. NULL: entries do not move. */
	_Atomic uint64_t *changes;
	/* current number of sources. If the number grows during a page, the page ends with -EAGAIN. NULL: the
	 * number is constant */
	const int *nr_now;
	/* Lists entries of the i-th source into ls, as store_list() lists a store; ls has the prefix, the
	 * delimiter and the limit of the page. */
	int (*list)(const struct merge_of *of, int i, struct store_list *ls);
	/* Waits until the keys listed so far have no change in progress. Returns 1 if no change is in
	 * progress; 0 if w->go() follows; -errno. NULL: the list does not wait. */
	int (*settle)(const struct merge_of *of, struct merge_wait *w);
	const char *bucket; /* name of the bucket, for settle() */
	uint16_t bucket_len;
	void *cookie;
	/* called at the end of the page, before done() of the list; NULL: nothing is called */
	void (*over)(void *cookie);
};

/* Returns memory in which list() can store the slots to request from a source. The memory is valid as long as
 * `ls`, the argument of list(). */
struct store_slots *merge_slots(struct store_list *ls);

/* Produces a page as store_list() does. Returns the result of a start function (store.h). After -EAGAIN (no
 * memory) of->over() does not run. */
int merge_list(const struct merge_of *of, struct store_list *ls);

/* Returns the length of the common prefix that stands for a name in a list; 0: the name is an entry itself. */
size_t merge_common(const struct store_list *ls, const char *name, size_t len);
/* Returns true if ls->after is a common prefix: the page begins after all names with this prefix. */
bool merge_after_common(const struct store_list *ls);

#endif
