/* SPDX-License-Identifier: Apache-2.0 */
/* Running the programs whose output is in a support bundle. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_SUPPORT_H
#define GANTRY_CLIENT_CMD_ADMIN_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#define SUPPORT_CONF "/etc/gantry/gantryd.yaml"

/* Runs a program with its output and error messages in the file `path`, of which at most max_bytes are kept.
 * After limit_ms kills the program and its children. Returns the exit status, also of a program that reports
 * problems by it; or -1 with the reason in `why`: there is no such program, it was killed, or it has written
 * nothing. */
int support_run(const char *const *words, const char *path, uint64_t max_bytes, int limit_ms, char *why,
		size_t why_len);

#endif
