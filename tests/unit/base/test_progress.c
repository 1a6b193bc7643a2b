/* SPDX-License-Identifier: Apache-2.0 */
/* Rates, times that are left and their text, with times of the test's own; how often a display writes, and that its line fits. */
#include "base/amount.h"
#include "base/progress.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static void
amounts(void **state)
{
	static const struct {
		uint64_t s;
		const char *text;
	} times[] = { { 0, "0 s" },          { 59, "59 s" },   { 60, "1 min" },
		      { 200, "3 min 20 s" }, { 3600, "1 h" },  { 3659, "1 h" },
		      { 7500, "2 h 5 min" }, { 86400, "1 d" }, { 360000, "4 d 4 h" } };
	char text[AMOUNT_TEXT];

	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		assert_string_equal(interval_text(times[i].s, text), times[i].text);
	assert_string_equal(size_text(0, text), "0 B");
	assert_string_equal(size_text(1023, text), "1023 B");
	assert_string_equal(size_text(1536, text), "1.5 KiB");
	assert_string_equal(size_text(UINT64_MAX, text), "16384.0 PiB");
}

/* The rate at a time, of a job that has done so much. */
static uint64_t
rate_at(struct progress_rate *r, uint64_t s, uint64_t done, unsigned stage)
{
	return progress_note(r, &(struct progress_view){ .done = done, .stage = stage }, s * NS_PER_S);
}

static void
rates(void **state)
{
	struct progress_rate r = { 0 };
	uint64_t done = 5 * GIB, rate;

	/* The first state is where the work began: the bytes before it took no time of this job. */
	assert_int_equal(rate_at(&r, 100, done, 0), 0);
	assert_int_equal(rate_at(&r, 100, done, 0), 0);
	assert_int_equal(rate_at(&r, 101, done + 100 * MIB, 0), 100 * MIB);
	assert_int_equal(rate_at(&r, 104, done + 400 * MIB, 0), 100 * MIB);
	done += 400 * MIB;
	/* The job becomes slower: after two spans only the new rate is left. */
	for (uint64_t s = 105; s <= 130; s++)
		rate = rate_at(&r, s, done += 10 * MIB, 0);
	assert_int_equal(rate, 10 * MIB);
	/* It stands still. */
	for (uint64_t s = 131; s <= 160; s++)
		rate = rate_at(&r, s, done, 0);
	assert_int_equal(rate, 0);
	/* Another part of the job, and a total that begins at zero. */
	assert_int_equal(rate_at(&r, 161, done + GIB, 1), 0);
	assert_int_equal(rate_at(&r, 162, done + GIB + 7, 1), 7);
	assert_int_equal(rate_at(&r, 163, 3, 1), 0);
	assert_int_equal(rate_at(&r, 165, 23, 1), 10);
}

static const char *
text_of(struct progress_view v, uint64_t rate, uint64_t s)
{
	static char text[PROGRESS_TEXT];
	struct progress_rate r = { .has_marks = true, .began_ns = 7 * NS_PER_S };

	progress_text(&v, &r, rate, (7 + s) * NS_PER_S, text, sizeof text);
	return text;
}

static void
texts(void **state)
{
	struct progress_view v = { .done = GIB, .total = 4 * GIB };
	char small[20];
	struct progress_rate r = { 0 };

	assert_string_equal(text_of(v, 100 * MIB, 9), "1.0 GiB of 4.0 GiB (25 %), 100.0 MiB/s, 31 s left");
	v.is_estimate = true;
	snprintf(v.what, sizeof v.what, "/d1");
	assert_string_equal(text_of(v, 1, 9),
			    "1.0 GiB of about 4.0 GiB (25 %), 1 B/s, 37282 d 16 h left: /d1");
	/* Nothing moves: how long it has been so, and no time that would be left. */
	v = (struct progress_view){ .total = 4 * GIB, .more = "no answer yet" };
	assert_string_equal(text_of(v, 0, 3), "0 B of 4.0 GiB (0 %), 3 s so far, no answer yet");
	assert_string_equal(text_of(v, 0, 0), "0 B of 4.0 GiB (0 %), no answer yet");
	/* The total is not known; it was too low. */
	assert_string_equal(text_of((struct progress_view){ .done = 3 * MIB }, MIB, 3), "3.0 MiB, 1.0 MiB/s");
	assert_string_equal(text_of((struct progress_view){ .done = 3 * MIB, .total = MIB }, MIB, 3),
			    "3.0 MiB of 1.0 MiB (100 %), 1.0 MiB/s");
	/* Units that are no bytes. */
	assert_string_equal(text_of((struct progress_view){ .done = 5, .total = 20, .unit = "slots" }, 2, 3),
			    "5 of 20 slots (25 %), 2/s, 8 s left");
	assert_string_equal(text_of((struct progress_view){ .done = 5, .unit = "slots" }, 0, 0), "5 slots");
	/* Times pass by themselves. */
	assert_string_equal(
		text_of((struct progress_view){ .done = 90, .total = 200, .is_time = true }, 1, 3),
		"1 min 30 s of 3 min 20 s (45 %), 1 min 50 s left");
	/* Less room than text. */
	v = (struct progress_view){ .done = GIB, .total = 4 * GIB };
	progress_text(&v, &r, 1, 1, small, sizeof small);
	assert_string_equal(small, "1.0 GiB of 4.0 GiB ");
}

static void
lines(void **state)
{
	struct progress_view v = { .done = 1, .total = 3 };
	char line[PROGRESS_TEXT];

	progress_line(&v, "one of three", 79, line, sizeof line);
	assert_string_equal(line, "[##########                    ] one of three");
	progress_line(&v, "one of three", 25, line, sizeof line);
	assert_string_equal(line, "[###       ] one of three");
	/* A bar of less than ten signs says nothing. */
	progress_line(&v, "one of three", 24, line, sizeof line);
	assert_string_equal(line, "one of three");
	v.done = 4;
	progress_line(&v, "one of three", 25, line, sizeof line);
	assert_string_equal(line, "[##########] one of three");
	v.total = 0;
	progress_line(&v, "one of three", 79, line, sizeof line);
	assert_string_equal(line, "one of three");
	/* Too long, and never cut amid a character; a name does nothing to the terminal. */
	for (unsigned columns = 1; columns < 20; columns++) {
		progress_line(&v, "/d\xc3\xa4/\xe2\x82\xac\xe2\x82\xac x", columns, line, sizeof line);
		assert_true(strlen(line) <= columns);
		assert_null(strchr(line, '?'));
	}
	progress_line(&v, "/d\033[2J", 79, line, sizeof line);
	assert_string_equal(line, "/d?[2J");
}

static uint64_t looks;

static void
look(void *cookie, struct progress_view *v)
{
	uint64_t *done = cookie;

	looks++;
	v->done = *done;
	v->total = 100 * MIB;
}

/* The number of lines, or drawings, of a minute and a half, looked at every 10 ms. */
static int
count_of(enum progress_form form, char sign, char **ret_text)
{
	uint64_t done = 0, now = 50 * NS_PER_S;
	struct progress p = PROGRESS_INIT;
	size_t len;
	int nr = 0;

	clock_fake(&now);
	p.form = form;
	p.name = "name: ";
	p.look = look;
	p.cookie = &done;
	p.f = open_memstream(ret_text, &len);
	p.shown_ns = now;
	for (int i = 0; i < 9000; i++) {
		now += 10 * NS_PER_MS;
		done += 10486;
		progress_turn(&p, now);
	}
	clock_fake(NULL);
	fclose(p.f);
	for (const char *c = *ret_text; *c; c++)
		nr += *c == sign;
	return nr;
}

static void
how_often(void **state)
{
	char *text;

	/* Five times a second on a terminal, each time over the last one. */
	assert_int_equal(count_of(PROGRESS_TERMINAL, '\r', &text), 450);
	assert_non_null(strstr(text, "\r["));
	assert_null(strchr(text, '\n'));
	free(text);
	assert_int_equal(count_of(PROGRESS_MINUTES, '\n', &text), 1);
	assert_string_equal(text, "name: 60.0 MiB of 100.0 MiB (60 %), 1.0 MiB/s, 40 s left\n");
	free(text);
	looks = 0;
	assert_int_equal(count_of(PROGRESS_NONE, '\n', &text), 0);
	assert_int_equal(looks, 0);
	free(text);
}

/* What is written between hide and show is on a line of its own; the end leaves nothing. */
static void
display(void **state)
{
	struct progress p = PROGRESS_INIT;
	uint64_t done = MIB;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	progress_hide(&p);
	progress_show(&p);
	progress_stop(&p);
	progress_start(&p, PROGRESS_TERMINAL, f, "", look, &done);
	pthread_mutex_lock(&p.lock);
	progress_turn(&p, p.shown_ns + PROGRESS_LINE_NS);
	pthread_mutex_unlock(&p.lock);
	progress_hide(&p);
	fputs("a line\n", f);
	progress_show(&p);
	progress_stop(&p);
	progress_stop(&p);
	fclose(f);
	assert_non_null(strstr(text, "\033[K\r\033[Ka line\n"));
	assert_true(!strcmp(text + strlen(text) - 7, "a line\n") ||
		    !strcmp(text + strlen(text) - 4, "\r\033[K"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts), cmocka_unit_test(rates),     cmocka_unit_test(texts),
		cmocka_unit_test(lines),   cmocka_unit_test(how_often), cmocka_unit_test(display),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
