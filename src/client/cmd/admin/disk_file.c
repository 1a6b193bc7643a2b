/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `gantry disk --write`; see disk_file.h. */
#include "client/cmd/admin/disk_file.h"

#include "base/path.h"
#include "client/cmd/common/admin_client.h"
#include "conf/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "conf.d"
#define NAME "disks.yaml"
#define MARK "# Written by gantry disk --write"
#define ORIGIN_BYTES 512

struct disk_file {
	struct conf *conf;
	struct stat of; /* of the configuration file: owner and mode of the new one */
	char conf_path[PATH_MAX], dir[PATH_MAX + 8], path[PATH_MAX + 32];
};

void
disk_file_close(struct disk_file *f)
{
	if (!f)
		return;
	conf_free(f->conf);
	free(f);
}

const char *
disk_file_path(const struct disk_file *f)
{
	return f->path;
}

/* ---- may it be written, and is it used ---- */

static int
refuse(const struct disk_file *f, const char *why)
{
	fprintf(stderr, "gantry: disk: --write: %s: %s\n", f->path, why);
	return -1;
}

/* Checks that the list of the file would be the one in use. */
static int
check_origin(const struct disk_file *f)
{
	char origin[ORIGIN_BYTES], why[ORIGIN_BYTES + 100], *name;

	conf_origin(f->conf, "store.disks[0].path", origin, sizeof origin);
	/* A file has the number of a line after it. */
	if ((name = strrchr(origin, ':')) != NULL)
		*name = 0;
	if (strcmp(origin, f->conf_path) == 0 || strcmp(origin, f->path) == 0)
		return 0;
	name = strrchr(origin, '/');
	if (name && strncmp(origin, f->dir, strlen(f->dir)) == 0 && strcmp(name + 1, NAME) < 0)
		return 0;
	snprintf(why, sizeof why, "would not be used: store.disks is taken from %s, which must be edited",
		 origin[0] ? origin : "no file");
	return refuse(f, why);
}

static int
check_file(const struct disk_file *f)
{
	char line[sizeof MARK] = "", above[sizeof f->dir];
	FILE *in = fopen(f->path, "re");
	size_t n = in ? fread(line, 1, sizeof MARK - 1, in) : 0;

	if (!in && errno != ENOENT)
		return refuse(f, strerror(errno));
	if (in)
		fclose(in);
	line[n] = 0;
	if (in && strcmp(line, MARK) != 0)
		return refuse(f, "this command has not written the file, so it does not change it");
	snprintf(above, sizeof above, "%s", f->dir);
	/* The directory is made when the file is written. */
	if (access(f->dir, F_OK) < 0 && errno == ENOENT)
		snprintf(above, sizeof above, "%.*s.", (int)(strlen(f->dir) - strlen(DIRECTORY)), f->dir);
	if (access(above, W_OK) < 0)
		return refuse(f, errno == EACCES ? "it is for root: sudo gantry disk ..." : strerror(errno));
	return 0;
}

/* Returns the daemon's disk at a path, or NULL. */
static const json_t *
find_disk(const json_t *disks, const char *path)
{
	size_t i;
	json_t *d;

	json_array_foreach(disks, i, d)
	{
		if (path_leads_same(json_text_at(d, "path", ""), path))
			return d;
	}
	return NULL;
}

static int
check_disks(const struct disk_file *f, const json_t *disks)
{
	char why[PATH_MAX + 100];

	for (int i = 0; i < f->conf->store.disk_nr; i++) {
		if (find_disk(disks, f->conf->store.disks[i].path))
			return 0;
	}
	snprintf(why, sizeof why,
		 "this gantryd has other disks than %s names; --conf names its configuration", f->conf_path);
	return refuse(f, why);
}

struct disk_file *
disk_file_open(const char *conf, const json_t *disks)
{
	const struct conf_source src = { .file = conf, .file_required = true, .partial = true };
	struct disk_file *f = calloc(1, sizeof *f);
	char *slash;

	if (!f)
		return NULL;
	snprintf(f->conf_path, sizeof f->conf_path, "%s", conf);
	snprintf(f->dir, sizeof f->dir, "%s", conf);
	slash = strrchr(f->dir, '/');
	snprintf(slash ? slash + 1 : f->dir, 8, DIRECTORY);
	snprintf(f->path, sizeof f->path, "%s/" NAME, f->dir);
	if (conf_load(&src, &f->conf, stderr) == 0 &&
	    (stat(conf, &f->of) == 0 || refuse(f, strerror(errno)) == 0) && check_origin(f) == 0 &&
	    check_file(f) == 0 && check_disks(f, disks) == 0)
		return f;
	disk_file_close(f);
	return NULL;
}

/* ---- its text ---- */

static void
put_disk(FILE *out, const char *path, uint64_t size_bytes)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB", "TiB" };
	int unit = 0;

	fputs("    - { path: \"", out);
	for (; *path; path++)
		fprintf(out, "%s%c", *path == '"' || *path == '\\' ? "\\" : "", *path);
	putc('"', out);
	for (; size_bytes && unit < 4 && size_bytes % 1024 == 0; unit++)
		size_bytes /= 1024;
	if (size_bytes)
		fprintf(out, ", size: %llu%s", (unsigned long long)size_bytes, units[unit]);
	fputs(" }\n", out);
}

static bool
is_drained(const json_t *disk)
{
	return disk && strcmp(json_text_at(disk, "state", ""), "drained") == 0;
}

/* Returns true if the configuration names a disk. */
static bool
is_named(const struct disk_file *f, const char *path)
{
	for (int i = 0; i < f->conf->store.disk_nr; i++) {
		if (path_leads_same(f->conf->store.disks[i].path, path))
			return true;
	}
	return false;
}

/* Writes the list. Returns the number of disks; *ret_changes: the configuration has another list. */
static int
put_disks(const struct disk_file *f, const json_t *disks, FILE *out, bool *ret_changes)
{
	struct stat st;
	size_t i;
	json_t *d;
	int nr = 0;

	fprintf(out,
		MARK ": this list replaces store.disks of %s.\n"
		     "store:\n  disks:\n",
		f->conf_path);
	*ret_changes = false;
	for (int k = 0; k < f->conf->store.disk_nr; k++) {
		const struct conf_disk *c = &f->conf->store.disks[k];

		if (is_drained(find_disk(disks, c->path))) {
			*ret_changes = true;
			continue;
		}
		put_disk(out, c->path, c->size_bytes);
		nr++;
	}
	json_array_foreach(disks, i, d)
	{
		const char *path = json_text_at(d, "path", ""), *state = json_text_at(d, "state", "");

		if (path[0] != '/' || is_drained(d) || strcmp(state, "missing") == 0 || is_named(f, path))
			continue;
		put_disk(out, path,
			 stat(path, &st) == 0 && S_ISBLK(st.st_mode) ? 0
								     : (uint64_t)json_at(d, "size_bytes"));
		*ret_changes = true;
		nr++;
	}
	return nr;
}

/* ---- writing ---- */

/* Makes the directory, if it is absent, with the owner of the configuration file, for the users who may read that file. Returns 0 or
 * -errno. */
static int
make_directory(const struct disk_file *f)
{
	mode_t mode = f->of.st_mode & 0777;
	int fd, e = 0;

	if (mkdir(f->dir, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fchown(fd, f->of.st_uid, f->of.st_gid) < 0 && geteuid() == 0)
		e = -errno;
	if (e == 0 && fchmod(fd, mode | (mode & 0444) >> 2) < 0)
		e = -errno;
	close(fd);
	return e;
}

/* Replaces the file. Returns 0 or -errno. */
static int
replace(const struct disk_file *f, const char *text, size_t len)
{
	char tmp[sizeof f->path + 8];
	int fd, dir, e = 0;

	snprintf(tmp, sizeof tmp, "%s/.%s.new", f->dir, NAME);
	unlink(tmp);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		e = errno ? -errno : -ENOSPC;
	if (e == 0 && (fchmod(fd, f->of.st_mode & 0777) < 0 || fsync(fd) < 0))
		e = -errno;
	/* Only root can, and only root has to. */
	if (e == 0 && fchown(fd, f->of.st_uid, f->of.st_gid) < 0 && geteuid() == 0)
		e = -errno;
	close(fd);
	if (e == 0 && rename(tmp, f->path) < 0)
		e = -errno;
	if (e < 0) {
		unlink(tmp);
		return e;
	}
	dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		e = fsync(dir) < 0 ? -errno : 0;
		close(dir);
	}
	return e;
}

int
disk_file_write(struct disk_file *f, const json_t *disks, bool *ret_wrote)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int nr = out ? put_disks(f, disks, out, ret_wrote) : 0, e = out ? 0 : -ENOMEM;

	if (out && fclose(out) != 0)
		e = -ENOMEM;
	if (e == 0 && nr == 0)
		e = refuse(f, "no disk would be left");
	else if (e == 0 && *ret_wrote && ((e = make_directory(f)) < 0 || (e = replace(f, text, len)) < 0))
		refuse(f, strerror(-e));
	free(text);
	return e < 0 ? -1 : 0;
}
