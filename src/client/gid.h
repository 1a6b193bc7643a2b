/* SPDX-License-Identifier: Apache-2.0 */
/* Which row of a port's GID table tokens name.  Any thread. */
#ifndef GANTRY_CLIENT_GID_H
#define GANTRY_CLIENT_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ibv_context;
struct ibv_gid_entry;

/* Reads the table of all ports, however long it is: with too little room the driver says nothing at all.  free() it;
 * NULL: no memory.  *ret_nr: how many rows there are, or -errno. */
struct ibv_gid_entry *gid_table(struct ibv_context *ctx, ssize_t *ret_nr);

/* Chooses the best row of the port, or the one of the address want where that is not NULL.  False: there is none. */
bool port_gid(struct ibv_context *ctx, unsigned port_num, const uint8_t *want, uint8_t *ret_index,
	      uint8_t ret_gid[16]);

#endif
