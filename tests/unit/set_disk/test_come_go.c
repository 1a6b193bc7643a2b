/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while a store on files serves.  These are on files because paths, links and locks of disks are tested, disks whose
 * files have no room, and moves under threads that write; set/test_mem_moves has all else.
 */
#include "extent/engine.h"

#include "disks_rig.h"

#include "tests/fake/fault_ring.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>

#define KEYS 600

static bool forces; /* a disk that is added loses its records */

static int
add(const char *disk, uint64_t size_bytes)
{
	return ask_with(&(struct store_disk_change){
		.kind = DISK_ADD, .disk = disk, .size_bytes = size_bytes, .force = forces });
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
	static const char *const number[] = { "0", "1", "7", "-0", "", "4294967296" };
	struct store_unit_info info;
	char path[1024], link[256], other[UUID_TEXT];
	int fd;

	begin(2);
	must_start();
	put_all();
	assert_int_equal(ask(DISK_DRAIN, "/nowhere"), -ENOENT);
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		assert_int_equal(ask(DISK_DRAIN, number[i]), -ENOENT);
	assert_int_equal(ask(DISK_CANCEL, NULL), -ENOENT);
	assert_int_equal(add(dir[1], 96 * MIB), -EEXIST);
	store_unit_info(st, 1, &info);
	snprintf(path, sizeof path, "%s is disk %s %s of this store; give the path of another one", dir[1],
		 info.label, dir[1]);
	assert_string_equal(rig_said, path);
	/* By another way it is still that one, and nothing of it is lost. */
	snprintf(link, sizeof link, "%s/by-id", dir[3]);
	assert_int_equal(symlink(dir[1], link), 0);
	forces = true;
	assert_int_equal(add(link, 96 * MIB), -EEXIST);
	snprintf(path, sizeof path, "%s is disk %.8s %s of this store; give the path of another one", link,
		 info.uuid, dir[1]);
	assert_string_equal(rig_said, path);
	unlink(link);
	/* One that somebody else has is named as what it is. */
	make_other(3, other);
	snprintf(path, sizeof path, "%s/super", dir[3]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	assert_int_equal(add(dir[3], 96 * MIB), -EBUSY);
	snprintf(path, sizeof path, "disk %.8s %s is in use by another process; stop gantryd first", other,
		 dir[3]);
	assert_string_equal(rig_said, path);
	close(fd);
	forces = false;
	store_unit_info(st, 1, &info);
	assert_int_equal(ask(DISK_DRAIN, info.uuid), 0);
	wait_for_mover();
	assert_int_equal(ask(DISK_DRAIN, dir[0]), -EPERM);
	assert_true(add(dir[2], 4096) < 0);
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
	assert_int_equal(add(dir[2], 128 * MIB), 0);
	wait_for_mover();
	assert_int_equal(ask(DISK_DRAIN, dir[0]), 0);
	wait_for_mover();
	for (int i = 0; i < WRITERS; i++) {
		char name[32];

		atomic_store(&writers[i].stop, true);
		wait_until(atomic_load(&writers[i].is_over))
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

/* ---- a disk without room ---- */

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
			assert_int_equal(add(dir[2], 96 * MIB), -ENOSPC);
			if (!strstr(rig_said, "No space left on device") &&
			    !strstr(rig_said, "there is no room"))
				fail_msg("%s: %s", names[i], rig_said);
			no_room_name = NULL;
			wait_for_mover();
			assert_int_equal(store_unit_nr(st), 2);
		}
	}
	assert_int_equal(add(dir[2], 96 * MIB), 0);
	wait_for_mover();
	forces = false;
	assert_int_equal(store_unit_nr(st), 3);
	must_have_all();
	stop();
	fault_ring_hook = NULL;
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_add_no_room),
		cmocka_unit_test(test_under_load),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
