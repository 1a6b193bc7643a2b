/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon does to buckets by itself: it makes those that listeners name (a scality listener's keys live in one,
 * and its dialect has no way to make it), once, between opening the store and starting the cores; and it sets their
 * quotas and the rule by which their objects expire, and looks at them, when an operator says so, on the thread of slow control calls.  Each time it is a user of the store like a core
 * (store/user.h).
 */
#include "main/daemon.h"

#include "base/log.h"
#include "s3doc/lifecycle.h"
#include "store/user.h"
#include "walk/bucket_config.h"

#include <errno.h>
#include <string.h>

#define TRIES_MAX 16 /* of a change of attributes beside others */

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
	struct bucket_rules *rules;
};

/* Reads the attributes of a bucket. Returns 0 or -errno; the caller frees the attributes in both cases. */
static int
read_attrs(struct store_user *u, const char *name, struct bucket_attrs *ba)
{
	memset(ba, 0, sizeof *ba);
	return STORE_DO(u, &ba->stat.op, bucket_attrs_read(store_user_port(u, 0), name, strlen(name), ba));
}

static int
look_at(struct store_user *u, const void *what)
{
	const struct look *l = what;
	struct store_stat stat = { .version = 0 };
	struct bucket_attrs ba;
	const void *packed;
	uint32_t len;
	int r = STORE_DO(u, &stat.op,
			 store_bucket_head(store_user_port(u, 0), l->name, strlen(l->name), &stat));

	l->rules->copies = r < 0 ? 0 : stat.copies;
	r = read_attrs(u, l->name, &ba);
	if (r >= 0 && bucket_attrs_find(&ba, BUCKET_LIFECYCLE, &packed, &len))
		l->rules->other_rules = lifecycle_look(packed, len, &l->rules->expire_days);
	bucket_attrs_free(&ba);
	return r;
}

void
daemon_bucket_rules(struct store *store, const char *name, struct bucket_rules *ret_rules)
{
	*ret_rules = (struct bucket_rules){ .copies = 0 };
	(void)with_user(store, look_at, &(struct look){ name, ret_rules });
}

int
daemon_set_bucket_quota(struct store *store, const char *name, const struct store_use *max)
{
	return with_user(store, set_quota, &(struct wish){ name, max });
}

struct expiry {
	const char *name;
	uint32_t days;
};

/* Changes the rule once. Returns 0; -ESTALE: another change came between; or another -errno. */
static int
change_expiry(struct store_user *u, const struct expiry *e, struct text *rules, struct text *attrs)
{
	struct store_bucket_set set;
	struct bucket_attrs ba;
	const void *packed = NULL;
	uint32_t len = 0;
	int r = read_attrs(u, e->name, &ba);

	if (r >= 0) {
		bucket_attrs_find(&ba, BUCKET_LIFECYCLE, &packed, &len);
		r = lifecycle_set_expire(rules, packed, len, e->days);
	}
	if (r == 0) {
		text_reset(attrs);
		bucket_attrs_replace(&ba, BUCKET_LIFECYCLE, rules->p, (uint32_t)rules->len, attrs);
		r = !text_ok(attrs) ? -ENOMEM : attrs->len > STORE_BUCKET_ATTRS_MAX ? -E2BIG : 0;
	}
	if (r == 0)
		r = STORE_DO(u, &set.op,
			     store_bucket_set_attrs(store_user_port(u, 0), e->name, strlen(e->name),
						    ba.stat.version, attrs->p, (uint32_t)attrs->len, &set));
	bucket_attrs_free(&ba);
	return r;
}

static int
set_expiry(struct store_user *u, const void *what)
{
	struct text rules = { .p = NULL }, attrs = { .p = NULL };
	int r = -ESTALE;

	for (int i = 0; i < TRIES_MAX && r == -ESTALE; i++)
		r = change_expiry(u, what, &rules, &attrs);
	text_free(&rules);
	text_free(&attrs);
	return r;
}

int
daemon_set_bucket_expiry(struct store *store, const char *name, uint32_t days)
{
	return with_user(store, set_expiry, &(struct expiry){ name, days });
}
