/* SPDX-License-Identifier: Apache-2.0 */
/* escape - texts of clients inside of JSON and of log lines. Pure functions, which any thread may call. */
#ifndef GANTRY_BASE_ESCAPE_H
#define GANTRY_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

#define ESCAPE_JSON_MAX 6 /* largest size, in bytes, of a character inside of a JSON string */

/* Writes the first character of a text of at least one byte as it stands inside of a JSON string to out,
 * without a NUL: a '?' for a byte that is not UTF-8. Sets *ret_written to the number of bytes written, and
 * returns the number of bytes of the text that were used. */
size_t escape_json_char(const char *text, size_t len, char out[ESCAPE_JSON_MAX], size_t *ret_written);

/* Writes a text as the inside of a JSON string, with a NUL. Characters that do not fit are left out. Returns
 * the number of bytes without the NUL. *ret_is_whole (may be NULL): true if the string has all bytes of the
 * text; false if a byte was not UTF-8 or did not fit. */
size_t escape_json(char *out, size_t cap, const char *text, size_t len, bool *ret_is_whole);

/* Size of the result of escape_url() for a text of so many bytes. */
#define ESCAPE_URL_BYTES(bytes) (3 * (bytes) + 1)
/* Writes a text with percent sequences in place of all bytes but letters, digits and "-./_~", and a NUL.
 * Bytes that do not fit are left out. Returns the number of bytes without the NUL. */
size_t escape_url(char *out, size_t cap, const char *text, size_t len);

#endif
