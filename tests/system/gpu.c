/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu MODE URL: a program whose data lies in memory that it cannot touch, as a GPU's: a memfd whose address here is
 * PROT_NONE, and whose descriptor is the dma-buf.  gpu.sh runs it; it ends with 0, or says what was not so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gantry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE ((size_t)9 << 20)
#define must(x) ((x) ? (void)0 : failed(#x, __LINE__))

static struct gantry *g;
static struct gantry_result res;
static char *device, url[512], host[SIZE], back[SIZE];
static int fd, copies;

static _Noreturn void
failed(const char *what, int line)
{
	fprintf(stderr,
		"gpu.c:%d: not so: %s; message \"%s\", reason \"%s\", registration \"%s\", errno %d\n", line,
		what, res.message, res.reason, gantry_register_error(), errno);
	exit(1);
}

static const char *
object(const char *base, const char *name)
{
	snprintf(url, sizeof url, "%s/%s", base, name);
	return url;
}

static int
copy(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to)
{
	copies++;
	must(cookie == &copies && size <= 262144);
	if (to == GANTRY_TO_DEVICE)
		return pwrite(fd, src, size, (char *)dst - device) == (ssize_t)size ? 0 : -EIO;
	return pread(fd, dst, size, (const char *)src - device) == (ssize_t)size ? 0 : -EIO;
}

static void
open_with(const char *dc_key, gantry_copy_fn *fn)
{
	struct gantry_options o = {
		.size = sizeof o, .config_file = "", .dc_key = dc_key, .copy = fn, .copy_cookie = &copies
	};

	gantry_close(g);
	g = NULL;
	copies = 0;
	res = (struct gantry_result){ .size = sizeof res };
	must(gantry_open(&o, &g) == 0);
}

/* Puts part of the device's memory and gets it to another place of it, byte for byte, by that path. */
static void
round_trip(const char *base, size_t from, size_t to, size_t size, enum gantry_path path)
{
	const struct gantry_request plain = { .size = sizeof plain, .no_rdma = 1 };

	for (size_t i = 0; i < SIZE; i++)
		host[i] = (char)(i * 13 + i / 251 + size);
	must(pwrite(fd, host, SIZE, 0) == (ssize_t)SIZE);
	must(gantry_put(g, object(base, "o"), device + from, size, NULL, &res) == 0);
	must(res.path == path && res.bytes == size);
	/* What the server has. */
	must(gantry_get(g, url, back, SIZE, 0, &plain, &res) == 0);
	must(res.bytes == size && !memcmp(back, host + from, size));
	must(gantry_get(g, url, device + to, size, 0, NULL, &res) == 0);
	must(res.path == path && res.bytes == size && !res.checksum_verified);
	must(path != GANTRY_PATH_RDMA ||
	     (res.has_crc64nvme && res.crc64nvme == gantry_crc64nvme(0, back, size)));
	must(pread(fd, back, SIZE, 0) == (ssize_t)SIZE);
	memmove(host + to, host + from, size);
	must(!memcmp(back, host, SIZE));
	/* A range of it, and none. */
	must(size < 10 || gantry_get(g, url, device + to, 5, size - 5, NULL, &res) == 0);
	must(gantry_get(g, url, device + to, 5, size + 1, NULL, &res) == -ERANGE);
}

static void
by_rdma(const char *base)
{
	const size_t size[] = { 1, 4095, 4096, 65537, (1 << 20) - 1, (1 << 20) + 1, 3000001 };

	for (size_t i = 0; i < sizeof size / sizeof *size; i++)
		round_trip(base, 1000 + i, 4000003 - i, size[i], GANTRY_PATH_RDMA);
}

/* An upload in parts, its bytes in the device's memory. */
static void
parts(const char *base)
{
	struct gantry_part part[2] = { { .number = 1 }, { .number = 2 } };
	char id[GANTRY_UPLOAD_ID_MAX];
	const size_t first = (size_t)5 << 20;

	must(gantry_upload_begin(g, object(base, "parts"), NULL, id, &res) == 0);
	for (int i = 0; i < 2; i++) {
		must(gantry_upload_put(g, url, id, i + 1, device + 407 + (i ? first : 0), i ? 1000 : first,
				       NULL, &res) == 0);
		must(res.path == GANTRY_PATH_RDMA);
		memcpy(part[i].etag, res.etag, sizeof part[i].etag);
	}
	must(gantry_upload_complete(g, url, id, part, 2, NULL, &res) == 0);
	must(gantry_get(g, url, host, SIZE, 0, NULL, &res) == 0 && res.bytes == first + 1000);
	must(pread(fd, back, first + 1000, 407) == (ssize_t)(first + 1000) &&
	     !memcmp(host, back, first + 1000));
}

static void
dmabuf(const char *base)
{
	open_with(NULL, NULL);
	must(gantry_register_dmabuf(g, device + 333, SIZE - 333, fd, 333, GANTRY_DEVICE) == 0);
	by_rdma(base);
	parts(base);
	must(copies == 0);
	must(gantry_deregister(g, device + 333) == 0);
	/* The descriptor is not needed any longer; then nobody has the memory. */
	int other = dup(fd);

	must(gantry_register_dmabuf(g, device, SIZE, other, 0, GANTRY_DEVICE) == 0);
	close(other);
	round_trip(base, 0, 5000000, 100000, GANTRY_PATH_RDMA);
	must(gantry_register_dmabuf(g, device + 1, 1, other, 1, 0) == -EBADF);
	must(ftruncate(fd, 0) == 0);
	must(gantry_put(g, object(base, "stale"), device, 100000, NULL, &res) == -EOPNOTSUPP);
	must(strstr(res.message, "memory that the CPU cannot read"));
	must(gantry_get(g, object(base, "o"), device, 100000, 0, NULL, &res) == -EOPNOTSUPP);
	must(gantry_register_dmabuf(g, device + 4096, SIZE - 4096, fd, 4096, 0) == -EINVAL);
	must(strstr(gantry_register_error(), "the dma-buf has 0 bytes"));
}

/* A DC key that is not the server's: no transfer succeeds. */
static void
fallback(const char *base)
{
	open_with("0x1234", NULL);
	must(gantry_register_dmabuf(g, device, SIZE, fd, 0, GANTRY_DEVICE) == 0);
	must(gantry_put(g, object(base, "fall"), device, 100000, NULL, &res) == -EOPNOTSUPP);
	must(*res.reason && strstr(res.message, res.reason));
	must(gantry_head(g, url, NULL, &res) == -ENOENT);
	open_with("0x1234", copy);
	must(gantry_register_dmabuf(g, device, SIZE, fd, 0, GANTRY_DEVICE) == 0);
	round_trip(base, 17, 4000001, 2000001, GANTRY_PATH_HTTP);
	must(copies >= 16);
}

/* Drivers that cannot do dma-bufs; peer says whether one for peer memory is there. */
static void
no_dmabuf(const char *base, int peer)
{
	open_with(NULL, NULL);
	if (!peer) {
		must(gantry_register_dmabuf(g, device, SIZE, fd, 0, 0) < 0);
		must(*gantry_register_error());
		must(gantry_register(g, device, SIZE, 0) == -EFAULT);
		must(gantry_put(g, object(base, "no"), device, 1000, NULL, &res) == -EOPNOTSUPP);
		return;
	}
	must(gantry_register_dmabuf(g, device, SIZE, fd, 0, 0) == 0);
	by_rdma(base);
	must(gantry_deregister(g, device) == 0);
	/* For each call, and for all. */
	by_rdma(base);
	must(gantry_register(g, device, SIZE, 0) == 0);
	by_rdma(base);
}

/* Of the driver's stand-in. */
static struct {
	void (*memory)(const void *ptr, size_t size, unsigned type, unsigned is_managed);
	void (*allocation)(const void *ptr, size_t size, int fd);
	void (*context)(int is_there);
	long (*get)(const char *name);
} fake;

static void
load_cuda(void)
{
	void *lib;

	/* There is one to be found, and nobody loads it. */
	must(gantry_memory_type(device) == GANTRY_MEM_UNKNOWN);
	must(gantry_memory_type(host) == GANTRY_MEM_SYSTEM);
	must(!dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD));
	lib = dlopen("libcuda.so.1", RTLD_LAZY);
	must(lib != NULL);
	*(void **)&fake.memory = dlsym(lib, "standin_memory");
	*(void **)&fake.allocation = dlsym(lib, "standin_allocation");
	*(void **)&fake.context = dlsym(lib, "standin_context");
	*(void **)&fake.get = dlsym(lib, "standin_get");
}

/* Memory that CUDA knows, and does not export. */
static void
cuda(const char *base)
{
	open_with(NULL, NULL);
	load_cuda();
	fake.memory(device, SIZE, 2, 0);
	fake.memory(host, 4096, 2, 1);
	fake.memory(host + 4096, 4096, 1, 0);
	must(gantry_memory_type(device + SIZE - 1) == GANTRY_MEM_DEVICE);
	must(gantry_memory_type(host) == GANTRY_MEM_MANAGED);
	must(gantry_memory_type(host + 4096) == GANTRY_MEM_SYSTEM);
	must(gantry_memory_type(back) == GANTRY_MEM_SYSTEM);
	must(gantry_memory_type(NULL) == GANTRY_MEM_INVALID);
	must(gantry_memory_type((void *)(uintptr_t)4096) == GANTRY_MEM_INVALID);
	must(gantry_register(g, device, SIZE, 0) == -EFAULT);
	must(strstr(gantry_register_error(), "device memory (CUDA), 9437184 bytes"));
	/* Both cures. */
	must(strstr(gantry_register_error(), "no dma-buf of it (error 801)") &&
	     strstr(gantry_register_error(), "nvidia-peermem"));
	must(gantry_get(g, object(base, "o"), device, 1, 0, NULL, &res) == -EOPNOTSUPP);
	must(strstr(res.message, "device memory (CUDA)"));
	must(fake.get("retained") == 0);
	/* Managed memory that the CPU may touch is memory of the host. */
	must(gantry_register(g, host, 4096, 0) == 0);
	must(gantry_put(g, object(base, "managed"), host, 4096, NULL, &res) == 0);
	must(res.path == GANTRY_PATH_RDMA);
}

/* Memory that CUDA exports: registered for each call and for all, by threads with and without a context, a part of an
 * allocation too. */
static void
cuda_export(const char *base)
{
	int before;

	open_with(NULL, NULL);
	load_cuda();
	fake.allocation(device, SIZE, fd);
	round_trip(base, 1000, 4000003, 65537, GANTRY_PATH_RDMA);
	must((int)fake.get("exports") > 0 && fake.get("retained") == 0);
	before = (int)fake.get("exports");
	must(gantry_register(g, device, SIZE, 0) == 0);
	must((int)fake.get("exports") == before + 1);
	round_trip(base, 1000, 4000003, 3000001, GANTRY_PATH_RDMA);
	must((int)fake.get("exports") == before + 1);
	must(gantry_deregister(g, device) == 0);
	fake.context(1);
	must(gantry_register(g, device + 4097, 3 << 20, GANTRY_DEVICE) == 0);
	round_trip(base, 5000, 2000001, 1000001, GANTRY_PATH_RDMA);
	fake.context(0);
	must(copies == 0 && fake.get("retained") == 0);
	/* Descriptors are not kept. */
	before = dup(0);
	for (int i = 0; i < 20; i++) {
		must(gantry_deregister(g, device + 4097) == 0);
		must(gantry_register(g, device + 4097, 3 << 20, GANTRY_DEVICE) == 0);
	}
	close(before);
	must(dup(0) == before);
}

/* Where dma-bufs are switched off, only a peer-memory driver will do. */
static void
cuda_off(const char *base)
{
	open_with(NULL, NULL);
	load_cuda();
	fake.allocation(device, SIZE, fd);
	if (getenv("SOFTNIC_PEER_MEM")) {
		must(gantry_register(g, device, SIZE, 0) == 0);
		round_trip(base, 1000, 4000003, 65537, GANTRY_PATH_RDMA);
	} else {
		must(gantry_register(g, device, SIZE, 0) == -EFAULT);
		must(strstr(gantry_register_error(), "CUFILE_DMABUF_ENABLE") &&
		     strstr(gantry_register_error(), "nvidia-peermem"));
	}
	must((int)fake.get("exports") == 0);
}

int
main(int argc, char **argv)
{
	const char *mode = argc == 3 ? argv[1] : "", *base = argv[argc - 1];

	fd = memfd_create("device", MFD_CLOEXEC);
	must(fd >= 0 && ftruncate(fd, (off_t)SIZE) == 0);
	device = mmap(NULL, SIZE, PROT_NONE, MAP_SHARED, fd, 0);
	must(device != MAP_FAILED);
	if (!strcmp(mode, "dmabuf"))
		dmabuf(base);
	else if (!strcmp(mode, "fallback"))
		fallback(base);
	else if (!strcmp(mode, "none") || !strcmp(mode, "peer"))
		no_dmabuf(base, !strcmp(mode, "peer"));
	else if (!strcmp(mode, "cuda"))
		cuda(base);
	else if (!strcmp(mode, "export"))
		cuda_export(base);
	else if (!strcmp(mode, "off"))
		cuda_off(base);
	else
		must(!"a mode");
	gantry_close(g);
	return 0;
}
