/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of the PROXY protocol, version 2, in which a TCP proxy gives the client's address of a
 * connection (haproxy.org, doc/proxy-protocol.txt, section 2.2). Pure functions, which any thread may call.
 */
#ifndef GANTRY_HTTP_PROXY_H
#define GANTRY_HTTP_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* length in bytes of the signature of a PROXY header; no HTTP request and no TLS record begins with it */
#define PROXY_SIGNATURE 12
/* length in bytes of the first part of every header, which contains the length of the header */
#define PROXY_FIRST 16
/* largest number of bytes that are parsed; bytes after the addresses are ignored */
#define PROXY_HEADER_MAX (PROXY_FIRST + 36)

/* Returns true if the bytes are the signature of a header of version 2. */
bool proxy_is_header(const uint8_t signature[PROXY_SIGNATURE]);

/*
 * Parses the first PROXY_FIRST bytes of a connection. Returns the length in bytes of the whole header,
 * including these bytes; or
 *   -EPROTONOSUPPORT   a header of version 1, which is text
 *   -EBADMSG           no PROXY header, or an invalid one of version 2
 */
int proxy_length(const uint8_t first[PROXY_FIRST]);

/*
 * Reads the client's address from a header. header: the whole header, or its first PROXY_HEADER_MAX bytes;
 * proxy_length() has accepted it. *ret_own: true: the connection is the proxy's own (a health check), or its
 * client has no IP address; then *ret_sa is cleared. Returns 0; -EBADMSG: the header is too short for its
 * addresses.
 */
int proxy_source(const uint8_t *header, size_t len, bool *ret_own, struct sockaddr_storage *ret_sa);

#endif
