/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda HOST:PORT: memory of a GPU, by a stand-in of CUDA's driver (tests/gpu/cuda_standin.c): what is behind an address
 * that the CPU cannot touch is a memfd, which is also its dma-buf.
 */
#include "play.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <sstream>
#include <sys/mman.h>
#include <thread>

#define SIZE (static_cast<size_t>(4) << 20)

template <class F>
static F
named(void *library, const char *name)
{
	F f;
	void *p = dlsym(library, name);

	must(p);
	memcpy(&f, &p, sizeof f);
	return f;
}

int
main(int argc, char **argv)
{
	CUObjOps_t ops = { get_object, put_object };
	struct object o = { "/bkt/cuda", "", 0, 0, 0 };
	static char host[SIZE], back[SIZE], managed[4096];
	int fd = memfd_create("device", MFD_CLOEXEC);
	std::ostringstream out;

	must(argc == 2 && fd >= 0 && ftruncate(fd, static_cast<off_t>(SIZE)) == 0);
	server = argv[1];
	char *device = static_cast<char *>(mmap(nullptr, SIZE, PROT_NONE, MAP_SHARED, fd, 0));
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);

	must(device != MAP_FAILED && driver);
	named<void (*)(const void *, size_t, int)>(driver, "standin_allocation")(device, SIZE, fd);
	named<void (*)(const void *, size_t, unsigned, unsigned)>(driver, "standin_memory")(
		managed, sizeof managed, 2, 1);
	auto get = named<long (*)(const char *)>(driver, "standin_get");
	auto exports = [&] { return get("exports"); };

	cuObjClient::setupTelemetry(false, &out);
	cuObjClient client(ops);

	must(cuObjClient::getMemoryType(device + 5) == CUOBJ_MEMORY_CUDA_DEVICE);
	must(cuObjClient::getMemoryType(managed) == CUOBJ_MEMORY_CUDA_MANAGED);
	/* decision: memory of a device that is not registered is refused with a sentence. */
	must(client.cuObjPut(&o, device, 1000) < 0 && o.calls == 0);
	must(out.str().find("memory of a device is registered first") != std::string::npos);
	puts("ok    decision_unregistered_device_memory_is_refused");
	/* Registered by a thread that has no context, byte for byte there and back. */
	std::thread([&] { must(client.cuMemObjGetDescriptor(device, SIZE) == CU_OBJ_SUCCESS); }).join();
	must(exports() == 1);
	for (size_t i = 0; i < SIZE; i++)
		host[i] = static_cast<char>(i * 11 + i / 253);
	must(pwrite(fd, host, SIZE, 0) == static_cast<ssize_t>(SIZE));
	must(client.cuObjPut(&o, device + 17, 1000001) == 1000001);
	must(http("GET", o.path, "").body == std::string(host + 17, 1000001));
	must(client.cuObjGet(&o, device, 1000001, 0, 2000003) == 1000001);
	must(pread(fd, back, SIZE, 0) == static_cast<ssize_t>(SIZE));
	must(!memcmp(back + 2000003, host + 17, 1000001) && !memcmp(back, host, 2000003));
	must(client.cuMemObjPutDescriptor(device) == CU_OBJ_SUCCESS);
	puts("ok    device_memory_goes_as_a_dma_buf");
	/* decision: managed memory is tried as the system's. */
	must(client.cuMemObjGetDescriptor(managed, sizeof managed) == CU_OBJ_SUCCESS);
	must(client.cuObjPut(&o, managed, sizeof managed) == static_cast<ssize_t>(sizeof managed));
	must(client.cuMemObjPutDescriptor(managed) == CU_OBJ_SUCCESS && exports() == 1);
	puts("ok    decision_managed_memory_is_tried_as_the_systems");
	/* Neither way is there: both cures are named. */
	char *other = static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	named<void (*)(const void *, size_t, unsigned, unsigned)>(driver, "standin_memory")(other, 4096, 2,
											    0);
	out.str("");
	must(client.cuMemObjGetDescriptor(other, 4096) == CU_OBJ_FAIL);
	must(out.str().find("dma-buf") != std::string::npos &&
	     out.str().find("nvidia-peermem") != std::string::npos);
	puts("ok    device_memory_that_cannot_be_registered_names_both_cures");
	cuObjClient::shutdownTelemetry();
	return 0;
}
