/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of the PROXY protocol: what they say, in how many pieces they may come, who must send them and
 * who must not. */
#include "serve.h"

#include "http/proxy.h"

#include <arpa/inet.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
/* From 192.0.2.9:4660 to 198.51.100.1:443. */
#define FOUR "\xc0\x00\x02\x09\xc6\x33\x64\x01\x12\x34\x01\xbb"
/* From 2001:db8::9, port 4660. */
#define SIX                                                                                                  \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x34\x01"   \
	"\xbb"
#define MAPPED                                                                                               \
	"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x09\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x01\x12\x34"   \
	"\x01\xbb"

struct header {
	const char *name, *bytes;
	size_t len;
	int length;         /* what proxy_length() returns */
	const char *source; /* NULL: the balancer's own; "": -EBADMSG */
};
#define H(name, bytes, length, source)                                                                       \
	{                                                                                                    \
		name, bytes, sizeof bytes - 1, length, source                                                \
	}

static const struct header headers[] = {
	H("TCP4", SIGNATURE "\x21\x11\0\x0c" FOUR, 28, "192.0.2.9 4660"),
	H("TCP4 with more behind", SIGNATURE "\x21\x11\0\x11" FOUR "\x04\0\x02\0\0", 33, "192.0.2.9 4660"),
	H("the longest", SIGNATURE "\x21\x11\xff\xff" FOUR, 65551, "192.0.2.9 4660"),
	H("TCP6", SIGNATURE "\x21\x21\0\x24" SIX, 52, "2001:db8::9 4660"),
	H("LOCAL", SIGNATURE "\x20\0\0\0", 16, NULL),
	H("LOCAL with addresses", SIGNATURE "\x20\x11\0\x0c" FOUR, 28, NULL),
	H("LOCAL of no family there is", SIGNATURE "\x20\x77\0\0", 16, NULL),
	H("of no family", SIGNATURE "\x21\0\0\0", 16, NULL),
	H("over a Unix socket", SIGNATURE "\x21\x31\0\xd8", 232, NULL),
	H("TCP4, too short", SIGNATURE "\x21\x11\0\x0b\0\0\0\0\0\0\0\0\0\0\0", 27, ""),
	H("TCP6, too short", SIGNATURE "\x21\x21\0\x0c" FOUR, 28, ""),
	H("Unix socket, too short", SIGNATURE "\x21\x31\0\0", 16, ""),
	H("UDP4", SIGNATURE "\x21\x12\0\x0c" FOUR, -EBADMSG, NULL),
	H("UDP6", SIGNATURE "\x21\x22\0\x24" SIX, -EBADMSG, NULL),
	H("a family that there is not", SIGNATURE "\x21\x41\0\0", -EBADMSG, NULL),
	H("version 1 in binary", SIGNATURE "\x11\x11\0\x0c" FOUR, -EBADMSG, NULL),
	H("version 3", SIGNATURE "\x31\x11\0\x0c" FOUR, -EBADMSG, NULL),
	H("a command that there is not", SIGNATURE "\x22\x11\0\x0c" FOUR, -EBADMSG, NULL),
	H("version 1", "PROXY TCP4 192.0.2.9 198.51.100.1 4660 443\r\n", -EPROTONOSUPPORT, NULL),
	H("HTTP", "GET /now HTTP/1.1\r\nHost: x\r\n\r\n", -EBADMSG, NULL),
	H("TLS", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x55\x55\x55\x55\x55\x55", -EBADMSG, NULL),
	H("nearly", "\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c" FOUR, -EBADMSG, NULL),
};

static void
address_text(const struct sockaddr_storage *sa, char *out, size_t cap)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *four = (const struct sockaddr_in *)sa;
	bool is_six = sa->ss_family == AF_INET6;
	char text[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(sa->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr,
				  text, sizeof text));
	snprintf(out, cap, "%s %u", text, ntohs(is_six ? six->sin6_port : four->sin_port));
}

static void
test_parse(void **state)
{
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		const struct header *h = &headers[i];
		/* Of its own, so that a sanitizer sees what is read beyond it. */
		uint8_t *copy = malloc(h->len);
		struct sockaddr_storage sa;
		char text[64];
		bool own;
		int rc;

		memcpy(copy, h->bytes, h->len);
		print_message("%s\n", h->name);
		assert_int_equal(proxy_length(copy), h->length);
		if (h->length > 0) {
			rc = proxy_source(copy, h->len, &own, &sa);
			assert_int_equal(rc, h->source && !*h->source ? -EBADMSG : 0);
			if (rc == 0)
				assert_true(own == !h->source);
			if (rc == 0 && h->source) {
				address_text(&sa, text, sizeof text);
				assert_string_equal(text, h->source);
			}
		}
		free(copy);
	}
}

static struct serve *
serve_behind(const char *balancers)
{
	struct serve *s;

	serve_proxy = balancers;
	s = serve_start(16, 60 * NS_PER_S);
	serve_proxy = NULL;
	return s;
}

static void
expect_peer(int fd, const char *want)
{
	struct answer a;
	char *body;

	put_text(fd, GET("/peer"));
	assert_true(get_answer(fd, &a, false, &body));
	assert_int_equal(a.status, 200);
	assert_int_equal(strncmp(body, want, strlen(want)), 0);
	free(body);
}

/* The forwarded address is the client's for every request of the connection. */
static void
test_forwarded(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *peer;
	} good[] = {
		{ SIGNATURE "\x21\x11\0\x0c" FOUR, 28, "192.0.2.9 4660" },
		{ SIGNATURE "\x21\x21\0\x24" SIX, 52, "2001:db8::9 4660" },
		/* To everybody above an IPv4 address is one. */
		{ SIGNATURE "\x21\x21\0\x24" MAPPED, 52, "192.0.2.9 4660" },
		{ SIGNATURE "\x21\x11\0\x11" FOUR "\x04\0\x02\0\0", 33, "192.0.2.9 4660" },
		{ SIGNATURE "\x20\0\0\0", 16, "127.0.0.1 " },
		{ SIGNATURE "\x21\0\0\0", 16, "127.0.0.1 " },
	};
	struct serve *s = serve_behind("127.0.0.0/8");

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		int fd = client(s);

		put_bytes(fd, good[i].bytes, good[i].len);
		expect_peer(fd, good[i].peer);
		expect_peer(fd, good[i].peer);
		close(fd);
		/* Byte by byte, the request right behind. */
		fd = client(s);
		for (size_t k = 0; k < good[i].len; k++) {
			put_bytes(fd, good[i].bytes + k, 1);
			usleep(300);
		}
		expect_peer(fd, good[i].peer);
		close(fd);
	}
	wait_for(s->conns == 0);
	assert_int_equal(s->stats.events[STATS_CLOSED_PROXY], 0);
	serve_stop(s);
}

/* Much that nobody looks at stands between the addresses and HTTP. */
static void
test_long(void **state)
{
	static const char head[] = SIGNATURE "\x21\x11\xff\xff" FOUR;
	static char text[16 + 65535];
	struct serve *s = serve_behind("127.0.0.1");
	int fd = client(s);

	memset(text, 'x', sizeof text);
	memcpy(text, head, sizeof head - 1);
	put_bytes(fd, text, sizeof text);
	expect_peer(fd, "192.0.2.9 4660");
	close(fd);
	serve_stop(s);
}

/* A balancer that sends none is closed without a word: the client's address would be its own. */
static void
test_missing(void **state)
{
	static const char *const texts[] = { GET("/now"),
					     "PROXY TCP4 192.0.2.9 198.51.100.1 4660 443\r\n" GET("/now"),
					     "\r\n\r\n" GET("/now") };
	struct serve *s = serve_behind("127.0.0.1");
	int fd, err;
	char *all;

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		const struct header *h = &headers[i];

		if (h->length > 0 && (!h->source || *h->source))
			continue;
		fd = client(s);
		put_bytes(fd, h->bytes, h->len);
		all = get_all(fd, NULL, &err);
		assert_string_equal(all, "");
		free(all);
		close(fd);
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		fd = client(s);
		put_text(fd, texts[i]);
		all = get_all(fd, NULL, &err);
		assert_string_equal(all, "");
		free(all);
		close(fd);
	}
	assert_int_equal(fake_req_counts.begun, 0);
	wait_for(s->conns == 0);
	assert_true(s->stats.events[STATS_CLOSED_PROXY] > 10);
	/* One that only looks whether somebody is there is no mistake. */
	err = (int)s->stats.events[STATS_CLOSED_PROXY];
	fd = client(s);
	wait_for(s->conns == 1);
	close(fd);
	wait_for(s->conns == 0);
	assert_int_equal(s->stats.events[STATS_CLOSED_PROXY], err);
	serve_stop(s);
}

/* From anybody else it is no header, but bad HTTP; and nobody else needs one. */
static void
test_not_a_balancer(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
		{ SIGNATURE "\x21\x11\0\x0c" FOUR GET("/peer"), 28 + sizeof GET("/peer") - 1 },
		{ SIGNATURE "\x20\0\0\0" GET("/peer"), 16 + sizeof GET("/peer") - 1 },
		{ "PROXY TCP4 192.0.2.9 198.51.100.1 4660 443\r\n" GET("/peer"),
		  44 + sizeof GET("/peer") - 1 },
	};
	struct serve *s = serve_behind("127.0.0.2");
	int fd = client(s), err;
	char *all;

	expect_peer(fd, "127.0.0.1 ");
	close(fd);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		fd = client(s);
		put_bytes(fd, bad[i].text, bad[i].len);
		all = get_all(fd, NULL, &err);
		if (strncmp(all, "HTTP/1.1 400 ", 13) != 0 || strstr(all, "192.0.2.9"))
			fail_msg("case %zu: %s", i, all);
		free(all);
		close(fd);
	}
	assert_int_equal(s->stats.events[STATS_CLOSED_PROXY], 0);
	wait_for(s->conns == 0);
	serve_stop(s);
}

/* limits.head holds for the header, and what waits for one makes room and ends with the server. */
static void
test_waits(void **state)
{
	static const char half[] = SIGNATURE "\x21\x11";
	struct serve *s;
	uint64_t began = clock_ns();
	int fd[24];

	serve_head_ns = 300 * NS_PER_MS;
	s = serve_behind("127.0.0.1");
	for (int i = 0; i < 3; i++) {
		fd[i] = client(s);
		put_bytes(fd[i], half, i ? sizeof half - 1 : 0);
	}
	for (int i = 0; i < 3; i++) {
		expect_end(fd[i]);
		close(fd[i]);
	}
	assert_true(clock_ns() - began >= serve_head_ns);
	assert_int_equal(s->stats.events[STATS_CLOSED_LATE_HEAD], 3);
	serve_stop(s);
	serve_head_ns = 60 * NS_PER_S;
	s = serve_behind("127.0.0.1");
	for (int i = 0; i < 24; i++) {
		fd[i] = client(s);
		put_bytes(fd[i], half, sizeof half - 1);
	}
	wait_for(s->stats.events[STATS_CLOSED_HALF_HEAD] == 8);
	put_bytes(fd[23], "\0\x0c" FOUR, 14);
	expect_peer(fd[23], "192.0.2.9 4660");
	serve_stop(s);
	for (int i = 0; i < 24; i++)
		close(fd[i]);
}

/* The cap and the counts are the client's, not the balancer's. */
static void
test_counts(void **state)
{
	static const char from_nine[] = SIGNATURE "\x21\x11\0\x0c" FOUR;
	static const char from_ten[] =
		SIGNATURE "\x21\x11\0\x0c\xc0\x00\x02\x0a\xc6\x33\x64\x01\x12\x34\x01\xbb";
	struct serve *s;
	int fd[6];

	serve_per_address = 2;
	s = serve_behind("127.0.0.1");
	serve_per_address = 0;
	for (int i = 0; i < 6; i++) {
		fd[i] = client(s);
		put_bytes(fd[i], i % 2 ? from_ten : from_nine, 28);
		if (i < 4)
			expect_peer(fd[i], i % 2 ? "192.0.2.10 " : "192.0.2.9 ");
		else
			expect_end(fd[i]);
	}
	assert_int_equal(s->stats.events[STATS_CLOSED_ADDRESS], 2);
	for (int i = 0; i < 6; i++)
		close(fd[i]);
	wait_for(s->conns == 0);
	serve_stop(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),  cmocka_unit_test(test_forwarded),
		cmocka_unit_test(test_long),   cmocka_unit_test(test_missing),
		cmocka_unit_test(test_waits),  cmocka_unit_test(test_not_a_balancer),
		cmocka_unit_test(test_counts),
	};

	if (getenv("T"))
		cmocka_set_test_filter(getenv("T"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
