/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists over several sources, see merge.h. Each source lists its entries, some at a time, into a buffer, the run. The
 * smallest of the first entries of all runs is the next entry of the page. A name is in one source, or in two while it
 * moves from one to the other; an entry that several sources have, such as a common prefix, is listed once. While a run
 * is empty and its source has further entries, nothing is listed. At the end of the page it is therefore known whether
 * further entries exist.
 */
#include "model/merge.h"

#include "base/list.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUN_BYTES (32u << 10)
#define RUN_ENTRY_MAX (sizeof(struct held) + STORE_KEY_MAX + STORE_ATTRS_MAX + 8)
#define LIST_SLICE 256 /* number of entries listed in one turn of the loop */

/* An entry in a run; its name and attributes follow. */
struct held {
	struct store_entry e;
	uint8_t upload_id[STORE_UPLOAD_ID_BYTES];
	size_t bytes; /* size with name, attributes and padding */
};
_Static_assert(2 * RUN_ENTRY_MAX <= RUN_BYTES, "a run holds the largest entries");

struct run {
	struct store_list ls; /* request to the source */
	struct merge *merge;
	struct store_slots slots;
	bool has_more; /* true: the source has entries after those of the run */
	uint32_t at, end;
	_Alignas(struct held) unsigned char bytes[RUN_BYTES];
};

struct merge {
	struct msg msg;
	struct merge_of of;
	struct store_list *ls; /* operation of the caller */
	int pending;           /* number of runs that are being filled */
	int result;            /* < 0: error of a source */
	uint32_t given;        /* number of entries listed */
	uint64_t changes;      /* value of *of.changes before the oldest run was requested */
	struct merge_wait settle;
	bool is_unsettled;      /* true: settle() was not called after the runs were filled */
	bool is_first, is_full; /* no entry was listed yet; the page has all its entries */
	/* the last entry listed */
	char name[STORE_KEY_MAX];
	uint16_t name_len;
	uint8_t upload_id[STORE_UPLOAD_ID_BYTES];
	bool has_upload_id;
	struct run run[];
};

struct store_slots *
merge_slots(struct store_list *ls)
{
	return &container_of(ls, struct run, ls)->slots;
}

/* ---- runs ---- */

static struct held *
head_of(struct run *r)
{
	return r->at < r->end ? (struct held *)(r->bytes + r->at) : NULL;
}

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct run *r = container_of(ls, struct run, ls);
	struct held *h = (struct held *)(r->bytes + r->end);
	char *tail = (char *)(h + 1);

	check(e->name_len <= STORE_KEY_MAX && e->attrs_len <= STORE_ATTRS_MAX);
	h->e = *e;
	h->e.name = memcpy(tail, e->name, e->name_len);
	if (e->attrs_len)
		h->e.attrs = memcpy(tail + e->name_len, e->attrs, e->attrs_len);
	if (e->upload_id)
		h->e.upload_id = memcpy(h->upload_id, e->upload_id, sizeof h->upload_id);
	h->bytes = (sizeof *h + e->name_len + e->attrs_len + 7) & ~(size_t)7;
	r->end += (uint32_t)h->bytes;
	return RUN_BYTES - r->end >= RUN_ENTRY_MAX;
}

static void
take_result(struct merge *m, int i, int result)
{
	struct run *r = &m->run[i];

	r->has_more = result >= 0 && r->ls.more;
	/* The first source decides whether the bucket exists. After -ENXIO for a later request, because the
	 * bucket was removed meanwhile, the source has no further entries. */
	if (result < 0 && !(result == -ENXIO && (i > 0 || !m->is_first)))
		m->result = result;
}

static void on_filled(struct store_op *op);

/* Requests the entries after the last listed one from a source. */
static void
fill(struct merge *m, int i)
{
	struct store_list *ls = &m->run[i].ls;
	uint32_t left = m->ls->max - m->given;
	int e;

	*ls = *m->ls;
	ls->op = (struct store_op){ .done = on_filled };
	ls->entry = on_entry;
	ls->max = left && !m->is_full ? left : 1; /* to know whether there is one */
	ls->slots = NULL;
	ls->may_be_partial = false;
	if (!m->is_first) {
		ls->after = m->name;
		ls->after_len = m->name_len;
		ls->after_id = m->has_upload_id ? m->upload_id : NULL;
	}
	m->run[i].at = m->run[i].end = 0;
	m->is_unsettled = true;
	m->pending++;
	e = m->of.list(&m->of, i, ls);
	if (e == 0)
		return;
	m->pending--;
	take_result(m, i, e < 0 ? e : ls->op.result);
}

/* ---- the page ---- */

static int
order(const struct store_entry *a, const struct store_entry *b)
{
	size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
	int c = memcmp(a->name, b->name, n);

	return c ? c : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* Returns true if two entries are the same; several uploads may have one name. */
static bool
is_same(const struct held *a, const struct held *b)
{
	return order(&a->e, &b->e) == 0 &&
	       (!a->e.upload_id || memcmp(a->upload_id, b->upload_id, sizeof a->upload_id) == 0);
}

/* Returns the run with the smallest first entry; NULL: all runs have ended. */
static struct run *
least(struct merge *m)
{
	struct run *best = NULL;

	for (int i = 0; i < m->of.nr; i++) {
		struct run *r = &m->run[i];

		if (head_of(r) && (!best || order(&head_of(r)->e, &head_of(best)->e) < 0))
			best = r;
	}
	return best;
}

/* Lists the first entry of a run, and removes the entry from all runs that have it. */
static void
give(struct merge *m, struct run *best)
{
	struct held *h = head_of(best), *other;

	m->is_first = false;
	m->given++;
	memcpy(m->name, h->e.name, h->e.name_len);
	m->name_len = (uint16_t)h->e.name_len;
	m->has_upload_id = h->e.upload_id != NULL;
	memcpy(m->upload_id, h->upload_id, sizeof m->upload_id);
	for (int i = 0; i < m->of.nr; i++) {
		struct run *r = &m->run[i];

		other = head_of(r);
		if (other && r != best && is_same(other, h))
			r->at += (uint32_t)other->bytes;
	}
	best->at += (uint32_t)h->bytes;
	/* The entry is still in the memory of the run, which is filled again only when the run is empty. */
	m->is_full = !m->ls->entry(m->ls, &h->e) || m->given == m->ls->max;
}

/* Requests all runs again if entries have moved between sources. */
static void
ask_again(struct merge *m)
{
	uint64_t now = m->of.changes ? atomic_load(m->of.changes) : 0;

	if (now == m->changes)
		return;
	m->changes = now;
	if (m->of.nr_now && *m->of.nr_now != m->of.nr)
		m->result = -EAGAIN;
	for (int i = 0; i < m->of.nr; i++) {
		m->run[i].at = m->run[i].end = 0;
		m->run[i].has_more = true;
	}
}

static void on_turn(struct msg *msg);
static void on_settled(struct msg *msg);

/* Returns true if no change of a listed key is in progress. Returns false if on_settled() follows, or if m->result is
 * an error. */
static bool
is_settled(struct merge *m)
{
	int r;

	m->is_unsettled = false;
	m->settle.mb = m->of.mb;
	m->settle.go = on_settled;
	r = m->of.settle(&m->of, &m->settle);
	if (r < 0)
		m->result = -EAGAIN;
	return r > 0;
}

/* Continues the page. Returns true if the page is complete; false: on_filled(), on_turn() or on_settled() continues it. */
static bool
advance(struct merge *m)
{
	for (uint32_t n = 0;; n++) {
		struct run *best;

		ask_again(m);
		for (int i = 0; m->result == 0 && i < m->of.nr; i++) {
			if (!head_of(&m->run[i]) && m->run[i].has_more)
				fill(m, i);
		}
		if (m->pending)
			return false;
		if (m->result < 0)
			return true;
		if (m->of.changes && atomic_load(m->of.changes) != m->changes)
			continue;
		if (m->of.settle && m->is_unsettled && !is_settled(m))
			return m->result < 0;
		best = least(m);
		m->ls->more = best != NULL;
		if (!best || m->is_full)
			return true;
		if (n == LIST_SLICE) {
			mailbox_post(m->of.mb, &m->msg, on_turn);
			return false;
		}
		give(m, best);
	}
}

static void
end(struct merge *m)
{
	m->ls->op.result = m->result < 0 ? m->result : (int)m->given;
	(*m->of.inflight)--;
	if (m->of.over)
		m->of.over(m->of.cookie);
	free(m);
}

static void
go_on(struct merge *m)
{
	struct store_list *ls = m->ls;

	if (!advance(m))
		return;
	end(m);
	ls->op.done(&ls->op);
}

static void
on_turn(struct msg *msg)
{
	go_on(container_of(msg, struct merge, msg));
}

static void
on_settled(struct msg *msg)
{
	struct merge *m = container_of(msg, struct merge, settle.msg);

	/* Only the next start can decide which change of one of the keys is kept. */
	if (atomic_load(&m->settle.error))
		m->result = -EAGAIN;
	go_on(m);
}

static void
on_filled(struct store_op *op)
{
	struct run *r = container_of(op, struct run, ls.op);
	struct merge *m = r->merge;

	take_result(m, (int)(r - m->run), op->result);
	if (--m->pending == 0)
		go_on(m);
}

int
merge_list(const struct merge_of *of, struct store_list *ls)
{
	struct merge *m = malloc(sizeof *m + (size_t)of->nr * sizeof(struct run));

	if (!m)
		return -EAGAIN;
	ls->op.port = of->port;
	ls->more = false;
	memset(m, 0, sizeof *m);
	m->of = *of;
	m->ls = ls;
	m->is_first = true;
	m->is_full = ls->max == 0;
	m->changes = of->changes ? atomic_load(of->changes) : 0;
	for (int i = 0; i < of->nr; i++) {
		m->run[i].merge = m;
		m->run[i].has_more = true;
		m->run[i].at = m->run[i].end = 0;
	}
	(*of->inflight)++;
	if (!advance(m))
		return 0;
	end(m);
	return 1;
}

/* ---- common prefixes ---- */

size_t
merge_common(const struct store_list *ls, const char *name, size_t len)
{
	const char *at = NULL;

	if (ls->delimiter_len && len >= ls->prefix_len)
		at = memmem(name + ls->prefix_len, len - ls->prefix_len, ls->delimiter, ls->delimiter_len);
	return at ? (size_t)(at - name) + ls->delimiter_len : 0;
}

bool
merge_after_common(const struct store_list *ls)
{
	return ls->after_len && ls->after_len >= ls->prefix_len &&
	       merge_common(ls, ls->after, ls->after_len) == ls->after_len &&
	       (!ls->prefix_len || memcmp(ls->after, ls->prefix, ls->prefix_len) == 0);
}
