/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of the other side, of IPv4 and IPv6 alike, without their ports.  Pure. */
#ifndef GANTRY_BASE_ADDRESS_H
#define GANTRY_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Room for any address as text. */
#define ADDRESS_TEXT_BYTES INET6_ADDRSTRLEN

/* Gives the address as one of IPv6; one of IPv4 is mapped (::ffff:a.b.c.d).  Returns false, and gives all zeroes, for
 * anything else, a Unix socket's for instance, and for NULL. */
bool address_in6(const struct sockaddr *sa, struct in6_addr *ret_addr);

/* Gives what counts as one client: an address of IPv4, mapped or not, as it is; of IPv6 the /64, in which a host has
 * as many addresses as it likes.  Those of a Unix socket, and NULL, are all zeroes. */
void address_client(const struct sockaddr *sa, struct in6_addr *ret_client);

/* Writes the address, or "-" for what is none, and returns text.  A mapped one of IPv4 stays mapped. */
const char *address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT_BYTES]);

#endif
