/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads in the store on files: parts at every border up to a chunk's, as many parts as there may be,
 * restarts between any two steps, space that comes back, and fsck.  SEED= repeats the choices.
 */
#include "crumbs.h"
#include "fixture.h"

static uint64_t rng;

#define IDS STORE_UPLOAD_ID_BYTES

static void
restart(void)
{
	close_store();
	open_store();
}

static int
setup(void **state)
{
	rng = seed_from_env();
	return make_store(640 * MIB);
}

/* ---- blocking ---- */

static int
upload_try(const char *key, uint8_t id[IDS])
{
	static struct store_upload u;
	struct store_key k = key_of("b", key);
	int r;

	op_arm(&u.op, l.p);
	r = store_upload_create(l.p, &k, "attrs", 5, &u);
	r = r ? r : op_wait(&l, &u.op);
	memcpy(id, u.id, IDS);
	return r;
}

static void
upload_make(const char *key, uint8_t id[IDS])
{
	assert_int_equal(upload_try(key, id), 0);
}

static int
upload_abort(const char *key, const uint8_t id[IDS])
{
	static struct store_upload u;
	struct store_key k = key_of("b", key);
	int r;

	op_arm(&u.op, l.p);
	r = store_upload_abort(l.p, &k, id, &u);
	return r ? r : op_wait(&l, &u.op);
}

static struct store_etag
etag_of(uint32_t number)
{
	struct store_etag e = { .parts = 0 };

	memcpy(e.sum, &number, sizeof number);
	return e;
}

struct part {
	uint32_t number;
	uint64_t size, seed;
};

/* One part after the other, pieces one after the other. */
static int
part_put_sum(const char *key, const uint8_t id[IDS], const struct part *part, const uint64_t *crc)
{
	static struct store_put put;
	static struct store_write w;
	struct store_key k = key_of("b", key);
	struct store_commit c = { .meta.etag = etag_of(part->number) };
	char small[STORE_INLINE_MAX + 8];
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	int r = store_put_init_part(l.p, &put, &k, id, part->number, part->size);

	for (uint64_t off = 0; r == 0 && part->size > STORE_INLINE_MAX && off < part->size;) {
		uint64_t n = part->size - off < STORE_PIECE ? part->size - off : STORE_PIECE;

		fill(b->mem, n, part->seed, off);
		off += n;
		if (off == part->size) {
			c.last = b;
			c.last_len = (uint32_t)n;
			break;
		}
		op_arm(&w.op, l.p);
		r = store_put_write(l.p, &put, &w, b, (uint32_t)n, false);
		if (r == 0)
			r = op_wait(&l, &w.op);
	}
	if (part->size <= STORE_INLINE_MAX) {
		fill(small, part->size, part->seed, 0);
		c.inline_data = small;
		c.inline_len = (uint32_t)part->size;
	}
	if (crc) {
		c.have_expect_crc64 = true;
		c.expect_crc64 = *crc;
	}
	if (r == 0) {
		op_arm(&put.op, l.p);
		r = store_put_commit(l.p, &put, &c);
		if (r == 0)
			r = op_wait(&l, &put.op);
	}
	store_put_abort(l.p, &put);
	bufpool_put(&l.bufs, b);
	return r;
}

static int
part_put(const char *key, const uint8_t id[IDS], const struct part *part)
{
	return part_put_sum(key, id, part, NULL);
}

static int
upload_complete(const char *key, const uint8_t id[IDS], const struct part *parts, uint32_t nr,
		struct store_complete *c)
{
	struct store_part_ref *refs = calloc(nr, sizeof *refs);
	struct store_key k = key_of("b", key);
	int r;

	for (uint32_t i = 0; i < nr; i++)
		refs[i] = (struct store_part_ref){ .number = parts[i].number,
						   .etag = etag_of(parts[i].number) };
	*c = (struct store_complete){ .parts = refs, .part_nr = nr, .meta.etag = { .parts = nr } };
	op_arm(&c->op, l.p);
	r = store_upload_complete(l.p, &k, id, c);
	r = r < 0 ? r : r > 0 ? c->op.result : op_wait(&l, &c->op);
	free(refs);
	return r;
}

/* ---- what parts made ---- */

static void
compare(const struct part *parts, uint64_t off, const char *mem, uint64_t len)
{
	static char want[STORE_PIECE + 16];
	uint32_t i = 0;

	for (; len; i++) {
		uint64_t n = parts[i].size, at;

		if (off >= n) {
			off -= n;
			continue;
		}
		at = off & ~(uint64_t)7;
		n = n - off < len ? n - off : len;
		n = n < STORE_PIECE ? n : STORE_PIECE;
		fill(want, n + 8, parts[i].seed, at);
		assert_memory_equal(mem, want + (off - at), n);
		mem += n;
		len -= n;
		off += n;
		i--;
	}
}

static void
read_range(struct store_obj *obj, const struct part *parts, uint64_t off, uint64_t len)
{
	static struct store_read rd;
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);

	while (len) {
		uint32_t skew, n = store_read_plan(obj, off, len, STORE_PIECE, &skew);
		uint64_t got = n - skew < len ? n - skew : len;
		int r;

		op_arm(&rd.op, l.p);
		r = store_read(l.p, obj, &rd, b, off - skew, n);
		assert_int_equal(r == 0 ? op_wait(&l, &rd.op) : r, (int)n);
		compare(parts, off, b->mem + skew, got);
		off += got;
		len -= got;
	}
	bufpool_put(&l.bufs, b);
}

static void
expect(const char *key, const struct part *parts, uint32_t nr, unsigned ranges)
{
	static struct store_obj obj;
	uint64_t size = 0;

	for (uint32_t i = 0; i < nr; i++)
		size += parts[i].size;
	assert_int_equal(obj_open(&l, "b", key, &obj), 0);
	assert_int_equal(obj.part_nr, nr);
	assert_true(obj.size_bytes == size);
	read_range(&obj, parts, 0, size);
	for (unsigned i = 0; i < ranges; i++) {
		uint64_t from = rnd(&rng) % size, len = 1 + rnd(&rng) % (size - from);

		read_range(&obj, parts, from, len < 3 * MIB ? len : 1 + len % (3 * MIB));
	}
	store_close(l.p, &obj);
}

static void
on_line(void *cookie, const char *line)
{
	print_message("fsck: %s\n", line);
}

/* ---- tests ---- */

static void
test_borders(void **state)
{
	const uint64_t granule = STORE_GRANULE, chunk = 64 * MIB;
	struct part parts[] = { { 1, granule - 1, 1 },
				{ 2, granule, 2 },
				{ 3, granule + 1, 3 },
				{ 4, MIB - 1, 4 },
				{ 5, MIB, 5 },
				{ 6, MIB + 1, 6 },
				{ 7, 1, 7 },
				{ 8, chunk - 1, 8 },
				{ 9, chunk, 9 },
				{ 10, chunk + 1, 10 },
				{ 11, 0, 11 },
				{ 12, 5 * MIB + 12345, 12 },
				{ 13, chunk + 777, 13 },
				{ 14, granule + 1, 14 } };
	const uint32_t nr = sizeof parts / sizeof *parts;
	struct store_complete c;
	uint64_t before = disk_info().free_bytes;
	uint8_t id[IDS];

	upload_make("borders", id);
	for (uint32_t i = nr; i-- > 0;)
		assert_int_equal(part_put("borders", id, &parts[i]), 0);
	assert_int_equal(upload_complete("borders", id, parts, nr, &c), 0);
	expect("borders", parts, nr, 200);
	restart();
	expect("borders", parts, nr, 50);
	assert_int_equal(upload_complete("borders", id, parts, nr, &c), 0);
	assert_true(c.was_done);
	close_store();
	assert_int_equal(store_fsck(&conf, false, on_line, NULL), 0);
	open_store();
	/* with other attributes, and then away */
	{
		static struct store_del op;
		struct store_key k = key_of("b", "borders");

		op_arm(&op.op, l.p);
		assert_int_equal(store_set_attrs(l.p, &k, 0, "other", 5, &op), 0);
		assert_int_equal(op_wait(&l, &op.op), 0);
	}
	restart();
	expect("borders", parts, nr, 20);
	assert_int_equal(obj_delete(&l, "b", "borders", NULL), 1);
	wait_free(before, 0);
	close_store();
	assert_int_equal(store_fsck(&conf, false, on_line, NULL), 0);
	open_store();
}

/* Restarts between any two steps: what was acknowledged is there, and the upload goes on. */
static void
test_restarts(void **state)
{
	struct part parts[] = { { 1, 3 * MIB + 1, 21 }, { 5, 100, 22 }, { 9, 65 * MIB + 3, 23 } };
	struct part other = { 5, 9 * MIB, 24 }, extra = { 6, 2 * MIB, 25 };
	uint64_t before = disk_info().free_bytes;
	struct store_complete c;
	uint8_t id[IDS], gone[IDS];
	struct store_key k = key_of("b", "re");
	char attrs[8];
	uint32_t len;

	upload_make("re", id);
	upload_make("re", gone);
	restart();
	assert_int_equal(part_put("re", gone, &parts[0]), 0);
	assert_int_equal(part_put("re", id, &other), 0);
	restart();
	assert_int_equal(part_put("re", id, &parts[0]), 0);
	assert_int_equal(part_put("re", id, &extra), 0);
	assert_int_equal(part_put("re", id, &parts[1]), 0);
	restart();
	assert_int_equal(part_put("re", id, &parts[2]), 0);
	assert_int_equal(upload_stat(&l, &k, id, attrs, sizeof attrs, &len), 0);
	assert_true(len == 5 && memcmp(attrs, "attrs", 5) == 0);
	assert_int_equal(upload_abort("re", gone), 0);
	restart();
	assert_int_equal(upload_stat(&l, &k, gone, NULL, 0, NULL), -ENOENT);
	assert_int_equal(upload_complete("re", id, parts, 3, &c), 0);
	restart();
	expect("re", parts, 3, 20);
	assert_int_equal(upload_stat(&l, &k, id, NULL, 0, NULL), -ENOENT);
	assert_int_equal(obj_delete(&l, "b", "re", NULL), 1);
	wait_free(before, 0);
}

/* An upload that nobody ends is gone with its bucket; its space too, and another's id is another. */
static void
test_bucket(void **state)
{
	struct part part = { 3, 70 * MIB + 5, 31 };
	uint64_t before = disk_info().free_bytes;
	uint8_t id[IDS], again[IDS];
	struct store_key k = key_of("b", "in bucket");

	for (int i = 0; i < 2; i++) {
		upload_make("in bucket", id);
		assert_int_equal(part_put("in bucket", id, &part), 0);
		if (i)
			restart();
		assert_int_equal(bucket_remove(&l, "b"), 0);
		assert_int_equal(bucket_make(&l, "b"), 0);
		assert_int_equal(upload_stat(&l, &k, id, NULL, 0, NULL), -ENOENT);
		assert_int_equal(part_put("in bucket", id, &part), -ENOENT);
		upload_make("in bucket", again);
		assert_true(memcmp(id, again, IDS) != 0);
		restart();
		assert_int_equal(upload_stat(&l, &k, again, NULL, 0, NULL), 0);
		assert_int_equal(upload_abort("in bucket", again), 0);
		wait_free(before, 0);
	}
}

/* ---- as many parts as there may be ---- */

#define MANY STORE_PART_NR_MAX
#define AT_ONCE 64

struct slot {
	struct store_put put;
	char bytes[STORE_INLINE_MAX + 8];
};
static struct slot slots[AT_ONCE];
static struct part many[MANY];

static void
slot_begin(struct slot *s, const uint8_t id[IDS], const struct part *part)
{
	struct store_key k = key_of("b", "many");
	struct store_commit c = { .meta.etag = etag_of(part->number),
				  .inline_data = s->bytes,
				  .inline_len = (uint32_t)part->size };

	fill(s->bytes, part->size, part->seed, 0);
	assert_int_equal(store_put_init_part(l.p, &s->put, &k, id, part->number, part->size), 0);
	op_arm(&s->put.op, l.p);
	assert_int_equal(store_put_commit(l.p, &s->put, &c), 0);
}

static void
put_many(const uint8_t id[IDS])
{
	uint32_t next = 0, done = 0;
	bool busy[AT_ONCE] = { false };

	while (done < MANY) {
		for (int i = 0; i < AT_ONCE; i++) {
			struct slot *s = &slots[i];

			if (busy[i] && !s->put.op.port) {
				assert_int_equal(s->put.op.result, 0);
				busy[i] = false;
				done++;
			}
			if (!busy[i] && next < MANY) {
				busy[i] = true;
				slot_begin(s, id, &many[next++]);
			}
		}
		loop_turn(&l);
	}
}

static uint32_t listed;

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	assert_int_equal(part->number, listed + 1);
	assert_true(part->size_bytes == many[listed].size);
	listed++;
	return true;
}

static void
test_many_parts(void **state)
{
	struct store_part_list pl = { .max = UINT32_MAX, .part = on_part };
	uint64_t before = disk_info().free_bytes;
	struct store_key k = key_of("b", "many");
	static struct store_obj obj;
	struct store_complete c;
	struct store_part part;
	uint8_t id[IDS];
	int r;

	for (uint32_t i = 0; i < MANY; i++)
		many[i] = (struct part){ i + 1, 1 + rnd(&rng) % 200, i };
	upload_make("many", id);
	put_many(id);
	op_arm(&pl.op, l.p);
	r = store_list_parts(l.p, &k, id, &pl);
	assert_int_equal(r == 0 ? op_wait(&l, &pl.op) : pl.op.result, MANY);
	/* The list takes many units, and no two of those that are free lie side by side. */
	make_crumbs(&l);
	assert_int_equal(upload_complete("many", id, many, MANY, &c), 0);
	restart();
	assert_int_equal(upload_complete("many", id, many, MANY, &c), 0);
	assert_true(c.was_done);
	assert_int_equal(obj_open(&l, "b", "many", &obj), 0);
	assert_int_equal(obj.part_nr, MANY);
	for (uint64_t i = 0, off = 0; i < MANY; off += many[i++].size) {
		assert_int_equal(store_obj_part_at(&obj, (uint32_t)i, &part), 0);
		assert_true(part.off_bytes == off && part.number == i + 1);
	}
	for (int i = 0; i < 300; i++) {
		uint64_t from = rnd(&rng) % obj.size_bytes, len = 1 + rnd(&rng) % 300;

		read_range(&obj, many, from, len < obj.size_bytes - from ? len : obj.size_bytes - from);
	}
	store_close(l.p, &obj);
	assert_int_equal(obj_delete(&l, "b", "many", NULL), 1);
	/* But for what the snapshots take that were made meanwhile. */
	wait_free(before, 16 * MIB);
}

/* Uploads take the index's memory, and are refused when there is none; ended, they give it back. */
static void
test_index_full(void **state)
{
	static struct store_upload u;
	static char attrs[STORE_ATTRS_MAX];
	static uint8_t id[4096][IDS];
	struct store_key k = key_of("b", "full");
	uint32_t nr = 0;
	int r = 0;

	close_store();
	conf.disks.index_bytes = 4 * MIB;
	open_store();
	for (nr = 0; nr < 4096; nr++) {
		op_arm(&u.op, l.p);
		r = store_upload_create(l.p, &k, attrs, sizeof attrs, &u);
		r = r ? r : op_wait(&l, &u.op);
		if (r < 0)
			break;
		memcpy(id[nr], u.id, IDS);
	}
	assert_int_equal(r, -ENOSPC);
	assert_true(nr > 100);
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(upload_abort("full", id[i]), 0);
	/* Memory comes back by and by. */
	wait_until((r = upload_try("full", id[0])) != -ENOSPC)
		loop_for(&l, 10 * NS_PER_MS);
	assert_int_equal(r, 0);
	assert_int_equal(upload_abort("full", id[0]), 0);
	close_store();
	conf.disks.index_bytes = 64 * MIB;
	open_store();
}

/* A part's checksum is compared however small the part: none, in the record, in a piece, in several. */
static void
test_part_sums(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 100, STORE_INLINE_MAX, STORE_INLINE_MAX + 1, 70000, 3 * MIB };
	static char bytes[3 * MIB];
	uint8_t id[IDS];

	upload_make("sums", id);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct part p = { i + 1, sizes[i], 7 };
		uint64_t crc;

		fill(bytes, p.size, p.seed, 0);
		crc = crc64_nvme(0, bytes, p.size) ^ 1;
		assert_int_equal(part_put_sum("sums", id, &p, &crc), -EILSEQ);
		crc ^= 1;
		assert_int_equal(part_put_sum("sums", id, &p, &crc), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_borders),    cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_bucket),     cmocka_unit_test(test_many_parts),
		cmocka_unit_test(test_index_full), cmocka_unit_test(test_part_sums),
	};

	return cmocka_run_group_tests(tests, setup, remove_store);
}
