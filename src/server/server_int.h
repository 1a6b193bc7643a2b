/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the files of libgantry-server.
 *
 *   server.c   opening and closing, and the keeper
 *   params.c   converts gantry_server_params to the parameters of rdma/
 *   log.c      log lines: each is a call of the program's function
 *   region.c   memory
 *   channel.c  channels: ownership, making and freeing
 *   lane.c     a channel's part on one rail, and its repair
 *   held.c     finds the lane and the target of a token; keeps the last eight targets
 *   op.c       operations: starting, posting, completions
 *   wait.c     sleeping until a completion arrives
 *
 * A channel belongs to the thread that has taken it for one call, or to the keeper, so its data needs no
 * lock.
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
	unsigned forks;                /* fork count of the process that opened the server */
	struct gantry_server_params p; /* parameters of the program; their strings are freed */
	struct conf_rdma conf;
	char *names; /* memory of the strings to which conf.devices refers */
	struct rdma *rd;
	uint64_t limit_ns; /* time in ns after which a missing completion is an error; 0: never */

	gantry_server_log_fn *log;
	void *log_cookie;
	_Atomic int log_level;
	struct list link; /* link in the list of all servers, private to log.c */

	pthread_mutex_t lock;
	struct list channels, regions;
	int channel_nr;
	unsigned channel_count; /* number of channels made so far */

	/* Receiver of rail notifications; the keeper takes care of channels that are not in a call. */
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
	uint64_t nr; /* number of the region, from rdma_region_add() */
	_Atomic uint64_t uses;
	_Atomic bool is_going;
	struct list link;
};

/* A work request in flight. */
struct wire {
	uint64_t nr; /* number of the work request, which is its wr_id */
	struct op *op;
	uint32_t len;
};

/*
 * State of a lane: the part of a channel on one rail. A lane is OFF until a token leads to its rail, and then
 * ON. When the lane has failed and cannot be reset, or its device has died, it is ENDING: the queue pair is
 * being destroyed, and its work requests end when the destruction is certain. Afterwards the lane is OFF
 * again.
 */
enum lane_state { LANE_OFF, LANE_ON, LANE_ENDING };

struct lane {
	struct gantry_channel *c;
	struct rdma_rail *rail;
	const struct rdma_ep_ops *ops;
	enum lane_state state;
	struct rdma_cq *cq; /* completion queue; NULL: ep only waits until its context is closed */
	struct rdma_ep *ep;
	/* numbers of the rail's context and generation at the time the lane was made */
	unsigned context, generation;
	struct rdma_ep_limits limits;
	uint32_t message_max;
	/* number of the next work request, and of the first one in flight. The numbers never restart, so a
	 * stale completion matches no request. */
	uint64_t next_nr, oldest_nr;
	/* work requests in flight, wire_mask + 1 entries; the low bits of a request's number are its index */
	struct wire *wire;
	uint64_t wire_mask;
	int outstanding, reads;
	uint64_t bytes;      /* number of bytes of the longest work request since no request was in flight */
	uint64_t since_ns;   /* time at which the oldest request in flight became the oldest */
	int end_wc_status;   /* in the state ENDING: status for the work requests still in flight */
	uint64_t ending_ns;  /* time at which ENDING began; later, time of the last log line about it */
	struct list waiting; /* operations that are not completely posted, in order */
	bool armed;
};

/* A target that the channel keeps for later operations. */
struct held {
	bool is_used, have_gid;
	uint16_t lid;
	uint8_t gid[16];
	struct lane *lane;
	struct rdma_target target;
	int ops;       /* number of operations that use the target */
	uint64_t turn; /* number of the channel's turn in which the target was last used */
};

struct op {
	struct list link; /* link in the list of free, waiting or finished operations */
	struct gantry_channel *c;
	struct lane *lane;
	/* kept target that the operation uses; NULL: the target belongs to the operation */
	struct held *held;
	struct rdma_target target;
	void *handle;
	bool is_write, is_sync, is_over;
	uint32_t rkey;
	uint64_t remote; /* remote address of the next byte to post */
	uint64_t bytes, unposted;
	int piece;   /* index of the next piece to post */
	size_t at;   /* offset of the first unposted byte in that piece */
	int on_wire; /* number of the operation's work requests in flight */
	int wc_status;
	bool has_status;
	int piece_nr;
	struct gantry_piece pieces[GANTRY_PIECES_MAX];
};

/* A block of operations, as many as the queue is deep (one fewer for a very deep queue). More blocks are
 * allocated when needed. */
struct op_block {
	struct op_block *next;
	int used; /* number of entries used so far */
	struct op op[];
};

enum taken { FREE, USED, KEPT };

struct gantry_channel {
	struct gantry_server *s;
	unsigned nr;
	_Atomic int taken; /* owner of the channel, an enum taken */
	bool is_fenced;
	struct lane *lane[RDMA_RAILS_MAX]; /* lanes by number of the rail; NULL: the rail was never used */
	struct held held[HELD_NR];
	uint64_t turn;
	struct op_block *ops;
	/* operations that are free; operations that have finished and have not been returned */
	struct list free, over;
	int under_way;    /* number of asynchronous operations that have not finished */
	uint64_t step_ns; /* time of the next step of an ENDING lane, during a call that waits */
	int epoll_fd, timer_fd, kick_fd; /* descriptors of waits; -1: no call has waited yet */
	_Atomic bool can_be_kicked;
	struct list link;
};

/* ---- log.c ---- */

void log_add(struct gantry_server *s);
void log_del(struct gantry_server *s);
/* Forgets all servers. Called in a forked child. */
void log_in_child(void);
/* Recomputes the log level that is passed to rdma/. */
void log_follow_levels(void);
void say(struct gantry_server *s, enum gantry_server_log level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns true for an IPv4-mapped address. */
bool gid_is_mapped(const uint8_t gid[16]);
/* Writes a GID as text, and returns text. */
const char *gid_name(const uint8_t gid[16], char *text, size_t size);

/* ---- params.c ---- */

/* Fills in s->p, conf and names from the program's parameters. Returns 0, or -EINVAL or -ENOMEM with the
 * reason in err. */
int params_take(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len);

/* ---- server.c ---- */

/* Returns true if this process opened the server, not a process of which it is a fork. */
bool is_mine(const struct gantry_server *s);
/* Returns true if no device of the server has a context, so that no object can be made or registered. */
bool server_is_dead(const struct gantry_server *s);

/* ---- channel.c ---- */

/* Takes a channel for a call. Returns 0, -EIO if another thread has the channel, or -ENODEV if another
 * process made it. */
int channel_enter(struct gantry_channel *c);
void channel_leave(struct gantry_channel *c);
/* Advances the repair of a channel that no call uses. Returns true if the caller must call again soon. */
bool channel_keep(struct gantry_channel *c);

/* ---- lane.c ---- */

/* Finds or makes the channel's lane on a rail, ready for work. Returns 0, -ENOMEM, -ENODEV or another errno
 * value. */
int lane_get(struct gantry_channel *c, int rail, const struct rdma_ep_ops *ops, struct lane **ret_lane);
/* Returns true if work may be posted on the lane: its rail is up, and the lane was made on the rail's current
 * context. */
bool lane_is_good(const struct lane *l);
/* Repairs a lane after a failed transfer: collects the completions in flight, and resets the queue pair, or
 * begins to destroy it. wc_status: status for missing completions. */
void lane_repair(struct lane *l, int wc_status);
/* Advances a lane that is ENDING, or begins to end a lane whose device has died. Returns true if the lane is
 * ENDING. */
bool lane_step(struct lane *l);
/* Advances the release of the lane's resources, in any state. Returns true if more steps are needed. */
bool lane_end(struct lane *l);
/* Frees a lane that has ended. NULL is allowed. */
void lane_free(struct lane *l);

/* ---- held.c ---- */

/* Finds the target of a token, and sets op->lane, op->target and op->held. Returns 0, or an error of a
 * transfer that was logged. */
int held_get(struct gantry_channel *c, const struct token *tok, struct op *op);
void held_put(struct gantry_channel *c, struct op *op);
/* Releases the kept targets of a lane (NULL: of all lanes) that no operation uses. */
void held_drop(struct gantry_channel *c, const struct lane *l);

/* ---- op.c ---- */

/* Ends an operation and adds it to the finished ones. */
void op_end(struct op *op);
/* Notes a status of the operation. The first status that is not a success is kept. */
void op_note(struct op *op, int wc_status);
/* Takes the completions of all lanes; returns their number. */
int channel_reap(struct gantry_channel *c);
/* Takes the completions of a lane until its queue is empty, without posting work. Returns true if an
 * operation failed. */
bool lane_reap(struct lane *l, int *ret_nr);
void ops_free(struct gantry_channel *c);

/* ---- wait.c ---- */

/* Wakes the thread that sleeps for the channel. Any thread. */
void channel_kick(struct gantry_channel *c);
void waits_free(struct gantry_channel *c);
/* Adds the completion queue of a lane to the descriptors that wake the channel's thread, or removes it. */
void wait_watch(struct lane *l);
void wait_unwatch(struct lane *l);
/* Takes the events by which completions have woken the thread, so that the next completion wakes it again. */
void wait_take_events(struct gantry_channel *c);
/* Sleeps until there is a completion, or until the time until_ns (0: no limit). Called during a call that has
 * taken the channel. */
void channel_sleep(struct gantry_channel *c, uint64_t until_ns);
/* Returns the time at which the first awaited completion is overdue; 0: never. */
uint64_t channel_deadline(const struct gantry_channel *c);
/* Returns the time at which a completion on this lane is overdue; 0: never. */
uint64_t lane_deadline(const struct lane *l);

#endif
