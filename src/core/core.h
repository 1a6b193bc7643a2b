/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores. A core is one thread with its own HTTP daemons and connections, ring, channels, buffers, requests
 * and counters. core/ builds these parts and runs the loop; main/ starts and stops the cores; admin/ uses the
 * functions marked "any thread".
 */
#ifndef GANTRY_CORE_CORE_H
#define GANTRY_CORE_CORE_H

#include "conf/conf.h"
#include "walk/scrub.h"

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
	const struct conf *conf;           /* first configuration; the caller keeps it until cores_free() */
	struct auth_keys *keys;            /* credentials, which the caller keeps until cores_free(); NULL:
	                                    * no access keys */
	struct auth_replay *replay;        /* NULL: repeated signatures are not detected */
	const struct op_entry *operations; /* op_table of ops/ops.h */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats; /* counters, owned by main/; core i counts in stats_core(stats, i) */
	/* Listening sockets passed by systemd, one per conf->listen[i]; -1: core/ makes the socket. */
	const int *listen_fds;
	/* Certificates of listeners with TLS, one per conf->listen[i]; an element is NULL for plain HTTP. */
	struct tls_cert *const *certs;
};

/* Makes buffers and regions, binds the listeners and starts the threads; returns when every loop runs.
 * Returns 0, or -errno with the reason in err: -EADDRINUSE, -EADDRNOTAVAIL, -EACCES for a listener (exit
 * 69); -ENOMEM if memory or the memlock limit is too small. */
int cores_start(const struct core_env *env, struct cores **ret_cores, char *err, size_t err_len);
/* Returns the port of listener i, which the kernel chose if the configured port is 0. */
int cores_listen_port(const struct cores *cs, int listener);

/* Refuses new requests (503), waits at most drain_ns for the running requests, then stops the threads.
 * Until cores_free() the functions marked "any thread" may be called, also at the same time: the admin
 * thread and a second signal access cores that are stopping. */
void cores_stop(struct cores *cs, uint64_t drain_ns);
/* Frees the cores after cores_stop(). NULL is allowed. */
void cores_free(struct cores *cs);
/* Ends the drain immediately (a second signal arrived). Any thread. */
void cores_stop_now(struct cores *cs);

/* ---- any thread but a core's ---- */

/* Replaces configuration and credentials for all requests from the next one on; running requests keep the
 * old ones. The cores take references of their own. Returns the number of cores that use them before
 * wait_ns have passed (the other cores follow in their next turn); or -ENOMEM, with nothing changed. */
int cores_set_conf(struct cores *cs, const struct conf *conf, struct auth_keys *keys, uint64_t wait_ns);
/* Makes the cores answer new requests 503 (on), or serve again. The result is that of cores_set_conf(). */
int cores_drain(struct cores *cs, bool on, uint64_t wait_ns);
/* Logs every step of the live request with that id. Returns 0; -ENOENT: there is no such request, or its
 * core is stuck; -ENOMEM. */
int cores_trace(struct cores *cs, const char *id, uint64_t wait_ns);
/* Logs every step of the next nr requests. */
void cores_trace_next(struct cores *cs, int nr);
int cores_trace_left(const struct cores *cs);

/* Begins a scrub, which reads every object, or ends it (walk/scrub.c). Returns 0; -EALREADY: a scrub is in
 * progress already, or there is none to end; -EBUSY: the cores drain; -ENOSYS: there is no store; -EAGAIN:
 * the core did not answer in time and may do it later; -ENOMEM. */
int cores_scrub(struct cores *cs, bool on, uint64_t wait_ns);

/* ---- any thread ---- */
void cores_get_scrub(const struct cores *cs, struct scrub_info *ret_info);
/* Returns true while a walk deletes objects that a lifecycle rule selects, or uploads older than
 * limits.upload_expire. */
bool cores_expire(const struct cores *cs);
int cores_nr(const struct cores *cs);
struct core_info {
	int cpu;
	bool asleep;     /* the core waits in the ring */
	bool on_threads; /* threads are used instead of io_uring */
	/* time since the last turn of the loop, without pauses of the process; the core is stuck if it is large
	 * and asleep is false */
	uint64_t turned_ago_ns;
	int requests, connections, queued;
	int requests_high, queued_high;                /* largest values since the start */
	int bufs_total[2], bufs_avail[2], bufs_low[2]; /* enum buf_class */
	int http_bufs_total, http_bufs_avail, http_bufs_low;
};
/* Returns the state of a core, and sends it a message as a sign of life. A core that has not handled the
 * previous message counts as awake, with its last turn at the time of that message. */
void cores_get_info(struct cores *cs, int core, struct core_info *ret_info);
/* Collects the lines of the live requests of all cores. Waits at most 100 ms, and names the cores that did
 * not answer. */
void cores_dump(struct cores *cs, void (*line)(void *cookie, const char *text), void *cookie);
/* Writes the line of a live request, and its latest steps if it is traced. Returns 0; -ENOENT: there is no
 * such request; -EAGAIN: the cores that answered in time do not have it; -ENOMEM. */
int cores_show(struct cores *cs, const char *id, void (*line)(void *cookie, const char *text), void *cookie);

#endif
