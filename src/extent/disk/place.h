/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a disk before it is opened: below /dev, or in memory. Any thread; the functions look at files and may block. */
#ifndef GANTRY_EXTENT_DISK_PLACE_H
#define GANTRY_EXTENT_DISK_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if a path that is no device leads below /dev, where nothing is made: the device is not there. A directory that exists
 * on a file system of its own, such as /dev/shm, is another thing. */
bool place_is_dev(const char *path);

/* Returns true if the bytes of a directory or device are in memory, as far as that can be known: tmpfs, ramfs, an overlay whose upper
 * directory is on one, a RAM disk, a loop device whose file is on one. why then has a sentence for operators. A path that does not
 * exist is judged by its nearest directory. */
bool place_is_memory(const char *path, char *why, size_t why_len);

#endif
