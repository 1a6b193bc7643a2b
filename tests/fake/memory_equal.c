/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assert_memory_equal() of all unit programs: cmocka compares byte by byte, a megabyte in 2 ms.  Memory that memcmp() finds equal is
 * equal; the rest is cmocka's, which prints the bytes that differ.  The Makefile links this in place of cmocka's function.
 */
#include <stddef.h>
#include <string.h>

void __real__assert_memory_equal(const void *a, const void *b, size_t size, const char *file, int line);
void __wrap__assert_memory_equal(const void *a, const void *b, size_t size, const char *file, int line);

void
__wrap__assert_memory_equal(const void *a, const void *b, size_t size, const char *file, int line)
{
	if (memcmp(a, b, size) != 0)
		__real__assert_memory_equal(a, b, size, file, line);
}
