/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox - a bounded queue of records that a separate thread sends, for messages whose receiver may not read:
 * log lines, messages to the service manager. Putting a record never waits for the receiver.
 */
#ifndef GANTRY_BASE_OUTBOX_H
#define GANTRY_BASE_OUTBOX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTBOX_RECORD_MAX 12288 /* largest size of a record, in bytes */

/* Sends one record. Runs on the outbox's thread, and may block. */
typedef void outbox_send_fn(const void *data, size_t len);

struct outbox {
	pthread_mutex_t lock; /* protects all fields below, except thread and send */
	pthread_cond_t work;  /* signalled when a record was put or stop was set */
	pthread_cond_t idle;  /* signalled when the last record was sent */
	pthread_t thread;
	outbox_send_fn *send;
	uint8_t *ring;
	/* sizes in bytes; a record in the ring consists of its length (4 bytes) and its data */
	size_t cap, head, used;
	bool sending, stop, runs;
};

/* Starts the outbox's thread with this name. The caller provides a ring buffer of cap bytes, and keeps it
 * until outbox_stop() has returned true. Returns 0; -errno: no thread could be started. */
int outbox_start(struct outbox *b, const char *name, void *ring, size_t cap, outbox_send_fn *send);

/* Appends a copy of a record of at most OUTBOX_RECORD_MAX bytes, unless fewer than `spare` bytes would then
 * be free. Returns true if the record was appended. Any thread may call this function, which never waits for
 * the receiver. */
bool outbox_put(struct outbox *b, const void *data, size_t len, size_t spare);

/* Returns the number of bytes that wait to be sent; the record that is being sent does not count. Any thread
 * may call this function. */
size_t outbox_waiting(struct outbox *b);

/* Waits for at most max_ns until all records put so far have been sent. Returns true if they have been sent;
 * returns false immediately on the outbox's thread. Any thread may call this function. */
bool outbox_flush(struct outbox *b, uint64_t max_ns);

/* Waits for at most max_ns until all records have been sent, and ends the thread. Returns false if the
 * receiver does not read: the thread is then blocked in send() until the process ends. */
bool outbox_stop(struct outbox *b, uint64_t max_ns);

#endif
