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
#include "walk/expiry.h"
#include "walk/lifecycle.h"
#include "walk/scrub.h"

#include <pthread.h>
#include <stdatomic.h>

/* The state read by other threads; written by the core alone except where stated. */
struct core_public {
	_Alignas(128) _Atomic uint64_t turned_ns;
	_Atomic bool asleep;
	_Atomic bool over;    /* its thread has ended */
	_Atomic bool serving; /* the core accepts sockets from others */
	_Atomic int requests, connections, queued;
	_Atomic int requests_high, queued_high;
	_Atomic int http_bufs_low;
	_Atomic int on_threads; /* the ring has no io_uring */
	_Atomic int bufs_avail[BUF_CLASS_NR], bufs_low[BUF_CLASS_NR], http_bufs_avail;
	/* sockets on their way to this core: incremented by the sender, decremented by the core */
	_Alignas(128) _Atomic int coming;
};

enum core_phase {
	CORE_RUN,
	CORE_DRAIN, /* new requests are refused, running ones may end */
	CORE_ABORT, /* connections are reset; the core waits for operations in flight */
	CORE_OVER,
};

/* A listener's accept, on the core that runs it. */
struct acceptor {
	struct ring_op op;
	struct timer again; /* pause after running out of descriptors */
	struct core *core;
	int listener, fd;
	bool active;
};

struct chan_wait {
	struct ring_op op;
	struct core *core;
	int fd;       /* -1: not in use */
	bool leaving; /* chan is notified when the ring has released it */
};

struct core {
	struct core_public pub;
	struct cores *cs;
	int index, cpu;
	pthread_t thread;
	bool has_thread;

	/* The message that tests for a sign of life, posted by a reader of core_info; the time of its post
	 * (0: not posted). */
	struct msg ping;
	_Atomic uint64_t ping_ns;

	/* made by main */
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
	struct expiry *expiry; /* NULL: there is no store */
	struct scrub *scrub;   /* of core 0; NULL: there is no store, or its back end has no scrub */
	struct life *life;     /* as scrub */
	struct stats_core *stats;
	struct ring_op mail_op;
	struct chan_wait chan_waits[CHAN_FDS_MAX];
	struct acceptor acceptors[CONF_LISTEN_MAX];
	int acceptor_nr;
	uint32_t pick_a, pick_b;
	bool more;            /* do not wait in the next turn */
	uint64_t progress_ns; /* time of the last progress */

	/* stopping */
	enum core_phase phase;
	struct timer stop_timer;
	struct msg stop_msg;
	uint64_t phase_ns, say_ns;
};

struct cores {
	const struct conf *conf; /* the first configuration: authoritative for keys that need a restart */
	struct auth_keys *keys;  /* the first credentials */
	struct auth_replay *replay;
	const struct op_entry *operations;
	_Atomic int trace_next; /* number of requests to trace from their beginning */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats;
	struct tls_cert *const *certs;
	struct peers *peers;
	int listen_fds[CONF_LISTEN_MAX];
	bool listen_own[CONF_LISTEN_MAX]; /* made by core/, and closed by it */
	int listen_ports[CONF_LISTEN_MAX];
	int listen_nr;

	/* For the start: the number of threads that have reported; rc and err are those of the first
	 * failure. */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int said, rc;
	char err[256];

	struct scrub_public scrub;
	_Atomic bool life_walks; /* a walk of the lifecycle is in progress */

	uint64_t drain_ns;
	_Atomic bool stop_now;
	_Atomic bool joined;
	int nr;
	struct core core[];
};

/* ---- tell.c ---- */
typedef void (*tell_fn)(struct core *c, void *arg);
/* Runs fn(core, arg) on the thread of each core that has not ended; returns how many have done so within
 * wait_ns (ended cores count), or -ENOMEM. The others follow in their next turn. fini(arg) runs last, in
 * every case, on any thread. Not on a core's thread. */
int cores_tell(struct cores *cs, tell_fn fn, void (*fini)(void *arg), void *arg, uint64_t wait_ns);

/* ---- control.c ---- */
/* Makes a configuration for one core's requests, with references of its own; NULL: out of memory. */
struct req_conf *core_conf_new(const struct conf *conf, struct auth_keys *keys);

/* ---- loop.c: the thread ---- */
/* Pauses or resumes the core's background work: no new step begins. */
void core_pause_walks(struct core *c, bool on);
void *core_main(void *arg);
/* Makes a core drain and end. Main thread, once. */
void core_stop_post(struct core *c);
/* Publishes the counters of core_info. */
void core_publish(struct core *c);

/* ---- listen.c ---- */
/* Makes and binds the sockets that were not passed in. Main thread. 0 or -errno, the reason in err. */
int listen_open(struct cores *cs, const int *fds, char *err, size_t err_len);
void listen_close(struct cores *cs);
/* Begins to accept on the core's share of the listeners. */
void accept_start(struct core *c);
/* Ends what accept_start() began. */
void accept_stop(struct core *c);

#endif
