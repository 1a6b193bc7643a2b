/* SPDX-License-Identifier: Apache-2.0 */
/* What operators tell the cores while they run: another configuration, draining, tracing.  Called by main/,
 * on any thread but a core's; what a core does about it happens on its own. */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "auth/auth.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
conf_unused(struct req_conf *use)
{
	conf_free((struct conf *)(uintptr_t)use->conf);
	auth_keys_put(use->keys);
	free(use);
}

struct req_conf *
core_conf_new(const struct conf *conf, struct auth_keys *keys)
{
	struct req_conf *use = calloc(1, sizeof *use);

	if (!use)
		return NULL;
	use->conf = conf_get(conf);
	use->keys = auth_keys_get(keys);
	use->unused = conf_unused;
	return use;
}

/* One for each core: what it counts is its own. */
struct news {
	int nr;
	struct req_conf *use[];
};

static void
news_free(void *arg)
{
	struct news *n = arg;

	/* What no core took. */
	for (int i = 0; i < n->nr; i++) {
		if (n->use[i])
			conf_unused(n->use[i]);
	}
	free(n);
}

static void
take_news(struct core *c, void *arg)
{
	struct news *n = arg;
	struct req_conf *use = n->use[c->index];

	n->use[c->index] = NULL;
	/* http first: a connection looks at the newest, and what it hands to a request is held by that. */
	http_set_conf(c->http, use->conf);
	reqs_set_conf(c->reqs, use);
	walks_set_conf(&c->walks, use->conf);
}

int
cores_set_conf(struct cores *cs, const struct conf *conf, struct auth_keys *keys, uint64_t wait_ns)
{
	struct news *n = calloc(1, sizeof *n + (size_t)cs->nr * sizeof n->use[0]);

	if (!n)
		return -ENOMEM;
	for (n->nr = 0; n->nr < cs->nr; n->nr++) {
		n->use[n->nr] = core_conf_new(conf, keys);
		if (!n->use[n->nr]) {
			news_free(n);
			return -ENOMEM;
		}
	}
	return cores_tell(cs, take_news, news_free, n, wait_ns);
}

/* ---- draining ---- */

static void
drain_core(struct core *c, void *arg)
{
	/* A core that stops goes on refusing. */
	if (c->phase != CORE_RUN)
		return;
	reqs_drain(c->reqs, *(const bool *)arg);
	walks_pause(&c->walks, *(const bool *)arg);
}

int
cores_drain(struct cores *cs, bool on, uint64_t wait_ns)
{
	bool *arg = malloc(sizeof *arg);

	if (!arg)
		return -ENOMEM;
	*arg = on;
	return cores_tell(cs, drain_core, free, arg, wait_ns);
}

/* ---- the walks ---- */

/* A call of a walk of core 0, and its result. */
struct walk_call {
	_Atomic int users; /* number of threads that have the memory: the caller, and the cores together */
	_Atomic int result;
	enum walk_id id;
	bool on;
};

static void
walk_call_free(void *arg)
{
	struct walk_call *wc = arg;

	if (atomic_fetch_sub(&wc->users, 1) == 1)
		free(wc);
}

static void
walk_core(struct core *c, void *arg)
{
	struct walk_call *wc = arg;

	if (c->index == 0)
		atomic_store(&wc->result, walks_call(&c->walks, wc->id, wc->on));
}

int
cores_walk(struct cores *cs, enum walk_id id, bool on, uint64_t wait_ns)
{
	struct walk_call *wc = calloc(1, sizeof *wc);
	int r;

	if (!wc)
		return -ENOMEM;
	atomic_init(&wc->users, 2);
	atomic_init(&wc->result, -EAGAIN);
	wc->id = id;
	wc->on = on;
	r = cores_tell(cs, walk_core, walk_call_free, wc, wait_ns);
	if (r >= 0)
		r = atomic_load(&wc->result);
	walk_call_free(wc);
	return r;
}

const struct walks_public *
cores_walks(const struct cores *cs)
{
	return cs->walks;
}

/* ---- tracing ---- */

struct trace {
	_Atomic int users;
	_Atomic bool found;
	char id[32];
};

static void
trace_free(void *arg)
{
	struct trace *t = arg;

	if (atomic_fetch_sub(&t->users, 1) == 1)
		free(t);
}

static void
trace_core(struct core *c, void *arg)
{
	struct trace *t = arg;

	if (reqs_trace(c->reqs, t->id))
		atomic_store(&t->found, true);
}

int
cores_trace(struct cores *cs, const char *id, uint64_t wait_ns)
{
	struct trace *t = calloc(1, sizeof *t);
	int r;

	if (!t)
		return -ENOMEM;
	atomic_init(&t->users, 2);
	snprintf(t->id, sizeof t->id, "%s", id);
	r = cores_tell(cs, trace_core, trace_free, t, wait_ns);
	if (r >= 0)
		r = atomic_load(&t->found) ? 0 : -ENOENT;
	trace_free(t);
	return r;
}

void
cores_trace_next(struct cores *cs, int nr)
{
	atomic_store(&cs->trace_next, nr);
}

int
cores_trace_left(const struct cores *cs)
{
	return atomic_load(&cs->trace_next);
}
