/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs from the initiator's side: moving a piece of a transfer to or from device memory of another process
 * (see struct fab_job). Uses only the fabric. Any thread; no lock.
 */
#ifndef SOFTNIC_JOB_H
#define SOFTNIC_JOB_H

#include "softnic/fabric.h"

/* Claims a job of the process `owner` for process `own` of the fabric; jobs claimed by a dead process are
 * free again. NULL: all jobs are claimed. *ret_stage is the address of the job's buffer in the owner. */
struct fab_job *job_claim(struct fabric *f, struct fab_proc *owner, uint32_t own, uint64_t *ret_stage);
/* Frees the job, which must not be running. */
void job_release(struct fab_job *job);

/* Asks the owner to move len bytes between the buffer and the region `key`, from `offset` on. */
void job_ask(struct fab_proc *owner, struct fab_job *job, uint32_t key, enum fab_op op, uint64_t offset,
	     uint32_t len);
/* Returns true if the job is done, after a wait of at most wait_ns; then *ret_result is set. */
bool job_done(struct fab_job *job, uint64_t wait_ns, enum fab_job_result *ret_result);
/* Cancels the job. Returns false if the owner has begun the job, or the job is done. */
bool job_cancel(struct fab_job *job);

#endif
