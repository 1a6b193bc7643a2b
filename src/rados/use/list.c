/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists: of the objects and uploads of a bucket, merged from its shards; of the buckets, from their table.
 *
 * Each shard is asked for a part of the page, and again if its part is used up. After a common prefix the
 * list of a shard continues after all names with this prefix.
 */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "model/merge.h"
#include "rados/io/rstore.h"
#include "rados/io/table.h"

#include <errno.h>
#include <string.h>

/* A part of a page: the list of one object of the meta pool. */
struct lister {
	struct scan scan;
	struct store_list *ls;
	char kind; /* enum key_kind, or 'b' */
	char prefix[OMAP_KEY_MAX];
	char skip[STORE_KEY_MAX]; /* common prefix that was passed on; other names with it are skipped */
	size_t skip_len;
	uint32_t given;
	bool is_full;
};

/* Writes the beginning of the keys of this kind whose names begin with `name`. Returns its length. */
static size_t
key_of(char out[OMAP_KEY_MAX], char kind, const char *name, size_t len)
{
	size_t n;

	if (kind == KEY_UPLOAD)
		return key_upload_prefix(out, name, len);
	n = key_object(out, name, len);
	out[0] = kind;
	return n;
}

/* Sets the position after all names that begin with `name`. */
static void
seek_behind(struct lister *l, const char *name, size_t len)
{
	size_t n = key_of(l->scan.after, l->kind, name, len);

	check(n < sizeof l->scan.after);
	memset(l->scan.after + n, 0xff, sizeof l->scan.after - 1 - n);
	l->scan.after[sizeof l->scan.after - 1] = 0;
}

static void
seek_first(struct lister *l)
{
	const struct store_list *ls = l->ls;
	size_t n;

	if (!ls->after || !ls->after_len) {
		l->scan.after[0] = 0;
		return;
	}
	if (merge_after_common(ls)) {
		seek_behind(l, ls->after, ls->after_len);
		return;
	}
	if (l->kind != KEY_UPLOAD) {
		key_of(l->scan.after, l->kind, ls->after, ls->after_len);
		return;
	}
	/* After one upload of the key; without an id, after all its uploads: "~" is higher than all digits
	 * and letters of ids. */
	n = key_upload(l->scan.after, ls->after, ls->after_len, ls->after_id);
	if (!ls->after_id)
		memcpy(l->scan.after + n, "~", 2);
}

/* ---- entries ---- */

struct name {
	char bytes[STORE_KEY_MAX];
	size_t len;
	uint8_t upload_id[STORE_UPLOAD_ID_BYTES];
};

static int
take_name(const struct lister *l, const char *key, size_t key_len, struct name *ret_name)
{
	uint16_t len;
	int e;

	if (l->kind == KEY_UPLOAD) {
		e = key_upload_decode(key, key_len, ret_name->bytes, &len, ret_name->upload_id);
		ret_name->len = len;
		return e;
	}
	if (key_len < 2 || key_len - 1 > STORE_KEY_MAX)
		return -EBADMSG;
	ret_name->len = key_len - 1;
	memcpy(ret_name->bytes, key + 1, key_len - 1);
	return 0;
}

/* Returns false if the row is not an entry. */
static bool
fill_entry(const struct lister *l, const struct name *name, const char *val, size_t val_len,
	   struct store_entry *ret_entry)
{
	struct store_entry e = { .name = name->bytes, .name_len = name->len };
	struct model_record shown;
	struct bucket_row b;
	struct record r;
	struct upload u;

	switch (l->kind) {
	case KEY_OBJECT:
		/* A damaged record has an entry with its name alone: the list succeeds, and a read of the
		 * object reports the damage. */
		if (record_decode(val, val_len, &r) < 0)
			break;
		shown = record_show(&r);
		if (!model_is_there(&shown, l->ls->now_ns))
			return false;
		record_list(&r, &e);
		break;
	case KEY_UPLOAD:
		if (upload_decode(val, val_len, &u) < 0)
			u = (struct upload){ 0 };
		e.mtime_ns = u.ctime_ns;
		e.upload_id = name->upload_id;
		e.attrs = u.attrs;
		e.attrs_len = u.attrs_len;
		break;
	default:
		if (bucket_decode(val, val_len, &b) < 0)
			break; /* the damaged row of a bucket as well */
		if (b.state == BUCKET_MAKING)
			return false;
		e.mtime_ns = b.ctime_ns;
		e.version = b.version;
		e.copies = 1;
	}
	*ret_entry = e;
	return true;
}

static int
take_entry(void *cookie, const char *key, size_t key_len, const char *val, size_t val_len)
{
	struct lister *l = container_of(cookie, struct lister, scan);
	struct store_list *ls = l->ls;
	struct store_entry e;
	struct name name;
	size_t common;
	int r = take_name(l, key, key_len, &name);

	if (r < 0)
		return r;
	if (l->skip_len && name.len >= l->skip_len && memcmp(name.bytes, l->skip, l->skip_len) == 0)
		return 0;
	if (!fill_entry(l, &name, val, val_len, &e))
		return 0;
	if (l->is_full || l->given == ls->max) {
		ls->more = true;
		return 1;
	}
	common = merge_common(ls, name.bytes, name.len);
	l->skip_len = common;
	if (common) {
		e = (struct store_entry){ .name = name.bytes, .name_len = common, .is_prefix = true };
		memcpy(l->skip, name.bytes, common);
		seek_behind(l, name.bytes, common);
	}
	l->scan.left = ls->max - ++l->given;
	l->is_full = !ls->entry(ls, &e);
	return 0;
}

/* ---- pages ---- */

static void
on_listed(struct scan *s, int e)
{
	struct lister *l = container_of(s, struct lister, scan);
	struct rport *p = s->call.port;
	struct store_op *op = &l->ls->op;

	/* The shard is missing because the bucket was removed. */
	e = e == -ENOENT ? -ENXIO : e < 0 ? result_of(e) : (int)l->given;
	free(l);
	rop_end(p, op, e);
}

static int
start(struct rport *p, const char *object, char kind, struct store_list *ls)
{
	struct lister *l = calloc(1, sizeof *l);

	ls->op.port = &p->base;
	ls->more = false;
	if (!l)
		return -ENOMEM;
	l->ls = ls;
	l->kind = kind;
	key_of(l->prefix, kind, ls->prefix, ls->prefix_len);
	seek_first(l);
	p->inflight++;
	scan_begin(p, &l->scan, object, l->prefix, ls->max, take_entry, on_listed);
	return 0;
}

/* ---- calls of store.h ---- */

/* A page of a bucket: first the row of the bucket is read, then the shards. */
struct list_op {
	struct txn txn; /* look-up of the bucket's row */
	struct store_list *ls;
	struct rbucket *rb;
	uint32_t chunk; /* maximum number of entries in one request to a shard */
};

static int
list_shard(const struct merge_of *of, int i, struct store_list *ls)
{
	struct list_op *lo = of->cookie;

	check(lo->rb && i >= 0 && (uint32_t)i < lo->rb->row.shards);
	if (ls->max > lo->chunk)
		ls->max = lo->chunk;
	return start(lo->txn.port, lo->rb->shard[i].name, ls->of_uploads ? KEY_UPLOAD : KEY_OBJECT, ls);
}

static void
list_over(void *cookie)
{
	struct list_op *lo = cookie;

	rbucket_release(lo->rb);
	txn_op_drop(lo);
}

static enum txn_say
decide_list(struct txn *t)
{
	struct list_op *lo = container_of(t, struct list_op, txn);
	struct bucket_row row;

	t->result = table_row(t, &row);
	if (t->result == 0) {
		lo->rb = rbucket_put_in(t->port->st, lo->ls->bucket, lo->ls->bucket_len, &row);
		t->result = lo->rb ? 0 : -ENOMEM;
	}
	return TXN_OVER;
}

static void
on_list_looked(struct txn *t)
{
	struct list_op *lo = container_of(t, struct list_op, txn);
	struct rport *p = t->port;
	struct store_list *ls = lo->ls;
	uint32_t shards = lo->rb ? lo->rb->row.shards : 1;
	struct merge_of of = { .port = &p->base,
			       .mb = p->mb,
			       .inflight = &p->inflight,
			       .nr = (int)shards,
			       .list = list_shard,
			       .cookie = lo,
			       .over = list_over };
	int e = t->result;

	/* Names are distributed at random, so each shard is asked for somewhat more than its share. */
	lo->chunk = ls->max / shards * 3 / 2 + 8;
	if (e == 0)
		e = merge_list(&of, ls);
	if (e == 0) {
		p->inflight--; /* merge_list() now counts the operation */
		return;
	}
	if (e > 0) {
		rop_end(p, &ls->op, ls->op.result);
		return;
	}
	rbucket_release(lo->rb);
	txn_op_end(t, e);
}

int
rstore_list(struct store_port *sp, struct store_list *ls)
{
	struct list_op *lo;

	if (!ls->bucket)
		return start(rport(sp), OBJECT_BUCKETS, 'b', ls);
	ls->more = false;
	lo = table_op_new(rport(sp), sizeof *lo, ls->bucket, ls->bucket_len, 0);
	if (!lo)
		return -ENOMEM;
	lo->ls = ls;
	return txn_op_start(&lo->txn, &ls->op, decide_list, on_list_looked);
}
