/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content - contents of test objects, computed from a seed and the offset, so that every byte can be compared
 * without a stored copy. Pure functions; any thread may call them.
 */
#ifndef GANTRY_CLIENT_CMD_CONTENT_H
#define GANTRY_CLIENT_CMD_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Maps a number to another one; different numbers have different results. */
uint64_t content_scramble(uint64_t x);
/* Writes the first len bytes of an object with this seed. */
void content_fill(void *mem, size_t len, uint64_t seed);
/* Returns the number of correct bytes before the first wrong byte; len: all bytes are correct. */
size_t content_compare(const void *mem, size_t len, uint64_t seed);

#endif
