/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies where, see sim.h: names of buckets and keys, and the ETags, bytes and attributes of an operation,
 * which all follow from its number.
 */
#include "tests/sim/sim.h"

#include "base/check.h"

#include <string.h>

const char *
bucket_name(int b)
{
	static const char *const names[BUCKETS] = { "alpha", "beta" };

	return names[b];
}

const char *
key_name(int k)
{
	static const char *const names[KEYS_MAX] = { "a",    "key/b", "key/c", "d",     "key/e-longer",
						     "f",    "key/g", "key/h", "key/i", "j",
						     "k",    "l",     "m",     "n",     "o",
						     "key/p" };

	return names[k];
}

struct store_etag
model_etag(uint32_t id)
{
	struct store_etag e = { .parts = 0 };
	uint64_t v[2] = { id, ~(uint64_t)id };

	memcpy(e.sum, v, 16);
	return e;
}

uint32_t
model_id(const struct store_etag *e)
{
	uint64_t v[2];

	memcpy(v, e->sum, 16);
	return v[0] == ~v[1] && v[0] < (uint64_t)op_nr ? (uint32_t)v[0] : 0;
}

void
model_fill(void *mem, size_t len, uint32_t id, uint64_t off)
{
	uint64_t *p = mem;

	for (size_t i = 0; i < (len + 7) / 8; i++)
		p[i] = (id + 1ull) * 0x9e3779b97f4a7c15u ^ (off / 8 + i) * 0xd6e8feb86659fd93u;
}

void
model_bytes(void *mem, size_t len, uint32_t id, uint64_t off)
{
	if (ops[id].kind != OP_COMPLETE) {
		model_fill(mem, len, id, off);
		return;
	}
	for (int i = 0; i < PARTS_MAX; i++) {
		uint32_t part = ops[id].part[i];

		if (!part)
			continue;
		if (off < ops[part].size) {
			if (len > ops[part].size - off)
				sim_fail("a read goes over the end of part %d of op %u", i + 1, id);
			model_fill(mem, len, part, off);
			return;
		}
		off -= ops[part].size;
	}
}

#define ATTRS_MAGIC 0x47a77a51u

uint32_t
model_attrs(void *mem, uint32_t len, uint32_t id)
{
	uint32_t head[2] = { ATTRS_MAGIC, id };
	uint64_t bytes[64];

	if (len < sizeof head)
		return 0;
	check(len <= sizeof bytes);
	model_fill(bytes, len, id, 0);
	memcpy(mem, bytes, len);
	memcpy(mem, head, sizeof head);
	return len;
}

uint32_t
model_attrs_id(const void *attrs, uint32_t len)
{
	uint32_t head[2];
	char want[512];

	if (len < sizeof head)
		return 0;
	memcpy(head, attrs, sizeof head);
	if (head[0] != ATTRS_MAGIC)
		return 0;
	if (head[1] >= (uint32_t)op_nr || ops[head[1]].attrs_len != len)
		sim_fail("attributes of %u bytes that nobody set", len);
	model_attrs(want, len, head[1]);
	if (memcmp(want, attrs, len) != 0)
		sim_fail("the attributes of op %u are other bytes", head[1]);
	return head[1];
}

uint32_t
model_upload_of(const uint8_t *uid)
{
	for (int i = op_nr - 1; i > 0; i--) {
		if (ops[i].kind == OP_CREATE && memcmp(ops[i].uid, uid, sizeof ops[i].uid) == 0)
			return (uint32_t)i;
	}
	sim_fail("an upload that nobody made");
}
