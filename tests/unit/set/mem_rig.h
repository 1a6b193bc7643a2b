/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set over disks in memory, whose threads take turns: what deterministic tests of the set share.
 *
 * Values are numbers from 1 on: the bytes of an object, and how many, follow from the value, so what is read is checked.
 */
#ifndef GANTRY_TESTS_MEM_RIG_H
#define GANTRY_TESTS_MEM_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "set/set_int.h"
#include "set/replicas.h"
#include "store/own_buf.h"
#include "store/user.h"
#include "tests/fake/mem_disks.h"
#include "tests/fake/turns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISKS 6
#define MIB ((uint64_t)1 << 20)
#define PATIENCE_NS (1000 * NS_PER_S)
#define ONE "one"
#define TWO "two" /* its keys have two copies */

static const char *const paths[DISKS] = { "/mem/0", "/mem/1", "/mem/2", "/mem/3", "/mem/4", "/mem/5" };
static struct store_disk_conf disks[DISKS];
static uint8_t accepted[DISKS][UUID_BYTES];
static struct store_conf conf;
static struct store *st;
static struct store_user *user;
static char err[STORE_WHY_BYTES];
static char rig_said[512];  /* of the latest change of disks */
static uint32_t rig_pauses; /* one in so many PUTs pauses between its beginning and its end; 0: none does */

/* ---- life ---- */

/* Configures the first nr disks. */
static inline void
use(int nr)
{
	for (int i = 0; i < DISKS; i++)
		disks[i] = (struct store_disk_conf){ .path = paths[i], .size_bytes = 0 };
	conf = (struct store_conf){ .ops = &store_set_ops,
				    .disks.disk = disks,
				    .disks.nr = nr,
				    .disks.index_bytes = 64 * MIB,
				    .disks.engine = &mem_engine_ops,
				    .disks.engines_max = STORE_SET_MAX,
				    .disks.heal_after_ns = 1000000 * NS_PER_S,
				    .disks.accept_missing = (const uint8_t(*)[UUID_BYTES])accepted,
				    .ports_max = 12 };
}

/* Makes a store of nr disks of these sizes. */
static inline void
rig_begin_of(uint64_t seed, int nr, const uint64_t *size_bytes)
{
	turns_begin(seed);
	turns_step = mem_disks_step;
	mem_disks_begin(seed);
	use(nr);
	for (int i = 0; i < nr; i++)
		disks[i].size_bytes = size_bytes[i];
	if (store_format(&conf, true, err, sizeof err) < 0)
		fail_msg("%s", err);
	use(nr);
}

/* Makes a store of nr disks. */
static inline void
rig_begin(uint64_t seed, int nr)
{
	uint64_t size_bytes[DISKS];

	for (int i = 0; i < DISKS; i++)
		size_bytes[i] = (256 + 64 * (uint64_t)i) * MIB;
	rig_begin_of(seed, nr, size_bytes);
}

static inline void
rig_end(void)
{
	mem_disks_begin(0);
}

/* The newest placement map of the disks that are there. */
static inline const struct disk_table *
newest_table(void)
{
	const struct disk_table *newest = NULL;

	for (int i = 0; i < DISKS; i++) {
		const struct disk_table *t = mem_disk_is_made(paths[i]) && !mem_disk_is_absent(paths[i])
						     ? mem_disk_table(paths[i])
						     : NULL;

		newest = t && (!newest || t->version > newest->version) ? t : newest;
	}
	check(newest);
	return newest;
}

/* The disk of a number in the newest placement map; NULL: there is none. */
static inline const char *
path_of(int number)
{
	const struct disk_table *t = newest_table();

	for (int i = 0; i < DISKS; i++) {
		if (mem_disk_is_made(paths[i]) && table_find(t, mem_disk_uuid(paths[i])) == number)
			return paths[i];
	}
	return NULL;
}

/* Configures the members that it names. */
static inline void
configure(void)
{
	const struct disk_table *newest = newest_table();

	conf.disks.nr = 0;
	for (int i = 0; i < DISKS; i++) {
		if (mem_disk_is_made(paths[i]) && table_find(newest, mem_disk_uuid(paths[i])) >= 0)
			disks[conf.disks.nr++].path = paths[i];
	}
}

static inline int
start(void)
{
	int r;

	st = NULL;
	r = store_start(&conf, &st, err, sizeof err);

	if (r == 0)
		check(store_user_new(&st, 1, &user) == 0);
	return r;
}

static inline void
up(void)
{
	if (start() < 0)
		fail_msg("%s", err);
}

static inline void
down(void)
{
	store_user_free(user);
	user = NULL;
	store_stop(st);
	st = NULL;
}

static inline void
restart(void)
{
	down();
	up();
}

/* Takes a disk away, which the next start may miss. */
static inline void
take_away(int disk)
{
	mem_disk_absent(paths[disk], true);
	memcpy(accepted[0], mem_disk_uuid(paths[disk]), UUID_BYTES);
	conf.disks.accept_missing_nr = 1;
}

/* Brings it back. */
static inline void
bring_back(int disk)
{
	mem_disk_absent(paths[disk], false);
	conf.disks.accept_missing_nr = 0;
}

/* ---- keys ---- */

static inline bool
has_two(const char *bucket)
{
	return strcmp(bucket, TWO) == 0;
}

static inline struct store_key
key_of(const char *bucket, const char *key)
{
	return (struct store_key){ bucket, key, (uint16_t)strlen(bucket), (uint16_t)strlen(key) };
}

static inline int
make_bucket(struct store_user *u, const char *bucket, unsigned copies)
{
	struct store_del op;

	return STORE_DO(u, &op.op,
			store_bucket_create(store_user_port(u, 0), bucket, strlen(bucket), copies, &op));
}

static inline int
remove_bucket(struct store_user *u, const char *bucket)
{
	struct store_del op;

	return STORE_DO(u, &op.op, store_bucket_delete(store_user_port(u, 0), bucket, strlen(bucket), &op));
}

/* Makes both buckets. */
static inline void
make_buckets(void)
{
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	assert_int_equal(make_bucket(user, TWO, 2), 0);
}

/* The number of the disk in the placement map that is the first of a key, or (is_second) its second. */
static inline int
disk_of(const struct store_key *k, bool is_second)
{
	const struct disk_table *t = mem_disk_table(paths[0]);
	unsigned slot = set_slot(k);

	if (!has_two(k->bucket))
		return t->home[slot];
	return is_second ? t->second[slot] : t->first[slot];
}

/* Writes a name whose key has its first copy on that disk, and, if second is not -1, its second on that; the nr-th of such. */
static inline const char *
name_on(char name[32], const char *bucket, int first, int second, int nr)
{
	for (int n = 0;; n++) {
		struct store_key k;

		check(n < 100000);
		snprintf(name, 32, "key-%d", n);
		k = key_of(bucket, name);
		if (disk_of(&k, false) == first && (second < 0 || disk_of(&k, true) == second) && nr-- == 0)
			return name;
	}
}

/* ---- values ---- */

static inline uint32_t
size_of_value(uint32_t value)
{
	static const uint32_t sizes[] = { 4, 200, 300, 5000, STORE_GRANULE + 100 };

	return sizes[value % 5];
}

static inline void
fill_value(char *to, uint32_t value, uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (char)(value >> 8 * ((off + i) % 4));
}

/* Puts a value: an object, or (id) a part of an upload. */
static inline int
put_part(struct store_user *u, struct store_key k, const uint8_t *id, uint32_t number, uint32_t value)
{
	struct store_port *p = store_user_port(u, 0);
	uint32_t size = size_of_value(value), off = 0;
	struct store_commit c = {
		.meta = { .etag = { .sum = { (uint8_t)value } }, .attrs = &value, .attrs_len = 4 }
	};
	char small[STORE_INLINE_MAX];
	struct buf buf = { .mem = NULL };
	struct store_write w;
	struct store_put op;
	int r;

	memset(&op, 0, sizeof op);
	r = id ? store_put_init_part(p, &op, &k, id, number, size) : store_put_init(p, &op, &k, size);
	if (r < 0)
		return r;
	if (rig_pauses && turns_below(rig_pauses) == 0) {
		for (uint64_t until = clock_ns() + turns_below(200) * NS_PER_MS; clock_ns() < until;)
			store_user_turn(u);
	}
	check(store_buf_make(&buf, 2 * STORE_GRANULE));
	for (; r >= 0 && size - off > STORE_GRANULE; off += STORE_GRANULE) {
		fill_value(buf.mem, value, off, STORE_GRANULE);
		r = STORE_DO(u, &w.op, store_put_write(p, &op, &w, &buf, STORE_GRANULE, false));
	}
	if (size <= STORE_INLINE_MAX) {
		fill_value(small, value, 0, size);
		c.inline_data = small;
		c.inline_len = size;
	} else {
		fill_value(buf.mem, value, off, size - off);
		c.last = &buf;
		c.last_len = size - off;
	}
	if (r >= 0)
		r = STORE_DO(u, &op.op, store_put_commit(p, &op, &c));
	store_put_abort(p, &op);
	free(buf.mem);
	return r;
}

static inline int
put(struct store_user *u, const char *bucket, const char *key, uint32_t value)
{
	return put_part(u, key_of(bucket, key), NULL, 0, value);
}

/* Puts a value as a client does that is told to come again: while another disk becomes the first of a key it is -EROFS. */
static inline int
put_again(struct store_user *u, const char *bucket, const char *key, uint32_t value)
{
	uint64_t until = clock_ns() + 10 * NS_PER_S;
	int r;

	do {
		r = put(u, bucket, key, value);
		if (r == -EROFS || r == -EAGAIN)
			store_user_turn(u);
	} while ((r == -EROFS || r == -EAGAIN) && clock_ns() < until);
	return r;
}

static inline int
del(struct store_user *u, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_del op;

	return STORE_DO(u, &op.op, store_delete(store_user_port(u, 0), &k, NULL, &op));
}

static inline int
upload_begin(struct store_user *u, const char *bucket, const char *key, uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_key k = key_of(bucket, key);
	struct store_upload op;
	int r = STORE_DO(u, &op.op, store_upload_create(store_user_port(u, 0), &k, "up", 2, &op));

	memcpy(id, op.id, sizeof op.id);
	return r;
}

static inline int
upload_end(struct store_user *u, const char *bucket, const char *key, const uint8_t *id, uint32_t value)
{
	struct store_key k = key_of(bucket, key);
	struct store_part_ref ref = { .number = 3, .etag = { .sum = { (uint8_t)value } } };
	struct store_complete c = {
		.parts = &ref,
		.part_nr = 1,
		.meta = { .etag = { .sum = { (uint8_t)value } }, .attrs = &value, .attrs_len = 4 }
	};

	return STORE_DO(u, &c.op, store_upload_complete(store_user_port(u, 0), &k, id, &c));
}

static inline int
upload_abort(struct store_user *u, const char *bucket, const char *key, const uint8_t *id)
{
	struct store_key k = key_of(bucket, key);
	struct store_upload op;

	return STORE_DO(u, &op.op, store_upload_abort(store_user_port(u, 0), &k, id, &op));
}

/* Tells whether an upload is there: 0 or -errno. */
static inline int
upload_look(struct store_user *u, const char *bucket, const char *key, const uint8_t *id)
{
	struct store_key k = key_of(bucket, key);
	struct store_stat s;
	char attrs[8];

	return STORE_DO(u, &s.op, store_upload_stat(store_user_port(u, 0), &k, id, attrs, sizeof attrs, &s));
}

/* Puts a value as an upload of one part.  The last call's result; an upload that does not end is left. */
static inline int
put_upload(struct store_user *u, const char *bucket, const char *key, uint32_t value)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int r = upload_begin(u, bucket, key, id);

	if (r < 0)
		return r;
	r = put_part(u, key_of(bucket, key), id, 3, value);
	/* Nobody sees a part: whatever came of it, nothing was done. */
	return r < 0 ? -EAGAIN : upload_end(u, bucket, key, id, value);
}

/* Reads what is open, and closes it: its value, or -errno. */
static inline int
read_value(struct store_user *u, struct store_obj *o)
{
	struct store_port *p = store_user_port(u, 0);
	struct buf buf = { .mem = NULL };
	uint32_t value = 0;
	int r = 0;

	check(o->meta.attrs_len == 4 && store_buf_make(&buf, 2 * STORE_GRANULE));
	memcpy(&value, o->meta.attrs, 4);
	check(o->size_bytes == size_of_value(value));
	for (uint64_t off = 0; r >= 0 && off < o->size_bytes;) {
		uint32_t skew, len = store_read_plan(o, off, o->size_bytes - off, 2 * STORE_GRANULE, &skew);
		struct store_read rd = { .lead = 0 };

		r = STORE_DO(u, &rd.op, store_read(p, o, &rd, &buf, off - skew, len));
		for (uint32_t i = skew; r >= 0 && i < len; i++)
			check(buf.mem[rd.lead + i] == (char)(value >> 8 * ((off - skew + i) % 4)));
		off += len - skew;
	}
	store_close(p, o);
	free(buf.mem);
	return r < 0 ? r : (int)value;
}

/* The value of a key; 0: there is none; or -errno. */
static inline int
get(struct store_user *u, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_obj o;
	int r;

	memset(&o, 0, sizeof o);
	r = STORE_DO(u, &o.op, store_open(store_user_port(u, 0), &k, &o));
	return r == -ENOENT ? 0 : r < 0 ? r : read_value(u, &o);
}

static inline int
get_second(struct store_user *u, const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);
	struct store_obj o;
	int r;

	memset(&o, 0, sizeof o);
	r = STORE_DO(u, &o.op, store_open_second(store_user_port(u, 0), &k, &o));
	return r == -ENOENT ? 0 : r < 0 ? r : read_value(u, &o);
}

struct listing {
	struct store_list ls;
	int nr;
	char name[64][32];
};

static inline bool
on_listed(struct store_list *ls, const struct store_entry *e)
{
	struct listing *l = container_of(ls, struct listing, ls);

	check(l->nr < 64);
	snprintf(l->name[l->nr++], sizeof l->name[0], "%.*s", (int)e->name_len, e->name);
	return true;
}

/* Lists a bucket: how many, or -errno. */
static inline int
list_names(struct store_user *u, const char *bucket, struct listing *ret_list)
{
	memset(ret_list, 0, sizeof *ret_list);
	ret_list->ls.bucket = bucket;
	ret_list->ls.bucket_len = (uint16_t)strlen(bucket);
	ret_list->ls.max = 64;
	ret_list->ls.entry = on_listed;
	return STORE_DO(u, &ret_list->ls.op, store_list(store_user_port(u, 0), &ret_list->ls));
}

/* ---- what goes on ---- */

static inline int
change_disks(int kind, const char *disk)
{
	rig_said[0] = 0;
	return store_change_disks(
		st,
		&(struct store_disk_change){
			.kind = kind, .disk = disk, .size_bytes = 256 * MIB, .force = true },
		rig_said, sizeof rig_said);
}

static int ask_kind, ask_result;
static const char *ask_disk;
static bool is_answered;
static void (*after_answer)(void); /* called at the answer, before any thread continues; NULL: none */

static inline void
ask_main(void *arg)
{
	ask_result = change_disks(ask_kind, ask_disk);
	if (after_answer)
		after_answer();
	is_answered = true;
}

/* Begins a change of the disks, one at a time: is_answered tells of its end, with ask_result. */
static inline void
ask_begin(int kind, const char *disk)
{
	ask_kind = kind;
	ask_disk = disk;
	is_answered = false;
	turns_go(ask_main, NULL);
}

/* Returns the result of a change of the disks, while this loop turns. */
static inline int
ask(int kind, const char *disk)
{
	ask_begin(kind, disk);
	while (!is_answered)
		store_user_turn(user);
	return ask_result;
}

/* Returns the placement map that is in effect, until the next call. */
static inline const struct disk_table *
table_now(void)
{
	static struct disk_table t;

	set_get_table(set_of(st), &t);
	return &t;
}

static inline struct store_move_info
move_info(void)
{
	struct store_move_info i;

	store_move_info(st, &i);
	return i;
}

static inline enum store_unit_state
state_of(int unit)
{
	struct store_unit_info info;

	store_unit_info(st, unit, &info);
	return info.state;
}

/* Waits until no drain or addition is in progress. */
static inline void
wait_for_mover(void)
{
	for (uint64_t until = clock_ns() + PATIENCE_NS; clock_ns() < until;) {
		store_user_turn(user);
		if (!move_info().is_running)
			return;
	}
	fail_msg("%s", move_info().trouble);
}

/* Turns the loop of the user for so long. */
static inline void
turn_for(uint64_t ns)
{
	for (uint64_t until = clock_ns() + ns; clock_ns() < until;)
		store_user_turn(user);
}

static inline bool
is_quiet(void)
{
	struct store_copies_info c;
	struct store_move_info m;

	store_copies_info(st, &c);
	store_move_info(st, &m);
	return !m.is_running && !c.is_healing && !c.exposed_objects;
}

/* Waits until nothing moves any more and all is on two disks.  False: it does not come to that. */
static inline bool
wait_quiet(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;

	while (!is_quiet() && clock_ns() < until)
		turn_for(200 * NS_PER_MS);
	return is_quiet();
}

/* ---- keys of both buckets, and what they should have ---- */

#define RIG_KEYS 12
static uint32_t rig_value[2][RIG_KEYS];
static bool rig_open[2][RIG_KEYS]; /* of the last change nobody knows whether it was made */

static inline const char *
rig_name(int i)
{
	static char name[RIG_KEYS][8];

	snprintf(name[i], sizeof name[0], "r%d", i);
	return name[i];
}

/* Makes the buckets, and puts something under every key. */
static inline void
fill(void)
{
	make_buckets();
	for (int two = 0; two < 2; two++) {
		for (int i = 0; i < RIG_KEYS; i++) {
			rig_open[two][i] = false;
			rig_value[two][i] = (uint32_t)(100 * two + i + 1);
			assert_int_equal(put(user, two ? TWO : ONE, rig_name(i), rig_value[two][i]), 0);
		}
	}
}

/* Checks that every key, or (two_only) every key with two copies, has what was put there. */
static inline void
must_have(bool two_only)
{
	for (int two = two_only; two < 2; two++) {
		for (int i = 0; i < RIG_KEYS; i++) {
			if (!rig_open[two][i])
				assert_int_equal(get(user, two ? TWO : ONE, rig_name(i)), rig_value[two][i]);
		}
	}
}

/* Checks that both copies of every key are whole. */
static inline void
must_have_both(void)
{
	assert_true(wait_quiet());
	must_have(false);
	for (int i = 0; i < RIG_KEYS; i++)
		assert_int_equal(get_second(user, TWO, rig_name(i)), get(user, TWO, rig_name(i)));
}

/* Checks that nothing is anywhere but what the keys have: a record each, or two. */
static inline void
must_be_clean(int nr)
{
	unsigned records = 0, want = 0;

	for (int i = 0; i < nr; i++)
		records += mem_disk_records(paths[i]);
	for (int i = 0; i < RIG_KEYS; i++)
		want += (rig_value[0][i] > 0) + 2 * (rig_value[1][i] > 0);
	assert_int_equal(records, want);
}

/* Puts a value under the first key of a bucket that a disk has. */
static inline int
put_on(const char *bucket, int disk)
{
	char name[32];

	return put(user, bucket, name_on(name, bucket, disk, -1, 0), 5);
}

/* Reads this key. Returns 0 or -errno. */
static inline int
look_on(const char *bucket, int disk)
{
	char name[32];
	int r = get(user, bucket, name_on(name, bucket, disk, -1, 0));

	return r == 0 ? -ENOENT : r > 0 ? 0 : r;
}

/* Deletes this key. */
static inline int
del_on(const char *bucket, int disk)
{
	char name[32];

	return del(user, bucket, name_on(name, bucket, disk, -1, 0));
}

#endif
