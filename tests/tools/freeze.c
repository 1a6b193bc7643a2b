/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops single threads of a process, as nothing but ptrace can, and lets them go on when its input ends:
 *
 *     freeze PID NAME-PREFIX
 *
 * says "frozen N" once the N threads whose names begin so stand still.  The health test stands cores still
 * with it, while the admin thread has to go on answering.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static int
is_named(int pid, int tid, const char *prefix)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(name, sizeof name, f))
		name[0] = 0;
	fclose(f);
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int
stop(int tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return -errno;
	return waitpid(tid, &status, __WALL) == tid ? 0 : -errno;
}

int
main(int argc, char **argv)
{
	struct dirent *e;
	char path[64];
	int nr = 0, pid = argc == 3 ? atoi(argv[1]) : 0;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	d = pid > 0 ? opendir(path) : NULL;
	if (!d) {
		fprintf(stderr, "usage: freeze PID NAME-PREFIX\n");
		return 2;
	}
	while ((e = readdir(d))) {
		int tid = atoi(e->d_name), r;

		if (tid <= 0 || !is_named(pid, tid, argv[2]))
			continue;
		r = stop(tid);
		if (r < 0) {
			fprintf(stderr, "freeze: thread %d: %s\n", tid, strerror(-r));
			return 1;
		}
		nr++;
	}
	closedir(d);
	printf("frozen %d\n", nr);
	fflush(stdout);
	/* The kernel lets them go when we end. */
	while (getchar() != EOF)
		;
	return 0;
}
