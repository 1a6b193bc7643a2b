/* SPDX-License-Identifier: Apache-2.0 */
/* CORS and lifecycle rules: cors.c, lifecycle.c. */
#include "tests/unit/dialect/build.h"

#include "s3doc/cors.h"
#include "s3doc/lifecycle.h"
#include "s3doc/xml.h"

#include <errno.h>
#include <stdio.h>

#define DAY 86400u
#define NOW (20000u * DAY + 3600) /* some day, one in the morning */

static const char *why;

static enum fault
cors(const char *rules, struct text *packed)
{
	struct text x = { 0 };
	enum fault f;

	text_fmt(&x, "<CORSConfiguration>%s</CORSConfiguration>", rules);
	text_reset(packed);
	f = cors_from_xml(x.p, x.len, packed, &why);
	text_free(&x);
	return f;
}

static bool
match(const struct text *p, const char *origin, const char *method, const char *headers,
      struct cors_answer *a)
{
	return cors_match(p->p, p->len, origin, strlen(origin), method, strlen(method), headers,
			  headers ? strlen(headers) : 0, a);
}

static void
cors_rules(void **state)
{
	struct text p = { 0 }, x = { 0 }, again = { 0 };
	struct cors_answer a;

	assert_fault(cors("<CORSRule><ID>one</ID><AllowedOrigin>https://*.example.com</AllowedOrigin>"
			  "<AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod>"
			  "<AllowedHeader>x-amz-*</AllowedHeader><AllowedHeader>Content-Type</AllowedHeader>"
			  "<ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-amz-meta-a</ExposeHeader>"
			  "<MaxAgeSeconds>600</MaxAgeSeconds></CORSRule>"
			  "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></"
			  "CORSRule>",
			  &p),
		     FAULT_NONE);
	assert_true(match(&p, "https://a.example.com", "PUT", "X-Amz-Date, content-type", &a));
	assert_string_equal(a.origin, "https://a.example.com");
	assert_string_equal(a.methods, "GET, PUT");
	assert_string_equal(a.headers, "x-amz-date, content-type");
	assert_string_equal(a.expose, "ETag, x-amz-meta-a");
	assert_true(a.credentials && a.max_age_s == 600);
	assert_false(match(&p, "https://a.example.com", "PUT", "authorization", &a));
	assert_false(match(&p, "https://a.example.com", "DELETE", NULL, &a));
	assert_false(match(&p, "http://a.example.com", "GET", NULL, &a));
	assert_false(match(&p, "https://example.com", "GET", NULL, &a));
	assert_true(match(&p, "null", "HEAD", NULL, &a));
	assert_string_equal(a.origin, "*");
	assert_false(a.credentials);
	assert_false(match(&p, "null", "HEAD", "x-other", &a));
	assert_false(match(&p, "a\r\nset-cookie: b", "HEAD", NULL, &a));
	assert_false(match(&p, "", "HEAD", NULL, &a));
	assert_string_equal(a.origin, "");
	/* Written as it was read. */
	assert_int_equal(cors_to_xml(&x, p.p, p.len), 0);
	assert_non_null(strstr(text_of(&x), "<AllowedOrigin>https://*.example.com</AllowedOrigin>"));
	assert_fault(cors_from_xml(x.p, x.len, &again, &why), FAULT_NONE);
	assert_int_equal(again.len, p.len);
	assert_memory_equal(again.p, p.p, p.len);
	/* Bytes that are not ours. */
	for (size_t n = 0; n < p.len; n++) {
		text_reset(&x);
		if (cors_to_xml(&x, p.p, n) == 0)
			assert_true(n >= 1);
		match(&(struct text){ .p = p.p, .len = n }, "https://a.example.com", "PUT", NULL, &a);
	}
	text_free(&p);
	text_free(&x);
	text_free(&again);
}

/* A preflight comes without credentials, so its names are as many as a request has fields, and no more. */
static void
cors_names(void **state)
{
	struct text p = { 0 }, names = { 0 }, rules = { 0 };
	struct cors_answer a;

	assert_fault(cors("<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>"
			  "<AllowedHeader>X-Amz-Meta-*</AllowedHeader><AllowedHeader>*-b</AllowedHeader>"
			  "<AllowedHeader>Range</AllowedHeader></CORSRule>",
			  &p),
		     FAULT_NONE);
	/* All the names that a request could have, in rules that a later name may fail. */
	for (int i = 0; i < CORS_NAMES_MAX; i++)
		text_fmt(&names, "%sX-AMZ-meta-name-%d", i ? "," : "", i);
	assert_true(match(&p, "http://a", "PUT", text_of(&names), &a));
	assert_memory_equal(a.headers, "x-amz-meta-name-0, x-amz-meta-name-1, ", 38);
	assert_non_null(strstr(a.headers, ", x-amz-meta-name-127"));
	text_str(&names, ", ,");
	assert_true(match(&p, "http://a", "PUT", text_of(&names), &a));
	text_str(&names, "range");
	assert_false(match(&p, "http://a", "PUT", text_of(&names), &a));
	assert_string_equal(a.headers, "");
	/* Each name needs a pattern of its own, whatever the order. */
	assert_true(match(&p, "http://a", "PUT", "a-B,RANGE , x-amz-meta-,-b", &a));
	assert_string_equal(a.headers, "a-b, range, x-amz-meta-, -b");
	assert_false(match(&p, "http://a", "PUT", "a-b, range, ranges", &a));
	assert_false(match(&p, "http://a", "PUT", "b", &a));
	assert_false(match(&p, "http://a", "PUT", "x-amz-meta", &a));
	assert_false(match(&p, "http://a", "PUT", "range\x01", &a));
	/* Nor more of them than an answer holds. */
	text_reset(&names);
	for (int i = 0; i < CORS_NAMES_MAX; i++)
		text_fmt(&names, "%sx-amz-meta-%032d", i ? "," : "", i);
	assert_false(match(&p, "http://a", "PUT", text_of(&names), &a));
	/* The second rule is asked for the same names. */
	text_str(&rules, "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>"
			 "<AllowedHeader>a</AllowedHeader></CORSRule><CORSRule><AllowedOrigin>http://b"
			 "</AllowedOrigin><AllowedMethod>PUT</AllowedMethod><AllowedHeader>A*</AllowedHeader>"
			 "<AllowedHeader>*</AllowedHeader></CORSRule>");
	assert_fault(cors(text_of(&rules), &p), FAULT_NONE);
	assert_true(match(&p, "http://b", "PUT", "A,a,b", &a));
	assert_string_equal(a.headers, "a, a, b");
	assert_string_equal(a.origin, "http://b");
	assert_false(match(&p, "http://c", "PUT", "A,a,b", &a));
	text_free(&p);
	text_free(&names);
	text_free(&rules);
}

static void
cors_refused(void **state)
{
	static const struct {
		const char *rules;
		enum fault f;
	} bad[] = {
		{ "", FAULT_MALFORMED_XML },
		{ "<CORSRule/>", FAULT_MALFORMED_XML },
		{ "<CORSRule><AllowedOrigin>*</AllowedOrigin></CORSRule>", FAULT_MALFORMED_XML },
		{ "<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>", FAULT_MALFORMED_XML },
		{ "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>PATCH</AllowedMethod></CORSRule>",
		  FAULT_BAD_REQUEST },
		{ "<CORSRule><AllowedOrigin>*.*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>",
		  FAULT_BAD_REQUEST },
		{ "<CORSRule><AllowedOrigin>a&#10;b</AllowedOrigin><AllowedMethod>GET</AllowedMethod></"
		  "CORSRule>",
		  FAULT_BAD_REQUEST },
		{ "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"
		  "<ExposeHeader>*</ExposeHeader></CORSRule>",
		  FAULT_BAD_REQUEST },
		{ "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"
		  "<MaxAgeSeconds>-1</MaxAgeSeconds></CORSRule>",
		  FAULT_MALFORMED_XML },
		{ "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><X/></"
		  "CORSRule>",
		  FAULT_MALFORMED_XML },
	};
	struct text p = { 0 }, many = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		enum fault f = cors(bad[i].rules, &p);

		if (f != bad[i].f)
			fail_msg("%s: fault %d, %s", bad[i].rules, f, why);
	}
	for (int i = 0; i <= CORS_RULES_MAX; i++)
		text_str(&many, "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"
				"</CORSRule>");
	assert_fault(cors(text_of(&many), &p), FAULT_BAD_REQUEST);
	text_free(&many);
	text_free(&p);
}

static enum fault
lifecycle(const char *rules, struct text *packed)
{
	struct text x = { 0 };
	enum fault f;

	text_fmt(&x, "<LifecycleConfiguration>%s</LifecycleConfiguration>", rules);
	text_reset(packed);
	f = lifecycle_from_xml(x.p, x.len, packed, &why);
	text_free(&x);
	return f;
}

static bool
due(const struct text *p, const char *key, uint64_t size, const char *tags, uint64_t mtime_s, uint64_t now_s)
{
	return lifecycle_due(p->p, p->len, key, strlen(key), size, tags, strlen(tags), mtime_s, now_s);
}

#define RULE(filter, action) "<Rule><Status>Enabled</Status>" filter action "</Rule>"
#define ALL "<Filter><Prefix></Prefix></Filter>"
#define DAYS(n) "<Expiration><Days>" n "</Days></Expiration>"

static void
lifecycle_ages(void **state)
{
	struct text p = { 0 };
	const char *id;
	size_t id_len;

	/* Written at 01:00; two days later is 01:00, and the midnight behind that is what counts. */
	assert_fault(lifecycle(RULE("<ID>one</ID>" ALL, DAYS("2")), &p), FAULT_NONE);
	assert_false(due(&p, "k", 1, "", NOW, NOW + 2 * DAY));
	assert_false(due(&p, "k", 1, "", NOW, 20003 * DAY - 1));
	assert_true(due(&p, "k", 1, "", NOW, 20003 * DAY));
	assert_int_equal(lifecycle_expiry(p.p, p.len, "k", 1, 1, "", 0, NOW, &id, &id_len), 20003 * DAY);
	assert_true(id_len == 3 && memcmp(id, "one", 3) == 0);
	assert_false(lifecycle_upload_due(p.p, p.len, "k", 1, NOW, NOW + 100 * DAY));
	/* By date: whatever the age. */
	assert_fault(lifecycle(RULE(ALL, "<Expiration><Date>2024-10-04T00:00:00Z</Date></Expiration>"), &p),
		     FAULT_NONE);
	assert_false(due(&p, "k", 1, "", NOW, 20000 * DAY - 1));
	assert_true(due(&p, "k", 1, "", NOW, 20000 * DAY));
	/* Disabled rules do nothing, and unfinished uploads have their own. */
	assert_fault(lifecycle("<Rule><Status>Disabled</Status>" ALL DAYS("1") "</Rule>", &p), FAULT_NONE);
	assert_false(due(&p, "k", 1, "", NOW, NOW + 100 * DAY));
	assert_fault(lifecycle(RULE("<Prefix>up/</Prefix>",
				    "<AbortIncompleteMultipartUpload><DaysAfterInitiation>3"
				    "</DaysAfterInitiation></AbortIncompleteMultipartUpload>"),
			       &p),
		     FAULT_NONE);
	assert_false(due(&p, "up/k", 1, "", NOW, NOW + 100 * DAY));
	assert_false(lifecycle_upload_due(p.p, p.len, "k", 1, NOW, NOW + 100 * DAY));
	assert_false(lifecycle_upload_due(p.p, p.len, "up/k", 4, NOW, NOW + 3 * DAY));
	assert_true(lifecycle_upload_due(p.p, p.len, "up/k", 4, NOW, NOW + 4 * DAY));
	/* The earliest of several. */
	assert_fault(lifecycle(RULE("<ID>a</ID>" ALL, DAYS("9"))
				       RULE("<ID>b</ID><Filter><Prefix>k</Prefix></Filter>", DAYS("4")),
			       &p),
		     FAULT_NONE);
	assert_int_equal(lifecycle_expiry(p.p, p.len, "k", 1, 1, "", 0, NOW, &id, &id_len), 20005 * DAY);
	assert_true(id_len == 1 && *id == 'b');
	/* No age is too large to count. */
	assert_fault(lifecycle(RULE(ALL, DAYS("2147483647")), &p), FAULT_NONE);
	assert_false(due(&p, "k", 1, "", NOW, NOW + 100000 * (uint64_t)DAY));
	text_free(&p);
}

static void
lifecycle_filters(void **state)
{
	uint64_t later = NOW + 10 * DAY;
	struct text p = { 0 };

	assert_fault(lifecycle(RULE("<Filter><Prefix>log/</Prefix></Filter>", DAYS("1")), &p), FAULT_NONE);
	assert_true(due(&p, "log/a", 1, "", NOW, later));
	assert_false(due(&p, "log", 1, "", NOW, later));
	assert_fault(
		lifecycle(RULE("<Filter><Tag><Key>a b</Key><Value>1&amp;</Value></Tag></Filter>", DAYS("1")),
			  &p),
		FAULT_NONE);
	assert_true(due(&p, "k", 1, "x=1&a b=1%26", NOW, later));
	assert_false(due(&p, "k", 1, "a b=1", NOW, later));
	assert_false(due(&p, "k", 1, "", NOW, later));
	assert_fault(lifecycle(RULE("<Filter><And><Prefix>p</Prefix><Tag><Key>a</Key><Value>1</Value></Tag>"
				    "<Tag><Key>b</Key><Value>2</Value></Tag>"
				    "<ObjectSizeGreaterThan>10</ObjectSizeGreaterThan>"
				    "<ObjectSizeLessThan>20</ObjectSizeLessThan></And></Filter>",
				    DAYS("1")),
			       &p),
		     FAULT_NONE);
	assert_true(due(&p, "p", 11, "b=2&a=1", NOW, later));
	assert_true(due(&p, "p", 19, "b=2&a=1&c=3", NOW, later));
	assert_false(due(&p, "p", 10, "b=2&a=1", NOW, later));
	assert_false(due(&p, "p", 20, "b=2&a=1", NOW, later));
	assert_false(due(&p, "p", 15, "b=2", NOW, later));
	assert_false(due(&p, "q", 15, "b=2&a=1", NOW, later));
	/* Bytes that are not ours expire nothing. */
	for (size_t n = 0; n < p.len; n++) {
		struct text cut = { .p = p.p, .len = n };

		assert_false(due(&cut, "p", 15, "b=2&a=1", NOW, later));
	}
	text_free(&p);
}

static void
lifecycle_texts(void **state)
{
	static const char *const good[] = {
		RULE("<ID>i</ID>" ALL, DAYS("1")),
		RULE("<ID>i</ID><Prefix>old</Prefix>", DAYS("1")),
		RULE("<ID>i</ID><Filter/>", DAYS("1")),
		RULE("<ID>i</ID><Filter><ObjectSizeGreaterThan>0</ObjectSizeGreaterThan></Filter>",
		     DAYS("1")),
		RULE("<ID>i</ID><Filter><And><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value/"
		     "></Tag>"
		     "</And></Filter>",
		     DAYS("1")),
		RULE("<ID>i</ID>" ALL, "<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays>"
				       "<NewerNoncurrentVersions>2</NewerNoncurrentVersions>"
				       "</NoncurrentVersionExpiration>"),
		RULE("<ID>i</ID>" ALL,
		     "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"),
		RULE(ALL, DAYS("1")) RULE(ALL, DAYS("2")),
	};
	static const struct {
		const char *rules;
		enum fault f;
	} bad[] = {
		{ "", FAULT_MALFORMED_XML },
		{ "<Rule/>", FAULT_MALFORMED_XML },
		{ RULE(ALL, ""), FAULT_MALFORMED_XML },
		{ RULE("", DAYS("1")), FAULT_MALFORMED_XML },
		{ RULE(ALL ALL, DAYS("1")), FAULT_MALFORMED_XML },
		{ RULE(ALL "<Prefix>a</Prefix>", DAYS("1")), FAULT_MALFORMED_XML },
		{ "<Rule>" ALL DAYS("1") "</Rule>", FAULT_MALFORMED_XML },
		{ RULE(ALL, DAYS("0")), FAULT_BAD_ARGUMENT },
		{ RULE(ALL, DAYS("-1")), FAULT_MALFORMED_XML },
		{ RULE(ALL, DAYS("2147483648")), FAULT_BAD_ARGUMENT },
		{ RULE(ALL, "<Expiration><Days>1</Days><Date>2024-10-04T00:00:00Z</Date></Expiration>"),
		  FAULT_MALFORMED_XML },
		{ RULE(ALL, "<Expiration><Date>2024-10-04T01:00:00Z</Date></Expiration>"),
		  FAULT_BAD_ARGUMENT },
		{ RULE(ALL, "<Expiration><Date>yesterday</Date></Expiration>"), FAULT_MALFORMED_XML },
		{ RULE(ALL, "<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>"),
		  FAULT_NOT_IMPLEMENTED },
		{ RULE("<ID>a</ID>" ALL, DAYS("1")) RULE("<ID>a</ID>" ALL, DAYS("2")), FAULT_BAD_ARGUMENT },
		{ RULE("<Filter><Prefix>a</Prefix><Tag><Key>a</Key><Value/></Tag></Filter>", DAYS("1")),
		  FAULT_MALFORMED_XML },
		{ RULE("<Filter><And><Prefix>a</Prefix></And></Filter>", DAYS("1")), FAULT_MALFORMED_XML },
		{ RULE("<Filter><And><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>a</Key><Value>2</"
		       "Value></Tag>"
		       "</And></Filter>",
		       DAYS("1")),
		  FAULT_INVALID_TAG },
		{ RULE("<Filter><Tag><Key>a</Key><Value>1</Value></Tag></Filter>",
		       "<AbortIncompleteMultipartUpload><DaysAfterInitiation>3</DaysAfterInitiation>"
		       "</AbortIncompleteMultipartUpload>"),
		  FAULT_BAD_REQUEST },
		{ "<Rule><Status>On</Status>" ALL DAYS("1") "</Rule>", FAULT_MALFORMED_XML },
	};
	struct text p = { 0 }, x = { 0 }, again = { 0 };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_fault(lifecycle(good[i], &p), FAULT_NONE);
		text_reset(&x);
		assert_int_equal(lifecycle_to_xml(&x, p.p, p.len), 0);
		text_reset(&again);
		assert_fault(lifecycle_from_xml(x.p, x.len, &again, &why), FAULT_NONE);
		assert_int_equal(again.len, p.len);
		assert_memory_equal(again.p, p.p, p.len);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		enum fault f = lifecycle(bad[i].rules, &p);

		if (f != bad[i].f)
			fail_msg("%s: fault %d, %s", bad[i].rules, f, why);
	}
	text_free(&p);
	text_free(&x);
	text_free(&again);
}

/* A second element of a kind is refused as such, not as one that is too long or that is no word of the API. */
static void
rules_said_twice(void **state)
{
#define MARKER(v) "<Expiration><ExpiredObjectDeleteMarker>" v "</ExpiredObjectDeleteMarker></Expiration>"
#define MORE_DAYS                                                                                            \
	"<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>"
	static const char *const twice[] = {
		RULE("<ID>a</ID><ID>b</ID>" ALL, DAYS("1")),
		RULE("<ID/><ID>b</ID>" ALL, DAYS("1")),
		RULE("<Status>Enabled</Status>" ALL, DAYS("1")),
		RULE("<Status>Disabled</Status>" ALL, DAYS("1")),
		RULE(ALL, DAYS("1") DAYS("2")),
		RULE(ALL, "<Expiration><Days>1</Days><Days>1</Days></Expiration>"),
		RULE(ALL, DAYS("1") "<Expiration/>"),
		RULE(ALL, MARKER("true") MARKER("false")),
		RULE(ALL, "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"
			  "<ExpiredObjectDeleteMarker>false</ExpiredObjectDeleteMarker></Expiration>"),
		RULE(ALL, MORE_DAYS MORE_DAYS),
		RULE("<Filter><And><Prefix>a</Prefix></And><And><Prefix>b</Prefix></And></Filter>",
		     DAYS("1")),
		RULE("<Filter><Tag><Key>a</Key><Value/></Tag><Tag><Key>b</Key><Value/></Tag></Filter>",
		     DAYS("1")),
	};
	char long_id[300], rules[512];
	struct text p = { 0 };

	for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
		enum fault f = lifecycle(twice[i], &p);

		if (f != FAULT_MALFORMED_XML || !strstr(why, "twice"))
			fail_msg("%s: fault %d, %s", twice[i], f, why);
	}
	/* Tags of an And, and the rules themselves, are lists. */
	assert_fault(lifecycle(RULE("<ID>a</ID>" ALL, DAYS("1")) RULE("<ID>b</ID>" ALL, DAYS("1")), &p),
		     FAULT_NONE);
	for (int n = 255; n <= 256; n++) {
		memset(long_id, 'i', (size_t)n);
		long_id[n] = 0;
		snprintf(rules, sizeof rules, RULE("<ID>%s</ID>" ALL, DAYS("1")), long_id);
		assert_fault(lifecycle(rules, &p), n == 255 ? FAULT_NONE : FAULT_BAD_ARGUMENT);
	}
	assert_non_null(strstr(why, "255 bytes"));
	assert_fault(lifecycle(RULE("<ID>a&#9;b</ID>" ALL, DAYS("1")), &p), FAULT_BAD_ARGUMENT);
	assert_non_null(strstr(why, "control characters"));
	assert_fault(cors("<CORSRule><ID>a</ID><ID>b</ID><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
			  "</AllowedMethod></CORSRule>",
			  &p),
		     FAULT_MALFORMED_XML);
	assert_string_equal(why, "A CORS rule has two IDs.");
	text_free(&p);
#undef MARKER
#undef MORE_DAYS
}

/* Ids of ours pass over those that the client gave; too many rules are refused when that is seen. */
static void
lifecycle_ids(void **state)
{
#define REST "<Status>Enabled</Status><Filter/><Expiration><Days>1</Days></Expiration></Rule>"
	static const char body[] =
		"<LifecycleConfiguration><Rule><ID>rule-2</ID>" REST "<Rule>" REST "<Rule>" REST
		"<Rule><ID>x</ID>" REST "<Rule>" REST "</LifecycleConfiguration>";
	static const char *const ids[] = { "rule-2", "rule-3", "rule-4", "x", "rule-5" };
	struct text packed = { 0 }, xml = { 0 };
	const char *at;

	assert_int_equal(lifecycle_from_xml(body, strlen(body), &packed, &why), FAULT_NONE);
	assert_int_equal(lifecycle_to_xml(&xml, packed.p, packed.len), 0);
	text_put(&xml, "", 1);
	at = xml.p;
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		at = strstr(at, "<ID>");
		assert_non_null(at);
		at += 4;
		assert_int_equal(strncmp(at, ids[i], strlen(ids[i])), 0);
		assert_int_equal(at[strlen(ids[i])], '<');
	}
	text_reset(&xml);
	text_str(&xml, "<LifecycleConfiguration>");
	for (int i = 0; i < 900; i++)
		text_fmt(&xml, i < 450 ? "<Rule><ID>rule-%d</ID>" REST : "<Rule>" REST, i + 451);
	text_str(&xml, "</LifecycleConfiguration>");
	text_reset(&packed);
	assert_int_equal(lifecycle_from_xml(xml.p, xml.len, &packed, &why), FAULT_BAD_REQUEST);
	assert_non_null(strstr(why, "24 KiB"));
	text_free(&xml);
	text_free(&packed);
#undef REST
}

#define EXPIRE_RULE                                                                                          \
	"<Rule><Filter><Prefix>p</Prefix></Filter><Status>Enabled</Status><Expiration><Days>7</Days></"      \
	"Expiration></Rule>"

/* The rule of `gantry bucket set --expire` among the others. */
static void
lifecycle_expire(void **state)
{
	struct text p = { 0 }, q = { 0 }, back = { 0 }, x = { 0 };
	uint32_t days;

	assert_int_equal(lifecycle_set_expire(&p, NULL, 0, 0), 0);
	assert_int_equal(p.len, 0);
	assert_int_equal(lifecycle_set_expire(&p, NULL, 0, 3), 0);
	assert_int_equal(lifecycle_look(p.p, p.len, &days), 0);
	assert_int_equal(days, 3);
	assert_true(due(&p, "any", 1, "", NOW - 5 * DAY, NOW));
	assert_false(due(&p, "any", 1, "", NOW - 2 * DAY, NOW));
	assert_int_equal(lifecycle_set_expire(&q, p.p, p.len, 0), 0);
	assert_int_equal(q.len, 0);
	/* Others stay as they are, at their places. */
	assert_fault(lifecycle(EXPIRE_RULE EXPIRE_RULE, &p), FAULT_NONE);
	assert_int_equal(lifecycle_look(p.p, p.len, &days), 2);
	assert_int_equal(days, 0);
	assert_int_equal(lifecycle_set_expire(&q, p.p, p.len, 1), 0);
	assert_int_equal(lifecycle_look(q.p, q.len, &days), 2);
	assert_int_equal(days, 1);
	assert_memory_equal(q.p, p.p, p.len);
	assert_int_equal(lifecycle_set_expire(&back, q.p, q.len, 0), 0);
	assert_int_equal(back.len, p.len);
	assert_memory_equal(back.p, p.p, p.len);
	assert_int_equal(lifecycle_set_expire(&back, p.p, p.len - 1, 1), -EINVAL);
	/* As many as there may be, and one more. */
	do {
		text_str(&x, EXPIRE_RULE);
		text_put(&x, "", 1);
		x.len--;
	} while (lifecycle(x.p, &p) == FAULT_NONE);
	x.len -= strlen(EXPIRE_RULE);
	x.p[x.len] = 0;
	assert_fault(lifecycle(x.p, &p), FAULT_NONE);
	assert_int_equal(lifecycle_set_expire(&q, p.p, p.len, 1), -E2BIG);
	assert_int_equal(lifecycle_set_expire(&q, p.p, p.len, 0), 0);
	text_free(&p);
	text_free(&q);
	text_free(&back);
	text_free(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lifecycle_ids),    cmocka_unit_test(cors_rules),
		cmocka_unit_test(cors_refused),     cmocka_unit_test(cors_names),
		cmocka_unit_test(lifecycle_ages),   cmocka_unit_test(lifecycle_filters),
		cmocka_unit_test(lifecycle_texts),  cmocka_unit_test(rules_said_twice),
		cmocka_unit_test(lifecycle_expire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
