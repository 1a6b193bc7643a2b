/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The implementation of src/rados/io/fault.h for tests. In the directory GANTRY_FAULTS, a file with the name
 * of a step kills the next process that reaches the step; a file NAME.stop stops that process. The process
 * removes the file first: the test sees that the step was reached, and later processes pass it.
 */
#include "rados/io/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool
fault_asked(const char *name)
{
	const char *dir = getenv("GANTRY_FAULTS");
	char path[512];

	if (!dir)
		return false;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return unlink(path) == 0;
}

void
fault_point(const char *name)
{
	char stop[64];

	if (fault_asked(name))
		kill(getpid(), SIGKILL);
	snprintf(stop, sizeof stop, "%s.stop", name);
	/* To this thread, which stops here. A signal to the process waits until the main thread runs, and this one continues. */
	if (fault_asked(stop))
		raise(SIGSTOP);
}
