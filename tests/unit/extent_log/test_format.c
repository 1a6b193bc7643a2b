/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The on-disk formats: what is written is read again; cut off at any byte or with any bit flipped it is not.
 * With CORPUS=DIR it also writes its samples there, as a start for the fuzzers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "extent/disk/rules.h"
#include "extent/log/rec_codec.h"
#include "tests/fixtures/old_super.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static uint8_t buf[FMT_BLOCK_MAX] __attribute__((aligned(4096)));
static struct geometry geo;
static const uint8_t nonce[16] = { 1, 2, 3 };
static uint64_t exts[FMT_ENTRY_MAX];
static struct chunk_ref chunks[3];
static uint64_t map_exts[FMT_MAP_EXT_MAX];
static char attrs[200];

static struct store_key
key_of(const char *bucket, const char *key)
{
	return (struct store_key){ .bucket = bucket,
				   .key = key,
				   .bucket_len = (uint16_t)strlen(bucket),
				   .key_len = (uint16_t)strlen(key) };
}

static void
sample(const char *what, const char *name, const void *mem, size_t len)
{
	char path[512];
	FILE *f;

	if (!getenv("CORPUS"))
		return;
	snprintf(path, sizeof path, "%s/store_%s/%s", getenv("CORPUS"), what, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fwrite(mem, 1, len, f);
	fclose(f);
}

/* Records of every kind. */
#define RECORDS 11
static struct rec_view
record(int kind)
{
	static uint8_t keys[RECORDS][KEY_BYTES_MAX];
	static uint64_t place;
	static const uint8_t id[CHUNK_ID_BYTES] = "0123456789abcde";
	struct rec_view v = { .op = REC_PUT, .version = 77, .mtime_ns = 5, .crc64 = 99 };
	struct store_key k = key_of("bucket", "some/key");

	v.key = keys[kind];
	v.key_len = (uint16_t)key_object(keys[kind], &k);
	v.etag.parts = 3;
	memset(v.etag.sum, 7, 16);
	switch (kind) {
	case 0:
		v.op = REC_DELETE;
		break;
	case 1:
		v.body = BODY_INLINE;
		v.flags = REC_EXPIRES;
		v.expires_ns = 1234567890123;
		v.size_bytes = v.inline_len = 100;
		v.inline_data = attrs;
		v.attrs = attrs;
		v.attrs_len = 33;
		break;
	case 2:
		for (uint32_t i = 0; i < FMT_ENTRY_MAX; i++)
			exts[i] = ext_make(i * 3, 2);
		v.body = BODY_EXTENTS;
		v.entries = exts;
		v.entry_nr = FMT_ENTRY_MAX;
		v.size_bytes = 64 * 2 * 16384 - 8192;
		v.attrs = attrs;
		v.attrs_len = sizeof attrs;
		break;
	case 3:
		for (uint32_t i = 0; i < 3; i++)
			chunks[i] = (struct chunk_ref){ .index = i,
							.len_bytes = i < 2 ? FMT_CHUNK_BYTES : 5,
							.crc64 = i };
		v.body = BODY_MANIFEST;
		v.flags = REC_FLUSHED;
		v.entries = chunks;
		v.entry_nr = 3;
		v.size_bytes = 2 * (uint64_t)FMT_CHUNK_BYTES + 5;
		break;
	case 4: /* a chunk, its extents in a map */
	case 6: /* which lies in pieces */
		v.key_len = (uint16_t)key_chunk(keys[kind], id, 4);
		v.owner = keys[1];
		v.owner_len = (uint16_t)key_object(keys[1], &k);
		v.body = BODY_EXTENTS;
		v.flags = REC_MAPPED | REC_FLUSHED;
		v.entry_nr = 100;
		v.size_bytes = 100 * 16384 - 8192;
		for (uint32_t i = 0; i < FMT_MAP_EXT_MAX; i++)
			map_exts[i] = ext_make(5 + 2 * i, 1);
		v.map = (struct map_ref){ .ext = map_exts, .nr = 1, .len_bytes = 800, .crc64 = 1 };
		if (kind == 4)
			break;
		v.flags |= REC_MAP_LIST;
		v.map.nr = 3;
		v.entry_nr = 4096;
		v.size_bytes = 4096 * 16384 - 8192;
		v.map.len_bytes = 4096 * 8;
		break;
	case 7: /* side by side with others, to the end of the unit */
		place = place_make(7, 256 - 16);
		v.body = BODY_PACKED;
		v.flags = REC_FLUSHED | REC_SHARED;
		v.data_version = 12;
		v.entries = &place;
		v.entry_nr = 1;
		v.size_bytes = 1001;
		v.attrs = attrs;
		v.attrs_len = 33;
		break;
	case 8: /* of a bucket with two copies: an object, an upload, the bucket */
		k.copies = 2;
		v.key_len = (uint16_t)key_object(keys[kind], &k);
		v.body = BODY_INLINE;
		v.size_bytes = v.inline_len = 5;
		v.inline_data = attrs;
		break;
	case 9:
		k.copies = 2;
		v.key_len = (uint16_t)key_upload(keys[kind], &k, id);
		v.attrs = attrs;
		v.attrs_len = 12;
		break;
	case 10:
		v.key_len = (uint16_t)key_bucket(keys[kind], "bucket", 6);
		v.copies = 2;
		break;
	default:
		v.key_len = (uint16_t)key_bucket(keys[kind], "bucket", 6);
		v.copies = 1;
		break;
	}
	return v;
}

static void
test_record(void **state)
{
	for (int kind = 0; kind < RECORDS; kind++) {
		struct rec_view v = record(kind), w;
		size_t n = rec_encode(buf, &v);
		char name[16];

		snprintf(name, sizeof name, "%d", kind);
		sample("record", name, buf, n);
		assert_int_equal(n, rec_encoded_bytes(&v));
		assert_int_equal(rec_decode(buf, n, &geo, &w), n);
		assert_int_equal(rec_decode(buf, n + 64, &geo, &w), n);
		assert_int_equal(w.op, v.op);
		assert_int_equal(w.body, v.body);
		assert_int_equal(w.flags, v.flags);
		assert_true(w.version == 77 && w.size_bytes == v.size_bytes && w.mtime_ns == 5 &&
			    w.crc64 == 99);
		assert_memory_equal(&w.etag, &v.etag, sizeof v.etag);
		assert_int_equal(w.key_len, v.key_len);
		assert_memory_equal(w.key, v.key, v.key_len);
		assert_int_equal(w.entry_nr, v.entry_nr);
		if (v.entries)
			assert_memory_equal(w.entries, v.entries, v.entry_nr * rec_entry_bytes(v.body));
		assert_int_equal(w.owner_len, v.owner_len);
		assert_int_equal(w.attrs_len, v.attrs_len);
		assert_int_equal(w.copies, v.copies);
		assert_true(w.expires_ns == v.expires_ns);
		if (v.attrs_len)
			assert_memory_equal(w.attrs, v.attrs, v.attrs_len);
		if (v.inline_len)
			assert_memory_equal(w.inline_data, v.inline_data, v.inline_len);
		assert_true(w.map.nr == v.map.nr && w.map.len_bytes == v.map.len_bytes &&
			    w.map.crc64 == v.map.crc64);
		if (v.map.nr)
			assert_memory_equal(w.map.ext, v.map.ext, v.map.nr * sizeof(uint64_t));
		for (size_t cut = 0; cut < n; cut++)
			assert_int_equal(rec_decode(buf, cut, &geo, &w), -EBADMSG);
	}
}

static int
encode_and_decode(const struct rec_view *v)
{
	struct rec_view w;

	return rec_decode(buf, rec_encode(buf, v), &geo, &w);
}

/* What shares a unit lies in it, is flushed, an object, and of half a unit at most. */
static void
test_place_limits(void **state)
{
	struct rec_view v = record(7);
	uint64_t place, *at = (uint64_t *)(uintptr_t)v.entries;
	struct place_pages pg;

	assert_true(encode_and_decode(&v) > 0);
	v.size_bytes = 1024;
	assert_true(encode_and_decode(&v) > 0);
	v.size_bytes = 1025;
	assert_int_equal(encode_and_decode(&v), -EBADMSG); /* beyond its end */
	v.size_bytes = 0;
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	*at = place_make(7, 0);
	v.size_bytes = 8192;
	assert_true(encode_and_decode(&v) > 0);
	v.size_bytes = 8193;
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	*at = place_make(geo_units(&geo) - 1, 0);
	v.size_bytes = 300;
	assert_true(encode_and_decode(&v) > 0);
	*at = place_make(geo_units(&geo), 0);
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	v = record(7);
	v.flags &= (uint16_t)~REC_FLUSHED;
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	v = record(7);
	v.entry_nr = 0;
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	v = record(7);
	v.key = record(4).key;
	v.key_len = record(4).key_len;
	assert_int_equal(encode_and_decode(&v), -EBADMSG); /* a chunk */
	/* From the last bytes of a page to the first of the one behind the next. */
	place = place_make(3, 63);
	pg = place_pages(place, 4200);
	assert_true(pg.ext == ext_make(3, 1) && pg.off == 0 && pg.skew == 4032 && pg.len == 3 * 4096);
}

/* A map in pieces: as many as there may be and no more, all of them on the disk, with room for the list. */
static void
test_map_limits(void **state)
{
	struct rec_view v = record(6), w;
	size_t n;

	v.map.nr = FMT_MAP_EXT_MAX;
	assert_true(encode_and_decode(&v) > 0);
	v.map.nr = 2;
	assert_true(encode_and_decode(&v) > 0);
	v.entry_nr++;
	v.map.len_bytes += 8;
	assert_int_equal(encode_and_decode(&v), -EBADMSG); /* a little more than they hold */
	v = record(6);
	map_exts[2] = ext_make(geo_units(&geo) - 1, 2);
	assert_int_equal(encode_and_decode(&v), -EBADMSG); /* beyond the disk */
	v = record(6);
	map_exts[1] = 0;
	assert_int_equal(encode_and_decode(&v), -EBADMSG);
	for (uint64_t nr = 0; nr <= FMT_MAP_EXT_MAX + 1; nr += nr < 2 ? 1 : FMT_MAP_EXT_MAX - 1) {
		v = record(6);
		n = rec_encode(buf, &v);
		memcpy(buf + REC_HEAD_BYTES, &nr, sizeof nr);
		assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* not as many as there are */
	}
	v = record(6);
	n = rec_encode(buf, &v);
	buf[6] &= (uint8_t)~REC_MAPPED;
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* pieces of no map */
}

/* What no honest writer makes is refused. */
static void
test_record_limits(void **state)
{
	struct rec_view v, w;
	size_t n;

	v = record(2);
	exts[5] = ext_make(geo_units(&geo) - 1, 2);
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* beyond the disk */
	v = record(2);
	v.size_bytes += 65536;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* more bytes than extents */
	v = record(3);
	v.size_bytes++;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* chunks do not add up */
	v = record(1);
	v.inline_len--;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v = record(0);
	v.version = 0;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v = record(5);
	v.key_len = 1;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v = record(1);
	v.body = BODY_NONE;
	v.inline_len = 0;
	v.size_bytes = 0;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* an object without a body */
	v = record(1);
	v.copies = 1;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* copies are the bucket's */
	v = record(5);
	v.copies = REC_COPIES_MAX + 1;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v = record(1);
	v.flags = 0;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG); /* an expiry that the flags deny */
	v.flags = REC_EXPIRES;
	v.expires_ns = 0;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	/* Of one with two copies a flag says so, which earlier versions do not know: they would list no key of it. */
	v = record(10);
	n = rec_encode(buf, &v);
	assert_int_equal(buf[6], REC_COPIES);
	buf[6] = 0;
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v = record(5);
	n = rec_encode(buf, &v);
	assert_int_equal(buf[6], 0);
	buf[6] = REC_COPIES;
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	/* A bucket of an earlier version has one copy and does not say so. */
	v = record(5);
	v.copies = 0;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), n);
	assert_int_equal(w.copies, 0);
}

static uint32_t
make_block(enum block_kind kind)
{
	struct block_head h = { .kind = kind,
				.epoch = 3,
				.seq = 9,
				.lap = 1,
				.pos = 8192,
				.prev_crc = 5,
				.flushed_upto = 8,
				.new_epoch = kind == BLOCK_EPOCH ? 4 : 0 };
	uint32_t used = BLOCK_HEAD_BYTES;

	memset(buf, 0xaa, sizeof buf);
	for (int kind2 = 0; kind2 < 6; kind2++, h.record_nr++) {
		struct rec_view v = record(kind2);

		used += (uint32_t)rec_encode(buf + used, &v);
	}
	h.used_bytes = used;
	h.len_bytes = (uint32_t)align_up(used, FMT_ALIGN);
	block_seal(buf, &h, nonce);
	return h.len_bytes;
}

static void
test_block(void **state)
{
	static const uint8_t other[16] = { 1, 2, 4 };
	struct block_head h;
	uint32_t len = make_block(BLOCK_EPOCH);

	sample("logblock", "epoch", buf, len);
	len = make_block(BLOCK_RECORDS);
	sample("logblock", "records", buf, len);
	assert_int_equal(block_peek(buf), len);
	assert_true(block_claims(buf, &h) && h.epoch == 3);
	assert_int_equal(block_open(buf, len, nonce, &h), 0);
	assert_true(h.seq == 9 && h.lap == 1 && h.pos == 8192 && h.prev_crc == 5 && h.flushed_upto == 8 &&
		    h.record_nr == 6);
	/* another epoch's nonce does not open it */
	assert_int_equal(block_open(buf, len, other, &h), RULE_LOG_NONCE ? -EBADMSG : 0);
	for (uint32_t cut = 0; cut < len; cut++)
		assert_true(block_open(buf, cut, nonce, &h) < 0);
	for (uint32_t bit = 0; bit < len * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(block_open(buf, len, nonce, &h) < 0);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(block_open(buf, len, nonce, &h), 0);
}

static struct super
sample_super(void)
{
	struct super sb = { .gen = 4, .kind = SUPER_DIRECTORY, .geo = geo, .epoch = 2, .start_no = 9 };

	sb.snap[0] = (struct snap_ref){ .id = 3,
					.head_ext = ext_make(5, 64),
					.head_bytes = 4096,
					.block_nr = 1,
					.begin = { .seq = 4, .lap = 1, .pos = 4096, .epoch = 2 } };
	memset(sb.store_uuid, 1, 16);
	memset(sb.disk_uuid, 2, 16);
	super_table_of_one(&sb);
	return sb;
}

static void
test_super(void **state)
{
	static struct super sb, back;

	sb = sample_super();
	super_encode(buf, &sb);
	sample("super", "three", buf, 16384); /* the rest is zeros, which the fuzzer adds */
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), 0);
	assert_memory_equal(&back.snap, &sb.snap, sizeof sb.snap);
	assert_true(back.gen == 4 && back.epoch == 2 && back.version == 3 && back.start_no == 9);
	assert_memory_equal(&back.geo, &geo, sizeof geo);
	assert_memory_equal(&back.table, &sb.table, sizeof sb.table);
	for (size_t cut = 0; cut < FMT_SUPER_BYTES; cut += cut < 2048 ? 1 : 97)
		assert_true(super_decode(buf, cut, &back) < 0);
	for (uint32_t bit = 0; bit < FMT_SUPER_BYTES * 8; bit += bit < 8192 ? 1 : 61) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(super_decode(buf, FMT_SUPER_BYTES, &back) < 0);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	memset(buf, 0, FMT_SUPER_BYTES);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), -ENOENT);
}

/* Superblocks with a good CRC that say what cannot be. */
static void
test_super_nonsense(void **state)
{
	static struct super sb, back;

	for (int i = 0; i < 14; i++) {
		sb = sample_super();
		switch (i) {
		case 0:
			sb.geo.seg_nr += 100;
			break;
		case 1:
			sb.table.home[7] = 1;
			break;
		case 2:
			sb.table.first[4095] = 64;
			break;
		case 3:
			sb.table.second[5] = 0; /* as the first */
			break;
		case 4:
			sb.table.full[0] = 1; /* a second that there is not */
			break;
		case 5:
			sb.table.members = 0;
			break;
		case 6:
			sb.table.in = 3;
			break;
		case 7:
			sb.table.draining = 4;
			break;
		case 8:
			sb.start_no = 0;
			break;
		case 9:
			sb.start_no = FMT_START_NO_MAX + 1;
			break;
		case 10:
			sb.table.version = (uint64_t)10 << FMT_CHANGE_BITS | 1; /* of a start to come */
			break;
		case 11:
			sb.snap[0].id = 0;
			break;
		case 12:
			sb.snap[1] = (struct snap_ref){ .id = 2, .block_nr = 1, .begin = sb.snap[0].begin };
			break;
		default:
			sb.table.in = 0;
			break;
		}
		super_encode(buf, &sb);
		assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), -EBADMSG);
	}
	/* Two disks, and a slot with a second one: earlier versions, which know of none, refuse it. */
	sb = sample_super();
	sb.table.members = sb.table.in = 3;
	sb.table.home[1] = 1;
	sb.table.second[2] = 1;
	sb.table.full[0] = 4;
	super_encode(buf, &sb);
	sample("super", "copies", buf, 16384);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), 0);
	assert_memory_equal(&back.table, &sb.table, sizeof sb.table);
	assert_true(back.version == FMT_VERSION_COPIES);
	sb.table.second[2] = TABLE_NO_DISK;
	sb.table.full[0] = 0;
	super_encode(buf, &sb);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), 0);
	assert_true(back.version == FMT_VERSION);
}

/* A number below the oldest that is read, or above the newest, is another version; without an older one every lower
 * number is. */
static void
test_super_old(void **state)
{
	static struct super sb, back;

	sb = sample_super();
	super_encode(buf, &sb);
	sample("super", "one", buf, 2048);
	for (uint32_t version = 0; version < FMT_VERSION_MAX + 2; version++) {
		bool is_of_records = version > FMT_VERSION_COPIES && version <= FMT_VERSION_MAX;

		super_renumber(buf, version);
		/* 4 says of this map, which has no second disks, something that is not so. */
		assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back),
				 version == FMT_VERSION || is_of_records ? 0
				 : version == FMT_VERSION_COPIES         ? -EBADMSG
									 : -EPROTONOSUPPORT);
		assert_true(version == FMT_VERSION_COPIES || back.version == version);
		if (is_of_records)
			assert_int_equal(back.records_version, version);
	}
	fmt_oldest = OLD_VERSION;
	super_renumber(buf, OLD_VERSION);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), 0);
	assert_int_equal(back.version, OLD_VERSION);
	assert_true(back.gen == sb.gen && back.start_no == sb.start_no);
	assert_memory_equal(&back.table, &sb.table, sizeof sb.table);
	super_renumber(buf, OLD_VERSION - 1);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), -EPROTONOSUPPORT);
	fmt_oldest = FMT_VERSION;
}

/* The second superblock of a device never lies in its data. */
static void
test_super_tail(void **state)
{
	static struct super sb, back;
	uint64_t data_end;

	sb = sample_super();
	sb.kind = SUPER_DEVICE;
	data_end = FMT_DEVICE_HEAD_BYTES + sb.geo.log_bytes + sb.geo.seg_nr * sb.geo.seg_bytes;
	sb.geo.size_bytes = data_end + FMT_DEVICE_TAIL_BYTES;
	super_encode(buf, &sb);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), 0);
	assert_true(geo_second_off(&back.geo) == data_end);
	sb.geo.size_bytes -= 1;
	super_encode(buf, &sb);
	assert_int_equal(super_decode(buf, FMT_SUPER_BYTES, &back), -EBADMSG);
}

static void
test_snapshot(void **state)
{
	const uint64_t older[2] = { ext_make(77, 64), ext_make(5, 3) };
	struct snap_head h = { .id = 5,
			       .index = 2,
			       .next_ext = ext_make(9, 64),
			       .next_bytes = 1 << 20,
			       .older_id = 4,
			       .older_nr = 2 },
			 back;
	uint32_t used = SNAP_HEAD_BYTES, len = 16384;

	memset(buf, 0x55, sizeof buf);
	for (int kind = 1; kind < 6; kind++, h.record_nr++) {
		struct rec_view v = record(kind);

		used += (uint32_t)rec_encode(buf + used, &v);
	}
	memcpy(buf + used, older, sizeof older);
	h.used_bytes = used + sizeof older;
	snap_seal(buf, len, &h);
	sample("snapshot", "older", buf, len);
	assert_int_equal(snap_open(buf, len, &back), 0);
	assert_true(back.id == 5 && back.index == 2 && back.next_ext == h.next_ext &&
		    back.next_bytes == 1 << 20);
	assert_true(back.older_id == 4 && back.older_nr == 2);
	assert_true(snap_older(buf, &back, 0) == older[0] && snap_older(buf, &back, 1) == older[1]);
	for (uint32_t cut = 0; cut < len; cut++)
		assert_int_equal(snap_open(buf, cut, &back), -EBADMSG);
	for (uint32_t bit = 0; bit < len * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(snap_open(buf, len, &back), -EBADMSG);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* More of the older one than there is room for, or of one that has no number. */
	back = h;
	back.older_nr = (h.used_bytes - SNAP_HEAD_BYTES) / SNAP_OLDER_BYTES + 1;
	snap_seal(buf, len, &back);
	assert_int_equal(snap_open(buf, len, &back), -EBADMSG);
	back = h;
	back.older_id = 0;
	snap_seal(buf, len, &back);
	assert_int_equal(snap_open(buf, len, &back), -EBADMSG);
}

static void
test_keys(void **state)
{
	uint8_t key[KEY_BYTES_MAX];
	struct store_key k = key_of("b", "k");
	static char longest[STORE_KEY_MAX + 1];
	char text[40];
	int n = key_object(key, &k);

	assert_int_equal(n, 4);
	assert_true(key_ok(key, (size_t)n));
	key_text(text, sizeof text, key, (size_t)n);
	assert_string_equal(text, "b/k");
	memset(longest, 'x', sizeof longest);
	k.key = longest;
	k.key_len = STORE_KEY_MAX;
	n = key_object(key, &k);
	assert_true(key_ok(key, (size_t)n));
	assert_int_equal(key_bucket(key, longest, 64), -ENAMETOOLONG);
	assert_false(key_ok((const uint8_t *)"o\0k", 3));
	assert_false(key_ok((const uint8_t *)"ob\0", 3));
	assert_false(key_ok((const uint8_t *)"xb", 2));
	assert_false(key_ok((const uint8_t *)"b", 1));
}

/* With two copies the same layout, and a type of their own. */
static void
test_keys_of_two(void **state)
{
	uint8_t id[CHUNK_ID_BYTES] = { 0, 1, 0, 2 }, one[KEY_BYTES_MAX], two[KEY_BYTES_MAX];
	struct store_key k = key_of("b", "k");
	char text[60];
	int n;

	assert_int_equal(key_object(one, &k), 4);
	k.copies = 1;
	assert_int_equal(key_object(two, &k), 4);
	assert_memory_equal(one, two, 4);
	k.copies = 2;
	assert_int_equal(key_object(two, &k), 4);
	assert_memory_equal(two, "Ob\0k", 4);
	assert_true(key_ok(two, 4) && key_is_object(two[0]) && key_has_two(two[0]));
	assert_true(key_is_object(one[0]) && !key_has_two(one[0]) && !key_is_upload(one[0]));
	key_text(text, sizeof text, two, 4);
	assert_string_equal(text, "b/k");
	n = key_upload(two, &k, id);
	assert_int_equal(n, 4 + UPLOAD_TAIL_BYTES);
	assert_true(two[0] == KEY_UPLOAD2 && key_ok(two, (size_t)n) && key_is_upload(two[0]));
	key_text(text, sizeof text, two, (size_t)n);
	assert_string_equal(text, "b/k/00010002000000000000000000000000");
	two[3] = 0;
	assert_false(key_ok(two, (size_t)n));
	assert_false(key_ok((const uint8_t *)"Ob\0", 3));
	assert_true(store_place(&k) >= STORE_SLOT_NR);
	k.copies = 0;
	assert_int_equal(store_place(&k), table_slot("b", 1, "k", 1));
}

/* Uploads, their parts, and what stands behind a bucket's name. */
static void
test_upload_keys(void **state)
{
	static char longest[STORE_KEY_MAX], bucket[STORE_BUCKET_MAX];
	struct store_key k = { bucket, longest, sizeof bucket, sizeof longest };
	uint8_t id[CHUNK_ID_BYTES] = { 0, 1, 0, 2 }, key[KEY_BYTES_MAX];
	char text[60];
	int n;

	memset(bucket, 'b', sizeof bucket);
	memset(longest, 'k', sizeof longest);
	n = key_upload(key, &k, id);
	assert_int_equal(n, KEY_BYTES_MAX);
	assert_true(key_ok(key, (size_t)n));
	assert_false(key_ok(key, (size_t)n - 1));
	k = key_of("b", "k");
	n = key_upload(key, &k, id);
	assert_true(key_ok(key, (size_t)n));
	key_text(text, sizeof text, key, (size_t)n);
	assert_string_equal(text, "b/k/00010002000000000000000000000000");
	key[3] = 0; /* no key */
	assert_false(key_ok(key, (size_t)n));
	assert_false(key_ok((const uint8_t *)"ub\0", 3));
	n = key_part(key, id, 10000);
	assert_true(key_ok(key, (size_t)n));
	assert_int_equal(key_index(key), 10000);
	key_part(key, id, 10001);
	assert_false(key_ok(key, (size_t)n));
	key_part(key, id, 0);
	assert_false(key_ok(key, (size_t)n));
	n = key_battrs(key, "name", 4, 2);
	assert_int_equal(n, 7);
	assert_memory_equal(key, "aname\0002", 7);
	assert_true(key_ok(key, 7));
	assert_false(key_ok(key, 6));
	assert_false(key_ok((const uint8_t *)"a\0000", 3));
}

/* Objects made of parts, parts, and records that have another's extents. */
static void
test_upload_records(void **state)
{
	struct chunk_ref refs[3] = { { .index = 1, .len_bytes = 5 },
				     { .index = 7, .len_bytes = 0 },
				     { .index = 10000, .len_bytes = (uint64_t)5 << 30 } };
	struct rec_view v = { .op = REC_PUT,
			      .body = BODY_PARTS,
			      .flags = REC_SHARED,
			      .key = (const uint8_t *)"ob\0k",
			      .key_len = 4,
			      .version = 9,
			      .data_version = 3,
			      .size_bytes = 5 + ((uint64_t)5 << 30),
			      .entries = refs,
			      .entry_nr = 3 },
			w;
	uint8_t key[CHUNK_KEY_BYTES], id[CHUNK_ID_BYTES] = { 1 };
	size_t n = rec_encode(buf, &v);

	assert_int_equal(rec_decode(buf, n, &geo, &w), n);
	assert_true(w.data_version == 3 && w.entry_nr == 3 && w.body == BODY_PARTS);
	assert_memory_equal(w.entries, refs, sizeof refs);
	v.data_version = 9; /* not earlier */
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v.data_version = 3;
	v.flags = 0; /* not said */
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v.data_version = 0;
	refs[1].index = 1; /* not in order */
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	refs[1].index = 7;
	refs[2].index = 10001;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	refs[2].index = 8;
	key_part(key, id, 4);
	v.key = key; /* a part is not made of parts */
	v.key_len = sizeof key;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
	v.body = BODY_MANIFEST;
	v.owner = (const uint8_t *)"ub\0k\0abcdefghijklmnop";
	v.owner_len = 21;
	v.entry_nr = 1;
	v.size_bytes = 5;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), n);
	v.owner_len = 20;
	n = rec_encode(buf, &v);
	assert_int_equal(rec_decode(buf, n, &geo, &w), -EBADMSG);
}

static void
test_geometry(void **state)
{
	static const uint64_t sizes[] = { 64 * MIB,   100 * MIB,       256 * MIB,
					  1024 * MIB, 64 * 1024 * MIB, (uint64_t)60 << 40 };
	static const struct {
		uint64_t size_mib, index_mib, log_mib;
	} logs[] = { { 100, 1024, 4 },
		     { 512, 0, 16 },
		     { 512, 8, 16 },
		     { 512, 64, 56 },
		     { 512, 4096, 64 },
		     { 64 << 10, 512, 2048 },
		     { 64 << 10, 4096, 3584 },
		     { 10 << 10, 4096, 1280 },
		     { 1 << 20, 0, 16 << 10 },
		     { 4 << 20, 1024, 16 << 10 },
		     { 4 << 20, 1 << 20, 64 << 10 } };
	struct geometry g;

	assert_int_equal(geo_choose(4 * MIB, 0, &g), -ENOSPC);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(geo_choose(sizes[i], 0, &g), 0);
		assert_true(g.log_bytes >= 4 * MIB && g.log_bytes <= (uint64_t)16 << 30);
		assert_true(g.seg_bytes * g.seg_nr + g.log_bytes < sizes[i]);
		assert_true(g.seg_bytes * g.seg_nr > sizes[i] / 2);
		assert_true(g.block_bytes >= 128 << 10 && g.log_bytes >= 16 * (uint64_t)g.block_bytes);
		/* the largest record fits into a block */
		assert_true(g.block_bytes > BLOCK_HEAD_BYTES + REC_BYTES_MAX);
	}
	/* The log follows the index, within an eighth of the disk and 64 GiB; a small disk's does not. */
	for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
		assert_int_equal(geo_choose(logs[i].size_mib * MIB, logs[i].index_mib * MIB, &g), 0);
		assert_int_equal(g.log_bytes / MIB, logs[i].log_mib);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),         cmocka_unit_test(test_record_limits),
		cmocka_unit_test(test_place_limits),   cmocka_unit_test(test_map_limits),
		cmocka_unit_test(test_block),          cmocka_unit_test(test_super),
		cmocka_unit_test(test_snapshot),       cmocka_unit_test(test_keys),
		cmocka_unit_test(test_geometry),       cmocka_unit_test(test_upload_keys),
		cmocka_unit_test(test_upload_records), cmocka_unit_test(test_super_nonsense),
		cmocka_unit_test(test_super_old),      cmocka_unit_test(test_super_tail),
		cmocka_unit_test(test_keys_of_two),
	};

	if (geo_choose(1024 * MIB, 0, &geo) < 0)
		return 1;
	return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
