/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a set over disks in memory: buckets and their attributes on each of them, disks that are missing, given up, or back with an
 * older or a newer placement map.  SEED= repeats a run.
 */
#include "mem_rig.h"

#include "set/set_int.h"
#include "base/disk_name.h"
#include "tests/fake/remedies.h"

static uint64_t seed;

static void
begin(int nr)
{
	memset(accepted, 0, sizeof accepted);
	rig_begin(seed, nr);
	up();
	for (int i = 0; i < nr; i++)
		memcpy(accepted[i], mem_disk_uuid(paths[i]), UUID_BYTES);
}

static void
end(void)
{
	down();
	rig_end();
}

/* Checks that the start is refused with this text, and that no disk has changed. */
static void
must_refuse(int error, const char *text)
{
	uint64_t changes = mem_disks_changes();
	int r = start();

	if (r != error || !strstr(err, text) || !remedies_are_in_order(err))
		fail_msg("%d instead of %d: %s", r, error, r < 0 ? err : "");
	assert_int_equal(mem_disks_changes(), changes);
}

/* Names the disk that was the i-th at the beginning, as messages do. */
static const char *
named(int i)
{
	static char text[DISK_NAME_BYTES + 8];
	char name[DISK_NAME_BYTES];

	snprintf(text, sizeof text, "disk %s", disk_name_of(name, accepted[i], ""));
	return text;
}

/* Leaves the i-th of nr disks out of the configuration; it may be missing, or not. */
static void
leave_out(int i, int nr, bool may_be_missing)
{
	use(nr - 1);
	memmove(&disks[i], &disks[i + 1], (size_t)(nr - 1 - i) * sizeof disks[0]);
	conf.disks.accept_missing_nr = may_be_missing ? DISKS : 0;
}

static struct store_port *
engine(int i)
{
	return port_engine(set_port(store_user_port(user, 0)), i);
}

static int
list(const char *bucket)
{
	struct listing l;

	return list_names(user, bucket, &l);
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

static int
head(int i, const char *bucket)
{
	struct store_stat s = { .version = 0 };

	return STORE_DO(user, &s.op, store_bucket_head(engine(i), bucket, strlen(bucket), &s));
}

static int
copies_of(int i, const char *bucket)
{
	struct store_stat s = { .copies = 77 };
	int r = STORE_DO(user, &s.op, store_bucket_head(engine(i), bucket, strlen(bucket), &s));

	return r < 0 ? r : (int)s.copies;
}

static int
gate(int i, const char *bucket, bool close)
{
	struct store_del op;
	struct store_port *e = engine(i);
	const struct store_change c = { .act = ACT_GATE_BUCKET,
					.key = { .bucket = bucket, .bucket_len = (uint16_t)strlen(bucket) },
					.gate = close ? GATE_CLOSE_EMPTY : GATE_OPEN };

	return STORE_DO(user, &op.op, e->ops->apply(e, &c, &op.op));
}

static int
set_attrs(const char *bucket, const char *attrs, uint32_t len)
{
	struct store_bucket_set op;

	return STORE_DO(user, &op.op,
			store_bucket_set_attrs(store_user_port(user, 0), bucket, strlen(bucket),
					       STORE_VERSION_ANY, attrs, len, &op));
}

/* ---- starts ---- */

/* Keys are found in any order of the configuration, and a store is not made twice. */
static void
test_order(void **state)
{
	begin(3);
	assert_int_equal(store_unit_nr(st), 3);
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put_on("b", i), 0);
	down();
	for (int turn = 0; turn < 3; turn++) {
		struct store_disk_conf first = disks[0];

		memmove(disks, disks + 1, 2 * sizeof disks[0]);
		disks[2] = first;
		up();
		for (int i = 0; i < 3; i++) {
			struct store_unit_info info;

			assert_int_equal(look_on("b", i), 0);
			store_unit_info(st, i, &info);
			assert_string_equal(info.name, paths[i]);
			assert_int_equal(store_unit_number(&info, "objects"), 1);
		}
		assert_int_equal(list("b"), 3);
		down();
	}
	assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
	rig_end();
}

/* A disk is missing: its share is 503, and changes that it misses are made when it is back. */
static void
test_missing(void **state)
{
	struct store_unit_info info;
	struct store_stat stat = { .version = 0 };
	char attrs[16];

	begin(3);
	assert_int_equal(make("b"), 0);
	assert_int_equal(make("empty"), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put_on("b", i), 0);
	down();
	leave_out(1, 3, false);
	must_refuse(-EINVAL, ", of a store of 3 disks, is missing (no path of store.disks is left for it)\n"
			     "remedy: attach the disk ");
	leave_out(1, 3, true);
	up();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look_on("b", i), i == 1 ? -ENODEV : 0);
		assert_int_equal(put_on("b", i), i == 1 ? -ENODEV : 0);
	}
	assert_int_equal(look_on("empty", 1), -ENODEV);
	assert_int_equal(del_on("empty", 1), -ENODEV);
	assert_int_equal(list("b"), -ENODEV);
	assert_int_equal(removed("empty"), -ENODEV);
	store_unit_info(st, 1, &info);
	assert_true(info.state == UNIT_MISSING);
	/* The disk misses these. */
	assert_int_equal(make("new"), 0);
	assert_int_equal(set_attrs("new", "attrs", 5), 0);
	down();
	/* It is back with an older map. */
	use(3);
	up();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look_on("b", i), 0);
		assert_int_equal(put_on("new", i), 0);
	}
	assert_int_equal(list("b"), 3);
	down();
	/* Another disk goes: the contents that the one got when it came back count. */
	leave_out(0, 3, false);
	must_refuse(-EINVAL, named(0));
	leave_out(0, 3, true);
	up();
	assert_int_equal(STORE_DO(user, &stat.op,
				  store_bucket_get_attrs(store_user_port(user, 0), "new", 3, attrs,
							 sizeof attrs, &stat)),
			 0);
	assert_int_equal(stat.attrs_len, 5);
	assert_memory_equal(attrs, "attrs", 5);
	end();
}

/* A bucket that was removed and made again while a disk was away is another one: objects of the earlier bucket on that disk go. */
static void
test_bucket_again(void **state)
{
	begin(3);
	assert_int_equal(make("b"), 0);
	assert_int_equal(put_on("b", 2), 0);
	down();
	/* The two others lose the bucket without the third, which no delete does: as if the third had failed under one. */
	leave_out(2, 3, true);
	up();
	set_of(st)->members.missing_nr = 0;
	assert_int_equal(removed("b"), 0);
	set_of(st)->members.missing_nr = 1;
	assert_int_equal(make("b"), 0);
	down();
	use(3);
	up();
	assert_int_equal(list("b"), 0);
	assert_int_equal(look_on("b", 2), -ENOENT);
	assert_int_equal(put_on("b", 2), 0);
	assert_int_equal(list("b"), 1);
	end();
}

/* ---- documents and bounds of buckets ---- */

static int
bound_b(struct store_port *p, uint64_t objects)
{
	struct store_use max = { objects, STORE_UNBOUNDED, STORE_UNBOUNDED };
	struct store_bucket_set set;

	return STORE_DO(user, &set.op, store_bucket_set_quota(p, "b", 1, &max, &set));
}

static void
expect_bound_b(uint64_t objects)
{
	struct store_quota_info q;

	assert_int_equal(store_bucket_quota(st, "b", 1, &q), 0);
	assert_int_equal(q.has_bound, objects != STORE_UNBOUNDED);
	assert_int_equal(q.max.objects, objects);
}

/* A disk that is back gets the bound that the others have, also if that is none, and if the disk is the first of all; nor has the next first
 * disk a bound that a cut left on it alone. */
static void
test_bound_missed(void **state)
{
	begin(3);
	assert_int_equal(make("b"), 0);
	assert_int_equal(bound_b(store_user_port(user, 0), 5), 0);
	down();
	leave_out(0, 3, true);
	up();
	expect_bound_b(5);
	assert_int_equal(bound_b(store_user_port(user, 0), STORE_UNBOUNDED), 0);
	down();
	use(3);
	for (int i = 0; i < 2; i++) {
		up();
		expect_bound_b(STORE_UNBOUNDED);
		down();
	}
	/* as a cut leaves it */
	up();
	assert_int_equal(bound_b(engine(1), 7), 0);
	restart();
	expect_bound_b(STORE_UNBOUNDED);
	down();
	leave_out(0, 3, true);
	up();
	expect_bound_b(STORE_UNBOUNDED);
	end();
}

/* Nothing is written while a gate is closed; a change that a cut left half done is made as the first disk has it. */
static void
test_gates(void **state)
{
	const struct store_change half = { .act = ACT_MAKE_BUCKET,
					   .key = { .bucket = "half", .bucket_len = 4 },
					   .copies = 1,
					   .ctime_ns = 1,
					   .is_gated = true };
	struct store_del op;
	struct store_port *e;

	begin(2);
	assert_int_equal(make("b"), 0);
	assert_int_equal(gate(1, "none", true), -ENXIO);
	assert_int_equal(gate(1, "b", true), 0);
	assert_int_equal(put_on("b", 1), -EAGAIN);
	assert_int_equal(gate(1, "b", false), 0);
	assert_int_equal(put_on("b", 1), 0);
	assert_int_equal(gate(1, "b", true), -ENOTEMPTY);
	assert_int_equal(del_on("b", 1), 1);
	/* One bucket is made on one disk, with a closed gate, and another is removed from one disk. */
	e = engine(1);
	assert_int_equal(STORE_DO(user, &op.op, e->ops->apply(e, &half, &op.op)), 0);
	assert_int_equal(put_on("half", 1), -ENXIO);
	assert_int_equal(STORE_DO(user, &op.op, store_bucket_delete(e, "b", 1, &op)), 0);
	restart();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(head(i, "half"), -ENXIO);
		assert_int_equal(head(i, "b"), 0);
	}
	assert_int_equal(put_on("b", 1), 0);
	assert_int_equal(removed("b"), -ENOTEMPTY);
	assert_int_equal(del_on("b", 1), 1);
	assert_int_equal(removed("b"), 0);
	end();
}

static void
expect_bucket(int disks_nr, int copies, uint64_t ctime_ns)
{
	for (int i = 0; i < disks_nr; i++) {
		char attrs[STORE_BUCKET_ATTRS_MAX];
		struct store_stat s = { .ctime_ns = 0 };

		assert_int_equal(copies_of(i, "b"), copies);
		assert_int_equal(STORE_DO(user, &s.op,
					  store_bucket_get_attrs(engine(i), "b", 1, attrs, sizeof attrs, &s)),
				 0);
		assert_true(s.ctime_ns == ctime_ns && s.attrs_len == sizeof attrs && s.version);
		for (uint32_t n = 0; n < sizeof attrs; n++)
			assert_int_equal((uint8_t)attrs[n], n * 7 % 251);
	}
}

static void
expect_bounds(void)
{
	struct store_quota_info q;

	assert_int_equal(store_bucket_quota(st, "b", 1, &q), 0);
	assert_true(q.has_bound && q.max.objects == 5 && q.max.uploads == 7);
}

/* Makes a bucket with documents and a bound, and returns its time. */
static uint64_t
make_with_all(void)
{
	struct store_use bound = { 5, STORE_UNBOUNDED, 7 };
	static char attrs[STORE_BUCKET_ATTRS_MAX];
	struct store_bucket_set set;
	struct store_stat s = { .ctime_ns = 0 };

	for (uint32_t n = 0; n < sizeof attrs; n++)
		attrs[n] = (char)(n * 7 % 251);
	assert_int_equal(make_bucket(user, "b", 1), 0);
	assert_int_equal(set_attrs("b", attrs, sizeof attrs), 0);
	assert_int_equal(STORE_DO(user, &set.op,
				  store_bucket_set_quota(store_user_port(user, 0), "b", 1, &bound, &set)),
			 0);
	assert_int_equal(STORE_DO(user, &s.op, store_bucket_head(store_user_port(user, 0), "b", 1, &s)), 0);
	return s.ctime_ns;
}

/* The number of copies of an empty bucket is changed: its time, attributes and bounds stay, also through a start. */
static void
test_copies(void **state)
{
	uint64_t ctime_ns;

	begin(3);
	ctime_ns = make_with_all();
	for (int nr = 0; nr < 2; nr++) {
		int had = nr ? 2 : 1, want = nr ? 1 : 2;

		for (int i = 0; i < 3; i++) {
			uint8_t id[STORE_UPLOAD_ID_BYTES];
			char name[32];

			name_on(name, "b", i, -1, 0);
			assert_int_equal(put(user, "b", name, 5), 0);
			assert_int_equal(make_bucket(user, "b", (unsigned)want), -ENOTEMPTY);
			assert_int_equal(del(user, "b", name), 1);
			assert_int_equal(upload_begin(user, "b", name, id), 0);
			assert_int_equal(make_bucket(user, "b", (unsigned)want), -ENOTEMPTY);
			expect_bucket(3, had, ctime_ns);
			assert_int_equal(upload_abort(user, "b", name, id), 0);
		}
		assert_int_equal(make_bucket(user, "b", (unsigned)want), 0);
		expect_bucket(3, want, ctime_ns);
		restart();
		expect_bucket(3, want, ctime_ns);
		expect_bounds();
		assert_int_equal(make_bucket(user, "b", (unsigned)want), -EEXIST);
	}
	end();
}

/* A change of the number of copies is cut after the first disk, and before it: it is made as the first disk has it. */
static void
test_copies_cut(void **state)
{
	uint64_t ctime_ns;

	begin(3);
	ctime_ns = make_with_all();
	for (int i = 0; i < 2; i++) {
		const struct store_change two = { .act = ACT_SET_COPIES,
						  .key = { .bucket = "b", .bucket_len = 1 },
						  .copies = 2 };
		struct store_port *e = engine(i);
		struct store_del op;

		assert_int_equal(STORE_DO(user, &op.op, e->ops->apply(e, &two, &op.op)), 0);
		assert_int_equal(copies_of(i, "b"), 2);
		restart();
		expect_bucket(3, i ? 1 : 2, ctime_ns);
		expect_bounds();
		for (int j = 0; j < 3; j++) {
			assert_int_equal(put_on("b", j), 0);
			assert_int_equal(del_on("b", j), 1);
		}
		if (!i)
			assert_int_equal(make_bucket(user, "b", 1), 0);
	}
	end();
}

/* The contents of a missing disk are not known: no number of copies is changed, and a bucket that the disk missed comes to it. */
static void
test_copies_missing(void **state)
{
	uint64_t ctime_ns;

	begin(3);
	ctime_ns = make_with_all();
	down();
	leave_out(2, 3, true);
	up();
	assert_int_equal(make_bucket(user, "b", 2), -ENODEV);
	assert_int_equal(make_bucket(user, "b", 1), -EEXIST);
	assert_int_equal(make_bucket(user, "new", 2), 0);
	expect_bucket(2, 1, ctime_ns);
	down();
	use(3);
	up();
	for (int i = 0; i < 3; i++)
		assert_int_equal(copies_of(i, "new"), 2);
	expect_bucket(3, 1, ctime_ns);
	end();
}

/* ---- placement maps that differ ---- */

/* Gives a stopped disk another placement map than the others'.  Newer: as a change that was begun last leaves it, of which the start number is
 * on all disks (M5). */
static void
write_table(int disk, uint64_t in, bool is_newer)
{
	struct disk_table t = *mem_disk_table(paths[disk]);

	t.in = in;
	t.version += is_newer;
	mem_disk_put_map(paths[disk], &t);
}

/* A disk is back with an older map, then one with a newer map: the newest counts, and then all disks have one. */
static void
test_table_returns(void **state)
{
	begin(3);
	assert_int_equal(make("b"), 0);
	restart();
	down();
	/* A map with the third alone has begun on it; the others serve without it and make a bucket. */
	write_table(2, 7, true);
	leave_out(2, 3, true);
	up();
	assert_int_equal(make("new"), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(put_on("new", i), 0);
	down();
	use(3);
	up();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(look_on("new", i), i == 2 ? -ENOENT : 0);
		assert_int_equal(put_on("new", i), 0);
	}
	assert_int_equal(list("new"), 3);
	restart();
	down();
	/* The first disk begins a map that is newer than all, and is back at once: that map counts, or its successor. */
	write_table(0, 7, true);
	up();
	assert_int_equal(list("new"), 3);
	down();
	for (int i = 1; i < 3; i++)
		assert_memory_equal(mem_disk_table(paths[i]), mem_disk_table(paths[0]),
				    sizeof(struct disk_table));
	assert_int_equal(mem_disk_table(paths[0])->in, 7);
	rig_end();
}

/* Two maps have one version: the store starts without one of the disks only. */
static void
test_tables_differ(void **state)
{
	begin(3);
	down();
	write_table(2, 4, false);
	must_refuse(-ENOTRECOVERABLE, "their tables of disks have one version and differ");
	assert_int_equal(store_task(&conf, TASK_LOOK, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, paths[2]));
	assert_non_null(strstr(err, named(2)));
	assert_non_null(strstr(err, "take that disk off store.disks"));
	leave_out(2, 3, true);
	up();
	down();
	use(3);
	up();
	end();
}

/* Of a pair the disk that was left out does not start alone; the one that served without it does. */
static void
test_half_of_a_pair(void **state)
{
	begin(2);
	restart();
	down();
	write_table(0, 1, true);
	leave_out(1, 2, true);
	up();
	assert_int_equal(make("b"), 0);
	down();
	leave_out(0, 2, true);
	must_refuse(-EINVAL, "only 1 of 2 disks are there");
	use(2);
	up();
	assert_int_equal(head(1, "b"), 0);
	end();
}

/* ---- too few disks, and disks that are given up ---- */

/* Both disks of a pair took part last, so neither may serve alone. */
static void
test_halves(void **state)
{
	begin(2);
	down();
	leave_out(1, 2, true);
	must_refuse(-EINVAL, "only 1 of 2 disks are there");
	rig_end();
}

static void
must_say(const char *text)
{
	if (!strstr(err, text))
		fail_msg("no \"%s\" in: %s", text, err);
}

/* One of three disks is no store before the others are given up for good; then these are refused. */
static void
test_majority(void **state)
{
	const struct disk_table *t;
	char text[128];

	begin(3);
	assert_int_equal(make("b"), 0);
	down();
	t = mem_disk_table(paths[0]);
	use(1);
	conf.disks.accept_missing_nr = DISKS;
	must_refuse(-EINVAL, "only 1 of 3 disks are there");
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES]) & accepted[1];
	conf.disks.forget_nr = 1;
	assert_int_equal(store_task(&conf, TASK_FORGET, err, sizeof err), -EINVAL);
	must_say(named(2));
	assert_int_equal(store_task(&conf, TASK_LOOK, err, sizeof err), -EINVAL);
	must_say(named(2));
	conf.disks.forget_nr = 2;
	assert_int_equal(store_task(&conf, TASK_LOOK, err, sizeof err), 0);
	for (int i = 1; i < 3; i++) {
		snprintf(text, sizeof text,
			 "%s, of a store of 3 disks (no path of store.disks is left for it): has %d of 4096",
			 named(i), table_count(t, i));
		must_say(text);
	}
	assert_int_equal(store_task(&conf, TASK_FORGET, err, sizeof err), 0);
	assert_string_equal(err, "given up: 2 disks; the store has 1 now");
	assert_int_equal(store_task(&conf, TASK_FORGET, err, sizeof err), -EINVAL);
	must_say("does not belong to this store");
	conf.disks.forget_nr = 0;
	up();
	assert_int_equal(store_unit_nr(st), 1);
	assert_int_equal(list("b"), 0);
	assert_int_equal(removed("b"), 0);
	down();
	use(2);
	must_refuse(-EINVAL, "does not belong to this store (any more)");
	rig_end();
}

/* The power goes after so many changes of an add to a store of one disk, and the old disk is away at the next start: the new disk alone is not
 * the store. *refused: number of starts that say so. Returns false: there were not so many changes. */
static bool
added_cut_at(uint64_t changes, int *refused)
{
	struct mem_image *image;
	bool is_cut;

	begin(1);
	assert_int_equal(make_bucket(user, "one", 1), 0);
	assert_int_equal(put(user, "one", "key", 7), 0);
	mem_disks_cut_after(changes);
	assert_int_equal(ask(DISK_ADD, paths[1]), 0);
	assert_true(wait_quiet());
	image = mem_disks_cut();
	is_cut = image != NULL;
	down();
	if (is_cut)
		mem_disks_put_back(image);
	mem_image_free(image);
	if (mem_disk_is_made(paths[1])) {
		int r = 7;

		mem_disk_absent(paths[0], true);
		use(1);
		disks[0].path = paths[1];
		conf.disks.accept_missing_nr = 1;
		if (start() == 0) {
			r = get(user, "one", "key");
			down();
		} else {
			*refused += strstr(err, "was being added") && remedies_are_in_order(err);
		}
		if (r >= 0 && r != 7)
			fail_msg("after %llu changes the new disk alone has %d", (unsigned long long)changes,
				 r);
		mem_disk_absent(paths[0], false);
		conf.disks.accept_missing_nr = 0;
	}
	use(1);
	disks[0].path = paths[0];
	configure();
	up();
	assert_int_equal(get(user, "one", "key"), 7);
	end();
	return is_cut;
}

static void
test_added_cut(void **state)
{
	int refused = 0;

	for (uint64_t changes = 1; added_cut_at(changes, &refused); changes += 1 + changes / 8)
		assert_true(changes < 20000);
	assert_true(refused > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),          cmocka_unit_test(test_missing),
		cmocka_unit_test(test_bucket_again),   cmocka_unit_test(test_bound_missed),
		cmocka_unit_test(test_gates),          cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_cut),     cmocka_unit_test(test_copies_missing),
		cmocka_unit_test(test_table_returns),  cmocka_unit_test(test_tables_differ),
		cmocka_unit_test(test_half_of_a_pair), cmocka_unit_test(test_halves),
		cmocka_unit_test(test_added_cut),      cmocka_unit_test(test_majority),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
