/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of small objects that are read while their record is looked at.
 *
 * A GET is two trips, one behind the other: the record names the data object.  Each costs a GET of 64 KiB about the same, most
 * of it in threads that wake each other.  So what a record named when this gateway set it last, or looked at it last for a GET,
 * is remembered, and read beside the look.  The look decides all the same: what it finds names other bytes, or nothing, and
 * what was read is dropped.  The name of a data object is enough to tell, as none is used twice and none changes; the bytes
 * are checked by the record that was looked at.  The epoch was pinned before either was sent, so what the look names is there.
 *
 * Such bytes come into memory of the port's own, as a request has a buffer only when it knows how many bytes it moves; a read
 * copies them from there.  A port has AHEAD_MAX such buffers; beyond that it reads behind the look.
 */
#include "rados/rados_int.h"

#include "base/check.h"
#include "base/crc64.h"

#include <string.h>

struct ahead {
	struct call call;
	struct ahead *next; /* of those that are free */
	struct rid data;
	uint32_t size_bytes;
	bool is_back, is_dropped;
	size_t got;
	int rv;
	void (*back)(void *cookie);
	void *cookie;
	char bytes[STORE_GRANULE];
};

static struct ahead *
take_buffer(struct rport *p)
{
	struct ahead *a = p->ahead_free;

	if (a) {
		p->ahead_free = a->next;
	} else if (p->ahead_nr < AHEAD_MAX) {
		a = malloc(sizeof *a);
		p->ahead_nr += a != NULL;
	}
	return a;
}

static void
give_buffer(struct rport *p, struct ahead *a)
{
	a->next = p->ahead_free;
	p->ahead_free = a;
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
}

static void
on_ahead(struct call *c)
{
	struct ahead *a = container_of(c, struct ahead, call);

	a->is_back = true;
	if (a->is_dropped)
		give_buffer(c->port, a);
	else if (a->back)
		a->back(a->cookie);
}

struct ahead *
ahead_begin(struct txn *t)
{
	struct rport *p = t->port;
	struct data_seen named;
	rados_read_op_t op;
	struct ahead *a;
	char name[DATA_NAME];

	check(t->is_pinned);
	if (!t->rb || !recall_named(&p->st->recall, t->rb, &t->key[0], &named))
		return NULL;
	a = take_buffer(p);
	if (!a)
		return NULL;
	a->data = named.data;
	a->size_bytes = named.size_bytes;
	a->is_back = a->is_dropped = false;
	a->back = NULL;
	a->got = 0;
	a->rv = 0;
	data_name(name, a->data, 0);
	op = rados_create_read_op();
	rados_read_op_read(op, 0, a->size_bytes, a->bytes, &a->got, &a->rv);
	call_read(p, &a->call, POOL_DATA, name, op, a->size_bytes, on_ahead);
	return a;
}

struct ahead *
ahead_judge(struct ahead *a, const struct txn *t, const struct record *rec)
{
	struct rstore *st = t->port->st;
	bool is_it = a && rec && rec->kind == REC_DATA && rid_same(a->data, rec->data) &&
		     a->size_bytes == rec->size_bytes;

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
		give_buffer(a->call.port, a);
		return;
	}
	a->is_dropped = true;
	call_cancel(&a->call);
}

bool
ahead_is_back(const struct ahead *a)
{
	return a->is_back;
}

void
ahead_await(struct ahead *a, void (*back)(void *cookie), void *cookie)
{
	a->back = back;
	a->cookie = cookie;
}

bool
ahead_take(struct ahead *a, void *to, const uint8_t crc[8])
{
	bool ok = a->call.result >= 0 && a->rv >= 0 && a->got == a->size_bytes;
	uint64_t is;

	if (ok) {
		memcpy(to, a->bytes, a->size_bytes);
		is = crc64_nvme(0, to, a->size_bytes);
		ok = memcmp(&is, crc, sizeof is) == 0;
	}
	give_buffer(a->call.port, a);
	return ok;
}
