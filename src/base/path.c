/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as they are written, see path.h. */
#include "base/path.h"

#include <string.h>

/* Takes the next byte; a slash with all that follow it, and none at the end. */
static char
take(const char **path)
{
	const char *p = *path;
	size_t slashes = strspn(p, "/");

	*path = p + (slashes ? slashes : *p != 0);
	return slashes && !**path ? 0 : *p;
}

bool
path_same(const char *a, const char *b)
{
	char c, d;

	/* The root is nothing but slashes, and is not the empty path. */
	if (!*a != !*b || (*a == '/') != (*b == '/'))
		return false;
	do {
		c = take(&a);
		d = take(&b);
	} while (c && c == d);
	return c == d;
}
