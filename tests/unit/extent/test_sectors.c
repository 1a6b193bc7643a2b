/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sector that cannot be read any more, anywhere, while a store starts: it starts wherever there is a second
 * copy or nothing was ever believed there; else it says so, and --fsck --repair makes it start.
 */
#include "extent/engine.h" /* ahead of the fixture, whose names it does not know */

#include "crumbs.h"
#include "fixture.h"
#include "tests/fake/fault_ring.h"

static char bad_name[32]; /* "": none */
static uint64_t bad_off;
static char said[8192];
static struct super sb;

static _Atomic bool is_cut_off; /* what is written is never there */

static int
hook(const struct fault_io *io)
{
	if (is_cut_off && io->kind != FAULT_READ)
		return FAULT_LIE;
	if (!bad_name[0] || strcmp(io->name, bad_name) != 0 || io->off >= bad_off + FMT_ALIGN ||
	    bad_off >= io->off + io->len)
		return 0;
	/* Written, it is good again. */
	if (io->kind == FAULT_WRITE)
		bad_name[0] = 0;
	return io->kind == FAULT_READ ? -EIO : 0;
}

static void
bad(const char *name, uint64_t off)
{
	snprintf(bad_name, sizeof bad_name, "%s", name);
	bad_off = off;
}

static void
say(void *cookie, const char *line)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static int
setup(void **state)
{
	char name[32];
	int r;

	bad_name[0] = said[0] = 0;
	is_cut_off = false;
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	for (int i = 0; r == 0 && i < 20; i++) {
		snprintf(name, sizeof name, "k%d", i);
		r = put_simple(&l, "b", name, 3000 + (uint64_t)i * 5000, (uint64_t)i);
		if (i == 10 || i == 15)
			make_snapshot();
	}
	close_store();
	read_super(&sb);
	return r;
}

static int
teardown(void **state)
{
	bad_name[0] = 0;
	return remove_store(state);
}

static void
is_whole(int nr)
{
	char name[32];

	for (int i = 0; i < nr; i++) {
		snprintf(name, sizeof name, "k%d", i);
		assert_int_equal(obj_check(&l, "b", name, 3000 + (uint64_t)i * 5000, (uint64_t)i), 0);
	}
	assert_int_equal(put_simple(&l, "b", "after", 100000, 1), 0);
}

static void
bad_unit(uint64_t ext)
{
	uint64_t per_seg = geo_seg_units(&sb.geo);
	char name[32];

	snprintf(name, sizeof name, "seg-%04u", (unsigned)(ext_unit(ext) / per_seg));
	bad(name, ext_unit(ext) % per_seg * sb.geo.unit_bytes);
}

/* Of each there are two, or nothing was ever written there. */
static void
test_starts(void **state)
{
	for (int i = 0; i < 7; i++) {
		read_super(&sb);
		switch (i) {
		case 0:
		case 1:
			bad(super_file[i], 0);
			break;
		case 2:
		case 3:
			assert_true(sb.snap[i - 2].block_nr > 0);
			bad_unit(sb.snap[i - 2].head_ext);
			break;
		case 4:
			bad("log", sb.geo.log_bytes - FMT_ALIGN);
			break;
		case 5:
			bad("log", 3 * MIB);
			break;
		case 6: /* before the older snapshot */
			assert_true(sb.snap[1].begin.pos > 0);
			bad("log", 0);
			break;
		}
		open_store();
		/* A bad sector of the log is written before any request is served. */
		assert_true(i < 4 || !bad_name[0]);
		is_whole(20);
		/* There are two snapshots again, and then it is the next one's turn. */
		make_snapshot();
		make_snapshot();
		close_store();
		bad_name[0] = 0;
	}
}

/* What was written behind the newest snapshot is there once. */
static void
test_log(void **state)
{
	bad("log", sb.snap[0].begin.pos);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
		assert_non_null(strstr(err, dir));
		assert_non_null(strstr(err, "/log at "));
		assert_non_null(strstr(err, "was there"));
		assert_non_null(strstr(err, "--fsck --repair"));
	}
	assert_int_equal(store_fsck(&conf, true, say, NULL), 1);
	assert_non_null(strstr(said, "drops the writing of 'b/k19'"));
	open_store();
	is_whole(16);
	assert_int_equal(obj_check(&l, "b", "k19", 3000 + (uint64_t)19 * 5000, 19), -ENOENT);
}

/* ---- the end of a store that was killed ---- */

static const char *const kept_name[] = { "super", "super2", "host", "log" };
#define KEPT_NR 4
static char *kept[KEPT_NR];
static size_t kept_bytes[KEPT_NR];

/* Of the segments what holds something: of the snapshots' blocks, whose ends may be empty, all. */
#define KEPT_PIECES 16
static struct {
	unsigned seg;
	uint64_t off;
	char bytes[MIB];
} kept_piece[KEPT_PIECES];
static unsigned kept_pieces;

static int
open_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int
open_seg(unsigned seg)
{
	char name[32];

	disk_seg_name(name, seg);
	return open_file(name);
}

static bool
is_zero(const char *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

static void
keep_files(void)
{
	int fd;

	for (int i = 0; i < KEPT_NR; i++) {
		fd = open_file(kept_name[i]);
		assert_true(fd >= 0);
		kept_bytes[i] = (size_t)lseek(fd, 0, SEEK_END);
		kept[i] = realloc(kept[i], kept_bytes[i]);
		assert_non_null(kept[i]);
		assert_int_equal(pread(fd, kept[i], kept_bytes[i], 0), kept_bytes[i]);
		close(fd);
	}
	kept_pieces = 0;
	for (unsigned seg = 0; (fd = open_seg(seg)) >= 0; seg++) {
		static char piece[MIB];

		for (uint64_t off = 0; pread(fd, piece, MIB, (off_t)off) == MIB; off += MIB) {
			if (is_zero(piece, MIB))
				continue;
			assert_true(kept_pieces < KEPT_PIECES);
			kept_piece[kept_pieces].seg = seg;
			kept_piece[kept_pieces].off = off;
			memcpy(kept_piece[kept_pieces++].bytes, piece, MIB);
		}
		close(fd);
	}
}

static void
put_files_back(void)
{
	int fd;

	for (int i = 0; i < KEPT_NR; i++) {
		fd = open_file(kept_name[i]);
		assert_int_equal(pwrite(fd, kept[i], kept_bytes[i], 0), kept_bytes[i]);
		close(fd);
	}
	for (unsigned i = 0; i < kept_pieces; i++) {
		fd = open_seg(kept_piece[i].seg);
		assert_int_equal(pwrite(fd, kept_piece[i].bytes, MIB, (off_t)kept_piece[i].off), MIB);
		close(fd);
	}
}

/* At rest: where the next block comes. */
static uint64_t
log_end(void)
{
	loop_for(&l, 50 * NS_PER_MS);
	return extent_store(st)->vol->leader.next.pos;
}

/* The block that is expected cannot be read.  Where the disk was closed behind the one before it there is none;
 * where it was not it may have been there, and been acknowledged. */
static void
test_end(void **state)
{
	uint64_t end;

	open_store();
	assert_int_equal(put_simple(&l, "b", "last", 70000, 7), 0);
	end = log_end();
	keep_files();
	close_store();
	bad("log", end);
	open_store();
	is_whole(20);
	assert_int_equal(bad_name[0], 0); /* it was written, before anybody was served */
	close_store();

	put_files_back();
	bad("log", end);
	assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
	assert_non_null(strstr(err, "/log at "));
	assert_non_null(strstr(err, "may have been there"));
	assert_non_null(strstr(err, "--fsck --repair"));
	assert_int_equal(store_fsck(&conf, false, say, NULL), -EIO);
	assert_int_equal(store_fsck(&conf, true, say, NULL), 1);
	assert_non_null(strstr(said, "if it was there"));
	open_store();
	is_whole(20);
	assert_int_equal(obj_check(&l, "b", "last", 70000, 7), 0);
	close_store();

	/* A page behind its first: what is there is another block, if it is one. */
	put_files_back();
	bad("log", end + FMT_ALIGN);
	open_store();
	assert_int_equal(bad_name[0], 0);
	is_whole(20);
}

/* ---- maps ---- */

#define MAPPED_BYTES (3 * MIB)

static void
test_map(void **state)
{
	uint8_t bytes[KEY_BYTES_MAX];
	struct store_key k = key_of("b", "mapped");
	struct map_ref map;

	open_store();
	make_crumbs(&l);
	assert_int_equal(put_simple(&l, "b", "mapped", MAPPED_BYTES, 1), 0);
	assert_true(
		rec_map(tree_get(extent_store(st)->vol->tree, bytes, (size_t)key_object(bytes, &k)), &map));
	bad_unit(map.ext[0]);
	loop_for(&l, 50 * NS_PER_MS);
	close_store();
	for (int again = 0; again < 2; again++) {
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
		assert_non_null(strstr(err, "/seg-"));
		assert_non_null(
			strstr(err, "the map of an object of bucket 'b'\nremedy: gantryd --fsck lists"));
	}
	assert_int_equal(store_fsck(&conf, false, say, NULL), -EIO);
	assert_non_null(strstr(said, "the map of 'b/mapped'"));
	assert_int_equal(store_fsck(&conf, true, say, NULL), 1);
	assert_non_null(strstr(said, "drops 'b/mapped'"));
	assert_int_equal(store_fsck(&conf, true, say, NULL), 0);
	for (int again = 0; again < 2; again++) {
		open_store();
		is_whole(20);
		assert_int_equal(obj_check(&l, "b", "mapped", MAPPED_BYTES, 1), -ENOENT);
		close_store();
		bad_name[0] = 0;
	}
	open_store();
}

/* ---- everywhere ---- */

/* Which sectors are tried: of those that hold something many, of the others few (the simulation takes all). */
static bool
is_taken(const char *sector, unsigned nr)
{
	return nr % (is_zero(sector, FMT_ALIGN) ? 800 : 6) == 0;
}

/* A sector of a file is bad: the start succeeds, or says where it is, and what a repair drops; and then it starts. */
static void
start_without(const char *name, uint64_t off, unsigned *ret_refused)
{
	char where[64];
	int r;

	put_files_back();
	said[0] = 0;
	bad(name, off);
	r = store_start(&conf, &st, err, sizeof err);
	if (r == 0) {
		loop_start(&l, st);
		is_whole(20);
		close_store();
		return;
	}
	snprintf(where, sizeof where, "/%s at %llu cannot be read", name, (unsigned long long)off);
	if (r != -EIO || !strstr(err, where) || !strstr(err, "lost where no other disk has "))
		fail_msg("%s: %d %s", where, r, err);
	r = store_fsck(&conf, true, say, NULL);
	if (r != 1)
		fail_msg("%s: the repair: %d %s", where, r, said);
	r = store_start(&conf, &st, err, sizeof err);
	if (r < 0)
		fail_msg("%s: behind the repair: %d %s", where, r, err);
	loop_start(&l, st);
	assert_int_equal(put_simple(&l, "b", "after", 100000, 1), 0);
	close_store();
	++*ret_refused;
}

static unsigned
many_sectors(void)
{
	unsigned nr = 0, refused = 0;

	for (int i = 0; i < KEPT_NR; i++) {
		for (uint64_t off = 0; off < kept_bytes[i]; off += FMT_ALIGN) {
			if (is_taken(kept[i] + off, nr++))
				start_without(kept_name[i], off, &refused);
		}
	}
	put_files_back();
	bad_name[0] = 0;
	return refused;
}

static void
test_many(void **state)
{
	unsigned clean, killed;
	uint64_t end;

	keep_files();
	clean = many_sectors();
	open_store();
	for (int i = 0; i < 4; i++)
		assert_int_equal(put_simple(&l, "b", "small", 100, 1), 0);
	end = log_end();
	keep_files();
	close_store();
	killed = many_sectors();
	print_message("of a clean store %u sectors end the start, of one that was killed %u\n", clean,
		      killed);
	/* The log since the snapshot, in either; and the place behind its end. */
	assert_true(clean > 0 && killed > clean);
	start_without("log", end, &killed);
}

static int
teardown_kept(void **state)
{
	for (int i = 0; i < KEPT_NR; i++) {
		free(kept[i]);
		kept[i] = NULL;
	}
	return teardown(state);
}

/* An object that was acknowledged a moment before the power went: the log does not say yet that it is whole. */
static void
put_at_the_end(const char *key)
{
	uint8_t bytes[KEY_BYTES_MAX];
	struct store_key k = key_of("b", key);
	const struct rec *r;

	open_store();
	assert_int_equal(put_simple(&l, "b", key, 100000, 7), 0);
	is_cut_off = true;
	r = tree_get(extent_store(st)->vol->tree, bytes, (size_t)key_object(bytes, &k));
	assert_non_null(r);
	bad_unit(*(const uint64_t *)rec_entries(r));
	close_store();
	is_cut_off = false;
}

/* Its data is what cannot be read: nobody knows whether it was whole, so a start does not drop it by itself. */
static void
test_tail(void **state)
{
	put_at_the_end("once");
	for (int again = 0; again < 2; again++) {
		assert_int_equal(store_start(&conf, &st, err, sizeof err), -EIO);
		assert_non_null(strstr(err, dir));
		assert_non_null(strstr(err, "/seg-"));
		assert_non_null(strstr(err, "cannot be read"));
		assert_non_null(strstr(err, "it is of an object of bucket 'b'"));
		assert_non_null(strstr(err, "\n1 record of an object, and those after it, are lost "));
	}
	bad_name[0] = 0;
	open_store();
	assert_int_equal(obj_check(&l, "b", "once", 100000, 7), 0);
	close_store();
	put_at_the_end("again");
	assert_true(store_fsck(&conf, true, say, NULL) >= 0);
	assert_non_null(strstr(said, "'b/again'"));
	bad_name[0] = 0;
	open_store();
	assert_int_equal(obj_check(&l, "b", "again", 100000, 7), -ENOENT);
	assert_int_equal(obj_check(&l, "b", "once", 100000, 7), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_starts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown_kept),
		cmocka_unit_test_setup_teardown(test_map, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown_kept),
		cmocka_unit_test_setup_teardown(test_tail, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_sectors", tests, NULL, NULL);
}
