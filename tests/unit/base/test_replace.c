/* SPDX-License-Identifier: Apache-2.0 */
/* The replacement of a file: the new content, and after an error the old content and no other file. */
#include "base/replace.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USER 65534

static char dir[64], file[96];

static void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Checks the content of the file, which is alone in its directory. */
static void
assert_has(const char *want)
{
	char text[64] = "";
	struct dirent *d;
	unsigned nr = 0;
	FILE *f = fopen(file, "re");
	DIR *all = opendir(dir);

	assert_true(f && all);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	assert_string_equal(text, want);
	while ((d = readdir(all)) != NULL)
		nr += d->d_name[0] != '.';
	closedir(all);
	assert_int_equal(nr, 1);
}

static int
setup(void **state)
{
	snprintf(dir, sizeof dir, "/tmp/gantry-replace-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/file", dir);
	write_text(file, "old");
	return 0;
}

static int
teardown(void **state)
{
	unlink(file);
	return rmdir(dir);
}

static void
test_replaced(void **state)
{
	char left[128];

	assert_int_equal(replace_file(file, "new text", 8), 0);
	assert_has("new text");
	/* By a process of this number, which died. */
	snprintf(left, sizeof left, "%s.%d.new", file, (int)getpid());
	write_text(left, "a longer text than that");
	assert_int_equal(replace_file(file, "newer", 5), 0);
	assert_has("newer");
	/* In the current directory. */
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(replace_file("file", "", 0), 0);
	assert_int_equal(chdir("/"), 0);
	assert_has("");
}

static void
test_refused(void **state)
{
	char other[96], below[128];

	snprintf(other, sizeof other, "%s/none/file", dir);
	assert_int_equal(replace_file(other, "new", 3), -ENOENT);
	/* The name of a directory that has a file. */
	snprintf(other, sizeof other, "%s/below", dir);
	snprintf(below, sizeof below, "%s/file", other);
	assert_int_equal(mkdir(other, 0755), 0);
	write_text(below, "");
	assert_true(replace_file(other, "new", 3) < 0);
	assert_int_equal(unlink(below), 0);
	assert_int_equal(rmdir(other), 0);
	assert_has("old");
}

/* A directory that may be written and not read cannot be flushed. */
static void
test_not_readable(void **state)
{
	int status;
	pid_t pid;

	if (geteuid() == 0) {
		assert_int_equal(chown(dir, USER, USER), 0);
		assert_int_equal(chown(file, USER, USER), 0);
	}
	assert_int_equal(chmod(dir, 0300), 0);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && setuid(USER) < 0)
			_exit(2);
		_exit(replace_file(file, "new", 3) != -EACCES);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(dir, 0700), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_has("old");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_readable, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
