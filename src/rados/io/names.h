/* SPDX-License-Identifier: Apache-2.0 */
/* The data objects and maps that rows name (names.c). Any thread that may block. */
#ifndef GANTRY_RADOS_IO_NAMES_H
#define GANTRY_RADOS_IO_NAMES_H

#include "rados/io/codec.h"

struct rstore;

/* The id of data objects, or of a map, that a row names. */
struct row_name {
	struct rid id;
	uint64_t size_bytes; /* size of the data */
	uint64_t crc64;      /* CRC of the list in a map, if the row is a record; garbage has no CRC */
	bool is_map, is_garbage;
};
/* Handles a name. Returns 0, or the result with which the iteration ends. */
typedef int (*name_fn)(void *cookie, const struct row_name *n);

/* Calls name() for each name in a row of a shard. Returns 0; -EBADMSG: the row is damaged; or a result of
 * name(). */
int row_names(const char *key, const char *val, size_t val_len, name_fn name, void *cookie);
/* Calls name() for the data of each part in a list. Returns 0; -EBADMSG, without any call; or a result of
 * name(). */
int parts_names(const void *parts, size_t len, bool is_garbage, name_fn name, void *cookie);
/* Reads the list of parts in a map; the caller frees the list, also after an error. Returns 0 or -errno. */
int read_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len);
/* Reads the list as read_map() does, and compares it with the CRC in the attribute of the map. For callers
 * without the record. Returns 0; -EBADMSG: the list is damaged; or another -errno. */
int read_own_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len);

#endif
