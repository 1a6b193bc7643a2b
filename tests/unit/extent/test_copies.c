/* SPDX-License-Identifier: Apache-2.0 */
/* Keys with two copies in an engine: what it lists, counts, keeps and finds again, beside those with one copy. */
#include "moves_rig.h"
#include "drop.h"

#include "extent/engine.h"

#define KEYS 60

static struct names n;

/* Buckets of both kinds on both engines. */
static void
make_buckets(void)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bucket_on(i, "b", 1), 0);
		assert_int_equal(bucket_on(i, "2b", 2), 0);
	}
}

static const char *
name_of(int i)
{
	static char name[32];

	snprintf(name, sizeof name, "%c/key-%d", 'a' + i % 6, i);
	return name;
}

static int
fill_bucket(int engine, const char *bucket, const struct store_slots *slots)
{
	int in = 0;

	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(put_simple(at(engine), bucket, name_of(i), 100, (uint64_t)i), 0);
		in += slots_has(slots, slot_of_key(bucket, name_of(i)));
	}
	return in;
}

/* All places of keys with one copy, and those of keys with two that are in the slots. */
static struct store_slots
one_and(const struct store_slots *slots)
{
	struct store_slots s = *slots;

	memset(s.bit, 0xff, sizeof s.bit / 2);
	return s;
}

/* A bucket's list has the keys of its kind. */
static void
test_lists(void **state)
{
	struct store_slots half = half_slots(), own = one_and(&half), others = not_those(&own);
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int in;

	make_pair(64 * MIB);
	start_pair(NULL, NULL);
	make_buckets();
	fill_bucket(A, "b", &own);
	in = fill_bucket(A, "2b", &own);
	assert_true(in > 10 && in < KEYS - 10);
	assert_int_equal(upload_make(A, "2b", "up", NULL, 0, id), 0);
	assert_int_equal(upload_make(A, "2b", "up", NULL, 0, id), 0);
	assert_int_equal(upload_make(A, "b", "up", NULL, 0, id), 0);
	assert_int_equal(list_names(A, "b", NULL, NULL, 7, false, &n), KEYS);
	assert_int_equal(list_names(A, "2b", NULL, NULL, 7, false, &n), KEYS);
	assert_int_equal(list_names(A, "2b", "/", NULL, 2, false, &n), 6);
	assert_int_equal(list_names(A, "2b", NULL, NULL, 60, true, &n), 2);
	assert_int_equal(list_names(A, "b", NULL, NULL, 60, true, &n), 1);
	assert_int_equal(list_names(A, "2b", NULL, &others, 7, false, &n), KEYS - in);
	stop_pair();
	start_pair(&own, NULL);
	assert_int_equal(list_names(A, "b", NULL, NULL, 7, false, &n), KEYS);
	assert_int_equal(list_names(A, "2b", NULL, NULL, 7, false, &n), in);
	for (int i = 0; i < n.nr; i++)
		assert_true(slots_has(&own, slot_of_key("2b", n.name[i])));
	assert_int_equal(list_names(A, "2b", NULL, &others, 7, false, &n), KEYS - in);
	stop_pair();
	remove_pair();
}

/* By kind; a call goes from the one to the other. */
static void
test_walk(void **state)
{
	struct store_slots half = half_slots(), own = one_and(&half), two = no_slots;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int in;

	make_pair(64 * MIB);
	start_pair(NULL, NULL);
	make_buckets();
	assert_int_equal(walk_names(A, NULL, &n), 0);
	in = fill_bucket(A, "2b", &own);
	assert_int_equal(upload_make(A, "2b", "a/key-0", NULL, 0, id), 0);
	assert_int_equal(walk_names(A, NULL, &n), KEYS);
	assert_int_equal(n.two, KEYS);
	assert_int_equal(upload_make(A, "2b", "b", NULL, 0, id), 0);
	assert_int_equal(put_simple(at(A), "b", "b", 1, 1), 0);
	assert_int_equal(upload_make(A, "b", "c", NULL, 0, id), 0);
	assert_int_equal(walk_names(A, NULL, &n), KEYS + 3);
	assert_int_equal(n.two, KEYS + 1);
	assert_string_equal(n.name[0], "b/b");
	assert_string_equal(n.name[1], "b/c");
	assert_string_equal(n.name[2], "2b/a/key-0");
	memset((char *)two.bit + sizeof two.bit / 2, 0xff, sizeof two.bit / 2);
	assert_int_equal(walk_names(A, &two, &n), KEYS + 1);
	assert_int_equal(n.two, KEYS + 1);
	in += slots_has(&own, slot_of_key("2b", "b"));
	assert_int_equal(walk_names(A, &own, &n), in + 2);
	for (int i = 2; i < n.nr; i++)
		assert_true(slots_has(&own, slot_of_key("2b", strchr(n.name[i], '/') + 1)));
	two = not_those(&two);
	assert_int_equal(walk_names(A, &two, &n), 2);
	assert_int_equal(n.two, 0);
	/* More than a call looks at, of both. */
	for (int i = 0; i < 1500; i++) {
		char name[32];

		snprintf(name, sizeof name, "many-%d", i);
		assert_int_equal(put_simple(at(A), i % 2 ? "b" : "2b", name, 1, 1), 0);
	}
	assert_int_equal(walk_names(A, NULL, &n), KEYS + 3 + 1500);
	assert_int_equal(walk_names(A, &two, &n), 2 + 750);
	stop_pair();
	remove_pair();
}

/* Counted, judged and in the way of a bucket's removal is what is its own of its kind. */
static void
test_counts(void **state)
{
	struct store_slots half = half_slots(), own = one_and(&half), all = all_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	int in;

	make_pair(64 * MIB);
	start_pair(NULL, NULL);
	make_buckets();
	in = fill_bucket(A, "2b", &own);
	assert_int_equal(used("2b").objects, KEYS);
	assert_int_equal(unit_number(A, "objects"), KEYS);
	stop_pair();
	start_pair(&own, NULL);
	assert_int_equal(used("2b").objects, in);
	assert_int_equal(used("2b").bytes, 2 * 100 * in);
	assert_int_equal(unit_number(A, "objects"), in);
	assert_int_equal(unit_number(A, "copy_objects"), KEYS - in);
	assert_int_equal(unit_number(A, "copy_bytes"), 100 * (KEYS - in));
	assert_int_equal(unit_number(A, "leftover_objects"), 0);
	for (int i = 0; i < KEYS; i++) {
		bool mine = slots_has(&own, slot_of_key("2b", name_of(i)));

		/* In the slots of the one the places of the other are not meant. */
		assert_int_equal(put_simple(at(A), "b", name_of(i), 10, 1), 0);
		assert_int_equal(put_simple(at(A), "2b", name_of(i), 200, (uint64_t)i), mine ? 0 : -EXDEV);
		assert_int_equal(upload_make(A, "2b", name_of(i), NULL, 0, id), mine ? 0 : -EXDEV);
		assert_int_equal(part_put(A, "2b", name_of(i), id, 1, 1000, 1), mine ? 0 : -ENOENT);
	}
	assert_int_equal(used("2b").objects, in);
	assert_int_equal(used("2b").uploads, in);
	assert_int_equal(used("2b").bytes, 2 * (200 + QUOTA_PART_BYTES) * in);
	assert_int_equal(used("b").objects, KEYS);
	assert_int_equal(bucket_remove(at(A), "2b"), -ENOTEMPTY);
	for (int i = 0; i < KEYS; i++)
		obj_delete(at(A), "2b", name_of(i), NULL);
	assert_int_equal(bucket_remove(at(A), "2b"), 0);
	/* Nor is what is left of the one kind in the way of a bucket of the other. */
	assert_int_equal(bucket_on(A, "2b", 1), 0);
	assert_int_equal(list_names(A, "2b", NULL, NULL, 10, false, &n), 0);
	assert_int_equal(bucket_remove(at(A), "2b"), 0);
	stop_pair();
	/* The uploads went with the bucket. */
	start_pair(&all, NULL);
	wait_until(walk_names(A, NULL, &n) == KEYS + KEYS - in)
		loop_for(&l, 10 * NS_PER_MS);
	stop_pair();
	remove_pair();
}

/* An object of parts, one of several chunks, one with other attributes, an upload; and the same with one copy. */
static void
fill_both(uint8_t id[2][STORE_UPLOAD_ID_BYTES])
{
	for (int two = 0; two < 2; two++) {
		const char *b = two ? "2b" : "b";
		struct store_complete c;

		assert_int_equal(put_simple(at(A), b, "small", 10, 1), 0);
		assert_int_equal(put_simple(at(A), b, "object", 100000, 2), 0);
		assert_int_equal(set_attrs(A, b, "object", "changed", 7), 0);
		assert_int_equal(put_simple(at(A), b, "large", 70 * MIB, 3), 0);
		assert_int_equal(upload_make(A, b, "whole", NULL, 0, id[two]), 0);
		for (uint32_t i = 1; i <= 3; i++)
			assert_int_equal(part_put(A, b, "whole", id[two], i, 1000 * i, 4), 0);
		assert_int_equal(upload_complete(A, b, "whole", id[two], 3, 4, &c), 0);
		assert_int_equal(upload_make(A, b, "up", "attrs", 5, id[two]), 0);
		assert_int_equal(part_put(A, b, "up", id[two], 1, 5000, 5), 0);
	}
}

static uint32_t
parts_nr(int engine, const char *bucket, const char *key)
{
	static struct store_obj obj;
	uint32_t nr;

	assert_int_equal(obj_open(at(engine), bucket, key, &obj), 0);
	nr = obj.part_nr;
	store_close(port[engine], &obj);
	return nr;
}

static void
check_both(uint8_t id[2][STORE_UPLOAD_ID_BYTES])
{
	for (int two = 0; two < 2; two++) {
		const char *b = two ? "2b" : "b";
		struct store_key k = key_of(b, "up");
		char attrs[8];

		assert_int_equal(obj_check(at(A), b, "small", 10, 1), 0);
		assert_int_equal(obj_check(at(A), b, "object", 100000, 2), 0);
		assert_int_equal(obj_check(at(A), b, "large", 70 * MIB, 3), 0);
		assert_int_equal(parts_nr(A, b, "whole"), 3);
		assert_int_equal(upload_stat(at(A), &k, id[two], attrs, sizeof attrs, NULL), 0);
		assert_memory_equal(attrs, "attrs", 5);
		assert_int_equal(used(b).objects, 4);
		assert_int_equal(used(b).uploads, 1);
		assert_int_equal(used(b).bytes,
				 (1 + two) * (10 + 100000 + 70 * MIB + 6000 + QUOTA_PART_BYTES));
	}
	assert_int_equal(unit_number(A, "objects"), 8);
	assert_int_equal(walk_names(A, NULL, &n), 10);
}

static void
snapshot(int engine)
{
	uint64_t had = unit_number(engine, "snapshots");

	assert_int_equal(store_snapshot(st[engine]), 0);
	wait_until(unit_number(engine, "snapshots") != had && !unit_number(engine, "snapshot_runs"))
		loop_turn(&l);
}

static void
test_starts(void **state)
{
	struct store_slots all = all_slots();
	uint8_t id[2][STORE_UPLOAD_ID_BYTES];

	make_pair(512 * MIB);
	start_pair(NULL, NULL);
	make_buckets();
	fill_both(id);
	check_both(id);
	stop_pair();
	/* Out of the log; then out of a snapshot. */
	start_pair(&all, NULL);
	check_both(id);
	snapshot(A);
	stop_pair();
	start_pair(&all, NULL);
	loop_for(&l, 50 * NS_PER_MS);
	check_both(id);
	/* What has no owner goes, what has one stays: so after the upload's end. */
	assert_int_equal(upload_abort(A, "2b", "up", id[1]), 0);
	assert_int_equal(used("2b").bytes, 2 * (10 + 100000 + 70 * MIB + 6000));
	assert_int_equal(walk_names(A, NULL, &n), 9);
	for (int i = 0; i < 2; i++) {
		const char *b = i ? "2b" : "b";

		assert_int_equal(obj_delete(at(A), b, "small", NULL), 1);
		assert_int_equal(obj_delete(at(A), b, "object", NULL), 1);
		assert_int_equal(obj_delete(at(A), b, "large", NULL), 1);
		assert_int_equal(obj_delete(at(A), b, "whole", NULL), 1);
		assert_int_equal(bucket_remove(at(A), b), 0);
	}
	/* The upload of "b" that is left ends with it. */
	wait_until(walk_names(A, NULL, &n) == 0)
		loop_for(&l, 10 * NS_PER_MS);
	stop_pair();
	remove_pair();
}

/* Small objects of both kinds are moved together. */
static void
test_pack(void **state)
{
	make_pair(128 * MIB);
	conf[A].disks.pack_rate = 1024 * MIB;
	start_pair(NULL, NULL);
	make_buckets();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(put_simple(at(A), "2b", name_of(i), 1000, (uint64_t)i), 0);
		assert_int_equal(put_simple(at(A), "b", name_of(i), 1000, (uint64_t)i), 0);
	}
	wait_usual(PACK_USUAL_NS, unit_number(A, "packed_objects") >= 190)
		loop_for(&l, 10 * NS_PER_MS);
	for (int i = 0; i < 100; i++)
		assert_int_equal(obj_check(at(A), i % 2 ? "2b" : "b", name_of(i), 1000, (uint64_t)i), 0);
	stop_pair();
	remove_pair();
}

/* ---- --fsck ---- */

static char said[8192];

static void
say(void *cookie, const char *line)
{
	strncat(said, line, sizeof said - strlen(said) - 1);
}

/* By the table: its own, second copies, and what is left over are told apart. */
static void
test_fsck(void **state)
{
	static struct disk_table t;
	struct store_member member;
	uint8_t uuid[2][UUID_BYTES];
	uint64_t size[2] = { 1, 1 };
	char want[100];
	int copies = 0, strays = 0;

	make_pair(64 * MIB);
	start_pair(NULL, NULL);
	make_buckets();
	stop_pair();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ops()->open(&conf[i], &st[i], &member, err, sizeof err), 0);
		memcpy(uuid[i], member.uuid, UUID_BYTES);
		store_stop(st[i]);
	}
	table_make(&t, uuid, size, 2, 1);
	start_pair(NULL, NULL);
	for (int i = 0; i < KEYS; i++) {
		unsigned slot = slot_of_key("2b", name_of(i)) - STORE_SLOT_NR;

		assert_int_equal(put_simple(at(A), "2b", name_of(i), 100, (uint64_t)i), 0);
		/* The other one first, with and without this as the second; or this one. */
		t.first[slot] = (uint8_t)(i % 3 != 0);
		t.second[slot] = i % 3 == 1 ? A : i % 3 == 0 ? B : TABLE_NO_DISK;
	}
	for (int i = 0; i < KEYS; i++) {
		unsigned slot = slot_of_key("2b", name_of(i)) - STORE_SLOT_NR;

		copies += t.first[slot] == B && t.second[slot] == A;
		strays += t.first[slot] == B && t.second[slot] != A;
	}
	stop_pair();
	assert_true(copies > 10 && strays > 10);
	conf[A].disks.table = &t;
	assert_int_equal(store_fsck(&conf[A], false, say, NULL), 0);
	snprintf(want, sizeof want, "%d records are second copies", copies);
	assert_non_null(strstr(said, want));
	snprintf(want, sizeof want, "%d records are of keys that the table of disks gives to another",
		 strays);
	assert_non_null(strstr(said, want));
	remove_pair();
}

/* ---- second copies ---- */

static const struct store_slots *
nothing_of_two(void)
{
	static struct store_slots s;

	s = one_and(&no_slots);
	return &s;
}

/* A has all, B is the second of all keys with two copies. */
static void
start_copies(void)
{
	struct store_slots all = all_slots();

	start_pair(&all, nothing_of_two());
}

/* A PUT to both, piece by piece at the same time; id: of a part. */
struct both {
	struct store_put put[2];
	struct store_write w[2];
	struct store_commit sc;
	struct buf *last;
	char small[STORE_INLINE_MAX + 8];
	uint64_t size;
};

static int
copy_init(int engine, struct both *b, const struct store_key *k, const uint8_t *id, uint32_t number,
	  uint64_t size)
{
	const struct store_put_spec spec = {
		.key = *k, .upload_id = id, .part_number = number, .size_bytes = size, .is_copy = true
	};

	return port[engine]->ops->put_init(port[engine], &b->put[engine], &spec);
}

static int
both_begin(struct both *b, const char *bucket, const char *key, const uint8_t *id, uint32_t number,
	   uint64_t size, uint64_t seed, bool rides)
{
	struct store_key k = key_of(bucket, key);
	int r = id ? store_put_init_part(port[A], &b->put[A], &k, id, number, size)
		   : store_put_init(port[A], &b->put[A], &k, size);

	assert_int_equal(r, 0);
	r = copy_init(B, b, &k, id, number, size);
	b->sc = (struct store_commit){ .meta.etag = etag_of(number + (uint32_t)seed * 16384),
				       .meta.attrs = "of a part",
				       .meta.attrs_len = 9 };
	b->last = NULL;
	b->size = size;
	if (r == 0 && size <= STORE_INLINE_MAX) {
		fill(b->small, size, seed, 0);
		b->sc.inline_data = b->small;
		b->sc.inline_len = (uint32_t)size;
	}
	for (uint64_t off = 0; r == 0 && size > STORE_INLINE_MAX && off < size;) {
		uint64_t len = size - off < STORE_PIECE ? size - off : STORE_PIECE;
		struct buf *buf = bufpool_get(&l.bufs, BUF_LARGE);

		fill(buf->mem, len, seed, off);
		off += len;
		if (off == size && rides) {
			b->last = b->sc.last = buf;
			b->sc.last_len = (uint32_t)len;
			return 0;
		}
		for (int i = 0; i < 2; i++) {
			op_arm(&b->w[i].op, port[i]);
			assert_int_equal(store_put_write(port[i], &b->put[i], &b->w[i], buf, (uint32_t)len,
							 off == size),
					 0);
		}
		for (int i = 0; i < 2; i++)
			assert_int_equal(op_wait(&l, &b->w[i].op), 0);
		bufpool_put(&l.bufs, buf);
	}
	return r;
}

static void
both_commit(struct both *b)
{
	b->put[A].op.done = on_put;
	assert_int_equal(store_put_commit(port[A], &b->put[A], &b->sc), 0);
	assert_int_equal(op_wait(&l, &b->put[A].op), 0);
}

static int
both_copy(struct both *b, uint64_t version)
{
	int r;

	b->put[B].op.done = on_put;
	r = ops()->copy_commit(port[B], &b->put[B], port[A], version, &b->sc);
	r = r == 0 ? op_wait(&l, &b->put[B].op) : r;
	if (r < 0)
		store_put_abort(port[B], &b->put[B]);
	if (b->last)
		bufpool_put(&l.bufs, b->last);
	return r;
}

static int
put_both(const char *key, const uint8_t *id, uint32_t number, uint64_t size, uint64_t seed, bool rides)
{
	struct both *b = calloc(1, sizeof *b);
	int r = both_begin(b, "2b", key, id, number, size, seed, rides);

	assert_int_equal(r, 0);
	both_commit(b);
	r = both_copy(b, b->put[A].version);
	if (r == 0)
		assert_int_equal(b->put[B].version, b->put[A].version);
	free(b);
	return r;
}

static int
differing(int here, int there)
{
	int nr = 0;

	n.w = (struct store_walk){ .key = on_walked, .differs_from = port[there] };
	n.nr = 0;
	do {
		int r = ops()->walk(port[here], &n.w);

		assert_true(r >= 0);
		nr += r;
	} while (n.w.more);
	return nr;
}

static const uint64_t sizes[] = { 0,     10,  256,     257,         5000,     65536,
				  65537, MIB, MIB + 1, 3 * MIB + 5, 16 * MIB, 70 * MIB + 9 };
#define SIZES (sizeof sizes / sizeof *sizes)

static void
test_copy(void **state)
{
	struct store_slots all = all_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_complete c;
	uint64_t bytes = 0;

	make_pair(1024 * MIB);
	start_copies();
	make_buckets();
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < SIZES; i++) {
			assert_int_equal(put_both(name_of((int)i), NULL, 0, sizes[i], i + 1, round), 0);
			must_be_same("2b", name_of((int)i));
		}
	}
	/* What has been there is replaced by it. */
	assert_int_equal(put_both(name_of(3), NULL, 0, 0, 77, true), 0);
	assert_int_equal(put_both(name_of(3), NULL, 0, sizes[3], 4, true), 0);
	assert_int_equal(put_simple(at(A), "2b", "parts", 1, 1), 0);
	assert_int_equal(send_key(A, B, "2b", "parts"), 0);
	assert_int_equal(upload_make(A, "2b", "parts", "x", 1, id), 0);
	assert_int_equal(send_key(A, B, "2b", "parts"), 0);
	for (uint32_t i = 0; i < SIZES - 1; i++)
		assert_int_equal(put_both("parts", id, i + 1, sizes[i], 5, i % 2), 0);
	assert_int_equal(put_both("parts", id, 2, 3000, 5, true), 0);
	assert_int_equal(differing(A, B), 0);
	assert_int_equal(differing(B, A), 0);
	assert_int_equal(upload_complete(A, "2b", "parts", id, SIZES - 1, 5, &c), 0);
	assert_int_equal(differing(A, B), 1);
	assert_int_equal(differing(B, A), 1);
	/* The parts are there: nothing but records goes. */
	assert_int_equal(send_key(A, B, "2b", "parts"), 0);
	assert_int_equal(sent.bytes, 0);
	must_be_same("2b", "parts");
	assert_int_equal(differing(A, B), 0);
	assert_int_equal(differing(B, A), 0);
	for (size_t i = 0; i < SIZES; i++)
		bytes += sizes[i];
	assert_int_equal(unit_number(B, "objects"), 0);
	assert_int_equal(unit_number(B, "copy_objects"), SIZES + 1);
	assert_int_equal(unit_number(B, "copy_bytes"), 2 * bytes - sizes[SIZES - 1] + 3000 - 10);
	assert_int_equal(used("2b").objects, SIZES + 1);
	stop_pair();
	/* The first is gone. */
	start_pair(nothing_of_two(), &all);
	for (size_t i = 0; i < SIZES; i++)
		assert_int_equal(obj_check(at(B), "2b", name_of((int)i), sizes[i], i + 1), 0);
	assert_int_equal(parts_nr(B, "2b", "parts"), SIZES - 1);
	assert_int_equal(unit_number(B, "copy_objects"), 0);
	assert_int_equal(used("2b").objects, SIZES + 1);
	stop_pair();
	remove_pair();
}

static void
test_copy_refused(void **state)
{
	struct both *b = calloc(1, sizeof *b);
	struct store_slots all = all_slots();
	struct store_key one = key_of("b", "k"), k = key_of("2b", "k");
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_slots_op o = { .slots = &all };
	struct store_use max = { 1, 200000, STORE_UNBOUNDED };
	struct store_bucket_set set = { .op.done = on_put };

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	/* Its own; an upload that is not there yet; no bucket. */
	assert_int_equal(copy_init(B, b, &one, NULL, 0, 10), -EPERM);
	assert_int_equal(copy_init(A, b, &k, NULL, 0, 10), -EPERM);
	assert_int_equal(upload_make(A, "2b", "k", NULL, 0, id), 0);
	assert_int_equal(both_begin(b, "2b", "k", id, 1, 1000, 1, true), -ENOENT);
	store_put_abort(port[A], &b->put[A]);
	k = key_of("2none", "k");
	assert_int_equal(copy_init(B, b, &k, NULL, 0, 10), -ENXIO);
	/* Aborted, before a piece and behind some. */
	assert_int_equal(both_begin(b, "2b", "k", NULL, 0, 10, 1, true), 0);
	store_put_abort(port[A], &b->put[A]);
	store_put_abort(port[B], &b->put[B]);
	assert_int_equal(both_begin(b, "2b", "k", NULL, 0, 3 * MIB, 1, false), 0);
	store_put_abort(port[A], &b->put[A]);
	store_put_abort(port[B], &b->put[B]);
	/* The first has another version by now, or none, or other bytes. */
	for (int i = 0; i < 4; i++) {
		uint64_t version;

		assert_int_equal(both_begin(b, "2b", "k", NULL, 0, 2 * MIB, 1, true), 0);
		both_commit(b);
		version = b->put[A].version;
		if (i == 0)
			assert_int_equal(set_attrs(A, "2b", "k", "new", 3), 0);
		else if (i == 1)
			assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
		else if (i == 2)
			version--;
		else
			b->last->mem[77]++;
		assert_int_equal(both_copy(b, version), i == 3 ? -EILSEQ : -EAGAIN);
		assert_int_equal(obj_check(at(B), "2b", "k", 2 * MIB, 1), -ENOENT);
	}
	assert_int_equal(unit_number(B, "copy_objects"), 0);
	/* A bound is judged at the first alone, which counts the bytes of both. */
	assert_true(store_bucket_set_quota(port[A], "2b", 2, &max, &set) == 0 && op_wait(&l, &set.op) == 0);
	assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
	assert_int_equal(put_both("k", NULL, 0, 100000, 1, true), 0);
	assert_int_equal(put_simple(at(A), "2b", "k", 100001, 1), -EDQUOT);
	assert_int_equal(put_simple(at(A), "2b", "more", 0, 1), -EDQUOT);
	/* It became the first meanwhile. */
	assert_int_equal(both_begin(b, "2b", "k", NULL, 0, 1000, 2, true), 0);
	both_commit(b);
	assert_int_equal(tell(B, SLOTS_TAKE, &o), 0);
	assert_int_equal(both_copy(b, b->put[A].version), -EPERM);
	assert_int_equal(tell(A, SLOTS_LEAVE, &o), 0);
	stop_pair();
	remove_pair();
	free(b);
}

/* Which keys differ, whichever way. */
static void
test_differs(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES], other[STORE_UPLOAD_ID_BYTES];
	struct store_slots all = all_slots();
	char name[32];

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof name, "key-%04d", i);
		assert_int_equal(put_simple(at(A), "2b", name, (uint64_t)i % 300, (uint64_t)i), 0);
	}
	assert_int_equal(differing(A, B), 1200);
	assert_int_equal(differing(B, A), 0);
	for (int i = 0; i < 1200; i++) {
		snprintf(name, sizeof name, "key-%04d", i);
		assert_int_equal(send_key(A, B, "2b", name), 0);
	}
	assert_int_equal(differing(A, B), 0);
	assert_int_equal(differing(B, A), 0);
	/* Other bytes, other attributes; gone, many in a row; more. */
	assert_int_equal(put_simple(at(A), "2b", "key-0001", 10, 1), 0);
	assert_int_equal(set_attrs(A, "2b", "key-0599", "new", 3), 0);
	for (int i = 700; i < 800; i++) {
		snprintf(name, sizeof name, "key-%04d", i);
		assert_int_equal(obj_delete(at(A), "2b", name, NULL), 1);
	}
	assert_int_equal(put_simple(at(A), "2b", "key-0599a", 10, 1), 0);
	assert_int_equal(differing(A, B), 3);
	assert_string_equal(n.name[0], "2b/key-0001");
	assert_string_equal(n.name[1], "2b/key-0599");
	assert_string_equal(n.name[2], "2b/key-0599a");
	assert_int_equal(differing(B, A), 102);
	assert_int_equal(send_all(A, B, &all), 1101 + 1201);
	assert_int_equal(differing(A, B) + differing(B, A), 0);
	/* Uploads and parts, of a key with an object and of one without. */
	for (int i = 0; i < 2; i++) {
		const char *key = i ? "key-0005" : "alone";

		assert_int_equal(upload_make(A, "2b", key, NULL, 0, id), 0);
		assert_int_equal(differing(A, B), 1);
		assert_string_equal(n.name[0] + 3, key);
		assert_int_equal(differing(B, A), 0);
		assert_int_equal(send_key(A, B, "2b", key), 0);
		assert_int_equal(differing(A, B) + differing(B, A), 0);
		assert_int_equal(part_put(A, "2b", key, id, 7, 1000, 1), 0);
		assert_int_equal(part_put(A, "2b", key, id, 9, 1000, 1), 0);
		assert_int_equal(differing(A, B), 1);
		assert_int_equal(differing(B, A), 0);
		assert_int_equal(send_key(A, B, "2b", key), 0);
		assert_int_equal(differing(A, B) + differing(B, A), 0);
		assert_int_equal(part_put(A, "2b", key, id, 7, 1000, 2), 0);
		assert_int_equal(differing(A, B), 1);
		assert_int_equal(differing(B, A), 1);
		assert_int_equal(send_key(A, B, "2b", key), 0);
		assert_int_equal(upload_make(A, "2b", key, NULL, 0, other), 0);
		assert_int_equal(send_key(A, B, "2b", key), 0);
		assert_int_equal(upload_abort(A, "2b", key, id), 0);
		assert_int_equal(differing(A, B), 0);
		assert_int_equal(differing(B, A), 1);
		assert_int_equal(send_key(A, B, "2b", key), 0);
		assert_int_equal(differing(A, B) + differing(B, A), 0);
	}
	stop_pair();
	remove_pair();
}

static uint32_t part_numbers[16], part_number_nr;

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	part_numbers[part_number_nr++] = part->number;
	return part_number_nr < 16;
}

static uint32_t
count_parts(int engine, const char *key, const uint8_t *id)
{
	struct store_part_list pl = { .max = 16, .part = on_part };
	struct store_key k = key_of("2b", key);

	part_number_nr = 0;
	assert_true(store_list_parts(port[engine], &k, id, &pl) > 0);
	return pl.op.result < 0 ? UINT32_MAX : part_number_nr;
}

static int
send_hinted(const char *key, const uint8_t *id, bool only_object)
{
	send_begin(&sent, "2b", key);
	sent.only_upload = id;
	sent.only_object = only_object;
	return send_wait(&sent, ops()->send(port[A], port[B], &sent));
}

/* Who knows what has changed has that sent alone. */
static void
test_hints(void **state)
{
	uint8_t id[2][STORE_UPLOAD_ID_BYTES];

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(upload_make(A, "2b", "k", "attrs", 5, id[i]), 0);
		assert_int_equal(part_put(A, "2b", "k", id[i], 3, 1000, 1), 0);
	}
	assert_int_equal(put_simple(at(A), "2b", "k", 5000, 1), 0);
	assert_int_equal(send_hinted("k", id[1], false), 0);
	assert_int_equal(sent.changes, 2);
	assert_int_equal(count_parts(B, "k", id[1]), 1);
	assert_int_equal(count_parts(B, "k", id[0]), UINT32_MAX);
	assert_int_equal(obj_check(at(B), "2b", "k", 5000, 1), -ENOENT);
	assert_int_equal(send_hinted("k", NULL, true), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(obj_check(at(B), "2b", "k", 5000, 1), 0);
	assert_int_equal(count_parts(B, "k", id[0]), UINT32_MAX);
	assert_int_equal(send_hinted("k", id[0], false), 0);
	assert_int_equal(differing(A, B) + differing(B, A), 0);
	assert_int_equal(upload_abort(A, "2b", "k", id[0]), 0);
	assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
	assert_int_equal(send_hinted("k", id[1], false), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(send_hinted("k", id[0], false), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(count_parts(B, "k", id[0]), UINT32_MAX);
	assert_int_equal(count_parts(B, "k", id[1]), 1);
	assert_int_equal(obj_check(at(B), "2b", "k", 5000, 1), 0);
	assert_int_equal(send_hinted("k", NULL, true), 0);
	assert_int_equal(obj_check(at(B), "2b", "k", 5000, 1), -ENOENT);
	stop_pair();
	remove_pair();
}

/* A part that the first has not: it was never answered, and goes. */
static void
test_part_goes(void **state)
{
	struct store_slots all = all_slots();
	uint8_t id[STORE_UPLOAD_ID_BYTES];

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	assert_int_equal(upload_make(A, "2b", "k", NULL, 0, id), 0);
	for (uint32_t i = 2; i < 5; i++)
		assert_int_equal(part_put(A, "2b", "k", id, i, 1000, 1), 0);
	assert_int_equal(send_key(A, B, "2b", "k"), 0);
	/* By B as the first, without A. */
	stop_pair();
	start_pair(nothing_of_two(), &all);
	assert_int_equal(part_put(B, "2b", "k", id, 1, 1000, 2), 0);
	assert_int_equal(part_put(B, "2b", "k", id, 3, 100000, 2), 0);
	assert_int_equal(part_put(B, "2b", "k", id, 9, 2000, 2), 0);
	stop_pair();
	start_copies();
	assert_int_equal(unit_number(B, "copy_bytes"), 4 * QUOTA_PART_BYTES + 100000);
	assert_int_equal(differing(A, B), 1);
	assert_int_equal(differing(B, A), 1);
	assert_int_equal(send_key(A, B, "2b", "k"), 0);
	assert_int_equal(sent.changes, 3);
	assert_int_equal(count_parts(B, "k", id), 3);
	assert_int_equal(part_numbers[0], 2);
	assert_int_equal(differing(A, B) + differing(B, A), 0);
	assert_int_equal(unit_number(B, "copy_bytes"), 3 * QUOTA_PART_BYTES);
	stop_pair();
	start_copies();
	assert_int_equal(unit_number(B, "copy_bytes"), 3 * QUOTA_PART_BYTES);
	assert_int_equal(count_parts(B, "k", id), 3);
	stop_pair();
	remove_pair();
}

/* ---- repair ---- */

/* A byte of what A has of an object, or of part `part` of it, so far into it, becomes another. */
static void
damage(const char *key, uint32_t part, uint64_t off)
{
	struct vol *vol = extent_port(port[A])->vp.vol;
	struct store_key k = key_of("2b", key);
	uint8_t buf[KEY_BYTES_MAX], byte;
	const struct rec *r = tree_get(vol->tree, buf, (size_t)key_object(buf, &k));
	uint64_t at, per_seg = geo_seg_units(&vol->disk.geo), unit;
	int fd;

	assert_non_null(r);
	for (int i = 0; i < 2 && (r->body == BODY_PARTS || r->body == BODY_MANIFEST); i++) {
		const struct chunk_ref *ref =
			(const struct chunk_ref *)rec_entries(r) + (r->body == BODY_PARTS ? part : 0);
		bool is_part = r->body == BODY_PARTS;

		key_chunk(buf, ref->id, ref->index);
		buf[0] = is_part ? KEY_PART : KEY_CHUNK;
		r = tree_get(vol->tree, buf, CHUNK_KEY_BYTES);
		assert_non_null(r);
	}
	assert_int_equal(r->body, BODY_EXTENTS);
	unit = ext_unit(*(const uint64_t *)rec_entries(r));
	at = unit % per_seg * vol->disk.geo.unit_bytes + off;
	snprintf((char *)buf, sizeof buf, "%s/seg-%04u", dir[A], (unsigned)(unit / per_seg));
	fd = open((char *)buf, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
	byte ^= 0x55;
	assert_true(pwrite(fd, &byte, 1, (off_t)at) == 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

static int
repair(const char *key)
{
	send_begin(&sent, "2b", key);
	sent.is_repair = true;
	return send_wait(&sent, ops()->send(port[B], port[A], &sent));
}

static void
test_repair(void **state)
{
	static struct store_obj old;
	uint64_t version, bytes;

	make_pair(1024 * MIB);
	start_copies();
	make_buckets();
	assert_int_equal(put_both("small", NULL, 0, 5000, 1, true), 0);
	assert_int_equal(put_both("mid", NULL, 0, 3 * MIB + 5, 2, true), 0);
	assert_int_equal(put_both("large", NULL, 0, 70 * MIB, 3, true), 0);
	assert_int_equal(put_both("inline", NULL, 0, 100, 4, true), 0);
	/* One whose attributes are younger than its bytes. */
	assert_int_equal(set_attrs(A, "2b", "mid", "younger", 7), 0);
	assert_int_equal(send_key(A, B, "2b", "mid"), 0);
	bytes = used("2b").bytes;
	for (int i = 0; i < 3; i++) {
		static const char *const keys[] = { "small", "mid", "large" };
		static const uint64_t size[] = { 5000, 3 * MIB + 5, 70 * MIB };

		/* Nothing is damaged, nothing is written. */
		assert_int_equal(repair(keys[i]), 0);
		assert_int_equal(sent.changes, 0);
		assert_int_equal(sent.bytes, 0);
		assert_int_equal(obj_open(at(A), "2b", keys[i], &old), 0);
		version = old.version;
		damage(keys[i], 0, 4000);
		assert_int_equal(obj_check(at(A), "2b", keys[i], size[i], (uint64_t)i + 1), -EBADMSG);
		assert_int_equal(repair(keys[i]), 0);
		assert_int_equal(sent.changes, 1);
		assert_int_equal(sent.bytes, size[i]);
		assert_int_equal(obj_check(at(A), "2b", keys[i], size[i], (uint64_t)i + 1), 0);
		must_be_same("2b", keys[i]);
		/* Who had it open has what was there. */
		loop_for(&l, 30 * NS_PER_MS);
		assert_int_equal(old.version, version);
		assert_int_equal(obj_read(at(A), &old, (uint64_t)i + 1), -EBADMSG);
		store_close(port[A], &old);
	}
	assert_int_equal(repair("inline"), 0);
	assert_int_equal(sent.changes, 0);
	assert_int_equal(used("2b").objects, 4);
	assert_int_equal(used("2b").bytes, bytes);
	assert_int_equal(unit_number(A, "objects"), 4);
	stop_pair();
	start_copies();
	assert_int_equal(used("2b").bytes, bytes);
	assert_int_equal(obj_check(at(A), "2b", "small", 5000, 1), 0);
	assert_int_equal(obj_check(at(A), "2b", "mid", 3 * MIB + 5, 2), 0);
	assert_int_equal(obj_check(at(A), "2b", "large", 70 * MIB, 3), 0);
	must_be_same("2b", "mid");
	stop_pair();
	remove_pair();
}

static int
read_part(int engine, struct store_obj *obj, uint32_t index, uint64_t seed)
{
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	struct store_read *rd = calloc(1, sizeof *rd);
	struct store_part part;
	char *want = malloc(MIB);
	uint32_t len, skew;
	int r;

	assert_int_equal(store_obj_part_at(obj, index, &part), 0);
	len = store_read_plan(obj, part.off_bytes, part.size_bytes, b->cap_bytes, &skew);
	assert_int_equal(skew, 0);
	op_arm(&rd->op, port[engine]);
	r = store_read(port[engine], obj, rd, b, part.off_bytes, len);
	r = r < 0 ? r : op_wait(&l, &rd->op);
	fill(want, len, seed, 0);
	if (r == (int)len)
		r = memcmp(want, b->mem + rd->lead, len) == 0 ? 0 : -EILSEQ;
	free(want);
	free(rd);
	bufpool_put(&l.bufs, b);
	return r;
}

#define PARTS 5

/* Of an object of parts the damaged ones alone; who has it open reads all of it meanwhile. */
static void
test_repair_parts(void **state)
{
	static struct store_obj old, obj;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_complete c;
	struct store_part part;

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	assert_int_equal(upload_make(A, "2b", "k", NULL, 0, id), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, "2b", "k", id, i, 100000, 1), 0);
	assert_int_equal(upload_complete(A, "2b", "k", id, PARTS, 1, &c), 0);
	assert_int_equal(send_key(A, B, "2b", "k"), 0);
	assert_int_equal(obj_open(at(A), "2b", "k", &old), 0);
	damage("k", 2, 70000);
	damage("k", 4, 0);
	assert_int_equal(read_part(A, &old, 2, 1), -EBADMSG);
	assert_int_equal(store_obj_part_at(&old, 2, &part), 0);
	assert_int_equal(repair("k"), 0);
	assert_int_equal(sent.changes, 2);
	assert_int_equal(sent.bytes, 200000);
	must_be_same("2b", "k");
	/* Their space, and that of their records, is used again when nobody reads the object: not yet. */
	assert_int_equal(upload_make(A, "2b", "other one", NULL, 0, id), 0);
	for (uint32_t i = 1; i <= 200; i++)
		assert_int_equal(part_put(A, "2b", "other one", id, i, 1000, 99), 0);
	assert_int_equal(upload_abort(A, "2b", "other one", id), 0);
	assert_memory_equal(part.attrs, "of a part", 9);
	assert_int_equal(obj_open(at(A), "2b", "k", &obj), 0);
	for (uint32_t i = 0; i < PARTS; i++) {
		assert_int_equal(read_part(A, &obj, i, 1), 0);
		assert_true(read_part(A, &old, i, 1) != -EILSEQ);
	}
	store_close(port[A], &old);
	store_close(port[A], &obj);
	assert_int_equal(used("2b").bytes, 2 * PARTS * 100000);
	stop_pair();
	start_copies();
	assert_int_equal(obj_open(at(A), "2b", "k", &obj), 0);
	for (uint32_t i = 0; i < PARTS; i++)
		assert_int_equal(read_part(A, &obj, i, 1), 0);
	store_close(port[A], &obj);
	assert_int_equal(used("2b").bytes, 2 * PARTS * 100000);
	stop_pair();
	remove_pair();
}

static uint64_t
change_it(struct store_send *s, uint32_t bytes)
{
	static bool is_changed;

	/* The first piece is read at the target, the second one at the source. */
	if (!is_changed && s->bytes == 0)
		assert_int_equal(put_simple(at(A), "2b", "k", 6000, 2), 0);
	is_changed = true;
	return 0;
}

static void
test_repair_refused(void **state)
{

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	assert_int_equal(put_both("k", NULL, 0, 5000, 1, true), 0);
	/* Another version, other attributes, or none on either. */
	assert_int_equal(set_attrs(A, "2b", "k", "new", 3), 0);
	damage("k", 0, 5);
	assert_int_equal(repair("k"), -ESTALE);
	assert_int_equal(obj_check(at(A), "2b", "k", 5000, 1), -EBADMSG);
	assert_int_equal(remove_key(B, "2b", "k"), 0);
	assert_int_equal(repair("k"), -ESTALE);
	assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
	assert_int_equal(put_both("k", NULL, 0, 5000, 1, true), 0);
	assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
	assert_int_equal(repair("k"), -ESTALE);
	/* A writer comes between. */
	assert_int_equal(put_both("k", NULL, 0, 5000, 1, true), 0);
	damage("k", 0, 5);
	send_begin(&sent, "2b", "k");
	sent.is_repair = true;
	sent.pace = change_it;
	assert_int_equal(send_wait(&sent, ops()->send(port[B], port[A], &sent)), -ESTALE);
	assert_int_equal(obj_check(at(A), "2b", "k", 6000, 2), 0);
	/* The other's are damaged, too. */
	assert_int_equal(send_key(A, B, "2b", "k"), 0);
	/* It goes from the first to the second, too, but not between others. */
	stop_pair();
	start_pair(nothing_of_two(), nothing_of_two());
	send_begin(&sent, "2b", "k");
	sent.is_repair = true;
	assert_int_equal(send_wait(&sent, ops()->send(port[B], port[A], &sent)), -EXDEV);
	damage("k", 0, 5);
	stop_pair();
	start_copies();
	assert_int_equal(repair("k"), 0);
	assert_int_equal(sent.changes, 1);
	assert_int_equal(obj_check(at(A), "2b", "k", 6000, 2), 0);
	stop_pair();
	remove_pair();
}

/* ---- what a repair of the disk dropped ---- */

static void
must_read_parts(int engine)
{
	static struct store_obj obj;

	assert_int_equal(obj_open(at(engine), "2b", "k", &obj), 0);
	for (uint32_t i = 0; i < PARTS; i++)
		assert_int_equal(read_part(engine, &obj, i, 1), 0);
	store_close(port[engine], &obj);
}

static int
send_two(void)
{
	int r = send_key(A, B, "2b", "k");

	return r < 0 ? r : (int)sent.changes;
}

static void
make_of_parts(uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_complete c;

	assert_int_equal(upload_make(A, "2b", "k", NULL, 0, id), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, "2b", "k", id, i, 100000, 1), 0);
	assert_int_equal(upload_complete(A, "2b", "k", id, PARTS, 1, &c), 0);
}

/* A second copy whose record is that of the first, and which has lost something that the record names: that is sent again, and nothing else. */
static void
test_dropped(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	make_of_parts(id);
	assert_int_equal(put_both("large", NULL, 0, 66 * MIB, 3, true), 0);
	assert_int_equal(send_two(), PARTS + 2);
	assert_int_equal(send_two(), 0);
	/* With the part come the upload by which it is put, and the completion. */
	drop_part(&l, port[B], id, 2);
	assert_int_equal(send_two(), 3);
	assert_int_equal(sent.bytes, 100000);
	drop_chunk_of_part(&l, port[B], id, 1);
	drop_chunk_of_part(&l, port[B], id, PARTS);
	assert_int_equal(send_two(), 4);
	assert_int_equal(sent.bytes, 200000);
	assert_int_equal(send_two(), 0);
	must_be_same("2b", "k");
	must_read_parts(B);
	/* Also where other attributes are sent as well. */
	drop_part(&l, port[B], id, 3);
	assert_int_equal(set_attrs(A, "2b", "k", "younger", 7), 0);
	assert_int_equal(send_two(), 3);
	assert_int_equal(send_two(), 0);
	drop_chunk_of_object(&l, port[B], "2b", "large", 1);
	assert_int_equal(send_key(A, B, "2b", "large"), 0);
	assert_int_equal(sent.bytes, 66 * MIB);
	assert_int_equal(obj_check(at(B), "2b", "large", 66 * MIB, 3), 0);
	assert_int_equal(unit_number(B, "copy_bytes"), PARTS * 100000 + 66 * MIB);
	assert_int_equal(unit_number(B, "copy_uploads"), 0);
	loop_for(&l, 50 * NS_PER_MS);
	stop_pair();
	start_copies();
	must_be_same("2b", "k");
	must_read_parts(B);
	assert_int_equal(obj_check(at(B), "2b", "large", 66 * MIB, 3), 0);
	assert_int_equal(unit_number(B, "copy_bytes"), PARTS * 100000 + 66 * MIB);
	assert_int_equal(send_two(), 0);
	stop_pair();
	remove_pair();
}

/* The same of an upload in progress. */
static void
test_dropped_upload(void **state)
{
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_complete c;

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	assert_int_equal(upload_make(A, "2b", "k", NULL, 0, id), 0);
	for (uint32_t i = 1; i <= PARTS; i++)
		assert_int_equal(part_put(A, "2b", "k", id, i, 100000, 1), 0);
	assert_int_equal(send_two(), PARTS + 1);
	drop_chunk_of_part(&l, port[B], id, 2);
	assert_int_equal(send_two(), 1);
	assert_int_equal(sent.bytes, 100000);
	assert_int_equal(send_two(), 0);
	assert_int_equal(upload_complete(A, "2b", "k", id, PARTS, 1, &c), 0);
	assert_int_equal(send_two(), 1);
	must_be_same("2b", "k");
	must_read_parts(B);
	stop_pair();
	remove_pair();
}

/* It is the first that has lost it: a repair brings it back from the second. */
static void
test_repair_dropped(void **state)
{
	static struct store_obj old;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct store_part part;

	make_pair(256 * MIB);
	start_copies();
	make_buckets();
	make_of_parts(id);
	assert_int_equal(send_two(), PARTS + 2);
	drop_part(&l, port[A], id, 2);
	drop_chunk_of_part(&l, port[A], id, 4);
	assert_int_equal(obj_open(at(A), "2b", "k", &old), 0);
	assert_int_equal(store_obj_part_at(&old, 1, &part), -EBADMSG);
	store_close(port[A], &old);
	assert_int_equal(repair("k"), 0);
	assert_int_equal(sent.changes, 2);
	assert_int_equal(sent.bytes, 200000);
	must_be_same("2b", "k");
	must_read_parts(A);
	assert_int_equal(used("2b").bytes, 2 * PARTS * 100000);
	assert_int_equal(repair("k"), 0);
	assert_int_equal(sent.changes, 0);
	loop_for(&l, 50 * NS_PER_MS);
	stop_pair();
	start_copies();
	must_be_same("2b", "k");
	must_read_parts(A);
	assert_int_equal(used("2b").bytes, 2 * PARTS * 100000);
	/* It goes with its object, as any part. */
	assert_int_equal(obj_delete(at(A), "2b", "k", NULL), 1);
	assert_int_equal(used("2b").bytes, 0);
	stop_pair();
	remove_pair();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),          cmocka_unit_test(test_walk),
		cmocka_unit_test(test_counts),         cmocka_unit_test(test_starts),
		cmocka_unit_test(test_pack),           cmocka_unit_test(test_fsck),
		cmocka_unit_test(test_copy),           cmocka_unit_test(test_copy_refused),
		cmocka_unit_test(test_differs),        cmocka_unit_test(test_hints),
		cmocka_unit_test(test_part_goes),      cmocka_unit_test(test_repair),
		cmocka_unit_test(test_repair_parts),   cmocka_unit_test(test_repair_refused),
		cmocka_unit_test(test_dropped),        cmocka_unit_test(test_dropped_upload),
		cmocka_unit_test(test_repair_dropped),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_copies", tests, NULL, NULL);
}
