/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw loop; see bench.h.  On liburing itself, not on src/ring: it is the yardstick.  The settings are
 * those that were found fastest: one issuer, deferred task work, fixed hugepage buffers.
 */
#include "bench/bench.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QD_MAX 512
#define SAMPLES_MAX 65536

struct slot {
	struct buf *buf;
	uint64_t begun_ns;
	bool flushing;
};

struct raw {
	struct io_uring io;
	struct bufpool bufs;
	char path[512];
	int fd;
	uint64_t size, at;
	struct slot slot[QD_MAX];
	double *sample;
	bool touch;
	uint64_t touched; /* so that the compiler keeps it */
};

static void
fill_file(struct raw *r)
{
	struct buf *b = bufpool_get(&r->bufs, BUF_LARGE);

	memset(b->mem, 0x5a, BUF_LARGE_BYTES);
	for (uint64_t off = 0; off < r->size; off += BUF_LARGE_BYTES) {
		if (pwrite(r->fd, b->mem, BUF_LARGE_BYTES, (off_t)off) != (ssize_t)BUF_LARGE_BYTES)
			bench_die("%s: %s", r->path, strerror(errno));
	}
	bufpool_put(&r->bufs, b);
	if (fsync(r->fd) < 0)
		bench_die("%s: %s", r->path, strerror(errno));
}

struct raw *
raw_open(const char *path, uint64_t size_bytes, unsigned bufs_mib)
{
	struct raw *r = calloc(1, sizeof *r);
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };
	int rc;

	rc = io_uring_queue_init_params(QD_MAX, &r->io, &p);
	if (rc == -EINVAL) {
		p = (struct io_uring_params){ 0 };
		rc = io_uring_queue_init_params(QD_MAX, &r->io, &p);
	}
	if (rc < 0)
		bench_die("a raw disk is measured with io_uring, which cannot be used: %s", strerror(-rc));
	r->sample = calloc(SAMPLES_MAX, sizeof *r->sample);
	snprintf(r->path, sizeof r->path, "%s", path);
	r->size = size_bytes;
	r->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
	if (r->fd < 0)
		bench_die("%s: %s", path, strerror(errno));
	if (bufpool_init_class(&r->bufs, BUF_LARGE, (bufs_mib + 1) * (MIB + BUF_SLACK_BYTES), 0) < 0)
		bench_die("no memory");
	fill_file(r);
	rc = io_uring_register_buffers(&r->io, r->bufs.region, (unsigned)r->bufs.region_nr);
	if (rc < 0)
		bench_die("io_uring takes no buffers: %s", strerror(-rc));
	io_uring_register_ring_fd(&r->io);
	return r;
}

void
raw_close(struct raw *r)
{
	if (!r)
		return;
	io_uring_queue_exit(&r->io);
	bufpool_fini(&r->bufs);
	close(r->fd);
	unlink(r->path);
	free(r->sample);
	free(r);
}

static void
start(struct raw *r, struct slot *s, bool write, uint32_t len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->io);

	if (r->at + len > r->size)
		r->at = 0;
	if (write)
		io_uring_prep_write_fixed(sqe, r->fd, s->buf->mem, len, r->at, s->buf->region);
	else
		io_uring_prep_read_fixed(sqe, r->fd, s->buf->mem, len, r->at, s->buf->region);
	io_uring_sqe_set_data(sqe, s);
	r->at += len;
	s->flushing = false;
	s->begun_ns = clock_ns();
}

void
raw_touch(struct raw *r, bool touch)
{
	r->touch = touch;
}

static void
look_at(struct raw *r, const struct slot *s, uint32_t len)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < len; i += 64)
		sum += *(const volatile uint64_t *)(const void *)(s->buf->mem + i);
	r->touched += sum;
}

static uint64_t
thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* True: the transfer is over (with its flush). */
static bool
step(struct raw *r, struct slot *s, int res, uint32_t len, bool flush)
{
	struct io_uring_sqe *sqe;

	if (res < 0 || (!s->flushing && (uint32_t)res != len))
		bench_die("raw I/O: %s", strerror(res < 0 ? -res : EIO));
	if (!flush || s->flushing)
		return true;
	sqe = io_uring_get_sqe(&r->io);
	io_uring_prep_fsync(sqe, r->fd, IORING_FSYNC_DATASYNC);
	io_uring_sqe_set_data(sqe, s);
	s->flushing = true;
	return false;
}

struct raw_result
raw_run(struct raw *r, bool write, uint32_t len, int qd, bool flush, uint64_t for_ns)
{
	uint64_t begin = clock_ns(), cpu = thread_cpu_ns();
	struct raw_result res = { 0 };
	int left = qd, samples = 0;

	for (int i = 0; i < qd; i++) {
		r->slot[i].buf = bufpool_get(&r->bufs, BUF_LARGE);
		if (!r->slot[i].buf)
			bench_die("raw: %d in flight is more than there are buffers", qd);
		start(r, &r->slot[i], write, len);
	}
	while (left) {
		struct io_uring_cqe *cqe;
		unsigned head, n = 0;
		int rc = io_uring_submit_and_wait(&r->io, 1);
		uint64_t now = clock_ns();

		if (rc < 0 && rc != -EINTR)
			bench_die("io_uring: %s", strerror(-rc));
		io_uring_for_each_cqe(&r->io, head, cqe)
		{
			struct slot *s = io_uring_cqe_get_data(cqe);

			n++;
			if (!step(r, s, cqe->res, len, flush))
				continue;
			if (r->touch && !write)
				look_at(r, s, len);
			res.ops++;
			if (samples < SAMPLES_MAX)
				r->sample[samples++] = (double)(now - s->begun_ns) / 1e3;
			if (now - begin < for_ns)
				start(r, s, write, len);
			else
				left--;
		}
		io_uring_cq_advance(&r->io, n);
	}
	for (int i = 0; i < qd; i++)
		bufpool_put(&r->bufs, r->slot[i].buf);
	res.bytes = res.ops * len;
	res.ns = clock_ns() - begin;
	res.cpu_ns = thread_cpu_ns() - cpu;
	res.p50_us = bench_median(r->sample, samples);
	return res;
}
