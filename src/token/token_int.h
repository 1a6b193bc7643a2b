/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of token/. */
#ifndef GANTRY_TOKEN_TOKEN_INT_H
#define GANTRY_TOKEN_TOKEN_INT_H

#include "base/span.h"
#include "token/token.h"

/* Returns the text without the blanks around it, and without one trailing ';' (protocol.md 2.1, item 8). */
struct span token_strip(const char *text, size_t len);

/* Sets *ret_why to why, and returns -EINVAL. */
int token_bad(const char **ret_why, const char *why);

/* Parses ":ADDR2:SIZE2" of protocol.md 2.2, each with 1 to 16 hexadecimal digits. Returns 0 or -EINVAL. */
int token_suffix(struct span s, uint64_t *ret_addr, uint64_t *ret_size, const char **ret_why);

/* Returns true if s, of at least 81 characters, has colons at the positions of protocol.md 2.1. */
bool token_has_colons(struct span s);

/* Returns true, and the kind, for a family whose shape alone differs from that of protocol.md 2.1 (section
 * 8). scal: the header allows the form of 2.6. */
bool token_is_family(struct span s, bool scal, enum token_kind *ret_kind);

#endif
