/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_staged HOST:PORT: memory of a GPU that no adapter registers, with GANTRY_STAGE in the environment; the driver is
 * the stand-in of tests/gpu, whose dma-bufs nobody can map.
 */
#include "play.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <sstream>

#define MIB (static_cast<size_t>(1) << 20)
#define SIZE (4 * MIB)

static void *driver;
static char host[SIZE], back[SIZE];

template <class F>
static F
named(const char *name)
{
	F f;
	void *p = dlsym(driver, name);

	must(p);
	memcpy(&f, &p, sizeof f);
	return f;
}

static char *
allocate(size_t size)
{
	unsigned long long p = 0;

	must(named<int (*)(unsigned long long *, size_t)>("cuMemAlloc_v2")(&p, size) == 0);
	return reinterpret_cast<char *>(static_cast<uintptr_t>(p));
}

static void
to_device(char *to, const char *from, size_t n)
{
	must(named<int (*)(unsigned long long, const void *, size_t)>("cuMemcpyHtoD_v2")(
		     reinterpret_cast<uintptr_t>(to), from, n) == 0);
}

static void
to_host(char *to, const char *from, size_t n)
{
	must(named<int (*)(void *, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(
		     to, reinterpret_cast<uintptr_t>(from), n) == 0);
}

/* Callbacks of a program that keeps the object in pieces, an object for each offset. */
static ssize_t
get_piece(const void *handle, char *ptr, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	return ptr && by_rdma("GET", o->path + std::to_string(offset), o->token) ? static_cast<ssize_t>(size)
										 : -1;
}

static ssize_t
put_piece(const void *handle, const char *ptr, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	return ptr && by_rdma("PUT", o->path + std::to_string(offset), o->token) ? static_cast<ssize_t>(size)
										 : -1;
}

static ssize_t
fail_late(const void *handle, const char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	told(handle, size, offset, info);
	return -EIO;
}

int
main(int argc, char **argv)
{
	CUObjOps_t ops = { get_piece, put_piece }, bad = { get_piece, fail_late };
	struct object o = { "/bkt/staged", "", 0, 0, 0 };
	std::ostringstream out;
	void *ctx;

	must(argc == 2);
	server = argv[1];
	driver = dlopen("libcuda.so.1", RTLD_LAZY);
	must(driver && named<int (*)(unsigned)>("cuInit")(0) == 0);
	must(named<int (*)(void **, int)>("cuDevicePrimaryCtxRetain")(&ctx, 0) == 0);
	must(named<int (*)(void *)>("cuCtxSetCurrent")(ctx) == 0);
	char *device = allocate(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		host[i] = static_cast<char>(i * 11 + i / 253);
	to_device(device, host, SIZE);
	cuObjClient::setupTelemetry(false, &out);
	cuObjClient client(ops), failing(bad);

	/* decision: with a stage, memory of a device that no adapter registers has a descriptor, and no token. */
	must(client.cuMemObjGetDescriptor(device, SIZE) == CU_OBJ_SUCCESS);
	char *token = nullptr;

	must(client.cuMemObjGetRDMAToken(device, 1000, 0, CUOBJ_PUT, &token) == CU_OBJ_FAIL && !token);
	must(out.str().find("the memory is staged") != std::string::npos);
	must(client.cuMemObjGetMaxRequestCallbackSize(device) == static_cast<ssize_t>(MIB));
	puts("ok    decision_staged_memory_has_a_descriptor");
	/* Larger than the stage: in pieces, as the largest size of a callback says. */
	must(client.cuObjPut(&o, device + 17, 2500001) == 2500001 && o.calls == 3);
	must(http("GET", "/bkt/staged0", "").body == std::string(host + 17, MIB));
	must(http("GET", "/bkt/staged2097152", "").body ==
	     std::string(host + 17 + 2 * MIB, 2500001 - 2 * MIB));
	must(client.cuObjGet(&o, device, 1000001, 0, 2000003) == 1000001 && o.calls == 4);
	to_host(back, device, SIZE);
	must(!memcmp(back + 2000003, host + 17, 1000001) && !memcmp(back, host, 2000003));
	puts("ok    staged_memory_moves_in_pieces");
	/* A callback that failed: its token is dead, and the stage goes on. */
	must(failing.cuObjPut(&o, device, 1000) == -EIO);
	must(!by_rdma("PUT", "/bkt/dead", o.token));
	must(client.cuObjPut(&o, device, 1000) == 1000);
	puts("ok    a_token_of_the_stage_ends_with_a_failed_callback");
	/* Memory that was freed is refused. */
	must(named<int (*)(unsigned long long)>("cuMemFree_v2")(reinterpret_cast<uintptr_t>(device)) == 0);
	out.str("");
	must(client.cuObjPut(&o, device, 1000) == -EFAULT);
	must(out.str().find("not mapped") != std::string::npos);
	must(client.cuMemObjPutDescriptor(device) == CU_OBJ_SUCCESS);
	must(client.cuMemObjGetDescriptor(device, SIZE) == CU_OBJ_FAIL);
	must(out.str().find("not mapped") != std::string::npos);
	puts("ok    freed_device_memory_is_refused");
	cuObjClient::shutdownTelemetry();
	return 0;
}
