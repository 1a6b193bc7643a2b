/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and locks the files of a disk, or its device; see disk.h. */
#include "extent/disk/disk.h"

#include "extent/disk/file.h"
#include "extent/disk/rules.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define LOCK_POLL_NS (20 * NS_PER_MS)

/* Waits a moment for the process that has a file, or (name NULL) the device, open. Returns false if
 * until_ns has passed. */
static bool
wait_more(const char *path, const char *name, uint64_t until_ns, bool *told)
{
	if (clock_ns() >= until_ns)
		return false;
	if (!*told)
		log_note("%s: waiting for the %s%s (another process, or a dead one's last writes)", path,
			 name ? "lock on " : "device", name ? name : "");
	*told = true;
	nanosleep(&(struct timespec){ .tv_nsec = LOCK_POLL_NS }, NULL);
	return true;
}

/* Takes the lock of an open file. Waits for the current holder until the time until_ns. */
static int
lock_file(struct disk *d, const char *name, int fd, uint64_t until_ns)
{
	bool told = false;
	int r;

	while ((r = file_lock(fd)) == -EWOULDBLOCK && wait_more(d->path, name, until_ns, &told))
		;
	if (r == -EWOULDBLOCK)
		return refuse(
			d->why, sizeof d->why, -EBUSY,
			"%s: in use: another process has %s locked, or a dead one's writes are not over "
			"(store.lock_wait); stop the other gantryd first",
			d->path, name);
	return r < 0 ? refuse(d->why, sizeof d->why, r,
			      "%s: cannot lock %s: %s; a file system without flock() cannot hold a store",
			      d->path, name, strerror(-r))
		     : 0;
}

int
disk_open_device(const char *path, uint64_t until_ns)
{
	bool told = false;
	int fd;

	/* Only one process can have the device open, and a dead process has it open until its last writes
	 * have ended. */
	while ((fd = file_open_device(path, false)) == -EBUSY && wait_more(path, NULL, until_ns, &told))
		;
	return fd;
}

/* Opens a file of the directory, or the device; for reading only, if it cannot be written and the disk is
 * only examined. */
static int
open_one(struct disk *d, const char *name, uint64_t until_ns)
{
	int fd = d->is_device ? disk_open_device(d->path, until_ns) : file_open(d->dir_fd, name, false),
	    e = fd;

	if (!d->is_examined || (fd != -EROFS && fd != -EACCES && fd != -EPERM))
		return fd;
	fd = d->is_device ? file_open_device(d->path, true) : file_peek(d->dir_fd, name);
	if (fd >= 0)
		d->read_only = e;
	return fd;
}

int
disk_open_locked(struct disk *d, const char *name, uint64_t until_ns, int *ret_fd)
{
	int fd = open_one(d, name, until_ns), e;

	if (fd == -ENOENT && !d->is_device)
		return refuse(d->why, sizeof d->why, -ENOENT, "%s: not a Gantry store (there is no %s)",
			      d->path, name);
	if (fd < 0)
		return disk_refuse_open(d, d->is_device ? "the device" : name, fd);
	*ret_fd = fd;
	/* With the rule off there is a single lock, like a lock file. */
	if (!RULE_LOCK_EVERY_FILE && strncmp(name, "super", 5) != 0)
		return 0;
	e = lock_file(d, name, fd, until_ns);
	/* Some file systems cannot lock a file that is open for reading only. */
	return e < 0 && e != -EBUSY && d->read_only ? 0 : e;
}
