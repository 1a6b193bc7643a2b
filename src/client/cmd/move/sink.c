/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a file that gets its name when it is complete; see files.h. A file that is written in one piece
 * has no name until then, so nothing remains if the process is killed. A file in several pieces has the name
 * .gantry-<sum of its name>.part, and the file .state next to it names the object and the stored pieces, each
 * with its CRC. After a power cut the pieces are read again and compared, so that a run need not wait for the
 * disk with every piece.
 */
#include "client/cmd/move/files.h"

#include "client/gantry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_HEAD "gantry unfinished 1"
/* 64 TiB in pieces of 16 MiB. No object is larger, and a damaged number must not allocate more memory. */
#define PIECES_MAX (1u << 22)
#define BUSY "another gantry is at this file"

void
written_init(struct written *w)
{
	*w = (struct written){ 0 };
	pthread_mutex_init(&w->lock, NULL);
}

void
written_fini(struct written *w)
{
	pthread_mutex_destroy(&w->lock);
	free(w->all);
}

static void
sink_init(struct sink *s)
{
	*s = (struct sink){ .fd = -1, .dir = -1, .state_fd = -1, .why = "" };
}

static int
refuse(struct sink *s, int e, const char *why)
{
	s->why = why;
	return e;
}

/* Uses `name` in s->dir for a new regular file, or opens an existing file that is not regular. */
static int
take_name(struct sink *s, const char *name, bool follow)
{
	struct stat st;
	uint64_t sum = gantry_crc64nvme(0, name, strlen(name));

	if (snprintf(s->name, sizeof s->name, "%s", name) >= (int)sizeof s->name)
		return -ENAMETOOLONG;
	snprintf(s->part, sizeof s->part, UNFINISHED "%016llx.part", (unsigned long long)sum);
	snprintf(s->state, sizeof s->state, UNFINISHED "%016llx.state", (unsigned long long)sum);
	if (fstatat(s->dir, name, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISREG(st.st_mode))
		return 0;
	if (S_ISDIR(st.st_mode))
		return follow ? -EISDIR : refuse(s, -EISDIR, "there is a directory of that name");
	if (!follow)
		return refuse(s, -ELOOP,
			      S_ISLNK(st.st_mode)
				      ? "there is a symbolic link of that name, which is not followed"
				      : "what has that name is no regular file");
	s->fd = openat(s->dir, name, O_WRONLY | O_CLOEXEC);
	s->in_order = true;
	close(s->dir);
	s->dir = -1;
	return s->fd < 0 ? -errno : 0;
}

int
sink_open(struct sink *s, const char *file, const char *url)
{
	const char *base = strrchr(url, '/'), *slash = strrchr(file, '/');
	char dir[4096];
	struct stat st;

	sink_init(s);
	if (!strcmp(file, "-")) {
		s->fd = STDOUT_FILENO;
		s->in_order = true;
		return 0;
	}
	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
		const char *fault = base && base[1] ? name_fault(base + 1, strlen(base + 1)) : "";

		if (fault)
			return *fault ? refuse(s, -EINVAL, fault) : -EISDIR;
		s->dir = open(file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return s->dir < 0 ? -errno : take_name(s, base + 1, true);
	}
	if (slash && !slash[1])
		return -ENOTDIR;
	if (snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".") >=
	    (int)sizeof dir)
		return -ENAMETOOLONG;
	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->dir < 0 ? -errno : take_name(s, slash ? slash + 1 : file, true);
}

int
sink_open_below(struct sink *s, int dir, const char *name, struct written *others)
{
	const char *leaf, *why;
	int e;

	sink_init(s);
	s->others = others;
	why = name_fault(name, strlen(name));
	if (why)
		return refuse(s, -EINVAL, why);
	s->dir = name_parent(dir, name, true, &leaf, &s->why);
	if (s->dir >= 0)
		return take_name(s, leaf, false);
	e = s->dir;
	s->dir = -1;
	return e;
}

/* ---- what an earlier run has left ---- */

static void
discard(struct sink *s)
{
	unlinkat(s->dir, s->part, 0);
	unlinkat(s->dir, s->state, 0);
}

/* Opens the part or the state. The file must belong to this user and have no other name. Returns a
 * descriptor or -errno; -EBUSY if another run has removed the file meanwhile. */
static int
open_left(const struct sink *s, const char *name, int flags)
{
	int fd = openat(s->dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1) {
		close(fd);
		return -EPERM;
	}
	if (st.st_nlink == 0) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}

/* Locks the part exclusively until it is closed. Fails if its name belongs to another file by now. */
static int
lock_part(const struct sink *s, int fd)
{
	struct stat mine, named;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &mine) < 0 || fstatat(s->dir, s->part, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    mine.st_ino != named.st_ino || mine.st_dev != named.st_dev)
		return -EBUSY;
	return 0;
}

static bool
take_line(FILE *f, char *line, size_t cap)
{
	size_t n;

	if (!fgets(line, (int)cap, f))
		return false;
	n = strlen(line);
	if (!n || line[n - 1] != '\n')
		return false;
	line[n - 1] = 0;
	return true;
}

static bool
piece_is_there(const struct sink *s, uint64_t at, size_t len, uint64_t crc, char *mem)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread(s->fd, mem + have, len - have, (off_t)(at + have));

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return gantry_crc64nvme(0, mem, len) == crc;
}

bool
unfinished_parse(FILE *f, const char *url, size_t piece, struct unfinished *u)
{
	char line[8192], *end;
	unsigned long long at, crc;
	size_t pieces;

	if (!take_line(f, line, sizeof line) || strcmp(line, STATE_HEAD) != 0 ||
	    !take_line(f, line, sizeof line) || strcmp(line, url) != 0 ||
	    !take_line(f, u->etag, sizeof u->etag) || !*u->etag || !take_line(f, line, sizeof line))
		return false;
	u->size = strtoull(line, &end, 10);
	if (end == line || *end || u->size == 0 || u->size > (uint64_t)PIECES_MAX * piece)
		return false;
	pieces = (size_t)((u->size + piece - 1) / piece);
	u->crc = calloc(pieces, sizeof *u->crc);
	u->has = calloc(pieces, sizeof *u->has);
	if (!u->crc || !u->has)
		return false;
	/* A piece that was downloaded again has two lines; the later line is about the bytes in the file. */
	while (take_line(f, line, sizeof line)) {
		if (sscanf(line, "%llu %llx", &at, &crc) != 2 || at >= pieces)
			continue;
		u->crc[at] = crc;
		u->has[at] = true;
	}
	return true;
}

/* Reads the pieces that the state lists; a piece with another CRC counts as missing. */
static void
compare_pieces(const struct sink *s, char *mem, size_t piece, struct unfinished *u)
{
	for (uint64_t i = 0, at = 0; at < u->size; i++, at += piece)
		u->has[i] = u->has[i] &&
			    piece_is_there(s, at, u->size - at < piece ? (size_t)(u->size - at) : piece,
					   u->crc[i], mem);
}

int
sink_resume(struct sink *s, const char *url, char *mem, size_t piece, struct unfinished *ret_u)
{
	FILE *f;
	int fd;

	*ret_u = (struct unfinished){ 0 };
	if (s->dir < 0)
		return 0;
	s->fd = open_left(s, s->part, O_RDWR);
	if (s->fd < 0)
		return 0;
	int e = lock_part(s, s->fd);

	if (e < 0) {
		close(s->fd);
		s->fd = -1;
		return refuse(s, e, BUSY);
	}
	fd = open_left(s, s->state, O_RDWR | O_APPEND);
	f = fd < 0 ? NULL : fdopen(fd, "r+e");
	if (f && unfinished_parse(f, url, piece, ret_u)) {
		compare_pieces(s, mem, piece, ret_u);
		s->state_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		s->is_named = s->is_resumable = true;
		fclose(f);
		return 1;
	}
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	free(ret_u->crc);
	free(ret_u->has);
	*ret_u = (struct unfinished){ 0 };
	discard(s);
	close(s->fd);
	s->fd = -1;
	return 0;
}

/* ---- a new one ---- */

static mode_t mask;

static void
find_mask(void)
{
	mask = umask(0);
	umask(mask);
}

static mode_t
usual_mode(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_mask);
	return 0666 & ~mask;
}

/* Removes a part that no run uses. A run holds the lock of its part, so that the name cannot go to another
 * file. */
static int
clear_part(struct sink *s)
{
	int fd = open_left(s, s->part, O_RDWR), e;

	if (fd == -ENOENT)
		return 0;
	/* The name of a removed file may be that of another run's part by now, which must stay. */
	e = fd == -EBUSY ? fd : fd < 0 ? 0 : lock_part(s, fd);
	if (e == 0)
		discard(s);
	if (fd >= 0)
		close(fd);
	return e < 0 ? refuse(s, e, BUSY) : 0;
}

static int
begin_named(struct sink *s)
{
	int e = clear_part(s);

	if (e < 0)
		return e;
	s->fd = open_left(s, s->part, O_RDWR | O_CREAT | O_EXCL);
	if (s->fd == -EEXIST || s->fd == -EBUSY)
		return refuse(s, -EBUSY, BUSY);
	if (s->fd < 0)
		return s->fd;
	e = lock_part(s, s->fd);
	if (e < 0)
		return refuse(s, e, BUSY);
	s->is_named = true;
	/* A run that was killed after its part had gone has left a state alone. */
	unlinkat(s->dir, s->state, 0);
	return 0;
}

int
sink_begin(struct sink *s, const char *url, const char *etag, uint64_t size)
{
	int e = 0;

	if (s->dir < 0)
		return 0;
	if (s->fd >= 0) { /* the part of an earlier run, which cannot be continued */
		discard(s);
		close(s->fd);
		if (s->state_fd >= 0)
			close(s->state_fd);
		s->fd = s->state_fd = -1;
		s->is_named = s->is_resumable = false;
	}
	if (!*etag)
		s->fd = openat(s->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0)
		e = begin_named(s);
	if (e == 0 && fchmod(s->fd, usual_mode()) < 0)
		e = -errno;
	if (e == 0 && *etag && !strpbrk(url, "\n") && !strpbrk(etag, "\n")) {
		s->state_fd = open_left(s, s->state, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
		if (s->state_fd == -EBUSY)
			return refuse(s, -EBUSY, BUSY);
		if (s->state_fd < 0)
			return s->state_fd;
		s->is_resumable = true;
		if (dprintf(s->state_fd, STATE_HEAD "\n%s\n%s\n%llu\n", url, etag, (unsigned long long)size) <
		    0)
			e = -errno;
	}
	return e;
}

int
sink_write(struct sink *s, const char *mem, size_t len, uint64_t at)
{
	s->written += len;
	while (len) {
		ssize_t n = s->in_order ? write(s->fd, mem, len) : pwrite(s->fd, mem, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		mem += n;
		len -= (size_t)n;
		at += (size_t)n;
	}
	return 0;
}

void
sink_note(struct sink *s, uint64_t piece, uint64_t crc)
{
	/* A piece that the state does not list is downloaded again. */
	if (s->is_resumable)
		dprintf(s->state_fd, "%llu %016llx\n", (unsigned long long)piece, (unsigned long long)crc);
}

/* ---- the end ---- */

/* Returns true if this run wrote the file that has the name now: then the file system treats two names as
 * one. */
static bool
is_of_this_run(const struct sink *s)
{
	struct stat st;

	if (fstatat(s->dir, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	for (size_t i = 0; i < s->others->nr; i++)
		if (s->others->all[i].ino == st.st_ino && s->others->all[i].dev == st.st_dev)
			return true;
	return false;
}

static int
remember(struct written *w, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (w->nr == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 1024;
		struct inode *more = realloc(w->all, cap * sizeof *more);

		if (!more)
			return -ENOMEM;
		w->all = more;
		w->cap = cap;
	}
	w->all[w->nr++] = (struct inode){ st.st_dev, st.st_ino };
	return 0;
}

/* Gives the file its name atomically, and replaces a file that has the name. */
static int
give_name(struct sink *s)
{
	char path[32];
	size_t n;

	if (!s->is_named) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
		if (linkat(AT_FDCWD, path, s->dir, s->name, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
		/* A name that no other run uses: another run may have a part of this file. */
		n = strlen(s->part);
		snprintf(s->part + n, sizeof s->part - n, ".%d", (int)getpid());
		unlinkat(s->dir, s->part, 0);
		if (linkat(AT_FDCWD, path, s->dir, s->part, AT_SYMLINK_FOLLOW) < 0)
			return -errno;
		s->is_named = true;
	}
	if (renameat(s->dir, s->part, s->dir, s->name) == 0)
		return 0;
	return errno == EISDIR ? refuse(s, -EISDIR, "there is a directory of that name") : -errno;
}

static int
finish(struct sink *s)
{
	int e = fsync(s->fd) < 0 ? -errno : 0;

	if (s->others)
		pthread_mutex_lock(&s->others->lock);
	if (e == 0 && s->others && is_of_this_run(s))
		e = refuse(s, -EEXIST,
			   "this file system takes the name for that of another object of this run");
	if (e == 0)
		e = give_name(s);
	if (e == 0 && s->others)
		e = remember(s->others, s->fd);
	if (s->others)
		pthread_mutex_unlock(&s->others->lock);
	if (e == 0 && s->is_resumable)
		unlinkat(s->dir, s->state, 0);
	if (e == 0 && fsync(s->dir) < 0 && errno != EINVAL && errno != EROFS)
		e = -errno;
	return e;
}

int
sink_close(struct sink *s, bool good, bool keep, uint64_t size)
{
	int e = good && s->written != size ? -EPROTO : 0;
	bool is_done;

	if (s->dir < 0) {
		if (s->fd >= 0 && s->fd != STDOUT_FILENO && close(s->fd) < 0 && good)
			e = -errno;
		return e;
	}
	if (good && e == 0)
		e = s->fd < 0 ? -EPROTO : finish(s);
	is_done = good && e == 0;
	if (!is_done && s->is_named && !(keep && s->is_resumable && s->written))
		discard(s);
	if (s->fd >= 0)
		close(s->fd);
	if (s->state_fd >= 0)
		close(s->state_fd);
	close(s->dir);
	return e;
}
