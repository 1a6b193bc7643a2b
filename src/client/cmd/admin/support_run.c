/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of support.h: each in a process group of its own, so that what it has started ends with it. */
#include "client/cmd/admin/support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_PROGRAM 127

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
child(const char *const *words, int fd)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	/* No secrets of the caller for programs that do not need them, and no colours. */
	unsetenv("AWS_SECRET_ACCESS_KEY");
	unsetenv("AWS_SESSION_TOKEN");
	setenv("TERM", "dumb", 1);
	execvp(words[0], (char *const *)(uintptr_t)words);
	_exit(NO_PROGRAM);
}

/* Copies until the program ends or its time is over.  Returns the number of bytes; *ret_late: the time is over. */
static uint64_t
copy(int from, int to, uint64_t max_bytes, int limit_ms, bool *ret_late)
{
	int64_t until = now_ms() + limit_ms;
	static char buf[1 << 16];
	uint64_t all = 0;

	*ret_late = false;
	for (;;) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		int64_t left = until - now_ms();
		size_t keep;
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)left) == 0) {
			*ret_late = true;
			return all;
		}
		n = read(from, buf, sizeof buf);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return all;
		keep = all >= max_bytes                ? 0
		       : max_bytes - all < (uint64_t)n ? (size_t)(max_bytes - all)
						       : (size_t)n;
		if (keep && write(to, buf, keep) != (ssize_t)keep)
			return all;
		all += (uint64_t)n;
	}
}

/* Judges the end of a program that has written `all` bytes.  Returns its exit status, or -1 with the reason. */
static int
judge(const char *program, int status, uint64_t all, bool may_be_silent, char *why, size_t why_len)
{
	if (!WIFEXITED(status))
		snprintf(why, why_len, "%s was ended by signal %d", program, WTERMSIG(status));
	else if (WEXITSTATUS(status) == NO_PROGRAM && all == 0)
		snprintf(why, why_len, "there is no program %s", program);
	else if (all == 0 && !may_be_silent)
		snprintf(why, why_len, "%s says nothing, and exits with %d", program, WEXITSTATUS(status));
	else
		return WEXITSTATUS(status);
	return -1;
}

/* Returns the exit status, or -1 with the reason. */
static int
run_into(const char *const *words, int to, uint64_t max_bytes, int limit_ms, bool may_be_silent, char *why,
	 size_t why_len)
{
	int pipes[2], status = 0;
	bool is_late = false;
	uint64_t all;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		pid = -1;
	else if ((pid = fork()) == 0)
		child(words, pipes[1]);
	if (pid < 0) {
		snprintf(why, why_len, "%s cannot be started: %s", words[0], strerror(errno));
		return -1;
	}
	close(pipes[1]);
	all = copy(pipes[0], to, max_bytes, limit_ms, &is_late);
	close(pipes[0]);
	/* One that waits in the kernel for a dead disk cannot be killed, and is not waited for. */
	if (is_late) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, WNOHANG);
		snprintf(why, why_len, "%s has not ended within %d s", words[0], limit_ms / 1000);
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	return judge(words[0], status, all, may_be_silent, why, why_len);
}

int
support_run(const char *const *words, const char *path, uint64_t max_bytes, int limit_ms, char *why,
	    size_t why_len)
{
	bool is_null = strcmp(path, "/dev/null") == 0;
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), r;

	if (to < 0) {
		snprintf(why, why_len, "%s: %s", path, strerror(errno));
		return -1;
	}
	r = run_into(words, to, max_bytes, limit_ms, is_null, why, why_len);
	close(to);
	if (r < 0 && !is_null)
		unlink(path);
	return r;
}
