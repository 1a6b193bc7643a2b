/* SPDX-License-Identifier: Apache-2.0 */
/* Two paths of one thing, see path.h. */
#include "base/path.h"

#include <string.h>
#include <sys/stat.h>

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

bool
path_leads_same(const char *a, const char *b)
{
	struct stat sa, sb;

	if (strcmp(a, b) == 0)
		return true;
	if (stat(a, &sa) < 0 || stat(b, &sb) < 0)
		return false;
	if (S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode))
		return sa.st_rdev == sb.st_rdev;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
