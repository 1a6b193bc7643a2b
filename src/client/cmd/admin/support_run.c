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
#define LOOK_MS 200 /* interval in which a signal is noticed that came before a wait */

volatile sig_atomic_t support_signal;

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

/* Copies output that is there. At its end closes the pipe. */
static void
copy_some(struct support_program *p, uint64_t max_bytes)
{
	static char buf[1 << 16];
	ssize_t n = read(p->from, buf, sizeof buf);
	size_t keep;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		keep = p->bytes >= max_bytes                ? 0
		       : max_bytes - p->bytes < (uint64_t)n ? (size_t)(max_bytes - p->bytes)
							    : (size_t)n;
		p->bytes += (uint64_t)n;
		if (!keep || write(p->to, buf, keep) == (ssize_t)keep)
			return;
	}
	close(p->from);
	p->from = -1;
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

static void
begin(struct support_program *p)
{
	int pipes[2];

	p->result = -1;
	p->from = -1;
	p->pid = -1;
	p->bytes = 0;
	p->to = open(p->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (p->to < 0) {
		snprintf(p->why, sizeof p->why, "%.200s: %s", p->path, strerror(errno));
		return;
	}
	if (pipe2(pipes, O_CLOEXEC) < 0) {
		snprintf(p->why, sizeof p->why, "%s cannot be started: %s", p->words[0], strerror(errno));
		return;
	}
	p->pid = fork();
	if (p->pid == 0)
		child(p->words, pipes[1]);
	close(pipes[1]);
	if (p->pid < 0) {
		snprintf(p->why, sizeof p->why, "%s cannot be started: %s", p->words[0], strerror(errno));
		close(pipes[0]);
	} else {
		p->from = pipes[0];
	}
}

/* Ends a program whose output has ended, or that is late. */
static void
end(struct support_program *p, int limit_ms)
{
	bool is_null = strcmp(p->path, "/dev/null") == 0;
	int status = 0;

	if (p->from >= 0) {
		/* A program that waits in the kernel for a dead disk cannot be killed, and is not waited for. */
		close(p->from);
		kill(-p->pid, SIGKILL);
		waitpid(p->pid, &status, WNOHANG);
		if (support_signal)
			snprintf(p->why, sizeof p->why, "signal %d came before the end of %s",
				 (int)support_signal, p->words[0]);
		else
			snprintf(p->why, sizeof p->why, "%s has not ended within %d s", p->words[0],
				 limit_ms / 1000);
	} else if (p->pid > 0) {
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
		}
		p->result = judge(p->words[0], status, p->bytes, is_null, p->why, sizeof p->why);
	}
	if (p->to < 0)
		return;
	close(p->to);
	if (p->result < 0 && !is_null)
		unlink(p->path);
}

void
support_run_all(struct support_program *p, int nr, uint64_t max_bytes, int limit_ms)
{
	int64_t until = now_ms() + limit_ms, left;
	struct pollfd *fd = calloc((size_t)nr, sizeof *fd);
	int running = fd ? nr : 0;

	for (int i = 0; i < nr; i++)
		begin(&p[i]);
	while (running && !support_signal && (left = until - now_ms()) > 0) {
		running = 0;
		for (int i = 0; i < nr; i++) {
			fd[i] = (struct pollfd){ .fd = p[i].from, .events = POLLIN };
			running += p[i].from >= 0;
		}
		if (!running || poll(fd, (nfds_t)nr, left < LOOK_MS ? (int)left : LOOK_MS) < 0)
			continue;
		for (int i = 0; i < nr; i++) {
			if (fd[i].revents)
				copy_some(&p[i], max_bytes);
		}
	}
	for (int i = 0; i < nr; i++)
		end(&p[i], limit_ms);
	free(fd);
}

int
support_run(const char *const *words, const char *path, uint64_t max_bytes, int limit_ms, char *why,
	    size_t why_len)
{
	struct support_program p = { .path = path };

	for (int i = 0; words[i]; i++)
		p.words[i] = words[i];
	support_run_all(&p, 1, max_bytes, limit_ms);
	if (p.result < 0)
		snprintf(why, why_len, "%s", p.why);
	return p.result;
}
