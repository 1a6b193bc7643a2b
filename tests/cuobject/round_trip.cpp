/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip HOST:PORT: an object from memory and back by the callbacks of cuObjClient, byte for byte. */
#include "play.hpp"

int
main(int argc, char **argv)
{
	CUObjOps_t ops = { get_object, put_object };
	struct object o = { "/bkt/cuobject", "", 0, 0, 0 };
	const size_t size = (1 << 20) + 5;
	char *memory = static_cast<char *>(malloc(2 * size));

	must(argc == 2);
	server = argv[1];
	cuObjClient client(ops);

	must(client.isConnected());
	for (size_t i = 0; i < 2 * size; i++)
		memory[i] = i < size ? static_cast<char>(i * 7 + i / 251) : 0;
	must(client.cuMemObjGetDescriptor(memory, 2 * size) == CU_OBJ_SUCCESS);
	must(client.cuObjPut(&o, memory, size) == static_cast<ssize_t>(size));
	must(client.cuObjGet(&o, memory, size, 0, static_cast<loff_t>(size)) == static_cast<ssize_t>(size));
	must(o.calls == 2 && !memcmp(memory, memory + size, size));
	must(http("GET", o.path, "").body == std::string(memory, size));
	must(client.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	free(memory);
	return 0;
}
