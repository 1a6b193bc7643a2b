/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine - the extent engine as a whole: one volume, and the ports that use it. For the files of this folder
 * (engine.c: start, stop and the numbers for operators; port.c; fsck.c) and for tests. An engine has one
 * disk; a store of several disks has several engines (set/set.c). Threads: ports_lock protects the table of
 * ports; the other fields are set before the first port is attached.
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
	struct recover_report rep; /* of the recovery at a start */
	/* true: the start has claimed the disk, so a stop releases the disk */
	bool has_begun;
	pthread_mutex_t ports_lock; /* serialises attach, detach and kick */
	int ports_max;
	struct extent_port **port;
};

static inline struct extent_store *
extent_store(const struct store *st)
{
	return container_of(st, struct extent_store, base);
}

/* Opens and locks the disk, and writes nothing. rep: options and result of the recovery, which are used until its end; NULL: those
 * of the engine. *ret_who gets the UUID of the disk, and whether the disk was formatted, as far as these are known; also for a disk
 * that cannot be opened. Returns 0, or -errno with the reason in err. */
int extent_open_disk(const struct store_conf *conf, struct ring *r, struct recover_report *rep,
		     struct extent_store **ret_store, struct store_member *ret_who, char *err,
		     size_t err_len);
void extent_free(struct extent_store *st);
/* Writes to err why a function of the volume (log/vol.h) has failed with `e`; 0: does nothing. Returns e, or -ENOSPC for each
 * error that means that there was no room. */
int engine_refuse(struct extent_store *st, int e, char *err, size_t err_len);

/* ---- member.c ---- */

extern const struct store_member_ops extent_member_ops;

/* ---- port.c ---- */

/* Wakes one attached port of a struct extent_store other than not_this, so that it does pending work of the engine. Returns false
 * if no other port is attached. Any thread may call this function. */
bool port_kick(void *store, const struct vol_port *not_this);
/* Wakes all attached ports of a struct extent_store. */
void port_kick_all(void *store);

int extent_attach(struct store *store, struct ring *ring, struct mailbox *mb, struct timers *timers,
		  struct store_port **ret_port);
bool extent_detach(struct store_port *sp);
void extent_turn(struct store_port *sp, enum store_turn turn);

/* ---- fsck.c ---- */

int extent_fsck(const struct store_conf *conf, enum fsck_mode mode,
		void (*say)(void *cookie, const char *line), void *cookie);

#endif
