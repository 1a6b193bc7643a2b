/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice - the port and the transport for a token, and the knowledge about servers on which the choice depends.
 * Any thread may call these functions; client_int.h describes the locks.
 */
#ifndef GANTRY_CLIENT_CHOICE_H
#define GANTRY_CLIENT_CHOICE_H

#include "client/gantry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port;
struct region;

/* Number of entries of gantry.reach, which stores which server reaches which port. */
#define REACH_MAX 128
enum reach_state { REACH_TRIED, REACH_REACHED, REACH_AVOIDED };
struct reach {
	uint64_t server; /* number of the server: result of server_of() */
	uint64_t until_ns;
	int port;
	enum reach_state state;
};

/* Number of entries of gantry.lack, each a transport that a server does not have. Protected by g->lock. */
#define LACKS_MAX 64
struct lack {
	uint64_t server, until_ns;
	enum gantry_transport transport;
	char why[96]; /* reason that the server gave */
};

/* Returns the length of the beginning of a URL that names the server: scheme, host and port. */
size_t server_len(const char *url);
/* Returns a number that identifies the server of a URL. */
uint64_t server_of(const char *url);
/* Returns the next port in turn that is up and has registered r (NULL: any port). The caller holds
 * map_lock. */
struct port *port_choose(struct gantry *g, const struct region *r);
/* Returns a port for a request to a server: the next one in turn, without ports that the server failed to
 * reach in the last minute; if none remains, any port; NULL: there is no port. May wait for results of other
 * threads' requests. The caller reports the result of its own request with port_settle() or port_avoid(). */
struct port *port_take(struct gantry *g, const struct region *r, uint64_t server);
/* Stores the result of a request for which port_take() chose the port. reached: true: the server has reached
 * the port; false: the request did not show whether the server reaches the port. */
void port_settle(struct gantry *g, const struct port *p, uint64_t server, bool reached);
/* Stores for a minute that the server cannot reach the port. Returns true if r has another port to try. */
bool port_avoid(struct gantry *g, const struct port *p, const struct region *r, uint64_t server);

/* Returns the transport for a request that port_take() gave the port p: the one that the program requests, else
 * DC, else RC, without transports that the server was found to lack in the last minute. Returns AUTO if none is
 * left, with the reason in why. */
enum gantry_transport transport_take(struct gantry *g, const struct port *p, uint64_t server, char *why,
				     size_t why_len);
/* Stores for a minute that a server lacks a transport, and logs it. why: the reason, at most 95 bytes. */
void transport_lacks(struct gantry *g, const char *url, enum gantry_transport transport, const char *why);

#endif
