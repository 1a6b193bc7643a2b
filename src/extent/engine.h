/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - the extent engine put together: one volume, and the ports that work on it.
 *
 * For the files of this folder (engine.c: life, and the numbers for operators; port.c; fsck.c) and for tests.
 * It knows one disk; a store of several is made of several engines (set/set.c).
 *
 * Threads: ports_lock protects the table of ports; the rest is set before there is a port.
 */
#ifndef GANTRY_EXTENT_ENGINE_H
#define GANTRY_EXTENT_ENGINE_H

#include "extent/extent.h"
#include "extent/log/recover.h"
#include "extent/log/vol.h"
#include "extent/object/port.h"

struct extent_store {
	struct store base;
	struct vol *vol;
	char path[256];
	struct recover_report rep;  /* report of the start's recovery */
	bool has_begun;             /* the start has claimed the disk: a stop releases it */
	struct quota_book *quotas;  /* its own; NULL: it is a counter in another engine's table */
	pthread_mutex_t ports_lock; /* serialises attach, detach, kick */
	int ports_max;
	/* The last port was detached, and could not write the stamp: the next port does it. */
	_Atomic bool is_left;
	struct extent_port **port;
};

static inline struct extent_store *
extent_store(const struct store *st)
{
	return container_of(st, struct extent_store, base);
}

/* Makes a ring for blocking I/O. */
int engine_ring(struct ring **ret_ring, char *err, size_t err_len);
/* Opens, recovers and begins, but starts no thread; for fsck too. */
int extent_open_with(const struct store_conf *conf, struct ring *r, struct recover_report *rep,
		     struct extent_store **ret_store, char *err, size_t err_len);
void extent_free(struct extent_store *st);

/* ---- member.c ---- */

extern const struct store_member_ops extent_member_ops;
/* Opens and locks; writes nothing. *ret_who: its UUID, and whether it was formatted, as far as known, even
 * for a disk that cannot be opened. The reason of an error is in err. */
int extent_open_disk(const struct store_conf *conf, struct ring *r, const struct recover_report *rep,
		     struct extent_store **ret_store, struct store_member *ret_who, char *err,
		     size_t err_len);
/* Starts the helper thread. */
int extent_serve(struct store *store, char *err, size_t err_len);

/* ---- port.c ---- */

/* Rings one attached port so that it checks the lists (with not_this: another that remains). Any thread.
 * False: there is no other. */
bool port_kick(struct extent_store *st, const struct vol_port *not_this);
/* Rings all attached ports. */
void port_kick_all(struct extent_store *st);

int extent_attach(struct store *store, struct ring *ring, struct mailbox *mb, struct timers *timers,
		  struct store_port **ret_port);
bool extent_detach(struct store_port *sp);
void extent_quiesce(struct store_port *sp);
void extent_sleep(struct store_port *sp);
void extent_wake(struct store_port *sp);

/* ---- fsck.c ---- */

int extent_fsck(const struct store_conf *conf, bool repair, void (*say)(void *cookie, const char *line),
		void *cookie);

#endif
