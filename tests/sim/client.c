/* SPDX-License-Identifier: Apache-2.0 */
/* What clients do, each a coroutine bound to one port at a time, see sim.h. */
#include "tests/sim/client_int.h"

#include "extent/log/publish.h"
#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct client clients[CLIENTS_MAX];
static _Alignas(4096) char memory[CLIENTS_MAX][PIECES][STORE_PIECE + BUF_SLACK_BYTES];
int ops_left;

/* The rest of the store calls it by this name (sim.mk): between lookup and pin others may run. */
void sim_pin_add(struct pin_table *t, struct pin *pin, uint64_t id);
/* commit.c publishes through this. */
void sim_publish_block(struct vol *vol);

void
sim_publish_block(struct vol *vol)
{
	publish_block(vol);
	if (!prof.disks)
		model_published(vol);
}

struct client *
client_at(const void *p)
{
	size_t at = (size_t)((const char *)p - (const char *)clients);

	check(at < sizeof clients);
	return &clients[at / sizeof clients[0]];
}

int
client_op_of(const struct commit *c)
{
	/* A completion's record is the store's; what it is to consist of is the client's. */
	const void *p = c->parts ? (const void *)c->parts : (const void *)c;

	if ((const char *)p < (const char *)clients ||
	    (const char *)p >= (const char *)(clients + CLIENTS_MAX))
		return 0;
	return client_at(p)->op;
}

int sim_alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x);

/* As if the free space were in pieces, mostly. */
int
sim_alloc_take(struct alloc *a, struct alloc_run *run, uint32_t units, struct extent *ret_x)
{
	return alloc_take(a, run, one_in(4) ? units : 1, ret_x);
}

int sim_tree_reserve(struct tree *t, bool is_delete);
struct rec *sim_rec_new(struct tree *t, const struct rec_view *v, const void *entries);

/* The leader asks for memory of the index through these. */
int
sim_tree_reserve(struct tree *t, bool is_delete)
{
	int r = tree_reserve(t, is_delete);

	counts.index_full += r < 0 && !is_delete;
	return r;
}

struct rec *
sim_rec_new(struct tree *t, const struct rec_view *v, const void *entries)
{
	struct rec *r = rec_new(t, v, entries);

	counts.index_full += !r;
	return r;
}

static struct client *self; /* in a call that may come back through sim_pin_add() */

void
sim_pin_add(struct pin_table *t, struct pin *pin, uint64_t id)
{
	struct client *c = self;

	if (c && co_now && prof.hold && one_in(prof.hold)) {
		ports[c->port].busy = c->nr + 1;
		for (uint32_t n = 1 + below(60); n; n--)
			co_yield ();
		ports[c->port].busy = 0;
	}
	pin_add(t, pin, id);
}

/* ---- waiting ---- */

void
client_done(struct store_op *op)
{
	struct client *c = client_at(op);
	const struct {
		const struct store_op *op;
		bool *flag;
	} all[] = {
		{ &c->put.op, &c->f_put },
		{ &c->del.op, &c->f_del },
		{ &c->obj.op, &c->f_rd },
		{ &c->rd.op, &c->f_rd },
		{ &c->up.op, &c->f_up },
		{ &c->set.op, &c->f_set },
		{ &c->complete.op, &c->f_complete },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (op == all[i].op)
			*all[i].flag = true;
	}
	for (int i = 0; i < PIECES; i++) {
		if (op == &c->w[i].op)
			c->f_w[i] = true;
	}
}

/* On the port's thread now, and awake. */
struct store_port *
client_port(struct client *c)
{
	struct sim_port *sp = &ports[c->port];

	if (sp->asleep)
		store_turn(sp->p, TURN_WAKES);
	sp->asleep = false;
	return sp->p;
}

void
client_wait(struct client *c, const bool *flag)
{
	while (!*flag)
		co_wait(flag, c->port);
	client_port(c);
}

void
client_idle(struct client *c, uint32_t turns)
{
	static const bool yes = true;

	for (; turns; turns--)
		co_wait(&yes, c->port);
	client_port(c);
}

/* ---- choosing ---- */

uint32_t
client_size(void)
{
	uint32_t w;

	if (prof.size_equal)
		return prof.size_equal;
	w = below(prof.size_inline + prof.size_small + prof.size_mid + prof.size_large + prof.size_huge);

	if (w < prof.size_inline)
		return below(STORE_INLINE_MAX + 1);
	w -= prof.size_inline;
	if (w < prof.size_small)
		return 1 + below(8192);
	w -= prof.size_small;
	if (w < prof.size_mid)
		return 4096 + below(12288);
	w -= prof.size_mid;
	if (w < prof.size_large)
		return 12000 + below(21000);
	return 30000 + below(one_in(4) ? 130000 : 70000);
}

struct store_pre
client_pre(int b, int k)
{
	struct store_pre pre = { .kind = PRE_NONE };
	uint32_t id = model.id[b][k];

	/* A writer that may not overwrite, or not remove: with or without a wish of its own. */
	pre.keep = prof.pre && one_in(4 * prof.pre);
	if (!prof.pre || !one_in(prof.pre))
		return pre;
	pre.kind = (enum store_pre_kind)(1 + below(4));
	if (pre.kind == PRE_MATCH || pre.kind == PRE_NONE_MATCH) {
		pre.etags[pre.etag_nr++] = model_etag(id && !one_in(4) ? id : 1 + below((uint32_t)op_nr));
		if (one_in(3))
			pre.etags[pre.etag_nr++] = model_etag(1 + below((uint32_t)op_nr));
	}
	return pre;
}

int
client_new_op(struct client *c, enum op_kind kind, int b, int k)
{
	int op = op_nr++;

	ops[op] = (struct sim_op){ .kind = kind, .bucket = b, .key = k };
	if (kind == OP_PUT || kind == OP_DEL)
		ops[op].pre = client_pre(b, k);
	c->op = op;
	trace(30, (uint64_t)op << 8 | (uint64_t)kind, (uint64_t)b << 8 | (uint64_t)(k + 1));
	return op;
}

struct store_key
client_key(int b, int k)
{
	return (struct store_key){ .bucket = bucket_name(b),
				   .key = key_name(k),
				   .bucket_len = (uint16_t)strlen(bucket_name(b)),
				   .key_len = (uint16_t)strlen(key_name(k)) };
}

/* ---- the others ---- */

static void
do_del(struct client *c, enum op_kind kind, int b, int k)
{
	int op = client_new_op(c, kind, b, k), r;
	struct store_key key = client_key(b, k < 0 ? 0 : k);
	struct store_port *p = client_port(c);

	say("op %d: client %d %s bucket %d key %d", op, c->nr,
	    kind == OP_DEL    ? "deletes"
	    : kind == OP_MAKE ? "makes"
			      : "removes",
	    b, k);
	model_op_begin(op);
	counts.dels++;
	c->f_del = false;
	c->del.op.done = client_done;
	if (kind == OP_DEL)
		r = store_delete(p, &key, &ops[op].pre, &c->del);
	else if (kind == OP_MAKE)
		r = store_bucket_create(p, bucket_name(b), strlen(bucket_name(b)), 0, &c->del);
	else
		r = store_bucket_delete(p, bucket_name(b), strlen(bucket_name(b)), &c->del);
	if (r == 0) {
		client_wait(c, &c->f_del);
		r = c->del.op.result;
	}
	model_op_over(op, r);
}

static void
read_piece(struct client *c, uint32_t id, uint32_t off, uint32_t len)
{
	static uint64_t want[STORE_PIECE / 8 + 1];
	int r;

	c->f_rd = false;
	c->rd.op.done = client_done;
	memset(c->buf[0].mem, 0xdd, len);
	r = store_read(client_port(c), &c->obj, &c->rd, &c->buf[0], off, len);
	if (r == 0)
		client_wait(c, &c->f_rd);
	r = r < 0 ? r : c->rd.op.result;
	trace(31, id, (uint64_t)off << 32 | (uint32_t)r);
	if ((r == -EIO && (simdisk_faults || simdisk_soft)) ||
	    (r == -ENODEV && disk_failed(&sim_vol()->disk)) ||
	    ((r == -EBADMSG || r == -EIO) && model_damaged))
		return;
	if ((r == -EBADMSG || (r == -EINVAL && model_lost_map)) && model_is_lost(id)) {
		counts.lost_reads++;
		return;
	}
	if (r != (int)len)
		sim_fail("reading op %u at %u: %d instead of %u", id, off, r, len);
	model_bytes(want, len, id, off);
	if (memcmp(want, c->buf[0].mem + c->rd.lead, len) != 0)
		sim_fail("reading op %u at %u: other bytes", id, off);
}

static uint32_t
piece_max(void)
{
	return STORE_GRANULE * (1 + below(STORE_PIECE / STORE_GRANULE));
}

static void
read_all(struct client *c, uint32_t id, bool slowly)
{
	uint32_t piece = piece_max();
	uint64_t lost_reads = counts.lost_reads;

	if (c->obj.size_bytes != ops[id].size)
		sim_fail("op %u has %llu bytes instead of %u", id, (unsigned long long)c->obj.size_bytes,
			 ops[id].size);
	if ((c->obj.part_nr != 0) != (ops[id].kind == OP_COMPLETE))
		sim_fail("op %u has %u parts", id, c->obj.part_nr);
	for (uint32_t off = 0, n, skew; off < ops[id].size; off += n - skew) {
		n = store_read_plan(&c->obj, off, ops[id].size - off, piece, &skew);
		/* Where a part is absent, nothing tells where its granules begin. */
		if ((skew && !(model_lost_map && model_is_lost(id))) || n <= skew || n > piece)
			sim_fail("reading op %u at %u: a plan of %u bytes, skew %u", id, off, n, skew);
		read_piece(c, id, off - skew, n);
		if (slowly)
			client_idle(c, below(40));
	}
	if (model_is_lost(id) && counts.lost_reads == lost_reads && !simdisk_faults && !simdisk_soft)
		sim_fail("op %u is read whole, and some of it was in a file that is lost", id);
}

static void
do_get(struct client *c, int b, int k, bool slowly)
{
	struct store_key key = client_key(b, k);
	uint32_t want = model.id[b][k], id;
	bool there = model.bucket[b];
	int r;

	counts.gets++;
	c->obj.op.done = client_done;
	client_port(c);
	self = c;
	r = store_open(ports[c->port].p, &key, &c->obj);
	self = NULL;
	if (r != 1)
		sim_fail("open: %d", r);
	r = c->obj.op.result;
	if (r != (!there ? -ENXIO : !want ? -ENOENT : 0))
		sim_fail("bucket %d key %d: open says %d, there is %u", b, k, r, want);
	if (r < 0)
		return;
	id = model_id(&c->obj.meta.etag);
	if (id != want)
		sim_fail("bucket %d key %d: open finds op %u, there is op %u", b, k, id, want);
	model_reads(c->nr, id);
	say("client %d reads op %u", c->nr, id);
	if (slowly)
		client_idle(c, below(80));
	read_all(c, id, slowly);
	if (ops[id].size) {
		uint32_t skew, off = below(ops[id].size);
		uint32_t n = store_read_plan(&c->obj, off, 1 + below(ops[id].size - off), piece_max(), &skew);

		read_piece(c, id, off - skew, n);
	}
	store_close(client_port(c), &c->obj);
	model_reads(c->nr, 0);
}

static void
do_list(struct client *c)
{
	struct model seen;

	model_list(client_port(c), &seen);
	if (memcmp(&seen, &model, sizeof seen) != 0) {
		model_tell_difference(&seen);
		sim_fail("a listing differs from what is published");
	}
}

/* ---- a client ---- */

static void
one_op(struct client *c)
{
	uint32_t w = below(prof.w_put + prof.w_del + prof.w_get + prof.w_list + prof.w_bucket +
			   prof.w_upload + prof.w_attrs);
	int b = one_in(prof.second), k = (int)below((uint32_t)prof.keys);

	if (w < prof.w_put) {
		client_do_put(c, b, k, client_size());
		return;
	}
	w -= prof.w_put;
	if (w < prof.w_del) {
		do_del(c, OP_DEL, b, k);
		return;
	}
	w -= prof.w_del;
	if (w < prof.w_get) {
		do_get(c, b, k, one_in(2));
		return;
	}
	w -= prof.w_get;
	if (w < prof.w_list) {
		do_list(c);
		return;
	}
	w -= prof.w_list;
	if (w < prof.w_upload)
		upload_op(c, b, k);
	else if (w < prof.w_upload + prof.w_attrs)
		attrs_op(c, b, k);
	else
		do_del(c, one_in(2) ? OP_REMOVE : OP_MAKE, 1, -1);
}

static void
choose_port(struct client *c)
{
	static const bool yes = true;

	c->port = (int)below((uint32_t)prof.ports);
	/* Nobody else may stand in the middle of a call there. */
	co_wait(&yes, c->port);
	client_port(c);
}

static void
client_main(int nr)
{
	struct client *c = &clients[nr];

	while (ops_left > 0 && op_nr < OPS_MAX) {
		ops_left--;
		choose_port(c);
		if (!model.bucket[0] && one_in(2))
			do_del(c, OP_MAKE, 0, -1);
		else
			one_op(c);
		if (one_in(3))
			client_idle(c, below(30));
	}
}

void
client_verify(int nr)
{
	struct client *c = &clients[nr];

	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < prof.keys; k++) {
			choose_port(c);
			do_get(c, b, k, false);
		}
	}
}

void
client_prepare(int nr)
{
	struct client *c = &clients[nr];

	choose_port(c);
	do_del(c, OP_MAKE, 0, -1);
	for (int k = (int)below((uint32_t)prof.keys + 1); k > 0; k--)
		client_do_put(c, 0, k - 1, client_size());
	if (prof.w_upload > 10)
		upload_prepare(c);
}

/* What /disks says is free, behind what is held back for snapshots. */
static uint64_t
free_bytes(void)
{
	struct store_unit_info info;

	store_unit_info(sim_store, 0, &info);
	return info.free_bytes;
}

/* While a snapshot is written, it may hold what it reads of a small index. */
enum { FULL_TRIES = 100 };
/* A log that found no room is written again after a second. */
enum { ROOM_TRIES = 200 };

static void
must(struct client *c, enum op_kind kind, int b, int k, const char *what)
{
	/* Time may fly while a snapshot trims the log; a store that has locked itself says it each time. */
	for (int tries = 0; tries < FULL_TRIES; tries++) {
		uint64_t full = counts.index_full;

		do_del(c, kind, b, k);
		if (ops[c->op].answer != -EAGAIN && (kind == OP_DEL || counts.index_full == full))
			break;
		/* What readers may still see of the index is on its way back. */
		client_idle(c, 100);
	}
	if (ops[c->op].answer < 0)
		sim_fail("%s is answered %d by a store at rest", what, ops[c->op].answer);
}

/* However full it is. */
static void
must_delete_one(struct client *c)
{
	struct profile was = prof;

	prof.pre = 0;
	for (int k = 0; k < KEYS_MAX; k++) {
		if (model.id[0][k]) {
			must(c, OP_DEL, 0, k, "a delete");
			break;
		}
	}
	prof = was;
}

void
client_can_write(int nr)
{
	struct client *c = &clients[nr];
	const struct vol *vol = sim_vol();
	struct alloc_stats as;

	choose_port(c);
	if (!model.bucket[0])
		do_del(c, OP_MAKE, 0, -1);
	for (int size = 100; size < 8000; size += 4000) {
		uint64_t again, full = counts.index_full;
		int tries = 0;

		do {
			again = counts.not_now;
			alloc_stats(vol->disk.alloc, &as);
			client_do_put(c, 0, 0, (uint32_t)size);
		} while (!ops[c->op].published && counts.not_now > again && ++tries < 10);
		/* Conditions and aborts are by chance; but the log has room,
		 * and so has the disk if it has. */
		if (tries == 10)
			sim_fail("a store at rest answers: not now");
		alloc_stats(vol->disk.alloc, &as);
		if (ops[c->op].answer == -ENOSPC && counts.index_full == full &&
		    as.free + as.leased > as.held_back + 8)
			sim_fail("no space, but %llu units are free and %llu held back",
				 (unsigned long long)(as.free + as.leased), (unsigned long long)as.held_back);
	}
	if (!disk_failed(&vol->disk))
		must_delete_one(c);
}

void
client_finds_room(int nr)
{
	struct client *c = &clients[nr];
	struct profile was = prof;
	struct alloc_stats as;

	choose_port(c);
	prof.pre = prof.abort = prof.forge = prof.ballast = 0;
	for (uint32_t size = 100; size < 8000; size += 4000) {
		for (int tries = 0;; tries++) {
			uint64_t full = counts.index_full;
			int answer;

			if (model.bucket[0])
				client_do_put(c, 0, 0, size);
			else
				do_del(c, OP_MAKE, 0, -1);
			answer = ops[c->op].answer;
			alloc_stats(sim_vol()->disk.alloc, &as);
			if ((answer != -ENOSPC && answer != -EAGAIN) ||
			    (answer == -ENOSPC &&
			     (counts.index_full != full || as.free + as.leased <= as.held_back + 8)))
				break;
			if (tries == ROOM_TRIES)
				sim_fail("there is room again, and a PUT is answered %d", answer);
			client_idle(c, 20);
			sim_now_ns += 10 * NS_PER_MS;
		}
		counts.found_room += ops[c->op].answer == 0;
	}
	prof = was;
}

void
client_can_empty(int nr)
{
	struct client *c = &clients[nr];
	struct profile was = prof;

	choose_port(c);
	prof.pre = prof.abort = prof.forge = prof.ballast = 0;
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS_MAX && model.bucket[b]; k++) {
			if (model.id[b][k])
				must(c, OP_DEL, b, k, "a delete");
		}
		if (model.bucket[b])
			must(c, OP_REMOVE, b, -1, "the removal of a bucket");
	}
	must(c, OP_MAKE, 0, -1, "a bucket made in an empty store");
	for (uint32_t size = 100; size < 40000; size = size * 8 + 3) {
		uint64_t room;

		for (int tries = 0; tries < FULL_TRIES; tries++) {
			uint64_t full = counts.index_full;

			room = free_bytes();
			client_do_put(c, 0, 0, size);
			if (ops[c->op].answer != -EAGAIN && counts.index_full == full)
				break;
			/* What readers may still see of the index is on its way back. */
			client_idle(c, 100);
		}
		/* A store of one segment may need nearly all of it for its snapshots, and says so. */
		if (ops[c->op].answer == -ENOSPC && room < size + 3 * FMT_UNIT_BYTES)
			break;
		if (ops[c->op].answer)
			sim_fail("a PUT of %u bytes is answered %d by an empty store", size,
				 ops[c->op].answer);
	}
	prof = was;
}

void
clients_begin(void)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &clients[i];

		c->nr = i;
		c->op = 0;
		c->port = 0;
		c->obj.is_open = false;
		c->put.is_started = false;
		memset(c->obj.priv, 0, sizeof c->obj.priv);
		for (int j = 0; j < PIECES; j++)
			c->buf[j] = (struct buf){ .mem = memory[i][j], .cap_bytes = STORE_PIECE };
	}
	self = NULL;
}

void
clients_start(void)
{
	for (int i = 0; i < prof.clients; i++)
		co_start(CO_CLIENT, i, client_main);
}

bool
clients_over(void)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (co_runs(CO_CLIENT, i))
			return false;
	}
	return true;
}
