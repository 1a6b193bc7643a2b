/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the rebalancer that all its files use: waits on its thread, for the map change lock, for the placement map
 * and for barriers; the keys that change while their slots are sent; and the reason for which a job makes no
 * progress, for operators. See mover.h.
 */
#include "set/disk_names.h"
#include "set/mover.h"

#include "set/map/set_rules.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef KEYS_MAX
/* largest number of changed keys that are recorded; if more keys change, all keys are sent again */
#define KEYS_MAX 262144
#endif

/* ---- waits ---- */

void
move_turn(struct mover *m)
{
	static const struct timespec a_moment = { .tv_nsec = NS_PER_MS };

	mailbox_run(&m->mb, 0);
	if (m->user)
		store_user_turn(m->user);
	else
		nanosleep(&a_moment, NULL);
}

bool
move_is_to_end(const struct mover *m)
{
	return atomic_load(&m->stop) || atomic_load(&m->cancel) || atomic_load(&m->yields);
}

static void
on_turn(struct msg *msg)
{
	container_of(msg, struct mover, turn.msg)->has_gone = true;
}

static void
wait_for_turn(struct mover *m, bool has_it)
{
	while (!has_it && !m->has_gone)
		move_turn(m);
	m->has_gone = false;
}

int
move_take_turn(struct mover *m)
{
	struct set *s = m->set;

	m->turn = (struct set_turn){ .mb = &m->mb, .go = on_turn };
	m->has_gone = false;
	wait_for_turn(m, set_take_turn(s, &m->turn));
	wait_for_turn(m, set_settle(s, &m->turn));
	set_get_table(s, &m->next);
	if (!set_is_read_only(s))
		return 0;
	move_give_turn(m);
	return -EROFS;
}

void
move_give_turn(struct mover *m)
{
	set_new_head(m->set);
	set_give_turn(m->set, &m->turn);
}

int
move_change_table(struct mover *m, uint64_t all, uint64_t needs)
{
	wait_for_turn(m, set_change_table(m->set, &m->turn, &m->next, all, needs));
	return set_change_result(m->set);
}

int
move_visit(struct mover *m)
{
	set_barrier(m->set);
	while (!set_barrier_is_done(m->set))
		move_turn(m);
	return set_barrier_error(m->set);
}

struct store_port *
move_port(struct mover *m, int engine)
{
	check(m->user);
	return port_engine(set_port(store_user_port(m->user, 0)), engine);
}

/* ---- keys that change ---- */

bool
move_begin_noting(struct mover *m)
{
	struct move_changed *ch = &m->changed;

	check(!ch->keys);
	ch->keys = calloc(1, sizeof *ch->keys);
	ch->no_memory = false;
	return ch->keys != NULL;
}

void
move_end_noting(struct mover *m)
{
	move_keys_free(m->changed.keys);
	m->changed.keys = NULL;
}

static uint32_t
hash(const struct store_key *k)
{
	return table_slot(k->bucket, k->bucket_len, k->key, k->key_len) * 2654435761u +
	       (uint32_t)crc64_nvme(0, k->key, k->key_len);
}

void
move_note(struct mover *m, const struct store_key *k)
{
	struct move_changed *ch = &m->changed;
	struct move_key **list, *at;

	pthread_mutex_lock(&ch->lock);
	check(ch->keys);
	list = &ch->keys->list[hash(k) % MOVE_KEY_LISTS];
	for (at = *list; at && !(key_same_name(&at->key, k) && at->key.copies == k->copies);)
		at = at->next;
	if (!at && ch->keys->nr < KEYS_MAX)
		at = malloc(sizeof *at + k->bucket_len + k->key_len);
	else if (at)
		list = NULL;
	if (!at) {
		ch->no_memory = true;
	} else if (list) {
		at->key = key_copy(at->name, k);
		at->next = *list;
		*list = at;
		ch->keys->nr++;
	}
	pthread_mutex_unlock(&ch->lock);
}

void
move_on_change(void *cookie, const struct store_key *k)
{
	struct mover *m = cookie;

	/* A swap sends no keys, because primary and secondary both receive every change. */
	if (RULE_MOVE_WATCH && m->kind != MOVE_SWAP)
		move_note(m, k);
}

void
move_keys_free(struct move_keys *keys)
{
	for (int i = 0; keys && i < MOVE_KEY_LISTS; i++) {
		for (struct move_key *k = keys->list[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	}
	free(keys);
}

struct move_keys *
move_take_changed(struct mover *m, bool *ret_lost)
{
	struct move_changed *ch = &m->changed;
	struct move_keys *fresh = calloc(1, sizeof *fresh), *old;

	if (!fresh)
		return NULL;
	pthread_mutex_lock(&ch->lock);
	old = ch->keys;
	check(old);
	ch->keys = fresh;
	*ret_lost = ch->no_memory;
	ch->no_memory = false;
	pthread_mutex_unlock(&ch->lock);
	return old;
}

size_t
move_changed_nr(struct mover *m)
{
	struct move_changed *ch = &m->changed;
	size_t nr;

	pthread_mutex_lock(&ch->lock);
	check(ch->keys);
	nr = ch->no_memory ? SIZE_MAX : ch->keys->nr;
	pthread_mutex_unlock(&ch->lock);
	return nr;
}

/* ---- reasons ---- */

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
