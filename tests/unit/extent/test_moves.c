/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that go from one engine to another: every kind of record, what changes on the way, the switch, and its books. */
#include "extent/engine.h"
#include "moves_rig.h"

#define BUCKET "b"

static struct names n;
static struct store_slots all, none;

/* All keys are A's, and both have the bucket. */
static int
setup(void **state)
{
	all = all_slots();
	make_pair(224 * MIB);
	start_pair(&all, &none);
	/* Their versions differ, as those of two disks do. */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(bucket_on(B, "other", 1), 0);
		assert_int_equal(bucket_remove(at(B), "other"), 0);
	}
	assert_int_equal(bucket_on(A, BUCKET, 1), 0);
	return bucket_on(B, BUCKET, 1);
}

static int
teardown(void **state)
{
	stop_pair();
	remove_pair();
	return 0;
}

/* Both again, and from now on all is B's. */
static void
restart_moved(void)
{
	stop_pair();
	start_pair(&none, &all);
}

static int
put(const char *key, uint64_t size, uint64_t seed, const char *attrs)
{
	struct put_args a = { .bucket = BUCKET,
			      .key = key,
			      .size = size,
			      .seed = seed,
			      .etag = etag_of((uint32_t)seed),
			      .attrs = attrs,
			      .attrs_len = (uint32_t)strlen(attrs) };

	return obj_put(at(A), &a);
}

static int
send(const char *key)
{
	return send_key(A, B, BUCKET, key);
}

/* ---- kinds of records ---- */

static void
test_sizes(void **state)
{
	static const uint64_t sizes[] = {
		0,      1,   256,     257,     5000,         65536,    65537,
		200000, MIB, MIB + 1, 5 * MIB, 9 * MIB + 77, 64 * MIB, 66 * MIB + 1
	};
	const int nr = sizeof sizes / sizeof sizes[0];
	char key[32];

	for (int i = 0; i < nr; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		assert_int_equal(put(key, sizes[i], (uint64_t)i, i % 2 ? "some attributes" : ""), 0);
		assert_int_equal(send(key), 0);
		assert_int_equal(sent.bytes, sizes[i] > STORE_INLINE_MAX ? sizes[i] : 0);
		assert_int_equal(sent.changes, 1);
		must_be_same(BUCKET, key);
		assert_int_equal(obj_check(at(B), BUCKET, key, sizes[i], (uint64_t)i), 0);
		assert_int_equal(send(key), 0);
		assert_int_equal(sent.changes, 0);
	}
	assert_int_equal(list_names(B, BUCKET, NULL, NULL, 10, false, &n), 0);
	restart_moved();
	assert_int_equal(list_names(B, BUCKET, NULL, NULL, 10, false, &n), nr);
	assert_int_equal(list_names(A, BUCKET, NULL, NULL, 10, false, &n), 0);
	for (int i = 0; i < nr; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		must_be_same(BUCKET, key);
		assert_int_equal(obj_check(at(B), BUCKET, key, sizes[i], (uint64_t)i), 0);
		assert_int_equal(remove_key(A, BUCKET, key), 0);
		assert_int_equal(remove_key(B, BUCKET, key), -EPERM);
	}
	assert_int_equal(walk_names(A, NULL, &n), 0);
	assert_int_equal(unit_number(A, "leftover_bytes"), 0);
}

static void
start_packing(void)
{
	for (int i = 0; i < 2; i++)
		conf[i].disks.pack_rate = 1024 * MIB;
	stop_pair();
	start_pair(&all, &none);
}

static void
wait_packed(int engine)
{
	wait_usual(PACK_USUAL_NS, unit_number(engine, "packed_objects") >= 50)
		loop_for(&l, 10 * NS_PER_MS);
}

/* Small objects that share units, there and here. */
static void
test_packed(void **state)
{
	char key[32];

	start_packing();
	for (int i = 0; i < 60; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		assert_int_equal(put(key, 3000 + (uint64_t)i, (uint64_t)i, ""), 0);
	}
	wait_packed(A);
	for (int i = 0; i < 60; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		assert_int_equal(send(key), 0);
		must_be_same(BUCKET, key);
		assert_int_equal(obj_check(at(B), BUCKET, key, 3000 + (uint64_t)i, (uint64_t)i), 0);
	}
	wait_packed(B);
	for (int i = 0; i < 60; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		assert_int_equal(send(key), 0);
		assert_int_equal(sent.changes, 0);
		assert_int_equal(obj_check(at(B), BUCKET, key, 3000 + (uint64_t)i, (uint64_t)i), 0);
	}
	conf[A].disks.pack_rate = conf[B].disks.pack_rate = 0;
}

/* In more pieces than a record names, there and here; and of more than a chunk. */
static void
test_pieces(void **state)
{
	make_crumbs(at(A));
	make_crumbs(at(B));
	assert_int_equal(put("k", 3 * MIB, 1, "attributes"), 0);
	assert_int_equal(put("l", 66 * MIB, 2, "attributes"), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(send("k"), 0);
		assert_int_equal(send("l"), 0);
		assert_int_equal(sent.changes, !i);
	}
	restart_moved();
	must_be_same(BUCKET, "k");
	must_be_same(BUCKET, "l");
	assert_int_equal(obj_check(at(B), BUCKET, "k", 3 * MIB, 1), 0);
	assert_int_equal(obj_check(at(B), BUCKET, "l", 66 * MIB, 2), 0);
}

/* What is left over is sent to nobody, and nothing is sent to its own home. */
static void
test_wrong_way(void **state)
{
	assert_int_equal(put("k", 3000, 1, ""), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(send_key(B, A, BUCKET, "k"), -EXDEV);
	switch_slots(A, B, &all);
	assert_int_equal(send("k"), -EXDEV);
	assert_int_equal(remove_key(B, BUCKET, "k"), -EPERM);
	stop_pair();
	start_pair(&all, &all);
	assert_int_equal(send("k"), 0); /* equal: nothing to be done */
	assert_int_equal(put("k", 4000, 1, ""), 0);
	assert_int_equal(send("k"), -EPERM);
}

/* Other attributes, other bytes, gone. */
static void
test_overwritten(void **state)
{
	assert_int_equal(put("k", 3 * MIB, 1, "one"), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(set_attrs(A, BUCKET, "k", "two", 3), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.bytes, 0);
	assert_int_equal(sent.changes, 1);
	must_be_same(BUCKET, "k");
	assert_int_equal(obj_check(at(B), BUCKET, "k", 3 * MIB, 1), 0);
	/* Sent whole, it is known to have the same bytes all the same. */
	assert_int_equal(remove_key(B, BUCKET, "k"), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.bytes, 3 * MIB);
	assert_int_equal(set_attrs(A, BUCKET, "k", "three", 5), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.bytes, 0);
	must_be_same(BUCKET, "k");
	assert_int_equal(put("k", 3 * MIB, 2, "four"), 0);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
	assert_int_equal(obj_check(at(B), BUCKET, "k", 3 * MIB, 2), 0);
	assert_int_equal(put("k", 10, 3, "five"), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(set_attrs(A, BUCKET, "k", "six", 3), 0);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
	assert_int_equal(obj_check(at(B), BUCKET, "k", 10, 3), 0);
	assert_int_equal(obj_delete(at(A), BUCKET, "k", NULL), 1);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(unit_number(B, "leftover_objects"), 0);
	assert_int_equal(unit_number(B, "leftover_bytes"), 0);
}

/* ---- uploads ---- */

static uint8_t id[3][STORE_UPLOAD_ID_BYTES];

static void
test_upload(void **state)
{
	static struct store_complete c;

	assert_int_equal(upload_make(A, BUCKET, "k", "its attributes", 14, id[0]), 0);
	assert_int_equal(upload_make(A, BUCKET, "k", NULL, 0, id[1]), 0);
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 1, 300000, 7), 0);
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 2, 0, 7), 0);
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 3, 5, 7), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 5);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 0);
	/* One is replaced, one comes, an upload goes. */
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 1, 400000, 7), 0);
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 4, 70000, 7), 0);
	assert_int_equal(upload_abort(A, BUCKET, "k", id[1]), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 3);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(unit_number(B, "leftover_bytes"), 470000 + 2 * QUOTA_PART_BYTES);
	restart_moved();
	assert_int_equal(used(BUCKET).uploads, 1);
	assert_int_equal(used(BUCKET).bytes, 470000 + 2 * QUOTA_PART_BYTES);
	assert_int_equal(list_names(B, BUCKET, NULL, NULL, 10, true, &n), 1);
	{
		struct store_key k = key_of(BUCKET, "k");
		struct store_stat s = { .attrs_len = 0 };
		char attrs[32];

		at(B);
		check(store_upload_stat(l.p, &k, id[0], attrs, sizeof attrs, &s) > 0);
		assert_int_equal(s.op.result, 0);
		assert_int_equal(s.attrs_len, 14);
		assert_memory_equal(attrs, "its attributes", 14);
	}
	assert_int_equal(part_put(B, BUCKET, "k", id[0], 5, 1000, 7), 0);
	assert_int_equal(upload_complete(B, BUCKET, "k", id[0], 5, 7, &c), 0);
	assert_int_equal(c.size_bytes, 471005);
	assert_int_equal(used(BUCKET).bytes, 471005);
	assert_int_equal(used(BUCKET).uploads, 0);
	assert_int_equal(used(BUCKET).objects, 1);
	assert_int_equal(remove_key(A, BUCKET, "k"), 0);
	assert_int_equal(walk_names(A, NULL, &n), 0);
}

/* More parts than a record names. */
#define PARTS 70

static void
make_of_parts(const char *key, uint64_t seed)
{
	static struct store_complete c;

	assert_int_equal(upload_make(A, BUCKET, key, NULL, 0, id[0]), 0);
	for (uint32_t i = 1; i <= PARTS + 1; i++)
		assert_int_equal(part_put(A, BUCKET, key, id[0], i, 1000 * i, seed), 0);
	assert_int_equal(upload_complete(A, BUCKET, key, id[0], PARTS, seed, &c), 0);
}

static void
test_of_parts(void **state)
{
	static struct store_complete c;

	make_of_parts("k", 1);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
	assert_int_equal(sent.changes, PARTS + 2);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 0);
	/* Other attributes: the parts stay where they are. */
	assert_int_equal(set_attrs(A, BUCKET, "k", "new", 3), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(sent.changes, 1);
	must_be_same(BUCKET, "k");
	loop_for(&l, 200 * NS_PER_MS);
	must_be_same(BUCKET, "k");
	assert_int_equal(unit_number(B, "leftover_bytes"), 1000 * PARTS * (PARTS + 1) / 2);
	/* One whose upload was on its way here when it was completed. */
	assert_int_equal(upload_make(A, BUCKET, "l", "x", 1, id[1]), 0);
	assert_int_equal(part_put(A, BUCKET, "l", id[1], 1, 500, 2), 0);
	assert_int_equal(part_put(A, BUCKET, "l", id[1], 2, 600, 2), 0);
	assert_int_equal(part_put(A, BUCKET, "l", id[1], 3, 700, 2), 0);
	assert_int_equal(send("l"), 0);
	assert_int_equal(upload_complete(A, BUCKET, "l", id[1], 2, 2, &c), 0);
	assert_int_equal(send("l"), 0);
	assert_int_equal(sent.changes, 1);
	must_be_same(BUCKET, "l");
	assert_int_equal(send("l"), 0);
	assert_int_equal(sent.changes, 0);
	restart_moved();
	must_be_same(BUCKET, "k");
	must_be_same(BUCKET, "l");
	assert_int_equal(used(BUCKET).objects, 2);
	assert_int_equal(used(BUCKET).uploads, 0);
	assert_int_equal(used(BUCKET).bytes, 1000 * PARTS * (PARTS + 1) / 2 + 1100);
	/* Who lost the answer and asks again is told so, here too. */
	assert_int_equal(upload_complete(B, BUCKET, "l", id[1], 2, 2, &c), 0);
	assert_true(c.was_done);
	assert_int_equal(remove_all(A, NULL), 0);
	assert_int_equal(walk_names(A, NULL, &n), 0);
	assert_int_equal(obj_delete(at(B), BUCKET, "k", NULL), 1);
	assert_int_equal(obj_delete(at(B), BUCKET, "l", NULL), 1);
	assert_int_equal(used(BUCKET).bytes, 0);
}

/* It was left over and is removed, and comes again at once: what goes of the old one is not what came. */
static void
test_removed_and_back(void **state)
{
	static struct store_complete c;

	make_of_parts("k", 1);
	assert_int_equal(upload_make(A, BUCKET, "l", NULL, 0, id[1]), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, BUCKET, "l", id[1], i, 1000, 2), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(send("k"), 0);
		assert_int_equal(send("l"), 0);
		assert_int_equal(remove_key(B, BUCKET, "k"), 0);
		assert_int_equal(remove_key(B, BUCKET, "l"), 0);
		assert_int_equal(send("k"), 0);
		assert_int_equal(send("l"), 0);
		loop_for(&l, 60 * NS_PER_MS);
		must_be_same(BUCKET, "k");
		assert_int_equal(send("l"), 0);
		assert_int_equal(sent.changes, 0);
		assert_int_equal(unit_number(B, "leftover_bytes"),
				 1000 * PARTS * (PARTS + 1) / 2 + QUOTA_PART_BYTES * PARTS);
		assert_int_equal(remove_key(B, BUCKET, "k"), 0);
		assert_int_equal(remove_key(B, BUCKET, "l"), 0);
		loop_for(&l, (uint64_t)i * 10 * NS_PER_MS);
	}
	assert_int_equal(send("l"), 0);
	restart_moved();
	assert_int_equal(upload_complete(B, BUCKET, "l", id[1], PARTS, 2, &c), 0);
}

/* ---- while clients write ---- */

static int told;
static char told_key[64];

static void
on_changed(void *cookie, const struct store_key *k)
{
	told++;
	snprintf(told_key, sizeof told_key, "%.*s", k->key_len, k->key);
	assert_int_equal(k->bucket_len, strlen(BUCKET));
	assert_memory_equal(k->bucket, BUCKET, k->bucket_len);
}

static int
told_of(const char *key)
{
	int nr = told;

	if (nr)
		assert_string_equal(told_key, key);
	told = 0;
	return nr;
}

static void
test_watch(void **state)
{
	static struct store_complete c;
	struct store_slots one = no_slots;
	struct store_slots_op o = { .slots = &one, .changed = on_changed };

	slots_add(&one, slot_of_key(BUCKET, "k"));
	assert_int_equal(put("k", 100, 1, ""), 0);
	assert_int_equal(tell(A, SLOTS_WATCH, &o), 0);
	assert_int_equal(put("not this one", 100, 1, ""), 0);
	assert_int_equal(told_of("k"), 0);
	assert_int_equal(put("k", 100000, 1, ""), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(put("k", 70 * MIB, 1, ""), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(set_attrs(A, BUCKET, "k", "x", 1), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(obj_delete(at(A), BUCKET, "k", NULL), 1);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(upload_make(A, BUCKET, "k", NULL, 0, id[0]), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(part_put(A, BUCKET, "k", id[0], 1, 5, 1), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(upload_complete(A, BUCKET, "k", id[0], 1, 1, &c), 0);
	assert_true(told_of("k") > 0);
	assert_int_equal(upload_make(A, BUCKET, "k", NULL, 0, id[0]), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(upload_abort(A, BUCKET, "k", id[0]), 0);
	assert_int_equal(told_of("k"), 1);
	o.slots = NULL;
	assert_int_equal(tell(A, SLOTS_WATCH, &o), 0);
	assert_int_equal(put("k", 100, 1, ""), 0);
	assert_int_equal(told_of("k"), 0);
}

/* It is replaced while its bytes are read: what was there when it began arrives, and then what came. */
static int paces;

static uint64_t
overwrite_meanwhile(struct store_send *s, uint32_t bytes)
{
	return paces++ == 2 ? 20 * NS_PER_MS : 0;
}

static void
test_overwritten_meanwhile(void **state)
{
	struct store_slots_op o = { .slots = &all, .changed = on_changed };
	int r;

	paces = told = 0;
	assert_int_equal(put("k", 4 * MIB, 1, ""), 0);
	assert_int_equal(tell(A, SLOTS_WATCH, &o), 0);
	send_begin(&sent, BUCKET, "k");
	sent.pace = overwrite_meanwhile;
	r = ops()->send(port[A], port[B], &sent);
	assert_int_equal(r, 0);
	wait_until(paces >= 3)
		loop_turn(&l);
	assert_int_equal(put("k", 2 * MIB, 2, ""), 0);
	assert_non_null(sent.op.port); /* nobody waited */
	assert_int_equal(send_wait(&sent, r), 0);
	assert_int_equal(told_of("k"), 1);
	assert_int_equal(obj_check(at(B), BUCKET, "k", 4 * MIB, 1), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(obj_check(at(B), BUCKET, "k", 2 * MIB, 2), 0);
	must_be_same(BUCKET, "k");
}

static uint64_t
stop_soon(struct store_send *s, uint32_t bytes)
{
	return paces++ == 2 ? STORE_SEND_STOP : 0;
}

static void
test_stopped(void **state)
{
	int r;

	paces = 0;
	assert_int_equal(put("k", 4 * MIB, 1, ""), 0);
	send_begin(&sent, BUCKET, "k");
	sent.pace = stop_soon;
	r = ops()->send(port[A], port[B], &sent);
	assert_int_equal(send_wait(&sent, r), -EINTR);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
}

/* ---- the switch ---- */

static void
wait_a_while(void)
{
	loop_for(&l, 50 * NS_PER_MS);
}

/* A change that is begun and not waited for. */
struct change {
	struct store_put put;
	struct store_del del;
	struct store_upload up;
};

static void
test_freeze(void **state)
{
	static struct change w, first, late;
	struct store_slots one = no_slots;
	struct store_slots_op o = { .slots = &one, .changed = on_changed };
	struct store_key k = key_of(BUCKET, "k"), other = key_of(BUCKET, "other");
	struct store_commit c = { .inline_data = "hello", .inline_len = 5 };

	told = 0;
	slots_add(&one, slot_of_key(BUCKET, "k"));
	assert_int_equal(tell(A, SLOTS_WATCH, &o), 0);
	/* What was begun before it is told when the freeze is done; here it shares a block, since another one is being
	 * written. */
	at(A);
	assert_int_equal(store_put_init(l.p, &first.put, &other, 5), 0);
	assert_int_equal(store_put_init(l.p, &w.put, &k, 5), 0);
	w.put.op.done = first.put.op.done = on_put;
	assert_int_equal(store_put_commit(l.p, &first.put, &c), 0);
	assert_int_equal(store_put_commit(l.p, &w.put, &c), 0);
	assert_int_equal(tell(A, SLOTS_FREEZE, &o), 0);
	assert_int_equal(told_of("k"), 1);
	op_wait(&l, &w.put.op);
	/* Others wait, those of other slots do not. */
	assert_int_equal(store_put_init(l.p, &late.put, &k, 5), 0);
	late.put.op.done = late.del.op.done = late.up.op.done = on_put;
	assert_int_equal(store_put_commit(l.p, &late.put, &c), 0);
	assert_int_equal(store_upload_create(l.p, &k, NULL, 0, &late.up), 0);
	assert_int_equal(put("l", 100, 1, ""), 0);
	wait_a_while();
	assert_non_null(late.put.op.port);
	assert_non_null(late.up.op.port);
	assert_int_equal(told_of("k"), 0);
	assert_int_equal(obj_check(at(A), BUCKET, "k", 5, 0), -EILSEQ); /* it is read */
	assert_int_equal(tell(A, SLOTS_THAW, &o), 0);
	assert_int_equal(op_wait(&l, &late.put.op), 0);
	assert_int_equal(op_wait(&l, &late.up.op), 0);
	assert_int_equal(told_of("k"), 2);
	/* Not for ever, and a delete no longer than a PUT. */
	assert_int_equal(tell(A, SLOTS_FREEZE, &o), 0);
	at(A);
	assert_int_equal(store_delete(l.p, &k, NULL, &late.del), 0);
	assert_int_equal(store_upload_abort(l.p, &k, late.up.id, &late.up), 0);
	assert_int_equal(put("k", 100, 1, ""), -EAGAIN);
	/* They came before it, and are judged no later: a turn takes a tenth of a millisecond. */
	for (int turns = 0; (late.del.op.port || late.up.op.port) && turns < 5000; turns++)
		loop_turn(&l);
	assert_true(!late.del.op.port && !late.up.op.port);
	assert_int_equal(late.del.op.result, -EAGAIN);
	assert_int_equal(late.up.op.result, -EAGAIN);
	/* Behind the switch it is somebody else's. */
	at(A);
	assert_int_equal(store_put_init(l.p, &late.put, &k, 5), 0);
	assert_int_equal(store_put_commit(l.p, &late.put, &c), 0);
	assert_int_equal(store_delete(l.p, &k, NULL, &late.del), 0);
	wait_a_while();
	assert_int_equal(send("k"), 0);
	switch_slots(A, B, &one);
	assert_int_equal(op_wait(&l, &late.put.op), -EXDEV);
	assert_int_equal(op_wait(&l, &late.del.op), -EXDEV);
	assert_int_equal(obj_delete(at(B), BUCKET, "k", NULL), 1);
	assert_int_equal(told_of("k"), 0);
}

/* What is put at the target behind the switch is later than what came; and no id is made twice. */
static void
test_numbers(void **state)
{
	struct put_args a = { .bucket = BUCKET, .key = "k", .size = 100, .seed = 1 }, b = a;

	for (int i = 0; i < 20; i++)
		assert_int_equal(obj_put(at(A), &a), 0);
	assert_int_equal(send("k"), 0);
	switch_slots(A, B, &all);
	assert_int_equal(obj_put(at(B), &b), 0);
	assert_true(b.ret_version > a.ret_version);
	/* The first of each, in one start. */
	stop_pair();
	start_pair(&all, &all);
	assert_int_equal(upload_make(A, BUCKET, "k", NULL, 0, id[0]), 0);
	assert_int_equal(upload_make(B, BUCKET, "k", NULL, 0, id[1]), 0);
	assert_memory_not_equal(id[0], id[1], STORE_UPLOAD_ID_BYTES);
}

/* A switch back and forth, with objects, uploads, parts and a quota: what is counted is always all, and once. */
static void
must_count(uint64_t objects, uint64_t bytes, uint64_t uploads)
{
	struct store_use u = used(BUCKET);

	assert_int_equal(u.objects, objects);
	assert_int_equal(u.bytes, bytes);
	assert_int_equal(u.uploads, uploads);
}

/* So many objects at most; what is copied is not judged by it. */
static void
bound_objects(uint64_t objects)
{
	static struct store_bucket_set op[2];
	struct store_use max = { objects, STORE_UNBOUNDED, STORE_UNBOUNDED };

	for (int i = 0; i < 2; i++) {
		struct store_port *p = at(i)->p;
		int r;

		op[i].op.done = on_put;
		r = store_bucket_set_quota(p, BUCKET, strlen(BUCKET), &max, &op[i]);
		assert_int_equal(r == 0 ? op_wait(&l, &op[i].op) : r, 0);
	}
	assert_true(quota_is_active(book));
}

static void
test_books(void **state)
{
	struct store_slots half = half_slots(), others = not_those(&half);
	uint64_t bytes = 0;
	int objects = 0, uploads = 0;
	char key[32];

	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "key-%d", i);
		assert_int_equal(put(key, 1000 * (uint64_t)i, 1, ""), 0);
		bytes += 1000 * (uint64_t)i;
		objects++;
	}
	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof key, "upload-%d", i);
		assert_int_equal(upload_make(A, BUCKET, key, NULL, 0, id[0]), 0);
		assert_int_equal(part_put(A, BUCKET, key, id[0], 1, 777, 1), 0);
		bytes += QUOTA_PART_BYTES;
		uploads++;
	}
	bound_objects(41);
	for (int round = 0; round < 3; round++) {
		int from = round % 2, to = !from;

		must_count((uint64_t)objects, bytes, (uint64_t)uploads);
		assert_true(send_all(from, to, &half) > 0);
		must_count((uint64_t)objects, bytes, (uint64_t)uploads);
		switch_slots(from, to, &half);
		must_count((uint64_t)objects, bytes, (uint64_t)uploads);
		assert_int_equal(unit_number(to, "leftover_objects"), 0);
		assert_int_equal(unit_number(A, "objects") + unit_number(B, "objects"), objects);
		if (round == 1) {
			/* What is left over goes by and by; and it may stay. */
			assert_int_equal(remove_all(from, &half), 0);
			assert_int_equal(unit_number(from, "leftover_objects"), 0);
			assert_int_equal(unit_number(from, "leftover_bytes"), 0);
		}
		for (int i = 0; i < 40; i += 3) {
			snprintf(key, sizeof key, "key-%d", i);
			at(slots_has(&half, slot_of_key(BUCKET, key)) ? to : A);
			if (obj_delete(&l, BUCKET, key, NULL) == 1) {
				objects--;
				bytes -= 1000 * (uint64_t)i;
			}
			if (i % 2 == round % 2) {
				assert_int_equal(put_simple(&l, BUCKET, key, 1000 * (uint64_t)i, 9), 0);
				objects++;
				bytes += 1000 * (uint64_t)i;
			}
		}
		must_count((uint64_t)objects, bytes, (uint64_t)uploads);
	}
	bound_objects((uint64_t)objects);
	assert_int_equal(put_simple(at(slots_has(&half, slot_of_key(BUCKET, "one more")) ? B : A), BUCKET,
				    "one more", 1, 1),
			 -EDQUOT);
	/* A start counts the same. */
	stop_pair();
	start_pair(&others, &half);
	must_count((uint64_t)objects, bytes, (uint64_t)uploads);
	assert_int_equal(list_names(A, BUCKET, NULL, NULL, 10, false, &n) +
				 list_names(B, BUCKET, NULL, NULL, 10, false, &n),
			 objects);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_sizes),       T(test_packed),
		T(test_pieces),      T(test_wrong_way),
		T(test_overwritten), T(test_upload),
		T(test_of_parts),    T(test_removed_and_back),
		T(test_watch),       T(test_overwritten_meanwhile),
		T(test_stopped),     T(test_freeze),
		T(test_numbers),     T(test_books),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_moves", tests, NULL, NULL);
}
