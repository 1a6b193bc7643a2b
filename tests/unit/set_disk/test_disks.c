/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of several disks, each in a directory: making it, the start in any order, disks that are missing, foreign,
 * copied, given up or back again.
 */
#include "disks_rig.h"

#include "set/members_int.h"

static void
test_slots_by_size(void **state)
{
	static struct disk_table t;
	uint8_t uuid[64][UUID_BYTES] = { { 0 } };
	uint64_t size[64];
	int nr[64] = { 0 };

	size[0] = 100 * MIB;
	size[1] = 800 * MIB;
	table_make(&t, (const uint8_t(*)[UUID_BYTES])uuid, size, 2, 1);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr[t.home[i]]++;
	assert_in_range(nr[0], STORE_SLOT_NR / 9, STORE_SLOT_NR / 9 + 1);
	assert_int_equal(nr[0] + nr[1], STORE_SLOT_NR);
	for (int i = 0; i < 64; i++) {
		size[i] = (uint64_t)1 << 50;
		nr[i] = 0;
	}
	table_make(&t, (const uint8_t(*)[UUID_BYTES])uuid, size, 64, 1);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr[t.home[i]]++;
	for (int i = 0; i < 64; i++)
		assert_int_equal(nr[i], 64);
	assert_true(t.members == UINT64_MAX && t.in == UINT64_MAX);
}

/* Keys are found whatever the order of the configuration. */
static void
test_order(void **state)
{
	char name[32];
	struct store_key k;

	begin(3);
	must_start();
	assert_int_equal(store_unit_nr(st), 3);
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), 0);
	}
	stop();
	for (int turn = 0; turn < 3; turn++) {
		struct store_disk_conf first = disks[0];

		memmove(disks, disks + 1, 2 * sizeof disks[0]);
		disks[2] = first;
		must_start();
		for (int i = 0; i < 3; i++) {
			struct store_unit_info info;

			k = key_on(table(3), name, "b", i);
			assert_int_equal(look(&k), 0);
			store_unit_info(st, i, &info);
			assert_string_equal(info.name, dir[i]);
			assert_int_equal(store_unit_number(&info, "objects"), 1);
		}
		assert_int_equal(list("b"), 3);
		stop();
	}
	assert_int_equal(store_format(&conf, false, err, sizeof err), -EALREADY);
	end();
}

static void
test_missing(void **state)
{
	struct store_unit_info info;
	struct store_bucket_set set;
	struct store_stat stat = { .version = 0 };
	char name[32], attrs[16];
	struct store_key k;

	begin(3);
	must_start();
	assert_int_equal(make("b"), 0);
	assert_int_equal(make("empty"), 0);
	assert_int_equal(make("goes"), 0);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), 0);
	}
	accept(1);
	stop();
	leave_out(1, 3);
	must_refuse(-EINVAL,
		    "number 1 of a store of 3 disks, is missing (no path of store.disks is left for it)\n"
		    "remedy: attach the disk ");
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(look(&k), i == 1 ? -ENODEV : 0);
		assert_int_equal(put(&k), i == 1 ? -ENODEV : 0);
	}
	k = key_on(table(3), name, "empty", 1);
	assert_int_equal(look(&k), -ENODEV);
	assert_int_equal(delete (&k), -ENODEV);
	assert_int_equal(list("b"), -ENODEV);
	assert_int_equal(removed("empty"), -ENODEV);
	store_unit_info(st, 1, &info);
	assert_true(info.state == UNIT_MISSING);
	/* what it misses */
	assert_int_equal(make("new"), 0);
	assert_int_equal(
		STORE_DO(user, &set.op,
			 store_bucket_set_attrs(store_user_port(user, 0), "new", 3, 0, "attrs", 5, &set)),
		0);
	stop();

	/* it is back, with an older table */
	all_again(3);
	must_start();
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(look(&k), 0);
		k = key_on(table(3), name, "new", i);
		assert_int_equal(put(&k), 0);
	}
	assert_int_equal(list("b"), 3);
	stop();
	/* the one that was there goes: what the other one was given when it came back counts */
	leave_out(0, 3);
	use(2);
	memset(accepted, 0, sizeof accepted);
	must_refuse(-EINVAL, "number 0");
	all_again(3);
	must_start();
	accept(0);
	stop();
	leave_out(0, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	assert_int_equal(STORE_DO(user, &stat.op,
				  store_bucket_get_attrs(store_user_port(user, 0), "new", 3, attrs,
							 sizeof attrs, &stat)),
			 0);
	assert_int_equal(stat.attrs_len, 5);
	assert_memory_equal(attrs, "attrs", 5);
	stop();
	end();
}

/* A bucket that went and came again while a disk was away is another one: what the disk has of the earlier one goes. */
static void
test_bucket_again(void **state)
{
	char name[32];
	struct store_key k;

	begin(3);
	must_start();
	accept(2);
	assert_int_equal(make("b"), 0);
	k = key_on(table(3), name, "b", 2);
	assert_int_equal(put(&k), 0);
	stop();
	/* The two others lose the bucket without the third, which no delete does: as if it had failed under one. */
	leave_out(2, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	set_of(st)->members->missing_nr = 0;
	assert_int_equal(removed("b"), 0);
	set_of(st)->members->missing_nr = 1;
	assert_int_equal(make("b"), 0);
	stop();
	all_again(3);
	must_start();
	assert_int_equal(list("b"), 0);
	k = key_on(table(3), name, "b", 2);
	assert_int_equal(look(&k), -ENOENT);
	assert_int_equal(put(&k), 0);
	assert_int_equal(list("b"), 1);
	stop();
	end();
}

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

/* A disk that is back has the bound that the others have, also where that is none, and then is the first of all; nor has the next first one a
 * bound that a cut left on it alone. */
static void
test_bound_missed(void **state)
{
	begin(3);
	must_start();
	accept(0);
	assert_int_equal(make("b"), 0);
	assert_int_equal(bound_b(store_user_port(user, 0), 5), 0);
	stop();
	leave_out(0, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	expect_bound_b(5);
	assert_int_equal(bound_b(store_user_port(user, 0), STORE_UNBOUNDED), 0);
	stop();
	all_again(3);
	for (int i = 0; i < 2; i++) {
		must_start();
		expect_bound_b(STORE_UNBOUNDED);
		stop();
	}
	/* as a cut leaves it */
	must_start();
	assert_int_equal(bound_b(engine(1), 7), 0);
	stop();
	must_start();
	expect_bound_b(STORE_UNBOUNDED);
	stop();
	leave_out(0, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	expect_bound_b(STORE_UNBOUNDED);
	stop();
	end();
}

/* A disk that opens and cannot be recovered counts as missing: nothing is written, or it is done without. */
static void
test_unrecoverable(void **state)
{
	static uint8_t zeros[65536];
	struct store_unit_info info;
	char path[256], name[32];
	struct store_key k;
	struct stat sb;
	int fd;

	begin(3);
	must_start();
	accept(2);
	assert_int_equal(make("b"), 0);
	stop();
	snprintf(path, sizeof path, "%s/log", dir[2]);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &sb) == 0);
	for (off_t at = 0; at < sb.st_size; at += (off_t)sizeof zeros)
		assert_true(pwrite(fd, zeros, sizeof zeros, at) == sizeof zeros);
	close(fd);
	must_refuse(-EINVAL, "the log ends at offset 0");
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	store_unit_info(st, 2, &info);
	assert_true(info.state == UNIT_MISSING);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), i == 2 ? -ENODEV : 0);
	}
	stop();
	end();
}

/* Behind a closed gate nothing is written; what a cut leaves of a change is made as the first disk has it. */
static void
test_gates(void **state)
{
	const struct store_bucket_spec one = { .copies = 1 };
	struct store_del op;
	struct store_port *e;
	char name[32];
	struct store_key k;

	begin(2);
	must_start();
	assert_int_equal(make("b"), 0);
	k = key_on(table(2), name, "b", 1);
	assert_int_equal(gate(1, "none", true), -ENXIO);
	assert_int_equal(gate(1, "b", true), 0);
	assert_int_equal(put(&k), -EAGAIN);
	assert_int_equal(gate(1, "b", false), 0);
	assert_int_equal(put(&k), 0);
	assert_int_equal(gate(1, "b", true), -ENOTEMPTY);
	assert_int_equal(delete (&k), 1);
	/* made on one, with a closed gate, and removed from one */
	e = engine(1);
	assert_int_equal(STORE_DO(user, &op.op, e->ops->bucket_make(e, "half", 4, 1, &one, true, &op)), 0);
	k = key_on(table(2), name, "half", 1);
	assert_int_equal(put(&k), -ENXIO);
	assert_int_equal(STORE_DO(user, &op.op, store_bucket_delete(e, "b", 1, &op)), 0);
	stop();
	must_start();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(head(i, "half"), -ENXIO);
		assert_int_equal(head(i, "b"), 0);
	}
	k = key_on(table(2), name, "b", 1);
	assert_int_equal(put(&k), 0);
	assert_int_equal(removed("b"), -ENOTEMPTY);
	assert_int_equal(delete (&k), 1);
	assert_int_equal(removed("b"), 0);
	stop();
	end();
}

static int
copies_of(int i, const char *bucket)
{
	struct store_stat s = { .copies = 77 };
	int r = STORE_DO(user, &s.op, store_bucket_head(engine(i), bucket, strlen(bucket), &s));

	return r < 0 ? r : (int)s.copies;
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

/* The number of copies is changed where the bucket is: its time, attributes and quota stay, also through a start; and what a cut
 * leaves half done is made as the first disk has it. */
static void
test_copies(void **state)
{
	struct store_use bound = { 5, STORE_UNBOUNDED, 7 };
	static char attrs[STORE_BUCKET_ATTRS_MAX];
	struct store_bucket_set set;
	struct store_quota_info q;
	struct store_stat s = { .ctime_ns = 0 };
	struct store_upload u;
	struct store_del op;
	struct store_port *e;
	char name[32];
	struct store_key k;

	for (uint32_t n = 0; n < sizeof attrs; n++)
		attrs[n] = (char)(n * 7 % 251);
	begin(3);
	must_start();
	assert_int_equal(make_with("b", 1), 0);
	assert_int_equal(STORE_DO(user, &set.op,
				  store_bucket_set_attrs(store_user_port(user, 0), "b", 1, 0, attrs,
							 sizeof attrs, &set)),
			 0);
	assert_int_equal(STORE_DO(user, &set.op,
				  store_bucket_set_quota(store_user_port(user, 0), "b", 1, &bound, &set)),
			 0);
	assert_int_equal(STORE_DO(user, &s.op, store_bucket_head(store_user_port(user, 0), "b", 1, &s)), 0);
	for (int nr = 0; nr < 2; nr++) {
		int had = nr ? 2 : 1, want = nr ? 1 : 2;

		for (int i = 0; i < 3; i++) {
			k = key_on(table(3), name, "b", i);
			assert_int_equal(put(&k), 0);
			assert_int_equal(make_with("b", (unsigned)want), -ENOTEMPTY);
			assert_int_equal(delete (&k), 1);
			assert_int_equal(
				STORE_DO(user, &u.op,
					 store_upload_create(store_user_port(user, 0), &k, NULL, 0, &u)),
				0);
			assert_int_equal(make_with("b", (unsigned)want), -ENOTEMPTY);
			expect_bucket(3, had, s.ctime_ns);
			assert_int_equal(STORE_DO(user, &u.op,
						  store_upload_abort(store_user_port(user, 0), &k, u.id, &u)),
					 0);
		}
		assert_int_equal(make_with("b", (unsigned)want), 0);
		expect_bucket(3, want, s.ctime_ns);
		stop();
		must_start();
		expect_bucket(3, want, s.ctime_ns);
		assert_int_equal(store_bucket_quota(st, "b", 1, &q), 0);
		assert_true(q.has_bound && q.max.objects == 5 && q.max.uploads == 7);
		assert_int_equal(make_with("b", (unsigned)want), -EEXIST);
	}
	/* cut behind the first disk, and before it */
	for (int i = 0; i < 2; i++) {
		e = engine(i);
		assert_int_equal(STORE_DO(user, &op.op, e->ops->bucket_set_copies(e, "b", 1, 2, &op)), 0);
		assert_int_equal(copies_of(i, "b"), 2);
		stop();
		must_start();
		expect_bucket(3, i ? 1 : 2, s.ctime_ns);
		assert_int_equal(store_bucket_quota(st, "b", 1, &q), 0);
		assert_true(q.has_bound && q.max.objects == 5 && q.max.uploads == 7);
		for (int j = 0; j < 3; j++) {
			k = key_on(table(3), name, "b", j);
			assert_int_equal(put(&k), 0);
			assert_int_equal(delete (&k), 1);
		}
		if (!i)
			assert_int_equal(make_with("b", 1), 0);
	}
	stop();
	/* what a missing disk has in it is not known */
	must_start();
	accept(2);
	stop();
	leave_out(2, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	assert_int_equal(make_with("b", 2), -ENODEV);
	assert_int_equal(make_with("b", 1), -EEXIST);
	assert_int_equal(make_with("new", 2), 0);
	expect_bucket(2, 1, s.ctime_ns);
	stop();
	all_again(3);
	must_start();
	for (int i = 0; i < 3; i++)
		assert_int_equal(copies_of(i, "new"), 2);
	expect_bucket(3, 1, s.ctime_ns);
	stop();
	end();
}

/* Gives one disk another table than the others'.  Newer: as a change that was begun last leaves it: the number of that start is on all of
 * them (M5). */
static void
write_table(int disk, uint64_t in, bool is_newer)
{
	const struct store_member_ops *ops = extent_ops.member;
	struct store_conf one = conf;
	struct store_member id;
	struct disk_table t;
	struct store *engine;
	uint64_t start_no;

	one.ops = &extent_ops;
	one.disks.disk = &disks[disk];
	one.disks.nr = 1;
	if (ops->open(&one, &engine, &id, err, sizeof err) < 0 ||
	    ops->recover(engine, 64 * MIB, extent_ops.quotas(engine), 0, &start_no, err, sizeof err) < 0)
		fail_msg("%s", err);
	t = *id.table;
	t.in = in;
	t.version += is_newer;
	assert_int_equal(ops->set_table(engine, &t, err, sizeof err), 0);
	store_stop(engine);
}

/* A disk that is back with an older table, then one with a newer one: what counts is the newest, and then all have one. */
static void
test_table_returns(void **state)
{
	struct disk_table t;
	struct store_member id;
	struct store *engine;
	char name[32];
	struct store_key k;

	begin(3);
	must_start();
	accept(2);
	assert_int_equal(make("b"), 0);
	stop();
	must_start();
	stop();
	/* A table with the third alone has begun on it, the others go on without it and make a bucket. */
	write_table(2, 7, true);
	leave_out(2, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	assert_int_equal(make("new"), 0);
	for (int i = 0; i < 2; i++) {
		k = key_on(table(3), name, "new", i);
		assert_int_equal(put(&k), 0);
	}
	stop();
	all_again(3);
	must_start();
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "new", i);
		assert_int_equal(look(&k), i == 2 ? -ENOENT : 0);
		assert_int_equal(put(&k), 0);
	}
	assert_int_equal(list("new"), 3);
	stop();
	/* The first begins one that is newer than all, and is back at once: it counts, and all have it or its successor. */
	must_start();
	stop();
	write_table(0, 7, true);
	must_start();
	assert_int_equal(list("new"), 3);
	stop();
	for (int i = 0; i < 3; i++) {
		struct store_conf one = conf;

		one.ops = &extent_ops;
		one.disks.disk = &disks[i];
		one.disks.nr = 1;
		assert_int_equal(extent_ops.member->open(&one, &engine, &id, err, sizeof err), 0);
		if (i)
			assert_memory_equal(&t, id.table, sizeof t);
		t = *id.table;
		store_stop(engine);
	}
	assert_int_equal(t.in, 7);
	end();
}

/* One version, two tables: nobody can say which one is right.  Without one of them it starts. */
static void
test_tables_differ(void **state)
{
	char text[UUID_TEXT];

	begin(3);
	must_start();
	accept(2);
	stop();
	write_table(2, 4, false);
	must_refuse(-ENOTRECOVERABLE, "their tables of disks have one version and differ");
	assert_int_equal(store_look(&conf, err, sizeof err), -ENOTRECOVERABLE);
	assert_non_null(strstr(err, dir[2]));
	uuid_write(text, accepted[2]);
	assert_non_null(strstr(err, text));
	assert_non_null(strstr(err, "take that disk off store.disks"));
	leave_out(2, 3);
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	stop();
	all_again(3);
	must_start();
	stop();
	end();
}

/* Of a pair the one that was left behind does not start alone; the one that went on without it does. */
static void
test_half_of_a_pair(void **state)
{
	begin(2);
	must_start();
	accept(0);
	accept(1);
	stop();
	must_start();
	stop();
	write_table(0, 1, true);
	conf.disks.accept_missing_nr = 2;
	use(1);
	conf.disks.accept_missing_nr = 2;
	must_start();
	assert_int_equal(make("b"), 0);
	stop();
	disks[0] = disks[1];
	must_refuse(-EINVAL, "only 1 of 2 disks are there");
	all_again(2);
	must_start();
	assert_int_equal(head(1, "b"), 0);
	stop();
	end();
}

static void
on_line(void *cookie, const char *line)
{
	char *to = cookie;

	snprintf(to + strlen(to), 4096 - strlen(to), "%s\n", line);
}

static void
must_say(const char *said, const char *text)
{
	if (!strstr(said, text))
		fail_msg("no \"%s\" in: %s", text, said);
}

/* --fsck reads all disks, names each by its path, and says what lies where the table does not have it. */
static void
test_fsck(void **state)
{
	struct store_send s;
	struct bufpool bufs;
	char name[32], said[4096] = "", text[1024];
	struct store_key k;

	begin(3);
	must_start();
	accept(1);
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), 0);
	}
	stop();
	assert_int_equal(store_fsck(&conf, false, on_line, said), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%s: 1 objects, 5 bytes read, 0 damaged", dir[i]);
		must_say(said, text);
	}
	assert_null(strstr(said, "leftovers"));
	/* on the second, what the first should have */
	must_start();
	k = key_on(table(3), name, "b", 0);
	assert_int_equal(bufpool_init_class(&bufs, BUF_LARGE, BUF_LARGE_BYTES, 0), 0);
	s = (struct store_send){ .key = k, .buf = bufpool_get(&bufs, BUF_LARGE) };
	assert_int_equal(STORE_DO(user, &s.op, engine(0)->ops->member->send(engine(0), engine(1), &s)), 0);
	bufpool_put(&bufs, s.buf);
	bufpool_fini(&bufs);
	stop();
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, false, on_line, said), 0);
	snprintf(text, sizeof text,
		 "%s: 1 records are of keys that the table of disks gives to another disk, 'b/%s'", dir[1],
		 name);
	must_say(said, text);
	/* without one: the others are read, and what a start would say is said */
	leave_out(1, 3);
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, false, on_line, said), -EINVAL);
	must_say(said, "number 1 of a store of 3 disks, is missing");
	snprintf(text, sizeof text, "%s: 1 objects", dir[2]);
	must_say(said, text);
	assert_int_equal(store_look(&conf, err, sizeof err), -EINVAL);
	conf.disks.accept_missing_nr = DISKS;
	assert_int_equal(store_look(&conf, err, sizeof err), 0);
	end();
}

/* Two halves must not go on one after the other. */
static void
test_halves(void **state)
{
	begin(2);
	must_start();
	accept(0);
	accept(1);
	stop();
	leave_out(1, 2);
	conf.disks.accept_missing_nr = DISKS;
	/* Both took part last, so neither half may go on alone. */
	must_refuse(-EINVAL, "only 1 of 2 disks are there");
	all_again(2);
	end();
}

static void
test_majority(void **state)
{
	begin(3);
	must_start();
	for (int i = 0; i < 3; i++)
		accept(i);
	assert_int_equal(make("b"), 0);
	stop();
	use(1);
	conf.disks.accept_missing_nr = DISKS;
	must_refuse(-EINVAL, "only 1 of 3 disks are there");
	/* for good */
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES]) & accepted[1];
	conf.disks.forget_nr = 1;
	assert_int_equal(store_forget(&conf, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "number 2"));
	assert_int_equal(store_look(&conf, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "number 2"));
	conf.disks.forget_nr = 2;
	/* 64, 96 and 128 MiB: by size */
	assert_int_equal(store_look(&conf, err, sizeof err), 0);
	must_say(
		err,
		", number 1 of a store of 3 disks (no path of store.disks is left for it): has 1365 of 4096");
	must_say(
		err,
		", number 2 of a store of 3 disks (no path of store.disks is left for it): has 1821 of 4096");
	assert_int_equal(store_forget(&conf, err, sizeof err), 0);
	assert_string_equal(err, "given up: 2 disks; the store has 1 now");
	assert_int_equal(store_forget(&conf, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "does not belong to this store"));
	conf.disks.forget_nr = 0;
	must_start();
	assert_int_equal(store_unit_nr(st), 1);
	assert_int_equal(list("b"), 0);
	assert_int_equal(removed("b"), 0);
	stop();
	/* and they are refused */
	all_again(2);
	must_refuse(-EINVAL, "does not belong to this store (any more)");
	end();
}

/* However many are missing, the line ends with what to do. */
static void
test_many_missing(void **state)
{
	const char *end_few =
		"; last resort: gantryd --forget UUID, once for each of them, which gives them up for good";
	char text[UUID_TEXT], path[256];

	begin(6);
	must_start();
	for (int i = 0; i < 6; i++)
		accept(i);
	stop();
	use(1);
	must_refuse(-EINVAL, "; so are 2 more\nremedy: ");
	assert_non_null(strstr(err, " are lost; last resort: gantryd --forget "));
	assert_non_null(strstr(err, " ..., which gives up the disks for good"));
	use(1);
	conf.disks.accept_missing_nr = 6;
	must_refuse(-EINVAL, "only 1 of 6 disks are there");
	assert_non_null(strstr(err, " and 2 more\nremedy: "));
	assert_string_equal(err + strlen(err) - strlen(end_few), end_few);
	/* Two of them say who they are, and why they cannot be used. */
	all_again(6);
	for (int i = 1; i < 4; i++)
		disks[i].path = "/nonexistent";
	for (int i = 4; i < 6; i++) {
		snprintf(path, sizeof path, "%s/log", dir[i]);
		assert_int_equal(truncate(path, 4096), 0);
	}
	memset(accepted, 0, 4 * sizeof accepted[0]);
	conf.disks.accept_missing_nr = 6;
	must_refuse(-EINVAL, "is missing; disk ");
	assert_non_null(strstr(err, " (not there: /nonexistent: "));
	assert_null(strstr(err, "accept_missing"));
	disks[1].path = dir[1];
	disks[2].path = dir[2];
	disks[3].path = dir[3];
	memset(accepted[4], 0, UUID_BYTES);
	must_refuse(-EINVAL, "number 4 of a store of 6 disks, is damaged (");
	snprintf(path, sizeof path, "(%s: log is damaged", dir[4]);
	assert_non_null(strstr(err, path));
	uuid_write(text, accepted[5]);
	assert_null(strstr(err, text));
	end();
}

static void
copy(const char *from, const char *to)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "cp -a %s/. %s/", from, to);
	assert_int_equal(system(cmd), 0);
}

static void
remove_files(const char *from)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "rm %s/*", from);
	assert_int_equal(system(cmd), 0);
}

/* Both superblocks say that a later version has written them. */
static void
make_newer(const char *path)
{
	static uint8_t sb[65536];
	uint64_t crc;

	for (int i = 0; i < 2; i++) {
		char name[256];
		int fd;

		snprintf(name, sizeof name, "%s/super%s", path, i ? "2" : "");
		fd = open(name, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, sb, sizeof sb) == sizeof sb);
		sb[8] += 2; /* the next one is that of copies */
		memset(sb + 16, 0, 8);
		crc = crc64_nvme(0, sb, sizeof sb);
		memcpy(sb + 16, &crc, 8);
		assert_true(pwrite(fd, sb, sizeof sb, 0) == sizeof sb);
		close(fd);
	}
}

static void
test_identity(void **state)
{
	struct store_conf other;

	begin(2);
	/* the same disk twice, by a copy */
	copy(dir[1], dir[2]);
	all_again(3);
	must_refuse(-EINVAL, "is a copy of the other");
	/* one of another store */
	disks[2] = (struct store_disk_conf){ .path = dir[3], .size_bytes = 64 * MIB };
	other = conf;
	other.disks.disk = &disks[2];
	other.disks.nr = 1;
	assert_int_equal(store_format(&other, false, err, sizeof err), 0);
	disks[2].size_bytes = 0;
	must_refuse(-EINVAL, "is of another store");
	/* swapped: the other one's in place of ours */
	disks[1] = disks[2];
	use(2);
	must_refuse(-EINVAL, "is of another store");
	/* one that somebody has */
	all_again(2);
	must_start();
	{
		struct store *second;

		conf.disks.lock_wait_ns = NS_PER_MS;
		assert_int_equal(store_start(&conf, &second, err, sizeof err), -EBUSY);
		conf.disks.lock_wait_ns = PATIENCE_NS;
	}
	stop();
	/* shorter than it was, which accepting that it is missing helps; of a later version, which nothing does */
	{
		char path[256];

		must_start();
		accept(0);
		accept(1);
		stop();
		snprintf(path, sizeof path, "%s/log", dir[1]);
		assert_int_equal(truncate(path, 4096), 0);
		must_refuse(-EINVAL, "log is damaged: it has 4096 bytes");
		make_newer(dir[1]);
		conf.disks.accept_missing_nr = 2;
		must_refuse(-EPROTONOSUPPORT, "made by another version of Gantry");
		conf.disks.accept_missing_nr = 0;
	}
	/* one that is not there; an empty directory in place of one: a file system that is not mounted */
	disks[1].path = "/nonexistent";
	must_refuse(-EINVAL, "is missing (/nonexistent: ");
	disks[1].path = dir[3];
	remove_files(dir[3]);
	must_refuse(-EINVAL, ": not a Gantry store (there is no super); is it mounted?)");
	assert_null(strstr(err, "--format"));
	end();
}

/* What nobody should make a store of: it stands in the configuration and was not added, or its adding was cut short. */
static void
test_not_added(void **state)
{
	struct store_birth birth = { .number = 2 };
	uint8_t uuid[UUID_BYTES] = { 7 };
	uint64_t size = 64 * MIB;
	struct store_conf c;

	begin(2);
	must_start();
	memcpy(birth.store_uuid, set_store_uuid(set_of(st)), UUID_BYTES);
	stop();
	all_again(3);
	disks[2].path = "/nonexistent";
	must_refuse(-ENOTRECOVERABLE,
		    "/nonexistent: there is no store here yet; all disks of the store, 2, "
		    "are others\nremedy: take /nonexistent off store.disks, and start again\n"
		    "remedy: gantryd --add /nonexistent ");
	disks[2].path = dir[2];
	must_refuse(-ENOTRECOVERABLE,
		    ": not a Gantry store (there is no super); all disks of the store, 2, are others");
	/* As the mover makes it, before any table has it. */
	birth.table.version = 1;
	birth.table.members = birth.table.in = 4;
	memcpy(birth.table.uuid[2], uuid, UUID_BYTES);
	memset(birth.table.home, 2, sizeof birth.table.home);
	memset(birth.table.first, 2, sizeof birth.table.first);
	memset(birth.table.second, TABLE_NO_DISK, sizeof birth.table.second);
	disks[2].size_bytes = size;
	c = set_engine_conf(&conf, 2);
	c.disks.birth = &birth;
	assert_int_equal(store_format(&c, false, err, sizeof err), 0);
	must_refuse(-EINVAL, "was being added, and has not become one of this store\nremedy: take ");
	assert_non_null(strstr(
		err, "\nNo object is lost, as the disk has never been one of this store; last resort: "));
	use(2);
	must_start();
	stop();
	end();
}

/* A disk beside much larger ones has as much of the index as it needs to begin. */
static void
test_small_share(void **state)
{
	assert_int_equal(set_share_of(64 * MIB, 64 * MIB, 64 * 1024 * MIB), 4 * MIB);
	assert_int_equal(set_share_of(64 * MIB, 512 * MIB, 1024 * MIB), 32 * MIB);
	assert_int_equal(set_share_of(2 * MIB, 64 * MIB, 64 * 1024 * MIB), 2 * MIB);
	assert_int_equal(set_share_of(64 * MIB, 64 * MIB, 0), 64 * MIB);
	begin(3);
	conf.disks.index_bytes = 8 * MIB;
	must_start();
	stop();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_by_size),  cmocka_unit_test(test_order),
		cmocka_unit_test(test_bound_missed),   cmocka_unit_test(test_missing),
		cmocka_unit_test(test_bucket_again),   cmocka_unit_test(test_unrecoverable),
		cmocka_unit_test(test_gates),          cmocka_unit_test(test_copies),
		cmocka_unit_test(test_halves),         cmocka_unit_test(test_majority),
		cmocka_unit_test(test_identity),       cmocka_unit_test(test_not_added),
		cmocka_unit_test(test_small_share),    cmocka_unit_test(test_table_returns),
		cmocka_unit_test(test_half_of_a_pair), cmocka_unit_test(test_fsck),
		cmocka_unit_test(test_many_missing),   cmocka_unit_test(test_tables_differ),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_disks", tests, NULL, NULL);
}
