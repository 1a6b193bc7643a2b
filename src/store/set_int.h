/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the set: what set.c (life, placement), set_bucket.c and set_list.c share.  See set.h.
 */
#ifndef GANTRY_STORE_SET_INT_H
#define GANTRY_STORE_SET_INT_H

#include "base/crc64.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "store/ops.h"
#include "store/set.h"

#include <pthread.h>

#define SET_SLOT_BITS 12
#define SET_SLOTS (1 << SET_SLOT_BITS)

struct set {
	struct store base;
	int nr;
	struct store *engine[STORE_SET_MAX];
	struct quota_book *quotas; /* each engine is a counter of it */
	uint8_t home[SET_SLOTS];   /* which engine has a slot; set before there is a port */
	pthread_mutex_t lock;      /* the rest */
	bool is_changing;          /* a change of buckets has its turn */
	struct list waiting;       /* struct change: those whose turn comes */
};

struct set_port {
	struct store_port base;
	struct set *set;
	struct mailbox *mb;
	unsigned inflight;           /* operations of the set's own */
	int nr;                      /* of the set */
	struct store_port *engine[]; /* NULL: detached */
};

static inline struct set *
set_of(const struct store *st)
{
	return container_of(st, struct set, base);
}

static inline struct set_port *
set_port(struct store_port *p)
{
	return container_of(p, struct set_port, base);
}

/* Returns the slot of a key.  Disks depend on it: it never changes. */
static inline unsigned
set_slot(const struct store_key *k)
{
	uint64_t h = crc64_nvme(0, k->bucket, k->bucket_len);

	h = crc64_nvme(h, "", 1);
	h = crc64_nvme(h, k->key, k->key_len);
	return (unsigned)(h >> (64 - SET_SLOT_BITS));
}

/* Returns the number of the engine that has a key. */
static inline int
set_home(const struct set *s, const struct store_key *k)
{
	return s->nr == 1 ? 0 : s->home[set_slot(k)];
}

/* ---- set_bucket.c ---- */

int set_bucket_create(struct store_port *sp, const char *name, size_t len, struct store_del *op);
int set_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op);
int set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st);
int set_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version,
			 const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
int set_bucket_set_quota(struct store_port *sp, const char *name, size_t len, const struct store_use *max,
			 struct store_bucket_set *op);
int set_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
			 struct store_stat *st);

#endif
