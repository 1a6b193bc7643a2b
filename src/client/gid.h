/* SPDX-License-Identifier: Apache-2.0 */
/* gid - chooses the row of a port's GID table that tokens contain. Any thread. */
#ifndef GANTRY_CLIENT_GID_H
#define GANTRY_CLIENT_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ibv_context;
struct ibv_gid_entry;

/* Reads the GID table of all ports, of any length: the driver returns nothing if the buffer is too small. The
 * caller frees the table with free(). Returns NULL if there is no memory. *ret_nr: number of rows, or
 * -errno. */
struct ibv_gid_entry *gid_table(struct ibv_context *ctx, ssize_t *ret_nr);

/* Chooses the best row of the port's GID table, or the row with the address `want` if that is not NULL.
 * Returns false if there is none. */
bool port_gid(struct ibv_context *ctx, unsigned port_num, const uint8_t *want, uint8_t *ret_index,
	      uint8_t ret_gid[16]);

#endif
