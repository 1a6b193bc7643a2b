/* SPDX-License-Identifier: Apache-2.0 */
/* Followers: each sees what passes its filter, once; one that does not read loses lines, is told how many, and ends. */
#include "audit/audit.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t now_ns = 1000 * NS_PER_S;

static char *
read_of(const char *id)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int r = audit_follow_read(id, f);

	fclose(f);
	if (r < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void
sees(const char *id, const char *want_begin, int want_nr)
{
	char *text = read_of(id);
	int nr = 0;

	assert_non_null(text);
	assert_memory_equal(text, want_begin, strlen(want_begin));
	for (const char *p = text; (p = strstr(p, "\"op\"")); p++)
		nr++;
	assert_int_equal(nr, want_nr);
	assert_string_equal(text + strlen(text) - 2, "]}");
	assert_null(strstr(text, ",]"));
	free(text);
}

static const struct audit_event put = { .op = "PutObject",
					.has_status = true,
					.status = 200,
					.bucket = { "bkt", 3 },
					.key = { "k", 1 },
					.peer = "::ffff:10.0.0.5",
					.access_key = "AK",
					.is_request = true,
					.us = 2000 };
static const struct audit_event refused = { .kind = AUDIT_REFUSAL,
					    .op = "GetObject",
					    .has_status = true,
					    .status = 403,
					    .fault = "AccessDenied",
					    .bucket = { "bkt2", 4 },
					    .peer = "10.0.0.6",
					    .claimed_access_key = "AK2",
					    .is_request = true,
					    .us = 10 };
static const struct audit_event gone = { .kind = AUDIT_OTHER, .op = "HeadObject", .has_status = true };
static const struct audit_event expired = { .op = "Expire", .bucket = { "bkt", 3 }, .key = { "k", 1 } };

static void
test_filters(void **state)
{
	static const struct {
		struct audit_filter filter;
		int nr;
	} cases[] = {
		{ { .bucket = "" }, 4 },
		{ { .bucket = "bkt" }, 2 },
		{ { .access_key = "AK" }, 1 },
		{ { .access_key = "AK2" }, 1 },
		{ { .client = "10.0.0.5" }, 1 },
		{ { .client = "::ffff:10.0.0.6" }, 1 },
		{ { .client = "10.0.0.7" }, 0 },
		{ { .op = "expire" }, 1 },
		{ { .errors = true }, 2 },
		{ { .slow_us = 1000 }, 1 },
		{ { .bucket = "bkt", .errors = true }, 0 },
	};
	enum { NR = sizeof cases / sizeof *cases };

	assert_false(audit_wants(AUDIT_OTHER));
	for (int i = 0; i < NR; i++) {
		char id[17];

		assert_int_equal(audit_follow(&cases[i].filter, id), 0);
		assert_true(audit_wants(AUDIT_OTHER));
		audit_put(&put);
		audit_put(&refused);
		audit_put(&gone);
		audit_put(&expired);
		sees(id, "{\"lost\":0,\"events\":[", cases[i].nr);
		sees(id, "{\"lost\":0,\"events\":[]}", 0);
		audit_follow_end(id);
		assert_null(read_of(id));
	}
	assert_false(audit_wants(AUDIT_OTHER));
}

static void
test_slow(void **state)
{
	char key[1000], id[17];
	struct audit_event e = { .op = "PutObject", .key = { key, sizeof key } };
	char *text;
	unsigned long lost;
	int seen = 0;

	memset(key, 'k', sizeof key);
	assert_int_equal(audit_follow(&(struct audit_filter){ .errors = false }, id), 0);
	for (int i = 0; i < 1000; i++)
		audit_put(&e);
	text = read_of(id);
	lost = strtoul(text + strlen("{\"lost\":"), NULL, 10);
	for (const char *p = text; (p = strstr(p, "\"op\"")); p++)
		seen++;
	assert_true(lost > 500 && strlen(text) < 300 << 10);
	assert_int_equal(lost + (unsigned)seen, 1000);
	free(text);
	audit_put(&put);
	sees(id, "{\"lost\":0,\"events\":[{", 1);
	audit_follow_end(id);
}

static void
test_limit(void **state)
{
	struct audit_filter all = { .errors = false };
	char id[AUDIT_FOLLOWERS_MAX][17], more[17];

	for (int i = 0; i < AUDIT_FOLLOWERS_MAX; i++)
		assert_int_equal(audit_follow(&all, id[i]), 0);
	assert_int_equal(audit_follow(&all, more), -EBUSY);
	now_ns += AUDIT_FOLLOW_NS / 2;
	sees(id[3], "{\"lost\":0,", 0);
	now_ns += AUDIT_FOLLOW_NS / 2 + 1;
	/* All but the one that has read have ended. */
	audit_put(&put);
	assert_null(read_of(id[0]));
	sees(id[3], "{\"lost\":0,", 1);
	assert_int_equal(audit_follow(&all, more), 0);
	audit_follow_end(more);
	audit_follow_end(more);
	audit_follow_end(id[3]);
	assert_false(audit_wants(AUDIT_OTHER));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_limit),
	};

	clock_fake(&now_ns);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
