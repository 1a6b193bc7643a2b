/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice - the time slice of a thread: the time for which the scheduler lets other threads run before a thread
 * that has just become ready gets its CPU.
 *
 * A core sleeps some 20,000 times a second, for as long as a disk or a client takes. If another program
 * computes on its CPU in the meantime, kernels from 6.6 on let that program use up its slice (2.8 ms) before
 * they consider the thread that woke: ten times the duration of a durable PUT. A thread with a short slice
 * runs immediately, and gets no larger share of the CPU. Called by every core and by the benchmarks, each for
 * itself.
 */
#ifndef GANTRY_BASE_SLICE_H
#define GANTRY_BASE_SLICE_H

/* Sets the shortest possible slice for the calling thread and for threads that it starts later (including the
 * kernel's workers of its io_uring). Kernels before 6.12 have no slices, and ignore the call. Returns 0; or
 * the -errno of the system call, which the caller can ignore because nothing has changed. */
int slice_short(void);

#endif
