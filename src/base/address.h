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

/* Converts the address to IPv6; an IPv4 address is mapped (::ffff:a.b.c.d). Returns false and gives all
 * zeroes for any other family, such as a Unix socket, and for NULL. */
bool address_in6(const struct sockaddr *sa, struct in6_addr *ret_addr);

/* Gives the range of addresses that counts as one client: a single IPv4 address (mapped or not), or the /64
 * of an IPv6 address, in which one host can have any number of addresses. The address of a Unix socket, and
 * NULL, give all zeroes. */
void address_client(const struct sockaddr *sa, struct in6_addr *ret_client);

/* Writes the address as text, or "-" for any other family, and returns text. A mapped IPv4 address is written
 * as mapped. */
const char *address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT_BYTES]);

#endif
