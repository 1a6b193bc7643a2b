/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox: order per sender, nothing lost between sleeping and waking, a bounded run; with several
 * senders at once. */
#include "base/check.h"
#include "base/mailbox.h"
#include "tests/fake/wait.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

static bool
rings(const struct mailbox *mb)
{
	struct pollfd p = { .fd = mb->efd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int ran[16], ran_nr;

struct note {
	struct msg msg;
	int id;
	struct mailbox *to; /* posts itself again */
};

static void
on_note(struct msg *m)
{
	struct note *n = (struct note *)m;

	ran[ran_nr++] = n->id;
	if (n->to)
		mailbox_post(n->to, &n->msg, on_note);
}

static void
test_order(void **state)
{
	struct mailbox mb;
	struct note n[3] = { { .id = 1 }, { .id = 2 }, { .id = 3 } };

	assert_int_equal(mailbox_init(&mb), 0);
	assert_int_equal(mailbox_run(&mb, 0), 0);
	for (int i = 0; i < 3; i++)
		mailbox_post(&mb, &n[i].msg, on_note);
	assert_int_equal(mailbox_run(&mb, 2), 2);
	assert_int_equal(mailbox_run(&mb, 0), 1);
	assert_int_equal(mailbox_run(&mb, 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ran[i], i + 1);
	mailbox_fini(&mb);
}

/* Runs what was there, however often it comes back. */
static void
test_self(void **state)
{
	struct mailbox mb;
	struct note again = { .id = 1, .to = &mb }, once = { .id = 2 };

	ran_nr = 0;
	assert_int_equal(mailbox_init(&mb), 0);
	mailbox_post(&mb, &again.msg, on_note);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mailbox_run(&mb, 0), 1);
	mailbox_post(&mb, &once.msg, on_note);
	assert_int_equal(mailbox_run(&mb, 0), 2);
	assert_int_equal(mailbox_run(&mb, 0), 1);
	assert_int_equal(ran_nr, 6);
	again.to = NULL;
	assert_int_equal(mailbox_run(&mb, 0), 1);
	assert_true(mailbox_sleep(&mb));
	mailbox_wake(&mb);
	mailbox_fini(&mb);
}

static void
test_doorbell(void **state)
{
	struct mailbox mb;
	struct note n[2] = { { .id = 1 }, { .id = 2 } };

	ran_nr = 0;
	assert_int_equal(mailbox_init(&mb), 0);
	mailbox_post(&mb, &n[0].msg, on_note);
	assert_false(rings(&mb)); /* awake: no system call */
	assert_false(mailbox_sleep(&mb));
	assert_int_equal(mailbox_run(&mb, 0), 1);
	assert_true(mailbox_sleep(&mb));
	mailbox_post(&mb, &n[0].msg, on_note);
	mailbox_post(&mb, &n[1].msg, on_note);
	assert_true(rings(&mb));
	mailbox_wake(&mb);
	assert_false(rings(&mb));
	assert_int_equal(mailbox_run(&mb, 0), 2);
	mailbox_wake(&mb); /* did not ring: fine */
	mailbox_fini(&mb);
}

/* ---- senders ---- */

#define SENDERS 4
#define EACH 20000
#define NODES 64

struct post {
	struct msg msg;
	int sender;
	uint64_t seq;
	_Atomic bool free;
};

static struct mailbox par_mb;
static uint64_t par_seen[SENDERS];

static void
on_post(struct msg *m)
{
	struct post *p = (struct post *)m;

	check(p->seq == par_seen[p->sender]);
	par_seen[p->sender]++;
	atomic_store_explicit(&p->free, true, memory_order_release);
}

static void *
par_sender(void *arg)
{
	static struct post posts[SENDERS][NODES];
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < NODES; i++)
		atomic_store(&posts[me][i].free, true);
	for (uint64_t i = 0; i < EACH; i++) {
		struct post *p = &posts[me][i % NODES];

		wait_until(atomic_load_explicit(&p->free, memory_order_acquire))
			sched_yield();
		atomic_store_explicit(&p->free, false, memory_order_relaxed);
		p->sender = me;
		p->seq = i;
		mailbox_post(&par_mb, &p->msg, on_post);
	}
	return NULL;
}

static void
test_senders(void **state)
{
	pthread_t th[SENDERS];
	uint64_t got = 0;
	int sleeps = 0;

	assert_int_equal(mailbox_init(&par_mb), 0);
	for (intptr_t i = 0; i < SENDERS; i++)
		pthread_create(&th[i], NULL, par_sender, (void *)i);
	while (got < (uint64_t)SENDERS * EACH) {
		got += (uint64_t)mailbox_run(&par_mb, 0);
		if (got < (uint64_t)SENDERS * EACH && mailbox_sleep(&par_mb)) {
			struct pollfd p = { .fd = par_mb.efd, .events = POLLIN };

			/* A lost doorbell shows as a time-out. */
			assert_int_equal(poll(&p, 1, 20000), 1);
			mailbox_wake(&par_mb);
			sleeps++;
		}
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(th[i], NULL);
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(par_seen[i], EACH);
	assert_int_equal(mailbox_run(&par_mb, 0), 0);
	mailbox_fini(&par_mb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_doorbell),
		cmocka_unit_test(test_senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
