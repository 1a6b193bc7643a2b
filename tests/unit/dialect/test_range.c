/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges, conditions and dates: range.c, cond.c, date.c. */
#include "build.h"

#include "base/clock.h"
#include "dialect/dialect_int.h"

#include <errno.h>

/* item 57, item 58, item 61, item 62, item 63, item 66: what of an object a range names */
static void
ranges(void **state)
{
	static const struct {
		const char *range;
		uint64_t size;
		int r;
		uint64_t off, len;
		bool partial;
	} cases[] = {
		{ NULL, 100, 0, 0, 100, false },
		{ NULL, 0, 0, 0, 0, false },
		{ "bytes=0-9", 100, 0, 0, 10, true },
		{ "bytes=0-99", 100, 0, 0, 100, true },
		{ "bytes=0-100", 100, 0, 0, 100, true },
		{ "bytes=99-99", 100, 0, 99, 1, true },
		{ "bytes=99-", 100, 0, 99, 1, true },
		{ "bytes=0-", 100, 0, 0, 100, true },
		{ "bytes=100-", 100, -ERANGE },
		{ "bytes=100-200", 100, -ERANGE },
		{ "bytes=0-0", 0, -ERANGE },
		{ "bytes=0-", 0, -ERANGE },
		{ "bytes=-1", 0, -ERANGE },
		{ "bytes=-0", 100, -ERANGE },
		{ "bytes=-0", 0, -ERANGE },
		{ "bytes=-1", 100, 0, 99, 1, true },
		{ "bytes=-100", 100, 0, 0, 100, true },
		{ "bytes=-1000", 100, 0, 0, 100, true },
		{ "bytes=-99999999999999999999999999", 100, 0, 0, 100, true },
		{ "bytes=5-99999999999999999999999999", 100, 0, 5, 95, true },
		{ "bytes=99999999999999999999999999-", 100, -ERANGE },
		{ "bytes=18446744073709551615-18446744073709551615", 100, -ERANGE },
		{ "bytes=18446744073709551614-18446744073709551615", UINT64_MAX, 0, UINT64_MAX - 1, 1, true },
		{ "bytes=18446744073709551615-", UINT64_MAX, -ERANGE },
		{ "bytes=-18446744073709551615", UINT64_MAX, 0, 0, UINT64_MAX, true },
		{ "bytes=000000000000000000000000000000005-9", 100, 0, 5, 5, true },
		{ "BYTES=5-9", 100, 0, 5, 5, true },
		{ "  bytes=5-9\t", 100, 0, 5, 5, true },
		/* No range of RFC 9110, or several: ignored. */
		{ "bytes=9-5", 100, 0, 0, 100, false },
		{ "bytes=0-1,5-9", 100, 0, 0, 100, false },
		{ "bytes=0-1,", 100, 0, 0, 100, false },
		{ "bytes=", 100, 0, 0, 100, false },
		{ "bytes=-", 100, 0, 0, 100, false },
		{ "bytes=5", 100, 0, 0, 100, false },
		{ "bytes", 100, 0, 0, 100, false },
		{ "", 100, 0, 0, 100, false },
		{ "bytes= 5-9", 100, 0, 0, 100, false },
		{ "bytes=5 -9", 100, 0, 0, 100, false },
		{ "bytes=5-9 x", 100, 0, 0, 100, false },
		{ "bytes =5-9", 100, 0, 0, 100, false },
		{ "bytes=+5-9", 100, 0, 0, 100, false },
		{ "bytes=5--9", 100, 0, 0, 100, false },
		{ "bytes=--9", 100, 0, 0, 100, false },
		{ "bytes=0x5-9", 100, 0, 0, 100, false },
		{ "items=5-9", 100, 0, 0, 100, false },
		{ "5-9", 100, 0, 0, 100, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = s3("GET", "/bkt/obj");
		uint64_t off = 77, len = 77;
		bool partial = true;
		int res;

		if (cases[i].range)
			rq_field(r, "Range", cases[i].range);
		assert_fault(rq_parse(r), FAULT_NONE);
		res = range_resolve(&r->t.range, cases[i].size, &off, &len, &partial);
		if (res != cases[i].r)
			fail_msg("%s of %llu: %d", cases[i].range, (unsigned long long)cases[i].size, res);
		if (res == 0 && (off != cases[i].off || len != cases[i].len || partial != cases[i].partial))
			fail_msg("%s of %llu: %llu+%llu", cases[i].range, (unsigned long long)cases[i].size,
				 (unsigned long long)off, (unsigned long long)len);
		if (res < 0)
			assert_true(off == 77 && len == 77);
	}
}

static void
range_headers(void **state)
{
	struct rq *r = rq_with(s3("GET", "/bkt/obj"), "range", "bytes=0-1", "range", "bytes=2-3", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.range.kind, RANGE_NONE);
	r = rq_with(put_body(), "range", "bytes=0-1", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.range.kind, RANGE_NONE);
	/* item 88 */
	r = rq_with(scality("GET", "/k"), "range", "bytes=8388608-12582911", "x-scal-rdma", DC81, NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.range.kind, RANGE_FROM_TO);
	assert_true(r->t.range.first == 8388608 && r->t.range.last == 12582911);
}

#define T0 1445412480u /* Wed, 21 Oct 2015 07:28:00 GMT */
#define D0 "Wed, 21 Oct 2015 07:28:00 GMT"
#define D1 "Wed, 21 Oct 2015 07:28:01 GMT"
#define D_1 "Wed, 21 Oct 2015 07:27:59 GMT"

/* item 69: the object has the ETag abc and the time T0. */
static void
conditions(void **state)
{
	static const struct {
		const char *name1, *value1, *name2, *value2;
		enum fault get, put;
	} cases[] = {
		{ "if-match", "\"abc\"", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-match", "abc", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-match", "*", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-match", "W/\"abc\"", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-match", "\"abd\"", NULL, NULL, FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-match", "\"ab\"", NULL, NULL, FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-match", "\"\"", NULL, NULL, FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-match", "\"x\" , \"abc\",\"y\"", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-match", "\"x\"", "if-match", "\"abc\"", FAULT_NONE, FAULT_NONE },
		{ "if-match", "\"a,b\"", NULL, NULL, FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-none-match", "\"abc\"", NULL, NULL, FAULT_NOT_MODIFIED, FAULT_PRECONDITION },
		{ "if-none-match", "*", NULL, NULL, FAULT_NOT_MODIFIED, FAULT_PRECONDITION }, /* item 48 */
		{ "if-none-match", "\"x\"", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-modified-since", D0, NULL, NULL, FAULT_NOT_MODIFIED, FAULT_NONE },
		{ "if-modified-since", D1, NULL, NULL, FAULT_NOT_MODIFIED, FAULT_NONE },
		{ "if-modified-since", D_1, NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-modified-since", "yesterday", NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-unmodified-since", D0, NULL, NULL, FAULT_NONE, FAULT_NONE },
		{ "if-unmodified-since", D_1, NULL, NULL, FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-unmodified-since", "Thu, 01 Jan 1960 00:00:00 GMT", NULL, NULL, FAULT_PRECONDITION,
		  FAULT_PRECONDITION },
		{ "if-unmodified-since", "", NULL, NULL, FAULT_NONE, FAULT_NONE },
		/* The ETag decides, the date is not looked at. */
		{ "if-match", "\"abc\"", "if-unmodified-since", D_1, FAULT_NONE, FAULT_NONE },
		{ "if-none-match", "\"x\"", "if-modified-since", D0, FAULT_NONE, FAULT_NONE },
		{ "if-none-match", "\"abc\"", "if-modified-since", D_1, FAULT_NOT_MODIFIED,
		  FAULT_PRECONDITION },
		/* Both kinds: 412 comes first. */
		{ "if-match", "\"x\"", "if-none-match", "\"abc\"", FAULT_PRECONDITION, FAULT_PRECONDITION },
		{ "if-match", "\"abc\"", "if-none-match", "\"abc\"", FAULT_NOT_MODIFIED, FAULT_PRECONDITION },
		{ "if-modified-since", D_1, "if-modified-since", D0, FAULT_NONE, FAULT_NONE },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int m = 0; m < 4; m++) {
			struct rq *r = m == 0   ? s3("GET", "/bkt/obj")
				       : m == 1 ? s3("HEAD", "/bkt/obj")
				       : m == 2 ? put_dc()
						: s3("DELETE", "/bkt/obj");
			enum fault f;

			rq_field(r, cases[i].name1, cases[i].value1);
			if (cases[i].name2)
				rq_field(r, cases[i].name2, cases[i].value2);
			assert_fault(rq_parse(r), FAULT_NONE);
			f = dialect_conditions(&r->t, "abc", 3, T0);
			if (f != (m < 2 ? cases[i].get : cases[i].put))
				fail_msg("%s: %s gives %d on method %d", cases[i].name1, cases[i].value1, f,
					 m);
		}
	}
}

static void
conditions_without_object(void **state)
{
	struct rq *r = rq_with(put_dc(), "if-none-match", "*", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_conditions(&r->t, NULL, 0, 0), FAULT_NONE);
	r = rq_with(put_dc(), "if-match", "*", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_conditions(&r->t, NULL, 0, 0), FAULT_NO_SUCH_KEY);
	r = rq_with(put_dc(), "if-unmodified-since", D0, "if-modified-since", D0, NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_conditions(&r->t, NULL, 0, 0), FAULT_NONE);
}

static void
bad_etag_lists(void **state)
{
	static const char *const bad[] = { "",
					   "  ",
					   ",",
					   "\"abc",
					   "\"abc\"x",
					   "*, \"abc\"",
					   "\"abc\" \"x\"",
					   "abc\"x\"",
					   "*,*x",
					   "1,2,3,4,5,6,7,8,9" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "if-match", bad[i], NULL)),
			     FAULT_BAD_REQUEST);
		assert_fault(rq_parse(rq_with(put_body(), "if-none-match", bad[i], NULL)), FAULT_BAD_REQUEST);
	}
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj"), "if-match", "1,2,3,4,5,6,7,8", NULL)),
		     FAULT_NONE);
}

static void
if_range(void **state)
{
	static const struct {
		const char *value;
		bool holds;
	} cases[] = {
		{ "\"abc\"", true }, { "abc", true },    { "\"abd\"", false }, { "W/\"abc\"", false },
		{ "*", false },      { D0, true },       { D1, false },        { D_1, false },
		{ "", false },       { "\"abc", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = rq_with(s3("GET", "/bkt/obj"), "range", "bytes=0-1", "if-range",
				       cases[i].value, NULL);

		assert_fault(rq_parse(r), FAULT_NONE);
		assert_fault(dialect_conditions(&r->t, "abc", 3, T0), FAULT_NONE);
		if ((r->t.range.kind == RANGE_FROM_TO) != cases[i].holds)
			fail_msg("If-Range: %s", cases[i].value);
	}
	struct rq *r = rq_with(s3("GET", "/bkt/obj"), "range", "bytes=0-1", "if-range", "\"abc\"", "if-range",
			       "\"abc\"", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_conditions(&r->t, "abc", 3, T0), FAULT_NONE);
	assert_int_equal(r->t.range.kind, RANGE_NONE);
}

static void
dates(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t s;
	} cases[] = {
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0, 784111777 },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", 0, 784111777 },
		{ "Sun Nov  6 08:49:37 1994", 0, 784111777 },
		{ "Wed Nov 16 08:49:37 1994", 0, 784975777 },
		{ D0, 0, T0 },
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0, 0 },
		{ "Tue, 29 Feb 2000 23:59:59 GMT", 0, 951868799 },
		{ "Mon, 29 Feb 2100 00:00:00 GMT", -EINVAL },
		{ "Sun, 29 Feb 2015 00:00:00 GMT", -EINVAL },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", 0, 253402300799 },
		{ "Fri, 31 Dec 1937 00:00:00 GMT", 0, 0 },
		{ "Sun, 31 Dec 2016 23:59:60 GMT", 0, 1483228800 },
		{ "Sun, 31 Dec 2016 23:59:61 GMT", -EINVAL },
		{ "Sun, 31 Dec 2016 24:00:00 GMT", -EINVAL },
		{ "Sun, 31 Dec 2016 23:60:00 GMT", -EINVAL },
		{ "Sun, 00 Dec 2016 23:00:00 GMT", -EINVAL },
		{ "Sun, 31 Nov 2016 23:00:00 GMT", -EINVAL },
		{ "Sun, 06 Nov 1994 08:49:37", -EINVAL },
		{ "Sun, 06 Nov 1994 08:49:37 UTC", -EINVAL },
		{ "Sun, 06 Nov 1994 08:49:37 GMT ", -EINVAL },
		{ "Sun, 6 Nov 1994 08:49:37 GMT", -EINVAL },
		{ "sun, 06 nov 1994 08:49:37 gmt", -EINVAL },
		{ "Xxx, 06 Nov 1994 08:49:37 GMT", -EINVAL },
		{ "Sun, 06 Nov 94 08:49:37 GMT", -EINVAL },
		{ "Sunday, 06 Nov 1994 08:49:37 GMT", -EINVAL },
		{ "1994-11-06T08:49:37Z", -EINVAL },
		{ "784111777", -EINVAL },
		{ "Sun", -EINVAL },
		{ "Su", -EINVAL },
		{ "", -EINVAL },
	};
	uint64_t s;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int r = http_date_parse(cases[i].text, strlen(cases[i].text), &s);

		if (r != cases[i].r || (r == 0 && s != cases[i].s))
			fail_msg("%s: %d, %llu", cases[i].text, r, (unsigned long long)s);
	}
	/* Every cut of each form is refused. */
	for (int k = 0; k < 3; k++) {
		for (size_t n = 0; n < strlen(cases[k].text); n++)
			assert_int_equal(http_date_parse(cases[k].text, n, &s), -EINVAL);
	}
}

static void
two_digit_years(void **state)
{
	static const struct {
		uint64_t now_s;
		const char *yy;
		const char *year;
	} cases[] = {
		{ 1767225600, "76", "2076" }, /* in 2026: 50 years ahead still is ahead */
		{ 1767225600, "77", "1977" }, { 1767225600, "26", "2026" },
		{ 1767225600, "00", "2000" }, { 3786912000, "40", "2140" }, /* in 2090 */
		{ 3786912000, "41", "2041" }, { 3786912000, "99", "2099" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t now_ns = cases[i].now_s * NS_PER_S, got, want;
		char a[] = "Sunday, 06-Nov-yy 08:49:37 GMT", b[] = "Sun, 06 Nov yyyy 08:49:37 GMT";

		memcpy(a + 15, cases[i].yy, 2);
		memcpy(b + 12, cases[i].year, 4);
		clock_fake(&now_ns);
		assert_int_equal(http_date_parse(a, sizeof a - 1, &got), 0);
		clock_fake(NULL);
		assert_int_equal(http_date_parse(b, sizeof b - 1, &want), 0);
		assert_true(got == want);
	}
}

/* Every day of 800 years, there and back. */
static void
date_round_trip(void **state)
{
	for (uint64_t day = 0; day < 292194; day++) {
		uint64_t s = day * 86400 + day * 7919 % 86400, back;
		char text[30];

		http_date_format(s, text);
		assert_int_equal(strlen(text), 29);
		assert_int_equal(http_date_parse(text, 29, &back), 0);
		assert_true(back == s);
	}
	char text[30];

	http_date_format(T0, text);
	assert_string_equal(text, D0);
	http_date_format(UINT64_MAX, text);
	assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
}

/* Dates of XML and JSON. */
static void
iso_dates(void **state)
{
	static const struct {
		const char *text;
		uint64_t s;
	} good[] = {
		{ "2015-10-21T07:28:00Z", 1445412480 },
		{ "2015-10-21T07:28:00.000Z", 1445412480 },
		{ "2015-10-21T07:28:00.123456789Z", 1445412480 },
		{ "2015-10-21T07:28:00+00:00", 1445412480 },
		{ "2015-10-21", 1445385600 },
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1969-12-31", 0 },
		{ "2016-02-29", 1456704000 },
		{ "2015-12-31T23:59:60Z", 1451606400 },
		{ "9999-12-31T23:59:60Z", 253402300799 },
	};
	static const char *const bad[] = { "",
					   "2015",
					   "2015-10",
					   "2015-10-21T",
					   "2015-10-21T07:28Z",
					   "2015-10-21T07:28:00",
					   "2015-10-21T07:28:000Z",
					   "2015-10-21T07:28:00.Z",
					   "2015-10-21T07:28:00+02:00",
					   "2015-10-21T07:28:00Z ",
					   "2015-13-01",
					   "2015-00-01",
					   "2015-02-29",
					   "2015-10-21T24:00:00Z" };
	uint64_t v;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(iso_date_parse(good[i].text, strlen(good[i].text), &v), 0);
		assert_int_equal(v, good[i].s);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(iso_date_parse(bad[i], strlen(bad[i]), &v), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),          cmocka_unit_test(range_headers),
		cmocka_unit_test(conditions),      cmocka_unit_test(conditions_without_object),
		cmocka_unit_test(bad_etag_lists),  cmocka_unit_test(if_range),
		cmocka_unit_test(dates),           cmocka_unit_test(two_digit_years),
		cmocka_unit_test(date_round_trip), cmocka_unit_test(iso_dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
