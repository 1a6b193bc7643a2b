/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for the words by which servers decline RDMA. */
#include "client/cmd/common/cmd.h"

#include <string.h>

const char *
decline_meaning(const char *reason)
{
	static const char *const meaning[][2] = {
		{ "disabled", "rdma.devices of the server is none" },
		{ "no-device", "the server has no RDMA device that it can use" },
		{ "no-rail", "every RDMA port of the server is down or lost" },
		{ "unreachable",
		  "no address handle for the client: no route, or its neighbour entry did not resolve" },
		{ "needs-router", "the client is in another InfiniBand subnet" },
		{ "token-family", "the client's token is of a kind that is not served" },
		{ "no-channel", "no RDMA channel was free or could be made in time" },
		{ "not-connected", "the RC connection that the token names does not exist any longer" },
		{ "connection-busy", "another request had the RC connection that the token names" },
		{ "not-allowed",
		  "the address in the token is outside rdma.allow or the subnets of the server, or is the "
		  "server's own" },
	};

	for (size_t i = 0; i < sizeof meaning / sizeof *meaning; i++)
		if (!strcmp(meaning[i][0], reason))
			return meaning[i][1];
	return NULL;
}

void
decline_print(FILE *f, const char *reason, const char *address)
{
	const char *meaning = decline_meaning(reason);

	fputs(reason, f);
	if (meaning)
		fprintf(f, ": %s", meaning);
	if (meaning && *address)
		fprintf(f, " (the token named %s)", address);
}
