/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of NVIDIA's cuObjClient: the program brings its own control plane as two callbacks, we bring
 * memory and tokens (protocol.md section 6).
 */
#include "client/client_int.h"

#include "base/clock.h"

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

ssize_t
gantry_max_callback_size(struct gantry *g, const void *ptr)
{
	struct region *r = region_get(g, ptr, 1);

	if (!r)
		return -ENOENT;
	region_put(r);
	return (ssize_t)g->max_callback_bytes;
}

static void
explain_memory(struct gantry *g, const char *name, const void *ptr, size_t size)
{
	client_log(g, GANTRY_LOG_ERROR, "%s: the %zu bytes from %p on are not within one registration: %s",
		   name, size, ptr,
		   gantry_memory_type(ptr) == GANTRY_MEM_DEVICE ? "memory of a device is registered first"
								: "register them first");
}

/* What all pieces of an operation share. */
struct operation {
	struct gantry *g;
	enum gantry_op op;
	struct gantry_ops ops;
	struct op_handle handle;
	char *base;
};

static ssize_t
one_piece(const struct operation *o, size_t size, off_t obj_offset, off_t buf_offset)
{
	struct gantry_io_info info = { .version = 1, .descr_len = TOKEN_DC_LEN + 1 };
	struct gantry *g = o->g;
	struct region *r;
	struct token_slot *s;
	ssize_t n = token_for_callback(g, o->base, size, (size_t)buf_offset, o->op, &r, &s);

	if (n < 0)
		return n;
	info.descr = s->text;
	n = o->op == GANTRY_OP_GET ? o->ops.get(&o->handle, o->base + buf_offset, size, obj_offset, &info)
				   : o->ops.put(&o->handle, o->base + buf_offset, size, obj_offset, &info);
	/* Its text stays for a while: programs keep the pointer (item 115); what it says is good until the
	 * registration ends. */
	token_after_callback(g, r, s);
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
	uint64_t most = o->g->max_callback_bytes;
	size_t done = 0;
	ssize_t n = 0;

	while (done < size) {
		size_t piece = size - done < most ? size - done : (size_t)most;

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
	uint64_t began_ns = is_told(g, level) ? clock_ns() : 0;
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
	r = region_get(g, ptr, (size_t)buf_offset + size);
	if (!r) {
		explain_memory(g, name, ptr, (size_t)buf_offset + size);
		return -ENOENT;
	}
	n = pieces(&o, size, obj_offset, buf_offset);
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
