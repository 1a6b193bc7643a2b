/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs HOST:PORT [NAME...]: public programs that are written to cuObject's client, each as far as the library sees it:
 * its headers and link names, the calls that it makes, in its order, on its threads, with its conventions.  Bytes go to
 * gantryd and back.  The numbered facts are those of its tests
 * (tests/cuobject/facts.cpp).
 */
#include "play.hpp"

#include "cuda_runtime.h"

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include <curl/curl.h>

/* ---- what they share ---- */

static void
fill(char *p, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		p[i] = static_cast<char>((i + seed) * 13 + i / 241);
}

static void
in_threads(int n, const std::function<void(int)> &fn)
{
	std::vector<std::thread> all;

	for (int i = 0; i < n; i++)
		all.emplace_back(fn, i);
	for (auto &t : all)
		t.join();
}

/* [at, + size) of the registration at base goes to an object and comes back, each by a token. */
static void
by_tokens(cuObjClient &c, void *base, char *at, size_t size, const std::string &path)
{
	size_t offset = static_cast<size_t>(at - static_cast<char *>(base));
	std::string sent(at, size);
	char *token = nullptr;

	must(c.cuMemObjGetRDMAToken(base, size, offset, CUOBJ_PUT, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("PUT", path, token));
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	must(http("GET", path, "").body == sent);
	memset(at, 0, size);
	must(c.cuMemObjGetRDMAToken(base, size, offset, CUOBJ_GET, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("GET", path, token));
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	must(!memcmp(at, sent.data(), size));
}

/* The same for memory of a device, which is filled and looked at by the runtime. */
static void
by_tokens_on_device(cuObjClient &c, char *device, size_t offset, size_t size, const std::string &path)
{
	std::vector<char> host(size), back(size);
	char *token = nullptr;

	fill(host.data(), size, 5);
	must(cudaMemcpy(device + offset, host.data(), size, cudaMemcpyHostToDevice) == cudaSuccess);
	must(cudaDeviceSynchronize() == cudaSuccess);
	must(c.cuMemObjGetRDMAToken(device, size, offset, CUOBJ_PUT, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("PUT", path, token));
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	must(http("GET", path, "").body == std::string(host.data(), size));
	must(cudaMemcpy(device + offset, back.data(), size, cudaMemcpyHostToDevice) == cudaSuccess);
	must(c.cuMemObjGetRDMAToken(device, size, offset, CUOBJ_GET, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("GET", path, token));
	must(c.cuMemObjPutRDMAToken(token) == CU_OBJ_SUCCESS);
	must(cudaMemcpy(back.data(), device + offset, size, cudaMemcpyDeviceToHost) == cudaSuccess);
	must(back == host);
}

static char *
on_device(size_t size)
{
	void *p = nullptr;

	must(cudaMalloc(&p, size) == cudaSuccess);
	return static_cast<char *>(p);
}

/* Requests of one connector, up to 16 at once, by curl. */
struct curl_request {
	std::string method, path, token;
};

static size_t
look_at_header(char *text, size_t, size_t n, void *arg)
{
	if (n > 19 && !strncasecmp(text, "x-amz-rdma-reply: 2", 19))
		*static_cast<bool *>(arg) = true;
	return n;
}

static void
drive(const std::vector<struct curl_request> &all)
{
	CURLM *multi = curl_multi_init();
	std::unique_ptr<bool[]> went(new bool[all.size()]());
	std::vector<struct curl_slist *> headers(all.size());
	size_t next = 0, over = 0;
	int running = 0, left;

	must(multi);
	while (over < all.size()) {
		for (; next < all.size() && next - over < 16; next++) {
			const struct curl_request &r = all[next];
			CURL *e = curl_easy_init();

			headers[next] = curl_slist_append(nullptr, ("x-amz-rdma-token: " + r.token).c_str());
			curl_easy_setopt(e, CURLOPT_URL, ("http://" + server + r.path).c_str());
			curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers[next]);
			curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, look_at_header);
			curl_easy_setopt(e, CURLOPT_HEADERDATA, &went[next]);
			if (r.method == "PUT") {
				curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
				curl_easy_setopt(e, CURLOPT_INFILESIZE, 0L);
			}
			must(curl_multi_add_handle(multi, e) == CURLM_OK);
		}
		must(curl_multi_perform(multi, &running) == CURLM_OK);
		while (CURLMsg *m = curl_multi_info_read(multi, &left)) {
			CURL *e = m->easy_handle;
			long status = 0;

			must(m->msg == CURLMSG_DONE && m->data.result == CURLE_OK);
			curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
			must(status / 100 == 2);
			curl_multi_remove_handle(multi, e);
			curl_easy_cleanup(e);
			over++;
		}
		curl_multi_poll(multi, nullptr, 0, 100, nullptr);
	}
	for (size_t i = 0; i < all.size(); i++) {
		must(went[i]);
		curl_slist_free_all(headers[i]);
	}
	curl_multi_cleanup(multi);
}

/* ---- programs that ask for tokens ---- */

/* The Rust binding of NVIDIA's multi-storage-client: an object for each client, no callbacks (fact 4), one registration and
 * a token for every request, by many threads (fact 17). */
static void
msc_rust()
{
	CUObjOps_t ops = {};
	std::unique_ptr<cuObjClient> client(new cuObjClient(ops, CUOBJ_PROTO_RDMA_DC_V1));
	std::vector<char> memory(8 << 16);

	fill(memory.data(), memory.size(), 1);
	must(client->isConnected() && cuObjClient::getMemoryType(memory.data()) == CUOBJ_MEMORY_SYSTEM);
	must(client->cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	in_threads(8, [&](int i) {
		for (int round = 0; round < 4; round++)
			by_tokens(*client, memory.data(), memory.data() + (i << 16), 65000,
				  "/bkt/msc_rust." + std::to_string(i));
	});
	must(client->cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* PyTorch: one object for the process, which ends with it; storages of tensors, in memory of a device too, under a guard
 * of the device. */
static cuObjClient &
pytorch_client()
{
	static CUObjOps_t ops = { nullptr, nullptr };
	static cuObjClient client(ops);

	return client;
}

static void
pytorch()
{
	cuObjClient &client = pytorch_client();
	std::vector<char> storage(1 << 20);
	int device = -1;

	must(client.isConnected() && &client == &pytorch_client());
	fill(storage.data(), storage.size(), 2);
	must(client.cuMemObjGetDescriptor(storage.data(), storage.size()) == CU_OBJ_SUCCESS);
	by_tokens(client, storage.data(), storage.data() + 4096, 1000000, "/bkt/pytorch");
	must(client.cuMemObjPutDescriptor(storage.data()) == CU_OBJ_SUCCESS);

	char *tensor = on_device(1 << 20);

	must(cudaGetDevice(&device) == cudaSuccess && cudaSetDevice(0) == cudaSuccess);
	must(client.cuMemObjGetDescriptor(tensor, 1 << 20) == CU_OBJ_SUCCESS);
	by_tokens_on_device(client, tensor, 512, 1000000, "/bkt/pytorch.device");
	must(client.cuMemObjPutDescriptor(tensor) == CU_OBJ_SUCCESS);
	must(cudaSetDevice(device) == cudaSuccess);
}

/* kvikio's shim: one object for the process, tokens alone, -lcuobjclient -lcufile on its link line (fact 10). */
static void
kvikio()
{
	static CUObjOps_t ops{};
	static cuObjClient *client = new cuObjClient(ops);
	std::vector<char> memory(300000);

	fill(memory.data(), memory.size(), 3);
	must(client->isConnected());
	must(client->cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	by_tokens(*client, memory.data(), memory.data(), memory.size(), "/bkt/kvikio");
	must(client->cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* NIXL's OBJ plugin of Everpure: registers blocks, makes tokens for many of them, and drives their requests at once. */
static void
nixl_everpure()
{
	CUObjOps_t ops = { nullptr, nullptr };
	auto client = std::make_shared<cuObjClient>(ops);
	const size_t block = 65536;
	std::vector<char> memory(32 * block);
	std::vector<struct curl_request> all;
	std::vector<char *> tokens(32);

	fill(memory.data(), memory.size(), 4);
	std::vector<char> sent(memory);

	must(client->isConnected());
	must(client->cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	for (auto op : { CUOBJ_PUT, CUOBJ_GET }) {
		all.clear();
		for (size_t i = 0; i < 32; i++) {
			must(client->cuMemObjGetRDMAToken(memory.data(), block, i * block, op, &tokens[i]) ==
			     CU_OBJ_SUCCESS);
			all.push_back({ op == CUOBJ_PUT ? "PUT" : "GET", "/bkt/everpure." + std::to_string(i),
					tokens[i] });
		}
		drive(all);
		for (char *t : tokens)
			must(client->cuMemObjPutRDMAToken(t) == CU_OBJ_SUCCESS);
		must(memory == sent);
		if (op == CUOBJ_PUT)
			std::fill(memory.begin(), memory.end(), 0);
	}
	must(client->cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* versitygw's wrapper in C: a handle, registrations of host and device memory, tokens; nobody asks isConnected(). */
extern "C" {
static void *
wrapper_new()
{
	CUObjOps_t none = { nullptr, nullptr };

	return new (std::nothrow) cuObjClient(none);
}
static int
wrapper_token(void *h, void *p, size_t size, size_t offset, int is_put, char **ret_token)
{
	return static_cast<cuObjClient *>(h)->cuMemObjGetRDMAToken(p, size, offset,
								   is_put ? CUOBJ_PUT : CUOBJ_GET, ret_token);
}
}

static void
versitygw()
{
	void *h = wrapper_new();
	char *device = on_device(1 << 20), *token = nullptr;
	cuObjClient &client = *static_cast<cuObjClient *>(h);
	std::vector<char> host(70000);

	must(h);
	fill(host.data(), host.size(), 6);
	must(client.cuMemObjGetDescriptor(device, 1 << 20) == CU_OBJ_SUCCESS);
	by_tokens_on_device(client, device, 4096, 500000, "/bkt/versity.device");
	must(client.cuMemObjPutDescriptor(device) == CU_OBJ_SUCCESS);
	must(client.cuMemObjGetDescriptor(host.data(), host.size()) == CU_OBJ_SUCCESS);
	must(wrapper_token(h, host.data(), host.size(), 0, 1, &token) == 0);
	must(by_rdma("PUT", "/bkt/versity", token) && client.cuMemObjPutRDMAToken(token) == 0);
	must(http("GET", "/bkt/versity", "").body == std::string(host.data(), host.size()));
	must(client.cuMemObjPutDescriptor(host.data()) == CU_OBJ_SUCCESS);
	delete static_cast<cuObjClient *>(h);
}

/* s5cmd's shim: a table on the stack with nothing in it (facts 3, 4), the size compared with the most that may be
 * registered, a version of the library refused only where one is said. */
static cuObjClient *
s5cmd_open()
{
#if defined CUOBJ_CLIENT_MAJOR_VERSION
#error no version is said unless it is asked for
#endif
	CUObjOps_t ops;

	memset(&ops, 0, sizeof ops);
	cuObjClient *client = new cuObjClient(ops, CUOBJ_PROTO_RDMA_DC_V1);

	memset(&ops, 0x5a, sizeof ops);
	return client;
}

static void
s5cmd()
{
	std::unique_ptr<cuObjClient> client(s5cmd_open());
	std::vector<char> memory(1000001);

	fill(memory.data(), memory.size(), 7);
	must(client->isConnected() && !(memory.size() > CUOBJ_MAX_MEMORY_REG_SIZE));
	must(client->cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	by_tokens(*client, memory.data(), memory.data(), memory.size(), "/bkt/s5cmd");
	must(client->cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* elbencho: telemetry with both flags, threads with buffers of their own, tokens given back with their error. */
static void
elbencho()
{
	CUObjOps_t ops = { nullptr, nullptr };
	std::ostringstream out;

	cuObjClient::setupTelemetry(false, &out);
	cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_INFO | CUOBJ_LOG_PATH_DEBUG | CUOBJ_LOG_PATH_ERROR,
				   CUOBJ_LOG_OP_GET | CUOBJ_LOG_OP_PUT);
	{
		cuObjClient client(ops);

		must(client.isConnected());
		in_threads(4, [&](int i) {
			char *memory = static_cast<char *>(aligned_alloc(4096, 1 << 20)), *token = nullptr;
			std::string path = "/bkt/elbencho." + std::to_string(i);

			must(memory && cuObjClient::getMemoryType(memory) == CUOBJ_MEMORY_SYSTEM);
			fill(memory, 1 << 20, static_cast<unsigned>(i));
			std::string sent(memory, 1 << 20);
			must(client.cuMemObjGetDescriptor(memory, 1 << 20) == CU_OBJ_SUCCESS);
			must(client.cuMemObjGetRDMAToken(memory, 1 << 20, 0, CUOBJ_PUT, &token) ==
			     CU_OBJ_SUCCESS);
			must(by_rdma("PUT", path, token));
			must(client.cuMemObjPutRDMAToken(token, 0) == CU_OBJ_SUCCESS);
			memset(memory, 0, 1 << 20);
			must(client.cuMemObjGetRDMAToken(memory, 1 << 20, 0, CUOBJ_GET, &token) ==
			     CU_OBJ_SUCCESS);
			must(by_rdma("GET", path, token));
			must(client.cuMemObjPutRDMAToken(token, 0) == CU_OBJ_SUCCESS);
			must(!memcmp(memory, sent.data(), sent.size()));
			must(client.cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
			free(memory);
		});
		/* One that failed: nothing may come by it any more. */
		static char late[4096];
		char *token = nullptr;

		must(client.cuMemObjGetDescriptor(late, sizeof late) == CU_OBJ_SUCCESS);
		must(client.cuMemObjGetRDMAToken(late, sizeof late, 0, CUOBJ_GET, &token) == CU_OBJ_SUCCESS);
		std::string text = token;

		must(client.cuMemObjPutRDMAToken(token, -EIO) == CU_OBJ_SUCCESS);
		must(!by_rdma("GET", "/bkt/s5cmd", text));
		for (char c : late)
			must(c == 0);
		must(client.cuMemObjPutDescriptor(late) == CU_OBJ_SUCCESS);
	}
	cuObjClient::shutdownTelemetry();
	cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	must(!out.str().empty());
}

/* Ceph: an OSD that gathers, and a gateway that pushes: a table of nothing, tokens made by one thread and used by others. */
static void
ceph()
{
	CUObjOps_t ops{};
	cuObjClient client(ops);
	const size_t part = 100000;
	std::vector<char> memory(8 * part), sent;
	std::vector<char *> tokens(8);

	fill(memory.data(), memory.size(), 8);
	sent = memory;
	must(client.isConnected());
	must(client.cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	for (auto op : { CUOBJ_PUT, CUOBJ_GET }) {
		for (size_t i = 0; i < 8; i++)
			must(client.cuMemObjGetRDMAToken(memory.data(), part, i * part, op, &tokens[i]) ==
			     CU_OBJ_SUCCESS);
		in_threads(8, [&](int i) {
			must(by_rdma(op == CUOBJ_PUT ? "PUT" : "GET", "/bkt/ceph." + std::to_string(i),
				     tokens[i]));
			must(client.cuMemObjPutRDMAToken(tokens[i]) == CU_OBJ_SUCCESS);
		});
		must(memory == sent);
		if (op == CUOBJ_PUT)
			std::fill(memory.begin(), memory.end(), 0);
	}
	must(client.cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* ---- programs that are called back ---- */

/* A request that a callback noted down, for later. */
struct later {
	std::string text;
	loff_t offset;
	size_t size;
};

static ssize_t
note(const void *handle, char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct later *l = static_cast<struct later *>(cuObjClient::getCtx(handle));

	must(info->desc_len == 82);
	*l = { std::string(info->desc_str, static_cast<size_t>(info->desc_len - 1)), offset, size };
	return 0;
}

static ssize_t
note_put(const void *handle, const char *p, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	return note(handle, const_cast<char *>(p), size, offset, info);
}

/* Registers, has each of its blocks noted down, and drives the requests when cuObjPut() and cuObjGet() have returned, with
 * 0, which is no error (fact 5).  Blocks lie inside of the registration (fact 6). */
static void
noted(cuObjClient &client, const char *name, size_t blocks, size_t block)
{
	std::vector<char> memory(blocks * block);
	std::vector<struct later> all(blocks);
	std::vector<struct curl_request> requests;

	fill(memory.data(), memory.size(), 9);
	std::vector<char> sent(memory);

	must(client.cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	for (bool put : { true, false }) {
		requests.clear();
		for (size_t i = 0; i < blocks; i++) {
			char *at = memory.data() + i * block;
			loff_t offset = static_cast<loff_t>(i * 1000);

			must((put ? client.cuObjPut(&all[i], at, block, offset)
				  : client.cuObjGet(&all[i], at, block, offset)) == 0);
			must(all[i].offset == offset && all[i].size == block);
			requests.push_back({ put ? "PUT" : "GET",
					     std::string("/bkt/") + name + "." + std::to_string(i),
					     all[i].text });
		}
		drive(requests);
		must(memory == sent);
		if (put)
			std::fill(memory.begin(), memory.end(), 0);
	}
	must(client.cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* NIXL's OBJ plugin of Dell. */
static void
nixl_dell()
{
	CUObjOps_t ops = { note, note_put };
	cuObjClient client(ops, CUOBJ_PROTO_RDMA_DC_V1);

	must(client.isConnected());
	noted(client, "dell", 48, 40000);
}

/* The plugin of aws-c-s3: a table on the stack, telemetry, the type of memory, the most of one callback. */
static cuObjClient *
aws_open()
{
	CUObjOps_t ops;

	ops.get = note;
	ops.put = note_put;
	return new cuObjClient(ops);
}

static void
aws_c_s3()
{
	static char memory[5000];
	std::ostringstream out;

	cuObjClient::setupTelemetry(false, &out);
	cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_DEBUG);
	cuObjClient *client = aws_open();

	must(client->isConnected() && cuObjClient::getMemoryType(memory) == CUOBJ_MEMORY_SYSTEM);
	must(client->cuMemObjGetMaxRequestCallbackSize(memory) == -1);
	must(client->cuMemObjGetDescriptor(memory, sizeof memory) == CU_OBJ_SUCCESS);
	must(client->cuMemObjGetMaxRequestCallbackSize(memory) >= static_cast<ssize_t>(sizeof memory));
	must(client->cuMemObjPutDescriptor(memory) == CU_OBJ_SUCCESS);
	noted(*client, "aws", 4, 300000);
	delete client;
	cuObjClient::shutdownTelemetry();
	cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_ERROR);
	must(!out.str().empty());
}

/* Scality's AI connector: requests inside of the callbacks, whose offset they need, from threads that set their device;
 * memory of the host and of a device. */
static ssize_t
scality_put(const void *handle, const char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	o->path += "." + std::to_string(offset);
	return by_rdma("PUT", o->path, o->token) ? static_cast<ssize_t>(size) : -EIO;
}

static ssize_t
scality_get(const void *handle, char *, size_t size, loff_t offset, const cufileRDMAInfo_t *info)
{
	struct object *o = told(handle, size, offset, info);

	o->path += "." + std::to_string(offset);
	return by_rdma("GET", o->path, o->token) ? static_cast<ssize_t>(size) : -EIO;
}

static void
scality()
{
	CUObjOps_t ops = { scality_get, scality_put };
	cuObjClient client(ops);
	const size_t size = 200000;
	char *device = on_device(4 * size);
	std::vector<char> memory(4 * size), host(4 * size);

	must(client.isConnected());
	fill(host.data(), host.size(), 10);
	memory = host;
	must(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice) == cudaSuccess);
	must(client.cuMemObjGetDescriptor(memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	must(client.cuMemObjGetDescriptor(device, 4 * size) == CU_OBJ_SUCCESS);
	for (bool put : { true, false }) {
		in_threads(4, [&](int i) {
			size_t at = static_cast<size_t>(i) * size;
			loff_t offset = 1000 * i + 1;
			char *from[] = { memory.data() + at, device + at };

			must(cudaSetDevice(0) == cudaSuccess);
			for (int k = 0; k < 2; k++) {
				struct object o = { k ? "/bkt/scality.device" : "/bkt/scality", "", 0, 0, 0 };
				ssize_t n = put ? client.cuObjPut(&o, from[k], size, offset)
						: client.cuObjGet(&o, from[k], size, offset);

				must(n == static_cast<ssize_t>(size) && o.offset == offset && o.calls == 1);
			}
		});
		if (!put)
			break;
		std::fill(memory.begin(), memory.end(), 0);
		must(cudaMemcpy(device, memory.data(), memory.size(), cudaMemcpyHostToDevice) == cudaSuccess);
	}
	must(memory == host);
	must(cudaMemcpy(memory.data(), device, memory.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
	must(memory == host);
	must(client.cuMemObjPutDescriptor(device) == CU_OBJ_SUCCESS);
	must(client.cuMemObjPutDescriptor(memory.data()) == CU_OBJ_SUCCESS);
}

/* ---- programs that open the library by name ---- */

template <class F>
static F
named(void *library, const char *name)
{
	F f;
	void *p = dlsym(library, name);

	if (!p)
		failed(name, __FILE__, __LINE__);
	memcpy(&f, &p, sizeof f);
	return f;
}

/* What both of them look up; types come from the header, calls by their linker names. */
struct calls {
	void (*construct)(void *, CUObjOps_t &, cuObjProto_t);
	bool (*connected)(void *);
	cuObjErr_t (*get_descriptor)(void *, void *, size_t);
	cuObjErr_t (*put_descriptor)(void *, void *);
	cuObjErr_t (*get_token)(void *, void *, size_t, size_t, cuObjOpType_t, char **);
	cuObjErr_t (*put_token)(void *, char *);

	explicit calls(void *l)
	    : construct(named<decltype(construct)>(l, "_ZN11cuObjClientC1ER10CUObjIOOps15cuObjProto_enum")),
	      connected(named<decltype(connected)>(l, "_ZN11cuObjClient11isConnectedEv")),
	      get_descriptor(
		      named<decltype(get_descriptor)>(l, "_ZN11cuObjClient21cuMemObjGetDescriptorEPvm")),
	      put_descriptor(
		      named<decltype(put_descriptor)>(l, "_ZN11cuObjClient21cuMemObjPutDescriptorEPv")),
	      get_token(named<decltype(get_token)>(
		      l, "_ZN11cuObjClient20cuMemObjGetRDMATokenEPvmm16cuObjOpType_enumPPc")),
	      put_token(named<decltype(put_token)>(l, "_ZN11cuObjClient20cuMemObjPutRDMATokenEPc"))
	{
	}
};

static void
token_round(const struct calls &c, void *object, char *base, size_t size, const std::string &path)
{
	std::string sent(base, size);
	char *token = nullptr;

	must(c.get_token(object, base, size, 0, CUOBJ_PUT, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("PUT", path, token) && c.put_token(object, token) == CU_OBJ_SUCCESS);
	memset(base, 0, size);
	must(c.get_token(object, base, size, 0, CUOBJ_GET, &token) == CU_OBJ_SUCCESS);
	must(by_rdma("GET", path, token) && c.put_token(object, token) == CU_OBJ_SUCCESS);
	must(std::string(base, size) == sent);
}

/* Cloudian's SDK: an object for each thread in memory of its own, freed without a destructor (fact 2); memory that one
 * thread registered by its object is used by the others' (fact 1). */
static void
cloudian()
{
	void *library = dlopen("libcuobjclient.so", RTLD_NOW | RTLD_LOCAL);

	must(library || (library = dlopen("libcuobjclient.so.1", RTLD_NOW | RTLD_LOCAL)));
	const struct calls c(library);
	auto type =
		named<cuObjMemoryType_t (*)(const void *)>(library, "_ZN11cuObjClient13getMemoryTypeEPKv");
	std::vector<std::vector<char>> memory(4, std::vector<char>(150000));
	std::atomic<int> registered(0);

	in_threads(4, [&](int i) {
		CUObjOps_t ops = { nullptr, nullptr };
		void *object = malloc(72);

		memset(object, 0, 72);
		c.construct(object, ops, CUOBJ_PROTO_RDMA_DC_V1);
		must(c.connected(object) && type(memory[i].data()) == CUOBJ_MEMORY_SYSTEM);
		fill(memory[i].data(), memory[i].size(), static_cast<unsigned>(i));
		must(c.get_descriptor(object, memory[i].data(), memory[i].size()) == CU_OBJ_SUCCESS);
		registered++;
		while (registered < 4)
			std::this_thread::yield();
		/* Another's memory. */
		token_round(c, object, memory[(i + 1) % 4].data(), 150000,
			    "/bkt/cloudian." + std::to_string(i));
		registered++;
		while (registered < 8)
			std::this_thread::yield();
		must(c.put_descriptor(object, memory[i].data()) == CU_OBJ_SUCCESS);
		free(object);
	});
}

/* US3's client: opened by a path, cufile.h where there is one, callbacks and tokens, memory of a device. */
#if defined __has_include
#if __has_include("cufile.h")
#include "cufile.h"
#endif
#endif
static void
us3()
{
	void *library = dlopen("libcuobjclient.so.1", RTLD_LAZY | RTLD_GLOBAL);

	must(library);
	const struct calls c(library);
	auto destroy = named<void (*)(void *)>(library, "_ZN11cuObjClientD1Ev");
	auto max = named<ssize_t (*)(void *, void *)>(
		library, "_ZN11cuObjClient33cuMemObjGetMaxRequestCallbackSizeEPv");
	auto get = named<ssize_t (*)(void *, void *, void *, size_t, loff_t, loff_t)>(
		library, "_ZN11cuObjClient8cuObjGetEPvS0_mll");
	auto put = named<ssize_t (*)(void *, void *, void *, size_t, loff_t, loff_t)>(
		library, "_ZN11cuObjClient8cuObjPutEPvS0_mll");
	named<void *(*)(const void *)>(library, "_ZN11cuObjClient6getCtxEPKv");
	CUObjOps_t ops = { get_object, put_object };
	alignas(16) char object[sizeof(cuObjClient)];
	struct object o = { "/bkt/us3", "", 0, 0, 0 };
	const size_t size = 600000;
	std::vector<char> memory(2 * size), host(size), back(size);
	char *device = on_device(size);

	c.construct(object, ops, CUOBJ_PROTO_RDMA_DC_V1);
	must(c.connected(object));
	fill(memory.data(), size, 11);
	must(max(object, memory.data()) == -1);
	must(c.get_descriptor(object, memory.data(), memory.size()) == CU_OBJ_SUCCESS);
	must(max(object, memory.data()) >= static_cast<ssize_t>(size));
	must(put(object, &o, memory.data(), size, 0, 0) == static_cast<ssize_t>(size));
	must(get(object, &o, memory.data(), size, 0, static_cast<loff_t>(size)) ==
	     static_cast<ssize_t>(size));
	must(!memcmp(memory.data(), memory.data() + size, size));
	token_round(c, object, memory.data(), size, "/bkt/us3.token");
	fill(host.data(), size, 12);
	must(cudaMemcpy(device, host.data(), size, cudaMemcpyHostToDevice) == cudaSuccess);
	must(c.get_descriptor(object, device, size) == CU_OBJ_SUCCESS);
	must(put(object, &o, device, size, 0, 0) == static_cast<ssize_t>(size));
	must(cudaMemcpy(device, back.data(), size, cudaMemcpyHostToDevice) == cudaSuccess);
	must(get(object, &o, device, size, 0, 0) == static_cast<ssize_t>(size));
	must(cudaMemcpy(back.data(), device, size, cudaMemcpyDeviceToHost) == cudaSuccess && back == host);
	must(c.put_descriptor(object, device) == CU_OBJ_SUCCESS);
	must(c.put_descriptor(object, memory.data()) == CU_OBJ_SUCCESS);
	destroy(object);
}

/* ---- all of them ---- */

static const struct {
	const char *name;
	void (*run)();
} programs[] = {
	{ "msc_rust", msc_rust },
	{ "pytorch", pytorch },
	{ "kvikio", kvikio },
	{ "nixl_dell", nixl_dell },
	{ "nixl_everpure", nixl_everpure },
	{ "scality", scality },
	{ "versitygw", versitygw },
	{ "aws_c_s3", aws_c_s3 },
	{ "s5cmd", s5cmd },
	{ "elbencho", elbencho },
	{ "cloudian", cloudian },
	{ "us3", us3 },
	{ "ceph", ceph },
};

int
main(int argc, char **argv)
{
	must(argc > 1);
	server = argv[1];
	curl_global_init(CURL_GLOBAL_ALL);
	for (const auto &p : programs) {
		bool is_asked = argc == 2;

		for (int i = 2; i < argc; i++)
			is_asked |= !strcmp(argv[i], p.name);
		if (!is_asked)
			continue;
		p.run();
		printf("ok    %s\n", p.name);
		fflush(stdout);
	}
	return 0;
}
