/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-slice COMMAND [ARGUMENT...]: runs a command with the short scheduler slices that the daemon's cores
 * ask for. bench/run runs itself in it: so both sides of a figure are let onto a CPU equally soon, the
 * reference, too.
 */
#include "base/slice.h"

#include <stdio.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	slice_short();
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
