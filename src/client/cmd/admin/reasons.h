/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons of health, as status and health print them. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_REASONS_H
#define GANTRY_CLIENT_CMD_ADMIN_REASONS_H

#include <jansson.h>
#include <stdio.h>

/* Prints a line for each reason of a page of /healthz: "  ! code: text (since time)", "-" for a muted one. */
void reasons_print(FILE *out, const json_t *health);

#endif
