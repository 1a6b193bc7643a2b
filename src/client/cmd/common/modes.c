/* SPDX-License-Identifier: Apache-2.0 */
/* The options that a command uses in some of its modes only (mode.def); see words.h. */
#include "client/cmd/common/words.h"

#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* A command line with options that the command has. */
struct call {
	enum command_id id;
	const struct cmd *c; /* values of the options */
	const bool *given;   /* as in words_options_judge() */
	char **words;        /* the arguments of the command; NULL after the last */
};

#define OF(name) (1u << COMMAND_##name)
#define ANY UINT32_MAX
#define BUT (OPT_BEGIN)
#define GIVEN(id) (k->given[OPT_##id - OPT_BEGIN])
#define MODE_OPTIONS 16

static_assert(COMMAND_NR <= 32, "a bit for each command");

static bool
is_word(const struct call *k, const char *word)
{
	return k->words[0] && !strcmp(k->words[0], word);
}

static bool
is_copy_of_tree(const struct call *k)
{
	struct stat st;

	/* The command itself reports a path that cannot be found. */
	return GIVEN(RECURSIVE) &&
	       (words_is_url(k->words[0]) || stat(k->words[0], &st) < 0 || S_ISDIR(st.st_mode));
}

/* Returns true if the URL names a server without a bucket. */
static bool
is_server(const struct call *k)
{
	const char *path = words_is_url(k->words[0]) ? strstr(k->words[0], "://") + 3 : "";

	path += strcspn(path, "/");
	return !GIVEN(SCALITY) && !path[strspn(path, "/")];
}

/* Returns true if `gantry bench` measures HTTP alone. */
static bool
is_http_alone(const struct call *k)
{
	return k->c->ways && !strcasecmp(k->c->ways, "http");
}

/* Returns the name of the admin listener that the command asks; "": it asks none, or the name is unknown, because
 * `gantry key` reads it from the configuration of the daemon. */
static const char *
listener(const struct call *k)
{
	const char *env = getenv("GANTRY_ADMIN");
	bool is_named = k->c->admin || (env && *env);
	unsigned takes = commands[k->id].takes;

	if (takes & FOR_DAEMON || (takes & (FOR_BENCH | FOR_KEY) && is_named))
		return admin_name(k->c->admin);
	return "";
}

static bool
uses_https(const struct call *k)
{
	bool is_https = !strncmp(listener(k), "https://", 8);

	for (int i = 0; k->words[i]; i++)
		is_https |= !strncmp(k->words[i], "https://", 8);
	return is_https;
}

#define MODE(id, commands, condition, why, ...)                                                              \
	static bool mode_##id(const struct call *k)                                                          \
	{                                                                                                    \
		return condition;                                                                            \
	}
#include "client/cmd/common/mode.def"
#undef MODE

static const struct mode {
	unsigned commands;
	bool (*is_on)(const struct call *k);
	const char *why;
	int options[MODE_OPTIONS]; /* ends with 0 */
} modes[] = {
#define MODE(id, commands, condition, why, ...) { commands, mode_##id, why, { __VA_ARGS__ } },
#include "client/cmd/common/mode.def"
#undef MODE
};

static const char *const names[OPTIONS_NR] = {
#define OPTION(id, letter, name, ...) [OPT_##id - OPT_BEGIN] = name,
#include "client/cmd/common/option.def"
#undef OPTION
};

static bool
refuses(const struct mode *m, int option)
{
	bool is_but = m->options[0] == BUT, is_named = false;

	for (int i = is_but; m->options[i]; i++)
		is_named |= m->options[i] == option;
	return is_named != is_but;
}

void
words_modes_judge(enum command_id id, const struct cmd *c, const bool given[OPTIONS_NR], char **words)
{
	const struct call k = { id, c, given, words };
	char text[2048];

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		const struct mode *m = &modes[i];
		int at = 0, nr = 0;

		if (!(m->commands & 1u << id) || !m->is_on(&k))
			continue;
		for (int opt = OPT_BEGIN + 1; opt < OPT_END; opt++)
			if (given[opt - OPT_BEGIN] && refuses(m, opt))
				at += snprintf(text + at, sizeof text - (size_t)at, "%s--%s",
					       nr++ ? ", " : "", names[opt - OPT_BEGIN]);
		if (!nr)
			continue;
		snprintf(text + at, sizeof text - (size_t)at, " %s %s", nr > 1 ? "are" : "is", m->why);
		words_bad(commands[id].name, text, NULL);
	}
}
