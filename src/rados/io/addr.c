/* SPDX-License-Identifier: Apache-2.0 */
/* Checks addresses for the blocklist; see gateway_addr_is_client() in codec.h. */
#include "rados/io/codec.h"

#include <arpa/inet.h>
#include <string.h>

/* Moves *p after the host, which is in brackets if it is an IPv6 address; then the colon of the port
 * follows. Returns false if this is no address. */
static bool
host_cut(const char **p)
{
	const char *from = *p, *end;
	struct in6_addr a;
	char host[INET6_ADDRSTRLEN];
	bool v6 = *from == '[';

	from += v6;
	end = strchr(from, v6 ? ']' : ':');
	if (!end || (size_t)(end - from) >= sizeof host)
		return false;
	memcpy(host, from, (size_t)(end - from));
	host[end - from] = 0;
	*p = end + v6;
	return inet_pton(v6 ? AF_INET6 : AF_INET, host, &a) == 1;
}

bool
gateway_addr_is_client(const char *addr)
{
	static const char *const types[] = { "v1:", "v2:", "any:" };
	size_t len;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (strncmp(addr, types[i], strlen(types[i])) == 0) {
			addr += strlen(types[i]);
			break;
		}
	}
	if (!host_cut(&addr) || strncmp(addr, ":0/", 3) != 0)
		return false;
	addr += 3;
	len = strlen(addr);
	return len >= 1 && len <= 20 && addr[0] != '0' && strspn(addr, "0123456789") == len;
}
