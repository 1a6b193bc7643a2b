/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: level, formats, what a client may not do with them, and the limit per call site. */
#define LOG_MODULE "test"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <cmocka.h>

static int saved, reader;
static char text[65536];

/* From here on standard error goes into a pipe. */
static void
capture(void)
{
	int p[2];

	assert_int_equal(pipe(p), 0);
	saved = dup(STDERR_FILENO);
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
	reader = p[0];
}

static void
release(void)
{
	size_t len = 0;
	ssize_t n;

	dup2(saved, STDERR_FILENO);
	close(saved);
	while ((n = read(reader, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(reader);
}

static int
lines(void)
{
	int n = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	return n;
}

static uint64_t now = 1700000000123456789ull;

static void
test_plain(void **state)
{
	log_init(LOG_PLAIN, LOG_INFO);
	capture();
	log_warn("key %s of %d", "a\nb\x7f\x1b[31m", 7);
	log_debug("not seen");
	log_set_level(LOG_DEBUG);
	log_debug("seen");
	release();
	assert_string_equal(text, "2023-11-14T22:13:20.123456Z warning test: key a?b??[31m of 7\n"
				  "2023-11-14T22:13:20.123456Z debug test: seen\n");
}

static void
test_utf8(void **state)
{
	log_init(LOG_PLAIN, LOG_INFO);
	capture();
	log_info("%s", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	log_info("%s", "\xff \xc3( \xc0\xaf \xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc2\x85 \xe2\x82");
	release();
	assert_non_null(strstr(text, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\n"));
	assert_non_null(strstr(text, ": ? ?( ?? ??? ??? ???? ?? ??\n"));
}

static void
test_json(void **state)
{
	log_init(LOG_JSON, LOG_INFO);
	capture();
	log_error("a \"quoted\" back\\slash");
	release();
	assert_string_equal(
		text, "{\"time\":\"2023-11-14T22:13:20.123456Z\",\"level\":\"error\",\"module\":\"test\","
		      "\"message\":\"a \\\"quoted\\\" back\\\\slash\"}\n");
}

static void
test_fields(void **state)
{
	static const struct log_field fields[] = { { "access_key", "AK%22" }, { "key", "a/b" } };
	static char big[3073];
	const struct log_field large[] = { { "key", big }, { "bucket", "b" } };
	const char *members =
		"\"event\":\"access\",\"request\":\"4711\",\"access_key\":\"AK%22\",\"key\":\"a/b\",";

	log_init(LOG_PLAIN, LOG_INFO);
	capture();
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, "m", "4711", fields, 2, "status=%d", 200);
	release();
	assert_string_equal(
		text, "2023-11-14T22:13:20.123456Z info m: id=4711 access_key=AK%22 key=a/b status=200\n");
	log_init(LOG_JSON, LOG_INFO);
	capture();
	log_write_fields(LOG_EV_ACCESS, LOG_INFO, "m", "4711", fields, 2, "status=%d \"", 200);
	release();
	assert_non_null(strstr(text, members));
	assert_non_null(strstr(text, ",\"message\":\"status=200 \\\"\"}\n"));
	/* The longest key there can be, each byte of it escaped, is whole. */
	memset(big, 'x', sizeof big - 1);
	for (int f = LOG_PLAIN; f <= LOG_JSON; f += LOG_JSON - LOG_PLAIN) {
		log_init((enum log_format)f, LOG_INFO);
		capture();
		log_write_fields(LOG_EV_ACCESS, LOG_INFO, "m", "4711", large, 2, "end=%0100d", 0);
		release();
		assert_non_null(strstr(text, big));
		assert_non_null(strstr(text, f == LOG_JSON ? "000\"}\n" : "000\n"));
		assert_int_equal(lines(), 1);
	}
}

/* Too long is cut, and still one line of its format. */
static void
test_long(void **state)
{
	static char big[9000];

	memset(big, '"', sizeof big - 1);
	for (int f = LOG_PLAIN; f <= LOG_JSON; f++) {
		if (f == LOG_JOURNAL)
			continue;
		log_init((enum log_format)f, LOG_INFO);
		capture();
		log_info("%s", big);
		release();
		assert_int_equal(lines(), 1);
		assert_true(strlen(text) > 1000);
		if (f == LOG_JSON)
			assert_string_equal(text + strlen(text) - 5, "\\\"\"}\n");
	}
}

static void
chatter(void)
{
	log_limited(LOG_WARN, "again");
}

static void
test_limit(void **state)
{
	log_init(LOG_PLAIN, LOG_INFO);
	capture();
	for (int i = 0; i < 100; i++)
		chatter();
	now += NS_PER_S;
	chatter();
	chatter();
	release();
	assert_int_equal(lines(), 10 + 1 + 2);
	assert_non_null(strstr(text, "(90 similar lines held back)"));
}

static void
test_parse(void **state)
{
	enum log_level level = LOG_ERROR;

	assert_int_equal(log_level_parse("debug", &level), 0);
	assert_int_equal(level, LOG_DEBUG);
	assert_int_equal(log_level_parse("loud", &level), -EINVAL);
}

/* A module's own level goes before the common one, in both directions, until it is taken back. */
static void
test_modules(void **state)
{
	int rdma = log_module_find("rdma"), store = log_module_find("store");

	log_init(LOG_PLAIN, LOG_INFO);
	assert_int_equal(log_module_find("nobody"), -ENOENT);
	assert_true(rdma >= 0 && store >= 0 && rdma != store);
	assert_int_equal(log_get_module_level(rdma), LOG_LEVEL_COMMON);
	log_set_module_level(rdma, LOG_DEBUG);
	log_set_module_level(store, LOG_ERROR);
	assert_true(log_enabled(LOG_DEBUG, "rdma"));
	assert_false(log_enabled(LOG_DEBUG, "chan"));
	assert_true(log_enabled(LOG_INFO, "chan"));
	assert_false(log_enabled(LOG_WARN, "store"));
	assert_true(log_enabled(LOG_ERROR, "store"));
	assert_int_equal(log_max_, LOG_DEBUG);
	log_set_module_level(rdma, LOG_LEVEL_COMMON);
	log_set_module_level(store, LOG_LEVEL_COMMON);
	assert_false(log_enabled(LOG_DEBUG, "rdma"));
	assert_true(log_enabled(LOG_INFO, "store"));
	assert_int_equal(log_max_, LOG_INFO);
}

/* Each class has a name and an id of its own; JSON and plain lines name event and request. */
static void
test_events(void **state)
{
	for (int i = 1; i < LOG_EV_NR; i++) {
		assert_int_equal(strlen(log_events[i].id), 32);
		assert_int_equal(strspn(log_events[i].id, "0123456789abcdef"), 32);
		assert_true(*log_events[i].name && *log_events[i].what);
		for (int j = 1; j < i; j++) {
			assert_string_not_equal(log_events[i].id, log_events[j].id);
			assert_string_not_equal(log_events[i].name, log_events[j].name);
		}
	}
	log_init(LOG_JSON, LOG_INFO);
	capture();
	log_event(LOG_EV_READY, LOG_NOTE, "x");
	log_write_event(LOG_EV_ACCESS, LOG_INFO, "access", "00ff", "y");
	log_event(LOG_EV_READY, LOG_DEBUG, "not seen");
	release();
	assert_string_equal(text, "{\"time\":\"2023-11-14T22:13:21.123456Z\",\"level\":\"notice\","
				  "\"module\":\"test\",\"event\":\"ready\",\"message\":\"x\"}\n"
				  "{\"time\":\"2023-11-14T22:13:21.123456Z\",\"level\":\"info\","
				  "\"module\":\"access\",\"event\":\"access\",\"request\":\"00ff\","
				  "\"message\":\"y\"}\n");
	log_init(LOG_PLAIN, LOG_INFO);
	capture();
	log_write_event(LOG_EV_ACCESS, LOG_INFO, "access", "00ff", "y");
	release();
	assert_string_equal(text, "2023-11-14T22:13:21.123456Z info access: id=00ff y\n");
}

static char heard[256];
static enum log_level heard_level;

static void
on_line(enum log_level level, const char *line)
{
	heard_level = level;
	snprintf(heard, sizeof heard, "%s", line);
}

/* A library's lines go to its function, and nowhere else. */
static void
test_sink(void **state)
{
	log_init(LOG_JSON, LOG_INFO);
	log_set_sink(on_line);
	capture();
	log_warn("a line\nof %d", 2);
	release();
	assert_string_equal(text, "");
	assert_string_equal(heard, "a line?of 2");
	assert_int_equal(heard_level, LOG_WARN);
	heard[0] = 0;
	log_debug("nobody wants it");
	assert_string_equal(heard, "");
	log_set_sink(NULL);
	capture();
	log_warn("again");
	release();
	assert_non_null(strstr(text, "again"));
}

/* A reader that does not read delays nobody: lines are dropped and counted, warnings last, and a line says how many when the
 * reader is back. */
static void
test_queue(void **state)
{
	static char all[4 << 20], fill[1000];
	struct log_dropped dropped;
	int p[2], old = dup(STDERR_FILENO);
	size_t len = 0;
	ssize_t n;
	char want[64];

	memset(fill, 'x', sizeof fill - 1);
	log_init(LOG_PLAIN, LOG_INFO);
	assert_int_equal(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
	assert_int_equal(log_queue_start(), 0);
	log_get_dropped(&dropped);
	assert_int_equal(dropped.lines, 0);
	/* The pipe and three quarters of the queue. */
	for (int i = 0; i < 3000; i++)
		log_info("%d %s", i, fill);
	log_get_dropped(&dropped);
	assert_in_range(dropped.lines, 1500, 2500);
	assert_int_equal(dropped.waiting, dropped.lines);
	assert_int_equal(dropped.audit_waiting, 0);
	assert_int_equal(dropped.since_wall_ns, now);
	log_warn("there is room for a warning");
	for (int i = 0; i < 3000; i++)
		log_error("%d %s", i, fill);
	log_get_dropped(&dropped);
	assert_in_range(dropped.audit_waiting, 2000, 2999);
	log_flush(NS_PER_MS);
	log_queue_stop(NS_PER_MS);
	snprintf(want, sizeof want, "%llu lines of the log were dropped", (unsigned long long)dropped.lines);
	while ((n = read(p[0], all + len, sizeof all - 1 - len)) > 0) {
		len += (size_t)n;
		all[len] = 0;
		if (strstr(all, "lines of the log were dropped"))
			break;
	}
	assert_non_null(strstr(all, want));
	assert_non_null(strstr(all, ": there is room for a warning\n"));
	log_get_dropped(&dropped);
	while (dropped.waiting)
		log_get_dropped(&dropped);
	assert_int_equal(dropped.audit_waiting, 0);
	assert_int_equal(dropped.since_wall_ns, 0);
	log_info("as before");
	log_queue_stop(60 * NS_PER_S);
	n = read(p[0], all, sizeof all - 1);
	assert_true(n > 0);
	all[n] = 0;
	assert_non_null(strstr(all, "as before\n"));
	dup2(old, STDERR_FILENO);
	close(old);
	close(p[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),  cmocka_unit_test(test_sink),   cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_json),   cmocka_unit_test(test_fields), cmocka_unit_test(test_long),
		cmocka_unit_test(test_limit),  cmocka_unit_test(test_parse),  cmocka_unit_test(test_modules),
		cmocka_unit_test(test_events), cmocka_unit_test(test_queue),
	};

	clock_fake(&now);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
