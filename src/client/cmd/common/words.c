/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line may say and the help about it; see words.h. */
#include "client/cmd/common/words.h"

#include "client/cmd/common/cmd.h"
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 4
#define WORD_BYTES 32 /* of a name in the column WORDS of command.def */

const struct command commands[COMMAND_NR] = {
#define COMMAND(name, words, url, takes, brief, more, examples)                                              \
	[COMMAND_##name] = { #name, words, url, takes, brief, more, examples },
#include "client/cmd/common/command.def"
#undef COMMAND
};

static const struct option_row {
	int id;
	char letter;
	const char *name, *arg;
	unsigned concerns;
	const char *help;
} rows[] = {
#define OPTION(id, letter, name, arg, concerns, take, complete, help)                                        \
	{ OPT_##id, letter, name, arg, concerns, help },
#include "client/cmd/common/option.def"
#undef OPTION
};

#define ROWS (sizeof rows / sizeof *rows)

int
words_option(int argc, char **argv)
{
	static struct option longs[ROWS + 1];
	static char letters[2 * ROWS + 1];
	char *p = letters;
	int opt;

	for (size_t i = 0; i < ROWS; i++) {
		longs[i] = (struct option){ .name = rows[i].name,
					    .has_arg = rows[i].arg ? required_argument : no_argument,
					    .val = rows[i].id };
		if (!rows[i].letter)
			continue;
		*p++ = rows[i].letter;
		if (rows[i].arg)
			*p++ = ':';
	}
	*p = 0;
	opt = getopt_long(argc, argv, letters, longs, NULL);
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].letter && opt == rows[i].letter)
			return rows[i].id;
	return opt;
}

/* ---- what is wrong ---- */

static void
print_usage(FILE *f, const struct command *c)
{
	fprintf(f, "usage: gantry [options] %s%s%s\n", c->name, *c->words ? " " : "", c->words);
}

_Noreturn void
words_bad(const char *cmd, const char *what, const char *word)
{
	fprintf(stderr, "gantry: %s%s%s%s%s\n", cmd ? cmd : "", cmd ? ": " : "", what, word ? ": " : "",
		word ? word : "");
	fprintf(stderr, "gantry: `gantry %s%s--help` shows how\n", cmd ? cmd : "", cmd ? " " : "");
	exit(EXIT_USAGE);
}

/* What other programs call it. */
static const char *
other_name(const char *name)
{
	static const char *const other[][2] = {
		{ "upload", "put" },     { "download", "get" }, { "delete", "rm" },   { "remove", "rm" },
		{ "del", "rm" },         { "sign", "presign" }, { "info", "status" }, { "mkdir", "mb" },
		{ "make-bucket", "mb" }, { "list", "ls" },      { "dir", "ls" },      { "copy", "cp" },
		{ "mv", "cp" },          { "mirror", "sync" },  { "rsync", "sync" }
	};

	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (!strcmp(other[i][0], name))
			return other[i][1];
	return NULL;
}

enum command_id
words_command(const char *name)
{
	const char *nearest = other_name(name);
	int best = strlen(name) < 4 ? 2 : 3;
	char text[160];

	for (int i = 0; i < COMMAND_NR; i++) {
		int apart = conf_edit_distance(name, commands[i].name, best);

		if (strcmp(name, commands[i].name) == 0)
			return (enum command_id)i;
		if (apart < best && apart < (int)strlen(commands[i].name)) {
			best = apart;
			nearest = commands[i].name;
		}
	}
	snprintf(text, sizeof text, "%.80s%s%s%s", name, nearest ? " (did you mean " : "",
		 nearest ? nearest : "", nearest ? "?)" : "");
	words_bad(NULL, "no such command", text);
}

void
words_options_judge(enum command_id id, const bool given[OPTIONS_NR])
{
	char text[2048] = "";
	size_t at = 0;

	for (size_t i = 0; i < ROWS; i++) {
		if (given[rows[i].id - OPT_BEGIN] && !(rows[i].concerns & (commands[id].takes | FOR_ALL)))
			at += (size_t)snprintf(text + at, sizeof text - at, "%s--%s", at ? ", " : "",
					       rows[i].name);
	}
	if (at)
		words_bad(commands[id].name, "it does not use", text);
}

/* Splits what follows a command's name.  How many words there are; those that must be there first. */
static int
split(const struct command *c, char word[WORDS_MAX][WORD_BYTES], int *ret_needed)
{
	const char *p = c->words;
	int nr = 0;

	*ret_needed = 0;
	while (*p && nr < WORDS_MAX) {
		size_t len = strcspn(p, " ");

		*ret_needed += *p != '[';
		snprintf(word[nr++], WORD_BYTES, "%.*s", (int)len, p);
		p += len;
		p += strspn(p, " ");
	}
	return nr;
}

void
words_judge(enum command_id id, int nr, char **words)
{
	const struct command *c = &commands[id];
	char word[WORDS_MAX][WORD_BYTES];
	int needed, all = split(c, word, &needed);

	if (nr >= needed && nr <= all)
		return;
	fprintf(stderr, "gantry: %s: ", c->name);
	if (nr > all) {
		fprintf(stderr, "one word too many: %s\n", words[all]);
	} else {
		for (int i = nr; i < needed; i++)
			fprintf(stderr, "%s%s", i == nr ? "" : i + 1 == needed ? " and " : ", ", word[i]);
		fprintf(stderr, " %s missing\n", needed - nr > 1 ? "are" : "is");
	}
	print_usage(stderr, c);
	fprintf(stderr, "gantry: `gantry %s --help` shows how\n", c->name);
	exit(EXIT_USAGE);
}

int
words_url_at(enum command_id id)
{
	char word[WORDS_MAX][WORD_BYTES];
	int needed, all = split(&commands[id], word, &needed);

	for (int i = 0; i < all; i++)
		if (!strcmp(word[i], "URL"))
			return i;
	return -1;
}

/* ---- what a URL names ---- */

/* Which parts of it there are.  Bucket and key are empty where they are not. */
struct named {
	const char *bucket, *key;
	size_t bucket_len, key_len;
	bool ends_in_slash, has_query;
};

static struct named
take_apart(const char *url, bool scality)
{
	const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "?"), *path;
	struct named n = { .bucket = "", .key = "", .has_query = *end };

	path = memchr(host, '/', (size_t)(end - host));
	if (!path)
		return n;
	path++;
	n.ends_in_slash = end[-1] == '/';
	if (!scality) {
		const char *slash = memchr(path, '/', (size_t)(end - path));

		n.bucket = path;
		n.bucket_len = (size_t)((slash ? slash : end) - path);
		path = slash ? slash + 1 : end;
	}
	n.key = path;
	n.key_len = (size_t)(end - path);
	return n;
}

/* A sentence, or NULL when the URL will do. */
static const char *
url_fault(enum url_kind kind, const struct named *n, bool scality)
{
	if (kind == URL_BUCKET && scality)
		return "a scality listener has no buckets";
	if (kind == URL_BENCH && n->has_query)
		return "the URL has a query";
	if (kind == URL_BENCH || (kind == URL_PREFIX && scality))
		return NULL;
	if (kind == URL_SERVER)
		return NULL;
	if (!scality && n->bucket_len == 0)
		return "the URL names no bucket";
	if (kind == URL_BUCKET)
		return n->key_len ? "the URL names a key, and a bucket is wanted" : NULL;
	if (kind == URL_PREFIX || n->key_len)
		return NULL;
	return scality ? "the URL names no key" : "the URL names a bucket and no key";
}

/* With a '/' at the end of its URL a put takes the file's name, as cp does in a directory. */
static const char *
with_name(enum command_id id, const char *url, const char *file)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	char *joined;

	if (!strcmp(file, "-"))
		words_bad(commands[id].name, "standard input has no name to append to the '/' of", url);
	if (!*name)
		words_bad(commands[id].name, "this is a directory", file);
	joined = gantry_url_join(url, name);
	if (!joined) {
		fprintf(stderr, "gantry: out of memory\n");
		exit(EXIT_FAILED);
	}
	return joined;
}

bool
words_is_url(const char *word)
{
	return !strncmp(word, "http://", 7) || !strncmp(word, "https://", 8);
}

const char *
words_url(enum command_id id, const char *url, const char *file, bool scality)
{
	const struct command *c = &commands[id];
	const char *host = words_is_url(url) ? strstr(url, "://") + 3 : NULL;
	struct named n;
	const char *fault;

	if (!host || !*host || *host == '/')
		words_bad(c->name, "not a URL (http://HOST:PORT/BUCKET/KEY)", url);
	n = take_apart(url, scality);
	if (c->url == URL_NEW_OBJECT && n.ends_in_slash && (scality || n.bucket_len) && !strchr(url, '?'))
		return with_name(id, url, file);
	fault = url_fault(c->url, &n, scality);
	if (!fault)
		return url;
	fprintf(stderr, "gantry: %s: %s: %s\n", c->name, fault, url);
	if (c->url == URL_NEW_OBJECT && (scality || n.bucket_len))
		fprintf(stderr, "gantry: with a '/' at its end the file's name is taken: %s/\n", url);
	fprintf(stderr, "gantry: `gantry %s --help` shows how\n", c->name);
	exit(EXIT_USAGE);
}

/* ---- help ---- */

#define LEFT 25    /* columns of names, left of their descriptions */
#define COLUMNS 80 /* of a terminal */

/* Groups of options that many commands share, which only the help of gantry describes. */
#define SHARED (FOR_SERVER | FOR_BYTES | FOR_TIMED | FOR_ALL)

/* Prints a name and its description, which has a line of its own if the name is long. */
static void
print_row(const char *left, const char *help)
{
	printf("  %-*s", LEFT, left);
	if (strlen(left) > LEFT)
		printf("\n  %-*s", LEFT, "");
	printf(" %s\n", help);
}

static void
print_option(const struct option_row *o)
{
	char left[48];

	snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
		 o->letter ? ", " : "  ", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
	print_row(left, o->help);
}

static bool
is_own(const struct option_row *o, unsigned takes)
{
	return o->concerns & takes & ~(unsigned)SHARED;
}

/* Prints the options of a command: its own with their descriptions, of the others the names. */
static void
print_options(unsigned takes)
{
	int column = COLUMNS;

	for (size_t i = 0; i < ROWS; i++) {
		if (is_own(&rows[i], takes))
			print_option(&rows[i]);
	}
	printf("\nCommon options, which `gantry --help` describes:");
	for (size_t i = 0; i < ROWS; i++) {
		int len = (int)strlen(rows[i].name) + 3;

		if (is_own(&rows[i], takes) || !(rows[i].concerns & (takes | FOR_ALL)))
			continue;
		if (column + len > COLUMNS) {
			printf("\n ");
			column = 1;
		}
		printf(" --%s", rows[i].name);
		column += len;
	}
	printf("\n");
}

static void
print_examples(const char *text)
{
	printf("Examples:\n");
	for (const char *p = text; *p;) {
		int len = (int)strcspn(p, "\n");

		printf("  %.*s\n", len, p);
		p += len + (p[len] == '\n');
	}
	printf("\n");
}

static void
print_commands(void)
{
	for (int i = 0; i < COMMAND_NR; i++) {
		char left[64];

		snprintf(left, sizeof left, "%s %s", commands[i].name, commands[i].words);
		print_row(left, commands[i].brief);
	}
}

int
words_help(enum command_id id)
{
	static const char url[] =
		"URL is http://HOST:PORT/BUCKET/KEY, with --scality http://HOST:PORT/KEY.\n",
			  wide[] = "Exit: 0 done, 1 failed, 2 usage, 3 not found, 4 done but not by RDMA "
				   "(--require-rdma)\n";

	if (id == COMMAND_NR) {
		printf("usage: gantry [options] COMMAND ...\n"
		       "       gantry COMMAND --help\n\n");
		print_commands();
		printf("\n%s\n", url);
		for (size_t i = 0; i < ROWS; i++)
			print_option(&rows[i]);
		printf("\n%s", wide);
	} else {
		print_usage(stdout, &commands[id]);
		printf("\n%s", commands[id].more);
		if (commands[id].url == URL_BUCKET)
			printf("\n");
		else
			printf("%s%s\n", commands[id].url == URL_NONE ? "" : "\n",
			       commands[id].url == URL_NONE ? "" : url);
		print_examples(commands[id].examples);
		print_options(commands[id].takes);
		printf("\n%s", wide);
	}
	return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}
