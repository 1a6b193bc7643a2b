/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the scheduler lets others run on before a thread that has just become ready gets its CPU.
 *
 * A core sleeps some 20,000 times a second, for as long as a disk or a client takes.  Where something else
 * computes on its CPU meanwhile, the scheduler of kernels from 6.6 on lets that use up its slice (2.8 ms)
 * before it looks at who woke: ten times what a durable PUT takes.  A thread with a short slice is let in at
 * once, and gets no larger share of the CPU for it.  Called by every core and by the benchmarks, each for
 * itself.
 */
#ifndef GANTRY_BASE_SLICE_H
#define GANTRY_BASE_SLICE_H

/* Asks for the shortest slice there is, for the calling thread and what it starts from now on (the
 * kernel's workers for its io_uring among them).  Kernels that know no slices, before 6.12, ignore it.  0 or
 * -errno; on failure nothing has changed and nothing need be done. */
int slice_short(void);

#endif
