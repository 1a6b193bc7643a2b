/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the helper threads of the gateway, and to the commands that need no port (fsck, --upgrade). */
#ifndef GANTRY_RADOS_GATEWAY_INT_H
#define GANTRY_RADOS_GATEWAY_INT_H

#include "rados/io/rados_int.h"

/* The row of a gateway, which may be this one. */
struct peer {
	uint32_t instance;
	struct gateway_row row;
	uint8_t bytes[GATEWAY_ROW_BYTES];
	/* time for which the row has not changed, counted while this gateway has read it */
	uint64_t silent_ns;
};

/* ---- rows.c; any thread that may block ---- */

/* Calls row() for each row whose key begins with the prefix, in the order of the keys. Returns 0; -errno
 * of a read; or the first result of row() other than 0, which ends the iteration. */
int each_row(const struct rstore *st, const char *object, const char *prefix, row_fn row, void *cookie);
/* Reads the value of a row into a buffer. Returns its length; -ENOENT: the row does not exist; -EBADMSG:
 * the value is longer than cap; or another -errno. */
int read_value(const struct rstore *st, const char *object, const char *key, void *buf, size_t cap);
/* Reads a number in the table of gateways: "E": the epoch; "N": the instance number of the next gateway.
 * Returns 0 or -errno. */
int read_number(const struct rstore *st, const char *key, uint64_t *ret_number);
/* Executes a write, and releases it. Returns the result. */
int write_now(rados_ioctx_t io, const char *object, rados_write_op_t op);
/* Raises the generation of a shard by one, and clears the bits `clears`. Returns 0; -EBADMSG: the shard has no
 * generation, or a damaged one; or another -errno. */
int raise_generation(const struct rstore *st, const char *shard, uint64_t clears);

/* ---- names.c; any thread that may block ---- */

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

/* ---- gateway.c ---- */

/* The table of gateways: the epoch, the instance number of the next gateway, and the rows of all gateways. */
struct gateway_table {
	uint64_t epoch, next;
	struct peer *peers;
	uint32_t nr;
	size_t cap;
};
/* Reads the table, the rows last: a gateway with a lower number than `next` has its row there, or has
 * ended. The caller frees ret_table->peers. Returns 0 or -errno. Any thread that may block. */
int gateway_read_table(struct rstore *st, struct gateway_table *ret_table);

/* ---- gateway_calls.c ---- */

/* Returns the oldest epoch that this gateway pins; if it pins none, the current one. Any thread. */
uint64_t gateway_oldest_epoch(struct gateway *gw);

/* ---- format.c ---- */

/* Reads the format version again: `gantryd --upgrade` of another process may have raised it. */
void format_look(struct rstore *st);

/* ---- sweep.c ---- */

/* Logs a problem that the cleaner finds at every turn until the problem is solved: as a warning at first,
 * and again after ten minutes; otherwise, or after WARNED_MAX other warnings in ten minutes, at level
 * debug. For the thread of the cleaner. */
void cleaner_warn(struct rstore *st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Removes garbage that is EPOCHS_KEPT epochs old. */
void sweep(struct rstore *st);
/* Removes all data objects of an id, whose number is unknown. Returns 0 or -errno. */
int remove_data(struct rstore *st, struct rid id);

/* ---- watch.c ---- */

/* Reads from the monitors the data for operators. For periodic_start(); cookie: the store. */
void ask_cluster(void *cookie);

/* ---- dead.c ---- */

/* Cleans up after dead gateways (rule 4), then sweeps. For periodic_start(); cookie: the store. */
void clean_up(void *cookie);

#endif
