/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the index on RADOS: whatever a decoder accepts lies in the buffer, obeys its limits, and encodes to the
 * same bytes.  The CRC at the end is made right, so that what is before it is looked at. */
#include "base/crc64.h"
#include "rados/io/codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static const uint8_t *value;
static size_t value_len;

static void
must_lie_inside(const void *p, size_t len)
{
	must(len == 0 || ((const uint8_t *)p >= value && (const uint8_t *)p + len <= value + value_len));
}

static void
must_be_parts(const void *bytes, size_t len)
{
	static struct record parts[STORE_PART_NR_MAX];
	struct cur list = cursor(bytes, len);
	struct record part = { 0 };
	uint32_t nr = 0;
	int r;

	while ((r = part_next(&list, &part)) > 0) {
		must(part.number >= 1 && part.number <= STORE_PART_NR_MAX);
		must(!nr || part.number > parts[nr - 1].number);
		must_lie_inside(part.attrs, part.attrs_len);
		if (part.kind == REC_INLINE)
			must_lie_inside(part.inline_data, part.size_bytes);
		else
			must_lie_inside(part.crcs, (size_t)part.crc_nr * 8);
		parts[nr++] = part;
	}
	must(r < 0 || list.p == list.end);
}

static void
must_be_record(const struct record *r)
{
	char *again = malloc(record_bytes(r));

	must(again && record_bytes(r) == value_len);
	must_lie_inside(r->attrs, r->attrs_len);
	if (r->kind == REC_INLINE)
		must_lie_inside(r->inline_data, r->size_bytes);
	if (r->kind == REC_DATA)
		must_lie_inside(r->crcs, (size_t)r->crc_nr * 8);
	if (r->kind == REC_PARTS) {
		must_lie_inside(r->parts, r->parts_len);
		must_be_parts(r->parts, r->parts_len);
	}
	record_encode(again, r);
	/* But for two bytes that are nobody's. */
	must(memcmp(again + 4, value + 4, value_len - 12) == 0);
	free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[STORE_KEY_MAX];
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	struct battrs battrs;
	struct store_format_row f;
	struct gateway_addrs addrs;
	struct gateway_row g;
	struct bucket_row b;
	struct counter counter;
	struct store_use max;
	struct garbage garbage;
	struct record r;
	struct upload u;
	uint64_t number, crc;
	uint16_t name_len;
	uint8_t *copy;

	if (key_upload_decode((const char *)data, len, name, &name_len, id) == 0)
		must(name_len <= STORE_KEY_MAX);
	must(key_part_number((const char *)data, len) <= STORE_PART_NR_MAX);
	key_counter_instance((const char *)data, len);
	key_garbage_decode((const char *)data, len, &number);
	if (len < 12)
		return 0;
	copy = malloc(len);
	must(copy);
	memcpy(copy, data, len);
	crc = crc64_nvme(0, copy, len - 8);
	memcpy(copy + len - 8, &crc, 8);
	value = copy;
	value_len = len;
	if (record_decode(copy, len, &r) == 0)
		must_be_record(&r);
	if (upload_decode(copy, len, &u) == 0)
		must_lie_inside(u.attrs, u.attrs_len);
	if (battrs_decode(copy, len, &battrs) == 0)
		must_lie_inside(battrs.attrs, battrs.attrs_len);
	if (garbage_decode(copy, len, &garbage) == 0)
		must_lie_inside(garbage.data, (size_t)garbage.data_nr * GARBAGE_DATA_BYTES);
	if (counter_decode(copy, len, &counter) == 0)
		must(len == COUNTER_BYTES);
	if (bound_decode(copy, len, &max) == 0)
		must(len == BOUND_BYTES);
	if (bucket_decode(copy, len, &b) == 0)
		must(b.shards >= 1 && b.shards <= BUCKET_SHARDS_MAX);
	if (gateway_decode(copy, len, &g) == 0)
		must(g.first <= g.last && strlen(g.host) < sizeof g.host);
	if (gateway_addrs_decode(copy, len, &addrs) == 0) {
		must(addrs.nr <= GATEWAY_ADDRS_MAX);
		for (uint32_t i = 0; i < GATEWAY_ADDRS_MAX; i++)
			must(strlen(addrs.addr[i]) < sizeof addrs.addr[i]);
	}
	if (format_decode(copy, len, &f) == 0)
		must(f.object_bytes <= DATA_OBJECT_MAX);
	free(copy);
	return 0;
}
