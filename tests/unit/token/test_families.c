/* SPDX-License-Identifier: Apache-2.0 */
/* The versity trio, RC, and the families that are told apart to be declined: token.c, rc.c, family.c. */
#include "parse.h"

#include "base/base64.h"

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

/* item T67: what an rc: token says, and what is wrong with it */
static void
rc_tokens(void **state)
{
#define ID "03b1c6f0a4e84d1796c2e5f70b8d9a1e"
	static const struct {
		const char *text;
		uint64_t addr, size;
		uint32_t rkey;
		const char *bad; /* a word of the sentence; NULL: it is valid */
	} cases[] = {
		{ "rc:" ID ":00007f0000200000:00100000:0001a2b3", 0x7f0000200000, 0x100000, 0x1a2b3, NULL },
		{ " rc:" ID ":00007F0000200000:00100000:0001A2B3; ", 0x7f0000200000, 0x100000, 0x1a2b3,
		  NULL },
		{ "rc:" ID ":00007f0000200000:ffffffff:ffffffff", 0x7f0000200000, 0xffffffff, 0xffffffff,
		  NULL },
		{ "rc:" ID ":00007f0000200000:0000000100000:00000000", 0x7f0000200000, 0x100000, 0, NULL },
		{ "rc:" ID ":ffffffffffffffff:00000001:00000001", UINT64_MAX, 1, 1, NULL },
		{ "rc:" ID ":00007f0000200000:100000000:0001a2b3", 0, 0, 0, "size" },
		{ "rc:" ID ":00007f0000200000:00000000000000001:0001a2b3", 0, 0, 0, "size" },
		{ "rc:" ID ":00007f0000200000:0100000:0001a2b3", 0, 0, 0, "size" },
		{ "rc:" ID ":00007f0000200000:0010000g:0001a2b3", 0, 0, 0, "size" },
		{ "rc:" ID ":00007f0000200000:00000000:0001a2b3", 0, 0, 0, "size" },
		{ "rc:" ID ":0000000000000000:00100000:0001a2b3", 0, 0, 0, "address" },
		{ "rc:" ID ":7f0000200000:00100000:0001a2b3", 0, 0, 0, "address" },
		{ "rc:" ID ":ffffffffffffffff:00000002:0001a2b3", 0, 0, 0, "window" },
		{ "rc:" ID ":00007f0000200000:00100000:001a2b3", 0, 0, 0, "key" },
		{ "rc:" ID ":00007f0000200000:00100000:0001a2b3:", 0, 0, 0, "key" },
		{ "rc:" ID ":00007f0000200000:00100000", 0, 0, 0, "key" },
		{ "rc:0" ID ":00007f0000200000:00100000:0001a2b3", 0, 0, 0, "connection" },
		{ "rc:x3b1c6f0a4e84d1796c2e5f70b8d9a1e:00007f0000200000:00100000:0001a2b3", 0, 0, 0,
		  "connection" },
		{ "rc:", 0, 0, 0, "connection" },
		{ "rc::::", 0, 0, 0, "connection" },
	};
	static const uint8_t id[16] = { 0x03, 0xb1, 0xc6, 0xf0, 0xa4, 0xe8, 0x4d, 0x17,
					0x96, 0xc2, 0xe5, 0xf7, 0x0b, 0x8d, 0x9a, 0x1e };
	struct token t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse(cases[i].text, &t), 0);
		assert_int_equal(t.kind, TOKEN_RC_SHIM);
		if (cases[i].bad ? !t.bad || !strstr(t.bad, cases[i].bad)
				 : t.bad || t.addr != cases[i].addr || t.size != cases[i].size ||
					   t.rkey != cases[i].rkey || memcmp(t.id, id, 16) != 0)
			fail_msg("%s: %s", cases[i].text, t.bad ? t.bad : "valid");
	}
#undef ID
}

/* The client's end of a connection: no window, and a GID or a LID. */
static void
rc_ends(void **state)
{
	static const uint8_t zero[16];
	struct token in = { .dctn = 0x12a, .port = 1, .lid = 7, .gid = { [10] = 0xff, 0xff, 10, 0, 0, 5 } },
		     t;
	char text[TOKEN_RC_LEN + 1];
	const char *why;

	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), 0);
	assert_int_equal(t.dctn, 0x12a);
	assert_true(t.have_gid && t.lid == 7 && t.port == 1 && t.size == 0);
	assert_memory_equal(t.gid, in.gid, 16);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN - 1, &t, &why), -EINVAL);
	memcpy(in.gid, zero, 16);
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), 0);
	assert_false(t.have_gid);
	in.lid = 0xc000;
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
	in.lid = 0;
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
	in.lid = 7;
	in.dctn = 0x1000000;
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
	in.dctn = 0;
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
	in.dctn = 1;
	in.port = 0;
	token_format_rc(&in, text);
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
	in.port = 1;
	token_format_rc(&in, text);
	text[1] = '0';
	assert_int_equal(token_parse_end(text, TOKEN_RC_LEN, &t, &why), -EINVAL);
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
		/* Dell's RC: all of 2.1 but a DCT.  Whatever the rest says; malformed as 2.1 is malformed. */
		{ "000073967e5ff000:00400000:01f2e973:0000:000000:1:00000000000000000000ffff0f0f0fdf",
		  TOKEN_RC_BACK, TOKEN_RC_BACK },
		{ "0000000000000000:00000000:00000000:0000:000000:0:00000000000000000000000000000000",
		  TOKEN_RC_BACK, TOKEN_RC_BACK },
		{ "000073967e5ff000:00400000:01f2e973:0000:000000:2:00000000000000000000ffff0f0f0fdf",
		  -EINVAL, -EINVAL },
		{ "000073967e5ff000:00400000:01f2e973:0000:00000g:1:00000000000000000000ffff0f0f0fdf",
		  -EINVAL, -EINVAL },
		{ "000073967e5ff000:00400000:01f2e973:0000:000000:1:00000000000000000000ffff0f0f0fd", -EINVAL,
		  -EINVAL },
		{ "000073967e5ff000:00400000:01f2e973:0000:000000:1:00000000000000000000ffff0f0f0fdf"
		  ":000073967e5ff000:0000000000400000",
		  -EINVAL, -EINVAL },
		{ "{\"type\":\"seaweed\",\"addr\":\"0x7f00\",\"rkey\":1}", TOKEN_JSON, TOKEN_JSON },
		{ "{ \"a\": {} }", TOKEN_JSON, TOKEN_JSON },
		{ "{}", TOKEN_JSON, TOKEN_JSON },
		{ "{", -EINVAL, -EINVAL },
		{ "{type}", -EINVAL, -EINVAL },
		{ "{\"a\":1", -EINVAL, -EINVAL },
		{ "[\"a\"]", -EINVAL, -EINVAL },
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

/* Base64 of a token that would be understood, or recognised; of nothing else.  item T7 */
static void
base64_family(void **state)
{
	static const struct {
		const char *text;
		int kind;
	} cases[] = {
		{ EXAMPLE, TOKEN_BASE64 },
		{ EXAMPLE SUFFIX, TOKEN_BASE64 },
		{ RC88, TOKEN_BASE64 },
		{ "rc:x", TOKEN_BASE64 },
		{ "0:10:ofi1:xnet.1:0200:1", TOKEN_BASE64 },
		{ "{\"type\":\"seaweed\"}", TOKEN_BASE64 },
		{ "", -EINVAL },
		{ "hello", -EINVAL },
		{ "000073967e5ff000:00400000", -EINVAL },
	};
	char once[512], twice[512];
	struct token t;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r;

		base64_encode(cases[i].text, strlen(cases[i].text), once);
		r = parse(once, &t);
		if ((r == 0 ? (int)t.kind : r) != cases[i].kind)
			fail_msg("base64 of %s", cases[i].text);
		r = plain(once, &t);
		if ((r == 0 ? (int)t.kind : r) != cases[i].kind)
			fail_msg("base64 of %s, plain", cases[i].text);
		/* Twice is nobody's. */
		base64_encode(once, strlen(once), twice);
		assert_int_equal(parse(twice, &t), -EINVAL);
	}
	base64_encode(EXAMPLE, TOKEN_DC_LEN, once);
	once[5] = '*';
	assert_int_equal(parse(once, &t), -EINVAL);
	/* More than any token has: not looked at. */
	memset(once, 'A', 348);
	once[348] = 0;
	assert_int_equal(parse(once, &t), -EINVAL);
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
		cmocka_unit_test(versity_trio),  cmocka_unit_test(trio_equals_suffix),
		cmocka_unit_test(rc_tokens),     cmocka_unit_test(rc_ends),
		cmocka_unit_test(families),      cmocka_unit_test(long_family),
		cmocka_unit_test(base64_family), cmocka_unit_test(dc_shape),
		cmocka_unit_test(rc_example),    cmocka_unit_test(rc_bad),
		cmocka_unit_test(rc_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
