/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang TID: stops one thread of a process for as long as this runs, and leaves the others alone, as a loop
 * that never ends would.  It is stopped at work, outside of any system call: a thread that waits for
 * something to do is not what a watchdog looks for.  For guest.sh, which hangs a core with it.  x86-64.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 20000
#define PAUSE_US 700

static int
stop(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		return -1;
	return 0;
}

int
main(int argc, char **argv)
{
	pid_t tid = argc == 2 ? atoi(argv[1]) : 0;
	struct user_regs_struct regs;
	int status, tries = 0;

	if (tid <= 0 || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		perror("hang");
		return 1;
	}
	for (;;) {
		if (stop(tid) < 0 || ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0) {
			perror("hang");
			return 1;
		}
		if ((long long)regs.orig_rax < 0)
			break;
		if (++tries == TRIES) {
			fprintf(stderr, "hang: it is never at work\n");
			return 1;
		}
		ptrace(PTRACE_CONT, tid, NULL, NULL);
		usleep(PAUSE_US);
	}
	printf("stopped after %d tries\n", tries);
	fflush(stdout);
	/* Its end is the process's end; ours lets it go on. */
	while (waitpid(tid, &status, __WALL) == tid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	return 0;
}
