/* SPDX-License-Identifier: Apache-2.0 */
/* Text of others on its way to a terminal or a log.  Pure; any thread. */
#ifndef GANTRY_BASE_PRINTABLE_H
#define GANTRY_BASE_PRINTABLE_H

#include <stdbool.h>

/*
 * Makes a text do nothing but stand there: puts a question mark, or a blank for a tab or a line's end, in
 * place of each character that a terminal may obey or that turns the order of what follows (C0, DEL, C1
 * whether as UTF-8 or as a byte, U+2028 to U+202E, U+2066 to U+2069) and of each byte that is not
 * UTF-8.  keep: of the bytes below 0x20, those that stay.  In place, never longer.  Returns whether anything was
 * replaced.
 */
bool printable(char *text, const char *keep);

#endif
