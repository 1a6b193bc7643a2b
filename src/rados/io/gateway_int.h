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

/* ---- gateway.c ---- */

/* The table of gateways: the epoch, the number that the next gateway gets, and the rows of all gateways. */
struct gateway_table {
	uint64_t epoch, next;
	struct peer *peers;
	uint32_t nr;
};
/* Reads the table; the caller frees ret_table->peers. Returns 0 or -errno. Any thread. */
int gateway_read_table(struct rstore *st, struct gateway_table *ret_table);

/* ---- format.c ---- */

/* Reads the version of the format, which `gantryd --upgrade` of another process may have raised. */
void format_look(struct rstore *st);

/* ---- sweep.c ---- */

/* Removes what was garbage EPOCHS_KEPT epochs ago. */
void sweep(struct rstore *st);
/* Looks through all shards at the next sweep, for what earlier gateways left. */
void sweep_everything_later(struct rstore *st);
/* Removes the data objects of an id: those of so many bytes, or (UINT64_MAX) however many there are.  0 or
 * -errno. */
int remove_data(struct rstore *st, struct rid id, uint64_t size_bytes);
/* Reads the next page of an omap; calls entry() for each; after is where it begins, and where it ended.  1:
 * there is more; 0: there is not; -errno, that of entry() included. */
int read_page(struct rstore *st, const char *object, const char *prefix, char after[OMAP_KEY_MAX],
	      int (*entry)(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len),
	      void *cookie);
/* Reads the value of a key of an omap into a buffer.  Its length; -ENOENT: there is none; -EBADMSG: it is longer; -errno.  Any thread. */
int read_value(rados_ioctx_t io, const char *object, const char *key, char *buf, size_t cap);
/* Reads the list of parts that a map is; the caller frees the bytes.  0 or -errno. */
int read_map(struct rstore *st, struct rid map, char **ret_bytes, size_t *ret_len);
/* ---- watch.c ---- */

/* Asks the monitors what operators want to know. */
void ask_cluster(struct rstore *st);

/* ---- dead.c ---- */

/* Cleans up after gateways that were declared dead (rule 4), and sweeps. */
void clean_up(struct rstore *st);

#endif
