/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons why a disk is refused, with a remedy; see disk.h. */
#include "extent/disk/disk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
disk_refuse(struct disk *d, int r, const char *fmt, ...)
{
	size_t n = (size_t)snprintf(d->why, sizeof d->why, "%s: ", d->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->why + n, sizeof d->why - n, fmt, ap);
	va_end(ap);
	return r;
}

const char *
disk_way_out(int error)
{
	switch (-error) {
	case EROFS:
		return "; mount the file system for writing";
	case EACCES:
	case EPERM:
		return "; the user that gantryd runs as needs to read and write it";
	case EBUSY:
		return "; another process has it, or it is mounted: stop that first";
	case EMFILE:
	case ENFILE:
		return "; raise LimitNOFILE= of the unit, or ulimit -n";
	case EINVAL:
		return "; the file system takes no direct I/O: use ext4 or XFS";
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return "; look whether the device is there";
	case EIO:
		return "; look at the kernel's log for what the device says";
	default:
		return "";
	}
}

int
disk_refuse_open(struct disk *d, const char *name, int error)
{
	return refuse(d->why, sizeof d->why, error, "%s: %s%s%s: %s%s", d->path,
		      error == -EBUSY ? "in use: cannot open" : "cannot open", name[0] ? " " : "", name,
		      strerror(-error), disk_way_out(error));
}
