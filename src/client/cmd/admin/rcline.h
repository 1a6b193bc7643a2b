/* SPDX-License-Identifier: Apache-2.0 */
/* rcline - the parts of a daemon's pages about the RC transport. All functions are called by the main thread. */
#ifndef GANTRY_CLIENT_CMD_RCLINE_H
#define GANTRY_CLIENT_CMD_RCLINE_H

#include <jansson.h>
#include <stdio.h>

/* Returns the channels of a rail, from /rails: DC initiators; on a rail without DC, channels for connections of RC. */
const json_t *rail_channels(const json_t *rail);
/* Prints a line such as "rc  3 connections, 1 in use, 4 made; refused by per_peer: 2"; nothing if RC is switched off. */
void rcline_print(FILE *out, const json_t *status);

#endif
