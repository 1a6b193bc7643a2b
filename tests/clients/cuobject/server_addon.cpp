/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module for Node.js, as NooBaa's server: one cuObjServer for the process, buffers that JavaScript's collector frees, and operations
 * on threads of libuv's pool, each with a channel of that thread or of the request; waited for, or (event) begun and polled
 * for.  server_addon.js uses it.
 */
#include "cuobjserver.h"

#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include <node_api.h>

static cuObjServer *server;
static std::once_flag once;

struct held {
	void *memory;
	struct rdma_buffer *buffer;
};

struct operation {
	napi_async_work work;
	napi_deferred deferred;
	napi_ref memory;
	struct held *held;
	bool is_put, is_event, of_request;
	uint64_t start;
	size_t size;
	std::string token;
	ssize_t moved;
};

static void
open_server()
{
	cuObjRDMATunable t;

	t.setNumDcis(64);
	t.setTimeout(14);
	t.setRetryCount(3);
	server = new cuObjServer("127.0.0.1", 18515, CUOBJ_PROTO_RDMA_DC_V1, t);
}

/* On whatever thread the collector runs (fact 15). */
static void
let_go(napi_env, void *, void *hint)
{
	struct held *h = static_cast<struct held *>(hint);

	server->deRegisterBuffer(h->buffer);
	free(h->memory);
	delete h;
}

/* buffer(size): registered memory.  Its handle is kept beside it. */
static napi_value
buffer(napi_env env, napi_callback_info info)
{
	size_t n = 1;
	napi_value arg, result, handle;
	int64_t size = 0;
	struct held *h = new held();

	std::call_once(once, open_server);
	napi_get_cb_info(env, info, &n, &arg, nullptr, nullptr);
	napi_get_value_int64(env, arg, &size);
	h->memory = server->allocHostBuffer(static_cast<size_t>(size));
	h->buffer = h->memory ? server->registerBuffer(h->memory, static_cast<size_t>(size)) : nullptr;
	if (!h->buffer || !server->isConnected()) {
		napi_throw_error(env, nullptr, "no buffer");
		return nullptr;
	}
	napi_create_external_buffer(env, static_cast<size_t>(size), h->memory, let_go, h, &result);
	napi_create_bigint_uint64(env, reinterpret_cast<uintptr_t>(h), &handle);
	napi_set_named_property(env, result, "held", handle);
	return result;
}

static void
run(napi_env, void *data)
{
	static thread_local uint16_t of_thread = INVALID_CHANNEL_ID;
	struct operation *o = static_cast<struct operation *>(data);
	uint16_t channel = of_thread;
	void *handle = o->is_event ? o : nullptr;

	if (o->of_request || channel == INVALID_CHANNEL_ID)
		channel = server->allocateChannelId();
	if (!o->of_request)
		of_thread = channel;
	if (channel == INVALID_CHANNEL_ID) {
		o->moved = -1000;
		return;
	}
	o->moved = o->is_put ? server->handlePutObject("k", o->held->buffer, o->start, o->size, o->token,
						       channel, 0, nullptr, handle)
			     : server->handleGetObject("k", o->held->buffer, o->start, o->size, o->token,
						       channel, 0, nullptr, handle);
	while (handle && o->moved == 0) {
		cuObjAsyncEvent_t e = { nullptr, 0 };
		int n = server->poll(&e, 1, channel);

		if (n < 0 || (n == 1 && (e.async_handle != o || e.status != IBV_WC_SUCCESS)))
			o->moved = n < 0 ? n : -e.status;
		else if (n == 1)
			o->moved = static_cast<ssize_t>(o->size);
		else
			std::this_thread::yield();
	}
	if (o->of_request)
		server->freeChannelId(channel);
}

static void
finish(napi_env env, napi_status, void *data)
{
	struct operation *o = static_cast<struct operation *>(data);
	napi_value moved;

	napi_create_int64(env, o->moved, &moved);
	napi_resolve_deferred(env, o->deferred, moved);
	napi_delete_async_work(env, o->work);
	napi_delete_reference(env, o->memory);
	delete o;
}

/* move(isPut, buffer, start, size, token, isEvent, ofRequest): a promise of what moved. */
static napi_value
move(napi_env env, napi_callback_info info)
{
	size_t n = 7, length = 0;
	napi_value argv[7], name, promise, handle;
	struct operation *o = new operation();
	int64_t size = 0;
	uint64_t pointer = 0;
	bool lossless;
	char token[100];

	napi_get_cb_info(env, info, &n, argv, nullptr, nullptr);
	napi_get_value_bool(env, argv[0], &o->is_put);
	napi_get_named_property(env, argv[1], "held", &handle);
	napi_get_value_bigint_uint64(env, handle, &pointer, &lossless);
	napi_get_value_bigint_uint64(env, argv[2], &o->start, &lossless);
	napi_get_value_int64(env, argv[3], &size);
	napi_get_value_string_utf8(env, argv[4], token, sizeof token, &length);
	napi_get_value_bool(env, argv[5], &o->is_event);
	napi_get_value_bool(env, argv[6], &o->of_request);
	o->held = reinterpret_cast<struct held *>(pointer);
	o->size = static_cast<size_t>(size);
	o->token.assign(token, length);
	napi_create_reference(env, argv[1], 1, &o->memory);
	napi_create_string_utf8(env, "move", NAPI_AUTO_LENGTH, &name);
	napi_create_promise(env, &o->deferred, &promise);
	napi_create_async_work(env, nullptr, name, run, finish, o, &o->work);
	napi_queue_async_work(env, o->work);
	return promise;
}

static napi_value
init(napi_env env, napi_value exports)
{
	napi_value f;

	napi_create_function(env, "buffer", NAPI_AUTO_LENGTH, buffer, nullptr, &f);
	napi_set_named_property(env, exports, "buffer", f);
	napi_create_function(env, "move", NAPI_AUTO_LENGTH, move, nullptr, &f);
	napi_set_named_property(env, exports, "move", f);
	return exports;
}

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
