/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the jobs of the rebalancer, one at a time, on a thread that ends with the job. A job executes the plan
 * of the placement map step by step; see rebalance.h.
 */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>

#ifndef PAUSE_NS
#define PAUSE_NS (2 * NS_PER_S)
#endif

/* Passes the first result of a job to the caller. Later results have no receiver: for example, a
 * resynchronisation continues after its first step has failed. */
static void
answer(struct mover *m, int r)
{
	pthread_mutex_lock(&m->lock);
	if (!m->is_answered)
		m->answer = r;
	m->is_answered = true;
	pthread_cond_broadcast(&m->cond);
	pthread_mutex_unlock(&m->lock);
}

static void
pause_for(struct mover *m, uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	while (clock_ns() < until && !atomic_load(&m->stop) && !atomic_load(&m->cancel))
		move_turn(m);
}

/* ---- the job ---- */

static int
begin_job(struct mover *m)
{
	struct set *s = m->set;
	struct disk_table *t = &m->table;
	int r = 0;

	if (m->job == JOB_DRAIN) {
		set_get_table(s, t);
		r = move_set_bits(m, t->draining | (uint64_t)1 << set_number(s, set_unit(s, m->unit)->engine),
				  t->filling);
	}
	if (m->job == JOB_ADD)
		r = move_add(m);
	if (r == 0) {
		set_get_table(s, t);
		move_begin_count(m, t);
	}
	return r;
}

static bool
begin_use(struct mover *m)
{
	struct store *st = &m->set->base;
	int r = move_begin_sends(m);

	if (r == 0) {
		r = store_user_new(&st, 1, &m->user);
		if (r < 0) {
			m->user = NULL;
			move_end_sends(m);
		}
	}
	if (r < 0)
		move_trouble(m, "no memory: %s", strerror(-r));
	return r == 0;
}

static void
end_use(struct mover *m)
{
	store_user_free(m->user);
	m->user = NULL;
	move_end_sends(m);
}

/* Records the end of the job in the map after all slots have moved. */
static int
finish(struct mover *m, const struct disk_table *t)
{
	struct set *s = m->set;
	int leaves = t->draining ? set_engine_of(s, __builtin_ctzll(t->draining)) : -1, r;

	/* The job cannot end yet: a missing disk may have foreign records, or slots that are yet to move. */
	if (!disks_all_serve(s))
		return -EBUSY;
	/* The foreign records of a disk that leaves are not removed: the whole disk leaves the store. */
	r = move_clean(m, leaves);
	if (r == 0 && leaves >= 0)
		return move_leave(m, leaves);
	return r == 0 ? move_set_bits(m, t->draining, 0) : r;
}

/* Answers the request to cancel the job. The caller holds m->lock. */
static void
tell_cancel(struct mover *m, int r)
{
	m->cancel_is_answered = true;
	m->cancelled = r;
	pthread_cond_broadcast(&m->cond);
}

/* Cancels the job: writes a map that records the cancellation, answers the request, and then removes foreign
 * records. If a restart interrupts the cancellation, the next start continues it. */
static int
give_up(struct mover *m, const struct disk_table *t)
{
	uint64_t both = t->draining | t->filling;
	int r = table_gives_up(t) ? 0 : move_set_bits(m, both, both);

	/* gives_up stays set until the cancellation is complete, so that a failing disk cannot restart the
	 * drain. Repeating the request has no further effect. */
	m->gives_up |= r == 0;
	pthread_mutex_lock(&m->lock);
	if (atomic_exchange(&m->cancel, false))
		tell_cancel(m, r);
	pthread_mutex_unlock(&m->lock);
	if (r == 0)
		r = move_clean(m, -1);
	if (r == 0)
		r = move_set_bits(m, 0, 0);
	if (r == 0)
		log_note("the move of slots was cancelled; those that have moved stay where they are");
	return r;
}

/* Counts the slots of a step as moved, or as postponed after an error. */
static void
note_slots(struct mover *m, int r)
{
	for (int i = 0; i < STORE_SLOT_WORDS; i++) {
		if (r == -EBADMSG || r == -EIO || r == -ENODEV)
			m->stuck.bit[i] |= m->slots.bit[i];
	}
	pthread_mutex_lock(&m->lock);
	m->info.slot_bytes = 0;
	pthread_mutex_unlock(&m->lock);
}

static bool
is_any_stuck(const struct mover *m)
{
	uint64_t any = 0;

	for (int i = 0; i < STORE_SLOT_WORDS; i++)
		any |= m->stuck.bit[i];
	return any != 0;
}

/* Moves m->slots. The records on the source, or on the disk that was the secondary, are foreign then. They are removed
 * immediately to free space, except on a disk that is drained. */
static int
move_some(struct mover *m, int from, int to)
{
	int r = move_slots(m, from, to);

	note_slots(m, r);
	if (r == 0 && !table_has(m->table.draining, set_number(m->set, from)))
		r = move_clean(m, -1);
	return r;
}

/* Executes one step of the job. Returns false if the job has ended. */
static bool
move_on(struct mover *m)
{
	struct set *s = m->set;
	const struct disk_table *t = &m->table;
	int from, to, left, pairs = 0, r;
	bool goes_on = true, waits = false;

	set_get_table(s, &m->table);
	move_note_progress(m, t);
	if (!move_members_change(t) && !set_pairs_wait(s, t)) {
		r = m->job == JOB_MOVE || m->job == JOB_HEAL ? move_clean(m, -1) : 0;
		goes_on = r < 0;
	} else if (move_members_change(t) && (m->gives_up || atomic_load(&m->cancel) || table_gives_up(t))) {
		r = give_up(m, t);
	} else if ((pairs = move_next_pairs(m, t, &from, &to)) > 0) {
		r = move_some(m, from, to);
	} else if (pairs < 0 && pairs != -EAGAIN) {
		r = pairs;
	} else if (!move_members_change(t)) {
		waits = !is_any_stuck(m);
		r = waits ? -EAGAIN : -EBADMSG;
		memset(&m->stuck, 0, sizeof m->stuck);
	} else if (move_next_slots(m, t, &from, &to, &left)) {
		r = move_some(m, from, to);
	} else if (!left && pairs == 0) {
		r = finish(m, t);
	} else {
		memset(&m->stuck, 0, sizeof m->stuck);
		r = set_misses_some(s) ? -EBUSY : -EBADMSG;
	}
	if (waits)
		move_explain_wait(m);
	else
		move_explain(m, r);
	if (r < 0 && r != -EINTR)
		pause_for(m, PAUSE_NS);
	return goes_on;
}

/* Notes that no disk joins or leaves any longer. The job is then only a resynchronisation, which other jobs
 * may interrupt. */
static void
note_job(struct mover *m)
{
	if (m->job == JOB_HEAL || set_members_change(m->set))
		return;
	pthread_mutex_lock(&m->lock);
	m->job = JOB_HEAL;
	/* A cancel request that arrived after the last check is answered as if no job were in progress. */
	if (atomic_exchange(&m->cancel, false))
		tell_cancel(m, -ENOENT);
	pthread_mutex_unlock(&m->lock);
}

static void
job_main(struct mover *m)
{
	struct set *s = m->set;
	int r = begin_job(m);

	if (r == 0) {
		/* This job also does every resynchronisation that was requested before. */
		pthread_mutex_lock(&m->lock);
		m->heal_wanted = false;
		pthread_mutex_unlock(&m->lock);
	}
	answer(m, r);
	if (r < 0)
		return;
	set_note_moving(s, true);
	/* PUTs that begin from now on keep their data for a replay, until the job is complete. */
	if (move_visit(m) < 0)
		log_warn("moving slots: a core did not answer");
	while (!atomic_load(&m->stop) && !atomic_load(&m->yields)) {
		if (!m->user && !begin_use(m)) {
			pause_for(m, PAUSE_NS);
			continue;
		}
		if (!move_on(m))
			break;
		note_job(m);
	}
	if (m->user)
		end_use(m);
	set_note_moving(s, false);
}

static void *
thread_main(void *arg)
{
	struct mover *m = arg;
	bool again;

	pthread_setname_np(pthread_self(), "store-mover");
	do {
		job_main(m);
		pthread_mutex_lock(&m->lock);
		if (atomic_exchange(&m->cancel, false))
			tell_cancel(m, atomic_load(&m->stop) ? -EAGAIN : -ENOENT);
		/* A resynchronisation that yields to another job is requested again: it has not ended, and
		 * the other job may not resynchronise the same secondaries. */
		m->heal_wanted |= m->job == JOB_HEAL && atomic_load(&m->yields);
		again = m->heal_wanted && !atomic_load(&m->stop) && !atomic_load(&m->yields);
		m->job = again ? JOB_HEAL : JOB_NONE;
		m->info = (struct store_move_info){ .is_running = again };
		m->waits_until_ns = 0;
		atomic_store(&m->is_over, !again);
		pthread_mutex_unlock(&m->lock);
	} while (again);
	return NULL;
}

/* ---- the thread ---- */

bool
move_has_job(struct mover *m)
{
	bool has;

	pthread_mutex_lock(&m->lock);
	has = m->job != JOB_NONE && m->job != JOB_HEAL;
	pthread_mutex_unlock(&m->lock);
	return has;
}

static void
set_job(struct mover *m, enum mover_job job)
{
	pthread_mutex_lock(&m->lock);
	m->job = job;
	m->info.is_running = job != JOB_NONE;
	m->is_answered = m->cancel_is_answered = false;
	pthread_mutex_unlock(&m->lock);
	atomic_store(&m->is_over, job == JOB_NONE);
}

int
move_begin_thread(struct mover *m, enum mover_job job)
{
	int r;

	if (move_has_job(m))
		return -EBUSY;
	if (m->has_thread) {
		atomic_store(&m->yields, true);
		pthread_join(m->thread, NULL);
		m->has_thread = false;
	}
	atomic_store(&m->yields, false);
	atomic_store(&m->cancel, false);
	m->gives_up = false;
	m->said[0] = 0;
	m->sender.damaged = 0;
	memset(&m->stuck, 0, sizeof m->stuck);
	set_job(m, job);
	check(job != JOB_NONE && !m->has_thread);
	r = pthread_create(&m->thread, NULL, thread_main, m);
	m->has_thread = r == 0;
	if (r != 0)
		set_job(m, JOB_NONE);
	return -r;
}

int
move_wait_for_answer(struct mover *m)
{
	int r;

	pthread_mutex_lock(&m->lock);
	while (!m->is_answered)
		pthread_cond_wait(&m->cond, &m->lock);
	r = m->answer;
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* ---- healing ---- */

/* Returns true if a secondary is not in sync and no resynchronisation runs. */
static bool
lacks_healing(struct mover *m)
{
	bool lacks;

	pthread_mutex_lock(&m->lock);
	lacks = m->heal_wanted && atomic_load(&m->is_over) && !atomic_load(&m->stop);
	pthread_mutex_unlock(&m->lock);
	return lacks;
}

void
move_heal_if_wanted(struct mover *m)
{
	int r = 0;

	while (r == 0 && lacks_healing(m)) {
		if (pthread_mutex_trylock(&m->job_lock) != 0)
			return;
		if (lacks_healing(m))
			r = move_begin_thread(m, JOB_HEAL);
		pthread_mutex_unlock(&m->job_lock);
	}
}

void
set_heal(struct set *s)
{
	struct mover *m = s->mover;

	if (s->conf.disks.moves_wait)
		return;
	pthread_mutex_lock(&m->lock);
	m->heal_wanted = true;
	pthread_mutex_unlock(&m->lock);
	move_heal_if_wanted(m);
}
