/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_names - disks of a set as operators name them: by path, UUID or number; and what is known of each.  Any thread.
 */
#ifndef GANTRY_SET_DISK_NAMES_H
#define GANTRY_SET_DISK_NAMES_H

#include "set/set_int.h"

/* Returns the number that operators see of the disk of an engine; -1: it has none. */
int disk_unit_of(const struct set *s, int engine);
/* Looks at the disk of an engine. */
void disk_look(const struct set *s, int engine, struct store_unit_info *ret_info);
/* Says how large members that are there are, by number in the placement map. */
void disk_sizes(const struct set *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Returns how many bytes would go elsewhere with all that is on a disk: without its log and the room for its snapshots. */
uint64_t disk_used_bytes(const struct set *s, int engine);
/* Returns the engine of the disk to which a path leads, by whatever way; -1: none. */
int disk_engine_at(const struct set *s, const char *path);
/* Tells whether a disk was drained before this start, and no engine has its path: another disk may be there. */
bool disk_has_left(const struct set *s, int unit);
/* Returns the member with that path, UUID or number, or one that has left; -1: none. */
int disk_find(const struct set *s, const char *which);
/* Tells whether every disk of the store is in service. */
bool disks_all_serve(const struct set *s);
/* Says which disk is not there, or has failed, and why.  False: none is so. */
bool disks_say_out(const struct set *s, char *text, size_t len);
/* Writes a sentence to said, and returns r. */
int disk_say(char *said, size_t len, int r, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
