/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initiator's functions for jobs, which move a piece of a transfer from or to device memory of another
 * process (struct fab_job). Any thread; no lock.
 */
#ifndef SOFTNIC_JOB_H
#define SOFTNIC_JOB_H

#include "softnic/fabric.h"

/* Claims a job of the process `owner`, to which the device memory belongs. own: index of the initiator's
 * process. Jobs that a dead process has claimed count as free. Returns the job, and in *ret_stage the address
 * of its buffer in the owner; NULL: all jobs are claimed. */
struct fab_job *job_claim(struct fabric *f, struct fab_proc *owner, uint32_t own, uint64_t *ret_stage);
/* Frees the job, which must not be running. */
void job_release(struct fab_job *job);

/* Asks the owner to move len bytes between the buffer of the job and the region `key`, from byte `offset` of
 * the region on. */
void job_ask(struct fab_proc *owner, struct fab_job *job, uint32_t key, enum fab_op op, uint64_t offset,
	     uint32_t len);
/* Waits until the job is done, at most wait_ns. Returns true, and the result in *ret_result; false: it is not
 * done yet. */
bool job_done(struct fab_job *job, uint64_t wait_ns, enum fab_job_result *ret_result);
/* Cancels a job that was requested. Returns false if the owner has already begun or finished it. */
bool job_cancel(struct fab_job *job);

#endif
