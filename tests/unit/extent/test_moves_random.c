/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients change what is on its way: slots go back and forth between two engines as a set moves them, by what the source
 * tells; behind each switch all is as clients left it.  SEED= repeats the choices, ROUNDS= is the number of switches.
 */
#include "moves_rig.h"

#define BUCKET "b"
#define KEYS 10
#define PARTS 4

static struct {
	char name[32];
	bool exists, has_upload, is_dirty;
	uint64_t version;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint32_t parts;
	uint64_t upload_seed;
} key[KEYS];
static uint64_t rng;
static int home; /* of the slots that go; the others stay at A */
static struct store_slots going, staying, all, none;

static bool
goes(int k)
{
	return slots_has(&going, slot_of_key(BUCKET, key[k].name));
}

static int
home_of(int k)
{
	return goes(k) ? home : A;
}

static void
on_changed(void *cookie, const struct store_key *k)
{
	for (int i = 0; i < KEYS; i++) {
		if (k->key_len == strlen(key[i].name) && memcmp(k->key, key[i].name, k->key_len) == 0)
			key[i].is_dirty = true;
	}
}

/* ---- clients ---- */

static uint64_t
random_size(void)
{
	switch (rnd(&rng) % 6) {
	case 0:
		return rnd(&rng) % 257;
	case 1:
		return 60000 + rnd(&rng) % 12000;
	case 2:
		return rnd(&rng) % (3 * MIB);
	default:
		return rnd(&rng) % 10000;
	}
}

static void
change_upload(int k)
{
	static struct store_complete c;
	const char *name = key[k].name;

	if (!key[k].has_upload) {
		assert_int_equal(upload_make(home_of(k), BUCKET, name, "attrs", 5, key[k].id), 0);
		key[k].has_upload = true;
		key[k].parts = 0;
		key[k].upload_seed = rnd(&rng) % 1000;
	} else if (key[k].parts == 0 || rnd(&rng) % 3) {
		uint32_t next = key[k].parts + (key[k].parts < PARTS);
		uint32_t number = 1 + (uint32_t)(rnd(&rng) % next);

		number = rnd(&rng) % 2 ? next : number;
		assert_int_equal(part_put(home_of(k), BUCKET, name, key[k].id, number,
					  rnd(&rng) % 4 ? rnd(&rng) % 100000 : 0, key[k].upload_seed),
				 0);
		key[k].parts = number > key[k].parts ? number : key[k].parts;
	} else if (rnd(&rng) % 4 == 0) {
		assert_int_equal(upload_abort(home_of(k), BUCKET, name, key[k].id), 0);
		key[k].has_upload = false;
	} else {
		uint32_t nr = key[k].parts - (key[k].parts > 1 ? (uint32_t)(rnd(&rng) % 2) : 0);

		assert_int_equal(
			upload_complete(home_of(k), BUCKET, name, key[k].id, nr, key[k].upload_seed, &c), 0);
		key[k].has_upload = false;
		key[k].exists = true;
		key[k].version = c.version;
	}
}

static void
change_some(void)
{
	int k = (int)(rnd(&rng) % KEYS);
	struct put_args a = {
		.bucket = BUCKET, .key = key[k].name, .size = random_size(), .seed = rnd(&rng)
	};

	switch (rnd(&rng) % 8) {
	case 0:
		assert_int_equal(obj_delete(at(home_of(k)), BUCKET, key[k].name, NULL), key[k].exists);
		key[k].exists = false;
		break;
	case 1:
		assert_int_equal(set_attrs(home_of(k), BUCKET, key[k].name, &a.seed, 8),
				 key[k].exists ? 0 : -ENOENT);
		key[k].version = 0; /* another one */
		break;
	case 2:
	case 3:
		assert_int_equal(obj_put(at(home_of(k)), &a), 0);
		key[k].exists = true;
		key[k].version = a.ret_version;
		break;
	default:
		change_upload(k);
	}
}

/* ---- what is there ---- */

/* Reads all of it, which is checked against its checksums.  The version, or -errno. */
static int64_t
read_all(int engine, const char *name)
{
	static struct store_obj obj;
	static struct store_read rd;
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	int64_t r = obj_open(at(engine), BUCKET, name, &obj);

	for (uint64_t off = 0; r == 0 && off < obj.size_bytes;) {
		uint32_t skew, n = store_read_plan(&obj, off, STORE_PIECE, STORE_PIECE, &skew);
		int got;

		rd.op.done = on_put;
		got = store_read(l.p, &obj, &rd, b, off - skew, n);
		got = got < 0 ? got : got > 0 ? rd.op.result : op_wait(&l, &rd.op);
		off += n - skew;
		r = got < 0 ? got : 0;
	}
	r = r < 0 ? r : (int64_t)obj.version;
	store_close(l.p, &obj);
	bufpool_put(&l.bufs, b);
	return r;
}

static void
must_be_right(void)
{
	static struct names n;
	uint64_t objects = 0, uploads = 0;
	int shown;

	for (int k = 0; k < KEYS; k++) {
		int64_t r = read_all(home_of(k), key[k].name);
		struct store_key sk = key_of(BUCKET, key[k].name);
		struct store_stat s = { .attrs_len = 0 };

		objects += key[k].exists;
		uploads += key[k].has_upload;
		if (key[k].exists ? r < 0 || (key[k].version && (uint64_t)r != key[k].version) : r != -ENOENT)
			fail_msg("%s: %lld", key[k].name, (long long)r);
		if (key[k].exists)
			key[k].version = (uint64_t)r;
		if (!key[k].has_upload)
			continue;
		check(store_upload_stat(at(home_of(k))->p, &sk, key[k].id, NULL, 0, &s) > 0);
		assert_int_equal(s.op.result, 0);
		assert_int_equal(s.attrs_len, 5);
	}
	assert_int_equal(used(BUCKET).objects, objects);
	assert_int_equal(used(BUCKET).uploads, uploads);
	shown = list_names(A, BUCKET, NULL, NULL, 3, false, &n);
	assert_int_equal(shown + list_names(B, BUCKET, NULL, NULL, 3, false, &n), objects);
}

static struct store_use
counted_anew(void)
{
	stop_pair();
	start_pair(home == A ? &all : &staying, home == A ? &none : &going);
	return used(BUCKET);
}

/* ---- a move ---- */

static int
dirty(void)
{
	int from = (int)(rnd(&rng) % KEYS);

	for (int i = 0; i < KEYS; i++) {
		int k = (from + i) % KEYS;

		if (goes(k) && key[k].is_dirty)
			return k;
	}
	return -1;
}

static void
send_dirty(int k, int to, int changes)
{
	int r;

	key[k].is_dirty = false;
	send_begin(&sent, BUCKET, key[k].name);
	r = ops()->send(port[home], port[to], &sent);
	while (changes-- > 0)
		change_some();
	r = send_wait(&sent, r);
	if (r == -EAGAIN)
		key[k].is_dirty = true; /* it was changing */
	else
		assert_int_equal(r, 0);
}

static void
move(void)
{
	int to = !home, k, steps = 5 + (int)(rnd(&rng) % 30);
	struct store_slots_op o = { .slots = &going, .changed = on_changed };
	struct store_slots_op no_more = { .slots = NULL };

	assert_int_equal(tell(home, SLOTS_WATCH, &o), 0);
	for (int i = 0; i < KEYS; i++)
		key[i].is_dirty = true;
	while (steps-- > 0) {
		k = dirty();
		if (k >= 0)
			send_dirty(k, to, (int)(rnd(&rng) % 4));
		else
			change_some();
	}
	assert_int_equal(tell(home, SLOTS_FREEZE, &o), 0);
	while ((k = dirty()) >= 0)
		send_dirty(k, to, 0);
	/* All that was told of was sent, so there is nothing left. */
	for (k = 0; k < KEYS; k++) {
		if (!goes(k))
			continue;
		assert_int_equal(send_key(home, to, BUCKET, key[k].name), 0);
		assert_int_equal(sent.changes, 0);
	}
	assert_int_equal(tell(home, SLOTS_WATCH, &no_more), 0);
	switch_slots(home, to, &going);
	if (rnd(&rng) % 2)
		assert_int_equal(remove_all(home, &going), 0);
	home = to;
}

static void
test_random(void **state)
{
	const char *env = getenv("ROUNDS");
	int rounds = env ? atoi(env) : 12;

	rng = seed_from_env();
	all = all_slots();
	going = half_slots();
	staying = not_those(&going);
	make_pair(96 * MIB);
	start_pair(&all, &none);
	assert_int_equal(bucket_on(A, BUCKET, 1), 0);
	assert_int_equal(bucket_on(B, BUCKET, 1), 0);
	for (int i = 0; i < KEYS; i++)
		snprintf(key[i].name, sizeof key[i].name, "key-%d", i);
	for (int i = 0; i < rounds; i++) {
		struct store_use before, after;

		move();
		must_be_right();
		for (int j = 0; j < 10; j++)
			change_some();
		must_be_right();
		before = used(BUCKET);
		if (i % 3 == 2) {
			after = counted_anew();
			assert_memory_equal(&before, &after, sizeof before);
			must_be_right();
		}
	}
	stop_pair();
	assert_int_equal(store_fsck(&conf[A], false, NULL, NULL), 0);
	assert_int_equal(store_fsck(&conf[B], false, NULL, NULL), 0);
	remove_pair();
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_moves_random", tests, NULL, NULL);
}
