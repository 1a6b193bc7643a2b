/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping the cores, and what other threads may ask of them; see core.h.
 *
 * Main makes what has to exist before a thread does: buffers (registered with every rail), listeners,
 * mailboxes.  The rest each core makes for itself (loop.c).
 */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/run_clock.h"
#include "base/list.h"
#include "base/log.h"
#include "http/peers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PING_NS (100 * NS_PER_MS) /* a core that sleeps has that long to wake */

/* ---- making ---- */

/* Memory lies on the node whose CPU touches it first, and registering touches it: so main goes to the core's
 * CPU meanwhile. */
static int
make_buffers(struct cores *cs, struct core *c, char *err, size_t err_len)
{
	size_t bytes = cs->conf->memory.buffers_bytes / (unsigned)cs->nr;
	size_t http_bytes = cs->conf->memory.http_buffers_bytes / (unsigned)cs->nr;
	cpu_set_t old, here;
	bool moved = false;
	int rc;

	CPU_ZERO(&here);
	CPU_SET(c->cpu, &here);
	if (cs->conf->pin && sched_getaffinity(0, sizeof old, &old) == 0)
		moved = sched_setaffinity(0, sizeof here, &here) == 0;
	/* What is read from a cluster is read by runs. */
	rc = cs->conf->store.backend == BACKEND_RADOS ? bufpool_init_runs(&c->bufs, bytes)
						      : bufpool_init(&c->bufs, bytes);
	if (rc == 0)
		rc = bufpool_init_class(&c->http_bufs, BUF_SMALL, http_bytes, c->bufs.region_nr);
	if (rc < 0)
		snprintf(err, err_len,
			 "%zu MiB of buffers for core %d: %s (memory.buffers, memory.http_buffers)",
			 (bytes + http_bytes) >> 20, c->index, strerror(-rc));
	for (int i = 0; rc == 0 && i < c->bufs.region_nr && cs->rdma; i++)
		rc = rdma_region_add(cs->rdma, c->bufs.region[i].iov_base, c->bufs.region[i].iov_len,
				     &c->region_map[i], err, err_len);
	if (moved)
		sched_setaffinity(0, sizeof old, &old);
	return rc;
}

static int
make_core(struct cores *cs, struct core *c, char *err, size_t err_len)
{
	int rc = mailbox_init(&c->mb);

	if (rc < 0) {
		snprintf(err, err_len, "core %d: %s", c->index, strerror(-rc));
		return rc;
	}
	return make_buffers(cs, c, err, err_len);
}

static int
make_thread(struct core *c, char *err, size_t err_len)
{
	sigset_t all, old;
	int rc;

	/* Signals are main's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->thread, NULL, core_main, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	c->has_thread = rc == 0;
	if (rc)
		snprintf(err, err_len, "core %d: thread: %s", c->index, strerror(rc));
	return -rc;
}

static int
run_threads(struct cores *cs, char *err, size_t err_len)
{
	int made = 0, rc = 0;

	for (int i = 0; i < cs->nr && rc == 0; i++) {
		rc = make_thread(&cs->core[i], err, err_len);
		made += rc == 0;
	}
	pthread_mutex_lock(&cs->lock);
	if (rc < 0 && cs->rc == 0) {
		cs->rc = rc;
		snprintf(cs->err, sizeof cs->err, "%s", err);
		pthread_cond_broadcast(&cs->cond);
	}
	while (cs->said < made)
		pthread_cond_wait(&cs->cond, &cs->lock);
	rc = cs->rc;
	pthread_mutex_unlock(&cs->lock);
	if (rc < 0)
		snprintf(err, err_len, "%s", cs->err);
	return rc;
}

static void
say_backing(const struct cores *cs)
{
	static const char *const names[] = { "reserved hugepages", "transparent hugepages", "small pages" };
	enum buf_backing worst = BUF_HUGETLB;

	for (int i = 0; i < cs->nr; i++) {
		if (cs->core[i].bufs.backing > worst)
			worst = cs->core[i].bufs.backing;
	}
	if (worst == BUF_SMALL_PAGES)
		log_warn("payload buffers lie on small pages: large objects cost two to three times the CPU "
			 "(/sys/kernel/mm/transparent_hugepage/enabled, vm.nr_hugepages)");
	else
		log_info("payload buffers lie on %s", names[worst]);
}

static void
join(struct cores *cs)
{
	for (int i = 0; i < cs->nr; i++) {
		struct core *c = &cs->core[i];

		if (c->has_thread)
			pthread_join(c->thread, NULL);
		c->has_thread = false;
	}
	cs->joined = true;
	listen_close(cs);
}

int
cores_start(const struct core_env *env, struct cores **ret_cores, char *err, size_t err_len)
{
	int nr = env->conf->core_nr, rc;
	struct cores *cs =
		aligned_alloc(128, (sizeof *cs + (size_t)nr * sizeof cs->core[0] + 127) & ~(size_t)127);

	check(nr > 0);
	if (!cs) {
		snprintf(err, err_len, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	memset(cs, 0, sizeof *cs + (size_t)nr * sizeof cs->core[0]);
	cs->conf = env->conf;
	cs->keys = env->keys;
	cs->replay = env->replay;
	cs->operations = env->operations;
	cs->certs = env->certs;
	cs->rdma = env->rdma;
	cs->store = env->store;
	cs->stats = env->stats;
	cs->nr = nr;
	pthread_mutex_init(&cs->lock, NULL);
	pthread_cond_init(&cs->cond, NULL);
	for (int i = 0; i < nr; i++) {
		cs->core[i].cs = cs;
		cs->core[i].index = i;
		cs->core[i].cpu = env->conf->cores[i];
		cs->core[i].pick_a = (uint32_t)i;
		cs->core[i].pick_b = 0x9e3779b9u * (uint32_t)(i + 1);
		cs->core[i].mb.efd = -1;
	}
	rc = peers_new(nr * http_connections_max(env->conf), &cs->peers);
	if (rc < 0)
		snprintf(err, err_len, "the table of client addresses: %s (limits.connections)",
			 strerror(-rc));
	if (rc == 0 && (rc = walks_public_new(cs->store && store_had_no_expiry(cs->store), &cs->walks)) < 0)
		snprintf(err, err_len, "the state of the walks: %s", strerror(-rc));
	if (rc == 0)
		rc = listen_open(cs, env->listen_fds, err, err_len);
	for (int i = 0; rc == 0 && i < nr; i++)
		rc = make_core(cs, &cs->core[i], err, err_len);
	if (rc == 0)
		rc = run_threads(cs, err, err_len);
	if (rc < 0) {
		join(cs);
		cores_free(cs);
		return rc;
	}
	say_backing(cs);
	*ret_cores = cs;
	return 0;
}

/* ---- ending ---- */

void
cores_stop(struct cores *cs, uint64_t drain_ns)
{
	if (cs->joined)
		return;
	cs->drain_ns = drain_ns;
	for (int i = 0; i < cs->nr; i++)
		core_stop_post(&cs->core[i]);
	join(cs);
}

void
cores_stop_now(struct cores *cs)
{
	/* A core that drains looks at this every few milliseconds. */
	atomic_store(&cs->stop_now, true);
}

void
cores_free(struct cores *cs)
{
	if (!cs)
		return;
	check(cs->joined);
	for (int i = 0; i < cs->nr; i++) {
		struct core *c = &cs->core[i];

		/* What was on its way to a core that had ended: sockets, questions. */
		if (c->mb.efd >= 0) {
			while (mailbox_run(&c->mb, 0))
				;
			mailbox_fini(&c->mb);
		}
	}
	for (int i = 0; i < cs->nr; i++) {
		bufpool_fini(&cs->core[i].http_bufs);
		bufpool_fini(&cs->core[i].bufs);
	}
	peers_free(cs->peers);
	walks_public_free(cs->walks);
	pthread_cond_destroy(&cs->cond);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}

/* ---- questions: any thread ---- */

int
cores_listen_port(const struct cores *cs, int listener)
{
	check(listener >= 0 && listener < cs->conf->listen_nr);
	return cs->listen_ports[listener];
}

int
cores_nr(const struct cores *cs)
{
	return cs->nr;
}

static int
get(const _Atomic int *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void
on_ping(struct msg *m)
{
	atomic_store(&container_of(m, struct core, ping)->ping_ns, 0);
}

/* A core that sleeps cannot be told from one that will never wake but by waking it.  Returns since when it
 * should have: 0 when it has answered. */
static uint64_t
ping(struct core *c)
{
	uint64_t none = 0, now = run_ns();

	if (atomic_load(&c->pub.over) || !atomic_load(&c->pub.serving))
		return 0;
	if (atomic_compare_exchange_strong(&c->ping_ns, &none, now)) {
		mailbox_post(&c->mb, &c->ping, on_ping);
		return 0;
	}
	return none;
}

void
cores_get_info(struct cores *cs, int core, struct core_info *ret_info)
{
	struct core *c = &cs->core[core];
	uint64_t asked;

	check(core >= 0 && core < cs->nr);
	ret_info->cpu = c->cpu;
	/* In this order: who is seen awake has turned at the time that is read then. */
	ret_info->asleep = atomic_load_explicit(&c->pub.asleep, memory_order_acquire);
	ret_info->turned_ago_ns = run_since_ns(atomic_load_explicit(&c->pub.turned_ns, memory_order_relaxed));
	asked = ping(c);
	if (ret_info->asleep && asked && run_since_ns(asked) > PING_NS) {
		ret_info->asleep = false;
		ret_info->turned_ago_ns = run_since_ns(asked);
	}
	ret_info->requests = get(&c->pub.requests);
	ret_info->connections = get(&c->pub.connections);
	ret_info->queued = get(&c->pub.queued);
	ret_info->requests_high = get(&c->pub.requests_high);
	ret_info->queued_high = get(&c->pub.queued_high);
	ret_info->http_bufs_low = get(&c->pub.http_bufs_low);
	ret_info->on_threads = get(&c->pub.on_threads);
	ret_info->unregistered = get(&c->pub.unregistered);
	for (int i = 0; i < BUF_CLASS_NR; i++) {
		ret_info->bufs_total[i] = c->bufs.total[i];
		ret_info->bufs_avail[i] = get(&c->pub.bufs_avail[i]);
		ret_info->bufs_low[i] = get(&c->pub.bufs_low[i]);
	}
	ret_info->http_bufs_total = c->http_bufs.total[BUF_SMALL];
	ret_info->http_bufs_avail = get(&c->pub.http_bufs_avail);
}
