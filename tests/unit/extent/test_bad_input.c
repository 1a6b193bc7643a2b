/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose files are not what they should be, because somebody copied, restored or swapped them: one line
 * says which and what to do, the error is one that the exit status follows from, and no byte has changed.
 */
/* In front of the fixture, whose names they use for others. */
#include "crumbs.h"

#include "fixture.h"
#include "extent/disk/format.h"
#include "tests/fake/remedies.h"

#include <sys/file.h>
#include <sys/xattr.h>

#define MARK "user.gantry.disk"

static char other[128]; /* the directory of a second store */
static bool no_xattr;   /* the file system takes none */

/* ---- attributes that the file system may not have ---- */

ssize_t
fgetxattr(int fd, const char *name, void *value, size_t size)
{
	char path[64];

	if (no_xattr) {
		errno = EOPNOTSUPP;
		return -1;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return getxattr(path, name, value, size);
}

int
fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	char path[64];

	if (no_xattr) {
		errno = EOPNOTSUPP;
		return -1;
	}
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return setxattr(path, name, value, size, flags);
}

/* ---- files ---- */

static void
path_in(char path[512], const char *in, const char *name)
{
	snprintf(path, 512, "%s/%s", in, name);
}

/* Bytes, size, time and mark of all files of the store, in one number. */
static uint64_t
sum_of_all(void)
{
	static uint8_t buf[1 << 20];
	DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t all = 0;

	while ((e = readdir(d))) {
		char path[512], mark[128] = "";
		struct stat sb;
		uint64_t sum;
		ssize_t n;
		int fd;

		if (e->d_name[0] == '.')
			continue;
		path_in(path, dir, e->d_name);
		fd = open(path, O_RDONLY);
		assert_true(fd >= 0 && fstat(fd, &sb) == 0);
		sum = crc64_nvme(0, e->d_name, strlen(e->d_name));
		sum = crc64_nvme(sum, &sb.st_size, sizeof sb.st_size);
		sum = crc64_nvme(sum, &sb.st_mtim, sizeof sb.st_mtim);
		n = getxattr(path, MARK, mark, sizeof mark);
		sum = crc64_nvme(sum, mark, n > 0 ? (size_t)n : 0);
		while ((n = read(fd, buf, sizeof buf)) > 0)
			sum = crc64_nvme(sum, buf, (size_t)n);
		close(fd);
		all += sum; /* names come in any order */
	}
	closedir(d);
	return all;
}

/* Copies a file, or part of it over the same part of another, with its mark if it is copied whole. */
static void
copy_part(const char *from, const char *to, uint64_t off, uint64_t len)
{
	static uint8_t buf[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | (len ? 0 : O_TRUNC), 0640);
	uint64_t end = len ? off + len : UINT64_MAX;
	char mark[128];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while (off < end &&
	       (n = pread(in, buf, end - off < sizeof buf ? end - off : sizeof buf, (off_t)off)) > 0) {
		assert_int_equal(pwrite(out, buf, (size_t)n, (off_t)off), n);
		off += (uint64_t)n;
	}
	close(in);
	close(out);
	n = len ? -1 : getxattr(from, MARK, mark, sizeof mark);
	if (n >= 0)
		setxattr(to, MARK, mark, (size_t)n, 0);
}

static void
copy(const char *from_dir, const char *from, const char *to_dir, const char *to)
{
	char a[512], b[512];

	path_in(a, from_dir, from);
	path_in(b, to_dir, to);
	copy_part(a, b, 0, 0);
}

static void
resize(const char *name, int64_t by)
{
	char path[512];
	struct stat sb;

	path_in(path, dir, name);
	assert_int_equal(stat(path, &sb), 0);
	assert_int_equal(truncate(path, sb.st_size + by), 0);
}

static bool
marks_work(void)
{
	return !no_xattr && setxattr(dir, "user.gantry.test", "", 0, 0) == 0;
}

/* ---- what is refused ---- */

static char said[8192];

static void
say(void *cookie, const char *line)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof said - n, "%s\n", line);
}

/* A start and a check end with that, say those words and the path in one line, and change nothing. */
static void
assert_refused(const struct store_conf *c, int error, const char *word, const char *todo)
{
	uint64_t before = sum_of_all();

	err[0] = said[0] = 0;
	assert_int_equal(store_start(c, &st, err, sizeof err), error);
	st = NULL;
	printf("%s\n", err);
	assert_non_null(strstr(err, dir));
	assert_non_null(strstr(err, word));
	assert_non_null(strstr(err, todo));
	assert_true(remedies_are_in_order(err));
	assert_int_equal(store_fsck(c, false, say, NULL), error);
	assert_non_null(strstr(said, word));
	assert_true(sum_of_all() == before);
}

static void
assert_starts(void)
{
	open_store();
	assert_int_equal(obj_check(&l, "b", "large", 3 * MIB, 2), 0);
	assert_int_equal(obj_check(&l, "b", "small", 100, 1), 0);
	close_store();
}

/* A store with two objects, closed; and a second one, with other ones. */
static int
setup(void **state)
{
	char path[128];

	no_xattr = false;
	if (make_store(96 * MIB) != 0 || put_simple(&l, "b", "x", 9 * MIB, 7) != 0)
		return -1;
	close_store();
	memcpy(path, dir, sizeof path);
	if (make_store(96 * MIB) != 0 || put_simple(&l, "b", "small", 100, 1) != 0 ||
	    put_simple(&l, "b", "large", 3 * MIB, 2) != 0)
		return -1;
	close_store();
	memcpy(other, path, sizeof other);
	return 0;
}

static int
teardown(void **state)
{
	dir_remove(other);
	return remove_store(state);
}

static void
test_segment_of_another(void **state)
{
	char path[512];

	if (!marks_work())
		skip(); /* nothing here says whose a segment is */
	copy(dir, "seg-0001", dir, "keep");
	copy(other, "seg-0001", dir, "seg-0001");
	assert_refused(&conf, -EINVAL, "seg-0001 does not belong there", "put back the right file");
	/* Nor in another's place. */
	copy(dir, "keep", dir, "seg-0001");
	copy(dir, "seg-0000", dir, "keep");
	copy(dir, "seg-0001", dir, "seg-0000");
	assert_refused(&conf, -EINVAL, "seg-0000 does not belong there", "put back the right file");
	copy(dir, "keep", dir, "seg-0000");
	copy(dir, "log", dir, "keep");
	copy(other, "log", dir, "log");
	assert_refused(&conf, -EINVAL, "log does not belong there", "put back the right file");
	copy(dir, "keep", dir, "log");
	path_in(path, dir, "keep");
	unlink(path);
	assert_starts();
}

/* One without a mark is accepted, and has one behind a start. */
static void
test_without_mark(void **state)
{
	char path[512], before[128] = "", after[128] = "";

	if (!marks_work())
		skip(); /* there are none */
	path_in(path, dir, "seg-0000");
	assert_true(getxattr(path, MARK, before, sizeof before - 1) > 0);
	assert_non_null(strstr(before, " seg-0000"));
	assert_int_equal(removexattr(path, MARK), 0);
	assert_int_equal(store_fsck(&conf, false, say, NULL), 0);
	assert_int_equal(getxattr(path, MARK, after, sizeof after - 1), -1);
	assert_starts();
	assert_true(getxattr(path, MARK, after, sizeof after - 1) > 0);
	assert_string_equal(before, after);
}

static void
test_no_attributes(void **state)
{
	no_xattr = true;
	assert_starts();
	assert_int_equal(store_format(&conf, true, err, sizeof err), 0);
	open_store();
	assert_int_equal(bucket_make(&l, "b"), 0);
	assert_int_equal(put_simple(&l, "b", "small", 100, 1), 0);
	assert_int_equal(put_simple(&l, "b", "large", 3 * MIB, 2), 0);
	close_store();
	assert_starts();
}

static void
test_segment_size(void **state)
{
	resize("seg-0000", 4096);
	assert_refused(&conf, -ENOTRECOVERABLE, "seg-0000 is damaged: it has", "put it back from a copy");
	resize("seg-0000", -8192);
	assert_refused(&conf, -ENOTRECOVERABLE, "seg-0000 is damaged: it has", "put it back from a copy");
	resize("seg-0000", 4096);
	resize("log", -4096);
	assert_refused(&conf, -ENOTRECOVERABLE, "log is damaged", "put it back from a copy");
}

static void
test_size_changed(void **state)
{
	struct store_disk_conf wrong = dc;
	struct store_conf c = conf;

	c.disks.disk = &wrong;
	wrong.size_bytes = 200 * MIB;
	assert_refused(&c, -EINVAL, "size is configured as 209715200", "set it to 100663296");
	wrong.size_bytes = 64 * MIB;
	assert_refused(&c, -EINVAL, "size is configured as 67108864", "set it to 100663296");
	assert_starts();
}

/* Copies a superblock of the other store over ours. */
static void
take_super(int i)
{
	char a[512], b[512];

	path_in(a, other, super_file[i]);
	path_in(b, dir, super_file[i]);
	copy_part(a, b, 0, FMT_SUPER_BYTES);
}

static void
test_superblocks(void **state)
{
	copy(dir, "super", dir, "keep");
	copy(dir, "super2", dir, "keep2");
	for (int i = 0; i < 2; i++) {
		take_super(i);
		assert_refused(&conf, -EINVAL, "of different disks", "put back");
		copy(dir, i ? "keep2" : "keep", dir, super_file[i]);
	}
	take_super(0);
	take_super(1);
	/* The log's mark tells it; without marks the host block. */
	assert_refused(&conf, -EINVAL, marks_work() ? "log does not belong there" : "are of two disks",
		       "put");
	no_xattr = true;
	assert_refused(&conf, -EINVAL, "are of two disks", "put back");
	no_xattr = false;
	copy(dir, "keep", dir, "super");
	copy(dir, "keep2", dir, "super2");
	assert_starts();
}

/* The log of a day before, of the same run of the daemon: it ends without a word where it was then. */
static void
test_older_log(void **state)
{
	char path[512];

	open_store();
	assert_int_equal(put_simple(&l, "b", "before", 100, 3), 0);
	wait_stamped(&l);
	copy(dir, "log", dir, "keep");
	assert_int_equal(put_simple(&l, "b", "behind", 5000, 4), 0);
	close_store();
	copy(dir, "log", dir, "newer");
	copy(dir, "keep", dir, "log");
	assert_refused(&conf, -ENOTRECOVERABLE, "older copy", "--fsck --repair");
	/* Put back, it is all there. */
	copy(dir, "newer", dir, "log");
	open_store();
	assert_int_equal(obj_check(&l, "b", "behind", 5000, 4), 0);
	close_store();
	/* There is no other: what is gone is said, and it starts, again and again. */
	copy(dir, "keep", dir, "log");
	assert_int_equal(store_fsck(&conf, true, say, NULL), 1);
	for (int i = 0; i < 2; i++) {
		open_store();
		assert_int_equal(obj_check(&l, "b", "before", 100, 3), 0);
		assert_int_equal(obj_check(&l, "b", "behind", 5000, 4), -ENOENT);
		close_store();
	}
	path_in(path, dir, "keep");
	unlink(path);
	path_in(path, dir, "newer");
	unlink(path);
}

/* Nobody else can have a file of a store that is open, those that were made since among them. */
static void
test_all_locked(void **state)
{
	struct dirent *e;
	int nr = 0, before = 0;
	DIR *d;

	for (int round = 0; round < 2; round++) {
		if (round == 0) {
			open_store();
		} else {
			before = nr;
			for (int i = 0; i < 6; i++)
				assert_int_equal(put_simple(&l, "b", i % 2 ? "x" : "y", 9 * MIB, 5), 0);
		}
		nr = 0;
		d = opendir(dir);
		while ((e = readdir(d))) {
			char path[512];
			int fd;

			path_in(path, dir, e->d_name);
			/* One that is being made may get its name just now. */
			fd = e->d_name[0] == '.' || strstr(e->d_name, ".new") ? -1 : open(path, O_RDONLY);
			if (fd < 0)
				continue;
			errno = 0;
			if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
				fail_msg("%s is not locked", e->d_name);
			close(fd);
			nr++;
		}
		closedir(d);
	}
	assert_true(nr > before && before >= 4);
	close_store();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		T(test_segment_of_another), T(test_without_mark), T(test_no_attributes), T(test_segment_size),
		T(test_size_changed),       T(test_superblocks),  T(test_older_log),     T(test_all_locked),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_bad_input", tests, NULL, NULL);
}
