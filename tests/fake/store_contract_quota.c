/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: bounds on what buckets hold.  See store_contract.c. */
#include "tests/fake/store_contract_int.h"

#include "model/quota.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define NO STORE_UNBOUNDED
#define PART QUOTA_PART_BYTES
#define BUCKETS_AT_ONCE 8

/* Returns the bytes that those of one copy of the keys of BUCKET count as. */
static uint64_t
all_copies(uint64_t bytes)
{
	return bytes == NO ? NO : bytes * (unsigned)sc_bucket_copies(BUCKET);
}

static int
bound(const char *name, uint64_t objects, uint64_t bytes, uint64_t uploads)
{
	static struct store_bucket_set op;
	struct store_use max = { objects, all_copies(bytes), uploads };

	return sc_wait_for(&op.op,
			   START(&op.op, store_bucket_set_quota(sc->port, name, strlen(name), &max, &op)));
}

static void
patterns(const char *pattern, uint64_t objects, uint64_t bytes, uint64_t uploads)
{
	size_t len = strlen(pattern);
	bool any = pattern[len - 1] == '*';
	struct store_pattern_quota q = { .bucket_len = (uint8_t)(len - any),
					 .any_suffix = any,
					 .max = { objects, all_copies(bytes), uploads },
					 .max_buckets = NO };

	memcpy(q.bucket, pattern, len - any);
	assert_int_equal(store_set_quotas(sc->store, &q, 1), 0);
}

static void
expect_use(uint64_t objects, uint64_t bytes, uint64_t uploads)
{
	struct store_quota_info info;

	assert_int_equal(store_bucket_quota(sc->store, BUCKET, strlen(BUCKET), &info), 0);
	assert_string_equal(info.name, BUCKET);
	if (info.used.objects != objects || info.used.bytes != all_copies(bytes) ||
	    info.used.uploads != uploads)
		fail_msg("%llu objects, %llu bytes, %llu uploads", (unsigned long long)info.used.objects,
			 (unsigned long long)info.used.bytes, (unsigned long long)info.used.uploads);
}

static int
part(const char *key, const uint8_t *id, uint32_t number, size_t size)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	pt.upload_id = id;
	pt.part_number = number;
	pt.commit.meta.etag = sc_etag_no(number);
	return sc_put_end(&pt, sc_put_begin(&pt, key, 0, size, HOW_COMMIT, STORE_PIECE, true));
}

static int
create(const char *key, struct store_upload *u)
{
	struct store_key k = sc_key_of(key);

	return sc_wait_for(&u->op, START(&u->op, store_upload_create(sc->port, &k, NULL, 0, u)));
}

static int
end_upload(const char *key, const uint8_t *id)
{
	static struct store_upload u;
	struct store_key k = sc_key_of(key);

	return sc_wait_for(&u.op, START(&u.op, store_upload_abort(sc->port, &k, id, &u)));
}

static int
complete(const char *key, const uint8_t *id, uint32_t first, uint32_t nr)
{
	static struct store_complete c;
	struct store_part_ref refs[4];
	struct store_key k = sc_key_of(key);

	memset(&c, 0, sizeof c);
	for (uint32_t i = 0; i < nr; i++)
		refs[i] = (struct store_part_ref){ .number = first + i, .etag = sc_etag_no(first + i) };
	c.parts = refs;
	c.part_nr = nr;
	return sc_wait_for(&c.op, START(&c.op, store_upload_complete(sc->port, &k, id, &c)));
}

/* What is counted, whether there is a bound or not. */
void
sc_test_quota_counts(void **state)
{
	static struct store_upload u, v;

	expect_use(0, 0, 0);
	assert_int_equal(sc_put("q1", 0, 100), 0);
	assert_int_equal(sc_put("q2", 0, 3000000), 0);
	expect_use(2, 3000100, 0);
	assert_int_equal(sc_put("q2", 5, 70000), 0);
	expect_use(2, 70100, 0);
	assert_int_equal(sc_set_attrs("q2", 0, "attributes", 10), 0);
	expect_use(2, 70100, 0);
	assert_int_equal(create("q3", &u), 0);
	assert_int_equal(create("q2", &v), 0);
	assert_int_equal(part("q3", u.id, 1, 5000), 0);
	assert_int_equal(part("q3", u.id, 2, 200), 0);
	assert_int_equal(part("q3", u.id, 2, 300), 0);
	assert_int_equal(part("q3", u.id, 3, 7000), 0);
	assert_int_equal(part("q2", v.id, 9, 10), 0);
	/* the least of a part is an allocation unit */
	expect_use(2, 70100 + 4 * PART, 2);
	assert_int_equal(part("q3", u.id, 2, PART + 1), 0);
	expect_use(2, 70100 + 4 * PART + 1, 2);
	assert_int_equal(part("q3", u.id, 2, 300), 0);
	/* what the completion does not name is given back; nothing counts twice */
	assert_int_equal(complete("q3", u.id, 1, 2), 0);
	expect_use(3, 70100 + 5300 + PART, 1);
	assert_int_equal(complete("q2", v.id, 9, 1), 0);
	expect_use(3, 100 + 10 + 5300, 0);
	assert_int_equal(create("q4", &u), 0);
	assert_int_equal(part("q4", u.id, 1, 400000), 0);
	expect_use(3, 405410, 1);
	assert_int_equal(end_upload("q4", u.id), 0);
	expect_use(3, 5410, 0);
	assert_int_equal(sc_put("q3", 0, 1), 0);
	assert_int_equal(sc_del("q2"), 1);
	assert_int_equal(sc_del("q2"), 0);
	expect_use(2, 101, 0);
	assert_int_equal(sc_del("q1"), 1);
	assert_int_equal(sc_del("q3"), 1);
	expect_use(0, 0, 0);
}

void
sc_test_quota_bucket(void **state)
{
	static struct store_upload u, v;
	struct store_quota_info *list;
	struct store_stat s;

	assert_int_equal(bound("contract-none", 1, 1, 1), -ENXIO);
	assert_int_equal(bound(BUCKET, 2, 1000000, 1), 0);
	assert_int_equal(sc_put("q1", 0, 600000), 0);
	assert_int_equal(sc_put("q2", 0, 400001), -EDQUOT);
	assert_int_equal(sc_put("q2", 0, 400000), 0);
	assert_int_equal(sc_put("q3", 0, 0), -EDQUOT);
	/* the difference counts */
	assert_int_equal(sc_put("q1", 0, 600001), -EDQUOT);
	assert_int_equal(sc_put("q1", 0, 200000), 0);
	assert_int_equal(sc_put("q2", 0, 800000), 0);
	expect_use(2, 1000000, 0);
	/* parts count, an upload counts, and neither counts twice */
	assert_int_equal(create("q1", &u), 0);
	assert_int_equal(create("q2", &v), -EDQUOT);
	assert_int_equal(part("q1", u.id, 1, 1), -EDQUOT);
	assert_int_equal(sc_put("q2", 0, 100), 0);
	assert_int_equal(part("q1", u.id, 1, 700000), 0);
	assert_int_equal(part("q1", u.id, 1, 799901), -EDQUOT);
	assert_int_equal(part("q1", u.id, 1, 799900), 0);
	assert_int_equal(complete("q1", u.id, 1, 1), 0);
	expect_use(2, 800000, 0);
	assert_int_equal(create("q3", &u), 0);
	assert_int_equal(part("q3", u.id, 1, 10), 0);
	assert_int_equal(complete("q3", u.id, 1, 1), -EDQUOT);
	assert_int_equal(sc_del("q2"), 1);
	assert_int_equal(complete("q3", u.id, 1, 1), 0);
	expect_use(2, 799910, 0);
	/* lowered below what is there: what grows is refused, and nothing else */
	assert_int_equal(bound(BUCKET, 1, 10, 0), 0);
	assert_int_equal(sc_put("q3", 0, 11), -EDQUOT);
	assert_int_equal(sc_put("q3", 0, 10), 0);
	assert_int_equal(sc_put("q1", 0, 5000), 0);
	assert_int_equal(create("q1", &u), -EDQUOT);
	assert_int_equal(store_list_quotas(sc->store, &list), 1);
	assert_string_equal(list[0].name, BUCKET);
	assert_true(!list[0].is_pattern && list[0].has_bound && list[0].max.bytes == all_copies(10) &&
		    list[0].max.objects == 1);
	assert_true(list[0].used.bytes == all_copies(5010) && list[0].used.objects == 2 &&
		    list[0].refused >= 8);
	free(list);
	assert_int_equal(
		sc_wait_for(&s.op, START(&s.op, store_bucket_head(sc->port, BUCKET, strlen(BUCKET), &s))), 0);
	assert_true(s.has_quota && s.used.objects == 2 && s.max.uploads == 0);
	assert_int_equal(sc_del("q1"), 1);
	assert_int_equal(sc_del("q3"), 1);
	assert_int_equal(bound(BUCKET, NO, NO, NO), 0);
	assert_int_equal(sc_put("q1", 0, 100000), 0);
	assert_int_equal(sc_del("q1"), 1);
	assert_int_equal(store_list_quotas(sc->store, &list), 0);
	free(list);
	/* gone with the bucket */
	assert_int_equal(sc_bucket_create("contract-gone"), 0);
	assert_int_equal(bound("contract-gone", 0, 0, 0), 0);
	assert_int_equal(sc_bucket_delete("contract-gone"), 0);
	assert_int_equal(sc_bucket_create("contract-gone"), 0);
	assert_int_equal(store_list_quotas(sc->store, &list), 0);
	free(list);
	assert_int_equal(sc_bucket_delete("contract-gone"), 0);
}

void
sc_test_quota_patterns(void **state)
{
	const struct store_pattern_quota both[] = {
		{ "con", 3, true, { 4, NO, NO }, NO },
		{ "con", 3, true, { 3, all_copies(5000), NO }, NO },
		{ "contract", 8, false, { NO, all_copies(4000), NO }, NO },
		{ "other", 5, true, { 0, 0, 0 }, NO },
	};
	struct store_quota_info *list;

	assert_int_equal(sc_put("q1", 0, 3000), 0);
	/* what is there counts, that of buckets made later, and each bucket as an object */
	patterns("contr*", NO, 5000, NO);
	assert_int_equal(sc_put("q2", 0, 2001), -EDQUOT);
	assert_int_equal(sc_put("q2", 0, 2000), 0);
	assert_int_equal(sc_bucket_create("contract-b"), 0);
	assert_int_equal(store_list_quotas(sc->store, &list), 1);
	assert_string_equal(list[0].name, "contr*");
	assert_true(list[0].is_pattern && list[0].used.bytes == all_copies(5000) &&
		    list[0].used.objects == 4);
	free(list);
	assert_int_equal(sc_del("q2"), 1);
	assert_int_equal(sc_bucket_delete("contract-b"), 0);
	/* each is heeded; of one pattern the smaller */
	assert_int_equal(store_set_quotas(sc->store, both, 4), 0);
	assert_int_equal(sc_put("q2", 0, 1001), -EDQUOT);
	assert_int_equal(sc_put("q2", 0, 10), 0);
	assert_int_equal(sc_put("q3", 0, 1), -EDQUOT);
	assert_int_equal(store_list_quotas(sc->store, &list), 3);
	assert_string_equal(list[0].name, "con*");
	assert_true(list[0].max.objects == 3 && list[0].max.bytes == all_copies(5000) &&
		    list[0].used.objects == 3);
	assert_string_equal(list[1].name, "contract");
	assert_true(list[1].used.bytes == all_copies(3010));
	assert_string_equal(list[2].name, "other*");
	assert_true(list[2].used.objects == 0);
	free(list);
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
	assert_int_equal(sc_put("q3", 0, 100000), 0);
	for (int i = 1; i <= 3; i++)
		assert_int_equal(sc_del((char[3]){ 'q', (char)('0' + i), 0 }), 1);
	expect_use(0, 0, 0);
}

/* Many at once for what one has room for: never more, and as many as fit. */
void
sc_test_quota_races(void **state)
{
	static struct putting pt[PUTS_AT_ONCE];
	char key[16];

	for (int round = 0; round < 30; round++) {
		unsigned room = round % PUTS_AT_ONCE, done = 0;
		int r[PUTS_AT_ONCE];

		patterns("contract", round % 2 ? room + 1 : NO, round % 2 ? NO : room * 1000 + 999, NO);
		memset(pt, 0, sizeof pt);
		for (int i = 0; i < PUTS_AT_ONCE; i++) {
			snprintf(key, sizeof key, "race%d", i);
			r[i] = sc_put_begin(&pt[i], key, 0, 1000, HOW_COMMIT, STORE_GRANULE, i % 2);
		}
		for (int i = 0; i < PUTS_AT_ONCE; i++) {
			r[i] = sc_put_end(&pt[i], r[i]);
			assert_true(r[i] == 0 || r[i] == -EDQUOT);
			done += r[i] == 0;
		}
		assert_int_equal(done, room);
		expect_use(room, room * 1000, 0);
		for (int i = 0; i < PUTS_AT_ONCE; i++) {
			snprintf(key, sizeof key, "race%d", i);
			assert_int_equal(sc_del(key), r[i] == 0);
		}
	}
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}

static int
set_docs(const char *name, uint32_t bytes)
{
	static struct store_bucket_set op;
	static char docs[STORE_BUCKET_ATTRS_MAX];

	memset(docs, 'd', sizeof docs);
	return sc_wait_for(&op.op,
			   START(&op.op, store_bucket_set_attrs(sc->port, name, strlen(name),
								STORE_VERSION_ANY, docs, bytes, &op)));
}

/* claim TM71: buckets count as objects of a pattern, their documents as bytes. */
void
sc_test_quota_buckets(void **state)
{
	static const struct store_bucket_spec big = { .copies = 1, .attrs = "0123456789", .attrs_len = 10 };
	static const struct store_pattern_quota max = { "quota-", 6, true, { 3, 30000, NO }, NO };
	struct store_quota_info *list;
	static struct store_del d;

	assert_int_equal(store_set_quotas(sc->store, &max, 1), 0);
	assert_int_equal(sc_bucket_create("quota-a"), 0);
	assert_int_equal(sc_bucket_create("quota-b"), 0);
	assert_int_equal(sc_bucket_create("quota-b"), -EEXIST);
	assert_int_equal(sc_bucket_create("quota-c"), 0);
	assert_int_equal(sc_bucket_create("quota-d"), -EDQUOT);
	assert_int_equal(sc_bucket_create("quota-d"), -EDQUOT);
	assert_int_equal(sc_bucket_create("contract-d"), 0);
	assert_int_equal(sc_bucket_delete("contract-d"), 0);
	assert_int_equal(sc_bucket_delete("quota-c"), 0);
	assert_int_equal(set_docs("quota-a", 20001), 0);
	assert_int_equal(set_docs("quota-b", 10000), -EDQUOT);
	assert_int_equal(set_docs("quota-b", 9995), 0);
	assert_int_equal(
		sc_wait_for(&d.op, START(&d.op, store_bucket_create_as(sc->port, "quota-d", 7, &big, &d))),
		-EDQUOT);
	assert_int_equal(set_docs("quota-a", 20000), 0);
	assert_int_equal(set_docs("quota-a", 19995), 0);
	assert_int_equal(
		sc_wait_for(&d.op, START(&d.op, store_bucket_create_as(sc->port, "quota-d", 7, &big, &d))),
		0);
	assert_int_equal(store_list_quotas(sc->store, &list), 1);
	assert_true(list[0].used.objects == 3 && list[0].used.bytes == 30000 && list[0].refused == 4);
	free(list);
	assert_int_equal(set_docs("quota-a", 0), 0);
	assert_int_equal(sc_bucket_delete("quota-b"), 0);
	assert_int_equal(sc_bucket_delete("quota-d"), 0);
	assert_int_equal(store_list_quotas(sc->store, &list), 1);
	assert_true(list[0].used.objects == 1 && list[0].used.bytes == 0);
	free(list);
	assert_int_equal(sc_bucket_delete("quota-a"), 0);
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}

static void
allow_buckets(uint64_t objects, uint64_t buckets)
{
	struct store_pattern_quota q = { "quota-", 6, true, { objects, NO, NO }, buckets };

	assert_int_equal(store_set_quotas(sc->store, &q, 1), 0);
}

static void
expect_buckets(uint64_t there, uint64_t max)
{
	struct store_quota_info *list;

	assert_int_equal(store_list_quotas(sc->store, &list), 1);
	assert_true(list[0].buckets == there && list[0].max_buckets == max && list[0].used.objects == there);
	free(list);
}

/* claim TM71: a pattern has no more buckets than it may have, however many are made at once. */
void
sc_test_quota_bucket_number(void **state)
{
	static struct store_del op[BUCKETS_AT_ONCE];
	int r[BUCKETS_AT_ONCE], done = 0;
	char name[BUCKETS_AT_ONCE][16];

	allow_buckets(NO, 0);
	assert_int_equal(sc_bucket_create("quota-a"), -EMLINK);
	expect_buckets(0, 0);
	for (int by_objects = 0; by_objects < 2; by_objects++) {
		allow_buckets(by_objects ? 3 : NO, by_objects ? NO : 3);
		for (int i = 0; i < BUCKETS_AT_ONCE; i++) {
			snprintf(name[i], sizeof name[i], "quota-%d", i);
			r[i] = START(&op[i].op,
				     store_bucket_create(sc->port, name[i], strlen(name[i]), 1, &op[i]));
		}
		done = 0;
		for (int i = 0; i < BUCKETS_AT_ONCE; i++) {
			r[i] = sc_wait_for(&op[i].op, r[i]);
			assert_true(r[i] == 0 || r[i] == (by_objects ? -EDQUOT : -EMLINK));
			done += r[i] == 0;
		}
		assert_int_equal(done, 3);
		expect_buckets(3, by_objects ? NO : 3);
		for (int i = 0; i < BUCKETS_AT_ONCE; i++)
			assert_int_equal(sc_bucket_delete(name[i]), r[i] == 0 ? 0 : -ENXIO);
		expect_buckets(0, by_objects ? NO : 3);
	}
	/* fewer than there are: nothing goes, and no other comes; one that is there is not refused for it */
	assert_int_equal(sc_bucket_create("quota-a"), 0);
	assert_int_equal(sc_bucket_create("quota-b"), 0);
	allow_buckets(NO, 1);
	assert_int_equal(sc_bucket_create("quota-b"), -EEXIST);
	assert_int_equal(sc_bucket_create("quota-c"), -EMLINK);
	expect_buckets(2, 1);
	assert_int_equal(sc_bucket_delete("quota-a"), 0);
	assert_int_equal(sc_bucket_create("quota-c"), -EMLINK);
	assert_int_equal(sc_bucket_delete("quota-b"), 0);
	assert_int_equal(sc_bucket_create("quota-c"), 0);
	assert_int_equal(sc_bucket_delete("quota-c"), 0);
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}

/* claim TM71: the bytes of PUTs in progress count when they are taken, and once; an abort gives them back. */
void
sc_test_quota_reserved(void **state)
{
	struct store_key k1 = sc_key_of("r1"), k2 = sc_key_of("r2"), k3 = sc_key_of("r3");
	static struct store_put a, b, c;
	static struct store_upload u;
	struct store_quota_info info;

	patterns("contract", NO, 3000000, NO);
	for (int round = 0; round < 2; round++) {
		/* new keys: as much as the bound has left */
		assert_int_equal(store_put_init(sc->port, &a, &k1, 2000000), 0);
		assert_int_equal(store_put_init(sc->port, &b, &k2, 1000001), -EDQUOT);
		assert_int_equal(sc_put("r3", 0, 1000001), -EDQUOT);
		assert_int_equal(sc_put("r3", 0, 1000000), 0);
		assert_int_equal(store_put_init(sc->port, &b, &k2, 0), 0);
		assert_int_equal(store_put_init(sc->port, &c, &k3, 1000001), -EDQUOT);
		assert_int_equal(store_bucket_quota(sc->store, BUCKET, strlen(BUCKET), &info), 0);
		assert_true(info.used.bytes == all_copies(1000000) &&
			    info.in_progress_bytes == all_copies(2000000));
		store_put_abort(sc->port, &a);
		store_put_abort(sc->port, &b);
		/* those that replace others: so much again, and one alone always */
		assert_int_equal(sc_put("r1", 0, 2000000), 0);
		assert_int_equal(store_put_init(sc->port, &a, &k1, 2000000), 0);
		assert_int_equal(store_put_init(sc->port, &b, &k1, 2000000), -EDQUOT);
		assert_int_equal(store_put_init(sc->port, &b, &k3, 1000000), 0);
		store_put_abort(sc->port, &a);
		store_put_abort(sc->port, &b);
		assert_int_equal(sc_del("r1"), 1);
		/* parts as well */
		assert_int_equal(create("r2", &u), 0);
		assert_int_equal(store_put_init_part(sc->port, &a, &k2, u.id, 1, 2000000 - PART), 0);
		assert_int_equal(store_put_init_part(sc->port, &b, &k2, u.id, 2, 1), 0);
		assert_int_equal(store_put_init_part(sc->port, &c, &k2, u.id, 3, 1000001), -EDQUOT);
		store_put_abort(sc->port, &b);
		store_put_abort(sc->port, &a);
		assert_int_equal(end_upload("r2", u.id), 0);
		assert_int_equal(sc_del("r3"), 1);
		expect_use(0, 0, 0);
	}
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}

/* Gives BUCKET a number of copies, as far as the store can, and returns the number of copies that its keys then have. */
static unsigned
set_copies(unsigned copies)
{
	int r = sc_bucket_make(BUCKET, copies);
	struct store_obj obj;
	bool has_second;

	assert_true(r == 0 || r == -EEXIST || r == -EDOM || r == -EOPNOTSUPP);
	assert_int_equal(sc_put("c0", 0, 1), 0);
	assert_int_equal(sc_open_obj("c0", &obj), 0);
	has_second = obj.has_second;
	store_close(sc->port, &obj);
	assert_int_equal(sc_del("c0"), 1);
	assert_true(copies == 2 ? has_second || !sc->has_two_copies : !has_second);
	return has_second ? 2 : 1;
}

static void
expect_bytes(uint64_t used, uint64_t in_progress)
{
	struct store_quota_info info;

	assert_int_equal(store_bucket_quota(sc->store, BUCKET, strlen(BUCKET), &info), 0);
	assert_int_equal(info.used.bytes, used);
	assert_int_equal(info.in_progress_bytes, in_progress);
}

/* claim TM71: each copy counts its bytes: those of objects, of parts, and of PUTs in progress. */
void
sc_test_quota_copies(void **state)
{
	struct store_key k1 = sc_key_of("c1"), k2 = sc_key_of("c2");
	int first = sc_bucket_copies(BUCKET);
	static struct store_bucket_set set;
	static struct store_put a, b;
	static struct store_upload u;

	for (int round = 0; round < 4; round++) {
		unsigned copies = set_copies(round % 2 ? 1 : 2);
		struct store_use max = { NO, 100000 * copies, NO };
		int r = START(&set.op, store_bucket_set_quota(sc->port, BUCKET, strlen(BUCKET), &max, &set));

		assert_int_equal(sc_wait_for(&set.op, r), 0);
		assert_int_equal(sc_put("c1", 0, 60001), 0);
		assert_int_equal(sc_put("c2", 0, 40000), -EDQUOT);
		assert_int_equal(sc_put("c2", 0, 39999), 0);
		expect_bytes(100000 * copies, 0);
		assert_int_equal(sc_del("c1"), 1);
		assert_int_equal(create("c1", &u), 0);
		assert_int_equal(part("c1", u.id, 1, 60000), 0);
		assert_int_equal(part("c1", u.id, 2, 1), -EDQUOT);
		assert_int_equal(part("c1", u.id, 1, 10), 0);
		expect_bytes((39999 + PART) * copies, 0);
		assert_int_equal(complete("c1", u.id, 1, 1), 0);
		assert_int_equal(store_put_init(sc->port, &a, &k2, 99990), 0);
		assert_int_equal(store_put_init(sc->port, &b, &k1, 11), -EDQUOT);
		expect_bytes(40009 * copies, 99990 * copies);
		store_put_abort(sc->port, &a);
		assert_int_equal(sc_del("c1"), 1);
		assert_int_equal(sc_del("c2"), 1);
		expect_bytes(0, 0);
	}
	assert_int_equal(bound(BUCKET, NO, NO, NO), 0);
	if (sc_bucket_copies(BUCKET) != first)
		assert_int_equal(sc_bucket_make(BUCKET, (unsigned)first), 0);
}

#define READ_BYTES 2000000u

/* claim TM71: the bytes of what was overwritten or deleted are in progress until its last reader has ended, and the reader gets them all. */
void
sc_test_quota_readers(void **state)
{
	unsigned copies = (unsigned)sc_bucket_copies(BUCKET);
	uint64_t kept = sc->keeps_uncounted ? 0 : READ_BYTES;
	/* by one copy: a reader has one open */
	uint64_t room = 3000000 - READ_BYTES / copies;
	struct store_key k2 = sc_key_of("k2");
	static struct store_put put;
	struct store_obj a, b, c;

	patterns("contract", NO, 3000000, NO);
	for (int is_delete = 0; is_delete < 2; is_delete++) {
		assert_int_equal(sc_put("k1", 7, READ_BYTES), 0);
		assert_int_equal(sc_open_obj("k1", &a), 0);
		assert_int_equal(sc_open_obj("k1", &b), 0);
		expect_bytes(all_copies(READ_BYTES), 0);
		/* other attributes leave the bytes where they are */
		assert_int_equal(sc_set_attrs("k1", 0, "attributes", 10), 0);
		expect_bytes(all_copies(READ_BYTES), 0);
		if (is_delete)
			assert_int_equal(sc_del("k1"), 1);
		else
			assert_int_equal(sc_put("k1", 0, 1000), 0);
		expect_bytes(is_delete ? 0 : all_copies(1000), kept);
		assert_int_equal(store_put_init(sc->port, &put, &k2, room + 1), kept ? -EDQUOT : 0);
		store_put_abort(sc->port, &put);
		assert_int_equal(store_put_init(sc->port, &put, &k2, room), 0);
		store_put_abort(sc->port, &put);
		/* who comes now reads the newer one */
		assert_int_equal(sc_open_obj("k1", &c), is_delete ? -ENOENT : 0);
		sc_read_all(&a, 7, READ_BYTES);
		store_close(sc->port, &a);
		expect_bytes(is_delete ? 0 : all_copies(1000), kept);
		sc_read_all(&b, 7, READ_BYTES);
		store_close(sc->port, &b);
		expect_bytes(is_delete ? 0 : all_copies(1000), 0);
		assert_int_equal(store_put_init(sc->port, &put, &k2, 2999000), 0);
		store_put_abort(sc->port, &put);
		if (!is_delete) {
			/* a small one counts what it takes in the record, and deletes always work */
			assert_int_equal(sc_put("k1", 0, 100), 0);
			expect_bytes(all_copies(100), kept ? PART : 0);
			store_close(sc->port, &c);
			assert_int_equal(sc_open_obj("k1", &c), 0);
			assert_int_equal(sc_del("k1"), 1);
			expect_bytes(0, kept ? 100 : 0);
			store_close(sc->port, &c);
		}
		expect_bytes(0, 0);
	}
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}

#define GHOST "contr-ghost"
#define GHOST_BYTES 300000u

static struct store_quota_info
first_quota(void)
{
	struct store_quota_info *list, info;

	assert_true(store_list_quotas(sc->store, &list) >= 1);
	info = list[0];
	free(list);
	return info;
}

/* claim TM71: removing the bucket as well gives nothing back: neither what is being read, nor what is being put. */
void
sc_test_quota_ghosts(void **state)
{
	static const struct store_key k = { GHOST, "k", sizeof GHOST - 1, 1 };
	uint64_t max = all_copies(1000000), copies;
	static struct putting pt;
	static struct store_put puts[8];
	static struct store_obj obj[8];
	static struct store_del d;
	struct store_quota_info info;
	unsigned nr = 0, put_nr;
	int r;

	patterns("contr*", NO, 1000000, NO);
	for (;; nr++) {
		assert_int_equal(sc_bucket_create(GHOST), 0);
		copies = (uint64_t)sc_bucket_copies(GHOST);
		memset(&pt, 0, sizeof pt);
		pt.bucket = GHOST;
		r = sc_put_end(&pt, sc_put_begin(&pt, "k", 3, GHOST_BYTES, HOW_COMMIT, STORE_PIECE, true));
		if (r < 0 || nr == 8)
			break;
		memset(&obj[nr], 0, sizeof obj[nr]);
		assert_int_equal(
			sc_wait_for(&obj[nr].op, START(&obj[nr].op, store_open(sc->port, &k, &obj[nr]))), 0);
		info = first_quota();
		assert_true(info.used.bytes + info.in_progress_bytes <= 2 * max);
		assert_int_equal(sc_wait_for(&d.op, START(&d.op, store_delete(sc->port, &k, NULL, &d))), 1);
		assert_int_equal(sc_bucket_delete(GHOST), 0);
		assert_int_equal(store_bucket_quota(sc->store, GHOST, strlen(GHOST), &info), -ENXIO);
		info = first_quota();
		assert_int_equal(info.in_progress_bytes, sc->keeps_uncounted ? 0 : (nr + 1) * GHOST_BYTES);
		assert_true(info.used.bytes + info.in_progress_bytes <= 2 * max);
	}
	if (sc->keeps_uncounted) {
		assert_int_equal(r, 0);
	} else {
		assert_int_equal(r, -EDQUOT);
		assert_int_equal(nr, (max - GHOST_BYTES * copies) / GHOST_BYTES + 1);
	}
	for (unsigned i = 0; i < nr; i++) {
		sc_read_all(&obj[i], 3, GHOST_BYTES);
		store_close(sc->port, &obj[i]);
	}
	assert_int_equal(first_quota().in_progress_bytes, 0);
	if (r == 0)
		assert_int_equal(sc_wait_for(&d.op, START(&d.op, store_delete(sc->port, &k, NULL, &d))), 1);
	for (put_nr = 0; put_nr < 8; put_nr++) {
		r = store_put_init(sc->port, &puts[put_nr], &k, GHOST_BYTES);
		if (r < 0)
			break;
		assert_int_equal(sc_bucket_delete(GHOST), 0);
		assert_int_equal(sc_bucket_create(GHOST), 0);
	}
	assert_int_equal(r, -EDQUOT);
	assert_int_equal(put_nr, max / (GHOST_BYTES * copies));
	assert_int_equal(sc_bucket_delete(GHOST), 0);
	info = first_quota();
	assert_int_equal(info.buckets, 2);
	assert_int_equal(info.in_progress_bytes, put_nr * GHOST_BYTES * copies);
	for (unsigned i = 0; i < put_nr; i++)
		store_put_abort(sc->port, &puts[i]);
	info = first_quota();
	assert_int_equal(info.buckets, 1);
	assert_int_equal(info.in_progress_bytes, 0);
	assert_int_equal(store_set_quotas(sc->store, NULL, 0), 0);
}
