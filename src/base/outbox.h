/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of records that one thread of its own sends, for messages whose receiver may not read: log
 * lines, messages to the service manager.  Putting a record never waits for the receiver.
 */
#ifndef GANTRY_BASE_OUTBOX_H
#define GANTRY_BASE_OUTBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTBOX_RECORD_MAX 12288 /* bytes of a record */

/* Sends one record; runs on the outbox's thread and may block. */
typedef void outbox_send_fn(const void *data, size_t len);

struct outbox {
	pthread_mutex_t lock; /* of all fields below but thread and send */
	pthread_cond_t work;  /* a record has come, or stop was set */
	pthread_cond_t idle;  /* the last record has been sent */
	pthread_t thread;
	outbox_send_fn *send;
	uint8_t *ring;
	size_t cap, head, used; /* bytes; a record is its length, 4 bytes, and its data */
	bool sending, stop, runs;
};

/* Starts the thread, whose name is `name`, over a ring of cap bytes that the caller keeps until outbox_stop() was true.
 * 0, or -errno: there is no thread. */
int outbox_start(struct outbox *b, const char *name, void *ring, size_t cap, outbox_send_fn *send);

/* Appends a copy of a record, of at most OUTBOX_RECORD_MAX bytes, if `spare` bytes stay free after it.  Returns whether
 * there was room.  Any thread; never waits for the receiver. */
bool outbox_put(struct outbox *b, const void *data, size_t len, size_t spare);

/* Returns the bytes that wait, those of the record that is being sent excluded.  Any thread. */
size_t outbox_waiting(struct outbox *b);

/* Waits until everything that was put has been sent, at most max_ns.  Returns whether it has; false at once on the
 * outbox's own thread.  Any thread. */
bool outbox_flush(struct outbox *b, uint64_t max_ns);

/* Flushes as outbox_flush() does, and ends the thread.  False: the receiver does not read; the thread stays in its
 * call until the process ends. */
bool outbox_stop(struct outbox *b, uint64_t max_ns);

#endif
