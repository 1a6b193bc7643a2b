/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address handles, one cache per rail, and the helpers that make them.
 *
 * Making one for a RoCE target resolves its MAC address and may block for a second, so cores never do: they
 * ask, and hear later.  Equal destinations coalesce.  One client's absent addresses delay no other's: clients take turns, none has
 * more than a few under way, and who asks for one that is slow is told so.  A failure is remembered 5 s, and twice as long each
 * time it comes again, up to 2 minutes.  The cache is bounded; what
 * nobody uses is evicted, least recently used first.  A handle dies where it was made, on a helper: the one
 * that makes the next handle in the same slot.
 *
 *     FREE -> MAKING -> READY          refs counts its users; lru holds it while there are none
 *                  \--> FAILED         both may be `forgotten`: no longer found, FREE when unused
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_NS (5 * NS_PER_S)
#define FAILED_MAX_NS (120 * NS_PER_S)

/* ---- helpers ---- */

static void make(struct rdma_ah *ah);

static void *helper_main(void *arg);

/* Under the lock.  Work is waiting and everybody is busy: one more of us. */
static void
grow(struct ah_helpers *h)
{
	if (!fair_empty(&h->work) && h->idle == 0 && h->thread_nr < AH_THREADS_MAX && !h->stop &&
	    thread_start(&h->thread[h->thread_nr], "gantry-ah", helper_main, h) == 0)
		h->thread_nr++;
}

static void *
helper_main(void *arg)
{
	struct ah_helpers *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		struct list *l = fair_pop(&h->work);

		if (l) {
			grow(h); /* more may be waiting */
			pthread_mutex_unlock(&h->lock);
			make(container_of(l, struct rdma_ah, work));
			pthread_mutex_lock(&h->lock);
			continue;
		}
		if (h->stop)
			break;
		h->idle++;
		pthread_cond_wait(&h->more, &h->lock);
		h->idle--;
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

int
ah_helpers_start(struct ah_helpers *h)
{
	int r;

	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	fair_init(&h->work);
	r = thread_start(&h->thread[0], "gantry-ah", helper_main, h);
	if (r == 0)
		h->thread_nr = 1;
	h->started = r == 0;
	return r;
}

void
ah_helpers_stop(struct ah_helpers *h)
{
	if (!h->started)
		return;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	pthread_cond_broadcast(&h->more);
	pthread_mutex_unlock(&h->lock);
	/* thread_nr cannot grow any more. */
	for (int i = 0; i < h->thread_nr; i++)
		pthread_join(h->thread[i], NULL);
	h->thread_nr = 0;
	h->started = false;
}

static void
helpers_post(struct ah_helpers *h, struct rdma_ah *ah)
{
	pthread_mutex_lock(&h->lock);
	fair_push(&h->work, ah->client, &ah->work);
	pthread_cond_signal(&h->more);
	grow(h);
	pthread_mutex_unlock(&h->lock);
}

/* ---- the cache ---- */

static struct list *
bucket_of(struct ah_cache *c, const struct rdma_ah_key *key)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (int i = 0; i < 16; i++)
		h = (h ^ key->dgid[i]) * 0x100000001b3ull;
	h = (h ^ key->sgid_index ^ (uint64_t)key->dlid << 16) * 0x100000001b3ull;
	return &c->bucket[(h >> 32) % AH_BUCKETS];
}

/* The same address; the paths may differ. */
static bool
same_address(const struct rdma_ah_key *a, const struct rdma_ah_key *b)
{
	return a->is_global == b->is_global && a->must_route == b->must_route && a->dlid == b->dlid &&
	       a->sgid_index == b->sgid_index && memcmp(a->dgid, b->dgid, 16) == 0;
}

int
ah_cache_init(struct rdma_rail *rail, int slot_nr)
{
	struct ah_cache *c = &rail->ahs;

	pthread_mutex_init(&c->lock, NULL);
	list_init(&c->lru);
	for (int i = 0; i < AH_BUCKETS; i++)
		list_init(&c->bucket[i]);
	c->slot = calloc((size_t)slot_nr, sizeof *c->slot);
	if (!c->slot)
		return -ENOMEM;
	c->slot_nr = slot_nr;
	for (int i = 0; i < slot_nr; i++) {
		c->slot[i].rail = rail;
		list_init(&c->slot[i].bucket);
		list_init(&c->slot[i].waiters);
		list_push_tail(&c->lru, &c->slot[i].lru);
	}
	return 0;
}

void
ah_cache_fini(struct rdma_rail *rail)
{
	struct ah_cache *c = &rail->ahs;

	for (int i = 0; i < c->slot_nr; i++) {
		if (c->slot[i].ah)
			ibv_destroy_ah(c->slot[i].ah);
		if (c->slot[i].old)
			ibv_destroy_ah(c->slot[i].old);
	}
	free(c->slot);
	c->slot = NULL;
	c->slot_nr = 0;
}

/* Nobody finds it any more; unused, it is the first to be evicted. */
static void
forget(struct ah_cache *c, struct rdma_ah *ah)
{
	ah->forgotten = true;
	list_del(&ah->bucket);
	if (list_linked(&ah->lru)) {
		list_del(&ah->lru);
		list_push_head(&c->lru, &ah->lru);
	}
}

/* It is too early to try again. */
static bool
is_cooling(const struct rdma_ah *ah)
{
	return ah->state == AH_FAILED && clock_ns() < ah->failed_until_ns;
}

/* The address has not been found.  What failed beside a path that was ready says nothing about the address. */
static bool
is_off(const struct rdma_ah *ah)
{
	return is_cooling(ah) && ah->is_counted;
}

/* The one for this path.  Where it is not there, *ret_other says what is known of the address from another path: one
 * that is ready, else one that is being made, else one that has failed a short time ago. */
static struct rdma_ah *
find(struct ah_cache *c, const struct rdma_ah_key *key, struct rdma_ah **ret_other)
{
	struct rdma_ah *own = NULL, *other = NULL;

	list_for_each(l, bucket_of(c, key))
	{
		struct rdma_ah *ah = container_of(l, struct rdma_ah, bucket);

		if (!same_address(&ah->key, key))
			continue;
		if (ah->key.path == key->path)
			own = ah;
		else if (ah->state == AH_READY ||
			 ((ah->state == AH_MAKING || is_off(ah)) && (!other || other->state == AH_FAILED)))
			other = other && other->state == AH_READY ? other : ah;
	}
	*ret_other = other;
	return own;
}

/* A slot for a new handle: never used, or the least recently used one that nobody holds. */
static struct rdma_ah *
evict(struct ah_cache *c)
{
	struct list *l = list_pop(&c->lru);
	struct rdma_ah *ah;

	if (!l)
		return NULL;
	ah = container_of(l, struct rdma_ah, lru);
	check(ah->refs == 0);
	check(!ah->old);
	list_del(&ah->bucket);
	ah->old = ah->ah;
	ah->ah = NULL;
	ah->forgotten = false;
	return ah;
}

/* Counts one more that is made for this client, if it has not too many. */
static bool
may_make(struct ah_helpers *h, uint8_t client)
{
	if (atomic_fetch_add(&h->making[client], 1) < AH_MAKING_PER_CLIENT)
		return true;
	atomic_fetch_sub(&h->making[client], 1);
	return false;
}

static void
made(struct ah_helpers *h, uint8_t client)
{
	atomic_fetch_sub(&h->making[client], 1);
}

/* Takes a reference to one that is ready. */
static struct rdma_ah *
use(struct rdma_rail *rail, struct rdma_ah *ah)
{
	if (ah->refs++ == 0)
		list_del(&ah->lru);
	atomic_fetch_add_explicit(&rail->stats.ah_hits[ah->key.path], 1, memory_order_relaxed);
	return ah;
}

/* Makes ah, or where that is NULL another, one that is about to be made; NULL: all are in use. */
static struct rdma_ah *
begin(struct rdma_rail *rail, struct rdma_ah *ah, const struct rdma_ah_key *key, uint8_t client, bool counted)
{
	struct ah_cache *c = &rail->ahs;

	if (ah) {
		list_del(&ah->lru);
	} else {
		ah = evict(c);
		if (!ah)
			return NULL;
		ah->key = *key;
		ah->failures = 0;
		list_push_tail(bucket_of(c, key), &ah->bucket);
	}
	ah->state = AH_MAKING;
	ah->since_ns = clock_ns();
	ah->client = client;
	ah->is_counted = counted;
	atomic_fetch_add_explicit(&rail->stats.ah_misses, 1, memory_order_relaxed);
	return ah;
}

/* Under the lock.  *ret_begun: one that a helper has to make now. */
static int
get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_target_wait *w,
    struct rdma_ah **ret_ah, struct rdma_ah **ret_begun)
{
	struct ah_helpers *h = &rail->rd->helpers;
	struct rdma_ah *other, *ah = find(&rail->ahs, key, &other);

	if (ah && ah->state == AH_READY) {
		*ret_ah = use(rail, ah);
		return 1;
	}
	/* The kernel finds an address once, whichever path asks first.  Once it is found, who asks for another path takes the one that
	 * there is, and that path's own is made meanwhile; until then all wait for the same. */
	if (other && other->state == AH_READY) {
		*ret_ah = use(rail, other);
		if (!ah || (ah->state == AH_FAILED && !is_cooling(ah)))
			*ret_begun = begin(rail, ah, key, w->client, false);
		return 1;
	}
	if (other && (!ah || ah->state == AH_FAILED))
		ah = other;
	if (ah && (ah->state == AH_FAILED ? is_off(ah)
					  : !w->patient && clock_ns() - ah->since_ns > RDMA_TARGET_WAIT_NS))
		return -EHOSTUNREACH;
	if (!ah || ah->state == AH_FAILED) {
		if (!may_make(h, w->client))
			return -EHOSTUNREACH;
		ah = *ret_begun = begin(rail, ah, key, w->client, true);
		if (!ah) {
			made(h, w->client);
			return -EAGAIN;
		}
	}
	list_push_tail(&ah->waiters, &w->link);
	return 0;
}

int
ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_target_wait *w,
       struct rdma_ah **ret_ah)
{
	struct rdma_ah *begun = NULL;
	int r;

	pthread_mutex_lock(&rail->ahs.lock);
	r = get(rail, key, w, ret_ah, &begun);
	pthread_mutex_unlock(&rail->ahs.lock);
	if (begun)
		helpers_post(&rail->rd->helpers, begun);
	return r;
}

bool
ah_leave(struct rdma_rail *rail, struct rdma_target_wait *w)
{
	bool waits;

	pthread_mutex_lock(&rail->ahs.lock);
	waits = list_linked(&w->link);
	if (waits)
		list_del(&w->link);
	pthread_mutex_unlock(&rail->ahs.lock);
	return waits;
}

/* Whether one of our rails is at this port. */
static bool
is_a_rail(struct rdma *rd, __be64 guid, int port)
{
	for (int i = 0; i < rd->rail_nr; i++) {
		if (rd->rail[i]->dev->guid == guid && rd->rail[i]->port == port)
			return true;
	}
	return false;
}

/* 0: the rail leads there; -ENETUNREACH: another does, or none; -ENODATA: nobody knows. */
static int
ask_cm(const struct rdma_rail *rail, const struct cm_question *q, int *ret_level)
{
	struct cm_answer a;
	int r = cm_oracle_ask(rail->rd->oracle, q, &a);

	if (r < 0)
		return r;
	if (a.guid == rail->dev->guid && a.port == rail->port) {
		*ret_level = a.service_level;
		return 0;
	}
	/* A device that is none of ours leads nobody astray. */
	return is_a_rail(rail->rd, a.guid, a.port) ? -ENETUNREACH : -ENODATA;
}

/* An InfiniBand rail leads everywhere, and to its port's subnet first: the path is asked for where something depends on it. */
static int
infiniband_routes(const struct rdma_rail *rail, const struct rdma_ah_key *key, struct cm_question *q,
		  int *ret_level)
{
	static const uint8_t none[16];
	bool level = rail->rd->conf.service_level == CONF_LEVEL_AUTO;
	int r = -ENODATA;

	if ((key->must_route || level) && memcmp(key->dgid, none, 16) != 0)
		r = ask_cm(rail, q, ret_level);
	return r == 0 || (r == -ENODATA && !key->must_route) ? 0 : -ENETUNREACH;
}

int
rail_routes(const struct rdma_rail *rail, const struct rdma_ah_key *key, int *ret_level)
{
	pthread_rwlock_t *lock = &rail->rd->table_lock;
	struct rail_gid from = { 0 };
	struct cm_question q = { .is_ib = !rail->is_ethernet };
	int r, level = -1;

	pthread_rwlock_rdlock(lock);
	for (int i = 0; i < rail->view.gid_nr; i++) {
		if (rail->view.gid[i].index == key->sgid_index)
			from = rail->view.gid[i];
	}
	q.pkey = rail->pkey;
	pthread_rwlock_unlock(lock);
	memcpy(q.src, from.raw, 16);
	memcpy(q.dst, key->dgid, 16);
	if (!rail->is_ethernet) {
		r = infiniband_routes(rail, key, &q, &level);
		if (ret_level)
			*ret_level = level;
		return r;
	}
	if (ret_level)
		*ret_level = -1;
	/* The interface of the source is the one that the packets will leave by, so its routes come before what the connection manager
	 * would choose by itself. */
	if (!from.ifindex)
		r = ask_cm(rail, &q, &level);
	else
		r = net_route(from.ifindex, from.raw, key->dgid);
	if (!key->must_route)
		return r == -ENETUNREACH || r == -EADDRNOTAVAIL ? -ENETUNREACH : 0;
	/* Asked about one interface, the kernel does not say that an address is our own on another. */
	if (r == 0 && from.ifindex)
		r = net_route(0, from.raw, key->dgid);
	return r == 0 ? 0 : -ENETUNREACH;
}

static uint64_t
failed_ns(int failures)
{
	uint64_t ns = FAILED_NS;

	while (--failures > 0 && ns < FAILED_MAX_NS)
		ns *= 2;
	return ns < FAILED_MAX_NS ? ns : FAILED_MAX_NS;
}

/* On a helper; ah->state is AH_MAKING, so it is ours alone but for the waiters' list. */
static void
make(struct rdma_ah *ah)
{
	struct rdma_rail *rail = ah->rail;
	struct ah_cache *c = &rail->ahs;
	struct ah_params params = rail_ah_params(rail);
	struct rdma_context *on = context_get(rail->dev);
	struct ibv_ah *new = NULL, *old = NULL;
	struct ibv_ah_attr attr;
	char text[INET6_ADDRSTRLEN];
	int err = ENODEV, level = -1;

	if (on) {
		/* It was made on this context: what others leave is destroyed before they are closed. */
		pthread_mutex_lock(&c->lock);
		old = ah->old;
		ah->old = NULL;
		pthread_mutex_unlock(&c->lock);
		if (old)
			ibv_destroy_ah(old);
		err = -rail_routes(rail, &ah->key, &level);
	}
	if (on && !err) {
		if (level >= 0 && rail->rd->conf.service_level == CONF_LEVEL_AUTO)
			params.service_level = (uint8_t)level;
		rdma_ah_build(&ah->key, rail->port, &params, &attr);
		errno = 0;
		new = ibv_create_ah(on->pd, &attr);
		err = errno;
	}
	if (!new) {
		atomic_fetch_add_explicit(&rail->stats.ah_failed, 1, memory_order_relaxed);
		log_limited(LOG_INFO, "%s:%d: no address handle for %s: %s", rail->dev->name, rail->port,
			    ah->key.is_global ? gid_text(ah->key.dgid, text, sizeof text) : "a LID",
			    strerror(err));
	}
	pthread_mutex_lock(&c->lock);
	ah->ah = new;
	if (new)
		atomic_store_explicit(&ah->context, on->nr, memory_order_release);
	ah->state = new ? AH_READY : AH_FAILED;
	/* That there is no memory says nothing about the address. */
	if (new)
		ah->failures = 0;
	else if (err != ENOMEM)
		ah->failures++;
	ah->failed_until_ns = clock_ns() + (err == ENOMEM ? 0 : failed_ns(ah->failures));
	if (ah->is_counted)
		made(&rail->rd->helpers, ah->client);
	for (struct list *l; (l = list_pop(&ah->waiters));) {
		struct rdma_target_wait *w = container_of(l, struct rdma_target_wait, link);

		w->target.at = new ? ah : NULL;
		w->result = new ? 0 : err == ENOMEM ? -ENOMEM : -EHOSTUNREACH;
		if (new)
			ah->refs++;
		w->done(w);
	}
	if (ah->refs == 0)
		list_push_tail(&c->lru, &ah->lru);
	pthread_mutex_unlock(&c->lock);
	if (on)
		context_put(on);
}

void
ah_put(struct rdma_rail *rail, struct rdma_ah *ah)
{
	struct ah_cache *c = &rail->ahs;

	pthread_mutex_lock(&c->lock);
	check(ah->refs > 0);
	if (--ah->refs == 0) {
		if (ah->forgotten)
			list_push_head(&c->lru, &ah->lru);
		else
			list_push_tail(&c->lru, &ah->lru);
	}
	pthread_mutex_unlock(&c->lock);
}

void
ah_forget(struct rdma_rail *rail, struct rdma_ah *ah)
{
	pthread_mutex_lock(&rail->ahs.lock);
	if (!ah->forgotten)
		forget(&rail->ahs, ah);
	pthread_mutex_unlock(&rail->ahs.lock);
}

void
ah_cache_forget_all(struct rdma_rail *rail)
{
	struct ah_cache *c = &rail->ahs;

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < c->slot_nr; i++) {
		if (list_linked(&c->slot[i].bucket))
			forget(c, &c->slot[i]);
	}
	pthread_mutex_unlock(&c->lock);
}

void
ah_cache_drop(struct rdma_rail *rail)
{
	struct ah_cache *c = &rail->ahs;

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < c->slot_nr; i++) {
		struct rdma_ah *ah = &c->slot[i];

		if (list_linked(&ah->bucket))
			forget(c, ah);
		atomic_store_explicit(&ah->context, 0, memory_order_release);
		if (ah->ah)
			ibv_destroy_ah(ah->ah);
		if (ah->old)
			ibv_destroy_ah(ah->old);
		ah->ah = ah->old = NULL;
	}
	pthread_mutex_unlock(&c->lock);
}
