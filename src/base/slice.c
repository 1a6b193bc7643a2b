/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short slices; see slice.h.  The C library has no call for it.
 */
#include "base/slice.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS (100 * NS_PER_US) /* the least the kernel grants */

/* As sched_setattr(2) has it, its first version. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

int
slice_short(void)
{
	struct attr a = { 0 };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) < 0)
		return -errno;
	/* Somebody gave us a real-time policy: then runtime_ns means something else, or nothing. */
	if (a.policy != SCHED_OTHER)
		return 0;
	a.size = sizeof a;
	a.runtime_ns = SLICE_NS;
	return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}
