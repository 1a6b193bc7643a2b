/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite: multipart uploads.  See store_contract.c. */
#include "tests/fake/store_contract_int.h"

#include "base/crc64.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

typedef uint8_t upload_id[STORE_UPLOAD_ID_BYTES];

/* ---- blocking calls ---- */

static int
create(const char *key, const char *attrs, upload_id id)
{
	static struct store_upload u;
	struct store_key k = sc_key_of(key);
	int r = sc_wait_for(
		&u.op, START(&u.op, store_upload_create(sc->port, &k, attrs, (uint32_t)strlen(attrs), &u)));

	memcpy(id, u.id, sizeof u.id);
	return r;
}

static int
abort_upload(const char *key, const upload_id id)
{
	static struct store_upload u;
	struct store_key k = sc_key_of(key);

	return sc_wait_for(&u.op, START(&u.op, store_upload_abort(sc->port, &k, id, &u)));
}

static int
stat_upload(const char *key, const upload_id id)
{
	struct store_key k = sc_key_of(key);

	return sc_upload_stat(&k, id, NULL, NULL, 0, NULL);
}

/* A part: [start, start + size) of the pattern, its ETag and attributes by number. */
static int
put_part_by(const char *key, const upload_id id, uint32_t number, size_t start, size_t size, enum how how,
	    unsigned etag)
{
	static struct putting pt;

	memset(&pt, 0, sizeof pt);
	pt.upload_id = id;
	pt.part_number = number;
	pt.commit.meta.etag = sc_etag_no(etag);
	pt.commit.meta.attrs = sc_pattern + number;
	pt.commit.meta.attrs_len = number % STORE_PART_ATTRS_MAX;
	return sc_put_end(&pt, sc_put_begin(&pt, key, start, size, how, STORE_PIECE, sc_rnd() % 2));
}

static int
put_part(const char *key, const upload_id id, uint32_t number, size_t start, size_t size)
{
	return put_part_by(key, id, number, start, size, size && sc_rnd() % 2 ? HOW_WRITE : HOW_COMMIT,
			   number);
}

static int
complete_as(const char *key, const upload_id id, struct store_complete *c)
{
	struct store_key k = sc_key_of(key);

	return sc_wait_for(&c->op, START(&c->op, store_upload_complete(sc->port, &k, id, c)));
}

static struct store_complete
completion(struct store_part_ref *refs, uint32_t nr)
{
	return (struct store_complete){
		.parts = refs,
		.part_nr = nr,
		.meta = { .etag = sc_etag_no(77), .attrs = "whole", .attrs_len = 5, .mtime_ns = 4711 }
	};
}

static struct store_part_ref
ref_of(uint32_t number)
{
	return (struct store_part_ref){ .number = number, .etag = sc_etag_no(number) };
}

struct pages {
	struct store_part_list pl;
	uint32_t number[64], nr;
	uint64_t size[64];
};

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct pages *pg = (struct pages *)pl;
	struct store_etag etag = sc_etag_no(part->number);

	assert_true(pg->nr < 64);
	assert_memory_equal(&part->etag, &etag, sizeof etag);
	assert_int_equal(part->attrs_len, part->number % STORE_PART_ATTRS_MAX);
	assert_memory_equal(part->attrs, sc_pattern + part->number, part->attrs_len);
	assert_true(part->mtime_ns > 0 && part->version > 0);
	pg->size[pg->nr] = part->size_bytes;
	pg->number[pg->nr++] = part->number;
	return true;
}

static int
list_parts(struct pages *pg, const char *key, const upload_id id, uint32_t after, uint32_t max)
{
	struct store_key k = sc_key_of(key);

	memset(pg, 0, sizeof *pg);
	pg->pl.after = after;
	pg->pl.max = max;
	pg->pl.part = on_part;
	return sc_wait_for(&pg->pl.op, START(&pg->pl.op, store_list_parts(sc->port, &k, id, &pg->pl)));
}

/* ---- reading what parts made ---- */

/* Any range, as the plan cuts it. */
static void
read_range(struct store_obj *obj, const unsigned char *want, uint64_t off, uint64_t len, enum buf_class cls)
{
	struct store_read rd;
	struct buf *b = bufpool_get(sc->bufs, cls);

	assert_non_null(b);
	while (len) {
		uint32_t skew, n = store_read_plan(obj, off, len, b->cap_bytes, &skew), got;

		assert_true(n > skew && n <= b->cap_bytes && skew < STORE_GRANULE && skew <= off);
		assert_int_equal(
			sc_wait_for(&rd.op, START(&rd.op, store_read(sc->port, obj, &rd, b, off - skew, n))),
			(int)n);
		got = n - skew < len ? n - skew : (uint32_t)len;
		assert_memory_equal(b->mem + rd.lead + skew, want + off, got);
		off += got;
		len -= got;
	}
	bufpool_put(sc->bufs, b);
}

#define WHOLE_MAX ((size_t)24 << 20)

struct whole {
	unsigned char *bytes;
	size_t size;
	uint32_t nr;
	struct store_part_ref ref[64];
	size_t part_size[64];
};

static void
whole_add(struct whole *w, uint32_t number, size_t start, size_t size)
{
	assert_true(w->size + size <= WHOLE_MAX);
	memcpy(w->bytes + w->size, sc_pattern + start, size);
	w->size += size;
	w->part_size[w->nr] = size;
	w->ref[w->nr++] = ref_of(number);
}

static void
expect_whole(const char *key, const struct whole *w, unsigned ranges)
{
	struct store_obj obj;
	uint64_t off = 0;

	assert_int_equal(sc_open_obj(key, &obj), 0);
	assert_int_equal(obj.part_nr, w->nr);
	assert_true(obj.size_bytes == w->size);
	assert_true(obj.crc64 == crc64_nvme(0, w->bytes, w->size));
	for (uint32_t i = 0; i < w->nr; i++) {
		struct store_part part, again;
		struct store_etag etag = sc_etag_no(w->ref[i].number);

		assert_int_equal(store_obj_part_at(&obj, i, &part), 0);
		assert_int_equal(part.number, w->ref[i].number);
		assert_true(part.off_bytes == off && part.size_bytes == w->part_size[i]);
		assert_true(part.crc64 == crc64_nvme(0, w->bytes + off, w->part_size[i]));
		assert_memory_equal(&part.etag, &etag, sizeof etag);
		assert_int_equal(part.attrs_len, part.number % STORE_PART_ATTRS_MAX);
		assert_memory_equal(part.attrs, sc_pattern + part.number, part.attrs_len);
		assert_int_equal(store_obj_part(&obj, part.number, &again), 0);
		assert_true(again.off_bytes == off);
		off += part.size_bytes;
	}
	assert_int_equal(store_obj_part_at(&obj, w->nr, &(struct store_part){ 0 }), -ENOENT);
	assert_int_equal(store_obj_part(&obj, STORE_PART_NR_MAX, &(struct store_part){ 0 }), -ENOENT);
	read_range(&obj, w->bytes, 0, w->size, BUF_LARGE);
	for (unsigned i = 0; w->size && i < ranges; i++) {
		uint64_t from = sc_rnd() % w->size, len = 1 + sc_rnd() % (w->size - from);

		if (sc_rnd() % 2 && len > 200000)
			len = 1 + sc_rnd() % 200000;
		read_range(&obj, w->bytes, from, len, sc_rnd() % 2 ? BUF_LARGE : BUF_SMALL);
	}
	store_close(sc->port, &obj);
}

/* ---- an upload from its beginning to its end ---- */

/* What is open stays, and the upload is forgotten with its object. */
static void
replaced_while_open(const upload_id id, struct whole *w, struct store_obj *obj)
{
	struct store_complete c = completion(w->ref, w->nr);

	assert_int_equal(sc_put("up", 3, 100000), 0);
	assert_int_equal(complete_as("up", id, &c), -ENOENT);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(sc_put("reuse", 77, 300000), 0);
		sc->turn(sc);
	}
	read_range(obj, w->bytes, 0, w->size, BUF_LARGE);
	store_close(sc->port, obj);
}

void
sc_test_upload(void **state)
{
	static const size_t sizes[] = { 300001, 1, 65536, 0, 5000000, 255, 1048577 };
	struct whole w = { .bytes = malloc(WHOLE_MAX) };
	struct store_key k = sc_key_of("up");
	struct store_complete c;
	struct store_obj obj;
	upload_id id, other, none = { 9 };
	char attrs[16];
	uint32_t len = 0;
	uint64_t ctime = 0;
	struct pages pg;

	assert_int_equal(create("up", "for later", id), 0);
	assert_int_equal(create("up", "", other), 0);
	assert_true(memcmp(id, other, sizeof id) != 0);
	assert_int_equal(sc_upload_stat(&k, id, &ctime, attrs, sizeof attrs, &len), 0);
	assert_true(ctime > 0 && len == 9 && memcmp(attrs, "for later", 9) == 0);
	assert_int_equal(stat_upload("up", none), -ENOENT);
	assert_int_equal(stat_upload("other", id), -ENOENT);
	assert_int_equal(put_part("up", none, 1, 0, 10), -ENOENT);
	assert_int_equal(put_part("up", id, 0, 0, 10), -EINVAL);
	assert_int_equal(put_part("up", id, STORE_PART_NR_MAX + 1, 0, 10), -EINVAL);
	assert_int_equal(sc_open_obj("up", &obj), -ENOENT);
	/* in any order, some twice, one of them not wanted in the end */
	assert_int_equal(put_part("up", id, 9, 5, 70000), 0);
	for (unsigned i = 7; i-- > 0;) {
		assert_int_equal(put_part("up", id, 10 * (i + 1), 1000 * i, sizes[i] / 2 + 3), 0);
		assert_int_equal(put_part("up", id, 10 * (i + 1), 1000 * i, sizes[i]), 0);
	}
	for (unsigned i = 0; i < 7; i++)
		whole_add(&w, 10 * (i + 1), 1000 * i, sizes[i]);
	assert_int_equal(list_parts(&pg, "up", id, 0, 100), 8);
	assert_int_equal(pg.number[0], 9);
	for (unsigned i = 0; i < 7; i++)
		assert_true(pg.number[i + 1] == 10 * (i + 1) && pg.size[i + 1] == sizes[i]);
	assert_false(pg.pl.more);
	assert_int_equal(list_parts(&pg, "up", id, 10, 2), 2);
	assert_true(pg.number[0] == 20 && pg.number[1] == 30 && pg.pl.more);
	assert_int_equal(list_parts(&pg, "up", id, 70, 2), 0);
	assert_int_equal(list_parts(&pg, "up", none, 0, 2), -ENOENT);
	assert_int_equal(list_parts(&pg, "up", other, 0, 2), 0);
	c = completion(w.ref, w.nr);
	assert_int_equal(complete_as("up", id, &c), 0);
	assert_false(c.was_done);
	assert_true(c.size_bytes == w.size && c.crc64 == crc64_nvme(0, w.bytes, w.size) && c.version > 0);
	expect_whole("up", &w, 40);
	assert_int_equal(sc_open_obj("up", &obj), 0);
	assert_true(obj.version == c.version && obj.meta.mtime_ns == 4711 && obj.meta.attrs_len == 5);
	/* the upload is no more; the same again is success, another list is not */
	assert_int_equal(stat_upload("up", id), -ENOENT);
	assert_int_equal(put_part("up", id, 10, 0, 10), -ENOENT);
	assert_int_equal(abort_upload("up", id), -ENOENT);
	c = completion(w.ref, w.nr);
	c.pre.kind = PRE_ABSENT;
	assert_int_equal(complete_as("up", id, &c), 0);
	assert_true(c.was_done && c.version == obj.version && c.size_bytes == w.size && c.mtime_ns == 4711);
	c = completion(w.ref, w.nr - 1);
	assert_int_equal(complete_as("up", id, &c), -ENOENT);
	replaced_while_open(id, &w, &obj);
	assert_int_equal(abort_upload("up", other), 0);
	assert_int_equal(abort_upload("up", other), -ENOENT);
	assert_int_equal(sc_del("up"), 1);
	assert_int_equal(sc_del("reuse"), 1);
	free(w.bytes);
}

/* What is wrong with a list is told, and the upload goes on. */
void
sc_test_bad_completions(void **state)
{
	struct store_part_ref refs[4] = { ref_of(1), ref_of(2), ref_of(3), ref_of(5) };
	struct store_complete c;
	upload_id id;
	struct pages pg;

	assert_int_equal(create("bad", "", id), 0);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(put_part("bad", id, i, i, i * 1000), 0);
	c = completion(refs, 4);
	assert_int_equal(complete_as("bad", id, &c), -EBADR);
	assert_int_equal(c.bad, 3);
	c = completion(refs, 0);
	assert_int_equal(complete_as("bad", id, &c), -EINVAL);
	refs[1].etag = sc_etag_no(3);
	c = completion(refs, 3);
	assert_int_equal(complete_as("bad", id, &c), -EBADR);
	assert_int_equal(c.bad, 1);
	refs[1] = ref_of(2);
	refs[2].version = 1;
	c = completion(refs, 3);
	assert_int_equal(complete_as("bad", id, &c), -EBADR);
	assert_int_equal(c.bad, 2);
	refs[2] = ref_of(2);
	c = completion(refs, 3);
	assert_int_equal(complete_as("bad", id, &c), -EINVAL);
	assert_int_equal(c.bad, 2);
	refs[2] = ref_of(3);
	refs[0].number = 0;
	c = completion(refs, 3);
	assert_int_equal(complete_as("bad", id, &c), -EINVAL);
	assert_int_equal(c.bad, 0);
	refs[0] = ref_of(1);
	c = completion(refs, 3);
	c.part_min_bytes = 1500;
	assert_int_equal(complete_as("bad", id, &c), -EMSGSIZE);
	assert_int_equal(c.bad, 0);
	c.part_min_bytes = 1000;
	c.have_expect_size = true;
	c.expect_size_bytes = 6001;
	assert_int_equal(complete_as("bad", id, &c), -ERANGE);
	c.expect_size_bytes = 6000;
	c.have_expect_crc64 = true;
	assert_int_equal(complete_as("bad", id, &c), -EILSEQ);
	c.have_expect_crc64 = false;
	c.pre.kind = PRE_MATCH_ANY;
	assert_int_equal(complete_as("bad", id, &c), -ENOENT);
	assert_int_equal(stat_upload("bad", id), 0);
	assert_int_equal(list_parts(&pg, "bad", id, 0, 9), 3);
	assert_int_equal(sc_put("bad", 1, 1), 0);
	c.pre.kind = PRE_ABSENT;
	assert_int_equal(complete_as("bad", id, &c), -EEXIST);
	c.pre.kind = PRE_NONE;
	assert_int_equal(complete_as("bad", id, &c), 0);
	assert_int_equal(sc_del("bad"), 1);
}

/* No bytes at all, and few. */
void
sc_test_small_uploads(void **state)
{
	struct whole w = { .bytes = malloc(WHOLE_MAX) };

	for (unsigned n = 0; n < 4; n++) {
		struct store_complete c;
		upload_id id;

		w.size = w.nr = 0;
		assert_int_equal(create("small", "", id), 0);
		for (uint32_t i = 1; i <= 1 + n; i++) {
			size_t size = n < 2 ? 0 : (i * 97) % 300;

			assert_int_equal(put_part_by("small", id, i, i, size, HOW_COMMIT, i), 0);
			whole_add(&w, i, i, size);
		}
		c = completion(w.ref, w.nr);
		assert_int_equal(complete_as("small", id, &c), 0);
		expect_whole("small", &w, 20);
	}
	assert_int_equal(sc_del("small"), 1);
	free(w.bytes);
}

/* More parts than a record names, in an order of its own; and parts on both sides of every border. */
void
sc_test_odd_parts(void **state)
{
	static const size_t border[] = { STORE_GRANULE, 2 * STORE_GRANULE, STORE_PIECE,
					 STORE_PIECE + STORE_GRANULE };
	struct whole w = { .bytes = malloc(WHOLE_MAX) };
	struct store_complete c;
	upload_id id;

	for (unsigned round = 0; round < 4; round++) {
		w.size = w.nr = 0;
		assert_int_equal(create("odd", "", id), 0);
		for (uint32_t i = 0; i < 12; i++) {
			size_t size = border[(i + round) % 4] + (size_t)(sc_rnd() % 3) - 1,
			       start = sc_rnd() % OBJ_MAX;

			assert_int_equal(put_part("odd", id, 3 * i + 1, start, size), 0);
			whole_add(&w, 3 * i + 1, start, size);
		}
		c = completion(w.ref, w.nr);
		assert_int_equal(complete_as("odd", id, &c), 0);
		expect_whole("odd", &w, 60);
	}
	w.size = w.nr = 0;
	assert_int_equal(create("odd", "", id), 0);
	for (uint32_t i = 0; i < 64; i++) {
		assert_int_equal(put_part("odd", id, 100 + i, i, 1 + i * 37), 0);
		whole_add(&w, 100 + i, i, 1 + i * 37);
	}
	c = completion(w.ref, w.nr);
	assert_int_equal(complete_as("odd", id, &c), 0);
	expect_whole("odd", &w, 60);
	assert_int_equal(sc_del("odd"), 1);
	free(w.bytes);
}

struct ulisting {
	struct store_list ls;
	char got[1024];
	upload_id last;
};

static bool
on_upload(struct store_list *ls, const struct store_entry *e)
{
	struct ulisting *l = (struct ulisting *)ls;

	strncat(l->got, e->name, e->name_len);
	strcat(l->got, e->is_prefix ? "*," : ",");
	if (!e->is_prefix) {
		assert_true(e->attrs_len == 1 && *(const char *)e->attrs == 'x' && e->mtime_ns);
		memcpy(l->last, e->upload_id, sizeof l->last);
	}
	return true;
}

static int
list_uploads(struct ulisting *l, const char *prefix, const char *delimiter, const char *after,
	     const uint8_t *after_id, uint32_t max)
{
	memset(l, 0, sizeof *l);
	l->ls = (struct store_list){ .bucket = BUCKET,
				     .bucket_len = (uint16_t)strlen(BUCKET),
				     .prefix = prefix,
				     .prefix_len = (uint16_t)strlen(prefix),
				     .after = after,
				     .after_len = (uint16_t)strlen(after),
				     .after_id = after_id,
				     .delimiter = delimiter,
				     .delimiter_len = (uint16_t)strlen(delimiter),
				     .max = max,
				     .entry = on_upload };
	return sc_wait_for(&l->ls.op, START(&l->ls.op, store_list_uploads(sc->port, &l->ls)));
}

void
sc_test_list_uploads(void **state)
{
	static const char *const names[] = { "b", "a/1", "a/2", "a", "a", "a", "c/x/y", "ab" };
	static struct ulisting l;
	upload_id id[8], first;

	for (int i = 0; i < 8; i++)
		assert_int_equal(create(names[i], "x", id[i]), 0);
	assert_int_equal(list_uploads(&l, "", "", "", NULL, 100), 8);
	assert_string_equal(l.got, "a,a,a,a/1,a/2,ab,b,c/x/y,");
	assert_false(l.ls.more);
	assert_int_equal(list_uploads(&l, "", "/", "", NULL, 100), 7);
	assert_string_equal(l.got, "a,a,a,a/*,ab,b,c/*,");
	assert_int_equal(list_uploads(&l, "a", "/", "", NULL, 2), 2);
	assert_string_equal(l.got, "a,a,");
	assert_true(l.ls.more);
	memcpy(first, l.last, sizeof first);
	assert_int_equal(list_uploads(&l, "a", "/", "a", first, 2), 2);
	assert_string_equal(l.got, "a,a/*,");
	assert_int_equal(list_uploads(&l, "a", "/", "a/", NULL, 9), 1);
	assert_string_equal(l.got, "ab,");
	assert_int_equal(list_uploads(&l, "", "", "a", NULL, 2), 2);
	assert_string_equal(l.got, "a/1,a/2,");
	assert_int_equal(list_uploads(&l, "", "", "a/2", NULL, 2), 2);
	assert_string_equal(l.got, "ab,b,");
	assert_int_equal(list_uploads(&l, "c", "", "", NULL, 2), 1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(abort_upload(names[i], id[i]), 0);
	assert_int_equal(list_uploads(&l, "", "", "", NULL, 100), 0);
}

/* A part is on its way while its upload ends. */
void
sc_test_upload_races(void **state)
{
	static struct putting pt;
	struct store_key k = sc_key_of("race");

	for (int round = 0; round < 8; round++) {
		struct store_part_ref ref = ref_of(1);
		struct store_complete c = completion(&ref, 1);
		static struct store_upload u;
		upload_id id;
		int r, e;

		assert_int_equal(create("race", "", id), 0);
		assert_int_equal(put_part("race", id, 1, 5, 100), 0);
		memset(&pt, 0, sizeof pt);
		pt.upload_id = id;
		pt.part_number = 1 + (uint32_t)round % 2;
		pt.commit.meta.etag = sc_etag_no(9);
		r = sc_put_begin(&pt, "race", 1, round % 4 < 2 ? 50 : 2000000, HOW_COMMIT, STORE_PIECE, true);
		if (round < 4) {
			e = sc_wait_for(&u.op, START(&u.op, store_upload_abort(sc->port, &k, id, &u)));
			assert_int_equal(e, 0);
		} else {
			e = complete_as("race", id, &c);
			assert_true(e == 0 || (e == -EBADR && pt.part_number == 1));
		}
		r = sc_put_end(&pt, r);
		assert_true(r == 0 || r == -ENOENT);
		if (e == 0)
			assert_int_equal(stat_upload("race", id), -ENOENT);
		else
			assert_int_equal(abort_upload("race", id), 0);
		if (e == 0 && round >= 4)
			sc_expect_parts("race", 5, 100);
	}
	assert_int_equal(sc_del("race"), 1);
}

/* Uploads do not keep a bucket, and do not come back with the next of its name. */
void
sc_test_upload_bucket(void **state)
{
	struct store_key k = { "contract-up", "k", 11, 1 };
	static struct store_upload u;
	uint64_t version;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(sc_bucket_create("contract-up"), 0);
		assert_int_equal(
			sc_wait_for(&u.op, START(&u.op, store_upload_create(sc->port, &k, "", 0, &u))), 0);
		assert_int_equal(sc_upload_stat(&k, u.id, NULL, NULL, 0, NULL), 0);
		assert_int_equal(sc_bucket_delete("contract-up"), 0);
		assert_int_equal(sc_upload_stat(&k, u.id, NULL, NULL, 0, NULL), -ENXIO);
		assert_int_equal(sc_bucket_create("contract-up"), 0);
		assert_int_equal(sc_upload_stat(&k, u.id, NULL, NULL, 0, NULL), -ENOENT);
		assert_int_equal(sc_bucket_get_attrs("contract-up", NULL, 0, &version), 0);
		assert_int_equal(sc_bucket_delete("contract-up"), 0);
	}
	assert_int_equal(sc_wait_for(&u.op, START(&u.op, store_upload_create(sc->port, &k, "", 0, &u))),
			 -ENXIO);
}

/* ... and of an object made of parts. */
void
sc_test_set_attrs_parts(void **state)
{
	struct whole w = { .bytes = malloc(WHOLE_MAX) };
	struct store_complete c;
	struct store_obj obj;
	upload_id id;

	assert_int_equal(create("ap", "", id), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(put_part("ap", id, i, i, 100001 * i), 0);
		whole_add(&w, i, i, 100001 * i);
	}
	c = completion(w.ref, w.nr);
	assert_int_equal(complete_as("ap", id, &c), 0);
	assert_int_equal(sc_open_obj("ap", &obj), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(sc_set_attrs("ap", 0, sc_pattern, (uint32_t)i), 0);
		sc->turn(sc);
	}
	expect_whole("ap", &w, 10);
	c = completion(w.ref, w.nr);
	assert_int_equal(complete_as("ap", id, &c), 0);
	assert_true(c.was_done);
	assert_int_equal(sc_del("ap"), 1);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(sc_put("reuse", 77, 300000), 0);
		sc->turn(sc);
	}
	read_range(&obj, w.bytes, 0, w.size, BUF_LARGE);
	store_close(sc->port, &obj);
	assert_int_equal(sc_del("reuse"), 1);
	free(w.bytes);
}
