/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words - the commands and options of the command line (command.def, option.def), their help, and the check
 * of arguments. All functions are called by the main thread.
 */
#ifndef GANTRY_CLIENT_CMD_WORDS_H
#define GANTRY_CLIENT_CMD_WORDS_H

#include <getopt.h>
#include <stdbool.h>

struct cmd;

/* The kind of object that the argument URL of a command must name. */
enum url_kind {
	URL_NONE,
	URL_OBJECT, /* the URL names a bucket and a key */
	/* the URL names a bucket and a key; if it ends with '/', the name of the file is appended */
	URL_NEW_OBJECT,
	URL_PREFIX, /* the URL names a bucket, and optionally a prefix of keys */
	URL_BUCKET,
	URL_BENCH,  /* the URL names a server, and optionally a bucket and a prefix of keys */
	URL_SERVER, /* the URL names a server, a bucket or a prefix */
};

/* Groups of commands, as bits: an option is accepted by the commands of some groups. */
enum {
	FOR_SERVER = 1 << 0, /* commands that send S3 requests */
	FOR_SUM = 1 << 1,    /* commands that use checksums */
	FOR_JOBS = 1 << 2,   /* commands that work on several objects at a time */
	FOR_LIST = 1 << 3,   /* commands that read a list of names (mput, mget) */
	FOR_PORTS = 1 << 4,
	FOR_DAEMON = 1 << 5, /* commands that use an admin listener and do not need the library */
	FOR_TOP = 1 << 6,
	FOR_ALL = 1 << 7,
	FOR_CAT = 1 << 8,
	FOR_PRESIGN = 1 << 9,
	FOR_BENCH = 1 << 10,
	FOR_KEY = 1 << 11,   /* commands that change a file of the daemon and do not need the library */
	FOR_HW = 1 << 12,    /* commands that use the adapter directly and do not need the library */
	FOR_BYTES = 1 << 13, /* commands that move the bytes of objects */
	FOR_TIMED = 1 << 14, /* commands whose requests have a time limit, which --timeout sets */
	FOR_JSON = 1 << 15,
	FOR_TREE = 1 << 16, /* commands that may work on a whole tree */
	FOR_LS = 1 << 17,
	FOR_DU = 1 << 18,
	FOR_SYNC = 1 << 19,
	FOR_ASK = 1 << 20,  /* commands that ask for confirmation */
	FOR_GLOB = 1 << 21, /* commands that select objects by name */
	FOR_DRY = 1 << 22,
	FOR_RB = 1 << 23,
	FOR_QUOTA = 1 << 24, /* commands that set quotas */
	FOR_MB = 1 << 25,    /* commands that make buckets */
	/* commands with --quiet, which suppresses all messages except errors */
	FOR_QUIET = 1 << 26,
	FOR_MUTE = 1 << 27, /* commands that mute a reason of health */
	FOR_DISK = 1 << 28, /* commands that add disks */
	FOR_TRACE = 1 << 29,
	FOR_SUPPORT = 1 << 30,
};
#define FOR_TTL (1u << 31) /* commands that write objects */

enum command_id {
#define COMMAND(name, ...) COMMAND_##name,
#include "client/cmd/common/command.def"
#undef COMMAND
	COMMAND_NR
};

/* Numbers of the options. getopt_long() returns the number of an option without a letter, and the letter of
 * any other option. */
enum option_id {
	OPT_BEGIN = 256,
#define OPTION(id, ...) OPT_##id,
#include "client/cmd/common/option.def"
#undef OPTION
	OPT_END
};
#define OPTIONS_NR (OPT_END - OPT_BEGIN)

struct command {
	const char *name, *words;
	enum url_kind url;
	unsigned takes;
	const char *brief, *more, *examples;
};

extern const struct command commands[COMMAND_NR];

/* Finds the next option in argv by getopt_long(). Returns its enum option_id; -1: there are no more options;
 * '?': the option is invalid, and an error message was printed. */
int words_option(int argc, char **argv);

/* Returns the command of that name. If there is none, ends the program with an error that names the nearest
 * command. */
enum command_id words_command(const char *name);
/* Ends the program with an error if options were given that the command does not use; the error names these
 * options. given[i]: true: the option OPT_BEGIN + i was given. */
void words_options_judge(enum command_id id, const bool given[OPTIONS_NR]);
/* Ends the program with an error if options were given that the command does not use in the mode that the command
 * line selects (mode.def); the error names these options and the mode. c: the values of the options; words: the
 * arguments of the command, whose number is allowed; NULL after the last. */
void words_modes_judge(enum command_id id, const struct cmd *c, const bool given[OPTIONS_NR], char **words);
/* Checks the number of arguments of a command. If nr is not allowed, ends the program with an error that
 * names the missing or surplus arguments. */
void words_judge(enum command_id id, int nr, char **words);
/* Returns the index of the URL among the arguments of a command. */
int words_url_at(enum command_id id);
/* Checks that url is a URL of the kind that the command needs; if not, ends the program with an error. file:
 * name of the file of a put, which is appended to a URL that ends with '/'. Returns the URL to use: url
 * itself, or an allocated text. */
const char *words_url(enum command_id id, const char *url, const char *file, bool scality);

/* Returns true if an argument is a URL; false: it is a path. */
bool words_is_url(const char *word);
/* Prints the help of a command; id COMMAND_NR: of all commands. Returns the exit status of the program. */
int words_help(enum command_id id);

/* Ends the program with an error: the sentence `what` about an argument, and a reference to the help of the
 * command cmd; NULL: to the help of gantry. */
_Noreturn void words_bad(const char *cmd, const char *what, const char *word);

#endif
