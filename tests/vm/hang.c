/*
 * hang TID: stops one thread of a process for as long as this runs, and leaves the others alone, as a loop
 * that never ends or a system call that never returns would.  For guest.sh, which hangs a core with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	pid_t tid = argc == 2 ? atoi(argv[1]) : 0;
	int status;

	if (tid <= 0 || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0 ||
	    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status)) {
		perror("hang");
		return 1;
	}
	printf("stopped\n");
	fflush(stdout);
	/* Its end is the process's end; ours lets it go on. */
	while (waitpid(tid, &status, __WALL) == tid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
	return 0;
}
