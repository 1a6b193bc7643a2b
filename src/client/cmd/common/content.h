/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content - contents of test objects. Each byte follows from a seed and the offset of the byte, so that
 * contents can be checked without a stored copy. Pure functions, which any thread may call.
 */
#ifndef GANTRY_CLIENT_CMD_CONTENT_H
#define GANTRY_CLIENT_CMD_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Returns a number that follows from x and looks random; different x have different results. */
uint64_t content_scramble(uint64_t x);
/* Writes the first len bytes of an object with this seed to mem. */
void content_fill(void *mem, size_t len, uint64_t seed);
/* Compares mem with the first len bytes of an object with this seed. Returns the number of correct bytes
 * before the first wrong one; len: all are correct. */
size_t content_compare(const void *mem, size_t len, uint64_t seed);

#endif
