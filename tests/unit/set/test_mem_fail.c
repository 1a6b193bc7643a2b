/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks in memory that fail while a set serves: at any step of a change of buckets, while a placement map is written, one after the other
 * until fewer than half are left; and the contents that the next start finds.  SEED= repeats a run.
 */
#include "mem_rig.h"

static uint64_t seed;
static int disks_nr;

/* ---- requests, and states of the set ---- */

static bool
is_in(uint64_t want)
{
	return set_in(set_of(st)) == want;
}

static void
wait_in(uint64_t want)
{
	for (uint64_t until = clock_ns() + PATIENCE_NS; !is_in(want) && clock_ns() < until;)
		store_user_turn(user);
	assert_true(is_in(want));
}

static void
wait_read_only(void)
{
	for (uint64_t until = clock_ns() + PATIENCE_NS; !set_is_read_only(set_of(st)) && clock_ns() < until;)
		store_user_turn(user);
	assert_true(set_is_read_only(set_of(st)));
}

static int
list(const char *bucket)
{
	struct listing l;

	return list_names(user, bucket, &l);
}

static int
uploads(const char *bucket)
{
	struct listing l = { .ls = { .bucket = bucket, .max = 64, .entry = on_listed } };

	l.ls.bucket_len = (uint16_t)strlen(bucket);
	return STORE_DO(user, &l.ls.op, store_list_uploads(store_user_port(user, 0), &l.ls));
}

static int
make(const char *bucket)
{
	return make_bucket(user, bucket, 0);
}

static int
removed(const char *bucket)
{
	return remove_bucket(user, bucket);
}

/* Asks an engine for a bucket: 0 or -errno. */
static int
head(int engine, const char *bucket)
{
	struct store_port *e = port_engine(set_port(store_user_port(user, 0)), engine);
	struct store_stat s = { .version = 0 };

	return STORE_DO(user, &s.op, store_bucket_head(e, bucket, strlen(bucket), &s));
}

static int
bucket_there(const char *bucket)
{
	struct store_stat s = { .version = 0 };

	return STORE_DO(user, &s.op, store_bucket_head(store_user_port(user, 0), bucket, strlen(bucket), &s));
}

static int
set_attrs_of(struct store_user *u, uint64_t version, const char *attrs)
{
	struct store_bucket_set op;

	return STORE_DO(u, &op.op,
			store_bucket_set_attrs(store_user_port(u, 0), "b", 1, version, attrs,
					       (uint32_t)strlen(attrs), &op));
}

static int
set_attrs(uint64_t version, const char *attrs)
{
	return set_attrs_of(user, version, attrs);
}

static const char *
attrs(uint64_t *ret_version)
{
	static char text[64];
	struct store_stat s = { .version = 0 };

	memset(text, 0, sizeof text);
	assert_int_equal(
		STORE_DO(user, &s.op,
			 store_bucket_get_attrs(store_user_port(user, 0), "b", 1, text, sizeof text - 1, &s)),
		0);
	if (ret_version)
		*ret_version = s.version;
	return text;
}

/* Makes a store in which each disk has an object of bucket "b". */
static void
begin(int nr)
{
	disks_nr = nr;
	rig_begin(seed, nr);
	up();
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < nr; i++)
		assert_int_equal(put_on("b", i), 0);
}

static void
end(void)
{
	down();
	rig_end();
}

/* Fails a disk by a PUT of which the result is not known. */
static void
fails(int disk)
{
	mem_disk_fail(paths[disk], 1);
	assert_int_equal(put_on("b", disk), -ECANCELED);
	assert_int_equal(put_on("b", disk), -EROFS);
}

static void
accept(int disk, int at)
{
	memcpy(accepted[at], mem_disk_uuid(paths[disk]), UUID_BYTES);
	conf.disks.accept_missing_nr =
		conf.disks.accept_missing_nr <= at ? at + 1 : conf.disks.accept_missing_nr;
}

/* ---- tests ---- */

/* The share of a failed disk is read and not written, all other requests go well, and after a restart all do. */
static void
test_share(void **state)
{
	for (int bad = 0; bad < 3; bad++) {
		uint64_t left = 7 & ~((uint64_t)1 << bad);

		begin(3);
		assert_int_equal(make("empty"), 0);
		fails(bad);
		wait_in(left);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(look_on("b", i), 0);
			assert_int_equal(put_on("b", i), i == bad ? -EROFS : 0);
			assert_int_equal(look_on("empty", i), -ENOENT);
			assert_int_equal(del_on("empty", i), i == bad ? -EROFS : 0);
		}
		assert_int_equal(list("b"), 3);
		/* The failed disk may have got an object last. */
		assert_int_equal(removed("empty"), -EROFS);
		assert_int_equal(put_on("empty", (bad + 1) % 3), 0);
		/* A bucket that the disk never hears of is there, and its share of it is empty. */
		assert_int_equal(make("new"), 0);
		assert_int_equal(make("new"), -EEXIST);
		assert_int_equal(bucket_there("new"), 0);
		assert_int_equal(head(bad, "new"), -ENXIO);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(look_on("new", i), -ENOENT);
			assert_int_equal(put_on("new", i), i == bad ? -EROFS : 0);
		}
		assert_int_equal(list("new"), 2);
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "tags"), 0);
		assert_string_equal(attrs(NULL), "tags");
		down();
		for (int i = 0; i < 3; i++) {
			const struct disk_table *t = mem_disk_table(paths[i]);

			assert_true(t->in == (i == bad ? 7 : left));
			assert_true(i == bad || t->version > mem_disk_table(paths[bad])->version);
		}
		up();
		for (int i = 0; i < 3; i++) {
			assert_int_equal(head(i, "new"), 0);
			assert_int_equal(look_on("new", i), i == bad ? -ENOENT : 0);
			assert_int_equal(put_on("new", i), 0);
		}
		assert_string_equal(attrs(NULL), "tags");
		assert_int_equal(list("b"), 3);
		end();
	}
}

/* A disk fails when it gets its part of a change: the change is made by the others. */
static void
test_under_change(void **state)
{
	for (int bad = 0; bad < 3; bad++) {
		uint64_t version;

		/* A bucket is made. */
		begin(3);
		mem_disk_fail(paths[bad], 1);
		assert_int_equal(make("new"), 0);
		assert_true(is_in(7 & ~((uint64_t)1 << bad)));
		assert_int_equal(bucket_there("new"), 0);
		assert_int_equal(put_on("new", (bad + 2) % 3), 0);
		assert_int_equal(look_on("new", bad), -ENOENT);
		restart();
		for (int i = 0; i < 3; i++)
			assert_int_equal(head(i, "new"), 0);
		assert_int_equal(list("new"), 1);

		/* A bucket is removed: the disk does not bring it back. */
		assert_int_equal(del_on("new", (bad + 2) % 3), 1);
		mem_disk_fail(paths[bad], 1);
		assert_int_equal(removed("new"), 0);
		assert_int_equal(bucket_there("new"), -ENXIO);
		assert_int_equal(list("new"), -ENXIO);
		assert_int_equal(look_on("new", bad), -ENXIO);
		/* The next bucket of that name is another one. */
		assert_int_equal(make("new"), 0);
		assert_int_equal(look_on("new", bad), -ENOENT);
		assert_int_equal(list("new"), 0);
		assert_int_equal(put_on("new", (bad + 1) % 3), 0);
		restart();
		for (int i = 0; i < 3; i++)
			assert_int_equal(head(i, "new"), 0);
		assert_int_equal(list("new"), 1);

		/* Attributes are set: only the failure of the disk that validates versions is an error. */
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "one"), 0);
		attrs(&version);
		mem_disk_fail(paths[bad], 1);
		assert_int_equal(set_attrs(version, "two"), bad == 0 ? -EAGAIN : 0);
		assert_string_equal(attrs(&version), bad == 0 ? "one" : "two");
		assert_int_equal(set_attrs(version, "three"), 0);
		assert_string_equal(attrs(NULL), "three");
		restart();
		assert_string_equal(attrs(NULL), "three");
		mem_disk_fail(paths[bad], 1);
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "four"), 0);
		assert_string_equal(attrs(NULL), "four");
		end();
	}
}

/* A disk fails while a bucket with a quota is removed: the next bucket of that name has no quota, whichever disk led the last start. */
static void
test_quota_goes(void **state)
{
	for (int i = 0; i < 9; i++) {
		int absent = i / 3, bad = i % 3;
		struct store_use max = { .objects = 1, .bytes = STORE_UNBOUNDED, .uploads = STORE_UNBOUNDED };
		struct store_bucket_set set;
		struct store_quota_info q;

		begin(3);
		/* The start that brings it back is led by another disk. */
		fails(absent);
		wait_in(7 & ~((uint64_t)1 << absent));
		restart();
		assert_int_equal(make("new"), 0);
		assert_int_equal(
			STORE_DO(user, &set.op,
				 store_bucket_set_quota(store_user_port(user, 0), "new", 3, &max, &set)),
			0);
		assert_int_equal(store_bucket_quota(st, "new", 3, &q), 0);
		assert_true(q.has_bound);
		mem_disk_fail(paths[bad], 1);
		assert_int_equal(removed("new"), 0);
		assert_int_equal(make("new"), 0);
		assert_int_equal(store_bucket_quota(st, "new", 3, &q), 0);
		assert_false(q.has_bound);
		assert_int_equal(put_on("new", (bad + 1) % 3), 0);
		assert_int_equal(put_on("new", (bad + 2) % 3), 0);
		end();
	}
}

/* A version that was read from a disk that has failed since is no version of the next disk, though both count alike. */
static void
test_version_of_another(void **state)
{
	uint64_t version;

	begin(3);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "one"), 0);
	attrs(&version);
	fails(0);
	wait_in(6);
	assert_int_equal(set_attrs(version, "lost"), -ESTALE);
	assert_string_equal(attrs(&version), "one");
	assert_int_equal(set_attrs(version, "two"), 0);
	assert_string_equal(attrs(NULL), "two");
	end();
}

/* Uploads end with their bucket, also those on a disk that failed when the bucket was removed. */
static void
test_uploads(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	char name[32];

	begin(3);
	assert_int_equal(make("new"), 0);
	name_on(name, "new", 1, -1, 0);
	assert_int_equal(upload_begin(user, "new", name, id), 0);
	assert_int_equal(uploads("new"), 1);
	mem_disk_fail(paths[1], 1);
	assert_int_equal(removed("new"), 0);
	assert_int_equal(uploads("new"), -ENXIO);
	assert_int_equal(make("new"), 0);
	assert_int_equal(uploads("new"), 0);
	assert_int_equal(upload_look(user, "new", name, id), -ENOENT);
	end();
}

/* Another disk fails while the placement map without the first is written; half of the disks serve on, with fewer all is read-only. */
static void
test_below_half(void **state)
{
	begin(4);
	mem_disk_fail(paths[2], 1);
	fails(1);
	wait_in(9);
	assert_int_equal(make("new"), 0);
	assert_int_equal(put_on("new", 3), 0);
	fails(3);
	wait_read_only();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(look_on("b", i), 0);
		assert_int_equal(put_on("b", i), -EROFS);
		assert_int_equal(del_on("b", i), -EROFS);
	}
	assert_int_equal(make("more"), -EROFS);
	assert_int_equal(removed("new"), -EROFS);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "no"), -EROFS);
	assert_int_equal(bucket_there("new"), 0);
	assert_int_equal(list("b"), 4);
	down();
	/* The half that served may start without the other. */
	accept(1, 0);
	accept(2, 1);
	mem_disk_absent(paths[1], true);
	mem_disk_absent(paths[2], true);
	up();
	assert_int_equal(look_on("new", 3), 0);
	down();
	bring_back(1);
	bring_back(2);
	up();
	for (int i = 0; i < 4; i++)
		assert_int_equal(head(i, "new"), 0);
	assert_int_equal(removed("new"), -ENOTEMPTY);
	end();
}

/* Another disk fails when the placement map without the first is written, and no majority is left: the change in progress is not answered
 * with success, and all is read-only. */
static void
test_no_majority(void **state)
{
	int r;

	begin(3);
	mem_disk_fail(paths[1], 1);
	/* Its part of the bucket goes well. */
	mem_disk_fail(paths[2], 2);
	r = make("new");
	assert_true(r == -ECANCELED || r == -EROFS);
	wait_read_only();
	assert_int_equal(make("more"), -EROFS);
	assert_int_equal(removed("b"), -EROFS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look_on("b", i), 0);
		assert_int_equal(put_on("b", i), -EROFS);
	}
	restart();
	for (int i = 1; i < 3; i++)
		assert_int_equal(head(i, "new"), head(0, "new"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(put_on("b", i), 0);
	end();
}

/* A disk that fails in a start is out of it, also when the start begins again because of another: bytes that the first flush did not write
 * are lost, though the next flush would end well. */
static void
test_told_once(void **state)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		accept(i, i);
	down();
	mem_disk_fail(paths[1], 1);
	mem_disk_fail(paths[2], 2);
	assert_int_equal(start(), -EINVAL);
	assert_non_null(strstr(err, "only 2 of 4 disks are there"));
	up();
	assert_int_equal(list("b"), 4);
	end();
}

/* ---- changes that wait ---- */

enum change { CREATE, DELETE, SET_ATTRS, CHANGES };
struct call {
	enum change change;
	int result;
	bool is_over, is_gone; /* the change is answered; its thread has ended */
};

static void
call_main(void *arg)
{
	struct call *c = arg;
	struct store_user *u;
	char tags[] = "tags";

	check(store_user_new(&st, 1, &u) == 0);
	c->result = c->change == CREATE   ? make_bucket(u, "more", 0)
		    : c->change == DELETE ? remove_bucket(u, "new")
					  : set_attrs_of(u, STORE_VERSION_ANY, tags);
	c->is_over = true;
	memset(tags, 'x', sizeof tags);
	store_user_free(u);
	c->is_gone = true;
}

/* Lets a change go on for a while, in which other requests are answered. */
static void
serve_for(uint64_t ns, int disk)
{
	for (uint64_t until = clock_ns() + ns; clock_ns() < until;) {
		assert_int_equal(put_on("b", disk), 0);
		assert_int_equal(bucket_there("b"), 0);
	}
}

/* A bucket is answered after the placement map without a failed disk was written; a disk that does not write the map is waited for until it
 * has failed. */
static void
test_table_held(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct call c = { .change = CREATE };

		begin(4);
		mem_disk_hold(paths[3], HOLD_MAPS);
		mem_disk_fail(paths[0], 1);
		turns_go(call_main, &c);
		serve_for(NS_PER_S, 1);
		assert_true(mem_disk_has_failed(paths[0]));
		assert_false(c.is_over);
		assert_int_equal(list("b"), 4);
		if (how == 0)
			mem_disk_hold(paths[3], HOLD_NOTHING);
		else
			mem_disk_fail(paths[3], 0);
		for (uint64_t until = clock_ns() + PATIENCE_NS; !c.is_over && clock_ns() < until;)
			store_user_turn(user);
		assert_true(c.is_over);
		assert_int_equal(c.result, 0);
		assert_true(is_in(how == 0 ? 14 : 6));
		assert_int_equal(bucket_there("more"), 0);
		mem_disk_hold(paths[3], HOLD_NOTHING);
		while (!c.is_gone)
			store_user_turn(user);
		restart();
		for (int i = 0; i < 4; i++)
			assert_int_equal(head(i, "more"), 0);
		end();
	}
}

/* A disk hangs under a change: after it has failed the change goes on without it, and the part that it got ends at any time later. */
static void
test_hangs(void **state)
{
	for (int bad = 0; bad < 3; bad++) {
		for (enum change what = 0; what < CHANGES; what++) {
			struct call c = { .change = what };

			begin(3);
			assert_int_equal(make("new"), 0);
			mem_disk_hold(paths[bad], HOLD_CHANGES);
			turns_go(call_main, &c);
			turn_for(NS_PER_S);
			assert_int_equal(put_on("b", (bad + 1) % 3), 0);
			assert_false(c.is_over);
			mem_disk_fail(paths[bad], 0);
			for (uint64_t until = clock_ns() + PATIENCE_NS; !c.is_over && clock_ns() < until;)
				store_user_turn(user);
			assert_true(c.is_over);
			assert_int_equal(c.result, 0);
			assert_true(is_in(7 & ~((uint64_t)1 << bad)));
			mem_disk_hold(paths[bad], HOLD_NOTHING);
			while (!c.is_gone)
				store_user_turn(user);
			assert_int_equal(bucket_there("more"), what == CREATE ? 0 : -ENXIO);
			assert_int_equal(bucket_there("new"), what == DELETE ? -ENXIO : 0);
			assert_string_equal(attrs(NULL), what == SET_ATTRS ? "tags" : "");
			assert_int_equal(make("another"), 0);
			restart();
			for (int i = 0; i < 3; i++) {
				assert_int_equal(head(i, "more"), what == CREATE ? 0 : -ENXIO);
				assert_int_equal(head(i, "new"), what == DELETE ? -ENXIO : 0);
				assert_int_equal(head(i, "another"), 0);
			}
			assert_string_equal(attrs(NULL), what == SET_ATTRS ? "tags" : "");
			end();
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),       cmocka_unit_test(test_under_change),
		cmocka_unit_test(test_quota_goes),  cmocka_unit_test(test_version_of_another),
		cmocka_unit_test(test_uploads),     cmocka_unit_test(test_below_half),
		cmocka_unit_test(test_no_majority), cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_table_held),  cmocka_unit_test(test_hangs),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
