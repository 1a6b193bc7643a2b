/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the open connections of each client address, over all cores.  IPv6 addresses count by their /64,
 * which is what one client is given.
 *
 * Asked when a connection begins and when it ends, never for a request.  Any thread; a lock inside.
 */
#ifndef GANTRY_HTTP_PEERS_H
#define GANTRY_HTTP_PEERS_H

#include <sys/socket.h>

struct peers;
struct peer;

/* Makes a table for at most max connections.  0 or -ENOMEM. */
int peers_new(int max, struct peers **ret_peers);
/* Frees the table, when no connection is counted any more.  NULL is fine. */
void peers_free(struct peers *p);

/* Counts one more connection of an address.  0; -EUSERS: it has cap of them (a cap of 0 is none); -ENOSPC:
 * the table has max. */
int peers_add(struct peers *p, const struct sockaddr *sa, int cap, struct peer **ret_peer);
/* Counts one connection less. */
void peers_remove(struct peers *p, struct peer *peer);
/* Returns how many connections the address of that peer has now. */
int peers_count(const struct peer *peer);

#endif
