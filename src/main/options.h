/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gantryd.  Parsed once by main(), before anything else. */
#ifndef GANTRY_MAIN_OPTIONS_H
#define GANTRY_MAIN_OPTIONS_H

#include "conf/conf.h"

#include <stdbool.h>
#include <stdio.h>

#define OVERRIDES_MAX 64

/* Exit codes: scripts and units rely on them. */
enum {
	EXIT_OK = 0,
	EXIT_RUNTIME = 1,  /* failed while running */
	EXIT_USAGE = 2,    /* the command line */
	EXIT_MISSING = 69, /* a required listener or device is missing */
	EXIT_STORE = 74,   /* store damaged, unreadable, foreign, or not made yet */
	EXIT_CONFIG = 78,  /* bad configuration, or files that may not be used */
};

/* Returns the exit code of a store that cannot be opened or made, for its -errno: EXIT_RUNTIME only where
 * another start may well succeed. */
int exit_of_store(int error);

enum action {
	ACTION_RUN,
	ACTION_CHECK_CONFIG,
	ACTION_PRINT_CONFIG,
	ACTION_PRINT_KEYS,
	ACTION_PRINT_METRICS,
	ACTION_LIST_DEVICES,
	ACTION_FORMAT,
	ACTION_FSCK,
	ACTION_UPGRADE,
	ACTION_FORGET,
	ACTION_ADD,
	ACTION_VERSION,
	ACTION_HELP,
	ACTION_NR
};

struct options {
	enum action action;
	const char *file;       /* -c; NULL: the default */
	const char *ready_file; /* where the ready line is written as well */
	bool force, if_absent, repair;
	uint8_t forget[CONF_DISKS_MAX][UUID_BYTES]; /* disks that are given up */
	int forget_nr;
	const char *add; /* the path of a disk that comes */
	struct conf_override overrides[OVERRIDES_MAX];
	int override_nr;
};

/* Parses the command line.  0, or -EINVAL with one line written to err.  The strings are argv's. */
int options_parse(int argc, char **argv, struct options *ret_options, FILE *err);
void options_help(FILE *out);

#endif
