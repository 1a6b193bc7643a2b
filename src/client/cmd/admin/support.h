/* SPDX-License-Identifier: Apache-2.0 */
/* Running the programs whose output is in a support bundle. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_SUPPORT_H
#define GANTRY_CLIENT_CMD_ADMIN_SUPPORT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUPPORT_CONF "/etc/gantry/gantryd.yaml"

/* Set by a signal handler to the number of the signal: programs that run are killed, as after their time limit. */
extern volatile sig_atomic_t support_signal;

/* Runs a program with its output and error messages in the file `path`, of which at most max_bytes are kept.
 * After limit_ms kills the program and its children. Returns the exit status, also of a program that reports
 * problems by it; or -1 with the reason in `why`: there is no such program, it was killed, or it has written
 * nothing. */
int support_run(const char *const *words, const char *path, uint64_t max_bytes, int limit_ms, char *why,
		size_t why_len);

/* A program that runs at the same time as others. */
struct support_program {
	/* set by the caller */
	const char *words[16]; /* name and arguments, ended by NULL */
	const char *path;      /* file for the output and error messages */
	/* set by support_run_all() */
	int result; /* the result of support_run() */
	char why[256];
	/* for support_run_all() alone */
	pid_t pid;
	int from,
		to; /* pipe from the program, and the file; from -1: the output has ended, or did not begin */
	uint64_t bytes;
};

/* Runs programs at the same time, each as support_run() does, all with the same limits. */
void support_run_all(struct support_program *p, int nr, uint64_t max_bytes, int limit_ms);

#endif
