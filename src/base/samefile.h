/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two paths lead to one thing.  Pure functions of the file system, any thread. */
#ifndef GANTRY_BASE_SAMEFILE_H
#define GANTRY_BASE_SAMEFILE_H

#include <stdbool.h>

/* Tells whether both paths are of one file, directory or device: equal, by a link, a mount, or another node.  Of what cannot be looked
 * at only equal paths are. */
bool is_same_file(const char *a, const char *b);

#endif
