/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of NVIDIA's cuObjClient: the program brings its own control plane as two callbacks, we bring
 * memory and tokens (protocol.md section 6).
 */
#include "client/client_int.h"

#include <errno.h>
#include <string.h>

/* What a callback gets as its handle; only good during the call. */
struct op_handle {
	void *ctx;
};

int
gantry_set_ops(struct gantry *g, const struct gantry_ops *ops, int protocol)
{
	if (protocol != GANTRY_PROTOCOL_RDMA_DC_V1)
		return -EPROTONOSUPPORT;
	if (!ops || !ops->get || !ops->put)
		return -EINVAL;
	g->ops = *ops;
	g->has_ops = true;
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
	region_put(g, r);
	return (ssize_t)g->max_callback_bytes;
}

static ssize_t
one_piece(struct gantry *g, const struct op_handle *h, char *base, size_t size, off_t obj_offset,
	  off_t buf_offset, enum gantry_op op)
{
	char *ptr = base + buf_offset;
	struct gantry_io_info info = { .version = 1 };
	ssize_t n = token_for_callback(g, base, size, (size_t)buf_offset, op, &info.descr, &info.descr_len);

	if (n < 0)
		return n;
	n = op == GANTRY_OP_GET ? g->ops.get(h, ptr, size, obj_offset, &info)
				: g->ops.put(h, ptr, size, obj_offset, &info);
	/* Whatever it was, the next token shall not name an address that is gone. */
	for (int i = 0; n < 0 && i < g->port_nr; i++)
		port_reread(g, &g->port[i]);
	/* The text stays for a while: programs keep the pointer and use it after the callback (item 115). */
	return n < 0 ? -ECANCELED : n > (ssize_t)size ? -EPROTO : n;
}

static ssize_t
transfer(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset, off_t buf_offset,
	 enum gantry_op op)
{
	struct op_handle h = { .ctx = ctx };
	struct region *r;
	size_t done = 0;
	ssize_t n = 0;

	if (!g->has_ops || obj_offset < 0 || buf_offset < 0 || !size)
		return -EINVAL;
	/* Held for the length of the call, so that it cannot be deregistered under a callback. */
	r = region_get(g, ptr, (size_t)buf_offset + size);
	if (!r)
		return -ENOENT;
	while (done < size) {
		size_t piece =
			size - done < g->max_callback_bytes ? size - done : (size_t)g->max_callback_bytes;

		n = one_piece(g, &h, ptr, piece, obj_offset + (off_t)done, buf_offset + (off_t)done, op);
		if (n <= 0)
			break;
		done += (size_t)n;
		if ((size_t)n < piece)
			break;
	}
	region_put(g, r);
	return done ? (ssize_t)done : n;
}

ssize_t
gantry_obj_get(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset, off_t buf_offset)
{
	return transfer(g, ctx, ptr, size, obj_offset, buf_offset, GANTRY_OP_GET);
}

ssize_t
gantry_obj_put(struct gantry *g, void *ctx, void *ptr, size_t size, off_t obj_offset, off_t buf_offset)
{
	return transfer(g, ctx, ptr, size, obj_offset, buf_offset, GANTRY_OP_PUT);
}
