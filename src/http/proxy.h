/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of the PROXY protocol, version 2, with which a balancer of TCP connections says whose connection
 * it passes on (haproxy.org, doc/proxy-protocol.txt, section 2.2).  Pure functions, any thread.
 */
#ifndef GANTRY_HTTP_PROXY_H
#define GANTRY_HTTP_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define PROXY_SIGNATURE 12                  /* bytes that no HTTP and no TLS begins with */
#define PROXY_FIRST 16                      /* bytes that every header has; they say how long it is */
#define PROXY_HEADER_MAX (PROXY_FIRST + 36) /* bytes that are looked at: what follows the addresses is not */

/* Says whether a header of version 2 begins so. */
bool proxy_is_header(const uint8_t signature[PROXY_SIGNATURE]);

/*
 * Parses the first PROXY_FIRST bytes of a connection.  Returns how long the whole header is, these included;
 * or
 *   -EPROTONOSUPPORT   a header of version 1, which is text
 *   -EBADMSG           no header, or one that version 2 does not have
 */
int proxy_length(const uint8_t first[PROXY_FIRST]);

/*
 * Reads whose connection it is.  header: the whole, or its first PROXY_HEADER_MAX bytes; proxy_length() has
 * taken it.  *ret_own: it is the balancer's own (a health check), or of a client without an address of IP.
 * 0 or -EBADMSG: the header is too short for its addresses.
 */
int proxy_source(const uint8_t *header, size_t len, bool *ret_own, struct sockaddr_storage *ret_sa);

#endif
