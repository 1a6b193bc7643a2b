/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one start leaves to the next: numbers that never come again, one snapshot to read, and a superblock of which
 * the one before does as well.
 */
/* In front of the fixture, whose names they use for others. */
#include "extent/engine.h"

#include "fixture.h"

#include "tests/fake/fault_ring.h"

static struct super sb;
static _Atomic uint64_t read_bytes; /* of segments */

static int
count_reads(const struct fault_io *io)
{
	if (io->kind == FAULT_READ && strncmp(io->name, "seg-", 4) == 0)
		atomic_fetch_add(&read_bytes, io->len);
	return 0;
}

static int
setup(void **state)
{
	fault_ring_hook = count_reads;
	return make_store(100 * MIB);
}

/* Objects that have no bytes outside of the log and of snapshots. */
static void
put_records(int nr)
{
	static char attrs[4000];
	char name[32];

	for (int i = 0; i < nr; i++) {
		struct put_args a = { .bucket = "b", .key = name, .size = 8, .attrs = attrs };

		a.attrs_len = sizeof attrs;
		snprintf(name, sizeof name, "k%d", i);
		assert_int_equal(obj_put(&l, &a), 0);
	}
}

static void
records_are_there(int nr)
{
	char name[32];

	for (int i = 0; i < nr; i++) {
		snprintf(name, sizeof name, "k%d", i);
		assert_int_equal(obj_check(&l, "b", name, 8, 0), 0);
	}
}

/* ---- numbers ---- */

static uint64_t
start_no_of_upload(void)
{
	struct store_upload u;
	struct store_key k = key_of("b", "up");
	uint64_t no = 0;

	op_arm(&u.op, l.p);
	assert_int_equal(store_upload_create(l.p, &k, "", 0, &u), 0);
	assert_int_equal(op_wait(&l, &u.op), 0);
	for (int i = 0; i < 8; i++)
		no = no << 8 | u.id[i];
	/* Before there were numbers of starts the first bit was 0. */
	assert_true(no >> 63 == 1);
	return no & ~((uint64_t)1 << 63);
}

static uint64_t
start_no_of_version(void)
{
	struct put_args a = { .bucket = "b", .key = "v", .size = 8 };

	assert_int_equal(obj_put(&l, &a), 0);
	return a.ret_version >> FMT_COUNTER_BITS;
}

/* Versions and ids have the number of the start that made them, which the superblock has before. */
static void
test_numbers(void **state)
{
	uint64_t no = 0;
	bool differ = false;

	for (int i = 0; i < 4; i++) {
		read_super(&sb);
		assert_true(i == 0 || sb.start_no == no + 1);
		no = sb.start_no;
		assert_true(start_no_of_version() == no);
		assert_true(start_no_of_upload() == no);
		if (i == 2) {
			make_snapshot();
			make_snapshot();
		}
		close_store();
		open_store();
	}
	/* The newest superblock is lost: the one before need not know of the last start. */
	close_store();
	flip_bit(super_file[read_super(&sb)], 200);
	no = sb.start_no;
	open_store();
	assert_true(start_no_of_version() > no + 100);
	read_super(&sb);
	assert_true(sb.start_no > no + 100);
	/* By chance, not by a thousand each time: two disks that have lost one, one after the other, do not come to the same. */
	for (int i = 0; i < 4; i++) {
		close_store();
		flip_bit(super_file[read_super(&sb)], 200);
		no = sb.start_no;
		open_store();
		read_super(&sb);
		differ |= sb.start_no - no > 1010;
	}
	assert_true(differ);
}

/* ---- snapshots ---- */

/* The newest says where the one before lies: that one is not read. */
static void
test_one_is_read(void **state)
{
	put_records(200);
	make_snapshot();
	put_records(200);
	make_snapshot();
	close_store();
	read_super(&sb);
	assert_true(sb.snap[0].bytes > MIB / 2 && sb.snap[1].bytes > MIB / 2);
	for (int i = 0; i < 2; i++) {
		atomic_store(&read_bytes, 0);
		open_store();
		printf("snapshots of %llu and %llu bytes; the start has read %llu\n",
		       (unsigned long long)sb.snap[0].bytes, (unsigned long long)sb.snap[1].bytes,
		       (unsigned long long)atomic_load(&read_bytes));
		assert_true(atomic_load(&read_bytes) == sb.snap[0].bytes);
		records_are_there(200);
		close_store();
	}
	/* What lies where is known all the same: two more take its place, and nothing is in the way. */
	open_store();
	make_snapshot();
	make_snapshot();
	close_store();
	assert_int_equal(store_fsck(&conf, false, NULL, NULL), 0);
	/* Where it is not certain that the older one is still there, it is looked at. */
	flip_bit(super_file[read_super(&sb)], 200);
	read_super(&sb);
	atomic_store(&read_bytes, 0);
	open_store();
	assert_true(atomic_load(&read_bytes) > sb.snap[0].bytes);
	records_are_there(200);
}

/* ---- superblocks ---- */

/* The newest superblock is lost, after laps of the log, and the space of snapshots was used again. */
static void
test_older_super(void **state)
{
	uint64_t s = seed_from_env();
	char key[32];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 100; i++) {
			uint64_t k = round == 0 ? (uint64_t)i : rnd(&s) % 100;

			snprintf(key, sizeof key, "d%llu", (unsigned long long)k);
			assert_int_equal(put_simple(&l, "b", key, 20000 + k * 1000, k), 0);
		}
		/* A lap of a log of 4 MiB. */
		put_records(550);
		close_store();
		flip_bit(super_file[read_super(&sb)], 300);
		assert_true(sb.snap[0].id > 2 && sb.snap[0].begin.lap >= (unsigned)round);
		open_store();
		records_are_there(550);
		for (int i = 0; i < 100; i++) {
			snprintf(key, sizeof key, "d%d", i);
			assert_int_equal(obj_check(&l, "b", key, 20000 + (uint64_t)i * 1000, (uint64_t)i), 0);
		}
	}
}

/* ---- expiry ---- */

/* Returns the version in one of the superblocks. */
static uint32_t
version_at(int copy)
{
	char path[256];
	uint32_t version = 0;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, super_names[copy]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && pread(fd, &version, sizeof version, 8) == sizeof version);
	close(fd);
	return version;
}

#define EXPIRES_NS 4234567890123456789 /* in the year 2104 */

/* Gives the record of that object, in a block of the log, an expiry; nothing does it yet. */
static bool
expire_in(uint8_t *buf, const struct block_head *h, const char *key)
{
	uint32_t at = BLOCK_HEAD_BYTES;

	for (uint32_t i = 0; i < h->record_nr; i++) {
		struct rec_view v;
		int n = rec_decode(buf + at, h->used_bytes - at, &sb.geo, &v);
		uint8_t again[1024];

		assert_true(n > 0);
		if (v.key_len > strlen(key) &&
		    memcmp(v.key + v.key_len - strlen(key), key, strlen(key)) == 0) {
			v.flags |= REC_EXPIRES;
			v.expires_ns = EXPIRES_NS;
			assert_true((size_t)n <= sizeof again && rec_encode(again, &v) == (size_t)n);
			memcpy(buf + at, again, (size_t)n);
			return true;
		}
		at += (uint32_t)n;
	}
	return false;
}

/* Writes the log once more from the newest snapshot on: each block says what the one before became. */
static void
expire(const char *key)
{
	static _Alignas(4096) uint8_t buf[FMT_BLOCK_MAX];
	struct log_pos at;
	struct block_head h;
	bool done = false;
	uint64_t crc;
	char path[256];
	int fd;

	read_super(&sb);
	at = sb.snap[0].begin;
	crc = at.prev_crc;
	snprintf(path, sizeof path, "%s/log", dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	while (pread(fd, buf, sb.geo.block_bytes, (off_t)at.pos) > 0 &&
	       block_open(buf, sb.geo.block_bytes, at.nonce, &h) == 0 && h.seq == at.seq) {
		done |= expire_in(buf, &h, key);
		h.prev_crc = crc;
		block_seal(buf, &h, at.nonce);
		crc = h.crc64;
		assert_int_equal(pwrite(fd, buf, h.len_bytes, (off_t)at.pos), h.len_bytes);
		block_advance(&at, &sb.geo, &h);
	}
	assert_true(done && fsync(fd) == 0);
	close(fd);
}

static uint64_t
expiry_of(const char *name)
{
	struct store_key k = key_of("b", name);
	uint8_t key[KEY_BYTES_MAX];
	int n = key_object(key, &k);
	const struct rec *r = tree_find(extent_store(st)->vol->tree, key, (size_t)n);

	struct rec_view v;

	assert_non_null(r);
	rec_view_of(r, key, (size_t)n, &v);
	return v.expires_ns;
}

/* What the log says of it is kept: by replay, by snapshots, and when an object gets other attributes. */
static void
test_expiry(void **state)
{
	struct store_key k = key_of("b", "soon");
	struct store_del op;

	assert_int_equal(put_simple(&l, "b", "soon", 50000, 1), 0);
	assert_int_equal(put_simple(&l, "b", "never", 50000, 2), 0);
	close_store();
	expire("soon");
	for (int i = 0; i < 4; i++) {
		open_store();
		assert_true(expiry_of("soon") == EXPIRES_NS);
		assert_true(expiry_of("never") == 0);
		assert_int_equal(obj_check(&l, "b", "soon", 50000, 1), 0);
		if (i == 0)
			make_snapshot();
		if (i == 1) {
			op_arm(&op.op, l.p);
			assert_int_equal(store_set_attrs(l.p, &k, 0, "other", 5, &op), 0);
			assert_int_equal(op_wait(&l, &op.op), 0);
			assert_true(expiry_of("soon") == EXPIRES_NS);
		}
		if (i == 2)
			make_snapshot();
		close_store();
	}
}

/* The first object with an expiry gives both superblocks version 5, which a daemon that knows 4 refuses. */
static void
test_expiry_version(void **state)
{
	struct store_key k = key_of("b", "ttl");
	struct store_commit sc = { .inline_data = "abc", .inline_len = 3 };
	struct store_put put;

	assert_int_equal(put_simple(&l, "b", "plain", 50000, 1), 0);
	close_store();
	open_store();
	assert_true(store_had_no_expiry(st));
	for (int i = 0; i < 2; i++) {
		for (int copy = 0; copy < 2; copy++)
			assert_int_equal(version_at(copy), i ? 5 : FMT_VERSION);
		assert_int_equal(store_put_init(l.p, &put, &k, 3), 0);
		sc.meta.expires_ns = i ? 0 : EXPIRES_NS;
		op_arm(&put.op, l.p);
		assert_int_equal(store_put_commit(l.p, &put, &sc), 0);
		assert_int_equal(op_wait(&l, &put.op), 0);
	}
	/* The version stays when the object is gone, and over starts. */
	for (int i = 0; i < 2; i++) {
		close_store();
		open_store();
		for (int copy = 0; copy < 2; copy++)
			assert_int_equal(version_at(copy), 5);
		assert_false(store_had_no_expiry(st));
	}
}

/* ---- room for them in the log ---- */

static _Atomic bool segments_fail;

/* Skips flushes, as a disk with a battery does, since flushes are not tested here. Writes of segments fail on request. */
static int
skip_flushes(const struct fault_io *io)
{
	if (segments_fail && io->kind == FAULT_WRITE && strncmp(io->name, "seg-", 4) == 0)
		return -EIO;
	return io->kind == FAULT_FLUSH ? FAULT_LIE : 0;
}

/* Starts that never get to serve do not fill the log for ever. */
static void
test_many_starts(void **state)
{
	uint64_t left;

	fault_ring_hook = skip_flushes;
	put_records(1);
	while (disk_number("log_used_bytes") < disk_number("log_bytes") / 2)
		put_records(10);
	left = disk_number("log_bytes") - disk_number("log_used_bytes");
	close_store();
	/* Each writes a block. */
	for (uint64_t i = 0; i < left / FMT_ALIGN + 20; i++) {
		if (store_start(&conf, &st, err, sizeof err) < 0)
			fail_msg("start %llu: %s", (unsigned long long)i, err);
		store_stop(st);
		st = NULL;
	}
	open_store();
	records_are_there(1);
	put_records(1);
}

static void
drop_line(enum log_level level, const char *text)
{
	(void)level;
	(void)text;
}

/* Starts that end after the block of their epoch, since no snapshot can be written, do not overwrite the log that
 * the next start reads. */
static void
test_starts_without_snapshots(void **state)
{
	unsigned refused = 0;
	uint64_t left;

	fault_ring_hook = skip_flushes;
	put_records(1);
	while (disk_number("log_used_bytes") < disk_number("log_bytes") / 2)
		put_records(10);
	left = disk_number("log_bytes") - disk_number("log_used_bytes");
	close_store();
	segments_fail = true;
	log_set_sink(drop_line); /* an error of each start */
	for (uint64_t i = 0; i < left / FMT_ALIGN + 20; i++) {
		if (store_start(&conf, &st, err, sizeof err) < 0)
			refused++;
		else
			store_stop(st);
		st = NULL;
	}
	segments_fail = false;
	log_set_sink(NULL);
	assert_true(refused > 20);
	open_store();
	records_are_there(1);
	put_records(1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_one_is_read, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_older_super, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_expiry, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_expiry_version, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_many_starts, setup, remove_store),
		cmocka_unit_test_setup_teardown(test_starts_without_snapshots, setup, remove_store),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_starts", tests, NULL, NULL);
}
