/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what is taken, what is refused, and how that is said. */
#include "main/options.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *said;

/* Parses the words of text (separated by blanks) behind "gantryd". */
static int
parse(const char *text, struct options *o)
{
	static char copy[4096];
	char *argv[256] = { "gantryd" };
	int argc = 1, r;
	size_t len;
	FILE *err;

	free(said);
	err = open_memstream(&said, &len);
	snprintf(copy, sizeof copy, "%s", text);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	r = options_parse(argc, argv, o, err);
	fclose(err);
	return r;
}

static void
test_good(void **state)
{
	struct options o;

	assert_int_equal(parse("", &o), 0);
	assert_int_equal(o.action, ACTION_RUN);
	assert_null(o.file);
	assert_null(o.ready_file);
	assert_int_equal(parse("-c /x -o a=b -o c=d --ready-file /r", &o), 0);
	assert_string_equal(o.file, "/x");
	assert_string_equal(o.ready_file, "/r");
	assert_int_equal(o.override_nr, 2);
	assert_string_equal(o.overrides[1].text, "c=d");
	assert_int_equal(parse("--config=/y --check-config", &o), 0);
	assert_int_equal(o.action, ACTION_CHECK_CONFIG);
	assert_int_equal(parse("--print-config", &o), 0);
	assert_int_equal(o.action, ACTION_PRINT_CONFIG);
	assert_int_equal(parse("--print-keys", &o), 0);
	assert_int_equal(o.action, ACTION_PRINT_KEYS);
	assert_int_equal(parse("--print-metrics", &o), 0);
	assert_int_equal(o.action, ACTION_PRINT_METRICS);
	assert_int_equal(parse("--list-devices", &o), 0);
	assert_int_equal(o.action, ACTION_LIST_DEVICES);
	assert_int_equal(parse("--force --format", &o), 0);
	assert_true(o.action == ACTION_FORMAT && o.force);
	assert_int_equal(parse("--upgrade", &o), 0);
	assert_int_equal(o.action, ACTION_UPGRADE);
	assert_int_equal(parse("--forget 01234567-89ab-cdef-0123-456789abcdef --force --forget "
			       "11234567-89ab-cdef-0123-456789abcdef",
			       &o),
			 0);
	assert_true(o.action == ACTION_FORGET && o.force && o.forget_nr == 2 && o.forget[1][0] == 0x11);
	assert_int_equal(parse("--fsck --repair", &o), 0);
	assert_true(o.action == ACTION_FSCK && o.repair);
	assert_int_equal(parse("--version", &o), 0);
	assert_int_equal(parse("-V", &o), 0);
	assert_int_equal(o.action, ACTION_VERSION);
	assert_int_equal(parse("-h", &o), 0);
	assert_int_equal(o.action, ACTION_HELP);
}

static void
test_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "--foo", "unknown option --foo" },
		{ "-x", "unknown option -x" },
		{ "serve", "unexpected \"serve\"" },
		{ "-c", "-c needs a value" },
		{ "--config", "--config needs a value" },
		{ "-o", "-o needs a value" },
		{ "--ready-file", "--ready-file needs a value" },
		{ "--format --fsck", "--format and --fsck do not go together" },
		{ "--version --help", "do not go together" },
		{ "--force", "--force goes with --format" },
		{ "--if-absent", "--if-absent goes with --format" },
		{ "--replace-store 00112233-4455-6677-8899-aabbccddeeff",
		  "--replace-store goes with --format" },
		{ "--format --replace-store x", "--replace-store wants the UUID of a store" },
		{ "--format --force --if-absent", "--force and --if-absent do not go together" },
		{ "--upgrade --fsck", "--upgrade and --fsck do not go together" },
		{ "--upgrade --repair", "--repair goes with --fsck" },
		{ "--fsck --force", "--force goes with --format" },
		{ "--forget", "--forget needs a value" },
		{ "--forget 1", "--forget wants the UUID of a disk, not \"1\"" },
		{ "--forget 01234567-89ab-cdef-0123-456789abcdef --fsck", "do not go together" },
		{ "--repair", "--repair goes with --fsck" },
		{ "--fsck --yes", "--yes goes with --fsck --repair" },
		{ "--format --repair", "--repair goes with --fsck" },
		{ "--check-config --ready-file /r", "--ready-file does not go with --check-config" },
		{ "--print-keys -c /x", "--config does not go with --print-keys" },
		{ "--print-metrics -o a=b", "-o does not go with --print-metrics" },
		{ "-c /x --config=/y", "--config is given twice: /x, /y" },
		{ "--ready-file /r --ready-file /s", "--ready-file is given twice: /r, /s" },
		{ "--add /a --add /b", "--add is given twice: /a, /b" },
		{ "--format --replace-store 00112233-4455-6677-8899-aabbccddeeff --replace-store "
		  "10112233-4455-6677-8899-aabbccddeeff",
		  "--replace-store is given twice" },
		{ "--format --if-absent --replace-store 00112233-4455-6677-8899-aabbccddeeff",
		  "--replace-store goes with --format, without --if-absent" },
		{ "--repair --yes --check-config", "--yes goes with --fsck --repair" },
		{ "--check-config=yes", "option --check-config=yes" },
	};
	struct options o;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (parse(bad[i][0], &o) != -EINVAL || !strstr(said, bad[i][1]))
			fail_msg("%s: said \"%s\"", bad[i][0], said);
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	}
}

static void
test_too_many(void **state)
{
	char text[1024] = "";
	struct options o;

	for (int i = 0; i < OVERRIDES_MAX; i++)
		strcat(text, "-o a=b ");
	assert_int_equal(parse(text, &o), 0);
	assert_int_equal(o.override_nr, OVERRIDES_MAX);
	strcat(text, "-o a=b ");
	assert_int_equal(parse(text, &o), -EINVAL);
}

/* An action that does not use an option refuses the option by its name. "OPTION:ACTIONS that use it". */
static void
test_every_pair(void **state)
{
	static const char uuid[] = "00112233-4455-6677-8899-aabbccddeeff";
	static const char *const actions[] = {
		"",       "check-config",  "print-config",  "list-devices", "format",
		"fsck",   "fsck --repair", "upgrade",       "forget U",     "add /d",
		"reload", "print-keys",    "print-metrics", "version",      "help"
	};
	static const struct {
		const char *option,
			*users; /* users: a comma before and after each name; *: all that read the configuration */
	} all[] = { { "--config /x", "*" },
		    { "-o a=b", "*" },
		    { "--ready-file /r", ",," },
		    { "--force", ",format,forget U,add /d," },
		    { "--if-absent", ",format," },
		    { "--replace-store U", ",format," },
		    { "--repair", ",fsck,fsck --repair," },
		    { "--yes", ",fsck --repair," } };
	struct options o;

	for (size_t a = 0; a < sizeof actions / sizeof *actions; a++) {
		for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
			char line[256] = "", name[32], padded[32], *p;
			bool reads_no_config = a >= sizeof actions / sizeof *actions - 4;
			bool uses;

			snprintf(padded, sizeof padded, ",%s,", actions[a]);
			uses = *all[i].users == '*' ? !reads_no_config : strstr(all[i].users, padded) != NULL;
			snprintf(line, sizeof line, "%s %s%s", all[i].option, *actions[a] ? "--" : "",
				 actions[a]);
			while ((p = strstr(line, " U")) != NULL) {
				char rest[256];

				snprintf(rest, sizeof rest, "%s", p + 2);
				snprintf(p, sizeof line - (size_t)(p - line), " %s%s", uuid, rest);
			}
			if ((parse(line, &o) == 0) != uses)
				fail_msg("gantryd %s: %s", line, said);
			snprintf(name, sizeof name, "gantryd: %.*s ", (int)strcspn(all[i].option, " "),
				 all[i].option);
			if (!uses && strncmp(said, name, strlen(name)) != 0)
				fail_msg("gantryd %s: does not begin with %s: %s", line, name, said);
		}
	}
}

/* Every option that is taken is in the help. */
static void
test_help(void **state)
{
	static const char *const all[] = { "--config",
					   "-o ",
					   "--ready-file",
					   "--check-config",
					   "--print-config",
					   "--list-devices",
					   "--format",
					   "--force",
					   "--if-absent",
					   "--fsck",
					   "--repair",
					   "--upgrade",
					   "--forget",
					   "--print-keys",
					   "--print-metrics",
					   "--version",
					   "--help",
					   "69",
					   "74",
					   "78" };
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	options_help(f);
	fclose(f);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		assert_non_null(strstr(text, all[i]));
	free(text);
}

static int
teardown(void **state)
{
	free(said);
	return 0;
}

/* What does not get better by starting again is not answered with 1, which means that. */
static void
test_exit_of_store(void **state)
{
	static const struct {
		int error, code;
	} rows[] = {
		{ -ENOTRECOVERABLE, EXIT_STORE },  { -EIO, EXIT_STORE },      { -EBADMSG, EXIT_STORE },
		{ -ENOSPC, EXIT_STORE },           { -EISDIR, EXIT_STORE },   { -ENOENT, EXIT_MISSING },
		{ -ENODEV, EXIT_MISSING },         { -EINVAL, EXIT_CONFIG },  { -EACCES, EXIT_CONFIG },
		{ -EPERM, EXIT_CONFIG },           { -EROFS, EXIT_CONFIG },   { -EBUSY, EXIT_MISSING },
		{ -EPROTONOSUPPORT, EXIT_CONFIG }, { -ENOMEM, EXIT_RUNTIME }, { -EAGAIN, EXIT_RUNTIME },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(exit_of_store(rows[i].error), rows[i].code);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),       cmocka_unit_test(test_refused),
		cmocka_unit_test(test_every_pair), cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_help),       cmocka_unit_test(test_exit_of_store),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
