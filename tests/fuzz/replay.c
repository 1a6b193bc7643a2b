/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files without libFuzzer: `make check` replays the corpora this way.  Arguments are
 * files and directories of files; none at all is an error, so that a corpus that went missing is seen.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int
run_file(const char *path, const struct stat *st)
{
	FILE *f = fopen(path, "re");
	/* Exactly as long as the file: a read behind the end is then seen by the sanitizer. */
	uint8_t *data = malloc(st->st_size ? (size_t)st->st_size : 1);
	size_t len = f && data ? fread(data, 1, (size_t)st->st_size, f) : 0;
	int r = f && data && len == (size_t)st->st_size ? 1 : -1;

	if (r < 0)
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
	else
		LLVMFuzzerTestOneInput(data, len);
	if (f)
		fclose(f);
	free(data);
	return r;
}

/* How many files were run; -1: something could not be read. */
static int
run_path(const char *path)
{
	struct stat st;
	struct dirent *e;
	int sum = 0;
	DIR *d;

	if (stat(path, &st) < 0 || (S_ISDIR(st.st_mode) && !(d = opendir(path)))) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(path, &st);
	while (sum >= 0 && (e = readdir(d))) {
		char *name;
		int n;

		if (e->d_name[0] == '.')
			continue;
		if (asprintf(&name, "%s/%s", path, e->d_name) < 0)
			abort();
		n = run_path(name);
		free(name);
		sum = n < 0 ? -1 : sum + n;
	}
	closedir(d);
	return sum;
}

int
main(int argc, char **argv)
{
	int sum = 0;

	for (int i = 1; i < argc; i++) {
		int n = run_path(argv[i]);

		if (n < 0)
			return 1;
		sum += n;
	}
	if (sum == 0) {
		fprintf(stderr, "replay: no file to run\n");
		return 1;
	}
	printf("%d inputs\n", sum);
	return 0;
}
