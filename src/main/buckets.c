/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon does to buckets by itself: it makes those that listeners name (a scality listener's keys live in one,
 * and its dialect has no way to make it), once, between opening the store and starting the cores; and it sets their
 * quotas, and looks at them, when an operator says so, on the thread of slow control calls.  Each time it is a user of the store like a core
 * (store/user.h).
 */
#include "main/daemon.h"

#include "base/log.h"
#include "store/user.h"

#include <errno.h>
#include <string.h>

/* 0 or -errno. */
static int
make_bucket(struct store_user *u, const char *name)
{
	struct store_port *port = store_user_port(u, 0);
	size_t len = strlen(name);
	struct store_stat stat = { .version = 0 };
	struct store_del op;
	int r;

	r = STORE_DO(u, &stat.op, store_bucket_head(port, name, len, &stat));
	if (r != -ENXIO)
		return r;
	memset(&op, 0, sizeof op);
	r = STORE_DO(u, &op.op, store_bucket_create(port, name, len, 0, &op));
	if (r == -EEXIST)
		return 0;
	if (r == 0)
		log_note("made bucket %s", name);
	return r;
}

static int
make_all(struct store_user *u, const void *what)
{
	const struct conf *conf = what;
	int r = 0;

	for (int i = 0; i < conf->listen_nr && r >= 0; i++) {
		if (conf->listen[i].dialect != DIALECT_SCALITY)
			continue;
		r = make_bucket(u, conf->listen[i].bucket);
		/* A store that is full or failed is served all the same, so that it can be read and emptied. */
		if (r == -ENOSPC || r == -EAGAIN || r == -EROFS) {
			log_warn("cannot make bucket %s of listener %s: %s", conf->listen[i].bucket,
				 conf->listen[i].address, strerror(-r));
			r = 0;
		}
		if (r < 0)
			log_error("cannot make bucket %s of listener %s: %s", conf->listen[i].bucket,
				  conf->listen[i].address, strerror(-r));
	}
	return r;
}

/* Does fn() as a user of the store: 0 or -errno. */
static int
with_user(struct store *store, int (*fn)(struct store_user *u, const void *what), const void *what)
{
	struct store_user *u;
	int r = store_user_new(&store, 1, &u);

	if (r < 0) {
		log_error("cannot use the store: %s", strerror(-r));
		return r;
	}
	r = fn(u, what);
	store_user_free(u);
	return r;
}

int
daemon_make_buckets(const struct conf *conf, struct store *store)
{
	return with_user(store, make_all, conf);
}

struct wish {
	const char *name;
	const struct store_use *max;
};

static int
set_quota(struct store_user *u, const void *what)
{
	const struct wish *w = what;
	struct store_bucket_set set;

	return STORE_DO(
		u, &set.op,
		store_bucket_set_quota(store_user_port(u, 0), w->name, strlen(w->name), w->max, &set));
}

struct look {
	const char *name;
	unsigned *copies;
};

static int
look_at(struct store_user *u, const void *what)
{
	const struct look *l = what;
	struct store_stat stat = { .version = 0 };
	int r = STORE_DO(u, &stat.op,
			 store_bucket_head(store_user_port(u, 0), l->name, strlen(l->name), &stat));

	*l->copies = r < 0 ? 0 : stat.copies;
	return r;
}

unsigned
daemon_bucket_copies(struct store *store, const char *name)
{
	unsigned copies = 0;

	(void)with_user(store, look_at, &(struct look){ name, &copies });
	return copies;
}

int
daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max)
{
	return with_user(store, set_quota, &(struct wish){ name, max });
}
