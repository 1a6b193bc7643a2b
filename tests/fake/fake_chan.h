/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel with scripted results: implements all of chan.h without verbs, for the unit tests and the
 * simulation of the layers above (xfer, req).  Link tests/fake/fake_chan.c ahead of chan.a.
 *
 * Client memory is an array that the test names (fake_chan_window()); without one, bytes are only counted.  A
 * push is copied, and a pull is filled in, when the operation *completes*, and a pull poisons its buffer when
 * it is posted: a layer that touches a buffer too early moves wrong bytes.  Completions are delivered from
 * chan_poll(), in posting order, unless the test holds them back; then fake_chan_complete() and its brothers
 * deliver on the spot, in any order, as if from chan_poll(). One thread.  chan_params.rdma and .conf may be
 * NULL; .timers too (then lost operations end with fake_chan_release()).
 */
#ifndef GANTRY_TESTS_FAKE_CHAN_H
#define GANTRY_TESTS_FAKE_CHAN_H

#include "chan/chan.h"

/* --- client memory --- */

/* Window byte addr..addr+len of the client is mem[0..len).  Up to 64; an address in none of them is only
 * counted. */
void fake_chan_window(struct chan *ch, uint64_t addr, void *mem, size_t len);

/* --- leases --- */

/* How many leases may be out at once (default 8); one more waits. */
void fake_chan_channels(struct chan *ch, int nr);
/* New leases answer < 0 (reason for -EOPNOTSUPP) until set back to 0. */
void fake_chan_decline(struct chan *ch, int result, enum chan_reason reason);
/* true: no lease is granted at once; they wait for fake_chan_grant() or fake_chan_deny() (an address handle
 * being made). */
void fake_chan_hold_leases(struct chan *ch, bool hold);
/* Grants (denies) the oldest waiting lease: its done() runs now.  False: none waits. */
bool fake_chan_grant(struct chan *ch);
bool fake_chan_deny(struct chan *ch, int result, enum chan_reason reason);

/* --- connections of RC (fake_chan_conn.c) --- */

#define FAKE_CONNS_MAX 65536
/* From now on rc: tokens are served. Their ids begin with the number of the connection, in 8 hexadecimal digits; the other digits
 * are 0. */
void fake_chan_serve_rc(struct chan *ch);
/* Makes a connection: its number, from 1 on. */
uint32_t fake_chan_join(struct chan *ch);
/* Is there such a connection? It is gone when a lease of it has failed. */
bool fake_chan_joined(const struct chan *ch, uint32_t nr);
/* How many connections are leased. */
int fake_chan_conns_leased(const struct chan *ch);

/* --- operations --- */

/* true: operations stay outstanding until the test ends them. */
void fake_chan_hold(struct chan *ch, bool hold);
/* Operations outstanding, in posting order over all leases. */
int fake_chan_op_nr(const struct chan *ch);
struct chan_op *fake_chan_op(struct chan *ch, int i);

/* Ends one: good; bad with this status (its lease is in error then, and the lease's other operations flush);
 * or never: a lost one ends 100 ms (params.timers) after chan_lease_fail(), or with fake_chan_release(). */
void fake_chan_complete(struct chan *ch, struct chan_op *op);
void fake_chan_fail(struct chan *ch, struct chan_op *op, enum rdma_status status);
void fake_chan_lose(struct chan *ch, struct chan_op *op);
/* Ends all that are held, good, in posting order; returns how many. */
int fake_chan_complete_all(struct chan *ch);
/* A bad operation moved this many of its bytes before it failed (default 0). */
void fake_chan_torn(struct chan *ch, uint32_t bytes);

/* The nth operation from now (1: the next) ends with status; WCS_NR: it is lost. */
void fake_chan_script(struct chan *ch, uint64_t nth, enum rdma_status status);
/* Seeded: of each million operations so many fail, so many are lost; each poll delivers a random part, in
 * random order over the leases. */
void fake_chan_random(struct chan *ch, uint64_t seed, uint32_t fail_ppm, uint32_t lose_ppm);

/* true: flushes (after an error or chan_lease_fail()) are held back too, until fake_chan_release(). */
void fake_chan_hold_flush(struct chan *ch, bool hold);
/* Delivers held flushes and lost operations of failed leases; returns how many. */
int fake_chan_release(struct chan *ch);

/* --- what happened --- */

struct fake_chan_stats {
	uint64_t pushes, pulls;           /* posted */
	uint64_t push_bytes, pull_bytes;  /* completed well */
	uint64_t failed, flushed, lost;   /* operations */
	uint64_t refused;                 /* posted on a lease that was in error already */
	uint64_t leases, leases_failed;   /* granted; ended in error */
	int outstanding, outstanding_max; /* operations */
	int leased, waiting;
};
const struct fake_chan_stats *fake_chan_stats(const struct chan *ch);

#endif
