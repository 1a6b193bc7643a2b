/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of gantryd. main() parses it once, before all other work. */
#ifndef GANTRY_MAIN_OPTIONS_H
#define GANTRY_MAIN_OPTIONS_H

#include "conf/conf.h"

#include <stdbool.h>
#include <stdio.h>

#define OVERRIDES_MAX 64

/* Exit codes; scripts and service units rely on them. */
enum {
	EXIT_OK = 0,
	EXIT_RUNTIME = 1,  /* a failure while running */
	EXIT_USAGE = 2,    /* an invalid command line */
	EXIT_MISSING = 69, /* a required listener or device is missing */
	/* the store is damaged, unreadable, not formatted yet, or another store than expected */
	EXIT_STORE = 74,
	EXIT_CONFIG = 78, /* an invalid configuration, or files with wrong permissions */
};

/* Writes prefix, message and a line feed to out. In message each remedy is a line of its own. */
void options_say(FILE *out, const char *prefix, const char *message);
/* Returns the exit code for a store that cannot be opened or formatted. error: the negative errno value of
 * the attempt. EXIT_RUNTIME: a later start may succeed; EXIT_STORE: a later start will fail as well. */
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
	ACTION_RELOAD,
	ACTION_VERSION,
	ACTION_HELP,
	ACTION_NR
};

struct options {
	enum action action;
	const char *file;       /* value of -c; NULL: the default file */
	const char *ready_file; /* path of an additional file for the ready line; NULL: none */
	bool force, if_absent, repair, yes;
	uint8_t forget[CONF_DISKS_MAX][UUID_BYTES]; /* UUIDs of disks to forget */
	int forget_nr;
	const char *add; /* path of a disk to add */
	bool replaces;   /* --replace-store was given */
	/* UUID of the recorded store (remember.c) that this start may replace by another */
	uint8_t replace_store[UUID_BYTES];
	struct conf_override overrides[OVERRIDES_MAX];
	int override_nr;
};

/* Parses the command line. Returns 0, or -EINVAL after writing a line to err. The strings in *ret_options
 * belong to argv. */
int options_parse(int argc, char **argv, struct options *ret_options, FILE *err);
void options_help(FILE *out);
/* Asks the daemon that has this configuration to read it again (--reload), and prints its answer. Returns an exit code: EXIT_CONFIG
 * for a configuration that the daemon refused, EXIT_MISSING without a daemon. */
int reload_ask(const struct conf_source *src);
/* Sends a request without a body to the Unix socket of a daemon, and receives the answer until its end. what: method and target,
 * such as "GET /disks". Returns 0, or the -errno of the connection. */
int socket_ask(const char *path, const char *what, char *answer, size_t len);

/* ---- ask_disks.c ---- */

/* Asks the daemon of the configuration (admin.socket) for its disks. has_record: a start finds disks that store.disks does not
 * name. Returns 0 if a start would have the same disks; or -errno with a sentence in err. */
int ask_disks(const struct conf *conf, bool has_record, char *err, size_t len);

/* ---- check_config.c: --check-config ---- */

/* Becomes the user of the daemon, who is the owner of store.state_dir, if the caller is root. Writes the user's name to ret_name, or an
 * empty text if the user stays the same. Returns an exit code. */
int check_as_user(const struct conf *conf, char *ret_name, size_t cap);
/* Judges the configuration and the disks, and prints the result. file: name of the configuration file; user: name that
 * check_as_user() has written. Returns an exit code. */
int check_config(const char *file, const struct conf_source *src, const struct conf *conf, const char *user);

#endif
