/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_names - finds a set's disks by the names that operators use, and reports data of each disk. Any thread may call
 * these functions.
 */
#ifndef GANTRY_SET_DISK_NAMES_H
#define GANTRY_SET_DISK_NAMES_H

#include "set/set_int.h"
#include "base/disk_name.h"

/* Returns the number of the unit (the disk as operators see it) that an engine's disk is; -1: the engine's
 * disk is not a unit. */
int disk_unit_of(const struct set *s, int engine);
/* Reads the state of a unit's disk; of a disk without an engine only its path is known. */
void disk_look_unit(const struct set *s, int unit, struct store_unit_info *ret_info);
/* Returns the sizes of the members that are present, in bytes, by number in the placement map. */
void disk_sizes(const struct set *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Returns the number of bytes that a drain of a disk would move: the used bytes, without the log and without
 * the space for snapshots. */
uint64_t disk_used_bytes(const struct set *s, int engine);
/* Returns the engine of the disk at a path, in any notation of the path; -1: no engine has this path. */
int disk_engine_at(const struct set *s, const char *path);
/* Returns true if a disk was drained before this start and no engine has its path. Another disk may be at
 * this path now. */
bool disk_has_left(const struct set *s, int unit);
/* Returns the unit of the member, or of the drained disk, of which `which` is the path, the UUID, or the first
 * digits of the UUID; -ENOENT: no such disk; -ENOTUNIQ: these are the first digits of several disks. */
int disk_find(const struct set *s, const char *which);
/* Writes the name of a disk for messages (base/disk_name.h), and returns text. */
const char *disk_called(const struct set *s, int unit, char text[DISK_NAME_BYTES]);
/* Writes the label of a disk (struct store_unit_info); an empty text if the disk has no UUID. */
void disk_label(const struct set *s, int unit, char label[64]);
/* Returns true if every disk of the store is in service. */
bool disks_all_serve(const struct set *s);
/* Returns the bitmap of the numbers of the disks in service. */
uint64_t disks_serving(const struct set *s);
/* Writes the name of a disk that is missing or has failed, with the reason. Returns false if there is no such
 * disk. */
bool disks_say_out(const struct set *s, char *text, size_t len);

#endif
