/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of control groups, over a tree of files as the kernel shows them. */
#include "conf/conf_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <cmocka.h>

static char root[64];

/* Writes a file below root, and makes the directories above it. */
static void
put(const char *path, const char *text)
{
	char name[512];
	FILE *f;

	snprintf(name, sizeof name, "%s%s", root, path);
	for (char *p = strchr(name + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(name, 0700);
		*p = '/';
	}
	f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
setup(void **state)
{
	strcpy(root, "/tmp/gantry-cgroup.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int
teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

static void
test_none(void **state)
{
	assert_true(cgroup_memory_bytes(root) == UINT64_MAX);
	put("/proc/self/cgroup", "0::/\nnonsense\n:\n1:\n");
	put("/proc/self/mountinfo",
	    "nonsense\n1 2 3 - \n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_true(cgroup_memory_bytes(root) == UINT64_MAX);
	put("/sys/fs/cgroup/memory.max", "max\n");
	assert_true(cgroup_memory_bytes(root) == UINT64_MAX);
}

static void
test_v2(void **state)
{
	put("/proc/self/cgroup", "0::/system.slice/gantryd.service\n");
	put("/proc/self/mountinfo",
	    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
	put("/sys/fs/cgroup/system.slice/gantryd.service/memory.max", "max\n");
	put("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
	assert_true(cgroup_memory_bytes(root) == 1073741824);
	put("/sys/fs/cgroup/system.slice/gantryd.service/memory.max", "209715200\n");
	assert_true(cgroup_memory_bytes(root) == 209715200);
	/* A container's own root. */
	put("/proc/self/cgroup", "0::/\n");
	put("/sys/fs/cgroup/memory.max", "524288000\n");
	assert_true(cgroup_memory_bytes(root) == 524288000);
}

static void
test_v1(void **state)
{
	put("/proc/self/cgroup", "9:name=systemd:/docker/abc\n4:cpuset,memory:/docker/abc\n3:cpu:/x\n0::/\n");
	put("/proc/self/mountinfo",
	    "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	    "34 30 0:31 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,cpuset,memory\n"
	    "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
	/* Other controllers' files are no limit of memory. */
	put("/sys/fs/cgroup/cpu/docker/abc/memory.limit_in_bytes", "1\n");
	assert_true(cgroup_memory_bytes(root) == 209715200);
	/* The mount shows all groups: the ones above count. */
	put("/proc/self/mountinfo",
	    "34 30 0:31 / /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "104857600\n");
	put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "209715200\n");
	assert_true(cgroup_memory_bytes(root) == 104857600);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v1, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
