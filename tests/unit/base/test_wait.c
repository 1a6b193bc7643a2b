/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_until() of tests/fake/wait.h: a wait that ends late fails if the processors were idle, and passes if they had work,
 * or if the wait names a longer usual time. The times of the processors come from a file of this test, so the load of
 * the machine does not matter. tests/system/waits.sh does the same for the waits of system tests.
 */
#define WAIT_LIMIT_NS (300 * NS_PER_MS)

#include "tests/fake/wait.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#define LATE_NS (60 * NS_PER_MS)

static char path[64];
static char said[512]; /* by the program whose wait failed */

struct late {
	uint64_t usual_ns;
	const char *before,
		*after; /* first line of /proc/stat at the begin of the wait, and from its first turn on */
	bool never;
};

static void
stat_is(const char *line)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(line, f);
	assert_int_equal(fclose(f), 0);
}

static void *
wait_late(void *arg)
{
	const struct late *l = arg;
	uint64_t end;

	stat_is(l->before);
	end = wait_clock_ns() + LATE_NS;
	wait_usual(l->usual_ns, !l->never && wait_clock_ns() >= end) {
		stat_is(l->after);
		usleep(1000);
	}
	return NULL;
}

/* Returns whether the wait passes in a program of its own: on a thread, whose failure ends the program. */
static bool
passes(struct late l)
{
	int fd[2], status;
	pthread_t thread;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fd[1], STDERR_FILENO);
		_exit(pthread_create(&thread, NULL, wait_late, &l) == 0 && pthread_join(thread, NULL) == 0
			      ? 0
			      : 1);
	}
	close(fd[1]);
	while ((n = read(fd[0], said + len, sizeof said - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* user nice system idle iowait irq softirq steal */
#define BEGIN "cpu 500 0 500 1000 1000 0 0 0 0 0\n"
#define IDLE "cpu 550 0 550 3000 1000 0 0 0 0 0\n"
#define HALF "cpu 1500 0 1000 2500 1000 0 0 0 0 0\n"
#define DISK "cpu 500 0 500 1500 3000 0 0 0 0 0\n"

static void
test_late(void **state)
{
	assert_false(passes((struct late){ .usual_ns = LATE_NS / 3, .before = BEGIN, .after = IDLE }));
	assert_non_null(
		strstr(said, " ms with idle processors, and more than 20 ms is not usual: a lost wake-up?"));
	assert_non_null(strstr(said, "wait_clock_ns() >= end"));
	assert_non_null(strstr(said, "test_wait.c"));
	assert_true(passes((struct late){ .usual_ns = LATE_NS / 3, .before = BEGIN, .after = HALF }));
	assert_true(passes((struct late){ .usual_ns = LATE_NS / 3, .before = BEGIN, .after = DISK }));
	assert_true(passes((struct late){ .usual_ns = 60 * NS_PER_S, .before = BEGIN, .after = IDLE }));
}

/* The limit holds on a busy machine as well. */
static void
test_never(void **state)
{
	struct late l = { .usual_ns = 60 * NS_PER_S, .before = BEGIN, .after = HALF, .never = true };

	assert_false(passes(l));
	assert_non_null(strstr(said, "in time: "));
}

/* Without the file the rule does not apply. */
static void
test_no_file(void **state)
{
	struct wait_ticks none;

	assert_int_equal(setenv("PROC_STAT", "/nonexistent", 1), 0);
	none = wait_ticks();
	assert_int_equal(setenv("PROC_STAT", path, 1), 0);
	assert_int_equal(none.idle, 0);
	assert_int_equal(none.all, 0);
	assert_true(wait_had_work(&(struct wait){ .ticks = wait_ticks() }));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_no_file),
	};
	const char *tmp = getenv("TMPDIR");
	int failed;

	snprintf(path, sizeof path, "%s/gantry-wait-%d", tmp ? tmp : "/tmp", (int)getpid());
	setenv("PROC_STAT", path, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
