/* SPDX-License-Identifier: Apache-2.0 */
/* jobs - the long jobs of a daemon (moves of slots, resynchronisation, scrub), from its pages. */
#ifndef GANTRY_CLIENT_CMD_JOBS_H
#define GANTRY_CLIENT_CMD_JOBS_H

#include "base/progress.h"

#include <jansson.h>
#include <stdbool.h>

struct cmd;

/* Writes the progress of the scrub as text, from the page /status: bytes, rate and time left. Returns false if
 * no scan runs. */
bool jobs_scrub_text(const json_t *status, char *text, size_t cap);
/* Shows the moves of slots and the resynchronisation until both have ended, once a second from the daemon.
 * Returns the exit status of the program. */
int jobs_wait(const struct cmd *c, const char *admin);

#endif
