/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named steps, at which a test ends or stops this process.
 *
 * Nothing is left of them in the daemon's module: only the objects that tests build for themselves
 * (-DRADOS_FAULTS) call tests/rados/fault_point.c.
 */
#ifndef GANTRY_RADOS_FAULT_H
#define GANTRY_RADOS_FAULT_H

#include <stdbool.h>

#ifdef RADOS_FAULTS
/* Ends the process, or stops it, where the test has asked for that at this step. */
void fault_point(const char *name);
/* Tells whether the test has asked for what the name says. */
bool fault_asked(const char *name);
#else
static inline void
fault_point(const char *name)
{
}

static inline bool
fault_asked(const char *name)
{
	return false;
}
#endif

#endif
