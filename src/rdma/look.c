/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at the machine again: a driver that is loaded after us, an adapter that is plugged in, a device that was named and is
 * not there yet.  One thread, which does so every LOOK_S seconds, more often at first and after it was asked to; opening and probing
 * a device may take its time, so it is nobody else's.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/log.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_S 10

void
look_init(struct rdma *rd)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&rd->look.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rd->look.more, &attr);
	pthread_condattr_destroy(&attr);
}

/* Sleeps until it is time to look; false: to stop.  *seconds: how long, at first 1, and twice as long each time. */
static bool
wait_for_turn(struct rdma_look *look, int *seconds)
{
	struct timespec until;
	bool stop;
	int r = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += *seconds;
	pthread_mutex_lock(&look->lock);
	while (!look->stop && !look->asked && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&look->more, &look->lock, &until);
	*seconds = look->asked ? 1 : min_int(2 * *seconds, LOOK_S);
	look->asked = false;
	stop = look->stop;
	pthread_mutex_unlock(&look->lock);
	return !stop;
}

static void *
look_main(void *arg)
{
	struct rdma *rd = arg;
	int seconds = 1;

	while (wait_for_turn(&rd->look, &seconds)) {
		int r = rdma_look_once(rd);

		if (r < 0)
			log_limited(LOG_WARN, "a new RDMA device cannot be used yet: %s", strerror(-r));
	}
	return NULL;
}

int
look_start(struct rdma *rd)
{
	int r = thread_start(&rd->look.thread, "gantry-look", look_main, rd);

	rd->look.started = r == 0;
	return r;
}

void
look_stop(struct rdma *rd)
{
	if (rd->look.started) {
		pthread_mutex_lock(&rd->look.lock);
		rd->look.stop = true;
		pthread_cond_signal(&rd->look.more);
		pthread_mutex_unlock(&rd->look.lock);
		pthread_join(rd->look.thread, NULL);
	}
	pthread_cond_destroy(&rd->look.more);
	pthread_mutex_destroy(&rd->look.lock);
}

void
rdma_look(struct rdma *rd)
{
	pthread_mutex_lock(&rd->look.lock);
	rd->look.asked = true;
	pthread_cond_signal(&rd->look.more);
	pthread_mutex_unlock(&rd->look.lock);
	atomic_store(&rd->async.read_now, true);
	if (rd->async.started)
		async_wake(rd);
}

/* ---- what is missing ---- */

/* An adapter that the kernel's mlx5 driver serves and the verbs library does not show: "" or its name. */
static void
unseen(char *name, size_t cap)
{
	char link[PATH_MAX];
	glob_t g = { 0 };

	*name = 0;
	if (glob("/sys/class/infiniband/*", 0, NULL, &g) != 0)
		return;
	for (size_t i = 0; i < g.gl_pathc && !*name; i++) {
		char path[PATH_MAX];
		ssize_t n;

		snprintf(path, sizeof path, "%s/device/driver", g.gl_pathv[i]);
		n = readlink(path, link, sizeof link - 1);
		link[n > 0 ? n : 0] = 0;
		if (strstr(link, "mlx5"))
			snprintf(name, cap, "%s", strrchr(g.gl_pathv[i], '/') + 1);
	}
	globfree(&g);
}

void
look_missing(struct rdma *rd, const char *what)
{
	char name[64], text[WHY_MISSING_BYTES];
	bool news;

	snprintf(text, sizeof text, "%s", what);
	if (!*text && rd->rail_nr == 0 && rd->look.unused_nr == 0) {
		unseen(name, sizeof name);
		if (*name)
			snprintf(text, sizeof text,
				 "the kernel has the RDMA device %s, and the verbs library does not show it: "
				 "is the "
				 "package ibverbs-providers there, and /dev/infiniband?",
				 name);
	}
	pthread_mutex_lock(&rd->look.lock);
	news = *text && strcmp(rd->look.missing, text) != 0;
	snprintf(rd->look.missing, sizeof rd->look.missing, "%s", text);
	pthread_mutex_unlock(&rd->look.lock);
	if (news)
		log_warn("%s; it is looked for every %d s", text, LOOK_S);
}

bool
rdma_missing(struct rdma *rd, char *what, size_t cap)
{
	bool is;

	pthread_mutex_lock(&rd->look.lock);
	is = *rd->look.missing;
	snprintf(what, cap, "%s", rd->look.missing);
	pthread_mutex_unlock(&rd->look.lock);
	return is;
}
