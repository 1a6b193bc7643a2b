/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures seen before: same address or not, expiry, a full table, several threads. */
#include "auth/auth.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

static struct sockaddr_in
peer(uint8_t last, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x0a000000u | last) };
}

static bool
fresh(struct auth_replay *t, uint64_t n, uint8_t from, uint64_t now, uint64_t until)
{
	struct sockaddr_in sa = peer(from, (uint16_t)(1000 + from));
	uint8_t signature[32] = { 0 };

	memcpy(signature, &n, 8);
	memcpy(signature + 16, &n, 8);
	return auth_replay_fresh(t, signature, (struct sockaddr *)&sa, now, until);
}

static void
addresses(void **state)
{
	struct auth_replay *t;
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	uint8_t signature[32] = { 7, [16] = 7 };

	assert_int_equal(auth_replay_new(64, &t), 0);
	assert_true(fresh(t, 7, 1, 100, 200));
	assert_true(fresh(t, 7, 1, 150, 200)); /* SigV4 repeats itself within a second */
	assert_false(fresh(t, 7, 2, 150, 200));
	assert_true(fresh(t, 8, 2, 150, 200));
	/* The same address, as a dual listener sees it. */
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	mapped.sin6_addr.s6_addr[12] = 10;
	mapped.sin6_addr.s6_addr[15] = 1;
	assert_true(auth_replay_fresh(t, signature, (struct sockaddr *)&mapped, 150, 200));
	mapped.sin6_addr.s6_addr[15] = 2;
	assert_false(auth_replay_fresh(t, signature, (struct sockaddr *)&mapped, 150, 200));
	/* Over: the signature itself does not hold any more then. */
	assert_true(fresh(t, 7, 2, 201, 300));
	auth_replay_free(t);
	auth_replay_free(NULL);
}

static void
full(void **state)
{
	struct auth_replay *t;

	assert_int_equal(auth_replay_new(8, &t), 0);
	for (uint64_t i = 1; i <= 8; i++)
		assert_true(fresh(t, i, 1, 100, 200 + i));
	/* The ninth takes the place of the one that ends first. */
	assert_true(fresh(t, 9, 1, 100, 300));
	for (uint64_t i = 2; i <= 9; i++)
		assert_false(fresh(t, i, 2, 100, 200 + i));
	assert_true(fresh(t, 1, 2, 100, 400));
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
		w->won += fresh(w->t, i * 0x9e3779b97f4a7c15ull, w->from, 100, 200);
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

	assert_int_equal(auth_replay_new(PER_THREAD * 8, &t), 0);
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
		cmocka_unit_test(addresses),
		cmocka_unit_test(full),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
