/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named steps at which a test ends or stops this process.
 *
 * The module of the daemon does not contain them: only the objects that tests build for themselves
 * (-DRADOS_FAULTS) call tests/rados/fault_point.c.
 */
#ifndef GANTRY_RADOS_FAULT_H
#define GANTRY_RADOS_FAULT_H

#include <stdbool.h>

#ifdef RADOS_FAULTS
/* Ends or stops the process if the test has requested it at this step. */
void fault_point(const char *name);
/* Returns true if the test has requested the named behaviour. */
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
