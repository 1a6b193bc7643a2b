/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_name - the name of a disk for people: the first eight digits of its UUID, and its path, as in
 * "89ee12ab /srv/disk0". Messages, pages and commands take the name from here. Pure functions, which any
 * thread may call.
 */
#ifndef GANTRY_BASE_DISK_NAME_H
#define GANTRY_BASE_DISK_NAME_H

#include "base/uuid.h"

#include <stdbool.h>

#define DISK_DIGITS 8       /* number of digits in the name: the first group of the UUID */
#define DISK_NAME_BYTES 320 /* size in bytes of the text of a name, with the NUL; a longer path is cut */

/* Writes the name of a disk, and returns text. uuid: UUID as text; path: path of the disk; NULL or "": unknown. A
 * name has one of them at least. */
const char *disk_name(char text[DISK_NAME_BYTES], const char *uuid, const char *path);
/* Writes the name of a disk, and returns text. uuid: the bytes of the UUID; zeros: unknown. */
const char *disk_name_of(char text[DISK_NAME_BYTES], const uint8_t uuid[UUID_BYTES], const char *path);
/* Returns true if `which` is the first digits of a UUID in text form, with digits in either case. */
bool disk_digits_are(const char *which, const char *uuid);

#endif
