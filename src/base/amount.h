/* SPDX-License-Identifier: Apache-2.0 */
/* amount - sizes and times as text for people. Pure functions, which any thread may call. */
#ifndef GANTRY_BASE_AMOUNT_H
#define GANTRY_BASE_AMOUNT_H

#include <stdint.h>

#define AMOUNT_TEXT 32

/* Writes a size in bytes as text such as "1.5 MiB". Returns out. */
const char *size_text(uint64_t bytes, char out[AMOUNT_TEXT]);
/* Writes a time in seconds as text with its two largest units, such as "40 s", "3 min 20 s" or "2 h 5 min".
 * Returns out. */
const char *interval_text(uint64_t seconds, char out[AMOUNT_TEXT]);

#endif
