/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs of objects and of parts: first the data is written, under a new id, then one change of the index sets the
 * record that names the id.
 *
 * Data objects are written in order, each byte once, so pools that take appends only are enough. If the data is one
 * piece, the CRCs of the granules are in the record. Otherwise every data object ends with a trailer that has the
 * CRCs, written with the last bytes of the data object; every buffer has room for a trailer after its bytes.
 * librados copies the bytes of a write during the call, so a trailer may replace bytes that follow in the buffer
 * for the time of the call.
 */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/fault.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <errno.h>
#include <string.h>

struct rput {
	struct txn txn; /* the commit; the names of bucket and object follow the struct */
	struct store_put *put;
	struct rid id;
	uint64_t expect_bytes;
	struct quota_hold hold;
	bool is_part;
	/* Data that has been written so far. */
	uint32_t n, at;    /* number of the current data object; number of its bytes that were sent */
	uint32_t granules; /* number of granules; crcs has the CRCs of the first ones */
	uint8_t crcs[REC_CRCS_MAX * 8];
	uint8_t *trailer; /* of the current data object */
	bool has_trailers, ended, committing;
	bool is_aborted; /* the PUT was aborted while writes were in progress; put is not valid */
	uint32_t writes; /* number of writes in progress */
	uint64_t data_bytes;
	int write_error;
	/* The commit. */
	struct store_commit commit;
	char inline_data[STORE_INLINE_MAX];
	bool waits; /* the transaction waits for the last write (TXN_LATER) */
};

/* One call of store_put_write(): a write to one data object, or to two that follow each other. */
struct rwrite {
	struct store_write *w; /* NULL: no caller waits for the write */
	struct rput *rp;
	uint32_t nr, left;
	int64_t bytes; /* number of bytes of all calls */
	int result;
	struct write_call {
		struct call call;
		struct rwrite *rw;
	} call[2];
};

/* Returns the size for which an object or a part counts in the usage. */
static uint64_t
counted(const struct rput *rp, uint64_t size_bytes)
{
	return (uint64_t)model_usage(rp->is_part ? MODEL_PART : MODEL_OBJECT, &size_bytes, NULL).bytes;
}

static struct rput *
rput(const struct store_put *put)
{
	struct rput *rp;

	memcpy(&rp, put->priv, sizeof rp);
	return rp;
}

/* Returns true if writes without an answer have too many bytes. A write that was sent cannot be cancelled,
 * and librados keeps a copy of its bytes until the cluster answers, also after the client has given up and
 * tries again. Without a limit these copies would grow while a placement group is down. */
static bool
is_too_much(const struct rstore *st)
{
	return atomic_load_explicit(&st->unwritten_bytes, memory_order_relaxed) >= st->unwritten_max_bytes;
}

/* Adds to the number of bytes without an answer, or subtracts from it. */
static void
count_unwritten(struct rstore *st, int64_t bytes)
{
	uint64_t was = atomic_fetch_add_explicit(&st->unwritten_bytes, (uint64_t)bytes, memory_order_relaxed);

	check(bytes >= 0 || was >= (uint64_t)-bytes);
}

/* Returns the memory that a PUT needs in addition to its data. */
static int64_t
own_bytes(const struct rput *rp)
{
	return (int64_t)sizeof *rp + trailer_bytes(rp->txn.port->st->gw.format.object_bytes) +
	       rp->txn.object_len;
}

static void
rput_free(struct rput *rp)
{
	check(rp->writes == 0);
	count_unwritten(rp->txn.port->st, -own_bytes(rp));
	quota_end(rp->txn.port->st->book, 0, &rp->hold);
	txn_fini(&rp->txn);
	free(rp->trailer);
	free(rp);
}

/* ---- beginning ---- */

int
rstore_put_init(struct store_port *sp, struct store_put *put, const struct store_put_spec *spec)
{
	uint64_t size_bytes = spec->size_bytes;
	struct rport *p = rport(sp);
	struct rput *rp;
	char key[OMAP_KEY_MAX];
	int e = 0;

	put->op.port = &p->base;
	put->size_bytes = put->crc64 = put->version = 0;
	put->is_started = false;
	if (is_too_much(p->st))
		return -EAGAIN;
	rp = txn_op_new(p, sizeof *rp, &spec->key, spec->upload_id, !spec->upload_id);
	if (!rp)
		return -ENOMEM;
	rp->put = put;
	count_unwritten(p->st, own_bytes(rp));
	rp->expect_bytes = size_bytes;
	rp->is_part = spec->upload_id != NULL;
	rp->txn.guess = rp->is_part ? GUESS_NEVER : GUESS_FIRST;
	rp->trailer = malloc(trailer_bytes(p->st->gw.format.object_bytes));
	if (rp->is_part)
		e = txn_add_key(&rp->txn, key, key_part(key, spec->upload_id, spec->part_number));
	if (e == 0 && size_bytes != STORE_SIZE_UNKNOWN)
		e = usage_reserve(p->st, rp->txn.bucket, rp->txn.bucket_len, counted(rp, size_bytes),
				  &rp->hold);
	if (e == 0)
		e = rp->trailer ? gateway_id(p->st, &rp->id) : -ENOMEM;
	if (e < 0) {
		rput_free(rp);
		return e;
	}
	memcpy(put->priv, &rp, sizeof rp);
	put->is_started = true;
	fault_point("put.begun");
	return 0;
}

/* ---- data ---- */

static void
take_crcs(struct rput *rp, const char *bytes, uint32_t len)
{
	struct store_put *put = rp->put;

	for (uint32_t at = 0; at < len; at += STORE_GRANULE) {
		uint32_t n = len - at < STORE_GRANULE ? len - at : STORE_GRANULE;
		uint64_t crc = crc64_nvme(0, bytes + at, n);

		memcpy(rp->trailer + (size_t)(rp->at + at) / STORE_GRANULE * 8, &crc, 8);
		if (rp->granules < REC_CRCS_MAX)
			memcpy(rp->crcs + (size_t)rp->granules * 8, &crc, 8);
		rp->granules++;
		put->crc64 = crc64_nvme_combine(put->crc64, crc, n);
		put->size_bytes += n;
	}
}

static void on_written(struct call *c);

/* Writes len bytes, which fit into the current data object; last: they are the last of the data. */
static void
write_some(struct rput *rp, struct rwrite *rw, char *bytes, uint32_t len, bool last)
{
	uint32_t each = rp->txn.port->st->gw.format.object_bytes, from = rp->at, more = 0;
	rados_write_op_t op = rados_create_write_op();
	uint8_t saved[8 * (DATA_OBJECT_MAX / STORE_GRANULE) + 8];
	const struct label name = data_name(rp->id, rp->n);

	check(len <= each - rp->at && rw->nr < sizeof rw->call / sizeof *rw->call);
	take_crcs(rp, bytes, len);
	rp->at += len;
	if (rp->at == each || last) {
		/* The CRCs of a single short data object are in the record. */
		rp->has_trailers |= rp->put->size_bytes > STORE_PIECE;
		more = rp->has_trailers ? trailer_bytes(rp->at) : 0;
	}
	if (more) {
		trailer_seal(rp->trailer, rp->at, rp->id, rp->n);
		memcpy(saved, bytes + len, more);
		memcpy(bytes + len, rp->trailer, more);
	}
	if (from == 0 && last)
		rados_write_op_write_full(op, bytes, len + more);
	else
		rados_write_op_write(op, bytes, len + more, from);
	if (from == 0)
		txn_set_owner(op, &rp->txn);
	rp->data_bytes = rp->put->size_bytes;
	rw->left++;
	rw->call[rw->nr].rw = rw;
	count_unwritten(rp->txn.port->st, len + more);
	rw->bytes += len + more;
	call_write(rp->txn.port, &rw->call[rw->nr++].call, POOL_DATA, name.text, op, len, on_written);
	fault_point("put.data_sent");
	if (more)
		memcpy(bytes + len, saved, more);
	if (rp->at == each) {
		rp->n++;
		rp->at = 0;
	}
}

/* Begins a write of one piece. Returns 0; or -EINVAL, -EAGAIN, -EDQUOT or -ENOMEM without a write. */
static int
write_piece(struct rput *rp, struct store_write *w, struct buf *buf, uint32_t len, bool last)
{
	uint32_t each = rp->txn.port->st->gw.format.object_bytes;
	struct rwrite *rw;

	check(!rp->committing && !rp->ended);
	check(len > 0 && len <= buf->cap_bytes && len <= STORE_PIECE && (last || len % STORE_GRANULE == 0));
	if (rp->expect_bytes != STORE_SIZE_UNKNOWN && len > rp->expect_bytes - rp->put->size_bytes)
		return -EINVAL;
	/* A PUT that has begun continues, because it holds buffers. */
	if (!rp->put->size_bytes && is_too_much(rp->txn.port->st))
		return -EAGAIN;
	/* The reservation of a PUT without a length grows with each piece. */
	if (rp->expect_bytes == STORE_SIZE_UNKNOWN) {
		int e = usage_reserve(rp->txn.port->st, rp->txn.bucket, rp->txn.bucket_len,
				      counted(rp, rp->put->size_bytes + len), &rp->hold);

		if (e < 0)
			return e;
	}
	rw = calloc(1, sizeof *rw);
	if (!rw)
		return -ENOMEM;
	rw->w = w;
	rw->rp = rp;
	if (w)
		memcpy(w->priv, &rw, sizeof(struct rwrite *));
	rp->writes++;
	rp->ended = last;
	for (uint32_t at = 0; at < len;) {
		uint32_t n = len - at < each - rp->at ? len - at : each - rp->at;

		write_some(rp, rw, buf->mem + at, n, last && at + n == len);
		at += n;
	}
	return 0;
}

static enum txn_say decide(struct txn *t);

/* Removes the data of an aborted PUT, after its last write has ended. */
static void
drop(struct rput *rp)
{
	check(rp->is_aborted && rp->writes == 0);
	data_remove(rp->txn.port, rp->id, rp->data_bytes, true);
	rput_free(rp);
}

static void
on_written(struct call *c)
{
	struct rwrite *rw = container_of(c, struct write_call, call)->rw;
	struct rput *rp = rw->rp;
	struct store_write *w = rw->w;
	int result;

	check(rw->left > 0 && rp->writes > 0);
	if (c->result < 0)
		rw->result = result_of(c->result);
	if (--rw->left)
		return;
	fault_point("put.data_written");
	count_unwritten(rp->txn.port->st, -rw->bytes);
	result = rw->result;
	free(rw);
	rp->writes--;
	if (result < 0)
		rp->write_error = result;
	if (rp->is_aborted && !rp->writes)
		drop(rp);
	else if (w)
		rop_end(rp->txn.port, &w->op, result);
	else if (rp->waits && !rp->writes)
		txn_go_on(&rp->txn, decide(&rp->txn));
}

bool
rstore_write_cancel(struct store_port *sp, struct store_write *w)
{
	struct rwrite *rw;

	/* librados has copied the bytes. The write is not cancelled: its data is removed after the write has ended. */
	memcpy(&rw, w->priv, sizeof rw);
	rw->w = NULL;
	rport(sp)->inflight--;
	return true;
}

int
rstore_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		 uint32_t len, bool last)
{
	int e = write_piece(rput(put), w, buf, len, last);

	w->op.port = sp;
	if (e == 0)
		rport(sp)->inflight++;
	return e;
}

void
rstore_put_abort(struct store_port *sp, struct store_put *put)
{
	struct rput *rp = rput(put);

	check(!rp->committing);
	fault_point("put.aborted");
	put->is_started = false;
	rp->is_aborted = true;
	if (!rp->writes)
		drop(rp);
}

/* ---- commit ---- */

static enum txn_say
put_record(struct rput *rp, const struct record *old)
{
	struct store_put *put = rp->put;
	struct record new = {
		.kind = rp->granules ? REC_DATA : REC_INLINE,
		.size_bytes = put->size_bytes,
		.crc64 = put->crc64,
		.id = rp->id,
		.data = rp->id,
		.inline_data = rp->inline_data,
		.crcs = rp->crcs,
		.crc_nr = rp->has_trailers ? 0 : rp->granules,
	};
	enum txn_say say;

	check(rp->committing && rp->writes == 0);
	fault_point("put.decided");
	say = txn_put_record(&rp->txn, rp->txn.key_nr - 1, &new, &rp->commit.meta, old);
	put->version = new.version;
	return say;
}

static enum txn_say
decide(struct txn *t)
{
	struct rput *rp = container_of(t, struct rput, txn);
	const struct model_op op = { .act = rp->is_part ? MODEL_PUT_PART : MODEL_PUT,
				     .pre = &rp->commit.pre,
				     .size_bytes = rp->put->size_bytes };
	struct rows rows = { .txn = t };
	enum txn_say say;

	/* The data is written before a record names it. */
	if (rp->writes) {
		rp->waits = true;
		return TXN_LATER;
	}
	t->result = rp->write_error;
	if (t->result < 0)
		return TXN_OVER;
	say = rows_decide(&rows, &op);
	if (say != TXN_COMMIT)
		return say;
	/* The gateway that had closed the upload has ended, so the upload is opened again. */
	if (rows.upload.closer && upload_set(t, &rows.upload, (struct rid){ 0 }) != TXN_COMMIT)
		return TXN_OVER;
	return put_record(rp, rows.replaced);
}

static void
on_over(struct txn *t)
{
	struct rput *rp = container_of(t, struct rput, txn);
	struct store_put *put = rp->put;
	struct rport *p = rp->txn.port;
	int result = t->result;

	fault_point(result == 0 ? "put.committed" : "put.refused");
	/* After -ESHUTDOWN another gateway removes the data. */
	if (result == 0)
		gateway_id_over(p->st, rp->id);
	else if (rp->writes)
		rp->is_aborted = true; /* drop() removes the data after the last write */
	else if (result != -ESHUTDOWN)
		data_remove(p, rp->id, rp->data_bytes, true);
	put->is_started = false;
	if (!rp->writes)
		rput_free(rp);
	rop_end(p, &put->op, result);
}

/* Writes the missing trailer, if the last piece was not marked as the last. Returns 0 or -ENOMEM. */
static int
end_data(struct rput *rp)
{
	char tail[8 * (DATA_OBJECT_MAX / STORE_GRANULE) + 8];
	struct rwrite *rw;

	check(!rp->ended && rp->granules > 0);
	rp->ended = true;
	if (!rp->at || rp->put->size_bytes <= STORE_PIECE)
		return 0;
	rw = calloc(1, sizeof *rw);
	if (!rw)
		return -ENOMEM;
	rw->rp = rp;
	rp->writes++;
	write_some(rp, rw, tail, 0, true);
	return 0;
}

/* Compares size and CRC of the content with those that the caller expects. Returns 0, -EINVAL or -EILSEQ. */
static int
judge_content(const struct store_put *put, const struct store_commit *c, uint64_t expect_bytes)
{
	uint32_t len = c->last ? c->last_len : c->inline_len;
	const void *more = c->last ? c->last->mem : c->inline_data;

	if (expect_bytes != STORE_SIZE_UNKNOWN && expect_bytes != put->size_bytes + len)
		return -EINVAL;
	if (c->have_expect_crc64 &&
	    c->expect_crc64 != crc64_nvme_combine(put->crc64, crc64_nvme(0, more, len), len))
		return -EILSEQ;
	return 0;
}

int
rstore_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *c)
{
	struct rput *rp = rput(put);
	struct rport *p = rport(sp);
	int e;

	check(!rp->committing && rp->writes == 0);
	check(c->inline_len <= STORE_INLINE_MAX);
	if (c->meta.attrs_len > (rp->is_part ? STORE_PART_ATTRS_MAX : STORE_ATTRS_MAX) ||
	    c->pre.etag_nr > STORE_PRE_ETAGS)
		return -EINVAL;
	e = judge_content(put, c, rp->expect_bytes);
	if (e == 0 && c->last && c->last_len) {
		e = write_piece(rp, NULL, c->last, c->last_len, true);
	} else if (e == 0 && rp->granules && !rp->ended) {
		e = end_data(rp);
	} else if (e == 0 && !rp->granules && c->inline_len) {
		memcpy(rp->inline_data, c->inline_data, c->inline_len);
		put->size_bytes = c->inline_len;
		put->crc64 = crc64_nvme(0, c->inline_data, c->inline_len);
	}
	if (e < 0)
		return e;
	rp->commit = *c;
	rp->committing = true;
	rp->txn.decide = decide;
	rp->txn.over = on_over;
	p->inflight++;
	txn_start(p, &rp->txn);
	return 0;
}
