/* SPDX-License-Identifier: Apache-2.0 */
/* The keyring files in the error of a refused start: each is named, or counted if it has no room, in a buffer of any size. */
#include "rados/keyring.h"

#include <rados/librados.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define PROBLEM "the cluster cannot be reached"
#define REMEDY "\nremedy: a remedy"
#define END ": gantryd-rados(8), \"Key\"" REMEDY
#define PATH "/nonexistent/keyring"
#define NAMED PATH " (No such file or directory)"
#define FILES 40u

static rados_t cluster;

/* Writes the message for so many files in a buffer of cap bytes. */
static const char *
say(unsigned files, size_t cap)
{
	static char text[4096];
	char list[FILES * sizeof PATH + 2] = ",";
	size_t len = 1;

	for (unsigned i = 0; i < files; i++)
		len += (size_t)snprintf(list + len, sizeof list - len, PATH ",");
	rados_conf_set(cluster, "keyring", list);
	memset(text, 'x', sizeof text);
	snprintf(text, cap, PROBLEM REMEDY);
	keyring_say(cluster, "gantry", text, cap);
	assert_true(strlen(text) < cap);
	return text;
}

/* Counts the files that a message names. */
static unsigned
named(const char *text)
{
	unsigned nr = 0;

	for (const char *at = text; (at = strstr(at, NAMED)) != NULL; at++)
		nr++;
	return nr;
}

static void
test_all(void **state)
{
	const char *text = say(FILES, 4096);

	assert_int_equal(named(text), FILES);
	assert_null(strstr(text, " more"));
	assert_non_null(strstr(text, NAMED ", " NAMED END));
	assert_non_null(strstr(say(0, 4096), " in no file" END));
}

static void
test_some(void **state)
{
	for (size_t cap = sizeof PROBLEM REMEDY; cap < 2048; cap++) {
		const char *text = say(FILES, cap);
		unsigned nr = named(text);
		char end[80];

		if (strcmp(text, PROBLEM REMEDY) == 0) {
			assert_true(cap < 200);
			continue;
		}
		snprintf(end, sizeof end,
			 nr == FILES ? END
			 : nr        ? " and %u more" END
				     : " in %u files" END,
			 FILES - nr);
		if (!strstr(text, end))
			fail_msg("%zu bytes, %u files named: %s", cap, nr, text);
	}
}

static int
setup(void **state)
{
	return rados_create(&cluster, "gantry");
}

static int
teardown(void **state)
{
	rados_shutdown(cluster);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all), cmocka_unit_test(test_some) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
