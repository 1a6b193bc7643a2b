/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of core/. */
#ifndef GANTRY_CORE_CORE_INT_H
#define GANTRY_CORE_CORE_INT_H

#include "base/buf.h"
#include "base/mailbox.h"
#include "base/timer.h"
#include "chan/chan.h"
#include "core/core.h"
#include "http/http.h"
#include "rdma/rdma.h"
#include "req/req.h"
#include "ring/ring.h"
#include "stats/stats.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* The state of a core that other threads read. Only the core writes it, except where stated. */
struct core_public {
	_Alignas(128) _Atomic uint64_t turned_ns; /* time by run_ns() of the last turn of the loop */
	_Atomic bool asleep;
	_Atomic bool over;    /* true: the core's thread has ended */
	_Atomic bool serving; /* true: the core accepts sockets from other cores */
	_Atomic int requests, connections, queued;
	_Atomic int requests_high, queued_high;
	_Atomic int http_bufs_low;
	_Atomic int on_threads;   /* the ring has no io_uring */
	_Atomic int unregistered; /* the ring has not registered the buffers */
	_Atomic int bufs_avail[BUF_CLASS_NR], bufs_low[BUF_CLASS_NR], http_bufs_avail;
	/* number of sockets sent to this core that have not arrived; the sender increments it, the core
	 * decrements it */
	_Alignas(128) _Atomic int coming;
};

enum core_phase {
	CORE_RUN,
	CORE_DRAIN, /* new requests are refused, running requests continue */
	CORE_ABORT, /* connections are reset; the core waits for operations in flight */
	CORE_OVER,
};

/* The accept operation of a listener, on the core that runs it. */
struct acceptor {
	struct ring_op op;
	struct timer again; /* timer for the next accept after the process ran out of descriptors */
	struct core *core;
	int listener, fd;
	bool active;
};

struct chan_wait {
	struct ring_op op;
	struct core *core;
	int fd;       /* descriptor of a channel that the ring polls; -1: the element is not in use */
	bool leaving; /* true: the ring is releasing the descriptor, and chan is notified after that */
};

struct core {
	struct core_public pub;
	struct cores *cs;
	int index, cpu;
	pthread_t thread;
	bool has_thread;

	/* The message that tests whether the core runs its loop; posted by a reader of struct core_info. */
	struct msg ping;
	/* time by run_ns() at which `ping` was posted; 0: the core has received the message */
	_Atomic uint64_t ping_ns;

	/* made by the main thread */
	struct mailbox mb;
	struct bufpool bufs, http_bufs;
	uint64_t region_map[BUF_REGIONS_MAX];

	/* owned by the thread */
	struct timers timers;
	struct ring *ring;
	struct store_port *port;
	struct chan *chan;
	struct reqs *reqs;
	struct http *http;
	struct walks walks;
	struct stats_core *stats;
	struct ring_op mail_op;
	struct chan_wait chan_waits[CHAN_FDS_MAX];
	struct acceptor acceptors[CONF_LISTEN_MAX];
	int acceptor_nr;
	uint32_t pick_a, pick_b;
	bool more; /* true: the loop has more work, so its next turn does not wait */
	/* time by clock_ns() of the last turn in which the loop had work; the loop spins for a while after
	 * that turn */
	uint64_t progress_ns;

	/* Fields that are used while the core stops. */
	enum core_phase phase;
	struct timer stop_timer;
	struct msg stop_msg;
	uint64_t phase_ns, say_ns;
};

struct cores {
	const struct conf *conf; /* first configuration, which is used for keys that need a restart */
	struct auth_keys *keys;  /* first credentials */
	struct auth_replay *replay;
	const struct op_entry *operations;
	_Atomic int trace_next; /* number of new requests that will be traced from their beginning */
	struct space_want want; /* latest refusal for want of space */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats;
	struct tls_cert *const *certs;
	struct peers *peers;
	int listen_fds[CONF_LISTEN_MAX];
	bool listen_own[CONF_LISTEN_MAX]; /* true: core/ made the socket, and closes it */
	int listen_ports[CONF_LISTEN_MAX];
	int listen_nr;

	/* Result of the start: `said` is the number of threads that have reported; rc and err are the result
	 * of the first thread that failed. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int said, rc;
	char err[256];

	struct walks_public *walks;

	uint64_t drain_ns;
	_Atomic bool stop_now;
	_Atomic bool joined;
	int nr;
	struct core core[];
};

/* ---- broadcast.c ---- */
typedef void (*tell_fn)(struct core *c, void *arg);
/* Runs fn(core, arg) on the thread of each core that has not ended. Returns the number of cores that have run
 * fn before wait_ns have passed, or -ENOMEM. Cores that have ended count as well; the remaining cores run fn
 * in their next turn. fini(arg) is called in every case, after all other calls, on any thread. Must not be
 * called on a core's thread. */
int cores_tell(struct cores *cs, tell_fn fn, void (*fini)(void *arg), void *arg, uint64_t wait_ns);

/* ---- control.c ---- */
/* Makes a configuration for the requests of one core. It takes references to conf and keys. Returns NULL if
 * there is no memory. */
struct req_conf *core_conf_new(const struct conf *conf, struct auth_keys *keys);

/* ---- loop.c: the thread ---- */
void *core_main(void *arg);
/* Posts a message that makes a core drain and end. Called once, on the main thread. */
void core_stop_post(struct core *c);
/* Publishes the counters of the core for readers of struct core_info. */
void core_publish(struct core *c);

/* ---- listen.c ---- */
/* Makes and binds the sockets that the caller did not pass. Called by the main thread. Returns 0, or -errno
 * of the failed system call with the reason in err. */
int listen_open(struct cores *cs, const int *fds, char *err, size_t err_len);
void listen_close(struct cores *cs);
/* Begins to accept connections on the core's share of the listeners. */
void accept_start(struct core *c);
/* Stops the accepts of accept_start(). */
void accept_stop(struct core *c);

#endif
