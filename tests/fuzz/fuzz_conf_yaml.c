/*
 * The configuration file.  Whatever it holds, conf_load() returns with it or with errors; and what it took
 * must print as something that it takes again.
 */
#include "conf/conf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct conf *
load(const void *data, size_t len, FILE *err)
{
	struct conf_source src = { .file_required = true };
	struct conf *conf = NULL;
	char path[64];
	int fd = memfd_create("conf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	src.file = path;
	if (conf_load(&src, &conf, err) < 0)
		conf = NULL;
	close(fd);
	return conf;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *errors = NULL, *text = NULL;
	size_t errors_len, text_len;
	FILE *err = open_memstream(&errors, &errors_len), *out;
	struct conf *conf, *again;

	if (!err)
		abort();
	conf = load(data, len, err);
	fflush(err);
	/* A refusal says why. */
	if (!conf != (errors_len > 0))
		abort();
	if (conf) {
		out = open_memstream(&text, &text_len);
		if (!out)
			abort();
		conf_print(conf, out);
		fclose(out);
		/* A secret is masked and cannot come back. */
		if (!strstr(text, "********")) {
			again = load(text, text_len, err);
			if (!again) {
				fflush(err);
				fprintf(stderr, "printed, and refused: %s\n%s", errors, text);
				abort();
			}
			conf_free(again);
		}
		free(text);
		conf_free(conf);
	}
	fclose(err);
	free(errors);
	return 0;
}
