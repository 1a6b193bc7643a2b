/* SPDX-License-Identifier: Apache-2.0 */
/* Composes the reason for which a job of the rebalancer makes no progress, for operators; see rebalance.h. */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void __attribute__((format(printf, 2, 3))) move_trouble(struct mover *m, const char *fmt, ...)
{
	char text[sizeof m->info.trouble];
	va_list ap;
	bool is_new;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&m->lock);
	is_new = strcmp(text, m->info.trouble) != 0;
	m->waits_until_ns = 0;
	memcpy(m->info.trouble, text, sizeof text);
	pthread_mutex_unlock(&m->lock);
	if (is_new && text[0])
		log_warn("%s: %s",
			 m->job == JOB_HEAL ? "second copies are not being made"
					    : "a move of slots stands still",
			 text);
}

void
move_explain(struct mover *m, int r)
{
	char out[STORE_TROUBLE_BYTES - 64];
	bool is_out = disks_say_out(m->set, out, sizeof out);

	switch (-r) {
	case 0:
	case EINTR:
		move_trouble(m, "%s", "");
		break;
	case EROFS:
		move_trouble(m, "%s%s", is_out ? out : "a disk has failed",
			     set_is_read_only(m->set) ? "; the store is read-only until a restart" : "");
		break;
	case EBUSY:
		move_trouble(m, "%s: members change only when all others serve",
			     is_out ? out : "a disk is missing or has failed");
		break;
	case ENOSPC:
		move_trouble(m, "the disks that are left have no room");
		break;
	case EBADMSG:
	case EIO:
	case ENODEV:
		move_trouble(m,
			     "%llu times something could not be read; the log names its bucket: write it "
			     "again",
			     (unsigned long long)m->sender.damaged);
		break;
	case EXDEV:
		/* The text uses the newest map, which becomes effective a moment later. */
		move_trouble(
			m,
			"%s: its keys are going over to the disks that have their second copies; it is tried "
			"again",
			is_out ? out : "a disk has failed");
		break;
	case EAGAIN:
		move_trouble(m, "%s%sit is tried again: too much changed meanwhile, or there was no memory",
			     is_out ? out : "", is_out ? "; " : "");
		break;
	default:
		move_trouble(m, "%s%sit is tried again: %s", is_out ? out : "", is_out ? "; " : "",
			     strerror(-r));
	}
}

/* Returns the time at which the shortest wait for an away disk ends; 0: no disk is waited for. */
static uint64_t
replaces_at(const struct set *s)
{
	uint64_t first = 0, after = s->conf.disks.heal_after_ns, now = clock_ns();

	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		uint64_t away = set_away_ns(s, i);

		if (away && away < after && (!first || now + after - away < first))
			first = now + after - away;
	}
	return first;
}

void
move_explain_wait(struct mover *m)
{
	uint64_t at = replaces_at(m->set);
	char out[STORE_TROUBLE_BYTES - 96];

	move_trouble(m, "%s%s", disks_say_out(m->set, out, sizeof out) ? out : "a disk is away",
		     at ? ": it is waited for until store.heal_after is over, then others take its place"
			: ": nothing can be done before it is back");
	pthread_mutex_lock(&m->lock);
	m->waits_until_ns = at;
	pthread_mutex_unlock(&m->lock);
}
