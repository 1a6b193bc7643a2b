/* SPDX-License-Identifier: Apache-2.0 */
/*
 * class cuObjClient, over the process's one context of libgantry.  An object is one pointer to a state of ours.  A child
 * that was forked has the objects and opens a context of its own with the first call.
 */
#include "cuobject/cuobjclient.h"

#include "client/gantry.h"
#include "cuobject/telemetry.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <pthread.h>

/* It is made by a public header, and what protocol.md calls external RC has this number. */
enum { PROTO_RDMA_EXT_RC_V1 = 1002 };

struct state {
	CUObjOps_t ops;
	int proto;
	std::atomic<struct gantry *> g;
	std::atomic<unsigned> forks;
};

/* What a callback has as its handle, during its operation. */
struct operation {
	void *ctx;
	const CUObjOps_t *ops;
};

/* ---- the process's context ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::atomic<unsigned> forks;
static unsigned objects;      /* that have the context open */
static struct gantry *opened; /* while there are some */
static bool is_greeted;

static void
before_fork()
{
	pthread_mutex_lock(&lock);
}

static void
in_parent()
{
	pthread_mutex_unlock(&lock);
}

static void
in_child()
{
	forks++;
	objects = 0;
	opened = nullptr;
	pthread_mutex_unlock(&lock);
	telemetry_in_child();
}

static void
watch_forks()
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void
on_log(void *, enum gantry_log_level level, const char *text)
{
	switch (level) {
	case GANTRY_LOG_ERROR:
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, text);
		break;
	case GANTRY_LOG_INFO:
		telemetry_line(CUOBJ_LOG_PATH_INFO, 0, text);
		break;
	case GANTRY_LOG_GET:
		telemetry_line(CUOBJ_LOG_PATH_DEBUG, CUOBJ_LOG_OP_GET, text);
		break;
	case GANTRY_LOG_PUT:
		telemetry_line(CUOBJ_LOG_PATH_DEBUG, CUOBJ_LOG_OP_PUT, text);
		break;
	}
}

/* So much and no more is made into lines.  Locked. */
static void
set_level()
{
	if (opened)
		gantry_set_log_level(opened, telemetry_wants(CUOBJ_LOG_PATH_DEBUG)  ? GANTRY_LOG_PUT
					     : telemetry_wants(CUOBJ_LOG_PATH_INFO) ? GANTRY_LOG_INFO
										    : GANTRY_LOG_ERROR);
}

/* Says once which library this is.  Locked. */
static void
greet(const struct gantry *g)
{
	char text[600];
	size_t n = (size_t)snprintf(text, sizeof text, "cuObject interface of Gantry %s", gantry_version());

	for (int i = 0; gantry_port(g, i) && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : ": ", gantry_port(g, i));
	if (!is_greeted)
		telemetry_line(CUOBJ_LOG_PATH_INFO, 0, text);
	if (!gantry_is_connected(g)) {
		snprintf(text, sizeof text, "no RDMA: %s", gantry_rdma_reason(g));
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, text);
	}
	is_greeted = true;
}

/* Opens it for an object.  Locked. */
static void
open_context(struct state *s)
{
	struct gantry *g = nullptr;
	char text[600];
	int e = gantry_open_shared(&g);

	if (e < 0) {
		snprintf(text, sizeof text, "no RDMA: %s",
			 *gantry_open_error() ? gantry_open_error() : strerror(-e));
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, text);
	} else {
		objects++;
		if (!opened) {
			opened = g;
			gantry_set_log(g, on_log, nullptr);
			set_level();
			greet(g);
		}
	}
	s->g = g;
	s->forks = forks.load();
}

/* The context of an object; null: there is none, and why was said. */
static struct gantry *
context(const void *state)
{
	struct state *s = static_cast<struct state *>(const_cast<void *>(state));

	if (!s)
		return nullptr;
	if (s->forks != forks) {
		pthread_mutex_lock(&lock);
		if (s->forks != forks)
			open_context(s);
		pthread_mutex_unlock(&lock);
	}
	return s->g;
}

/* ---- objects ---- */

cuObjClient::cuObjClient(CUObjOps_t &ops, cuObjProto_t proto)
{
	struct state *s = new (std::nothrow) struct state();

	pthread_once(&once, watch_forks);
	state = s;
	if (!s) {
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, "no memory for a client");
		return;
	}
	s->ops = ops;
	s->proto = proto;
	pthread_mutex_lock(&lock);
	open_context(s);
	pthread_mutex_unlock(&lock);
	if (s->proto == PROTO_RDMA_EXT_RC_V1)
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0,
			       "protocol 1002 (external RC) is not offered: 1001 is, which is DC");
}

cuObjClient::~cuObjClient()
{
	struct state *s = static_cast<struct state *>(state);

	if (!s)
		return;
	pthread_mutex_lock(&lock);
	/* What a child has inherited is its parent's. */
	if (s->g && s->forks == forks) {
		if (--objects == 0)
			opened = nullptr;
		gantry_close(s->g);
	}
	pthread_mutex_unlock(&lock);
	delete s;
	state = nullptr;
}

bool
cuObjClient::isConnected(void)
{
	struct gantry *g = context(state);

	return g && static_cast<struct state *>(state)->proto != PROTO_RDMA_EXT_RC_V1 &&
	       gantry_is_connected(g);
}

/* ---- memory ---- */

static cuObjErr_t
verdict(int e)
{
	return e < 0 ? CU_OBJ_FAIL : CU_OBJ_SUCCESS;
}

cuObjErr_t
cuObjClient::cuMemObjGetDescriptor(void *ptr, size_t size)
{
	struct gantry *g = context(state);

	return g ? verdict(gantry_register(g, ptr, size, GANTRY_COUNTED | GANTRY_STAGED)) : CU_OBJ_FAIL;
}

cuObjErr_t
cuObjClient::cuMemObjPutDescriptor(void *ptr)
{
	struct gantry *g = context(state);

	if (!ptr)
		return CU_OBJ_SUCCESS;
	return g ? verdict(gantry_deregister(g, ptr)) : CU_OBJ_FAIL;
}

ssize_t
cuObjClient::cuMemObjGetMaxRequestCallbackSize(void *ptr)
{
	struct gantry *g = context(state);
	ssize_t n = g && ptr ? gantry_max_callback_size(g, ptr) : -1;

	return n < 0 ? -1 : n;
}

cuObjErr_t
cuObjClient::cuMemObjGetRDMAToken(void *ptr, size_t size, size_t buffer_offset, cuObjOpType_t operation,
				  char **desc_str_out)
{
	struct gantry *g = context(state);

	if (!desc_str_out)
		return CU_OBJ_FAIL;
	*desc_str_out = nullptr;
	return g ? verdict(gantry_token_get(g, ptr, size, buffer_offset,
					    static_cast<enum gantry_op>(operation), desc_str_out, nullptr))
		 : CU_OBJ_FAIL;
}

cuObjErr_t
cuObjClient::cuMemObjPutRDMAToken(char *desc_str)
{
	return cuMemObjPutRDMAToken(desc_str, 0);
}

cuObjErr_t
cuObjClient::cuMemObjPutRDMAToken(char *desc_str, int error)
{
	struct gantry *g = context(state);

	if (!desc_str)
		return CU_OBJ_SUCCESS;
	return g ? verdict(gantry_token_drop(g, desc_str, error)) : CU_OBJ_FAIL;
}

/* ---- operations ---- */

static cufileRDMAInfo_t
info_of(const struct gantry_io_info *info)
{
	cufileRDMAInfo_t i = cufileRDMAInfo_t();

	i.version = info->version;
	i.desc_len = static_cast<int>(info->descr_len);
	i.desc_str = const_cast<char *>(info->descr);
	return i;
}

static ssize_t
on_get(const void *handle, char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	const struct operation *o = static_cast<struct operation *>(gantry_handle_ctx(handle));
	cufileRDMAInfo_t i = info_of(info);

	try {
		return o->ops->get(o, ptr, size, offset, &i);
	} catch (...) {
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, "a callback threw an exception: the operation ends");
		return -EIO;
	}
}

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	const struct operation *o = static_cast<struct operation *>(gantry_handle_ctx(handle));
	cufileRDMAInfo_t i = info_of(info);

	try {
		return o->ops->put(o, ptr, size, offset, &i);
	} catch (...) {
		telemetry_line(CUOBJ_LOG_PATH_ERROR, 0, "a callback threw an exception: the operation ends");
		return -EIO;
	}
}

static ssize_t
move(void *state, enum gantry_op op, void *ctx, void *ptr, size_t size, loff_t offset, loff_t buf_offset)
{
	struct gantry *g = context(state);
	struct state *s = static_cast<struct state *>(state);
	struct gantry_ops ops = { nullptr, nullptr };
	struct operation o;

	if (!g)
		return -ENODEV;
	o.ctx = ctx;
	o.ops = &s->ops;
	if (s->ops.get)
		ops.get = on_get;
	if (s->ops.put)
		ops.put = on_put;
	return gantry_obj_move(g, op, &ops, &o, ptr, size, offset, buf_offset);
}

ssize_t
cuObjClient::cuObjGet(void *ctx, void *ptr, size_t size, loff_t offset, loff_t buf_offset)
{
	return move(state, GANTRY_OP_GET, ctx, ptr, size, offset, buf_offset);
}

ssize_t
cuObjClient::cuObjPut(void *ctx, void *ptr, size_t size, loff_t offset, loff_t buf_offset)
{
	return move(state, GANTRY_OP_PUT, ctx, ptr, size, offset, buf_offset);
}

void *
cuObjClient::getCtx(const void *handle)
{
	return handle ? static_cast<const struct operation *>(handle)->ctx : nullptr;
}

cuObjMemoryType_t
cuObjClient::getMemoryType(const void *ptr)
{
	enum gantry_memory type = gantry_memory_type(ptr);

	/* What nobody knows is the host's, as far as one can tell. */
	if (type == GANTRY_MEM_INVALID && ptr)
		return CUOBJ_MEMORY_SYSTEM;
	return static_cast<cuObjMemoryType_t>(type);
}

/* ---- telemetry ---- */

void
cuObjClient::setupTelemetry(bool, std::ostream *os)
{
	telemetry_to(os);
}

void
cuObjClient::shutdownTelemetry()
{
	telemetry_to(nullptr);
}

void
cuObjClient::setTelemFlags(unsigned flags)
{
	setTelemFlags(flags, ~0u);
}

void
cuObjClient::setTelemFlags(unsigned flags, unsigned ops)
{
	telemetry_flags(flags, ops);
	pthread_mutex_lock(&lock);
	set_level();
	pthread_mutex_unlock(&lock);
}
