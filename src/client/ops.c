/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of NVIDIA's cuObjClient: the program brings its own control plane as two callbacks, we bring
 * memory and tokens (protocol.md section 6).
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "client/stage.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* What a callback gets as its handle; only good during the call. */
struct op_handle {
	void *ctx;
};

int
gantry_set_ops(struct gantry *g, const struct gantry_ops *ops, int protocol)
{
	if (protocol != GANTRY_PROTOCOL_RDMA_DC_V1)
		return -EPROTONOSUPPORT;
	if (!ops)
		return -EINVAL;
	g->ops = *ops;
	return 0;
}

void *
gantry_handle_ctx(const void *handle)
{
	return ((const struct op_handle *)handle)->ctx;
}

/* The largest piece of what is registered. */
static uint64_t
most_of(const struct gantry *g, const struct region *r)
{
	uint64_t stage = r->is_staged ? stage_size(g) : UINT64_MAX;

	return stage < g->max_callback_bytes ? stage : g->max_callback_bytes;
}

ssize_t
gantry_max_callback_size(struct gantry *g, const void *ptr)
{
	struct region *r = region_get(g, ptr, 1);
	uint64_t most;

	if (!r)
		return -ENOENT;
	most = most_of(g, r);
	region_put(r);
	return (ssize_t)most;
}

static void
explain_memory(struct gantry *g, const char *name, const void *ptr, size_t size, int e)
{
	if (e == -EFAULT)
		client_log(g, GANTRY_LOG_ERROR, "%s: the %zu bytes from %p on were freed: not mapped", name,
			   size, ptr);
	else
		client_log(g, GANTRY_LOG_ERROR,
			   "%s: the %zu bytes from %p on are not within one registration: %s", name, size,
			   ptr,
			   gantry_memory_type(ptr) == GANTRY_MEM_DEVICE
				   ? "memory of a device is registered first"
				   : "register them first");
}

/* What all pieces of an operation share. */
struct operation {
	struct gantry *g;
	enum gantry_op op;
	struct gantry_ops ops;
	struct op_handle handle;
	char *base;
	uint64_t most; /* bytes of a piece */
	bool is_staged;
};

/* Has the callback move a piece of the memory with the token of it, or of what is in its place. */
static ssize_t
call_back(const struct operation *o, const struct token_slot *s, size_t size, off_t obj_offset,
	  off_t buf_offset)
{
	const struct gantry_io_info info = { .version = 1,
					     .descr_len = strlen(s->text) + 1,
					     .descr = s->text };
	char *at = o->base + buf_offset;

	return o->op == GANTRY_OP_GET ? o->ops.get(&o->handle, at, size, obj_offset, &info)
				      : o->ops.put(&o->handle, at, size, obj_offset, &info);
}

/* Ends the token of a piece of the stage: a holder of the token may still access the piece when the callback
 * failed.  0, or -errno: it may still be written to. */
static int
end_staged_token(struct gantry *g, struct region *r, struct token_slot *s, ssize_t n)
{
	int e = 0;

	if (n >= 0) {
		token_after_callback(g, r, s, true);
	} else {
		e = gantry_token_drop(g, s->text, 1);
		region_put(r);
	}
	return e;
}

/* The same through the stage; run is the piece's. */
static ssize_t
through(const struct operation *o, const struct stage_run *run, struct gpu_stream *stream, size_t size,
	off_t obj_offset, off_t buf_offset, bool *ret_lost, char *why, size_t why_len)
{
	char *at = o->base + buf_offset;
	struct region *r;
	struct token_slot *s;
	ssize_t n = 0;

	if (o->op == GANTRY_OP_PUT) {
		n = gpu_copy_start(stream, run->ptr, at, size, GANTRY_TO_HOST, why, why_len);
		n = n == 0 ? gpu_copy_wait(stream, why, why_len) : n;
	}
	if (n == 0)
		n = token_for_callback(o->g, run->ptr, size, 0, o->op, &r, &s);
	if (n < 0)
		return n;
	n = call_back(o, s, size, obj_offset, buf_offset);
	*ret_lost = end_staged_token(o->g, r, s, n) < 0;
	if (o->op == GANTRY_OP_GET && n > 0 && (size_t)n <= size) {
		int e = gpu_copy_start(stream, at, run->ptr, (size_t)n, GANTRY_TO_DEVICE, why, why_len);

		e = e == 0 ? gpu_copy_wait(stream, why, why_len) : e;
		n = e < 0 ? e : n;
	}
	return n;
}

static ssize_t
one_staged_piece(const struct operation *o, size_t size, off_t obj_offset, off_t buf_offset)
{
	struct gpu_stream *stream = NULL;
	struct stage_run run;
	char why[200] = "";
	bool is_lost = false;
	ssize_t n = stage_take(o->g, size, true, &run, why, sizeof why);
	int e;

	if (n == 0) {
		e = stage_stream(o->g, o->base, &stream, why, sizeof why);
		n = e < 0 ? e
			  : through(o, &run, stream, size, obj_offset, buf_offset, &is_lost, why, sizeof why);
		stage_stream_give(o->g, stream);
		if (is_lost)
			stage_lose(o->g, &run);
		else
			stage_give(o->g, &run);
	}
	if (n < 0 && *why)
		client_log(o->g, GANTRY_LOG_ERROR, "%s", why);
	return n;
}

static ssize_t
one_piece(const struct operation *o, size_t size, off_t obj_offset, off_t buf_offset)
{
	struct gantry *g = o->g;
	struct region *r;
	struct token_slot *s;
	ssize_t n;

	if (o->is_staged) {
		n = one_staged_piece(o, size, obj_offset, buf_offset);
	} else {
		n = token_for_callback(g, o->base, size, (size_t)buf_offset, o->op, &r, &s);
		if (n < 0)
			return n;
		n = call_back(o, s, size, obj_offset, buf_offset);
		/* Its text stays for a while: programs keep the pointer (item 115); what it says is good until the
		 * registration ends. */
		token_after_callback(g, r, s, n > 0);
	}
	/* Whatever it was, the next token shall not name an address that is gone. */
	for (int i = 0; n < 0 && i < g->port_nr; i++)
		port_reread(g, &g->port[i]);
	return n > (ssize_t)size ? -EPROTO : n;
}

/* Is it a callback's word for a path that does not work?  As the interface's text has them. */
static bool
is_of_path(ssize_t n)
{
	static const int all[] = { EPERM,    ETIMEDOUT, ECONNRESET, ENETUNREACH, EHOSTUNREACH, ECONNREFUSED,
				   ENETDOWN, ENOBUFS,   EAGAIN,     EINTR,       EIO,          ENODEV,
				   ENOLINK,  ECOMM,     EPROTO,     EACCES,      ENOTCONN,     ECONNABORTED };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (n == -all[i])
			return true;
	}
	return false;
}

/* A callback is asked again where the configuration says so (rdma_multipath_enabled); its token names the next port then,
 * where there are several. */
static ssize_t
one_piece_by_paths(const struct operation *o, size_t size, off_t obj_offset, off_t buf_offset)
{
	ssize_t n = one_piece(o, size, obj_offset, buf_offset);

	for (int i = 0; i < o->g->retries && is_of_path(n); i++) {
		if (o->g->port_nr == 1)
			usleep((useconds_t)o->g->retry_delay_ms * 1000);
		n = one_piece(o, size, obj_offset, buf_offset);
	}
	return n;
}

static ssize_t
pieces(const struct operation *o, size_t size, off_t obj_offset, off_t buf_offset)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < size) {
		size_t piece = size - done < o->most ? size - done : (size_t)o->most;

		n = one_piece_by_paths(o, piece, obj_offset + (off_t)done, buf_offset + (off_t)done);
		if (n <= 0)
			break;
		done += (size_t)n;
		if ((size_t)n < piece)
			break;
	}
	return done ? (ssize_t)done : n;
}

ssize_t
gantry_obj_move(struct gantry *g, enum gantry_op op, const struct gantry_ops *ops, void *ctx, void *ptr,
		size_t size, off_t obj_offset, off_t buf_offset)
{
	struct operation o = { .g = g, .op = op, .handle = { .ctx = ctx }, .base = ptr };
	const enum gantry_log_level level = op == GANTRY_OP_GET ? GANTRY_LOG_GET : GANTRY_LOG_PUT;
	uint64_t began_ns = is_logged(g, level) ? clock_ns() : 0;
	const char *name = op == GANTRY_OP_GET ? "get" : "put";
	struct region *r;
	ssize_t n;

	if (!ops || !ptr || !size || size > SSIZE_MAX || (op != GANTRY_OP_GET && op != GANTRY_OP_PUT) ||
	    obj_offset < 0 || buf_offset < 0 || (uint64_t)buf_offset + size < size ||
	    (op == GANTRY_OP_GET ? !ops->get : !ops->put)) {
		client_log(g, GANTRY_LOG_ERROR,
			   "%s of %zu bytes at %p, byte %lld, from byte %lld of the object: %s", name, size,
			   ptr, (long long)buf_offset, (long long)obj_offset,
			   ops && !(op == GANTRY_OP_GET ? (void *)ops->get : (void *)ops->put)
				   ? "there is no callback for it"
				   : "invalid argument");
		return -EINVAL;
	}
	/* Of its own: the caller's may go while it runs. */
	o.ops = *ops;
	/* Held for the length of the call, so that it cannot be deregistered under a callback. */
	n = region_take(g, ptr, (size_t)buf_offset + size, &r);
	if (!r) {
		explain_memory(g, name, ptr, (size_t)buf_offset + size, (int)n);
		return n < 0 ? n : -ENOENT;
	}
	o.most = most_of(g, r);
	o.is_staged = r->is_staged;
	n = pieces(&o, size, obj_offset, buf_offset);
	if (n > 0 && op == GANTRY_OP_GET && r->is_device && !r->is_staged) {
		char why[200];
		int e = gpu_flush(ptr, why, sizeof why);

		if (e < 0)
			client_log(g, GANTRY_LOG_ERROR, "%s", why);
		n = e < 0 ? e : n;
	}
	region_put(r);
	if (n < 0)
		client_log(g, GANTRY_LOG_ERROR, "%s of %zu bytes at %p: its callback or token failed: %zd",
			   name, size, ptr, n);
	else if (began_ns)
		client_log(g, level, "%s of %zu bytes at %p: %zd moved, %llu us", name, size, ptr, n,
			   (unsigned long long)((clock_ns() - began_ns) / 1000));
	return n;
}

ssize_t
gantry_obj_get(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset, off_t buf_offset)
{
	return gantry_obj_move(g, GANTRY_OP_GET, &g->ops, ctx, ptr, size, obj_offset, buf_offset);
}

ssize_t
gantry_obj_put(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset, off_t buf_offset)
{
	return gantry_obj_move(g, GANTRY_OP_PUT, &g->ops, ctx, ptr, size, obj_offset, buf_offset);
}
