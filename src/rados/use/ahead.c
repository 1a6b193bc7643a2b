/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parallel reads: the first bytes of an object are read while its record is looked up.
 *
 * A GET is two consecutive round trips, because the record names the data object. For a GET of 64 KiB both
 * cost about the same, mostly in threads that wake each other. A GET of 4 MiB would read nothing during the
 * look-up, which waits in the OSD for the operations of other clients. So the data objects that a record
 * named when this gateway last set it, or looked it up for a GET, are cached and read in parallel with the
 * look-up. The result of the look-up decides: if the record names other data objects, or does not exist, the
 * bytes are dropped. The name of a data object is sufficient for the comparison, because a name is never used
 * twice and data objects do not change. The CRCs in the record or the trailer verify the bytes. The epoch is
 * pinned before both calls, so the data objects in the record exist.
 *
 * A request gets its buffer after the look-up, because the number of bytes is unknown before. One granule is
 * read into memory of the port, and copied from there. More is read into a buffer that the owner of the port
 * lends (store_spares), which then replaces the reader's buffer; if none can be lent, the bytes are read
 * after the look-up. A port has at most AHEAD_MAX parallel reads of each kind.
 */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <string.h>

#define TRAILER_MAX 4096
_Static_assert(DATA_OBJECT_MAX / STORE_GRANULE * 8 + 8 <= TRAILER_MAX, "the trailer of a data object");

struct ahead {
	struct data_read dr;
	struct ahead *next; /* next in the list of free ones */
	uint64_t size_bytes;
	bool is_back, is_dropped;
	struct buf *buf; /* buffer for the bytes; NULL: they are in `bytes` */
	void (*back)(void *cookie);
	void *cookie;
	uint8_t trailer[TRAILER_MAX];
	char bytes[]; /* room for a granule and its trailer, if buf is NULL */
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

/* Allocates a read with a buffer for len bytes, or for a part of them. */
static struct ahead *
take_large(struct rport *p, uint32_t len)
{
	struct store_spares *s = p->base.spares;
	struct ahead *a = s && p->ahead_large_nr < AHEAD_MAX ? malloc(sizeof *a) : NULL;

	if (!a)
		return NULL;
	a->buf = len > BUF_RUN_BYTES / 2 ? s->take(s, BUF_RUN) : NULL;
	/* A request, too, reads into such a buffer if no run is free. */
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

/* Returns a buffer to its lender, by a message, because the lender may be the caller. */
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

/* Frees a read; b: the buffer to return, if the read has one. */
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

	/* After a wrong parallel read the next look-up has none, so a key that other gateways change often
	 * does not cost a read each time. */
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
