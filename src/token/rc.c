/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 88-digit form of protocol.md 2.4: 44 packed bytes, integers little-endian.  Object requests decline it
 * unseen; its codec serves control routes and peer tokens.  See token.h.
 */
#include "token/token_int.h"

#include "base/hex.h"

#include <errno.h>
#include <string.h>

#define RC_BYTES (TOKEN_RC_LEN / 2)

/* Byte offsets of 2.4. */
enum {
	RC_TRANSPORT = 0,
	RC_QPN = 1,
	RC_GID = 5,
	RC_RKEY = 21,
	RC_ADDR = 25,
	RC_LENGTH = 33,
	RC_PORT = 41,
	RC_LID = 42
};

static uint64_t
get_le(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static void
put_le(uint8_t *p, int bytes, uint64_t v)
{
	for (int i = 0; i < bytes; i++, v >>= 8)
		p[i] = (uint8_t)v;
}

/* The fields at s.p, and the rules for those that say which queue pair. */
static int
parse_end(struct span s, struct token *ret_token, const char **ret_why)
{
	static const uint8_t zero[16];
	struct token t = { .kind = TOKEN_RC_V1 };
	uint8_t b[RC_BYTES];

	if (s.len < TOKEN_RC_LEN || hex_bytes(s.p, b, RC_BYTES) < 0)
		return token_bad(ret_why, "The RC descriptor is not 88 hexadecimal digits.");
	t.dctn = (uint32_t)get_le(b + RC_QPN, 4);
	memcpy(t.gid, b + RC_GID, 16);
	t.have_gid = memcmp(t.gid, zero, 16) != 0;
	t.rkey = (uint32_t)get_le(b + RC_RKEY, 4);
	t.addr = get_le(b + RC_ADDR, 8);
	t.size = get_le(b + RC_LENGTH, 8);
	t.port = b[RC_PORT];
	t.lid = (uint16_t)get_le(b + RC_LID, 2);
	*ret_token = t;
	if (b[RC_TRANSPORT] != 1)
		return token_bad(ret_why, "The transport of the RC descriptor is not 1.");
	if (t.dctn == 0 || t.dctn > 0xffffff)
		return token_bad(ret_why,
				 "The queue pair number of the RC descriptor is zero or above 24 bits.");
	if (t.port == 0)
		return token_bad(ret_why, "The port of the RC descriptor is zero.");
	return 0;
}

int
token_parse_end(const char *text, size_t len, struct token *ret_token, const char **ret_why)
{
	struct span s = token_strip(text, len);
	struct token t;

	if (s.len != TOKEN_RC_LEN)
		return token_bad(ret_why, "The RC descriptor is not 88 hexadecimal digits.");
	if (parse_end(s, &t, ret_why) < 0)
		return -EINVAL;
	if (!t.have_gid && t.lid == 0)
		return token_bad(ret_why, "The RC descriptor has neither GID nor LID.");
	if (t.lid >= 0xc000)
		return token_bad(ret_why, "The LID of the RC descriptor is a multicast one.");
	*ret_token = t;
	return 0;
}

int
token_parse_rc(const char *text, size_t len, struct token *ret_token, const char **ret_why)
{
	struct span s = token_strip(text, len);
	uint64_t suffix_addr, suffix_size;
	struct token t;

	if (parse_end(s, &t, ret_why) < 0)
		return -EINVAL;
	if (s.len > TOKEN_RC_LEN) {
		if (token_suffix((struct span){ s.p + TOKEN_RC_LEN, s.len - TOKEN_RC_LEN }, &suffix_addr,
				 &suffix_size, ret_why) < 0)
			return -EINVAL;
		/* The address stays the token's: it has the offset in it, the suffix has not.  0 overrides
		 * nothing. */
		if (suffix_size && suffix_size < t.size)
			t.size = suffix_size;
	}
	if (t.size == 0)
		return token_bad(ret_why, "The length of the RC descriptor is zero.");
	if (t.size - 1 > UINT64_MAX - t.addr)
		return token_bad(ret_why,
				 "The window of the RC descriptor passes the end of the address space.");
	*ret_token = t;
	return 0;
}

void
token_format_rc(const struct token *t, char text[TOKEN_RC_LEN + 1])
{
	uint8_t b[RC_BYTES] = { [RC_TRANSPORT] = 1 };

	put_le(b + RC_QPN, 4, t->dctn);
	memcpy(b + RC_GID, t->gid, 16);
	put_le(b + RC_RKEY, 4, t->rkey);
	put_le(b + RC_ADDR, 8, t->addr);
	put_le(b + RC_LENGTH, 8, t->size);
	b[RC_PORT] = t->port;
	put_le(b + RC_LID, 2, t->lid);
	hex_write(text, b, RC_BYTES);
	text[TOKEN_RC_LEN] = 0;
}
