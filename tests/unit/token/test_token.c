/* The DC descriptor, its suffix form, the versity trio and the families that are declined: token.c, family.c.
 */
#include "token/token.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf"
#define EXAMPLE_IB "00007f3a10000000:00100000:01f2e973:0012:007a03:0:00000000000000000000000000000000"
#define SUFFIX ":000073967e5ff000:0000000000400000"
#define RC88 "012a00000000000000000000000000ffff0a000005efbeadde00100000007f00000010000000000000010000"

/* Parses a copy that ends exactly where its allocation ends, so that the address sanitizer sees any step
 * beyond. */
static int
parse_with(int (*fn)(const char *, size_t, struct token *, const char **), const char *text, size_t len,
	   struct token *t)
{
	char *copy = malloc(len ? len : 1);
	const char *why = NULL;
	int r;

	memcpy(copy, text, len);
	memset(t, 0x5a, sizeof *t);
	r = fn(len ? copy : copy + 1, len, t, &why);
	free(copy);
	if (r < 0) {
		assert_int_equal(r, -EINVAL);
		assert_non_null(why);
		assert_true(strlen(why) > 10);
		/* Untouched on failure. */
		assert_int_equal(t->port, 0x5a);
	}
	return r;
}

static int
parse(const char *text, struct token *t)
{
	return parse_with(token_parse, text, strlen(text), t);
}

static int
plain(const char *text, struct token *t)
{
	return parse_with(token_parse_plain, text, strlen(text), t);
}

/* item 1 */
static void
example_of_roce(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 15, 15, 15, 223 };
	struct token t;

	assert_int_equal(parse(EXAMPLE, &t), 0);
	assert_int_equal(t.kind, TOKEN_DC);
	assert_true(t.addr == 0x73967e5ff000 && t.size == 0x400000);
	assert_int_equal(t.rkey, 0x01f2e973);
	assert_int_equal(t.lid, 0);
	assert_int_equal(t.dctn, 0x7a03);
	assert_true(t.have_gid);
	assert_memory_equal(t.gid, gid, 16);
	assert_int_equal(plain(EXAMPLE, &t), 0);
}

/* item 2 */
static void
example_of_infiniband(void **state)
{
	struct token t;

	assert_int_equal(parse(EXAMPLE_IB, &t), 0);
	assert_false(t.have_gid);
	assert_int_equal(t.lid, 0x12);
	assert_true(t.addr == 0x7f3a10000000 && t.size == 0x100000);
	/* What stands in GID then is ignored. */
	assert_int_equal(
		parse("00007f3a10000000:00100000:01f2e973:0012:007a03:0:ff000000000000000000000000000001",
		      &t),
		0);
	assert_int_equal(t.gid[0], 0);
}

/* item 3 */
static void
example_with_suffix(void **state)
{
	struct token t;

	assert_int_equal(strlen(EXAMPLE SUFFIX), TOKEN_DC_SUFFIX_LEN);
	assert_int_equal(parse(EXAMPLE SUFFIX, &t), 0);
	assert_true(t.addr == 0x73967e5ff000 && t.size == 0x400000);
	assert_int_equal(parse(EXAMPLE ":000073967e600000:0000000000001000", &t), 0);
	assert_true(t.addr == 0x73967e600000 && t.size == 0x1000);
	assert_int_equal(t.rkey, 0x01f2e973);
	/* Not padded. */
	assert_int_equal(parse(EXAMPLE ":73967e5ff000:1", &t), 0);
	assert_true(t.addr == 0x73967e5ff000 && t.size == 1);
	/* A header that carries 2.1 only. */
	assert_int_equal(plain(EXAMPLE SUFFIX, &t), -EINVAL);
}

/* item 4: the window is [0x73967e5ff000, 0x73967e9ff000) */
static void
suffix_outside(void **state)
{
	static const struct {
		const char *suffix;
		int r;
	} cases[] = {
		{ ":73967e5fefff:1", -EINVAL },
		{ ":73967e5ff000:400000", 0 },
		{ ":73967e5ff000:400001", -EINVAL },
		{ ":73967e5ff001:3fffff", 0 },
		{ ":73967e5ff001:400000", -EINVAL },
		{ ":73967e9fefff:1", 0 },
		{ ":73967e9fefff:2", -EINVAL },
		{ ":73967e9ff000:0", 0 },
		{ ":73967e9ff000:1", -EINVAL },
		{ ":73967e9ff001:0", -EINVAL },
		{ ":73967e5ff000:ffffffffffffffff", -EINVAL },
		{ ":ffffffffffffffff:1", -EINVAL },
		{ ":0:1", -EINVAL },
		{ ":73967e5ff000:100400000", -EINVAL },
	};
	char text[200];
	struct token t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, EXAMPLE "%s", cases[i].suffix);
		if (parse(text, &t) != cases[i].r)
			fail_msg("suffix %s", cases[i].suffix);
	}
}

static void
suffix_syntax(void **state)
{
	static const char *const bad[] = { ":",      "::",
					   ":1",     ":1:",
					   "::1",    ":g:1",
					   ":1:g",   ":1:1:",
					   ":1:1:1", ":00000000000000001:1",
					   ": 1:1",  ":1:1 1",
					   ":0x1:1", ":1:00000000000000001",
					   ":-1:1",  ":+1:1" };
	char text[200];
	struct token t;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, EXAMPLE "%s", bad[i]);
		if (parse(text, &t) != -EINVAL)
			fail_msg("suffix %s", bad[i]);
	}
}

/* item 5: lengths */
static void
bad_lengths(void **state)
{
	char text[400];
	struct token t;

	for (size_t len = 0; len <= 300; len++) {
		memset(text, '0', sizeof text);
		memcpy(text, EXAMPLE, TOKEN_DC_LEN);
		if (parse_with(token_parse, text, len, &t) != (len == TOKEN_DC_LEN ? 0 : -EINVAL))
			fail_msg("length %zu", len);
	}
	/* A well-formed head does not excuse 257 characters. */
	memset(text, ':', sizeof text);
	memcpy(text, EXAMPLE SUFFIX, TOKEN_DC_SUFFIX_LEN);
	assert_int_equal(parse_with(token_parse, text, TOKEN_TEXT_MAX + 1, &t), -EINVAL);
	assert_int_equal(parse("   \t ", &t), -EINVAL);
	assert_int_equal(parse(";", &t), -EINVAL);
}

/* item 5, item 8, item 16: every position of the token with every byte there is. */
static void
every_position(void **state)
{
	char text[TOKEN_DC_LEN + 1];
	struct token t;

	for (size_t at = 0; at < TOKEN_DC_LEN; at++) {
		bool colon = at == 16 || at == 25 || at == 34 || at == 39 || at == 46 || at == 48;

		for (int c = 0; c < 256; c++) {
			bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
			int want;

			memcpy(text, EXAMPLE, sizeof text);
			text[at] = (char)c;
			if (colon)
				want = c == ':' ? 0 : -EINVAL;
			else if (at == 47) /* G = 0 with LID 0 addresses nothing */
				want = c == '1' ? 0 : -EINVAL;
			else
				want = hex ? 0 : -EINVAL;
			/* 0xc000 and up in LID, 0xff.. in GID. */
			if (at == 35 && hex && strchr("cdefCDEF", c))
				want = -EINVAL;
			/* Blanks and ';' at the ends are stripped, which leaves it too short. */
			if (parse_with(token_parse, text, TOKEN_DC_LEN, &t) != want)
				fail_msg("position %zu, byte 0x%02x", at, c);
		}
	}
}

/* item 5: each colon one place to the left and to the right */
static void
moved_colons(void **state)
{
	static const int at[] = { 16, 25, 34, 39, 46, 48 };
	struct token t;

	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		for (int d = -1; d <= 1; d += 2) {
			char text[] = EXAMPLE;

			text[at[i]] = text[at[i] + d];
			text[at[i] + d] = ':';
			assert_int_equal(parse(text, &t), -EINVAL);
		}
	}
}

/* item 5: G = 2, item 7: DCTN 0, and the other values of the table in 2.1 */
static void
bad_values(void **state)
{
	static const char *const bad[] = {
		"000073967e5ff000:00400000:01f2e973:0000:007a03:2:00000000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:0000:000000:1:00000000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:0000:007a03:1:00000000000000000000000000000000",
		"000073967e5ff000:00400000:01f2e973:0000:007a03:0:00000000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:0000:007a03:1:ff020000000000000000000000000001",
		"000073967e5ff000:00400000:01f2e973:c000:007a03:1:00000000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:ffff:007a03:0:00000000000000000000000000000000",
	};
	static const char *const good[] = {
		/* RKEY 0: the NIC judges; LID with GID; the largest unicast LID; a link-local GID. */
		"000073967e5ff000:00400000:00000000:0000:007a03:1:00000000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:0012:007a03:1:fe800000000000000000ffff0f0f0fdf",
		"000073967e5ff000:00400000:01f2e973:bfff:ffffff:0:00000000000000000000000000000000",
	};
	struct token t;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i], &t), -EINVAL);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(parse(good[i], &t), 0);
}

/* item 6: the last byte may be 2^64 - 1 and no further. */
static void
end_of_address_space(void **state)
{
#define REST ":01f2e973:0000:007a03:1:00000000000000000000ffff0f0f0fdf"
	struct token t;

	assert_int_equal(parse("fffffffffffff000:00001000" REST, &t), 0);
	assert_int_equal(parse("fffffffffffff000:00000fff" REST, &t), 0);
	assert_int_equal(parse("fffffffffffff000:00001001" REST, &t), -EINVAL);
	assert_int_equal(parse("fffffffffffff001:00001000" REST, &t), -EINVAL);
	assert_int_equal(parse("ffffffffffffffff:00000001" REST, &t), 0);
	assert_int_equal(parse("ffffffffffffffff:00000002" REST, &t), -EINVAL);
	assert_int_equal(parse("ffffffffffffffff:00000000" REST, &t), 0);
	assert_int_equal(parse("ffffffff00000001:ffffffff" REST, &t), 0);
	assert_int_equal(parse("ffffffff00000002:ffffffff" REST, &t), -EINVAL);
}

/* item 7: ADDR 0; item 9: the largest SIZE */
static void
when_bytes_are_to_move(void **state)
{
	const char *why;
	struct token t;

	assert_int_equal(parse("0000000000000000:00400000" REST, &t), 0);
	assert_int_equal(token_check_move(&t, &why), -EINVAL);
	assert_int_equal(parse("000073967e5ff000:00000000" REST, &t), 0);
	assert_int_equal(token_check_move(&t, &why), -EINVAL);
	assert_int_equal(parse("000073967e5ff000:ffffffff" REST, &t), 0);
	assert_true(t.size == 0xffffffff);
	assert_int_equal(token_check_move(&t, &why), 0);
}

/* item 8 */
static void
tolerated(void **state)
{
	static const char *const good[] = {
		"000073967E5FF000:00400000:01F2E973:0000:007A03:1:00000000000000000000FFFF0F0F0FDF",
		"  \t" EXAMPLE " \t ",
		EXAMPLE ";",
		" " EXAMPLE "; ",
		EXAMPLE SUFFIX ";",
	};
	struct token t, want;

	assert_int_equal(parse(EXAMPLE, &want), 0);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(parse(good[i], &t), 0);
		assert_memory_equal(t.gid, want.gid, 16);
		assert_true(t.addr == want.addr && t.size == want.size && t.rkey == want.rkey &&
			    t.dctn == want.dctn);
	}
	assert_int_equal(parse(EXAMPLE ";;", &t), -EINVAL);
	assert_int_equal(parse("\n" EXAMPLE, &t), -EINVAL);
}

static int
trio(const char *start, const char *length, bool is_put, struct token *t)
{
	const char *why = NULL;
	int r = token_parse_trio(EXAMPLE, TOKEN_DC_LEN, start, start ? strlen(start) : 0, length,
				 length ? strlen(length) : 0, is_put, t, &why);

	assert_true(r == 0 || why);
	return r;
}

/* item 12 */
static void
versity_trio(void **state)
{
	/* With start at the window's first byte, one below it, one beyond it: */
	static const struct {
		const char *start, *length;
		int r;
		uint64_t addr, size;
	} cases[] = {
		{ "127090202505216", "1048576", 0, 0x73967e5ff000, 0x100000 },
		{ "127090202505215", "1048576", -EINVAL },
		{ "127090202505217", "4194303", 0, 0x73967e5ff001, 0x3fffff },
		{ "127090202505217", "4194304", -EINVAL },
		{ "127090206699520", "1", -EINVAL },
		{ "127090202505216", "4194304", 0, 0x73967e5ff000, 0x400000 },
		{ "127090202505216", "4194305", -EINVAL },
		{ NULL, "1048576", 0, 0x73967e5ff000, 0x100000 },
		{ " 127090202505216 ", "\t1048576", 0, 0x73967e5ff000, 0x100000 },
		{ "", "1048576", -EINVAL },
		{ "0x73967e5ff000", "1048576", -EINVAL },
		{ "73967e5ff000", "1048576", -EINVAL },
		{ "-127090202505216", "1048576", -EINVAL },
		{ "+127090202505216", "1048576", -EINVAL },
		{ "127090202505216", "", -EINVAL },
		{ "127090202505216", "0", -EINVAL },
		{ "127090202505216", "-1", -EINVAL },
		{ "127090202505216", "+1", -EINVAL },
		{ "127090202505216", "1 0", -EINVAL },
		{ "127090202505216", "0x10", -EINVAL },
		{ "127090202505216", "1.0", -EINVAL },
		{ "127090202505216", "18446744073709551615", -EINVAL },
		{ "127090202505216", "18446744073709551616", -EINVAL },
		{ "127090202505216", "18446744073709551617", -EINVAL }, /* 1 beyond 64 bits */
		{ "18446744073709551615", "1", -EINVAL },
		{ "18446871163912056832", "1", -EINVAL }, /* the start plus 2^64 */
	};
	struct token t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r = trio(cases[i].start, cases[i].length, true, &t);

		if (r != cases[i].r || (r == 0 && (t.addr != cases[i].addr || t.size != cases[i].size)))
			fail_msg("start %s, length %s", cases[i].start, cases[i].length);
	}
	assert_int_equal(trio("127090202505216", NULL, true, &t), -EINVAL);
	/* A GET without the length: the rest of the window. */
	assert_int_equal(trio("127090202505217", NULL, false, &t), 0);
	assert_true(t.addr == 0x73967e5ff001 && t.size == 0x3fffff);
	assert_int_equal(trio(NULL, NULL, false, &t), 0);
	assert_true(t.addr == 0x73967e5ff000 && t.size == 0x400000);
	assert_int_equal(trio("127090206699521", NULL, false, &t), -EINVAL);
}

/* item 12: the same effective window as the equivalent suffix */
static void
trio_equals_suffix(void **state)
{
	static const uint64_t addrs[] = { 0x73967e5fefff, 0x73967e5ff000, 0x73967e5ff001, 0x73967e9feffe,
					  0x73967e9fefff, 0x73967e9ff000, 0x73967e9ff001 };
	static const uint64_t sizes[] = { 1, 2, 0x3fffff, 0x400000, 0x400001, 0x100000000 };
	char suffix[200], start[32], length[32];
	struct token a, b;

	for (size_t i = 0; i < sizeof addrs / sizeof *addrs; i++) {
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			int r;

			snprintf(suffix, sizeof suffix, EXAMPLE ":%llx:%llx", (unsigned long long)addrs[i],
				 (unsigned long long)sizes[k]);
			snprintf(start, sizeof start, "%llu", (unsigned long long)addrs[i]);
			snprintf(length, sizeof length, "%llu", (unsigned long long)sizes[k]);
			r = parse(suffix, &a);
			assert_int_equal(trio(start, length, true, &b), r);
			if (r == 0)
				assert_true(a.addr == b.addr && a.size == b.size);
		}
	}
}

/* item 13: the shape only; item T1, item T2, item T3, item T4, item 15 */
static void
families(void **state)
{
	static const struct {
		const char *text;
		int any, on_plain; /* kind, or -EINVAL */
	} cases[] = {
		{ "rc:03b1c6f0a4e84d1796c2e5f70b8d9a1e:00007f0000200000:00100000:0001a2b3", TOKEN_RC_SHIM,
		  TOKEN_RC_SHIM },
		{ "rc:", TOKEN_RC_SHIM, TOKEN_RC_SHIM },
		{ "rc:x", TOKEN_RC_SHIM, TOKEN_RC_SHIM },
		{ "rc", -EINVAL, -EINVAL },
		{ "RC:x", -EINVAL, -EINVAL },
		{ "0:10:ofi1:xnet.1:0200:1", TOKEN_OFI, TOKEN_OFI },
		{ "0:10:ofi2:x", TOKEN_OFI, TOKEN_OFI },
		{ "0:10:ofi1", TOKEN_OFI, TOKEN_OFI },
		{ "0:10:ofi123:", TOKEN_OFI, TOKEN_OFI },
		{ "7f0012345000:c00000:ofi1:rxm.1:02009cbb0a0000050000000000000000:1f", TOKEN_OFI,
		  TOKEN_OFI },
		{ "0:10:ofi:xnet.1:0200:1", -EINVAL, -EINVAL },
		{ "0:10:ofi1x:xnet.1:0200:1", -EINVAL, -EINVAL },
		{ "0:10:1:ofi1:xnet.1:0200:1", -EINVAL, -EINVAL },
		{ "0:10:OFI1:xnet.1:0200:1", -EINVAL, -EINVAL },
		{ "0:10:of", -EINVAL, -EINVAL },
		{ "ofi1:0:0", -EINVAL, -EINVAL },
		{ RC88, TOKEN_RC_V1, TOKEN_RC_V1 },
		{ RC88 ":00007f0000001000:0000000000001000", TOKEN_RC_V1, TOKEN_RC_V1 },
		{ RC88 ":", TOKEN_RC_V1, TOKEN_RC_V1 },
		{ RC88 "0", -EINVAL, -EINVAL },
		{ "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
		  TOKEN_RC_V1, TOKEN_RC_V1 },
		{ "g000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
		  -EINVAL, -EINVAL },
		{ "10.0.0.5:18515:0x00007f0000001000:0x00100000:0x01f2e973", -EINVAL, TOKEN_RC_SCAL },
		{ "255.255.255.255:1:0x00007F0000001000:0x00100000:0x01f2e973", -EINVAL, TOKEN_RC_SCAL },
		{ "10.0.0.5:18515:0x00007f0000001000:0x00100000:0x01f2e97", -EINVAL, -EINVAL },
		{ "10.0.0.5:18515:0x00007f0000001000:0x00100000:0x01f2e9733", -EINVAL, -EINVAL },
		{ "10.0.0.5:18515:00007f0000001000:00100000:01f2e973", -EINVAL, -EINVAL },
		{ "10.0.0:18515:0x00007f0000001000:0x00100000:0x01f2e973", -EINVAL, -EINVAL },
		{ "10.0.0.5::0x00007f0000001000:0x00100000:0x01f2e973", -EINVAL, -EINVAL },
		{ "10.0.0.5:185150:0x00007f0000001000:0x00100000:0x01f2e973", -EINVAL, -EINVAL },
		{ "10.0.0.5:18515:0x00007f0000001000", -EINVAL, -EINVAL },
		{ "10.0.0.5:18515:0x00007f0000001000:", -EINVAL, -EINVAL },
		{ "10.0.0.5:", -EINVAL, -EINVAL },
	};
	struct token t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r = parse(cases[i].text, &t);

		if ((r == 0 ? (int)t.kind : r) != cases[i].any)
			fail_msg("token_parse: %s", cases[i].text);
		r = plain(cases[i].text, &t);
		if ((r == 0 ? (int)t.kind : r) != cases[i].on_plain)
			fail_msg("token_parse_plain: %s", cases[i].text);
	}
}

/* A libfabric name may be longer than any DC token: still declined, not malformed.  item T2 */
static void
long_family(void **state)
{
	char text[600] = "0:10:ofi1:tcp:";
	struct token t;

	memset(text + 14, 'a', 384);
	strcpy(text + 14 + 384, ":1");
	assert_int_equal(parse(text, &t), 0);
	assert_int_equal(t.kind, TOKEN_OFI);
}

/* item 102: what x-amz-meta-rdma-token must look like to be taken for a descriptor while off */
static void
dc_shape(void **state)
{
	assert_true(token_has_dc_shape(EXAMPLE, TOKEN_DC_LEN));
	assert_true(token_has_dc_shape(" " EXAMPLE ";", TOKEN_DC_LEN + 2));
	/* Whatever its values. */
	assert_true(token_has_dc_shape(
		"0000000000000000:00000000:00000000:0000:000000:0:00000000000000000000000000000000", 81));
	assert_false(token_has_dc_shape(EXAMPLE SUFFIX, TOKEN_DC_SUFFIX_LEN));
	assert_false(token_has_dc_shape(EXAMPLE, TOKEN_DC_LEN - 1));
	assert_false(token_has_dc_shape("", 0));
	for (size_t at = 0; at < TOKEN_DC_LEN; at++) {
		char text[] = EXAMPLE;

		text[at] = 'x';
		assert_false(token_has_dc_shape(text, TOKEN_DC_LEN));
	}
}

/* item 112, item 113, item 114 */
static void
minting(void **state)
{
	struct token t = { .addr = 0x73967e5ff000,
			   .size = 0x400000,
			   .rkey = 0x01f2e973,
			   .dctn = 0x7a03,
			   .have_gid = true,
			   .gid = { [10] = 0xff, 0xff, 15, 15, 15, 223 } };
	char text[TOKEN_DC_LEN + 1];

	assert_int_equal(token_format(&t, text), 0);
	assert_string_equal(text, EXAMPLE);
	t = (struct token){
		.addr = 0x7f3a10000000, .size = 0x100000, .rkey = 0x01f2e973, .lid = 0x12, .dctn = 0x7a03
	};
	assert_int_equal(token_format(&t, text), 0);
	assert_string_equal(text, EXAMPLE_IB);
	t.size = 0xffffffff;
	assert_int_equal(token_format(&t, text), 0);
	t.size++;
	assert_int_equal(token_format(&t, text), -EFBIG);
}

/* Whatever is minted is understood again. */
static void
round_trip(void **state)
{
	unsigned long seed = getenv("SEED") ? strtoul(getenv("SEED"), NULL, 0) : 1;

	print_message("SEED=%lu\n", seed);
	srandom((unsigned)seed);
	for (int i = 0; i < 20000; i++) {
		struct token t = { .addr = (uint64_t)random() << 20 ^ (uint64_t)random(),
				   .size = (uint32_t)random() >> random() % 32,
				   .rkey = (uint32_t)random(),
				   .lid = (uint16_t)(random() % 0xc000),
				   .dctn = 1 + (uint32_t)random() % 0xffffff,
				   .have_gid = true },
			     back;
		char text[TOKEN_DC_LEN + 1];

		for (int k = 0; k < 16; k++)
			t.gid[k] = (uint8_t)random();
		t.gid[0] = 0xfe;
		assert_int_equal(token_format(&t, text), 0);
		assert_int_equal(parse(text, &back), 0);
		assert_true(t.addr == back.addr && t.size == back.size && t.rkey == back.rkey &&
			    t.lid == back.lid && t.dctn == back.dctn && back.have_gid);
		assert_memory_equal(t.gid, back.gid, 16);
	}
}

/* item 16: bytes that may be anything, in memory that ends where they end */
static void
arbitrary_bytes(void **state)
{
	static const char some[] = "0123456789abcdefABCDEF:::::;. \tx\0\xff\x80rcofi";
	unsigned long seed = getenv("SEED") ? strtoul(getenv("SEED"), NULL, 0) : 1;

	print_message("SEED=%lu\n", seed);
	srandom((unsigned)seed);
	for (int i = 0; i < 50000; i++) {
		size_t len = (size_t)(random() % 300);
		char text[300];
		struct token t;
		const char *why;

		for (size_t k = 0; k < len; k++)
			text[k] = some[(size_t)random() % (sizeof some - 1)];
		if (random() % 2 && len > 90)
			memcpy(text, EXAMPLE, TOKEN_DC_LEN);
		parse_with(token_parse, text, len, &t);
		parse_with(token_parse_plain, text, len, &t);
		parse_with(token_parse_rc, text, len, &t);
		token_has_dc_shape(text, len);
		token_parse_trio(text, len / 2, text + len / 2, len / 4, text, len / 8, true, &t, &why);
	}
}

/* item 13 */
static void
rc_example(void **state)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 5 };
	static const char *const forms[] = {
		RC88, RC88 ":00007f0000001000:0000000000001000",
		/* The suffix has the buffer's base: the token's address stands. */
		RC88 ":0000000000000001:0000000000002000", RC88 ":0:0"
	};
	struct token t;

	assert_int_equal(strlen(forms[1]), 122);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		assert_int_equal(parse_with(token_parse_rc, forms[i], strlen(forms[i]), &t), 0);
		assert_int_equal(t.kind, TOKEN_RC_V1);
		assert_int_equal(t.dctn, 42);
		assert_memory_equal(t.gid, gid, 16);
		assert_true(t.have_gid);
		assert_int_equal(t.rkey, 0xdeadbeef);
		assert_true(t.addr == 0x7f0000001000 && t.size == 4096);
		assert_int_equal(t.port, 1);
		assert_int_equal(t.lid, 0);
	}
	/* The smaller of the two sizes. */
	assert_int_equal(parse_with(token_parse_rc, RC88 ":1:fff", 88 + 6, &t), 0);
	assert_true(t.size == 4095);
}

static void
rc_bad(void **state)
{
	static const struct {
		int at; /* hex digit to change */
		const char *with;
	} bad[] = {
		{ 0, "00" },                /* transport DC */
		{ 0, "02" },                /* no such transport */
		{ 2, "00000000" },          /* QP 0 */
		{ 2, "00000001" },          /* QP above 24 bits */
		{ 66, "0000000000000000" }, /* length 0 */
		{ 66, "ffffffffffffffff" }, /* past the end of memory */
		{ 82, "00" },               /* port 0 */
		{ 50, "zz" },
	};
	struct token t;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[] = RC88;

		memcpy(text + bad[i].at, bad[i].with, strlen(bad[i].with));
		if (parse_with(token_parse_rc, text, TOKEN_RC_LEN, &t) != -EINVAL)
			fail_msg("%s at %d", bad[i].with, bad[i].at);
	}
	assert_int_equal(parse_with(token_parse_rc, RC88, 87, &t), -EINVAL);
	assert_int_equal(parse_with(token_parse_rc, RC88 "0", 89, &t), -EINVAL);
	assert_int_equal(parse_with(token_parse_rc, RC88 ":1", 90, &t), -EINVAL);
	assert_int_equal(parse_with(token_parse_rc, EXAMPLE, TOKEN_DC_LEN, &t), -EINVAL);
}

/* item 14 */
static void
rc_round_trip(void **state)
{
	struct token t = { .kind = TOKEN_RC_V1,
			   .dctn = 42,
			   .gid = { [10] = 0xff, 0xff, 10, 0, 0, 5 },
			   .rkey = 0xdeadbeef,
			   .addr = 0x7f0000001000,
			   .size = 4096,
			   .port = 1 },
		     back;
	char text[TOKEN_RC_LEN + 1];

	token_format_rc(&t, text);
	assert_string_equal(text, RC88);
	t.lid = 0x1234;
	t.dctn = 0xabcdef;
	t.addr = 0x0123456789abcdef;
	token_format_rc(&t, text);
	assert_int_equal(strlen(text), TOKEN_RC_LEN);
	assert_int_equal(strspn(text, "0123456789abcdef"), TOKEN_RC_LEN);
	assert_int_equal(parse_with(token_parse_rc, text, TOKEN_RC_LEN, &back), 0);
	assert_true(back.lid == 0x1234 && back.dctn == 0xabcdef && back.addr == t.addr && back.size == 4096 &&
		    back.port == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_of_roce),
		cmocka_unit_test(example_of_infiniband),
		cmocka_unit_test(example_with_suffix),
		cmocka_unit_test(suffix_outside),
		cmocka_unit_test(suffix_syntax),
		cmocka_unit_test(bad_lengths),
		cmocka_unit_test(every_position),
		cmocka_unit_test(moved_colons),
		cmocka_unit_test(bad_values),
		cmocka_unit_test(end_of_address_space),
		cmocka_unit_test(when_bytes_are_to_move),
		cmocka_unit_test(tolerated),
		cmocka_unit_test(versity_trio),
		cmocka_unit_test(trio_equals_suffix),
		cmocka_unit_test(families),
		cmocka_unit_test(long_family),
		cmocka_unit_test(dc_shape),
		cmocka_unit_test(minting),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(arbitrary_bytes),
		cmocka_unit_test(rc_example),
		cmocka_unit_test(rc_bad),
		cmocka_unit_test(rc_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
