/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the other threads of this process do.  A sanitizer's allocator stays locked in a child that is forked while another thread is inside
 * it: who forks beside threads waits until they all sleep.
 */
#ifndef GANTRY_TESTS_OTHERS_H
#define GANTRY_TESTS_OTHERS_H

#include "tests/fake/wait.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns whether every other thread of this process sleeps. */
static inline bool
others_sleep(void)
{
	DIR *d = opendir("/proc/self/task");
	bool all = d != NULL;

	for (const struct dirent *e; d && (e = readdir(d));) {
		char path[300], text[256] = "";
		const char *state;
		FILE *f;

		if (atoi(e->d_name) == 0 || atoi(e->d_name) == gettid())
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue; /* it has ended */
		state = fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
		all &= state && state[1] == ' ' && state[2] == 'S';
		fclose(f);
	}
	if (d)
		closedir(d);
	return all;
}

/* Waits until they do. */
static inline void
wait_others(void)
{
	wait_until(others_sleep())
		usleep(1000);
}

#endif
