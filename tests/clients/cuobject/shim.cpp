/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shim in C for programs in Python, as the one of NVIDIA's multi-storage-client: one object for the process, which is
 * never freed, and calls without C++ in their signatures.  shim.py loads it by ctypes.
 */
#include "cuobjclient.h"

static cuObjClient &
client()
{
	static CUObjOps_t ops = { nullptr, nullptr };
	static cuObjClient *it = new cuObjClient(ops, CUOBJ_PROTO_RDMA_DC_V1);

	return *it;
}

extern "C" int
shim_open(void)
{
	return client().isConnected() ? 0 : -1;
}

extern "C" int
shim_register(void *p, size_t size)
{
	return client().cuMemObjGetDescriptor(p, size);
}

extern "C" int
shim_deregister(void *p)
{
	return client().cuMemObjPutDescriptor(p);
}

extern "C" int
shim_token(void *p, size_t size, size_t offset, int is_put, char **ret_token)
{
	return client().cuMemObjGetRDMAToken(p, size, offset, is_put ? CUOBJ_PUT : CUOBJ_GET, ret_token);
}

extern "C" int
shim_token_put(char *token)
{
	return client().cuMemObjPutRDMAToken(token);
}
