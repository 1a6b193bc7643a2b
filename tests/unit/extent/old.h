/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture's store, closed, with the number of an older format version. */
#ifndef GANTRY_TESTS_STORE_OLD_H
#define GANTRY_TESTS_STORE_OLD_H

#include "fixture.h"
#include "tests/fixtures/old_super.h"

static inline void
path_of(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", dir, name);
}

/* Gives both superblocks another format version; this program reads OLD_VERSION from then on. */
static inline void
make_old(uint32_t version)
{
	static uint8_t buf[FMT_SUPER_BYTES];
	char path[256];
	int fd;

	fmt_oldest = OLD_VERSION;
	for (int i = 0; i < 2; i++) {
		path_of(path, super_file[i]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, buf, sizeof buf, 0), sizeof buf);
		super_renumber(buf, version);
		assert_int_equal(pwrite(fd, buf, sizeof buf, 0), sizeof buf);
		close(fd);
	}
}

#endif
