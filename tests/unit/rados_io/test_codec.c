/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings of the index on RADOS: each value decodes to itself, and a changed byte is detected. */
#include "rados/io/codec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct rid some_id = { 7, 0x123456789abc }, other_id = { 9, 3 };
static const uint8_t upload_id[STORE_UPLOAD_ID_BYTES] = { 0x01, 0xff, 0x10, 4,  5,  6,  7,  8,
							  9,    10,   11,   12, 13, 14, 15, 16 };

/* Claim TM76: an address on the blocklist is that of one client connection. */
static void
test_addresses(void **state)
{
	static const char *const good[] = { "127.0.0.1:0/1",
					    "10.0.0.1:0/4294967295",
					    "v1:10.0.0.1:0/7",
					    "v2:10.0.0.1:0/3710147553",
					    "any:10.0.0.1:0/7",
					    "[fd00::1]:0/7",
					    "v2:[fd00::1]:0/12345678901234567890" };
	static const char *const bad[] = { "",
					   "10.0.0.1",
					   "10.0.0.1:0",
					   "10.0.0.1:0/",
					   "10.0.0.1:0/0", /* all clients of the host */
					   "10.0.0.1:0/00",
					   "10.0.0.1:6800/1", /* a daemon of the cluster */
					   "10.0.0.1:00/1",
					   "10.0.0.0/16", /* a range */
					   "10.0.0.0:0/16x",
					   "10.0.0.1:0/-1",
					   "10.0.0.1:0/ 1",
					   "10.0.0.1:0/1 ",
					   "10.0.0.1:0/1,10.0.0.2:0/1",
					   "[v2:10.0.0.1:0/1,v1:10.0.0.1:0/1]",
					   "v3:10.0.0.1:0/1",
					   "v2:v1:10.0.0.1:0/1",
					   "host:0/1",
					   "[fd00::1:0/1",
					   "fd00::1:0/1",
					   "[10.0.0.1]:0/1",
					   "10.0.0.1:0/123456789012345678901",
					   "10.0.0.1:0/1\", \"expire\": \"0" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!gateway_addr_is_client(good[i]))
			fail_msg("refused: %s", good[i]);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (gateway_addr_is_client(bad[i]))
			fail_msg("taken: %s", bad[i]);
	}
}

/* ---- keys ---- */

static void
test_names(void **state)
{
	assert_string_equal(data_name(some_id, 5).text, "00000007.0000123456789abc.00000005");
	assert_string_equal(map_name(some_id).text, "map.00000007.0000123456789abc");
	assert_string_equal(shard_name(some_id, 4095).text, "idx.00000007.0000123456789abc.4095");
	assert_string_equal(rid_text(some_id).text, "00000007.0000123456789abc");
	assert_string_equal(doomed_key(some_id).text, "d00000007.0000123456789abc");
	assert_string_equal(table_key('q', "bucket!", 6).text, "qbucket");
	assert_string_equal(gateway_key('x', 7).text, "x0000000007");
}

static int
order(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* Upload keys sort by object key, then by id, for any bytes of the object key, and contain no NUL. */
static void
test_upload_keys(void **state)
{
	static const char *const names[] = { "\x01",  "\x01\x01", "\x01\x02", "\x01q", "\x02", "a",
					     "a\x01", "a\x01z",   "a\x02",    "ab",    "b" };
	char last[OMAP_KEY_MAX] = "", name[STORE_KEY_MAX];
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	size_t last_len = 0;
	uint16_t len;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		for (uint8_t high = 0; high < 2; high++) {
			uint8_t mine[STORE_UPLOAD_ID_BYTES] = { high, upload_id[1] };
			char key[OMAP_KEY_MAX];
			size_t n = key_upload(key, names[i], strlen(names[i]), mine);

			assert_int_equal(strlen(key), n);
			assert_true(order(last, last_len, key, n) < 0);
			assert_int_equal(key_upload_decode(key, n, name, &len, id), 0);
			assert_int_equal(len, strlen(names[i]));
			assert_memory_equal(name, names[i], len);
			assert_memory_equal(id, mine, sizeof id);
			memcpy(last, key, n);
			last_len = n;
		}
	}
	assert_int_equal(key_upload_decode("u", 1, name, &len, id), -EBADMSG);
	assert_int_equal(key_upload_decode(last, last_len - 1, name, &len, id), -EBADMSG);
}

static void
test_longest_key(void **state)
{
	char name[STORE_KEY_MAX], key[OMAP_KEY_MAX], again[STORE_KEY_MAX];
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	uint16_t len;
	size_t n;

	memset(name, 1, sizeof name);
	n = key_upload(key, name, sizeof name, upload_id);
	assert_true(n < OMAP_KEY_MAX);
	assert_int_equal(key_upload_decode(key, n, again, &len, id), 0);
	assert_int_equal(len, STORE_KEY_MAX);
	assert_memory_equal(name, again, sizeof name);
}

static void
test_other_keys(void **state)
{
	char key[OMAP_KEY_MAX];
	struct label counter;
	uint64_t epoch;
	size_t n = key_part(key, upload_id, 10000);

	assert_int_equal(key_part_number(key, n), 10000);
	assert_int_equal(key_part_number(key, n - 1), 0);
	n = key_part(key, upload_id, 1);
	assert_int_equal(key_part_number(key, n), 1);
	key[n - 1] = 'x';
	assert_int_equal(key_part_number(key, n), 0);
	n = key_garbage(key, 0xfeed, some_id);
	assert_int_equal(key_garbage_decode(key, n, &epoch), 0);
	assert_int_equal(epoch, 0xfeed);
	assert_int_equal(key_garbage_decode(key, n - 1, &epoch), -EBADMSG);
	counter = key_counter(4000000000);
	n = strlen(counter.text);
	assert_int_equal(key_counter_instance(counter.text, n), 4000000000);
	assert_int_equal(key_counter_instance(counter.text, n - 1), UINT32_MAX);
	assert_int_equal(key_counter_instance("o0000000001", 11), UINT32_MAX);
	assert_int_equal(key_counter_instance("c9999999999", 11), UINT32_MAX);
}

/* ---- values ---- */

static char *
encoded(const struct record *r, size_t *ret_len)
{
	char *buf = malloc(*ret_len = record_bytes(r));

	assert_non_null(buf);
	record_encode(buf, r);
	return buf;
}

static void
expect_record(const struct record *r)
{
	struct record got;
	size_t len;
	char *buf = encoded(r, &len);

	assert_int_equal(record_decode(buf, len, &got), 0);
	assert_int_equal(got.kind, r->kind);
	assert_int_equal(got.version, r->version);
	assert_int_equal(got.size_bytes, r->size_bytes);
	assert_int_equal(got.crc64, r->crc64);
	assert_int_equal(got.mtime_ns, r->mtime_ns);
	assert_true(rid_same(got.id, r->id) && rid_same(got.replaced, r->replaced) &&
		    rid_same(got.data, r->data));
	assert_memory_equal(got.etag.sum, r->etag.sum, 16);
	assert_int_equal(got.etag.parts, r->etag.parts);
	assert_int_equal(got.attrs_len, r->attrs_len);
	assert_memory_equal(got.attrs, r->attrs, r->attrs_len);
	assert_int_equal(got.crc_nr, r->crc_nr);
	assert_int_equal(got.part_nr, r->part_nr);
	if (r->kind == REC_INLINE)
		assert_memory_equal(got.inline_data, r->inline_data, r->size_bytes);
	if (r->crc_nr)
		assert_memory_equal(got.crcs, r->crcs, r->crc_nr * 8);
	/* The CRC covers each byte, and a shorter record is refused. */
	for (size_t i = 0; i < len; i++) {
		buf[i] ^= 0x20;
		assert_int_equal(record_decode(buf, len, &got), -EBADMSG);
		buf[i] ^= 0x20;
		assert_int_equal(record_decode(buf, i, &got), -EBADMSG);
	}
	free(buf);
}

static void
test_records(void **state)
{
	uint8_t crcs[REC_CRCS_MAX * 8], bytes[STORE_INLINE_MAX];
	struct record r = { .kind = REC_DATA,
			    .version = 11,
			    .size_bytes = 3 * STORE_GRANULE - 5,
			    .crc64 = 0x1122334455667788,
			    .mtime_ns = 99,
			    .id = some_id,
			    .replaced = other_id,
			    .data = some_id,
			    .etag = { { 1, 2, 3 }, 4 },
			    .attrs = "attributes",
			    .attrs_len = 10,
			    .crcs = crcs,
			    .crc_nr = 3 };

	memset(crcs, 0x5a, sizeof crcs);
	memset(bytes, 0xa5, sizeof bytes);
	expect_record(&r);
	r.crc_nr = 0;
	r.size_bytes = 5ull << 40;
	expect_record(&r);
	r = (struct record){ .kind = REC_INLINE,
			     .size_bytes = sizeof bytes,
			     .inline_data = bytes,
			     .attrs = "",
			     .id = some_id };
	expect_record(&r);
	r.size_bytes = 0;
	expect_record(&r);
	r = (struct record){ .kind = REC_MAP,
			     .size_bytes = 77,
			     .attrs = "x",
			     .attrs_len = 1,
			     .data = other_id,
			     .upload_id = upload_id,
			     .part_nr = STORE_PART_NR_MAX,
			     .parts_len = 123,
			     .parts_crc64 = 9 };
	expect_record(&r);
}

/* Decodes a list. Returns the number of its parts, or -EBADMSG. */
static int
parts_of(const char *buf, size_t len, struct record *ret_parts)
{
	struct cur list = cursor(buf, len);
	struct record part = { 0 };
	int r, nr = 0;

	while ((r = part_next(&list, &part)) > 0)
		ret_parts[nr++] = part;
	return r < 0 ? r : nr;
}

static void
test_parts(void **state)
{
	struct record in[2] = { { .number = 1,
				  .kind = REC_DATA,
				  .size_bytes = STORE_GRANULE,
				  .data = some_id,
				  .attrs = "ab",
				  .attrs_len = 2 },
				{ .number = 9999,
				  .kind = REC_INLINE,
				  .size_bytes = 3,
				  .inline_data = "xyz",
				  .attrs = "" } },
		      out[3];
	char buf[1024];
	size_t len, first;

	first = len = part_encode(buf, &in[0]);
	assert_int_equal(len, part_encode(NULL, &in[0]));
	len += part_encode(buf + len, &in[1]);
	assert_int_equal(parts_of(buf, len, out), 2);
	assert_int_equal(out[1].number, 9999);
	assert_memory_equal(out[1].inline_data, "xyz", 3);
	assert_true(rid_same(out[0].data, some_id));
	assert_int_equal(out[0].number, 1);
	/* A list that is cut between two parts is a valid list. */
	for (size_t i = 0; i < len; i++)
		assert_int_equal(parts_of(buf, i, out), i == 0 ? 0 : i == first ? 1 : -EBADMSG);
	/* Part numbers have to ascend. */
	len = part_encode(buf, &in[1]);
	len += part_encode(buf + len, &in[0]);
	assert_int_equal(parts_of(buf, len, out), -EBADMSG);
}

static void
test_rows(void **state)
{
	struct upload u = { .ctime_ns = 5, .closer = 3, .close = some_id, .attrs = "q", .attrs_len = 1 }, u2;
	struct bucket_row b = { .state = BUCKET_ENDING,
				.uid = other_id,
				.shards = 32,
				.instance = 4,
				.ctime_ns = 6,
				.version = 7 },
			  b2;
	struct gateway_row g = { .beats = 1,
				 .epoch = 2,
				 .first = 3,
				 .last = 4,
				 .host = "here",
				 .addrs = "127.0.0.1:0/1" },
			   g2;
	struct gateway_addrs a = { .nr = 2, .addr = { "127.0.0.1:0/1", "127.0.0.1:0/2" } }, a2;
	struct store_format_row f = { .version = 1, .object_bytes = 4 << 20 }, f2;
	struct counter counter = { { 5, -70000000000, 1 }, 9 }, counter2;
	struct store_use max = { 3, STORE_UNBOUNDED, 0 }, max2;
	struct garbage_data data[2] = { { some_id, 10 }, { other_id, 20 } };
	uint8_t row[GATEWAY_ROW_BYTES], buf[512], addrs[GATEWAY_ADDRS_BYTES];
	struct garbage garbage;
	struct battrs attrs = { .version = 42, .attrs = "tags", .attrs_len = 4 }, attrs2;

	memcpy(u.id, upload_id, sizeof u.id);
	upload_encode(buf, &u);
	assert_int_equal(upload_decode(buf, upload_bytes(&u), &u2), 0);
	assert_true(u2.closer == 3 && rid_same(u2.close, some_id) && u2.attrs_len == 1);
	bucket_encode(row, &b);
	assert_int_equal(bucket_decode(row, BUCKET_ROW_BYTES, &b2), 0);
	assert_true(b2.state == BUCKET_ENDING && rid_same(b2.uid, other_id) && b2.shards == 32 &&
		    b2.version == 7);
	assert_int_equal(bucket_decode(row, BUCKET_ROW_BYTES - 1, &b2), -EBADMSG);
	gateway_encode(row, &g);
	assert_int_equal(gateway_decode(row, sizeof row, &g2), 0);
	assert_string_equal(g2.addrs, g.addrs);
	gateway_addrs_encode(addrs, &a);
	assert_int_equal(gateway_addrs_decode(addrs, sizeof addrs, &a2), 0);
	assert_memory_equal(&a, &a2, sizeof a);
	assert_int_equal(gateway_addrs_decode(addrs, sizeof addrs - 1, &a2), -EBADMSG);
	a.nr = 0;
	gateway_addrs_encode(addrs, &a);
	assert_int_equal(gateway_addrs_decode(addrs, sizeof addrs, &a2), -EBADMSG);
	a.nr = GATEWAY_ADDRS_MAX + 1;
	gateway_addrs_encode(addrs, &a);
	assert_int_equal(gateway_addrs_decode(addrs, sizeof addrs, &a2), -EBADMSG);
	format_encode(row, &f);
	assert_int_equal(format_decode(row, STORE_FORMAT_BYTES, &f2), 0);
	f.object_bytes = 3 << 19;
	format_encode(row, &f);
	assert_int_equal(format_decode(row, STORE_FORMAT_BYTES, &f2), -EBADMSG);
	battrs_encode(buf, &attrs);
	assert_int_equal(battrs_decode(buf, battrs_bytes(4), &attrs2), 0);
	assert_true(attrs2.version == 42 && attrs2.attrs_len == 4 && memcmp(attrs2.attrs, "tags", 4) == 0);
	counter_encode(buf, &counter);
	assert_int_equal(counter_decode(buf, COUNTER_BYTES, &counter2), 0);
	assert_memory_equal(&counter, &counter2, sizeof counter);
	assert_int_equal(counter_decode(buf, COUNTER_BYTES - 1, &counter2), -EBADMSG);
	assert_int_equal(bound_decode(buf, COUNTER_BYTES, &max2), -EBADMSG);
	counter.sum.bytes = INT64_MAX;
	counter_encode(buf, &counter);
	assert_int_equal(counter_decode(buf, COUNTER_BYTES, &counter2), -EBADMSG);
	bound_encode(buf, &max);
	assert_int_equal(bound_decode(buf, BOUND_BYTES, &max2), 0);
	assert_memory_equal(&max, &max2, sizeof max);
	garbage_encode(buf, data, 2, &other_id);
	assert_int_equal(garbage_decode(buf, garbage_bytes(2), &garbage), 0);
	assert_true(garbage.has_map && garbage.data_nr == 2 &&
		    rid_same(garbage_data(&garbage, 1).id, other_id));
	assert_int_equal(garbage_data(&garbage, 0).size_bytes, 10);
}

/* A trailer is valid for one data object and one length only. */
static void
test_trailers(void **state)
{
	uint8_t trailer[8 * 4 + 8];

	assert_int_equal(trailer_bytes(3 * STORE_GRANULE + 1), sizeof trailer);
	memset(trailer, 7, sizeof trailer);
	trailer_seal(trailer, 3 * STORE_GRANULE + 1, some_id, 2);
	assert_int_equal(trailer_check(trailer, 3 * STORE_GRANULE + 1, some_id, 2), 0);
	assert_int_equal(trailer_check(trailer, 3 * STORE_GRANULE + 2, some_id, 2), -EBADMSG);
	assert_int_equal(trailer_check(trailer, 3 * STORE_GRANULE + 1, some_id, 3), -EBADMSG);
	assert_int_equal(trailer_check(trailer, 3 * STORE_GRANULE + 1, other_id, 2), -EBADMSG);
	trailer[0] ^= 1;
	assert_int_equal(trailer_check(trailer, 3 * STORE_GRANULE + 1, some_id, 2), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),   cmocka_unit_test(test_names),
		cmocka_unit_test(test_upload_keys), cmocka_unit_test(test_longest_key),
		cmocka_unit_test(test_other_keys),  cmocka_unit_test(test_records),
		cmocka_unit_test(test_parts),       cmocka_unit_test(test_rows),
		cmocka_unit_test(test_trailers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
