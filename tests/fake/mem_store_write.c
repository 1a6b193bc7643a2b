/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: puts, deletes, buckets.  See mem_store.c. */
#include "tests/fake/mem_store_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- put ---- */

struct put_state *
mem_put_state(const struct store_put *put)
{
	struct put_state *ps;

	memcpy(&ps, put->priv, sizeof ps);
	return ps;
}

static void
put_end(struct mem_port *p, struct store_put *put)
{
	struct put_state *ps = mem_put_state(put);

	for (uint32_t i = 0; i < ps->nr; i++)
		free(ps->piece[i].bytes);
	free(ps->piece);
	free(ps->attrs);
	quota_end(p->st->quotas, p->st->counter, &ps->hold);
	pthread_mutex_lock(&p->st->lock);
	p->st->put_nr--;
	mem_version_put(p->st, ps->v);
	pthread_mutex_unlock(&p->st->lock);
	free(ps);
	put->is_started = false;
}

static struct model_op
op_of(const struct put_state *ps, uint64_t size_bytes)
{
	return (struct model_op){ .act = ps->part_number ? MODEL_PUT_PART : MODEL_PUT,
				  .size_bytes = size_bytes,
				  .part_number = ps->part_number };
}

/* Reserves quota for a PUT in progress with so many bytes, except for a second copy. Returns 0, -ENXIO, -ENOENT or
 * -EDQUOT. */
static int
reserve(struct mem_store *st, struct put_state *ps, uint64_t size_bytes)
{
	const struct version *v = ps->v;
	const bool is_known = size_bytes != STORE_SIZE_UNKNOWN;
	const struct model_op op = op_of(ps, is_known ? size_bytes : 0);
	uint64_t whole = ps->part_number ? quota_part_bytes(op.size_bytes) : op.size_bytes;
	struct model_answer a;

	if (!mem_look(st, v, ps->id, &op, &a))
		return a.result;
	if (ps->is_copy)
		return 0;
	ps->hold.has_two = ps->has_two;
	if (a.usage.bytes < 0 || !is_known)
		a.usage.bytes = 0;
	return quota_reserve(st->quotas, st->counter, v->bucket, v->bucket_len, &a.usage,
			     is_known ? whole : 0, &ps->hold);
}

int
mem_put_init(struct store_port *sp, struct store_put *put, const struct store_put_spec *spec)
{
	const struct store_key *k = &spec->key;
	uint64_t size_bytes = spec->size_bytes;
	struct mem_port *p = mem_port(sp);
	struct mem_store *st = p->st;
	struct version *v;
	struct put_state *ps;
	int r;

	mem_on_port(p);
	put->is_started = false;
	put->size_bytes = put->crc64 = put->version = 0;
	put->op.port = &p->base;
	if (spec->is_copy && mem_member_owns(st, k))
		return -EPERM;
	pthread_mutex_lock(&st->lock);
	r = mem_fault_of(st, MEM_PUT_INIT);
	if (!r && st->member && mem_member_failed(st))
		r = -EROFS;
	if (!r && size_bytes != STORE_SIZE_UNKNOWN && size_bytes > st->size_bytes - st->used_bytes)
		r = -ENOSPC;
	v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	ps = calloc(1, sizeof *ps);
	check(ps);
	ps->v = v;
	ps->expect_bytes = size_bytes;
	ps->has_two = store_has_two(k);
	ps->is_copy = spec->is_copy;
	ps->part_number = spec->part_number;
	if (spec->upload_id)
		memcpy(ps->id, spec->upload_id, sizeof ps->id);
	if (!r)
		r = reserve(st, ps, size_bytes);
	st->put_nr += r == 0;
	if (r < 0)
		mem_version_put(st, v);
	pthread_mutex_unlock(&st->lock);
	if (r < 0) {
		free(ps);
		return r;
	}
	memcpy(put->priv, &ps, sizeof ps);
	put->is_started = true;
	return 0;
}

/* Notes a piece, whose bytes are read from the buffer later.  Returns 0 or -EINVAL. */
static int
add_piece(struct store_put *put, struct put_state *ps, struct buf *buf, uint32_t len, bool last)
{
	check(!ps->committing && !ps->ended);
	check(len > 0 && len <= buf->cap_bytes && len <= STORE_PIECE);
	check(last || len % STORE_GRANULE == 0);
	if (put->size_bytes + len > ps->expect_bytes)
		return -EINVAL;
	if (ps->nr == ps->cap) {
		ps->cap = ps->cap ? 2 * ps->cap : 4;
		ps->piece = realloc(ps->piece, ps->cap * sizeof *ps->piece);
		check(ps->piece);
	}
	ps->ended = last;
	ps->piece[ps->nr++] = (struct mem_piece){ malloc(len), len };
	check(ps->piece[ps->nr - 1].bytes);
	put->size_bytes += len;
	put->crc64 = crc64_nvme(put->crc64, buf->mem, len);
	return 0;
}

static void
write_work(struct mem_store *st, struct job *j)
{
	memcpy(j->to, j->buf->mem, j->len);
	mem_spoil_slack(j->buf, j->len);
	st->info.write_ops++;
	st->info.written_bytes += j->len;
}

static void
write_finish(struct mem_store *st, struct job *j)
{
	struct store_write *w = container_of(j->op, struct store_write, op);
	struct put_state *ps;

	memcpy(&ps, w->priv, sizeof ps);
	ps->writes--;
}

/* Makes the reservation grow with each piece of a PUT of unknown size. */
static int
reserve_more(struct mem_store *st, const struct store_put *put, struct put_state *ps, uint32_t len)
{
	int r = 0;

	if (ps->expect_bytes != STORE_SIZE_UNKNOWN)
		return 0;
	pthread_mutex_lock(&st->lock);
	r = reserve(st, ps, put->size_bytes + len);
	pthread_mutex_unlock(&st->lock);
	/* The commit finds that the bucket or the upload has ended. */
	return r == -EDQUOT ? r : 0;
}

int
mem_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
	      uint32_t len, bool last)
{
	struct mem_port *p = mem_port(sp);
	struct put_state *ps = mem_put_state(put);
	struct job *j;
	int r;

	check(put->is_started && put->op.port == sp);
	check(len <= p->st->limits.piece_bytes);
	r = reserve_more(p->st, put, ps, len);
	if (r < 0)
		return r;
	r = add_piece(put, ps, buf, len, last);
	if (r < 0)
		return r;
	j = mem_job_new(p, &w->op, MEM_WRITE, write_work);
	j->finish = write_finish;
	j->buf = buf;
	j->to = ps->piece[ps->nr - 1].bytes;
	j->len = len;
	memcpy(w->priv, &ps, sizeof ps);
	ps->writes++;
	return mem_job_start(j);
}

/* Makes the version of the pieces, and gives it its attributes. */
static void
mem_put_together(struct put_state *ps, const void *attrs)
{
	struct version *v = ps->v;
	uint64_t at = 0;

	v->data = malloc(v->size_bytes ? v->size_bytes : 1);
	v->attrs = mem_copy_of(attrs, v->attrs_len);
	check(v->data);
	for (uint32_t i = 0; i < ps->nr; i++) {
		memcpy(v->data + at, ps->piece[i].bytes, ps->piece[i].len);
		at += ps->piece[i].len;
	}
	check(at == v->size_bytes);
	check(crc64_nvme(0, v->data, at) == v->crc64); /* no caller wrote to a buffer of the store */
}

static void
commit_work(struct mem_store *st, struct job *j)
{
	struct store_put *put = container_of(j->op, struct store_put, op);
	struct put_state *ps = mem_put_state(put);
	struct version *v = ps->v;
	struct model_op op = op_of(ps, v->size_bytes);
	struct model_answer a;

	op.pre = &j->pre;
	if (j->buf)
		write_work(st, j);
	if (!mem_decide(st, j, op, &a))
		return;
	quota_end(st->quotas, st->counter, &ps->hold);
	mem_put_together(ps, j->attrs);
	ps->v = NULL;
	if (ps->part_number)
		mem_part_set(st, *mem_upload_find(st, v, ps->id), ps->part_number, v);
	else
		mem_index_set(st, v);
	put->version = v->number;
	st->commits++;
}

static void
commit_finish(struct mem_store *st, struct job *j)
{
	struct store_put *put = container_of(j->op, struct store_put, op);

	if (j->result == -EXDEV && put->carrier) {
		struct put_state *ps = mem_put_state(put);

		ps->committing = false;
		quota_end(st->quotas, st->counter, &ps->hold);
		if (j->buf)
			memcpy(j->to, j->buf->mem, j->len);
		ps->is_carried = true;
		j->is_taken = put->carrier->carry(put->carrier, put);
	}
	if (!j->is_taken)
		put_end(j->port, put);
}

int
mem_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *c)
{
	return mem_put_go(mem_port(sp), put, c, NULL);
}

int
mem_put_go(struct mem_port *p, struct store_put *put, const struct store_commit *c,
	   const struct version *copy_of)
{
	struct put_state *ps = mem_put_state(put);
	struct version *v;
	struct job *j;
	int r = 0;

	/* The port of the commit is that of the begin. */
	check(put->op.port == &p->base);
	check(put->is_started && !ps->committing && ps->writes == 0);
	v = ps->v;
	if (c->meta.attrs_len > (ps->part_number ? STORE_PART_ATTRS_MAX : STORE_ATTRS_MAX) ||
	    c->pre.etag_nr > STORE_PRE_ETAGS)
		return -EINVAL;
	if (c->last && c->last_len) {
		r = add_piece(put, ps, c->last, c->last_len, true);
	} else if (!ps->nr && c->inline_len) {
		struct buf in = { .mem = (char *)c->inline_data, .cap_bytes = STORE_INLINE_MAX };

		check(c->inline_len <= STORE_INLINE_MAX);
		r = add_piece(put, ps, &in, c->inline_len, true);
		if (r == 0)
			memcpy(ps->piece[0].bytes, c->inline_data, c->inline_len);
	}
	if (r < 0)
		return r;
	if (c->have_expect_crc64 && c->expect_crc64 != put->crc64)
		return -EILSEQ;
	if (ps->expect_bytes != STORE_SIZE_UNKNOWN && ps->expect_bytes != put->size_bytes)
		return -EINVAL;
	j = mem_job_new(p, &put->op, MEM_COMMIT, commit_work);
	j->finish = commit_finish;
	j->is_late = true;
	j->pre = c->pre;
	j->attrs = c->meta.attrs;
	j->of = v;
	j->has_two = ps->has_two;
	j->is_sent = ps->is_copy;
	memcpy(j->id, ps->id, sizeof j->id);
	ps->commit = *c;
	if (c->last && c->last_len) {
		j->buf = c->last;
		j->to = ps->piece[ps->nr - 1].bytes;
		j->len = c->last_len;
	}
	v->size_bytes = put->size_bytes;
	v->crc64 = put->crc64;
	mem_take(v, &c->meta);
	if (copy_of) {
		v->number = copy_of->number;
		v->data_version = copy_of->data_version;
		v->mtime_ns = copy_of->mtime_ns;
		/* The version of the source may end before the commit. */
		j->attrs = ps->attrs = mem_copy_of(copy_of->attrs, v->attrs_len);
	}
	ps->committing = true;
	return mem_job_start(j);
}

int
mem_open_put(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	struct mem_port *p = mem_port(sp);
	struct put_state *ps = mem_put_state(l->put);
	struct version *v = ps->v;

	check(l->put->is_started && ps->is_carried && !ps->committing && ps->writes == 0);
	pthread_mutex_lock(&p->st->lock);
	if (!v->data)
		mem_put_together(ps, ps->commit.meta.attrs);
	v->is_carried = true;
	v->refs++;
	p->st->open_nr++;
	pthread_mutex_unlock(&p->st->lock);
	mem_open_version(p->st, container_of(op, struct store_obj, op), v);
	op->port = sp;
	op->result = 0;
	*l->ret_args = (struct store_put_args){
		.spec = { .key = { v->bucket, v->key, v->bucket_len, v->key_len, ps->has_two ? 2 : 1 },
			  .upload_id = ps->part_number ? ps->id : NULL,
			  .part_number = ps->part_number,
			  .size_bytes = v->size_bytes },
		.commit = { .meta = mem_meta(v),
			    .pre = ps->commit.pre,
			    .progress_ns = ps->commit.progress_ns,
			    .have_expect_crc64 = true,
			    .expect_crc64 = v->crc64 },
	};
	return 1;
}

void
mem_put_abort(struct store_port *sp, struct store_put *put)
{
	struct mem_port *p = mem_port(sp);
	mem_on_port(p);
	if (!put || !put->is_started)
		return;
	check(mem_put_state(put)->writes == 0);
	check(!mem_put_state(put)->committing);
	put_end(p, put);
}

/* ---- delete, buckets ---- */

void
mem_delete_work(struct mem_store *st, struct job *j)
{
	struct model_answer a;

	if (!mem_decide(st, j, (struct model_op){ .act = MODEL_DELETE, .pre = &j->pre }, &a))
		return;
	mem_index_remove(st, mem_object(st, j->v));
	st->commits++;
	j->result = a.result;
}

/* Removes all records of a bucket, also the foreign ones. */
static void
mem_drop_records(struct mem_store *st, const struct version *b)
{
	size_t i = mem_place(st, b->bucket, b->bucket_len, "", 0) + 1;

	mem_uploads_drop(st, b->bucket, b->bucket_len);
	while (i < st->nr && st->index[i]->bucket_len == b->bucket_len &&
	       memcmp(st->index[i]->bucket, b->bucket, b->bucket_len) == 0)
		mem_index_remove(st, st->index[i]);
}

void
mem_make_bucket_work(struct mem_store *st, struct job *j)
{
	struct version *b = j->v;
	struct model_answer a;

	b->mtime_ns = j->c.ctime_ns;
	b->copies = j->c.copies;
	free(b->attrs);
	b->attrs = mem_copy_of(j->c.attrs, j->c.attrs_len);
	b->attrs_len = j->c.attrs_len;
	if (!mem_decide(st, j, (struct model_op){ .act = MODEL_MAKE_BUCKET }, &a))
		return;
	j->result = mem_quota_judge_bucket(st, b);
	if (j->result < 0)
		return;
	b->refs++;
	b->gate = j->c.is_gated ? -ENXIO : 0;
	mem_index_set(st, b);
	b->battrs_number = b->attrs_len ? ++st->number : 0;
	mem_quota_bucket(st, b, true);
}

void
mem_delete_bucket_work(struct mem_store *st, struct job *j)
{
	struct version *b = mem_bucket(st, j->v);
	struct model_answer a;

	j->result = mem_fault_of(st, MEM_BUCKET_DELETE);
	if (j->result < 0 || !mem_decide(st, j, (struct model_op){ .act = MODEL_REMOVE_BUCKET }, &a))
		return;
	mem_quota_bucket(st, b, false);
	mem_drop_records(st, b);
	mem_index_remove(st, b);
}

void
mem_gate_bucket_work(struct mem_store *st, struct job *j)
{
	struct version *b = mem_bucket(st, j->v);
	struct model_answer a;

	if (j->c.gate != GATE_OPEN)
		mem_decide(st, j,
			   (struct model_op){ .act = MODEL_CLOSE_BUCKET,
					      .is_alone = j->c.gate == GATE_CLOSE_BARE },
			   &a);
	if (b && j->result == 0)
		b->gate = j->c.gate == GATE_OPEN ? 0 : -EAGAIN;
}

void
mem_set_copies_work(struct mem_store *st, struct job *j)
{
	struct version *b = mem_bucket(st, j->v);
	struct model_answer a;

	if (!mem_decide(st, j, (struct model_op){ .act = MODEL_SET_COPIES, .copies = j->c.copies }, &a))
		return;
	mem_drop_records(st, b);
	b->copies = j->c.copies;
	b->number = ++st->number;
	if (b->battrs_number)
		b->battrs_number = ++st->number;
}

void
mem_bucket_head_work(struct mem_store *st, struct job *j)
{
	struct store_stat *stat = container_of(j->op, struct store_stat, op);
	struct version *v = mem_bucket(st, j->v);

	j->result = v ? 0 : -ENXIO;
	if (!v)
		return;
	stat->ctime_ns = v->mtime_ns;
	stat->copies = v->copies;
	quota_fill_stat(st->quotas, v->bucket, v->bucket_len, stat);
}
