/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a disk; see place.h. */
#include "extent/disk/place.h"

#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RAM_DISK_MAJOR 1
#define LEVELS_MAX 4 /* maximum depth of overlays and loop devices on top of each other */

/* Resolves a path, also if its end does not exist. A dangling link is followed once. */
static bool
resolve(const char *path, char real[PATH_MAX])
{
	char to[PATH_MAX];
	ssize_t n;

	if (realpath(path, real))
		return true;
	n = readlink(path, to, sizeof to - 1);
	if (n > 0)
		to[n] = 0;
	else
		snprintf(to, sizeof to, "%s", path);
	for (char *at = to; !realpath(at, real); at = dirname(at)) {
		if (strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
			return false;
	}
	return true;
}

bool
place_is_dev(const char *path)
{
	char real[PATH_MAX];
	struct stat st, dev;

	if (!resolve(path, real) || (strcmp(real, "/dev") != 0 && strncmp(real, "/dev/", 5) != 0))
		return false;
	return stat(path, &st) < 0 || stat("/dev", &dev) < 0 || !S_ISDIR(st.st_mode) ||
	       st.st_dev == dev.st_dev;
}

char *
place_mount_options(dev_t dev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *found = NULL;
	size_t cap = 0;

	while (f && !found && getline(&line, &cap, f) >= 0) {
		const char *sep = strstr(line, " - "), *options = sep ? strrchr(sep, ' ') : NULL;
		unsigned maj, min;

		if (options && sscanf(line, "%*d %*d %u:%u", &maj, &min) == 2 && makedev(maj, min) == dev)
			found = strdup(options + 1);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* Finds the upper directory of an overlay, by its device. */
static bool
find_upper(dev_t dev, char upper[PATH_MAX])
{
	char *options = place_mount_options(dev), *at = options ? strstr(options, "upperdir=") : NULL;
	bool found = false;

	if (at) {
		at += strlen("upperdir=");
		at[strcspn(at, ",\n")] = 0;
		found = snprintf(upper, PATH_MAX, "%s", at) < PATH_MAX;
	}
	free(options);
	return found;
}

/* Finds the file of a loop device. */
static bool
find_backing(dev_t dev, char file[PATH_MAX])
{
	char path[96];
	FILE *f;
	bool found;

	snprintf(path, sizeof path, "/sys/dev/block/%u:%u/loop/backing_file", major(dev), minor(dev));
	f = fopen(path, "re");
	found = f && fgets(file, PATH_MAX, f);
	if (f)
		fclose(f);
	if (found)
		file[strcspn(file, "\n")] = 0;
	return found;
}

/* Returns the kind of memory in which a file or device is; NULL: not in memory, as far as known. */
static const char *
memory_of(const char *path, int levels)
{
	char below[PATH_MAX], link[PATH_MAX];
	struct statfs fs;
	struct stat st;
	ssize_t n;

	if (levels == 0 || stat(path, &st) < 0 || statfs(path, &fs) < 0)
		return NULL;
	if (!S_ISBLK(st.st_mode)) {
		if ((uint32_t)fs.f_type == TMPFS_MAGIC)
			return "tmpfs";
		if ((uint32_t)fs.f_type == RAMFS_MAGIC)
			return "ramfs";
		if ((uint32_t)fs.f_type == OVERLAYFS_SUPER_MAGIC)
			return find_upper(st.st_dev, below) ? memory_of(below, levels - 1) : NULL;
	}
	if (S_ISBLK(st.st_mode))
		st.st_dev = st.st_rdev;
	if (major(st.st_dev) == RAM_DISK_MAJOR)
		return "a RAM disk";
	snprintf(below, sizeof below, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	n = readlink(below, link, sizeof link - 1);
	if (n > 0) {
		link[n] = 0;
		if (strstr(link, "/zram"))
			return "zram";
	}
	return find_backing(st.st_dev, below) ? memory_of(below, levels - 1) : NULL;
}

bool
place_is_memory(const char *path, char *why, size_t why_len)
{
	char real[PATH_MAX];
	const char *in = resolve(path, real) ? memory_of(real, LEVELS_MAX) : NULL;

	if (!in)
		return false;
	snprintf(why, why_len,
		 "this disk is in memory (%s): a reboot loses everything on it; and its pages count for the "
		 "memory limit of the control group, which may end the daemon",
		 in);
	return true;
}
