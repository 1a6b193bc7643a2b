/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rebalancer of a set: a thread that moves slots from one engine to another and changes the members, one
 * job at a time. Private to move_*.c, disk_*.c and pair_plan.c; rebalance.h is the interface for other files.
 *
 * struct move_changed (changed keys) is private to move_keys.c, struct move_sender (keys in flight) to
 * move_send.c.
 */
#ifndef GANTRY_SET_MOVER_H
#define GANTRY_SET_MOVER_H

#include "base/buf.h"
#include "set/key_lock.h"
#include "set/set_int.h"
#include "store/user.h"

#include <pthread.h>

#ifndef MOVE_SENDS
#define MOVE_SENDS 16  /* keys in flight at a time */
#define MOVE_SLOTS 256 /* slots that are moved together */
#endif

/* A key, with a link of its list. */
struct move_key {
	struct move_key *next;
	uint16_t bucket_len, key_len;
	uint8_t copies;
	char name[]; /* bucket, then key */
};

/* A set of keys. */
#define MOVE_KEY_LISTS 4096
struct move_keys {
	struct move_key *list[MOVE_KEY_LISTS];
	size_t nr;
};

enum mover_job { JOB_NONE, JOB_MOVE, JOB_HEAL, JOB_DRAIN, JOB_ADD };

/* The change to be made for m->slots, from engine to engine. */
enum move_kind {
	MOVE_HOME,  /* keys with one copy: they move to the target */
	MOVE_FIRST, /* keys with two copies, from the primary: the target becomes primary in its place */
	/* from the primary: the target becomes secondary, in place of the previous secondary, if any */
	MOVE_SECOND,
	MOVE_SWAP /* the in-sync secondary becomes primary, and the primary secondary */
};

struct mover {
	struct set *set;
	pthread_t thread;
	bool has_thread; /* the thread must be joined; owned by callers under job_lock */
	pthread_mutex_t job_lock;
	_Atomic bool is_over;  /* the thread has finished its job */
	_Atomic bool stop;     /* the set ends */
	_Atomic bool cancel;   /* the job was asked to cancel */
	_Atomic uint64_t rate; /* bytes a second; 0: no limit */

	/* Requests of callers and their answers; under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	enum mover_job job;
	/* secondaries may need resynchronisation, by the current job or by a separate one */
	bool heal_wanted;
	_Atomic bool yields; /* the job is a resynchronisation, and another one is requested */
	int unit;            /* JOB_DRAIN: number of the unit */
	char path[256];      /* JOB_ADD */
	uint64_t size_bytes;
	uint64_t index_bytes; /* result: memory limit of the new engine's index */
	bool force;
	bool is_answered;
	int answer;
	bool cancel_is_answered; /* the latest request to cancel is answered; the answer is in cancelled */
	int cancelled;
	char said[512];
	struct store_move_info info;
	/* end of the wait for a disk that is away; 0: no wait, or the time is unknown */
	uint64_t waits_until_ns;
	uint64_t bytes_of_slots; /* part of info.bytes_done in the slots being moved */

	/* Private to the thread. */
	struct store_user *user; /* user of the thread; NULL: none now */
	struct mailbox mb;
	struct set_turn turn;
	bool has_gone; /* turn.go() has run */
	bool gives_up; /* the job is being cancelled */
	struct move_sender *sender;
	enum move_kind kind;
	struct store_slots slots, stuck;
	struct move_changed *changed; /* changed keys, with a separate lock; any thread */
};

/* ---- mover_turn.c ---- */

/* Turns the thread's loop once, for at most a millisecond. */
void move_turn(struct mover *m);
/* Takes the map change lock, with an effective map. -EROFS: no map is effective, and the lock is not held. */
int move_take_turn(struct mover *m);
void move_give_turn(struct mover *m);
/* Writes a map, see set_change_table(), and returns the result. */
int move_change_table(struct mover *m, const struct disk_table *next, uint64_t all, uint64_t needs);
/* Waits for a barrier of all ports: 0, or the error of a port. */
int move_visit(struct mover *m);
/* Returns true if the job must end now: the set ends, or the job is cancelled or yields. */
bool move_is_to_end(const struct mover *m);
/* Returns the rebalancer's port at an engine. */
struct store_port *move_port(struct mover *m, int engine);

/* ---- move_keys.c ---- */

/* Makes the memory of changed keys. 0 or -ENOMEM. */
int move_changed_new(struct move_changed **ret_changed);
/* Frees the memory of changed keys. */
void move_changed_free(struct move_changed *ch);
/* Begins to note changed keys, from an empty list. False: no memory. */
bool move_begin_noting(struct mover *m);
/* Stops noting changed keys, and drops the keys. */
void move_end_noting(struct mover *m);
/* Notes a key that was changed.  Any thread. */
void move_note(struct mover *m, const struct store_key *k);
/* Notes a change reported by an engine: serves as changed() of struct store_slots_op, with the mover as
 * cookie. */
void move_on_change(void *cookie, const struct store_key *k);
/* Frees keys; NULL is allowed. */
void move_keys_free(struct move_keys *keys);
/* Takes the keys changed so far. NULL: no memory. *ret_lost: some changed keys are unknown. */
struct move_keys *move_take_changed(struct mover *m, bool *ret_lost);
/* Counts the keys changed since they were last taken; SIZE_MAX: some are unknown. */
size_t move_changed_nr(struct mover *m);

/* ---- move_send.c ---- */

/* Makes the memory of keys in flight. 0 or -ENOMEM. */
int move_sender_new(struct mover *m);
/* Frees the memory of keys in flight; no key is in flight. */
void move_sender_free(struct move_sender *sn);
/* Allocates the buffers of keys in flight. 0 or -errno. */
int move_begin_sends(struct mover *m);
/* Frees the buffers of keys in flight. */
void move_end_sends(struct mover *m);
/* Sets a time of clock_ns() until which sends continue, without pacing; 0: paced and without end. */
void move_limit_sends(struct mover *m, uint64_t until_ns);
/* Clears the error of earlier sends. */
void move_forget_error(struct mover *m);
/* Returns the number of keys of the job that could not be read. */
uint64_t move_damaged(const struct mover *m);
/* Resets the number of keys that could not be read. */
void move_forget_damaged(struct mover *m);
/* Waits for the keys in flight. 0, or the most important error. */
int move_sends_end(struct mover *m);
/* Sends all records of an engine in these slots, or (to NULL) removes them. */
int move_walk(struct mover *m, int of, struct store_port *from, struct store_port *to,
	      const struct store_slots *slots);
/* Pushes all keys of m->slots; removes keys at the target that the source does not have (M22). */
int move_walk_both(struct mover *m, int from, int to);
/* Pushes the keys changed so far. *ret_lost: some changed keys are unknown. */
int move_send_changed(struct mover *m, int from, int to, bool *ret_lost);
/* Processes the unreadable keys, with no key in flight, and empties their list. mends: the keys are repaired
 * if possible. Returns true if the list had keys. */
bool move_end_rotten(struct mover *m, int first, bool mends);

/* ---- move_slots.c ---- */

/*
 * Moves m->slots from one engine to another. 0: moved. Otherwise the slots remain at the source, their
 * records at the target are foreign, and: -EINTR, the job is cancelled or the set ends; -EAGAIN, possible
 * later; -EBADMSG, a record is unreadable; -ENOSPC; -EROFS, one of the disks has failed, or the store is
 * read-only.
 */
int move_slots(struct mover *m, int from, int to);
/* Removes the engines' foreign records, except on engine `but` (-1: none). */
int move_clean(struct mover *m, int but);

/* ---- pair_plan.c ---- */

/*
 * Finds the next slots of keys with two copies for m->slots, and their change. 1: found; 0: none; -EAGAIN:
 * some slots wait for a disk to return or to be replaced. -EINTR: the map has changed.
 */
int move_next_pairs(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to);
/* Changes a map: moves a slot, by its number below STORE_SLOT_NR, to the disk with the number `to`. */
void move_change_pair(struct disk_table *t, enum move_kind kind, int slot, int to);
/* Changes a map to the final one of a drain, for keys with two copies: step by step, as move_next_pairs()
 * does while all members serve. */
void move_plan_drain(const struct set *s, struct disk_table *t);

/* ---- move_plan.c ---- */

/* Returns true if a disk is being drained or filled. */
bool move_members_change(const struct disk_table *t);
/* Returns true if slots remain to be moved, or secondary copies to be made. */
bool move_is_under_way(struct set *s, const struct disk_table *t);
/* Returns true if an engine has foreign records, which remain after a move that ended while its disk was
 * away. */
bool move_has_leftovers(const struct set *s);
/* Finds the next slots to move from one engine to one other. False: none, or none that can move now (stuck,
 * or a disk is missing). */
bool move_next_slots(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to, int *ret_left);
/* Counts the slots and bytes to move by the placement map t, for operators. */
void move_begin_count(struct mover *m, const struct disk_table *t);
/* Notes the progress by the placement map: a slot may move in several steps, and again after the failure of a
 * disk. */
void move_note_progress(struct mover *m, const struct disk_table *t);
/* Checks that every other disk has room for the records that it would receive. 0, or -errno with a sentence
 * in said. */
int move_check_room(struct set *s, int engine, char *said, size_t len);

/* ---- disk_leave.c ---- */

/* Sets the bits of disks that drain and fill in the placement map. -EPERM: too few disks would remain. */
int move_set_bits(struct mover *m, uint64_t draining, uint64_t filling);
/* Removes a drained engine from the placement map. 0; -EBUSY: a disk is away; -EINTR: the engine has slots
 * again; or an error of move_change_table(). */
int move_leave(struct mover *m, int engine);

/* ---- disk_add.c ---- */

/* Makes, opens and adds the disk of m->path.  0 or -errno, with the reason in m->said. */
int move_add(struct mover *m);

/* ---- move_trouble.c ---- */

/* Sets the reason of a standstill; an empty text: none. */
void move_trouble(struct mover *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the reason for an error r of a step. */
void move_explain(struct mover *m, int r);
/* Sets the reason of a standstill to the disk that is away. */
void move_explain_wait(struct mover *m);

/* ---- move_job.c ---- */

/* Returns true if a job is in progress that does not yield. */
bool move_has_job(struct mover *m);
/* Begins a job, in place of a resynchronisation in progress. 0, -EBUSY or -errno. The caller has job_lock. */
int move_begin_thread(struct mover *m, enum mover_job job);
/* Waits for the job's first answer, and returns it. */
int move_wait_for_answer(struct mover *m);
/* Begins a requested resynchronisation if no job is in progress; does nothing if another thread is in this
 * function. */
void move_heal_if_wanted(struct mover *m);

#endif
