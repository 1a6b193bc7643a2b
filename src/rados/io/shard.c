/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of shards: changes of the index are combined, sent and ended.
 *
 * A gateway has at most one operation on each shard in progress; the changes that arrive in the meantime are
 * combined in the next one (a batch). If a batch is lost, its changes are sent again one by one. Two changes
 * of one key are never in the same batch: the later one waits, and is decided again on the result of the
 * earlier one.
 *
 * Each operation compares this gateway's row in the shard, and sets the row to the number of the operation.
 * RADOS recognises an operation that librados sends again only while it is among the last few thousand. Later
 * the row prevents that the operation is executed twice, and shows of an operation that lost whether an
 * earlier execution had won (rule 6).
 */
#include "rados/io/txn_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/fault.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <errno.h>
#include <string.h>

#define RIDERS_MAX 64
#define RIDE_BYTES (256u << 10)

struct batch {
	struct row_read read; /* its call is also that of the operation */
	struct rshard *shard;
	struct txn *riders;
	uint64_t number;
	struct quota_change sum;    /* sum of the changes of the usage */
	uint8_t row[COUNTER_BYTES]; /* this gateway's row, as the operation sets it */
};

static bool
collide(const struct txn *a, const struct txn *b)
{
	for (int i = 0; i < a->key_nr; i++) {
		for (int j = 0; j < b->key_nr; j++) {
			const struct txn_key *k = &a->key[i], *l = &b->key[j];

			if ((k->fate != FATE_COMPARE || l->fate != FATE_COMPARE) && k->len == l->len &&
			    memcmp(k->key, l->key, k->len) == 0)
				return true;
		}
	}
	return false;
}

static size_t
weight(const struct txn *t)
{
	size_t n = 0;

	for (int i = 0; i < t->key_nr; i++)
		n += t->key[i].len + t->key[i].old.len + t->key[i].set.len;
	for (uint32_t i = 0; i < t->more_nr; i++)
		n += t->more[i].len + t->more[i].set.len;
	return n;
}

/* Removes from the queue the changes of the next batch, after their quota check. Returns NULL if none is
 * left. Called under the lock of the shard. */
static struct txn *
take_riders(struct rshard *s)
{
	struct txn *riders = NULL, **tail = &riders;
	size_t bytes = 0;
	uint32_t nr = 0;

	list_for_each_safe(l, &s->queue)
	{
		struct txn *t = container_of(l, struct txn, link);
		bool fits =
			!riders || (nr < RIDERS_MAX && !riders->is_alone && !t->is_alone &&
				    t->generation == riders->generation && bytes + weight(t) <= RIDE_BYTES);

		for (struct txn *r = riders; fits && r; r = r->next)
			fits = !collide(r, t);
		if (!fits)
			continue;
		list_del(l);
		t->next = NULL;
		if (usage_judge(t) < 0) {
			mailbox_post(t->port->mb, &t->msg, txn_on_refused);
			continue;
		}
		*tail = t;
		tail = &t->next;
		bytes += weight(t);
		nr++;
	}
	check(nr <= RIDERS_MAX && (nr > 0) == (riders != NULL));
	return riders;
}

static void on_batch(struct call *c);

static void
add_compares(rados_write_op_t op, const struct txn *t)
{
	for (int i = 0; i < t->key_nr; i++) {
		const struct txn_key *k = &t->key[i];

		/* An absent key equals the empty value, and no value is empty. */
		op_compare(op, k->key, k->old.p ? k->old.p : "", k->old.len);
	}
}

/* Keys that an operation sets, or removes, in a single call. */
struct keys {
	size_t nr, max, *key_len, *val_len;
	const char **key, **val;
};

static void
keys_new(struct keys *k, size_t max)
{
	k->nr = 0;
	k->max = max;
	/* One block of memory for all four arrays. */
	k->key = malloc(max * 2 * (sizeof *k->key + sizeof *k->key_len));
	check(k->key);
	k->val = k->key + max;
	k->key_len = (size_t *)(k->val + max);
	k->val_len = k->key_len + max;
}

static void
keys_add(struct keys *k, const char *key, size_t key_len, const struct bytes *val)
{
	check(k->nr < k->max);
	k->key[k->nr] = key;
	k->key_len[k->nr] = key_len;
	k->val[k->nr] = val->p;
	k->val_len[k->nr++] = val->len;
}

static void
add_changes(struct keys *set, struct keys *removed, const struct txn *t)
{
	for (int i = 0; i < t->key_nr; i++) {
		const struct txn_key *k = &t->key[i];

		if (k->fate != FATE_COMPARE)
			keys_add(k->fate == FATE_SET ? set : removed, k->key, k->len, &k->set);
	}
	for (uint32_t i = 0; i < t->more_nr; i++) {
		const struct txn_more *m = &t->more[i];

		keys_add(m->set.p ? set : removed, m->key, m->len, &m->set);
	}
}

/* Adds this gateway's row, which counts its changes. Each gateway has a row of its own, so that gateways
 * do not conflict. */
static void
add_row(rados_write_op_t op, struct keys *set, struct batch *b, const char *key)
{
	const struct rshard *s = b->shard;
	struct counter is = { s->own, b->number };
	struct bytes row = { (char *)b->row, sizeof b->row };

	quota_add(&is.sum, &b->sum);
	counter_encode(b->row, &is);
	/* A row that was damaged to another length cannot be compared. */
	if (s->own_len <= sizeof s->own_row)
		op_compare(op, key, s->own_row, s->own_len);
	keys_add(set, key, strlen(key), &row);
}

static void
ship_now(struct batch *b)
{
	rados_write_op_t op = rados_create_write_op();
	const struct label key = key_counter(b->read.call.port->st->gw.instance);
	struct keys set, removed;
	size_t max = 1;

	rados_write_op_cmpxattr(op, XATTR_GENERATION, LIBRADOS_CMPXATTR_OP_EQ,
				(const char *)&b->riders->generation, sizeof b->riders->generation);
	for (const struct txn *t = b->riders; t; t = t->next) {
		add_compares(op, t);
		max += (size_t)t->key_nr + t->more_nr;
	}
	keys_new(&set, max);
	keys_new(&removed, max);
	for (const struct txn *t = b->riders; t; t = t->next)
		add_changes(&set, &removed, t);
	add_row(op, &set, b, key.text);
	rados_write_op_omap_set2(op, set.key, set.val, set.key_len, set.val_len, set.nr);
	if (removed.nr)
		rados_write_op_omap_rm_keys2(op, removed.key, removed.key_len, removed.nr);
	free(set.key);
	free(removed.key);
	call_write(b->read.call.port, &b->read.call, POOL_META, b->shard->name, op, 0, on_batch);
	fault_point("change.sent");
}

static void
read_row(struct batch *b, const char *object, const char *key, void (*back)(struct call *c))
{
	call_read(b->read.call.port, &b->read.call, POOL_META, object, row_read_op(&b->read, key), 0, back);
}

static void
read_own(struct batch *b, void (*back)(struct call *c))
{
	read_row(b, b->shard->name, key_counter(b->read.call.port->st->gw.instance).text, back);
}

static void settle(struct batch *b, int result);

static void on_own(struct call *c);

static void
on_row_made(struct call *c)
{
	struct batch *b = container_of(c, struct batch, read.call);

	/* The row exists in both cases. */
	if (c->result >= 0 || c->result == -ECANCELED)
		read_own(b, on_own);
	else
		settle(b, c->result);
}

/* Makes this gateway's row in a shard without one. Changes never make the row: if it is missing at a
 * change, this gateway has been declared dead. */
static void
make_row(struct batch *b)
{
	rados_write_op_t op = rados_create_write_op();
	const struct label key = key_counter(b->read.call.port->st->gw.instance);
	const struct counter nothing = { 0 };

	counter_encode(b->row, &nothing);
	rados_write_op_assert_exists(op);
	op_compare(op, key.text, "", 0);
	op_set(op, key.text, b->row, sizeof b->row);
	call_write(b->read.call.port, &b->read.call, POOL_META, b->shard->name, op, 0, on_row_made);
}

static void
on_own(struct call *c)
{
	struct batch *b = container_of(c, struct batch, read.call);
	int e = row_read_end(&b->read);

	if (e < 0) {
		settle(b, e);
	} else if (e > 0) {
		usage_take_own(b->shard, b->read.val, b->read.len);
		ship_now(b);
	} else {
		make_row(b);
	}
}

static void
ship(struct rport *p, struct rshard *s, struct txn *riders)
{
	struct batch *b = calloc(1, sizeof *b);
	const void *asker = p->base.asker;

	check(b && riders && s->is_busy);
	/* The operation is for several owners, so no single owner may abort it. */
	p->base.asker = NULL;
	b->read.call.port = p;
	b->shard = s;
	b->riders = riders;
	b->number = atomic_fetch_add(&p->st->change_nr, 1) + 1;
	atomic_store_explicit(&s->busy_ns, clock_ns(), memory_order_relaxed);
	for (const struct txn *t = riders; t; t = t->next)
		quota_add(&b->sum, &t->delta);
	if (s->is_own_unsure)
		read_own(b, on_own);
	else
		ship_now(b);
	p->base.asker = asker;
}

void
shard_enqueue(struct txn *t)
{
	struct rshard *s = t->shard;
	struct txn *riders = NULL;

	check(t->is_pinned);
	pthread_mutex_lock(&s->lock);
	list_push_tail(&s->queue, &t->link);
	if (!s->is_busy) {
		riders = take_riders(s);
		s->is_busy = riders != NULL;
	}
	pthread_mutex_unlock(&s->lock);
	if (riders)
		ship(t->port, s, riders);
}

/* Copies the new values of a successful change into a waiting change of the same keys. Returns false
 * without memory. */
static bool
take_over(struct txn *t, const struct txn *won)
{
	for (int i = 0; i < t->key_nr; i++) {
		for (int j = 0; j < won->key_nr; j++) {
			struct txn_key *k = &t->key[i];
			const struct txn_key *l = &won->key[j];

			if (l->fate == FATE_COMPARE || k->len != l->len ||
			    memcmp(k->key, l->key, k->len) != 0)
				continue;
			bytes_free(&k->old);
			if (l->fate != FATE_SET)
				continue;
			if (!bytes_copy(&k->old, l->set.p, l->set.len))
				return false;
		}
	}
	/* The value is known now, not assumed. */
	if (t->guess == GUESS_MADE && t->key_nr == 1)
		t->guess = GUESS_OVER;
	return true;
}

/* Wakes the changes that wait for a key of the batch, to be decided again. Called under the lock of the
 * shard. */
static void
wake_colliders(struct rshard *s, const struct batch *b)
{
	list_for_each_safe(l, &s->queue)
	{
		struct txn *t = container_of(l, struct txn, link);
		const struct txn *r = b->riders;

		while (r && !collide(r, t))
			r = r->next;
		if (!r || !take_over(t, r))
			continue;
		list_del(l);
		mailbox_post(t->port->mb, &t->msg, txn_on_decide_again);
	}
}

/* Ends a batch, of which either all changes were made or none. */
static void
settle(struct batch *b, int result)
{
	struct rshard *s = b->shard;
	struct rport *p = b->read.call.port;
	struct txn *riders;
	bool was_alone = !b->riders->next;

	if (result >= 0) {
		fault_point("change.done");
		for (const struct txn *t = b->riders; t; t = t->next)
			recall_note(t);
		if (s->bucket)
			rbucket_is_there(s->bucket);
	}
	pthread_mutex_lock(&s->lock);
	if (result >= 0) {
		wake_colliders(s, b);
		usage_commit(s, &b->sum, b->row, b->riders);
	} else if (result != -ECANCELED) {
		s->is_own_unsure = true;
	}
	check(s->is_busy);
	riders = take_riders(s);
	s->is_busy = riders != NULL;
	if (!riders)
		atomic_store_explicit(&s->busy_ns, 0, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
	if (riders)
		ship(p, s, riders);
	for (struct txn *t = b->riders, *next; t; t = next) {
		next = t->next;
		t->commit_result = result;
		t->is_alone |= was_alone;
		mailbox_post(t->port->mb, &t->msg, txn_on_sent);
	}
	free(b);
}

/* ---- was a lost operation made before? ---- */

static void on_fate(struct call *c);

static void
on_alive(struct call *c)
{
	struct batch *b = container_of(c, struct batch, read.call);
	int e = row_read_end(&b->read);

	if (e == -ETIMEDOUT) {
		read_own(b, on_fate);
		return;
	}
	if (e == 0)
		gateway_fence(c->port->st);
	b->shard->is_own_unsure = true;
	settle(b, e > 0 ? -ECANCELED : -ESHUTDOWN);
}

/*
 * Ends a batch whose comparison failed, after a read of this gateway's row: its number shows whether an
 * earlier execution of the operation has won. A read that times out is repeated, also after the requests have
 * ended. If the row is damaged or cannot be read, the changes end as if this gateway had been declared dead:
 * the gateway that cleans up decides on their data.
 */
static void
on_fate(struct call *c)
{
	struct batch *b = container_of(c, struct batch, read.call);
	struct counter row;
	int e = row_read_end(&b->read);

	if (e == 0) {
		e = -ENODATA;
	} else if (e > 0) {
		bool is_damaged = counter_decode(b->read.val, b->read.len, &row) < 0;

		e = is_damaged ? -ESHUTDOWN : row.last == b->number ? 0 : -ECANCELED;
		if (e < 0)
			usage_take_own(b->shard, b->read.val, b->read.len);
	}
	switch (e) {
	case 0:
	case -ECANCELED:
	case -ENOENT:
		settle(b, e);
		break;
	case -ENODATA:
		/* The row is missing. Other gateways have added it to row 0, because this gateway is dead;
		 * or a repair has removed a damaged row. */
		read_row(b, OBJECT_STORE, gateway_key('i', c->port->st->gw.instance).text, on_alive);
		break;
	case -ETIMEDOUT:
		read_own(b, on_fate);
		break;
	default:
		settle(b, -ESHUTDOWN);
	}
}

static void
on_batch(struct call *c)
{
	struct batch *b = container_of(c, struct batch, read.call);

	/* Tests a repeated operation that RADOS does not recognise any longer. */
	if (c->result >= 0 && fault_asked("change.forgotten")) {
		fault_point("change.forgotten");
		ship_now(b);
		return;
	}
	if (c->result != -ECANCELED) {
		settle(b, c->result);
		return;
	}
	fault_point("change.lost");
	read_own(b, on_fate);
}
