/* SPDX-License-Identifier: Apache-2.0 */
/* The format of the pools (format.c, upgrade.c). */
#ifndef GANTRY_RADOS_IO_FORMAT_H
#define GANTRY_RADOS_IO_FORMAT_H

#include "rados/io/codec.h"
#include "rados/io/pool.h"

struct rstore;

/* ---- format.c ---- */

/* Reads and checks the format of the pools at the start. Returns 0, or -errno with the reason in err. */
int format_read(struct rstore *st, char *err, size_t err_len);
/* Returns 0 if the format of the pools allows records of this version; otherwise logs that `gantryd
 * --upgrade` is needed, and returns -EOPNOTSUPP. Any thread. */
int format_allows(struct rstore *st, uint32_t version);
/* Reads the description of the store in a pool. Returns 0, or -errno as format_decode() does. */
int format_row(struct rstore *st, enum pool pool, uint8_t bytes[STORE_FORMAT_BYTES],
	       struct store_format_row *ret_row);
/* Reads the format version again: `gantryd --upgrade` of another process may have raised it. */
void format_look(struct rstore *st);

/* ---- upgrade.c ---- */

/* Raises the format of the pools to the newest version, unless a gateway of an earlier version has a row.
 * Returns 0 or -errno, with a sentence about the result in `said`. */
int format_raise(struct rstore *st, char *said, size_t said_len);

#endif
