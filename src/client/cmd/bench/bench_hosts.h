/* SPDX-License-Identifier: Apache-2.0 */
/* bench_hosts - measures from several hosts at a time, each with a worker that ssh starts. Main thread. */
#ifndef GANTRY_CLIENT_CMD_BENCH_HOSTS_H
#define GANTRY_CLIENT_CMD_BENCH_HOSTS_H

#include "client/cmd/bench/bench.h"

/* Runs the measurement on the hosts of --hosts, and reports their rows added up. Returns EXIT_OK, or
 * EXIT_FAILED if a host has failed. */
int bench_hosts(struct bench *b, const char *url, struct bench_verdict *v);
/* ---- bench_worker.c ---- */

/* Returns the command line of the worker of host i of `hosts`, for a shell; the caller frees it. NULL: no
 * memory. */
char *bench_worker_command(const struct bench *b, int i, int hosts, const char *url);
/* Reports that this worker is ready for its next round, and waits for the other workers. Returns 0; -EINTR: the
 * measurement has to end. */
int bench_worker_wait(void);

#endif
