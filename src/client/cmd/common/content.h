/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content - bytes of which each follows from a seed and its place, so that any of them can be compared without keeping one.
 * Pure; any thread.
 */
#ifndef GANTRY_CLIENT_CMD_CONTENT_H
#define GANTRY_CLIENT_CMD_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Scrambles a number, one to one. */
uint64_t content_scramble(uint64_t x);
/* Writes the bytes of an object that has that seed. */
void content_fill(void *mem, size_t len, uint64_t seed);
/* Returns how many bytes are as they must be, in front of the first that is not: len when all are. */
size_t content_compare(const void *mem, size_t len, uint64_t seed);

#endif
