/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs whose keys go to another disk between their beginning and their commit.  These are on files because the bytes and parts that a disk
 * gives back of a PUT in progress, in all kinds of extents, are tested; set/test_mem_carried has all else.
 */
#include "extent/engine.h"

#include "disks_rig.h"
#include "tests/fake/fault_ring.h"

#include "extent/disk/format.h"

#include <stdatomic.h>

#define GRANULE STORE_GRANULE
#define MOST 60 /* PUTs at a time */

static _Atomic bool is_unreadable; /* bytes of objects on the first disk */

static int
hook(const struct fault_io *io)
{
	return is_unreadable && io->kind == FAULT_READ && strncmp(io->name, "seg-", 4) == 0 &&
			       strncmp(io->path, dir[0], strlen(dir[0])) == 0
		       ? -EIO
		       : 0;
}

static int
setup(void **state)
{
	fault_ring_hook = hook;
	is_unreadable = false;
	for (int i = 0; i < DISKS; i++) {
		dir_make(dir[i]);
		disks[i] = (struct store_disk_conf){ .path = dir[i], .size_bytes = 320 * MIB };
	}
	use(2);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	if (store_format(&conf, false, err, sizeof err) < 0)
		fail_msg("%s", err);
	must_start();
	assert_int_equal(make_with("b", 1), 0);
	return 0;
}

static int
teardown(void **state)
{
	is_unreadable = false;
	stop();
	end();
	return 0;
}

/* ---- moves ---- */

struct call {
	struct store_disk_change c;
	char said[512];
	int result;
	_Atomic bool is_over;
};

static void *
call_main(void *arg)
{
	struct call *c = arg;

	c->result = store_change_disks(st, &c->c, c->said, sizeof c->said);
	atomic_store(&c->is_over, true);
	return NULL;
}

static bool
moves(void)
{
	struct store_move_info i;

	store_move_info(st, &i);
	return i.is_running;
}

/* Takes all that a disk has to others, while the test's port turns, as it is one of those that are visited. */
static void
drain(int disk)
{
	struct call c = { .c = { .kind = DISK_DRAIN, .disk = dir[disk] } };
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_main, &c), 0);
	while (!atomic_load(&c.is_over))
		store_user_turn(user);
	pthread_join(thread, NULL);
	if (c.result < 0)
		fail_msg("%s", c.said);
	while (moves() && clock_ns() < until_ns)
		store_user_turn(user);
	assert_false(moves());
}

static int
home_of(const struct store_key *k)
{
	return set_primary(set_of(st), k);
}

/* A key that a disk has: another one with each call. */
static struct store_key
key_at(char name[32], const char *bucket, int disk)
{
	static int n;
	struct store_key k;

	do {
		snprintf(name, 32, "key-%d", n++);
		k = key_of(bucket, name);
	} while (home_of(&k) != disk);
	return k;
}

/* ---- room ---- */

static uint64_t
free_bytes(int disk)
{
	struct store_unit_info info;

	store_unit_info(st, disk, &info);
	return info.free_bytes;
}

static void
wait_free(int disk, uint64_t want)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;

	while (free_bytes(disk) < want && clock_ns() < until_ns)
		store_user_turn(user);
	assert_int_equal(free_bytes(disk), want);
}

/* ---- a PUT in steps ---- */

struct slow {
	struct store_put put;
	struct store_key key;
	uint64_t size, seed;
	bool rides; /* the last piece goes with the commit */
	struct buf last;
	struct store_commit c;
	uint64_t progress_ns; /* of the commit */
	char attrs[64], name[32];
};

static struct buf
buf_new(void)
{
	struct buf b = { .cap_bytes = STORE_PIECE, .region = RING_NO_REGION };

	check(posix_memalign((void **)&b.mem, 4096, STORE_PIECE + 2 * BUF_SLACK_BYTES) == 0);
	return b;
}

/* Begins it, and writes all that does not come with the commit; id NULL: an object. */
static void
begin_put(struct slow *s, const struct store_key *k, uint64_t size, bool rides, const uint8_t *id,
	  uint32_t number)
{
	struct store_port *p = store_user_port(user, 0);
	struct store_write w;
	uint64_t off = 0;

	*s = (struct slow){ .size = size, .rides = rides, .seed = size + number };
	snprintf(s->name, sizeof s->name, "%.*s", k->key_len, k->key);
	s->key = key_of(k->bucket, s->name);
	s->last = buf_new();
	snprintf(s->attrs, sizeof s->attrs, "attributes of %u bytes", (unsigned)size);
	s->c.meta = (struct store_meta){ .attrs = s->attrs, .attrs_len = (uint32_t)strlen(s->attrs) };
	s->c.meta.etag.parts = 0;
	memcpy(s->c.meta.etag.sum, &s->seed, sizeof s->seed);
	s->c.progress_ns = &s->progress_ns;
	assert_int_equal(id ? store_put_init_part(p, &s->put, &s->key, id, number, size)
			    : store_put_init(p, &s->put, &s->key, size),
			 0);
	if (size <= STORE_INLINE_MAX) {
		fill(s->last.mem, size, s->seed, 0);
		s->c.inline_data = s->last.mem;
		s->c.inline_len = (uint32_t)size;
		return;
	}
	while (off < size) {
		uint32_t n = size - off < STORE_PIECE ? (uint32_t)(size - off) : STORE_PIECE;

		fill(s->last.mem, n, s->seed, off);
		off += n;
		if (off == size && rides) {
			s->c.last = &s->last;
			s->c.last_len = n;
		} else {
			assert_int_equal(STORE_DO(user, &w.op,
						  store_put_write(p, &s->put, &w, &s->last, n, off == size)),
					 0);
		}
	}
}

static int
commit_start(struct slow *s)
{
	store_user_begin(user, &s->put.op);
	return store_put_commit(store_user_port(user, 0), &s->put, &s->c);
}

static int
commit_end(struct slow *s, int r)
{
	r = store_user_wait(user, &s->put.op, r);
	assert_true(r < 0 || !s->put.is_started);
	store_put_abort(store_user_port(user, 0), &s->put);
	free(s->last.mem);
	return r;
}

static int
commit_put(struct slow *s)
{
	return commit_end(s, commit_start(s));
}

static void
must_read(struct store_obj *o, uint64_t size, uint64_t seed, uint64_t at)
{
	struct buf b = buf_new();
	char *want = malloc(STORE_PIECE + 8);
	uint64_t off = at;

	while (off < at + size) {
		struct store_read rd;
		uint32_t skew, n = store_read_plan(o, off, at + size - off, STORE_PIECE, &skew);

		assert_int_equal(skew, 0);
		n = n < at + size - off ? n : (uint32_t)(at + size - off);
		assert_int_equal(
			STORE_DO(user, &rd.op, store_read(store_user_port(user, 0), o, &rd, &b, off, n)), n);
		fill(want, n, seed, off - at);
		assert_memory_equal(want, b.mem + rd.lead, n);
		off += n;
	}
	free(want);
	free(b.mem);
}

/* What was put is there, whole, and has what it was given; of two copies both. */
static void
must_be_there(const struct slow *s, uint64_t version)
{
	for (int second = 0; second <= has_two(s->key.bucket); second++) {
		struct store_port *p = store_user_port(user, 0);
		struct store_obj o;

		assert_int_equal(
			STORE_DO(user, &o.op,
				 second ? store_open_second(p, &s->key, &o) : store_open(p, &s->key, &o)),
			0);
		assert_int_equal(o.size_bytes, s->size);
		assert_int_equal(o.version, version);
		assert_int_equal(o.meta.attrs_len, s->c.meta.attrs_len);
		assert_memory_equal(o.meta.attrs, s->attrs, o.meta.attrs_len);
		assert_memory_equal(&o.meta.etag, &s->c.meta.etag, sizeof o.meta.etag);
		assert_int_equal(o.crc64, s->put.crc64);
		must_read(&o, s->size, s->seed, 0);
		store_close(p, &o);
	}
}

static int
delete_key(const struct store_key *k)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_delete(store_user_port(user, 0), k, NULL, &op));
}

static void
make_upload(const struct store_key *k, uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_upload u;

	assert_int_equal(STORE_DO(user, &u.op, store_upload_create(store_user_port(user, 0), k, NULL, 0, &u)),
			 0);
	memcpy(id, u.id, sizeof u.id);
}

/* ---- all kinds ---- */

static const struct {
	uint64_t size;
	bool rides;
} kinds[] = {
	{ 0, true },
	{ 5, true },
	{ STORE_INLINE_MAX, true },
	{ STORE_INLINE_MAX + 1, true },
	{ 5000, true },
	{ 5000, false },
	{ GRANULE, true },
	{ GRANULE + 1, false },
	{ MIB, true },
	{ 3 * MIB + 7, true },
	{ 3 * MIB + 8, false },
	{ 3 * MIB, false },
	{ 9 * MIB + 77, true },
	{ FMT_CHUNK_BYTES + 2 * MIB + 1, true },
};
#define KINDS (sizeof kinds / sizeof kinds[0])
static struct slow slow[MOST];

/* Deletes what was put, and sees that no disk but for the one that went has kept any of it. */
static void
must_leave_nothing(unsigned nr, const uint64_t *was, int disks_nr)
{
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(delete_key(&slow[i].key), 1);
	for (int i = 0; i < disks_nr; i++)
		wait_free(i, was[i]);
}

static void
note_room(uint64_t *was, int nr)
{
	for (int i = 0; i < nr; i++)
		was[i] = free_bytes(i);
}

static void
put_kinds(const char *bucket, unsigned kinds_nr, int nr)
{
	uint64_t was[DISKS];
	char name[32];

	note_room(was, nr);
	for (unsigned i = 0; i < kinds_nr; i++) {
		struct store_key k = key_at(name, bucket, 0);

		begin_put(&slow[i], &k, kinds[i].size, kinds[i].rides, NULL, 0);
	}
	drain(0);
	for (unsigned i = 0; i < kinds_nr; i++) {
		assert_int_not_equal(home_of(&slow[i].key), 0);
		assert_int_equal(commit_put(&slow[i]), 0);
		assert_int_equal(slow[i].progress_ns != 0, slow[i].size != 0);
		must_be_there(&slow[i], slow[i].put.version);
	}
	must_leave_nothing(kinds_nr, was, nr);
}

static void
test_objects(void **state)
{
	put_kinds("b", KINDS, 2);
}

/* Parts, which are all committed behind the move of their uploads; then these are completed. */
static void
put_parts(const char *bucket, int nr)
{
	static const uint64_t sizes[] = { 6 * MIB, 70000, 5, 0, 300 };
	const unsigned parts = sizeof sizes / sizeof sizes[0];
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_part_ref refs[sizeof sizes / sizeof sizes[0]];
	struct store_complete c = { .parts = refs, .part_nr = parts };
	struct store_port *p = store_user_port(user, 0);
	struct store_obj o;
	uint64_t was[DISKS], off = 0;
	char name[32];
	struct store_key k = key_at(name, bucket, 0);
	struct slow large;

	note_room(was, nr);
	make_upload(&k, id);
	for (uint32_t i = 0; i < parts; i++)
		begin_put(&slow[i], &k, sizes[i], i != 0, id, i + 1);
	begin_put(&large, &k, 4 * MIB, true, id, 9);
	drain(0);
	for (uint32_t i = 0; i < parts; i++) {
		assert_int_equal(commit_put(&slow[i]), 0);
		refs[i] = (struct store_part_ref){ .number = i + 1,
						   .etag = slow[i].c.meta.etag,
						   .version = slow[i].put.version };
		/* Two copies have one version, as one has. */
		assert_true(slow[i].put.version > 0);
	}
	assert_int_equal(commit_put(&large), 0);
	assert_int_equal(STORE_DO(user, &c.op, store_upload_complete(p, &k, id, &c)), 0);
	for (int second = 0; second <= has_two(bucket); second++) {
		assert_int_equal(
			STORE_DO(user, &o.op, second ? store_open_second(p, &k, &o) : store_open(p, &k, &o)),
			0);
		assert_int_equal(o.part_nr, parts);
		off = 0;
		for (uint32_t i = 0; i < parts; i++) {
			struct store_part part;

			assert_int_equal(store_obj_part(&o, i + 1, &part), 0);
			assert_int_equal(part.size_bytes, sizes[i]);
			assert_int_equal(part.attrs_len, slow[i].c.meta.attrs_len);
			assert_memory_equal(part.attrs, slow[i].attrs, part.attrs_len);
			must_read(&o, sizes[i], slow[i].seed, off);
			off += sizes[i];
		}
		store_close(p, &o);
	}
	must_leave_nothing(1, was, nr);
}

static void
test_parts(void **state)
{
	put_parts("b", 2);
}

/* ---- disks that fail ---- */

static void
test_old_unreadable(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (int i = 0; i < 3; i++) {
		struct store_key k = key_at(name, "b", 0);

		begin_put(&slow[i], &k, i == 2 ? 5 : 3 * MIB, true, NULL, 0);
	}
	drain(0);
	is_unreadable = true;
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	assert_int_equal(look(&slow[0].key), -ENOENT);
	assert_int_equal(commit_put(&slow[2]), 0); /* which is in memory */
	is_unreadable = false;
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_there(&slow[1], slow[1].put.version);
	assert_int_equal(delete_key(&slow[1].key), 1);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_objects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_unreadable, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_carried", tests, NULL, NULL);
}
