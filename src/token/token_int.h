/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of token/. */
#ifndef GANTRY_TOKEN_TOKEN_INT_H
#define GANTRY_TOKEN_TOKEN_INT_H

#include "base/span.h"
#include "token/token.h"

/* Returns the text without blanks around it and without one trailing ';' (protocol.md 2.1, item 8). */
struct span token_strip(const char *text, size_t len);

/* Sets *ret_why and returns -EINVAL. */
int token_bad(const char **ret_why, const char *why);

/* Parses ":ADDR2:SIZE2" of 2.2, each 1 to 16 hex digits.  0 or -EINVAL. */
int token_suffix(struct span s, uint64_t *ret_addr, uint64_t *ret_size, const char **ret_why);

/* Returns true if the colons of s are where 2.1 has them; s has 81 characters or more. */
bool token_has_colons(struct span s);

/* Returns true for a family that differs from 2.1 by its shape alone (protocol.md section 8). scal: the
 * header allows 2.6. */
bool token_is_family(struct span s, bool scal, enum token_kind *ret_kind);

#endif
