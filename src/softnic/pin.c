/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinning, where SOFTNIC_PIN asks for it.  A real adapter goes on with the pages that memory had when it was registered; we copy to what
 * is mapped now, which hides memory that was unmapped, or that a fork moved.  With `frames` the page frames of each region are written down,
 * in a file beside the fabric, and compared whenever bytes are moved: who lost its pages is killed, and told so.  An io_uring keeps the
 * pages of each region where they are, because the kernel moves other pages when it needs free memory in one piece.  With `count` what
 * is registered counts against RLIMIT_MEMLOCK, once for each registration; `check` is both.  On any thread.
 */
#include "softnic/softnic.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)1 << 30) /* of one buffer of an io_uring: the kernel's limit */
#define FRAME 0x807fffffffffffffull  /* of an entry of pagemap: is it there, and where */
#define IS_THERE (1ull << 63)

static _Atomic uint64_t locked_bytes;

static uint64_t
pages(uint64_t addr, uint64_t len, uint64_t page)
{
	return len ? (addr + len - 1) / page - addr / page + 1 : 0;
}

static void
file_of(uint32_t key, char *path, size_t len)
{
	char fabric[PATH_MAX - 16];

	fab_path(fabric, sizeof(fabric));
	snprintf(path, len, "%s.pin.%08x", fabric, key);
}

/* Entries of a process's pagemap, from a page on.  1; 0: it has no memory any more, it dies; -1: they cannot be read. */
static int
frames(uint32_t pid, uint64_t first, uint64_t nr, uint64_t *ret)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = pread(fd, ret, nr * 8, (off_t)(first * 8));
	close(fd);

	return n == (ssize_t)(nr * 8) ? 1 : n == 0 ? 0 : -1;
}

/*
 * Keeps the pages of a region in their frames until the returned descriptor is closed: they are the buffers of an io_uring.  Returns -1
 * where the kernel has no io_uring or does not take this memory; then the kernel may move the pages.
 */
static int
keep(const struct fab_mr *m)
{
	struct io_uring_params params = { 0 };
	size_t nr = m->len / KEPT_BYTES + 1;
	struct iovec *part = calloc(nr, sizeof(*part));
	int fd = part ? (int)syscall(SYS_io_uring_setup, 1, &params) : -1;

	if (fd >= 0) {
		for (size_t i = 0; i < nr; i++)
			part[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)(m->va + i * KEPT_BYTES),
						  .iov_len = i + 1 < nr ? KEPT_BYTES : m->len % KEPT_BYTES };
		nr -= part[nr - 1].iov_len == 0;
		if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, part, nr) < 0) {
			close(fd);
			fd = -1;
		}
	}
	free(part);

	return fd;
}

static int
write_down(const struct fab_mr *m, uint32_t key)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), nr = pages(m->va, m->len, page);
	uint64_t *f = calloc(nr, 8);
	char path[PATH_MAX];
	int fd = -1, r = ENOMEM;

	file_of(key, path, sizeof(path));
	if (f && frames((uint32_t)getpid(), m->va / page, nr, f) > 0) {
		if ((f[0] & FRAME & ~IS_THERE) == 0)
			sn_warn("SOFTNIC_PIN=frames takes CAP_SYS_ADMIN: /proc/self/pagemap tells no frames");
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
		r = fd >= 0 && write(fd, f, nr * 8) == (ssize_t)(nr * 8) ? 0 : EIO;
	}
	if (fd >= 0)
		close(fd);
	free(f);

	return r;
}

int
sn_pin(const struct fab_mr *m, uint32_t key, int *ret_kept)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = pages(m->va, m->len, page) * page;
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int r = 0;

	*ret_kept = -1;
	if (!sn_conf.pin || m->flags & FAB_MR_DEVICE)
		return 0;
	if (sn_conf.pin & SN_PIN_COUNT)
		getrlimit(RLIMIT_MEMLOCK, &limit);
	if (atomic_fetch_add(&locked_bytes, bytes) + bytes > limit.rlim_cur)
		r = ENOMEM;
	/* Memory that is only read may be a page of zeroes, or of a file, that many have. */
	else if (sn_conf.pin & SN_PIN_FRAMES && m->access & IBV_ACCESS_LOCAL_WRITE) {
		*ret_kept = keep(m);
		r = write_down(m, key);
	}
	if (r)
		sn_unpin(m, key, *ret_kept);

	return r;
}

void
sn_unpin(const struct fab_mr *m, uint32_t key, int kept)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char path[PATH_MAX];

	if (!sn_conf.pin || m->flags & FAB_MR_DEVICE)
		return;
	atomic_fetch_sub(&locked_bytes, pages(m->va, m->len, page) * page);
	file_of(key, path, sizeof(path));
	unlink(path);
	if (kept >= 0)
		close(kept);
}

static void
blame(uint32_t pid, uint32_t key, uint64_t addr)
{
	sn_warn("process %u: the page at %#llx, registered with key %#x, moved: a real adapter would have "
		"used the one "
		"that was there when it was registered",
		pid, (unsigned long long)addr, key);
	if (pid == (uint32_t)getpid())
		abort();
	kill((pid_t)pid, SIGABRT);
}

bool
sn_pin_check(uint32_t pid, const struct fab_mr *m, uint32_t key, uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = addr / page, nr = pages(addr, len, page);
	uint64_t *was, *now;
	char path[PATH_MAX];
	bool same = true;
	int fd;

	/* Its driver knows it, cuda.c asks. */
	if (m->flags & FAB_MR_DEVICE)
		return true;
	was = calloc(2 * nr + 1, 8);
	now = was + nr;

	file_of(key, path, sizeof(path));
	fd = was ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && pread(fd, was, nr * 8, (off_t)((first - m->va / page) * 8)) == (ssize_t)(nr * 8)) {
		int r = frames(pid, first, nr, now);

		/* Of one that was killed another thread may still be written to. */
		same = r != 0;
		for (uint64_t i = 0; i < nr && same && r > 0; i++) {
			same = (was[i] & FRAME) == (now[i] & FRAME);
			if (!same)
				blame(pid, key, (first + i) * page);
		}
	}
	if (fd >= 0)
		close(fd);
	free(was);

	return same;
}

/* ---- presence of pages ---- */

/*
 * Registration on a real adapter pins: it faults every page in and fails where there is none or where the
 * mapping does not allow it.  MADV_POPULATE does the same bar the pinning, in one call.  Kernels before 5.14
 * do not know it; there the pages are looked at with mincore(), which finds holes but not missing rights.
 */
bool
sn_fault_in(const void *addr, size_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1), to = ((uintptr_t)addr + len + page - 1) & ~(page - 1);
	unsigned char vec[256];

	if (madvise((void *)from, to - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return true;
	/* EINVAL is a missing right or an unknown advice; of nothing, a known advice is always taken. */
	if (errno != EINVAL || madvise((void *)from, 0, MADV_POPULATE_READ) == 0)
		return false;
	for (uintptr_t a = from; a < to; a += sizeof(vec) * page) {
		size_t n = to - a < sizeof(vec) * page ? to - a : sizeof(vec) * page;

		if (mincore((void *)a, n, vec) < 0)
			return false;
	}

	return true;
}
