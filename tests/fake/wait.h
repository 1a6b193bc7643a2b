/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of a unit test for other threads, with the rule of lost wake-ups of wait_for in tests/system/lib.sh.
 *
 *     wait_until(condition)
 *         turn();
 *
 * The condition, which may have effects, is evaluated before each turn; the loop ends when the condition is true. The
 * test fails if the condition is false for WAIT_LIMIT_NS, and also if the condition became true after more than
 * WAIT_USUAL_NS while the processors of the machine were idle for more than 80 % of the time: no work was in the
 * way, so an event was missed, and a timer made up for it. A wait for a timer names its own usual time:
 * wait_usual(). Time is that of the real clock, also where a test has replaced clock_ns() or clock_gettime().
 * tests/unit/base/test_wait.c tests the rule.
 */
#ifndef GANTRY_TESTS_WAIT_H
#define GANTRY_TESTS_WAIT_H

#include "base/clock.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A program whose waits are all for timers, or a test of these waits, defines its own before. */
#ifndef WAIT_LIMIT_NS
#define WAIT_LIMIT_NS (100 * NS_PER_S)
#endif
/* Ten times the longest wait of the unit tests for anything but a timer, on a machine without other work. */
#ifndef WAIT_USUAL_NS
#define WAIT_USUAL_NS (2 * NS_PER_S)
#endif

#define wait_until(cond) wait_usual(WAIT_USUAL_NS, cond)
#define wait_usual(ns, cond)                                                                                 \
	for (struct wait wait_ = wait_begin(ns); !wait_ends(&wait_, cond, #cond, __FILE__, __LINE__);)

/* Time of the processors, in ticks, at a moment. Time that waits for a disk is not idle. */
struct wait_ticks {
	uint64_t at_ns, idle, all;
};

struct wait {
	uint64_t began_ns, usual_ns;
	struct wait_ticks ticks; /* at the begin, or up to a tenth of usual_ns before */
};

static inline uint64_t
wait_clock_ns(void)
{
	struct timespec t = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Without an allocation: some tests count these. */
static inline struct wait_ticks
wait_ticks(void)
{
	struct wait_ticks r = { .at_ns = wait_clock_ns() };
	const char *path = getenv("PROC_STAT");
	int fd = open(path ? path : "/proc/stat", O_RDONLY | O_CLOEXEC);
	char line[256] = "", *at = line + strlen("cpu");

	if (fd >= 0 && read(fd, line, sizeof line - 1) > 0) {
		for (int i = 0; i < 8; i++) {
			uint64_t ticks = strtoull(at, &at, 10);

			r.all += ticks;
			r.idle += i == 3 ? ticks : 0;
		}
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static inline struct wait
wait_begin(uint64_t usual_ns)
{
	/* Tests have many short waits, and the kernel takes some time to count its ticks. */
	static _Thread_local struct wait_ticks last;
	uint64_t now = wait_clock_ns();

	if (!last.at_ns || now - last.at_ns > usual_ns / 10)
		last = wait_ticks();
	return (struct wait){ .began_ns = now, .usual_ns = usual_ns, .ticks = last };
}

/* Returns whether the processors had work in the wait until now. */
static inline bool
wait_had_work(const struct wait *w)
{
	struct wait_ticks now = wait_ticks();

	return (now.idle - w->ticks.idle) * 100 <= (now.all - w->ticks.all) * 80;
}

/* Returns true if the wait until now took longer than usual while the processors were idle. */
static inline bool
wait_was_lost(const struct wait *w)
{
	return wait_clock_ns() - w->began_ns > w->usual_ns && !wait_had_work(w);
}

static inline bool
wait_ends(const struct wait *w, bool is_so, const char *cond, const char *file, int line)
{
	uint64_t took = wait_clock_ns() - w->began_ns;

	if (!is_so && took > WAIT_LIMIT_NS) {
		print_error("%s:%d: in time: %s\n", file, line, cond);
		_fail(file, line);
	}
	if (is_so && wait_was_lost(w)) {
		print_error("%s:%d: it took %d ms with idle processors, and more than %d ms is not usual: a "
			    "lost wake-up? %s\n",
			    file, line, (int)(took / NS_PER_MS), (int)(w->usual_ns / NS_PER_MS), cond);
		_fail(file, line);
	}
	return is_so;
}

#endif
