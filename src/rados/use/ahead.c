/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bytes of objects that are read while their record is looked at.
 *
 * A GET is two trips, one behind the other: the record names the data object.  Each costs a GET of 64 KiB about the same, most
 * of it in threads that wake each other; and a GET of 4 MiB has nothing to read meanwhile, while the look waits its turn behind
 * what the OSD does for others.  So what a record named when this gateway set it last, or looked at it last for a GET,
 * is remembered, and read beside the look.  The look decides all the same: what it finds names other bytes, or nothing, and
 * what was read is dropped.  The name of a data object is enough to tell, as none is used twice and none changes; the bytes
 * are checked by the record that was looked at.  The epoch was pinned before either was sent, so what the look names is there.
 *
 * A request has a buffer only when it knows how many bytes it moves, which is behind the look.  One granule comes into memory of
 * the port's own, and is copied from there.  More comes into a spare of whoever lends them (store_spares), and the reader's buffer is
 * exchanged for that; where there is none to spare, it is read behind the look.  A port has AHEAD_MAX of either kind.
 */
#include "rados/use/use_int.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

#define TRAILER_MAX 4096
_Static_assert(DATA_OBJECT_MAX / STORE_GRANULE * 8 + 8 <= TRAILER_MAX, "the trailer of a data object");

struct ahead {
	struct data_read dr;
	struct ahead *next; /* of those that are free */
	uint64_t size_bytes;
	bool is_back, is_dropped;
	struct buf *buf; /* NULL: bytes has them */
	void (*back)(void *cookie);
	void *cookie;
	uint8_t trailer[TRAILER_MAX];
	char bytes[]; /* a granule and, behind what was read, its trailer */
};

/* ---- buffers ---- */

static struct ahead *
take_small(struct rport *p)
{
	struct ahead *a = p->ahead_free;

	if (a) {
		p->ahead_free = a->next;
	} else if (p->ahead_nr < AHEAD_MAX) {
		a = malloc(sizeof *a + STORE_GRANULE + TRAILER_MAX);
		p->ahead_nr += a != NULL;
	}
	if (a)
		a->buf = NULL;
	return a;
}

/* Takes one with a buffer for len bytes, or for the first of them. */
static struct ahead *
take_large(struct rport *p, uint32_t len)
{
	struct store_spares *s = p->base.spares;
	struct ahead *a = s && p->ahead_large_nr < AHEAD_MAX ? malloc(sizeof *a) : NULL;

	if (!a)
		return NULL;
	a->buf = len > BUF_RUN_BYTES / 2 ? s->take(s, BUF_RUN) : NULL;
	/* As a request has where there are no runs. */
	if (!a->buf)
		a->buf = s->take(s, BUF_LARGE);
	if (!a->buf) {
		free(a);
		return NULL;
	}
	p->ahead_large_nr++;
	return a;
}

static void
on_spares(struct msg *m)
{
	struct rport *p = container_of(m, struct rport, spares_msg);

	check(p->inflight > 0 && p->spares_back);
	p->inflight--;
	while (p->spares_back) {
		struct buf *b = p->spares_back;

		p->spares_back = b->next;
		b->next = NULL;
		p->base.spares->give(p->base.spares, b);
	}
}

/* Gives a buffer back, later: who lent it may be the caller. */
static void
spare_back(struct rport *p, struct buf *b)
{
	if (!p->spares_back) {
		p->inflight++;
		mailbox_post(p->mb, &p->spares_msg, on_spares);
	}
	b->next = p->spares_back;
	p->spares_back = b;
}

/* Ends one; b is the buffer that goes back, of a large one. */
static void
end(struct ahead *a, struct buf *b)
{
	struct rport *p = a->dr.call.port;

	if (!a->buf) {
		a->next = p->ahead_free;
		p->ahead_free = a;
		return;
	}
	check(b && p->ahead_large_nr > 0);
	spare_back(p, b);
	p->ahead_large_nr--;
	free(a);
}

void
ahead_end(struct rport *p)
{
	for (struct ahead *a = p->ahead_free, *next; a; a = next) {
		next = a->next;
		free(a);
		p->ahead_nr--;
	}
	check(p->ahead_nr == 0);
	check(p->ahead_large_nr == 0);
}

/* ---- reading ---- */

static void
on_ahead(struct call *c)
{
	struct ahead *a = container_of(c, struct ahead, dr.call);

	check(!a->is_back);
	a->is_back = true;
	if (a->is_dropped)
		end(a, a->buf);
	else if (a->back)
		a->back(a->cookie);
}

struct ahead *
ahead_begin(struct txn *t, uint64_t want)
{
	struct rport *p = t->port;
	struct rstore *st = p->st;
	struct data_seen named;
	struct ahead *a;
	uint32_t len, skew;

	check(t->is_pinned);
	if (!t->rb || !recall_named(&st->recall, t->rb, &t->key[0], &named) ||
	    (!want && named.size_bytes > STORE_GRANULE))
		return NULL;
	if (!want || want > named.size_bytes)
		want = named.size_bytes;
	len = data_read_plan(st, named.size_bytes, 0, want, STORE_READ, &skew);
	a = len <= STORE_GRANULE ? take_small(p) : take_large(p, len);
	if (!a)
		return NULL;
	if (a->buf && a->buf->cap_bytes < len)
		len = data_read_plan(st, named.size_bytes, 0, want, a->buf->cap_bytes, &skew);
	a->size_bytes = named.size_bytes;
	a->is_back = a->is_dropped = false;
	a->back = NULL;
	data_read_init(&a->dr, st, named.data, named.size_bytes, named.has_trailers, 0, len);
	data_read_send(p, &a->dr, a->buf ? a->buf->mem : a->bytes, a->trailer, on_ahead);
	return a;
}

struct ahead *
ahead_judge(struct ahead *a, const struct txn *t, const struct record *rec)
{
	struct rstore *st = t->port->st;
	bool is_it = a && rec && rec->kind == REC_DATA && rid_same(a->dr.id, rec->data) &&
		     a->size_bytes == rec->size_bytes && a->dr.has_trailer == (rec->crc_nr == 0);

	/* Where others change it again and again, not every one of these reads is in vain. */
	recall_seen(&st->recall, t->rb, &t->key[0], rec, a && !is_it);
	if (a)
		atomic_fetch_add_explicit(is_it ? &st->ahead_right : &st->ahead_wrong, 1,
					  memory_order_relaxed);
	if (is_it)
		return a;
	ahead_drop(a);
	return NULL;
}

void
ahead_drop(struct ahead *a)
{
	if (!a)
		return;
	if (a->is_back) {
		end(a, a->buf);
		return;
	}
	a->is_dropped = true;
	call_cancel(&a->dr.call);
}

void
ahead_await(struct ahead *a, void (*back)(void *cookie), void *cookie)
{
	check(!a->is_back && !a->back);
	a->back = back;
	a->cookie = cookie;
}

int
ahead_take(struct ahead *a, struct buf *buf, uint64_t off, uint32_t len, const uint8_t *crcs,
	   struct buf **ret_instead)
{
	bool ok;

	if (off != 0 || len != a->dr.len || (a->buf && a->buf->cls != buf->cls)) {
		ahead_drop(a);
		return 0;
	}
	if (!a->is_back)
		return -EINPROGRESS;
	ok = data_read_check(&a->dr, crcs) == 0;
	check(!a->is_dropped);
	if (ok && a->buf)
		*ret_instead = a->buf;
	else if (ok)
		memcpy(buf->mem, a->bytes, a->dr.len);
	end(a, ok ? buf : a->buf);
	return ok;
}
