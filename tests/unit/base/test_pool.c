/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of memory blocks: zeroed blocks, the last one returned first, and no physical memory for blocks that were never taken. */
#include "base/pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define PAGE 4096u
#define BYTES (12 * PAGE)
#define NR 512 /* of BYTES: 24 MiB */

static void
test_blocks(void **state)
{
	unsigned char *b[3];
	struct pool p;

	assert_int_equal(pool_init(&p, 100, 3), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pool_avail(&p), 3 - i);
		b[i] = pool_get(&p);
		assert_int_equal((uintptr_t)b[i] % _Alignof(max_align_t), 0);
		for (int k = 0; k < 100; k++)
			assert_int_equal(b[i][k], 0);
		memset(b[i], 0xff, 100);
	}
	assert_null(pool_get(&p));
	pool_put(&p, b[0]);
	pool_put(&p, b[2]);
	assert_ptr_equal(pool_get(&p), b[2]);
	assert_ptr_equal(pool_get(&p), b[0]);
	for (int i = 0; i < 3; i++)
		pool_put(&p, b[i]);
	pool_fini(&p);
}

static void
test_empty(void **state)
{
	struct pool p = { 0 };

	assert_null(pool_get(&p));
	pool_fini(&p);
	assert_int_equal(pool_init(&p, 16, 0), 0);
	assert_null(pool_get(&p));
	pool_fini(&p);
	assert_int_equal(pool_init(&p, SIZE_MAX / 4, 3), -ENOMEM);
	pool_fini(&p);
}

static void
test_pages(void **state)
{
	struct pool p;

	assert_int_equal(pool_init(&p, BYTES, NR), 0);
	for (int i = 0; i < NR; i++)
		assert_int_equal((uintptr_t)pool_get(&p) % PAGE, 0);
	p.used = 0;
	pool_fini(&p);
}

/* Counts the pages of a pool that are in memory. */
static unsigned
resident(const struct pool *p)
{
	static unsigned char is_in[BYTES / PAGE * NR];
	unsigned nr = 0;

	assert_int_equal(mincore(p->mem - (uintptr_t)p->mem % PAGE, (size_t)BYTES * NR, is_in), 0);
	for (size_t i = 0; i < sizeof is_in; i++)
		nr += is_in[i] & 1;
	return nr;
}

static void
test_untouched(void **state)
{
	struct pool p;
	void *b;

	/* Freed memory of the heap, which calloc() would clear. glibc raises its threshold for mmap() at the first. */
	for (int i = 0; i < 2; i++) {
		char *volatile used = malloc(30u << 20);

		memset(used, 1, 30u << 20);
		free(used);
	}
	assert_int_equal(pool_init(&p, BYTES, NR), 0);
	assert_int_equal(resident(&p), 0);
	b = pool_get(&p);
	memset(b, 1, BYTES);
	/* At most one huge page. */
	assert_in_range(resident(&p), BYTES / PAGE, 512);
	pool_put(&p, b);
	pool_fini(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks), cmocka_unit_test(test_empty),
					    cmocka_unit_test(test_pages), cmocka_unit_test(test_untouched) };

	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
