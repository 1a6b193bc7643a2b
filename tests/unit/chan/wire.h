/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel on a device, a DC target in another process, and the core's loop around them: what test_wire.c
 * works with.  Included once.
 */
#ifndef GANTRY_TESTS_CHAN_WIRE_H
#define GANTRY_TESTS_CHAN_WIRE_H

#include "tests/fake/peer.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/chan.h"
#include "tests/fake/wait.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASES 64
#define OPS 16
#define WINDOW (4u << 20)
#define DC_KEY 0xffeeddccull

struct lease {
	struct chan_lease ls;
	struct chan_op op[OPS];
	int heard, op_done;
};

static struct {
	struct rdma *rd;
	struct chan *ch;
	struct conf_rdma conf;
	struct mailbox mb;
	struct timers timers;
	struct bufpool bufs;
	uint64_t map[BUF_REGIONS_MAX];
	struct peer peer;
	struct lease l[LEASES];
	int order[LEASES], order_nr;
	unsigned turns;
	int fds[CHAN_FDS_MAX], fd_nr;
} f;

/* --- what a device does only when it is ill: two of its library's calls, bent --- */

static _Atomic bool events_are_fatal, errors_are_ignored;
static _Atomic int destroyed;

/* Calls that do not return until the test lets them: of changes of the state of an RC queue pair (enum ibv_qp_state), before and
 * after their effect, and of the close of a device. Other queue pairs, as those of the probe for DC, are not held. */
static _Atomic int hold_before, hold_after;
static _Atomic bool hold_close, held;

static inline void
hold(const _Atomic int *state, enum ibv_qp_state at)
{
	while (at && atomic_load(state) == (int)at) {
		atomic_store(&held, true);
		usleep(1000);
	}
}

int
ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	int (*next)(struct ibv_context *, struct ibv_async_event *);
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_get_async_event");
	r = next(ctx, event);
	if (r == 0 && event->event_type == IBV_EVENT_PORT_ERR && atomic_load(&events_are_fatal))
		event->event_type = IBV_EVENT_DEVICE_FATAL;
	return r;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int);
	int r;

	if (attr->qp_state == IBV_QPS_ERR && atomic_load(&errors_are_ignored))
		return 0;
	*(void **)&next = dlsym(RTLD_NEXT, "ibv_modify_qp");
	if (qp->qp_type == IBV_QPT_RC)
		hold(&hold_before, attr->qp_state);
	r = next(qp, attr, mask);
	if (qp->qp_type == IBV_QPT_RC)
		hold(&hold_after, attr->qp_state);
	return r;
}

int
ibv_close_device(struct ibv_context *ctx)
{
	int (*next)(struct ibv_context *);

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_close_device");
	while (atomic_load(&hold_close)) {
		atomic_store(&held, true);
		usleep(1000);
	}
	return next(ctx);
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*next)(struct ibv_qp *);
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_destroy_qp");
	r = next(qp);
	atomic_fetch_add(&destroyed, 1);
	return r;
}

/* --- a core's loop, in small --- */

static inline void
watch_fd(void *cookie, int fd)
{
	f.fds[f.fd_nr++] = fd;
}

static inline bool
unwatch_fd(void *cookie, int fd)
{
	for (int i = 0; i < f.fd_nr; i++) {
		if (f.fds[i] == fd)
			f.fds[i--] = f.fds[--f.fd_nr];
	}
	return true;
}

static inline void
turn(void)
{
	struct pollfd p[CHAN_FDS_MAX + 1] = { { .fd = f.mb.efd, .events = POLLIN } };
	int fds[CHAN_FDS_MAX], n = f.fd_nr, found;
	uint64_t now, next;

	found = mailbox_run(&f.mb, 0) + timers_run(&f.timers, clock_ns()) + chan_poll(f.ch);
	/* Every now and then it sleeps as a core does: arm, poll once more, wait. */
	if (found || ++f.turns % 64)
		return;
	chan_arm(f.ch);
	if (chan_poll(f.ch) || !mailbox_sleep(&f.mb))
		return;
	memcpy(fds, f.fds, sizeof fds);
	for (int i = 0; i < n; i++)
		p[i + 1] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	now = clock_ns();
	next = timers_next(&f.timers);
	poll(p, (nfds_t)n + 1,
	     next == UINT64_MAX            ? 20
	     : next <= now                 ? 0
	     : next - now > 20 * NS_PER_MS ? 20
					   : 1);
	mailbox_wake(&f.mb);
	for (int i = 0; i < n; i++) {
		if (p[i + 1].revents)
			chan_event(f.ch, fds[i]);
	}
}

/* Turns until cond. */
#define turn_until(cond)                                                                                     \
	do {                                                                                                 \
		wait_until(cond)                                                                             \
			turn();                                                                              \
	} while (0)

static inline void
on_lease(struct chan_lease *ls)
{
	struct lease *l = container_of(ls, struct lease, ls);

	l->heard = 1;
	f.order[f.order_nr++ % LEASES] = (int)(l - f.l);
}

static inline void
on_op(struct chan_op *op)
{
	container_of(op->lease, struct lease, ls)->op_done++;
}

static inline int
get(int i, const struct token *tok)
{
	memset(&f.l[i], 0, sizeof f.l[i]);
	f.l[i].ls.done = on_lease;
	f.l[i].ls.client = (uint8_t)i; /* each is another client's, which has a few handles made at a time */
	for (int k = 0; k < OPS; k++)
		f.l[i].op[k].done = on_op;
	return chan_lease_get(f.ch, &f.l[i].ls, tok, NULL);
}

/* Gets a lease, waiting as long as it takes. */
static inline void
must_get(int i, const struct token *tok)
{
	int r = get(i, tok);

	assert_true(r >= 0);
	if (r == 0)
		turn_until(f.l[i].heard);
	assert_int_equal(f.l[i].ls.result, 0);
}

static inline void
put(int i)
{
	turn_until(f.l[i].ls.outstanding == 0);
	chan_lease_put(f.ch, &f.l[i].ls);
}

static inline struct rdma_rail_stats *
stats(void)
{
	return rdma_rail_stats(rdma_rail(f.rd, 0));
}

/* One operation, to its end; its result. */
static inline int
one(bool write, const struct token *tok, struct buf *b, uint32_t off, uint32_t len, uint64_t at)
{
	int r;

	must_get(0, tok);
	(write ? chan_push : chan_pull)(f.ch, &f.l[0].ls, &f.l[0].op[0], b, off, len, at);
	turn_until(f.l[0].op_done);
	r = f.l[0].op[0].result;
	put(0);
	return r;
}

/* After whatever went wrong: the channels come back, and a good request works. */
static inline void
next_works(void)
{
	struct buf *b = bufpool_get(&f.bufs, BUF_SMALL);

	if (!f.peer.mem)
		assert_int_equal(peer_start(&f.peer, WINDOW, DC_KEY), 0);
	memset(b->mem, 0x5a, 1000);
	memset(f.peer.mem, 0, 1000);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(one(true, &f.peer.tok, b, 0, 1000, 0), 0);
		assert_memory_equal(f.peer.mem, b->mem, 1000);
	}
	bufpool_put(&f.bufs, b);
	turn_until(stats()->eps.recovering == 0);
	assert_int_equal(stats()->eps.free, stats()->eps.all);
}

/* --- life --- */

/* An instance of rdma with the buffers as its regions, and a chan on it: f.rd, f.ch. */
static inline int
open_chan(void)
{
	char err[256];
	int r;

	r = rdma_open(&f.conf, &f.rd, err, sizeof err);
	for (int i = 0; r == 0 && i < f.bufs.region_nr; i++)
		r = rdma_region_add(f.rd, f.bufs.region[i].iov_base, f.bufs.region[i].iov_len, &f.map[i], err,
				    sizeof err);
	if (r < 0) {
		fprintf(stderr, "%s\n", err);
		return r;
	}
	return chan_new(&(struct chan_params){ .rdma = f.rd,
					       .conf = &f.conf,
					       .mb = &f.mb,
					       .timers = &f.timers,
					       .core_nr = 1,
					       .pieces_max = OPS,
					       .queue_max = 56,
					       .watch_fd = watch_fd,
					       .unwatch_fd = unwatch_fd,
					       .region_map = f.map,
					       .region_nr = f.bufs.region_nr },
			&f.ch);
}

static inline int
open_all(void)
{
	f.conf.mode = RDMA_AUTO;
	f.conf.dc_key = DC_KEY;
	f.conf.channels = 8;
	f.conf.max_sge = 10;
	f.conf.traffic_class = 96;
	f.conf.hop_limit = 64;
	f.conf.timeout = 16; /* a try takes 268 ms: a dead target is known after 0.8 s */
	f.conf.retry_cnt = 3;
	f.conf.rnr_retry = 7;
	f.conf.delay_mode = DELAY_BATCH;
	f.conf.delay_interval_ns = 5000;
	f.conf.qp_reset_on_failure = true;
	f.conf.poll_batch = 16;
	f.conf.ah_cache = 16;
	f.conf.paths = 1; /* so many handles, then */
	if (bufpool_init(&f.bufs, 24u << 20) < 0 || mailbox_init(&f.mb) < 0 || open_chan() < 0)
		return 1;
	if (rdma_rail_nr(f.rd) == 0) {
		printf("no RDMA device that can do DC: nothing to test with\n");
		return 77;
	}
	return 0;
}

static inline int
setup(void **state)
{
	memset(f.l, 0, sizeof f.l);
	f.order_nr = 0;
	if (!f.peer.mem)
		assert_int_equal(peer_start(&f.peer, WINDOW, DC_KEY), 0);
	memset(f.peer.mem, 0xee, WINDOW);
	return 0;
}

static inline int
teardown(void **state)
{
	for (int i = 0; i < LEASES; i++)
		chan_lease_put(f.ch, &f.l[i].ls);
	return 0;
}

#endif
