/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of control calls: what is taken, what is refused and why;
 * and that nothing gets out of bounds. */
#include "admin/admin_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
taken(void **state)
{
	struct admin_args a;
	const char *why = NULL;

	assert_int_equal(args_parse("", "", &a, &why), 0);
	assert_int_equal(a.nr, 0);
	assert_int_equal(args_parse(" \r\n\t", "level", &a, &why), 0);
	assert_int_equal(args_parse("{}", "", &a, &why), 0);
	assert_int_equal(args_parse(" { \"level\" : \"debug\" , \"module\":\"a\\\"b\\\\\" } ", "level module",
				    &a, &why),
			 0);
	assert_int_equal(a.nr, 2);
	assert_string_equal(admin_arg(&a, "level"), "debug");
	assert_string_equal(admin_arg(&a, "module"), "a\"b\\");
	assert_null(admin_arg(&a, "lev"));
	assert_int_equal(args_parse("{\"next\":12,\"on\":true}", "id next on", &a, &why), 0);
	assert_string_equal(admin_arg(&a, "next"), "12");
	assert_string_equal(admin_arg(&a, "on"), "true");
}

static void
refused(void **state)
{
	static const char *const bad[] = {
		"x",
		"{",
		"[]",
		"{\"level\"}",
		"{\"level\":}",
		"{\"level\":1.5}",
		"{\"level\":-1}",
		"{\"level\":null}",
		"{\"level\":\"a\",}",
		"{\"level\":\"a\"} x",
		"{\"level\":\"a\" \"module\":\"b\"}",
		"{\"level\":\"a\",\"level\":\"b\"}",
		"{\"lev\":1}",
		"{\"levels\":1}",
		"{\"level\":\"\\u0041\"}",
		"{\"level\":\"a\nb\"}",
		"{\"level\":\"a",
		"{\"level\":[1]}",
		"{,}",
		"{\"level",
		"{\"level\":\"\\",
	};
	struct admin_args a;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *why = NULL;

		if (args_parse(bad[i], "level module", &a, &why) != -EINVAL)
			fail_msg("%s was taken", bad[i]);
		assert_non_null(why);
	}
}

/* As long as may be, one more, and many. */
static void
bounds(void **state)
{
	char body[4200], value[160];
	struct admin_args a;
	const char *why;

	for (int len = 120; len < 140; len++) {
		memset(value, 'v', sizeof value);
		value[len] = 0;
		snprintf(body, sizeof body, "{\"level\":\"%s\"}", value);
		assert_int_equal(args_parse(body, "level", &a, &why),
				 len < (int)sizeof a.arg[0].value ? 0 : -EINVAL);
		snprintf(body, sizeof body, "{\"%s\":1}", value);
		assert_int_equal(args_parse(body, value, &a, &why), -EINVAL);
	}
	strcpy(body, "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1}");
	assert_int_equal(args_parse(body, "a b c d e f g h i", &a, &why), -EINVAL);
	assert_string_equal(why, "too many members");
}

/* Any bytes: an answer, and no more. */
static void
random_bytes(void **state)
{
	static const char some[] = "{}\":,\\ level1true[]\n";
	const char *env = getenv("SEED");
	unsigned seed = env ? (unsigned)strtoul(env, NULL, 0) : 1;
	struct admin_args a;
	const char *why;

	print_message("SEED=%u\n", seed);
	for (int i = 0; i < 200000; i++) {
		char *body = calloc(1, 40);
		int len = rand_r(&seed) % 39;

		for (int j = 0; j < len; j++)
			body[j] = some[(unsigned)rand_r(&seed) % (sizeof some - 1)];
		body[0] = i % 2 ? '{' : body[0];
		if (args_parse(body, "level e l", &a, &why) == 0)
			assert_in_range(a.nr, 0, ADMIN_ARGS_MAX);
		free(body);
	}
}

/* Members of the query, one after the other, in addition to those of the body. */
static void
test_query(void **state)
{
	static const char *const values[ADMIN_ARGS_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	struct admin_args a;
	const char *why;
	char large[300];

	assert_int_equal(args_parse("{\"level\":\"debug\"}", "level module", &a, &why), 0);
	assert_int_equal(args_add(&a, "level module", "module", "store", &why), 0);
	assert_string_equal(admin_arg(&a, "level"), "debug");
	assert_string_equal(admin_arg(&a, "module"), "store");
	assert_int_equal(args_add(&a, "level module", "module", "store", &why), -EINVAL);
	assert_string_equal(why, "a member is given twice");
	assert_int_equal(args_add(&a, "level module", "other", "1", &why), -EINVAL);
	assert_string_equal(why, "unknown member");
	assert_int_equal(args_add(&a, "", "other", "1", &why), -EINVAL);
	assert_string_equal(why, "this call takes no members");
	a.nr = 0;
	assert_int_equal(args_add(&a, "level", "level", NULL, &why), -EINVAL);
	assert_int_equal(args_add(&a, "level", "level", "a\nb", &why), -EINVAL);
	assert_string_equal(why, "a value holds a control character");
	memset(large, 'x', sizeof large);
	large[sizeof a.arg[0].value] = 0;
	assert_int_equal(args_add(&a, "level", "level", large, &why), -EINVAL);
	large[sizeof a.arg[0].value - 1] = 0;
	assert_int_equal(args_add(&a, "level", "level", large, &why), 0);
	assert_string_equal(admin_arg(&a, "level"), large);
	a.nr = 0;
	for (int i = 0; i < ADMIN_ARGS_MAX; i++)
		assert_int_equal(args_add(&a, "a b c d e f g h i", values[i], "1", &why), 0);
	assert_int_equal(args_add(&a, "a b c d e f g h i", "i", "1", &why), -EINVAL);
	assert_int_equal(a.nr, ADMIN_ARGS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taken),      cmocka_unit_test(refused),      cmocka_unit_test(bounds),
		cmocka_unit_test(test_query), cmocka_unit_test(random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
