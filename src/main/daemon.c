/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the daemon:
 *
 *   log -> RDMA -> admin thread -> store (recovers) -> cores (listen) -> ready
 *     ... signals ...
 *   cores drain and stop -> admin thread -> store -> RDMA -> the cores' memory
 *
 * The admin thread comes early and goes late, so that health is answered while the store recovers and while
 * requests drain.  The main thread does nothing but wait for signals and feed systemd's watchdog: starting
 * and stopping have a thread each, one after the other.
 */
#include "main/daemon.h"
#include "main/meter.h"
#include "main/notify.h"
#include "main/options.h"

#include "admin/admin.h"
#include "auth/auth.h"
#include "base/advice.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "chan/chan.h"
#include "core/core.h"
#include "dialect/dialect.h"
#include "ops/ops.h"
#include "rdma/rdma.h"
#include "stats/stats.h"
#include "store/store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define DC_KEY_WELL_KNOWN 0xffeeddccull
#define LOG_END_NS (2 * NS_PER_S)      /* for lines that wait when the process ends */
#define STOP_EXTEND_NS (30 * NS_PER_S) /* beyond the drain: the last stamps of the store, devices */

/* Connections and registered memory want all that root allows us. */
static void
raise_limit(int which, const char *name)
{
	struct rlimit l;

	if (getrlimit(which, &l) < 0)
		return;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(which, &l) < 0)
		log_warn("cannot raise %s to its hard limit: %s", name, strerror(errno));
}

/* Where the HTTP client's address says something about the token's, an operator should decide whether it
 * counts. */
static void
advise_binding(const struct conf *conf, const struct rdma *rdma)
{
	if (conf->rdma.bind_gid != BIND_GID_OFF)
		return;
	for (int i = 0; i < conf->listen_nr; i++) {
		if (!rdma_shares_subnet(rdma, (const struct sockaddr *)&conf->listen[i].sa))
			continue;
		log_note("%s and the RDMA rails share a subnet, and rdma.bind_gid is off: a token may name "
			 "any "
			 "host in it; `subnet` or `exact` ties tokens to the address of their client, gids "
			 "of an "
			 "access key to a list",
			 conf->listen[i].address);
		return;
	}
}

/* What an operator should know about and that is no error. */
static void
warn_about(const struct conf *conf, const struct rdma *rdma, const struct auth_keys *keys)
{
	bool rails = rdma_rail_nr(rdma) > 0;

	if (conf->rdma.mode == RDMA_NONE)
		log_note("RDMA is switched off (rdma.devices: none): everything goes over HTTP");
	else if (!rails)
		log_note("gantryd --list-devices says why no RDMA device is used");
	if (rails && conf->rdma.dc_key == DC_KEY_WELL_KNOWN)
		log_note("rdma.dc_key is the one that everybody knows; clients' memory is protected by their "
			 "tokens alone");
	for (int i = 0; i < conf->listen_nr; i++) {
		const struct conf_listen *l = &conf->listen[i];

		if (l->anonymous && !conf_is_loopback(&l->sa))
			log_warn("%s: anonymous: true: every client that reaches this address may read, "
				 "write and "
				 "delete everything",
				 l->address);
	}
	advise_binding(conf, rdma);
	if (!conf->auth.credentials_file)
		log_note("there are no access keys (auth.credentials_file): signed requests are refused");
	else if (keys && auth_keys_nr(keys) == 0)
		log_warn("%s has no access keys: signed requests are refused; `gantry key new` makes one",
			 conf->auth.credentials_file);
	if (conf->rdma.allow_loopback || conf->rdma.allow_self || conf->rdma.allow_link_local)
		log_warn("rdma.allow_special is set: tokens may name this machine itself; meant for tests");
	if (!conf->pin)
		log_note("%d cores on fewer CPUs: threads are not pinned", conf->core_nr);
}

/* ---- start ---- */

static int
start_store(struct daemon *d)
{
	struct store_disk_conf disks[CONF_DISKS_MAX];
	struct store_conf sc;
	bool on_cluster = d->conf->store.backend == BACKEND_RADOS;
	struct store *store;
	char err[STORE_WHY_BYTES] = "";
	int r;

	atomic_store(&d->phase, on_cluster ? PHASE_CLUSTER : PHASE_RECOVERING);
	notify_send("%s", on_cluster ? "STATUS=Waiting for the cluster" : "STATUS=Recovering the store");
	r = remember_store_conf(d->conf, d->source, disks, &sc, &d->remember, err, sizeof err);
	if (r == 0 && !on_cluster) {
		below_wait(d, &sc);
		sc.disks.meter = meter_of_start(sc.disks.disk, sc.disks.nr);
	}
	if (r == 0)
		r = store_start(&sc, &store, err, sizeof err);
	/* A cluster comes back without anybody's help: gateways that were started before it wait. */
	while (on_cluster && r == -ETIMEDOUT) {
		log_warn("store: %.*s; trying again", (int)advice_problem(err), err);
		r = store_start(&sc, &store, err, sizeof err);
	}
	if (r == 0) {
		atomic_store(&d->store, store);
		remember_start(d);
		r = daemon_set_quotas(store, d->keys);
		if (r < 0)
			log_event(LOG_EV_START_FAILED, LOG_ERROR, "quotas of access keys: %s", strerror(-r));
		return r < 0 ? EXIT_RUNTIME : 0;
	}
	remember_way_out(d->remember, r, err, sizeof err);
	log_event(LOG_EV_START_FAILED, LOG_ERROR, "store: %.*s", err[0] ? (int)advice_problem(err) : 99,
		  err[0] ? err : strerror(-r));
	advice_log(LOG_ERROR, LOG_MODULE, err);
	return exit_of_store(r);
}

static int
start_cores(struct daemon *d)
{
	struct core_env env = { .conf = d->conf,
				.keys = d->keys,
				.replay = d->replay,
				.operations = op_table,
				.rdma = d->rdma,
				.store = atomic_load(&d->store),
				.stats = d->stats,
				.listen_fds = d->listen_fds,
				.certs = d->certs };
	struct cores *cores;
	char err[512] = "";
	int r;

	notify_send("STATUS=Starting cores");
	r = cores_start(&env, &cores, err, sizeof err);
	if (r == 0) {
		atomic_store(&d->cores, cores);
		return 0;
	}
	log_event(LOG_EV_START_FAILED, LOG_ERROR, "cores: %s", err[0] ? err : strerror(-r));
	return r == -EADDRINUSE || r == -EADDRNOTAVAIL || r == -EACCES ? EXIT_MISSING : EXIT_RUNTIME;
}

static int
start(struct daemon *d)
{
	static const struct stats_names names = { op_name, OP_NR, chan_reason_name, CHAN_REASON_NR };
	_Static_assert(OP_NR <= STATS_OPS_MAX, "more operations than stats/ has room for: STATS_OPS_MAX");
	_Static_assert(CHAN_REASON_NR <= STATS_REASONS_MAX, "likewise: STATS_REASONS_MAX");
	char err[512] = "";
	int r;

	daemon_take_sockets(d);
	r = daemon_load_certs(d->conf, d->certs);
	if (r >= 0)
		r = daemon_load_keys(d->conf, &d->keys);
	if (r < 0)
		return r == -ENOMEM ? EXIT_RUNTIME : EXIT_CONFIG;
	atomic_store(&d->key_nr, auth_keys_nr(d->keys));
	if (daemon_make_replay(d->conf, &d->replay) < 0) {
		log_error("auth.replay: out of memory");
		return EXIT_RUNTIME;
	}
	r = stats_new(d->conf->core_nr, &names, &d->stats);
	if (r < 0) {
		log_error("counters: %s", strerror(-r));
		return EXIT_RUNTIME;
	}
	r = rdma_open(&d->conf->rdma, &d->rdma, err, sizeof err);
	if (r < 0) {
		log_event(LOG_EV_START_FAILED, LOG_ERROR, "RDMA: %s", err[0] ? err : strerror(-r));
		return r == -EINVAL ? EXIT_CONFIG : EXIT_RUNTIME;
	}
	warn_about(d->conf, d->rdma, d->keys);
	r = daemon_start_admin(d);
	if (r == 0)
		r = start_store(d);
	if (r == 0 && daemon_make_buckets(d->conf, atomic_load(&d->store)) < 0)
		r = EXIT_RUNTIME;
	if (r == 0)
		r = start_cores(d);
	return r;
}

static void
release(struct daemon *d)
{
	daemon_reload_wait(d);
	admin_stop(d->admin);
	daemon_look_end(d);
	store_stop(atomic_load(&d->store));
	/* The buffers go last: a device that is being reopened just now registers them. */
	rdma_close(d->rdma);
	cores_free(atomic_load(&d->cores));
	daemon_free_certs(d->certs);
	auth_keys_put(d->keys);
	auth_replay_free(d->replay);
	daemon_conf_put(d->conf_now);
	stats_free(d->stats);
}

/* ---- signals ---- */

static void
log_line(void *cookie, const char *text)
{
	log_note("%s", text);
}

static void
dump(struct daemon *d)
{
	log_note("live requests:");
	cores_dump(atomic_load(&d->cores), log_line, NULL);
	log_note("end of live requests");
}

/* Looks at every core once a second, asked or not.  systemd restarts us when WATCHDOG=1 stops coming, so
 * it comes only while every core turns or sleeps. */
static void
feed_watchdog(struct daemon *d, bool fed)
{
	struct cores *cores = atomic_load(&d->cores);

	for (int i = 0; i < cores_nr(cores); i++) {
		struct core_info info;

		cores_get_info(cores, i, &info);
		if (!info.asleep && info.turned_ago_ns >= ADMIN_STUCK_NS) {
			log_event(LOG_EV_CORE_STUCK, LOG_ERROR,
				  "core %d is stuck: its loop has not turned for %llu ms", i,
				  (unsigned long long)(info.turned_ago_ns / NS_PER_MS));
			return;
		}
	}
	if (fed)
		notify_watchdog();
}

static uint64_t
drain_ns(struct daemon *d)
{
	const struct conf *c = daemon_conf(d);
	uint64_t ns = c->limits.drain_ns;

	daemon_conf_put(c);
	return ns;
}

/* Ends the process while its threads run: what is left in the queues is written first. */
static _Noreturn void
end_now(const struct daemon *d, int rc)
{
	if (d->conf->admin.socket && atomic_load(&d->admin_listens))
		unlink(d->conf->admin.socket);
	daemon_audit_stop();
	log_flush(LOG_END_NS);
	_exit(rc);
}

/* Another process has taken the store over, and cleans up after this one: this process says so to the
 * clients that asked for something, and ends where it stands.  The one that is started next is another. */
static _Noreturn void
end_fenced(const struct daemon *d)
{
	const struct timespec a_second = { .tv_sec = 1 };
	char why[256] = "";

	store_answers(atomic_load(&d->store), why, sizeof why);
	log_event(LOG_EV_STOPPED, LOG_ERROR,
		  "another gateway has taken over (%s): this process ends, to be restarted", why);
	nanosleep(&a_second, NULL);
	end_now(d, EXIT_RUNTIME);
}

/* Until TERM or INT. */
static void
serve(struct daemon *d, const sigset_t *signals)
{
	uint64_t watchdog_us = 0;
	bool fed = sd_watchdog_enabled(0, &watchdog_us) > 0;
	uint64_t third_ns = watchdog_us * NS_PER_US / 3,
		 wait_ns = fed && third_ns < NS_PER_S ? third_ns : NS_PER_S;
	struct timespec ts = { (time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S) };

	for (;;) {
		int sig = sigtimedwait(signals, NULL, &ts);

		if (sig == SIGTERM || sig == SIGINT) {
			log_note("%s: draining, at most %llu s", sig == SIGTERM ? "SIGTERM" : "SIGINT",
				 (unsigned long long)(drain_ns(d) / NS_PER_S));
			return;
		}
		if (store_is_fenced(atomic_load(&d->store)))
			end_fenced(d);
		if (sig == SIGHUP)
			daemon_reload_begin(d);
		if (sig == SIGUSR2)
			dump(d);
		feed_watchdog(d, fed);
		daemon_look(d);
	}
}

/* What takes long is done on a thread of its own, so that the main thread hears signals meanwhile. */
struct work {
	struct daemon *d;
	int rc;
	_Atomic bool done;
};

static void *
start_main(void *arg)
{
	struct work *w = arg;

	w->rc = start(w->d);
	atomic_store(&w->done, true);
	return NULL;
}

static void *
stop_main(void *arg)
{
	struct work *w = arg;

	cores_stop(atomic_load(&w->d->cores), drain_ns(w->d));
	atomic_store(&w->done, true);
	return NULL;
}

/* Starting may wait for a lock and read a long log.  Nothing is served and nothing was written that a start
 * does not repair, so a signal ends the process at once. */
static int
start_watched(struct daemon *d, const sigset_t *signals)
{
	struct work w = { .d = d };
	struct timespec ts = { 0, 5 * (long)NS_PER_MS };
	bool reloads = false;
	pthread_t thread;

	if (pthread_create(&thread, NULL, start_main, &w) != 0) {
		start_main(&w);
		return w.rc;
	}
	while (!atomic_load(&w.done)) {
		int sig = sigtimedwait(signals, NULL, &ts);

		meter_tell_start(d, clock_ns());
		reloads |= sig == SIGHUP;
		if (sig == SIGTERM || sig == SIGINT) {
			log_note("signal while %s: ended", phase_name[atomic_load(&d->phase)]);
			end_now(d, EXIT_OK);
		}
	}
	pthread_join(thread, NULL);
	/* For who serves: the configuration may have been read before it. */
	if (reloads)
		kill(getpid(), SIGHUP);
	return w.rc;
}

/* Stopping takes as long as the requests; meanwhile a second signal must be heard. */
static void
drain(struct daemon *d, const sigset_t *signals)
{
	struct work w = { .d = d };
	struct timespec ts = { 0, 20 * (long)NS_PER_MS };
	pthread_t thread;

	atomic_store(&d->phase, PHASE_DRAINING);
	notify_send("STOPPING=1\nSTATUS=Draining\nEXTEND_TIMEOUT_USEC=%llu",
		    (unsigned long long)(drain_ns(d) + STOP_EXTEND_NS) / NS_PER_US);
	if (pthread_create(&thread, NULL, stop_main, &w) != 0) {
		stop_main(&w);
		return;
	}
	for (int turn = 0; !atomic_load(&w.done); turn++) {
		int sig = sigtimedwait(signals, NULL, &ts);

		if (sig == SIGTERM || sig == SIGINT) {
			log_note("second signal: stopping now");
			cores_stop_now(atomic_load(&d->cores));
		}
		if (sig == SIGUSR2)
			dump(d);
		if (turn % 25 == 0)
			notify_watchdog();
	}
	pthread_join(thread, NULL);
}

int
daemon_run(const struct conf *conf, const struct conf_source *source, const char *ready_file)
{
	struct daemon d = { .conf = conf,
			    .source = source,
			    .started_ns = clock_ns(),
			    .conf_lock = PTHREAD_MUTEX_INITIALIZER,
			    .reload_lock = PTHREAD_MUTEX_INITIALIZER,
			    .conf_now = conf_get(conf),
			    .reloaded_ns = clock_wall_ns() };
	sigset_t signals;
	int rc;

	log_init(conf->log.format, conf->log.level);
	daemon_log_levels(conf);
	daemon_audit(conf);
	/* Every thread inherits this; only the main thread takes signals, in sigtimedwait(). */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = log_queue_start();
	if (rc < 0)
		log_warn("no thread for the log: who reads it too slowly holds requests up: %s",
			 strerror(-rc));
	notify_start();
	/* The first process of a container inherits the orphans of others there, and has no children of its own:
	 * the kernel then buries them. */
	if (getpid() == 1)
		signal(SIGCHLD, SIG_IGN);
	raise_limit(RLIMIT_NOFILE, "the number of open files");
	raise_limit(RLIMIT_MEMLOCK, "locked memory");

	rc = start_watched(&d, &signals);
	if (rc == EXIT_OK) {
		rc = daemon_say_ready(&d, ready_file);
		if (rc == EXIT_OK)
			serve(&d, &signals);
		drain(&d, &signals);
	}
	release(&d);
	if (rc == EXIT_OK)
		log_event(LOG_EV_STOPPED, LOG_NOTE, "stopped");
	notify_stop();
	daemon_audit_stop();
	log_queue_stop(LOG_END_NS);
	return rc;
}
