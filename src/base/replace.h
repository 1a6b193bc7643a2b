/* SPDX-License-Identifier: Apache-2.0 */
/* replace - replaces a file as a whole, so that readers, and a power cut, find the old or the new one. Any thread. */
#ifndef GANTRY_BASE_REPLACE_H
#define GANTRY_BASE_REPLACE_H

#include <stddef.h>

/* Replaces a file atomically and durably: a new file beside it is written, flushed and renamed, and the directory
 * is flushed. Blocking. Returns 0, or -errno: the old file is still there, unless the error is one of the flush of the
 * directory. */
int replace_file(const char *file, const char *text, size_t len);

#endif
