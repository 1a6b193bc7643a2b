/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the set: what its files share.  See set.h.
 *
 * Lock order: mover.job_lock, mover.lock, set.lock, set_members.lock, a key lock's shard, set_ports.lock.  A thread that has one of them takes only later
 * ones, and all but job_lock are held for moments.
 */
#ifndef GANTRY_SET_INT_H
#define GANTRY_SET_INT_H

#include "base/buf.h"
#include "base/list.h"
#include "base/mailbox.h"
#include "set/members.h"
#include "set/ports.h"
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
	struct store_conf conf;      /* what engines are made from, without disks */
	struct set_members *members; /* members.h */
	struct quota_book *quotas;   /* each engine is a counter of it */
	_Atomic uint8_t home
		[SET_PLACES]; /* which engine has a place: of keys with two copies, which is their first */
	struct set_copies *copies; /* replicas.h; NULL: engines have no table */
	_Atomic uint64_t
		home_changes; /* grows between that a slot's new engine shows it and that the old one does not */
	_Atomic uint64_t buckets_removed; /* so many were, or were begun to be */
	_Atomic uint64_t last_made_ns;    /* time that was given to a bucket last */
	_Atomic bool is_moving;           /* slots may change hands: set_issue() */
	_Atomic int through;              /* changes of buckets under way that take no turns */
	struct store_watch watch;         /* of all engines */
	struct set_ports *ports;          /* ports.h */
	struct mover *mover;              /* move_slots.c; NULL: engines cannot give slots away */
	/* map_change.c.  Bitmaps of engines. */
	_Atomic uint64_t all; /* those of members: without such as were drained, or not yet made members */
	_Atomic uint64_t in;  /* those in service: of the newest table that all of them have */
	_Atomic int head;     /* the engine that is asked about buckets */
	_Atomic bool is_read_only; /* fewer than half of the members are in service (M9) */
	pthread_mutex_t lock;      /* the rest */
	bool is_changing;          /* a change of buckets, or of the table, has its turn */
	struct list waiting;       /* struct set_turn: those whose turn comes */
	struct set_turn *holder;   /* who has the turn; NULL: nobody, or a change of the table alone */
	struct set_turn *settling; /* who has the turn waits for the table; NULL: nobody does */
	bool has_table;            /* there is a table, and everything serves */
	struct disk_table table;   /* the newest that was begun */
	/* What the change of the table that is under way falls back to when one of these engines fails. */
	struct disk_table before;
	uint64_t needs;
	uint64_t
		other; /* engines of the members of the other one: of that before, or of that which was given up */
	int other_nr;              /* so many members that one has; 0: no change is under way */
	uint64_t all_next;         /* all, when it is effective */
	int change;                /* 0, or it fell back */
	uint64_t start_no;         /* of this start */
	uint64_t begun, unwritten; /* who is in it, and of those who have not written it yet */
	struct set_table_write {
		struct store_table_write w;
		struct set *set;
		int engine;
	} write[STORE_SET_MAX];
	/* Buckets that were made or removed while an engine was out of service, by name. */
	struct set_missed {
		uint64_t
			engines; /* that were out of service then: others have it as it was when they failed */
		uint8_t len;
		bool is_there;
		char name[STORE_BUCKET_MAX];
	} * missed;
	size_t missed_nr, missed_cap;
};

/* Who has the turn of changes, or waits for it, or for the table: go() comes through the mailbox. */
struct set_turn {
	struct list link; /* of set.waiting */
	struct msg msg;
	struct mailbox *mb;
	void (*go)(struct msg *m);
	/* An engine failed, which who has the turn may wait for. */
	struct msg alarm;
	void (*on_alarm)(struct msg *m);
	bool is_alarmed; /* that is on its way; under set.lock */
};

static inline struct set *
set_of(const struct store *st)
{
	return container_of(st, struct set, base);
}

static inline unsigned
set_slot(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len);
}

/* Returns the number of the engine that has a key, or SET_NOWHERE. */
static inline int
set_home(const struct set *s, const struct store_key *k)
{
	return set_units(s) == 1 ? 0 : atomic_load_explicit(&s->home[store_place(k)], memory_order_acquire);
}

/* Tells whether there are keys with two copies of which neither can be asked. */
static inline bool
set_misses_places(const struct set *s)
{
	for (int i = STORE_SLOT_NR; set_misses_some(s) && i < STORE_PLACE_NR; i++) {
		if (atomic_load_explicit(&s->home[i], memory_order_relaxed) == SET_NOWHERE)
			return true;
	}
	return false;
}

/* Tells whether an engine is in service. */
static inline bool
set_is_in(const struct set *s, int engine)
{
	return atomic_load(&s->in) >> engine & 1;
}

static inline uint64_t
set_all(const struct set *s)
{
	return atomic_load(&s->all);
}

/* ---- attach.c ---- */

int set_attach(struct store *st, struct ring *ring, struct mailbox *mb, struct timers *timers,
	       struct store_port **ret_port);
bool set_detach(struct store_port *sp);
void set_quiesce(struct store_port *sp);
void set_sleep(struct store_port *sp);
void set_wake(struct store_port *sp);

/* ---- port_write.c ---- */

/* Begins a PUT, or (id) a part, on that engine, which is carried elsewhere if its key goes there. */
int set_engine_put_init(struct set_port *p, struct store_port *e, struct store_put *put,
			const struct store_key *k, const uint8_t *id, uint32_t number, uint64_t size_bytes);
/* Returns the port of the engine that has a key, to put something there; nothing is put elsewhere.  NULL: *ret_error is the answer. */
struct store_port *set_port_to_write(struct store_port *sp, const struct store_key *k, int *ret_error);

/* ---- failure.c ---- */

/* Makes the watch, before there is an engine. */
void set_failure_init(struct set *s);

/* ---- start_call.c, issue.c ---- */

/* A change of one key in one step; pointers as those of the call of store.h. */
struct set_call {
	enum {
		CALL_DELETE,
		CALL_SET_ATTRS,
		CALL_CREATE,
		CALL_ABORT,
		CALL_COMPLETE,
		CALL_PUT
	} kind;                      /* PUT: two_change.c alone */
	const struct store_pre *pre; /* NULL: none */
	uint64_t version;
	const void *attrs;
	uint32_t attrs_len;
	const uint8_t *id; /* NULL: none */
};
/* Starts it, on the engine that has the key.  op is the first member of what the call has. */
int set_issue(struct store_port *sp, const struct store_key *k, struct store_op *op,
	      const struct set_call *c);
/* Starts it on one engine. */
int set_start_call(struct store_port *e, const struct store_key *k, struct store_op *op,
		   const struct set_call *c);
/* Gives a caller what came of a completion. */
void set_give_completed(struct store_complete *to, const struct store_complete *from);

/* ---- carry_put.c ---- */

/* Brings a PUT to where its key is now: struct store_carrier of set_port. */
bool set_carry(struct store_carrier *sc, struct store_put *put);

/* ---- disk_admin.c ---- */

/* Makes the mover, which goes on with what the table says. */
int set_move_begin(struct set *s, char *err, size_t err_len);
/* Ends what it does, before engines stop. */
void set_move_end(struct set *s);
int set_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len);
void set_move_info(const struct store *st, struct store_move_info *ret_info);
void set_move_rate(struct store *st, uint64_t bytes);

/* ---- set_list.c ---- */

int set_list(struct store_port *sp, struct store_list *ls);
int set_list_uploads(struct store_port *sp, struct store_list *ls);

/* ---- set_info.c ---- */

void set_copies_info(const struct store *st, struct store_copies_info *ret_info);
const char *set_background(const struct store *st);

/* ---- map_change.c: the table in service, and whose turn it is ---- */

/* Says that all engines are there, and what the table is, if they have one.  Before there is a port. */
void set_table_begin(struct set *s, const struct disk_table *t, uint64_t start_no);
/* Says that an engine has failed.  Any thread. */
void set_table_failed(struct set *s);
/* Says that engines are about to stop. */
void set_table_end(struct set *s);
/* Takes the turn (true), or waits for it: t->go() will run. */
bool set_take_turn(struct set *s, struct set_turn *t);
/* Gives it to the one that waits longest.  True: t->on_alarm() will still run. */
bool set_give_turn(struct set *s, struct set_turn *t);
/* Says that on_alarm() runs: it may come again. */
void set_hear_alarm(struct set *s, struct set_turn *t);
/* Sees to it that no engine that is in service has failed.  True: none has, or all is read-only.  False: a table without those
 * that have is being written (M15), and t->go() will run.  For who has the turn. */
bool set_settle(struct set *s, struct set_turn *t);
/* Returns the engine of the disk with that number in the table, or -1. */
int set_engine_of(const struct set *s, int number);
/* Copies the newest table.  For who has the turn: with set_settle() before, the one that is effective. */
void set_get_table(struct set *s, struct disk_table *ret_table);
/*
 * Has a table written in place of the one there is: `all` is what the members' engines are by it, `needs` those without which
 * it is none.  True: it is over; false: t->go() will run.  For who has the turn, after set_settle().
 */
bool set_change_table(struct set *s, struct set_turn *t, const struct disk_table *next, uint64_t all,
		      uint64_t needs);
/* Returns what came of it: 0, it is effective; -EIO, it fell back to what was before; -EROFS, all is read-only, and the next start
 * may find the one or the other. */
int set_change_result(struct set *s);
/* Tells whether changes of buckets are made on an engine.  For who has the turn. */
bool set_counts(const struct set *s, int engine);
/* Lets the first engine in service answer about buckets from now on.  For who has the turn. */
void set_new_head(struct set *s);

/* ---- missed.c ---- */

/* Makes sure that there is memory for one more bucket that engines miss.  For who has the turn.  0 or -ENOMEM. */
int set_expect_missed(struct set *s);
/* Notes that a bucket was made, or removed, which engines that are out of service do not know, but for those that do. */
void set_note_missed(struct set *s, const char *name, size_t len, bool is_there, uint64_t but);
/* Tells whether an engine may have been missed by a change of that bucket; what it has of it counts for nothing then. */
bool set_has_missed(struct set *s, int engine, const char *name, size_t len, bool *ret_is_there);

/* ---- bucket_make.c, bucket_remove.c, bucket_attrs.c, bucket_look.c ---- */

int set_bucket_create(struct store_port *sp, const char *name, size_t len, unsigned copies,
		      struct store_del *op);
int set_bucket_delete(struct store_port *sp, const char *name, size_t len, struct store_del *op);
int set_bucket_head(struct store_port *sp, const char *name, size_t len, struct store_stat *st);
int set_bucket_set_attrs(struct store_port *sp, const char *name, size_t len, uint64_t version,
			 const void *attrs, uint32_t attrs_len, struct store_bucket_set *op);
int set_bucket_set_quota(struct store_port *sp, const char *name, size_t len, const struct store_use *max,
			 struct store_bucket_set *op);
/*
 * Versions of attributes are an engine's own: what was read from one must not by chance be what another one has when it judges
 * in its place.  So callers get them with the engine's number.
 */
uint64_t set_attrs_version(uint64_t version, int engine);
int set_list_buckets(struct store_port *sp, struct store_list *ls);
int set_bucket_get_attrs(struct store_port *sp, const char *name, size_t len, void *attrs, uint32_t cap,
			 struct store_stat *st);

#endif
