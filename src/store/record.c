/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the record of a store; see record.h. */
#include "store/record.h"

#include "base/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Flushes the directory of a file, in which its name is. */
static int
flush_dir(const char *file)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(file, '/');
	int fd, e;

	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	e = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return e;
}

int
record_write(const char *file, const struct store_record *record, const char *about, char *err,
	     size_t err_len)
{
	char tmp[PATH_MAX];
	int e = 0, fd = -1, n = snprintf(tmp, sizeof tmp, "%s.%d.new", file, (int)getpid());
	FILE *f = NULL;

	if (n < 0 || (size_t)n >= sizeof tmp)
		e = -ENAMETOOLONG;
	/* A process of this number that died may have left one. */
	if (e == 0 && unlink(tmp) < 0 && errno != ENOENT)
		e = -errno;
	if (e == 0)
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (e == 0 && fd < 0)
		e = -errno;
	if (e == 0)
		f = fdopen(fd, "w");
	if (f) {
		record_print(record, about, f);
		e = fflush(f) != 0 || ferror(f) ? -EIO : 0;
		if (e < 0 && errno)
			e = -errno;
		if (e == 0 && fsync(fd) < 0)
			e = -errno;
		fclose(f);
		if (e == 0 && rename(tmp, file) < 0)
			e = -errno;
		if (e < 0)
			unlink(tmp);
		else
			e = flush_dir(file);
	} else if (e == 0) {
		e = -ENOMEM;
		close(fd);
		unlink(tmp);
	}
	return e < 0 ? refuse(err, err_len, e, "%s: cannot write the record of the store: %s", file,
			      strerror(-e))
		     : 0;
}
