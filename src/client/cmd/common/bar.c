/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of put, get, sync and the like, on standard error: one display for all transfers of the process. */
#include "client/cmd/common/cmd.h"

#include "base/progress.h"

#include <stdatomic.h>

static struct {
	pthread_mutex_t lock; /* protects users, and the start and end of the display */
	int users;            /* number of transfers, and of trees, that have begun and not ended */
	_Atomic uint64_t done, total;
	struct progress progress;
} bar = { .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PROGRESS_INIT };

static void
look(void *cookie, struct progress_view *v)
{
	v->done = bar.done;
	v->total = bar.total;
	/* A request that moves a whole object tells nothing until its end. */
	v->more = v->done ? NULL : "no answer yet";
}

enum progress_form
bar_form(const struct cmd *c)
{
	return c->quiet || c->json || c->has_no_bar ? PROGRESS_NONE : progress_form_of(stderr);
}

void
bar_more(const struct cmd *c, uint64_t bytes)
{
	if (!c->total_is_known)
		bar.total += bytes;
}

void
bar_begin(const struct cmd *c, uint64_t bytes)
{
	if (c->total_is_known)
		return;
	bar.total += bytes;
	pthread_mutex_lock(&bar.lock);
	if (bar.users++ == 0)
		progress_start(&bar.progress, bar_form(c), stderr, "gantry: ", look, NULL);
	pthread_mutex_unlock(&bar.lock);
}

void
bar_add(uint64_t bytes)
{
	bar.done += bytes;
}

void
bar_end(const struct cmd *c)
{
	if (c->total_is_known)
		return;
	pthread_mutex_lock(&bar.lock);
	if (bar.users > 0 && --bar.users == 0) {
		progress_stop(&bar.progress);
		bar.done = bar.total = 0;
	}
	pthread_mutex_unlock(&bar.lock);
}

void
bar_hide(void)
{
	progress_hide(&bar.progress);
}

void
bar_show(void)
{
	progress_show(&bar.progress);
}
