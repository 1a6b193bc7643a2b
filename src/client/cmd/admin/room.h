/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about the host, and about the capacity of the store, for `gantry status`. */
#ifndef GANTRY_CLIENT_CMD_ADMIN_ROOM_H
#define GANTRY_CLIENT_CMD_ADMIN_ROOM_H

#include <jansson.h>
#include <stdio.h>

/* Prints the host and the first digits of the store's UUID. status: the answer of /status. Prints nothing if the answer
 * of an older daemon lacks them. */
void host_print(FILE *out, const json_t *status);
/* Prints size, used and free space, and the time until the store is full. Prints nothing if the answer of an older
 * daemon lacks them. */
void room_print(FILE *out, const json_t *status);

#endif
