/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of core/ share. */
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

/* What other threads read; written by the core alone except where said. */
struct core_public {
	_Alignas(128) _Atomic uint64_t turned_ns;
	_Atomic bool asleep;
	_Atomic bool over;    /* its thread has ended */
	_Atomic bool serving; /* takes sockets that others accepted */
	_Atomic int requests, connections, queued;
	_Atomic int requests_high, queued_high;
	_Atomic int http_bufs_low;
	_Atomic int on_threads; /* the ring has no io_uring */
	_Atomic int bufs_avail[BUF_CLASS_NR], bufs_low[BUF_CLASS_NR], http_bufs_avail;
	_Alignas(128) _Atomic int coming; /* sockets on their way here: up by the sender, down by the core */
};

enum core_phase {
	CORE_RUN,
	CORE_DRAIN, /* new requests are refused, running ones may end */
	CORE_ABORT, /* connections are reset; waits for what still moves */
	CORE_OVER,
};

/* One listener's accept on the core that does it. */
struct acceptor {
	struct ring_op op;
	struct timer again; /* out of descriptors: a pause */
	struct core *core;
	int listener, fd;
	bool active;
};

struct chan_wait {
	struct ring_op op;
	struct core *core;
	int fd;       /* -1: not in use */
	bool leaving; /* chan hears when the ring has let go of it */
};

struct core {
	struct core_public pub;
	struct cores *cs;
	int index, cpu;
	pthread_t thread;
	bool has_thread;

	/* A question whether it is there, by whoever asks how it is; when (0: none is on its way). */
	struct msg ping;
	_Atomic uint64_t ping_ns;

	/* made by main */
	struct mailbox mb;
	struct bufpool bufs, http_bufs;
	uint64_t region_map[BUF_REGIONS_MAX];

	/* the thread's own */
	struct timers timers;
	struct ring *ring;
	struct store_port *port;
	struct chan *chan;
	struct reqs *reqs;
	struct http *http;
	struct expiry *expiry; /* NULL: there is no store */
	struct scrub *scrub;   /* core 0's; NULL: there is no store, or its back end has no scrub */
	struct life *life;     /* likewise */
	struct stats_core *stats;
	struct ring_op mail_op;
	struct chan_wait chan_waits[CHAN_FDS_MAX];
	struct acceptor acceptors[CONF_LISTEN_MAX];
	int acceptor_nr;
	uint32_t pick_a, pick_b;
	bool more;            /* do not wait in the next turn */
	uint64_t progress_ns; /* when anything was done last */

	/* stopping */
	enum core_phase phase;
	struct timer stop_timer;
	struct msg stop_msg;
	uint64_t phase_ns, say_ns;
};

struct cores {
	const struct conf *conf; /* the first one, which stays: good for what needs a restart */
	struct auth_keys *keys;  /* likewise */
	struct auth_replay *replay;
	const struct op_entry *operations;
	_Atomic int trace_next; /* so many requests are traced from their beginning */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats;
	struct tls_cert *const *certs;
	struct peers *peers;
	int listen_fds[CONF_LISTEN_MAX];
	bool listen_own[CONF_LISTEN_MAX]; /* made here, closed here */
	int listen_ports[CONF_LISTEN_MAX];
	int listen_nr;

	/* starting: how many threads have said how it went; rc and err are the first failure's */
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
/* Runs fn(core, arg) on the thread of each core that has not ended; returns how many have done so (ended ones
 * count) within wait_ns, or -ENOMEM.  The others follow when they turn.  fini(arg) runs last, whatever
 * happens, on any thread.  Not on a core's thread. */
int cores_tell(struct cores *cs, tell_fn fn, void (*fini)(void *arg), void *arg, uint64_t wait_ns);

/* ---- control.c ---- */
/* Makes a configuration for one core's requests, with references of its own; NULL: out of memory. */
struct req_conf *core_conf_new(const struct conf *conf, struct auth_keys *keys);

/* ---- loop.c: the thread ---- */
/* Lets what the core does in the background begin nothing more, or go on. */
void core_pause_walks(struct core *c, bool on);
void *core_main(void *arg);
/* Tells a core to drain and end.  Main thread, once. */
void core_stop_post(struct core *c);
/* Publishes the counters that core_info shows. */
void core_publish(struct core *c);

/* ---- listen.c ---- */
/* Makes and binds what was not handed in.  Main thread.  0 or -errno, the reason in err. */
int listen_open(struct cores *cs, const int *fds, char *err, size_t err_len);
void listen_close(struct cores *cs);
/* Begins to accept on the core's share of the listeners. */
void accept_start(struct core *c);
/* Ends what accept_start() began. */
void accept_stop(struct core *c);

#endif
