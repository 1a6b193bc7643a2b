/* A ring that fails on demand, see fault_ring.h. */
#include "tests/fake/fault_ring.h"

#include "base/check.h"
#include "ring/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPS_MAX 1024

int (*fault_ring_hook)(const struct fault_io *io);
uint64_t fault_ring_seed;

struct queued {
	struct ring_op *op;
	enum fault_kind kind;
	int fd;
	void *buf;
	size_t len;
	uint64_t off;
};

struct ring {
	struct queued q[OPS_MAX];
	unsigned nr;
	uint64_t rng;
};

int
ring_new(const struct ring_params *params, struct ring **ret_ring)
{
	*ret_ring = calloc(1, sizeof **ret_ring);
	if (!*ret_ring)
		return -ENOMEM;
	(*ret_ring)->rng = fault_ring_seed;
	return 0;
}

void
ring_free(struct ring *r)
{
	free(r);
}

const char *
ring_describe(const struct ring *r)
{
	return "a ring that fails on demand";
}

int
ring_register_regions(struct ring *r, const struct iovec *regions, int nr)
{
	return 0;
}

static void
queue(struct ring *r, struct ring_op *op, enum fault_kind kind, int fd, void *buf, size_t len, uint64_t off)
{
	check(r->nr < OPS_MAX);
	op->magic = RING_OP_MAGIC;
	r->q[r->nr++] = (struct queued){ op, kind, fd, buf, len, off };
}

void
ring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region)
{
	queue(r, op, FAULT_READ, fd, buf, len, off);
}

void
ring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off, int region)
{
	queue(r, op, FAULT_WRITE, fd, (void *)(uintptr_t)buf, len, off);
}

void
ring_fdatasync(struct ring *r, struct ring_op *op, int fd)
{
	queue(r, op, FAULT_FLUSH, fd, NULL, 0, 0);
}

void
ring_poll(struct ring *r, struct ring_op *op, int fd, unsigned events, bool multishot)
{
	check(!"not for the store");
}

void
ring_accept(struct ring *r, struct ring_op *op, int listen_fd)
{
	check(!"not for the store");
}

void
ring_cancel(struct ring *r, struct ring_op *op)
{
	check(!"not for the store");
}

unsigned
ring_inflight(const struct ring *r)
{
	return r->nr;
}

static int
ask(const struct queued *q)
{
	char link[64], path[512];
	struct fault_io io = { .kind = q->kind, .off = q->off, .len = q->len };
	ssize_t n;

	if (!fault_ring_hook)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", q->fd);
	n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = 0;
	io.name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	return fault_ring_hook(&io);
}

static int
perform(const struct queued *q, int asked)
{
	ssize_t n;

	if (asked < 0)
		return asked;
	if (asked == FAULT_LIE)
		return q->kind == FAULT_FLUSH ? 0 : (int)q->len;
	if (q->kind == FAULT_READ)
		n = pread(q->fd, q->buf, q->len, (off_t)q->off);
	else if (q->kind == FAULT_WRITE)
		n = pwrite(q->fd, q->buf, q->len, (off_t)q->off);
	else
		n = fdatasync(q->fd);
	return n < 0 ? -errno : (int)n;
}

static unsigned
choose(struct ring *r, unsigned nr)
{
	if (!fault_ring_seed)
		return 0;
	r->rng = r->rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(r->rng >> 33) % nr;
}

int
ring_turn(struct ring *r, uint64_t wait_ns)
{
	unsigned done = 0, nr = r->nr;

	/* Those that are there now; what their ends begin waits for the next turn. */
	for (unsigned left = nr; left; left--) {
		unsigned i = choose(r, left);
		struct queued q = r->q[i];
		int asked = ask(&q);

		if (asked == FAULT_HOLD)
			continue;
		memmove(&r->q[i], &r->q[i + 1], (r->nr - i - 1) * sizeof r->q[0]);
		r->nr--;
		q.op->magic = 0;
		q.op->done(q.op, perform(&q, asked), false);
		done++;
	}
	if (!done && wait_ns) {
		struct timespec ts = { .tv_nsec = wait_ns < 100000 ? (long)wait_ns : 100000 };

		nanosleep(&ts, NULL);
	}
	return (int)done;
}
