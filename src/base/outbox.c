/* SPDX-License-Identifier: Apache-2.0 */
/* The ring and the thread of an outbox.  The lock is held for copies of a record, never for a send. */
#include "base/outbox.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Copies between the ring, from offset `at` on, and flat memory. */
static void
ring_write(struct outbox *b, size_t at, const void *data, size_t len)
{
	size_t first = at + len > b->cap ? b->cap - at : len;

	memcpy(b->ring + at, data, first);
	memcpy(b->ring, (const uint8_t *)data + first, len - first);
}

static void
ring_read(const struct outbox *b, size_t at, void *data, size_t len)
{
	size_t first = at + len > b->cap ? b->cap - at : len;

	memcpy(data, b->ring + at, first);
	memcpy((uint8_t *)data + first, b->ring, len - first);
}

/* Takes the oldest record out of the ring; called with the lock held and used > 0. */
static size_t
take(struct outbox *b, uint8_t *record)
{
	uint32_t len;

	ring_read(b, b->head, &len, sizeof len);
	ring_read(b, (b->head + sizeof len) % b->cap, record, len);
	b->head = (b->head + sizeof len + len) % b->cap;
	b->used -= sizeof len + len;
	return len;
}

static void *
outbox_main(void *arg)
{
	struct outbox *b = arg;
	uint8_t record[OUTBOX_RECORD_MAX];

	pthread_mutex_lock(&b->lock);
	for (;;) {
		size_t len;

		while (!b->used && !b->stop)
			pthread_cond_wait(&b->work, &b->lock);
		if (!b->used)
			break;
		len = take(b, record);
		b->sending = true;
		pthread_mutex_unlock(&b->lock);
		b->send(record, len);
		pthread_mutex_lock(&b->lock);
		b->sending = false;
		if (!b->used)
			pthread_cond_broadcast(&b->idle);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

int
outbox_start(struct outbox *b, const char *name, void *ring, size_t cap, outbox_send_fn *send)
{
	pthread_condattr_t attr;
	int r;

	*b = (struct outbox){ .send = send, .ring = ring, .cap = cap, .runs = true };
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->idle, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&b->thread, NULL, outbox_main, b);
	if (r != 0) {
		b->runs = false;
		return -r;
	}
	pthread_setname_np(b->thread, name);
	return 0;
}

bool
outbox_put(struct outbox *b, const void *data, size_t len, size_t spare)
{
	uint32_t head = (uint32_t)len;
	bool fits;

	check(len <= OUTBOX_RECORD_MAX);
	pthread_mutex_lock(&b->lock);
	fits = b->used + sizeof head + len + spare <= b->cap;
	if (fits) {
		size_t at = (b->head + b->used) % b->cap;

		ring_write(b, at, &head, sizeof head);
		ring_write(b, (at + sizeof head) % b->cap, data, len);
		b->used += sizeof head + len;
		if (!b->sending)
			pthread_cond_signal(&b->work);
	}
	pthread_mutex_unlock(&b->lock);
	return fits;
}

size_t
outbox_waiting(struct outbox *b)
{
	size_t used;

	pthread_mutex_lock(&b->lock);
	used = b->used;
	pthread_mutex_unlock(&b->lock);
	return used;
}

bool
outbox_flush(struct outbox *b, uint64_t max_ns)
{
	struct timespec until;
	bool sent;
	int r = 0;

	if (!b->runs || pthread_equal(pthread_self(), b->thread))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &until);
	max_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(max_ns / NS_PER_S);
	until.tv_nsec = (long)(max_ns % NS_PER_S);
	pthread_mutex_lock(&b->lock);
	while ((b->used || b->sending) && r == 0)
		r = pthread_cond_timedwait(&b->idle, &b->lock, &until);
	sent = !b->used && !b->sending;
	pthread_mutex_unlock(&b->lock);
	return sent;
}

bool
outbox_stop(struct outbox *b, uint64_t max_ns)
{
	bool sent = outbox_flush(b, max_ns);

	if (!sent)
		return false;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	/* A record that another thread put since is sent before the end, and its receiver has just read. */
	pthread_join(b->thread, NULL);
	b->runs = false;
	return true;
}
