/* SPDX-License-Identifier: Apache-2.0 */
/* reasons - prints the reasons of a daemon's health, for `gantry status` and `gantry health`. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_REASONS_H
#define GANTRY_CLIENT_CMD_ADMIN_REASONS_H

#include <jansson.h>
#include <stdio.h>

/* Prints a line for each reason of a /healthz page: " ! code: text (since time)". The line of a muted reason
 * has "-" in place of "!". */
void reasons_print(FILE *out, const json_t *health);

#endif
