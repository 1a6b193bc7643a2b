/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletes, other attributes, and the records of buckets.  The leader decides; here is only the hand-over.  On
 * the port's thread.
 */
#include "extent/object/object.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct del_int {
	struct store_del *del;
	struct commit c;
	uint8_t bucket_key[1 + STORE_BUCKET_MAX];
	uint8_t key[KEY_BYTES_MAX];
};
_Static_assert(sizeof(struct del_int) <= STORE_PRIV_DEL, "STORE_PRIV_DEL is too small");

static void
on_done(struct commit *c)
{
	struct store_op *op = &container_of(c, struct del_int, c)->del->op;

	free(c->job);
	op->result = c->result;
	op->done(op);
}

static struct del_int *
begin(struct extent_port *p, struct store_del *del, enum commit_kind kind)
{
	struct del_int *di = (struct del_int *)del->priv;

	del->op.port = &p->base;
	del->op.result = 0;
	di->del = del;
	di->c = (struct commit){ .kind = kind, .finished = on_done, .state = CS_DATA_DONE };
	return di;
}

static int
hand_over(struct extent_port *p, struct del_int *di, int key_len)
{
	di->c.view.key = di->key;
	di->c.view.key_len = (uint16_t)key_len;
	if (disk_failed(&p->vp.vol->disk)) {
		free(di->c.job);
		return -EROFS;
	}
	commit_submit(&p->vp, &di->c);
	return 0;
}

int
extent_delete(struct store_port *sp, const struct store_key *k, const struct store_pre *pre,
	      struct store_del *del)
{
	struct extent_port *p = extent_port(sp);
	struct del_int *di = begin(p, del, COMMIT_DELETE);
	int len = key_object(di->key, k);

	if (len < 0)
		return len;
	di->c.bucket_key = di->bucket_key;
	di->c.bucket_key_len = (uint16_t)key_bucket(di->bucket_key, k->bucket, k->bucket_len);
	if (pre)
		di->c.pre = *pre;
	di->c.view.op = REC_DELETE;
	return hand_over(p, di, len);
}

int
extent_set_attrs(struct store_port *sp, const struct store_key *k, uint64_t version, const void *attrs,
		 uint32_t attrs_len, struct store_del *op)
{
	struct extent_port *p = extent_port(sp);
	struct del_int *di = begin(p, op, COMMIT_ATTRS);
	int len = key_object(di->key, k);

	if (len < 0)
		return len;
	if (attrs_len > STORE_ATTRS_MAX)
		return -EINVAL;
	di->c.bucket_key = di->bucket_key;
	di->c.bucket_key_len = (uint16_t)key_bucket(di->bucket_key, k->bucket, k->bucket_len);
	di->c.view.op = REC_PUT;
	di->c.want_version = version;
	di->c.attrs = attrs;
	di->c.attrs_len = attrs_len;
	return hand_over(p, di, len);
}

int
extent_bucket_make(struct store_port *sp, const char *name, size_t name_len, uint64_t ctime_ns,
		   unsigned copies, bool is_gated, struct store_del *op)
{
	struct extent_port *p = extent_port(sp);
	struct del_int *di = begin(p, op, COMMIT_BUCKET_MAKE);
	int len = key_bucket(di->key, name, name_len);

	if (len < 0)
		return len;
	di->c.view.op = REC_PUT;
	di->c.view.body = BODY_NONE;
	di->c.view.copies = (uint8_t)copies;
	di->c.view.mtime_ns = ctime_ns;
	di->c.is_gated = is_gated;
	return hand_over(p, di, len);
}

int
extent_bucket_create(struct store_port *sp, const char *name, size_t name_len, unsigned copies,
		     struct store_del *op)
{
	/* A store of one engine is one disk. */
	return copies > 1 ? -EDOM : extent_bucket_make(sp, name, name_len, clock_wall_ns(), 1, false, op);
}

/* A bucket's record with another number of copies, and what hangs on its version. */
struct copies_int {
	struct store_del *del;
	uint8_t key[1 + STORE_BUCKET_MAX];
	uint8_t battrs[BATTRS_NR + 1][1 + STORE_BUCKET_MAX + 2];
	struct commit c, also[BATTRS_NR + 1];
};

static void
on_copies(struct commit *c)
{
	struct copies_int *ci = container_of(c, struct copies_int, c);
	struct store_op *op = &ci->del->op;

	op->result = c->result;
	free(ci);
	op->done(op);
}

int
extent_bucket_set_copies(struct store_port *sp, const char *name, size_t name_len, unsigned copies,
			 struct store_del *op)
{
	struct extent_port *p = extent_port(sp);
	struct copies_int *ci = calloc(1, sizeof *ci);
	int len = ci ? key_bucket(ci->key, name, name_len) : -EAGAIN;

	if (len >= 0 && disk_failed(&p->vp.vol->disk))
		len = -EROFS;
	if (len < 0) {
		free(ci);
		return len;
	}
	op->op.port = &p->base;
	ci->del = op;
	ci->c = (struct commit){ .kind = COMMIT_BUCKET_COPIES,
				 .state = CS_DATA_DONE,
				 .finished = on_copies,
				 .also = ci->also,
				 .copies = (uint8_t)copies };
	ci->c.view = (struct rec_view){ .op = REC_PUT, .key = ci->key, .key_len = (uint16_t)len };
	for (uint32_t i = 0; i <= BATTRS_NR; i++) {
		struct commit *a = &ci->also[i];

		*a = (struct commit){ .kind = COMMIT_BUCKET_COPIES,
				      .state = CS_DATA_DONE,
				      .is_also = true,
				      .also = i < BATTRS_NR ? a + 1 : NULL };
		a->view.key = ci->battrs[i];
		a->view.key_len = (uint16_t)key_battrs(ci->battrs[i], ci->key, (size_t)len, i);
	}
	commit_submit(&p->vp, &ci->c);
	return 0;
}

int
extent_bucket_gate(struct store_port *sp, const char *name, size_t name_len, enum store_gate gate,
		   struct store_del *op)
{
	struct extent_port *p = extent_port(sp);
	struct del_int *di = begin(p, op, gate == GATE_OPEN ? COMMIT_GATE_OPEN : COMMIT_GATE_CLOSE);
	int len = key_bucket(di->key, name, name_len);

	if (len < 0)
		return len;
	di->c.is_bare = gate == GATE_CLOSE_BARE;
	di->c.view.op = REC_DELETE;
	return hand_over(p, di, len);
}

int
extent_bucket_delete(struct store_port *sp, const char *name, size_t name_len, struct store_del *op)
{
	struct extent_port *p = extent_port(sp);
	struct del_int *di = begin(p, op, COMMIT_BUCKET_REMOVE);
	int len = key_bucket(di->key, name, name_len);

	if (len < 0)
		return len;
	di->c.view.op = REC_DELETE;
	di->c.job = gc_bucket_job(di->key + 1, name_len);
	if (!di->c.job)
		return -ENOSPC;
	return hand_over(p, di, len);
}

const struct rec *
bucket_find(struct extent_port *p, const char *name, size_t len)
{
	uint8_t key[1 + STORE_BUCKET_MAX];
	int key_len = key_bucket(key, name, len);

	return key_len < 0 ? NULL : tree_get(p->vp.vol->tree, key, (size_t)key_len);
}

int
stat_finished(struct extent_port *p, struct store_stat *st, int result)
{
	st->op.port = &p->base;
	st->op.result = result;
	return 1;
}

int
extent_bucket_head(struct store_port *sp, const char *name, size_t name_len, struct store_stat *st)
{
	struct extent_port *p = extent_port(sp);
	const struct rec *r = bucket_find(p, name, name_len);

	if (!r)
		return stat_finished(p, st, -ENXIO);
	st->ctime_ns = r->mtime_ns;
	st->copies = rec_copies(r);
	quota_fill_stat(p->vp.vol->quotas, name, name_len, st);
	return stat_finished(p, st, 0);
}
