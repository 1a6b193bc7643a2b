/* SPDX-License-Identifier: Apache-2.0 */
/* An idle store says every five seconds that it is there, by its helper thread alone, and not by a flush. */
#include "extent/disk/host.h"
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* The helper's clock stands still but for what it waits for, of which it gets as much as it is given. */
static uint64_t fake_ns = 1000 * NS_PER_S;
static _Atomic uint64_t given_ns;
static _Atomic uint64_t rests; /* how often it has looked whether it was given some */

static uint64_t
real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t until_ns = (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec, now = real_ns();
	/* What it took to get here is not counted. */
	uint64_t left = until_ns > now ? until_ns - now : 1;

	for (;;) {
		uint64_t given = atomic_load(&given_ns), slice = real_ns() + 5 * NS_PER_MS;
		uint64_t n = given < left ? given : left;
		struct timespec t = { .tv_sec = (time_t)(slice / NS_PER_S),
				      .tv_nsec = (long)(slice % NS_PER_S) };

		atomic_fetch_add(&rests, 1);

		atomic_fetch_sub(&given_ns, n);
		fake_ns += n;
		left -= n;
		if (!left)
			return ETIMEDOUT;
		if (pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t) == 0)
			return 0;
	}
}

static struct host_block
block_read(void)
{
	uint8_t buf[HOST_BYTES] = { 0 };
	struct host_block b;
	char path[256];
	int fd;

	snprintf(path, sizeof path, "%s/host", dir);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, buf, sizeof buf) == sizeof buf);
	close(fd);
	assert_int_equal(host_decode(buf, sizeof buf, &b), 0);
	return b;
}

static void
test_beats(void **state)
{
	struct host_block first, b;
	uint64_t flushes, n;

	assert_int_equal(make_store(96 * MIB), 0);
	close_store();
	clock_fake(&fake_ns);
	open_store();
	/* The start left it something to do. */
	n = atomic_load(&rests) + 2;
	wait_until(atomic_load(&rests) >= n)
		usleep(1000);
	flushes = disk_info().flushes;
	first = block_read();
	for (int i = 1; i <= 4; i++) {
		/* None before it is time: of the five seconds most are over. */
		atomic_store(&given_ns, HOST_BEAT_NS - NS_PER_S);
		wait_until(!atomic_load(&given_ns))
			usleep(1000);
		b = block_read();
		assert_int_equal(b.beat, first.beat + (uint64_t)i - 1);
		atomic_store(&given_ns, NS_PER_S + NS_PER_MS);
		wait_until((b = block_read()).beat >= first.beat + (uint64_t)i)
			usleep(10000);
		assert_int_equal(b.beat, first.beat + (uint64_t)i);
		assert_false(b.closed);
	}
	assert_int_equal(disk_info().flushes, flushes);
	close_store();
	clock_fake(NULL);
	assert_true(block_read().closed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_beats, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_beat", tests, NULL, NULL);
}
