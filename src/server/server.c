/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing.
 *
 * A device that has died is reopened when nothing is left that was made on it, so a channel that its
 * program does not use at the moment must give back what it has: the keeper does that, a thread that sleeps
 * until something changes about a port.
 */
#include "server/server_int.h"

#include "base/clock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEEP_AGAIN_NS (10 * NS_PER_MS)

static _Thread_local char open_error[512];
static _Atomic unsigned forks;

const char *
gantry_server_version(void)
{
	return GANTRY_VERSION;
}

const char *
gantry_server_open_error(void)
{
	return open_error;
}

const char *
gantry_status_text(int wc_status)
{
	return ibv_wc_status_str((enum ibv_wc_status)wc_status);
}

void *
gantry_host_alloc(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem;

	return size && posix_memalign(&mem, page, size) == 0 ? mem : NULL;
}

/* ---- forks ---- */

static void
in_child(void)
{
	forks++;
	log_in_child();
}

static void
prepare(void)
{
	rdma_prepare();
	pthread_atfork(NULL, NULL, in_child);
}

/*
 * A kernel older than 5.12 makes registered pages copy-on-write at a fork(), of the parent as well, which then
 * writes to pages that the adapter does not know; ibv_fork_init() keeps them out of children.  False: it cannot,
 * because memory was registered already.
 */
static bool
is_fork_safe(void)
{
	return ibv_is_fork_initialized() != IBV_FORK_DISABLED || ibv_fork_init() == 0;
}

bool
is_mine(const struct gantry_server *s)
{
	return s->forks == atomic_load_explicit(&forks, memory_order_relaxed);
}

/* ---- the keeper ---- */

/* On a thread of rdma/, which holds a lock of its own. */
static void
on_change(struct rdma_watch *w)
{
	struct gantry_server *s = container_of(w, struct gantry_server, watch);

	pthread_mutex_lock(&s->keeper_lock);
	s->is_asked = true;
	pthread_cond_signal(&s->keeper_more);
	pthread_mutex_unlock(&s->keeper_lock);
}

/* A device is gone, and comes back when nothing is left of it. */
static bool
some_is_gone(const struct gantry_server *s)
{
	for (int i = 0; i < rdma_rail_nr(s->rd); i++) {
		if (!rdma_rail_context(rdma_rail(s->rd, i)))
			return true;
	}
	return false;
}

/* Looks after one channel, if nobody uses it; true: again soon. */
static bool
keep_one(struct gantry_server *s, struct gantry_channel *c)
{
	int was = FREE;
	bool again;

	if (!atomic_compare_exchange_strong(&c->taken, &was, KEPT)) {
		channel_kick(c); /* who uses it may be asleep */
		return some_is_gone(s);
	}
	pthread_mutex_unlock(&s->lock);
	again = channel_keep(c);
	pthread_mutex_lock(&s->lock);
	return again;
}

/* Looks after all of them; true: again soon. */
static bool
keep_all(struct gantry_server *s)
{
	bool again = false;

	pthread_mutex_lock(&s->lock);
	for (struct list *l = s->channels.next; l != &s->channels;) {
		struct gantry_channel *c = container_of(l, struct gantry_channel, link);
		int kept = KEPT;

		again |= keep_one(s, c);
		/* Ours until here, so that it is not freed. */
		l = l->next;
		atomic_compare_exchange_strong(&c->taken, &kept, FREE);
	}
	pthread_mutex_unlock(&s->lock);
	return again;
}

static void *
keeper_main(void *arg)
{
	struct gantry_server *s = arg;
	bool again = false;

	pthread_mutex_lock(&s->keeper_lock);
	while (!s->is_over) {
		if (again) {
			uint64_t until_ns = clock_ns() + KEEP_AGAIN_NS;
			struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
						  .tv_nsec = (long)(until_ns % NS_PER_S) };

			pthread_cond_timedwait(&s->keeper_more, &s->keeper_lock, &until);
		} else if (!s->is_asked) {
			pthread_cond_wait(&s->keeper_more, &s->keeper_lock);
			continue;
		}
		s->is_asked = false;
		pthread_mutex_unlock(&s->keeper_lock);
		again = keep_all(s);
		pthread_mutex_lock(&s->keeper_lock);
	}
	pthread_mutex_unlock(&s->keeper_lock);
	return NULL;
}

static int
keeper_start(struct gantry_server *s)
{
	sigset_t all, was;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	r = -pthread_create(&s->keeper, NULL, keeper_main, s);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (r < 0)
		return r;
	pthread_setname_np(s->keeper, "gantry-keeper");
	s->is_kept = true;
	s->watch.changed = on_change;
	rdma_watch_add(s->rd, &s->watch);
	s->is_watched = true;
	return 0;
}

static void
keeper_stop(struct gantry_server *s)
{
	if (s->is_watched)
		rdma_watch_del(s->rd, &s->watch);
	if (!s->is_kept)
		return;
	pthread_mutex_lock(&s->keeper_lock);
	s->is_over = true;
	pthread_cond_signal(&s->keeper_more);
	pthread_mutex_unlock(&s->keeper_lock);
	pthread_join(s->keeper, NULL);
	s->is_kept = s->is_watched = false;
}

/* ---- opening ---- */

/* What was asked for must be there, and be enough. */
static int
check_ports(struct gantry_server *s, char *err, size_t err_len)
{
	struct rdma_rail_info info;
	char missing[320];
	int serving = 0;

	if (s->conf.mode == RDMA_LIST && rdma_missing(s->rd, missing, sizeof missing)) {
		snprintf(err, err_len, "%s", missing);
		return -ENODEV;
	}
	for (int i = 0; i < rdma_rail_nr(s->rd); i++) {
		rdma_rail_get_info(rdma_rail(s->rd, i), &info);
		if (!info.serves)
			continue;
		serving++;
		if (info.max_eps > 0 && s->p.channels > info.max_eps) {
			snprintf(err, err_len, "channels is %d: %s has %d queue pairs", s->p.channels,
				 info.device, info.max_eps);
			return -EINVAL;
		}
		if (info.max_cq_depth > 0 && s->p.cq_depth > (unsigned)info.max_cq_depth) {
			snprintf(err, err_len, "cq_depth is %u: a queue of %s has %d at most", s->p.cq_depth,
				 info.device, info.max_cq_depth);
			return -EINVAL;
		}
	}
	if (serving && !is_fork_safe()) {
		snprintf(err, err_len,
			 "this kernel needs ibv_fork_init() before anything is registered, and it came too "
			 "late: call it, or gantry_server_open(), first");
		return -ENODEV;
	}
	if (serving)
		return 0;
	if (!rdma_missing(s->rd, missing, sizeof missing))
		snprintf(missing, sizeof missing, "no device here can do DC (mlx5, ConnectX-4 or later)");
	snprintf(err, err_len, "%s", missing);
	return -ENODEV;
}

static void
say_ports(struct gantry_server *s)
{
	char port[96];

	say(s, GANTRY_SERVER_LOG_INFO, "session opened: Gantry %s, %d channels", GANTRY_VERSION,
	    s->p.channels);
	for (int i = 0; gantry_server_port(s, i, port, sizeof port) == 0; i++)
		say(s, GANTRY_SERVER_LOG_INFO, "port %s", port);
}

/* The daemon's name of what is `address` here, and its option, are no names for a program. */
static void
use_our_words(char *err)
{
	static const char theirs[] = "rdma.devices: ", ours[] = "address: ",
			  option[] = " (see --list-devices)";
	char *at = strstr(err, option);

	if (at)
		memmove(at, at + strlen(option), strlen(at + strlen(option)) + 1);
	if (strncmp(err, theirs, strlen(theirs)) == 0) {
		memcpy(err, ours, strlen(ours));
		memmove(err + strlen(ours), err + strlen(theirs), strlen(err + strlen(theirs)) + 1);
	}
}

static int
open_it(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int r = params_take(s, p, err, err_len);

	if (r < 0)
		return r;
	pthread_once(&once, prepare);
	s->forks = forks;
	log_add(s);
	r = rdma_open(&s->conf, &s->rd, err, err_len);
	if (r == 0)
		r = check_ports(s, err, err_len);
	if (r < 0)
		use_our_words(err);
	if (r == 0) {
		r = keeper_start(s);
		if (r < 0)
			snprintf(err, err_len, "no thread can be started: %s", strerror(-r));
	}
	return r;
}

static void
server_free(struct gantry_server *s)
{
	if (s->rd)
		keeper_stop(s);
	rdma_close(s->rd);
	if (list_linked(&s->link))
		log_del(s);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->keeper_lock);
	pthread_cond_destroy(&s->keeper_more);
	free(s->names);
	free(s);
}

int
gantry_server_open(const struct gantry_server_params *p, struct gantry_server **ret_s)
{
	struct gantry_server *s = calloc(1, sizeof *s);
	pthread_condattr_t attr;
	int r;

	open_error[0] = 0;
	if (!s) {
		snprintf(open_error, sizeof open_error, "out of memory");
		return -ENOMEM;
	}
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->keeper_more, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&s->keeper_lock, NULL);
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->channels);
	list_init(&s->regions);
	list_init(&s->link);
	r = open_it(s, p, open_error, sizeof open_error);
	if (r < 0) {
		say(s, GANTRY_SERVER_LOG_ERROR, "no session: %s", open_error);
		server_free(s);
		return r;
	}
	say_ports(s);
	*ret_s = s;
	return 0;
}

void
gantry_server_close(struct gantry_server *s)
{
	if (!s || !is_mine(s))
		return;
	for (struct list *l; (l = list_first(&s->channels));)
		gantry_channel_free(container_of(l, struct gantry_channel, link));
	/* What a device keeps goes with its context. */
	for (struct list *l; (l = list_pop(&s->regions));) {
		struct gantry_region *r = container_of(l, struct gantry_region, link);

		rdma_region_del(s->rd, r->nr);
		free(r);
	}
	say(s, GANTRY_SERVER_LOG_INFO, "session closed");
	server_free(s);
}

/* ---- asking ---- */

int
gantry_server_is_alive(const struct gantry_server *s)
{
	if (!is_mine(s))
		return 0;
	for (int i = 0; i < rdma_rail_nr(s->rd); i++) {
		const struct rdma_rail *rail = rdma_rail(s->rd, i);

		if (rdma_rail_transport(rail, 0) && rdma_rail_state(rail) == RAIL_UP)
			return 1;
	}
	return 0;
}

bool
server_is_dead(const struct gantry_server *s)
{
	for (int i = 0; i < rdma_rail_nr(s->rd); i++) {
		if (rdma_rail_context(rdma_rail(s->rd, i)))
			return false;
	}
	return true;
}

int
gantry_server_port(const struct gantry_server *s, int i, char *text, size_t size)
{
	struct rdma_rail_info info;
	char gid[INET6_ADDRSTRLEN];

	for (int k = 0; is_mine(s) && i >= 0 && k < rdma_rail_nr(s->rd); k++) {
		rdma_rail_get_info(rdma_rail(s->rd, k), &info);
		if (!info.serves || i-- > 0)
			continue;
		snprintf(text, size, "%s:%d %s", info.device, info.port, gid_name(info.gid, gid, sizeof gid));
		return 0;
	}
	return -ENOENT;
}

void
gantry_server_set_log_level(struct gantry_server *s, enum gantry_server_log most)
{
	if (!is_mine(s))
		return;
	s->log_level = (int)(most < GANTRY_SERVER_LOG_DEBUG ? most : GANTRY_SERVER_LOG_DEBUG);
	log_follow_levels();
}
