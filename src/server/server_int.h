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
	/* value of `forks` (server.c) when the server was opened; another value: this process is a fork */
	unsigned forks;
	/* parameters of the program, without their strings (address and allow are NULL) */
	struct gantry_server_params p;
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
	unsigned channel_count; /* number of channels made so far, which is the number of the next channel */

	/* Receiver of notifications about rails; the receiver wakes the keeper, the thread that repairs
	 * channels which no call uses. */
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

/* An entry for a work request in flight. */
struct wire {
	uint64_t nr; /* number of the work request, used as its wr_id */
	struct op *op;
	uint32_t len;
};

/*
 * State of a lane, which is the queue pair of a channel on one rail. A lane is OFF until a token leads to its
 * rail, and then ON. If the lane has failed and cannot be reset, or if its device has died, it is ENDING: the
 * queue pair is being destroyed, and its work requests end when it no longer exists. Then the lane is OFF
 * again.
 */
enum lane_state { LANE_OFF, LANE_ON, LANE_ENDING };

struct lane {
	struct gantry_channel *c;
	struct rdma_rail *rail;
	const struct rdma_ep_ops *ops;
	enum lane_state state;
	/* completion queue; NULL with ep set: ep exists only until its context is closed */
	struct rdma_cq *cq;
	struct rdma_ep *ep;
	/* numbers of the rail's context and generation at the time the queue pair was made or reset */
	unsigned context, generation;
	struct rdma_ep_limits limits;
	uint32_t message_max;
	/* next_nr: number of the next work request; oldest_nr: number of the oldest one in flight. The
	 * numbers never restart, so a stale completion matches no work request. */
	uint64_t next_nr, oldest_nr;
	/* array of wire_mask + 1 entries for work requests; the index of a request is its number &
	 * wire_mask */
	struct wire *wire;
	uint64_t wire_mask;
	int outstanding, reads;
	/* size in bytes of the longest work request posted since the lane last had none in flight */
	uint64_t bytes;
	uint64_t since_ns;   /* time at which the now oldest work request in flight became the oldest one */
	int end_wc_status;   /* in the state ENDING: status for the work requests still in flight */
	uint64_t ending_ns;  /* time at which ENDING began or was last reported in the log */
	struct list waiting; /* operations with bytes that are not posted yet, oldest first */
	bool armed;
};

/* A kept target: the decoded address of a token, which the channel keeps for later operations. */
struct held {
	bool is_used, have_gid;
	uint16_t lid;
	uint8_t gid[16];
	struct lane *lane;
	struct rdma_target target;
	int ops; /* number of operations that use the target now */
	/* value of the channel's `turn` at the last use of the target; the smallest is replaced first */
	uint64_t turn;
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

/* A block of memory for operations: cq_depth of them, at most BLOCK_MAX (op.c). A channel allocates further
 * blocks when it needs more operations. */
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
	/* free: unused operations; over: ended operations that gantry_channel_poll() has not returned yet */
	struct list free, over;
	int under_way; /* number of asynchronous operations that have not finished */
	/* time at which lane_step() is called next, while a call waits for an ENDING lane */
	uint64_t step_ns;
	int epoll_fd, timer_fd, kick_fd; /* file descriptors for waiting; -1: no call has waited yet */
	_Atomic bool can_be_kicked;
	struct list link;
};

/* ---- log.c ---- */

void log_add(struct gantry_server *s);
void log_del(struct gantry_server *s);
/* Empties the list of servers. Called in a forked child, which cannot use the servers of its parent. */
void log_in_child(void);
/* Sets the log level of rdma/ to the most detailed level of all servers. */
void log_follow_levels(void);
void say(struct gantry_server *s, enum gantry_server_log level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns true for an IPv4-mapped address. */
bool gid_is_mapped(const uint8_t gid[16]);
/* Writes a GID as text, and returns text. */
const char *gid_name(const uint8_t gid[16], char *text, size_t size);

/* ---- params.c ---- */

/* Checks the program's parameters, and fills in s->p, s->conf and s->names from them. Returns 0, or -EINVAL
 * or -ENOMEM with the reason in err. */
int params_take(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len);

/* ---- server.c ---- */

/* Returns true if this process has opened the server; false: its parent did, before a fork. */
bool is_mine(const struct gantry_server *s);
/* Returns true if every device of the server has died and was not re-opened yet; then nothing can be made or
 * registered. */
bool server_is_dead(const struct gantry_server *s);

/* ---- channel.c ---- */

/* Takes a channel for a call. Returns 0, -EIO if another thread has the channel, or -ENODEV if another
 * process made it. */
int channel_enter(struct gantry_channel *c);
void channel_leave(struct gantry_channel *c);
/* Advances the repair of a channel, if no call uses the channel. Called by the keeper. Returns true if the
 * repair needs another call soon. */
bool channel_keep(struct gantry_channel *c);

/* ---- lane.c ---- */

/* Finds or makes the channel's lane on a rail, ready for work. Returns 0, -ENOMEM, -ENODEV or another errno
 * value. */
int lane_get(struct gantry_channel *c, int rail, const struct rdma_ep_ops *ops, struct lane **ret_lane);
/* Returns true if work requests may be posted on the lane: it is ON, its rail is up, and it was made on the
 * rail's current context. */
bool lane_is_good(const struct lane *l);
/* Repairs a lane after a failed transfer: collects the completions in flight, and resets the queue pair; if
 * that fails, begins to destroy it. wc_status: status for work requests whose completions are missing. */
void lane_repair(struct lane *l, int wc_status);
/* Advances the end of a lane that is ENDING; a lane that is ON and whose device has died becomes ENDING.
 * Returns true if the lane is still ENDING. */
bool lane_step(struct lane *l);
/* Begins or advances the release of the lane's queue pair, in any state. Returns false when the lane is OFF;
 * true: the caller must call again. */
bool lane_end(struct lane *l);
/* Frees a lane that is OFF. NULL is allowed. */
void lane_free(struct lane *l);

/* ---- held.c ---- */

/* Finds the target of a token, and sets op->lane, op->target and op->held. Returns 0, or an error of a
 * transfer (gantry_server.h), which it has logged. */
int held_get(struct gantry_channel *c, const struct token *tok, struct op *op);
void held_put(struct gantry_channel *c, struct op *op);
/* Releases the kept targets of lane l that no operation uses; l NULL: of all lanes. */
void held_drop(struct gantry_channel *c, const struct lane *l);

/* ---- op.c ---- */

/* Checks a transfer and posts its first work requests; see gantry_channel_start(). is_sync: gantry_channel_move() waits for the
 * operation, which is then not added to the finished ones. Under the channel's lock. Returns 0 or -errno. */
int op_begin(struct gantry_channel *c, enum gantry_dir d, const struct gantry_piece *p, int n,
	     uint64_t remote, const char *token, void *handle, bool is_sync, struct op **ret_op);
/* Ends an operation and adds it to the finished ones. */
void op_end(struct op *op);
/* Stores the status of a work request in its operation, which keeps the first status that is not
 * IBV_WC_SUCCESS. */
void op_note(struct op *op, int wc_status);
/* Takes the completions of all lanes, posts work requests that waited for room, and repairs lanes that have
 * failed. Returns the number of completions. */
int channel_reap(struct gantry_channel *c);
/* Takes the completions of a lane until its queue is empty, without posting work requests. *ret_nr: number of
 * completions. Returns true if one of them is a failure. */
bool lane_reap(struct lane *l, int *ret_nr);
void ops_free(struct gantry_channel *c);

/* ---- wait.c ---- */

/* Wakes the thread that sleeps in channel_sleep(). Any thread may call this function. */
void channel_kick(struct gantry_channel *c);
void waits_free(struct gantry_channel *c);
/* Lets completions of a lane wake the thread that waits on the channel (wait_watch()), or ends this
 * (wait_unwatch()). */
void wait_watch(struct lane *l);
void wait_unwatch(struct lane *l);
/* Clears the events by which completions have woken the channel's thread, so that the next completion wakes
 * it again. */
void wait_take_events(struct gantry_channel *c);
/* Sleeps until a completion arrives, or until the time until_ns; 0: no limit. The caller has taken the
 * channel (channel_enter()). */
void channel_sleep(struct gantry_channel *c, uint64_t until_ns);
/* Returns the time at which the first awaited completion is overdue; 0: never. */
uint64_t channel_deadline(const struct gantry_channel *c);
/* Returns the time at which a completion on this lane is overdue; 0: never. */
uint64_t lane_deadline(const struct lane *l);

#endif
