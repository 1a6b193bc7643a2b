/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as they are written.  Pure functions, any thread. */
#ifndef GANTRY_BASE_PATH_H
#define GANTRY_BASE_PATH_H

#include <stdbool.h>

/* Tells whether two paths are written alike, but for slashes that say nothing: shells put one behind the name of a directory.  Where
 * they lead is not asked. */
bool path_same(const char *a, const char *b);

#endif
