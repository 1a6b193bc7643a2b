/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words - the words of a command line: commands and options (command.def, option.def), their help, and the
 * kinds of URLs. Main thread.
 */
#ifndef GANTRY_CLIENT_CMD_WORDS_H
#define GANTRY_CLIENT_CMD_WORDS_H

#include <getopt.h>
#include <stdbool.h>

/* The kind of object that the argument URL of a command must name. */
enum url_kind {
	URL_NONE,
	URL_OBJECT,     /* the URL names a bucket and a key */
	URL_NEW_OBJECT, /* the URL names a bucket and a key; or it ends with '/', and the name of the file is
	                 * appended */
	URL_PREFIX,     /* the URL names a bucket, and optionally a prefix of keys */
	URL_BUCKET,
	URL_BENCH,  /* the URL names a server, and optionally a bucket and a prefix of keys */
	URL_SERVER, /* the URL names a server, or anything on a server */
};

/* Groups of commands, for the options that they use. */
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
	FOR_TIMED = 1 << 14, /* commands whose requests have a separate time limit */
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
	FOR_QUIET = 1 << 26, /* commands that print more than the requested output */
	FOR_MUTE = 1 << 27,  /* commands that mute a reason of health */
	FOR_DISK = 1 << 28,  /* commands that add disks */
};

enum command_id {
#define COMMAND(name, ...) COMMAND_##name,
#include "client/cmd/common/command.def"
#undef COMMAND
	COMMAND_NR
};

/* The values that getopt_long() returns for options. Options with a letter have the letter as their value. */
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
	const char *brief, *more;
};

extern const struct command commands[COMMAND_NR];

/* Advances through argv as getopt_long() does. Returns the id of an option, -1 at the end, or '?' after an
 * error message. */
int words_option(int argc, char **argv);

/* Returns the command of that name, or ends the program with an error message and the nearest name. */
enum command_id words_command(const char *name);
/* Ends the program with an error if options were given that the command does not use; the error names these
 * options. given[] is indexed by OPT_ - OPT_BEGIN. */
void words_options_judge(enum command_id id, const bool given[OPTIONS_NR]);
/* Ends the program with an error that names the missing or surplus words, unless the command takes nr
 * words. */
void words_judge(enum command_id id, int nr, char **words);
/* Returns the index of the URL among the words of a command. */
int words_url_at(enum command_id id);
/* Checks that url is a URL of the kind that the command needs; ends the program if it is not. file: source of
 * a put. Returns the URL to use, which is `url` or allocated. */
const char *words_url(enum command_id id, const char *url, const char *file, bool scality);

/* Returns true if a word is a URL, not a path. */
bool words_is_url(const char *word);
/* Prints the help of one command, or of all if id is COMMAND_NR. Returns the exit status of the program. */
int words_help(enum command_id id);

/* Ends the program with an error about a word, and a reference to the help. cmd may be NULL. */
_Noreturn void words_bad(const char *cmd, const char *what, const char *word);

#endif
