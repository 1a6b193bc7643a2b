/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys on their way from one engine to another, and what goes wrong: the power at any step, space, either disk, bytes that
 * are damaged.  SEED= repeats the choices, ROUNDS= is the number of cuts (0: one before each flush there is).
 */
#include "extent/engine.h"
#include "moves_rig.h"
#include "tests/fake/fault_ring.h"

#include <signal.h>
#include <sys/wait.h>

#define BUCKET "b"

static struct names n;
static struct store_slots all, none;
static uint8_t id[STORE_UPLOAD_ID_BYTES];

static void
make(uint64_t size_a, uint64_t size_b)
{
	all = all_slots();
	make_pair(size_a);
	dir_remove(dir[B]);
	dir_make(dir[B]);
	dc[B].size_bytes = size_b;
	assert_int_equal(store_format(&conf[B], false, err, sizeof err), 0);
	start_pair(&all, &none);
	assert_int_equal(bucket_on(A, BUCKET, 1), 0);
	assert_int_equal(bucket_on(B, BUCKET, 1), 0);
}

static void
end(void)
{
	fault_ring_hook = NULL;
	stop_pair();
	remove_pair();
}

static int
send(const char *key)
{
	return send_key(A, B, BUCKET, key);
}

/* ---- the power goes ---- */

#define PARTS 5
static const struct {
	const char *key;
	uint64_t size;
} objects[] = {
	{ "empty", 0 }, { "inline", 100 }, { "small", 3000 }, { "some", 700000 }, { "large", 9 * MIB }
};
#define OBJECTS (sizeof objects / sizeof objects[0])

/* Objects, one of parts, an upload; a key that only the target has, and one of which it has an older version. */
static void
fill_both(void)
{
	static struct store_complete c;

	for (size_t i = 0; i < OBJECTS; i++)
		assert_int_equal(put_simple(at(A), BUCKET, objects[i].key, objects[i].size, i), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "gone", 100000, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "newer", 100000, 1), 0);
	assert_int_equal(send("gone"), 0);
	assert_int_equal(send("newer"), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "newer", 150000, 2), 0);
	assert_int_equal(set_attrs(A, BUCKET, "newer", "attributes", 10), 0);
	assert_int_equal(obj_delete(at(A), BUCKET, "gone", NULL), 1);
	assert_int_equal(upload_make(A, BUCKET, "parts", NULL, 0, id), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, BUCKET, "parts", id, i, 70000 * i, 3), 0);
	assert_int_equal(upload_complete(A, BUCKET, "parts", id, PARTS, 3, &c), 0);
	assert_int_equal(upload_make(A, BUCKET, "upload", "of an upload", 12, id), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, BUCKET, "upload", id, i, 1000 * i, 4), 0);
}

/* What A has is at B, all of it and nothing else. */
static void
must_be_there(void)
{
	for (size_t i = 0; i < OBJECTS; i++) {
		must_be_same(BUCKET, objects[i].key);
		assert_int_equal(obj_check(at(B), BUCKET, objects[i].key, objects[i].size, i), 0);
	}
	must_be_same(BUCKET, "newer");
	assert_int_equal(obj_check(at(B), BUCKET, "newer", 150000, 2), 0);
	must_be_same(BUCKET, "parts");
	assert_int_equal(walk_names(A, NULL, &n), OBJECTS + 3);
	assert_int_equal(walk_names(B, NULL, &n), OBJECTS + 3);
	assert_int_equal(unit_number(B, "leftover_objects"), OBJECTS + 2);
}

static _Atomic int flushes_left, flushes;
static uint64_t cut_seed;

static int
count_down(const struct fault_io *io)
{
	if (io->kind != FAULT_FLUSH || strncmp(io->path, dir[B], strlen(dir[B])) != 0)
		return 0;
	flushes++;
	if (flushes_left-- == 0)
		fault_ring_cut(cut_seed);
	return 0;
}

/* Sends all of it; cut before that many flushes of B are over.  True: it came to the end. */
static bool
cut_child(int after_flushes, uint64_t seed)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		fault_ring_cache();
		start_pair(&all, &none);
		cut_seed = seed;
		flushes_left = after_flushes;
		fault_ring_hook = count_down;
		_exit(send_all(A, B, NULL) > 0 && (seed % 2 || remove_all(B, NULL) == 0) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return true;
	}
	assert_int_equal(WTERMSIG(status), SIGKILL);
	return false;
}

static void
test_power(void **state)
{
	const char *env = getenv("ROUNDS");
	int rounds = env ? atoi(env) : 6, total;
	uint64_t rng = seed_from_env();
	bool over = false;

	fault_ring_hook = NULL;
	make(96 * MIB, 96 * MIB);
	fill_both();
	/* How many there are: of a copy that is not cut, and then removed. */
	flushes = 0;
	flushes_left = 1 << 30;
	fault_ring_hook = count_down;
	assert_true(send_all(A, B, NULL) > 0);
	must_be_there();
	total = flushes;
	assert_true(total > 10);
	for (int i = 0; rounds ? i < rounds : !over; i++) {
		fault_ring_hook = NULL;
		if (i % 3 == 0)
			assert_int_equal(remove_all(B, NULL), 0);
		stop_pair();
		over = cut_child(rounds ? (int)(rnd(&rng) % (uint64_t)total) : i, rnd(&rng));
		start_pair(&all, &none);
		assert_int_equal(used(BUCKET).objects, OBJECTS + 2);
		assert_int_equal(list_names(B, BUCKET, NULL, NULL, 10, false, &n), 0);
		/* What is taken for equal is. */
		assert_true(send_all(A, B, NULL) > 0);
		must_be_there();
		assert_int_equal(used(BUCKET).uploads, 1);
	}
	/* Here it is what it was there. */
	stop_pair();
	start_pair(&none, &all);
	assert_int_equal(used(BUCKET).objects, OBJECTS + 2);
	assert_int_equal(used(BUCKET).uploads, 1);
	assert_int_equal(remove_all(A, NULL), 0);
	for (size_t i = 0; i < OBJECTS; i++)
		assert_int_equal(obj_check(at(B), BUCKET, objects[i].key, objects[i].size, i), 0);
	{
		static struct store_complete c;

		assert_int_equal(upload_complete(B, BUCKET, "upload", id, PARTS, 4, &c), 0);
	}
	stop_pair();
	assert_int_equal(store_fsck(&conf[B], false, NULL, NULL), 0);
	assert_int_equal(store_fsck(&conf[A], false, NULL, NULL), 0);
	remove_pair();
}

/* ---- no room ---- */

static uint64_t
free_bytes(int engine)
{
	struct store_unit_info info;

	store_unit_info(st[engine], 0, &info);
	return info.free_bytes;
}

static void
test_full(void **state)
{
	uint64_t before;

	make(224 * MIB, 64 * MIB);
	before = free_bytes(B);
	assert_int_equal(put_simple(at(A), BUCKET, "large", 80 * MIB, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "less", 20 * MIB, 2), 0);
	assert_int_equal(send("large"), -ENOSPC);
	assert_int_equal(send("less"), 0);
	assert_int_equal(remove_key(B, BUCKET, "less"), 0);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	wait_until(free_bytes(B) + MIB >= before)
		loop_for(&l, 10 * NS_PER_MS);
	assert_int_equal(obj_check(at(A), BUCKET, "large", 80 * MIB, 1), 0);
	end();
}

/* ---- one of the disks ---- */

static _Atomic int bad_kind, bad_disk;

static int
fail_some(const struct fault_io *io)
{
	return (int)io->kind == bad_kind && strncmp(io->path, dir[bad_disk], strlen(dir[bad_disk])) == 0 &&
			       strncmp(io->name, "seg", 3) == 0
		       ? -EIO
		       : 0;
}

static void
turns_bad(int disk, enum fault_kind kind)
{
	bad_disk = disk;
	bad_kind = (int)kind;
	fault_ring_hook = fail_some;
}

static void
test_source_fails(void **state)
{
	make(96 * MIB, 96 * MIB);
	assert_int_equal(put_simple(at(A), BUCKET, "k", 3 * MIB, 1), 0);
	turns_bad(A, FAULT_READ);
	assert_int_equal(send("k"), -EIO);
	fault_ring_hook = NULL;
	assert_int_equal(walk_names(B, NULL, &n), 0);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
	/* It does not write any more, and is still read. */
	turns_bad(A, FAULT_WRITE);
	assert_true(put_simple(at(A), BUCKET, "l", 3 * MIB, 1) < 0);
	assert_int_equal(remove_key(B, BUCKET, "k"), 0);
	assert_int_equal(send("k"), 0);
	assert_int_equal(obj_check(at(B), BUCKET, "k", 3 * MIB, 1), 0);
	end();
}

static void
test_target_fails(void **state)
{
	struct store_slots_op o = { .slots = &all };

	make(96 * MIB, 96 * MIB);
	assert_int_equal(put_simple(at(A), BUCKET, "k", 3 * MIB, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "l", 1000, 2), 0);
	assert_int_equal(send("l"), 0);
	turns_bad(B, FAULT_WRITE);
	assert_int_equal(send("k"), -EROFS);
	assert_int_equal(send("l"), 0); /* it is there */
	assert_int_equal(remove_key(B, BUCKET, "l"), -EROFS);
	assert_int_equal(obj_check(at(A), BUCKET, "k", 3 * MIB, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "k", 1000, 2), 0);
	/* A table that was effective is obeyed all the same. */
	assert_int_equal(tell(A, SLOTS_FREEZE, &o), 0);
	assert_int_equal(tell(B, SLOTS_TAKE, &o), 0);
	assert_int_equal(tell(A, SLOTS_LEAVE, &o), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "k", 1000, 2), -EXDEV);
	assert_int_equal(list_names(B, BUCKET, NULL, NULL, 10, false, &n), 1);
	end();
}

/* A byte of a stored object becomes another one. */
static void
damage(const char *key, uint64_t off)
{
	uint8_t bytes[KEY_BYTES_MAX], b;
	struct store_key k = key_of(BUCKET, key);
	struct vol *vol = extent_store(st[A])->vol;
	const struct rec *r = tree_get(vol->tree, bytes, (size_t)key_object(bytes, &k));
	const uint64_t *ext = rec_entries(r);
	char path[160];
	uint64_t at;
	int fd;

	snprintf(path, sizeof path, "/proc/self/fd/%d", disk_addr(&vol->disk, ext_unit(ext[0]), &at));
	fd = open(path, O_RDWR | O_CLOEXEC);
	at += off;
	assert_true(fd >= 0 && pread(fd, &b, 1, (off_t)at) == 1);
	b ^= 1;
	assert_true(pwrite(fd, &b, 1, (off_t)at) == 1 && fsync(fd) == 0);
	close(fd);
}

static void
test_damaged(void **state)
{
	make(96 * MIB, 96 * MIB);
	assert_int_equal(put_simple(at(A), BUCKET, "k", 3 * MIB, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "small", 1000, 1), 0);
	assert_int_equal(put_simple(at(A), BUCKET, "whole", 3 * MIB, 1), 0);
	damage("k", 2 * MIB + 5);
	damage("small", 5);
	assert_int_equal(send("k"), -EBADMSG);
	assert_int_equal(send("small"), -EBADMSG);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	assert_int_equal(send("whole"), 0);
	must_be_same(BUCKET, "whole");
	/* Put anew it goes. */
	assert_int_equal(put_simple(at(A), BUCKET, "k", 3 * MIB, 2), 0);
	assert_int_equal(send("k"), 0);
	must_be_same(BUCKET, "k");
	end();
}

/* The bucket is not there, or no more. */
static void
test_no_bucket(void **state)
{
	make(96 * MIB, 96 * MIB);
	assert_int_equal(bucket_on(A, "c", 1), 0);
	assert_int_equal(put_simple(at(A), "c", "k", 100000, 1), 0);
	assert_int_equal(upload_make(A, "c", "u", NULL, 0, id), 0);
	assert_int_equal(send_key(A, B, "c", "k"), -EAGAIN);
	/* A set makes the bucket on all engines before any of them takes an upload: this one is of a bucket removed here. */
	assert_int_equal(send_key(A, B, "c", "u"), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(bucket_on(B, "c", 1), 0);
	assert_int_equal(send_key(A, B, "c", "k"), 0);
	assert_int_equal(send_key(A, B, "c", "u"), 0);
	assert_int_equal(sent.changes, 1);
	/* Removed on both; what is left over here is of nobody. */
	assert_int_equal(obj_delete(at(A), "c", "k", NULL), 1);
	assert_int_equal(bucket_remove(at(B), "c"), 0);
	assert_int_equal(bucket_remove(at(A), "c"), 0);
	assert_int_equal(send_key(A, B, "c", "k"), 0);
	assert_int_equal(send_key(A, B, "c", "u"), 0);
	loop_for(&l, 50 * NS_PER_MS);
	assert_int_equal(walk_names(B, NULL, &n), 0);
	assert_int_equal(unit_number(B, "leftover_objects"), 0);
	assert_int_equal(unit_number(B, "leftover_bytes"), 0);
	end();
}

/* Two records of one version, of two disks, on one: neither is read by the other's checksums. */
static void
test_same_version(void **state)
{
	struct store_slots mine = half_slots(), others = not_those(&mine);
	struct put_args a = { .bucket = BUCKET, .size = 3 * MIB, .seed = 1 };
	struct put_args b = { .bucket = BUCKET, .size = 3 * MIB, .seed = 2 };
	char key[2][32];

	make(96 * MIB, 96 * MIB);
	stop_pair();
	start_pair(&mine, &others);
	for (int i = 0, found = 0; found < 2; i++) {
		snprintf(key[found], 32, "key-%d", i);
		found += slots_has(found == 0 ? &mine : &others, slot_of_key(BUCKET, key[found]));
	}
	a.key = key[0];
	b.key = key[1];
	for (bool at_a = true; !a.ret_version || a.ret_version != b.ret_version;
	     at_a = a.ret_version < b.ret_version)
		assert_int_equal(obj_put(at(at_a ? A : B), at_a ? &a : &b), 0);
	assert_int_equal(obj_check(at(B), BUCKET, b.key, 3 * MIB, 2), 0);
	assert_int_equal(send(a.key), 0);
	assert_int_equal(obj_check(at(B), BUCKET, a.key, 3 * MIB, 1), 0);
	assert_int_equal(obj_check(at(B), BUCKET, b.key, 3 * MIB, 2), 0);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power),        cmocka_unit_test(test_full),
		cmocka_unit_test(test_source_fails), cmocka_unit_test(test_target_fails),
		cmocka_unit_test(test_damaged),      cmocka_unit_test(test_no_bucket),
		cmocka_unit_test(test_same_version),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_moves_fail", tests, NULL, NULL);
}
