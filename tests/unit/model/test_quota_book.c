/* SPDX-License-Identifier: Apache-2.0 */
/* claim TM71: whatever happens to a quota book, in whatever order, its sums are those of a recount.  SEED=N repeats a run. */
#include "model/quota.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define NO STORE_UNBOUNDED
#define NAMES 6
#define PLANS 8
#define HOLDS 8
#define KEPT 8
#define COUNTERS_MAX 5
#define STEPS 200000

static const char *const name[NAMES] = { "a", "ab", "abc", "b", "bc", "c" };
static const char *const pattern[] = { "", "a", "ab", "b" };

static struct {
	uint64_t version; /* 0: the bucket does not exist */
	int64_t objects, bytes, docs;
} bucket[NAMES];

static struct {
	struct quota_plan plan;
	int bucket;
	int64_t docs;
	bool is_in_use, makes;
} plans[PLANS];

static struct {
	struct quota_hold hold;
	int bucket;
} holds[HOLDS];

/* Removed objects that are being read. */
static struct {
	struct quota_row *row; /* NULL: unused */
	int bucket;
	int64_t bytes;
} kept[KEPT];

static struct quota_book *book;
static uint64_t seed, versions;

static uint32_t
draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static void
set_rules(void)
{
	struct store_pattern_quota q[4];

	for (int i = 0; i < 4; i++) {
		q[i] = (struct store_pattern_quota){ .bucket_len = (uint8_t)strlen(pattern[i]),
						     .any_suffix = true,
						     .max = { draw(20), draw(4000), NO },
						     .max_buckets = draw(8) };
		memcpy(q[i].bucket, pattern[i], q[i].bucket_len);
	}
	assert_int_equal(quota_set_rules(book, q, 4), 0);
}

static bool
is_planned(int b)
{
	for (int i = 0; i < PLANS; i++) {
		if (plans[i].is_in_use && plans[i].plan.is_made && plans[i].bucket == b)
			return true;
	}
	return false;
}

/* Its row stays, also when it has gone. */
static bool
is_kept(int b)
{
	for (int i = 0; i < HOLDS; i++) {
		if (holds[i].hold.row && holds[i].bucket == b)
			return true;
	}
	for (int i = 0; i < KEPT; i++) {
		if (kept[i].row && kept[i].bucket == b)
			return true;
	}
	return false;
}

static void
compare(void)
{
	struct store_quota_info *list;

	assert_int_equal(quota_list(book, &list), 4);
	for (int r = 0; r < 4; r++) {
		size_t len = strlen(list[r].name) - 1;
		int64_t buckets = 0, objects = 0, bytes = 0, whole = 0;

		for (int b = 0; b < NAMES; b++) {
			if (strncmp(name[b], list[r].name, len) != 0)
				continue;
			buckets += bucket[b].version || is_planned(b) || is_kept(b);
			objects += bucket[b].objects;
			bytes += bucket[b].bytes + bucket[b].docs;
			for (int i = 0; i < PLANS; i++) {
				if (plans[i].is_in_use && plans[i].plan.is_made && plans[i].bucket == b)
					bytes += plans[i].plan.doc_bytes;
			}
			for (int i = 0; i < HOLDS; i++) {
				if (holds[i].hold.row && holds[i].bucket == b)
					whole += holds[i].hold.whole_bytes;
			}
			for (int i = 0; i < KEPT; i++)
				whole += kept[i].row && kept[i].bucket == b ? kept[i].bytes : 0;
		}
		assert_int_equal(list[r].buckets, buckets);
		assert_int_equal(list[r].used.objects, objects + buckets);
		assert_int_equal(list[r].used.bytes, bytes);
		assert_int_equal(list[r].in_progress_bytes, whole);
	}
	free(list);
}

static struct quota_row *
row(int b)
{
	return quota_find(book, 0, name[b], strlen(name[b]));
}

/* Begins a plan, or ends it: its change is made, or not. */
static void
step_plan(int i)
{
	int b = plans[i].bucket, e;

	if (!plans[i].is_in_use) {
		plans[i].bucket = b = (int)draw(NAMES);
		plans[i].makes = draw(2);
		plans[i].docs = draw(500);
		e = quota_plan(book, 0, name[b], strlen(name[b]), plans[i].makes, plans[i].docs,
			       &plans[i].plan);
		plans[i].is_in_use = e == 0;
		assert_true(e == 0 || e == -EDQUOT || e == -EMLINK);
		return;
	}
	if (plans[i].plan.is_made && draw(2) && (bucket[b].version != 0) != plans[i].makes) {
		quota_lock(book);
		if (plans[i].makes) {
			bucket[b].version = ++versions;
			assert_non_null(quota_enter(book, 0, name[b], strlen(name[b]), versions));
		}
		quota_count_docs(book, 0, row(b), plans[i].docs - bucket[b].docs);
		quota_unlock(book);
		bucket[b].docs = plans[i].docs;
	}
	quota_plan_end(book, 0, name[b], strlen(name[b]), &plans[i].plan);
	plans[i].is_in_use = false;
}

/* Begins, changes or ends a reservation; it may be of a bucket that has gone, or is another one by now. */
static void
step_hold(int i)
{
	struct quota_change c = { .objects = draw(2), .bytes = draw(300) };

	if (holds[i].hold.row && draw(2)) {
		quota_end(book, 0, &holds[i].hold);
		return;
	}
	if (!holds[i].hold.row)
		holds[i].bucket = (int)draw(NAMES);
	quota_reserve(book, 0, name[holds[i].bucket], strlen(name[holds[i].bucket]), &c,
		      (uint64_t)c.bytes + draw(300), &holds[i].hold);
}

/* Removes bytes that are being read, or their reader ends; their bucket may have gone by then. */
static void
step_kept(int i)
{
	int b;

	if (kept[i].row) {
		quota_lock(book);
		quota_keep_end(book, 0, kept[i].row, kept[i].bytes);
		quota_unlock(book);
		kept[i].row = NULL;
		return;
	}
	b = kept[i].bucket = (int)draw(NAMES);
	quota_lock(book);
	kept[i].row = bucket[b].version ? row(b) : NULL;
	kept[i].bytes = kept[i].row ? draw((uint32_t)bucket[b].bytes + 1) : 0;
	if (kept[i].row) {
		const struct quota_change less = { .bytes = -kept[i].bytes };

		quota_count(book, 0, kept[i].row, &less);
		quota_keep(book, 0, kept[i].row, kept[i].bytes);
		bucket[b].bytes -= kept[i].bytes;
	}
	quota_unlock(book);
}

static void
step_bucket(int b)
{
	struct quota_change c = { .objects = draw(3), .bytes = draw(600) };

	if (!bucket[b].version)
		return;
	if (draw(8) == 0) {
		quota_gone(book, 0, row(b));
		memset(&bucket[b], 0, sizeof bucket[b]);
		return;
	}
	c.objects -= c.objects > bucket[b].objects + 1 ? 0 : 1;
	c.bytes -= 300;
	if (bucket[b].objects + c.objects < 0 || bucket[b].bytes + c.bytes < 0 ||
	    quota_judge(book, 0, row(b), &c, true) < 0)
		return;
	quota_count(book, 0, row(b), &c);
	bucket[b].objects += c.objects;
	bucket[b].bytes += c.bytes;
}

static void
test_recount(void **state)
{
	int counters = 1;

	seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : (uint64_t)time(NULL);
	fprintf(stderr, "SEED=%llu\n", (unsigned long long)seed);
	assert_int_equal(quota_book_new(1, &book), 0);
	set_rules();
	for (int i = 0; i < STEPS; i++) {
		uint32_t what = draw(100);

		if (what >= 60 && what < 80) {
			step_hold((int)draw(HOLDS));
		} else if (what >= 80 && what < 98) {
			step_kept((int)draw(KEPT));
		} else if (what == 98) {
			/* more disks: rows stay where they are */
			counters += counters < COUNTERS_MAX && draw(1000) == 0;
			assert_int_equal(quota_book_grow(book, counters), 0);
		} else if (what < 30) {
			step_plan((int)draw(PLANS));
		} else if (what < 60) {
			quota_lock(book);
			step_bucket((int)draw(NAMES));
			quota_unlock(book);
		} else {
			set_rules();
		}
		compare();
	}
	quota_book_free(book);
}

/* claim TM71: documents that are being set count for patterns, once for all counters, and not for the limit of the bucket itself. */
static void
test_pending_docs(void **state)
{
	static const struct store_pattern_quota all = { .any_suffix = true,
							.max = { NO, 100, NO },
							.max_buckets = NO };
	static const struct store_use own = { NO, 20, NO };
	const struct quota_change object = { .objects = 1, .bytes = 20 },
				  large = { .objects = 1, .bytes = 50 };
	struct quota_row *row[2];
	int64_t more;

	(void)state;
	assert_int_equal(quota_book_new(2, &book), 0);
	assert_int_equal(quota_set_rules(book, &all, 1), 0);
	quota_lock(book);
	for (int counter = 0; counter < 2; counter++) {
		assert_int_equal(quota_make(book, counter, "a", 1), 0);
		row[counter] = quota_find(book, counter, "a", 1);
		quota_born(book, counter, row[counter], 1);
		quota_unpend(book, counter);
	}
	quota_bound(book, row[0], &own);
	for (int counter = 0; counter < 2; counter++) {
		assert_int_equal(quota_judge_docs(book, counter, row[counter], 60, &more), 0);
		assert_int_equal(more, counter == 0 ? 60 : 0);
		quota_pend_docs(book, counter, row[counter], more);
	}
	assert_int_equal(quota_judge(book, 0, row[0], &object, true), 0);
	quota_bound(book, row[0], &(struct store_use){ NO, NO, NO });
	assert_int_equal(quota_judge(book, 0, row[0], &large, true), -EDQUOT);
	assert_int_equal(quota_judge_docs(book, 1, row[1], 101, &more), -EDQUOT);
	assert_int_equal(quota_judge_docs(book, 1, row[1], 100, &more), 0);
	assert_int_equal(more, 40);
	for (int counter = 0; counter < 2; counter++) {
		quota_unpend(book, counter);
		quota_count_docs(book, counter, row[counter], 60);
		assert_int_equal(quota_judge(book, 0, row[0], &large, true), -EDQUOT);
	}
	quota_count_docs(book, 0, row[0], -60);
	assert_int_equal(quota_judge(book, 0, row[0], &large, true), -EDQUOT);
	quota_count_docs(book, 1, row[1], -60);
	assert_int_equal(quota_judge(book, 0, row[0], &large, true), 0);
	quota_unlock(book);
	quota_book_free(book);
}

/* ---- how much there is at most ---- */

#define LIMIT 10000
#define KEYS 6
#define PUTS 12
#define READS 24

static struct {
	int64_t size;         /* -1: there is no object */
	bool is_read, is_new; /* is_new: of a PUT that is in the block */
} object[2][KEYS];

static struct {
	struct quota_hold hold;
	bool is_begun, is_in_block;
	int bucket, key;
	int64_t size;
} put[PUTS];

static struct {
	struct quota_row *row;
	int64_t bytes;
} reads[READS];

/* Removes what is there of a key: who reads it has its bytes from now on. */
static void
remove_old(int b, int k)
{
	int i = 0;

	if (object[b][k].size < 0 || !object[b][k].is_read)
		return;
	object[b][k].is_read = false;
	while (i < READS && reads[i].row)
		i++;
	if (i == READS)
		return;
	reads[i].row = row(b);
	reads[i].bytes = object[b][k].size;
	quota_keep(book, 0, reads[i].row, reads[i].bytes);
}

static void
step_put(int i)
{
	int b = put[i].bucket, k = put[i].key;
	struct quota_change c;
	int64_t old;

	if (!put[i].is_begun) {
		b = put[i].bucket = (int)draw(2);
		k = put[i].key = (int)draw(KEYS);
		put[i].size = draw(LIMIT / 2);
		old = object[b][k].size;
		c = (struct quota_change){ .objects = old < 0, .bytes = put[i].size - (old < 0 ? 0 : old) };
		c.bytes = c.bytes > 0 ? c.bytes : 0;
		put[i].is_begun = quota_reserve(book, 0, name[b], strlen(name[b]), &c, (uint64_t)put[i].size,
						&put[i].hold) == 0;
		return;
	}
	if (put[i].is_in_block || object[b][k].is_new)
		return;
	if (draw(4) == 0) {
		quota_end(book, 0, &put[i].hold);
		put[i].is_begun = false;
		return;
	}
	old = object[b][k].size;
	c = (struct quota_change){ .objects = old < 0, .bytes = put[i].size - (old < 0 ? 0 : old) };
	quota_lock(book);
	if (quota_judge(book, 0, row(b), &c, true) == 0) {
		quota_settle(book, 0, &put[i].hold);
		quota_pend(book, 0, row(b), &c);
		put[i].is_in_block = object[b][k].is_new = true;
	}
	quota_unlock(book);
	if (!put[i].is_in_block) {
		quota_end(book, 0, &put[i].hold);
		put[i].is_begun = false;
	}
}

static void
publish(void)
{
	quota_lock(book);
	for (int i = 0; i < PUTS; i++) {
		int b = put[i].bucket, k = put[i].key;
		int64_t old = object[b][k].size;
		struct quota_change c = { .objects = old < 0, .bytes = put[i].size - (old < 0 ? 0 : old) };

		if (!put[i].is_in_block)
			continue;
		quota_release(book, 0, &put[i].hold);
		quota_count(book, 0, row(b), &c);
		remove_old(b, k);
		object[b][k].size = put[i].size;
		object[b][k].is_new = put[i].is_in_block = put[i].is_begun = false;
	}
	quota_unpend(book, 0);
	quota_unlock(book);
}

static void
step_delete(int b, int k)
{
	struct quota_change c = { .objects = -1, .bytes = -object[b][k].size };

	if (object[b][k].size < 0 || object[b][k].is_new)
		return;
	quota_lock(book);
	assert_int_equal(quota_judge(book, 0, row(b), &c, true), 0);
	quota_count(book, 0, row(b), &c);
	remove_old(b, k);
	object[b][k].size = -1;
	quota_unlock(book);
}

/* A bucket without objects goes, and comes again at once. */
static void
step_again(int b)
{
	for (int k = 0; k < KEYS; k++) {
		if (object[b][k].size >= 0 || object[b][k].is_new)
			return;
	}
	quota_lock(book);
	quota_gone(book, 0, row(b));
	assert_int_equal(quota_judge_bucket(book, name[b], strlen(name[b]), 0), 0);
	assert_non_null(quota_enter(book, 0, name[b], strlen(name[b]), ++versions));
	quota_unlock(book);
}

static void
step_read(int i)
{
	if (!reads[i].row) {
		object[draw(2)][draw(KEYS)].is_read = true;
	} else if (draw(3) == 0) {
		quota_lock(book);
		quota_keep_end(book, 0, reads[i].row, reads[i].bytes);
		quota_unlock(book);
		reads[i].row = NULL;
	}
}

/* claim TM71: whatever is put, read, removed and begun again: what counts and what is in progress are never more than twice the limit. */
static void
test_twice(void **state)
{
	const struct store_pattern_quota q = { "a", 1, true, { NO, LIMIT, NO }, NO };
	uint64_t most = 0;

	assert_int_equal(quota_book_new(1, &book), 0);
	assert_int_equal(quota_set_rules(book, &q, 1), 0);
	memset(bucket, 0, sizeof bucket);
	for (int b = 0; b < 2; b++) {
		assert_non_null(quota_enter(book, 0, name[b], strlen(name[b]), ++versions));
		for (int k = 0; k < KEYS; k++)
			object[b][k].size = -1;
	}
	for (int i = 0; i < STEPS; i++) {
		struct store_quota_info *list;
		uint32_t what = draw(100);

		if (what < 40)
			step_put((int)draw(PUTS));
		else if (what < 60)
			step_read((int)draw(READS));
		else if (what < 75)
			step_delete((int)draw(2), (int)draw(KEYS));
		else if (what < 80)
			step_again((int)draw(2));
		else if (what < 90)
			publish();
		assert_int_equal(quota_list(book, &list), 1);
		assert_true(list[0].used.bytes <= LIMIT);
		assert_true(list[0].used.bytes + list[0].in_progress_bytes <= 2 * LIMIT);
		assert_int_equal(list[0].buckets, 2);
		if (list[0].used.bytes + list[0].in_progress_bytes > most)
			most = list[0].used.bytes + list[0].in_progress_bytes;
		free(list);
	}
	/* the histories come near it */
	assert_true(most > 2 * LIMIT * 9 / 10);
	quota_book_free(book);
}

/* The largest buckets first, by bytes and then by name; a bucket that is not there is not counted. */
static void
test_largest(void **state)
{
	static const int64_t bytes[NAMES] = { 100, 900, 100, 0, 500, 900 };
	struct store_quota_info list[NAMES];

	assert_int_equal(quota_book_new(2, &book), 0);
	assert_int_equal(quota_largest(book, list, NAMES), 0);
	quota_lock(book);
	for (int i = 0; i < NAMES; i++) {
		size_t len = strlen(name[i]);
		/* Each engine has half of it. */
		struct quota_change half = { .objects = i, .bytes = bytes[i] / 2 };

		for (int counter = 0; counter < 2; counter++) {
			struct quota_row *row = quota_enter(book, counter, name[i], len, 1);

			assert_non_null(row);
			quota_count(book, counter, row, &half);
		}
	}
	assert_int_equal(quota_make(book, 0, "planned", 7), 0);
	quota_unpend(book, 0);
	quota_unlock(book);
	assert_int_equal(quota_largest(book, list, NAMES), NAMES);
	for (int i = 0; i < NAMES; i++) {
		static const char *const order[NAMES] = { "ab", "c", "bc", "a", "abc", "b" };

		assert_string_equal(list[i].name, order[i]);
	}
	assert_int_equal(list[0].used.bytes, 900);
	assert_int_equal(list[1].used.objects, 10);
	/* Two of them, in the same order, and the third stays as it was. */
	memset(list, 'x', sizeof list);
	assert_int_equal(quota_largest(book, list, 2), NAMES);
	assert_string_equal(list[0].name, "ab");
	assert_string_equal(list[1].name, "c");
	assert_int_equal(list[2].name[0], 'x');
	quota_book_free(book);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recount),
		cmocka_unit_test(test_pending_docs),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
