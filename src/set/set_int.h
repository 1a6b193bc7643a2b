/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set_int - declarations shared by the files of the set. See set.h.
 *
 * struct set refers to its parts; each part is a separate struct with a separate lock, private to its files,
 * and used through the functions of its header.
 *
 * Lock order: mover.job_lock, mover.lock, set_map.lock, set_recovery.lock, set_replicas.lock,
 * set_buckets.lock, set_members.lock, a key lock's shard, move_changed.lock, set_ports.lock. A thread with
 * one of these locks takes only later ones; all except job_lock are held briefly.
 */
#ifndef GANTRY_SET_INT_H
#define GANTRY_SET_INT_H

#include "base/buf.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "set/buckets.h"
#include "set/map_change.h"
#include "set/members.h"
#include "set/placement.h"
#include "set/ports.h"
#include "set/rebalance.h"
#include "set/set.h"
#include "set/start/start.h"
#include "store/ops.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SET_SLOTS STORE_SLOT_NR
#define SET_PLACES STORE_PLACE_NR

struct set {
	struct store base;
	struct store_conf conf;      /* configuration of the engines, without the list of disks */
	struct set_members *members; /* disks and their engines (members.h) */
	struct quota_book *quotas;   /* quota ledger, in which each engine has a counter */
	/* index of each engine's counter in the ledger: a start gives the first one to the metadata leader */
	uint8_t counter[STORE_DISKS_MAX];
	/* The pointers `replicas` and `recovery` are NULL if the engines cannot copy to each other. */
	struct set_replicas *replicas;   /* state of keys with two copies (replicas.h) */
	struct set_recovery *recovery;   /* recovery task (recovery.h) */
	struct store_watch watch;        /* receiver of the failure notifications of all engines */
	struct set_ports *ports;         /* list of ports, and the barrier (ports.h) */
	struct mover *mover;             /* rebalancer (rebalance.h); NULL: the engines cannot move slots */
	struct set_map *map;             /* newest placement map, and the map change lock (map_change.h) */
	struct set_placement *placement; /* placement that requests consult (placement.h) */
	struct set_buckets *buckets;     /* record of bucket changes (buckets.h) */
};

static inline struct set *
set_of(const struct store *st)
{
	return container_of(st, struct set, base);
}

/* ---- attach.c ---- */

int set_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	       struct store_port **ret_port);
bool set_detach(struct store_port *sp);
void set_quiesce(struct store_port *sp);
void set_sleep(struct store_port *sp);
void set_wake(struct store_port *sp);

/* ---- port_write.c ---- */

/* Begins a PUT on the engine of port e: of an object (id NULL), or of part `number` of the upload id. If the
 * key moves, the PUT is replayed at another engine. Returns 0 or -errno, as store_put_init() does. */
int set_engine_put_init(struct set_port *p, struct store_port *e, struct store_put *put,
			const struct store_key *k, const uint8_t *id, uint32_t number, uint64_t size_bytes);
/* Returns the port of the engine at which a key may be written. NULL: no engine can take the write;
 * *ret_error is then the error for the caller. */
struct store_port *set_port_to_write(struct store_port *sp, const struct store_key *k, int *ret_error);

/* ---- failure.c ---- */

/* Initializes the receiver of failure notifications. Called before the first engine is started. */
void set_failure_init(struct set *s);

/* ---- start_call.c, issue.c ---- */

/* The arguments of a change of one key that consists of one step. Each pointer is valid for as long as
 * store.h requires for the same argument. */
struct set_call {
	enum {
		CALL_DELETE,
		CALL_SET_ATTRS,
		CALL_CREATE,
		CALL_ABORT,
		CALL_COMPLETE,
		CALL_PUT
	} kind;                      /* kind of the change; only two_change.c uses CALL_PUT */
	const struct store_pre *pre; /* preconditions; NULL: unconditional */
	uint64_t version;
	const void *attrs;
	uint32_t attrs_len;
	const uint8_t *id; /* id of the upload; NULL: the change concerns no upload */
};
/* Starts a change at the current engine of the key. op: first member of the caller's operation. Returns the
 * result of a start function (store.h). */
int set_issue(struct store_port *sp, const struct store_key *k, struct store_op *op,
	      const struct set_call *c);
/* Starts a change at the engine of port e, whether or not the key is assigned to this engine. Returns the
 * result of a start function (store.h). */
int set_start_call(struct store_port *e, const struct store_key *k, struct store_op *op,
		   const struct set_call *c);
/* Copies the result of a completion to the caller's operation. */
void set_give_completed(struct store_complete *to, const struct store_complete *from);

/* ---- carry_put.c ---- */

/* Replays a PUT at the current engine of its key; serves as carry() of struct store_carrier. */
bool set_carry(struct store_carrier *sc, struct store_put *put);

/* ---- set_list.c ---- */

int set_list(struct store_port *sp, struct store_list *ls);
int set_list_uploads(struct store_port *sp, struct store_list *ls);

/* ---- set_info.c ---- */

void set_copies_info(const struct store *st, struct store_copies_info *ret_info);
const char *set_background(const struct store *st);

/* ---- bucket_make.c, bucket_remove.c, bucket_attrs.c, bucket_look.c ---- */

int set_bucket_create(struct store_port *p, const char *name, size_t len,
		      const struct store_bucket_spec *spec, struct store_del *op);
int set_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op);
int set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st);
int set_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version,
			 const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
int set_bucket_set_quota(struct store_port *sp, const char *name, size_t len, const struct store_use *max,
			 struct store_bucket_set *op);
/*
 * Returns the version of bucket attributes that callers get. The version contains the engine's number:
 * versions differ between engines, and a version read from one engine must not match that of another engine
 * by chance.
 */
uint64_t set_attrs_version(uint64_t version, int engine);
int set_list_buckets(struct store_port *sp, struct store_list *ls);
int set_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
			 struct store_stat *st);

#endif
