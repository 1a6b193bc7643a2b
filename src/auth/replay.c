/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures seen before (auth.replay), one table for all cores.
 *
 * Sets of twenty-five entries under a lock of their own that is held for some hundreds of instructions at most; a
 * signature is a MAC, so its own bytes spread it.  Only signatures that held are entered: strangers cannot fill it.
 * The holder of an access key can, so each access key has its share of every set: in a full set the access key with
 * most entries there loses its oldest one, whatever time that claims for itself.  While the requests of n access keys
 * fill a set, each of them keeps the nth part of it.
 */
#define LOG_MODULE "auth"
#include "auth/auth_int.h"

#include "base/address.h"
#include "base/log.h"
#include "base/siphash.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#define WAYS 25

struct seen {
	uint32_t signature[2]; /* a quarter of it; other bytes of it chose the set */
	uint32_t expires_s;
	uint32_t peer;  /* the address, hashed with a key that nobody knows */
	uint32_t owner; /* the access key, likewise */
};

struct set {
	atomic_flag lock;
	uint8_t nr;
	struct seen seen[WAYS]; /* nr of them, the oldest first */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct set) == 512, "eight lines of the cache");

struct auth_replay {
	uint64_t key[2]; /* of the hashes of addresses and access keys */
	_Atomic uint64_t refused, forgotten;
	pthread_mutex_t lock; /* of by_key */
	int key_nr;
	struct auth_replay_key by_key[AUTH_REPLAY_KEYS];
	uint64_t set_nr;
	struct set *set; /* pages are memory when they are used */
};

int
auth_replay_new(uint64_t bytes, struct auth_replay **ret_table)
{
	uint64_t nr = bytes / sizeof(struct set);
	struct auth_replay *t = calloc(1, sizeof *t);

	if (!t)
		return -ENOMEM;
	t->set_nr = nr < 1 ? 1 : nr > UINT32_MAX ? UINT32_MAX : nr;
	/* Zeroed pages are sets that are unlocked and empty. */
	t->set = mmap(NULL, t->set_nr * sizeof *t->set, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->set == MAP_FAILED || getrandom(t->key, sizeof t->key, 0) != sizeof t->key) {
		int e = t->set == MAP_FAILED ? -ENOMEM : -EIO;

		if (t->set != MAP_FAILED)
			munmap(t->set, t->set_nr * sizeof *t->set);
		free(t);
		return e;
	}
	/* A huge page is some 100 us of zeroing in the middle of a request, and soon all of the table; and
	 * nobody wants it in a core dump. */
	madvise(t->set, t->set_nr * sizeof *t->set, MADV_NOHUGEPAGE);
	madvise(t->set, t->set_nr * sizeof *t->set, MADV_DONTDUMP);
	pthread_mutex_init(&t->lock, NULL);
	*ret_table = t;
	return 0;
}

void
auth_replay_free(struct auth_replay *t)
{
	if (!t)
		return;
	munmap(t->set, t->set_nr * sizeof *t->set);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static uint32_t
peer_hash(const struct auth_replay *t, const struct sockaddr *sa)
{
	struct in6_addr client;

	address_client(sa, &client);
	return (uint32_t)siphash(t->key, &client, sizeof client);
}

static bool
is_live(const struct seen *e, uint32_t now_s)
{
	return e->expires_s >= now_s;
}

static void
drop(struct set *set, int i)
{
	set->nr--;
	memmove(&set->seen[i], &set->seen[i + 1], (size_t)(set->nr - i) * sizeof *set->seen);
}

static void
drop_expired(struct set *set, uint32_t now_s)
{
	int nr = 0;

	for (int i = 0; i < set->nr; i++) {
		if (is_live(&set->seen[i], now_s))
			set->seen[nr++] = set->seen[i];
	}
	set->nr = (uint8_t)nr;
}

/* Finds the oldest entry of the access key that has most in a full set, with the one to come; where several have as
 * many it is of the one whose entry comes, if that is among them. */
static int
gives_way(const struct set *set, uint32_t owner)
{
	int at = 0, most = 0;

	for (int i = 0; i < WAYS; i++) {
		bool own = set->seen[i].owner == owner;
		int nr = own;

		for (int k = 0; k < WAYS; k++)
			nr += set->seen[k].owner == set->seen[i].owner;
		if (nr > most || (nr == most && own && set->seen[at].owner != owner)) {
			most = nr;
			at = i;
		}
	}
	return at;
}

/* Tells whether it is new, or again from the same peer. */
static bool
enter(struct auth_replay *t, struct set *set, const struct seen *s, bool once, uint32_t now_s)
{
	for (int i = 0; i < set->nr; i++) {
		struct seen *e = &set->seen[i];

		if (memcmp(e->signature, s->signature, sizeof e->signature) == 0 && is_live(e, now_s))
			return !once && e->peer == s->peer;
	}
	if (set->nr == WAYS)
		drop_expired(set, now_s);
	if (set->nr == WAYS) {
		drop(set, gives_way(set, s->owner));
		atomic_fetch_add_explicit(&t->forgotten, 1, memory_order_relaxed);
	}
	set->seen[set->nr++] = *s;
	return true;
}

static uint32_t
seconds32(uint64_t s)
{
	return s > UINT32_MAX ? UINT32_MAX : (uint32_t)s;
}

bool
auth_replay_fresh(struct auth_replay *t, const char *access_key, const uint8_t signature[32],
		  const struct sockaddr *peer, bool once, uint64_t now_s, uint64_t expires_s)
{
	struct seen s = { .expires_s = seconds32(expires_s),
			  .peer = peer_hash(t, peer),
			  .owner = (uint32_t)siphash(t->key, access_key, strlen(access_key)) };
	struct set *set;
	uint64_t where;
	bool fresh;

	memcpy(s.signature, signature, sizeof s.signature);
	memcpy(&where, signature + 16, sizeof where);
	set = &t->set[(where >> 32) * t->set_nr >> 32];
	for (int spin = 0; atomic_flag_test_and_set_explicit(&set->lock, memory_order_acquire); spin++) {
		/* Its holder may have lost the CPU. */
		if (spin > 100)
			sched_yield();
	}
	fresh = enter(t, set, &s, once, seconds32(now_s));
	atomic_flag_clear_explicit(&set->lock, memory_order_release);
	return fresh;
}

/* ---- what was refused ---- */

static void
count_key(struct auth_replay *t, const char *access_key)
{
	int i = 0;

	pthread_mutex_lock(&t->lock);
	while (i < t->key_nr && strcmp(t->by_key[i].access_key, access_key) != 0)
		i++;
	if (i == t->key_nr && i < AUTH_REPLAY_KEYS)
		snprintf(t->by_key[t->key_nr++].access_key, sizeof t->by_key->access_key, "%s", access_key);
	if (i < AUTH_REPLAY_KEYS)
		t->by_key[i].refused++;
	pthread_mutex_unlock(&t->lock);
}

void
auth_replay_refused(struct auth_replay *t, const char *access_key, const struct sockaddr *peer)
{
	char text[ADDRESS_TEXT_BYTES];

	atomic_fetch_add_explicit(&t->refused, 1, memory_order_relaxed);
	count_key(t, access_key);
	log_limited(
		LOG_WARN,
		"a signature of access key %s was used again, by %s: refused (auth.replay); either somebody "
		"reads this client's requests on their way, or it sends one request from two addresses",
		access_key, address_text(peer, text));
}

void
auth_replay_get_info(struct auth_replay *t, struct auth_replay_info *ret)
{
	*ret = (struct auth_replay_info){ .entries = t->set_nr * WAYS,
					  .refused = atomic_load(&t->refused),
					  .forgotten = atomic_load(&t->forgotten) };
	pthread_mutex_lock(&t->lock);
	ret->key_nr = t->key_nr;
	memcpy(ret->by_key, t->by_key, sizeof ret->by_key);
	pthread_mutex_unlock(&t->lock);
}
