/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures seen before (auth.replay), one table for all cores.
 *
 * Sets of eight entries under a lock of their own that is held for some tens of instructions; a signature is
 * a MAC, so its own bytes spread it.  Only signatures that held are entered: strangers cannot fill it.
 */
#include "auth/auth_int.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>

#define WAYS 8

struct seen {
	uint64_t signature[2]; /* half of it: nobody can find two that agree */
	uint64_t expires_s;    /* 0: free */
	uint8_t peer[16];
};

struct set {
	atomic_flag lock;
	struct seen seen[WAYS];
};

struct auth_replay {
	uint32_t set_nr; /* a power of two */
	struct set set[];
};

int
auth_replay_new(uint32_t entries, struct auth_replay **ret_table)
{
	uint32_t nr = 1;
	struct auth_replay *t;

	while (nr < entries / WAYS && nr < 1u << 24)
		nr <<= 1;
	t = calloc(1, sizeof *t + (size_t)nr * sizeof *t->set);
	if (!t)
		return -ENOMEM;
	t->set_nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		atomic_flag_clear(&t->set[i].lock);
	*ret_table = t;
	return 0;
}

void
auth_replay_free(struct auth_replay *t)
{
	free(t);
}

/* Without the port; IPv4 as the mapped address. */
static void
peer_bytes(const struct sockaddr *sa, uint8_t out[16])
{
	memset(out, 0, 16);
	if (sa && sa->sa_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	} else if (sa && sa->sa_family == AF_INET) {
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	}
}

static bool
enter(struct set *set, const struct seen *s, uint64_t now_s)
{
	struct seen *victim = &set->seen[0];

	for (int i = 0; i < WAYS; i++) {
		struct seen *e = &set->seen[i];

		if (e->expires_s >= now_s && e->expires_s && memcmp(e->signature, s->signature, 16) == 0)
			return memcmp(e->peer, s->peer, 16) == 0;
		if (e->expires_s < victim->expires_s)
			victim = e;
	}
	*victim = *s;
	return true;
}

bool
auth_replay_fresh(struct auth_replay *t, const uint8_t signature[32], const struct sockaddr *peer,
		  uint64_t now_s, uint64_t expires_s)
{
	struct seen s = { .expires_s = expires_s ? expires_s : 1 };
	struct set *set;
	uint64_t where;
	bool fresh;

	memcpy(s.signature, signature, sizeof s.signature);
	memcpy(&where, signature + 16, sizeof where);
	peer_bytes(peer, s.peer);
	set = &t->set[where & (t->set_nr - 1)];
	for (int spin = 0; atomic_flag_test_and_set_explicit(&set->lock, memory_order_acquire); spin++) {
		/* Its holder may have lost the CPU. */
		if (spin > 100)
			sched_yield();
	}
	fresh = enter(set, &s, now_s);
	atomic_flag_clear_explicit(&set->lock, memory_order_release);
	return fresh;
}
