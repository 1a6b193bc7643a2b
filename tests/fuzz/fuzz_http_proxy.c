/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of the PROXY protocol: whatever comes is refused, or has the length that it says and an address
 * from inside of it. */
#include "http/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

/* Is that address what stands in the header? */
static bool
is_in(const struct sockaddr_storage *sa, const uint8_t *header)
{
	const struct sockaddr_in6 *six = (const void *)sa;
	const struct sockaddr_in *four = (const void *)sa;

	if (sa->ss_family == AF_INET)
		return memcmp(&four->sin_addr, header + 16, 4) == 0 &&
		       memcmp(&four->sin_port, header + 24, 2) == 0;
	return sa->ss_family == AF_INET6 && memcmp(&six->sin6_addr, header + 16, 16) == 0 &&
	       memcmp(&six->sin6_port, header + 48, 2) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sockaddr_storage sa;
	size_t have;
	uint8_t *copy;
	bool own;
	int whole, rc;

	if (len < PROXY_FIRST)
		return 0;
	copy = malloc(PROXY_FIRST);
	must(copy);
	memcpy(copy, data, PROXY_FIRST);
	whole = proxy_length(copy);
	free(copy);
	must(whole == -EPROTONOSUPPORT || whole == -EBADMSG || (whole >= PROXY_FIRST && whole <= 16 + 65535));
	must((whole > 0) <= proxy_is_header(data));
	if (whole < 0 || len < (size_t)whole)
		return 0;
	/* No more than is kept of it. */
	have = whole < PROXY_HEADER_MAX ? (size_t)whole : PROXY_HEADER_MAX;
	copy = malloc(have);
	must(copy);
	memcpy(copy, data, have);
	rc = proxy_source(copy, have, &own, &sa);
	must(rc == 0 || rc == -EBADMSG);
	must(rc < 0 || own || is_in(&sa, copy));
	must(rc < 0 || !own || sa.ss_family == 0);
	free(copy);
	return 0;
}
