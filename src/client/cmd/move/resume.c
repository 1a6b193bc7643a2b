/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the state of unfinished uploads in parts: a file in $XDG_STATE_HOME/gantry (~/.local/state/gantry)
 * for each upload in progress, named by a sum of its source and destination. The file is locked while a run
 * uses it.
 */
#include "client/cmd/move/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_HEAD "gantry upload 1"
#define STATE_BYTES 32768

/* Creates the directory of states. Returns false if there is none. */
static bool
state_directory(char *out, size_t cap)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (state && *state == '/')
		n = snprintf(out, cap, "%s/gantry", state);
	else if (home && *home == '/')
		n = snprintf(out, cap, "%s/.local/state/gantry", home);
	else
		return false;
	if (n < 0 || (size_t)n >= cap)
		return false;
	for (char *p = strchr(out + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(out, 0700);
		*p = '/';
	}
	return mkdir(out, 0700) == 0 || errno == EEXIST;
}

/* Writes the text that must be equal for an upload to be continued. Returns false if out is too small. */
static bool
head_of(const struct origin *from, const char *url, char *out, size_t cap)
{
	char *real = from->fd >= 0 ? realpath(from->name, NULL) : NULL;
	int n = snprintf(out, cap, STATE_HEAD "\n%s\n%s\n%llu %s\n", url, real ? real : from->name,
			 (unsigned long long)from->size, from->mark);

	free(real);
	return n > 0 && (size_t)n < cap;
}

/* Computes the name of the state from source and destination only; the state itself shows whether the
 * source has changed. */
static uint64_t
sum_of(const struct origin *from, const char *url)
{
	char *real = from->fd >= 0 ? realpath(from->name, NULL) : NULL;
	const char *name = real ? real : from->name;
	uint64_t sum = gantry_crc64nvme(0, url, strlen(url) + 1);

	sum = gantry_crc64nvme(sum, name, strlen(name));
	free(real);
	return sum;
}

static bool
is_still_named(int fd, const char *path)
{
	struct stat mine, named;

	return fstat(fd, &mine) == 0 && lstat(path, &named) == 0 && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev && S_ISREG(mine.st_mode) && mine.st_uid == geteuid();
}

void
resume_parse(struct resume *r, char *text, size_t len, const char *head, const char *url)
{
	char begin[STATE_BYTES / 2], id[GANTRY_UPLOAD_ID_MAX];
	unsigned long long part_size;
	const char *last;
	bool is_same;

	snprintf(begin, sizeof begin, STATE_HEAD "\n%s\n", url);
	if (!len || text[len - 1] != '\n')
		return;
	text[len - 1] = 0;
	last = strrchr(text, '\n');
	if (!last || strncmp(text, begin, strlen(begin)) != 0 ||
	    sscanf(last + 1, "%llu %1023s", &part_size, id) != 2 || !part_size)
		return;
	is_same = (size_t)(last + 1 - text) == strlen(head) && !strncmp(text, head, strlen(head));
	snprintf(is_same ? r->id : r->stale_id, sizeof id, "%s", id);
	if (is_same)
		r->part_size = part_size;
}

static void
read_state(struct resume *r, const char *head, const char *url)
{
	char text[STATE_BYTES];
	ssize_t len = pread(r->fd, text, sizeof text - 1, 0);

	if (len > 0)
		resume_parse(r, text, (size_t)len, head, url);
}

int
resume_open(struct resume *r, const struct origin *from, const char *url)
{
	char dir[400], head[STATE_BYTES / 2];

	*r = (struct resume){ .fd = -1 };
	if (!state_directory(dir, sizeof dir) || !head_of(from, url, head, sizeof head))
		return 0;
	snprintf(r->path, sizeof r->path, "%s/upload-%016llx", dir, (unsigned long long)sum_of(from, url));
	r->fd = open(r->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (r->fd < 0)
		return 0;
	if (flock(r->fd, LOCK_EX | LOCK_NB) < 0 || !is_still_named(r->fd, r->path)) {
		close(r->fd);
		r->fd = -1;
		return -EBUSY;
	}
	read_state(r, head, url);
	return 0;
}

bool
resume_keep(struct resume *r, const struct origin *from, const char *url)
{
	char text[STATE_BYTES];
	size_t n;

	if (r->fd < 0 || !head_of(from, url, text, sizeof text / 2))
		return false;
	n = strlen(text);
	n += (size_t)snprintf(text + n, sizeof text - n, "%llu %s\n", (unsigned long long)r->part_size,
			      r->id);
	return ftruncate(r->fd, 0) == 0 && pwrite(r->fd, text, n, 0) == (ssize_t)n && fsync(r->fd) == 0;
}

void
resume_close(struct resume *r, bool keep)
{
	if (r->fd < 0)
		return;
	if (!keep)
		unlink(r->path);
	close(r->fd);
	r->fd = -1;
}
