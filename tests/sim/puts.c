/* SPDX-License-Identifier: Apache-2.0 */
/* How clients put, see sim.h: pieces in any order, bytes before the conditions, forged sums, aborts. */
#include "tests/sim/client_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/*
 * Attributes that hold a log block, to lie on a 4 KiB boundary of the log: one that says that all before it
 * was flushed.  Whoever could make such a one would pass for the log's own.
 */
static uint32_t
forge(struct client *c, int b, int k, uint32_t inline_len)
{
	struct vol *vol = sim_vol();
	struct block_head h = { .kind = one_in(2) ? BLOCK_EPOCH : BLOCK_RECORDS,
				.len_bytes = FMT_ALIGN,
				.used_bytes = BLOCK_HEAD_BYTES,
				.epoch = vol->leader.next.epoch,
				.seq = vol->leader.next.seq + 2,
				.lap = vol->leader.next.lap,
				.pos = vol->leader.next.pos + FMT_ALIGN,
				.flushed_upto = vol->leader.next.seq + 2,
				.new_epoch = vol->leader.next.epoch + 1 };
	uint8_t key[KEY_BYTES_MAX], text[STORE_INLINE_MAX];
	static _Alignas(8) uint8_t rec[REC_BYTES_MAX];
	struct store_key sk = client_key(b, k);
	struct rec_view v = { .op = REC_PUT, .body = BODY_INLINE, .key = key, .inline_data = text };
	static const uint8_t mark[8] = { 1, 2, 3, 4, 5, 6, 7, 255 };
	uint32_t at = BLOCK_HEAD_BYTES;

	v.key_len = (uint16_t)key_object(key, &sk);
	v.inline_len = (uint16_t)inline_len;
	memset(text, 0, sizeof text);
	v.attrs = mark;
	v.attrs_len = sizeof mark;
	rec_encode(rec, &v);
	while (memcmp(rec + at - BLOCK_HEAD_BYTES, mark, sizeof mark) != 0)
		at++;
	memset(c->attrs, 0x5a, sizeof c->attrs);
	memset(h.new_nonce, 0x11, sizeof h.new_nonce);
	check(FMT_ALIGN - at + FMT_ALIGN <= sizeof c->attrs);
	{
		static uint8_t block[FMT_ALIGN];

		block_seal(block, &h, h.new_nonce);
		memcpy(c->attrs + (FMT_ALIGN - at), block, FMT_ALIGN);
	}
	return FMT_ALIGN - at + FMT_ALIGN;
}

#define BALLAST_MAX 7400u /* with its key a record that fits into a block, and into a unit */

static bool
wait_writes(struct client *c, int *r)
{
	for (int i = 0; i < PIECES; i++) {
		if (!c->w[i].op.done)
			continue;
		client_wait(c, &c->f_w[i]);
		if (*r == 0)
			*r = c->w[i].op.result;
		c->w[i].op.done = NULL;
	}
	return *r == 0;
}

/* Writes all, or all but the last piece, which goes into *sc. */
static int
put_pieces(struct client *c, uint32_t size, struct store_commit *sc)
{
	uint32_t piece = STORE_GRANULE * (1 + below(STORE_PIECE / STORE_GRANULE)), off = 0;
	bool ride = !one_in(3);
	int r = 0;

	for (int i = 0; r == 0 && off < size; i = (i + 1) % PIECES) {
		uint32_t n = size - off < piece ? size - off : piece;
		bool last = off + n == size;
		struct buf *buf = &c->buf[i];

		if (c->w[i].op.done) {
			client_wait(c, &c->f_w[i]);
			r = c->w[i].op.result;
			c->w[i].op.done = NULL;
			if (r < 0)
				break;
		}
		memset(buf->mem + n / 8 * 8, 0xee, STORE_PIECE + BUF_SLACK_BYTES - n / 8 * 8);
		model_fill(buf->mem, n, (uint32_t)c->op, off);
		off += n;
		if (last && ride) {
			sc->last = buf;
			sc->last_len = n;
			break;
		}
		c->w[i].op.done = client_done;
		c->f_w[i] = false;
		r = store_put_write(client_port(c), &c->put, &c->w[i], buf, n, last);
		if (r < 0)
			c->w[i].op.done = NULL;
		if (one_in(2))
			client_idle(c, below(6));
	}
	wait_writes(c, &r);
	return r;
}

int
client_put(struct client *c, int r, uint32_t size, struct store_commit *sc, bool forged)
{
	static uint64_t text[CLIENTS_MAX][STORE_INLINE_MAX / 8 + 1];
	bool small = size == 0 || forged || (size <= STORE_INLINE_MAX && !one_in(4));

	if (r < 0)
		return r;
	for (int i = 0; i < PIECES; i++)
		c->w[i].op.done = NULL;
	if (small) {
		model_fill(text[c->nr], size, (uint32_t)c->op, 0);
		sc->inline_data = text[c->nr];
		sc->inline_len = size;
	} else {
		r = put_pieces(c, size, sc);
	}
	if (r == 0 && prof.abort && one_in(prof.abort))
		r = -EINTR;
	if (r == 0 && forged) {
		sc->meta.attrs = c->attrs;
		sc->meta.attrs_len = forge(c, ops[c->op].bucket, ops[c->op].key, size);
	} else if (r == 0 && ops[c->op].kind == OP_PUT && prof.ballast && one_in(prof.ballast)) {
		/* Records that the index grows by. */
		memset(c->attrs, 0x5a, sizeof c->attrs);
		sc->meta.attrs = c->attrs;
		sc->meta.attrs_len = BALLAST_MAX - below(below(BALLAST_MAX));
	}
	if (r == 0) {
		c->f_put = false;
		c->put.op.done = client_done;
		r = store_put_commit(client_port(c), &c->put, sc);
		if (r == 0) {
			client_wait(c, &c->f_put);
			r = c->put.op.result;
		}
	}
	store_put_abort(client_port(c), &c->put);
	return r;
}

void
client_do_put(struct client *c, int b, int k, uint32_t size)
{
	struct store_key key = client_key(b, k);
	struct store_commit sc = { .inline_data = NULL };
	bool forged = prof.forge && one_in(prof.forge);
	int op, r;

	if (forged)
		size = 8;
	op = client_new_op(c, OP_PUT, b, k);
	ops[op].size = size;
	sc.pre = ops[op].pre;
	sc.meta.etag = model_etag((uint32_t)op);
	sc.meta.expires_ns = sim_expiry((uint32_t)op);
	say("op %d: client %d puts bucket %d key %d, %u bytes, pre %d", op, c->nr, b, k, size, sc.pre.kind);
	model_op_begin(op);
	counts.puts++;
	r = store_put_init(client_port(c), &c->put, &key, one_in(3) ? STORE_SIZE_UNKNOWN : size);
	model_op_over(op, client_put(c, r, size, &sc, forged));
}
