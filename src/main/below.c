/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices and file systems below the disks: those that are late at a start are waited for, and disks that share one are named.
 */
#include "main/daemon.h"
#include "main/notify.h"

#include "base/advice.h"
#include "base/amount.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "store/record.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS (100 * NS_PER_MS)
#define ROOM_NAMED 4 /* most disks that a line names */

/* ---- late ones ---- */

/* Returns true if a directory has no superblock of a store: it is not there, or what should be mounted on it is not. */
static bool
is_bare(const char *path)
{
	char super[2][PATH_MAX];

	snprintf(super[0], sizeof super[0], "%s/super", path);
	snprintf(super[1], sizeof super[1], "%s/super2", path);
	return access(super[0], F_OK) < 0 && errno == ENOENT && access(super[1], F_OK) < 0 && errno == ENOENT;
}

/* Returns the member that was last at a path; NULL: none is known. */
static const struct store_record_disk *
member_at(const struct store_record *record, const char *path)
{
	for (int i = 0; record && i < record->nr; i++) {
		if (record->disk[i].path[0] && path_same(record->disk[i].path, path))
			return &record->disk[i];
	}
	return NULL;
}

static bool
is_accepted(const struct conf *conf, const struct store_record_disk *k)
{
	for (int i = 0; k && i < conf->store.accept_missing_nr; i++) {
		if (memcmp(conf->store.accept_missing[i], k->uuid, UUID_BYTES) == 0)
			return true;
	}
	return false;
}

/* Returns true if a disk is absent and may come: a device that is not there; a directory without a store, where one was. */
static bool
is_late(const struct conf *conf, const struct store_record *record, const char *path)
{
	const struct store_record_disk *k = member_at(record, path);
	struct stat st;
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof to - 1);

	to[n > 0 ? n : 0] = 0;
	if (is_accepted(conf, k))
		return false;
	if (stat(path, &st) < 0)
		return (errno == ENOENT || errno == ENXIO || errno == ENODEV) &&
		       (k || strncmp(path, "/dev/", 5) == 0 || strncmp(to, "/dev/", 5) == 0);
	return k && S_ISDIR(st.st_mode) && is_bare(path);
}

/* Writes the paths of the late disks.  Returns how many there are. */
static int
find_late(const struct conf *conf, const struct store_record *record, char *text, size_t len)
{
	int nr = 0;
	size_t at = 0;

	text[0] = 0;
	for (int i = 0; i < conf->store.disk_nr; i++) {
		const char *path = conf->store.disks[i].path;

		if (!is_late(conf, record, path) || nr++ >= ROOM_NAMED)
			continue;
		at += (size_t)snprintf(text + at, len - at, "%s%.200s", at ? ", " : "", path);
	}
	if (nr > ROOM_NAMED)
		snprintf(text + at, len - at, " and %d more", nr - ROOM_NAMED);
	return nr;
}

/* Returns true if a start would take the disks as they are, because the configuration accepts that the late ones are missing. */
static bool
is_enough(const struct conf *conf, const struct store_conf *sc)
{
	char err[STORE_WHY_BYTES];

	return conf->store.accept_missing_nr > 0 && store_task(sc, TASK_LOOK, err, sizeof err) == 0 &&
	       !err[0];
}

void
below_wait(struct daemon *d, const struct store_conf *sc)
{
	const struct store_record *record = sc->disks.record;
	struct timespec ts = { .tv_nsec = POLL_NS };
	uint64_t began = clock_ns(), wait_ns = d->conf->store.wait_for_disks_ns;
	char text[1024], told[1024] = "";

	while (wait_ns && find_late(d->conf, record, text, sizeof text) > 0) {
		if (clock_ns() - began >= wait_ns) {
			log_warn("%s: not there after %llu s (store.wait_for_disks)", text,
				 (unsigned long long)(wait_ns / NS_PER_S));
			break;
		}
		if (strcmp(text, told) != 0) {
			char remedies[1200] = "-";

			if (is_enough(d->conf, sc))
				break;
			atomic_store(&d->phase, PHASE_DISKS);
			log_note("waiting for disks, at most %llu s (store.wait_for_disks): %s",
				 (unsigned long long)(wait_ns / NS_PER_S), text);
			advice_add(remedies, sizeof remedies, ADVICE_DISK_LATE,
				   &(struct advice_values){ .path = text });
			advice_log(LOG_NOTE, LOG_MODULE, remedies);
			notify_send("STATUS=Waiting for disks: %s", text);
			snprintf(told, sizeof told, "%s", text);
		}
		nanosleep(&ts, NULL);
	}
	if (below_shared(d->conf, text, sizeof text))
		log_note("%s", text);
	atomic_store(&d->phase, PHASE_RECOVERING);
	notify_send("STATUS=Recovering the store");
}

/* ---- shared ones ---- */

/* Names the whole device below a path, as sysfs has it; a file system without one by its number.  False: the path cannot be
 * examined. */
static bool
find_base(const char *path, char base[PATH_MAX])
{
	char name[64], part[PATH_MAX + 16];
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISBLK(st.st_mode))
		st.st_dev = st.st_rdev;
	snprintf(name, sizeof name, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	if (!realpath(name, base)) {
		snprintf(base, PATH_MAX, "%s", name);
		return true;
	}
	snprintf(part, sizeof part, "%s/partition", base);
	if (access(part, F_OK) == 0 && strrchr(base, '/'))
		*strrchr(base, '/') = 0;
	return true;
}

/* Names two of these paths that share a device or file system, and counts the others that do. */
static bool
find_shared(const char *const *path, int nr, char *text, size_t len)
{
	char(*base)[PATH_MAX] = calloc(CONF_DISKS_MAX, sizeof *base);
	int shared = 0;

	text[0] = 0;
	for (int i = 0; base && i < nr; i++) {
		if (!find_base(path[i], base[i]))
			base[i][0] = 0;
		for (int j = 0; j < i && base[i][0]; j++) {
			if (strcmp(base[i], base[j]) != 0)
				continue;
			if (shared++ == 0)
				snprintf(text, len,
					 "%.200s and %.200s are on one device or file system: when it fails, "
					 "both do, and its room is that of both",
					 path[j], path[i]);
			break;
		}
	}
	if (shared > 1)
		snprintf(text + strlen(text), len - strlen(text), "; so %s %d more of store.disks",
			 shared == 2 ? "is" : "are", shared - 1);
	free(base);
	return shared > 0;
}

bool
below_shared(const struct conf *conf, char *text, size_t len)
{
	const char *path[CONF_DISKS_MAX];

	for (int i = 0; i < conf->store.disk_nr; i++)
		path[i] = conf->store.disks[i].path;
	return find_shared(path, conf->store.disk_nr, text, len);
}

/* ---- shared ones, while the store serves ---- */

static struct {
	pthread_mutex_t lock;
	char text[600]; /* names disks that share; "": none do */
} now_shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
below_look(const struct store *st)
{
	char(*name)[PATH_MAX] = calloc(CONF_DISKS_MAX, sizeof *name), text[600];
	const char *path[CONF_DISKS_MAX];
	int nr = 0;

	for (int i = 0; name && i < store_unit_nr(st) && nr < CONF_DISKS_MAX; i++) {
		struct store_unit_info info;

		store_unit_info(st, i, &info);
		if (!store_unit_serves(info.state) || !info.name)
			continue;
		snprintf(name[nr], sizeof name[nr], "%s", info.name);
		path[nr] = name[nr];
		nr++;
	}
	find_shared(path, nr, text, sizeof text);
	free(name);
	pthread_mutex_lock(&now_shared.lock);
	snprintf(now_shared.text, sizeof now_shared.text, "%s", text);
	pthread_mutex_unlock(&now_shared.lock);
}

void
below_health(const struct store *st, struct admin_reasons *r)
{
	struct store_copies_info i = { .is_used = false };

	if (st)
		store_copies_info(st, &i);
	pthread_mutex_lock(&now_shared.lock);
	if (i.is_used && now_shared.text[0])
		admin_reason(r, REASON_DISKS_SHARED, "",
			     "%s; both copies of objects with two copies may be on it", now_shared.text);
	pthread_mutex_unlock(&now_shared.lock);
}

/* Examines the file system of a directory, or of the directory in which it will be made. */
static bool
find_room(const char *path, dev_t *ret_dev, uint64_t *ret_bytes)
{
	char at[PATH_MAX];
	struct statvfs vfs;
	struct stat st;
	char *slash;

	snprintf(at, sizeof at, "%s", path);
	if (stat(at, &st) < 0) {
		slash = strrchr(at, '/');
		if (!slash)
			return false;
		slash[slash == at] = 0;
	}
	if (stat(at, &st) < 0 || !S_ISDIR(st.st_mode) || statvfs(at, &vfs) < 0)
		return false;
	*ret_dev = st.st_dev;
	*ret_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	return true;
}

int
below_check_room(const struct conf *conf, char *err, size_t err_len)
{
	for (int i = 0; i < conf->store.disk_nr; i++) {
		char has[AMOUNT_TEXT], all[AMOUNT_TEXT];
		uint64_t wanted = 0, room, other;
		dev_t dev, its;
		int nr = 0;

		if (!find_room(conf->store.disks[i].path, &dev, &room))
			continue;
		for (int j = 0; j < conf->store.disk_nr; j++) {
			if (!find_room(conf->store.disks[j].path, &its, &other) || its != dev)
				continue;
			/* A store that is there has taken its room, in part. */
			if (!is_bare(conf->store.disks[j].path))
				return 0;
			wanted += conf->store.disks[j].size_bytes;
			nr++;
		}
		if (nr < 2 || wanted <= room)
			continue;
		snprintf(err, err_len,
			 "%s: the file system has room for %s, and the %d disks of store.disks on it want %s",
			 conf->store.disks[i].path, size_text(room, has), nr, size_text(wanted, all));
		return -ENOSPC;
	}
	return 0;
}

int
below_check_writable(const struct conf *conf, char *err, size_t err_len)
{
	for (int i = 0; i < conf->store.disk_nr; i++) {
		const char *path = conf->store.disks[i].path;
		char at[PATH_MAX];

		snprintf(at, sizeof at, "%s", path);
		if (access(at, F_OK) < 0 && errno == ENOENT && strrchr(at, '/'))
			*strrchr(at, '/') = 0;
		if (access(at[0] ? at : "/", W_OK) == 0 || errno == ENOENT)
			continue;
		snprintf(err, err_len, "%.300s: this user cannot write there: %s", path, strerror(errno));
		return -EROFS;
	}
	return 0;
}

/* ---- disks in directories of other disks ---- */

/* Returns true if a path leads, on one file system, into a directory. */
static bool
is_inside(const char *path, const struct stat *dir)
{
	char at[PATH_MAX], *slash;
	struct stat st, above;
	bool is_there;

	snprintf(at, sizeof at, "%s", path);
	while (at[0] && at[strlen(at) - 1] == '/')
		at[strlen(at) - 1] = 0;
	is_there = stat(at, &st) == 0;
	while ((slash = strrchr(at, '/')) != NULL && slash != at) {
		*slash = 0;
		if (stat(at, &above) < 0)
			continue;
		/* Something is mounted there. */
		if (is_there && above.st_dev != st.st_dev)
			return false;
		if (above.st_dev == dir->st_dev && above.st_ino == dir->st_ino)
			return true;
		st = above;
		is_there = true;
	}
	return false;
}

int
below_check_inside(const char *path, const char *other, char *err, size_t err_len)
{
	struct stat dir;

	if (stat(other, &dir) < 0 || !S_ISDIR(dir.st_mode) || !is_inside(path, &dir))
		return 0;
	snprintf(err, err_len,
		 "%.300s: is in the directory of another disk, %.300s, and would go with it: use a directory "
		 "beside it",
		 path, other);
	return -EINVAL;
}
