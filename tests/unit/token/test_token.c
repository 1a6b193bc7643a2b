/* SPDX-License-Identifier: Apache-2.0 */
/* The DC descriptor, its suffix form, and minting: token.c. */
#include "parse.h"

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
	/* No DC descriptor, whatever else it is. */
	assert_int_equal(
		parse("000073967e5ff000:00400000:01f2e973:0000:000000:1:00000000000000000000ffff0f0f0fdf",
		      &t),
		0);
	assert_int_equal(t.kind, TOKEN_RC_BACK);
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
	/* Of a family that is not decoded nothing is known, so nothing is wrong. */
	t = (struct token){ .kind = TOKEN_RC_SHIM };
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
		cmocka_unit_test(minting),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(arbitrary_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
