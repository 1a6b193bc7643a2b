/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks of a store that fail while it serves: at any step of a change of buckets, while a table is written, one after the
 * other until fewer than half are left; and what the next start finds.
 */
#include "extent/engine.h" /* ahead of the rig, whose names it does not know */

#include "disks_rig.h"
#include "tests/fake/fault_ring.h"

#include <sched.h>

/* Of each disk: writes to files of that name, or reads, fail (result < 0) or are held. */
static _Atomic int bad_kind = FAULT_WRITE;
static const char *_Atomic bad_name[DISKS];
static _Atomic int bad_result[DISKS], held[DISKS];
static _Atomic int flush_fails = -1; /* of that disk's segments, once */

static int
hook(const struct fault_io *io)
{
	for (int i = 0; i < DISKS; i++) {
		const char *name = bad_name[i];

		int one = i;

		/* Two threads may ask at once, and one of them is told. */
		if (io->kind == FAULT_FLUSH && strncmp(io->name, "seg", 3) == 0 &&
		    strncmp(io->path, dir[i], strlen(dir[i])) == 0 &&
		    atomic_compare_exchange_strong(&flush_fails, &one, -1))
			return -EIO;

		if ((int)io->kind != bad_kind || !name || strncmp(io->path, dir[i], strlen(dir[i])) != 0 ||
		    strncmp(io->name, name, strlen(name)) != 0)
			continue;
		held[i] = held[i] | (bad_result[i] == FAULT_HOLD);
		return bad_result[i];
	}
	return 0;
}

static void
bad(int disk, const char *name, int result)
{
	held[disk] = 0;
	bad_result[disk] = result;
	bad_name[disk] = name;
}

static void
all_good(void)
{
	for (int i = 0; i < DISKS; i++)
		bad_name[i] = NULL;
	fault_ring_hook = hook;
}

/* ---- what there is ---- */

static bool
is_in(uint64_t want)
{
	return set_in(set_of(st)) == want;
}

static bool
is_read_only(uint64_t unused)
{
	return set_is_read_only(set_of(st));
}

static void
wait_until(bool (*is_so)(uint64_t), uint64_t arg)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (!is_so(arg) && clock_ns() < until_ns)
		sched_yield();
	assert_true(is_so(arg));
}

static struct store_key
on(char name[32], const char *bucket, int nr, int disk)
{
	return key_on(table(nr), name, bucket, disk);
}

/* Fails by a PUT, of which nobody knows what became; or by a stamp before it. */
static void
fails(int nr, int disk)
{
	char name[32];
	struct store_key k = on(name, "b", nr, disk);
	int r;

	bad(disk, "log", -EIO);
	r = put(&k);
	assert_true(r == -ECANCELED || r == -EROFS);
	assert_int_equal(put(&k), -EROFS);
}

static bool
is_stamped(int disk)
{
	const struct vol *vol = extent_store(set_engine(set_of(st), disk))->vol;

	return !atomic_load(&vol->pending) && !atomic_load(&vol->is_led) &&
	       vol->leader.stamped >= vol->leader.last_records_seq;
}

/* Makes the next write of a log but stamps, which come when it was idle for some milliseconds, the first that fails or is held. */
static void
bad_next(int disk, int result)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	char name[32];
	struct store_key k = on(name, "b", 3, (disk + 1) % 3);

	while (!is_stamped(disk) && clock_ns() < until_ns)
		assert_int_equal(put(&k), 0);
	assert_true(is_stamped(disk));
	bad(disk, "log", result);
}

static int
bucket_there(const char *bucket)
{
	struct store_stat s = { .version = 0 };

	return STORE_DO(user, &s.op, store_bucket_head(store_user_port(user, 0), bucket, strlen(bucket), &s));
}

static int
set_attrs(uint64_t version, const char *attrs)
{
	struct store_bucket_set op;

	return STORE_DO(user, &op.op,
			store_bucket_set_attrs(store_user_port(user, 0), "b", 1, version, attrs,
					       (uint32_t)strlen(attrs), &op));
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

/* What a stopped disk has. */
static struct disk_table
table_of(int disk)
{
	struct store_conf one = conf;
	struct store_member id;
	struct disk_table t;
	struct store *e;

	one.ops = &extent_ops;
	one.disks.disk = &(struct store_disk_conf){ .path = dir[disk] };
	one.disks.nr = 1;
	if (extent_ops.member->open(&one, &e, &id, err, sizeof err) < 0)
		fail_msg("%s", err);
	t = *id.table;
	store_stop(e);
	return t;
}

static void
begin_with(int nr)
{
	all_good();
	begin(nr);
	must_start();
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < nr; i++) {
		char name[32];
		struct store_key k = on(name, "b", nr, i);

		assert_int_equal(put(&k), 0);
	}
}

static void
again(int nr)
{
	stop();
	all_good();
	all_again(nr);
	must_start();
}

/* ---- tests ---- */

/* Each of three: its share is read and no more written, all else goes on, and after a restart it is as ever. */
static void
test_share(void **state)
{
	for (int bad_one = 0; bad_one < 3; bad_one++) {
		uint64_t left = 7 & ~((uint64_t)1 << bad_one);
		struct disk_table t[3];
		char name[32];
		struct store_key k;

		begin_with(3);
		assert_int_equal(make("empty"), 0);
		fails(3, bad_one);
		wait_until(is_in, left);
		for (int i = 0; i < 3; i++) {
			k = on(name, "b", 3, i);
			assert_int_equal(look(&k), 0);
			assert_int_equal(put(&k), i == bad_one ? -EROFS : 0);
			k = on(name, "empty", 3, i);
			assert_int_equal(look(&k), -ENOENT);
			assert_int_equal(delete (&k), i == bad_one ? -EROFS : 0);
		}
		assert_int_equal(list("b"), 3);
		/* what it may have been given last is not known */
		assert_int_equal(removed("empty"), -EROFS);
		k = on(name, "empty", 3, (bad_one + 1) % 3);
		assert_int_equal(put(&k), 0);
		/* a bucket that it never hears of: it is there, and its share of it is empty */
		assert_int_equal(make("new"), 0);
		assert_int_equal(make("new"), -EEXIST);
		assert_int_equal(bucket_there("new"), 0);
		assert_int_equal(head(bad_one, "new"), -ENXIO);
		for (int i = 0; i < 3; i++) {
			k = on(name, "new", 3, i);
			assert_int_equal(look(&k), -ENOENT);
			assert_int_equal(put(&k), i == bad_one ? -EROFS : 0);
		}
		assert_int_equal(list("new"), 2);
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "tags"), 0);
		assert_string_equal(attrs(NULL), "tags");
		stop();
		for (int i = 0; i < 3; i++)
			t[i] = table_of(i);
		for (int i = 0; i < 3; i++) {
			assert_true(t[i].in == (i == bad_one ? 7 : left));
			assert_true(i == bad_one || t[i].version > t[bad_one].version);
		}
		all_good();
		all_again(3);
		must_start();
		for (int i = 0; i < 3; i++) {
			assert_int_equal(head(i, "new"), 0);
			k = on(name, "new", 3, i);
			assert_int_equal(look(&k), i == bad_one ? -ENOENT : 0);
			assert_int_equal(put(&k), 0);
		}
		assert_string_equal(attrs(NULL), "tags");
		assert_int_equal(list("b"), 3);
		stop();
		end();
	}
}

static int
put_large(const struct store_key *k)
{
	static _Alignas(4096) char bytes[131072 + BUF_SLACK_BYTES];
	struct buf b = { .mem = bytes, .cap_bytes = 131072 };
	struct store_commit c = { .last = &b, .last_len = 100000 };
	struct store_put op;
	int r = store_put_init(store_user_port(user, 0), &op, k, 100000);

	if (r == 0)
		r = STORE_DO(user, &op.op, store_put_commit(store_user_port(user, 0), &op, &c));
	store_put_abort(store_user_port(user, 0), &op);
	return r;
}

static int
read_some(const struct store_key *k)
{
	static _Alignas(4096) char bytes[STORE_GRANULE + BUF_SLACK_BYTES];
	struct buf b = { .mem = bytes, .cap_bytes = STORE_GRANULE };
	struct store_read rd;
	struct store_obj o;
	int r = STORE_DO(user, &o.op, store_open(store_user_port(user, 0), k, &o));

	if (r == 0)
		r = STORE_DO(user, &rd.op,
			     store_read(store_user_port(user, 0), &o, &rd, &b, 0, STORE_GRANULE));
	store_close(store_user_port(user, 0), &o);
	return r;
}

/* A read that fails says something of the object while the disk works, and of the disk when that has failed. */
static void
test_unreadable(void **state)
{
	char name[32];
	struct store_key k;

	begin_with(3);
	k = on(name, "b", 3, 1);
	assert_int_equal(put_large(&k), 0);
	assert_int_equal(read_some(&k), STORE_GRANULE);
	bad_kind = FAULT_READ;
	bad(1, "seg", -EIO);
	assert_int_equal(read_some(&k), -EIO);
	bad_kind = FAULT_WRITE;
	fails(3, 1);
	assert_int_equal(read_some(&k), STORE_GRANULE);
	bad_kind = FAULT_READ;
	bad(1, "seg", -EIO);
	assert_int_equal(read_some(&k), -ENODEV);
	assert_int_equal(look(&k), 0);
	assert_int_equal(list("b"), 3);
	bad_kind = FAULT_WRITE;
	stop();
	end();
}

/* A disk that fails when it is given its part of a change: the change is made by the others. */
static void
test_under_change(void **state)
{
	for (int bad_one = 0; bad_one < 3; bad_one++) {
		char name[32];
		struct store_key k;
		uint64_t version;

		/* making */
		begin_with(3);
		bad_next(bad_one, -EIO);
		assert_int_equal(make("new"), 0);
		assert_true(is_in(7 & ~((uint64_t)1 << bad_one)));
		assert_int_equal(bucket_there("new"), 0);
		k = on(name, "new", 3, (bad_one + 2) % 3);
		assert_int_equal(put(&k), 0);
		k = on(name, "new", 3, bad_one);
		assert_int_equal(look(&k), -ENOENT);
		again(3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(head(i, "new"), 0);
		assert_int_equal(list("new"), 1);

		/* removing: what was begun is completed, and the disk does not bring it back */
		k = on(name, "new", 3, (bad_one + 2) % 3);
		assert_int_equal(delete (&k), 1);
		bad_next(bad_one, -EIO);
		assert_int_equal(removed("new"), 0);
		assert_int_equal(bucket_there("new"), -ENXIO);
		assert_int_equal(list("new"), -ENXIO);
		k = on(name, "new", 3, bad_one);
		assert_int_equal(look(&k), -ENXIO);
		/* made anew, it is another one */
		assert_int_equal(make("new"), 0);
		assert_int_equal(look(&k), -ENOENT);
		assert_int_equal(list("new"), 0);
		k = on(name, "new", 3, (bad_one + 1) % 3);
		assert_int_equal(put(&k), 0);
		again(3);
		for (int i = 0; i < 3; i++)
			assert_int_equal(head(i, "new"), 0);
		assert_int_equal(list("new"), 1);

		/* attributes: only of the one that judges a version is lost */
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "one"), 0);
		attrs(&version);
		bad_next(bad_one, -EIO);
		assert_int_equal(set_attrs(version, "two"), bad_one == 0 ? -EAGAIN : 0);
		assert_string_equal(attrs(&version), bad_one == 0 ? "one" : "two");
		assert_int_equal(set_attrs(version, "three"), 0);
		assert_string_equal(attrs(NULL), "three");
		again(3);
		assert_string_equal(attrs(NULL), "three");
		bad_next(bad_one, -EIO);
		assert_int_equal(set_attrs(STORE_VERSION_ANY, "four"), 0);
		assert_string_equal(attrs(NULL), "four");
		stop();
		end();
	}
}

/* A version that was read from the disk that has failed since is none of the next one's, though they count alike. */
static void
test_version_of_another(void **state)
{
	uint64_t version;

	begin_with(3);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "one"), 0);
	attrs(&version);
	fails(3, 0);
	wait_until(is_in, 6);
	assert_int_equal(set_attrs(version, "lost"), -ESTALE);
	assert_string_equal(attrs(&version), "one");
	assert_int_equal(set_attrs(version, "two"), 0);
	assert_string_equal(attrs(NULL), "two");
	stop();
	end();
}

static bool
on_same_entry(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static int
uploads(const char *bucket)
{
	struct store_list ls = { .bucket = bucket, .max = 100, .entry = on_same_entry };

	ls.bucket_len = (uint16_t)strlen(bucket);
	return STORE_DO(user, &ls.op, store_list_uploads(store_user_port(user, 0), &ls));
}

/* Uploads end with their bucket, also those on a disk that failed when it was removed. */
static void
test_uploads(void **state)
{
	struct store_upload u;
	struct store_stat s = { .version = 0 };
	char name[32];
	struct store_key k;

	begin_with(3);
	assert_int_equal(make("new"), 0);
	k = on(name, "new", 3, 1);
	assert_int_equal(STORE_DO(user, &u.op, store_upload_create(store_user_port(user, 0), &k, "a", 1, &u)),
			 0);
	assert_int_equal(uploads("new"), 1);
	bad_next(1, -EIO);
	assert_int_equal(removed("new"), 0);
	assert_int_equal(uploads("new"), -ENXIO);
	assert_int_equal(make("new"), 0);
	assert_int_equal(uploads("new"), 0);
	assert_int_equal(
		STORE_DO(user, &s.op, store_upload_stat(store_user_port(user, 0), &k, u.id, NULL, 0, &s)),
		-ENOENT);
	stop();
	end();
}

/* Others fail while the table is written; with half of them it goes on, with fewer all is read-only. */
static void
test_below_half(void **state)
{
	char name[32];
	struct store_key k;

	begin_with(4);
	bad(2, "super", -EIO);
	fails(4, 1);
	wait_until(is_in, 9);
	assert_int_equal(make("new"), 0);
	k = on(name, "new", 4, 3);
	assert_int_equal(put(&k), 0);
	fails(4, 3);
	wait_until(is_read_only, 0);
	for (int i = 0; i < 4; i++) {
		k = on(name, "b", 4, i);
		assert_int_equal(look(&k), 0);
		assert_int_equal(put(&k), -EROFS);
		assert_int_equal(delete (&k), -EROFS);
	}
	assert_int_equal(make("more"), -EROFS);
	assert_int_equal(removed("new"), -EROFS);
	assert_int_equal(set_attrs(STORE_VERSION_ANY, "no"), -EROFS);
	assert_int_equal(bucket_there("new"), 0);
	assert_int_equal(list("b"), 4);
	accept(1);
	accept(2);
	memcpy(accepted[0], accepted[1], UUID_BYTES);
	memcpy(accepted[1], accepted[2], UUID_BYTES);
	stop();

	/* The half that went on may start without the other. */
	all_good();
	disks[1] = (struct store_disk_conf){ .path = dir[3] };
	use(2);
	conf.disks.accept_missing_nr = 2;
	must_start();
	k = on(name, "new", 4, 3);
	assert_int_equal(look(&k), 0);
	stop();
	all_again(4);
	must_start();
	for (int i = 0; i < 4; i++)
		assert_int_equal(head(i, "new"), 0);
	assert_int_equal(removed("new"), -ENOTEMPTY);
	stop();
	end();
}

/* Another fails when the table is written without the first, and no majority is left: what was under way is not answered for,
 * and nothing is changed any more. */
static void
test_no_majority(void **state)
{
	char name[32];
	struct store_key k;
	int r;

	begin_with(3);
	/* After the PUTs of bad_next(): a fast machine makes so many that disk 2 writes a snapshot and its superblock. */
	bad_next(1, -EIO);
	bad(2, "super", -EIO);
	r = make("new");
	assert_true(r == -ECANCELED || r == -EROFS);
	wait_until(is_read_only, 0);
	assert_int_equal(make("more"), -EROFS);
	assert_int_equal(removed("b"), -EROFS);
	for (int i = 0; i < 3; i++) {
		k = on(name, "b", 3, i);
		assert_int_equal(look(&k), 0);
		assert_int_equal(put(&k), -EROFS);
	}
	again(3);
	for (int i = 1; i < 3; i++)
		assert_int_equal(head(i, "new"), head(0, "new"));
	for (int i = 0; i < 3; i++) {
		k = on(name, "b", 3, i);
		assert_int_equal(put(&k), 0);
	}
	stop();
	end();
}

/* A disk that fails a flush in a start is out of it, also when the start begins anew because of another: the next flush would
 * end well, and what the first one did not write is lost. */
static void
test_told_once(void **state)
{
	begin_with(4);
	for (int i = 0; i < 4; i++)
		accept(i);
	stop();
	all_again(4);
	conf.disks.accept_missing_nr = 4;
	flush_fails = 1;
	bad(2, "super", -EIO);
	assert_int_equal(start(), -EINVAL);
	assert_non_null(strstr(err, "only 2 of 4 disks are there"));
	assert_int_equal(flush_fails, -1);
	all_good();
	all_again(4);
	must_start();
	assert_int_equal(list("b"), 4);
	stop();
	end();
}

/* Of a pair one goes on alone, and starts alone; the one that failed does not. */
static void
test_pair(void **state)
{
	begin_with(2);
	accept(0);
	accept(1);
	fails(2, 0);
	wait_until(is_in, 2);
	assert_int_equal(make("new"), 0);
	stop();
	all_good();
	disks[0] = (struct store_disk_conf){ .path = dir[0] };
	use(1);
	conf.disks.accept_missing_nr = 2;
	must_refuse(-EINVAL, "only 1 of 2 disks are there");
	disks[0] = (struct store_disk_conf){ .path = dir[1] };
	must_start();
	assert_int_equal(bucket_there("new"), 0);
	stop();
	end();
}

static _Atomic int done_result;

static void
on_made(struct store_op *op)
{
	done_result = op->result;
}

/* A bucket is not answered for before the table is written, however long that takes; and a disk that does not write it is
 * waited for until it is said to have failed. */
static void
test_table_held(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct store_del op = { .op.done = on_made };
		char name[32];
		struct store_key k;

		begin_with(4);
		k = on(name, "b", 4, 1);
		bad(3, "super", FAULT_HOLD);
		bad(0, "log", -EIO);
		done_result = 1;
		assert_int_equal(store_bucket_create(store_user_port(user, 0), "new", 3, 0, &op), 0);
		for (uint64_t until_ns = clock_ns() + PATIENCE_NS; !held[3] && clock_ns() < until_ns;)
			assert_int_equal(put(&k), 0);
		assert_true(held[3]);
		for (int i = 0; i < 50; i++) {
			assert_int_equal(put(&k), 0);
			assert_int_equal(bucket_there("b"), 0);
			assert_int_equal(list("b"), 4);
			assert_int_equal(done_result, 1);
		}
		if (how == 0)
			bad(3, NULL, 0);
		else
			disk_fail(&extent_store(set_engine(set_of(st), 3))->vol->disk, "it takes too long");
		for (uint64_t until_ns = clock_ns() + PATIENCE_NS; done_result == 1 && clock_ns() < until_ns;)
			assert_int_equal(put(&k), 0);
		assert_int_equal(done_result, 0);
		assert_true(is_in(how == 0 ? 14 : 6));
		assert_int_equal(bucket_there("new"), 0);
		bad(3, NULL, 0);
		again(4);
		for (int i = 0; i < 4; i++)
			assert_int_equal(head(i, "new"), 0);
		stop();
		end();
	}
}

/* A disk that hangs under a change: when it is said to have failed the change goes on without it, and what it was given ends
 * whenever it ends. */
static void
test_hangs(void **state)
{
	for (int bad_one = 0; bad_one < 3; bad_one++) {
		for (int what = 0; what < 3; what++) {
			struct store_del op = { .op.done = on_made };
			struct store_bucket_set set = { .op.done = on_made };
			struct store_port *port;
			char name[32], text[] = "tags";
			struct store_key k;

			begin_with(3);
			assert_int_equal(make("new"), 0);
			port = store_user_port(user, 0);
			k = on(name, "b", 3, (bad_one + 1) % 3);
			bad_next(bad_one, FAULT_HOLD);
			done_result = 1;
			if (what == 0)
				assert_int_equal(store_bucket_create(port, "more", 4, 0, &op), 0);
			else if (what == 1)
				assert_int_equal(store_bucket_delete(port, "new", 3, &op), 0);
			else
				assert_int_equal(store_bucket_set_attrs(port, "b", 1, STORE_VERSION_ANY, text,
									4, &set),
						 0);
			for (uint64_t until_ns = clock_ns() + PATIENCE_NS;
			     !held[bad_one] && clock_ns() < until_ns;)
				assert_int_equal(put(&k), 0);
			assert_true(held[bad_one]);
			assert_int_equal(done_result, 1);
			disk_fail(&extent_store(set_engine(set_of(st), bad_one))->vol->disk,
				  "it takes too long");
			for (uint64_t until_ns = clock_ns() + PATIENCE_NS;
			     done_result == 1 && clock_ns() < until_ns;)
				assert_int_equal(put(&k), 0);
			assert_int_equal(done_result, 0);
			memset(text, 'x', sizeof text);
			assert_true(is_in(7 & ~((uint64_t)1 << bad_one)));
			assert_int_equal(bucket_there("more"), what == 0 ? 0 : -ENXIO);
			assert_int_equal(bucket_there("new"), what == 1 ? -ENXIO : 0);
			assert_string_equal(attrs(NULL), what == 2 ? "tags" : "");
			assert_int_equal(make("another"), 0);
			bad(bad_one, NULL, 0);
			again(3);
			for (int i = 0; i < 3; i++) {
				assert_int_equal(head(i, "more"), what == 0 ? 0 : -ENXIO);
				assert_int_equal(head(i, "new"), what == 1 ? -ENXIO : 0);
				assert_int_equal(head(i, "another"), 0);
			}
			assert_string_equal(attrs(NULL), what == 2 ? "tags" : "");
			stop();
			end();
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_under_change),
		cmocka_unit_test(test_uploads),
		cmocka_unit_test(test_below_half),
		cmocka_unit_test(test_no_majority),
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_version_of_another),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_table_held),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_hangs),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_disks_fail", tests, NULL, NULL);
}
