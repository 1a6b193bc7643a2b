/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store with one port on the calling thread, and the loop that turns it: what bench/objects.c,
 * bench/fill.c, bench/list.c and bench/disks.c stand on.
 */
#ifndef GANTRY_BENCH_PORT_H
#define GANTRY_BENCH_PORT_H

#include "base/buf.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "store/store.h"

#define BENCH_BUCKET "bench"

struct port {
	struct store *st;
	struct ring *ring;
	struct mailbox mb;
	struct timers timers;
	struct store_port *p;
};

/* What else is asked of stores that are made or opened from now on; all 0 at first. */
struct port_wishes {
	unsigned copies;    /* of the bucket that is made; 0: one */
	uint64_t move_rate; /* bytes a second from disk to disk; 0: as many as can be */
	uint64_t heal_after_ns;
	const char *accept_missing; /* a disk's UUID; NULL: none may be missing */
};
extern struct port_wishes port_wishes;

/* A new store in directory dir, which is made if need be, with the bucket BENCH_BUCKET.  Here and below dir may be a list with commas, of
 * directories and devices: a store of so many disks, each of that size. */
void port_format(const char *dir, uint64_t size_bytes);
/* Opens it.  bufs may be NULL; its memory is registered. */
void port_open(struct port *p, const char *dir, uint64_t size_bytes, uint64_t index_bytes,
	       const struct bufpool *bufs);
void port_close(struct port *p);
/* Starts a PUT of what the commit has inline. */
void port_put_inline(struct port *p, struct store_put *put, const struct store_key *key,
		     const struct store_commit *commit);
/* One turn of the loop; waits when there is nothing to do. */
void port_turn(struct port *p);
/* rm -rf */
void port_remove(const char *dir);

#endif
