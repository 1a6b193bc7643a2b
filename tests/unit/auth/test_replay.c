/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures seen before, claims TM3, TM4: same address or not, expiry, a full table, several threads,
 * what is counted. */
#include "auth/auth.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct sockaddr_in
peer(uint8_t last, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x0a000000u | last) };
}

static bool
fresh_of(struct auth_replay *t, const char *access_key, uint64_t n, uint8_t from, uint64_t now,
	 uint64_t until)
{
	struct sockaddr_in sa = peer(from, (uint16_t)(1000 + from));
	uint8_t signature[32] = { 0 };

	memcpy(signature, &n, 8);
	memcpy(signature + 16, &n, 8);
	return auth_replay_fresh(t, access_key, signature, (struct sockaddr *)&sa, false, now, until);
}

static bool
fresh(struct auth_replay *t, uint64_t n, uint8_t from, uint64_t now, uint64_t until)
{
	return fresh_of(t, "AK", n, from, now, until);
}

static void
addresses(void **state)
{
	struct auth_replay *t;
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	uint8_t signature[32] = { 7, [16] = 7 };

	assert_int_equal(auth_replay_new(1 << 16, &t), 0);
	assert_true(fresh(t, 7, 1, 100, 200));
	assert_true(fresh(t, 7, 1, 150, 200)); /* SigV4 repeats itself within a second */
	assert_false(fresh(t, 7, 2, 150, 200));
	assert_true(fresh(t, 8, 2, 150, 200));
	/* The same address, as a dual listener sees it. */
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	mapped.sin6_addr.s6_addr[12] = 10;
	mapped.sin6_addr.s6_addr[15] = 1;
	assert_true(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&mapped, false, 150, 200));
	mapped.sin6_addr.s6_addr[15] = 2;
	assert_false(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&mapped, false, 150, 200));
	/* Over: the signature itself does not hold any more then. */
	assert_true(fresh(t, 7, 2, 201, 300));
	auth_replay_free(t);
	auth_replay_free(NULL);
}

/* A host has all addresses of its IPv6 network: the other half is no other peer. */
static void
networks(void **state)
{
	struct auth_replay *t;
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
	uint8_t signature[32] = { 9, [16] = 9 };

	assert_int_equal(auth_replay_new(1 << 16, &t), 0);
	sa.sin6_addr.s6_addr[0] = 0xfd;
	sa.sin6_addr.s6_addr[7] = 1;
	sa.sin6_addr.s6_addr[15] = 1;
	assert_true(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, false, 100, 200));
	sa.sin6_addr.s6_addr[8] = 7;
	assert_true(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, false, 100, 200));
	sa.sin6_addr.s6_addr[7] = 2;
	assert_false(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, false, 100, 200));
	auth_replay_free(t);
}

static void
once(void **state)
{
	struct auth_replay *t;
	struct sockaddr_in sa = peer(1, 1000);
	uint8_t signature[32] = { 9, [16] = 9 };

	assert_int_equal(auth_replay_new(1 << 16, &t), 0);
	assert_true(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, true, 100, 200));
	assert_false(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, true, 200, 200));
	assert_true(auth_replay_fresh(t, "AK", signature, (struct sockaddr *)&sa, true, 201, 300));
	auth_replay_free(t);
}

#define SPREAD 0x9e3779b97f4a7c15ull
#define SET 25 /* signatures that give way to each other */

static void
full(void **state)
{
	struct auth_replay_info info;
	struct auth_replay *t;

	assert_int_equal(auth_replay_new(1, &t), 0);
	auth_replay_get_info(t, &info);
	assert_int_equal(info.entries, SET);
	/* Those that end first came last: who claims a long time keeps no place for it. */
	for (uint64_t i = 1; i <= SET; i++)
		assert_true(fresh(t, i, 1, 100, 300 - i));
	assert_true(fresh(t, SET + 1, 1, 100, 200));
	for (uint64_t i = 2; i <= SET + 1; i++)
		assert_false(fresh(t, i, 2, 100, 200));
	auth_replay_get_info(t, &info);
	assert_int_equal(info.forgotten, 1);
	assert_true(fresh(t, 1, 2, 100, 400));
	/* What is over gives way without being missed. */
	assert_true(fresh(t, 50, 1, 350, 400));
	auth_replay_get_info(t, &info);
	assert_int_equal(info.forgotten, 2);
	assert_false(fresh(t, 1, 1, 350, 400));
	auth_replay_free(t);
}

/* Half full it keeps all but a few: what the daemon says that it can remember. */
static void
half_full(void **state)
{
	struct auth_replay_info info;
	struct auth_replay *t;

	assert_int_equal(auth_replay_new(1 << 20, &t), 0);
	auth_replay_get_info(t, &info);
	assert_in_range(info.entries, (1 << 20) / 21, (1 << 20) / 20);
	for (uint64_t i = 1; i <= AUTH_REPLAY_USABLE(info.entries); i++)
		assert_true(fresh(t, i * SPREAD, 1, 100, 200));
	auth_replay_get_info(t, &info);
	assert_in_range(info.forgotten, 0, info.entries / 1000);
	auth_replay_free(t);
}

/* However much others send, with whatever signatures, a key that has no more than its even share loses nothing: here all
 * go into one set. */
static void
shares(void **state)
{
	for (int others = 1; others < SET; others++) {
		int share = SET / (others + 1);
		struct auth_replay *t;
		char name[16];

		assert_int_equal(auth_replay_new(1, &t), 0);
		for (uint64_t i = 0; i < 10000; i++) {
			snprintf(name, sizeof name, "AK%d", (int)(i % (uint64_t)others));
			assert_true(fresh_of(t, name, SPREAD * (i + 1), 1, 100, UINT32_MAX));
			/* In the midst of it, and not all at once. */
			if (i >= 1000 && i < 1000 + 7 * (uint64_t)share && i % 7 == 0)
				assert_true(fresh_of(t, "victim", i, 2, 100, 200));
		}
		for (uint64_t i = 1000; i < 1000 + 7 * (uint64_t)share; i++) {
			if (i % 7 == 0)
				assert_false(fresh_of(t, "victim", i, 3, 100, 200));
		}
		auth_replay_free(t);
	}
}

/* One that has more than its share loses its own oldest. */
static void
own_first(void **state)
{
	struct auth_replay *t;

	assert_int_equal(auth_replay_new(1, &t), 0);
	for (uint64_t i = 1; i <= 12; i++)
		assert_true(fresh_of(t, "victim", i, 1, 100, 200));
	for (uint64_t i = 101; i <= 200; i++)
		assert_true(fresh_of(t, "other", i, 1, 100, 200));
	for (uint64_t i = 188; i <= 200; i++)
		assert_false(fresh_of(t, "other", i, 2, 100, 200));
	for (uint64_t i = 1; i <= 12; i++)
		assert_false(fresh_of(t, "victim", i, 2, 100, 200));
	assert_true(fresh_of(t, "victim", 13, 1, 100, 200));
	for (uint64_t i = 2; i <= 13; i++)
		assert_false(fresh_of(t, "victim", i, 2, 100, 200));
	assert_true(fresh_of(t, "victim", 1, 2, 100, 200));
	auth_replay_free(t);
}

/* Over many sets: a quarter of the table is what an access key keeps while another one sends without end. */
static void
share_of_all(void **state)
{
	struct auth_replay_info info;
	struct auth_replay *t;
	uint64_t nr, lost = 0;

	assert_int_equal(auth_replay_new(1 << 20, &t), 0);
	auth_replay_get_info(t, &info);
	nr = AUTH_REPLAY_USABLE(info.entries) / 2;
	for (uint64_t i = 1; i <= 10 * info.entries; i++) {
		assert_true(fresh_of(t, "other", i * SPREAD, 1, 100, 200));
		if (i <= nr)
			assert_true(fresh_of(t, "victim", ~i * SPREAD, 1, 100, 200));
	}
	for (uint64_t i = 1; i <= nr; i++)
		lost += fresh_of(t, "victim", ~i * SPREAD, 2, 100, 200);
	assert_in_range(lost, 0, nr / 100);
	auth_replay_free(t);
}

static void
refusals(void **state)
{
	struct auth_replay_info info;
	struct auth_replay *t;
	struct sockaddr_in sa = peer(1, 1000);
	char name[16];

	log_set_level((enum log_level) - 1);
	assert_int_equal(auth_replay_new(1, &t), 0);
	for (int i = 0; i < 2 * AUTH_REPLAY_KEYS; i++) {
		snprintf(name, sizeof name, "AK%d", i);
		auth_replay_refused(t, name, (struct sockaddr *)&sa);
		auth_replay_refused(t, "AK0", (struct sockaddr *)&sa);
	}
	auth_replay_get_info(t, &info);
	assert_int_equal(info.refused, 4 * AUTH_REPLAY_KEYS);
	assert_int_equal(info.key_nr, AUTH_REPLAY_KEYS);
	assert_string_equal(info.by_key[0].access_key, "AK0");
	assert_int_equal(info.by_key[0].refused, 2 * AUTH_REPLAY_KEYS + 1);
	assert_string_equal(info.by_key[7].access_key, "AK7");
	assert_int_equal(info.by_key[7].refused, 1);
	auth_replay_free(t);
}

#define PER_THREAD 20000

struct worker {
	struct auth_replay *t;
	uint8_t from;
	int won;
};

static void *
work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < PER_THREAD; i++)
		w->won += fresh(w->t, i * SPREAD, w->from, 100, 200);
	return NULL;
}

/* Each signature is one thread's, whoever came first. */
static void
threads(void **state)
{
	struct worker w[4];
	pthread_t id[4];
	struct auth_replay *t;
	int won = 0;

	assert_int_equal(auth_replay_new(PER_THREAD * 8 * 17, &t), 0);
	for (int i = 0; i < 4; i++) {
		w[i] = (struct worker){ t, (uint8_t)(i + 1), 0 };
		assert_int_equal(pthread_create(&id[i], NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(id[i], NULL);
		won += w[i].won;
	}
	assert_int_equal(won, PER_THREAD);
	auth_replay_free(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),    cmocka_unit_test(networks),  cmocka_unit_test(once),
		cmocka_unit_test(full),         cmocka_unit_test(half_full), cmocka_unit_test(refusals),
		cmocka_unit_test(threads),      cmocka_unit_test(shares),    cmocka_unit_test(own_first),
		cmocka_unit_test(share_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
