/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gantry hwcheck: the messages between the two hosts.  Each has a fixed length, numbers are in network order:
 *
 *     ask     0 "GHQ1"  4 op  5 slot  6 mtu  7 is_rc  8 dct_access  12 mr_access  16 dc_key  24 at  32 len  40 seed  48 gid
 *     answer  0 "GHA1"  4 error  8 value  16 dctn  20 rkey  24 dc_key  32 addr  40 len  48 gid  64 lid  66 mtu  67 is_ib
 *             68 firmware (48, printable, ended by zeroes)  116 has_rc  117 zeroes
 *
 * Pure functions.  What comes from the other host is only believed within the bounds that decoding checks.
 */
#include "client/cmd/hwcheck/hw.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

static void
put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void
put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

static uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

static uint64_t
get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return be64toh(v);
}

void
hw_ask_encode(const struct hw_ask *q, uint8_t raw[HW_ASK_BYTES])
{
	memset(raw, 0, HW_ASK_BYTES);
	memcpy(raw, "GHQ1", 4);
	raw[4] = q->op;
	raw[5] = q->slot;
	raw[6] = q->mtu;
	raw[7] = q->is_rc;
	put32(raw + 8, q->dct_access);
	put32(raw + 12, q->mr_access);
	put64(raw + 16, q->dc_key);
	put64(raw + 24, q->at);
	put64(raw + 32, q->len);
	put64(raw + 40, q->seed);
	memcpy(raw + 48, q->gid.raw, 16);
}

bool
hw_ask_decode(const uint8_t raw[HW_ASK_BYTES], struct hw_ask *ret)
{
	*ret = (struct hw_ask){
		.op = raw[4],
		.slot = raw[5],
		.mtu = raw[6],
		.is_rc = raw[7] == 1,
		.dct_access = get32(raw + 8),
		.mr_access = get32(raw + 12),
		.dc_key = get64(raw + 16),
		.at = get64(raw + 24),
		.len = get64(raw + 32),
		.seed = get64(raw + 40),
	};
	memcpy(ret->gid.raw, raw + 48, 16);
	return memcmp(raw, "GHQ1", 4) == 0 && ret->op >= HW_HELLO && ret->op < HW_OP_NR &&
	       ret->slot < HW_SLOTS && ret->mtu <= IBV_MTU_4096 && raw[7] <= 1 &&
	       !(ret->dct_access & ~HW_ACCESS) && !(ret->mr_access & ~HW_ACCESS) &&
	       ret->at <= HW_WINDOW_MAX && ret->len <= HW_WINDOW_MAX - ret->at &&
	       (ret->op != HW_OPEN || ret->len > 0);
}

void
hw_answer_encode(const struct hw_answer *a, uint8_t raw[HW_ANSWER_BYTES])
{
	memset(raw, 0, HW_ANSWER_BYTES);
	memcpy(raw, "GHA1", 4);
	put32(raw + 4, (uint32_t)-a->error);
	put64(raw + 8, a->value);
	put32(raw + 16, a->token.dctn);
	put32(raw + 20, a->token.rkey);
	put64(raw + 24, a->token.dc_key);
	put64(raw + 32, a->token.addr);
	put64(raw + 40, a->token.len);
	memcpy(raw + 48, a->token.gid.raw, 16);
	raw[64] = (uint8_t)(a->token.lid >> 8);
	raw[65] = (uint8_t)a->token.lid;
	raw[66] = a->mtu;
	raw[67] = a->is_ib;
	raw[116] = a->has_rc;
	memcpy(raw + 68, a->firmware, strnlen(a->firmware, sizeof a->firmware - 1));
}

bool
hw_answer_decode(const uint8_t raw[HW_ANSWER_BYTES], struct hw_answer *ret)
{
	uint32_t error = get32(raw + 4);

	*ret = (struct hw_answer){
		.error = -(int)(error & 0xfff),
		.value = get64(raw + 8),
		.token = { .dctn = get32(raw + 16),
			   .rkey = get32(raw + 20),
			   .dc_key = get64(raw + 24),
			   .addr = get64(raw + 32),
			   .len = get64(raw + 40),
			   .lid = (uint16_t)(raw[64] << 8 | raw[65]) },
		.mtu = raw[66],
		.is_ib = raw[67] == 1,
		.has_rc = raw[116] == 1,
	};
	memcpy(ret->token.gid.raw, raw + 48, 16);
	for (size_t i = 0; i < sizeof ret->firmware - 1 && raw[68 + i]; i++)
		ret->firmware[i] = raw[68 + i] > ' ' && raw[68 + i] < 0x7f ? (char)raw[68 + i] : '?';
	return memcmp(raw, "GHA1", 4) == 0 && error <= 0xfff && raw[67] <= 1 && ret->mtu <= IBV_MTU_4096 &&
	       ret->token.len <= HW_WINDOW_MAX && ret->token.addr <= UINT64_MAX - ret->token.len;
}
