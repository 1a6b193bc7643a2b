/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the row of a port's GID table for tokens. Any thread. */
#ifndef GANTRY_CLIENT_GID_H
#define GANTRY_CLIENT_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ibv_context;
struct ibv_gid_entry;

/* Reads the table of all ports, of any length: the driver returns nothing if the buffer is too small. free()
 * it; NULL: no memory. *ret_nr: number of rows, or -errno. */
struct ibv_gid_entry *gid_table(struct ibv_context *ctx, ssize_t *ret_nr);

/* Chooses the best row of the port, or the row of the address `want` if that is not NULL. False: there is
 * none. */
bool port_gid(struct ibv_context *ctx, unsigned port_num, const uint8_t *want, uint8_t *ret_index,
	      uint8_t ret_gid[16]);

#endif
