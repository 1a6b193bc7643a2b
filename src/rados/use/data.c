/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of data objects, verified by the CRCs of their granules. */
#include "rados/use/use_int.h"

#include "base/check.h"
#include "base/crc64.h"
#include "rados/io/rstore.h"

#include <errno.h>
#include <string.h>

static uint64_t
round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

uint32_t
data_read_plan(const struct rstore *st, uint64_t size_bytes, uint64_t from, uint64_t want, uint32_t cap,
	       uint32_t *ret_skew)
{
	uint64_t begin = from / STORE_GRANULE * STORE_GRANULE, each = st->gw.format.object_bytes,
		 end = round_up(begin + 1, each), len;

	*ret_skew = (uint32_t)(from - begin);
	end = end < size_bytes ? end : size_bytes;
	len = round_up(*ret_skew + want, STORE_GRANULE);
	len = len < cap ? len : cap;
	len = len < STORE_READ ? len : STORE_READ;
	return (uint32_t)(len < end - begin ? len : end - begin);
}

void
data_read_init(struct data_read *dr, const struct rstore *st, struct rid id, uint64_t size_bytes,
	       bool has_trailer, uint64_t from, uint32_t len)
{
	uint32_t each = st->gw.format.object_bytes;
	uint64_t rest;

	check(len > 0 && from < size_bytes && from % STORE_GRANULE == 0);
	dr->id = id;
	dr->n = (uint32_t)(from / each);
	dr->off = (uint32_t)(from % each);
	dr->len = len < each - dr->off ? len : each - dr->off;
	rest = size_bytes - (uint64_t)dr->n * each;
	dr->data_bytes = rest < each ? (uint32_t)rest : each;
	dr->has_trailer = has_trailer;
	dr->along = has_trailer && dr->len == len && dr->off + len == dr->data_bytes
			    ? trailer_bytes(dr->data_bytes)
			    : 0;
	dr->got = dr->trailer_got = 0;
	dr->rv = dr->trailer_rv = 0;
}

void
data_read_send(struct rport *p, struct data_read *dr, char *to, uint8_t *trailer,
	       void (*back)(struct call *c))
{
	rados_read_op_t op = rados_create_read_op();

	check(dr->off + dr->len <= dr->data_bytes && (dr->along == 0 || dr->off + dr->len == dr->data_bytes));
	dr->to = to;
	dr->trailer = dr->along ? (uint8_t *)to + dr->len : trailer;
	rados_read_op_read(op, dr->off, dr->len + dr->along, to, &dr->got, &dr->rv);
	if (dr->has_trailer && !dr->along)
		rados_read_op_read(op, dr->data_bytes, trailer_bytes(dr->data_bytes), (char *)trailer,
				   &dr->trailer_got, &dr->trailer_rv);
	call_read(p, &dr->call, POOL_DATA, data_name(dr->id, dr->n).text, op, dr->len, back);
}

int
data_read_check(const struct data_read *dr, const uint8_t *crcs)
{
	size_t got = dr->got, trailer_got = dr->trailer_got;
	int e = dr->call.result < 0 ? dr->call.result
		: dr->rv < 0        ? dr->rv
		: dr->has_trailer   ? dr->trailer_rv
				    : 0;

	if (e < 0)
		return e == -ENOENT ? -EBADMSG : e;
	if (dr->along && got > dr->len) {
		trailer_got = got - dr->len;
		got = dr->len;
	}
	if (got != dr->len)
		return -EBADMSG;
	if (dr->has_trailer) {
		if (trailer_got != trailer_bytes(dr->data_bytes) ||
		    trailer_check(dr->trailer, dr->data_bytes, dr->id, dr->n) < 0)
			return -EBADMSG;
		crcs = dr->trailer;
	}
	for (uint32_t at = 0; at < dr->len; at += STORE_GRANULE) {
		uint32_t n = dr->len - at < STORE_GRANULE ? dr->len - at : STORE_GRANULE;
		uint64_t crc = crc64_nvme(0, dr->to + at, n);

		if (memcmp(&crc, crcs + (size_t)(dr->off + at) / STORE_GRANULE * 8, 8) != 0)
			return -EBADMSG;
	}
	return 0;
}

/* ---- maps ---- */

int
map_read_send(struct rport *p, struct map_read *mr, const struct record *r, void (*back)(struct call *c))
{
	rados_read_op_t op;

	if (!bytes_new(&mr->list, r->parts_len))
		return -ENOMEM;
	op = rados_create_read_op();
	rados_read_op_read(op, 0, mr->list.len, mr->list.p, &mr->got, &mr->rv);
	call_read(p, &mr->call, POOL_META, map_name(r->data).text, op, mr->list.len, back);
	return 0;
}

int
map_read_check(const struct map_read *mr, const struct record *r)
{
	if (mr->call.result < 0 || mr->rv < 0)
		return mr->call.result < 0 ? mr->call.result : mr->rv;
	return mr->got == mr->list.len && crc64_nvme(0, mr->list.p, mr->list.len) == r->parts_crc64
		       ? 0
		       : -EBADMSG;
}
