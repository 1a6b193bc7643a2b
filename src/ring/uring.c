/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring on io_uring, with liburing 2.3 and kernels from 6.1 on.
 *
 * One per core (and one for the store while it opens), made and used by that thread alone.  Owns the ring,
 * the registration of the payload regions, and a stash: completions that had to be taken out of the
 * completion queue in the middle of a start call, where done() must not run, because the kernel would not
 * take submissions before.  In ordinary running the stash stays empty and nothing is allocated.
 */
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "ring/ring_int.h"

#include <errno.h>
#include <liburing.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CQ_PER_SQ 4
#define REGIONS_MAX (4 * BUF_REGIONS_MAX)
/* That much payload queued goes to the disk at once: it works while the core goes on with the rest of its
 * turn, checksums above all.  Smaller than that, a system call of its own costs more than it gives. */
#define SUBMIT_BYTES ((size_t)512 << 10)

#ifdef __SANITIZE_THREAD__
/* The kernel may map the memory of one thread's new ring where another thread's ring was. liburing maps and unmaps without the
 * C library, so the thread sanitizer does not see it, and takes the two uses of the address for a race: this orders them. */
static atomic_uint unmapped;
#define ABOUT_TO_UNMAP() ((void)atomic_fetch_add_explicit(&unmapped, 1, memory_order_release))
#define HAVE_MAPPED() ((void)atomic_fetch_add_explicit(&unmapped, 0, memory_order_acquire))
#else
#define ABOUT_TO_UNMAP() ((void)0)
#define HAVE_MAPPED() ((void)0)
#endif

struct stashed {
	uint64_t user_data;
	int res;
	uint32_t flags;
};

struct uring {
	struct ring ring;
	struct io_uring io;
	size_t queued_bytes; /* of reads and writes that are prepared and not submitted */
	bool multi_poll, multi_accept;
	bool restricted;
	unsigned looked; /* position in the completion queue up to which uring_first() has looked */

	struct iovec region[REGIONS_MAX];
	int region_nr; /* 0: nothing registered */

	struct stashed *stash;
	size_t stash_nr, stash_cap;
};

static struct uring *
uring_of(struct ring *r)
{
	return container_of(r, struct uring, ring);
}

/* ---- set-up ---- */

/* What we would like, and what to leave out first where the kernel says no.  A task-run flag alone is
 * refused, so each row is a whole set. */
static const struct {
	unsigned flags;
	const char *name;
} setups[] = {
	{ IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		  IORING_SETUP_SUBMIT_ALL,
	  "single-issuer defer-taskrun taskrun-flag submit-all" },
	{ IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
	  "single-issuer defer-taskrun submit-all" },
	{ IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		  IORING_SETUP_SUBMIT_ALL,
	  "single-issuer coop-taskrun taskrun-flag submit-all" },
	{ IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
	  "coop-taskrun taskrun-flag submit-all" },
	{ IORING_SETUP_SUBMIT_ALL, "submit-all" },
	{ 0, "none" },
};

static const uint8_t opcodes[] = { IORING_OP_READ,        IORING_OP_WRITE,       IORING_OP_READ_FIXED,
				   IORING_OP_WRITE_FIXED, IORING_OP_FSYNC,       IORING_OP_POLL_ADD,
				   IORING_OP_ACCEPT,      IORING_OP_ASYNC_CANCEL };
static const uint8_t registers[] = { IORING_REGISTER_BUFFERS,    IORING_UNREGISTER_BUFFERS,
				     IORING_REGISTER_PROBE,      IORING_REGISTER_RING_FDS,
				     IORING_UNREGISTER_RING_FDS, IORING_REGISTER_ENABLE_RINGS };

/* A ring that can only do what this file does: a daemon taken over gets no openat, no socket, no splice
 * through it. */
static int
restrict_ring(struct uring *u)
{
	struct io_uring_restriction res[sizeof opcodes + sizeof registers + 1];
	unsigned n = 0;

	memset(res, 0, sizeof res);
	for (size_t i = 0; i < sizeof opcodes; i++, n++) {
		res[n].opcode = IORING_RESTRICTION_SQE_OP;
		res[n].sqe_op = opcodes[i];
	}
	for (size_t i = 0; i < sizeof registers; i++, n++) {
		res[n].opcode = IORING_RESTRICTION_REGISTER_OP;
		res[n].register_op = registers[i];
	}
	res[n].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
	res[n++].sqe_flags = IOSQE_ASYNC;
	return io_uring_register((unsigned)u->io.ring_fd, IORING_REGISTER_RESTRICTIONS, res, n);
}

static int
try_setup(struct uring *u, unsigned entries, unsigned flags)
{
	struct io_uring_params p = { .flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |
					      IORING_SETUP_R_DISABLED,
				     .cq_entries = CQ_PER_SQ * entries };
	int rc = io_uring_queue_init_params(entries, &u->io, &p);

	if (rc < 0)
		return rc;
	HAVE_MAPPED();
	/* The kernel counts two kinds of workers; which of them flushes and by_worker get differs from kernel to
	 * kernel.  Refused: as many as there are processes allowed. */
	io_uring_register_iowq_max_workers(&u->io, (unsigned[2]){ RING_WORKERS, RING_WORKERS });
	u->restricted = restrict_ring(u) == 0;
	rc = io_uring_register((unsigned)u->io.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	if (rc < 0) {
		ABOUT_TO_UNMAP();
		io_uring_queue_exit(&u->io);
	}
	return rc;
}

/* Multishot poll came with 5.13, as the tags of registered buffers did; multishot accept with 5.19, as
 * IORING_OP_SOCKET did. */
static void
probe(struct uring *u)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(&u->io);

	u->multi_poll = u->io.features & IORING_FEAT_RSRC_TAGS;
	u->multi_accept = p && io_uring_opcode_supported(p, IORING_OP_SOCKET);
	io_uring_free_probe(p);
}

static const struct ring_ops uring_ops;

int
uring_new(const struct ring_params *params, struct ring **ret_ring)
{
	unsigned entries = params->entries ? params->entries : 1;
	struct uring *u = calloc(1, sizeof *u);
	const char *name = NULL;
	int rc = -EINVAL;

	if (!u)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof setups / sizeof *setups && rc == -EINVAL; i++) {
		rc = try_setup(u, entries, setups[i].flags);
		name = setups[i].name;
	}
	if (rc < 0) {
		free(u);
		return rc;
	}
	u->ring.ops = &uring_ops;
	probe(u);
	/* Spares a descriptor lookup per system call; where it does not work nothing is lost. */
	io_uring_register_ring_fd(&u->io);
	snprintf(u->ring.describe, sizeof u->ring.describe,
		 "io_uring: %u + %u entries, flags: %s, multishot: %s%s%s, %s", u->io.sq.ring_entries,
		 u->io.cq.ring_entries, name, u->multi_poll ? "poll " : "", u->multi_accept ? "accept" : "",
		 u->multi_poll || u->multi_accept ? "" : "none",
		 u->restricted ? "restricted" : "not restricted");
	*ret_ring = &u->ring;
	return 0;
}

/* What is still in flight names memory that the caller is about to free: ask the kernel to end all of it and
 * wait. */
static void
quiet(struct uring *u)
{
	uint64_t until = clock_ns() + RING_FREE_WAIT_NS;
	struct io_uring_sqe *sqe;
	bool asked = false;

	while (u->ring.inflight && clock_ns() < until) {
		struct __kernel_timespec ts = { .tv_nsec = 10 * NS_PER_MS };
		struct io_uring_cqe *cqe = NULL;
		int rc;

		if (!asked && (sqe = io_uring_get_sqe(&u->io))) {
			io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
			io_uring_sqe_set_data64(sqe, 0);
			asked = true;
		}
		rc = io_uring_submit_and_wait_timeout(&u->io, &cqe, 1, &ts, NULL);
		while (io_uring_peek_cqe(&u->io, &cqe) == 0) {
			if (cqe->user_data && !(cqe->flags & IORING_CQE_F_MORE))
				u->ring.inflight--;
			io_uring_cqe_seen(&u->io, cqe);
		}
		if (rc < 0 && rc != -ETIME && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
			return;
	}
}

static void
uring_free(struct ring *r)
{
	struct uring *u = uring_of(r);

	for (size_t i = 0; i < u->stash_nr; i++)
		r->inflight -= !(u->stash[i].flags & IORING_CQE_F_MORE);
	quiet(u);
	ABOUT_TO_UNMAP();
	io_uring_queue_exit(&u->io);
	free(u->stash);
	free(u);
}

static int
uring_register_regions(struct ring *r, const struct iovec *regions, int nr)
{
	struct uring *u = uring_of(r);
	int rc;

	check(u->region_nr == 0);
	if (nr > REGIONS_MAX)
		return -E2BIG;
	rc = io_uring_register_buffers(&u->io, regions, (unsigned)nr);
	if (rc < 0)
		return rc;
	memcpy(u->region, regions, (size_t)nr * sizeof *regions);
	u->region_nr = nr;
	return 0;
}

/* ---- submitting ---- */

/* Takes every completion out of the kernel's queue without running it. */
static void
stash_all(struct uring *u)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&u->io, &cqe) == 0) {
		if (u->stash_nr == u->stash_cap) {
			size_t cap = u->stash_cap ? 2 * u->stash_cap : u->io.cq.ring_entries;
			struct stashed *more = realloc(u->stash, cap * sizeof *more);

			check(more); /* the ring would lose completions: nothing sensible is left to do */
			u->stash = more;
			u->stash_cap = cap;
		}
		if (cqe->user_data)
			u->stash[u->stash_nr++] = (struct stashed){ cqe->user_data, cqe->res, cqe->flags };
		io_uring_cqe_seen(&u->io, cqe);
	}
}

/* A free submission entry.  When there is none the ring submits; when the kernel wants its completions taken
 * first, they are stashed. */
static struct io_uring_sqe *
get_sqe(struct uring *u)
{
	struct io_uring_sqe *sqe;

	while (!(sqe = io_uring_get_sqe(&u->io))) {
		int rc = io_uring_submit(&u->io);

		if (rc == -EBUSY || rc == -EAGAIN) {
			io_uring_get_events(&u->io);
			stash_all(u);
		} else {
			check(rc >= 0 || rc == -EINTR);
		}
	}
	return sqe;
}

static void
start(struct uring *u, struct ring_op *op, struct io_uring_sqe *sqe, bool multishot)
{
	ring_begin(&u->ring, op, multishot);
	io_uring_sqe_set_data(sqe, op);
	if (op->by_worker)
		sqe->flags |= IOSQE_ASYNC;
}

/* The operation is prepared, and is len bytes of payload. */
static void
submit_if_much(struct uring *u, size_t len)
{
	u->queued_bytes += len;
	if (u->queued_bytes < SUBMIT_BYTES)
		return;
	u->queued_bytes = 0;
	/* Whatever hinders it now: the next turn submits what is left. */
	io_uring_submit(&u->io);
}

static bool
is_fixed(const struct uring *u, const char *buf, size_t len, int region)
{
	const struct iovec *v;

	if (region < 0 || region >= u->region_nr)
		return false;
	v = &u->region[region];
	check(buf >= (char *)v->iov_base && buf + len <= (char *)v->iov_base + v->iov_len);
	return true;
}

static void
uring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	if (is_fixed(u, buf, len, region))
		io_uring_prep_read_fixed(sqe, fd, buf, (unsigned)len, off, region);
	else
		io_uring_prep_read(sqe, fd, buf, (unsigned)len, off);
	start(u, op, sqe, false);
	submit_if_much(u, len);
}

static void
uring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off, int region)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	if (is_fixed(u, buf, len, region))
		io_uring_prep_write_fixed(sqe, fd, buf, (unsigned)len, off, region);
	else
		io_uring_prep_write(sqe, fd, buf, (unsigned)len, off);
	start(u, op, sqe, false);
	submit_if_much(u, len);
}

static void
uring_fdatasync(struct ring *r, struct ring_op *op, int fd)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	start(u, op, sqe, false);
}

static void
uring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	multishot = multishot && u->multi_poll;
	if (multishot)
		io_uring_prep_poll_multishot(sqe, fd, events);
	else
		io_uring_prep_poll_add(sqe, fd, events);
	start(u, op, sqe, multishot);
}

static void
uring_accept(struct ring *r, struct ring_op *op, int listen_fd)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	/* No address is asked for: with multishot one place would serve all of them. */
	if (u->multi_accept)
		io_uring_prep_multishot_accept(sqe, listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	else
		io_uring_prep_accept(sqe, listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	start(u, op, sqe, u->multi_accept);
}

static void
uring_cancel(struct ring *r, struct ring_op *op)
{
	struct uring *u = uring_of(r);
	struct io_uring_sqe *sqe = get_sqe(u);

	io_uring_prep_cancel64(sqe, (uint64_t)(uintptr_t)op, 0);
	io_uring_sqe_set_data64(sqe, 0); /* its own completion tells nothing that op's will not */
}

/* ---- turning ---- */

static int
complete(struct uring *u, const struct stashed *s)
{
	if (!s->user_data)
		return 0;
	ring_complete(&u->ring, (struct ring_op *)(uintptr_t)s->user_data, s->res,
		      s->flags & IORING_CQE_F_MORE);
	return 1;
}

/* Runs what is there now, if it does not take long; what arrives meanwhile is the next turn's. */
static int
uring_reap(struct ring *r)
{
	struct uring *u = uring_of(r);
	uint64_t begun_ns = clock_ns();
	size_t stash_nr = u->stash_nr;
	unsigned ready = io_uring_cq_ready(&u->io);
	struct io_uring_cqe *cqe;
	int n = 0;

	r->first_ns = begun_ns;
	for (size_t i = 0; i < stash_nr; i++) {
		struct stashed s = u->stash[i]; /* done() may make the stash grow, and move */

		n += complete(u, &s);
	}
	if (stash_nr) {
		u->stash_nr -= stash_nr;
		memmove(u->stash, u->stash + stash_nr, u->stash_nr * sizeof *u->stash);
	}
	/* What done() stashed came before anything that is still in the queue. */
	while (ready-- && !u->stash_nr && (!n || clock_ns() - begun_ns < RING_TURN_NS) &&
	       io_uring_peek_cqe(&u->io, &cqe) == 0) {
		struct stashed s = { cqe->user_data, cqe->res, cqe->flags };

		/* Given back first: done() may submit, and the kernel may want the room. */
		io_uring_cqe_seen(&u->io, cqe);
		n += complete(u, &s);
	}
	return n;
}

/* Would entering the kernel without waiting achieve anything?  Without the task-run flag nobody knows. */
static bool
needs_enter(struct uring *u)
{
	unsigned flags = IO_URING_READ_ONCE(*u->io.sq.kflags);

	if (io_uring_sq_ready(&u->io) || flags & IORING_SQ_CQ_OVERFLOW)
		return true;
	return !(u->io.flags & IORING_SETUP_TASKRUN_FLAG) || flags & IORING_SQ_TASKRUN;
}

static int
enter(struct uring *u, uint64_t wait_ns)
{
	struct io_uring_cqe *cqe = NULL;
	struct __kernel_timespec ts;

	u->queued_bytes = 0;
	if (u->stash_nr || io_uring_cq_ready(&u->io))
		wait_ns = 0;
	if (!wait_ns)
		return needs_enter(u) ? io_uring_submit_and_get_events(&u->io) : 0;
	if (wait_ns == UINT64_MAX)
		return io_uring_submit_and_wait(&u->io, 1);
	ts.tv_sec = (long long)(wait_ns / NS_PER_S);
	ts.tv_nsec = (long long)(wait_ns % NS_PER_S);
	return io_uring_submit_and_wait_timeout(&u->io, &cqe, 1, &ts, NULL);
}

/* The completions stay in the queue, where an entry without user data is one that has been run. */
static int
uring_first(struct ring *r)
{
	struct uring *u = uring_of(r);
	struct stashed found[RING_FIRST_MAX];
	struct io_uring_cqe *cqe;
	unsigned head;
	int nr = 0;

	u->queued_bytes = 0;
	/* After an error the next turn enters again. */
	if (needs_enter(u))
		io_uring_submit_and_get_events(&u->io);
	io_uring_for_each_cqe(&u->io, head, cqe)
	{
		const struct ring_op *op = (const struct ring_op *)(uintptr_t)cqe->user_data;

		if (nr == RING_FIRST_MAX)
			break;
		/* Entries before u->looked have been looked at. */
		if ((int)(head - u->looked) < 0 || !op || !op->is_first)
			continue;
		found[nr++] = (struct stashed){ cqe->user_data, cqe->res, cqe->flags };
		cqe->user_data = 0;
	}
	u->looked = head;
	/* done() may submit, and so move completions from the queue to the stash. */
	for (int i = 0; i < nr; i++)
		complete(u, &found[i]);
	return nr;
}

static int
uring_wait(struct ring *r, uint64_t wait_ns)
{
	int rc = enter(uring_of(r), wait_ns);

	/* EBUSY, EAGAIN: the kernel is short of room or memory; taking completions makes some. */
	if (rc < 0 && rc != -ETIME && rc != -EINTR && rc != -EBUSY && rc != -EAGAIN)
		return rc;
	return 0;
}

static const struct ring_ops uring_ops = {
	.free = uring_free,
	.register_regions = uring_register_regions,
	.read = uring_read,
	.write = uring_write,
	.fdatasync = uring_fdatasync,
	.poll = uring_poll,
	.accept = uring_accept,
	.cancel = uring_cancel,
	.wait = uring_wait,
	.reap = uring_reap,
	.first = uring_first,
};
