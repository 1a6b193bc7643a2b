/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys with two copies in a set: for set_*.c alone.
 *
 * The primary and the secondary of a key are in placement.h; the state of changes that both get is here.
 */
#ifndef GANTRY_SET_REPLICAS_H
#define GANTRY_SET_REPLICAS_H

#include "set/key_lock.h"
#include "set/set_int.h"

/* Who waits for what the table says to be so: go() comes through the mailbox.  Embedded by the caller. */
struct set_wait {
	struct mailbox *mb;
	void (*go)(struct msg *m);
	struct msg msg;
	struct list link;
};

struct set_copies {
	struct set_holds *holds;
	_Atomic bool is_used; /* there may be buckets with two copies; if not, no slot has a second */
	/* Counts how often slots were given seconds since the start, and says for which of these the keeper has seen to it that the firsts
	 * answer: a bucket is made behind that. */
	_Atomic unsigned paired, paired_kept;
	_Atomic uint32_t unsettled[SET_SLOTS]; /* changes that the first has, and the second perhaps not */
	_Atomic uint64_t away_since_ns[STORE_DISKS_MAX]; /* of a disk of that number; 0: it is in service */
	/* The keeper (replica_recover.c): it makes so what a new table says.  Under the lock. */
	pthread_mutex_t lock;
	bool is_keeping, again;
	struct list waiting, round; /* struct set_wait: for the next round; for this one */
	struct store_slots missed;  /* places of which a second has not all */
	bool has_missed;
	/* On the thread of its port, while it keeps. */
	struct set_port *keeper;
	struct set_turn turn;
	bool has_ended; /* what is left of the round is an alarm that will come */
	struct msg msg;
	struct disk_table table;
	struct store_slots places;
	struct store_slots_op op;
	struct leaving *leaving;
	int from, to;
	/* Counted since the start. */
	_Atomic uint64_t missed_nr, repaired_nr, read_second_nr;
};

/* ---- replicas.c ---- */

/* Makes it, or (NULL engines have no table) leaves it out.  0 or -ENOMEM. */
int set_copies_new(struct set *s);
void set_copies_free(struct set *s);
/* Says which engine is first and second of each slot, of the table, and whether there may be buckets with two copies; engine[] by
 * number. */
void set_copies_begin(struct set *s, const struct disk_table *t, const uint8_t engine[STORE_DISKS_MAX],
		      bool is_used);
/* Says that there are none any more: the table that says so is effective.  With the turn. */
void set_copies_end(struct set *s);
/* Makes of a caller's key one that says how many copies it has; true: two. */
bool set_has_two(struct store_port *sp, const struct store_key *k, struct store_key *ret_key);
/* Tells whether a bucket's keys have two copies. */
bool set_bucket_has_two(struct store_port *sp, const char *bucket, size_t len);

/* Makes pairs of disks, and then the first bucket with two copies, as set_bucket_create() does. */
int set_pair_first(struct set_port *p, const char *name, size_t len, unsigned copies, struct store_del *op);

int set_two_issue(struct set_port *p, const struct store_key *k, struct store_op *op,
		  const struct set_call *c);
/* A part of an upload in progress. */
struct set_part {
	const uint8_t *id;
	uint32_t number;
};
/* Opens an object, or (part) a part of an upload of that key; is_second: that copy, and no other. */
int set_two_open(struct set_port *p, const struct store_key *k, const struct set_part *part, bool is_second,
		 struct store_obj *obj);
/* Looks at an upload. */
int set_two_upload_stat(struct set_port *p, const struct store_key *k, const uint8_t *id, void *attrs,
			uint32_t cap, struct store_stat *st);
/* Lists the parts of one. */
int set_two_list_parts(struct set_port *p, const struct store_key *k, const uint8_t *id,
		       struct store_part_list *pl);
int set_two_put_init(struct set_port *p, struct store_put *put, const struct store_key *k, const uint8_t *id,
		     uint32_t number, uint64_t size_bytes);
/* Lets go of what only a copy on a disk that has failed is waited for. */
/* Changes, and pieces of PUTs. */
void set_two_poke(struct set_port *p);
void set_two_poke_writes(struct set_port *p);
/* Does what follows an open, or an init: for store_set_ops. */
void set_two_close(struct store_port *sp, struct store_obj *obj);
uint32_t set_two_read_plan(const struct store_obj *obj, uint64_t off, uint64_t want, uint32_t cap,
			   uint32_t *ret_skew);
int set_two_read(struct store_port *sp, struct store_obj *obj, struct store_read *rd, struct buf *buf,
		 uint64_t off, uint32_t len);
bool set_two_read_cancel(struct store_port *sp, struct store_read *rd);
int set_two_obj_part(struct store_obj *obj, uint32_t number, struct store_part *ret_part);
int set_two_obj_part_at(struct store_obj *obj, uint32_t index, struct store_part *ret_part);
int set_two_put_write(struct store_port *sp, struct store_put *put, struct store_write *w, struct buf *buf,
		      uint32_t len, bool last);
bool set_two_write_cancel(struct store_port *sp, struct store_write *w);
int set_two_put_commit(struct store_port *sp, struct store_put *put, const struct store_commit *c);
void set_two_put_abort(struct store_port *sp, struct store_put *put);

/* ---- replica_recover.c ---- */

/* Has the keeper look at the table: soon, on the thread of some port.  Any thread, without its lock. */
void set_keep(struct set *s);
/* Does so for what nobody was there to do: a port has come. */
void set_keep_on(struct set *s);
/* Says that seconds may be made full: a job of the mover's does it, at once or behind the one that runs.  Any thread; never blocks. */
void set_heal(struct set *s);
/* Waits until it has, from now on: w->go() will run. */
void set_wait_kept(struct set *s, struct set_wait *w);
/* Says that the second of a place has not all that the first has: it is not full in the next table.  set_wait_kept() follows. */
void set_miss(struct set *s, unsigned place);

/* Tells whether slots have seconds, and firsts that answer, so that a bucket with two copies may be made; of engines without a table nobody
 * asks. */
static inline bool
set_has_pairs(const struct set *s)
{
	const struct set_copies *c = s->copies;

	return !c || (atomic_load(&c->is_used) && atomic_load(&c->paired) == atomic_load(&c->paired_kept));
}

#endif
