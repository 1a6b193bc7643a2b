/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the CPU cannot read: it is known without a touch (which would end the program), moves by RDMA alone or by
 * the copy function of its owner, and what cannot be done is said.
 */
#include "tests/fake/client_rig.h"

#include "base/crc64.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define DEVICE_BYTES (2 * MIB)

/* "Device memory": the program sees an address and may not touch it; what is behind it is a memfd, the dma-buf. */
static struct {
	char *ptr;
	int fd;
} device;

/* ---- what can be read ---- */

static void
what_the_cpu_reaches(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 16 * MIB;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(cpu_reaches(p, len) && cpu_reaches_all(p, len));
	assert_true(cpu_reaches(p + 1, 1) && cpu_reaches(p + page - 1, 2) && cpu_reaches(p, 0));
	/* Memory that was never written to stays as it is. */
	unsigned char in_core[1] = { 1 };

	assert_int_equal(mincore(p + MIB, page, in_core), 0);
	assert_int_equal(in_core[0] & 1, 0);
	assert_int_equal(gantry_memory_type(p), GANTRY_MEM_SYSTEM);
	/* At the end, in the middle, at the beginning. */
	assert_int_equal(mprotect(p + len - page, page, PROT_NONE), 0);
	assert_false(cpu_reaches(p, len) || cpu_reaches_all(p, len));
	assert_true(cpu_reaches(p, len - page) && cpu_reaches_all(p, len - page));
	assert_int_equal(gantry_memory_type(p + len - 1), GANTRY_MEM_UNKNOWN);
	assert_int_equal(mprotect(p + 7 * MIB, 2 * MIB, PROT_NONE), 0);
	assert_false(cpu_reaches(p, len - page) || cpu_reaches_all(p, len - page));
	assert_true(cpu_reaches(p, 7 * MIB) && cpu_reaches_all(p, 7 * MIB));
	assert_int_equal(munmap(p, page), 0);
	assert_false(cpu_reaches(p, 2 * page) || cpu_reaches_all(p, 2 * page));
	assert_int_equal(gantry_memory_type(p), GANTRY_MEM_INVALID);
	/* A single page where nobody looks: the list of mappings has it. */
	assert_int_equal(mprotect(p + 3 * page, page, PROT_NONE), 0);
	assert_false(cpu_reaches_all(p + page, 4 * page));
	munmap(p, len);
}

static bool
reach(const char *maps, uintptr_t from, uintptr_t to)
{
	FILE *f = fmemopen((void *)(uintptr_t)maps, strlen(maps), "r");
	bool r = maps_reach(f, from, to);

	fclose(f);
	return r;
}

static void
lists_of_mappings(void **state)
{
	static const char maps[] = "1000-3000 r--p 00000000 08:01 12 /bin/x\n"
				   "3000-4000 rw-p 00000000 00:00 0 \n"
				   "5000-6000 ---p 00000000 00:00 0\n"
				   "6000-9000 rw-s 00000000 00:06 99 /dev/nvidia-uvm\n"
				   "9000-a000 rw-p 00000000 00:00 0 [heap]\n";

	assert_true(reach(maps, 0x1000, 0x4000) && reach(maps, 0x2fff, 0x3001) &&
		    reach(maps, 0x9000, 0xa000));
	assert_false(reach(maps, 0xfff, 0x1001) || reach(maps, 0x3fff, 0x4001) ||
		     reach(maps, 0x4000, 0x4001));
	assert_false(reach(maps, 0x5000, 0x5001) || reach(maps, 0x6000, 0x6001) ||
		     reach(maps, 0x9000, 0xa001));
	assert_false(reach("", 1, 2) || reach("no list\n", 1, 2) || reach("1000-2000", 0x1000, 0x1001));
}

/* ---- transfers ---- */

static int
device_setup(void **state)
{
	device.fd = memfd_create("device", MFD_CLOEXEC);
	device.ptr = mmap(NULL, DEVICE_BYTES, PROT_NONE, MAP_SHARED, device.fd, 0);
	if (device.fd < 0 || device.ptr == MAP_FAILED || ftruncate(device.fd, DEVICE_BYTES) < 0)
		return -1;
	return setup(state);
}

static int
device_teardown(void **state)
{
	int r = teardown(state);

	munmap(device.ptr, DEVICE_BYTES);
	close(device.fd);
	return r;
}

/* What the copy function was asked for. */
static struct {
	int calls, error;
	size_t most;
	pthread_t thread;
} copies;

static int
copy(void *cookie, void *dst, const void *src, size_t size, enum gantry_copy_to to)
{
	const char *at = to == GANTRY_TO_DEVICE ? dst : src;
	ssize_t n;

	assert_ptr_equal(cookie, &copies);
	assert_true(at >= device.ptr && at + size <= device.ptr + DEVICE_BYTES);
	copies.calls++;
	copies.most = size > copies.most ? size : copies.most;
	copies.thread = pthread_self();
	if (copies.error)
		return copies.error;
	n = to == GANTRY_TO_DEVICE ? pwrite(device.fd, src, size, at - device.ptr)
				   : pread(device.fd, dst, size, at - device.ptr);
	return n == (ssize_t)size ? 0 : -EIO;
}

static void
reopen(struct fix *f, unsigned flags, bool copies_too)
{
	struct gantry_options o = { .size = sizeof o,
				    .config_file = "",
				    .flags = flags,
				    .copy = copies_too ? copy : NULL,
				    .copy_cookie = &copies };

	gantry_close(f->g);
	memset(&copies, 0, sizeof copies);
	assert_int_equal(gantry_open(&o, &f->g), 0);
}

static char got[DEVICE_BYTES];
static size_t got_len;
static _Atomic int tokens;
static _Atomic bool is_held;

/* Declines every token, stores what comes, and answers a get with that. */
static void
serve_http(int fd, const struct request *rq)
{
	struct token t;
	char text[200];

	if (token_of(rq, &t)) {
		tokens++;
		answer(fd, "HTTP/1.1 501 Not Implemented\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
			   "no-channel\r\ncontent-length: 0\r\n\r\n");
	} else if (rq->method[0] == 'P') {
		got_len = rq->body_len;
		memcpy(got, rq->body, got_len);
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"e\"\r\ncontent-length: 0\r\n\r\n");
	} else {
		snprintf(text, sizeof text,
			 "HTTP/1.1 206 Partial\r\ncontent-length: %zu\r\ncontent-range: bytes "
			 "0-%zu/%zu\r\n\r\n",
			 got_len, got_len - 1, got_len);
		answer(fd, text);
		/* A client whose copy function fails goes away. */
		for (size_t at = 0; at < got_len;) {
			ssize_t n = send(fd, got + at, got_len - at, MSG_NOSIGNAL);

			if (n < 0)
				break;
			at += (size_t)n;
		}
	}
}

/* A server that knows nothing of tokens: it sends the bytes. */
static void
serve_deaf(int fd, const struct request *rq)
{
	answer(fd, "HTTP/1.1 206 Partial\r\ncontent-length: 3\r\ncontent-range: bytes 0-2/3\r\n\r\nabc");
}

static void
serve_checksum(int fd, const struct request *rq)
{
	answer(fd, "HTTP/1.1 206 Partial\r\nx-amz-rdma-reply: 206\r\nx-amz-rdma-bytes-transferred: 1000\r\n"
		   "content-range: bytes 0-999/1000\r\nx-amz-rdma-checksum: CRC64NVME AAAAAAAAABE=\r\n"
		   "content-length: 0\r\n\r\n");
}

static void
without_a_copy_function_it_is_an_error(void **state)
{
	struct fix *f = *state;
	const struct gantry_request sum = { .size = sizeof sum, .checksum = 1 };

	serve = serve_http;
	tokens = 0;
	/* Nobody registers it: not one request. */
	assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, NULL, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "memory that the CPU cannot read"));
	assert_non_null(strstr(f->res.message, "gantry_register_dmabuf"));
	assert_int_equal(f->res.requests, 0);
	assert_int_equal(gantry_get(f->g, url, device.ptr, 1000, 0, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(gantry_upload_put(f->g, url, "id", 1, device.ptr, 1000, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(gantry_register(f->g, device.ptr, 1000, 0), -EFAULT);
	assert_non_null(strstr(gantry_register_error(), "nvidia-peermem"));
	assert_non_null(strstr(gantry_register_error(), "memory that the CPU cannot read, 1000 bytes"));
	assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, &sum, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "a checksum of memory that the CPU cannot read"));
	/* Registered, and declined with the server's reason. */
	assert_int_equal(gantry_register_dmabuf(f->g, device.ptr, DEVICE_BYTES, device.fd, 0, GANTRY_DEVICE),
			 0);
	assert_string_equal(gantry_register_error(), "");
	assert_int_equal(gantry_put(f->g, url, device.ptr + 3, 1000, NULL, &f->res), -EOPNOTSUPP);
	assert_string_equal(f->res.reason, "no-channel");
	assert_non_null(strstr(f->res.message, "not by RDMA: no-channel"));
	assert_int_equal(f->res.path, GANTRY_PATH_NONE);
	assert_int_equal(gantry_get(f->g, url, device.ptr + 3, 1000, 0, NULL, &f->res), -EOPNOTSUPP);
	assert_int_equal(tokens, 2);
	serve = serve_deaf;
	assert_int_equal(gantry_get(f->g, url, device.ptr + 3, 1000, 0, NULL, &f->res), -EOPNOTSUPP);
	assert_string_equal(f->res.reason, "the server ignored the token");
	/* What the server says of the bytes, and nobody has compared. */
	serve = serve_checksum;
	assert_int_equal(gantry_get(f->g, url, device.ptr + 3, 1000, 0, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_true(f->res.has_crc64nvme && f->res.crc64nvme == 0x11 && !f->res.checksum_verified);
	/* Over HTTP alone. */
	reopen(f, GANTRY_NO_RDMA, false);
	serve = serve_http;
	assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, NULL, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "RDMA is switched off"));
	assert_int_equal(f->res.requests, 0);
}

/* Memory with a hole: the driver refuses it, and so does the way over HTTP. */
static void
a_hole_is_not_read(void **state)
{
	struct fix *f = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(mprotect(p + 3 * page, page, PROT_NONE), 0);
	serve = serve_http;
	assert_int_equal(gantry_put(f->g, url, p, 8 * page, NULL, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "of which the CPU cannot read every page"));
	assert_int_equal(gantry_get(f->g, url, p, 8 * page, 0, NULL, &f->res), -EOPNOTSUPP);
	munmap(p, 8 * page);
}

static void
fill(size_t size)
{
	for (size_t i = 0; i < size; i++)
		got[i] = (char)(i * 31 + i / 997);
	assert_int_equal(pwrite(device.fd, got, size, 0), size);
	memset(got, 0, size);
}

static void
with_one_bytes_are_bounced(void **state)
{
	static char back[DEVICE_BYTES];
	const struct gantry_request sum = { .size = sizeof sum, .checksum = 1 };
	struct fix *f = *state;

	for (int way = 0; way < 3; way++) {
		size_t size = DEVICE_BYTES - 5 - 3 * (size_t)way;

		reopen(f, way == 0 ? GANTRY_NO_RDMA : 0, true);
		if (way == 2)
			assert_int_equal(
				gantry_register_dmabuf(f->g, device.ptr, DEVICE_BYTES, device.fd, 0, 0), 0);
		serve = serve_http;
		tokens = 0;
		fill(DEVICE_BYTES);
		assert_int_equal(gantry_put(f->g, url, device.ptr + 1, size, &sum, &f->res), 0);
		assert_int_equal(f->res.path, GANTRY_PATH_HTTP);
		assert_int_equal(got_len, size);
		assert_int_equal(tokens, way == 2);
		assert_int_equal(pread(device.fd, back, size, 1), size);
		assert_memory_equal(got, back, size);
		assert_true(f->res.has_crc64nvme && f->res.crc64nvme == crc64_nvme(0, got, size));
		assert_true(copies.most <= 262144 && copies.calls > 8);
		assert_true(pthread_equal(copies.thread, pthread_self()));
		/* And back, to another place. */
		fill(DEVICE_BYTES);
		memcpy(got, back, size);
		assert_int_equal(gantry_get(f->g, url, device.ptr + 2, size, 0, NULL, &f->res), 0);
		assert_int_equal(f->res.bytes, size);
		memset(got, 1, size);
		assert_int_equal(pread(device.fd, got, size, 2), size);
		assert_memory_equal(got, back, size);
		assert_int_equal(tokens, way == 2 ? 2 : 0);
		/* Its errors are the call's. */
		copies.error = -ENXIO;
		assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, &sum, &f->res), -ENXIO);
		assert_non_null(strstr(f->res.message, "the copy function"));
		assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, NULL, &f->res), -ENXIO);
		assert_int_equal(gantry_get(f->g, url, device.ptr, DEVICE_BYTES, 0, NULL, &f->res), -ENXIO);
		assert_non_null(strstr(f->res.message, "the copy function"));
		copies.error = 1;
		assert_int_equal(gantry_put(f->g, url, device.ptr, 1000, NULL, &f->res), -EIO);
	}
	/* Never for memory of the host. */
	memset(&copies, 0, sizeof copies);
	assert_int_equal(gantry_put(f->g, url, f->buf, BUF_LEN, &sum, &f->res), 0);
	assert_int_equal(copies.calls, 0);
}

/* ---- registrations ---- */

static void *
get_on_a_thread(void *arg)
{
	struct fix *f = arg;

	return (void *)(intptr_t)gantry_get(f->g, url, device.ptr + 10, 1000, 0, NULL, &f->res);
}

static void
serve_held(int fd, const struct request *rq)
{
	tokens++;
	while (is_held)
		usleep(1000);
	serve_checksum(fd, rq);
}

static void
registrations_of_dmabufs(void **state)
{
	struct fix *f = *state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = device.ptr;
	pthread_t thread;
	void *result;
	int closed = dup(device.fd);

	close(closed);
	/* What is wrong is said, with both numbers. */
	assert_int_equal(gantry_register_dmabuf(f->g, p, DEVICE_BYTES, device.fd, page, 0), -EINVAL);
	assert_non_null(strstr(gantry_register_error(), "the dma-buf has 2097152 bytes"));
	assert_int_equal(gantry_register_dmabuf(f->g, p, 1, device.fd, UINT64_MAX & ~(page - 1), 0), -EINVAL);
	assert_int_equal(gantry_register_dmabuf(f->g, p + 7, 1, device.fd, 0, 0), -EINVAL);
	assert_non_null(strstr(gantry_register_error(), "the pointer is 7 bytes into a page"));
	assert_int_equal(gantry_register_dmabuf(f->g, p, 1, closed, 0, 0), -EBADF);
	assert_int_equal(gantry_register_dmabuf(f->g, p, 1, -1, 0, 0), -EBADF);
	assert_non_null(strstr(gantry_register_error(), "-1 is no open descriptor"));
	assert_int_equal(gantry_register_dmabuf(f->g, p, 0, device.fd, 0, 0), -EINVAL);
	assert_int_equal(gantry_register_dmabuf(f->g, p, (size_t)1 << 32, device.fd, 0, 0), -EINVAL);
	assert_int_equal(gantry_register_dmabuf(f->g, NULL, 1, device.fd, 0, 0), -EINVAL);
	/* In the middle of a page, twice, overlapping. */
	assert_int_equal(gantry_register_dmabuf(f->g, p + 7, 100, device.fd, page + 7, GANTRY_DEVICE), 0);
	assert_int_equal(gantry_register_dmabuf(f->g, p + 7, 100, device.fd, page + 7, 0), -EEXIST);
	assert_non_null(strstr(gantry_register_error(), "registered already"));
	assert_int_equal(gantry_register_dmabuf(f->g, p, DEVICE_BYTES, device.fd, 0, 0), 0);
	/* Not while a call uses it. */
	serve = serve_held;
	tokens = 0;
	is_held = true;
	assert_int_equal(pthread_create(&thread, NULL, get_on_a_thread, f), 0);
	wait_until(tokens)
		usleep(1000);
	assert_int_equal(gantry_deregister(f->g, p), -EBUSY);
	assert_int_equal(gantry_deregister(f->g, p + 7), 0);
	is_held = false;
	pthread_join(thread, &result);
	assert_null(result);
	assert_int_equal(gantry_deregister(f->g, p), 0);
	assert_int_equal(gantry_deregister(f->g, p), -ENOENT);
	/* Memory that the CPU could read is left alone where its owner says so. */
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, GANTRY_DEVICE), 0);
	serve = serve_http;
	assert_int_equal(gantry_put(f->g, url, f->buf, 1000, NULL, &f->res), -EOPNOTSUPP);
	assert_non_null(strstr(f->res.message, "memory of a device"));
	reopen(f, GANTRY_NO_RDMA, false);
	assert_int_equal(gantry_register_dmabuf(f->g, p, 1, device.fd, 0, 0), -ENODEV);
	assert_non_null(strstr(gantry_register_error(), "RDMA is switched off"));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_cpu_reaches),
		cmocka_unit_test(lists_of_mappings),
		cmocka_unit_test_setup_teardown(without_a_copy_function_it_is_an_error, device_setup,
						device_teardown),
		cmocka_unit_test_setup_teardown(a_hole_is_not_read, device_setup, device_teardown),
		cmocka_unit_test_setup_teardown(with_one_bytes_are_bounced, device_setup, device_teardown),
		cmocka_unit_test_setup_teardown(registrations_of_dmabufs, device_setup, device_teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
