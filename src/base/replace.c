/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a file as a whole; see replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Opens the directory of a file, for a flush. Returns the descriptor or -errno. */
static int
open_dir(const char *file)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(file, '/');
	int fd;

	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Makes a new file, and flushes it. */
static int
write_new(const char *file, const char *text, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), e;

	if (fd < 0)
		return -errno;
	e = write_all(fd, text, len);
	if (e == 0 && fsync(fd) < 0)
		e = -errno;
	close(fd);
	return e;
}

int
replace_file(const char *file, const char *text, size_t len)
{
	char tmp[PATH_MAX];
	int dir, e = 0, n = snprintf(tmp, sizeof tmp, "%s.%d.new", file, (int)getpid());

	if (n < 0 || (size_t)n >= sizeof tmp)
		return -ENAMETOOLONG;
	/* First: a directory that cannot be flushed has to be known before the rename. */
	dir = open_dir(file);
	if (dir < 0)
		return dir;
	/* A process of this number that died may have left one. */
	if (unlink(tmp) < 0 && errno != ENOENT)
		e = -errno;
	if (e == 0)
		e = write_new(tmp, text, len);
	if (e == 0 && rename(tmp, file) < 0)
		e = -errno;
	if (e < 0)
		unlink(tmp);
	else if (fsync(dir) < 0)
		e = -errno;
	close(dir);
	return e;
}
