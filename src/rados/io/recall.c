/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cached records of objects, so that a PUT needs no look-up, and a GET can read data in parallel with its
 * look-up.
 *
 * A look-up costs an OSD nearly half as much as a change, and waits there for earlier changes. A look-up is
 * not needed for safety, because the operation compares the generation and the whole record. So a PUT is
 * decided on the record that this gateway set last; or, after several look-ups of the bucket that found no
 * object, on the assumption that the key has none.
 *
 * A wrong assumption costs three round trips; after one, no cached record of that bucket is used for a while.
 * If a load balancer sends all requests for a key to the same gateway, wrong assumptions are rare.
 *
 * GETs (ahead.c) need only the data objects that a record names, which are cached for more keys, also after
 * look-ups of GETs. A wrong one costs a read.
 */

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "rados/io/recall.h"
#include "rados/io/rstore.h"
#include "rados/io/txn.h"

#include <string.h>

#define ABSENCES 8 /* number of consecutive look-ups without an object */
#define PAUSE_NS NS_PER_S

struct remembered {
	uint64_t bucket; /* serial number of the bucket */
	uint32_t key_len, value_len;
	char bytes[]; /* key, then value; without a value the key has no object */
};

void
recall_init(struct recall_table *r)
{
	for (uint32_t i = 0; i < RECALL_LOCKS; i++)
		pthread_mutex_init(&r->lock[i], NULL);
}

void
recall_fini(struct recall_table *r)
{
	for (uint32_t i = 0; i < RECALL_SLOTS; i++)
		free(r->slot[i]);
	for (uint32_t i = 0; i < RECALL_LOCKS; i++)
		pthread_mutex_destroy(&r->lock[i]);
}

static uint32_t
slot_of(const struct rbucket *rb, const struct txn_key *k)
{
	return (uint32_t)(crc64_nvme(rb->serial, k->key, k->len) >> 32) % RECALL_SLOTS;
}

static bool
is_of(const struct remembered *m, const struct rbucket *rb, const struct txn_key *k)
{
	return m && m->bucket == rb->serial && m->key_len == k->len && memcmp(m->bytes, k->key, k->len) == 0;
}

/* Puts m into its slot, in the place of any other entry; m NULL: removes the entry of the key. */
static void
put_in(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k, struct remembered *m)
{
	uint32_t at = slot_of(rb, k);
	struct remembered *old = NULL;

	check(!m || is_of(m, rb, k));
	pthread_mutex_lock(&r->lock[at % RECALL_LOCKS]);
	if (m || is_of(r->slot[at], rb, k)) {
		old = r->slot[at];
		r->slot[at] = m;
	}
	pthread_mutex_unlock(&r->lock[at % RECALL_LOCKS]);
	free(old);
}

void
recall_note(const struct txn *t)
{
	for (int i = 0; t->rb && i < t->key_nr; i++) {
		const struct txn_key *k = &t->key[i];
		size_t value_len = k->fate == FATE_SET ? k->set.len : 0;
		struct remembered *m = NULL;
		struct record rec;
		bool is_record;

		if (k->key[0] != KEY_OBJECT || k->fate == FATE_COMPARE)
			continue;
		if (k->len + value_len <= RECALL_BYTES)
			m = malloc(sizeof *m + k->len + value_len);
		if (m) {
			*m = (struct remembered){ t->rb->serial, k->len, (uint32_t)value_len };
			memcpy(m->bytes, k->key, k->len);
			memcpy(m->bytes + k->len, value_len ? k->set.p : "", value_len);
		}
		put_in(&t->port->st->recall, t->rb, k, m);
		is_record = value_len && record_decode(k->set.p, value_len, &rec) == 0;
		recall_seen(&t->port->st->recall, t->rb, k, is_record ? &rec : NULL, false);
	}
}

/* Finds the cached record of a key, and copies it. Returns 1; 0: not cached; -1: no memory. */
static int
find(struct recall_table *r, const struct rbucket *rb, struct txn_key *k)
{
	uint32_t at = slot_of(rb, k);
	const struct remembered *m;
	int found = 0;

	pthread_mutex_lock(&r->lock[at % RECALL_LOCKS]);
	m = r->slot[at];
	if (is_of(m, rb, k)) {
		found = 1;
		if (m->value_len && !bytes_copy(&k->old, m->bytes + m->key_len, m->value_len))
			found = -1;
	}
	pthread_mutex_unlock(&r->lock[at % RECALL_LOCKS]);
	return found;
}

bool
recall(struct txn *t)
{
	struct rbucket *rb = t->rb;
	int found = 1;

	check(t->shard && rb && t->key_nr > 0);
	/* A cached record is used only at a generation after which this gateway has read its own row, and
	 * so was not declared dead (rule 5). */
	t->generation = atomic_load(&t->shard->known);
	if (!t->generation || clock_ns() < atomic_load(&rb->recall_after_ns))
		return false;
	for (int i = 0; found == 1 && i < t->key_nr; i++) {
		found = find(&t->port->st->recall, rb, &t->key[i]);
		if (found == 0 && atomic_load(&rb->absences) >= ABSENCES)
			found = 1;
	}
	return found == 1;
}

void
recall_looked(const struct txn *t)
{
	if (t->guess != GUESS_OVER)
		return;
	if (t->key[0].old.p)
		atomic_store(&t->rb->absences, 0);
	else if (atomic_load(&t->rb->absences) < ABSENCES)
		atomic_fetch_add(&t->rb->absences, 1);
}

void
recall_wrong(const struct txn *t)
{
	atomic_store(&t->rb->absences, 0);
	atomic_store(&t->rb->recall_after_ns, clock_ns() + PAUSE_NS);
	for (int i = 0; i < t->key_nr; i++)
		put_in(&t->port->st->recall, t->rb, &t->key[i], NULL);
}

/* ---- data objects that records name ---- */

static struct data_seen *
lock_named(struct recall_table *r, uint64_t hash)
{
	uint32_t i = (uint32_t)(hash >> 32) % RECALL_NAMES;

	pthread_mutex_lock(&r->lock[i % RECALL_LOCKS]);
	return &r->named[i];
}

static void
unlock_named(struct recall_table *r, const struct data_seen *n)
{
	pthread_mutex_unlock(&r->lock[(uint32_t)(n - r->named) % RECALL_LOCKS]);
}

void
recall_seen(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
	    const struct record *rec, bool is_doubtful)
{
	uint64_t hash = crc64_nvme(rb->serial, k->key, k->len);
	struct data_seen *n = lock_named(r, hash);

	if (rec && rec->kind == REC_DATA)
		*n = (struct data_seen){ hash, rec->data, rec->size_bytes, rec->crc_nr == 0, is_doubtful };
	else if (n->hash == hash)
		*n = (struct data_seen){ 0 };
	unlock_named(r, n);
}

bool
recall_named(struct recall_table *r, const struct rbucket *rb, const struct txn_key *k,
	     struct data_seen *ret_named)
{
	uint64_t hash = crc64_nvme(rb->serial, k->key, k->len);
	struct data_seen *n = lock_named(r, hash);

	*ret_named = *n;
	unlock_named(r, n);
	return ret_named->hash == hash && ret_named->size_bytes && !ret_named->is_doubtful;
}
