/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gantryd.  Parsed once by main(), before anything else. */
#ifndef GANTRY_MAIN_OPTIONS_H
#define GANTRY_MAIN_OPTIONS_H

#include "conf/conf.h"

#include <stdbool.h>
#include <stdio.h>

#define OVERRIDES_MAX 64

/* Exit codes, on which scripts and units rely. */
enum {
	EXIT_OK = 0,
	EXIT_RUNTIME = 1,  /* failed while running */
	EXIT_USAGE = 2,    /* the command line */
	EXIT_MISSING = 69, /* a required listener or device is missing */
	EXIT_STORE = 74,   /* store damaged, unreadable, of another system, or not formatted yet */
	EXIT_CONFIG = 78,  /* bad configuration, or files with wrong permissions */
};

/* Returns the exit code for the -errno of a store that cannot be opened or formatted: EXIT_RUNTIME only if
 * another start may succeed. */
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
	const char *ready_file; /* an additional file for the ready line */
	bool force, if_absent, repair, yes;
	uint8_t forget[CONF_DISKS_MAX][UUID_BYTES]; /* UUIDs of disks to forget */
	int forget_nr;
	const char *add;                   /* path of a disk to add */
	bool replaces;                     /* --replace-store: */
	uint8_t replace_store[UUID_BYTES]; /* the remembered store that may be given up */
	struct conf_override overrides[OVERRIDES_MAX];
	int override_nr;
};

/* Parses the command line.  0, or -EINVAL with one line written to err.  The strings are argv's. */
int options_parse(int argc, char **argv, struct options *ret_options, FILE *err);
void options_help(FILE *out);

#endif
