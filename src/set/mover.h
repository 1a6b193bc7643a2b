/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mover of a set: a thread that takes slots from one engine to another and changes who the members are, one job at a time.
 * For move_slots.c (slots) and disk_admin.c (jobs) alone.
 */
#ifndef GANTRY_SET_MOVER_H
#define GANTRY_SET_MOVER_H

#include "base/buf.h"
#include "set/key_lock.h"
#include "set/set_int.h"
#include "store/user.h"

#include <pthread.h>

#ifndef MOVE_SENDS
#define MOVE_SENDS 16  /* keys on their way at once */
#define MOVE_SLOTS 256 /* slots that are moved together */
#endif

/* A key that was changed while its slot is filled elsewhere. */
struct move_key {
	struct move_key *next;
	uint16_t bucket_len, key_len;
	uint8_t copies;
	char name[]; /* bucket, then key */
};

#define MOVE_ROTTEN_MAX 4096 /* damaged keys that are remembered; those behind them are found again */

/* Keys, each once. */
#define MOVE_KEY_LISTS 4096
struct move_keys {
	struct move_key *list[MOVE_KEY_LISTS];
	size_t nr;
};

enum mover_job { JOB_NONE, JOB_MOVE, JOB_HEAL, JOB_DRAIN, JOB_ADD };

/* What becomes of m->slots, from engine to engine. */
enum move_kind {
	MOVE_HOME,   /* of keys with one copy: they go there */
	MOVE_FIRST,  /* of keys with two, from the first: it becomes the first in its place */
	MOVE_SECOND, /* from the first: it becomes the second, in place of another one or of none */
	MOVE_SWAP    /* the second, which is full, becomes the first, and the first the second */
};

struct mover {
	struct set *set;
	pthread_t thread;
	bool has_thread; /* to be joined; its callers' under job_lock */
	pthread_mutex_t job_lock;
	_Atomic bool is_over;  /* what the thread was begun for */
	_Atomic bool stop;     /* the set ends */
	_Atomic bool cancel;   /* of the job: it was asked for */
	_Atomic uint64_t rate; /* bytes a second; 0: unpaced */

	/* Under the lock: what callers ask and are told. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	enum mover_job job;
	bool heal_wanted;    /* seconds may be made full: by the job that runs, or by one of their own */
	_Atomic bool yields; /* the job is healing, and another one is asked for */
	int unit;            /* JOB_DRAIN: of the set's members */
	char path[256];      /* JOB_ADD */
	uint64_t size_bytes;
	uint64_t index_bytes; /* out: what its index may take */
	bool force;
	bool is_answered;
	int answer;
	bool cancel_is_answered; /* of the one that asked last; cancelled is what it is told */
	int cancelled;
	char said[512];
	struct store_move_info info;
	uint64_t
		waits_until_ns; /* it waits for a disk that is away; 0: it does not, or it is not known how long */
	uint64_t bytes_of_slots; /* of info.bytes_done: those of the slots that are being moved */

	/* The thread's own. */
	struct store_user *user; /* NULL: none now */
	struct mailbox mb;
	struct set_turn turn;
	bool has_gone; /* t->go() has run */
	struct bufpool bufs;
	struct move_send {
		struct store_send s;
		struct mover *m;
		struct store_port *from, *to;
		bool is_busy;
		char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
	} send[MOVE_SENDS];
	int sending;
	int error;         /* the first of the sends */
	double may;        /* bytes that may be read now; less than 0: owed */
	uint64_t paced_ns; /* as of then */
	uint64_t limit_ns; /* until when sends may go on; 0: without end */
	bool gives_up;     /* the job is cancelled, until it is over */
	uint64_t damaged;  /* keys that could not be read */
	/* Of them, those with two copies, which may be mended from the other one. */
	struct move_key *rotten;
	int rotten_nr;
	struct set_hold hold;
	bool has_hold; /* hold.go() has run */
	enum move_kind kind;
	struct store_slots slots, stuck;

	pthread_mutex_t keys_lock;
	struct move_keys *changed; /* since they were last taken */
	bool no_memory;            /* some are not in it */
};

/* ---- move_slots.c ---- */

/* Turns the thread's loop once, a millisecond at most. */
void move_turn(struct mover *m);
/* Takes the turn of changes, with a table that is effective.  -EROFS: there is none, and no turn. */
int move_take_turn(struct mover *m);
void move_give_turn(struct mover *m);
/* Has a table written, see set_change_table(): what came of it. */
int move_change_table(struct mover *m, const struct disk_table *next, uint64_t all, uint64_t needs);
/* Visits all ports: 0, or the error of one. */
int move_visit(struct mover *m);
/*
 * Takes m->slots from one engine to another: 0, they are there.  Else they are where they were, what has come is a leftover there, and:
 * -EINTR, the job is cancelled or the set ends; -EAGAIN, later perhaps; -EBADMSG, something of them cannot be read; -ENOSPC;
 * -EROFS, one of the disks has failed, or all is read-only.
 */
int move_slots(struct mover *m, int from, int to);
/*
 * Finds the next slots of keys with two copies for m->slots, and what is to become of them.  1: there are some; 0: none; -EAGAIN: some
 * wait for a disk to come back, or for another one to take its place.  -EINTR: the table is another
 * one now.
 */
int move_next_pairs(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to);
/* Tells whether there are any, now or when their time comes. */
bool move_pairs_wait(struct set *s, const struct disk_table *t);
/* Makes a table one in which such a slot, by its number below STORE_SLOT_NR, has gone to a disk of that number. */
void move_change_pair(struct disk_table *t, enum move_kind kind, int slot, int to);
/* Makes a table the one that a drain ends with, of keys with two copies: step by step, as move_next_pairs() goes while all serve. */
void move_plan_drain(const struct set *s, struct disk_table *t);
/* Says how large members that are there are, by number. */
void move_sizes(const struct set *s, uint64_t ret_size[STORE_DISKS_MAX]);
/* Removes what engines have of slots that are not theirs, but for engine `but` (-1: none). */
int move_clean(struct mover *m, int but);

#endif
