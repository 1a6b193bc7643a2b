/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set: where keys are, buckets on all engines and what happens when one refuses, many ports, life.
 * SEED= repeats a run.
 */
#include "set_rig.h"

#include "set/start/start.h"
#include "store/user.h"

#include "base/check.h"

#include <pthread.h>

static const struct mem_store_tuning quick = {
	.seed = 1, .delay_max_us = 20, .open_at_once = 50, .stat_at_once = 50, .other_at_once = 50
};
static struct loop l;

static void
begin(int engines)
{
	set_begin(engines, 1, &quick);
	loop_begin(&l);
}

static void
end(void)
{
	loop_end(&l);
	set_end();
}

/* ---- placement ---- */

/* Disks depend on these numbers. */
static void
test_slots(void **state)
{
	struct store_key ab = key_of("a", "b"), other = key_of("photos", "2024/01/01.jpg"),
			 split = key_of("ab", "c"), joint = key_of("a", "bc");

	assert_int_equal(set_slot(&ab), 1889);
	assert_int_equal(set_slot(&other), 1352);
	assert_int_not_equal(set_slot(&split), set_slot(&joint));
}

static void
test_spread(void **state)
{
	for (int engines = 2; engines <= 3; engines++) {
		int nr[ENGINES_MAX] = { 0 };

		begin(engines);
		for (int i = 0; i < 3000; i++) {
			char name[32];
			struct store_key k;

			snprintf(name, sizeof name, "dir/%06d", i);
			k = key_of("bucket", name);
			nr[set_primary(set_of(st), &k)]++;
		}
		for (int i = 0; i < engines; i++)
			assert_in_range(nr[i], 3000 / engines * 9 / 10, 3000 / engines * 11 / 10);
		end();
	}
}

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	return true;
}

/* The parts of an upload that an engine has; an error. */
static int
parts_on(struct store_port *p, const struct store_key *k, const uint8_t *id)
{
	struct store_part_list pl = { .max = 10, .part = on_part };

	return DO(&l, &pl.op, store_list_parts(p, k, id, &pl));
}

static int
upload_on(struct store_port *p, const struct store_key *k, const uint8_t *id)
{
	struct store_stat s;

	return DO(&l, &s.op, store_upload_stat(p, k, id, NULL, 0, &s));
}

static void
test_one_log(void **state)
{
	begin(3);
	assert_int_equal(make(&l, "b"), 0);
	for (int home = 0; home < 3; home++) {
		char name[32];
		struct store_key k = key_of("b", key_on(name, "b", home, 0));
		struct store_part_ref ref = { .number = 7 };
		struct store_complete c = { .parts = &ref, .part_nr = 1 };
		struct store_commit commit = { .inline_data = "xyz", .inline_len = 3 };
		struct store_upload u;
		struct store_put part;

		assert_int_equal(DO(&l, &u.op, store_upload_create(l.port, &k, "a", 1, &u)), 0);
		assert_int_equal(store_put_init_part(l.port, &part, &k, u.id, 7, 3), 0);
		assert_int_equal(DO(&l, &part.op, store_put_commit(l.port, &part, &commit)), 0);
		store_put_abort(l.port, &part);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(upload_on(port_of(&l, i), &k, u.id), i == home ? 0 : -ENOENT);
			assert_int_equal(parts_on(port_of(&l, i), &k, u.id), i == home ? 1 : -ENOENT);
		}
		assert_int_equal(upload_on(l.port, &k, u.id), 0);
		assert_int_equal(parts_on(l.port, &k, u.id), 1);
		assert_int_equal(DO(&l, &c.op, store_upload_complete(l.port, &k, u.id, &c)), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(is_there(&l, port_of(&l, i), "b", name), i == home);
		assert_int_equal(is_there(&l, l.port, "b", name), 1);
		assert_int_equal(del(&l, l.port, "b", name), 1);
		assert_int_equal(is_there(&l, port_of(&l, home), "b", name), 0);
	}
	assert_int_equal(removed(&l, "b"), 0);
	end();
}

/* ---- buckets ---- */

static int
set_attrs(uint64_t version, const char *attrs)
{
	struct store_bucket_set op;

	return DO(&l, &op.op,
		  store_bucket_set_attrs(l.port, "b", 1, version, attrs, (uint32_t)strlen(attrs), &op));
}

/* What p says that the attributes of "b" are. */
static int
get_attrs(struct store_port *p, char attrs[32], uint64_t *ret_version)
{
	struct store_stat s;
	int r;

	memset(attrs, 0, 32);
	r = DO(&l, &s.op, store_bucket_get_attrs(p, "b", 1, attrs, 31, &s));
	if (r == 0 && ret_version)
		*ret_version = s.version;
	return r;
}

/* want: what each engine says of the bucket. */
static void
expect_on_all(int want, const char *want_attrs)
{
	char attrs[32];

	for (int i = 0; i < set_engines(set_of(st)); i++) {
		assert_int_equal(head(&l, port_of(&l, i), "b", NULL), want);
		assert_int_equal(get_attrs(port_of(&l, i), attrs, NULL), want);
		if (want == 0)
			assert_string_equal(attrs, want_attrs);
	}
	assert_int_equal(head(&l, l.port, "b", NULL), want);
}

static void
test_buckets(void **state)
{
	begin(3);
	expect_on_all(-ENXIO, NULL);
	assert_int_equal(removed(&l, "b"), -ENXIO);
	assert_int_equal(make(&l, "b"), 0);
	expect_on_all(0, "");
	assert_int_equal(make(&l, "b"), -EEXIST);
	assert_int_equal(removed(&l, "b"), 0);
	expect_on_all(-ENXIO, NULL);
	end();
}

/* A bucket is told from an earlier one of its name by its time, whatever the clock says; one that was set back counts. */
static void
test_times(void **state)
{
	static uint64_t now_ns = 1000 * NS_PER_S;
	uint64_t first, second, third;

	for (int engines = 1; engines <= 2; engines++) {
		begin(engines);
		clock_fake(&now_ns);
		assert_int_equal(make(&l, "b"), 0);
		assert_int_equal(head(&l, l.port, "b", &first), 0);
		assert_int_equal(removed(&l, "b"), 0);
		assert_int_equal(make(&l, "b"), 0);
		assert_int_equal(head(&l, l.port, "b", &second), 0);
		assert_int_equal(removed(&l, "b"), 0);
		now_ns -= 900 * NS_PER_S;
		assert_int_equal(make(&l, "b"), 0);
		assert_int_equal(head(&l, l.port, "b", &third), 0);
		clock_fake(NULL);
		assert_true(second > first && second < first + NS_PER_S);
		assert_true(third == now_ns);
		now_ns = 1000 * NS_PER_S;
		end();
	}
}

static void
test_not_empty(void **state)
{
	char name[32], waits_there[32];
	struct store_key k;
	struct store_upload u;

	begin(3);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(set_attrs(0, "tags"), 0);
	k = key_of("b", key_on(waits_there, "b", 2, 0));
	assert_int_equal(DO(&l, &u.op, store_upload_create(l.port, &k, NULL, 0, &u)), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(&l, l.port, "b", key_on(name, "b", i, 1)), 0);
		assert_int_equal(removed(&l, "b"), -ENOTEMPTY);
		expect_on_all(0, "tags");
		assert_int_equal(upload_on(l.port, &k, u.id), 0);
		assert_int_equal(is_there(&l, l.port, "b", name), 1);
		assert_int_equal(del(&l, l.port, "b", name), 1);
	}
	assert_int_equal(removed(&l, "b"), 0);
	expect_on_all(-ENXIO, NULL);
	assert_int_equal(upload_on(l.port, &k, u.id), -ENXIO);
	end();
}

/* A removal that has begun is completed wherever it can be; where it cannot, nothing is written any more. */
static void
test_removed_where_it_can_be(void **state)
{
	char name[32];

	begin(3);
	/* the first one cannot: nobody has */
	assert_int_equal(make(&l, "b"), 0);
	mem_store_fail(engine(0), MEM_DELETE, -EROFS, 0, 1);
	assert_int_equal(removed(&l, "b"), -EROFS);
	for (int j = 0; j < 3; j++) {
		assert_int_equal(head(&l, port_of(&l, j), "b", NULL), 0);
		assert_int_equal(put(&l, l.port, "b", key_on(name, "b", j, 0)), 0);
		assert_int_equal(del(&l, l.port, "b", name), 1);
	}
	assert_int_equal(removed(&l, "b"), 0);
	expect_on_all(-ENXIO, NULL);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(make(&l, "b"), 0);
		mem_store_fail(engine(i), MEM_DELETE, -EROFS, 0, 1);
		assert_int_equal(removed(&l, "b"), -ECANCELED);
		for (int j = 0; j < 3; j++) {
			key_on(name, "b", j, 0);
			assert_int_equal(head(&l, port_of(&l, j), "b", NULL), i == j ? 0 : -ENXIO);
			assert_int_equal(put(&l, l.port, "b", name), i == j ? -EAGAIN : -ENXIO);
		}
		/* Making it ends it. */
		assert_int_equal(removed(&l, "b"), -ENXIO);
		assert_int_equal(make(&l, "b"), 0);
		for (int j = 0; j < 3; j++) {
			assert_int_equal(put(&l, l.port, "b", key_on(name, "b", j, 0)), 0);
			assert_int_equal(del(&l, l.port, "b", name), 1);
		}
		assert_int_equal(removed(&l, "b"), 0);
		expect_on_all(-ENXIO, NULL);
	}
	/* no room now: it is tried again */
	assert_int_equal(make(&l, "b"), 0);
	mem_store_fail(engine(1), MEM_DELETE, -EAGAIN, 0, 2);
	assert_int_equal(removed(&l, "b"), 0);
	expect_on_all(-ENXIO, NULL);
	end();
}

/* One that cannot say whether it is empty: all is as before. */
static void
test_gate_fails(void **state)
{
	char name[32];

	begin(3);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(set_attrs(0, "tags"), 0);
	for (int i = 0; i < 3; i++) {
		mem_store_fail(engine(i), MEM_STAT, -EROFS, 0, 1);
		assert_int_equal(removed(&l, "b"), -EROFS);
		expect_on_all(0, "tags");
		for (int j = 0; j < 3; j++) {
			assert_int_equal(put(&l, l.port, "b", key_on(name, "b", j, 0)), 0);
			assert_int_equal(del(&l, l.port, "b", name), 1);
		}
	}
	assert_int_equal(removed(&l, "b"), 0);
	end();
}

/* What began before the gate closed is judged when its turn comes. */
static void
test_gate(void **state)
{
	struct store_commit c = { .inline_data = "x", .inline_len = 1 };
	struct store_put early;
	char name[32];
	struct store_key k;

	begin(2);
	k = key_of("b", key_on(name, "b", 0, 0));
	assert_int_equal(make(&l, "b"), 0);
	/* a PUT that began before its gate closed */
	assert_int_equal(store_put_init(l.port, &early, &k, 1), 0);
	mem_store_fail(engine(1), MEM_DELETE, -EROFS, 0, 1);
	assert_int_equal(removed(&l, "b"), -ECANCELED);
	assert_int_equal(DO(&l, &early.op, store_put_commit(l.port, &early, &c)), -ENXIO);
	store_put_abort(l.port, &early);
	k = key_of("b", key_on(name, "b", 1, 0));
	assert_int_equal(put(&l, l.port, "b", name), -EAGAIN);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(put(&l, l.port, "b", name), 0);
	end();
}

static void
test_make_fails(void **state)
{
	char name[32];

	begin(3);
	for (int i = 0; i < 3; i++) {
		mem_store_fail(engine(i), MEM_DELETE, -ENOSPC, 0, 1);
		assert_int_equal(make(&l, "b"), -ENOSPC);
		expect_on_all(-ENXIO, NULL);
	}
	/* when it cannot be undone, it stays behind its gate, until it is made again */
	mem_store_fail(engine(0), MEM_DELETE, -ENOSPC, 0, 1);
	mem_store_fail(engine(2), MEM_DELETE, -EROFS, 1, 1);
	assert_int_equal(make(&l, "b"), -ECANCELED);
	assert_int_equal(head(&l, l.port, "b", NULL), -ENXIO);
	assert_int_equal(head(&l, port_of(&l, 2), "b", NULL), 0);
	assert_int_equal(put(&l, l.port, "b", key_on(name, "b", 2, 0)), -ENXIO);
	assert_int_equal(make(&l, "b"), 0);
	expect_on_all(0, "");
	assert_int_equal(put(&l, l.port, "b", name), 0);
	assert_int_equal(make(&l, "b"), -EEXIST);
	assert_int_equal(del(&l, l.port, "b", name), 1);
	assert_int_equal(removed(&l, "b"), 0);
	/* and while it cannot be removed it is no bucket that exists */
	mem_store_fail(engine(0), MEM_DELETE, -ENOSPC, 0, 1);
	mem_store_fail(engine(2), MEM_BUCKET_DELETE, -ENOSPC, 0, 100);
	assert_int_equal(make(&l, "b"), -ECANCELED);
	assert_int_equal(make(&l, "b"), -ENOSPC);
	assert_int_equal(head(&l, l.port, "b", NULL), -ENXIO);
	assert_int_equal(put(&l, l.port, "b", name), -ENXIO);
	mem_store_fail(engine(2), MEM_BUCKET_DELETE, 0, 0, 0);
	assert_int_equal(make(&l, "b"), 0);
	expect_on_all(0, "");
	assert_int_equal(put(&l, l.port, "b", name), 0);
	assert_int_equal(del(&l, l.port, "b", name), 1);
	assert_int_equal(removed(&l, "b"), 0);
	end();
}

/* An engine that refuses every change, as one without room does, does not say that it has the remains of a removal: their gate stays closed,
 * so no object is put into a bucket that only this engine has. */
static void
test_make_beside_remains(void **state)
{
	static const int refusals[] = { -ENOSPC, -EAGAIN };
	char name[32];

	begin(3);
	for (int i = 1; i < 3; i++) {
		for (int k = 0; k < 2; k++) {
			assert_int_equal(make(&l, "b"), 0);
			mem_store_fail(engine(i), MEM_DELETE, -EROFS, 0, 1);
			assert_int_equal(removed(&l, "b"), -ECANCELED);
			key_on(name, "b", i, 0);
			assert_int_equal(put(&l, l.port, "b", name), -EAGAIN);
			mem_store_fail(engine(i), MEM_DELETE, refusals[k], 0, 1);
			assert_int_equal(make(&l, "b"), refusals[k]);
			assert_int_equal(put(&l, l.port, "b", name), -EAGAIN);
			assert_int_equal(head(&l, l.port, "b", NULL), -ENXIO);
			for (int j = 0; j < 3; j++) {
				if (j != i)
					assert_int_equal(put(&l, l.port, "b", key_on(name, "b", j, 0)),
							 -ENXIO);
			}
			assert_int_equal(make(&l, "b"), 0);
			expect_on_all(0, "");
			assert_int_equal(put(&l, l.port, "b", key_on(name, "b", i, 0)), 0);
			assert_int_equal(del(&l, l.port, "b", name), 1);
			assert_int_equal(removed(&l, "b"), 0);
		}
	}
	end();
}

static void
test_attrs(void **state)
{
	uint64_t version, first;
	char attrs[32];

	begin(3);
	assert_int_equal(set_attrs(0, "no"), -ENXIO);
	assert_int_equal(make(&l, "b"), 0);
	/* their own versions go apart */
	assert_int_equal(make(&l, "other"), 0);
	for (int i = 0; i < 5; i++) {
		char name[32];

		assert_int_equal(put(&l, l.port, "other", key_on(name, "other", 0, i)), 0);
	}
	assert_int_equal(set_attrs(0, "one"), 0);
	expect_on_all(0, "one");
	assert_int_equal(get_attrs(l.port, attrs, &version), 0);
	assert_int_equal(get_attrs(port_of(&l, 0), attrs, &first), 0);
	assert_true(version != first && version != 0);
	assert_int_equal(set_attrs(version + 1, "no"), -ESTALE);
	assert_int_equal(set_attrs(0, "no"), -ESTALE);
	expect_on_all(0, "one");
	assert_int_equal(set_attrs(version, "two"), 0);
	expect_on_all(0, "two");
	assert_int_equal(set_attrs(version, "no"), -ESTALE);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, ""), 0);
	expect_on_all(0, "");
	/* one that fails behind the first */
	mem_store_fail(engine(0), MEM_COMMIT, -EROFS, 0, 1);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "no"), -EROFS);
	expect_on_all(0, "");
	mem_store_fail(engine(1), MEM_COMMIT, -EROFS, 0, 1);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "half"), -ECANCELED);
	assert_int_equal(get_attrs(l.port, attrs, NULL), 0);
	assert_string_equal(attrs, "half");
	end();
}

/* ---- copies ---- */

/* All engines say that "b" has so many, that it is as old, and has the attributes "tags"; something can be put into it. */
static void
expect_copies(int want, uint64_t ctime_ns)
{
	char name[32], attrs[32];
	uint64_t ctime;

	for (int i = 0; i < set_engines(set_of(st)); i++) {
		assert_int_equal(copies_of(&l, port_of(&l, i), "b"), want);
		assert_int_equal(head(&l, port_of(&l, i), "b", &ctime), 0);
		assert_true(ctime == ctime_ns);
		assert_int_equal(get_attrs(port_of(&l, i), attrs, NULL), 0);
		assert_string_equal(attrs, "tags");
		assert_int_equal(put(&l, l.port, "b", key_on(name, "b", i, 0)), 0);
		assert_int_equal(del(&l, l.port, "b", name), 1);
	}
	assert_int_equal(copies_of(&l, l.port, "b"), want);
}

static void
test_copies(void **state)
{
	struct store_upload u;
	uint64_t ctime = 0;
	char name[32];
	struct store_key k;

	begin(3);
	assert_int_equal(make_with(&l, "b", 3), -EINVAL);
	assert_int_equal(make_with(&l, "b", 2), 0);
	assert_int_equal(set_attrs(0, "tags"), 0);
	assert_int_equal(head(&l, l.port, "b", &ctime), 0);
	expect_copies(2, ctime);
	assert_int_equal(make(&l, "b"), -EEXIST);
	assert_int_equal(make_with(&l, "b", 2), -EEXIST);
	expect_copies(2, ctime);
	assert_int_equal(make_with(&l, "b", 1), 0);
	expect_copies(1, ctime);
	assert_int_equal(make_with(&l, "b", 1), -EEXIST);
	/* what is in it keeps it from being changed, an upload too */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(&l, l.port, "b", key_on(name, "b", i, 1)), 0);
		assert_int_equal(make_with(&l, "b", 2), -ENOTEMPTY);
		assert_int_equal(make_with(&l, "b", 1), -EEXIST);
		assert_int_equal(is_there(&l, l.port, "b", name), 1);
		assert_int_equal(del(&l, l.port, "b", name), 1);
		k = key_of("b", name);
		assert_int_equal(DO(&l, &u.op, store_upload_create(l.port, &k, NULL, 0, &u)), 0);
		/* which is known before any of them is changed: a cut would cost the upload */
		mem_store_fail(engine(0), MEM_DELETE, -EROFS, 0, 1);
		assert_int_equal(make_with(&l, "b", 2), -ENOTEMPTY);
		mem_store_fail(engine(0), MEM_DELETE, -EROFS, 0, 0);
		assert_int_equal(upload_on(l.port, &k, u.id), 0);
		expect_copies(1, ctime);
		assert_int_equal(DO(&l, &u.op, store_upload_abort(l.port, &k, u.id, &u)), 0);
	}
	assert_int_equal(make_with(&l, "b", 2), 0);
	expect_copies(2, ctime);
	/* one of that name that is made later knows nothing of it */
	assert_int_equal(removed(&l, "b"), 0);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(copies_of(&l, l.port, "b"), 1);
	end();
}

/* One that cannot: all have what they had; where that cannot be either, nothing is written any more. */
static void
test_copies_fail(void **state)
{
	uint64_t ctime = 0;
	char name[32];

	begin(3);
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(set_attrs(0, "tags"), 0);
	assert_int_equal(head(&l, l.port, "b", &ctime), 0);
	for (int i = 0; i < 3; i++) {
		mem_store_fail(engine(i), MEM_STAT, -EROFS, i == 0, 1);
		assert_int_equal(make_with(&l, "b", 2), -EROFS);
		expect_copies(1, ctime);
		mem_store_fail(engine(i), MEM_DELETE, -ENOSPC, 0, 1);
		assert_int_equal(make_with(&l, "b", 2), -ENOSPC);
		expect_copies(1, ctime);
		/* no room now: it is tried again */
		mem_store_fail(engine(i), MEM_DELETE, -EAGAIN, 0, 2);
		assert_int_equal(make_with(&l, "b", 2), 0);
		expect_copies(2, ctime);
		assert_int_equal(make_with(&l, "b", 1), 0);
	}
	mem_store_fail(engine(2), MEM_DELETE, -ENOSPC, 0, 1);
	mem_store_fail(engine(1), MEM_DELETE, -ENOSPC, 1, 1);
	assert_int_equal(make_with(&l, "b", 2), -ECANCELED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put(&l, l.port, "b", key_on(name, "b", i, 0)), i == 1 ? -EAGAIN : 0);
	end();
}

/* A store of one disk has no second one, whatever it is asked for or made with. */
static void
test_copies_one_disk(void **state)
{
	struct store_disk_conf disks[ENGINES_MAX];
	struct store_conf conf;
	char err[256];

	begin(1);
	assert_int_equal(make_with(&l, "b", 2), -EDOM);
	assert_int_equal(head(&l, l.port, "b", NULL), -ENXIO);
	assert_int_equal(make_with(&l, "b", 1), 0);
	assert_int_equal(make_with(&l, "b", 2), -EDOM);
	assert_int_equal(make_with(&l, "b", 1), -EEXIST);
	assert_int_equal(make_with(&l, "b", 0), -EEXIST);
	assert_int_equal(copies_of(&l, l.port, "b"), 1);
	end();
	conf = set_conf(disks, 1, 1);
	conf.default_copies = 2;
	assert_int_equal(store_task(&conf, TASK_CHECK_CONF, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "one disk is configured"));
	conf.default_copies = 1;
	assert_int_equal(store_task(&conf, TASK_CHECK_CONF, err, sizeof err), 0);
}

/* What a bucket gets whose maker does not say. */
static void
test_copies_by_default(void **state)
{
	begin(2);
	assert_int_equal(make(&l, "before"), 0);
	set_of(st)->conf.default_copies = 2;
	assert_int_equal(make(&l, "b"), 0);
	assert_int_equal(make_with(&l, "one", 1), 0);
	/* who does not say takes what is there */
	assert_int_equal(make(&l, "one"), -EEXIST);
	assert_int_equal(make(&l, "before"), -EEXIST);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(copies_of(&l, port_of(&l, i), "b"), 2);
		assert_int_equal(copies_of(&l, port_of(&l, i), "one"), 1);
		assert_int_equal(copies_of(&l, port_of(&l, i), "before"), 1);
	}
	end();
}

/* ---- many ports ---- */

#define PORTS 4

struct user {
	pthread_t thread;
	struct loop l;
	uint64_t seed;
	bool is_over;
};

static bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static void *
use(void *arg)
{
	struct user *u = arg;

	loop_begin(&u->l);
	for (int n = 0; n < 400; n++) {
		const char *bucket = rnd(&u->seed) % 2 ? "b" : "c";
		struct store_list ls = { .bucket = bucket, .bucket_len = 1, .max = 10, .entry = on_entry };
		struct store_bucket_set set;
		char name[32];
		int r;

		snprintf(name, sizeof name, "key-%d", (int)(rnd(&u->seed) % 3));
		switch (rnd(&u->seed) % 6) {
		case 0:
			r = make_with(&u->l, bucket, rnd(&u->seed) % 3);
			check(r == 0 || r == -EEXIST || r == -ENOTEMPTY);
			break;
		case 1:
			r = removed(&u->l, bucket);
			check(r == 0 || r == -ENXIO || r == -ENOTEMPTY);
			break;
		case 2:
			r = DO(&u->l, &set.op,
			       store_bucket_set_attrs(u->l.port, bucket, 1, STORE_VERSION_ANY, name, 5,
						      &set));
			check(r == 0 || r == -ENXIO);
			break;
		case 3:
			r = put(&u->l, u->l.port, bucket, name);
			check(r == 0 || r == -ENXIO || r == -EAGAIN);
			break;
		case 4:
			r = DO(&u->l, &ls.op, store_list(u->l.port, &ls));
			check((r >= 0 && r <= 3) || r == -ENXIO);
			break;
		default:
			r = del(&u->l, u->l.port, bucket, name);
			check(r >= 0 || r == -ENXIO || r == -EAGAIN);
		}
	}
	loop_end(&u->l);
	u->is_over = true;
	return NULL;
}

static void
test_many_ports(void **state)
{
	struct mem_store_tuning t = { .seed = seed_from_env(), .delay_max_us = 50, .stat_at_once = 50 };
	static struct user user[PORTS];
	struct store_port *more;

	set_begin(3, PORTS + 1, &t);
	loop_begin(&l);
	for (int i = 0; i < PORTS; i++) {
		user[i].seed = t.seed + (uint64_t)i * 77 + 1;
		user[i].is_over = false;
		assert_int_equal(pthread_create(&user[i].thread, NULL, use, &user[i]), 0);
	}
	for (int i = 0; i < PORTS; i++) {
		/* A port takes part in what the set does by itself. */
		while (!user[i].is_over)
			loop_turn(&l);
		pthread_join(user[i].thread, NULL);
	}
	/* nothing half done is left: what the first engine says is true of all */
	for (int b = 0; b < 2; b++) {
		const char *bucket = b ? "b" : "c";
		int want = head(&l, l.port, bucket, NULL), copies = copies_of(&l, l.port, bucket);

		for (int i = 0; i < 3; i++) {
			assert_int_equal(head(&l, port_of(&l, i), bucket, NULL), want);
			assert_int_equal(copies_of(&l, port_of(&l, i), bucket), copies);
		}
		for (int i = 0; want == 0 && i < 3; i++) {
			char name[32];

			snprintf(name, sizeof name, "key-%d", i);
			assert_true(del(&l, l.port, bucket, name) >= 0);
		}
		assert_int_equal(removed(&l, bucket), want);
	}
	/* as many as were said */
	for (int i = 0; i < PORTS; i++)
		loop_begin(&user[i].l);
	assert_int_equal(store_attach(st, NULL, &l.mb, NULL, &more), -EUSERS);
	for (int i = 0; i < PORTS; i++)
		loop_end(&user[i].l);
	end();
}

/* A port goes when what the set itself does on it is over, also what waits for its turn. */
static void
test_detach(void **state)
{
	struct store_del first = { .op.done = on_done }, second = { .op.done = on_done };

	begin(2);
	mem_store_hold(engine(1), true);
	assert_int_equal(store_bucket_create(l.port, "b", 1, 0, &first), 0);
	assert_int_equal(store_bucket_delete(l.port, "b", 1, &second), 0);
	for (int i = 0; i < 20; i++) {
		assert_false(store_detach(l.port));
		loop_turn(&l);
	}
	mem_store_hold(engine(1), false);
	first.op.result = second.op.result = 1;
	while (second.op.result == 1)
		loop_turn(&l);
	assert_int_equal(first.op.result, 0);
	assert_int_equal(second.op.result, 0);
	assert_true(store_detach(l.port));
	mailbox_fini(&l.mb);
	set_end();
}

/* ---- life ---- */

/* without_expiry: number of engines that have no object with an expiry */
static int formatted, snapshots, snapshot_result, fsck_nr, without_expiry;
static bool refuses_last;
static struct store_ops odd;
static struct store_member_ops odd_member;

static int
odd_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	assert_int_equal(conf->disks.nr, 1);
	formatted += !conf->disks.birth->is_look;
	return mem_engine_ops.format(conf, force, err, err_len);
}

static int
odd_open(const struct store_conf *conf, struct store **ret_store, struct store_member *ret_member, char *err,
	 size_t err_len)
{
	const char *path = conf->disks.disk[0].path;
	int e;

	assert_int_equal(conf->disks.nr, 1);
	assert_int_equal(conf->disks.index_bytes, 100);
	if (refuses_last && strcmp(path, "memory-2") == 0) {
		snprintf(err, err_len, "%s: odd", path);
		memset(ret_member, 0, sizeof *ret_member);
		return -EACCES;
	}
	e = mem_engine_ops.member->open(conf, ret_store, ret_member, err, err_len);
	if (e == 0) {
		(*ret_store)->ops = conf->ops;
		(*ret_store)->has_no_expiry = atoi(path + strlen("memory-")) < without_expiry;
	}
	return e;
}

static int
odd_fsck(const struct store_conf *conf, enum fsck_mode mode, void (*say)(void *cookie, const char *line),
	 void *cookie)
{
	static const int answers[2][3] = { { 0, 1, 0 }, { 1, -ENOTRECOVERABLE, -EIO } };

	say(cookie, conf->disks.disk[0].path);
	return answers[fsck_nr++ / 3][conf->disks.disk[0].path[7] - '0'];
}

static int
odd_task(const struct store_conf *conf, enum store_task task, char *text, size_t len)
{
	if (task != TASK_UPGRADE)
		return -ENOSYS;
	snprintf(text, len, "%s: upgraded", conf->disks.disk[0].path);
	return strcmp(conf->disks.disk[0].path, "memory-2") == 0 ? -EIO : 0;
}

/* The first one says snapshot_result. */
static int
odd_snapshot(struct store *store)
{
	return snapshots++ ? 0 : snapshot_result;
}

static char said[256];

static void
say(void *cookie, const char *line)
{
	strcat(strcat(said, line), "\n");
}

/* What is not started: each engine is asked. */
static void
each_engine(struct store_conf *conf)
{
	char err[128];

	assert_int_equal(store_format(conf, false, err, sizeof err), 0);
	assert_int_equal(formatted, 3);
	refuses_last = true;
	assert_int_equal(store_start(conf, &st, err, sizeof err), -EACCES);
	assert_string_equal(err, "memory-2: odd");
	assert_int_equal(store_fsck(conf, FSCK_LOOK, say, NULL), 1);
	assert_string_equal(said, "memory-0\nmemory-1\nmemory-2\n");
	assert_int_equal(store_fsck(conf, FSCK_LOOK, say, NULL), -ENOTRECOVERABLE);
	refuses_last = false;
	/* one has one format; then each says what it did, up to the first that fails */
	assert_int_equal(
		store_task(&(struct store_conf){ .ops = &mem_store_ops }, TASK_UPGRADE, err, sizeof err), 0);
	assert_string_equal(err, "a store on mem has one format");
	odd.task = odd_task;
	assert_int_equal(store_task(conf, TASK_UPGRADE, err, sizeof err), -EIO);
	assert_string_equal(err, "memory-0: upgraded\nmemory-1: upgraded\nmemory-2: upgraded");
	assert_int_equal(store_task(conf, TASK_UPGRADE, err, 20), -EIO);
	assert_string_equal(err, "memory-0: upgraded\n");
}

static void
refusals(struct store_conf *conf)
{
	char err[128];

	conf->disks.nr = 0;
	assert_int_equal(store_start(conf, &st, err, sizeof err), -EINVAL);
	assert_string_equal(err, "no disk is configured");
	conf->disks.nr = 3;
	conf->disks.engines_max = 2;
	assert_int_equal(store_start(conf, &st, err, sizeof err), -EINVAL);
	assert_string_equal(err, "3 disks are configured; a store may have 2");
	assert_int_equal(store_format(conf, true, err, sizeof err), -EINVAL);
	assert_string_equal(err, "3 disks are configured; a store may have 2");
	assert_int_equal(store_task(conf, TASK_UPGRADE, err, sizeof err), -EINVAL);
	assert_string_equal(err, "3 disks are configured; a store may have 2");
	said[0] = 0;
	assert_int_equal(store_fsck(conf, FSCK_LOOK, say, NULL), -EINVAL);
	assert_string_equal(said, "3 disks are configured; a store may have 2\n");
	assert_int_equal(formatted, 3);
}

static void
test_life(void **state)
{
	struct store_disk_conf disks[ENGINES_MAX];
	struct store_conf conf = set_conf(disks, 3, 1);
	struct store_unit_info info;
	char err[128];

	turns_begin(1);
	turns_step = mem_disks_step;
	mem_disks_begin(1);
	odd = mem_engine_ops;
	odd_member = *mem_engine_ops.member;
	odd.member = &odd_member;
	odd_member.open = odd_open;
	odd.format = odd_format;
	odd.fsck = odd_fsck;
	odd.snapshot = NULL;
	conf.disks.engine = &odd;
	conf.disks.index_bytes = 300;
	each_engine(&conf);
	for (without_expiry = 2; without_expiry <= 3; without_expiry++) {
		assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
		assert_int_equal(store_unit_nr(st), 3);
		store_unit_info(st, 1, &info);
		assert_string_equal(info.name, "memory-1");
		assert_int_equal(store_had_no_expiry(st), without_expiry == 3);
		/* no engine has snapshots */
		assert_int_equal(store_snapshot(st), -EOPNOTSUPP);
		store_stop(st);
	}
	odd.snapshot = odd_snapshot;
	assert_int_equal(store_start(&conf, &st, err, sizeof err), 0);
	assert_int_equal(store_snapshot(st), 0);
	assert_int_equal(snapshots, 3);
	/* all are asked, and the first one's error is told */
	snapshots = 0;
	snapshot_result = -EIO;
	assert_int_equal(store_snapshot(st), -EIO);
	assert_int_equal(snapshots, 3);
	store_stop(st);
	refusals(&conf);
	mem_disks_begin(0);
}

/* What the start of a set removes on one engine: a bucket that the first engine does not have, also with objects that have expired. */
static void
test_aligned(void **state)
{
	struct store *both[2], *second;
	struct store_commit c = { .inline_data = "x", .inline_len = 1 };
	struct store_stat stat;
	struct store_user *u;
	struct store_put op;
	struct store_del del;
	char err[128];

	set_begin(2, 2, &quick);
	both[0] = engine(0);
	both[1] = second = engine(1);
	assert_int_equal(store_user_new(&second, 1, &u), 0);
	assert_int_equal(STORE_DO(u, &del.op, store_bucket_create(store_user_port(u, 0), "b", 1, 0, &del)),
			 0);
	for (int i = 0; i < 2; i++) {
		char name[32];
		struct store_key k = key_of("b", key_on(name, "b", 1, i));

		c.meta.expires_ns = i ? NS_PER_S : 0;
		memset(&op, 0, sizeof op);
		assert_int_equal(store_put_init(store_user_port(u, 0), &op, &k, 1), 0);
		assert_int_equal(STORE_DO(u, &op.op, store_put_commit(store_user_port(u, 0), &op, &c)), 0);
		store_put_abort(store_user_port(u, 0), &op);
	}
	assert_int_equal(set_align_buckets(both, 2, err, sizeof err), 0);
	assert_int_equal(STORE_DO(u, &stat.op, store_bucket_head(store_user_port(u, 0), "b", 1, &stat)),
			 -ENXIO);
	store_user_free(u);
	set_end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_one_log),
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_not_empty),
		cmocka_unit_test(test_removed_where_it_can_be),
		cmocka_unit_test(test_gate_fails),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_make_fails),
		cmocka_unit_test(test_make_beside_remains),
		cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_many_ports),
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_fail),
		cmocka_unit_test(test_copies_one_disk),
		cmocka_unit_test(test_copies_by_default),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_aligned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
