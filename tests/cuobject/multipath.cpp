/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multipath HOST:PORT on|off: an operation whose path fails is tried again on the other port where rdma_multipath_enabled
 * is on, and not where it is off.  The configuration has two ports, and three tries after the first.
 */
#include "play.hpp"

#include <cerrno>
#include <set>

static std::set<std::string> gids; /* that tokens named */
static int calls, fails, error;

static ssize_t
put(const void *, const char *, size_t size, loff_t, const cufileRDMAInfo_t *info)
{
	std::string token = info->desc_str;

	gids.insert(token.substr(token.rfind(':') + 1));
	if (calls++ < fails)
		return error;
	return by_rdma("PUT", "/bkt/multipath", token) ? static_cast<ssize_t>(size) : -EIO;
}

static ssize_t
put_with(cuObjClient &client, char *memory, size_t size, int that_fail, int its_error)
{
	calls = 0;
	fails = that_fail;
	error = its_error;
	gids.clear();
	return client.cuObjPut(nullptr, memory, size);
}

int
main(int argc, char **argv)
{
	static char memory[100000];
	const ssize_t size = sizeof memory;
	CUObjOps_t ops = { nullptr, put };

	must(argc == 3);
	server = argv[1];
	memset(memory, 'm', sizeof memory);
	cuObjClient client(ops);

	must(client.isConnected() && client.cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(put_with(client, memory, sizeof memory, 0, 0) == size && calls == 1);
	if (!strcmp(argv[2], "off")) {
		must(put_with(client, memory, sizeof memory, 1, -EIO) == -EIO && calls == 1);
	} else {
		must(put_with(client, memory, sizeof memory, 1, -ETIMEDOUT) == size && calls == 2 &&
		     gids.size() == 2);
		must(put_with(client, memory, sizeof memory, 3, -EIO) == size && calls == 4 &&
		     gids.size() == 2);
		must(put_with(client, memory, sizeof memory, 4, -EHOSTUNREACH) == -EHOSTUNREACH &&
		     calls == 4);
		/* No matter of paths. */
		must(put_with(client, memory, sizeof memory, 1, -ENOTSUP) == -ENOTSUP && calls == 1);
		must(put_with(client, memory, sizeof memory, 1, -ENOENT) == -ENOENT && calls == 1);
	}
	must(client.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	printf("ok    multipath_%s\n", argv[2]);
	return 0;
}
