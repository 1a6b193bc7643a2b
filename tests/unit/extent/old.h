/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture's store, closed, as an earlier format version would have made it. */
#ifndef GANTRY_TESTS_STORE_OLD_H
#define GANTRY_TESTS_STORE_OLD_H

#include "fixture.h"
#include "tests/fixtures/old_super.h"

static inline void
path_of(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", dir, name);
}

/* The store becomes what that version would have made: both superblocks in one file, and no other. */
static inline void
make_old(uint32_t version)
{
	static uint8_t buf[2 * FMT_SUPER_BYTES];
	char path[256];
	struct super sb;
	int fd;

	read_super(&sb);
	for (int i = 0; i < 2; i++, sb.gen--)
		old_super_encode(buf + sb.gen % 2 * FMT_SUPER_BYTES, &sb, version, 0, 1);
	path_of(path, "super2");
	assert_int_equal(unlink(path), 0);
	path_of(path, "super");
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(pwrite(fd, buf, sizeof buf, 0), sizeof buf);
	close(fd);
}

#endif
