/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 text (RFC 4648 section 4, with padding), as checksum headers carry it.
 * Pure functions, any thread. */
#ifndef GANTRY_BASE_BASE64_H
#define GANTRY_BASE_BASE64_H

#include <stddef.h>

/* Number of Base64 characters for len bytes, without a terminator. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_LEN(len) characters and a NUL. */
void base64_encode(const void *bytes, size_t len, char *text);

/*
 * Decodes strictly: whole groups of four, padding only at the end, spare bits zero, nothing else in
 * between.  0 with *ret_len bytes in ret_bytes, or -EINVAL; -EMSGSIZE when they are more than cap.  On failure
 * ret_bytes may hold part of them.
 */
int base64_decode(const char *text, size_t len, void *ret_bytes, size_t cap, size_t *ret_len);

#endif
