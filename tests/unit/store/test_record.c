/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a store outside of its disks: written and read again, damaged in every byte, and a write that cannot be. */
#include "store/record.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], file[96];
static struct store_record record, again;

static int
setup(void **state)
{
	uint8_t uuid[UUID_BYTES] = { 1 };

	snprintf(dir, sizeof dir, "/tmp/gantry-record-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/store", dir);
	memset(&record, 0, sizeof record);
	memset(record.store_uuid, 0xab, UUID_BYTES);
	assert_int_equal(record_add(&record, uuid, (uint64_t)1 << 40, "/srv/a disk"), 0);
	uuid[0]++;
	assert_int_equal(record_add(&record, uuid, 0, "relative"), 0);
	uuid[0]++;
	assert_int_equal(record_add(&record, uuid, 5, "/with\na line"), 0);
	return 0;
}

static int
teardown(void **state)
{
	unlink(file);
	assert_int_equal(rmdir(dir), 0); /* no other file is left */
	return 0;
}

static void
test_again(void **state)
{
	char err[256] = "";

	assert_int_equal(record_read(file, &again, err, sizeof err), -ENOENT);
	assert_int_equal(record_write(file, &record, "of a test", err, sizeof err), 0);
	assert_int_equal(record_read(file, &again, err, sizeof err), 0);
	assert_memory_equal(&again, &record, sizeof record);
	assert_string_equal(again.disk[0].path, "/srv/a disk");
	/* No path that a line cannot have, or that means another thing in another directory. */
	assert_string_equal(again.disk[1].path, "");
	assert_string_equal(again.disk[2].path, "");
	assert_ptr_equal(record_find(&again, record.disk[2].uuid), &again.disk[2]);
	assert_null(record_find(&again, record.store_uuid));
	record.nr = 1;
	assert_int_equal(record_write(file, &record, "again", err, sizeof err), 0);
	assert_int_equal(record_read(file, &again, err, sizeof err), 0);
	assert_int_equal(again.nr, 1);
}

/* A record that is cut at any byte is damaged, or is the whole one; it is never one with fewer disks. */
static void
test_cut(void **state)
{
	char *text = NULL, err[256];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	record_print(&record, "of a test", f);
	fclose(f);
	for (size_t i = 0; i < len; i++) {
		err[0] = 0;
		assert_int_equal(record_parse(text, i, &again, err, sizeof err), -EBADMSG);
		assert_true(err[0] != 0);
	}
	assert_int_equal(record_parse(text, len, &again, err, sizeof err), 0);
	free(text);
}

static void
test_refused(void **state)
{
	char err[256] = "", below[128];
	FILE *f;

	/* The former record is there after a write that fails. */
	assert_int_equal(record_write(file, &record, "", err, sizeof err), 0);
	snprintf(below, sizeof below, "%s/none/store", dir);
	assert_int_equal(record_write(below, &record, "", err, sizeof err), -ENOENT);
	assert_non_null(strstr(err, below));
	snprintf(below, sizeof below, "%s/store", file);
	assert_int_equal(record_write(below, &record, "", err, sizeof err), -ENOTDIR);
	assert_int_equal(record_read(below, &again, err, sizeof err), -ENOTDIR);
	assert_int_equal(record_read(file, &again, err, sizeof err), 0);
	/* Damage names the file and the line. */
	f = fopen(file, "w");
	fputs("gantry-store 1\nstore nonsense\nend\n", f);
	fclose(f);
	assert_int_equal(record_read(file, &again, err, sizeof err), -EBADMSG);
	assert_non_null(strstr(err, file));
	assert_non_null(strstr(err, "line 2 has no UUID of a store"));
	assert_int_equal(record_read(dir, &again, err, sizeof err), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
