/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which keys can be names of files, and opens their directories; see files.h. */
#include "client/cmd/move/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *
name_fault(const char *name, size_t len)
{
	if (!len)
		return "the name is empty";
	if (memchr(name, 0, len))
		return "the name has a NUL in it";
	if (*name == '/')
		return "the name begins with '/', so it would lead out of the directory";
	for (const char *p = name;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0)
			return p[0] ? "the name has two '/' together, and another file would be meant"
				    : "the name ends in '/', as only a directory's does";
		if (n == 2 && !memcmp(p, "..", 2))
			return "the name has '..' in it, so it would lead out of the directory";
		if (n == 1 && *p == '.')
			return "the name has '.' in it, and another file would be meant";
		if (n > NAME_MAX)
			return "a part of the name is longer than a file's name can be";
		if (!strncmp(p, UNFINISHED, sizeof UNFINISHED - 1))
			return "names that begin with '" UNFINISHED "' are of files that are not whole yet";
		p += n;
		if (!*p)
			return NULL;
	}
}

/* Opens a directory in a directory. Returns a descriptor or -errno. */
static int
step(int dir, const char *name, bool make, const char **ret_why)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && make && (mkdirat(dir, name, 0777) == 0 || errno == EEXIST))
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;

	struct stat st;
	int e = -errno;

	if ((e == -ENOTDIR || e == -ELOOP) && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		*ret_why = S_ISLNK(st.st_mode)
				   ? "a directory of the name is a symbolic link here, which is not followed"
				   : "a directory of the name is a file here";
	return e;
}

int
name_parent(int dir, const char *name, bool make, const char **ret_leaf, const char **ret_why)
{
	char part[NAME_MAX + 1];
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0), next;
	const char *slash;

	*ret_why = "";
	if (at < 0)
		return -errno;
	while ((slash = strchr(name, '/'))) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
		next = step(at, part, make, ret_why);
		close(at);
		if (next < 0)
			return next;
		at = next;
		name = slash + 1;
	}
	*ret_leaf = name;
	return at;
}
