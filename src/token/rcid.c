/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form "rc:" of protocol.md section 8, which names a connection and a window: rc:ID:ADDR:SIZE:RKEY, with 32, 16, 8 or
 * more, and 8 hexadecimal digits.  Where it is not served it is declined whatever is in it (T1), so a mistake is kept in
 * the token, for who serves it.  Called by token.c.
 */
#include "token/token_int.h"

#include "base/hex.h"

enum { ID_LEN = 32, ADDR_LEN = 16, SIZE_LEN = 8, RKEY_LEN = 8 };

/* Takes the field at the front of *s, up to the next colon. */
static struct span
field(struct span *s)
{
	return span_cut(s, ':');
}

static const char *
parse(struct span s, struct token *t)
{
	struct span id, addr, size;
	uint64_t rkey;

	s.p += 3;
	s.len -= 3;
	id = field(&s);
	addr = field(&s);
	size = field(&s);
	if (id.len != ID_LEN || hex_bytes(id.p, t->id, sizeof t->id) < 0)
		return "The connection of the rc: descriptor is not 32 hexadecimal digits.";
	if (addr.len != ADDR_LEN || hex_u64(addr.p, ADDR_LEN, &t->addr) < 0)
		return "The address of the rc: descriptor is not 16 hexadecimal digits.";
	if (size.len < SIZE_LEN || size.len > 16 || hex_u64(size.p, size.len, &t->size) < 0)
		return "The size of the rc: descriptor is not 8 or more hexadecimal digits.";
	if (t->size > UINT32_MAX)
		return "The size of the rc: descriptor has more than 32 bits.";
	if (s.len != RKEY_LEN || hex_u64(s.p, RKEY_LEN, &rkey) < 0)
		return "The key of the rc: descriptor is not 8 hexadecimal digits.";
	t->rkey = (uint32_t)rkey;
	if (t->addr == 0)
		return "The address of the rc: descriptor is zero.";
	if (t->size == 0)
		return "The size of the rc: descriptor is zero.";
	if (t->size - 1 > UINT64_MAX - t->addr)
		return "The window of the rc: descriptor passes the end of the address space.";
	return NULL;
}

void
token_parse_shim(struct span s, struct token *ret_token)
{
	struct token t = { .kind = TOKEN_RC_SHIM };

	t.bad = parse(s, &t);
	if (t.bad)
		t = (struct token){ .kind = TOKEN_RC_SHIM, .bad = t.bad };
	*ret_token = t;
}
