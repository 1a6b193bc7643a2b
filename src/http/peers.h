/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the open connections of each client address, over all cores. IPv6 addresses count by their /64, the
 * usual assignment to one client.
 *
 * The functions are called at the beginning and end of a connection, never for a request. Any thread; the
 * table has a lock.
 */
#ifndef GANTRY_HTTP_PEERS_H
#define GANTRY_HTTP_PEERS_H

#include <sys/socket.h>

struct peers;
struct peer;

/* Makes a table for at most max connections.  0 or -ENOMEM. */
int peers_new(int max, struct peers **ret_peers);
/* Frees the table; no connection may be counted. NULL is allowed. */
void peers_free(struct peers *p);

/* Counts one more connection of an address. Returns 0; -EUSERS: the address has `cap` connections (0: no
 * limit); -ENOSPC: the table has its maximum. */
int peers_add(struct peers *p, const struct sockaddr *sa, int cap, struct peer **ret_peer);
/* Counts one connection less of an address. */
void peers_remove(struct peers *p, struct peer *peer);
/* Returns the number of connections of that peer's address. */
int peers_count(const struct peer *peer);

#endif
