/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores: one thread each, which owns its HTTP daemons and connections, ring, channels, buffers, requests and
 * counters. core builds the parts and runs the loop; main starts and stops them; admin uses the functions
 * marked "any thread".
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
	const struct conf *conf;           /* kept by the caller until cores_free() */
	struct auth_keys *keys;            /* NULL: none; kept by the caller until cores_free() */
	struct auth_replay *replay;        /* NULL: off */
	const struct op_entry *operations; /* op_table of ops/ops.h */
	struct rdma *rdma;
	struct store *store;
	struct stats *stats; /* owned by main; core i counts in stats_core(stats, i) */
	/* Listening sockets, one per conf->listen[i]; -1: core makes it. (Sockets passed by systemd.) */
	const int *listen_fds;
	/* Certificates of listeners with TLS, one per conf->listen[i]; NULL: plain HTTP. */
	struct tls_cert *const *certs;
};

/* Makes buffers and regions, binds listeners, starts the threads; returns when every loop runs. 0, or -errno
 * with the reason in err (-EADDRINUSE, -EADDRNOTAVAIL, -EACCES for a listener: exit 69; -ENOMEM for memory or
 * memlock). */
int cores_start(const struct core_env *env, struct cores **ret_cores, char *err, size_t err_len);
/* Returns the actual port of listener i (port 0 picks a free one). */
int cores_listen_port(const struct cores *cs, int listener);

/* Refuses new requests (503), lets running ones finish for at most drain_ns, then stops the threads.
 * Functions marked "any thread" may be called at the same time and afterwards, until cores_free(): the admin
 * thread and a second signal look at cores that are stopping. */
void cores_stop(struct cores *cs, uint64_t drain_ns);
/* Frees the cores, after cores_stop().  NULL is allowed. */
void cores_free(struct cores *cs);
/* Ends the drain immediately, on a second signal. Any thread. */
void cores_stop_now(struct cores *cs);

/* ---- any thread but a core's ---- */

/* Replaces configuration and credentials from the next request on; running requests keep the old ones. Both
 * are counted and remain the caller's too. Returns the number of cores that have taken them within wait_ns
 * (the others follow in their next turn), or -ENOMEM: nothing was changed. */
int cores_set_conf(struct cores *cs, const struct conf *conf, struct auth_keys *keys, uint64_t wait_ns);
/* Answers new requests 503 from now on, or serves again. Returns as cores_set_conf(). */
int cores_drain(struct cores *cs, bool on, uint64_t wait_ns);
/* Logs every step of the live request with that id. 0, -ENOENT (not found, or its core is stuck), -ENOMEM. */
int cores_trace(struct cores *cs, const char *id, uint64_t wait_ns);
/* Logs every step of the next nr requests. cores_trace_left() returns how many of them have not arrived
 * yet. */
void cores_trace_next(struct cores *cs, int nr);
int cores_trace_left(const struct cores *cs);

/* Begins a scan that reads every object, or ends it (scrub.c). 0; -EALREADY: one is in progress, or none
 * is; -EBUSY: draining; -ENOSYS: no store; -EAGAIN: the core has not answered in time and may do it yet;
 * -ENOMEM. */
int cores_scrub(struct cores *cs, bool on, uint64_t wait_ns);

/* ---- any thread ---- */
void cores_get_scrub(const struct cores *cs, struct scrub_info *ret_info);
/* Returns true while a walk deletes what lifecycle rules, or limits.upload_expire, call due. */
bool cores_expire(const struct cores *cs);
int cores_nr(const struct cores *cs);
struct core_info {
	int cpu;
	bool asleep;            /* the core waits in the ring */
	bool on_threads;        /* threads are used instead of io_uring */
	uint64_t turned_ago_ns; /* time since the last turn of the loop; large and !asleep: stuck */
	int requests, connections, queued;
	int requests_high, queued_high;                /* maxima since the start */
	int bufs_total[2], bufs_avail[2], bufs_low[2]; /* enum buf_class */
	int http_bufs_total, http_bufs_avail, http_bufs_low;
};
/* Returns the state of a core, and sends it a message as a sign of life: a core that has not run the previous
 * message is reported as awake and not turning since then. */
void cores_get_info(struct cores *cs, int core, struct core_info *ret_info);
/* Collects the lines of all cores' live requests; waits at most 100 ms (a stuck core is named). */
void cores_dump(struct cores *cs, void (*line)(void *cookie, const char *text), void *cookie);
/* Writes the line of a live request, and its latest steps if it is traced. 0; -ENOENT: not found; -EAGAIN:
 * not found on the cores that answered in time; -ENOMEM. */
int cores_show(struct cores *cs, const char *id, void (*line)(void *cookie, const char *text), void *cookie);

#endif
