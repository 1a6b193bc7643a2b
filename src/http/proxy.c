/* SPDX-License-Identifier: Apache-2.0 */
/* Reads headers of the PROXY protocol, see proxy.h. */
#include "http/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

/* Byte 12: version and command; byte 13: family and protocol of the connection to the balancer. */
enum { AT_COMMAND = 12, AT_FAMILY = 13, AT_LENGTH = 14 };
enum { LOCAL = 0x20, PROXY = 0x21 };
enum { UNSPEC = 0x00, TCP4 = 0x11, TCP6 = 0x21, UNIX_STREAM = 0x31 };
enum { TCP4_BYTES = 12, TCP6_BYTES = 36, UNIX_BYTES = 216 };

bool
proxy_is_header(const uint8_t signature[PROXY_SIGNATURE])
{
	return memcmp(signature, "\r\n\r\n\0\r\nQUIT\n", PROXY_SIGNATURE) == 0;
}

int
proxy_length(const uint8_t first[PROXY_FIRST])
{
	uint8_t command = first[AT_COMMAND], family = first[AT_FAMILY];

	if (memcmp(first, "PROXY ", 6) == 0)
		return -EPROTONOSUPPORT;
	if (!proxy_is_header(first))
		return -EBADMSG;
	if (command != LOCAL && command != PROXY)
		return -EBADMSG;
	/* Of a connection of its own a balancer may say anything.  Datagrams are none. */
	if (command == PROXY && family != UNSPEC && family != TCP4 && family != TCP6 && family != UNIX_STREAM)
		return -EBADMSG;
	return PROXY_FIRST + (first[AT_LENGTH] << 8 | first[AT_LENGTH + 1]);
}

/* Addresses of both ends, then their ports: the client's come first. */
static void
read_four(const uint8_t *p, struct sockaddr_storage *ret_sa)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };

	memcpy(&sa.sin_addr, p, 4);
	memcpy(&sa.sin_port, p + 8, 2);
	memcpy(ret_sa, &sa, sizeof sa);
}

static void
read_six(const uint8_t *p, struct sockaddr_storage *ret_sa)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };

	memcpy(&sa.sin6_addr, p, 16);
	memcpy(&sa.sin6_port, p + 32, 2);
	memcpy(ret_sa, &sa, sizeof sa);
}

int
proxy_source(const uint8_t *header, size_t len, bool *ret_own, struct sockaddr_storage *ret_sa)
{
	size_t has = (size_t)proxy_length(header) - PROXY_FIRST;
	uint8_t family = header[AT_COMMAND] == LOCAL ? UNSPEC : header[AT_FAMILY];
	size_t wants = family == TCP4 ? TCP4_BYTES : family == TCP6 ? TCP6_BYTES : family ? UNIX_BYTES : 0;

	memset(ret_sa, 0, sizeof *ret_sa);
	*ret_own = family != TCP4 && family != TCP6;
	if (has < wants || (!*ret_own && len < PROXY_FIRST + wants))
		return -EBADMSG;
	if (family == TCP4)
		read_four(header + PROXY_FIRST, ret_sa);
	else if (family == TCP6)
		read_six(header + PROXY_FIRST, ret_sa);
	return 0;
}
