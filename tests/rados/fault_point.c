/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of src/rados/io/fault.h, in a module of the tests' own.  A file of the step's name in the directory
 * GANTRY_FAULTS asks for one process that reaches it to be killed there, at once; name.stop asks for it to be
 * stopped.  The file goes with it, so that the test knows who was there, and the next process passes.
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
	if (fault_asked(stop))
		kill(getpid(), SIGSTOP);
}
