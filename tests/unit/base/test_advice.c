/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes over the table of remedies: the harmless ones come first and lose nothing, the last resort is the last line of a message
 * and begins with what it loses in objects or per cent.
 */
#include "base/advice.h"

#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <string.h>

static const struct advice_values all = { .path = "/srv/d1",
					  .away = "U1",
					  .accept = "U1, U2",
					  .forget = "--forget U1",
					  .loss = "About 25 % of the objects",
					  .store = "S",
					  .record = "/var/lib/gantry/store",
					  .line = "- { path: \"/srv/d1\" }",
					  .size = "200MiB" };

/* Options and words of commands that destroy data, or that make a disk or store leave. */
static const char *const destroys[] = { "--force", "--forget", "--replace-store", "--yes", "type yes",
					" rb ",    "rm " };

static bool
destroys_data(const char *text)
{
	bool any = strstr(text, "--repair") && !strstr(text, "no object");

	for (size_t i = 0; i < sizeof destroys / sizeof *destroys; i++)
		any |= strstr(text, destroys[i]) != NULL;
	return any;
}

/* Returns true if a text begins with objects or per cent: a number, All, No, or a share. */
static bool
begins_with_loss(const char *text)
{
	static const char *const heads[] = { "All objects ", "No object ", "About ", "Up to ",
					     "An unknown number of objects" };

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		if (strncmp(text, heads[i], strlen(heads[i])) == 0)
			return true;
	}
	return isdigit((unsigned char)text[0]) &&
	       (strstr(text, " objects") || strstr(text, " object ") || strstr(text, " % "));
}

static void
rows(void **state)
{
	for (int i = 0; i < ADVICE_NR; i++) {
		const struct advice *a = &advice_table[i];
		int nr = 0;

		/* Each has something harmless to try, in at most so many steps, and in one line. */
		for (; a->harmless[nr]; nr++) {
			if (destroys_data(a->harmless[nr]) || strchr(a->harmless[nr], '\n') ||
			    !a->harmless[nr][0])
				fail_msg("%s: as a harmless remedy: %s", a->id, a->harmless[nr]);
			for (int j = 0; j < nr; j++)
				assert_string_not_equal(a->harmless[nr], a->harmless[j]);
		}
		assert_in_range(nr, 1, ADVICE_HARMLESS_MAX);
		assert_int_equal(a->loss == NULL, a->last == NULL);
		if (a->loss && strncmp(a->loss, "{loss}", 6) != 0 && !begins_with_loss(a->loss))
			fail_msg("%s: the last resort does not begin with what it loses: %s", a->id, a->loss);
		if (a->loss && (strchr(a->loss, '\n') || strchr(a->last, '\n')))
			fail_msg("%s: more than one line", a->id);
	}
}

/* Each as a message: the problem, the harmless remedies in their order, and the last resort. */
static void
messages(void **state)
{
	for (int i = 0; i < ADVICE_NR; i++) {
		const struct advice *a = &advice_table[i];
		char text[4096] = "problem", first[1024];
		const char *line = text;
		int nr = 0;

		advice_add(text, sizeof text, (enum advice_id)i, &all);
		assert_int_equal(advice_problem(text), strlen("problem"));
		assert_null(strchr(text, '{') && !strstr(text, "{ path") ? text : NULL);
		while ((line = strchr(line, '\n')) != NULL) {
			if (strncmp(++line, "remedy: ", 8) != 0)
				break;
			nr++;
		}
		for (int j = 0; a->harmless[j]; j++)
			nr--;
		assert_int_equal(nr, 0);
		assert_int_equal(a->loss != NULL, line != NULL);
		assert_ptr_equal(advice_last(text), line);
		if (line && (!begins_with_loss(line) || strchr(line, '\n')))
			fail_msg("%s: the last line is: %s", a->id, line);
		advice_first(first, sizeof first, (enum advice_id)i, &all);
		assert_true(strncmp(strstr(text, "remedy: ") + 8, first, strlen(first)) == 0);
	}
}

/* A remedy without one of its values is left out, and so is one that would not fit. */
static void
left_out(void **state)
{
	char text[512] = "gone", small[40] = "gone", large[2048] = "gone", words[513] = "";

	advice_add(text, sizeof text, ADVICE_DISK_MISSING,
		   &(struct advice_values){ .away = "U1", .path = "" });
	assert_string_equal(text,
			    "gone\nremedy: attach the disk U1, add its path to store.disks, and start again");
	assert_null(advice_last(text));
	advice_add(small, sizeof small, ADVICE_DISK_MISSING, &all);
	assert_string_equal(small, "gone");
	assert_true(advice_insert(text, sizeof text, " (%s)", "disk U1"));
	assert_true(strncmp(text, "gone (disk U1)\nremedy: attach", 29) == 0);
	assert_false(advice_insert(small, sizeof small, " (%s)", "more than there is any room for, by far"));
	assert_string_equal(small, "gone");
	/* More words than one call may insert. */
	memset(words, 'w', sizeof words - 1);
	assert_false(advice_insert(large, sizeof large, "%s", words));
	assert_string_equal(large, "gone");
	words[511] = 0;
	assert_true(advice_insert(large, sizeof large, "%s", words));
	assert_int_equal(strlen(large), 4 + 511);
	advice_first(text, sizeof text, ADVICE_DISK_MISSING, NULL);
	assert_string_equal(text, "");
	advice_add(text, sizeof text, ADVICE_FOREIGN_DISK, &all);
	assert_string_equal(text, "remedy: take /srv/d1 off store.disks, or put the right disk there");
}

static char logged[4096];

static void
sink(enum log_level level, const char *text)
{
	assert_int_equal(level, LOG_ERROR);
	strncat(logged, text, sizeof logged - strlen(logged) - 1);
	strncat(logged, "|", sizeof logged - strlen(logged) - 1);
}

static void
one_line_each(void **state)
{
	log_set_sink(sink);
	advice_log(LOG_ERROR, "gantryd", "problem\nremedy: a\nremedy: b\n3 objects are lost; last resort: c");
	advice_log(LOG_ERROR, "gantryd", "problem");
	log_set_sink(NULL);
	assert_string_equal(logged, "remedy: a|remedy: b|3 objects are lost; last resort: c|");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(messages),
		cmocka_unit_test(left_out),
		cmocka_unit_test(one_line_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
