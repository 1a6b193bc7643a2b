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

/* Returns true if s has colons at the positions of protocol.md 2.1. s has at least 81 characters. */
bool token_has_colons(struct span s);

/* Recognises the kinds of tokens that already differ in their shape from the form of protocol.md 2.1 (section
 * 8). scal: true: the header allows the form of 2.6. Returns true, and the kind in *ret_kind; false: s is of
 * none of these kinds. */
bool token_is_family(struct span s, bool scal, enum token_kind *ret_kind);

/* Decodes a token that begins with "rc:". */
void token_parse_shim(struct span s, struct token *ret_token);

#endif
