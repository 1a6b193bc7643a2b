/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover - the inside of a set's rebalancer: a thread that moves slots from one engine to another and changes
 * the members, one job at a time. This header is private to move_*.c, disk_*.c and pair_plan.c; rebalance.h
 * is the interface for other files.
 */
#ifndef GANTRY_SET_MOVER_H
#define GANTRY_SET_MOVER_H

#include "base/buf.h"
#include "set/key_lock.h"
#include "set/set_int.h"
#include "store/key_copy.h"
#include "store/user.h"

#include <pthread.h>

#ifndef MOVE_SENDS
#define MOVE_SENDS 16  /* largest number of keys in flight at a time */
#define MOVE_SLOTS 256 /* largest number of slots that move together */
#endif

/* A key in a list of keys, with the link of the list. */
struct move_key {
	struct move_key *next;
	struct store_key key; /* stored in name[] */
	char name[];
};

/* number of hash lists in a set of keys */
#define MOVE_KEY_LISTS 4096
struct move_keys {
	struct move_key *list[MOVE_KEY_LISTS];
	size_t nr;
};

enum mover_job { JOB_NONE, JOB_MOVE, JOB_HEAL, JOB_DRAIN, JOB_ADD };

/* The kind of move: the change of the map for the slots of m->slots. */
enum move_kind {
	MOVE_HOME,  /* slots of keys with one copy move to the target */
	MOVE_FIRST, /* slots of keys with two copies: the target becomes primary in place of the source */
	/* slots of keys with two copies: the target becomes secondary, in place of the previous one; the
	 * primary sends the keys */
	MOVE_SECOND,
	MOVE_SWAP /* slots of keys with two copies: primary and secondary (in sync) swap their roles */
};

/* The keys that have changed while their slots are sent (mover.c). Any thread. */
struct move_changed {
	pthread_mutex_t lock;
	/* keys that changed since the last call of move_take_changed(); NULL: changes are not recorded */
	struct move_keys *keys;
	bool no_memory; /* true: some changed keys are missing from `keys`, for lack of memory */
};

/* The keys in flight (move_send.c). */
struct move_sender {
	struct bufpool bufs;
	bool has_bufs;
	struct move_send {
		struct store_send s;
		struct mover *m;
		struct store_port *to; /* target of the key; NULL: the key is removed */
		bool is_busy;
		char name[KEY_NAME_MAX];
	} send[MOVE_SENDS];
	int sending;
	int error; /* most important error of the sends so far; 0: no error */
	/* number of bytes that the rate allows to be read now; negative: number of bytes read beyond the
	 * rate */
	double may;
	uint64_t paced_ns; /* time of clock_ns() at which `may` was computed */
	/* time of clock_ns() until which sends continue at full rate; 0: no end, and the rate is limited */
	uint64_t limit_ns;
	uint64_t damaged; /* number of keys that could not be read in this job */
	/* list of damaged keys with two copies, which may be repaired from the other copy */
	struct move_key *rotten;
	int rotten_nr;
	struct set_hold hold;
	bool has_hold; /* true: hold.go() has run */
};

struct mover {
	struct set *set;
	pthread_t thread;
	bool has_thread; /* true: the thread must be joined; protected by job_lock */
	pthread_mutex_t job_lock;
	_Atomic bool is_over;  /* true: the thread has finished its job */
	_Atomic bool stop;     /* true: the set ends, so the job must end */
	_Atomic bool cancel;   /* true: an operator asked to cancel the job */
	_Atomic bool cleans;   /* true: foreign records are being removed (move_clean()) */
	_Atomic uint64_t rate; /* limit of the bytes that moves read in a second; 0: no limit */

	/* Protects the requests and answers of callers: the fields from here to waits_until_ns. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	enum mover_job job;
	/* true: secondaries may need resynchronisation, by the current job or by a separate one */
	bool heal_wanted;
	/* true: the current resynchronisation must end, because another job is requested */
	_Atomic bool yields;
	int unit;       /* number of the unit to drain, for JOB_DRAIN */
	char path[256]; /* path of the disk to add, for JOB_ADD */
	uint64_t size_bytes;
	uint64_t index_bytes; /* result of JOB_ADD: memory limit of the new engine's index, in bytes */
	bool force;
	/* function to call before the disk of JOB_ADD becomes a member; NULL: no function is called */
	void (*joins)(void *cookie, const uint8_t uuid[UUID_BYTES]);
	void *joins_cookie;
	bool is_answered;
	int answer;
	/* true: the latest cancel request was answered; the answer is in `cancelled` */
	bool cancel_is_answered;
	int cancelled;
	char said[512];
	struct store_move_info info;
	/* time of clock_ns() at which the wait for an away disk ends; 0: no wait, or the time is unknown */
	uint64_t waits_until_ns;

	/* The fields from here on are private to the thread of the rebalancer, except `changed`. */
	/* access of this thread to the store; NULL: the thread has none at present */
	struct store_user *user;
	struct mailbox mb;
	struct set_turn turn;
	bool has_gone;           /* true: turn.go() has run */
	bool gives_up;           /* true: the job ends early, because an operator cancelled it */
	struct disk_table table; /* newest map at the beginning of the step of the job */
	struct disk_table next;  /* map that is being made: move_take_turn() begins it with the newest map */
	struct move_sender sender;
	enum move_kind kind;
	struct store_slots slots, stuck;
	struct store_slots_op op,
		watch; /* requests to the engines of a move; watch: for the reports of changes */
	struct move_changed changed;
};

/* ---- mover.c ---- */

/* Runs the thread's event loop once, for at most a millisecond. */
void move_turn(struct mover *m);
/* Takes the map change lock, waits until the map is effective, and copies the map to m->next. Returns 0, or
 * -EROFS if the set is read-only; the lock is then not held. */
int move_take_turn(struct mover *m);
void move_give_turn(struct mover *m);
/* Writes the map m->next with set_change_table(), waits for the end of the write, and returns
 * set_change_result(). all: bitmap of the engines whose disks are members of m->next; needs: bitmap of the
 * engines without which m->next must not become effective. */
int move_change_table(struct mover *m, uint64_t all, uint64_t needs);
/* Runs a barrier of all ports and waits for its end. Returns 0, or the error of a port. */
int move_visit(struct mover *m);
/* Returns true if the job must end now: the set ends, the job is cancelled, or another job is requested to
 * which this resynchronisation yields. */
bool move_is_to_end(const struct mover *m);
/* Returns the rebalancer's own port at an engine. */
struct store_port *move_port(struct mover *m, int engine);

/* Begins to note changed keys, with an empty list. Returns false if there is no memory. */
bool move_begin_noting(struct mover *m);
/* Stops noting changed keys, and empties the list. */
void move_end_noting(struct mover *m);
/* Notes a key that was changed. Any thread may call this function. */
void move_note(struct mover *m, const struct store_key *k);
/* Notes a change reported by an engine. Used as changed() of struct store_slots_op, with the mover as
 * cookie. */
void move_on_change(void *cookie, const struct store_key *k);
/* Frees a set of keys. NULL is allowed. */
void move_keys_free(struct move_keys *keys);
/* Returns the list of keys changed since the last call, and begins an empty list. Returns NULL if there is no
 * memory. *ret_lost is true if some changed keys are unknown. */
struct move_keys *move_take_changed(struct mover *m, bool *ret_lost);
/* Returns the number of keys changed since they were last taken; SIZE_MAX: some are unknown. */
size_t move_changed_nr(struct mover *m);

/* Sets the reason for which the job makes no progress; an empty text: the job makes progress. */
void move_trouble(struct mover *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the reason that operators see for the error r of a step. */
void move_explain(struct mover *m, int r);
/* Sets the reason that operators see: the job waits for a disk that is away. */
void move_explain_wait(struct mover *m);

/* ---- move_send.c ---- */

/* Allocates the buffers for keys in flight. Returns 0 or -errno. */
int move_begin_sends(struct mover *m);
/* Frees the buffers for keys in flight. */
void move_end_sends(struct mover *m);
/* Waits until no key is in flight. Returns 0, or the most important error of a send. */
int move_sends_end(struct mover *m);
/* Lists the keys that the engine with index `of` has in `slots`, and begins to push each key from port `from`
 * to port `to`; or, with `to` NULL, begins to remove each key from `from`. Some keys can still be in flight
 * at the return: see move_sends_end(). Returns 0 or -errno. */
int move_walk(struct mover *m, int of, struct store_port *from, struct store_port *to,
	      const struct store_slots *slots);
/* Pushes all keys of m->slots from the source to the target, and removes from the target the keys that the
 * source does not have (M22). Returns 0 or -errno. */
int move_walk_both(struct mover *m, int from, int to);
/* Pushes the keys that changed since the list of changed keys was last taken. *ret_lost is true if some
 * changed keys are unknown. Returns 0 or -errno. */
int move_send_changed(struct mover *m, int from, int to, bool *ret_lost);
/* Empties the list of unreadable keys while no key is in flight. mends: first repairs each key on the
 * primary, engine `first`, from its secondary if possible. Returns true if a key was repaired. */
bool move_end_rotten(struct mover *m, int first, bool mends);

/* ---- move_slots.c ---- */

/*
 * Moves m->slots from one engine to another. Returns 0 if the slots have moved. After an error the slots
 * remain at the source, and their records at the target are foreign. Errors: -EINTR: the job is cancelled or
 * the set ends; -EAGAIN: the move can be tried again later; -EBADMSG: a record is unreadable; -ENOSPC: the
 * target is full; -EROFS: a disk has failed, or the store is read-only.
 */
int move_slots(struct mover *m, int from, int to);
/* Removes the foreign records of all engines, except those of engine `but` (-1: no exception). */
int move_clean(struct mover *m, int but);

/* ---- pair_plan.c ---- */

/* Finds the next slots of keys with two copies to move, and sets m->slots and m->kind. Returns 1 if slots
 * were found; 0: no slot is to move; -EAGAIN: some slots wait for a disk to return or to be replaced; -EINTR:
 * the map has changed. */
int move_next_pairs(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to);
/* Changes a map: assigns a slot (below STORE_SLOT_NR) to the disk with the number `to`, in the role given by
 * `kind`. */
void move_change_pair(struct disk_table *t, enum move_kind kind, int slot, int to);
/* Changes a map to the map at the end of a drain, for keys with two copies. The changes are the steps that
 * move_next_pairs() would return while all members are in service. */
void move_plan_drain(const struct set *s, struct disk_table *t);

/* ---- move_plan.c ---- */

/* Returns true if a disk is being drained or filled. */
bool move_members_change(const struct disk_table *t);
/* Returns true if an engine has foreign records. Such records remain after a move that ended while the disk
 * was away. */
bool move_has_leftovers(const struct set *s);
/* Finds the next slots to move from one engine to another, and sets m->slots. Returns false if no slot can
 * move now: all slots are at their planned engines, the other slots cannot be moved, or a disk is missing.
 * *ret_left: number of slots that are not at their planned engine. */
bool move_next_slots(struct mover *m, const struct disk_table *t, int *ret_from, int *ret_to, int *ret_left);
/* Counts the slots and bytes that are to move according to the placement map t, for operators. */
void move_begin_count(struct mover *m, const struct disk_table *t);
/* Notes for operators how many slots have moved according to the placement map t. A slot may move in several
 * steps, and again after the failure of a disk. */
void move_note_progress(struct mover *m, const struct disk_table *t);
/* Checks that every other disk has room for the records that it would receive in a drain of the engine.
 * Returns 0, or -errno with a sentence in said. */
int move_check_room(struct set *s, int engine, char *said, size_t len);

/* ---- disk_change.c ---- */

/* Sets the bitmaps of draining and filling disks in the placement map. Returns -EPERM if too few disks would
 * remain. */
int move_set_bits(struct mover *m, uint64_t draining, uint64_t filling);
/* Removes a drained engine from the placement map. Returns 0; -EBUSY if a disk is away; -EINTR if the engine
 * has slots again; or an error of move_change_table(). */
int move_leave(struct mover *m, int engine);

/* Formats, opens and adds the disk at m->path. Returns 0, or -errno with the reason in m->said. */
int move_add(struct mover *m);

/* ---- move_job.c ---- */

/* Returns true if a job other than a resynchronisation is in progress. */
bool move_has_job(struct mover *m);
/* Begins a job, in place of a resynchronisation in progress. Returns 0, -EBUSY or -errno. The caller holds
 * job_lock. */
int move_begin_thread(struct mover *m, enum mover_job job);
/* Waits for the first answer of the job, and returns the answer. */
int move_wait_for_answer(struct mover *m);
/* Begins a requested resynchronisation if no job is in progress. Does nothing if another thread is in this
 * function. */
void move_heal_if_wanted(struct mover *m);

#endif
