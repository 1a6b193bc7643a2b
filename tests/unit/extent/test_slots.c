/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine shows, counts and takes when it is told which slots are its own, and the walk over what is there. */
#include "moves_rig.h"

#define KEYS 60

static struct names n;

static void
name_of(char name[32], int i)
{
	snprintf(name, 32, "%c/key-%d", 'a' + i % 6, i);
}

/* Sixty objects of 100 bytes, made by whoever has all slots; how many of them are in these. */
static int
fill_a(const struct store_slots *slots)
{
	int in = 0;

	start_pair(NULL, NULL);
	assert_int_equal(bucket_make(at(A), "b"), 0);
	for (int i = 0; i < KEYS; i++) {
		char name[32];

		name_of(name, i);
		assert_int_equal(put_simple(at(A), "b", name, 100, (uint64_t)i), 0);
		in += slots_has(slots, slot_of_key("b", name));
	}
	stop_pair();
	return in;
}

static void
test_lists(void **state)
{
	struct store_slots own = half_slots(), others = not_those(&own), all = all_slots();
	int in;

	make_pair(64 * MIB);
	in = fill_a(&own);
	assert_true(in > 10 && in < KEYS - 10);
	start_pair(&own, NULL);
	for (uint32_t max = 1; max < 64; max += 20)
		assert_int_equal(list_names(A, "b", NULL, NULL, max, false, &n), in);
	for (int i = 0; i < n.nr; i++)
		assert_true(slots_has(&own, slot_of_key("b", n.name[i])));
	assert_int_equal(list_names(A, "b", NULL, &others, 10, false, &n), KEYS - in);
	assert_int_equal(list_names(A, "b", NULL, &all, 10, false, &n), KEYS);
	/* A prefix is there for what is own behind it. */
	assert_int_equal(list_names(A, "b", "/", NULL, 10, false, &n), 6);
	own = no_slots;
	for (int i = 0; i < KEYS; i++) {
		char name[32];

		name_of(name, i);
		if (name[0] != 'c')
			slots_add(&own, slot_of_key("b", name));
	}
	assert_int_equal(list_names(A, "b", "/", &own, 2, false, &n), 5);
	assert_string_equal(n.name[2], "d/");
	stop_pair();
	remove_pair();
}

/* In all, and of which slots. */
static void
test_walk(void **state)
{
	struct store_slots own = half_slots(), others = not_those(&own);
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int in;

	make_pair(64 * MIB);
	in = fill_a(&own);
	start_pair(NULL, NULL);
	/* Two uploads of a key without an object, one of a key with one; and such as begin like another one. */
	assert_int_equal(upload_make(A, "b", "a", NULL, 0, id), 0);
	assert_int_equal(upload_make(A, "b", "a", NULL, 0, id), 0);
	assert_int_equal(upload_make(A, "b", "a/key-0", NULL, 0, id), 0);
	assert_int_equal(bucket_make(at(A), "bb"), 0);
	assert_int_equal(upload_make(A, "bb", "a", NULL, 0, id), 0);
	assert_int_equal(walk_names(A, NULL, &n), KEYS + 2);
	for (int i = 0; i + 1 < n.nr; i++)
		assert_true(strcmp(n.name[i], n.name[i + 1]) < 0);
	assert_string_equal(n.name[0], "b/a");
	assert_string_equal(n.name[1], "b/a/key-0");
	assert_string_equal(n.name[KEYS + 1], "bb/a");
	in += slots_has(&own, slot_of_key("b", "a")) + slots_has(&own, slot_of_key("bb", "a"));
	assert_int_equal(walk_names(A, &own, &n), in);
	for (int i = 0; i < n.nr; i++)
		assert_true(slots_has(
			&own, slot_of_key(n.name[i][1] == '/' ? "b" : "bb", strchr(n.name[i], '/') + 1)));
	assert_int_equal(walk_names(A, &others, &n), KEYS + 2 - in);
	assert_int_equal(walk_names(A, &no_slots, &n), 0);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	stop_pair();
	remove_pair();
}

/* More than a call looks at, of which it shows few. */
static void
test_long_walk(void **state)
{
	struct store_slots own = no_slots;
	int in = 0;

	make_pair(64 * MIB);
	start_pair(NULL, NULL);
	assert_int_equal(bucket_make(at(A), "b"), 0);
	slots_add(&own, slot_of_key("b", "key-1999"));
	for (int i = 0; i < 2000; i++) {
		char name[32];

		snprintf(name, sizeof name, "key-%d", i);
		assert_int_equal(put_simple(at(A), "b", name, 1, 1), 0);
		in += slots_has(&own, slot_of_key("b", name));
	}
	assert_int_equal(walk_names(A, &own, &n), in);
	assert_int_equal(walk_names(A, NULL, &n), 2000);
	assert_int_equal(list_names(A, "b", NULL, &own, 3, false, &n), in);
	stop_pair();
	remove_pair();
}

static void
test_counts(void **state)
{
	struct store_slots own = half_slots(), all = all_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char name[32];
	int in;

	make_pair(64 * MIB);
	in = fill_a(&own);
	start_pair(&own, NULL);
	assert_int_equal(used("b").objects, in);
	assert_int_equal(used("b").bytes, 100 * in);
	assert_int_equal(unit_number(A, "objects"), in);
	assert_int_equal(unit_number(A, "leftover_objects"), KEYS - in);
	assert_int_equal(unit_number(A, "leftover_bytes"), 100 * (KEYS - in));
	/* What is not its own is not changed by clients. */
	for (int i = 0; i < KEYS; i++) {
		bool mine;

		name_of(name, i);
		mine = slots_has(&own, slot_of_key("b", name));
		assert_int_equal(put_simple(at(A), "b", name, 200, (uint64_t)i), mine ? 0 : -EXDEV);
		assert_int_equal(put_simple(at(A), "b", name, 100000, (uint64_t)i), mine ? 0 : -EXDEV);
		if (i % 2)
			assert_int_equal(obj_delete(at(A), "b", name, NULL), mine ? 1 : -EXDEV);
		assert_int_equal(upload_make(A, "b", name, NULL, 0, id), mine ? 0 : -EXDEV);
	}
	assert_int_equal(unit_number(A, "leftover_objects"), KEYS - in);
	assert_int_equal(used("b").uploads, in);
	/* Nor is it in the way of the bucket's removal. */
	assert_int_equal(bucket_remove(at(A), "b"), -ENOTEMPTY);
	for (int i = 0; i < KEYS; i++) {
		name_of(name, i);
		if (slots_has(&own, slot_of_key("b", name)))
			assert_true(obj_delete(at(A), "b", name, NULL) >= 0);
	}
	assert_int_equal(list_names(A, "b", NULL, NULL, 10, false, &n), 0);
	assert_int_equal(bucket_remove(at(A), "b"), 0);
	assert_int_equal(bucket_make(at(A), "b"), 0);
	assert_int_equal(list_names(A, "b", NULL, NULL, 10, false, &n), 0);
	assert_int_equal(used("b").objects, 0);
	stop_pair();
	/* Whoever has all slots counts all. */
	start_pair(&all, NULL);
	assert_int_equal(used("b").objects, KEYS - in);
	assert_int_equal(unit_number(A, "objects"), KEYS - in);
	assert_int_equal(unit_number(A, "leftover_objects"), 0);
	stop_pair();
	remove_pair();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_long_walk),
		cmocka_unit_test(test_counts),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_slots", tests, NULL, NULL);
}
