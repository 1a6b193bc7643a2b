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

#define SET_SLOT_BITS STORE_SLOT_BITS
#define SET_SLOTS STORE_SLOT_NR
#define SET_NOWHERE 255 /* in place of an engine: its disk is missing */

struct set {
	struct store base;
	/* set before there is a port */
	int nr; /* engines that are there, in the order of their disks' numbers */
	struct store *engine[STORE_SET_MAX];
	int member_nr; /* disks of the store */
	struct {
		uint8_t engine; /* SET_NOWHERE: it is missing */
		char uuid[UUID_TEXT];
	} member[STORE_SET_MAX];
	struct quota_book *quotas; /* each engine is a counter of it */
	uint8_t home[SET_SLOTS];   /* which engine has a slot */
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

/* Returns the number of the engine that has a key, or SET_NOWHERE. */
static inline int
set_home(const struct set *s, const struct store_key *k)
{
	return s->member_nr == 1 ? 0 : s->home[set_slot(k)];
}

static inline bool
set_misses_some(const struct set *s)
{
	return s->nr < s->member_nr;
}

/* Returns how much of what all disks share is one's. */
static inline uint64_t
set_share_of(uint64_t all, uint64_t size_bytes, uint64_t total_bytes)
{
	return total_bytes ? (uint64_t)((long double)all * (long double)size_bytes / (long double)total_bytes)
			   : all;
}

/* Returns what the i-th engine is made from. */
struct store_conf set_engine_conf(const struct store_conf *conf, int i);

/* ---- set_start.c ---- */

/* Fills in the engines, members, slots and quotas of a set.  0, or -errno with the reason in err. */
int set_start_disks(struct set *s, const struct store_conf *conf, char *err, size_t err_len);
int set_forget(const struct store_conf *conf, char *said, size_t said_len);
int set_format_disks(const struct store_conf *conf, bool force, char *err, size_t err_len);

/* ---- set_align.c ---- */

/*
 * Makes the buckets of all engines those of the first, with their attributes; of one that was away the quotas too.  A
 * bucket of the same name that was made at another time is another one: what is in it goes.  Before there is a port.
 */
int set_align_buckets(struct store *const *engine, const bool *was_away, int nr, char *err, size_t err_len);

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
