/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of libgantry-server.
 *
 *   server.c   opening and closing, and the keeper
 *   params.c   from gantry_server_params to what rdma/ asks for
 *   log.c      one line a call of the program's function
 *   region.c   memory
 *   channel.c  channels: ownership, making and freeing
 *   lane.c     a channel's part on one rail, and its repair
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
	unsigned forks;                /* fork count of its process */
	struct gantry_server_params p; /* its strings are freed */
	struct conf_rdma conf;
	char *names; /* memory of the strings in conf.devices */
	struct rdma *rd;
	uint64_t limit_ns; /* time after which a missing completion is an error; 0: none */

	gantry_server_log_fn *log;
	void *log_cookie;
	_Atomic int log_level;
	struct list link; /* in the list of all servers, private to log.c */

	pthread_mutex_t lock;
	struct list channels, regions;
	int channel_nr;
	unsigned channel_count; /* channels ever made */

	/* The keeper takes care of channels that are not in a call. */
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
	uint64_t nr; /* number given by rdma_region_add() */
	_Atomic uint64_t uses;
	_Atomic bool is_going;
	struct list link;
};

/* A work request in flight. */
struct wire {
	uint64_t nr; /* its wr_id */
	struct op *op;
	uint32_t len;
};

/*
 * A channel's part on one rail.
 *
 *   OFF --a token leads here--> ON --fails, and cannot be reset; or its device has died--> ENDING --> OFF
 *
 * ENDING: the queue pair is being destroyed; its work requests end when that is certain.
 */
enum lane_state { LANE_OFF, LANE_ON, LANE_ENDING };

struct lane {
	struct gantry_channel *c;
	struct rdma_rail *rail;
	const struct rdma_ep_ops *ops;
	enum lane_state state;
	struct rdma_cq *cq; /* NULL if ep only waits for its context to be closed */
	struct rdma_ep *ep;
	unsigned context, generation; /* those of the rail when they were made */
	struct rdma_ep_limits limits;
	uint32_t message_max;
	/* Number of the next work request, and of the first one in flight. It never restarts, so a stale
	 * completion matches no request. */
	uint64_t next_nr, oldest_nr;
	struct wire *wire; /* wire_mask + 1 entries; a work request's index is its number */
	uint64_t wire_mask;
	int outstanding, reads;
	uint64_t bytes;      /* of the longest work request since no request was in flight */
	uint64_t since_ns;   /* time at which the oldest became the oldest */
	int end_wc_status;   /* ENDING: status for work requests still in flight */
	uint64_t ending_ns;  /* start of ENDING; later, time of the last log line about it */
	struct list waiting; /* operations that are not completely posted, in order */
	bool armed;
};

/* A target used by the channel. */
struct held {
	bool is_used, have_gid;
	uint16_t lid;
	uint8_t gid[16];
	struct lane *lane;
	struct rdma_target target;
	int ops;       /* operations towards it */
	uint64_t turn; /* time of its last use */
};

struct op {
	struct list link; /* free, waiting, or finished */
	struct gantry_channel *c;
	struct lane *lane;
	struct held *held; /* NULL: the target belongs to the operation */
	struct rdma_target target;
	void *handle;
	bool is_write, is_sync, is_over;
	uint32_t rkey;
	uint64_t remote; /* remote address of the next byte to post */
	uint64_t bytes, unposted;
	int piece;   /* index of the next piece to post */
	size_t at;   /* offset of its first unposted byte */
	int on_wire; /* work requests in flight */
	int wc_status;
	bool has_status;
	int piece_nr;
	struct gantry_piece pieces[GANTRY_PIECES_MAX];
};

/* A block of operations, as many as the queue is deep (for a very deep queue one fewer); more blocks are
 * allocated when needed. */
struct op_block {
	struct op_block *next;
	int used; /* entries ever used */
	struct op op[];
};

enum taken { FREE, USED, KEPT };

struct gantry_channel {
	struct gantry_server *s;
	unsigned nr;
	_Atomic int taken; /* enum taken */
	bool is_fenced;
	struct lane *lane[RDMA_RAILS_MAX]; /* by rail; NULL: never used */
	struct held held[HELD_NR];
	uint64_t turn;
	struct op_block *ops;
	struct list free, over; /* over: finished, and not returned yet */
	int under_way;          /* asynchronous operations that have not finished */
	uint64_t step_ns;       /* time of the next step of a lane that is ENDING, in a call that waits */
	int epoll_fd, timer_fd, kick_fd; /* -1: no call has ever waited */
	_Atomic bool can_be_kicked;
	struct list link;
};

/* ---- log.c ---- */

void log_add(struct gantry_server *s);
void log_del(struct gantry_server *s);
/* Forgets all servers, in a forked child. */
void log_in_child(void);
/* Computes the log level for rdma/ again. */
void log_follow_levels(void);
void say(struct gantry_server *s, enum gantry_server_log level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns true for an IPv4-mapped address. */
bool gid_is_mapped(const uint8_t gid[16]);
/* Writes an address as text. */
const char *gid_name(const uint8_t gid[16], char *text, size_t size);

/* ---- params.c ---- */

/* Fills in s->p, conf and names; 0 or -errno, the reason in err. */
int params_take(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len);

/* ---- server.c ---- */

/* Returns true if this process opened the server, and not one that forked it. */
bool is_mine(const struct gantry_server *s);
/* Returns true if no device has a context: no object can be made or registered. */
bool server_is_dead(const struct gantry_server *s);

/* ---- channel.c ---- */

/* Takes a channel for a call: 0, -EIO if another thread has it, or -ENODEV if another process has. */
int channel_enter(struct gantry_channel *c);
void channel_leave(struct gantry_channel *c);
/* Takes care of a channel that no call uses; true: call again soon. */
bool channel_keep(struct gantry_channel *c);

/* ---- lane.c ---- */

/* Finds or makes the channel's lane on a rail, ready for work. 0, -ENOMEM, -ENODEV or another errno value. */
int lane_get(struct gantry_channel *c, int rail, const struct rdma_ep_ops *ops, struct lane **ret_lane);
/* Returns true if work may be posted: its rail is up, and the lane was made on the rail's current context. */
bool lane_is_good(const struct lane *l);
/* Repairs a lane after a failed transfer: collects the completions in flight, and resets the queue pair, or
 * begins to destroy it. wc_status: status for missing completions. */
void lane_repair(struct lane *l, int wc_status);
/* Takes the next step of a lane that is ENDING, or begins to end one whose device has died; true: it is
 * ENDING. */
bool lane_step(struct lane *l);
/* Takes the next step of releasing the lane's resources, in any state; true: more steps are needed. */
bool lane_end(struct lane *l);
/* Frees a lane that has ended; NULL is allowed. */
void lane_free(struct lane *l);

/* ---- held.c ---- */

/* Finds the target of a token: op->lane, op->target, op->held. 0, or an error of a transfer that was
 * logged. */
int held_get(struct gantry_channel *c, const struct token *tok, struct op *op);
void held_put(struct gantry_channel *c, struct op *op);
/* Releases the targets of a lane (NULL: of all lanes) that no operation uses. */
void held_drop(struct gantry_channel *c, const struct lane *l);

/* ---- op.c ---- */

/* Ends an operation and queues it for return. */
void op_end(struct op *op);
/* Notes a status: the first one that is not a success is kept. */
void op_note(struct op *op, int wc_status);
/* Takes the completions of all lanes; returns their number. */
int channel_reap(struct gantry_channel *c);
/* Takes the completions of a lane, until its queue is empty, and posts no work; true: an operation failed. */
bool lane_reap(struct lane *l, int *ret_nr);
void ops_free(struct gantry_channel *c);

/* ---- wait.c ---- */

/* Wakes a thread that sleeps for the channel; any thread. */
void channel_kick(struct gantry_channel *c);
void waits_free(struct gantry_channel *c);
/* Adds a lane's queue to the wake-up descriptors, or removes it. */
void wait_watch(struct lane *l);
void wait_unwatch(struct lane *l);
/* Takes the events by which completions wake the thread, which arms them again. */
void wait_take_events(struct gantry_channel *c);
/* Sleeps until there is a completion, at most until then (0: no limit); for a call that has the channel. */
void channel_sleep(struct gantry_channel *c, uint64_t until_ns);
/* Returns the time at which the first awaited completion is late; 0: never. */
uint64_t channel_deadline(const struct gantry_channel *c);
/* Returns the time at which a completion on this lane is late; 0: never. */
uint64_t lane_deadline(const struct lane *l);

#endif
