/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - values of the options of a command line, into struct cmd.  Main thread.
 */
#ifndef GANTRY_CLIENT_CMD_OPTIONS_H
#define GANTRY_CLIENT_CMD_OPTIONS_H

#include "client/cmd/common/cmd.h"

/* Takes an option, OPT_ of words.h, with its argument in optarg; or ends the program: with the version, or
 * with an error. */
void option_take(struct cmd *c, int opt);

#endif
