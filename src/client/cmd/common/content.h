/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content - bytes computed from a seed and their offset, so that any of them can be compared without a stored
 * copy. Pure; any thread.
 */
#ifndef GANTRY_CLIENT_CMD_CONTENT_H
#define GANTRY_CLIENT_CMD_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Scrambles a number, one to one. */
uint64_t content_scramble(uint64_t x);
/* Writes the bytes of an object with that seed. */
void content_fill(void *mem, size_t len, uint64_t seed);
/* Returns the number of correct bytes before the first wrong one: len if all are correct. */
size_t content_compare(const void *mem, size_t len, uint64_t seed);

#endif
