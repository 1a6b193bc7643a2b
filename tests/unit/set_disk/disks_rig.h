/* SPDX-License-Identifier: Apache-2.0 */
/* A store of several disks, each in a directory, and the operations as blocking calls: what the tests of such stores share. */
#ifndef GANTRY_TESTS_DISKS_RIG_H
#define GANTRY_TESTS_DISKS_RIG_H

#include "tests/unit/extent/harness.h"

#include "set/set_int.h"
#include "store/user.h"
#include "tests/fake/remedies.h"

#include <stdatomic.h>

#define DISKS 6

static char dir[DISKS][128];
static struct store_disk_conf disks[DISKS];
static uint8_t accepted[DISKS][UUID_BYTES];
static struct store_conf conf;
static struct store *st;
static struct store_user *user;
static char err[STORE_WHY_BYTES];

/* ---- a store of nr disks ---- */

static inline void
use(int nr)
{
	conf = (struct store_conf){ .ops = &store_set_ops,
				    .disks.disk = disks,
				    .disks.nr = nr,
				    .disks.index_bytes = 64 * MIB,
				    .disks.lock_wait_ns = PATIENCE_NS,
				    .disks.engine = &extent_ops,
				    .disks.engines_max = STORE_SET_MAX,
				    .disks.accept_missing = (const uint8_t(*)[UUID_BYTES])accepted,
				    .ports_max = 6 };
}

static inline void
begin(int nr)
{
	for (int i = 0; i < DISKS; i++) {
		dir_make(dir[i]);
		disks[i] = (struct store_disk_conf){ .path = dir[i],
						     .size_bytes = (64 + 32 * (uint64_t)i) * MIB };
	}
	use(nr);
	if (store_format(&conf, false, err, sizeof err) < 0)
		fail_msg("%s", err);
}

static inline void
end(void)
{
	for (int i = 0; i < DISKS; i++)
		dir_remove(dir[i]);
}

static inline int
start(void)
{
	int r = store_start(&conf, &st, err, sizeof err);

	if (r == 0)
		assert_int_equal(store_user_new(&st, 1, &user), 0);
	return r;
}

static inline void
stop(void)
{
	store_user_free(user);
	store_stop(st);
}

static inline void
must_start(void)
{
	if (start() < 0)
		fail_msg("%s", err);
}

/* The start says no, in a line with this in it, and no superblock is any other than before. */
static inline void
must_refuse(int error, const char *text)
{
	static uint8_t before[DISKS][2][65536], after[65536];
	char path[256];

	for (int check_it = 0; check_it < 2; check_it++) {
		for (int i = 0; i < DISKS * 2; i++) {
			uint8_t *to = check_it ? after : before[i / 2][i % 2];
			int fd;

			snprintf(path, sizeof path, "%s/super%s", dir[i / 2], i % 2 ? "2" : "");
			fd = open(path, O_RDONLY | O_CLOEXEC);
			memset(to, 0, 65536);
			if (fd >= 0) {
				assert_true(read(fd, to, 65536) == 65536);
				close(fd);
			}
			if (check_it)
				assert_memory_equal(after, before[i / 2][i % 2], 65536);
		}
		if (!check_it) {
			int r = start();

			if (r != error || !strstr(err, text) || !remedies_are_in_order(err))
				fail_msg("%d instead of %d: %s", r, error, r < 0 ? err : "");
		}
	}
}

/* Leaves the i-th of nr configured disks out. */
static inline void
leave_out(int i, int nr)
{
	use(nr - 1);
	memmove(&disks[i], &disks[i + 1], (size_t)(nr - 1 - i) * sizeof disks[0]);
}

static inline void
all_again(int nr)
{
	for (int i = 0; i < DISKS; i++)
		disks[i] = (struct store_disk_conf){ .path = dir[i], .size_bytes = 0 };
	use(nr);
}

/* The UUID of a member as the started store has it. */
static inline void
accept(int unit)
{
	struct store_unit_info info;

	store_unit_info(st, unit, &info);
	assert_int_equal(uuid_parse(info.uuid, accepted[unit]), 0);
}

/* ---- changes of disks ---- */

static char rig_said[512]; /* of the latest one */
static void (*turn_other)(
	void); /* turns the loop of a test that has another one than that of `user`; NULL: there is none */

static inline void
turn(void)
{
	if (turn_other)
		turn_other();
	else
		store_user_turn(user);
}

struct disk_call {
	struct store_disk_change c;
	int result;
	_Atomic bool is_over;
};

static inline void *
disk_call_main(void *arg)
{
	struct disk_call *call = arg;

	call->result = store_change_disks(st, &call->c, rig_said, sizeof rig_said);
	atomic_store(&call->is_over, true);
	return NULL;
}

/* Returns the result of a change of disks, while the loop of the test turns, whose port is visited. */
static inline int
ask_with(const struct store_disk_change *c)
{
	struct disk_call call = { .c = *c };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, disk_call_main, &call), 0);
	wait_until(atomic_load(&call.is_over))
		turn();
	pthread_join(thread, NULL);
	return call.result;
}

static inline int
ask(int kind, const char *disk)
{
	struct store_disk_change c = { .disk = disk };

	c.kind = kind;
	return ask_with(&c);
}

static inline bool
mover_runs(void)
{
	struct store_move_info i;

	store_move_info(st, &i);
	return i.is_running;
}

/* Waits until no drain or addition is in progress. */
static inline void
wait_for_mover(void)
{
	turn();
	wait_until(!mover_runs())
		turn();
}

/* ---- what is in it ---- */

/* A key that the disk of this number has. */
static inline struct store_key
key_on(const struct disk_table *t, char name[32], const char *bucket, int disk)
{
	for (int n = 0;; n++) {
		struct store_key k;

		snprintf(name, 32, "key-%d", n);
		k = key_of(bucket, name);
		if (t->home[set_slot(&k)] == disk)
			return k;
	}
}

static inline int
make_with(const char *bucket, unsigned copies)
{
	struct store_del op;

	return STORE_DO(user, &op.op,
			store_bucket_create(store_user_port(user, 0), bucket, strlen(bucket), copies, &op));
}

static inline int
make(const char *bucket)
{
	return make_with(bucket, 0);
}

static inline int
removed(const char *bucket)
{
	struct store_del op;

	return STORE_DO(user, &op.op,
			store_bucket_delete(store_user_port(user, 0), bucket, strlen(bucket), &op));
}

static inline int
put(const struct store_key *k)
{
	struct store_commit c = { .inline_data = "hello", .inline_len = 5 };
	struct store_put op;
	int r = store_put_init(store_user_port(user, 0), &op, k, 5);

	if (r < 0)
		return r;
	r = STORE_DO(user, &op.op, store_put_commit(store_user_port(user, 0), &op, &c));
	store_put_abort(store_user_port(user, 0), &op);
	return r;
}

static inline int
look(const struct store_key *k)
{
	struct store_obj o;
	int r = STORE_DO(user, &o.op, store_open(store_user_port(user, 0), k, &o));

	store_close(store_user_port(user, 0), r == 0 ? &o : NULL);
	return r;
}

static inline bool
on_entry(struct store_list *ls, const struct store_entry *e)
{
	return true;
}

static inline int
list(const char *bucket)
{
	struct store_list ls = { .bucket = bucket, .max = 100, .entry = on_entry };

	ls.bucket_len = (uint16_t)strlen(bucket);
	return STORE_DO(user, &ls.op, store_list(store_user_port(user, 0), &ls));
}

static inline int delete (const struct store_key *k)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_delete(store_user_port(user, 0), k, NULL, &op));
}

static inline const struct disk_table *
table(int engine)
{
	static struct disk_table t;
	uint8_t uuid[DISKS][UUID_BYTES] = { { 1 }, { 2 }, { 3 }, { 4 } };
	uint64_t size[DISKS] = { 64 * MIB, 96 * MIB, 128 * MIB, 160 * MIB };

	table_make(&t, (const uint8_t(*)[UUID_BYTES])uuid, size, engine, 1);
	return &t;
}

static inline struct store_port *
engine(int i)
{
	return port_engine(set_port(store_user_port(user, 0)), i);
}

static inline int
gate(int i, const char *bucket, bool close)
{
	struct store_del op;
	struct store_port *e = engine(i);
	const struct store_change c = { .act = ACT_GATE_BUCKET,
					.key = { .bucket = bucket, .bucket_len = (uint16_t)strlen(bucket) },
					.gate = close ? GATE_CLOSE_EMPTY : GATE_OPEN };

	return STORE_DO(user, &op.op, e->ops->apply(e, &c, &op.op));
}

static inline int
head(int i, const char *bucket)
{
	struct store_stat s = { .version = 0 };

	return STORE_DO(user, &s.op, store_bucket_head(engine(i), bucket, strlen(bucket), &s));
}

#endif
