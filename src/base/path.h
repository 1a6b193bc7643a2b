/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of two paths: as written, or by the file they refer to. Any thread may call these functions. */
#ifndef GANTRY_BASE_PATH_H
#define GANTRY_BASE_PATH_H

#include <stdbool.h>

/* Returns true if two paths have the same text, apart from redundant slashes, which for example a shell
 * appends to a directory. Files are not examined. */
bool path_same(const char *a, const char *b);

/* Returns true if both paths refer to the same file, directory or device: the paths are equal, or differ by a
 * link, a mount, or another device node. A path that cannot be examined is equal only to itself. */
bool path_leads_same(const char *a, const char *b);

#endif
