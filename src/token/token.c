/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DC descriptor (protocol.md 2.1), its suffix form (2.2) and the versity trio (2.3), see token.h.
 *
 * Order of work: strip, classify by shape, decode, validate.  Called by dialect/ on the request's core, by
 * libgantry for minting.  Sentences name the field and never quote it: the descriptor is a capability (item
 * 10).
 */
#include "token/token_int.h"

#include "base/check.h"
#include "base/hex.h"

#include <errno.h>
#include <string.h>

/* Offsets of 2.1. */
enum { AT_ADDR = 0, AT_SIZE = 17, AT_RKEY = 26, AT_LID = 35, AT_DCTN = 40, AT_G = 47, AT_GID = 49 };
static const uint8_t colons[] = { 16, 25, 34, 39, 46, 48 };

int
token_bad(const char **ret_why, const char *why)
{
	if (ret_why)
		*ret_why = why;
	return -EINVAL;
}

struct span
token_strip(const char *text, size_t len)
{
	struct span s = span_trim((struct span){ text, len });

	if (s.len && s.p[s.len - 1] == ';')
		s = span_trim((struct span){ s.p, s.len - 1 });
	return s;
}

bool
token_has_colons(struct span s)
{
	for (size_t i = 0; i < sizeof colons; i++) {
		if (s.p[colons[i]] != ':')
			return false;
	}
	return true;
}

bool
token_has_dc_shape(const char *text, size_t len)
{
	struct span s = token_strip(text, len);

	if (s.len != TOKEN_DC_LEN || !token_has_colons(s))
		return false;
	for (size_t i = 0, c = 0; i < TOKEN_DC_LEN; i++) {
		if (c < sizeof colons && i == colons[c])
			c++;
		else if (hex_digit(s.p[i]) < 0)
			return false;
	}
	return true;
}

bool
token_has_rc_shape(const char *text, size_t len)
{
	struct span s = token_strip(text, len);
	enum token_kind kind;

	/* Most descriptors are shorter. */
	return s.len >= TOKEN_RC_LEN && token_is_family(s, false, &kind) && kind == TOKEN_RC_V1;
}

static bool
all_zero(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return memcmp(gid, zero, sizeof zero) == 0;
}

/* The 81 characters at s.p, every rule of the table in 2.1 that needs neither our port nor the operation. */
static int
parse_dc(struct span s, struct token *t, const char **ret_why)
{
	uint64_t v;

	*t = (struct token){ .kind = TOKEN_DC };
	if (!token_has_colons(s))
		return token_bad(ret_why, "The RDMA descriptor does not have its colons in their places.");
	if (hex_u64(s.p + AT_ADDR, 16, &t->addr) < 0)
		return token_bad(ret_why, "The address of the RDMA descriptor is not hexadecimal.");
	if (hex_u64(s.p + AT_SIZE, 8, &t->size) < 0)
		return token_bad(ret_why, "The size of the RDMA descriptor is not hexadecimal.");
	if (hex_u64(s.p + AT_RKEY, 8, &v) < 0)
		return token_bad(ret_why, "The key of the RDMA descriptor is not hexadecimal.");
	t->rkey = (uint32_t)v;
	if (hex_u64(s.p + AT_LID, 4, &v) < 0)
		return token_bad(ret_why, "The LID of the RDMA descriptor is not hexadecimal.");
	t->lid = (uint16_t)v;
	if (hex_u64(s.p + AT_DCTN, 6, &v) < 0)
		return token_bad(ret_why, "The DCT number of the RDMA descriptor is not hexadecimal.");
	t->dctn = (uint32_t)v;
	if (s.p[AT_G] != '0' && s.p[AT_G] != '1')
		return token_bad(ret_why, "The GID flag of the RDMA descriptor is neither 0 nor 1.");
	t->have_gid = s.p[AT_G] == '1';
	if (hex_bytes(s.p + AT_GID, t->gid, 16) < 0)
		return token_bad(ret_why, "The GID of the RDMA descriptor is not hexadecimal.");

	/* No DC target has the number 0: Dell's RC, where the server connects back to the client's
	 * address. */
	if (t->dctn == 0) {
		if (s.len > TOKEN_DC_LEN)
			return token_bad(ret_why, "The DCT number of the RDMA descriptor is zero.");
		*t = (struct token){ .kind = TOKEN_RC_BACK };
		return 0;
	}
	if (t->size && t->size - 1 > UINT64_MAX - t->addr)
		return token_bad(ret_why,
				 "The window of the RDMA descriptor passes the end of the address space.");
	if (t->lid >= 0xc000)
		return token_bad(ret_why, "The LID of the RDMA descriptor is a multicast one.");
	if (!t->have_gid) {
		/* What the field holds then is not known of any minter: ignored. */
		memset(t->gid, 0, sizeof t->gid);
		if (t->lid == 0)
			return token_bad(ret_why, "The RDMA descriptor has neither GID nor LID.");
		return 0;
	}
	if (all_zero(t->gid))
		return token_bad(ret_why, "The GID of the RDMA descriptor is zero.");
	if (t->gid[0] == 0xff)
		return token_bad(ret_why, "The GID of the RDMA descriptor is a multicast one.");
	return 0;
}

/* Narrows t to [addr, addr + size), which must lie inside it (2.2). */
static int
narrow(struct token *t, uint64_t addr, uint64_t size, const char **ret_why)
{
	if (addr < t->addr || addr - t->addr > t->size || size > t->size - (addr - t->addr))
		return token_bad(ret_why,
				 "The effective window lies outside the window of the RDMA descriptor.");
	t->addr = addr;
	t->size = size;
	return 0;
}

int
token_suffix(struct span s, uint64_t *ret_addr, uint64_t *ret_size, const char **ret_why)
{
	const char *colon;
	size_t n1, n2;

	if (s.len < 4 || s.p[0] != ':' || !(colon = memchr(s.p + 1, ':', s.len - 1)))
		return token_bad(
			ret_why,
			"The RDMA descriptor has neither its own length nor the form with a suffix.");
	n1 = (size_t)(colon - s.p) - 1;
	n2 = s.len - n1 - 2;
	if (n1 > 16 || hex_u64(s.p + 1, n1, ret_addr) < 0)
		return token_bad(
			ret_why,
			"The suffix address of the RDMA descriptor is not 1 to 16 hexadecimal digits.");
	if (n2 > 16 || hex_u64(colon + 1, n2, ret_size) < 0)
		return token_bad(ret_why,
				 "The suffix size of the RDMA descriptor is not 1 to 16 hexadecimal digits.");
	return 0;
}

static int
parse(struct span s, bool allow_suffix, bool scal, struct token *ret_token, const char **ret_why)
{
	struct token t = { 0 };
	uint64_t addr, size;
	int r;

	if (token_is_family(s, scal, &t.kind)) {
		if (t.kind == TOKEN_RC_SHIM)
			token_parse_shim(s, &t);
		*ret_token = t;
		return 0;
	}
	if (s.len < TOKEN_DC_LEN)
		return token_bad(ret_why, s.len ? "The RDMA descriptor is too short."
						: "The RDMA descriptor is empty.");
	if (s.len > TOKEN_TEXT_MAX || (s.len > TOKEN_DC_LEN && !allow_suffix))
		return token_bad(ret_why, "The RDMA descriptor is too long.");
	r = parse_dc(s, &t, ret_why);
	if (r == 0 && s.len > TOKEN_DC_LEN) {
		r = token_suffix((struct span){ s.p + TOKEN_DC_LEN, s.len - TOKEN_DC_LEN }, &addr, &size,
				 ret_why);
		if (r == 0)
			r = narrow(&t, addr, size, ret_why);
	}
	if (r == 0)
		*ret_token = t;
	return r;
}

int
token_parse(const char *text, size_t len, struct token *ret_token, const char **ret_why)
{
	return parse(token_strip(text, len), true, false, ret_token, ret_why);
}

int
token_parse_plain(const char *text, size_t len, struct token *ret_token, const char **ret_why)
{
	return parse(token_strip(text, len), false, true, ret_token, ret_why);
}

/* item 12 */
static int
decimal(const char *text, size_t len, uint64_t *ret_value)
{
	return span_decimal(span_trim((struct span){ text, len }), ret_value);
}

int
token_parse_trio(const char *descr, size_t descr_len, const char *start, size_t start_len, const char *length,
		 size_t length_len, bool is_put, struct token *ret_token, const char **ret_why)
{
	struct token t;
	uint64_t addr, size;
	int r = parse(token_strip(descr, descr_len), false, false, &t, ret_why);

	if (r < 0)
		return r;
	if (t.kind != TOKEN_DC) {
		*ret_token = t;
		return 0;
	}
	addr = t.addr;
	if (start && decimal(start, start_len, &addr) < 0)
		return token_bad(ret_why, "x-cuobj-remote-buf-start is not a decimal number of 64 bits.");
	if (addr < t.addr || addr - t.addr > t.size)
		return token_bad(ret_why,
				 "x-cuobj-remote-buf-start lies outside the window of the RDMA descriptor.");
	size = t.size - (addr - t.addr);
	if (!length && is_put)
		return token_bad(ret_why, "x-cuobj-content-length is missing.");
	if (length && (decimal(length, length_len, &size) < 0 || size == 0))
		return token_bad(ret_why,
				 "x-cuobj-content-length is not a decimal number of 64 bits above zero.");
	r = narrow(&t, addr, size, ret_why);
	if (r == 0)
		*ret_token = t;
	return r;
}

int
token_check_move(const struct token *t, const char **ret_why)
{
	if (t->kind != TOKEN_DC)
		return 0;
	if (t->addr == 0)
		return token_bad(ret_why, "The address of the RDMA descriptor is zero.");
	if (t->size == 0)
		return token_bad(ret_why, "The size of the RDMA descriptor is zero.");
	return 0;
}

/* Writes a number as so many lower-case digits. snprintf() took two thirds of the time in which libgantry makes a token. */
static void
put_digits(char *text, uint64_t value, size_t digits)
{
	check(digits == 16 || value >> 4 * digits == 0);
	for (; digits; value >>= 4)
		text[--digits] = "0123456789abcdef"[value & 15];
}

int
token_format(const struct token *t, char text[TOKEN_DC_LEN + 1])
{
	if (t->size > UINT32_MAX)
		return -EFBIG;
	put_digits(text + AT_ADDR, t->addr, 16);
	put_digits(text + AT_SIZE, t->size, 8);
	put_digits(text + AT_RKEY, t->rkey, 8);
	put_digits(text + AT_LID, t->lid, 4);
	put_digits(text + AT_DCTN, t->dctn, 6);
	text[AT_G] = t->have_gid ? '1' : '0';
	hex_write(text + AT_GID, t->gid, 16);
	for (size_t i = 0; i < sizeof colons; i++)
		text[colons[i]] = ':';
	text[TOKEN_DC_LEN] = 0;
	return 0;
}
