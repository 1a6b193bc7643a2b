/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of our libibverbs.so.1 for our librdmacm.so.1 (fabric_cm.c): what the public verbs do not say about the fabric. */
#ifndef SOFTNIC_CM_FABRIC_H
#define SOFTNIC_CM_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* Looks up the neighbour with this address, as the kernel does. Returns 0; ENETUNREACH: there is no route; ETIMEDOUT: the neighbour does
 * not answer, which the caller knows after *ret_wait_ns. */
int softnic_cm_route(struct ibv_context *context, const union ibv_gid *to, uint64_t *ret_wait_ns);
/* Returns true if packets from the device to this address arrive now. */
bool softnic_cm_passes(struct ibv_context *context, const union ibv_gid *to);
/* Writes a name of the fabric, the same in all its processes, to buf. */
void softnic_cm_fabric(char *buf, size_t len);

#endif
