/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the index, and of the tables of buckets and of gateways: read by ports; read and written by
 * threads that may block. */
#include "rados/io/rows.h"

#include "rados/io/rstore.h"

#include <errno.h>
#include <string.h>

rados_read_op_t
row_read_op(struct row_read *rr, const char *key)
{
	rados_read_op_t op = rados_create_read_op();

	rr->rv = 0;
	rados_read_op_omap_get_vals_by_keys(op, &key, 1, &rr->iter, &rr->rv);
	return op;
}

/* Copies the first bytes of the value, and ends the read. Returns the same as row_read_end(). */
static int
take_value(struct row_read *rr, void *buf, size_t cap)
{
	char *key = NULL, *val;
	size_t key_len;
	int e = rr->call.result < 0 ? rr->call.result : rr->rv;

	if (e >= 0 && rados_omap_get_next2(rr->iter, &key, &val, &key_len, &rr->len) < 0)
		e = -EIO;
	if (e >= 0 && key)
		memcpy(buf, val, rr->len < cap ? rr->len : cap);
	rados_omap_get_end(rr->iter);
	return e < 0 ? e : key != NULL;
}

int
row_read_end(struct row_read *rr)
{
	return take_value(rr, rr->val, sizeof rr->val);
}

/* Passes the rows of a page to row(). Returns 0 or the result of row(). */
static int
page_rows(rados_omap_iter_t iter, char after[OMAP_KEY_MAX], row_fn row, void *cookie)
{
	char *key, *val;
	size_t key_len, val_len;
	int e = 0;

	while (e == 0 && rados_omap_get_next2(iter, &key, &val, &key_len, &val_len) == 0 && key) {
		if (key_len >= OMAP_KEY_MAX)
			return -EBADMSG;
		/* row() may have moved `after` beyond this row. */
		if (strcmp(key, after) > 0)
			memcpy(after, key, key_len + 1);
		e = row(cookie, key, key_len, val, val_len);
	}
	return e;
}

/* ---- on a port ---- */

static void on_page(struct call *c);

static void
next_page(struct scan *s)
{
	rados_read_op_t op = rados_create_read_op();

	s->rv = 0;
	s->more = 0;
	rados_read_op_omap_get_vals2(op, s->after, s->prefix, s->left < OMAP_PAGE ? s->left + 1 : OMAP_PAGE,
				     &s->iter, &s->more, &s->rv);
	call_read(s->call.port, &s->call, POOL_META, s->object, op, 0, on_page);
}

static void
on_page(struct call *c)
{
	struct scan *s = container_of(c, struct scan, call);
	int e = c->result < 0 ? c->result : s->rv;

	if (e == 0)
		e = page_rows(s->iter, s->after, s->row, s);
	rados_omap_get_end(s->iter);
	if (e == 0 && s->more)
		next_page(s);
	else
		s->over(s, e);
}

void
scan_begin(struct rport *p, struct scan *s, const char *object, const char *prefix, uint32_t left, row_fn row,
	   void (*over)(struct scan *s, int e))
{
	check(object && prefix && row && over);
	s->call.port = p;
	s->object = object;
	s->prefix = prefix;
	s->left = left;
	s->row = row;
	s->over = over;
	next_page(s);
}

/* ---- on a thread that may block ---- */

int
write_now(rados_ioctx_t io, const char *object, rados_write_op_t op)
{
	int e = rados_write_op_operate(op, io, object, NULL, 0);

	rados_release_write_op(op);
	return e;
}

static int
read_now(const struct rstore *st, const char *object, rados_read_op_t op)
{
	int e = rados_read_op_operate(op, st->client[0].io[POOL_META], object, 0);

	rados_release_read_op(op);
	return e;
}

int
each_row(const struct rstore *st, const char *object, const char *prefix, row_fn row, void *cookie)
{
	char after[OMAP_KEY_MAX] = "";
	unsigned char more = 1;
	int e = 0;

	while (e == 0 && more) {
		rados_read_op_t op = rados_create_read_op();
		rados_omap_iter_t iter;
		int rv = 0;

		rados_read_op_omap_get_vals2(op, after, prefix, OMAP_PAGE, &iter, &more, &rv);
		e = read_now(st, object, op);
		e = e < 0 ? e : rv;
		if (e == 0)
			e = page_rows(iter, after, row, cookie);
		rados_omap_get_end(iter);
	}
	return e;
}

int
read_value(const struct rstore *st, const char *object, const char *key, void *buf, size_t cap)
{
	struct row_read rr;
	int e;

	rr.call.result = read_now(st, object, row_read_op(&rr, key));
	e = take_value(&rr, buf, cap);
	return e < 0 ? e : e == 0 ? -ENOENT : rr.len <= cap ? (int)rr.len : -EBADMSG;
}

int
read_number(const struct rstore *st, const char *key, uint64_t *ret_number)
{
	int n = read_value(st, OBJECT_STORE, key, ret_number, sizeof *ret_number);

	return n < 0 ? n : n == sizeof *ret_number ? 0 : -EBADMSG;
}

int
read_bucket_row(const struct rstore *st, const char *name, size_t len, struct bucket_row *ret_row)
{
	char val[BUCKET_ROW_BYTES];
	int e = read_value(st, OBJECT_BUCKETS, table_key('b', name, len).text, val, sizeof val);

	return e < 0 ? e : bucket_decode(val, (size_t)e, ret_row);
}

int
raise_generation(const struct rstore *st, const char *shard, uint64_t clears)
{
	rados_ioctx_t io = st->client[0].io[POOL_META];
	uint64_t was;
	int e;

	do {
		e = rados_getxattr(io, shard, XATTR_GENERATION, (char *)&was, sizeof was);
		if (e != sizeof was)
			return e < 0 && e != -ENODATA && e != -ERANGE ? e : -EBADMSG;
		e = write_now(io, shard, op_generation(was, (was & ~clears) + 1));
	} while (e == -ECANCELED);
	return e;
}
