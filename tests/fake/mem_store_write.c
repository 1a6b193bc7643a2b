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
		free(ps->piece[i]);
	free(ps->attrs);
	quota_end(p->st->quotas, p->st->counter, &ps->hold);
	pthread_mutex_lock(&p->st->lock);
	p->st->put_nr--;
	mem_version_put(p->st, ps->v);
	pthread_mutex_unlock(&p->st->lock);
	free(ps);
	put->is_started = false;
}

int
mem_put_begin(struct mem_port *p, struct store_put *put, const struct store_key *k, uint64_t size_bytes,
	      const uint8_t *upload_id, uint32_t part_number, bool is_copy)
{
	struct mem_store *st = p->st;
	struct version *v;
	struct put_state *ps;
	int r = mem_key_check(k);

	mem_on_port(p);
	put->is_started = false;
	put->size_bytes = put->crc64 = put->version = 0;
	put->op.port = &p->base;
	if (r < 0)
		return r;
	pthread_mutex_lock(&st->lock);
	r = mem_fault_of(st, MEM_PUT_INIT);
	if (!r && st->member && mem_member_failed(st))
		r = -EROFS;
	if (!r && !mem_lookup(st, k->bucket, k->bucket_len, "", 0))
		r = -ENXIO;
	if (!r && size_bytes != STORE_SIZE_UNKNOWN && size_bytes > st->size_bytes - st->used_bytes)
		r = -ENOSPC;
	v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	if (!r && upload_id)
		r = mem_upload_exists(st, v, upload_id);
	ps = calloc(1, sizeof *ps);
	check(ps);
	ps->v = v;
	ps->expect_bytes = size_bytes;
	ps->has_two = store_has_two(k);
	ps->is_copy = is_copy;
	ps->part_number = part_number;
	if (upload_id)
		memcpy(ps->id, upload_id, sizeof ps->id);
	if (!r)
		r = mem_quota_reserve(st, ps, size_bytes);
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

int
mem_put_init(struct store_port *sp, struct store_put *put, const struct store_key *k, uint64_t size_bytes)
{
	struct mem_port *p = mem_port(sp);
	return mem_put_begin(p, put, k, size_bytes, NULL, 0, false);
}

int
mem_put_init_part(struct store_port *sp, struct store_put *put, const struct store_key *k,
		  const uint8_t id[STORE_UPLOAD_ID_BYTES], uint32_t number, uint64_t size_bytes)
{
	return mem_put_begin(mem_port(sp), put, k, size_bytes, id, number, false);
}

/* Takes note of a piece; its bytes are fetched from the buffer later.  0 or -EINVAL. */
static int
add_piece(struct store_put *put, struct put_state *ps, struct buf *buf, uint32_t len, bool last)
{
	check(!ps->committing && !ps->ended);
	check(len > 0 && len <= buf->cap_bytes && len <= STORE_PIECE);
	check(last || len % STORE_GRANULE == 0);
	if (put->size_bytes + len > ps->expect_bytes || ps->nr == PIECES_MAX)
		return -EINVAL;
	ps->ended = last;
	ps->piece[ps->nr] = malloc(len);
	check(ps->piece[ps->nr]);
	ps->len[ps->nr++] = len;
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

/* Without a length the reservation grows piece by piece. */
static int
reserve_more(struct mem_store *st, const struct store_put *put, struct put_state *ps, uint32_t len)
{
	int r = 0;

	if (ps->expect_bytes != STORE_SIZE_UNKNOWN)
		return 0;
	pthread_mutex_lock(&st->lock);
	if (!ps->part_number || mem_upload_exists(st, ps->v, ps->id) == 0)
		r = mem_quota_reserve(st, ps, put->size_bytes + len);
	pthread_mutex_unlock(&st->lock);
	return r;
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
	j->to = ps->piece[ps->nr - 1];
	j->len = len;
	memcpy(w->priv, &ps, sizeof ps);
	ps->writes++;
	return mem_job_start(j);
}

static bool
etag_in(const struct store_pre *pre, const struct store_etag *e)
{
	for (int i = 0; i < pre->etag_nr; i++) {
		if (pre->etags[i].parts == e->parts && memcmp(pre->etags[i].sum, e->sum, sizeof e->sum) == 0)
			return true;
	}
	return false;
}

static int
judge_kind(const struct version *old, const struct store_pre *pre)
{
	switch (pre->kind) {
	case PRE_ABSENT:
		return old ? -EEXIST : 0;
	case PRE_MATCH_ANY:
		return old ? 0 : -ENOENT;
	case PRE_MATCH:
		return !old ? -ENOENT : etag_in(pre, &old->etag) ? 0 : -ESTALE;
	case PRE_NONE_MATCH:
		return old && etag_in(pre, &old->etag) ? -EEXIST : 0;
	case PRE_VERSION:
		return !old ? -ENOENT : old->number == pre->version ? 0 : -ESTALE;
	default:
		return 0;
	}
}

int
mem_judge(const struct mem_store *st, const struct version *v, const struct store_pre *pre)
{
	const struct version *old = mem_lookup(st, v->bucket, v->bucket_len, v->key, v->key_len);
	int e = mem_bucket_judge(st, v);

	if (e == 0)
		e = judge_kind(old, pre);

	return e == 0 && pre->keep && old ? -EPERM : e;
}

struct version *
mem_put_old(struct mem_store *st, const struct put_state *ps, const struct version *like)
{
	return ps->part_number ? mem_upload_part(st, like, ps->id, ps->part_number)
			       : mem_lookup(st, like->bucket, like->bucket_len, like->key, like->key_len);
}

/* Makes the version of the pieces, and gives it its attributes. */
static void
mem_put_together(struct put_state *ps, const void *attrs)
{
	struct version *v = ps->v;
	uint64_t at = 0;

	v->data = malloc(v->size_bytes ? v->size_bytes : 1);
	v->attrs = malloc(v->attrs_len ? v->attrs_len : 1);
	check(v->data && v->attrs);
	for (uint32_t i = 0; i < ps->nr; i++) {
		memcpy(v->data + at, ps->piece[i], ps->len[i]);
		at += ps->len[i];
	}
	check(at == v->size_bytes);
	check(crc64_nvme(0, v->data, at) == v->crc64); /* somebody wrote to a buffer that was the store's */
	if (v->attrs_len)
		memcpy(v->attrs, attrs, v->attrs_len);
}

static void
commit_work(struct mem_store *st, struct job *j)
{
	struct store_put *put = container_of(j->op, struct store_put, op);
	struct put_state *ps = mem_put_state(put);
	struct version *v = ps->v;

	if (j->buf)
		write_work(st, j);
	if (ps->part_number)
		j->result = mem_upload_exists(st, v, ps->id);
	else
		j->result = ps->is_copy ? mem_bucket_judge(st, v) : mem_judge(st, v, &j->pre);
	if (!j->result && ps->part_number)
		j->result = mem_bucket_judge(st, v);
	if (!j->result && v->size_bytes > st->size_bytes - st->used_bytes)
		j->result = -ENOSPC;
	if (!j->result && !ps->is_copy)
		j->result = mem_quota_put(st, ps);
	if (j->result < 0)
		return;
	mem_put_together(ps, j->attrs);
	ps->v = NULL;
	if (ps->part_number)
		check(mem_part_commit(st, v, ps->id, ps->part_number) == 0);
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

	/* It is committed where it began. */
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
			memcpy(ps->piece[0], c->inline_data, c->inline_len);
	}
	if (r < 0)
		return r;
	if (c->have_expect_crc64 && c->expect_crc64 != put->crc64)
		return -EILSEQ;
	if (ps->expect_bytes != STORE_SIZE_UNKNOWN && ps->expect_bytes != put->size_bytes)
		return -EINVAL;
	j = mem_job_new(p, &put->op, MEM_COMMIT, commit_work);
	j->finish = commit_finish;
	j->pre = c->pre;
	j->attrs = c->meta.attrs;
	j->of = v;
	j->has_two = ps->has_two;
	j->is_sent = ps->is_copy;
	ps->commit = *c;
	if (c->last && c->last_len) {
		j->buf = c->last;
		j->to = ps->piece[ps->nr - 1];
		j->len = c->last_len;
	}
	v->size_bytes = put->size_bytes;
	v->crc64 = put->crc64;
	v->etag = c->meta.etag;
	v->mtime_ns = c->meta.mtime_ns ? c->meta.mtime_ns : clock_wall_ns();
	v->attrs_len = c->meta.attrs_len;
	if (copy_of) {
		v->number = copy_of->number;
		v->data_version = copy_of->data_version;
		v->mtime_ns = copy_of->mtime_ns;
		/* What is open at the source may be gone by then. */
		ps->attrs = malloc(v->attrs_len + 1);
		check(ps->attrs);
		if (v->attrs_len)
			memcpy(ps->attrs, copy_of->attrs, v->attrs_len);
		j->attrs = ps->attrs;
	}
	ps->committing = true;
	return mem_job_start(j);
}

int
mem_open_put(struct store_port *sp, struct store_put *put, struct store_obj *obj,
	     struct store_put_args *ret_args)
{
	struct mem_port *p = mem_port(sp);
	struct put_state *ps = mem_put_state(put);
	struct version *v = ps->v;

	check(put->is_started && ps->is_carried && !ps->committing && ps->writes == 0);
	pthread_mutex_lock(&p->st->lock);
	if (!v->data)
		mem_put_together(ps, ps->commit.meta.attrs);
	v->is_carried = true;
	v->refs++;
	p->st->open_nr++;
	pthread_mutex_unlock(&p->st->lock);
	mem_open_version(p->st, obj, v);
	obj->op.port = sp;
	*ret_args = (struct store_put_args){
		.key = { v->bucket, v->key, v->bucket_len, v->key_len, ps->has_two ? 2 : 1 },
		.upload_id = ps->part_number ? ps->id : NULL,
		.part_number = ps->part_number,
		.commit = { .meta = { .etag = v->etag,
				      .mtime_ns = v->mtime_ns,
				      .attrs = v->attrs,
				      .attrs_len = v->attrs_len },
			    .pre = ps->commit.pre,
			    .progress_ns = ps->commit.progress_ns,
			    .have_expect_crc64 = true,
			    .expect_crc64 = v->crc64 },
	};
	return 0;
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

static void
delete_work(struct mem_store *st, struct job *j)
{
	struct version *old = mem_lookup(st, j->v->bucket, j->v->bucket_len, j->v->key, j->v->key_len);

	j->result = mem_judge(st, j->v, &j->pre);
	if (j->result < 0 || !old)
		return;
	check(mem_quota_change(st, old,
			       &(struct quota_change){ .objects = -1, .bytes = -(int64_t)old->size_bytes }) ==
	      0);
	mem_index_remove(st, old);
	st->commits++;
	j->result = 1;
}

/* Drops all that there is of a bucket: what is not the engine's own goes with it. */
static void
mem_drop_records(struct mem_store *st, const struct version *b)
{
	size_t i = mem_place(st, b->bucket, b->bucket_len, "", 0) + 1;

	mem_uploads_drop(st, b->bucket, b->bucket_len);
	while (i < st->nr && st->index[i]->bucket_len == b->bucket_len &&
	       memcmp(st->index[i]->bucket, b->bucket, b->bucket_len) == 0)
		mem_index_remove(st, st->index[i]);
}

static void
bucket_work(struct mem_store *st, struct job *j)
{
	struct version *old = mem_lookup(st, j->v->bucket, j->v->bucket_len, "", 0);

	if (j->is_create) {
		j->result = old ? -EEXIST : mem_quota_judge_bucket(st, j->v);
		if (j->result == 0) {
			j->v->refs++;
			j->v->gate = j->is_gated ? -ENXIO : 0;
			mem_index_set(st, j->v);
			j->v->battrs_number = j->v->attrs_len ? ++st->number : 0;
			mem_quota_bucket(st, j->v, true);
		}
	} else {
		bool holds = old && mem_bucket_holds(st, old->bucket, old->bucket_len);
		int error = mem_fault_of(st, MEM_BUCKET_DELETE);

		j->result = error ? error : !old ? -ENXIO : holds ? -ENOTEMPTY : 0;
		if (j->result == 0) {
			mem_quota_bucket(st, old, false);
			mem_drop_records(st, old);
			mem_index_remove(st, old);
		}
	}
}

static void
delete_finish(struct mem_store *st, struct job *j)
{
	pthread_mutex_lock(&st->lock);
	mem_version_put(st, j->v);
	pthread_mutex_unlock(&st->lock);
}

int
mem_delete(struct store_port *sp, const struct store_key *k, const struct store_pre *pre,
	   struct store_del *del)
{
	struct mem_port *p = mem_port(sp);
	struct job *j;
	int r = mem_key_check(k);

	if (r < 0)
		return r;
	j = mem_job_new(p, &del->op, MEM_DELETE, delete_work);
	j->finish = delete_finish;
	j->v = mem_version_new(k->bucket, k->bucket_len, k->key, k->key_len);
	if (pre)
		j->pre = *pre;
	j->of = j->v;
	j->has_two = store_has_two(k);
	return mem_job_start(j);
}

static void
gate_work(struct mem_store *st, struct job *j)
{
	struct version *b = mem_lookup(st, j->v->bucket, j->v->bucket_len, "", 0);
	bool holds = b && mem_bucket_holds(st, b->bucket, b->bucket_len);

	if (b && j->gate == GATE_CLOSE_BARE)
		holds |= mem_uploads_any(st, b->bucket, b->bucket_len);
	j->result = j->gate == GATE_OPEN ? 0 : !b ? -ENXIO : holds ? -ENOTEMPTY : 0;
	if (b && j->result == 0)
		b->gate = j->gate == GATE_OPEN ? 0 : -EAGAIN;
}

static void
copies_work(struct mem_store *st, struct job *j)
{
	struct version *b = mem_lookup(st, j->v->bucket, j->v->bucket_len, "", 0);
	bool holds = b && (mem_bucket_holds(st, b->bucket, b->bucket_len) ||
			   mem_uploads_any(st, b->bucket, b->bucket_len));

	j->result = !b ? -ENXIO : holds && b->copies != j->copies ? -ENOTEMPTY : 0;
	if (j->result < 0 || b->copies == j->copies)
		return;
	mem_drop_records(st, b);
	b->copies = j->copies;
	b->number = ++st->number;
	if (b->battrs_number)
		b->battrs_number = ++st->number;
}

static int
bucket_start(struct mem_port *p, const char *name, size_t len, struct store_del *op, struct job **ret_j)
{
	struct job *j;

	if (len > STORE_BUCKET_MAX)
		return -ENAMETOOLONG;
	if (!len || memchr(name, 0, len))
		return -EINVAL;
	j = mem_job_new(p, &op->op, MEM_DELETE, bucket_work);
	j->finish = delete_finish;
	j->v = mem_version_new(name, len, "", 0);
	*ret_j = j;
	return 0;
}

int
mem_bucket_make(struct store_port *sp, const char *name, size_t len, uint64_t ctime_ns,
		const struct store_bucket_spec *spec, bool is_gated, struct store_del *op)
{
	struct job *j;
	int r = bucket_start(mem_port(sp), name, len, op, &j);

	if (r < 0)
		return r;
	j->v->mtime_ns = ctime_ns;
	j->v->copies = spec->copies;
	if (spec->attrs_len) {
		j->v->attrs = mem_copy_of(spec->attrs, spec->attrs_len);
		j->v->attrs_len = spec->attrs_len;
	}
	j->is_create = true;
	j->is_gated = is_gated;
	return mem_job_start(j);
}

int
mem_bucket_gate(struct store_port *sp, const char *name, size_t len, enum store_gate gate,
		struct store_del *op)
{
	struct job *j = mem_job_new(mem_port(sp), &op->op, MEM_STAT, gate_work);

	j->finish = delete_finish;
	j->v = mem_version_new(name, len, "", 0);
	j->gate = gate;
	return mem_job_start(j);
}

int
mem_bucket_set_copies(struct store_port *sp, const char *name, size_t len, unsigned copies,
		      struct store_del *op)
{
	struct job *j = mem_job_new(mem_port(sp), &op->op, MEM_DELETE, copies_work);

	j->finish = delete_finish;
	j->v = mem_version_new(name, len, "", 0);
	j->copies = copies;
	return mem_job_start(j);
}

int
mem_bucket_create(struct store_port *sp, const char *name, size_t len, const struct store_bucket_spec *spec,
		  struct store_del *op)
{
	const struct store_bucket_spec one = { 1, spec->attrs, spec->attrs_len };

	return spec->copies > 1 ? -EDOM : mem_bucket_make(sp, name, len, clock_wall_ns(), &one, false, op);
}

int
mem_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op)
{
	struct job *j;
	int r = bucket_start(mem_port(sp), name, len, op, &j);

	return r < 0 ? r : mem_job_start(j);
}

static void
head_work(struct mem_store *st, struct job *j)
{
	struct store_stat *stat = container_of(j->op, struct store_stat, op);
	struct version *v = mem_lookup(st, j->v->bucket, j->v->bucket_len, "", 0);

	j->result = v ? 0 : -ENXIO;
	if (!v)
		return;
	stat->ctime_ns = v->mtime_ns;
	stat->copies = v->copies;
	quota_fill_stat(st->quotas, v->bucket, v->bucket_len, stat);
}

int
mem_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *stat)
{
	return mem_stat_start(mem_port(sp), stat, mem_version_new(name, len, "", 0), NULL, NULL, 0,
			      head_work);
}
