/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the record of a store; see record.h. */
#include "store/record.h"

#include "base/refuse.h"
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
record_read(const char *file, struct store_record *ret_record, char *err, size_t err_len)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e = 0;
	char why[160], *text;
	struct stat st;
	size_t len = 0;

	if (fd < 0)
		return refuse(err, err_len, -errno, "%s: cannot read the record of the store: %s", file,
			      strerror(errno));
	text = malloc(RECORD_FILE_BYTES);
	if (!text || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		free(text);
		return text ? refuse(err, err_len, -EBADMSG, "%s: the record of the store is no file", file)
			    : refuse(err, err_len, -ENOMEM, "%s: no memory", file);
	}
	while (e == 0 && len < RECORD_FILE_BYTES) {
		ssize_t n = read(fd, text + len, RECORD_FILE_BYTES - len);

		if (n == 0)
			break;
		e = n < 0 && errno != EINTR ? -errno : 0;
		len += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (e < 0)
		refuse(err, err_len, e, "%s: cannot read the record of the store: %s", file, strerror(-e));
	else if ((e = record_parse(text, len, ret_record, why, sizeof why)) < 0)
		refuse(err, err_len, e, "%s: the record of the store is damaged: %s", file, why);
	free(text);
	return e;
}

int
record_write(const char *file, const struct store_record *record, const char *about, char *err,
	     size_t err_len)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int e = -ENOMEM;

	if (f) {
		record_print(record, about, f);
		e = fclose(f) == 0 ? replace_file(file, text, len) : -ENOMEM;
	}
	free(text);
	return e < 0 ? refuse(err, err_len, e, "%s: cannot write the record of the store: %s", file,
			      strerror(-e))
		     : 0;
}
