/* SPDX-License-Identifier: Apache-2.0 */
/* A ring that fails on demand, see fault_ring.h. */
#include "tests/fake/fault_ring.h"

#include "base/check.h"
#include "ring/ring.h"
#include "tests/fake/disk_ring.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPS_MAX 1024

int (*_Atomic fault_ring_hook)(const struct fault_io *io);
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

const char *
ring_why_threads(const struct ring *r)
{
	return NULL;
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

unsigned
ring_inflight(const struct ring *r)
{
	return r->nr;
}

static int
ask(const struct queued *q)
{
	int (*hook)(const struct fault_io *io) = fault_ring_hook;
	char link[64], path[512];
	struct fault_io io = { .kind = q->kind, .off = q->off, .len = q->len };
	ssize_t n;

	if (!hook)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", q->fd);
	n = readlink(link, path, sizeof path - 1);
	path[n < 0 ? 0 : n] = 0;
	io.path = path;
	io.name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	return hook(&io);
}

/* ---- the cache ---- */

#define SECTOR 4096u

struct cached {
	struct cached *next;
	int fd;
	uint64_t off;
	size_t len;
	char *data;
};

static bool cache_on;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached *cache, **cache_end = &cache;

void
fault_ring_cache(void)
{
	cache_on = true;
}

/* False: a write that makes the file longer goes straight through. */
static bool
cache_write(const struct queued *q)
{
	struct cached *c;
	struct stat st;

	if (!cache_on || fstat(q->fd, &st) < 0 || q->off + q->len > (uint64_t)st.st_size)
		return false;
	c = malloc(sizeof *c);
	check(c);
	*c = (struct cached){
		.fd = q->fd, .off = q->off, .len = q->len, .data = aligned_alloc(SECTOR, q->len)
	};
	check(c->data);
	memcpy(c->data, q->buf, q->len);
	pthread_mutex_lock(&cache_lock);
	*cache_end = c;
	cache_end = &c->next;
	pthread_mutex_unlock(&cache_lock);
	return true;
}

static void
cache_flush(void)
{
	pthread_mutex_lock(&cache_lock);
	while (cache) {
		struct cached *c = cache;

		check(pwrite(c->fd, c->data, c->len, (off_t)c->off) == (ssize_t)c->len);
		cache = c->next;
		free(c->data);
		free(c);
	}
	cache_end = &cache;
	pthread_mutex_unlock(&cache_lock);
}

/* What was read from the disk, as the cache has it. */
static void
cache_read(const struct queued *q)
{
	pthread_mutex_lock(&cache_lock);
	for (struct cached *c = cache; c; c = c->next) {
		uint64_t from = c->off > q->off ? c->off : q->off;
		uint64_t to = c->off + c->len < q->off + q->len ? c->off + c->len : q->off + q->len;

		if (c->fd == q->fd && from < to)
			memcpy((char *)q->buf + (from - q->off), c->data + (from - c->off), to - from);
	}
	pthread_mutex_unlock(&cache_lock);
}

_Noreturn void
fault_ring_cut(uint64_t seed)
{
	/* Nobody goes on: the lock is kept. */
	pthread_mutex_lock(&cache_lock);
	for (struct cached *c = cache; c; c = c->next) {
		/* Now and then all or nothing, else sector by sector. */
		unsigned luck = (unsigned)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 60);

		for (size_t at = 0; at < c->len; at += SECTOR) {
			bool keep =
				luck < 4 ? luck & 1
					 : (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 63;

			if (keep)
				check(pwrite(c->fd, c->data + at, SECTOR, (off_t)(c->off + at)) == SECTOR);
		}
	}
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static int
perform(const struct queued *q, int asked)
{
	struct queued part = *q;
	ssize_t n;

	if (asked < 0)
		return asked;
	if (asked == FAULT_SHORT && q->kind != FAULT_FLUSH) {
		part.len = q->len > SECTOR ? SECTOR : 0;
		return part.len ? perform(&part, 0) : 0;
	}
	if (asked == FAULT_LIE)
		return q->kind == FAULT_FLUSH ? 0 : (int)q->len;
	if (q->kind == FAULT_READ) {
		n = pread(q->fd, q->buf, q->len, (off_t)q->off);
		cache_read(q);
	} else if (q->kind == FAULT_WRITE) {
		n = cache_write(q) ? (ssize_t)q->len : pwrite(q->fd, q->buf, q->len, (off_t)q->off);
	} else {
		cache_flush();
		n = cache_on ? 0 : fdatasync(q->fd);
	}
	return n < 0 ? -errno : (int)n;
}

static unsigned
choose(struct ring *r, unsigned nr)
{
	r->rng = r->rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(r->rng >> 33) % nr;
}

static void
end(struct ring *r, unsigned i, int asked)
{
	struct queued q = r->q[i];

	memmove(&r->q[i], &r->q[i + 1], (r->nr - i - 1) * sizeof r->q[0]);
	r->nr--;
	q.op->magic = 0;
	q.op->done(q.op, perform(&q, asked), false);
}

int
ring_first(struct ring *r)
{
	unsigned done = 0, passed = 0;

	for (unsigned left = r->nr; left; left--) {
		struct queued q = r->q[passed];
		int asked = q.op->is_first ? ask(&q) : FAULT_HOLD;

		if (asked == FAULT_HOLD) {
			passed++;
			continue;
		}
		end(r, passed, asked);
		done++;
	}
	return (int)done;
}

int
ring_turn(struct ring *r, uint64_t wait_ns)
{
	unsigned done = 0, held = 0, nr = r->nr;

	/* Those that are there now; what their ends begin waits for the next turn. */
	for (unsigned left = nr; left; left--) {
		/* In order: one that is held does not hold up those behind it. */
		unsigned i = fault_ring_seed ? choose(r, left) : held;
		struct queued q = r->q[i];
		int asked = ask(&q);

		if (asked == FAULT_HOLD) {
			held++;
			continue;
		}
		end(r, i, asked);
		done++;
	}
	if (!done && wait_ns) {
		struct timespec ts = { .tv_nsec = wait_ns < 100000 ? (long)wait_ns : 100000 };

		nanosleep(&ts, NULL);
	}
	return (int)done;
}
