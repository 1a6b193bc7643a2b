/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: which are one client, how they read. */
#include "base/address.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>
#include <sys/un.h>

/* An address from text, with a port that must not matter. */
static struct sockaddr_storage
address(const char *text, uint16_t port)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = port };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = port };

	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
		memcpy(&sa, &six, sizeof six);
	} else {
		assert_int_equal(inet_pton(AF_INET, text, &four.sin_addr), 1);
		memcpy(&sa, &four, sizeof four);
	}
	return sa;
}

static bool
is_one_client(const char *one, const char *other)
{
	struct sockaddr_storage a = address(one, 1), b = address(other, 2);
	struct in6_addr x, y;

	address_client((struct sockaddr *)&a, &x);
	address_client((struct sockaddr *)&b, &y);
	return memcmp(&x, &y, sizeof x) == 0;
}

static void
clients(void **state)
{
	assert_true(is_one_client("192.0.2.1", "192.0.2.1"));
	assert_true(is_one_client("192.0.2.1", "::ffff:192.0.2.1"));
	assert_false(is_one_client("192.0.2.1", "192.0.2.2"));
	assert_false(is_one_client("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
	assert_true(is_one_client("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff"));
	assert_false(is_one_client("2001:db8:0:1::1", "2001:db8:0:2::1"));
	/* The network of zeroes is nobody of IPv4. */
	assert_false(is_one_client("::1", "0.0.0.0"));
	assert_true(is_one_client("::1", "::2"));
}

static void
mapped(void **state)
{
	struct sockaddr_storage four = address("192.0.2.1", 1), six = address("2001:db8::1", 1);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	static const struct in6_addr zero;
	struct in6_addr a, want;

	assert_true(address_in6((struct sockaddr *)&four, &a));
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &want), 1);
	assert_memory_equal(&a, &want, sizeof a);
	assert_true(address_in6((struct sockaddr *)&six, &a));
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &want), 1);
	assert_memory_equal(&a, &want, sizeof a);
	assert_false(address_in6((struct sockaddr *)&un, &a));
	assert_memory_equal(&a, &zero, sizeof a);
	assert_false(address_in6(NULL, &a));
	address_client((struct sockaddr *)&un, &a);
	assert_memory_equal(&a, &zero, sizeof a);
	address_client(NULL, &a);
	assert_memory_equal(&a, &zero, sizeof a);
}

static void
texts(void **state)
{
	struct sockaddr_storage four = address("192.0.2.1", 1), six = address("2001:db8::1", 1);
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char text[ADDRESS_TEXT_BYTES];

	assert_string_equal(address_text((struct sockaddr *)&four, text), "192.0.2.1");
	assert_string_equal(address_text((struct sockaddr *)&six, text), "2001:db8::1");
	assert_string_equal(address_text((struct sockaddr *)&un, text), "-");
	assert_string_equal(address_text(NULL, text), "-");
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(clients), cmocka_unit_test(mapped),
					    cmocka_unit_test(texts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
