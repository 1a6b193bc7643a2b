/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of expired objects (x-gantry-ttl). Readers do not see such an object; its usage counts until it is
 * removed.
 *
 * The queue has the names of objects that expire, in the order of their expiry. Every core adds the objects that it
 * writes. The queue has room for TTL_QUEUE_MAX names, and keeps the names that are due first. The remover on core 0
 * deletes the objects that are due, on the condition that each has expired. A walk of the remover over all buckets adds
 * the objects that the queue lacks. A walk begins after the start (unless no object had an expiry), when the queue is
 * nearly empty after it had no room for some names, and a minute after a disk has refused a removal or a walk has
 * failed.
 *
 * The functions on the queue are for any thread.
 */
#ifndef GANTRY_WALK_TTL_H
#define GANTRY_WALK_TTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ttl_queue;
struct stats_core;

#define TTL_QUEUE_MAX 65536u               /* names of a daemon's queue */
#define TTL_QUEUE_BYTES ((size_t)16 << 20) /* their memory */

/* A name in the queue, in memory that its owner frees. */
struct ttl_name {
	uint64_t due_ns; /* expiry of the object, or the time of another try; by age_clock_ns() */
	uint16_t bucket_len, key_len;
	char names[]; /* bucket, key */
};

/* Makes a queue with room for names_max names and bytes_max bytes. has_all: no object has an expiry yet, so the start
 * needs no walk. Returns 0 or -ENOMEM. */
int ttl_queue_new(uint32_t names_max, size_t bytes_max, bool has_all, struct ttl_queue **ret_queue);
void ttl_queue_free(struct ttl_queue *q);
/* Adds an object that is due at due_ns. If there is no room or no memory for the name, a later walk adds it. q may be
 * NULL. */
void ttl_queue_note(struct ttl_queue *q, const char *bucket, size_t bucket_len, const char *key,
		    size_t key_len, uint64_t due_ns);
/* Removes the name that is due first from the queue, and returns it; the caller frees it. NULL: no name is due at
 * now_ns. */
struct ttl_name *ttl_queue_take(struct ttl_queue *q, uint64_t now_ns);
/* Returns true if a walk is needed: because of a start, a failure, a lack of memory or another share of the keys the queue
 * may lack names; or the queue had no room for some names, and is nearly empty now. */
bool ttl_queue_wants_walk(struct ttl_queue *q);
/* Notes that a walk begins: from now on the queue accepts names with any expiry again. */
void ttl_queue_walks(struct ttl_queue *q);
/* Notes that another walk is needed: a walk has failed, a disk has refused a removal, or this process has another share of
 * the keys. */
void ttl_queue_missed(struct ttl_queue *q);

/* Counts the removal of an expired object, and writes its event. stats: of the calling thread. */
void ttl_removed(struct stats_core *stats, const char *bucket, size_t bucket_len, const char *key,
		 size_t key_len);

/* Time from the expiry of an object to its removal from a store that several processes use: the clocks of their hosts
 * differ by less. */
#define TTL_GRACE_NS (60 * NS_PER_S)

#endif
