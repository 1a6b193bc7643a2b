/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the members of a set in service: a disk is drained or added, and slots move according to the plan
 * of the map (table_plan()). The map records the job, so the next start continues the job.
 *
 * - drain: a map with the drain bit is written; the slots of the disk move, some at a time; a map without the
 *   disk is written; the leaving disk stores that it is no longer a member.
 * - add: the disk is formatted and opened, and every port attaches to its engine; its buckets are made equal
 *   to those of the other disks; a map with the disk is written; slots move to the disk.
 * - cancel: keys in transit finish; a map that records the cancellation is written, and the request is
 *   answered; foreign records are removed; the drain and fill bits are cleared. Slots that have moved stay
 *   where they are.
 *
 * Each job has a separate thread, which ends with the job.
 */
#include "set/disk_names.h"
#include "set/mover.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/refuse.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longest time that a new request waits for a cancelled job to end. */
#define ENDS_NS (5 * NS_PER_S)

/* Returns true if the current job will end soon: the map names no disk that joins or leaves, or the job was
 * cancelled. */
static bool
is_ending(struct set *s)
{
	struct mover *m = s->mover;
	bool changes = set_members_change(s), is;

	pthread_mutex_lock(&m->lock);
	is = m->job != JOB_HEAL && (!changes || (m->cancel_is_answered && m->cancelled == 0));
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Returns true if a job other than a resynchronisation is in progress. Waits for at most ENDS_NS if the job
 * will end soon. */
static bool
is_busy(struct set *s)
{
	struct mover *m = s->mover;
	uint64_t until = clock_ns() + ENDS_NS;

	while (!atomic_load(&m->is_over) && is_ending(s) && clock_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
	return move_has_job(m);
}

static int
may_begin(struct set *s, char *said, size_t len)
{
	if (is_busy(s))
		return refuse(said, len, -EBUSY,
			      "a disk is being drained or filled already; wait for its end, or cancel it");
	if (!disks_all_serve(s))
		return refuse(said, len, -EROFS,
			      "a disk is missing or has failed: members change only when all others serve");
	return 0;
}

/* Runs the first step of a job. Returns its answer, with the reason of an error in said. */
static int
run_job(struct mover *m, enum mover_job job, char *said, size_t len)
{
	int r = move_begin_thread(m, job);

	if (r == 0)
		r = move_wait_for_answer(m);
	return r < 0 ? refuse(said, len, r, "%s", m->said[0] ? m->said : strerror(-r)) : 0;
}

static int
drain(struct set *s, const char *which, char *said, size_t len)
{
	struct mover *m = s->mover;
	int unit = disk_find(s, which), r = may_begin(s, said, len);
	char name[DISK_NAME_BYTES];

	if (r < 0)
		return r;
	if (unit == -ENOTUNIQ)
		return refuse(
			said, len, unit,
			"the UUIDs of two disks begin with these digits: give the path or the whole UUID");
	if (unit < 0)
		return refuse(
			said, len, -ENOENT,
			"no disk has this path, this UUID, or these first digits of it; GET /disks shows the "
			"disks");
	if (set_is_drained(s, unit))
		return refuse(said, len, -EALREADY, "it is drained already, and may be pulled");
	if (set_members_change(s))
		return refuse(said, len, -EBUSY,
			      "a disk is being drained or filled already; the next start continues it");
	if (__builtin_popcountll(set_all(s)) == 1)
		return refuse(said, len, -EPERM, "it is the last disk of the store: add another one first");
	r = move_check_room(s, set_unit(s, unit)->engine, said, len);
	if (r < 0)
		return r;
	m->unit = unit;
	r = run_job(m, JOB_DRAIN, said, len);
	if (r == 0)
		snprintf(said, len, "disk %s is being drained", disk_called(s, unit, name));
	return r;
}

/* Refuses to add a disk that this daemon already uses, or that is a missing member. A drained disk may be
 * added again only after a restart, because its engine keeps the path until then. */
static int
refuse_member(const struct set *s, const char *path, int unit, char *said, size_t len)
{
	char name[DISK_NAME_BYTES];

	return refuse(said, len, -EEXIST, "%s is disk %s of this store; %s", path, disk_called(s, unit, name),
		      set_is_drained(s, unit) ? "it was drained, and can come again after a restart"
					      : "give the path of another one");
}

static int
add_disk(struct set *s, const struct store_disk_change *c, char *said, size_t len)
{
	struct mover *m = s->mover;
	char name[DISK_NAME_BYTES];
	int unit = disk_find(s, c->disk), r = may_begin(s, said, len), engine = disk_engine_at(s, c->disk);

	if (r < 0)
		return r;
	if (engine >= 0)
		unit = disk_unit_of(s, engine);
	if (unit >= 0 && !disk_has_left(s, unit) && c->disk[0] == '/')
		return refuse_member(s, c->disk, unit, said, len);
	if (strlen(c->disk) >= sizeof m->path)
		return refuse(said, len, -EINVAL, "the path is too long");
	if (set_engines(s) == STORE_SET_MAX || set_units(s) == STORE_SET_MAX ||
	    set_engines(s) >= s->conf.disks.engines_max)
		return set_disks(s) < s->conf.disks.engines_max
			       ? refuse(said, len, -EAGAIN,
					"a store may have %d disks, and until the restart those count that "
					"were "
					"drained: "
					"take them off store.disks, restart, and add it then",
					s->conf.disks.engines_max)
			       : refuse(said, len, -EINVAL, "a store may have %d disks",
					s->conf.disks.engines_max);
	snprintf(m->path, sizeof m->path, "%s", c->disk);
	m->size_bytes = c->size_bytes;
	m->force = c->force;
	m->joins = c->joins;
	m->joins_cookie = c->cookie;
	r = run_job(m, JOB_ADD, said, len);
	if (r == 0)
		snprintf(said, len,
			 "disk %s was added, and fills; until the restart its index may take %llu MiB "
			 "besides memory.index",
			 disk_called(s, set_units(s) - 1, name), (unsigned long long)(m->index_bytes >> 20));
	return r;
}

static int
cancel(struct set *s, char *said, size_t len)
{
	struct mover *m = s->mover;
	int r = -ENOENT;

	pthread_mutex_lock(&m->lock);
	if (m->job != JOB_NONE && m->job != JOB_HEAL) {
		m->cancel_is_answered = false;
		atomic_store(&m->cancel, true);
		while (!m->cancel_is_answered)
			pthread_cond_wait(&m->cond, &m->lock);
		r = m->cancelled;
	}
	pthread_mutex_unlock(&m->lock);
	switch (-r) {
	case 0:
		snprintf(said, len, "cancelled: moved objects stay where they are, remains are removed");
		return 0;
	case ENOENT:
		return refuse(said, len, r, "no disk is being drained or filled");
	case EROFS:
		return refuse(said, len, r,
			      "nothing moves until the restart, which continues it: a disk has failed, and "
			      "the store is read-only");
	default:
		return refuse(said, len, r, "not yet, try again: %s", strerror(-r));
	}
}

int
set_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t len)
{
	struct set *s = set_of(st);
	int r;

	if (c->kind == DISK_MOVE_RATE) {
		atomic_store(&s->mover->rate, c->rate);
		return 0;
	}
	pthread_mutex_lock(&s->mover->job_lock);
	r = c->kind == DISK_DRAIN ? drain(s, c->disk, said, len)
	    : c->kind == DISK_ADD ? add_disk(s, c, said, len)
				  : cancel(s, said, len);
	pthread_mutex_unlock(&s->mover->job_lock);
	/* A resynchronisation that was requested during the job could not start until now. */
	move_heal_if_wanted(s->mover);
	return r;
}

void
set_move_info(const struct store *st, struct store_move_info *ret_info)
{
	struct mover *m = set_of(st)->mover;
	uint64_t ran, until, now;

	pthread_mutex_lock(&m->lock);
	*ret_info = m->info;
	ret_info->is_heal = m->job == JOB_HEAL;
	until = m->waits_until_ns;
	pthread_mutex_unlock(&m->lock);
	now = clock_ns();
	ret_info->waits_ns = until > now ? until - now : 0;
	ran = now - ret_info->began_ns;
	/* The total is raised to the number of bytes sent, because keys written during the job are sent in
	 * addition. */
	if (ret_info->slots_done == ret_info->slots_total)
		ret_info->bytes_total = ret_info->bytes_done;
	else if (ret_info->bytes_done > ret_info->bytes_total && ret_info->slots_done)
		ret_info->bytes_total =
			(uint64_t)((double)ret_info->bytes_done * (double)ret_info->slots_total /
				   (double)ret_info->slots_done);
	else if (ret_info->bytes_done > ret_info->bytes_total)
		ret_info->bytes_total = ret_info->bytes_done;
	if (ret_info->is_running && ret_info->bytes_done && ret_info->began_ns)
		ret_info->left_ns =
			(uint64_t)((double)ran * (double)(ret_info->bytes_total - ret_info->bytes_done) /
				   (double)ret_info->bytes_done);
}

const char *
set_move_work(const struct set *s)
{
	struct mover *m = s->mover;
	const char *work = NULL;

	pthread_mutex_lock(&m->lock);
	if (m->job != JOB_NONE || m->heal_wanted)
		work = m->job == JOB_NONE || m->job == JOB_HEAL ? "resync" : "moves";
	pthread_mutex_unlock(&m->lock);
	return work;
}

/* ---- life ---- */

int
set_move_begin(struct set *s, char *err, size_t err_len)
{
	struct mover *m;
	void *mem;
	bool heals;
	int r;

	/* posix_memalign() is used because struct mover contains a mailbox, which is aligned to a cache
	 * line. */
	m = posix_memalign(&mem, _Alignof(struct mover), sizeof *m) == 0 ? memset(mem, 0, sizeof *m) : NULL;
	r = m ? mailbox_init(&m->mb) : -ENOMEM;
	if (r < 0) {
		free(m);
		return refuse(err, err_len, r, "nothing to move slots with: %s", strerror(-r));
	}
	pthread_mutex_init(&m->job_lock, NULL);
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->changed.lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	m->set = s;
	atomic_store(&m->is_over, true);
	atomic_store(&m->rate, s->conf.disks.move_rate);
	s->mover = m;
	heals = set_uses_pairs(s) && set_engines(s) > 1;
	if ((!set_members_change(s) && !heals && !move_has_leftovers(s)) || s->conf.disks.moves_wait)
		return 0;
	if (set_members_change(s))
		log_note("continues the move from before the restart");
	r = move_begin_thread(m, set_members_change(s) || !heals ? JOB_MOVE : JOB_HEAL);
	return r < 0 ? refuse(err, err_len, r, "no thread to move slots: %s", strerror(-r)) : 0;
}

void
set_move_end(struct set *s)
{
	struct mover *m = s->mover;

	if (!m)
		return;
	atomic_store(&m->stop, true);
	if (m->has_thread)
		pthread_join(m->thread, NULL);
	check(!m->changed.keys && !m->sender.sending && !m->sender.has_bufs && !m->sender.rotten);
	mailbox_fini(&m->mb);
	pthread_mutex_destroy(&m->job_lock);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->changed.lock);
	pthread_cond_destroy(&m->cond);
	free(m);
}
