/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of libgantry-server share.
 *
 *   server.c   opening and closing, and the keeper
 *   params.c   from gantry_server_params to what rdma/ asks for
 *   log.c      one line a call of the program's function
 *   region.c   memory
 *   channel.c  channels: whose they are at the moment, making and freeing
 *   lane.c     what a channel has on one rail, and how it is repaired
 *   held.c     from a token to a lane and a target; the last eight are kept
 *   op.c       operations: starting, posting, completions
 *   wait.c     sleeping until there is one
 *
 * A channel belongs to the thread that has taken it, for the length of one call, or to the keeper; so nothing
 * of it needs a lock.
 */
#ifndef GANTRY_SERVER_INT_H
#define GANTRY_SERVER_INT_H

#include "server/gantry_server.h"

#include "base/list.h"
#include "rdma/ep.h"
#include "rdma/work.h"

#include <pthread.h>

#define HELD_NR 8
#define FAMILY_V4 1u
#define FAMILY_V6 2u

struct gantry_server {
	unsigned forks;                /* of which process it is */
	struct gantry_server_params p; /* its strings are gone */
	struct conf_rdma conf;
	char *names; /* what conf.devices point into */
	struct rdma *rd;
	uint64_t limit_ns; /* without a completion something is wrong; 0: there is none */

	gantry_server_log_fn *log;
	void *log_cookie;
	_Atomic int log_level;
	struct list link; /* of all servers; log.c's */

	pthread_mutex_t lock;
	struct list channels, regions;
	int channel_nr;
	unsigned channel_count; /* ever made */

	/* The keeper looks after channels that nobody is in a call on. */
	struct rdma_watch watch;
	pthread_t keeper;
	pthread_mutex_t keeper_lock;
	pthread_cond_t keeper_more;
	bool is_watched, is_kept, is_asked, is_over;
};

struct gantry_region {
	struct gantry_server *s;
	char *mem;
	size_t len;
	uint64_t nr; /* of rdma_region_add() */
	_Atomic uint64_t uses;
	_Atomic bool is_going;
	struct list link;
};

/* A work request on the wire. */
struct wire {
	uint64_t nr; /* its wr_id */
	struct op *op;
	uint32_t len;
};

/*
 * What a channel has on one rail.
 *
 *   OFF --a token leads here--> ON --fails, and cannot be reset; or its device has died--> ENDING --> OFF
 *
 * ENDING: the queue pair is being destroyed; what it had on the wire is over when that is sure.
 */
enum lane_state { LANE_OFF, LANE_ON, LANE_ENDING };

struct lane {
	struct gantry_channel *c;
	struct rdma_rail *rail;
	const struct rdma_ep_ops *ops;
	enum lane_state state;
	struct rdma_cq *cq; /* NULL where ep only waits for its context to be closed */
	struct rdma_ep *ep;
	unsigned context, generation; /* of the rail, when they were made */
	struct rdma_ep_limits limits;
	uint32_t message_max;
	/* Of the next work request, and of the first that is on the wire.  It never starts again, so a stale
	 * completion matches nothing. */
	uint64_t next_nr, oldest_nr;
	struct wire *wire; /* wire_mask + 1 of them; a work request's place is its number's */
	uint64_t wire_mask;
	int outstanding, reads;
	uint64_t bytes;      /* of the longest work request since the wire was empty */
	uint64_t since_ns;   /* when the oldest became that */
	int end_wc_status;   /* ENDING: of what is on the wire yet */
	uint64_t ending_ns;  /* when that began; later, when the log was told last */
	struct list waiting; /* operations that are not wholly posted, in order */
	bool armed;
};

/* A target that the channel has met. */
struct held {
	bool is_used, have_gid;
	uint16_t lid;
	uint8_t gid[16];
	struct lane *lane;
	struct rdma_target target;
	int ops;       /* that are aimed at it */
	uint64_t turn; /* when it was used last */
};

struct op {
	struct list link; /* free, waiting, or over */
	struct gantry_channel *c;
	struct lane *lane;
	struct held *held; /* NULL: the target is its own */
	struct rdma_target target;
	void *handle;
	bool is_write, is_sync, is_over;
	uint32_t rkey;
	uint64_t remote; /* of the next byte to be posted */
	uint64_t bytes, unposted;
	int piece;   /* the next to be posted from */
	size_t at;   /* its first byte that was not */
	int on_wire; /* work requests */
	int wc_status;
	bool has_status;
	int piece_nr;
	struct gantry_piece pieces[GANTRY_PIECES_MAX];
};

/* Operations, as many as the queue is deep (of a very deep one fewer); another one where that is not enough. */
struct op_block {
	struct op_block *next;
	int used; /* the others were never */
	struct op op[];
};

enum taken { FREE, USED, KEPT };

struct gantry_channel {
	struct gantry_server *s;
	unsigned nr;
	_Atomic int taken; /* enum taken */
	bool is_fenced;
	struct lane *lane[RDMA_RAILS_MAX]; /* by rail; NULL: never met */
	struct held held[HELD_NR];
	uint64_t turn;
	struct op_block *ops;
	struct list free, over;          /* over: and not told of */
	int under_way;                   /* asynchronous ones, without those that are over */
	uint64_t step_ns;                /* the next step of a lane that is ENDING, in a call that waits */
	int epoll_fd, timer_fd, kick_fd; /* -1: nobody has ever waited */
	_Atomic bool can_be_kicked;
	struct list link;
};

/* ---- log.c ---- */

void log_add(struct gantry_server *s);
void log_del(struct gantry_server *s);
/* Forgets all servers, in a child that was forked. */
void log_in_child(void);
/* Finds out again what the lines of rdma/ are wanted at. */
void log_follow_levels(void);
void say(struct gantry_server *s, enum gantry_server_log level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Says whether it is an address of IPv4. */
bool gid_is_mapped(const uint8_t gid[16]);
/* Writes an address. */
const char *gid_name(const uint8_t gid[16], char *text, size_t size);

/* ---- params.c ---- */

/* Fills in s->p, conf and names; 0 or -errno, the reason in err. */
int params_take(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len);

/* ---- server.c ---- */

/* Says whether this process opened it, and not one that it was forked from. */
bool is_mine(const struct gantry_server *s);
/* Tells whether no device has a context: nothing can be made or registered. */
bool server_is_dead(const struct gantry_server *s);

/* ---- channel.c ---- */

/* Takes a channel for a call: 0, -EIO where another thread has it, or -ENODEV where another process has. */
int channel_enter(struct gantry_channel *c);
void channel_leave(struct gantry_channel *c);
/* Looks after a channel, which nobody else has; true: it is to be done again soon. */
bool channel_keep(struct gantry_channel *c);

/* ---- lane.c ---- */

/* Finds or makes the channel's lane on a rail, ready for work.  0, -ENOMEM, -ENODEV or another errno
 * value. */
int lane_get(struct gantry_channel *c, int rail, const struct rdma_ep_ops *ops, struct lane **ret_lane);
/* Says whether work may be posted: its rail is up, and what was made there is what the rail has now. */
bool lane_is_good(const struct lane *l);
/* Does what follows from a transfer that has failed: collects what is on the wire, and resets the queue
 * pair, or begins to destroy it.  wc_status: of completions that do not come. */
void lane_repair(struct lane *l, int wc_status);
/* Takes the next step of one that is ENDING, or begins to end one whose device has died; true: it is
 * ENDING. */
bool lane_step(struct lane *l);
/* Takes the next step of giving back what it has, whatever state it is in; true: there are more. */
bool lane_end(struct lane *l);
/* Frees one that has ended; NULL is fine. */
void lane_free(struct lane *l);

/* ---- held.c ---- */

/* Finds where a token leads: op->lane, op->target, op->held.  0, or an error of a transfer that was
 * logged. */
int held_get(struct gantry_channel *c, const struct token *tok, struct op *op);
void held_put(struct gantry_channel *c, struct op *op);
/* Gives back those of a lane, NULL: of all, that no operation is aimed at. */
void held_drop(struct gantry_channel *c, const struct lane *l);

/* ---- op.c ---- */

/* Ends an operation: it is over, and told of. */
void op_end(struct op *op);
/* Takes note of a status: the first that is not a success stays. */
void op_note(struct op *op, int wc_status);
/* Takes what has completed, of all lanes; returns how many completions there were. */
int channel_reap(struct gantry_channel *c);
/* Takes what has completed on a lane, until its queue is empty, and posts nothing; true: something failed. */
bool lane_reap(struct lane *l, int *ret_nr);
void ops_free(struct gantry_channel *c);

/* ---- wait.c ---- */

/* Makes whoever sleeps for the channel look; any thread. */
void channel_kick(struct gantry_channel *c);
void waits_free(struct gantry_channel *c);
/* Takes a lane's queue in or out of what wakes. */
void wait_watch(struct lane *l);
void wait_unwatch(struct lane *l);
/* Takes the events by which completions wake, so that they do so again. */
void wait_take_events(struct gantry_channel *c);
/* Sleeps until there is a completion, at most until then (0: without limit); for a call that has the
 * channel. */
void channel_sleep(struct gantry_channel *c, uint64_t until_ns);
/* Returns when the first completion that is awaited is late; 0: never. */
uint64_t channel_deadline(const struct gantry_channel *c);
/* Returns when a completion on this lane is late; 0: never. */
uint64_t lane_deadline(const struct lane *l);

#endif
