/* SPDX-License-Identifier: Apache-2.0 */
/* Cores. A core is one thread with separate HTTP daemons and connections, and a separate ring, channels,
 * buffers, requests and counters. core/ builds these objects and runs the loop; main/ starts and stops the
 * cores; admin/ uses the functions that any thread may call. */
#ifndef GANTRY_CORE_CORE_H
#define GANTRY_CORE_CORE_H

#include "conf/conf.h"
#include "walk/walks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct auth_keys;
struct auth_replay;
struct cores;
struct op_entry;
struct rdma;
struct stats;
struct store;
struct tls_cert;

struct core_env {
	const struct conf *conf; /* first configuration; the caller keeps it until cores_free() */
	/* credentials; the caller keeps them until cores_free(). NULL: no access keys */
	struct auth_keys *keys;
	/* table of used signatures (auth.replay); NULL: repeated signatures are not detected */
	struct auth_replay *replay;
	const struct op_entry *operations; /* code of the operations: op_table of ops/ops.h */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats; /* counters, owned by main/; core i uses stats_core(stats, i) */
	/* Listening sockets passed by systemd, one for each conf->listen[i]; -1: core/ makes the socket. */
	const int *listen_fds;
	/* Certificates of the listeners, one for each conf->listen[i]; NULL: the listener has no TLS. */
	struct tls_cert *const *certs;
};

/* Makes buffers and registers their memory, binds the listeners and starts the threads. Returns when every
 * loop runs: 0; or -errno with the reason in err: -EADDRINUSE, -EADDRNOTAVAIL, -EACCES for a listener (exit
 * 69); -ENOMEM if memory or the memlock limit is too small. */
int cores_start(const struct core_env *env, struct cores **ret_cores, char *err, size_t err_len);
/* Returns the TCP port of listener i; the kernel has chosen it if the configured port is 0. */
int cores_listen_port(const struct cores *cs, int listener);

/* Refuses new requests (503), waits for at most drain_ns until running requests have ended, then stops the
 * threads. The functions for any thread may be called until cores_free(), even during this call: the admin
 * thread and a second signal access cores that are stopping. */
void cores_stop(struct cores *cs, uint64_t drain_ns);
/* Frees the cores after cores_stop(). NULL is allowed. */
void cores_free(struct cores *cs);
/* Ends the wait of cores_stop() for running requests immediately. Called after a second signal. Any thread
 * may call this function. */
void cores_stop_now(struct cores *cs);

/* ---- any thread but a core's ---- */

/* Replaces configuration and credentials for all requests that begin from now on; running requests keep the
 * old ones. The cores take references to conf and keys. Returns the number of cores that use conf and keys
 * before wait_ns have passed (the other cores follow in their next turn); or -ENOMEM, without a change. */
int cores_set_conf(struct cores *cs, const struct conf *conf, struct auth_keys *keys, uint64_t wait_ns);
/* Makes the cores answer new requests with 503 (on: true), or serve again (on: false). Returns the number of
 * cores that have done so before wait_ns have passed, or -ENOMEM. */
int cores_drain(struct cores *cs, bool on, uint64_t wait_ns);
/* Logs every further step of the live request with this id. Returns 0; -ENOENT: there is no such request, or
 * its core is stuck; -ENOMEM. */
int cores_trace(struct cores *cs, const char *id, uint64_t wait_ns);
/* Logs every step of the next nr requests that begin, on all cores together. */
void cores_trace_next(struct cores *cs, int nr);
int cores_trace_left(const struct cores *cs);

/* Begins a walk (on: true), or ends the walk in progress (on: false). Returns 0; -EALREADY: such a walk is in
 * progress already, or there is none to end; -EBUSY: the cores drain; -ENOSYS: there is no store; -EAGAIN: the core
 * did not answer in time, and may follow later; -ENOMEM. */
int cores_walk(struct cores *cs, enum walk_id id, bool on, uint64_t wait_ns);

/* ---- any thread ---- */
/* Returns the state of the walks, which exists until cores_free(). */
const struct walks_public *cores_walks(const struct cores *cs);
int cores_nr(const struct cores *cs);
struct core_info {
	int cpu;
	bool asleep;     /* the core waits in the ring */
	bool on_threads; /* threads are used instead of io_uring */
	/* the buffers are not registered with io_uring, so disk I/O costs more */
	bool unregistered;
	/* time in ns since the last turn of the loop, without pauses of the process; if it is long and
	 * `asleep` is false, the core is stuck */
	uint64_t turned_ago_ns;
	int requests, connections, queued;
	int requests_high, queued_high; /* largest values of requests and queued since the start */
	int bufs_total[2], bufs_avail[2], bufs_low[2]; /* numbers of buffers, by enum buf_class */
	int http_bufs_total, http_bufs_avail, http_bufs_low;
};
/* Returns the state of a core. Also sends the core a message to test whether it answers. Until the core has
 * handled this message, the result is that the core is awake and made its last turn when the message was
 * sent. */
void cores_get_info(struct cores *cs, int core, struct core_info *ret_info);
/* Passes a line for each live request of all cores to line(). Waits at most 100 ms; a core that has not
 * answered by then gets a line with its number. */
void cores_dump(struct cores *cs, void (*line)(void *cookie, const char *text), void *cookie);
/* Passes the line of the live request with this id to line(), and, if the request is traced, a line for each
 * of its latest steps. Returns 0; -ENOENT: there is no such request; -EAGAIN: the cores that answered in time
 * do not have it; -ENOMEM. */
int cores_show(struct cores *cs, const char *id, void (*line)(void *cookie, const char *text), void *cookie);

#endif
