/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting at the seams, on the real store, the real ring and the fake channel: the CPU copies no payload, a
 * request holds a bounded number of buffers whatever the object's size, and after a warm-up the data path
 * allocates nothing.
 *
 * This program has malloc and its kin, mmap, memcpy and memmove of its own, which count the calls of the
 * core's thread while it is armed.  The fake channel's copy is the NIC's and is subtracted.  A ring on threads
 * starts them as it needs them, a bounded number; what the C library allocates for one is not counted.
 * Sanitizers bring their own; there the requests run and xfer's own counters are looked at.
 */
#include "tests/unit/ops/rig.h"
#include "extent/extent.h"
#include "tests/fake/engine_alone.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTING 1
#else
#define COUNTING 0
#endif

#define BIG_ADDR 0x7d0000000000ull
#define BIG_MAX (64u << 20)
#define COPY_MIN 256 /* what is shorter is text, a record, or an object that lives in its record */
#define CALLERS_MAX 8
#define STACK_MAX 12
#define THREADS_MAX 64 /* that a ring on threads has at most */

static _Thread_local bool armed;
static uint64_t alloc_nr, crypto_nr, thread_nr, copied_bytes;
static struct {
	void *stack[STACK_MAX];
	int nr;
} callers[CALLERS_MAX];

#if COUNTING
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* from: who called.  OpenSSL makes a new state for every hash; that is its own business, and bounded. */
static void
count_alloc(const void *from)
{
	Dl_info in;

	if (!armed)
		return;
	armed = false; /* dladdr() and backtrace() may allocate */
	if (dladdr(from, &in) && strstr(in.dli_fname, "libcrypto")) {
		crypto_nr++;
		armed = true;
		return;
	}
	if (alloc_nr < CALLERS_MAX)
		callers[alloc_nr].nr = backtrace(callers[alloc_nr].stack, STACK_MAX);
	alloc_nr++;
	armed = true;
}

void *
malloc(size_t n)
{
	count_alloc(__builtin_return_address(0));
	return __libc_malloc(n);
}

void *
calloc(size_t nr, size_t n)
{
	count_alloc(__builtin_return_address(0));
	return __libc_calloc(nr, n);
}

void *
realloc(void *p, size_t n)
{
	count_alloc(__builtin_return_address(0));
	return __libc_realloc(p, n);
}

void *
aligned_alloc(size_t align, size_t n)
{
	count_alloc(__builtin_return_address(0));
	return __libc_memalign(align, n);
}

int
posix_memalign(void **ret, size_t align, size_t n)
{
	void *p;

	count_alloc(__builtin_return_address(0));
	p = __libc_memalign(align, n);
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void
free(void *p)
{
	if (p)
		count_alloc(__builtin_return_address(0));
	__libc_free(p);
}

void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	count_alloc(__builtin_return_address(0));
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off); /* NOLINT */
}

int
pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*main_fn)(void *), void *arg)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	bool was = armed;
	int r;

	armed = false;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	r = real(ret_thread, attr, main_fn, arg);
	thread_nr += was;
	armed = was;
	return r;
}

/* Not made into calls of themselves. */
#ifdef __clang__
#define NO_CALLS __attribute__((no_builtin("memcpy", "memmove")))
#else
#define NO_CALLS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif

NO_CALLS void *
memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (armed && n > COPY_MIN)
		copied_bytes += n;
	for (; n >= 8 && ((uintptr_t)t | (uintptr_t)f) % 8 == 0; n -= 8, t += 8, f += 8)
		*(uint64_t *)(void *)t = *(const uint64_t *)(const void *)f;
	while (n--)
		*t++ = *f++;
	return to;
}

NO_CALLS void *
memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (armed && n > COPY_MIN)
		copied_bytes += n;
	if (t <= f || t >= f + n) {
		while (n--)
			*t++ = *f++;
	} else {
		while (n--)
			t[n] = f[n];
	}
	return to;
}
#endif

static unsigned char *big;

static void
run_one(const char *method, int key, size_t len, const char *sum)
{
	struct xchg x;
	char target[32];

	snprintf(target, sizeof target, "/bkt/c%d", key);
	x_init(&x, 0, method, target);
	if (sum)
		x_field(&x, "x-amz-checksum-algorithm", "%s", sum);
	x_field(&x, "x-amz-rdma-token",
		"%016llx:%08llx:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001", BIG_ADDR,
		(unsigned long long)len);
	armed = true;
	x_begin(&x);
	rig_until(req_is_ready(x.rq));
	armed = false;
	assert_int_equal(req_reply(x.rq)->status, 200);
	assert_int_equal(x.rq->rdma_bytes, len);
	armed = true;
	req_end(x.rq, true);
	wait_until(!reqs_live(rig.reqs))
		rig_turn();
	armed = false;
}

/* item 115 is the client's; here: whatever the size, no payload byte passes the CPU, and memory is bounded */
static void
test_copies(void **state)
{
	static const size_t sizes[] = { 257,           4097,    65536,   65537,          1 << 20,
					(1 << 20) + 1, 3000001, 8 << 20, (16 << 20) + 5, BIG_MAX };
	size_t max = BIG_MAX;

	for (size_t i = 0; i < max; i += 4)
		*(uint32_t *)(void *)(big + i) = (uint32_t)(i * 2654435761u);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t len = sizes[i];

		xfer_counts = (struct xfer_counts){ 0 };
		copied_bytes = 0;
		run_one("PUT", 0, len, NULL);
		run_one("GET", 0, len, NULL);
		assert_int_equal(xfer_counts.copied_bytes, 0);
		assert_int_equal(xfer_counts.pulled_bytes, len);
		assert_int_equal(xfer_counts.pushed_bytes, len);
		assert_true(xfer_counts.bufs_peak > 0);
		assert_true(xfer_counts.bufs_peak <= rig.conf->limits.pieces_per_request);
		/* The fake NIC's own copies, there and back; a short tail of them is not counted. */
		if (COUNTING) {
			assert_true(copied_bytes + 2 * COPY_MIN >= 2 * len);
			if (copied_bytes > 2 * len + 8192)
				fail_msg("%zu bytes: %llu were copied besides the NIC's", len,
					 (unsigned long long)(copied_bytes - 2 * len));
		}
	}
	for (size_t i = 0; i < max; i += 4)
		assert_int_equal(*(uint32_t *)(void *)(big + i), (uint32_t)(i * 2654435761u));
}

static void
some(unsigned from, unsigned nr)
{
	static const size_t sizes[] = { 1,     256,    257,     4096,          65536,
					65537, 300000, 1 << 20, (1 << 20) + 1, 3000001 };

	for (unsigned i = from; i < from + nr; i++) {
		static const char *const sums[] = { NULL, "CRC32C", NULL, "SHA256", "CRC64NVME", NULL };
		size_t len = sizes[i % 10];

		run_one("PUT", (int)(i % 17), len, sums[i % 6]);
		run_one("GET", (int)(i % 17), len, NULL);
	}
}

/* after the start the data path allocates nothing */
static void
test_allocations(void **state)
{
	void *volatile wasted;

	if (!COUNTING)
		skip();
	some(0, 100);
	armed = true;
	wasted = malloc(1);
	free(wasted);
	armed = false;
	assert_true(alloc_nr >= 2); /* the counter counts */
	alloc_nr = crypto_nr = thread_nr = 0;
	some(100, 200);
	for (uint64_t i = 0; i < alloc_nr && i < CALLERS_MAX; i++) {
		printf("allocation from:\n");
		fflush(stdout);
		backtrace_symbols_fd(callers[i].stack, callers[i].nr, 1);
	}
	assert_int_equal(alloc_nr, 0);
	assert_true(crypto_nr <= 2 * 200 / 6 + 2);
	assert_true(thread_nr <= THREADS_MAX);
}

static int
start(void **state)
{
	static char dir[128];
	const char *base = getenv("TMPDIR");

	snprintf(dir, sizeof dir, "%s/gantry-counts-XXXXXX", base ? base : "/var/tmp");
	assert_non_null(mkdtemp(dir));
	rig_small.store = engine_alone();
	rig_small.dir = dir;
	big = calloc(1, BIG_MAX);
	assert_non_null(big);
	assert_int_equal(rig_start(state), 0);
	fake_chan_window(rig.chan, BIG_ADDR, big, BIG_MAX);
	return 0;
}

static int
stop(void **state)
{
	DIR *d = opendir(rig_small.dir);
	struct dirent *e;
	int r = rig_stop(state);

	while (d && (e = readdir(d))) {
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	rmdir(rig_small.dir);
	free(big);
	return r;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_copies, start, stop),
		cmocka_unit_test_setup_teardown(test_allocations, start, stop),
	};

	backtrace(callers[0].stack, 1); /* loads what it needs */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
