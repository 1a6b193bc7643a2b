/* SPDX-License-Identifier: Apache-2.0 */
/* Two paths to one thing, see samefile.h. */
#include "base/samefile.h"

#include <string.h>
#include <sys/stat.h>

bool
is_same_file(const char *a, const char *b)
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
