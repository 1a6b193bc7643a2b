/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h and extent/disk/file.h over the simulated disk, see sim.h. */
#include "tests/sim/sim.h"

#include "extent/disk/file.h"
#include "extent/disk/host.h"
#include "base/check.h"
#include "ring/ring.h"
#include "tests/fake/disk_ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR_FD 900   /* + disk */
#define FD_BASE 1000 /* + file */
#define DONE_MAX 512
#define RINGS_MAX 64

struct ring {
	bool used;
	unsigned inflight;
	unsigned head, tail; /* of done, in the order of ending */
	struct {
		struct ring_op *op;
		int res;
	} done[DONE_MAX];
};
static struct ring rings[RINGS_MAX];

/* ---- ring.h ---- */

int
ring_new(const struct ring_params *params, struct ring **ret_ring)
{
	for (int i = 0; i < RINGS_MAX; i++) {
		if (rings[i].used)
			continue;
		rings[i].used = true;
		rings[i].inflight = rings[i].head = rings[i].tail = 0;
		*ret_ring = &rings[i];
		return 0;
	}
	return -ENOMEM;
}

void
ring_free(struct ring *r)
{
	check(r->inflight == 0);
	r->used = false;
}

void
rings_drop(void)
{
	for (int i = 0; i < RINGS_MAX; i++)
		rings[i].used = false;
}

const char *
ring_describe(const struct ring *r)
{
	return "simulated";
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
submit(struct ring *r, struct ring_op *op, enum io_kind kind, int fd, const void *buf, size_t len,
       uint64_t off)
{
	struct sim_io io = { .ring = r,
			     .op = op,
			     .kind = kind,
			     .file = fd - FD_BASE,
			     .buf = (void *)(uintptr_t)buf,
			     .first = (uint32_t)(off / PAGE),
			     .nr = (uint32_t)(len / PAGE) };

	check(fd >= FD_BASE && len % PAGE == 0 && off % PAGE == 0 && (uintptr_t)buf % 512 == 0);
	op->magic = RING_OP_MAGIC;
	r->inflight++;
	counts.beats += kind == IO_WRITE &&
			io.file == simdisk_open(prof.is_device ? FILE_SUPER : FILE_HOST) &&
			io.first == (prof.is_device ? FMT_HOST_OFF / PAGE : 0);
	io.is_block = kind == IO_WRITE && sim_store && !prof.disks && op == &sim_vol()->block.op;
	if (io.is_block)
		model_block(sim_vol());
	simdisk_submit(&io);
}

void
ring_read(struct ring *r, struct ring_op *op, int fd, void *buf, size_t len, uint64_t off, int region)
{
	submit(r, op, IO_READ, fd, buf, len, off);
}

void
ring_write(struct ring *r, struct ring_op *op, int fd, const void *buf, size_t len, uint64_t off, int region)
{
	submit(r, op, IO_WRITE, fd, buf, len, off);
}

void
ring_fdatasync(struct ring *r, struct ring_op *op, int fd)
{
	submit(r, op, IO_FLUSH, fd, NULL, 0, 0);
}

unsigned
ring_inflight(const struct ring *r)
{
	return r->inflight;
}

void
ring_post(struct ring *r, struct ring_op *op, int res)
{
	check(r->tail - r->head < DONE_MAX);
	r->done[r->tail % DONE_MAX].op = op;
	r->done[r->tail++ % DONE_MAX].res = res;
}

bool
ring_has_done(const struct ring *r)
{
	return r->head != r->tail;
}

static void
end(struct ring *r, struct ring_op *op, int res)
{
	r->inflight--;
	check(op->magic == RING_OP_MAGIC);
	op->magic = 0;
	op->done(op, res, false);
}

int
ring_first(struct ring *r)
{
	unsigned until = r->tail, n = 0;

	for (unsigned at = r->head; at != until; at++) {
		struct ring_op *op = r->done[at % DONE_MAX].op;

		/* The place of one that has been run stays. */
		if (!op || !op->is_first)
			continue;
		r->done[at % DONE_MAX].op = NULL;
		end(r, op, r->done[at % DONE_MAX].res);
		n++;
	}
	return (int)n;
}

int
ring_turn(struct ring *r, uint64_t wait_ns)
{
	unsigned until, n = 0;

	if (!ring_has_done(r) && wait_ns && co_now) {
		if (wait_ns != UINT64_MAX)
			co_until(wait_ns);
		co_wait_ring(r);
	}
	for (until = r->tail; r->head != until; n++) {
		struct ring_op *op = r->done[r->head % DONE_MAX].op;
		int res = r->done[r->head++ % DONE_MAX].res;

		if (op)
			end(r, op, res);
	}
	return (int)n;
}

/* ---- extent/disk/file.h ---- */

unsigned sim_absent;

/* "sim", "sim1", ... */
static int
disk_at(const char *path)
{
	return atoi(path + strlen("sim"));
}

/* The number of a name in a directory, or < 0. */
static int
name_in(int dir_fd, const char *name)
{
	int n = simdisk_find(name);

	return n < 0 ? n : n + (dir_fd - DIR_FD) * SIM_FILES;
}

int
file_open_dir(const char *path, bool create)
{
	int disk = disk_at(path);

	return sim_absent >> disk & 1 ? -ENOENT : DIR_FD + disk;
}

bool
file_is_root(int dir_fd)
{
	return false;
}

int
file_open(int dir_fd, const char *name, bool create)
{
	int n = name_in(dir_fd, name);

	check(n >= 0);
	if (!create && !simdisk_exists(n))
		return -ENOENT;
	if (create && simdisk_exists(n))
		return -EEXIST;
	if (create && simdisk_has_no_room(dir_fd - DIR_FD))
		return -ENOSPC;
	if (create)
		simdisk_create(n);
	return FD_BASE + simdisk_open(n);
}

int
file_open_device(const char *path, bool is_peek)
{
	int file = simdisk_open(FILE_SUPER);

	return is_peek || simdisk_is_locked(file) ? -EBUSY : FD_BASE + file;
}

int
file_peek(int dir_fd, const char *name)
{
	return -EACCES;
}

void
file_close(int fd)
{
}

int
file_lock(int fd)
{
	return simdisk_is_locked(fd - FD_BASE) ? -EWOULDBLOCK : 0;
}

int
file_rename(int dir_fd, const char *from, const char *to)
{
	simdisk_rename(name_in(dir_fd, from), name_in(dir_fd, to));
	return 0;
}

int
file_unlink(int dir_fd, const char *name)
{
	int n = name_in(dir_fd, name);

	if (n < 0 || !simdisk_exists(n))
		return -ENOENT;
	simdisk_unlink(n);
	return 0;
}

int
file_fsync(int fd)
{
	if (fd < FD_BASE)
		simdisk_sync_dir();
	return fd < FD_BASE ? 0 : simdisk_fsync(fd - FD_BASE);
}

int
file_size(int fd, uint64_t *ret_bytes)
{
	*ret_bytes = simdisk_bytes(fd - FD_BASE);
	return 0;
}

int
file_where(int dir_fd, const char *name, int fd, uint64_t bytes)
{
	return PLACE_SAME;
}

int
file_next_odd(int fd, uint64_t upto, uint64_t *off, struct file_odd *ret_odd)
{
	uint32_t first, nr;

	if (!simdisk_odd(fd - FD_BASE, (uint32_t)(*off / PAGE), (uint32_t)(upto / PAGE), &first, &nr,
			 &ret_odd->is_shared)) {
		*off = upto;
		return 0;
	}
	ret_odd->off = (uint64_t)first * PAGE;
	ret_odd->len = (uint64_t)nr * PAGE;
	return 1;
}

int
file_unshare(int fd, uint64_t off, uint64_t len)
{
	return simdisk_unshare(fd - FD_BASE, (uint32_t)(off / PAGE), (uint32_t)(len / PAGE));
}

bool
file_is_device(const char *path)
{
	return prof.is_device;
}

int
file_room(int dir_fd, uint64_t *ret_bytes)
{
	*ret_bytes = UINT64_MAX;
	return 0;
}

int
file_each(int dir_fd, int (*fn)(void *cookie, const char *name), void *cookie)
{
	static const char *const first[] = { "super", "log", "super2", "super.new" };
	int r = 0;

	for (int i = 0; i < SIM_FILES && r == 0; i++) {
		char name[32];

		if (!simdisk_exists(i + (dir_fd - DIR_FD) * SIM_FILES))
			continue;
		if (i == FILE_HOST)
			snprintf(name, sizeof name, "host");
		else if (i < FILE_SEG)
			snprintf(name, sizeof name, "%s", first[i]);
		else
			snprintf(name, sizeof name, "seg-%04d%s", (i - FILE_SEG) % SEGS_MAX,
				 i >= FILE_SEG + SEGS_MAX ? ".new" : "");
		r = fn(cookie, name);
	}
	return r;
}

int
file_dio_align(int fd, uint32_t *ret_mem, uint32_t *ret_off)
{
	*ret_mem = *ret_off = 512;
	return 0;
}

unsigned
file_queue_depth(int fd)
{
	return 0;
}

int
file_check_fs(int fd, char *why, size_t why_len)
{
	snprintf(why, why_len, "simulated");
	return prof.flush_covers_all;
}

int
file_mark_get(int fd, char text[FILE_MARK_MAX])
{
	return -EOPNOTSUPP;
}

int
file_mark_set(int fd, const char *text)
{
	return -EOPNOTSUPP;
}

unsigned sim_machine, sim_boot;

void
file_host_id(struct host_id *ret_id)
{
	memset(ret_id, 0, sizeof *ret_id);
	snprintf(ret_id->name, sizeof ret_id->name, "sim%u", sim_machine);
	ret_id->machine[0] = (uint8_t)(1 + sim_machine);
	memcpy(ret_id->boot, &sim_boot, sizeof sim_boot);
	ret_id->boot[15] = 1;
}

enum file_process
file_process(const struct host_id *of, const struct host_id *here)
{
	return PROCESS_GONE;
}
