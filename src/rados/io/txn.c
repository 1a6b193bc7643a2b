/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the index: begin, look-up, decision and end of a transaction.
 *
 *      txn_start() --> bucket --> look-up --> decide() --> queue --> one operation --> over()
 *                         ^          ^                                    |
 *                         |          +------ lost: a value has changed ---+
 *                         +---------- the shard is absent or closed ------+
 *
 * The queue and the operation are in shard.c.
 *
 * A PUT of a key with a cached record (recall.c) is decided on that record without a look-up, because the
 * operation compares the whole record anyway. A cached record never causes a refusal: before a refusal, and
 * after a lost change, the keys are read and the change is decided again.
 */
#include "rados/io/txn.h"
#include "rados/io/txn_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "rados/io/rstore.h"
#include "rados/io/usage.h"

#include <errno.h>
#include <string.h>

#define RESTARTS_MAX 1000 /* of one change; each costs a round trip */
#define FINDS 8 /* after this many GETs in a row that found an object, the next one will probably find one */
#define LATE_NS (2 * NS_PER_S)

/* ---- end and beginning ---- */

static void
over(struct txn *t)
{
	struct rport *p = t->port;
	const void *was = p->base.asker;

	check(p->inflight > 0);
	usage_release(t);
	if (t->is_pinned)
		gateway_unpin(p->st, t->epoch);
	t->is_pinned = false;
	p->inflight--;
	p->base.asker = t->asker;
	t->over(t);
	p->base.asker = was;
}

/* Reads an object of the index on behalf of the owner of t, which may not be the port's current asker. */
static void
read_for(struct txn *t, const char *name, rados_read_op_t op, void (*back)(struct call *c))
{
	struct rport *p = t->port;
	const void *was = p->base.asker;

	p->base.asker = t->asker;
	call_read(p, &t->look.call, POOL_META, name, op, 0, back);
	p->base.asker = was;
}

static void
fail(struct txn *t, int e)
{
	t->result = result_of(e);
	over(t);
}

/* Repeats a step, up to a limit. */
static void
again(struct txn *t, void (*step)(struct txn *t))
{
	if (++t->restarts > RESTARTS_MAX)
		fail(t, -EAGAIN);
	else
		step(t);
}

static void look(struct txn *t);
static void look_or_recall(struct txn *t);
static void find_bucket(struct txn *t);

/* Begins again at the bucket, because the cached bucket is out of date. */
static void
restart(struct txn *t)
{
	check(t->object);
	if (t->guess == GUESS_MADE)
		t->guess = GUESS_OVER;
	usage_release(t); /* needs the bucket, to find its row in the ledger */
	if (t->rb) {
		rbucket_doubt(t->rb);
		rbucket_release(t->rb);
		t->rb = NULL;
	}
	again(t, find_bucket);
}

static void
on_row(struct call *c)
{
	struct txn *t = container_of(c, struct txn, look.call);
	struct bucket_row row;
	int e = row_read_end(&t->look);

	if (e >= 0)
		e = e > 0 ? bucket_decode(t->look.val, t->look.len, &row) : -ENXIO;
	/* A bucket does not exist while it is being made, and exists until its removal has ended. */
	if (e >= 0 && row.state == BUCKET_MAKING)
		e = -ENXIO;
	if (e == -ENXIO) {
		struct rbucket *gone = rbucket_get(t->port->st, t->bucket, t->bucket_len);

		if (gone) {
			rbucket_drop(gone);
			rbucket_release(gone);
		}
	}
	if (e >= 0) {
		t->rb = rbucket_put_in(t->port->st, t->bucket, t->bucket_len, &row);
		if (!t->rb)
			e = -ENOMEM;
	}
	if (e < 0) {
		fail(t, e);
		return;
	}
	t->shard = rbucket_shard(t->rb, t->object, t->object_len);
	look_or_recall(t);
}

static void
find_bucket(struct txn *t)
{
	t->rb = rbucket_get(t->port->st, t->bucket, t->bucket_len);
	if (t->rb && atomic_load(&t->rb->is_doubtful)) {
		rbucket_release(t->rb);
		t->rb = NULL;
	}
	if (t->rb) {
		t->shard = rbucket_shard(t->rb, t->object, t->object_len);
		look_or_recall(t);
		return;
	}
	read_for(t, OBJECT_BUCKETS, row_read_op(&t->look, table_key('b', t->bucket, t->bucket_len).text),
		 on_row);
}

void
txn_start(struct rport *p, struct txn *t)
{
	check(t->decide && t->over && t->key_nr > 0 && !t->rb && !t->is_pinned);
	t->port = p;
	t->asker = p->base.asker;
	t->rb = NULL;
	p->inflight++;
	t->epoch = gateway_pin(p->st);
	t->is_pinned = true;
	t->result = 0;
	if (t->object) {
		find_bucket(t);
		return;
	}
	t->shard = &p->st->buckets;
	look(t);
}

/* ---- look-up ---- */

static void
on_own_row(struct call *c)
{
	struct txn *t = container_of(c, struct txn, look.call);
	int e = row_read_end(&t->look);

	if (e == 0) {
		gateway_fence(t->port->st);
		e = -ESHUTDOWN;
	}
	if (e < 0) {
		fail(t, e);
		return;
	}
	atomic_store(&t->shard->known, t->generation);
	shard_enqueue(t);
}

/*
 * A gateway that cleans up after a dead gateway raises the generation of a shard before it removes the dead
 * gateway's operations in progress. So if the generation is unknown, this gateway may be the dead one: its
 * own row, read after the generation, shows whether it is (rule 5).
 */
static void
prove_alive(struct txn *t)
{
	if (!t->object || t->generation == atomic_load(&t->shard->known)) {
		shard_enqueue(t);
		return;
	}
	read_for(t, OBJECT_STORE, row_read_op(&t->look, gateway_key('i', t->port->st->gw.instance).text),
		 on_own_row);
}

/* Reads the keys, because a cached record is not sufficient. */
static void
look_after_all(struct txn *t)
{
	t->guess = GUESS_OVER;
	look(t);
}

void
txn_go_on(struct txn *t, enum txn_say say)
{
	if (t->guess == GUESS_MADE && (say == TXN_OVER || say == TXN_AGAIN)) {
		look_after_all(t);
		return;
	}
	switch (say) {
	case TXN_OVER:
		over(t);
		break;
	case TXN_COMMIT:
		prove_alive(t);
		break;
	case TXN_LATER:
		break;
	case TXN_AGAIN:
		again(t, look);
		break;
	}
}

static void
decide(struct txn *t)
{
	check(t->is_pinned);
	for (int i = 0; i < t->key_nr; i++) {
		bytes_free(&t->key[i].set);
		t->key[i].fate = FATE_COMPARE;
	}
	txn_more_free(t);
	usage_release(t);
	t->delta = (struct quota_change){ 0 };
	txn_go_on(t, t->decide(t));
}

int
generation_of(rados_xattrs_iter_t xattrs, uint64_t *ret_generation)
{
	const char *name, *val;
	size_t len;

	while (rados_getxattrs_next(xattrs, &name, &val, &len) == 0 && name) {
		if (strcmp(name, XATTR_GENERATION) != 0)
			continue;
		if (len != sizeof *ret_generation)
			break;
		memcpy(ret_generation, val, len);
		return 0;
	}
	return -EBADMSG;
}

static int
take_values(struct txn *t)
{
	char *key, *val;
	size_t key_len, val_len;

	for (int i = 0; i < t->key_nr; i++)
		bytes_free(&t->key[i].old);
	while (rados_omap_get_next2(t->look.iter, &key, &val, &key_len, &val_len) == 0 && key) {
		for (int i = 0; i < t->key_nr; i++) {
			struct txn_key *k = &t->key[i];

			if (k->len != key_len || memcmp(k->key, key, key_len) != 0)
				continue;
			if (!bytes_copy(&k->old, val, val_len))
				return -ENOMEM;
		}
	}
	return 0;
}

static void
note_find(struct txn *t)
{
	_Atomic uint32_t *finds = &t->rb->finds;

	if (!t->key[0].old.p)
		atomic_store_explicit(finds, 0, memory_order_relaxed);
	else if (atomic_load_explicit(finds, memory_order_relaxed) < FINDS)
		atomic_fetch_add_explicit(finds, 1, memory_order_relaxed);
}

static void
on_look(struct call *c)
{
	struct txn *t = container_of(c, struct txn, look.call);
	int e = c->result;

	if (e >= 0)
		e = t->look.rv < 0 ? t->look.rv : t->xattrs_rv < 0 ? t->xattrs_rv : 0;
	if (e >= 0 && !t->is_brief)
		e = generation_of(t->xattrs, &t->generation);
	if (e >= 0)
		e = take_values(t);
	if (e >= 0)
		recall_looked(t);
	rados_omap_get_end(t->look.iter);
	if (!t->is_brief)
		rados_getxattrs_end(t->xattrs);
	if (e >= 0 && t->is_read)
		note_find(t);
	/* Only the generation distinguishes an absent key from a removed bucket. */
	if (e >= 0 && t->is_brief && !t->key[0].old.p) {
		look(t);
		return;
	}
	/* The shard is absent, or closed because its bucket is or was being removed: the table of buckets
	 * decides. */
	if (t->object && (e == -ENOENT || (e == 0 && t->generation & GENERATION_CLOSED)))
		restart(t);
	else if (e < 0)
		fail(t, e);
	else
		decide(t);
}

static void
look(struct txn *t)
{
	rados_read_op_t op = rados_create_read_op();
	const char *keys[TXN_KEYS];
	size_t lens[TXN_KEYS];

	for (int i = 0; i < t->key_nr; i++) {
		keys[i] = t->key[i].key;
		lens[i] = t->key[i].len;
	}
	check(t->shard && t->key_nr > 0 && t->is_pinned);
	t->look.rv = t->xattrs_rv = 0;
	/* A look-up that will probably find a value omits the generation, whose read costs more than that
	 * of the value. A value proves that the bucket exists: a bucket with an object is never removed. */
	t->is_brief = t->is_read && atomic_load_explicit(&t->rb->finds, memory_order_relaxed) == FINDS;
	if (!t->is_brief)
		rados_read_op_getxattrs(op, &t->xattrs, &t->xattrs_rv);
	rados_read_op_omap_get_vals_by_keys2(op, keys, (size_t)t->key_nr, lens, &t->look.iter, &t->look.rv);
	read_for(t, t->shard->name, op, on_look);
}

/*
 * A queued change waits as long as its shard does, but a look-up ends with its request. So while a shard has
 * not answered for some time, changes begin with a look-up.
 */
static bool
is_late(const struct rshard *s)
{
	uint64_t busy_ns = atomic_load_explicit(&s->busy_ns, memory_order_relaxed);

	return busy_ns && clock_ns() - busy_ns > LATE_NS;
}

static void
look_or_recall(struct txn *t)
{
	if (t->guess == GUESS_FIRST && !is_late(t->shard) && recall(t)) {
		t->guess = GUESS_MADE;
		decide(t);
		return;
	}
	if (t->guess == GUESS_FIRST)
		t->guess = GUESS_OVER;
	look(t);
}

/* ---- messages of the queue ---- */

void
txn_on_refused(struct msg *m)
{
	struct txn *t = container_of(m, struct txn, msg);

	if (t->guess == GUESS_MADE) {
		look_after_all(t);
		return;
	}
	t->result = -EDQUOT;
	over(t);
}

void
txn_on_decide_again(struct msg *m)
{
	decide(container_of(m, struct txn, msg));
}

void
txn_on_sent(struct msg *m)
{
	struct txn *t = container_of(m, struct txn, msg);
	int e = t->commit_result;

	if (e >= 0) {
		if (t->more_nr)
			gateway_dirty(t->port->st, t->shard);
		over(t);
	} else if (e == -ECANCELED && t->guess == GUESS_MADE) {
		recall_wrong(t);
		t->is_alone = false;
		look_after_all(t);
	} else if (e == -ECANCELED && !t->is_alone) {
		/* Another change of the batch may be the cause. */
		t->is_alone = true;
		shard_enqueue(t);
	} else if (e == -ECANCELED || e == -ENOENT || e == -ENODATA) {
		t->is_alone = false;
		again(t, e == -ECANCELED || !t->object ? look : restart);
	} else {
		fail(t, e);
	}
}
