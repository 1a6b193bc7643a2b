/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of objects that expire, see ttl.h: a heap, whose root is due first. A full queue drops the half of its names
 * that is due last. Until the next walk begins, the queue then has no room for names that are due as late as these.
 */
#include "walk/ttl.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DRY_PART 4 /* a queue with fewer than 1/DRY_PART of its names is nearly empty */

struct ttl_queue {
	pthread_mutex_t lock;
	uint32_t nr, max;
	size_t bytes, bytes_max;
	/* There is no room for names that are due at this time or later; UINT64_MAX: there is room. */
	uint64_t horizon_ns;
	bool is_incomplete; /* true: the queue may lack names for another reason than the horizon */
	struct ttl_name **heap;
};

int
ttl_queue_new(uint32_t names_max, size_t bytes_max, bool has_all, struct ttl_queue **ret_queue)
{
	struct ttl_queue *q = calloc(1, sizeof *q);

	check(names_max > 1);
	if (q)
		q->heap = calloc(names_max, sizeof(struct ttl_name *));
	if (!q || !q->heap) {
		free(q);
		return -ENOMEM;
	}
	pthread_mutex_init(&q->lock, NULL);
	q->max = names_max;
	q->bytes_max = bytes_max;
	q->horizon_ns = UINT64_MAX;
	q->is_incomplete = !has_all;
	*ret_queue = q;
	return 0;
}

void
ttl_queue_free(struct ttl_queue *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < q->nr; i++)
		free(q->heap[i]);
	free(q->heap);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static size_t
bytes_of(const struct ttl_name *n)
{
	return sizeof *n + n->bucket_len + n->key_len;
}

/* ---- heap; the lock is held ---- */

static void
swap(struct ttl_queue *q, uint32_t a, uint32_t b)
{
	struct ttl_name *n = q->heap[a];

	q->heap[a] = q->heap[b];
	q->heap[b] = n;
}

static void
push(struct ttl_queue *q, struct ttl_name *n)
{
	uint32_t i = q->nr++;

	q->bytes += bytes_of(n);
	q->heap[i] = n;
	for (; i && q->heap[(i - 1) / 2]->due_ns > q->heap[i]->due_ns; i = (i - 1) / 2)
		swap(q, i, (i - 1) / 2);
}

static struct ttl_name *
pop(struct ttl_queue *q)
{
	struct ttl_name *n = q->heap[0];

	q->bytes -= bytes_of(n);
	q->heap[0] = q->heap[--q->nr];
	for (uint32_t i = 0, child; (child = 2 * i + 1) < q->nr; i = child) {
		if (child + 1 < q->nr && q->heap[child + 1]->due_ns < q->heap[child]->due_ns)
			child++;
		if (q->heap[i]->due_ns <= q->heap[child]->due_ns)
			break;
		swap(q, i, child);
	}
	return n;
}

static int
order(const void *a, const void *b)
{
	const struct ttl_name *x = *(const struct ttl_name *const *)a,
			      *y = *(const struct ttl_name *const *)b;

	if (x->due_ns != y->due_ns)
		return x->due_ns < y->due_ns ? -1 : 1;
	if (bytes_of(x) != bytes_of(y))
		return bytes_of(x) < bytes_of(y) ? -1 : 1;
	return memcmp(x->names, y->names, bytes_of(x) - sizeof *x);
}

/* Drops repeated names, and, if the queue is still more than half full, the half that is due last. A sorted array is a
 * heap. */
static void
make_room(struct ttl_queue *q)
{
	uint32_t kept = 0, half;

	qsort(q->heap, q->nr, sizeof(struct ttl_name *), order);
	q->bytes = 0;
	for (uint32_t i = 0; i < q->nr; i++) {
		if (kept && order(&q->heap[kept - 1], &q->heap[i]) == 0) {
			free(q->heap[i]);
			continue;
		}
		q->heap[kept++] = q->heap[i];
		q->bytes += bytes_of(q->heap[kept - 1]);
	}
	q->nr = kept;
	if (q->nr <= q->max / 2 && q->bytes <= q->bytes_max / 2)
		return;
	half = q->nr / 2;
	q->horizon_ns = q->heap[half]->due_ns;
	while (q->nr > half) {
		q->bytes -= bytes_of(q->heap[--q->nr]);
		free(q->heap[q->nr]);
	}
}

/* ---- any thread ---- */

void
ttl_queue_note(struct ttl_queue *q, const char *bucket, size_t bucket_len, const char *key, size_t key_len,
	       uint64_t due_ns)
{
	struct ttl_name *n = q ? malloc(sizeof *n + bucket_len + key_len) : NULL;

	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	if (n && due_ns < q->horizon_ns) {
		*n = (struct ttl_name){ .due_ns = due_ns,
					.bucket_len = (uint16_t)bucket_len,
					.key_len = (uint16_t)key_len };
		memcpy(n->names, bucket, bucket_len);
		memcpy(n->names + bucket_len, key, key_len);
		push(q, n);
		n = NULL;
		if (q->nr == q->max || q->bytes > q->bytes_max)
			make_room(q);
	} else {
		q->is_incomplete |= !n;
	}
	pthread_mutex_unlock(&q->lock);
	free(n);
}

struct ttl_name *
ttl_queue_take(struct ttl_queue *q, uint64_t now_ns)
{
	struct ttl_name *n = NULL;

	pthread_mutex_lock(&q->lock);
	if (q->nr && q->heap[0]->due_ns <= now_ns)
		n = pop(q);
	pthread_mutex_unlock(&q->lock);
	return n;
}

bool
ttl_queue_wants_walk(struct ttl_queue *q)
{
	bool wants;

	pthread_mutex_lock(&q->lock);
	wants = q->is_incomplete || (q->horizon_ns != UINT64_MAX && q->nr < q->max / DRY_PART);
	pthread_mutex_unlock(&q->lock);
	return wants;
}

void
ttl_queue_walks(struct ttl_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->horizon_ns = UINT64_MAX;
	q->is_incomplete = false;
	pthread_mutex_unlock(&q->lock);
}

void
ttl_queue_missed(struct ttl_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_incomplete = true;
	pthread_mutex_unlock(&q->lock);
}
