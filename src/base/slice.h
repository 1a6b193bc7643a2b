/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice - gives the calling thread a short time slice, so that it runs as soon as it wakes.
 *
 * A core sleeps some 20,000 times a second, while it waits for a disk or a client. If another program computes
 * on the core's CPU in the meantime, kernels from 6.6 on let this program run to the end of its own slice
 * (2.8 ms, ten times the duration of a durable PUT) before the core's thread runs. A thread with a short slice
 * preempts the other program immediately, and gets no larger share of the CPU. Every core and every thread of
 * a benchmark calls this for itself.
 */
#ifndef GANTRY_BASE_SLICE_H
#define GANTRY_BASE_SLICE_H

/* Sets the shortest possible slice for the calling thread and for threads that it starts later (including the
 * kernel's workers of its io_uring). Kernels before 6.12 have no slices, and ignore the call. Returns 0; or
 * the -errno of the system call, which the caller can ignore because nothing has changed. */
int slice_short(void);

#endif
