/* SPDX-License-Identifier: Apache-2.0 */
/* printable - makes text from other parties safe for a terminal or a log. Pure functions, which any thread
 * may call. */
#ifndef GANTRY_BASE_PRINTABLE_H
#define GANTRY_BASE_PRINTABLE_H

#include <stdbool.h>

/* Makes a text harmless, in place. Characters that a terminal may interpret or that change the direction of
 * text (C0, DEL, C1 as UTF-8 or as a byte, U+2028 to U+202E, U+2066 to U+2069), and bytes that are not UTF-8,
 * are replaced by a question mark; a tab or line end is replaced by a blank. keep: bytes below 0x20 that are
 * not replaced. The text never grows. Returns true if a character was replaced. */
bool printable(char *text, const char *keep);

#endif
