/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module for Node.js, as NooBaa's: an object for the process and one for each worker thread; cuObjGet() and cuObjPut() on a
 * thread of libuv's pool, whose callbacks hand the descriptor to JavaScript, which sends the request.  Either the callback
 * waits for JavaScript's answer, or (event) it returns 0 at once and the request follows.  addon.js uses it.
 */
#include "cuobjclient.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>

#include <node_api.h>

static std::ostringstream telemetry;

/* One operation, from its call to its promise. */
struct operation {
	cuObjClient *client;
	napi_async_work work;
	napi_deferred deferred;
	napi_threadsafe_function ask; /* JavaScript's function(descriptor, offset, size, answer) */
	napi_ref memory;
	bool is_put, is_event;
	char *at;
	size_t size;
	loff_t offset;
	ssize_t moved;
	/* What the callback was told, and the answer that it waits for. */
	std::string text;
	std::mutex mutex;
	std::condition_variable changed;
	bool is_answered;
	ssize_t answer;
};

static ssize_t
ask(const void *handle, size_t size, const cufileRDMAInfo_t *info)
{
	struct operation *o = static_cast<struct operation *>(cuObjClient::getCtx(handle));

	/* A descriptor of another length is refused. */
	if (info->desc_len - 1 != 81)
		return -EINVAL;
	o->text.assign(info->desc_str, static_cast<size_t>(info->desc_len - 1));
	if (o->is_event)
		return 0;
	napi_call_threadsafe_function(o->ask, o, napi_tsfn_blocking);
	std::unique_lock<std::mutex> lock(o->mutex);
	o->changed.wait(lock, [&] { return o->is_answered; });
	return o->answer < 0 ? o->answer : static_cast<ssize_t>(size);
}

static ssize_t
on_get(const void *handle, char *, size_t size, loff_t, const cufileRDMAInfo_t *info)
{
	return ask(handle, size, info);
}

static ssize_t
on_put(const void *handle, const char *, size_t size, loff_t, const cufileRDMAInfo_t *info)
{
	return ask(handle, size, info);
}

/* answer(n): how many bytes went, or a negative number. */
static napi_value
answer(napi_env env, napi_callback_info info)
{
	size_t n = 1;
	napi_value arg;
	struct operation *o;
	int64_t value = -1;

	napi_get_cb_info(env, info, &n, &arg, nullptr, reinterpret_cast<void **>(&o));
	napi_get_value_int64(env, arg, &value);
	std::lock_guard<std::mutex> lock(o->mutex);
	o->answer = value;
	o->is_answered = true;
	o->changed.notify_one();
	return nullptr;
}

static void
call_javascript(napi_env env, napi_value fn, void *, void *data)
{
	struct operation *o = static_cast<struct operation *>(data);
	napi_value argv[2], undefined;

	if (!env)
		return;
	napi_get_undefined(env, &undefined);
	napi_create_string_utf8(env, o->text.data(), o->text.size(), &argv[0]);
	napi_create_function(env, "answer", NAPI_AUTO_LENGTH, answer, o, &argv[1]);
	napi_call_function(env, undefined, fn, 2, argv, nullptr);
}

static void
run(napi_env, void *data)
{
	struct operation *o = static_cast<struct operation *>(data);

	o->moved = o->is_put ? o->client->cuObjPut(o, o->at, o->size, o->offset)
			     : o->client->cuObjGet(o, o->at, o->size, o->offset);
}

static void
finish(napi_env env, napi_status, void *data)
{
	struct operation *o = static_cast<struct operation *>(data);
	napi_value result, value;

	napi_create_object(env, &result);
	napi_create_int64(env, o->moved, &value);
	napi_set_named_property(env, result, "moved", value);
	napi_create_string_utf8(env, o->text.data(), o->text.size(), &value);
	napi_set_named_property(env, result, "descriptor", value);
	napi_resolve_deferred(env, o->deferred, result);
	napi_release_threadsafe_function(o->ask, napi_tsfn_release);
	napi_delete_async_work(env, o->work);
	napi_delete_reference(env, o->memory);
	delete o;
}

static cuObjClient *
client_of(napi_env env)
{
	void *p = nullptr;

	napi_get_instance_data(env, &p);
	return static_cast<cuObjClient *>(p);
}

/* move(isPut, buffer, offset in it, size, isEvent, function): a promise of {moved, descriptor}. */
static napi_value
move(napi_env env, napi_callback_info info)
{
	size_t n = 6, length;
	napi_value argv[6], name, promise;
	struct operation *o = new operation();
	int64_t offset = 0, size = 0;
	void *memory = nullptr;

	napi_get_cb_info(env, info, &n, argv, nullptr, nullptr);
	napi_get_value_bool(env, argv[0], &o->is_put);
	napi_get_buffer_info(env, argv[1], &memory, &length);
	napi_get_value_int64(env, argv[2], &offset);
	napi_get_value_int64(env, argv[3], &size);
	napi_get_value_bool(env, argv[4], &o->is_event);
	o->client = client_of(env);
	o->at = static_cast<char *>(memory) + offset;
	o->size = static_cast<size_t>(size);
	o->offset = offset;
	napi_create_reference(env, argv[1], 1, &o->memory);
	napi_create_string_utf8(env, "move", NAPI_AUTO_LENGTH, &name);
	napi_create_threadsafe_function(env, argv[5], nullptr, name, 0, 1, nullptr, nullptr, nullptr,
					call_javascript, &o->ask);
	napi_create_promise(env, &o->deferred, &promise);
	napi_create_async_work(env, nullptr, name, run, finish, o, &o->work);
	napi_queue_async_work(env, o->work);
	return promise;
}

static napi_value
number(napi_env env, int64_t n)
{
	napi_value v;

	napi_create_int64(env, n, &v);
	return v;
}

/* register(buffer), deregister(buffer), most(buffer), type(buffer) */
static void *
buffer_of(napi_env env, napi_callback_info info, size_t *ret_size)
{
	size_t n = 1;
	napi_value arg;
	void *p = nullptr;

	napi_get_cb_info(env, info, &n, &arg, nullptr, nullptr);
	napi_get_buffer_info(env, arg, &p, ret_size);
	return p;
}

static napi_value
add(napi_env env, napi_callback_info info)
{
	size_t size;
	void *p = buffer_of(env, info, &size);

	return number(env, client_of(env)->cuMemObjGetDescriptor(p, size));
}

static napi_value
remove(napi_env env, napi_callback_info info)
{
	size_t size;

	return number(env, client_of(env)->cuMemObjPutDescriptor(buffer_of(env, info, &size)));
}

static napi_value
most(napi_env env, napi_callback_info info)
{
	size_t size;

	return number(env, client_of(env)->cuMemObjGetMaxRequestCallbackSize(buffer_of(env, info, &size)));
}

static napi_value
type(napi_env env, napi_callback_info info)
{
	size_t size;

	return number(env, cuObjClient::getMemoryType(buffer_of(env, info, &size)));
}

static napi_value
connected(napi_env env, napi_callback_info)
{
	napi_value v;

	napi_get_boolean(env, client_of(env)->isConnected(), &v);
	return v;
}

static void
free_client(napi_env, void *data, void *)
{
	delete static_cast<cuObjClient *>(data);
}

NAPI_MODULE_INIT()
{
	static std::once_flag once;
	static const struct {
		const char *name;
		napi_callback fn;
	} all[] = { { "move", move }, { "register", add }, { "deregister", remove },
		    { "most", most }, { "type", type },    { "connected", connected } };
	CUObjOps_t ops = { on_get, on_put };
	napi_value fn;

	std::call_once(once, [] {
		cuObjClient::setupTelemetry(false, &telemetry);
		cuObjClient::setTelemFlags(CUOBJ_LOG_PATH_INFO | CUOBJ_LOG_PATH_ERROR);
	});
	napi_set_instance_data(env, new cuObjClient(ops), free_client, nullptr);
	for (const auto &a : all) {
		napi_create_function(env, a.name, NAPI_AUTO_LENGTH, a.fn, nullptr, &fn);
		napi_set_named_property(env, exports, a.name, fn);
	}
	return exports;
}
