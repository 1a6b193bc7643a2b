/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the gateway's helpers: what gateway.c, sweep.c, dead.c and usage.c share.  All of it is for helpers' threads. */
#ifndef GANTRY_RADOS_GATEWAY_INT_H
#define GANTRY_RADOS_GATEWAY_INT_H

#include "rados/io/rados_int.h"

/* Another gateway, or this one, as its row says. */
struct peer {
	uint32_t instance;
	struct gateway_row row;
	uint8_t bytes[GATEWAY_ROW_BYTES];
	uint64_t silent_ns; /* how long the row has been as it is while this gateway looked */
};

/* ---- rows.c; any thread that may wait ---- */

/* Calls row() for each row whose key begins with the prefix, in order. Returns 0; -errno of a read; or the first other
 * result of row(), with which the rows end. */
int each_row(const struct rstore *st, const char *object, const char *prefix, row_fn row, void *cookie);
/* Reads the value of a row into a buffer. Returns its length; -ENOENT: there is no such row; -EBADMSG: the value is longer
 * than cap; or another -errno. */
int read_value(const struct rstore *st, const char *object, const char *key, void *buf, size_t cap);
/* Reads a number of the table of gateways: "E", the epoch, or "N", the number of the next gateway. Returns 0 or -errno. */
int read_number(const struct rstore *st, const char *key, uint64_t *ret_number);
/* Executes a write, and releases it. Returns the result. */
int write_now(rados_ioctx_t io, const char *object, rados_write_op_t op);
/* Raises the generation of a shard, without the bits `clears`. Returns 0 or -errno. */
int raise_generation(const struct rstore *st, const char *shard, uint64_t clears);

/* ---- names.c; any thread that may wait ---- */

/* A data object id, or a map, that a row names. */
struct row_name {
	struct rid id;
	uint64_t size_bytes; /* of the data */
	uint64_t crc64;      /* CRC of the list in the map of a record that is no garbage */
	bool is_map, is_garbage;
};
/* Takes a name. Returns 0, or the result with which the names end. */
typedef int (*name_fn)(void *cookie, const struct row_name *n);

/* Calls name() for each name in a row of a shard. Returns 0; -EBADMSG: the row is damaged; or a result of name(). */
int row_names(const char *key, const char *val, size_t val_len, name_fn name, void *cookie);
/* Calls name() for the data of each part in a list. Returns 0; -EBADMSG, without a call; or a result of name(). */
int parts_names(const void *parts, size_t len, bool is_garbage, name_fn name, void *cookie);
/* Reads the list of parts in a map; the caller frees the list, also after an error. Returns 0 or -errno. */
int read_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len);
/* Reads the list as read_map() does, for a caller without the CRC in the record, and compares it with the CRC beside it. */
int read_own_map(const struct rstore *st, struct rid map, char **ret_list, size_t *ret_len);

/* ---- gateway.c ---- */

/* The table of gateways: the epoch, the number that the next gateway gets, and the rows of all gateways. */
struct gateway_table {
	uint64_t epoch, next;
	struct peer *peers;
	uint32_t nr;
	size_t cap;
};
/* Reads the table, the rows last, so that each gateway with a lower number than the next has its row, or has none any more; the caller frees ret_table->peers. Returns 0 or -errno. Any thread. */
int gateway_read_table(struct rstore *st, struct gateway_table *ret_table);

/* ---- format.c ---- */

/* Reads the version of the format, which `gantryd --upgrade` of another process may have raised. */
void format_look(struct rstore *st);

/* ---- sweep.c ---- */

/* Removes what was garbage EPOCHS_KEPT epochs ago. */
void sweep(struct rstore *st);
/* Removes the data objects of an id, however many there are. Returns 0 or -errno. */
int remove_data(struct rstore *st, struct rid id);

/* ---- watch.c ---- */

/* Asks the monitors what operators want to know. For periodic_start(); cookie: the store. */
void ask_cluster(void *cookie);

/* ---- dead.c ---- */

/* Cleans up after gateways that were declared dead (rule 4), and sweeps. For periodic_start(); cookie: the store. */
void clean_up(void *cookie);

#endif
