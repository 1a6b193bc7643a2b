/*
 * cores_dump(): asks every core for its live requests, waits a little, and shows what came.
 *
 * The question and the room for its answers are shared by the asker and the cores, and freed by the last of
 * them: a stuck core may answer long after everybody has gone.
 */
#define LOG_MODULE "core"
#include "core/core_int.h"

#include "base/clock.h"
#include "base/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_NS (100 * NS_PER_MS)

struct answer {
	struct msg msg;
	struct question *q;
	struct core *core;
	char *text;
	size_t len;
	bool done; /* under the question's lock */
};

struct question {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	_Atomic int users;
	int nr, done;
	struct answer answer[];
};

static void
let_go(struct question *q)
{
	if (atomic_fetch_sub(&q->users, 1) != 1)
		return;
	for (int i = 0; i < q->nr; i++)
		free(q->answer[i].text);
	pthread_cond_destroy(&q->cond);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void
add_line(void *cookie, const char *text)
{
	fprintf(cookie, "%s\n", text);
}

/* On the core's thread; or on main's when the core has ended. */
static void
on_question(struct msg *m)
{
	struct answer *a = container_of(m, struct answer, msg);
	struct question *q = a->q;
	char *text = NULL;
	size_t len = 0;
	FILE *f = a->core->reqs ? open_memstream(&text, &len) : NULL;

	if (f) {
		reqs_dump(a->core->reqs, add_line, f);
		fclose(f);
	}
	pthread_mutex_lock(&q->lock);
	a->text = text;
	a->len = len;
	a->done = true;
	q->done++;
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
	let_go(q);
}

static struct question *
ask(struct cores *cs)
{
	struct question *q = calloc(1, sizeof *q + (size_t)cs->nr * sizeof q->answer[0]);
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->cond, &attr);
	pthread_condattr_destroy(&attr);
	q->nr = cs->nr;
	atomic_init(&q->users, cs->nr + 1);
	for (int i = 0; i < cs->nr; i++) {
		q->answer[i].q = q;
		q->answer[i].core = &cs->core[i];
		if (atomic_load(&cs->core[i].pub.over)) {
			pthread_mutex_lock(&q->lock);
			q->answer[i].done = true;
			q->done++;
			pthread_mutex_unlock(&q->lock);
			let_go(q);
			continue;
		}
		mailbox_post(&cs->core[i].mb, &q->answer[i].msg, on_question);
	}
	return q;
}

static void
wait_answers(struct question *q)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)WAIT_NS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	while (q->done < q->nr) {
		if (pthread_cond_timedwait(&q->cond, &q->lock, &until) == ETIMEDOUT)
			return;
	}
}

static void
show(char *text, void (*line)(void *cookie, const char *text), void *cookie)
{
	char *rest = NULL;

	for (char *p = text ? strtok_r(text, "\n", &rest) : NULL; p; p = strtok_r(NULL, "\n", &rest))
		line(cookie, p);
}

void
cores_dump(struct cores *cs, void (*line)(void *cookie, const char *text), void *cookie)
{
	struct question *q = ask(cs);
	char *text;

	if (!q) {
		line(cookie, "out of memory");
		return;
	}
	pthread_mutex_lock(&q->lock);
	wait_answers(q);
	for (int i = 0; i < q->nr; i++) {
		char stuck[64];

		text = q->answer[i].text;
		q->answer[i].text = NULL;
		if (!q->answer[i].done) {
			snprintf(stuck, sizeof stuck, "core %d does not answer", i);
			line(cookie, stuck);
		}
		show(text, line, cookie);
		free(text);
	}
	pthread_mutex_unlock(&q->lock);
	let_go(q);
}
