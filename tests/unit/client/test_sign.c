/* SPDX-License-Identifier: Apache-2.0 */
/* Signed URLs: the example that AWS publishes, what may stand in them, and what is refused. */
#include "client/client_int.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t day = 1369353600ull * NS_PER_S; /* 2013-05-24 */

static struct gantry *
open_as(const char *token, enum gantry_dialect d, bool has_key)
{
	struct gantry_options o = { .size = sizeof o,
				    .flags = GANTRY_NO_RDMA,
				    .dialect = d,
				    .config_file = "",
				    .session_token = token };
	struct gantry *g;

	if (has_key) {
		o.access_key = "AKIAIOSFODNN7EXAMPLE";
		o.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
	}
	assert_int_equal(gantry_open(&o, &g), 0);
	return g;
}

/* The Amazon S3 API reference, "Authenticating Requests: Using Query Parameters". */
static void
as_published(void **state)
{
	struct gantry *g = open_as(NULL, GANTRY_S3, true);
	char *url;

	assert_int_equal(
		gantry_presign(g, "GET", "https://examplebucket.s3.amazonaws.com/test.txt", 86400, &url), 0);
	assert_string_equal(
		url, "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
		     "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
		     "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
		     "&X-Amz-Signature="
		     "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
	free(url);
	gantry_close(g);
}

static const char *
signature_of(struct gantry *g, const char *url)
{
	static char text[2][65];
	static int turn;
	char *made, *at;

	assert_int_equal(gantry_presign(g, "GET", url, 60, &made), 0);
	at = strstr(made, "&X-Amz-Signature=");
	assert_non_null(at);
	assert_int_equal(strlen(at), 17 + 64);
	turn = !turn;
	memcpy(text[turn], at + 17, 65);
	free(made);
	return text[turn];
}

/* A name in another spelling is the same name; a port that is the scheme's own is not in the Host that curl sends. */
static void
by_meaning(void **state)
{
	static const char *const same[][2] = {
		{ "http://h:9000/b/a+b", "http://h:9000/b/a%2Bb" },
		{ "http://h:9000/b/a b", "http://h:9000/b/%61%20b" },
		{ "http://h:9000/b/k%c3%a4", "http://h:9000/b/k\xc3\xa4" },
		{ "http://h:80/b/k", "http://h/b/k" },
		{ "https://h:443/b/k", "https://h/b/k" },
		{ "http://h/b/k?x=a/b", "http://h/b/k?x=a%2Fb" },
		{ "http://h/b/k?x", "http://h/b/k?x=" },
		{ "http://h/b/k?b=2&a=1", "http://h/b/k?a=1&b=2" },
	};
	static const char *const other[][2] = {
		{ "http://h/b/a%2Fb", "http://h/b/a%252Fb" }, { "http://h:9000/b/k", "http://h/b/k" },
		{ "https://h:80/b/k", "https://h/b/k" },      { "http://h/b/k", "http://h/b/k?x" },
		{ "http://h/b/%2525", "http://h/b/%25" },
	};
	struct gantry *g = open_as(NULL, GANTRY_S3, true), *token = open_as("to/ken+1=", GANTRY_S3, true);
	char *url;

	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		assert_string_equal(signature_of(g, same[i][0]), signature_of(g, same[i][1]));
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		assert_string_not_equal(signature_of(g, other[i][0]), signature_of(g, other[i][1]));
	assert_int_equal(gantry_presign(token, "DELETE", "http://h/b/k?own=1", 60, &url), 0);
	assert_non_null(strstr(url, "/b/k?own=1&X-Amz-Algorithm="));
	assert_non_null(strstr(url, "&X-Amz-Security-Token=to%2Fken%2B1%3D&X-Amz-SignedHeaders=host&"));
	free(url);
	gantry_close(g);
	gantry_close(token);
}

static void
refusals(void **state)
{
	static const char good[] = "http://h/b/k";
	struct gantry *g = open_as(NULL, GANTRY_S3, true), *none = open_as(NULL, GANTRY_S3, false),
		      *scality = open_as(NULL, GANTRY_SCALITY, false);
	char many[400] = "http://h/b/k?a", *url;

	assert_int_equal(gantry_presign(none, "GET", good, 60, &url), -ENOKEY);
	assert_null(url);
	assert_int_equal(gantry_presign(scality, "GET", good, 60, &url), -EOPNOTSUPP);
	assert_int_equal(gantry_presign(g, "GET", good, 0, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", good, 604801, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "POST", good, 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "get", good, 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, NULL, good, 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", NULL, 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "http://", 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "http:///b/k", 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "http://h", 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "/b/k", 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "http://me:pw@h/b/k", 60, &url), -EINVAL);
	assert_int_equal(gantry_presign(g, "GET", "http://h/b/k?x-amz-signature=0", 60, &url), -EEXIST);
	/* More than is sorted and signed: half a signature would be none. */
	for (int i = 0; i < 24; i++)
		strcat(many, "&a");
	assert_int_equal(gantry_presign(g, "GET", many, 60, &url), 0);
	free(url);
	strcat(many, "&a");
	assert_int_equal(gantry_presign(g, "GET", many, 60, &url), -EINVAL);
	gantry_close(g);
	gantry_close(none);
	gantry_close(scality);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_published),
		cmocka_unit_test(by_meaning),
		cmocka_unit_test(refusals),
	};

	clock_fake(&day);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
