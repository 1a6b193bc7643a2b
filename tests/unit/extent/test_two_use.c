/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine counts of keys with two copies, by slot: after whatever happens to them the counts are what a look at all records says. */
#include "moves_rig.h"

#include "extent/engine.h"
#include "extent/log/vol.h"

#define KEYS 60
#define PART QUOTA_PART_BYTES

static const char *
name_of(int i)
{
	static char name[32];

	snprintf(name, sizeof name, "key-%d", i);
	return name;
}

static uint64_t
bytes_of_parts(const struct tree *t, const uint8_t *upload_key, size_t len)
{
	uint8_t key[CHUNK_KEY_BYTES];
	struct tree_cursor c;
	uint64_t bytes = 0;

	key_part(key, upload_key + len - CHUNK_ID_BYTES, 0);
	tree_cursor_init(&c, t, tree_root(t));
	for (bool there = tree_seek(&c, key, sizeof key, false);
	     there && memcmp(c.key, key, 1 + CHUNK_ID_BYTES) == 0; there = tree_next(&c))
		bytes += quota_part_bytes(((const struct rec *)c.rec)->size_bytes);
	return bytes;
}

static void
recount(const struct vol *vol, uint8_t type, struct store_use *use)
{
	struct tree_cursor c;

	tree_cursor_init(&c, vol->tree, tree_root(vol->tree));
	for (bool there = tree_seek(&c, &type, 1, false); there && (uint8_t)c.key[0] == type;
	     there = tree_next(&c)) {
		struct slot_name n = slot_name((const uint8_t *)c.key, c.key_len);
		struct store_use *u = &use[name_place(&n) - STORE_SLOT_NR];

		u->objects += type == KEY_OBJECT2;
		u->bytes += type == KEY_OBJECT2
				    ? ((const struct rec *)c.rec)->size_bytes
				    : bytes_of_parts(vol->tree, (const uint8_t *)c.key, c.key_len);
	}
}

/* Every slot has what a recount finds; in all, there are so many objects and bytes. */
static void
must_have(int engine, uint64_t objects, uint64_t bytes)
{
	static struct store_use want[STORE_SLOT_NR];
	struct vol *vol = extent_store(st[engine])->vol;
	uint64_t all_objects = 0, all_bytes = 0;

	loop_for(at(engine), 5 * NS_PER_MS);
	memset(want, 0, sizeof want);
	recount(vol, KEY_OBJECT2, want);
	recount(vol, KEY_UPLOAD2, want);
	for (unsigned i = 0; i < STORE_SLOT_NR; i++) {
		struct store_use is;

		ops()->two_use(st[engine], i, &is);
		assert_int_equal(is.objects, want[i].objects);
		assert_int_equal(is.bytes, want[i].bytes);
		all_objects += is.objects;
		all_bytes += is.bytes;
	}
	assert_int_equal(all_objects, objects);
	assert_int_equal(all_bytes, bytes);
}

static void
make_buckets(void)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bucket_on(i, "b", 1), 0);
		assert_int_equal(bucket_on(i, "2b", 2), 0);
	}
}

/* A thing that all that follows begins with: sixty objects of 100 bytes, and as many with one copy, which do not count. */
static void
begin(const struct store_slots *own_a, const struct store_slots *own_b)
{
	make_pair(256 * MIB);
	start_pair(own_a, own_b);
	make_buckets();
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(put_simple(at(A), "2b", name_of(i), 100, (uint64_t)i), 0);
		assert_int_equal(put_simple(at(A), "b", name_of(i), 1000, (uint64_t)i), 0);
	}
	must_have(A, KEYS, KEYS * 100);
	must_have(B, 0, 0);
}

static void
finish(void)
{
	stop_pair();
	remove_pair();
}

static void
test_objects(void **state)
{
	struct store_slots all = all_slots();

	begin(&all, &no_slots);
	for (int i = 0; i < KEYS; i += 2)
		assert_int_equal(put_simple(at(A), "2b", name_of(i), 300, (uint64_t)i), 0);
	must_have(A, KEYS, KEYS * 200);
	for (int i = 0; i < KEYS; i += 3)
		assert_int_equal(obj_delete(at(A), "2b", name_of(i), NULL), 1);
	assert_int_equal(obj_delete(at(A), "2b", name_of(0), NULL), 0);
	must_have(A, 40, 40 * 200);
	/* Of several chunks, and with other attributes. */
	assert_int_equal(put_simple(at(A), "2b", "large", 70 * MIB, 1), 0);
	assert_int_equal(set_attrs(A, "2b", "large", "changed", 7), 0);
	must_have(A, 41, 40 * 200 + 70 * MIB);
	stop_pair();
	start_pair(&all, &no_slots);
	must_have(A, 41, 40 * 200 + 70 * MIB);
	finish();
}

static void
test_uploads(void **state)
{
	struct store_slots all = all_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES], other[STORE_UPLOAD_ID_BYTES];
	struct store_complete c;
	struct store_use is;
	uint64_t had = KEYS * 100;

	begin(&all, &no_slots);
	assert_int_equal(upload_make(A, "2b", "whole", NULL, 0, id), 0);
	must_have(A, KEYS, had);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(part_put(A, "2b", "whole", id, i, 1000 * i, 4), 0);
	must_have(A, KEYS, had + 3 * PART);
	assert_int_equal(part_put(A, "2b", "whole", id, 4, 50, 4), 0);
	assert_int_equal(part_put(A, "2b", "whole", id, 4, 70, 4), 0);
	must_have(A, KEYS, had + 4 * PART);
	assert_int_equal(upload_make(A, "2b", "whole", NULL, 0, other), 0);
	assert_int_equal(part_put(A, "2b", "whole", other, 1, 500, 4), 0);
	stop_pair();
	start_pair(&all, &no_slots);
	must_have(A, KEYS, had + 5 * PART);
	/* The fourth part is not named, and goes. */
	assert_int_equal(upload_complete(A, "2b", "whole", id, 3, 4, &c), 0);
	must_have(A, KEYS + 1, had + 6000 + PART);
	assert_int_equal(upload_abort(A, "2b", "whole", other), 0);
	must_have(A, KEYS + 1, had + 6000);
	/* One that ends with its bucket. */
	assert_int_equal(upload_make(A, "2b", "up", NULL, 0, id), 0);
	assert_int_equal(part_put(A, "2b", "up", id, 1, 5000, 5), 0);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(obj_delete(at(A), "2b", name_of(i), NULL), 1);
	assert_int_equal(obj_delete(at(A), "2b", "whole", NULL), 1);
	must_have(A, 0, PART);
	assert_int_equal(bucket_remove(at(A), "2b"), 0);
	wait_until((ops()->two_use(st[A], slot_of_key("2b", "up") - STORE_SLOT_NR, &is), !is.bytes))
		loop_turn(&l);
	must_have(A, 0, 0);
	finish();
}

/* Who has a slot is not what counts: what is there does. */
static void
test_moves(void **state)
{
	struct store_slots all = all_slots(), half = half_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t in;

	begin(&all, &no_slots);
	assert_int_equal(upload_make(A, "2b", "up", NULL, 0, id), 0);
	assert_int_equal(part_put(A, "2b", "up", id, 1, 5000, 5), 0);
	assert_true(send_all(A, B, &all) > 0);
	must_have(A, KEYS, KEYS * 100 + PART);
	must_have(B, KEYS, KEYS * 100 + PART);
	switch_slots(A, B, &half);
	must_have(A, KEYS, KEYS * 100 + PART);
	must_have(B, KEYS, KEYS * 100 + PART);
	/* What is changed at its first is sent to the second, removals too. */
	for (int i = 0; i < KEYS; i += 2) {
		int at_engine = slots_has(&half, slot_of_key("2b", name_of(i))) ? B : A;

		if (i % 4)
			assert_int_equal(obj_delete(at(at_engine), "2b", name_of(i), NULL), 1);
		else
			assert_int_equal(put_simple(at(at_engine), "2b", name_of(i), 300, 7), 0);
		assert_int_equal(send_key(at_engine, !at_engine, "2b", name_of(i)), 0);
	}
	must_have(A, 45, 30 * 100 + 15 * 300 + PART);
	must_have(B, 45, 30 * 100 + 15 * 300 + PART);
	/* What is left over goes, and the rest stays. */
	assert_int_equal(remove_all(A, &half), 0);
	in = 0;
	for (int i = 0; i < KEYS; i++)
		in += i % 4 != 2 && !slots_has(&half, slot_of_key("2b", name_of(i)));
	loop_for(at(A), 5 * NS_PER_MS);
	for (unsigned i = 0; i < STORE_SLOT_NR; i++) {
		struct store_use is;

		ops()->two_use(st[A], i, &is);
		assert_true(!slots_has(&half, STORE_SLOT_NR + i) || (!is.objects && !is.bytes));
		in -= is.objects;
	}
	assert_int_equal(in, 0);
	finish();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_uploads),
		cmocka_unit_test(test_moves),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_two_use", tests, NULL, NULL);
}
