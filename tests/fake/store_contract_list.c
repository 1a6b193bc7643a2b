/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: listing, and everything at random against a model.  See store_contract.c. */
#include "tests/fake/store_contract_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- listing ---- */

struct listing {
	struct store_list ls;
	char got[4096]; /* names, a comma behind each */
	int stop_after;
	uint64_t sizes;
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = (struct listing *)ls;

	assert_true(strlen(l->got) + e->name_len + 2 < sizeof l->got);
	strncat(l->got, e->name, e->name_len);
	strcat(l->got, ",");
	l->sizes += e->size_bytes;
	return --l->stop_after != 0;
}

static int
list(struct listing *l, const char *bucket, const char *prefix, const char *after, uint32_t max)
{
	int stop = l->stop_after;

	memset(l, 0, sizeof *l);
	l->stop_after = stop;
	l->ls.bucket = bucket;
	l->ls.bucket_len = bucket ? (uint16_t)strlen(bucket) : 0;
	l->ls.prefix = prefix;
	l->ls.prefix_len = prefix ? (uint16_t)strlen(prefix) : 0;
	l->ls.after = after;
	l->ls.after_len = after ? (uint16_t)strlen(after) : 0;
	l->ls.max = max;
	l->ls.entry = on_entry;
	return sc_wait_for(&l->ls.op, START(&l->ls.op, store_list(sc->port, &l->ls)));
}

void
sc_test_listing(void **state)
{
	static const char *const names[] = { "b", "a/2", "a/1", "a", "a/10", "c/x/y", "\xff" };
	static struct listing l;
	struct store_obj obj;

	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(sc_put(names[i], i, i + 1), 0);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 100), 7);
	assert_string_equal(l.got, "a,a/1,a/10,a/2,b,c/x/y,\xff,");
	assert_int_equal(l.sizes, 28);
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", NULL, 100), 3);
	assert_string_equal(l.got, "a/1,a/10,a/2,");
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", "a/1", 1), 1);
	assert_string_equal(l.got, "a/10,");
	assert_true(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "a/", "a/10", 1), 1);
	assert_false(l.ls.more);
	assert_int_equal(list(&l, BUCKET, "b", "a", 9), 1);    /* after lies before the prefix */
	assert_int_equal(list(&l, BUCKET, "a/", "b", 9), 0);   /* and behind it */
	assert_int_equal(list(&l, BUCKET, "c/x/", "d", 9), 0); /* and is shorter than it */
	assert_int_equal(list(&l, BUCKET, NULL, "a/11", 2), 2);
	assert_string_equal(l.got, "a/2,b,");
	assert_true(l.ls.more);
	assert_int_equal(list(&l, BUCKET, NULL, "\xff", 2), 0);
	assert_int_equal(list(&l, BUCKET, "zzz", NULL, 2), 0);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 7), 7);
	assert_false(l.ls.more);
	l.stop_after = 2;
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 100), 2);
	assert_string_equal(l.got, "a,a/1,");
	assert_true(l.ls.more);
	l.stop_after = 0;
	assert_int_equal(list(&l, "contract-no", NULL, NULL, 7), -ENXIO);
	assert_int_equal(sc_bucket_create("contract-z"), 0);
	assert_int_equal(sc_bucket_create("contract-a"), 0);
	assert_int_equal(list(&l, "contract-a", NULL, NULL, 7), 0);
	assert_int_equal(list(&l, NULL, "contract", NULL, 7), 3);
	assert_string_equal(l.got, "contract,contract-a,contract-z,");
	assert_int_equal(list(&l, NULL, "contract", "contract", 1), 1);
	assert_string_equal(l.got, "contract-a,");
	assert_true(l.ls.more);
	assert_int_equal(sc_bucket_delete("contract-z"), 0);
	assert_int_equal(sc_bucket_delete("contract-a"), 0);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(sc_del(names[i]), 1);
	assert_int_equal(sc_open_obj("a", &obj), -ENOENT);
	assert_int_equal(list(&l, BUCKET, NULL, NULL, 7), 0);
}

/* ---- with a delimiter ---- */

static int
list_by(struct listing *l, const char *prefix, const char *after, const char *delimiter, uint32_t max)
{
	memset(l, 0, sizeof *l);
	l->ls = (struct store_list){ .bucket = BUCKET,
				     .bucket_len = (uint16_t)strlen(BUCKET),
				     .prefix = prefix,
				     .prefix_len = prefix ? (uint16_t)strlen(prefix) : 0,
				     .after = after,
				     .after_len = after ? (uint16_t)strlen(after) : 0,
				     .delimiter = delimiter,
				     .delimiter_len = (uint16_t)strlen(delimiter),
				     .max = max,
				     .entry = on_entry };
	return sc_wait_for(&l->ls.op, START(&l->ls.op, store_list(sc->port, &l->ls)));
}

void
sc_test_delimiter(void **state)
{
	static const char *const names[] = { "a",   "a/",  "a/b/1",      "a/b/2",      "a/c", "a0",
					     "b/x", "b/y", "c\xff\xffr", "c\xff\xffs", "d" };
	static struct listing l;

	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(sc_put(names[i], i, i + 1), 0);
	assert_int_equal(list_by(&l, NULL, NULL, "/", 100), 7);
	assert_string_equal(l.got, "a,a/,a0,b/,c\xff\xffr,c\xff\xffs,d,");
	assert_false(l.ls.more);
	assert_int_equal(list_by(&l, "a/", NULL, "/", 100), 3);
	assert_string_equal(l.got, "a/,a/b/,a/c,");
	assert_int_equal(list_by(&l, "a", NULL, "/", 100), 3);
	assert_string_equal(l.got, "a,a/,a0,");
	assert_int_equal(list_by(&l, NULL, NULL, "\xff", 100), 10);
	assert_string_equal(l.got, "a,a/,a/b/1,a/b/2,a/c,a0,b/x,b/y,c\xff,d,");
	assert_int_equal(list_by(&l, NULL, "c\xff", "\xff", 100), 1);
	assert_string_equal(l.got, "d,");
	assert_int_equal(list_by(&l, NULL, NULL, "\xff\xff", 100), 10);
	/* a page at a time, each going on behind the last entry of the one before */
	assert_int_equal(list_by(&l, NULL, NULL, "/", 2), 2);
	assert_string_equal(l.got, "a,a/,");
	assert_true(l.ls.more);
	assert_int_equal(list_by(&l, NULL, "a/", "/", 2), 2);
	assert_string_equal(l.got, "a0,b/,");
	assert_true(l.ls.more);
	assert_int_equal(list_by(&l, NULL, "b/", "/", 3), 3);
	assert_string_equal(l.got, "c\xff\xffr,c\xff\xffs,d,");
	assert_false(l.ls.more);
	/* inside of a common prefix: the rest of it is one */
	assert_int_equal(list_by(&l, NULL, "a/b/1", "/", 2), 2);
	assert_string_equal(l.got, "a/,a0,");
	assert_int_equal(list_by(&l, "a/", "a/b/", "/", 9), 1);
	assert_string_equal(l.got, "a/c,");
	assert_int_equal(list_by(&l, "a/", "a/", "/", 9), 2);
	assert_string_equal(l.got, "a/b/,a/c,");
	assert_int_equal(list_by(&l, NULL, NULL, "/b/", 1), 1);
	assert_int_equal(list_by(&l, NULL, "a/", "/b/", 1), 1);
	assert_string_equal(l.got, "a/b/,");
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(sc_del(names[i]), 1);
}

/* Many names under few prefixes, longer than the store does in one turn. */
void
sc_test_prefixes(void **state)
{
	static struct listing l;
	char key[32];

	for (int i = 0; i < 600; i++) {
		sprintf(key, "p%d/%03d", i % 3, i);
		assert_int_equal(sc_put(key, 0, 1), 0);
	}
	assert_int_equal(list_by(&l, NULL, NULL, "/", 100), 3);
	assert_string_equal(l.got, "p0/,p1/,p2/,");
	assert_false(l.ls.more);
	for (int i = 0; i < 600; i++) {
		sprintf(key, "p%d/%03d", i % 3, i);
		assert_int_equal(sc_del(key), 1);
	}
}

/* Longer than the store does in one turn. */
static bool
on_count(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

void
sc_test_long_listing(void **state)
{
	struct store_list ls = {
		.bucket = BUCKET, .bucket_len = (uint16_t)strlen(BUCKET), .max = 1000, .entry = on_count
	};
	char key[16];

	for (int i = 0; i < 700; i++) {
		sprintf(key, "l%03d", i);
		assert_int_equal(sc_put(key, 0, 1), 0);
	}
	assert_int_equal(sc_wait_for(&ls.op, START(&ls.op, store_list(sc->port, &ls))), 700);
	assert_false(ls.more);
	ls.max = 699;
	assert_int_equal(sc_wait_for(&ls.op, START(&ls.op, store_list(sc->port, &ls))), 699);
	assert_true(ls.more);
	for (int i = 0; i < 700; i++) {
		sprintf(key, "l%03d", i);
		assert_int_equal(sc_del(key), 1);
	}
}

/* ---- at random, against a model ---- */

#define KEYS 24

void
sc_test_random(void **state)
{
	struct {
		bool exists;
		size_t start, size;
		unsigned etag;
	} m[KEYS] = { 0 };
	static struct putting pt;

	for (unsigned n = 0; n < (sc->random_ops ? sc->random_ops : 2000); n++) {
		unsigned i = (unsigned)(sc_rnd() % KEYS), etag = n % 200;
		size_t max = sc_rnd() % 50 ? sc_rnd() % 4 ? 3000 : 300000 : OBJ_MAX;
		size_t start = sc_rnd() % OBJ_MAX, size = sc_rnd() % max;
		enum how how = size > 0 && sc_rnd() % 3 == 0 ? HOW_WRITE : HOW_COMMIT;
		struct store_pre pre = { .kind = (enum store_pre_kind)(sc_rnd() % 10 < 5 ? sc_rnd() % 5 : 0),
					 .etag_nr = 1 };
		char key[16];
		int r, want;

		sprintf(key, "k%u", i);
		pre.etags[0] = sc_rnd() % 4 ? sc_etag_no(m[i].etag) : sc_etag_no(201);
		switch (sc_rnd() % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			memset(&pt, 0, sizeof pt);
			pt.commit.pre = pre;
			pt.commit.meta.etag = sc_etag_no(etag);
			r = sc_put_end(&pt,
				       sc_put_begin(&pt, key, start, size, how, STORE_PIECE, sc_rnd() % 2));
			want = 0;
			break;
		case 4:
			r = sc_del_pre(key, &pre);
			want = m[i].exists;
			break;
		default:
			if (m[i].exists) {
				sc_expect(key, m[i].start, m[i].size);
			} else {
				struct store_obj obj;

				assert_int_equal(sc_open_obj(key, &obj), -ENOENT);
			}
			continue;
		}
		if (pre.kind == PRE_ABSENT && m[i].exists)
			want = -EEXIST;
		else if ((pre.kind == PRE_MATCH_ANY || pre.kind == PRE_MATCH) && !m[i].exists)
			want = -ENOENT;
		else if (pre.kind == PRE_MATCH &&
			 memcmp(&pre.etags[0], &(struct store_etag[]){ sc_etag_no(m[i].etag) },
				sizeof pre.etags[0]))
			want = -ESTALE;
		else if (pre.kind == PRE_NONE_MATCH && m[i].exists &&
			 !memcmp(&pre.etags[0], &(struct store_etag[]){ sc_etag_no(m[i].etag) },
				 sizeof pre.etags[0]))
			want = -EEXIST;
		assert_int_equal(r, want);
		if (r == 1)
			m[i].exists = false;
		else if (r == 0 && want == 0 && pt.put.op.result == 0 && pt.size == size &&
			 pt.start == start) {
			m[i].exists = true;
			m[i].start = start;
			m[i].size = size;
			m[i].etag = etag;
		}
	}
	for (int i = 0; i < KEYS; i++) {
		char key[16];

		sprintf(key, "k%d", i);
		if (m[i].exists)
			sc_expect(key, m[i].start, m[i].size);
		assert_int_equal(sc_del(key), m[i].exists);
	}
}
