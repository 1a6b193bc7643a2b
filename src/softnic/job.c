/* SPDX-License-Identifier: Apache-2.0 */
#include "softnic/job.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool
holder_lives(struct fabric *f, uint64_t holder)
{
	uint64_t index = (holder & 0xffff) - 1;
	const struct fab_proc *p = &f->proc[index];

	return index < FAB_PROCS && p->serial == holder >> 16 && atomic_load(&p->state) == FAB_PROC_LIVE &&
	       fab_proc_alive(p);
}

/* Forgets what a dead initiator asked for.  False: the owner is doing it. */
static bool
clean(struct fab_job *job)
{
	uint32_t state = atomic_load(&job->state);

	while (state == FAB_JOB_ASKED || state == FAB_JOB_DONE) {
		if (atomic_compare_exchange_strong(&job->state, &state, FAB_JOB_FREE))
			return true;
	}

	return state == FAB_JOB_FREE;
}

struct fab_job *
job_claim(struct fabric *f, struct fab_proc *owner, uint32_t own, uint64_t *ret_stage)
{
	uint64_t me = f->proc[own].serial << 16 | (own + 1), stage = atomic_load(&owner->stage);

	for (int dead = 0; dead < 2 && stage; dead++) {
		for (uint32_t i = 0; i < FAB_JOBS; i++) {
			struct fab_job *job = &owner->job[i];
			uint64_t holder = atomic_load(&job->holder);

			if (holder && (!dead || holder_lives(f, holder)))
				continue;
			if (!atomic_compare_exchange_strong(&job->holder, &holder, me))
				continue;
			if (!clean(job)) {
				atomic_store(&job->holder, 0);
				continue;
			}
			*ret_stage = stage + (uint64_t)i * FAB_STAGE_BYTES;
			return job;
		}
	}

	return NULL;
}

void
job_release(struct fab_job *job)
{
	atomic_store(&job->state, FAB_JOB_FREE);
	atomic_store(&job->holder, 0);
}

void
job_ask(struct fab_proc *owner, struct fab_job *job, uint32_t key, enum fab_op op, uint64_t offset,
	uint32_t len)
{
	job->key = key;
	job->op = op;
	job->offset = offset;
	job->len = len;
	atomic_store(&job->state, FAB_JOB_ASKED);
	atomic_fetch_add(&owner->job_bell, 1);
	syscall(SYS_futex, &owner->job_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool
job_done(struct fab_job *job, uint64_t wait_ns, enum fab_job_result *ret_result)
{
	struct timespec wait = { .tv_sec = (time_t)(wait_ns / 1000000000u),
				 .tv_nsec = (long)(wait_ns % 1000000000u) };

	for (int i = 0; i < 2; i++) {
		uint32_t state = atomic_load(&job->state);

		if (state == FAB_JOB_DONE) {
			*ret_result = (enum fab_job_result)atomic_load(&job->result);
			return true;
		}
		/* From ASKED to RUNNING nobody is woken. */
		if (i == 0)
			syscall(SYS_futex, &job->state, FUTEX_WAIT, state, &wait, NULL, 0);
	}

	return false;
}

bool
job_cancel(struct fab_job *job)
{
	uint32_t asked = FAB_JOB_ASKED;

	return atomic_compare_exchange_strong(&job->state, &asked, FAB_JOB_FREE);
}
