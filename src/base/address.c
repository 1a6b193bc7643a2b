/* SPDX-License-Identifier: Apache-2.0 */
/* See address.h. */
#include "base/address.h"

#include <arpa/inet.h>
#include <string.h>

bool
address_in6(const struct sockaddr *sa, struct in6_addr *ret_addr)
{
	static const struct in6_addr mapped = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	memset(ret_addr, 0, sizeof *ret_addr);
	if (!sa)
		return false;
	if (sa->sa_family == AF_INET6) {
		*ret_addr = ((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
		return true;
	}
	if (sa->sa_family != AF_INET)
		return false;
	*ret_addr = mapped;
	memcpy(&ret_addr->s6_addr[12], &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	return true;
}

void
address_client(const struct sockaddr *sa, struct in6_addr *ret_client)
{
	if (address_in6(sa, ret_client) && !IN6_IS_ADDR_V4MAPPED(ret_client))
		memset(&ret_client->s6_addr[8], 0, 8);
}

const char *
address_text(const struct sockaddr *sa, char text[ADDRESS_TEXT_BYTES])
{
	const char *r = NULL;

	if (sa && sa->sa_family == AF_INET6)
		r = inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, text,
			      ADDRESS_TEXT_BYTES);
	else if (sa && sa->sa_family == AF_INET)
		r = inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, text,
			      ADDRESS_TEXT_BYTES);
	return r ? r : strcpy(text, "-");
}
