/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUTs in steps, whose keys go to another disk before their commit: shared by the tests over disks in memory and over disks on files, whose rigs
 * (mem_rig.h, disks_rig.h) come before this file, with has_two(), ask() and wait_for_mover().
 */
#ifndef GANTRY_TESTS_PUT_STEPS_H
#define GANTRY_TESTS_PUT_STEPS_H

#include "base/check.h"
#include "set/set_int.h"
#include "store/own_buf.h"
#include "store/user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRANULE STORE_GRANULE
#define MOST 60 /* PUTs at a time */

/* Returns a key with the number of its copies. */
static inline struct store_key
key_in(const char *bucket, const char *key)
{
	struct store_key k = key_of(bucket, key);

	k.copies = has_two(bucket) ? 2 : 1;
	return k;
}

/* Drains a disk, while the loop of the test turns. */
static inline void
drain(const char *disk)
{
	assert_int_equal(ask(DISK_DRAIN, disk), 0);
	wait_for_mover();
}

static inline int
home_of(const struct store_key *k)
{
	return set_primary(set_of(st), k);
}

/* Writes the name of a key that a disk has: another one with each call. */
static inline struct store_key
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

static inline uint64_t
free_bytes(int disk)
{
	struct store_unit_info info;

	store_unit_info(st, disk, &info);
	return info.free_bytes;
}

static inline void
wait_free(int disk, uint64_t want)
{
	for (uint64_t until = clock_ns() + PATIENCE_NS; free_bytes(disk) != want && clock_ns() < until;)
		store_user_turn(user);
	assert_int_equal(free_bytes(disk), want);
}

static inline void
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

static inline struct buf
buf_new(void)
{
	struct buf b = { .mem = NULL };

	check(store_buf_make(&b, STORE_PIECE));
	return b;
}

/* Begins it, and writes all that does not come with the commit; id NULL: an object. */
static inline void
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

static inline int
commit_start(struct slow *s)
{
	store_user_begin(user, &s->put.op);
	return store_put_commit(store_user_port(user, 0), &s->put, &s->c);
}

static inline int
commit_end(struct slow *s, int r)
{
	r = store_user_wait(user, &s->put.op, r);
	assert_true(r < 0 || !s->put.is_started);
	store_put_abort(store_user_port(user, 0), &s->put);
	free(s->last.mem);
	return r;
}

static inline int
commit_put(struct slow *s)
{
	return commit_end(s, commit_start(s));
}

static inline void
abort_put(struct slow *s)
{
	store_put_abort(store_user_port(user, 0), &s->put);
	free(s->last.mem);
}

static inline void
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
static inline void
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

static inline void
must_be_there(const struct slow *s, uint64_t version)
{
	must_be_on(s, version, 1 + has_two(s->key.bucket));
}

static inline int
delete_key(const struct store_key *k)
{
	struct store_del op;

	return STORE_DO(user, &op.op, store_delete(store_user_port(user, 0), k, NULL, &op));
}

/* ---- all kinds ---- */

struct kind {
	uint64_t size;
	bool rides; /* the last piece goes with the commit */
};
static const struct kind kinds[] = {
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
static inline void
must_leave_nothing(unsigned nr, const uint64_t *was, int disks_nr)
{
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(delete_key(&slow[i].key), 1);
	for (int i = 0; i < disks_nr; i++)
		wait_free(i, was[i]);
}

static inline void
note_room(uint64_t *was, int nr)
{
	for (int i = 0; i < nr; i++)
		was[i] = free_bytes(i);
}

/* PUTs of these kinds, which are all committed after the move of their keys from the first of nr disks. */
static inline void
put_kinds(const char *bucket, const struct kind *kind, unsigned kinds_nr, int nr)
{
	uint64_t was[DISKS];
	char name[32];

	note_room(was, nr);
	for (unsigned i = 0; i < kinds_nr; i++) {
		struct store_key k = key_at(name, bucket, 0);

		begin_put(&slow[i], &k, kind[i].size, kind[i].rides, NULL, 0);
	}
	drain(disks[0].path);
	for (unsigned i = 0; i < kinds_nr; i++) {
		assert_int_not_equal(home_of(&slow[i].key), 0);
		assert_int_equal(commit_put(&slow[i]), 0);
		assert_int_equal(slow[i].progress_ns != 0, slow[i].size != 0);
		must_be_there(&slow[i], slow[i].put.version);
	}
	must_leave_nothing(kinds_nr, was, nr);
}

static inline int
begin_upload(const struct store_key *k, uint8_t id[STORE_UPLOAD_ID_BYTES])
{
	struct store_upload u;
	int r = STORE_DO(user, &u.op, store_upload_create(store_user_port(user, 0), k, NULL, 0, &u));

	memcpy(id, u.id, sizeof u.id);
	return r;
}

/* Parts, which are all committed behind the move of their uploads; then these are completed. */
static inline void
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
	assert_int_equal(begin_upload(&k, id), 0);
	for (uint32_t i = 0; i < parts; i++)
		begin_put(&slow[i], &k, sizes[i], i != 0, id, i + 1);
	begin_put(&large, &k, 4 * MIB, true, id, 9);
	drain(disks[0].path);
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

#endif
