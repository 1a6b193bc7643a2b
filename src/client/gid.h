/* SPDX-License-Identifier: Apache-2.0 */
/* gid - chooses the entry of a port's GID table whose address tokens contain. Any thread may call these
 * functions. */
#ifndef GANTRY_CLIENT_GID_H
#define GANTRY_CLIENT_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ibv_context;
struct ibv_gid_entry;

/* Reads the GID table with the entries of all ports of a device, of any length. Returns the table, which the
 * caller frees with free(); NULL: no memory. *ret_nr: number of entries of the table, or the -errno of the
 * driver. */
struct ibv_gid_entry *gid_table(struct ibv_context *ctx, ssize_t *ret_nr);

/* Chooses an entry of a port's GID table. want: address of the entry; NULL: the best entry. Returns true,
 * with the index and the address of the entry; false: there is no such entry. */
bool port_gid(struct ibv_context *ctx, unsigned port_num, const uint8_t *want, uint8_t *ret_index,
	      uint8_t ret_gid[16]);

#endif
