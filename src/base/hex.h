/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text. Pure functions, which any thread may call. */
#ifndef GANTRY_BASE_HEX_H
#define GANTRY_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Value of each character as a hex digit, 0 to 15; -1: the character is not a hex digit. */
extern const int8_t hex_value[256];

/* Returns the value of a hex digit; -1 if the character is not a hex digit. */
static inline int
hex_digit(char c)
{
	return hex_value[(unsigned char)c];
}

/* Parses exactly `digits` hex digits (at most 16), most significant first. Returns 0 or -EINVAL. */
int hex_u64(const char *text, size_t digits, uint64_t *ret_value);
/* Parses 2 * len hex digits into len bytes, in memory order. Returns 0; -EINVAL: a character is no hex digit;
 * the bytes before it have been written. */
int hex_bytes(const char *text, void *ret_bytes, size_t len);
/* Writes len bytes as 2 * len lower-case digits; no terminator. */
void hex_write(char *text, const void *bytes, size_t len);
/* Writes a number as 16 lower-case digits and NUL. */
void hex_write_u64(char text[17], uint64_t value);

#endif
