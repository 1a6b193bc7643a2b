/* SPDX-License-Identifier: Apache-2.0 */
/* Which known key is meant by one that is not known. */
#include "base/clock.h"
#include "conf/conf_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void
test_distance(void **state)
{
	char longer[200];

	assert_int_equal(conf_edit_distance("", "", 64), 0);
	assert_int_equal(conf_edit_distance("abc", "", 64), 3);
	assert_int_equal(conf_edit_distance("", "abc", 64), 3);
	assert_int_equal(conf_edit_distance("abc", "abc", 64), 0);
	assert_int_equal(conf_edit_distance("abc", "acb", 64), 1);
	assert_int_equal(conf_edit_distance("kitten", "sitting", 64), 3);
	assert_int_equal(conf_edit_distance("timeout", "timeoutt", 64), 1);
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	assert_int_equal(conf_edit_distance(longer, longer, 64), 0);
	assert_int_equal(conf_edit_distance(longer, "", 64), 63);
	/* Near enough or not is all that a limit leaves. */
	for (int limit = 0; limit < 8; limit++) {
		int d = conf_edit_distance("kitten", "sitting", limit),
		    swap = conf_edit_distance("abcdef", "badcfe", limit);

		assert_true(limit > 3 ? d == 3 : d >= limit);
		assert_true(limit > 3 ? swap == 3 : swap >= limit);
	}
	for (int i = 0; i < conf_key_nr; i++) {
		for (int j = 0; j < conf_key_nr; j++) {
			const char *x = conf_keys[i].name, *y = conf_keys[j].name;
			int d = conf_edit_distance(x, y, 64);

			for (int limit = 0; limit < 64; limit += 1 + limit / 8) {
				int near = conf_edit_distance(x, y, limit);

				assert_true(d < limit ? near == d : near >= limit);
			}
		}
	}
}

static void
test_nearest(void **state)
{
	static const char *const cases[][2] = {
		{ "rdma.dckey", "rdma.dc_key" },
		{ "rdma.DC_KEY", "rdma.dc_key" },
		{ "lisen", "listen" },
		{ "limit", "limits" },
		{ "rdma.drain", "limits.drain" },
		{ "listen[3].addresz", "address" },
		{ "listen[0].delete404", "delete_404" },
		{ "store.disks[0].sizze", "size" },
		{ "store.disk", "store.disks" },
		{ "xyzzy", NULL },
		{ "listen[0].xyzzyxyzzy", NULL },
		{ "rdma.xyzzyxyzzy", NULL },
		{ "", NULL },
	};
	char buf[128];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *near = key_nearest(cases[i][0], buf, sizeof buf);

		if (!cases[i][1] ? near != NULL : !near || strcmp(near, cases[i][1]) != 0)
			fail_msg("%s: %s, not %s", cases[i][0], near ? near : "nothing", cases[i][1]);
	}
}

/* The table itself: every default is what its own parser takes (conf_load() checks), every range has an
 * order. */
static void
test_table_is_sound(void **state)
{
	for (int i = 0; i < conf_key_nr; i++) {
		const struct conf_key *k = &conf_keys[i];

		assert_true(k->min <= k->max);
		assert_non_null(k->help);
		assert_true(k->def || k->type == KT_MAPS);
		assert_ptr_equal(key_find(conf_keys, conf_key_nr, k->name), k);
		assert_true((k->type == KT_MAPS) == (k->list != NULL));
	}
	assert_true(key_is_section("rdma"));
	assert_false(key_is_section("rdm"));
	assert_false(key_is_section("listen"));
}

static void
test_units(void **state)
{
	uint64_t v;
	char text[32];

	assert_int_equal(size_parse("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_true(size_parse("18446744073709551616", &v) < 0);
	assert_true(size_parse("16777216TiB", &v) < 0);
	assert_int_equal(size_parse("16777215TiB", &v), 0);
	assert_int_equal(size_parse("0.5KiB", &v), 0);
	assert_int_equal(v, 512);
	assert_true(size_parse("0.3KiB", &v) < 0);
	assert_true(size_parse(".5KiB", &v) < 0);
	assert_true(size_parse("1.KiB", &v) < 0);
	assert_true(size_parse("-1", &v) < 0);
	assert_true(size_parse("1kib", &v) < 0);
	assert_int_equal(size_parse("8 MiB", &v), 0);
	assert_int_equal(time_parse("0", &v), 0);
	assert_true(time_parse("1", &v) < 0);
	assert_int_equal(time_parse("7d", &v), 0);
	assert_int_equal(v, 604800 * NS_PER_S);
	assert_int_equal(time_parse("1.5h", &v), 0);
	assert_int_equal(v, 5400 * NS_PER_S);
	assert_int_equal(time_parse("2m", &v), 0);
	assert_int_equal(v, 120 * NS_PER_S);
	assert_true(time_parse("213504d", &v) < 0);
	assert_int_equal(time_parse("1.5s", &v), 0);
	assert_int_equal(v, 1500000000);
	assert_true(u64_parse("+1", &v) < 0);
	assert_true(u64_parse(" 1", &v) < 0);
	assert_true(u64_parse("1 ", &v) < 0);
	assert_true(u64_parse("0x-1", &v) < 0);
	assert_int_equal(u64_parse("010", &v), 0);
	assert_int_equal(v, 10);
	size_format(1536 << 10, text, sizeof text);
	assert_string_equal(text, "1536KiB");
	size_format(0, text, sizeof text);
	assert_string_equal(text, "0");
	time_format(1500000, text, sizeof text);
	assert_string_equal(text, "1500us");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
