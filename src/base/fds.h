/* SPDX-License-Identifier: Apache-2.0 */
/* fds - file descriptors that clients may not use up. */
#ifndef GANTRY_BASE_FDS_H
#define GANTRY_BASE_FDS_H

#include <stdbool.h>
#include <sys/resource.h>

/* Number of descriptors that clients leave for /livez, segments, and files that are read again, unless the limit is small. */
#define FDS_KEPT 64

/* Returns true if a new descriptor is one of the last of the process, or with part 2 of the last half of these. The kernel gives
 * out the lowest first, so the number says how many are in use. */
static inline bool
fd_is_kept(int fd, int part)
{
	struct rlimit l;
	rlim_t kept;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur == RLIM_INFINITY)
		return false;
	kept = l.rlim_cur / 4 < FDS_KEPT ? l.rlim_cur / 4 : FDS_KEPT;
	return (rlim_t)fd >= l.rlim_cur - kept / (unsigned)part;
}

#endif
