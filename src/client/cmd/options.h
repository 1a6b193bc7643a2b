/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - stores the values of command-line options in struct cmd. All functions are called by the main
 * thread.
 */
#ifndef GANTRY_CLIENT_CMD_OPTIONS_H
#define GANTRY_CLIENT_CMD_OPTIONS_H

#include "client/cmd/common/cmd.h"

/* Processes an option (OPT_ of words.h) with its argument in optarg. Ends the program after an error, and
 * after --version, which prints the version. */
void option_take(struct cmd *c, int opt);

#endif
