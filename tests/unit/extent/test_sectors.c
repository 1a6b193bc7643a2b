/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sector that cannot be read any more, anywhere, while a store starts: it starts wherever there is a second
 * copy or nothing was ever believed there; else it says so, and --fsck --repair makes it start.
 */
#include "extent/engine.h" /* ahead of the fixture, whose names it does not know */

#include "fixture.h"
#include "extent/disk/format.h"
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
		assert_non_null(strstr(err, "the log cannot be read at"));
		assert_non_null(strstr(err, "--fsck --repair"));
	}
	assert_int_equal(store_fsck(&conf, true, say, NULL), 1);
	assert_non_null(strstr(said, "drops the writing of 'b/k19'"));
	open_store();
	is_whole(16);
	assert_int_equal(obj_check(&l, "b", "k19", 3000 + (uint64_t)19 * 5000, 19), -ENOENT);
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
		assert_non_null(strstr(err, "the data of 'b/once' cannot be read"));
		assert_non_null(strstr(err, "--fsck --repair drops it"));
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
		cmocka_unit_test_setup_teardown(test_tail, setup, teardown),
	};

	log_init(LOG_PLAIN, LOG_ERROR);
	return cmocka_run_group_tests_name("store_sectors", tests, NULL, NULL);
}
