/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the index.
 *
 *      txn_start() --> bucket --> look-up --> decide() --> queue --> one operation --> over()
 *                         ^          ^                                    |
 *                         |          +------ lost: a value has changed ---+
 *                         +---------- the shard is absent or closed ------+
 *
 * A gateway has at most one operation on each shard in progress; the changes that arrive in the meantime are
 * combined in the next one (a batch). If a batch is lost, its changes are sent again one by one. Two changes
 * of one key are never in the same batch: the later one waits, and is decided again on the result of the
 * earlier one.
 *
 * A PUT of a key with a cached record (recall.c) is decided on that record without a look-up, because the
 * operation compares the whole record anyway. A cached record never causes a refusal: before a refusal, and
 * after a lost change, the keys are read and the change is decided again.
 *
 * Each operation compares this gateway's row in the shard, and sets the row to the number of the operation.
 * RADOS recognises an operation that librados sends again only while it is among the last few thousand. Later
 * the row prevents that the operation is executed twice, and shows of an operation that lost whether an
 * earlier execution had won (rule 6).
 */
#include "rados/io/rados_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define RIDERS_MAX 64
#define RIDE_BYTES (256u << 10)
#define RESTARTS_MAX 1000 /* of one change; each costs a round trip */
#define FINDS 8 /* after this many GETs in a row that found an object, the next one will probably find one */
#define LATE_NS (2 * NS_PER_S)

struct batch {
	struct row_read read; /* its call is also that of the operation */
	struct rshard *shard;
	struct txn *riders;
	uint64_t number;
	struct quota_change sum;    /* sum of the changes of the usage */
	uint8_t row[COUNTER_BYTES]; /* this gateway's row, as the operation sets it */
};

void
shard_init(struct rshard *s, const char *name, struct rbucket *rb)
{
	memset(s, 0, sizeof *s);
	memccpy(s->name, name, 0, sizeof s->name);
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->queue);
	list_init(&s->dirty);
	s->bucket = rb;
	s->is_own_unsure = true;
}

void
shard_fini(struct rshard *s)
{
	check(!s->is_busy && list_empty(&s->queue));
	pthread_mutex_destroy(&s->lock);
}

/* ---- contents of a transaction ---- */

void
txn_set_owner(rados_write_op_t op, const struct txn *t)
{
	char owner[STORE_BUCKET_MAX + 1 + STORE_KEY_MAX];

	memcpy(owner, t->bucket, t->bucket_len);
	owner[t->bucket_len] = 0;
	memcpy(owner + t->bucket_len + 1, t->object, t->object_len);
	rados_write_op_setxattr(op, XATTR_OWNER, owner, (size_t)t->bucket_len + 1 + t->object_len);
}

int
txn_add_key(struct txn *t, const char *key, size_t len)
{
	struct txn_key *k = &t->key[t->key_nr];

	check(t->key_nr < TXN_KEYS && len > 0 && len < OMAP_KEY_MAX);
	k->key = strndup(key, len);
	if (!k->key)
		return -ENOMEM;
	k->len = (uint16_t)len;
	t->key_nr++;
	return 0;
}

static void
bytes_free(struct bytes *b)
{
	free(b->p);
	*b = (struct bytes){ 0 };
}

static void
more_free(struct txn *t)
{
	for (uint32_t i = 0; i < t->more_nr; i++) {
		free(t->more[i].key);
		free(t->more[i].set.p);
	}
	t->more_nr = 0;
}

void *
txn_set(struct txn *t, int key, size_t len)
{
	check(key >= 0 && key < t->key_nr && len > 0);
	bytes_free(&t->key[key].set);
	t->result = bytes_new(&t->key[key].set, len) ? 0 : -ENOMEM;
	t->key[key].fate = FATE_SET;
	return t->key[key].set.p;
}

void
txn_remove(struct txn *t, int key)
{
	check(key >= 0 && key < t->key_nr);
	bytes_free(&t->key[key].set);
	t->key[key].fate = FATE_REMOVE;
}

int
txn_more(struct txn *t, const char *key, size_t len, struct bytes value)
{
	struct txn_more *m = room_for_one(t->more, t->more_nr, &t->more_cap, sizeof *m);

	if (m) {
		t->more = m;
		m += t->more_nr;
	}
	if (!m || !(m->key = strndup(key, len))) {
		free(value.p);
		return -ENOMEM;
	}
	m->len = (uint16_t)len;
	m->set = value;
	t->more_nr++;
	return 0;
}

int
txn_garbage_data(struct txn *t, const struct garbage_data *data, uint32_t nr, const struct rid *map)
{
	char key[OMAP_KEY_MAX];
	struct bytes value;
	struct rid id;
	int e;

	if (nr == 0 && !map)
		return 0;
	e = gateway_id(t->port->st, &id);
	if (e < 0)
		return e;
	/* Only the name is needed. */
	gateway_id_over(t->port->st, id);
	if (!bytes_new(&value, garbage_bytes(nr)))
		return -ENOMEM;
	garbage_encode(value.p, data, nr, map);
	return txn_more(t, key, key_garbage(key, t->epoch, id), value);
}

int
txn_garbage(struct txn *t, const struct record *old)
{
	struct garbage_data one = { old->data, old->size_bytes }, *data;
	struct cur list = cursor(old->parts, old->parts_len);
	struct record part = { 0 };
	uint32_t nr = 0;
	int e = 1;

	switch (old->kind) {
	case REC_INLINE:
		return 0;
	case REC_DATA:
		return txn_garbage_data(t, &one, 1, NULL);
	case REC_MAP:
		return txn_garbage_data(t, NULL, 0, &old->data);
	case REC_PARTS:
		break;
	}
	data = calloc(old->part_nr, sizeof *data);
	if (!data)
		return -ENOMEM;
	for (uint32_t i = 0; e > 0 && i < old->part_nr; i++) {
		e = part_next(&list, &part);
		if (e > 0 && part.kind == REC_DATA)
			data[nr++] = (struct garbage_data){ part.data, part.size_bytes };
	}
	e = e > 0 && list.p == list.end ? txn_garbage_data(t, data, nr, NULL) : -EBADMSG;
	free(data);
	return e;
}

enum txn_say
txn_set_record(struct txn *t, int key, const struct record *new)
{
	void *value;

	t->result = format_allows(t->port->st, record_version(new));
	value = t->result < 0 ? NULL : txn_set(t, key, record_bytes(new));
	if (!value)
		return TXN_OVER;
	record_encode(value, new);
	return TXN_COMMIT;
}

enum txn_say
txn_put_record(struct txn *t, int key, struct record *new, const struct store_meta *meta,
	       const struct record *old)
{
	record_take(new, meta);
	if (!new->mtime_ns)
		new->mtime_ns = clock_wall_ns();
	new->version = next_version(old ? old->version : 0);
	t->result = 0;
	if (old) {
		new->replaced = old->id;
		t->result = txn_garbage(t, old);
	}
	return t->result < 0 ? TXN_OVER : txn_set_record(t, key, new);
}

void
txn_fini(struct txn *t)
{
	for (int i = 0; i < t->key_nr; i++) {
		free(t->key[i].key);
		free(t->key[i].old.p);
		free(t->key[i].set.p);
	}
	more_free(t);
	free(t->more);
	rbucket_release(t->rb);
}

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

static void enqueue(struct txn *t);

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
	enqueue(t);
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
		enqueue(t);
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
	more_free(t);
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

/* ---- the shard's queue ---- */

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

static void
on_refused(struct msg *m)
{
	struct txn *t = container_of(m, struct txn, msg);

	if (t->guess == GUESS_MADE) {
		look_after_all(t);
		return;
	}
	t->result = -EDQUOT;
	over(t);
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
			mailbox_post(t->port->mb, &t->msg, on_refused);
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

static void
enqueue(struct txn *t)
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

static void
on_decide_again(struct msg *m)
{
	decide(container_of(m, struct txn, msg));
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
		mailbox_post(t->port->mb, &t->msg, on_decide_again);
	}
}

static void
on_sent(struct msg *m)
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
		enqueue(t);
	} else if (e == -ECANCELED || e == -ENOENT || e == -ENODATA) {
		t->is_alone = false;
		again(t, e == -ECANCELED || !t->object ? look : restart);
	} else {
		fail(t, e);
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
		mailbox_post(t->port->mb, &t->msg, on_sent);
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
