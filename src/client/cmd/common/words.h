/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a command line: the commands and options there are (command.def, option.def), what is said about
 * them, and what a URL must name.  Main thread.
 */
#ifndef GANTRY_CLIENT_CMD_WORDS_H
#define GANTRY_CLIENT_CMD_WORDS_H

#include <getopt.h>
#include <stdbool.h>

/* What the word URL of a command has to name. */
enum url_kind {
	URL_NONE,
	URL_OBJECT,     /* a bucket and a key */
	URL_NEW_OBJECT, /* the same, or with a '/' at its end where the file's name goes */
	URL_PREFIX,     /* a bucket, and perhaps the beginning of keys */
	URL_BUCKET,
	URL_BENCH,  /* a server, and perhaps a bucket and the beginning of keys */
	URL_SERVER, /* or anything on it */
};

/* The commands that use an option. */
enum {
	FOR_SERVER = 1 << 0, /* commands that send requests of S3 */
	FOR_SUM = 1 << 1,    /* those that know checksums */
	FOR_JOBS = 1 << 2,   /* those that do several things at once */
	FOR_LIST = 1 << 3,   /* those that read a list */
	FOR_PORTS = 1 << 4,
	FOR_DAEMON = 1 << 5, /* those that ask an admin listener, and need no library */
	FOR_TOP = 1 << 6,
	FOR_ALL = 1 << 7,
	FOR_CAT = 1 << 8,
	FOR_PRESIGN = 1 << 9,
	FOR_BENCH = 1 << 10,
	FOR_KEY = 1 << 11,   /* those that change a file of the daemon, and need no library */
	FOR_HW = 1 << 12,    /* those that ask the adapter itself, and need no library */
	FOR_BYTES = 1 << 13, /* those that move bytes of objects */
	FOR_TIMED = 1 << 14, /* those whose requests have a time limit of their own */
	FOR_JSON = 1 << 15,
	FOR_TREE = 1 << 16, /* those that may take all that is below */
	FOR_LS = 1 << 17,
	FOR_DU = 1 << 18,
	FOR_SYNC = 1 << 19,
	FOR_ASK = 1 << 20,  /* those that ask before they do it */
	FOR_GLOB = 1 << 21, /* those that choose by name */
	FOR_DRY = 1 << 22,
	FOR_RB = 1 << 23,
	FOR_QUOTA = 1 << 24, /* those that set quotas */
	FOR_MB = 1 << 25,    /* those that make buckets */
	FOR_QUIET = 1 << 26, /* those that say more than what was asked for */
	FOR_DISK = 1 << 28,  /* those that add disks */
};

enum command_id {
#define COMMAND(name, ...) COMMAND_##name,
#include "client/cmd/common/command.def"
#undef COMMAND
	COMMAND_NR
};

/* What getopt_long() returns for an option, by its letter too. */
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

/* Steps like getopt_long() through argv.  Returns an option's id, -1 at the end, '?' when getopt has complained. */
int words_option(int argc, char **argv);

/* Returns the command of that name, or ends the program with what is wrong and the nearest name. */
enum command_id words_command(const char *name);
/* Ends the program, naming them, where options were given that the command does not use; by OPT_ - OPT_BEGIN. */
void words_options_judge(enum command_id id, const bool given[OPTIONS_NR]);
/* Ends the program, naming what is missing or too much, unless nr words are what the command takes. */
void words_judge(enum command_id id, int nr, char **words);
/* Returns which of a command's words is its URL. */
int words_url_at(enum command_id id);
/* Ends the program unless url is one and names what the command wants.  Returns the URL to use, which is
 * url or allocated; file is what a put stores. */
const char *words_url(enum command_id id, const char *url, const char *file, bool scality);

/* Returns true if a word is a URL, not a path. */
bool words_is_url(const char *word);
/* Prints the help, of one command unless id is COMMAND_NR; returns the program's exit status. */
int words_help(enum command_id id);

/* Ends the program: what is wrong with which word, and which help to read; cmd may be NULL. */
_Noreturn void words_bad(const char *cmd, const char *what, const char *word);

#endif
