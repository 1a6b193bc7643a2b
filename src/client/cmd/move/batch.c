/* SPDX-License-Identifier: Apache-2.0 */
/* Runs several threads, each with a registered buffer of its own, on the pieces of one work; see tree.h. */
#include "client/cmd/move/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ERRORS_TOLD 20

struct worker {
	struct batch *b;
	batch_fn *fn;
	void *cookie;
};

void
batch_init(struct batch *b, struct cmd *c)
{
	*b = (struct batch){ .c = c };
	pthread_mutex_init(&b->lock, NULL);
	tally_init(&b->tally);
}

void
batch_fini(struct batch *b)
{
	pthread_mutex_destroy(&b->lock);
}

static bool
stops(struct batch *b)
{
	pthread_mutex_lock(&b->lock);
	bool stop = b->stop;

	pthread_mutex_unlock(&b->lock);
	return stop;
}

static void *
work(void *arg)
{
	const struct worker *w = arg;
	struct buffer buf;

	if (buffer_init(&buf, w->b->c->g) == 0)
		while (!stops(w->b) && w->fn(w->cookie, &buf))
			;
	buffer_fini(&buf);
	return NULL;
}

bool
batch_run(struct batch *b, int jobs, batch_fn *fn, void *cookie)
{
	struct worker w = { b, fn, cookie };
	pthread_t thread[JOBS_MAX];
	int nr = 0;

	while (nr < jobs && nr < JOBS_MAX && pthread_create(&thread[nr], NULL, work, &w) == 0)
		nr++;
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	if (!nr)
		fprintf(stderr, "gantry: no thread could be started\n");
	return nr > 0;
}

void
batch_done(struct batch *b, struct outcome *o)
{
	bool gone;

	pthread_mutex_lock(&b->lock);
	/* An error in the address concerns all pieces of the work, so it is explained once. */
	if (b->errors == 0)
		explain(o);
	pthread_mutex_unlock(&b->lock);
	tally_add(&b->tally, o);
	pthread_mutex_lock(&b->lock);
	/* If the server does not answer, further errors would only repeat the message. */
	gone = o->error == -ECONNREFUSED || o->error == -EHOSTUNREACH;
	if (o->error && !(gone && b->gone)) {
		b->errors++;
		if (b->c->json || b->errors <= ERRORS_TOLD)
			report(b->c, o, false);
		else if (b->errors == ERRORS_TOLD + 1) {
			bar_hide();
			fprintf(stderr, "gantry: further failures are only counted\n");
			bar_show();
		}
	}
	b->gone = b->gone || gone;
	b->stop = b->stop || gone;
	pthread_mutex_unlock(&b->lock);
}

bool
batch_delete(struct batch *b, const struct place *p, const struct entry *n, const char *op, const char *file)
{
	struct gantry_request req = request_of(b->c);
	struct gantry_result res = { .size = sizeof res };
	char *url = place_url(p, n->name);
	struct outcome o;

	outcome_init(&o, op, url ? url : p->word, file);
	if (!url || n->is_raw)
		outcome_local(&o, -EINVAL, "%s", url ? "the name has a NUL in it" : "no memory");
	else
		outcome_add(&o, gantry_delete(b->c->g, url, &req, &res), &res);
	if (o.error)
		batch_done(b, &o);
	free(url);
	return !o.error;
}
