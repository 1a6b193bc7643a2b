/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of several disks, each in a directory: disks that are damaged, foreign, copied, locked or not added, as their files tell, and the
 * report of fsck.  These are on files because superblocks, logs, locks, failed reads and what fsck reads of a disk are tested; set/test_mem_disks has all
 * else.
 */
#include "extent/disk/format.h"
#include "extent/engine.h" /* ahead of the rig, whose names it does not know */

#include "disks_rig.h"
#include "tests/fake/fault_ring.h"

/* A disk that opens and cannot be recovered counts as missing: nothing is written, or it is done without. */
static void
test_unrecoverable(void **state)
{
	static uint8_t zeros[65536];
	struct store_unit_info info;
	char path[256], name[32];
	struct store_key k;
	struct stat sb;
	int fd;

	begin(3);
	must_start();
	accept(2);
	assert_int_equal(make("b"), 0);
	stop();
	snprintf(path, sizeof path, "%s/log", dir[2]);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &sb) == 0);
	for (off_t at = 0; at < sb.st_size; at += (off_t)sizeof zeros)
		assert_true(pwrite(fd, zeros, sizeof zeros, at) == sizeof zeros);
	close(fd);
	must_refuse(-EINVAL, "the log ends at offset 0");
	conf.disks.accept_missing_nr = DISKS;
	must_start();
	store_unit_info(st, 2, &info);
	assert_true(info.state == UNIT_MISSING);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), i == 2 ? -ENODEV : 0);
	}
	stop();
	end();
}

static void
on_line(void *cookie, const char *line)
{
	char *to = cookie;

	snprintf(to + strlen(to), 4096 - strlen(to), "%s\n", line);
}

static void
must_say(const char *said, const char *text)
{
	if (!strstr(said, text))
		fail_msg("no \"%s\" in: %s", text, said);
}

/* --fsck reads all disks, names each by its path, and says what lies where the table does not have it. */
static void
test_fsck(void **state)
{
	struct store_send s;
	struct bufpool bufs;
	char name[32], said[4096] = "", text[1024];
	struct store_key k;

	begin(3);
	must_start();
	accept(1);
	assert_int_equal(make("b"), 0);
	for (int i = 0; i < 3; i++) {
		k = key_on(table(3), name, "b", i);
		assert_int_equal(put(&k), 0);
	}
	stop();
	assert_int_equal(store_fsck(&conf, false, on_line, said), 0);
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%s: 1 objects, 5 bytes read, 0 damaged", dir[i]);
		must_say(said, text);
	}
	assert_null(strstr(said, "leftovers"));
	/* on the second, what the first should have */
	must_start();
	k = key_on(table(3), name, "b", 0);
	assert_int_equal(bufpool_init_class(&bufs, BUF_LARGE, BUF_LARGE_BYTES, 0), 0);
	s = (struct store_send){ .key = k, .buf = bufpool_get(&bufs, BUF_LARGE) };
	assert_int_equal(STORE_DO(user, &s.op, engine(0)->ops->member->send(engine(0), engine(1), &s)), 0);
	bufpool_put(&bufs, s.buf);
	bufpool_fini(&bufs);
	stop();
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, false, on_line, said), 0);
	snprintf(text, sizeof text,
		 "%s: 1 records are of keys that the table of disks gives to another disk, 'b/%s'", dir[1],
		 name);
	must_say(said, text);
	/* without one: the others are read, and what a start would say is said */
	leave_out(1, 3);
	said[0] = 0;
	assert_int_equal(store_fsck(&conf, false, on_line, said), -EINVAL);
	must_say(said, ", of a store of 3 disks, is missing");
	snprintf(text, sizeof text, "%s: 1 objects", dir[2]);
	must_say(said, text);
	assert_int_equal(store_task(&conf, TASK_LOOK, err, sizeof err), -EINVAL);
	conf.disks.accept_missing_nr = DISKS;
	assert_int_equal(store_task(&conf, TASK_LOOK, err, sizeof err), 0);
	end();
}

/* However many are missing, the line ends with what to do. */
static void
test_many_missing(void **state)
{
	const char *end_few =
		"; last resort: gantryd --forget UUID, once for each of them, which gives them up for good";
	char text[UUID_TEXT], path[256];

	begin(6);
	must_start();
	for (int i = 0; i < 6; i++)
		accept(i);
	stop();
	use(1);
	must_refuse(-EINVAL, "; so are 2 more\nremedy: ");
	assert_non_null(strstr(err, " are lost; last resort: gantryd --forget "));
	assert_non_null(strstr(err, " ..., which gives up the disks for good"));
	use(1);
	conf.disks.accept_missing_nr = 6;
	must_refuse(-EINVAL, "only 1 of 6 disks are there");
	assert_non_null(strstr(err, " and 2 more\nremedy: "));
	assert_string_equal(err + strlen(err) - strlen(end_few), end_few);
	/* Two of them say who they are, and why they cannot be used. */
	all_again(6);
	for (int i = 1; i < 4; i++)
		disks[i].path = "/nonexistent";
	for (int i = 4; i < 6; i++) {
		snprintf(path, sizeof path, "%s/log", dir[i]);
		assert_int_equal(truncate(path, 4096), 0);
	}
	memset(accepted, 0, 4 * sizeof accepted[0]);
	conf.disks.accept_missing_nr = 6;
	must_refuse(-EINVAL, "is missing; disk ");
	assert_non_null(strstr(err, " (not there: /nonexistent: "));
	assert_null(strstr(err, "accept_missing"));
	disks[1].path = dir[1];
	disks[2].path = dir[2];
	disks[3].path = dir[3];
	memset(accepted[4], 0, UUID_BYTES);
	must_refuse(-EINVAL, ", of a store of 6 disks, is damaged (");
	snprintf(path, sizeof path, "(%s: log is damaged", dir[4]);
	assert_non_null(strstr(err, path));
	uuid_write(text, accepted[5]);
	assert_null(strstr(err, text));
	end();
}

static void
copy(const char *from, const char *to)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "cp -a %s/. %s/", from, to);
	assert_int_equal(system(cmd), 0);
}

static void
remove_files(const char *from)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "rm %s/*", from);
	assert_int_equal(system(cmd), 0);
}

/* Both superblocks say that a later version has written them. */
static void
make_newer(const char *path)
{
	static uint8_t sb[65536];
	uint64_t crc;

	for (int i = 0; i < 2; i++) {
		char name[256];
		int fd;

		snprintf(name, sizeof name, "%s/super%s", path, i ? "2" : "");
		fd = open(name, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, sb, sizeof sb) == sizeof sb);
		sb[8] = FMT_VERSION_MAX + 1;
		memset(sb + 16, 0, 8);
		crc = crc64_nvme(0, sb, sizeof sb);
		memcpy(sb + 16, &crc, 8);
		assert_true(pwrite(fd, sb, sizeof sb, 0) == sizeof sb);
		close(fd);
	}
}

static void
test_identity(void **state)
{
	struct store_conf other;

	begin(2);
	/* the same disk twice, by a copy */
	copy(dir[1], dir[2]);
	all_again(3);
	must_refuse(-EINVAL, "is a copy of the other");
	/* one of another store */
	disks[2] = (struct store_disk_conf){ .path = dir[3], .size_bytes = 64 * MIB };
	other = conf;
	other.disks.disk = &disks[2];
	other.disks.nr = 1;
	assert_int_equal(store_format(&other, false, err, sizeof err), 0);
	disks[2].size_bytes = 0;
	must_refuse(-EINVAL, "is of another store");
	/* swapped: the other one's in place of ours */
	disks[1] = disks[2];
	use(2);
	must_refuse(-EINVAL, "is of another store");
	/* one that somebody has */
	all_again(2);
	must_start();
	{
		struct store *second;

		conf.disks.lock_wait_ns = NS_PER_MS;
		assert_int_equal(store_start(&conf, &second, err, sizeof err), -EBUSY);
		conf.disks.lock_wait_ns = PATIENCE_NS;
	}
	stop();
	/* shorter than it was, which accepting that it is missing helps; of a later version, which nothing does */
	{
		char path[256];

		must_start();
		accept(0);
		accept(1);
		stop();
		snprintf(path, sizeof path, "%s/log", dir[1]);
		assert_int_equal(truncate(path, 4096), 0);
		must_refuse(-EINVAL, "log is damaged: it has 4096 bytes");
		make_newer(dir[1]);
		conf.disks.accept_missing_nr = 2;
		must_refuse(-EPROTONOSUPPORT, "made by another version of Gantry");
		conf.disks.accept_missing_nr = 0;
	}
	/* one that is not there; an empty directory in place of one: a file system that is not mounted */
	disks[1].path = "/nonexistent";
	must_refuse(-EINVAL, "is missing (/nonexistent: ");
	disks[1].path = dir[3];
	remove_files(dir[3]);
	must_refuse(-EINVAL, ": not a Gantry store (there is no super); is it mounted?)");
	assert_null(strstr(err, "--format"));
	end();
}

/* What nobody should make a store of: it stands in the configuration and was not added, or its adding was cut short. */
static void
test_not_added(void **state)
{
	struct store_birth birth = { .number = 2 };
	uint8_t uuid[UUID_BYTES] = { 7 };
	uint64_t size = 64 * MIB;
	struct store_conf c;

	begin(2);
	must_start();
	memcpy(birth.store_uuid, set_of(st)->members.store_uuid, UUID_BYTES);
	stop();
	all_again(3);
	disks[2].path = "/nonexistent";
	must_refuse(-ENOTRECOVERABLE,
		    "/nonexistent: there is no store here yet; all disks of the store, 2, "
		    "are others\nremedy: take /nonexistent off store.disks, and start again\n"
		    "remedy: gantryd --add /nonexistent ");
	disks[2].path = dir[2];
	must_refuse(-ENOTRECOVERABLE,
		    ": not a Gantry store (there is no super); all disks of the store, 2, are others");
	/* As the mover makes it, before any table has it. */
	birth.table.version = 1;
	birth.table.members = birth.table.in = 4;
	memcpy(birth.table.uuid[2], uuid, UUID_BYTES);
	memset(birth.table.home, 2, sizeof birth.table.home);
	memset(birth.table.first, 2, sizeof birth.table.first);
	memset(birth.table.second, TABLE_NO_DISK, sizeof birth.table.second);
	disks[2].size_bytes = size;
	c = set_engine_conf(&conf, 2);
	c.disks.birth = &birth;
	assert_int_equal(store_format(&c, false, err, sizeof err), 0);
	must_refuse(-EINVAL, "was being added, and has not become one of this store\nremedy: take ");
	assert_non_null(strstr(
		err, "\nNo object is lost, as the disk has never been one of this store; last resort: "));
	use(2);
	must_start();
	stop();
	end();
}

static _Atomic bool is_bad_log, is_bad_segment; /* of the second disk */

static int
hook(const struct fault_io *io)
{
	if (strncmp(io->path, dir[1], strlen(dir[1])) != 0)
		return 0;
	return (is_bad_log && io->kind == FAULT_WRITE && strncmp(io->name, "log", 3) == 0) ||
			       (is_bad_segment && io->kind == FAULT_READ && strncmp(io->name, "seg", 3) == 0)
		       ? -EIO
		       : 0;
}

static int
put_large(const struct store_key *k)
{
	static _Alignas(4096) char bytes[131072 + BUF_SLACK_BYTES];
	struct buf b = { .mem = bytes, .cap_bytes = 131072 };
	struct store_commit c = { .last = &b, .last_len = 100000 };
	struct store_put op;
	int r = store_put_init(store_user_port(user, 0), &op, k, 100000);

	if (r == 0)
		r = STORE_DO(user, &op.op, store_put_commit(store_user_port(user, 0), &op, &c));
	store_put_abort(store_user_port(user, 0), &op);
	return r;
}

static int
read_some(const struct store_key *k)
{
	static _Alignas(4096) char bytes[STORE_GRANULE + BUF_SLACK_BYTES];
	struct buf b = { .mem = bytes, .cap_bytes = STORE_GRANULE };
	struct store_read rd;
	struct store_obj o;
	int r = STORE_DO(user, &o.op, store_open(store_user_port(user, 0), k, &o));

	if (r == 0)
		r = STORE_DO(user, &rd.op,
			     store_read(store_user_port(user, 0), &o, &rd, &b, 0, STORE_GRANULE));
	store_close(store_user_port(user, 0), &o);
	return r;
}

/* A read that fails is an error of the object while the disk works, and of the disk after the disk has failed. */
static void
test_unreadable(void **state)
{
	char name[32];
	struct store_key k;
	int r;

	fault_ring_hook = hook;
	begin(3);
	must_start();
	assert_int_equal(make("b"), 0);
	k = key_on(table(3), name, "b", 1);
	assert_int_equal(put_large(&k), 0);
	assert_int_equal(read_some(&k), STORE_GRANULE);
	is_bad_segment = true;
	assert_int_equal(read_some(&k), -EIO);
	is_bad_segment = false;
	is_bad_log = true;
	r = put(&k);
	assert_true(r == -ECANCELED || r == -EROFS);
	assert_int_equal(put(&k), -EROFS);
	assert_int_equal(read_some(&k), STORE_GRANULE);
	is_bad_segment = true;
	assert_int_equal(read_some(&k), -ENODEV);
	assert_int_equal(look(&k), 0);
	assert_int_equal(list("b"), 1);
	is_bad_segment = is_bad_log = false;
	stop();
	end();
	fault_ring_hook = NULL;
}

/* A disk beside much larger ones has as much of the index as it needs to begin. */
static void
test_small_share(void **state)
{
	assert_int_equal(set_share_of(64 * MIB, 64 * MIB, 64 * 1024 * MIB), 4 * MIB);
	assert_int_equal(set_share_of(64 * MIB, 512 * MIB, 1024 * MIB), 32 * MIB);
	assert_int_equal(set_share_of(2 * MIB, 64 * MIB, 64 * 1024 * MIB), 2 * MIB);
	assert_int_equal(set_share_of(64 * MIB, 64 * MIB, 0), 64 * MIB);
	begin(3);
	conf.disks.index_bytes = 8 * MIB;
	must_start();
	stop();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unrecoverable), cmocka_unit_test(test_identity),
		cmocka_unit_test(test_not_added),     cmocka_unit_test(test_small_share),
		cmocka_unit_test(test_fsck),          cmocka_unit_test(test_many_missing),
		cmocka_unit_test(test_unreadable),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_disks", tests, NULL, NULL);
}
