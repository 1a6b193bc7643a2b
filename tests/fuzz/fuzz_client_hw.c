/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of gantry hwcheck between two hosts: one byte for which of the two, then the message. */
#include "client/cmd/hwcheck/hw.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

static void
ask(const uint8_t raw[HW_ASK_BYTES])
{
	uint8_t back[HW_ASK_BYTES];
	struct hw_ask q, again;

	if (!hw_ask_decode(raw, &q))
		return;
	must(q.op >= HW_HELLO && q.op < HW_OP_NR && q.slot < HW_SLOTS && q.mtu <= IBV_MTU_4096);
	must(!((q.dct_access | q.mr_access) & ~HW_ACCESS));
	must(q.at + q.len >= q.at && q.at + q.len <= HW_WINDOW_MAX);
	hw_ask_encode(&q, back);
	must(hw_ask_decode(back, &again) && again.op == q.op && again.at == q.at && again.len == q.len &&
	     again.seed == q.seed && again.dc_key == q.dc_key);
}

static void
answer(const uint8_t raw[HW_ANSWER_BYTES])
{
	uint8_t back[HW_ANSWER_BYTES];
	struct hw_answer a, again;

	if (!hw_answer_decode(raw, &a))
		return;
	must(a.error <= 0 && a.error >= -4095 && memchr(a.firmware, 0, sizeof a.firmware));
	must(a.token.addr + a.token.len >= a.token.addr && a.token.len <= HW_WINDOW_MAX);
	for (const char *p = a.firmware; *p; p++)
		must(*p > ' ' && *p < 0x7f);
	hw_answer_encode(&a, back);
	must(hw_answer_decode(back, &again) && again.error == a.error && again.value == a.value &&
	     !memcmp(&again.token.gid, &a.token.gid, sizeof a.token.gid) &&
	     !strcmp(again.firmware, a.firmware));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len > HW_ASK_BYTES && !(data[0] & 1))
		ask(data + 1);
	else if (len > HW_ANSWER_BYTES)
		answer(data + 1);
	return 0;
}
