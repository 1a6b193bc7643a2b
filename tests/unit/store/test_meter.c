/* SPDX-License-Identifier: Apache-2.0 */
/* What the counts of several disks become: the disk that has most left, until its step ends; estimates; counts that begin with each step. */
#include "store/meter.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static struct store_meter m;

static const char *
view(void)
{
	static char text[PROGRESS_TEXT];
	struct progress_view v = { .what = "" };
	struct progress_rate r = { .has_marks = true };

	if (!meter_view(&m, &v))
		return "nothing";
	progress_text(&v, &r, 0, 0, text, sizeof text);
	return text;
}

static void
one_disk(void **state)
{
	struct meter_disk *d = meter_of(&m, "/d1");

	assert_ptr_equal(meter_of(&m, "/d1"), d);
	assert_string_equal(view(), "nothing");
	meter_step(d, METER_INDEX, 0);
	assert_string_equal(view(), "0 B: /d1 reads the snapshot");
	/* A quarter of the blocks has 3 MiB. */
	meter_add(d, 3 << 20);
	meter_estimate(d, 25, 100);
	assert_string_equal(view(), "3.0 MiB of about 12.0 MiB (25 %): /d1 reads the snapshot");
	/* There is more than was foreseen. */
	meter_add(d, 11 << 20);
	meter_estimate(d, 101, 100);
	assert_string_equal(view(), "14.0 MiB of about 14.0 MiB (100 %): /d1 reads the snapshot");
	meter_step(d, METER_SPACE, 10);
	meter_add(d, 5);
	assert_string_equal(view(), "5 of 10 records (50 %): /d1 marks the space of objects");
	meter_step(d, METER_CHECK, 1 << 20);
	assert_string_equal(view(), "0 B of 1.0 MiB (0 %): /d1 compares objects with their checksums");
	meter_step(d, METER_WAITS, 0);
	assert_string_equal(view(), "nothing");
	/* Callers that want no counts. */
	meter_step(meter_of(NULL, "/d1"), METER_LOG, 1);
	meter_add(NULL, 1);
	meter_estimate(NULL, 1, 2);
}

static void
several(void **state)
{
	struct meter_disk *d[3];
	struct progress_view v = { .what = "" }, w = { .what = "" };

	memset(&m, 0, sizeof m);
	m.disks = 3;
	for (int i = 0; i < 3; i++)
		d[i] = meter_of(&m, (const char *[]){ "/d1", "/d2", "/d3" }[i]);
	meter_step(d[0], METER_CHECK, 100);
	meter_step(d[1], METER_CHECK, 300);
	meter_add(d[1], 50);
	assert_string_equal(view(),
			    "50 B of 300 B (16 %): /d2 (2 of 3 disks) compares objects with their checksums");
	/* Another one has more left now: the line does not jump. */
	meter_add(d[1], 240);
	assert_string_equal(
		view(), "290 B of 300 B (96 %): /d2 (2 of 3 disks) compares objects with their checksums");
	assert_true(meter_view(&m, &v));
	meter_step(d[1], METER_WAITS, 0);
	assert_string_equal(view(),
			    "0 B of 100 B (0 %): /d1 (1 of 3 disks) compares objects with their checksums");
	/* Rates are of one disk and step. */
	assert_true(meter_view(&m, &w));
	assert_int_not_equal(v.stage, w.stage);
	/* A disk whose amount is unknown may be the longest. */
	meter_step(d[0], METER_WAITS, 0);
	meter_step(d[1], METER_CHECK, 1000);
	meter_step(d[2], METER_LOG, 0);
	m.shown = 0;
	assert_string_equal(view(), "0 B: /d3 (3 of 3 disks) reads the log");
	/* No room for more. */
	for (int i = 3; i < STORE_DISKS_MAX; i++) {
		char path[16];

		snprintf(path, sizeof path, "/x%d", i);
		assert_non_null(meter_of(&m, path));
	}
	assert_null(meter_of(&m, "/one-more"));
	assert_string_equal(view(), "0 B: /d3 (3 of 3 disks) reads the log");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_disk), cmocka_unit_test(several) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
