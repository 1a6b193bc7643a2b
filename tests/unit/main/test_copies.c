/* SPDX-License-Identifier: Apache-2.0 */
/* What health, metrics and /status say of keys with two copies. */
#include "main/daemon.h"

#include "admin/admin_int.h"
#include "base/clock.h"
#include "stats/stats.h"
#include "store/ops.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct store_copies_info given;
static enum store_unit_state state;

static void
give(const struct store *st, struct store_move_info *ret_move, struct store_copies_info *ret_copies)
{
	assert_null(ret_move);
	*ret_copies = given;
}

static void
unit(const struct store *st, int i, struct store_unit_info *ret_info)
{
	static const char *const uuid[] = { "uuid-0", "uuid-1", "uuid-2" };

	*ret_info = (struct store_unit_info){ .name = "", .uuid = uuid[i], .state = state };
	snprintf(ret_info->label, sizeof ret_info->label, "label-%d", i);
}

static const struct store_ops ops = { .disks_info = give, .unit_info = unit };
static struct store st = { &ops };
static struct admin_reasons found;

/* Returns how many reasons health has, and leaves them in found. */
static int
reasons(const struct store *of)
{
	found.nr = 0;
	copies_health(of, &found);
	return found.nr;
}

static void
test_none(void **state_)
{
	static const struct store_ops none = { .name = "none" };
	struct store other = { &none };
	char json[64] = "";
	FILE *out = fmemopen(json, sizeof json, "w");

	given = (struct store_copies_info){ .is_used = false };
	assert_int_equal(reasons(&st), 0);
	assert_int_equal(reasons(&other), 0);
	assert_int_equal(reasons(NULL), 0);
	copies_show(&st, out);
	copies_show(&other, out);
	fclose(out);
	assert_string_equal(json, "");
	given = (struct store_copies_info){ .is_used = true, .objects = 5, .bytes = 50 };
	assert_int_equal(reasons(&st), 0);
}

static void
test_away(void **state_)
{
	given = (struct store_copies_info){ .is_used = true, .exposed_objects = 3, .exposed_bytes = 30 };
	assert_int_equal(reasons(&st), 1);
	assert_string_equal(found.reason[0].text, "3 objects (30 bytes) have one copy");
	given.away = 2;
	assert_int_equal(reasons(&st), 1);
	assert_string_equal(found.reason[0].text, "3 objects (30 bytes) have one copy: disk uuid-1 is away");
	given.may_replace = true;
	given.replaced_in_ns[1] = 1700 * NS_PER_S;
	reasons(&st);
	assert_string_equal(found.reason[0].text,
			    "3 objects (30 bytes) have one copy: disk uuid-1 is away, and "
			    "another takes its place in 29 min");
	given.away = 3;
	given.replaced_in_ns[0] = 90 * NS_PER_S;
	reasons(&st);
	assert_string_equal(found.reason[0].text,
			    "3 objects (30 bytes) have one copy: disk uuid-0 and 1 more are away, "
			    "and another takes its place in 90 s");
	/* Parts of uploads alone are bytes of no object. */
	given = (struct store_copies_info){ .is_used = true, .exposed_bytes = 30 };
	assert_int_equal(reasons(&st), 1);
	assert_string_equal(found.reason[0].text, "0 objects (30 bytes) have one copy");
}

static void
test_healing(void **state_)
{
	given = (struct store_copies_info){ .is_used = true,
					    .exposed_objects = 3,
					    .exposed_bytes = 30,
					    .is_healing = true,
					    .heal_bytes_done = 10,
					    .heal_bytes_total = 40 };
	assert_int_equal(reasons(&st), 1);
	assert_string_equal(found.reason[0].text,
			    "3 objects (30 bytes) have one copy and are being copied, 10 of about 40 bytes");
	given.is_healing = false;
	snprintf(given.trouble, sizeof given.trouble, "no room");
	reasons(&st);
	assert_string_equal(found.reason[0].text,
			    "3 objects (30 bytes) have one copy; copying stands still: no room");
	given.trouble[0] = 0;
	given.is_healing = true;
	given.heal_left_ns = 30 * NS_PER_S;
	given.away = 4;
	reasons(&st);
	assert_string_equal(found.reason[0].text,
			    "3 objects (30 bytes) have one copy: disk uuid-2 is away; some are "
			    "being copied, 10 of about 40 bytes, some 30 s left");
}

static void
test_needed(void **state_)
{
	given = (struct store_copies_info){ .is_used = true, .unreachable_slots = 7, .needed = 1 };
	state = UNIT_MISSING;
	assert_int_equal(reasons(&st), 1);
	assert_string_equal(found.reason[0].text,
			    "disk uuid-0 is needed: of keys with two copies no other disk has all "
			    "in 7 of 4096 slots, which answer 503");
	state = UNIT_FAILED;
	given.needed = 3;
	given.exposed_objects = 1;
	assert_int_equal(reasons(&st), 2);
	assert_string_equal(found.reason[1].text,
			    "disk uuid-0 and 1 more are needed: of keys with two copies no other disk "
			    "has all in 7 of 4096 slots, which are read-only");
}

/* The longest of them fits, and is cut nowhere else. */
static void
test_long(void **state_)
{
	memset(&given, 0xff, sizeof given);
	memset(given.trouble, 'x', sizeof given.trouble - 1);
	given.trouble[sizeof given.trouble - 1] = 0;
	given.away = given.needed = 7;
	given.is_used = given.is_healing = given.may_replace = true;
	state = UNIT_MISSING;
	assert_int_equal(reasons(&st), 2);
	assert_true(strlen(found.reason[0].text) < sizeof found.reason[0].text);
	assert_true(strlen(found.reason[1].text) < sizeof found.reason[0].text - 20);
}

static void
test_show(void **state_)
{
	char *json = NULL;
	size_t len;
	FILE *out = open_memstream(&json, &len);

	given = (struct store_copies_info){ .is_used = true,
					    .objects = 5,
					    .bytes = 50,
					    .exposed_objects = 3,
					    .exposed_bytes = 30,
					    .unreachable_slots = 2,
					    .needed = 1,
					    .missed = 6,
					    .repaired = 7,
					    .read_second = 8,
					    .is_healing = true,
					    .heal_bytes_done = 10,
					    .heal_bytes_total = 40,
					    .heal_rate = 9,
					    .heal_left_ns = 30 * NS_PER_S,
					    .away = 6,
					    .may_replace = true,
					    .replaced_in_ns = { 0, 5 * NS_PER_S, 6 * NS_PER_S } };
	copies_show(&st, out);
	fclose(out);
	assert_string_equal(
		json, ",\n\"copies\":{\"objects\":5,\"bytes\":50,\"exposed_objects\":3,\"exposed_bytes\":30,"
		      "\"unreachable_slots\":2,\"missed\":6,\"repaired\":7,\"second_reads\":8,"
		      "\"healing\":true,\"healed_bytes\":10,\"to_heal_bytes\":40,\"heal_rate\":9,"
		      "\"heal_seconds_left\":30,\"trouble\":null,\"away\":[{\"disk\":\"label-1\","
		      "\"uuid\":\"uuid-1\",\"path\":null,"
		      "\"replaced_in_"
		      "seconds\":5},"
		      "{\"disk\":\"label-2\",\"uuid\":\"uuid-2\",\"path\":null,\"replaced_in_seconds\":6}],"
		      "\"needed\":[{\"disk\":\"label-0\",\"uuid\":\"uuid-0\",\"path\":null}]}");
	free(json);
}

static void
test_metrics(void **state_)
{
	struct stats_out *out;
	char *page;
	size_t len;

	assert_int_equal(stats_out_new(&out), 0);
	copies_metrics(&st, out);
	assert_int_equal(stats_out_text(out, &page, &len), 0);
	assert_non_null(strstr(page, "\ngantry_copies_exposed_objects 3\n"));
	assert_non_null(strstr(page, "\ngantry_copies_exposed_bytes 30\n"));
	assert_non_null(strstr(page, "\ngantry_copies_unreachable_slots 2\n"));
	assert_non_null(strstr(page, "\ngantry_copies_disks_away 2\n"));
	assert_non_null(strstr(page, "\ngantry_copies_missed_total 6\n"));
	free(page);
	stats_out_free(out);
	/* Before there is a store there is nothing. */
	assert_int_equal(stats_out_new(&out), 0);
	copies_metrics(NULL, out);
	assert_int_equal(stats_out_text(out, &page, &len), 0);
	assert_non_null(strstr(page, "\ngantry_copies_exposed_objects 0\n"));
	free(page);
	stats_out_free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),    cmocka_unit_test(test_away), cmocka_unit_test(test_healing),
		cmocka_unit_test(test_needed),  cmocka_unit_test(test_long), cmocka_unit_test(test_show),
		cmocka_unit_test(test_metrics),
	};

	return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
