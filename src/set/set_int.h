/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set_int - declarations shared by the files of the set. See set.h.
 *
 * struct set consists of parts. Each part is a struct with a separate lock, or with atomic fields alone. Only
 * the files of a part use its fields; the functions of its header serve all other files. parts.c initialises
 * and ends every part. scripts/check-structure has the table of parts and files, and checks it.
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
#include "set/recovery.h"
#include "set/replicas.h"
#include "set/set.h"
#include "set/start/start.h"
#include "store/ops.h"

struct set {
	struct store base;
	struct store_conf conf;     /* configuration of the engines, without the list of disks */
	struct set_members members; /* disks and their engines (members.h) */
	/* index of each engine's counter in the quota ledger: a start gives the first one to the metadata leader */
	uint8_t counter[STORE_DISKS_MAX];
	struct set_replicas replicas;   /* state of keys with two copies (replicas.h) */
	struct set_recovery recovery;   /* recovery task (recovery.h) */
	struct store_watch watch;       /* receiver of the failure notifications of all engines */
	struct set_ports ports;         /* list of ports, and the barrier (ports.h) */
	struct mover *mover;            /* rebalancer (rebalance.h) */
	struct set_map map;             /* newest placement map, and the map change lock (map_change.h) */
	struct set_placement placement; /* placement that requests consult (placement.h) */
	struct set_buckets buckets;     /* record of bucket changes (buckets.h) */
};

static inline struct set *
set_of(const struct store *st)
{
	return container_of(st, struct set, base);
}

/* ---- parts.c ---- */

/* Initialises the parts of a set whose bytes are zero, before an engine is started. */
void set_parts_init(struct set *s);
/* Frees the memory of the parts, after the engines have stopped. The set has no ports then. */
void set_parts_fini(struct set *s);

/* ---- attach.c ---- */

int set_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	       struct store_port **ret_port);
bool set_detach(struct store_port *sp);
void set_turn(struct store_port *sp, enum store_turn turn);
/* Handles the failure of an engine: failed() of struct set.watch. */
void set_on_failed(struct store_watch *w);

/* ---- find_port.c ---- */

/* Returns the port of the engine at which a key may be written. NULL: no engine can take the write;
 * *ret_error is then the error for the caller. */
struct store_port *set_port_to_write(struct store_port *sp, const struct store_key *k, int *ret_error);
/* Returns the port of the engine from which a key with one copy is read. Returns NULL, with the error for the
 * caller in *ret_error, in two cases: the disk of the key is missing (M12: no other disk is read); or the disk
 * has failed, and the bucket was made or removed after the failure. */
struct store_port *set_port_to_read(struct store_port *sp, const struct store_key *k, int *ret_error);

/* ---- change.c ---- */

/* Starts a change of a key that is not a PUT. op: first member of the caller's operation. Returns the result
 * of a start function (store.h). */
int set_change(struct store_port *sp, const struct store_change *c, struct store_op *op);

/* ---- put.c: PUTs, as entries of store_set_ops ---- */

int set_put_init(struct store_port *sp, struct store_put *put, const struct store_put_spec *spec);
int set_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		  uint32_t len, bool last);
bool set_write_cancel(struct store_port *sp, struct store_write *w);
int set_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *c);
void set_put_abort(struct store_port *sp, struct store_put *put);
/* Begins a PUT on the engine of port e. If the key moves, the PUT is replayed at another engine. Returns 0 or
 * -errno, as store_put_init() does. */
int set_engine_put_init(struct set_port *p, struct store_port *e, struct store_put *put,
			const struct store_put_spec *spec);

/* ---- carry_put.c ---- */

/* Replays a PUT at the current engine of its key; serves as carry() of struct store_carrier. */
bool set_carry(struct store_carrier *sc, struct store_put *put);

/* ---- look.c ---- */

/* Starts a look-up of one key: of all kinds except those of buckets. op: first member of the caller's operation.
 * Returns the result of a start function (store.h). */
int set_look_key(struct store_port *sp, const struct store_look *l, struct store_op *op);

/* ---- read.c: objects of keys with two copies, as entries of store_set_ops ---- */

void set_close(struct store_port *sp, struct store_obj *obj);
uint32_t set_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
		       uint32_t *ret_skew);
int set_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
	     uint64_t off, uint32_t len);
bool set_read_cancel(struct store_port *sp, struct store_read *rd);
int set_obj_part(struct store_obj *obj, uint32_t nr, bool by_number, struct store_part *ret_part);

/* ---- set_list.c ---- */

int set_list(struct store_port *sp, struct store_list *ls);

/* ---- set_info.c ---- */

void set_disks_info(const struct store *st, struct store_move_info *ret_move,
		    struct store_copies_info *ret_copies);
const char *set_background(const struct store *st);

/* ---- bucket_make.c, bucket_remove.c, bucket_attrs.c ---- */

int set_bucket_create(struct store_port *sp, const struct store_change *sc, struct store_op *op);
int set_bucket_delete(struct store_port *sp, const struct store_change *sc, struct store_op *op);
/* Changes the attributes or the quota of a bucket. */
int set_bucket_set(struct store_port *sp, const struct store_change *sc, struct store_op *op);
int set_look_bucket(struct store_port *sp, const struct store_look *l, struct store_op *op);

#endif
