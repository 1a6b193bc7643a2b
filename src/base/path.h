/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two paths are one: as they are written, or by where they lead.  Any thread. */
#ifndef GANTRY_BASE_PATH_H
#define GANTRY_BASE_PATH_H

#include <stdbool.h>

/* Tells whether two paths are written alike, but for slashes that say nothing: shells put one behind the name of a directory.  Where
 * they lead is not asked. */
bool path_same(const char *a, const char *b);

/* Tells whether both paths are of one file, directory or device: equal, by a link, a mount, or another node.  Of what cannot be looked
 * at only equal paths are. */
bool path_leads_same(const char *a, const char *b);

#endif
