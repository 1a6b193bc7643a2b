/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the path of a disk before it is opened: is it below /dev, or in memory? Any thread may call these
 * functions, which examine files and can block. */
#ifndef GANTRY_EXTENT_DISK_PLACE_H
#define GANTRY_EXTENT_DISK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns true if a path leads below /dev and is not a device: then the device is absent, and no store is
 * made there. Returns false for a directory on a separate file system, such as /dev/shm. */
bool place_is_dev(const char *path);

/* Returns true if the bytes of a directory or device are known to be in memory, with a sentence for operators
 * in `why`. Such places are tmpfs and ramfs, an overlay whose upper directory is on tmpfs or ramfs, a RAM
 * disk, and a loop device whose file is in memory. For a path that does not exist the nearest existing
 * directory is checked. */
bool place_is_memory(const char *path, char *why, size_t why_len);

/* Returns the options of the file system of a device, with commas between them, from the list of mounts; to be freed with
 * free(). NULL: the device is not mounted, or the list cannot be read. */
char *place_mount_options(dev_t dev);

#endif
