/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs as text: 8-4-4-4-12 hex digits, the bytes in memory order. Pure functions, which any thread may
 * call. */
#ifndef GANTRY_BASE_UUID_H
#define GANTRY_BASE_UUID_H

#include <stdint.h>

#define UUID_BYTES 16
#define UUID_TEXT 37 /* size in bytes of the text of a UUID, with the NUL */

/* Writes a UUID with lower-case digits. */
void uuid_write(char text[UUID_TEXT], const uint8_t uuid[UUID_BYTES]);
/* Parses a UUID with digits in either case. Returns 0 or -EINVAL. */
int uuid_parse(const char *text, uint8_t ret_uuid[UUID_BYTES]);

#endif
