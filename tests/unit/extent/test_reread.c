/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a serving store keeps beside data rots, or cannot be read any more: a superblock, a snapshot, the log.  The
 * next reading names it, what is damaged is written anew, and the next start needs no second copy of anything.
 */
#include "extent/engine.h"
#include "fixture.h"
#include "tests/fake/fault_ring.h"

#include <time.h>

/* The helper rests between two pieces, as requests come first: here there are none. */
int
nanosleep(const struct timespec *duration, struct timespec *ret_rest)
{
	return 0;
}

static char bad_name[32]; /* a place that cannot be read; "": none */
static uint64_t bad_off;
static bool is_lasting; /* not even when it was written */

static int
hook(const struct fault_io *io)
{
	if (!bad_name[0] || strcmp(io->name, bad_name) != 0 || io->kind == FAULT_FLUSH ||
	    io->off >= bad_off + FMT_ALIGN || bad_off >= io->off + io->len)
		return 0;
	if (io->kind == FAULT_WRITE && !is_lasting)
		bad_name[0] = 0;
	return io->kind == FAULT_READ || is_lasting ? -EIO : 0;
}

static int
setup(void **state)
{
	char name[32];
	int r;

	bad_name[0] = 0;
	is_lasting = false;
	fault_ring_hook = hook;
	r = make_store(100 * MIB);
	for (int i = 0; r == 0 && i < 20; i++) {
		snprintf(name, sizeof name, "k%d", i);
		r = put_simple(&l, "b", name, 3000 + (uint64_t)i * 5000, (uint64_t)i);
		if (i == 10 || i == 15)
			make_snapshot();
	}
	return r;
}

static int
teardown(void **state)
{
	bad_name[0] = 0;
	return remove_store(state);
}

static const struct super *
sb(void)
{
	return &extent_store(st)->vol->disk.sb;
}

/* A reading, to its end. */
static void
reread(void)
{
	uint64_t before = disk_number("metadata_checks");

	store_reread(l.p);
	wait_until(disk_number("metadata_checks") != before)
		loop_for(&l, 5 * NS_PER_MS);
	assert_int_equal(disk_number("metadata_checks"), before + 1);
}

static void
is_healed(void)
{
	wait_until(!disk_info().reason[0])
		loop_for(&l, 5 * NS_PER_MS);
}

enum place { SUPER_0, SUPER_1, NEWER, OLDER, LOG, PLACES };

/* Where it is, and what health says of it. */
static const char *
find(enum place p, char name[32], uint64_t *ret_off)
{
	uint64_t per_seg = geo_seg_units(&sb()->geo), unit;

	switch (p) {
	case SUPER_0:
	case SUPER_1:
		snprintf(name, 32, "%s", p == SUPER_0 ? "super" : "super2");
		*ret_off = 0;
		return "a superblock";
	case LOG:
		snprintf(name, 32, "log");
		*ret_off = sb()->snap[0].begin.pos;
		return "the log";
	default:
		assert_true(sb()->snap[p - NEWER].block_nr > 0);
		unit = ext_unit(sb()->snap[p - NEWER].head_ext);
		snprintf(name, 32, "seg-%04u", (unsigned)(unit / per_seg));
		*ret_off = unit % per_seg * sb()->geo.unit_bytes;
		return "a snapshot";
	}
}

static void
rot(const char *name, uint64_t off)
{
	char path[256], byte;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)off + 100), 1);
	byte ^= 0x40;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)off + 100), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* Found, named, healed, and nothing of it is left for the next reading and the next start. */
static void
check_place(enum place p, bool is_unreadable)
{
	char name[32], say[64];
	const char *what;
	uint64_t off, found = disk_number("metadata_damaged"), gen, id;

	/* Something in the log behind the snapshots. */
	assert_int_equal(put_simple(&l, "b", "more", 5000, 1), 0);
	loop_for(&l, 20 * NS_PER_MS);
	what = find(p, name, &off);
	snprintf(say, sizeof say, "%s", what);
	id = sb()->snap[0].id;
	gen = sb()->gen;
	if (is_unreadable) {
		bad_off = off;
		snprintf(bad_name, sizeof bad_name, "%s", name);
	} else {
		rot(name, off);
	}
	reread();
	assert_int_equal(disk_number("metadata_damaged"), found + 1);
	if (p <= SUPER_1) {
		/* Healed at once: no snapshot is needed. */
		assert_int_equal(sb()->gen, gen);
	} else {
		assert_true(strstr(disk_info().reason, say) || sb()->snap[1].id > id);
		is_healed();
		assert_true(sb()->snap[1].id > id);
	}
	assert_string_equal(disk_info().reason, "");
	/* A bad sector that nobody writes to stays one, where nothing is kept any more. */
	bad_name[0] = 0;
	reread();
	assert_int_equal(disk_number("metadata_damaged"), found + 1);
}

static void
test_healed(void **state)
{
	reread();
	assert_int_equal(disk_number("metadata_damaged"), 0);
	for (int p = 0; p < PLACES; p++)
		check_place((enum place)p, p % 2);
	/* The start reads them all, and finds nothing. */
	close_store();
	open_store();
	assert_int_equal(obj_check(&l, "b", "k7", 3000 + 7 * 5000, 7), 0);
	assert_string_equal(disk_info().reason, "");
	reread();
	assert_int_equal(disk_number("metadata_damaged"), 0);
}

/* After any of them the start finds two of everything: one of each may then be lost. */
static void
test_whole_again(void **state)
{
	char name[32];
	uint64_t off;

	for (enum place p = SUPER_0; p < PLACES; p++) {
		check_place(p, p % 2 == 0);
		close_store();
		open_store();
		find(p == NEWER || p == LOG ? OLDER : p == OLDER ? NEWER : (enum place) !p, name, &off);
		rot(name, off);
		close_store();
		open_store();
		assert_int_equal(obj_check(&l, "b", "more", 5000, 1), 0);
		is_healed();
		reread();
		is_healed();
	}
}

/* A superblock that cannot be written either: it is said until it can. */
static void
test_lasting(void **state)
{
	int older = sb()->gen % 2 == 0;

	snprintf(bad_name, sizeof bad_name, "%s", older ? "super2" : "super");
	bad_off = 0;
	is_lasting = true;
	for (int i = 1; i <= 2; i++) {
		reread();
		assert_int_equal(disk_number("metadata_damaged"), i);
		assert_non_null(strstr(disk_info().reason, "a superblock"));
		assert_int_equal(disk_info().state, UNIT_OK);
		assert_int_equal(put_simple(&l, "b", "goes on", 5000, 1), 0);
	}
	is_lasting = false;
	reread();
	assert_string_equal(disk_info().reason, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_healed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lasting, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
