/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiescent states; see quiesce.h.
 *
 * A counter, and per user the value of the counter at which it was quiescent last.  An epoch is the counter
 * after adding one.
 *
 *	writer						user
 *	root = new  (release)				quiesce_point:  e = counter (acquire)
 *	epoch = ++counter  (seq_cst)					seen = e    (release)
 *	all seen >= epoch?  (acquire)			read root ...
 *
 * seen >= epoch: the user read the counter after the writer raised it, so whatever it looks up from then on
 * it looks up in the new root; and what it did before lies before the writer's look at `seen`.  Waking is the
 * one place that needs the total order of seq_cst: either the writer sees the user awake, or the user sees
 * the counter raised.  (No fences: ThreadSanitizer does not know them.)
 */
#include "extent/index/quiesce.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ASLEEP UINT64_MAX /* also: a slot without a user */
#define WAKING 0

struct quiesce_user {
	_Alignas(64) _Atomic uint64_t seen;
	struct quiesce *q;
	bool joined; /* under q->lock */
};

struct quiesce {
	_Alignas(64) _Atomic uint64_t counter;
	_Alignas(64) _Atomic uint64_t floor; /* epochs up to here are known to have passed */
	_Atomic int hi;                      /* slots from here on were never used */
	pthread_mutex_t lock;                /* joining and leaving */
	int max;
	struct quiesce_user user[];
};

int
quiesce_new(int users_max, struct quiesce **ret_q)
{
	size_t bytes = sizeof(struct quiesce) + (size_t)users_max * sizeof(struct quiesce_user);
	struct quiesce *q = aligned_alloc(64, bytes);

	if (!q)
		return -ENOMEM;
	atomic_init(&q->counter, 1);
	atomic_init(&q->floor, 0);
	atomic_init(&q->hi, 0);
	pthread_mutex_init(&q->lock, NULL);
	q->max = users_max;
	for (int i = 0; i < users_max; i++) {
		atomic_init(&q->user[i].seen, ASLEEP);
		q->user[i].q = q;
		q->user[i].joined = false;
	}
	*ret_q = q;
	return 0;
}

void
quiesce_free(struct quiesce *q)
{
	if (!q)
		return;
	for (int i = 0; i < q->max; i++)
		check(!q->user[i].joined);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

struct quiesce_user *
quiesce_join(struct quiesce *q)
{
	struct quiesce_user *u = NULL;

	pthread_mutex_lock(&q->lock);
	for (int i = 0; i < q->max && !u; i++) {
		if (q->user[i].joined)
			continue;
		u = &q->user[i];
		u->joined = true;
		if (i >= atomic_load(&q->hi))
			atomic_store(&q->hi, i + 1);
	}
	pthread_mutex_unlock(&q->lock);
	if (u)
		quiesce_wake(u);
	return u;
}

void
quiesce_leave(struct quiesce_user *u)
{
	struct quiesce *q = u->q;

	quiesce_sleep(u);
	pthread_mutex_lock(&q->lock);
	check(u->joined);
	u->joined = false;
	pthread_mutex_unlock(&q->lock);
}

void
quiesce_point(struct quiesce_user *u)
{
	uint64_t e = atomic_load_explicit(&u->q->counter, memory_order_acquire);

	if (atomic_load_explicit(&u->seen, memory_order_relaxed) != e)
		atomic_store_explicit(&u->seen, e, memory_order_release);
}

void
quiesce_sleep(struct quiesce_user *u)
{
	atomic_store_explicit(&u->seen, ASLEEP, memory_order_release);
}

void
quiesce_wake(struct quiesce_user *u)
{
	atomic_exchange(&u->seen, WAKING);
	atomic_store_explicit(&u->seen, atomic_load(&u->q->counter), memory_order_release);
}

uint64_t
quiesce_now(struct quiesce *q)
{
	return atomic_fetch_add(&q->counter, 1) + 1;
}

bool
quiesce_passed(struct quiesce *q, uint64_t epoch)
{
	uint64_t known = atomic_load_explicit(&q->floor, memory_order_acquire);
	uint64_t floor;

	if (epoch <= known)
		return true;
	/* In this order: a user that looks asleep will see a counter at least this large when it wakes. */
	floor = atomic_load(&q->counter);
	for (int i = 0; i < atomic_load(&q->hi); i++) {
		uint64_t seen = atomic_load(&q->user[i].seen);

		floor = seen < floor ? seen : floor;
	}
	while (known < floor && !atomic_compare_exchange_weak(&q->floor, &known, floor))
		;
	return epoch <= floor;
}
