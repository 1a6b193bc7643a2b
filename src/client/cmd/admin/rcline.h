/* SPDX-License-Identifier: Apache-2.0 */
/* rcline - prints the part of a daemon's /status page about connections of the RC transport. Called by the main
 * thread. */
#ifndef GANTRY_CLIENT_CMD_RCLINE_H
#define GANTRY_CLIENT_CMD_RCLINE_H

#include <jansson.h>
#include <stdio.h>

/* Prints a line such as "rc  3 connections, 1 in use, 4 made; refused by per_peer: 2"; nothing if RC is switched off. */
void rcline_print(FILE *out, const json_t *status);

#endif
