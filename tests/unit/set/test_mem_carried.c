/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs whose keys go to another disk in memory between their beginning and their commit: all kinds of PUTs are replayed there, validated there,
 * and leave nothing on the former disk, and their callers do not notice.  SEED= repeats a run.
 */
#include "mem_rig.h"

#include "tests/fake/mem_store.h"

#define GRANULE STORE_GRANULE
#define MOST 60 /* PUTs at a time */

static uint64_t seed;

static int
setup_of(int nr)
{
	rig_begin(seed, nr);
	up();
	assert_int_equal(make_bucket(user, ONE, 1), 0);
	return 0;
}

static int
setup_two(void **state)
{
	return setup_of(2);
}

static int
setup_three(void **state)
{
	return setup_of(3);
}

static int
setup_four(void **state)
{
	return setup_of(4);
}

static int
teardown(void **state)
{
	down();
	rig_end();
	return 0;
}

static bool
has_two(const char *bucket)
{
	return strcmp(bucket, TWO) == 0;
}

static struct store_key
key_in(const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);

	k.copies = has_two(bucket) ? 2 : 1;
	return k;
}

/* ---- moves ---- */

/* Drains a disk, while the loop of the test turns. */
static void
drain(int disk)
{
	assert_int_equal(ask(DISK_DRAIN, paths[disk]), 0);
	wait_for_mover();
}

static int
home_of(const struct store_key *k)
{
	return set_primary(set_of(st), k);
}

/* Writes the name of a key that a disk has: another one with each call. */
static struct store_key
key_at(char name[32], const char *bucket, int disk)
{
	static int n;
	struct store_key k;

	do {
		snprintf(name, 32, "key-%d", n++);
		k = key_in(bucket, name);
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
	for (uint64_t until = clock_ns() + PATIENCE_NS; free_bytes(disk) != want && clock_ns() < until;)
		store_user_turn(user);
	assert_int_equal(free_bytes(disk), want);
}

static struct store *
disk_store(int disk)
{
	return set_engine(set_of(st), disk);
}

/* Tells whether no disk has a PUT or an open object, and no replay is in progress. */
static bool
is_idle(void)
{
	bool idle = !port_is_pinned(set_port(store_user_port(user, 0)));

	for (int i = 0; i < set_engines(set_of(st)); i++)
		idle &= mem_store_put_nr(disk_store(i)) == 0 && mem_store_open_nr(disk_store(i)) == 0;
	return idle;
}

static void
fill_bytes(char *to, uint32_t len, uint64_t from, uint64_t off)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (char)((from + 1) * 37 + (off + i) * 11 + ((off + i) >> 8));
}

/* ---- a PUT in steps ---- */

struct slow {
	struct store_put put;
	struct store_key key;
	uint64_t size, bytes; /* of the content; the number that it follows from */
	bool rides;           /* the last piece goes with the commit */
	struct buf last;
	struct store_commit c;
	uint64_t progress_ns; /* of the commit */
	char attrs[64], name[32];
};

static struct buf
buf_new(void)
{
	struct buf b = { .mem = NULL };

	check(store_buf_make(&b, STORE_PIECE));
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

	*s = (struct slow){ .size = size, .rides = rides, .bytes = size + number };
	snprintf(s->name, sizeof s->name, "%.*s", k->key_len, k->key);
	s->key = key_in(k->bucket, s->name);
	s->last = buf_new();
	snprintf(s->attrs, sizeof s->attrs, "attributes of %u bytes", (unsigned)size);
	s->c.meta = (struct store_meta){ .attrs = s->attrs, .attrs_len = (uint32_t)strlen(s->attrs) };
	s->c.meta.etag.parts = 0;
	memcpy(s->c.meta.etag.sum, &s->bytes, sizeof s->bytes);
	s->c.progress_ns = &s->progress_ns;
	assert_int_equal(id ? store_put_init_part(p, &s->put, &s->key, id, number, size)
			    : store_put_init(p, &s->put, &s->key, size),
			 0);
	if (size <= STORE_INLINE_MAX) {
		fill_bytes(s->last.mem, (uint32_t)size, s->bytes, 0);
		s->c.inline_data = s->last.mem;
		s->c.inline_len = (uint32_t)size;
		return;
	}
	while (off < size) {
		uint32_t n = size - off < STORE_PIECE ? (uint32_t)(size - off) : STORE_PIECE;

		fill_bytes(s->last.mem, n, s->bytes, off);
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
abort_put(struct slow *s)
{
	store_put_abort(store_user_port(user, 0), &s->put);
	free(s->last.mem);
}

static void
must_read(struct store_obj *o, uint64_t size, uint64_t bytes, uint64_t at)
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
		fill_bytes(want, n, bytes, off - at);
		assert_memory_equal(want, b.mem + rd.lead, n);
		off += n;
	}
	free(want);
	free(b.mem);
}

/* What was put is there, whole, and has what it was given; of two copies both. */
static void
must_be_on(const struct slow *s, uint64_t version, int copies)
{
	for (int second = 0; second < copies; second++) {
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
		must_read(&o, s->size, s->bytes, 0);
		store_close(p, &o);
	}
}

static void
must_be_there(const struct slow *s, uint64_t version)
{
	must_be_on(s, version, 1 + has_two(s->key.bucket));
}

static int
delete_key(const struct store_key *k)
{
	return del(user, k->bucket, k->key);
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
	assert_true(is_idle());
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
	put_kinds(ONE, KINDS, 2);
}

static void
test_two_copies(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_kinds(TWO, KINDS, 3);
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
	assert_int_equal(upload_begin(user, k.bucket, k.key, id), 0);
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
			must_read(&o, sizes[i], slow[i].bytes, off);
			off += sizes[i];
		}
		store_close(p, &o);
	}
	must_leave_nothing(1, was, nr);
}

static void
test_parts(void **state)
{
	put_parts(ONE, 2);
}

static void
test_parts_of_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	put_parts(TWO, 3);
}

/* ---- judged where the key is ---- */

static void
put_now(const struct store_key *k, uint64_t size)
{
	struct slow s;

	begin_put(&s, k, size, true, NULL, 0);
	assert_int_equal(commit_put(&s), 0);
}

static void
judge(const char *bucket, int nr)
{
	enum { ABSENT, THERE, MATCH, NO_MATCH, KEPT, NONE_MATCH, VERSION, CASES };
	static const int results[] = { 0, -EEXIST, 0, -ESTALE, -EPERM, -EEXIST, -ESTALE };
	char names[CASES][32];
	uint64_t was[DISKS];

	for (int i = 0; i < CASES; i++) {
		struct store_key k = key_at(names[i], bucket, 0);

		if (i != ABSENT)
			put_now(&k, 1000);
		note_room(was, nr);
		begin_put(&slow[i], &k, 2 * MIB, i % 2, NULL, 0);
		slow[i].c.pre.kind = i == MATCH || i == NO_MATCH ? PRE_MATCH
				     : i == NONE_MATCH           ? PRE_NONE_MATCH
				     : i == VERSION              ? PRE_VERSION
				     : i == KEPT                 ? PRE_NONE
								 : PRE_ABSENT;
		slow[i].c.pre.keep = i == KEPT;
		slow[i].c.pre.version = 77;
		slow[i].c.pre.etag_nr = i == MATCH || i == NO_MATCH || i == NONE_MATCH;
		/* What is there when it begins, and what is there when it ends. */
		slow[i].c.pre.etags[0] = (struct store_etag){ .parts = 0 };
		memcpy(slow[i].c.pre.etags[0].sum, &(uint64_t){ i == NO_MATCH ? 1000 : 1001 },
		       sizeof(uint64_t));
	}
	drain(0);
	for (int i = 0; i < CASES; i++) {
		if (i != ABSENT)
			put_now(&slow[i].key, 1001);
		assert_int_equal(commit_put(&slow[i]), results[i]);
		if (results[i] == 0)
			must_be_there(&slow[i], slow[i].put.version);
	}
	assert_true(is_idle());
}

static void
test_judged(void **state)
{
	judge(ONE, 2);
}

static void
test_judged_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	judge(TWO, 3);
}

/* The upload of a part is aborted, and a bucket is removed, before the commit. */
static void
test_gone(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint64_t was[2];
	char name[32];
	struct store_key k = key_at(name, ONE, 0), in;

	note_room(was, 2);
	assert_int_equal(upload_begin(user, k.bucket, k.key, id), 0);
	begin_put(&slow[0], &k, 2 * MIB, true, id, 1);
	assert_int_equal(make_bucket(user, "empty", 1), 0);
	in = key_at(name, "empty", 0);
	begin_put(&slow[1], &in, 2 * MIB, true, NULL, 0);
	drain(0);
	assert_int_equal(upload_abort(user, ONE, slow[0].name, id), 0);
	assert_int_equal(remove_bucket(user, "empty"), 0);
	assert_int_equal(commit_put(&slow[0]), -ENOENT);
	assert_int_equal(commit_put(&slow[1]), -ENXIO);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
}

static void
test_quota(void **state)
{
	struct store_use max = { STORE_UNBOUNDED, 5 * MIB, STORE_UNBOUNDED };
	struct store_bucket_set op;
	uint64_t was[2];
	char name[32];
	struct store_key k = key_at(name, ONE, 0);

	note_room(was, 2);
	begin_put(&slow[0], &k, 4 * MIB, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(0);
	assert_int_equal(
		STORE_DO(user, &op.op,
			 store_bucket_set_quota(store_user_port(user, 0), ONE, strlen(ONE), &max, &op)),
		0);
	assert_int_equal(commit_put(&slow[0]), 0);
	assert_int_equal(commit_put(&slow[1]), -EDQUOT);
	must_leave_nothing(1, was, 2);
}

/* The current disk has no room: the caller is told by the commit, and the disk is as full as before. */
static void
test_no_room(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	uint64_t was = free_bytes(0), full;

	begin_put(&slow[0], &k, 20 * MIB, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[1], &k, 300000, true, NULL, 0);
	k = key_at(name, ONE, 0);
	begin_put(&slow[2], &k, 5, true, NULL, 0);
	drain(0);
	mem_disk_leave_free(paths[1], 65536);
	full = free_bytes(1);
	assert_int_equal(commit_put(&slow[0]), -ENOSPC);
	assert_int_equal(commit_put(&slow[1]), -ENOSPC);
	assert_int_equal(free_bytes(1), full);
	assert_int_equal(commit_put(&slow[2]), 0);
	must_be_there(&slow[2], slow[2].put.version);
	wait_free(0, was);
	assert_true(is_idle());
}

/* A PUT that is aborted leaves nothing, wherever its key is. */
static void
test_aborted(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (unsigned i = 0; i < KINDS; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, kinds[i].size, kinds[i].rides, NULL, 0);
	}
	drain(0);
	for (unsigned i = 0; i < KINDS; i++)
		abort_put(&slow[i]);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

static bool
refuse(struct store_carrier *c, struct store_put *put)
{
	return false;
}

/* A PUT that cannot be replayed is -EXDEV, and gives all back. */
static void
test_refused(void **state)
{
	struct set_port *p = set_port(store_user_port(user, 0));
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (unsigned i = 0; i < KINDS; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, kinds[i].size, kinds[i].rides, NULL, 0);
	}
	drain(0);
	port_carrier(p)->carry = refuse;
	for (unsigned i = 0; i < KINDS; i++) {
		assert_int_equal(commit_put(&slow[i]), -EXDEV);
		assert_int_equal(get(user, ONE, slow[i].name), 0);
	}
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

/* A PUT of which each disk says that the key is elsewhere is not replayed for ever. */
static void
test_nowhere(void **state)
{
	uint64_t was[3];
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int is;

	note_room(was, 3);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	drain(0);
	/* The placement names a disk that does not have the key. */
	is = set_primary(set_of(st), &k);
	set_assign_primary(set_of(st), store_place(&k), is == 1 ? 2 : 1);
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	set_assign_primary(set_of(st), store_place(&k), is);
	assert_int_equal(get(user, ONE, name), 0);
	for (int i = 0; i < 3; i++)
		wait_free(i, was[i]);
	assert_true(is_idle());
}

/* The checksum that the client expects of its bytes is validated before anything else. */
static void
test_other_bytes(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);

	begin_put(&slow[0], &k, 2 * MIB, true, NULL, 0);
	drain(0);
	slow[0].c.have_expect_crc64 = true;
	slow[0].c.expect_crc64 = 4711;
	assert_int_equal(commit_put(&slow[0]), -EILSEQ);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_true(is_idle());
}

/* ---- in the middle of a replay ---- */

/* Commits, and hangs the former disk when the replay has begun to read there. */
static int
commit_reading(struct slow *s, int former)
{
	int r = commit_start(s);

	assert_int_equal(r, 0);
	while (!mem_store_open_nr(disk_store(former)))
		store_user_turn(user);
	mem_disk_hang(paths[former], true);
	return r;
}

/* Commits, and hangs the current disk, to which the replay writes. */
static int
commit_writing(struct slow *s, int current)
{
	int r;

	mem_disk_hang(paths[current], true);
	r = commit_start(s);
	assert_int_equal(r, 0);
	while (!mem_store_inflight(disk_store(current)))
		store_user_turn(user);
	return r;
}

static void
move_twice(const char *bucket, int nr, uint64_t size)
{
	uint64_t was[DISKS];
	char name[32];
	struct store_key k = key_at(name, bucket, 0);
	int next, r;

	note_room(was, nr);
	begin_put(&slow[0], &k, size, true, NULL, 0);
	drain(0);
	next = home_of(&slow[0].key);
	r = commit_reading(&slow[0], 0);
	drain(next);
	assert_int_not_equal(home_of(&slow[0].key), next);
	/* The lock of a key with two copies is held, and who opens the key waits. */
	if (!has_two(bucket))
		assert_int_equal(get(user, bucket, name), 0);
	mem_disk_hang(paths[0], false);
	assert_int_equal(commit_end(&slow[0], r), 0);
	must_be_there(&slow[0], slow[0].put.version);
	must_leave_nothing(1, was, nr);
}

static void
test_twice(void **state)
{
	move_twice(ONE, 3, 3 * MIB);
}

static void
test_twice_of_two(void **state)
{
	assert_int_equal(make_bucket(user, TWO, 2), 0);
	move_twice(TWO, 4, 3 * MIB);
}

/* ---- disks that fail ---- */

static void
test_old_unreadable(void **state)
{
	uint64_t was[2];
	char name[32];

	note_room(was, 2);
	for (int i = 0; i < 3; i++) {
		struct store_key k = key_at(name, ONE, 0);

		begin_put(&slow[i], &k, i == 2 ? 5 : 3 * MIB, true, NULL, 0);
	}
	drain(0);
	mem_disk_unreadable(paths[0], true);
	assert_int_equal(commit_put(&slow[0]), -EXDEV);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_int_equal(commit_put(&slow[2]), 0); /* whose bytes are in memory */
	mem_disk_unreadable(paths[0], false);
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_there(&slow[1], slow[1].put.version);
	assert_int_equal(delete_key(&slow[1].key), 1);
	assert_int_equal(delete_key(&slow[2].key), 1);
	wait_free(0, was[0]);
	wait_free(1, was[1]);
	assert_true(is_idle());
}

/* The former disk hangs while a replay reads there, and then its reads fail. */
static void
test_old_fails(void **state)
{
	uint64_t was;
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int r;

	was = free_bytes(1);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	drain(0);
	r = commit_reading(&slow[0], 0);
	/* Only the replay waits. */
	assert_int_equal(put(user, ONE, "another", 5), 0);
	assert_int_equal(del(user, ONE, "another"), 1);
	mem_disk_unreadable(paths[0], true);
	mem_disk_hang(paths[0], false);
	assert_int_equal(commit_end(&slow[0], r), -EXDEV);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	wait_free(1, was);
	assert_true(is_idle());
}

static void
test_new_fails(void **state)
{
	char name[32];
	struct store_key k = key_at(name, ONE, 0);
	int next, r;

	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(0);
	next = home_of(&slow[0].key);
	r = commit_writing(&slow[0], next);
	mem_disk_fail(paths[next], 0);
	mem_disk_hang(paths[next], false);
	assert_int_equal(commit_end(&slow[0], r), -EROFS);
	assert_int_equal(get(user, ONE, slow[0].name), 0);
	assert_int_equal(commit_put(&slow[1]), -EROFS);
	assert_true(is_idle());
}

/* Of two copies the secondary becomes the primary meanwhile. */
static void
test_two_new_fails(void **state)
{
	char name[32];
	struct store_key k;
	int next, r;

	assert_int_equal(make_bucket(user, TWO, 2), 0);
	k = key_at(name, TWO, 0);
	begin_put(&slow[0], &k, 3 * MIB, true, NULL, 0);
	begin_put(&slow[1], &k, 3 * MIB, true, NULL, 0);
	drain(0);
	next = home_of(&slow[0].key);
	r = commit_writing(&slow[0], next);
	mem_disk_fail(paths[next], 0);
	mem_disk_hang(paths[next], false);
	r = commit_end(&slow[0], r);
	assert_true(r == 0 || r == -EROFS || r == -ECANCELED);
	/* The second PUT is replayed at the new primary. */
	for (uint64_t until = clock_ns() + PATIENCE_NS; home_of(&slow[0].key) == next && clock_ns() < until;)
		store_user_turn(user);
	assert_int_equal(commit_put(&slow[1]), 0);
	must_be_on(&slow[1], slow[1].put.version, 1);
	assert_true(is_idle());
}

int
main(void)
{
#define T(f, setup) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_objects, setup_two),        T(test_two_copies, setup_three),
		T(test_parts, setup_two),          T(test_parts_of_two, setup_three),
		T(test_judged, setup_two),         T(test_judged_two, setup_three),
		T(test_gone, setup_two),           T(test_quota, setup_two),
		T(test_no_room, setup_two),        T(test_aborted, setup_two),
		T(test_refused, setup_two),        T(test_nowhere, setup_three),
		T(test_other_bytes, setup_two),    T(test_twice, setup_three),
		T(test_twice_of_two, setup_four),  T(test_old_unreadable, setup_two),
		T(test_old_fails, setup_two),      T(test_new_fails, setup_three),
		T(test_two_new_fails, setup_four),
	};

	seed = turns_seed();
	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
