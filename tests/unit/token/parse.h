/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of protocol.md 2, and parsing them with an eye on what is read.  Included once per program. */
#ifndef GANTRY_TESTS_TOKEN_PARSE_H
#define GANTRY_TESTS_TOKEN_PARSE_H

#include "token/token.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf"
#define EXAMPLE_IB "00007f3a10000000:00100000:01f2e973:0012:007a03:0:00000000000000000000000000000000"
#define SUFFIX ":000073967e5ff000:0000000000400000"
#define RC88 "012a00000000000000000000000000ffff0a000005efbeadde00100000007f00000010000000000000010000"

/* Parses a copy that ends exactly where its allocation ends, so that the address sanitizer sees any step
 * beyond. */
static inline int
parse_with(int (*fn)(const char *, size_t, struct token *, const char **), const char *text, size_t len,
	   struct token *t)
{
	char *copy = malloc(len ? len : 1);
	const char *why = NULL;
	int r;

	memcpy(copy, text, len);
	memset(t, 0x5a, sizeof *t);
	r = fn(len ? copy : copy + 1, len, t, &why);
	free(copy);
	if (r < 0) {
		assert_int_equal(r, -EINVAL);
		assert_non_null(why);
		assert_true(strlen(why) > 10);
		/* Untouched on failure. */
		assert_int_equal(t->port, 0x5a);
	}
	return r;
}

static inline int
parse(const char *text, struct token *t)
{
	return parse_with(token_parse, text, strlen(text), t);
}

static inline int
plain(const char *text, struct token *t)
{
	return parse_with(token_parse_plain, text, strlen(text), t);
}

#endif
