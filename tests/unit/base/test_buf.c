/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer pool: layout, classes, running out, regions. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool),     cmocka_unit_test(test_no_share),
		cmocka_unit_test(test_smallest), cmocka_unit_test(test_regions),
		cmocka_unit_test(test_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
