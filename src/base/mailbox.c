/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue is Dmitry Vyukov's intrusive multi-producer single-consumer queue: a push is one exchange and one
 * store. Between the two the chain is broken for an instant; the receiver then sees "not yet" and must not
 * sleep.
 */
#include "base/mailbox.h"

#include "base/check.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int
mailbox_init(struct mailbox *mb)
{
	mb->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mb->efd < 0)
		return -errno;
	atomic_init(&mb->anchor.next, NULL);
	mb->anchor.fn = NULL;
	mb->head = &mb->anchor;
	atomic_init(&mb->tail, &mb->anchor);
	atomic_init(&mb->asleep, false);
	return 0;
}

void
mailbox_fini(struct mailbox *mb)
{
	if (mb->efd >= 0)
		close(mb->efd);
	mb->efd = -1;
}

static void
push(struct mailbox *mb, struct msg *m)
{
	struct msg *prev;

	atomic_store_explicit(&m->next, NULL, memory_order_relaxed);
	/* seq_cst: must be ordered against the load of `asleep` below, as mailbox_sleep() orders the other
	 * way round. */
	prev = atomic_exchange(&mb->tail, m);
	atomic_store_explicit(&prev->next, m, memory_order_release);
}

void
mailbox_post(struct mailbox *mb, struct msg *m, void (*fn)(struct msg *))
{
	m->fn = fn;
	push(mb, m);
	if (atomic_load(&mb->asleep) && atomic_exchange(&mb->asleep, false)) {
		uint64_t one = 1;
		ssize_t n = write(mb->efd, &one, sizeof one);

		/* EAGAIN: the counter is at its maximum, so the receiver wakes anyway. */
		check(n == sizeof one || (n < 0 && errno == EAGAIN));
	}
}

/* The next message, or NULL for none (or not yet linked). */
static struct msg *
pop(struct mailbox *mb)
{
	struct msg *head = mb->head;
	struct msg *next = atomic_load_explicit(&head->next, memory_order_acquire);

	if (head == &mb->anchor) {
		if (!next)
			return NULL;
		mb->head = head = next;
		next = atomic_load_explicit(&head->next, memory_order_acquire);
	}
	if (next) {
		mb->head = next;
		return head;
	}
	if (atomic_load_explicit(&mb->tail, memory_order_acquire) != head)
		return NULL; /* somebody is between exchange and store */
	push(mb, &mb->anchor);
	next = atomic_load_explicit(&head->next, memory_order_acquire);
	if (!next)
		return NULL;
	mb->head = next;
	return head;
}

int
mailbox_run(struct mailbox *mb, int max)
{
	/* Bounded by what was there at the start: a message that posts another to itself must not pin the
	 * loop.  The anchor as the last one stands for whatever lies before it, which may be nothing. */
	struct msg *last = atomic_load_explicit(&mb->tail, memory_order_acquire);
	bool stop = false;
	int n = 0;

	while (!stop && (!max || n < max)) {
		struct msg *m;

		if (last == &mb->anchor && mb->head == &mb->anchor)
			break;
		m = pop(mb);
		if (!m)
			break;
		stop = m == last;
		m->fn(m);
		n++;
	}
	return n;
}

static bool
empty(struct mailbox *mb)
{
	return mb->head == &mb->anchor && atomic_load(&mb->tail) == &mb->anchor;
}

bool
mailbox_sleep(struct mailbox *mb)
{
	atomic_store(&mb->asleep, true);
	if (empty(mb))
		return true;
	atomic_store(&mb->asleep, false);
	return false;
}

void
mailbox_wake(struct mailbox *mb)
{
	uint64_t junk;

	atomic_store(&mb->asleep, false);
	if (read(mb->efd, &junk, sizeof junk) < 0)
		check(errno == EAGAIN);
}
