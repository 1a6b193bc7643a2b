/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 text (RFC 4648 section 4, with padding), the form of checksums in header fields. Pure functions,
 * which any thread may call. */
#ifndef GANTRY_BASE_BASE64_H
#define GANTRY_BASE_BASE64_H

#include <stddef.h>

/* Number of Base64 characters for len bytes, without a terminator. */
#define BASE64_LEN(len) (((len) + 2) / 3 * 4)

/* Writes the Base64 text of len bytes: BASE64_LEN(len) characters and a NUL. */
void base64_encode(const void *bytes, size_t len, char *text);

/* Decodes Base64 strictly: whole groups of four, padding only at the end, spare bits zero, no other
 * characters. Returns 0 with *ret_len bytes in ret_bytes; -EINVAL: the text is invalid; -EMSGSIZE: the
 * decoded text has more than cap bytes. After an error ret_bytes may contain some of the bytes. */
int base64_decode(const char *text, size_t len, void *ret_bytes, size_t cap, size_t *ret_len);

#endif
