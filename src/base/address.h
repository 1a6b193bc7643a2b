/* SPDX-License-Identifier: Apache-2.0 */
/* Peer addresses, IPv4 and IPv6 alike, without their ports. Pure functions. */
#ifndef GANTRY_BASE_ADDRESS_H
#define GANTRY_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Size, in bytes, of a buffer for any address as text. */
#define ADDRESS_TEXT_BYTES INET6_ADDRSTRLEN

/* Converts an address to IPv6; an IPv4 address becomes a mapped address (::ffff:a.b.c.d). For any other
 * family, such as a Unix socket, and for NULL, sets *ret_addr to zeroes and returns false. */
bool address_in6(const struct sockaddr *sa, struct in6_addr *ret_addr);

/* Sets *ret_client to the range of addresses that counts as one client: a single IPv4 address (mapped or
 * not), or the /64 of an IPv6 address, because one host can have any number of addresses in a /64. For a Unix
 * socket and for NULL the range is all zeroes. */
void address_client(const struct sockaddr *sa, struct in6_addr *ret_client);

/* Writes the address as text, and returns `text`. A mapped IPv4 address is written as mapped; an address of a
 * family other than IP as "-". */
const char *address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT_BYTES]);

#endif
