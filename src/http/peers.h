/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the open connections of each client address, over all cores. IPv6 addresses count by their /64, the
 * usual assignment to one client.
 *
 * The functions are called when a connection begins and ends, never for a request. Any thread may call these
 * functions; the table has a lock.
 */
#ifndef GANTRY_HTTP_PEERS_H
#define GANTRY_HTTP_PEERS_H

#include <sys/socket.h>

struct peers;
struct peer;

/* Makes a table for at most max connections. Returns 0 or -ENOMEM. */
int peers_new(int max, struct peers **ret_peers);
/* Frees the table. All connections were removed before. NULL is allowed. */
void peers_free(struct peers *p);

/* Counts one more connection of an address. cap: largest number of connections of an address; 0: no limit.
 * Returns 0 and the counter of the address; -EUSERS: the address has cap connections; -ENOSPC: the table is
 * full. */
int peers_add(struct peers *p, const struct sockaddr *sa, int cap, struct peer **ret_peer);
/* Counts one connection less of an address. peer: the counter from peers_add(), which the caller no longer
 * uses. */
void peers_remove(struct peers *p, struct peer *peer);
/* Returns the number of open connections of the address to which the counter belongs. */
int peers_count(const struct peer *peer);

#endif
