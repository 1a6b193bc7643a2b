/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while a store serves: one is drained, one is added, what is refused, and what a restart on the way
 * makes of it.  Nothing that was put is lost or comes again, lists and quotas stay right.
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

static int
hook_cut(const struct fault_io *io)
{
	return atomic_load(&is_cut) && io->kind != FAULT_READ ? -EIO : 0;
}

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

/* One of three goes, and the next start is one of two; with it, it is refused. */
static void
test_drain(void **state)
{
	for (int gone = 0; gone < 3; gone++) {
		char name[32];
		struct store_key k;

		begin(3);
		must_start();
		put_all();
		assert_int_equal(ask(DISK_DRAIN, dir[gone], 0), 0);
		wait_for_end();
		assert_true(state_of(gone) == UNIT_DRAINED);
		must_have_all();
		assert_int_equal(make("c"), 0);
		k = key_of("c", "x");
		assert_int_equal(put(&k), 0);
		assert_int_equal(removed("c"), -ENOTEMPTY);
		assert_int_equal(delete (&k), 1);
		assert_int_equal(removed("c"), 0);
		assert_int_equal(ask(DISK_DRAIN, dir[gone], 0), -EALREADY);
		stop();
		/* It is left alone, as one of others; by itself it is no store. */
		all_again(3);
		must_start();
		assert_int_equal(store_unit_nr(st), 2);
		must_have_all();
		stop();
		use(1);
		disks[0].path = dir[gone];
		must_refuse(-EINVAL, "does not belong to this store");
		all_again(3);
		leave_out(gone, 3);
		must_start();
		must_have_all();
		k = numbered(name, 0);
		assert_int_equal(delete (&k), 1);
		must_list(KEYS - 1);
		stop();
		end();
	}
}

/* A store of one gets a second disk, then a third, and loses the first. */
static void
test_add(void **state)
{
	begin(1);
	must_start();
	put_all();
	for (int nr = 1; nr < 3; nr++) {
		assert_int_equal(ask(DISK_ADD, dir[nr], 96 * MIB), 0);
		wait_for_end();
		assert_int_equal(store_unit_nr(st), nr + 1);
		assert_true(state_of(nr) == UNIT_OK);
		must_have_all();
	}
	for (int i = 0; i < 3; i++)
		assert_true(table_count(&set_of(st)->map->table, i) > STORE_SLOT_NR / 5);
	assert_int_equal(make("c"), 0);
	assert_int_equal(removed("c"), 0);
	assert_int_equal(ask(DISK_DRAIN, "0", 0), 0);
	wait_for_end();
	must_have_all();
	stop();
	all_again(3);
	leave_out(0, 3);
	must_start();
	must_have_all();
	stop();
	end();
}

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

/* One that was drained counts as a disk until the restart, which is said; and from then on others have the numbers that /disks shows. */
static void
test_after_drain(void **state)
{
	struct store_unit_info info;
	char want[256];

	begin(3);
	conf.disks.engines_max = 3;
	must_start();
	put_all();
	assert_int_equal(ask(DISK_ADD, dir[3], 96 * MIB), -EINVAL);
	assert_string_equal(said, "a store may have 3 disks");
	assert_int_equal(ask(DISK_DRAIN, "0", 0), 0);
	wait_for_end();
	assert_int_equal(ask(DISK_ADD, dir[3], 96 * MIB), -EAGAIN);
	assert_non_null(strstr(said, "until the restart those count that were drained"));
	stop();
	all_again(3);
	leave_out(0, 3);
	conf.disks.engines_max = 3;
	must_start();
	store_unit_info(st, 1, &info);
	assert_string_equal(info.name, dir[2]);
	snprintf(want, sizeof want, "disk %s, number 1 of a store of 2 disks, is missing", info.uuid);
	stop();
	use(1);
	disks[0].path = dir[1];
	must_refuse(-EINVAL, want);
	all_again(3);
	leave_out(0, 3);
	conf.disks.engines_max = 3;
	must_start();
	assert_int_equal(ask(DISK_ADD, dir[3], 96 * MIB), 0);
	wait_for_end();
	must_have_all();
	stop();
	end();
}

/* What is on it would not go onto the other one. */
static void
test_no_room(void **state)
{
	struct store_unit_info info;
	struct bufpool bufs;
	struct buf *b;

	begin(2);
	must_start();
	assert_int_equal(make("b"), 0);
	assert_int_equal(bufpool_init_class(&bufs, BUF_LARGE, BUF_LARGE_BYTES, 0), 0);
	b = bufpool_get(&bufs, BUF_LARGE);
	memset(b->mem, 'x', BUF_LARGE_BYTES);
	do {
		static int nr;
		struct store_port *p = store_user_port(user, 0);
		char name[32];
		struct store_key k = numbered(name, nr++);
		struct store_commit c = { .inline_len = 0 };
		struct store_write w;
		struct store_put op;

		assert_int_equal(store_put_init(p, &op, &k, BUF_LARGE_BYTES), 0);
		assert_int_equal(STORE_DO(user, &w.op, store_put_write(p, &op, &w, b, BUF_LARGE_BYTES, true)),
				 0);
		assert_int_equal(STORE_DO(user, &op.op, store_put_commit(p, &op, &c)), 0);
		store_put_abort(p, &op);
		store_unit_info(st, 0, &info);
	} while (info.free_bytes > info.size_bytes / 4);
	assert_int_equal(ask(DISK_DRAIN, dir[1], 0), -ENOSPC);
	assert_true(strstr(said, "no room") != NULL);
	assert_true(state_of(1) == UNIT_OK && set_of(st)->map->table.draining == 0);
	bufpool_put(&bufs, b);
	bufpool_fini(&bufs);
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

/* The disk whose slots moved dies on the way, and is given up: what others had of the slots that had not moved does not come again. */
static void
test_forget(void **state)
{
	uint8_t uuid[1][UUID_BYTES];
	struct store_unit_info info;
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	uint8_t home[STORE_SLOT_NR];
	char name[32];
	int there = 0;

	begin(3);
	conf.disks.move_rate = 1;
	must_start();
	put_all();
	assert_int_equal(make("h"), 0);
	put_heavy(0);
	store_unit_info(st, 0, &info);
	assert_int_equal(uuid_parse(info.uuid, uuid[0]), 0);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	/* Some keys have gone over, some slots have not. */
	while (move_info().keys < 10 && clock_ns() < until_ns)
		store_user_turn(user);
	stop();
	conf.disks.moves_wait = true;
	must_start();
	for (int i = 0; i < STORE_SLOT_NR; i++)
		home[i] = set_primary_at(set_of(st), (unsigned)i);
	stop();
	all_again(3);
	leave_out(0, 3);
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])uuid;
	conf.disks.forget_nr = 1;
	if (store_forget(&conf, err, sizeof err) < 0)
		fail_msg("%s", err);
	conf.disks.forget_nr = 0;
	must_start();
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);

		assert_int_equal(look(&k), home[set_slot(&k)] == 0 ? -ENOENT : 0);
		there += home[set_slot(&k)] != 0;
	}
	must_list(there);
	stop();
	/* It was being drained, but had slots. */
	all_again(3);
	must_refuse(-EINVAL, "does not belong to this store");
	end();
}

/* The only other disk is given up while one is drained: the last one stays. */
static void
test_forget_other(void **state)
{
	uint8_t uuid[1][UUID_BYTES];
	struct store_unit_info info;

	begin(2);
	conf.disks.move_rate = 1;
	must_start();
	put_all();
	assert_int_equal(make("h"), 0);
	put_heavy(1);
	store_unit_info(st, 0, &info);
	assert_int_equal(uuid_parse(info.uuid, uuid[0]), 0);
	assert_int_equal(ask(DISK_DRAIN, dir[1], 0), 0);
	stop();
	leave_out(0, 2);
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES])uuid;
	conf.disks.forget_nr = 1;
	if (store_forget(&conf, err, sizeof err) < 0)
		fail_msg("%s", err);
	conf.disks.forget_nr = 0;
	must_start();
	wait_for_end();
	assert_int_equal(set_of(st)->map->table.draining, 0);
	assert_true(state_of(0) == UNIT_OK);
	assert_int_equal(make("c"), 0);
	stop();
	end();
}

/* ---- disks that fail on the way ---- */

static _Atomic bool fails_under;

/* Fails what would make a change of the table effective, on the disk that the change needs. */
static int
hook(const struct fault_io *io)
{
	const struct set *s;

	if (!atomic_load(&fails_under) || io->kind != FAULT_WRITE || strncmp(io->name, "super", 5) != 0)
		return 0;
	s = set_of(st);
	for (int i = 0; i < set_engines(s); i++) {
		struct store_unit_info info;

		store_unit_info(set_engine(s, i), 0, &info);
		if (strncmp(io->path, info.name, strlen(info.name)) == 0 && s->map->needs >> i & 1)
			return -EIO;
	}
	return 0;
}

/* One that fails when it is to become a member is none, and all goes on. */
static void
test_add_fails(void **state)
{
	begin(2);
	must_start();
	put_all();
	fault_ring_hook = hook;
	atomic_store(&fails_under, true);
	assert_true(ask(DISK_ADD, dir[2], 96 * MIB) < 0);
	atomic_store(&fails_under, false);
	wait_for_end();
	assert_int_equal(store_unit_nr(st), 2);
	must_have_all();
	assert_int_equal(make("c"), 0);
	assert_int_equal(removed("c"), 0);
	stop();
	all_again(2);
	must_start();
	assert_int_equal(store_unit_nr(st), 2);
	must_have_all();
	stop();
	end();
}

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

static _Atomic bool fails_old;

/* Fails what makes a change of members effective, on the first disk. */
static int
hook_old(const struct fault_io *io)
{
	return atomic_load(&fails_old) && io->kind == FAULT_WRITE && strncmp(io->name, "super", 5) == 0 &&
			       strncmp(io->path, dir[0], strlen(dir[0])) == 0 && set_of(st)->map->needs
		       ? -EIO
		       : 0;
}

/* The only disk fails while another one becomes a member: nothing goes on without it, for it knows of no other and starts alone. */
static void
test_old_fails(void **state)
{
	begin(1);
	must_start();
	put_all();
	fault_ring_hook = hook_old;
	atomic_store(&fails_old, true);
	assert_int_equal(ask(DISK_ADD, dir[1], 96 * MIB), -EROFS);
	atomic_store(&fails_old, false);
	assert_int_equal(make("c"), -EROFS);
	must_have_all();
	stop();
	must_start();
	assert_int_equal(store_unit_nr(st), 1);
	must_have_all();
	stop();
	end();
}

static bool
is_stuck(void)
{
	return move_info().trouble[0] != 0;
}

/* Why it stands still is that one disk, and what came over it. */
static void
must_name_failed(void)
{
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info info;
		char text[512];

		store_unit_info(st, i, &info);
		if (info.state != UNIT_FAILED)
			continue;
		snprintf(text, sizeof text, "disk %s (%s) has failed: %.60s", info.name, info.uuid,
			 info.reason);
		if (!strstr(move_info().trouble, text))
			fail_msg("no '%s' in: %s", text, move_info().trouble);
		return;
	}
	fail();
}

/* One that fails while it is given slots has none of them; the next start goes on with what was begun. */
static void
test_target_fails(void **state)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	char name[32];
	int written = 0;

	begin(3);
	must_start();
	put_all();
	fault_ring_hook = hook;
	atomic_store(&fails_under, true);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	while (!is_stuck() && clock_ns() < until_ns)
		store_user_turn(user);
	assert_true(is_stuck());
	atomic_store(&fails_under, false);
	while (set_in(set_of(st)) == set_all(set_of(st)) && clock_ns() < until_ns)
		store_user_turn(user);
	assert_int_equal(__builtin_popcountll(set_in(set_of(st))), 2);
	must_name_failed();
	must_have_all();
	for (int i = 0; i < KEYS; i++) {
		struct store_key k = numbered(name, i);
		int r = put(&k);

		assert_true(r == 0 || r == -EROFS);
		written += r == 0;
	}
	assert_true(written > KEYS / 3 && written < KEYS);
	assert_int_equal(ask(DISK_DRAIN, dir[1], 0), -EBUSY);
	stop();
	all_again(3);
	must_start();
	wait_for_end();
	assert_true(state_of(0) == UNIT_DRAINED);
	must_have_all();
	stop();
	end();
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

/* What was cancelled stays where it is, also over a restart; leftovers are gone. */
static void
test_cancel(void **state)
{
	int left;

	begin(2);
	conf.disks.move_rate = 1;
	must_start();
	put_all();
	assert_int_equal(make("h"), 0);
	put_heavy(0);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), -EBUSY);
	assert_int_equal(ask(DISK_ADD, dir[2], 96 * MIB), -EBUSY);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), 0);
	/* The next one need not be asked for twice. */
	assert_int_equal(ask(DISK_DRAIN, dir[1], 0), 0);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), 0);
	/* Who asks once more, while what is left over is removed or behind that, is answered too. */
	for (int i = 0; i < 100; i++) {
		int r = ask(DISK_CANCEL, NULL, 0);

		assert_true(r == 0 || r == -ENOENT);
	}
	wait_for_end();
	left = table_count(&set_of(st)->map->table, 0);
	assert_true(left > 0 && set_of(st)->map->table.draining == 0);
	assert_true(state_of(0) == UNIT_OK);
	must_have_all();
	stop();
	must_start();
	assert_int_equal(table_count(&set_of(st)->map->table, 0), left);
	must_have_all();
	stop();
	end();
}

/* What was cancelled stays so from the answer on, whatever comes then. */
static void
test_cancel_cut(void **state)
{
	int left;

	begin(2);
	conf.disks.move_rate = 1;
	must_start();
	put_all();
	assert_int_equal(make("h"), 0);
	put_heavy(0);
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	fault_ring_hook = hook_cut;
	atomic_store(&cuts_after_answer, true);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), 0);
	atomic_store(&cuts_after_answer, false);
	left = table_count(&set_of(st)->map->table, 0);
	stop();
	atomic_store(&is_cut, false);
	fault_ring_hook = NULL;
	conf.disks.move_rate = 0;
	must_start();
	wait_for_end();
	assert_true(state_of(0) == UNIT_OK);
	assert_int_equal(table_count(&set_of(st)->map->table, 0), left);
	assert_true((set_of(st)->map->table.draining | set_of(st)->map->table.filling) == 0);
	must_have_all();
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), -ENOENT);
	stop();
	end();
}

static _Atomic int supers; /* so many are written once a disk has no slots any more, then the power goes */
static int leaver;         /* that disk's number */

/* It looks at a table that another thread may be writing. */
static __attribute__((no_sanitize_thread)) int
hook_leave(const struct fault_io *io)
{
	if (io->kind == FAULT_WRITE && strncmp(io->name, "super", 5) == 0 &&
	    table_count(&set_of(st)->map->table, leaver) == 0 && atomic_fetch_sub(&supers, 1) <= 0)
		atomic_store(&is_cut, true);
	return hook_cut(io);
}

/* Finds the unit with that UUID; -1. */
static int
unit_with(const uint8_t uuid[UUID_BYTES])
{
	for (int i = 0; i < store_unit_nr(st); i++) {
		struct store_unit_info info;
		uint8_t its[UUID_BYTES];

		store_unit_info(st, i, &info);
		assert_int_equal(uuid_parse(info.uuid, its), 0);
		if (memcmp(its, uuid, UUID_BYTES) == 0)
			return i;
	}
	return -1;
}

/* Drains `leaver` up to the cut.  Returns whether there was one. */
static bool
drain_and_cut(int after, uint8_t ret_uuid[UUID_BYTES])
{
	struct store_unit_info info;

	store_unit_info(st, leaver, &info);
	assert_int_equal(uuid_parse(info.uuid, ret_uuid), 0);
	atomic_store(&supers, after);
	fault_ring_hook = hook_leave;
	assert_int_equal(ask(DISK_DRAIN, dir[leaver], 0), 0);
	while (move_info().is_running && !atomic_load(&is_cut))
		store_user_turn(user);
	stop();
	fault_ring_hook = NULL;
	return atomic_exchange(&is_cut, false);
}

/* One that a start has found to be drained comes again at once, as another one with the same path, and is the one that is drained by it. */
static void
come_again(int unit)
{
	assert_true(ask(DISK_ADD, dir[leaver], 96 * MIB) < 0);
	forces = true;
	assert_int_equal(ask(DISK_ADD, dir[leaver], 96 * MIB), 0);
	forces = false;
	wait_for_end();
	assert_int_equal(store_unit_nr(st), 4);
	assert_true(state_of(unit) == UNIT_DRAINED && state_of(3) == UNIT_OK);
	assert_int_equal(ask(DISK_ADD, dir[leaver], 96 * MIB), -EEXIST);
	assert_int_equal(ask(DISK_DRAIN, dir[leaver], 0), 0);
	wait_for_end();
	assert_true(state_of(3) == UNIT_DRAINED);
}

/* The power goes at each superblock that is written when a drained disk leaves: the next start goes well with it, and then knows it for
 * drained, and so does it; it is no member of any later one. */
static void
test_leave_cut(void **state)
{
	int unaware = 0;
	bool was_cut = true;

	for (int n = 0; was_cut; n++) {
		char name[32];
		uint8_t uuid[UUID_BYTES];
		int unit;

		leaver = n % 3;
		begin(3);
		must_start();
		assert_int_equal(make("b"), 0);
		for (int i = 0; i < 20; i++) {
			struct store_key k = numbered(name, i);

			assert_int_equal(put(&k), 0);
		}
		was_cut = drain_and_cut(n, uuid);
		all_again(3);
		must_start();
		wait_for_end();
		unit = unit_with(uuid);
		if (unit >= 0) {
			assert_true(state_of(unit) == UNIT_DRAINED);
			assert_int_equal(ask(DISK_DRAIN, dir[leaver], 0), -EALREADY);
			if (set_unit(set_of(st), unit)->engine == SET_NOWHERE && !unaware++)
				come_again(unit);
		}
		must_list(20);
		stop();
		must_start();
		assert_int_equal(store_unit_nr(st), 2);
		stop();
		leave_out(leaver, 3);
		must_start();
		assert_int_equal(store_unit_nr(st), 2);
		must_list(20);
		stop();
		end();
	}
	assert_true(unaware > 0);
}

static _Atomic int
	phase; /* 1: what is sent waits for the cancellation; 2: what is removed behind the cancellation fails, on one disk */
static _Atomic int first_of; /* that disk; 0: none yet */

static __attribute__((no_sanitize_thread)) int
hook_cancelled(const struct fault_io *io)
{
	int of = 0, none = 0;

	for (int i = 1; i < 3; i++) {
		if (strncmp(io->path, dir[i], strlen(dir[i])) == 0)
			of = i;
	}
	if (!of || io->kind != FAULT_WRITE || strncmp(io->name, "log", 3) != 0 || !atomic_load(&phase))
		return 0;
	if (atomic_load(&phase) == 1 && atomic_load(&is_cancelling))
		atomic_store(&phase, 2);
	if (atomic_load(&phase) == 1) {
		atomic_store(&is_held, true);
		return FAULT_HOLD;
	}
	/* What was on its way goes there first. */
	if (extent_store(set_engine(set_of(st), 0))->vol->slots->is_watched)
		return 0;
	atomic_compare_exchange_strong(&first_of, &none, of);
	return atomic_load(&first_of) == of ? -EIO : 0;
}

/* A disk that fails while a cancelled drain is cleared away makes no drain of it again. */
static void
test_cancel_fails(void **state)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	begin(3);
	must_start();
	put_all();
	atomic_store(&first_of, 0);
	atomic_store(&is_held, false);
	atomic_store(&phase, 1);
	fault_ring_hook = hook_cancelled;
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	while (!atomic_load(&is_held) && clock_ns() < until_ns)
		store_user_turn(user);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), 0);
	while (move_info().is_running && clock_ns() < until_ns)
		store_user_turn(user);
	atomic_store(&phase, 0);
	assert_true(atomic_load(&first_of) != 0);
	assert_false(move_info().is_running);
	assert_int_equal(set_of(st)->map->table.draining, 0);
	must_have_all();
	stop();
	all_again(3);
	must_start();
	assert_true(state_of(0) == UNIT_OK);
	must_have_all();
	stop();
	end();
}

static _Atomic int
	stage; /* 1: what is sent waits for the cancellation; 2: what is removed behind it waits; 0: nothing does */

static __attribute__((no_sanitize_thread)) int
hook_behind(const struct fault_io *io)
{
	if (!atomic_load(&stage) || io->kind != FAULT_WRITE || strncmp(io->name, "log", 3) != 0 ||
	    strncmp(io->path, dir[1], strlen(dir[1])) != 0)
		return 0;
	if (atomic_load(&stage) == 1 && atomic_load(&is_cancelling))
		atomic_store(&stage, 2);
	/* What was on its way goes there first. */
	if (atomic_load(&stage) == 2 && extent_store(set_engine(set_of(st), 0))->vol->slots->is_watched)
		return 0;
	atomic_store(&is_held, true);
	return FAULT_HOLD;
}

/* Something goes to the other disk: there will be something to remove. */
static __attribute__((no_sanitize_thread)) bool
is_sending(void)
{
	const struct vol *vol = extent_store(set_engine(set_of(st), 1))->vol;

	return vol->block.records > 0 || atomic_load(&vol->pending) != NULL;
}

/* A drain that was cancelled leaves two disks: who wants two copies then is told to come again, and not that there is one. */
static void
test_cancel_pairs(void **state)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	begin(2);
	must_start();
	put_all();
	atomic_store(&is_held, false);
	atomic_store(&is_cancelling, false);
	atomic_store(&stage, 1);
	fault_ring_hook = hook_behind;
	assert_int_equal(ask(DISK_DRAIN, dir[0], 0), 0);
	while (!(atomic_load(&is_held) && is_sending()) && clock_ns() < until_ns)
		store_user_turn(user);
	assert_int_equal(make_with("two", 2), -EDOM);
	assert_int_equal(ask(DISK_CANCEL, NULL, 0), 0);
	assert_int_equal(make_with("two", 2), -EAGAIN);
	atomic_store(&stage, 0);
	wait_for_end();
	fault_ring_hook = NULL;
	assert_int_equal(make_with("two", 2), 0);
	must_have_all();
	stop();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_add_no_room),
		cmocka_unit_test(test_under_load),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_add_fails),
		cmocka_unit_test(test_target_fails),
		cmocka_unit_test(test_target_fails_frozen),
		cmocka_unit_test(test_cancel_fails),
		cmocka_unit_test(test_cancel_cut),
		cmocka_unit_test(test_leave_cut),
		cmocka_unit_test(test_forget_other),
		cmocka_unit_test(test_old_fails),
		cmocka_unit_test(test_target_fails_after),
		cmocka_unit_test(test_new_fails_after),
		cmocka_unit_test(test_cancel_pairs),
		cmocka_unit_test(test_after_drain),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
