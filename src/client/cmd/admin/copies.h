/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies - prints the part of a daemon's /status page about buckets with two copies. All functions are called
 * by the main thread.
 */
#ifndef GANTRY_CLIENT_CMD_COPIES_H
#define GANTRY_CLIENT_CMD_COPIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Returns the part of /status about buckets with two copies; NULL: there are no such buckets. */
const json_t *copies_of(const json_t *status);
/* Returns true if each object in buckets with two copies has both copies, as far as the daemon knows. */
bool copies_are_whole(const json_t *copies);
/* Prints the state of copies as a phrase: "60 objects (1.2 MiB) have one copy, away: disk 89ee12ab /srv/d1". */
void copies_print(FILE *out, const json_t *copies);

#endif
