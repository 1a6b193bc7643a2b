/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer pool: layout, classes, running out, regions. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

static void
test_pool(void **state)
{
	struct bufpool bp;
	struct buf *held[400];
	int nr = 0, small, large;

	assert_int_equal(bufpool_init(&bp, 40 << 20), 0);
	small = bp.total[BUF_SMALL];
	large = bp.total[BUF_LARGE];
	assert_true(small >= 60);
	assert_true(large >= 30);
	assert_true(small + large <= 400);
	for (int cls = 0; cls < BUF_CLASS_NR; cls++) {
		for (struct buf *b; (b = bufpool_get(&bp, (enum buf_class)cls));) {
			const struct iovec *r = &bp.region[b->region];

			assert_int_equal((uintptr_t)b->mem % 4096, 0);
			assert_int_equal(b->cap_bytes, cls == BUF_SMALL ? BUF_SMALL_BYTES : BUF_LARGE_BYTES);
			assert_int_equal(b->cls, cls);
			assert_true(b->region < bp.region_nr);
			assert_true(b->mem >= (char *)r->iov_base);
			assert_true(b->mem + b->cap_bytes + BUF_SLACK_BYTES <=
				    (char *)r->iov_base + r->iov_len);
			/* nobody else's */
			memset(b->mem, nr, b->cap_bytes + BUF_SLACK_BYTES);
			held[nr++] = b;
		}
		assert_int_equal(bp.avail[cls], 0);
		assert_int_equal(bp.low[cls], 0);
	}
	assert_int_equal(nr, small + large);
	for (int i = 0; i < nr; i++) {
		assert_int_equal((unsigned char)held[i]->mem[0], i & 255);
		assert_int_equal((unsigned char)held[i]->mem[held[i]->cap_bytes + BUF_SLACK_BYTES - 1],
				 i & 255);
		bufpool_put(&bp, held[i]);
	}
	assert_int_equal(bp.avail[BUF_SMALL], small);
	assert_int_equal(bp.avail[BUF_LARGE], large);
	assert_non_null(bufpool_get(&bp, BUF_LARGE));
	bufpool_fini(&bp);
}

/* The hugepages of a container without a share of them: the range is given, its pages are not. */
static bool no_share;
static void *range;
static bool range_is_gone;

void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	bool ours = no_share && (flags & MAP_HUGETLB);
	void *p = (void *)syscall(SYS_mmap, addr, len, prot, ours ? flags & ~MAP_HUGETLB : flags, fd,
				  off); /* NOLINT */

	if (ours)
		range = p;
	return p;
}

int
madvise(void *addr, size_t len, int advice)
{
	if (no_share && addr == range && advice == MADV_POPULATE_WRITE) {
		errno = EFAULT;
		return -1;
	}
	return (int)syscall(SYS_madvise, addr, len, advice);
}

int
munmap(void *addr, size_t len)
{
	range_is_gone |= range && addr == range;
	return (int)syscall(SYS_munmap, addr, len);
}

static void
test_no_share(void **state)
{
	struct bufpool bp;

	no_share = true;
	assert_int_equal(bufpool_init(&bp, 8 << 20), 0);
	no_share = false;
	assert_non_null(range);
	assert_true(range_is_gone);
	assert_int_not_equal(bp.backing, BUF_HUGETLB);
	bufpool_fini(&bp);
}

static void
test_smallest(void **state)
{
	struct bufpool bp;

	assert_int_equal(bufpool_init(&bp, 0), 0);
	assert_int_equal(bp.total[BUF_SMALL], 1);
	assert_int_equal(bp.total[BUF_LARGE], 1);
	bufpool_fini(&bp);
	bufpool_fini(&bp); /* an empty one */
	assert_int_equal(buf_class_for(0), BUF_SMALL);
	assert_int_equal(buf_class_for(BUF_SMALL_BYTES), BUF_SMALL);
	assert_int_equal(buf_class_for(BUF_SMALL_BYTES + 1), BUF_LARGE);
}

/* No region is larger than one registration may be; what does not fit into the regions is refused.  Nothing
 * is touched here. */
static void
test_regions(void **state)
{
	struct bufpool bp;

	if (bufpool_init(&bp, (size_t)3 << 30) == 0) {
		assert_true(bp.region_nr >= 4);
		for (int i = 0; i < bp.region_nr; i++)
			assert_true(bp.region[i].iov_len <= (size_t)1 << 30);
		bufpool_fini(&bp);
	}
	if (bufpool_init_runs(&bp, (size_t)3 << 30) == 0) {
		for (int i = 0; i < bp.buf_nr; i++) {
			const struct buf *b = &bp.bufs[i];

			assert_true(b->mem + b->cap_bytes + BUF_SLACK_BYTES <=
				    (char *)bp.region[b->region].iov_base + bp.region[b->region].iov_len);
		}
		for (int i = 0; i < bp.total[BUF_LARGE] / BUF_RUN_NR; i++) {
			const struct buf *b = &bp.runs[i].whole;

			assert_true(bp.region[b->region].iov_len <= (size_t)1 << 30);
			assert_true(b->mem + b->cap_bytes + BUF_SLACK_BYTES <=
				    (char *)bp.region[b->region].iov_base + bp.region[b->region].iov_len);
		}
		bufpool_fini(&bp);
	}
	assert_true(bufpool_init(&bp, (size_t)64 << 30) < 0);
}

/* One class only, with regions numbered behind those of another pool. */
static void
test_class(void **state)
{
	struct bufpool bp;
	struct buf *b;

	assert_int_equal(bufpool_init_class(&bp, BUF_SMALL, 1u << 20, 3), 0);
	assert_int_equal(bp.total[BUF_LARGE], 0);
	assert_int_equal(bp.total[BUF_SMALL], (1 << 20) / (int)(BUF_SMALL_BYTES + BUF_SLACK_BYTES));
	assert_int_equal(bp.region_nr, 1);
	b = bufpool_get(&bp, BUF_SMALL);
	assert_int_equal(b->region, 3);
	assert_null(bufpool_get(&bp, BUF_LARGE));
	bufpool_put(&bp, b);
	bufpool_fini(&bp);
}

/* A run is four large buffers side by side, and nobody else's while it is out. */
static void
test_runs(void **state)
{
	struct bufpool bp;
	struct buf *run[32], *large[128], *b;
	int nr = 0, runs;

	assert_int_equal(bufpool_init_runs(&bp, 40 << 20), 0);
	runs = bp.total[BUF_LARGE] / BUF_RUN_NR;
	assert_int_equal(bp.total[BUF_LARGE], runs * BUF_RUN_NR);
	assert_in_range(runs, 8, 9);
	assert_true(bp.total[BUF_SMALL] >= 60);
	while ((b = bufpool_get_run(&bp))) {
		const struct iovec *r = &bp.region[b->region];

		assert_int_equal(b->cls, BUF_RUN);
		assert_int_equal(b->cap_bytes, BUF_RUN_BYTES);
		assert_int_equal(buf_nr(b), BUF_RUN_NR);
		assert_int_equal((uintptr_t)b->mem % 4096, 0);
		assert_true(b->mem >= (char *)r->iov_base);
		assert_true(b->mem + b->cap_bytes + BUF_SLACK_BYTES <= (char *)r->iov_base + r->iov_len);
		memset(b->mem, nr, b->cap_bytes + BUF_SLACK_BYTES);
		run[nr++] = b;
		assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE] - nr * BUF_RUN_NR);
	}
	assert_int_equal(nr, runs);
	assert_null(bufpool_get(&bp, BUF_LARGE));
	assert_non_null(b = bufpool_get(&bp, BUF_SMALL));
	bufpool_put(&bp, b);
	for (int i = 0; i < nr; i++) {
		assert_int_equal(run[i]->mem[0], i);
		assert_int_equal(run[i]->mem[run[i]->cap_bytes + BUF_SLACK_BYTES - 1], i);
		bufpool_put(&bp, run[i]);
	}
	/* The first four come from one run. */
	for (int i = 0; i < 4; i++)
		large[i] = bufpool_get(&bp, BUF_LARGE);
	for (nr = 0; (run[nr] = bufpool_get_run(&bp)); nr++)
		;
	assert_int_equal(nr, runs - 1);
	assert_null(bufpool_get(&bp, BUF_LARGE));
	/* It is one again only when all four are back. */
	for (int i = 0; i < 4; i++) {
		assert_null(bufpool_get_run(&bp));
		bufpool_put(&bp, large[i]);
	}
	assert_non_null(run[nr++] = bufpool_get_run(&bp));
	while (nr)
		bufpool_put(&bp, run[--nr]);
	/* All of them as single ones; and what comes back in any order is whole in the end. */
	while ((large[nr] = bufpool_get(&bp, BUF_LARGE))) {
		assert_int_equal(large[nr]->cap_bytes, BUF_LARGE_BYTES);
		memset(large[nr]->mem, nr, large[nr]->cap_bytes + BUF_SLACK_BYTES);
		nr++;
	}
	assert_int_equal(nr, bp.total[BUF_LARGE]);
	assert_int_equal(bp.low[BUF_LARGE], 0);
	for (int i = 0; i < nr; i++) {
		b = large[i * 5 % nr];
		assert_int_equal(b->mem[0], i * 5 % nr);
		assert_int_equal(b->mem[b->cap_bytes + BUF_SLACK_BYTES - 1], i * 5 % nr);
		bufpool_put(&bp, b);
	}
	for (nr = 0; (run[nr] = bufpool_get_run(&bp)); nr++)
		;
	assert_int_equal(nr, runs);
	while (nr)
		bufpool_put(&bp, run[--nr]);
	assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE]);
	bufpool_fini(&bp);
	/* The smallest has one; a pool without has none. */
	assert_int_equal(bufpool_init_runs(&bp, 0), 0);
	assert_int_equal(bp.total[BUF_LARGE], BUF_RUN_NR);
	assert_non_null(b = bufpool_get_run(&bp));
	assert_null(bufpool_get_run(&bp));
	bufpool_put(&bp, b);
	bufpool_fini(&bp);
	assert_int_equal(bufpool_init(&bp, 16 << 20), 0);
	assert_null(bufpool_get_run(&bp));
	bufpool_fini(&bp);
}

/* In any order, with regions that end where a run does. */
static void
test_runs_random(void **state)
{
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : (unsigned)time(NULL);
	struct bufpool bp;
	struct buf *held[64];
	int nr = 0, out = 0;

	printf("SEED=%u\n", seed);
	assert_int_equal(bufpool_init_runs(&bp, 48 << 20), 0);
	for (int i = 0; i < 100000; i++) {
		bool get = nr == 0 || (nr < 64 && rand_r(&seed) % 2), is_run = rand_r(&seed) % 3 == 0;
		struct buf *b;
		int k;

		if (get) {
			b = is_run ? bufpool_get_run(&bp) : bufpool_get(&bp, BUF_LARGE);
			if (!b) {
				assert_true(is_run || out == bp.total[BUF_LARGE]);
				continue;
			}
			memset(b->mem, 0, 64);
			for (int n = 0; n < buf_nr(b); n++) {
				char *part = b->mem + n * (BUF_LARGE_BYTES + BUF_SLACK_BYTES);

				memcpy(part, &b, sizeof b);
			}
			held[nr++] = b;
			out += buf_nr(b);
		} else {
			k = (int)(rand_r(&seed) % (unsigned)nr);
			b = held[k];
			for (int n = 0; n < buf_nr(b); n++) {
				struct buf *was;

				memcpy(&was, b->mem + n * (BUF_LARGE_BYTES + BUF_SLACK_BYTES), sizeof was);
				assert_ptr_equal(was, b);
			}
			out -= buf_nr(b);
			held[k] = held[--nr];
			bufpool_put(&bp, b);
		}
		assert_int_equal(bp.avail[BUF_LARGE], bp.total[BUF_LARGE] - out);
	}
	while (nr)
		bufpool_put(&bp, held[--nr]);
	for (out = 0; bufpool_get_run(&bp); out++)
		;
	assert_int_equal(out, bp.total[BUF_LARGE] / BUF_RUN_NR);
	bufpool_fini(&bp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),        cmocka_unit_test(test_no_share),
		cmocka_unit_test(test_smallest),    cmocka_unit_test(test_regions),
		cmocka_unit_test(test_class),       cmocka_unit_test(test_runs),
		cmocka_unit_test(test_runs_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
