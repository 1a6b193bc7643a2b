/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while a store on files serves.  These are on files because paths, links and locks of disks are tested, moves under
 * threads that write, and failures at moments that only a real log has; set/test_mem_moves has all else.
 */
#include "extent/engine.h"

#include "disks_rig.h"

#include "set/map_int.h"
#include "tests/fake/fault_ring.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>

#define KEYS 600

static char said[512];
static bool forces; /* what is on a disk that is added is lost */

static int
change(int kind, const char *disk, uint64_t size_bytes)
{
	struct store_disk_change c = { .disk = disk, .size_bytes = size_bytes, .force = forces };

	c.kind = kind;
	return store_change_disks(st, &c, said, sizeof said);
}

/* The power is gone: what was written stays, and nothing is any more. */
static _Atomic bool is_cut, cuts_after_answer;
static _Atomic bool is_cancelling;

/* The test's port is one of those that are visited, so it turns meanwhile. */
struct call {
	int kind;
	const char *disk;
	uint64_t size_bytes;
	int result;
	_Atomic bool is_over;
};

static void *
call_main(void *arg)
{
	struct call *c = arg;

	atomic_store(&is_cancelling, c->kind == DISK_CANCEL);
	c->result = change(c->kind, c->disk, c->size_bytes);
	if (atomic_load(&cuts_after_answer))
		atomic_store(&is_cut, true);
	atomic_store(&c->is_over, true);
	return NULL;
}

static int
ask(int kind, const char *disk, uint64_t size_bytes)
{
	struct call c = { kind, disk, size_bytes, 0, false };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_main, &c), 0);
	while (!atomic_load(&c.is_over))
		store_user_turn(user);
	pthread_join(thread, NULL);
	return c.result;
}

static struct store_move_info
move_info(void)
{
	struct store_move_info i;

	store_move_info(st, &i);
	return i;
}

static void
wait_for_end(void)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (move_info().is_running && clock_ns() < until_ns)
		store_user_turn(user);
	if (move_info().is_running)
		fail_msg("it does not end: %s", move_info().trouble);
}

static struct store_key
numbered(char name[32], int i)
{
	snprintf(name, 32, "key-%04d", i);
	return key_of("b", name);
}

static void
put_all(void)
{
	char name[32];

	assert_int_equal(make("b"), 0);
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		assert_int_equal(put(&k), 0);
	}
}

static int listed;
static char last_listed[64];

static bool
on_listed(struct store_list *ls, const struct store_entry *e)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", (int)e->name_len, e->name);
	assert_true(strcmp(name, last_listed) > 0);
	snprintf(last_listed, sizeof last_listed, "%s", name);
	listed++;
	return true;
}

static void
must_list(int nr)
{
	struct store_list ls = { .bucket = "b", .bucket_len = 1, .max = 10000, .entry = on_listed };

	listed = 0;
	last_listed[0] = 0;
	assert_int_equal(STORE_DO(user, &ls.op, store_list(store_user_port(user, 0), &ls)), nr);
	assert_int_equal(listed, nr);
}

static void
must_have_all(void)
{
	struct store_quota_info q;
	char name[32];

	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		assert_int_equal(look(&k), 0);
	}
	must_list(KEYS);
	assert_int_equal(store_bucket_quota(st, "b", 1, &q), 0);
	assert_int_equal(q.used.objects, KEYS);
	assert_int_equal(q.used.bytes, KEYS * 5);
}

static enum store_unit_state
state_of(int unit)
{
	struct store_unit_info info;

	store_unit_info(st, unit, &info);
	return info.state;
}

/* ---- tests ---- */

/* Makes another store on a disk, which ends at once, and says which disk that is. */
static void
make_other(int disk, char ret_uuid[UUID_TEXT])
{
	struct store_disk_conf one = { .path = dir[disk], .size_bytes = 64 * MIB };
	struct store_unit_info info;
	struct store_conf c = conf;
	struct store *other;

	c.disks.disk = &one;
	c.disks.nr = 1;
	if (store_format(&c, false, err, sizeof err) < 0 || store_start(&c, &other, err, sizeof err) < 0)
		fail_msg("%s", err);
	store_unit_info(other, 0, &info);
	snprintf(ret_uuid, UUID_TEXT, "%s", info.uuid);
	store_stop(other);
}

static void
test_refused(void **state)
{
	static const char *const number[] = { "7", "-0", "+1", " 1", "1 ", "01", "0x1", "", "4294967296" };
	struct store_unit_info info;
	char path[1024], link[256], other[UUID_TEXT];
	int fd;

	begin(2);
	must_start();
	put_all();
	assert_int_equal(ask(DISK_DRAIN, "/nowhere", 0), -ENOENT);
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		assert_int_equal(ask(DISK_DRAIN, number[i], 0), -ENOENT);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), -ENOENT);
	assert_int_equal(ask(DISK_ADD, dir[1], 96 * MIB), -EEXIST);
	store_unit_info(st, 1, &info);
	snprintf(path, sizeof path, "%s is disk %s of this store; give the path of another one", dir[1],
		 info.uuid);
	assert_string_equal(said, path);
	/* By another way it is still that one, and nothing of it is lost. */
	snprintf(link, sizeof link, "%s/by-id", dir[3]);
	assert_int_equal(symlink(dir[1], link), 0);
	forces = true;
	assert_int_equal(ask(DISK_ADD, link, 96 * MIB), -EEXIST);
	snprintf(path, sizeof path, "%s is disk %s of this store (%s); give the path of another one", link,
		 info.uuid, dir[1]);
	assert_string_equal(said, path);
	unlink(link);
	/* One that somebody else has is named as what it is. */
	make_other(3, other);
	snprintf(path, sizeof path, "%s/super", dir[3]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	assert_int_equal(ask(DISK_ADD, dir[3], 96 * MIB), -EBUSY);
	snprintf(path, sizeof path, "%s: disk %s is in use by another process; stop gantryd first", dir[3],
		 other);
	assert_string_equal(said, path);
	close(fd);
	forces = false;
	store_unit_info(st, 1, &info);
	assert_int_equal(ask(DISK_DRAIN, info.uuid, 0), 0);
	wait_for_end();
	assert_int_equal(ask(DISK_DRAIN, "0", 0), -EPERM);
	assert_true(ask(DISK_ADD, dir[2], 4096) < 0);
	assert_int_equal(store_unit_nr(st), 2);
	must_have_all();
	stop();
	end();
}

/* ---- under load ---- */

#define WRITERS 2
#define OWN_KEYS 300

/* A thread with keys of its own: what was answered last is what is there. */
struct writer {
	pthread_t thread;
	int nr;
	_Atomic bool stop, is_over;
	struct store_user *user;
	uint8_t is_there[OWN_KEYS];
	uint64_t puts, deletes, later;
	uint64_t longest_ns;
};

static struct store_key
own(const struct writer *w, char name[32], int i)
{
	snprintf(name, 32, "own-%d-%04d", w->nr, i);
	return key_of("b", name);
}

static int
writer_put(struct writer *w, const struct store_key *k)
{
	struct store_port *p = store_user_port(w->user, 0);
	struct store_commit c = { .inline_data = "hello", .inline_len = 5 };
	struct store_put op;
	int r = store_put_init(p, &op, k, 5);

	if (r < 0)
		return r;
	r = STORE_DO(w->user, &op.op, store_put_commit(p, &op, &c));
	store_put_abort(p, &op);
	return r;
}

static int
writer_look(struct writer *w, const struct store_key *k)
{
	struct store_port *p = store_user_port(w->user, 0);
	struct store_obj o;
	int r = STORE_DO(w->user, &o.op, store_open(p, k, &o));

	store_close(p, r == 0 ? &o : NULL);
	return r;
}

/* A change that is told "later" waited for a second, and goes when the disks of this machine are through; where its bytes are where the key
 * was it goes the next time. */
static int
writer_change(struct writer *w, const struct store_key *k, bool is_put)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	for (int moved = 0;;) {
		uint64_t began = clock_ns(), took;
		struct store_del del;
		int r = is_put ? writer_put(w, k)
			       : STORE_DO(w->user, &del.op,
					  store_delete(store_user_port(w->user, 0), k, NULL, &del));

		took = clock_ns() - began;
		w->longest_ns = took > w->longest_ns ? took : w->longest_ns;
		moved += r == -EXDEV;
		if ((r != -EAGAIN && r != -EXDEV) || moved > 1 || clock_ns() >= until_ns)
			return r;
		w->later++;
	}
}

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	uint64_t rnd = (uint64_t)w->nr * 7919 + 1;
	char name[32];

	assert_int_equal(store_user_new(&st, 1, &w->user), 0);
	while (!atomic_load(&w->stop)) {
		struct store_key k;
		bool is_put;
		int i, r;

		rnd = rnd * 6364136223846793005u + 1442695040888963407u;
		i = (int)(rnd >> 33) % OWN_KEYS;
		is_put = rnd >> 62;
		k = own(w, name, i);
		assert_int_equal(writer_look(w, &k), w->is_there[i] ? 0 : -ENOENT);
		r = writer_change(w, &k, is_put);
		if (r < 0)
			fail_msg("a write under a move: %d", r);
		w->puts += is_put;
		w->deletes += !is_put;
		w->is_there[i] = is_put;
	}
	store_user_free(w->user);
	atomic_store(&w->is_over, true);
	return NULL;
}

static void
test_under_load(void **state)
{
	static struct writer writers[WRITERS];
	int there = 0;

	begin(2);
	must_start();
	put_all();
	memset(writers, 0, sizeof writers);
	for (int i = 0; i < WRITERS; i++) {
		writers[i].nr = i;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]), 0);
	}
	assert_int_equal(ask(DISK_ADD, dir[2], 128 * MIB), 0);
	wait_for_end();
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	wait_for_end();
	for (int i = 0; i < WRITERS; i++) {
		char name[32];

		atomic_store(&writers[i].stop, true);
		while (!atomic_load(&writers[i].is_over))
			store_user_turn(user);
		pthread_join(writers[i].thread, NULL);
		assert_true(writers[i].puts > 0 && writers[i].deletes > 0);
		for (int n = 0; n < OWN_KEYS; n++) {
			struct store_key k = own(&writers[i], name, n);

			assert_int_equal(look(&k), writers[i].is_there[n] ? 0 : -ENOENT);
			there += writers[i].is_there[n];
		}
		printf("writer %d: %llu puts, %llu deletes, %llu later, longest %llu ms\n", i,
		       (unsigned long long)writers[i].puts, (unsigned long long)writers[i].deletes,
		       (unsigned long long)writers[i].later,
		       (unsigned long long)(writers[i].longest_ns / NS_PER_MS));
	}
	must_list(KEYS + there);
	stop();
	end();
}

/* Some with bytes, on a disk, whose move the pace holds up. */
static void
put_heavy(int disk)
{
	struct store_port *p = store_user_port(user, 0);
	struct bufpool bufs;
	struct buf *b;

	assert_int_equal(bufpool_init_class(&bufs, BUF_LARGE, BUF_LARGE_BYTES, 0), 0);
	b = bufpool_get(&bufs, BUF_LARGE);
	memset(b->mem, 'x', 200000);
	for (int i = 0, nr = 0; nr < 4; i++) {
		char name[32];
		struct store_key k;
		struct store_commit c = { .inline_len = 0 };
		struct store_write w;
		struct store_put op;

		snprintf(name, sizeof name, "heavy-%d", i);
		k = key_of("h", name);
		if (set_primary(set_of(st), &k) != disk)
			continue;
		assert_int_equal(store_put_init(p, &op, &k, 200000), 0);
		assert_int_equal(STORE_DO(user, &w.op, store_put_write(p, &op, &w, b, 200000, true)), 0);
		assert_int_equal(STORE_DO(user, &op.op, store_put_commit(p, &op, &c)), 0);
		store_put_abort(p, &op);
		nr++;
	}
	bufpool_put(&bufs, b);
	bufpool_fini(&bufs);
}

/* ---- disks that fail on the way ---- */

/* Of a disk that is added: the beginning of the name of a file that has no room, and how it is told. */
static const char *_Atomic no_room_name;
static _Atomic int no_room_result;

/* The epoch block of a start is the first write of a log that is smaller than that. */
#define EPOCH_MAX ((size_t)64 << 10)

static int
hook_no_room(const struct fault_io *io)
{
	const char *name = no_room_name;

	if (!name || io->kind != FAULT_WRITE || strncmp(io->path, dir[2], strlen(dir[2])) != 0)
		return 0;
	if (strcmp(name, "epoch") == 0)
		return strcmp(io->name, "log") == 0 && io->len < EPOCH_MAX ? no_room_result : 0;
	return strncmp(io->name, name, strlen(name)) == 0 ? no_room_result : 0;
}

/* A disk without room is no disk, whatever the errno, and whichever file has none. */
static void
test_add_no_room(void **state)
{
	static const char *const names[] = { "log", "seg-", "super", "host", "epoch" };
	static const int results[] = { -ENOSPC, -EDQUOT, -EFBIG, FAULT_SHORT };

	begin(2);
	must_start();
	put_all();
	fault_ring_hook = hook_no_room;
	forces = true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (size_t j = 0; j < sizeof results / sizeof *results; j++) {
			no_room_result = results[j];
			no_room_name = names[i];
			assert_int_equal(ask(DISK_ADD, dir[2], 96 * MIB), -ENOSPC);
			if (!strstr(said, "No space left on device") && !strstr(said, "there is no room"))
				fail_msg("%s: %s", names[i], said);
			no_room_name = NULL;
			wait_for_end();
			assert_int_equal(store_unit_nr(st), 2);
		}
	}
	assert_int_equal(ask(DISK_ADD, dir[2], 96 * MIB), 0);
	wait_for_end();
	forces = false;
	assert_int_equal(store_unit_nr(st), 3);
	must_have_all();
	stop();
	fault_ring_hook = NULL;
	end();
}

static bool
is_stuck(void)
{
	return move_info().trouble[0] != 0;
}

static _Atomic bool is_held, fails_frozen;
static _Atomic int rounds, frozen_disk; /* the disk that fails; 0: none yet */

/* Writes for the target wait until something has changed, and those of one disk fail after the freeze.  It looks on while the leader works. */
static __attribute__((no_sanitize_thread)) int
hook_frozen(const struct fault_io *io)
{
	const struct slots *sl;
	int none = 0, disk = strncmp(io->path, dir[1], strlen(dir[1])) == 0 ? 1 : 2;

	if (!atomic_load(&fails_frozen) || io->kind != FAULT_WRITE || strncmp(io->name, "super", 5) == 0 ||
	    strncmp(io->path, dir[0], strlen(dir[0])) == 0)
		return 0;
	sl = extent_store(set_engine(set_of(st), 0))->vol->slots;
	if (sl->is_watched && atomic_load(&rounds) < 1) {
		atomic_store(&is_held, true);
		return FAULT_HOLD;
	}
	/* Another disk may write in the same moment: two that fail of three are too many. */
	if (!sl->is_frozen || (!atomic_compare_exchange_strong(&frozen_disk, &none, disk) && none != disk))
		return 0;
	return -EIO;
}

/* One that fails while the last of what changed goes to it: the slots stay where they were, and are written there as before. */
static void
test_target_fails_frozen(void **state)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS, failed;
	char name[32];

	begin(3);
	must_start();
	put_all();
	fault_ring_hook = hook_frozen;
	atomic_store(&rounds, 0);
	atomic_store(&frozen_disk, 0);
	atomic_store(&is_held, false);
	atomic_store(&fails_frozen, true);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	while (!is_stuck() && clock_ns() < until_ns) {
		bool counts = atomic_load(&is_held);

		for (int i = 0; i < KEYS && !is_stuck(); i++) {
			struct store_key k = numbered(name, i);

			if (set_primary(set_of(st), &k) == 0)
				put(&k);
		}
		store_user_turn(user);
		if (counts)
			atomic_fetch_add(&rounds, 1);
	}
	assert_true(is_stuck());
	atomic_store(&fails_frozen, false);
	while (set_in(set_of(st)) == set_all(set_of(st)) && clock_ns() < until_ns)
		store_user_turn(user);
	failed = set_all(set_of(st)) & ~set_in(set_of(st));
	assert_int_equal(__builtin_popcountll(failed), 1);
	must_have_all();
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		assert_int_equal(put(&k), failed >> set_primary(set_of(st), &k) & 1 ? -EROFS : 0);
	}
	stop();
	all_again(3);
	must_start();
	wait_for_end();
	assert_true(state_of(0) == UNIT_DRAINED);
	must_have_all();
	stop();
	end();
}

static _Atomic int fails_disk = -1;

static int
hook_disk(const struct fault_io *io)
{
	int d = atomic_load(&fails_disk);

	return d >= 0 && io->kind != FAULT_READ && strncmp(io->path, dir[d], strlen(dir[d])) == 0 ? -EIO : 0;
}

/* Which engine has each key: the first that it is not any more where it was. */
static int
first_moved(const uint8_t was[KEYS])
{
	char name[32];

	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);
		int home = set_primary(set_of(st), &k);

		if (home != was[i])
			return home;
	}
	return -1;
}

/* A target that fails when it has got some slots, and others are to come: it has those it got, which can be read, and the rest stays where it
 * was; when it is back it goes on. */
static void
fail_behind_switch(int kind, int disks_nr, const char *disk)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	uint8_t was[KEYS];
	char name[32];
	int target, at_target = 0;

	begin(disks_nr);
	conf.disks.move_rate = 1;
	must_start();
	put_all();
	assert_int_equal(make("h"), 0);
	put_heavy(0);
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		was[i] = (uint8_t)set_primary(set_of(st), &k);
	}
	fault_ring_hook = hook_disk;
	assert_int_equal(ask(kind, disk, kind == DISK_ADD ? 96 * MIB : 0), 0);
	while ((target = first_moved(was)) < 0 && clock_ns() < until_ns)
		store_user_turn(user);
	assert_true(target > 0 && move_info().is_running);
	atomic_store(&fails_disk, target);
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);
		bool is_there = set_primary(set_of(st), &k) == target;

		int r = put(&k);

		/* Of the one under which it fails nobody knows; a stamp, or the mover, may be before it. */
		if (r != (is_there ? -EROFS : 0) && (!is_there || at_target || r != -ECANCELED))
			fail_msg("key %d, of which %d were there: %d", i, at_target, r);
		at_target += is_there;
	}
	assert_true(at_target > 0 && at_target < KEYS);
	/* The placement map is written without the disk by a thread of its own. */
	while (set_is_in(set_of(st), target) && clock_ns() < until_ns)
		store_user_turn(user);
	assert_false(set_is_in(set_of(st), target));
	must_have_all();
	store_set_move_rate(st, 0);
	while (!is_stuck() && clock_ns() < until_ns)
		store_user_turn(user);
	assert_true(is_stuck());
	/* Nothing more goes there. */
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		at_target -= set_primary(set_of(st), &k) == target;
	}
	assert_int_equal(at_target, 0);
	stop();
	atomic_store(&fails_disk, -1);
	conf.disks.move_rate = 0;
	all_again(3);
	must_start();
	wait_for_end();
	assert_true(kind != DISK_DRAIN || state_of(0) == UNIT_DRAINED);
	must_have_all();
	stop();
	end();
}

static void
test_target_fails_after(void **state)
{
	fail_behind_switch(DISK_DRAIN, 3, dir[0]);
}

static void
test_new_fails_after(void **state)
{
	fail_behind_switch(DISK_ADD, 2, dir[2]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_add_no_room),
		cmocka_unit_test(test_under_load),
		cmocka_unit_test(test_target_fails_frozen),
		cmocka_unit_test(test_target_fails_after),
		cmocka_unit_test(test_new_fails_after),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
