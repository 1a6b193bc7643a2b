/* SPDX-License-Identifier: Apache-2.0 */
/* File operations; see file.h. */
#include "extent/disk/file.h"

#include "extent/disk/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000u
#endif

int
file_open_dir(const char *path, bool create)
{
	int fd;

	if (create && mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool
file_is_root(int dir_fd)
{
	struct stat it, root;

	if (fstat(dir_fd, &it) == 0 && stat("/", &root) == 0 && it.st_dev == root.st_dev &&
	    it.st_ino == root.st_ino)
		return true;
	return faccessat(dir_fd, "etc/.", F_OK, 0) == 0 && faccessat(dir_fd, "usr/.", F_OK, 0) == 0;
}

int
file_open(int dir_fd, const char *name, bool create)
{
	int flags = O_RDWR | O_DIRECT | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0);
	int fd = openat(dir_fd, name, flags | O_NOATIME, 0640);

	if (fd < 0 && errno == EPERM)
		fd = openat(dir_fd, name, flags, 0640); /* the file belongs to another user */
	return fd < 0 ? -errno : fd;
}

int
file_peek(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

int
file_open_device(const char *path, bool is_peek)
{
	int fd = open(path, (is_peek ? O_RDONLY : O_RDWR | O_EXCL) | O_DIRECT | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void
file_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

int
file_lock(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

int
file_rename(int dir_fd, const char *from, const char *to)
{
	return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

int
file_unlink(int dir_fd, const char *name)
{
	return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}

int
file_fsync(int fd)
{
	return fsync(fd) < 0 ? -errno : 0;
}

int
file_size(int fd, uint64_t *ret_bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_bytes = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, ret_bytes) < 0)
		return -errno;
	return 0;
}

int
file_where(int dir_fd, const char *name, int fd, uint64_t bytes)
{
	struct stat there, open_one;
	bool is_same;

	if (fstat(fd, &open_one) < 0)
		return -errno;
	if (fstatat(dir_fd, name, &there, 0) < 0)
		return errno == ENOENT || errno == ENOTDIR ? PLACE_ABSENT : -errno;
	/* A device is identified by its number, because its node may be made again. */
	if (S_ISBLK(open_one.st_mode))
		is_same = S_ISBLK(there.st_mode) && there.st_rdev == open_one.st_rdev;
	else
		is_same = there.st_dev == open_one.st_dev && there.st_ino == open_one.st_ino;
	return !is_same ? PLACE_OTHER : (uint64_t)open_one.st_size < bytes ? PLACE_CUT : PLACE_SAME;
}

#define EXTENTS_AT_ONCE 128

int
file_next_odd(int fd, uint64_t upto, uint64_t *off, struct file_odd *ret_odd)
{
	/* Flags without a meaning here: the extent is the last one, or was merged with its neighbours. */
	const uint32_t plain = FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED;
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + EXTENTS_AT_ONCE * sizeof(struct fiemap_extent)];
	} u;
	const struct fiemap_extent *ext = u.map.fm_extents;

	if (*off >= upto)
		return 0;
	memset(&u.map, 0, sizeof u.map);
	u.map.fm_start = *off;
	u.map.fm_length = upto - *off;
	u.map.fm_extent_count = EXTENTS_AT_ONCE;
	if (ioctl(fd, FS_IOC_FIEMAP, &u.map) < 0)
		return errno == ENOTTY || errno == ENOSYS ? -EOPNOTSUPP : -errno;
	for (uint32_t i = 0; i < u.map.fm_mapped_extents && *off < upto; i++) {
		uint64_t begin = ext[i].fe_logical, end = begin + ext[i].fe_length;

		if (begin > *off) {
			*ret_odd = (struct file_odd){ .off = *off, .len = begin - *off };
			return 1;
		}
		if (ext[i].fe_flags & ~plain) {
			end = end < upto ? end : upto;
			*ret_odd = (struct file_odd){ .off = *off,
						      .len = end - *off,
						      .is_shared = ext[i].fe_flags & FIEMAP_EXTENT_SHARED };
			return 1;
		}
		*off = end < upto ? end : upto;
	}
	/* After the last extent a hole follows. */
	if (u.map.fm_mapped_extents < EXTENTS_AT_ONCE && *off < upto) {
		*ret_odd = (struct file_odd){ .off = *off, .len = upto - *off };
		return 1;
	}
	return 0;
}

int
file_unshare(int fd, uint64_t off, uint64_t len)
{
	return fallocate(fd, FALLOC_FL_UNSHARE_RANGE, (off_t)off, (off_t)len) < 0 ? -errno : 0;
}

bool
file_is_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

int
file_room(int dir_fd, uint64_t *ret_bytes)
{
	struct statvfs vfs;

	if (fstatvfs(dir_fd, &vfs) < 0)
		return -errno;
	*ret_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return 0;
}

int
file_each(int dir_fd, int (*fn)(void *cookie, const char *name), void *cookie)
{
	/* A separate descriptor, because fdopendir() takes over the descriptor and its position. */
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = fn(cookie, e->d_name);
	}
	closedir(dir);
	return r;
}

int
file_dio_align(int fd, uint32_t *ret_mem, uint32_t *ret_off)
{
	/* The headers of Debian 12 lack the two fields, which follow stx_mnt_id in the kernel's layout. */
	union {
		struct statx sx;
		unsigned char raw[256];
	} u;

	memset(&u, 0, sizeof u);
	*ret_mem = *ret_off = 512;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &u.sx) < 0)
		return -errno;
	if (!(u.sx.stx_mask & STATX_DIOALIGN))
		return 0;
	memcpy(ret_mem, u.raw + 0x98, 4);
	memcpy(ret_off, u.raw + 0x9c, 4);
	return *ret_mem && *ret_off ? 0 : -EOPNOTSUPP;
}

/* Returns the queue depth of a device, by its directory below /sys. A device made of others (dm, md) has
 * the smallest depth of them, and a partition that of its disk. levels: limit for devices on top of
 * devices. */
static unsigned
device_depth(const char *dir, int levels)
{
	char path[PATH_MAX];
	unsigned least = 0;
	struct dirent *e;
	FILE *f;
	DIR *parts;

	snprintf(path, sizeof path, "%s/slaves", dir);
	parts = levels > 0 ? opendir(path) : NULL;
	while (parts && (e = readdir(parts)) != NULL) {
		unsigned depth;

		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof path, "%s/slaves/%s", dir, e->d_name) >= (int)sizeof path)
			continue;
		depth = device_depth(path, levels - 1);
		if (depth && (!least || depth < least))
			least = depth;
	}
	if (parts)
		closedir(parts);
	for (int up = 0; up < 2 && !least; up++) {
		snprintf(path, sizeof path, "%s%s/queue/nr_requests", dir, up ? "/.." : "");
		f = fopen(path, "re");
		if (f && fscanf(f, "%u", &least) != 1)
			least = 0;
		if (f)
			fclose(f);
	}
	return least;
}

unsigned
file_queue_depth(int fd)
{
	char dir[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	snprintf(dir, sizeof dir, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	return device_depth(dir, 8);
}

/* Returns true if a device is mounted with one of the options, of which the list ends with NULL. */
static bool
mount_has(dev_t dev, const char *const *wanted)
{
	char *options = place_mount_options(dev), *save = NULL;
	bool found = false;

	for (char *o = options ? strtok_r(options, ",\n", &save) : NULL; o;
	     o = strtok_r(NULL, ",\n", &save)) {
		for (int i = 0; wanted[i]; i++)
			found |= strcmp(o, wanted[i]) == 0;
	}
	free(options);
	return found;
}

int
file_check_fs(int fd, char *why, size_t why_len)
{
	static const char *const no_barrier[] = { "nobarrier", "barrier=0", NULL };
	static const char *const lossy[] = { "volatile", NULL };
	struct statfs fs;
	struct stat st;

	why[0] = 0;
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0) {
		int r = -errno;

		snprintf(why, why_len, "cannot ask for the file system: %s", strerror(-r));
		return r;
	}
	if (S_ISBLK(st.st_mode))
		return 1;
	if (mount_has(st.st_dev, no_barrier)) {
		snprintf(why, why_len,
			 "the file system is mounted without barriers, a flush would promise nothing: mount "
			 "it with them");
		return -EINVAL;
	}
	if ((uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC && mount_has(st.st_dev, lossy)) {
		snprintf(why, why_len,
			 "the overlay is mounted volatile, a flush would promise nothing: mount it without");
		return -EINVAL;
	}
	if ((uint32_t)fs.f_type == EXT4_SUPER_MAGIC || (uint32_t)fs.f_type == XFS_SUPER_MAGIC)
		return 1;
	snprintf(why, why_len,
		 "file system type 0x%x is neither ext4 nor XFS: every touched file is flushed, which is "
		 "slower",
		 (unsigned)fs.f_type);
	return 0;
}

#define MARK_NAME "user.gantry.disk"

int
file_mark_get(int fd, char text[FILE_MARK_MAX])
{
	ssize_t n = fgetxattr(fd, MARK_NAME, text, FILE_MARK_MAX - 1);

	/* A mark that is too long for the buffer is not one of Gantry. */
	if (n < 0 && errno == ERANGE)
		n = 0;
	text[n > 0 ? n : 0] = 0;
	return n >= 0 ? 1 : errno == ENODATA ? 0 : -errno;
}

int
file_mark_set(int fd, const char *text)
{
	return fsetxattr(fd, MARK_NAME, text, strlen(text), 0) < 0 ? -errno : 0;
}
