/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scrub over a real store: it reads everything, finds what was changed behind the store's back, keeps to
 * its rate, stands back when buffers are scarce, and stops and goes on as told.  The ring is the one with
 * faults; tests/system/scrub.sh has the other.
 */
#include "extent/engine.h" /* ahead of the harness, whose names it does not know */

#include "tests/unit/extent/harness.h"

#include "set/set_int.h"
#include "conf/conf.h"
#include "walk/scrub.h"
#include "walk/walks.h"
#include "tests/fake/fault_ring.h"
#include "tests/fake/hook_clock.h"

#define FAST ((uint64_t)1 << 40) /* bytes a second */
#define LARGE (3 * MIB + 5000)

static char dir[128];
static struct store_disk_conf dc;
static struct store_conf conf;
static struct conf settings;
static struct store *st;
static struct loop l;
static struct scrub_public pub;
static struct walk *s;
static struct timers timers; /* the scrub's alone: the store has some in the loop's */

static void
turn(void)
{
	uint64_t now = clock_ns(), due = timers_next(&timers);

	/* What rests between two reads waits for nothing but the time. */
	if (!walk_busy(s) && due > now && due - now < NS_PER_S)
		hook_clock_skip(due - now);
	timers_run(&timers, clock_ns());
	loop_turn(&l);
}

static void
turn_for(uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	while (clock_ns() < until) {
		hook_clock_skip(NS_PER_MS);
		turn();
	}
}

static struct scrub_info
info(void)
{
	struct scrub_info i;

	scrub_get_info(&pub.walk, &i);
	return i;
}

static void
scrub_set(uint64_t interval_ns, uint64_t rate)
{
	settings.store.scrub_interval_ns = interval_ns;
	settings.store.scrub_rate = rate;
	if (s)
		walk_set_conf(s, &settings);
}

static void
make_scrub(uint64_t interval_ns, uint64_t rate)
{
	struct walk_env env = { .store = l.p, .bufs = &l.bufs, .timers = &timers };

	memset(&pub, 0, sizeof pub);
	scrub_set(interval_ns, rate);
	assert_int_equal(walk_new(&scrub_walk, &env, &settings, &pub.walk, &s), 0);
}

static int
setup(void **state)
{
	char err[512];

	log_set_level((enum log_level) - 1);
	dir_make(dir);
	conf = conf_for(&dc, dir, 100 * MIB);
	if (store_format(&conf, false, err, sizeof err) < 0 || store_start(&conf, &st, err, sizeof err) < 0)
		return -1;
	loop_start(&l, st);
	assert_int_equal(bucket_make(&l, "a"), 0);
	assert_int_equal(bucket_make(&l, "b"), 0);
	assert_int_equal(bucket_make(&l, "empty"), 0);
	assert_int_equal(put_simple(&l, "a", "none", 0, 1), 0);
	assert_int_equal(put_simple(&l, "a", "in-line", 100, 2), 0);
	assert_int_equal(put_simple(&l, "a", "small", 5000, 3), 0);
	assert_int_equal(put_simple(&l, "b", "granule", BUF_SMALL_BYTES, 4), 0);
	assert_int_equal(put_simple(&l, "b", "large", LARGE, 5), 0);
	return 0;
}
#define ALL_BYTES (100 + 5000 + BUF_SMALL_BYTES + LARGE)

static int
teardown(void **state)
{
	walk_pause(s, true);
	wait_until(!walk_busy(s))
		turn();
	walk_free(s);
	s = NULL;
	assert_int_equal(l.bufs.avail[BUF_SMALL], l.bufs.total[BUF_SMALL]);
	loop_stop(&l);
	store_stop(st);
	dir_remove(dir);
	return 0;
}

static void
wait_walks(uint64_t walks)
{
	wait_until(info().walks >= walks)
		turn();
}

static void
wait_bytes(uint64_t bytes)
{
	wait_until(info().bytes >= bytes)
		turn();
}

/* Until a read is in flight, which the ring is not asked about. */
static void
wait_read(void)
{
	wait_until(walk_busy(s))
		timers_run(&timers, clock_ns());
}

/* Flips a bit of the object made of that seed on that disk, off bytes from where its first ones lie. */
static void
rot_on(const char *disk, uint64_t seed, uint64_t off)
{
	static char buf[1 << 20];
	char want[64];

	fill(want, sizeof want, seed, 0);
	for (int i = 0; i < 16; i++) {
		char path[256];
		int fd;

		snprintf(path, sizeof path, "%s/seg-%04d", disk, i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		for (off_t pos = 0; fd >= 0; pos += (off_t)sizeof buf) {
			ssize_t n = pread(fd, buf, sizeof buf, pos);

			for (ssize_t at = 0; at < n; at += 4096) {
				char b;

				if (memcmp(buf + at, want, sizeof want) != 0)
					continue;
				assert_int_equal(pread(fd, &b, 1, pos + at + (off_t)off), 1);
				b ^= 4;
				assert_int_equal(pwrite(fd, &b, 1, pos + at + (off_t)off), 1);
				assert_int_equal(fsync(fd), 0);
				close(fd);
				return;
			}
			if (n < (ssize_t)sizeof buf)
				break;
		}
		if (fd >= 0)
			close(fd);
	}
	fail_msg("the object is nowhere");
}

static void
rot(uint64_t seed, uint64_t off)
{
	rot_on(dir, seed, off);
}

static uint64_t
pins(void)
{
	struct store_unit_info di;

	store_unit_info(st, 0, &di);
	return store_unit_number(&di, "pins");
}

/* ---- the tests ---- */

static void
test_reads_all(void **state)
{
	make_scrub(0, FAST);
	assert_int_equal(info().state, WALK_IDLE);
	assert_int_equal(walk_cancel(s), -EALREADY);
	assert_int_equal(walk_begin(s), 0);
	assert_int_equal(info().state, WALK_RUNNING);
	assert_true(info().started_ns > 0);
	assert_int_equal(walk_begin(s), -EALREADY);
	wait_walks(1);
	assert_int_equal(info().state, WALK_IDLE);
	assert_int_equal(info().objects, 5);
	assert_int_equal(info().bytes, ALL_BYTES);
	assert_int_equal(info().walk_bytes, ALL_BYTES);
	assert_int_equal(info().damaged + info().unreadable + info().known_bad, 0);
	assert_true(info().finished_ns >= info().started_ns);
	assert_int_equal(pins(), 0);
	/* Another, on request; with an interval of 0 none comes by itself. */
	assert_int_equal(walk_begin(s), 0);
	wait_walks(2);
	assert_int_equal(info().objects, 10);
	assert_int_equal(info().walk_objects, 5);
	assert_int_equal(timers_next(&timers), UINT64_MAX);
}

/* More than a page of keys: each is read once. */
static void
test_pages(void **state)
{
	char key[16];

	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "key/%d", i);
		assert_int_equal(put_simple(&l, "empty", key, 10, i), 0);
	}
	make_scrub(0, FAST);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(1);
	assert_int_equal(info().objects, 305);
}

static void
test_comes_round(void **state)
{
	make_scrub(10 * NS_PER_MS, FAST);
	wait_walks(2);
	scrub_set(0, FAST);
	wait_until(info().state == WALK_IDLE)
		turn();
	assert_int_equal(timers_next(&timers), UINT64_MAX);
	/* It rests from the end of the last walk on. */
	scrub_set(3600 * NS_PER_S, FAST);
	assert_true(timers_next(&timers) > clock_ns() + 3000 * NS_PER_S);
	scrub_set(604800 * NS_PER_S, FAST);
	assert_true(timers_next(&timers) > clock_ns() + 604000 * NS_PER_S);
}

/* The first walk is not far from the start, however long the interval is. */
static void
test_first(void **state)
{
	make_scrub(604800 * NS_PER_S, FAST);
	assert_true(timers_next(&timers) < clock_ns() + 3601 * NS_PER_S);
	assert_true(timers_next(&timers) > clock_ns() + 3000 * NS_PER_S);
}

static void
test_finds_damage(void **state)
{
	make_scrub(0, FAST);
	rot(5, 2 * MIB + 17);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(1);
	assert_int_equal(info().damaged, 1);
	assert_int_equal(info().unreadable, 0);
	assert_int_equal(info().walk_errors, 1);
	assert_int_equal(info().known_bad, 1);
	assert_int_equal(info().objects, 5);
	/* It is left where it is bad. */
	assert_in_range(info().bytes, ALL_BYTES - MIB, ALL_BYTES - MIB + BUF_SMALL_BYTES + 5000);
	rot(3, 4999);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(2);
	assert_int_equal(info().damaged, 3);
	assert_int_equal(info().known_bad, 2);
	/* What is written anew is good; a walk that was ended does not say so, one that came through does. */
	assert_int_equal(put_simple(&l, "b", "large", LARGE, 6), 0);
	assert_int_equal(put_simple(&l, "a", "small", 5000, 7), 0);
	assert_int_equal(walk_begin(s), 0);
	assert_int_equal(walk_cancel(s), 0);
	assert_int_equal(info().walks, 2);
	assert_int_equal(info().known_bad, 2);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(3);
	assert_int_equal(info().known_bad, 0);
	assert_int_equal(info().damaged, 3);
}

/* By what it has read when time was up: never more than the rate allows for, and not nothing. */
static void
test_keeps_to_its_rate(void **state)
{
	uint64_t rate = 4 * MIB, began = clock_ns(), ns;

	make_scrub(0, rate);
	assert_int_equal(walk_begin(s), 0);
	while (info().walks == 0 && info().bytes < 2 * MIB) {
		turn();
		ns = clock_ns() - began;
		/* What it makes up for, and the read under way. */
		assert_true(info().bytes <= rate * (ns + 100 * NS_PER_MS) / NS_PER_S + 2 * BUF_SMALL_BYTES);
	}
	assert_true(info().bytes >= 2 * MIB);
	/* A faster one from now on. */
	scrub_set(0, FAST);
	wait_walks(1);
}

static void
test_survives_changes(void **state)
{
	make_scrub(0, 8 * MIB);
	/* The object goes while it is read. */
	assert_int_equal(walk_begin(s), 0);
	wait_bytes(5100 + BUF_SMALL_BYTES + MIB);
	assert_int_equal(obj_delete(&l, "b", "large", NULL), 1);
	wait_walks(1);
	assert_int_equal(info().walk_objects, 4);
	assert_int_equal(info().walk_errors, 0);
	/* It becomes another, in the midst of it: the next walk's business. */
	assert_int_equal(put_simple(&l, "b", "large", LARGE, 8), 0);
	assert_int_equal(walk_begin(s), 0);
	wait_bytes(info().bytes + 5100 + BUF_SMALL_BYTES + MIB);
	assert_int_equal(put_simple(&l, "b", "large", LARGE, 9), 0);
	wait_walks(2);
	assert_int_equal(info().walk_objects, 4);
	assert_int_equal(info().walk_errors, 0);
	/* Its whole bucket goes. */
	assert_int_equal(walk_begin(s), 0);
	wait_bytes(info().bytes + 5100 + BUF_SMALL_BYTES + MIB);
	assert_int_equal(obj_delete(&l, "b", "large", NULL), 1);
	assert_int_equal(obj_delete(&l, "b", "granule", NULL), 1);
	assert_int_equal(bucket_remove(&l, "b"), 0);
	wait_walks(3);
	assert_int_equal(info().walk_objects, 4);
	assert_int_equal(info().damaged + info().unreadable, 0);
	assert_int_equal(pins(), 0);
}

static void
test_stands_back(void **state)
{
	struct buf *held[512];
	int n = 0, half = l.bufs.total[BUF_SMALL] / 2 + 1;

	make_scrub(0, FAST);
	while (n < half && n < 512)
		held[n++] = bufpool_get(&l.bufs, BUF_SMALL);
	assert_int_equal(n, half);
	assert_int_equal(walk_begin(s), 0);
	turn_for(100 * NS_PER_MS);
	assert_int_equal(info().bytes, 0);
	assert_int_equal(pins(), 0);
	while (n)
		bufpool_put(&l.bufs, held[--n]);
	wait_walks(1);
	assert_int_equal(info().bytes, ALL_BYTES);
}

static void
test_pauses(void **state)
{
	uint64_t seen;

	make_scrub(0, 8 * MIB);
	assert_int_equal(walk_begin(s), 0);
	wait_bytes(MIB);
	walk_pause(s, true);
	walk_pause(s, true);
	assert_int_equal(info().state, WALK_PAUSED);
	wait_until(!walk_busy(s))
		turn();
	seen = info().bytes;
	turn_for(100 * NS_PER_MS);
	assert_int_equal(info().bytes, seen);
	assert_int_equal(pins(), 0);
	assert_int_equal(walk_begin(s), -EALREADY);
	/* It goes on where it was. */
	walk_pause(s, false);
	wait_walks(1);
	assert_int_equal(info().bytes, ALL_BYTES);
	walk_pause(s, true);
	assert_int_equal(info().state, WALK_IDLE);
	assert_int_equal(walk_begin(s), -EBUSY);
	walk_pause(s, false);
	/* Ended with a read in flight, and while it is paused. */
	assert_int_equal(walk_begin(s), 0);
	wait_read();
	assert_int_equal(walk_cancel(s), 0);
	assert_int_equal(walk_cancel(s), -EALREADY);
	wait_until(info().state == WALK_IDLE)
		turn();
	assert_int_equal(walk_begin(s), 0);
	wait_read();
	walk_pause(s, true);
	wait_until(!walk_busy(s))
		turn();
	assert_int_equal(walk_cancel(s), 0);
	assert_int_equal(info().state, WALK_IDLE);
	assert_int_equal(info().walks, 1);
	walk_pause(s, false);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(2);
}

static _Atomic int reads_end_with; /* of data */

static int
on_io(const struct fault_io *io)
{
	return io->kind == FAULT_READ && strncmp(io->name, "seg-", 4) == 0 ? reads_end_with : 0;
}

/* A disk that does not read: counted as such, and the walk goes on. */
static void
test_disk_errors(void **state)
{
	make_scrub(0, FAST);
	fault_ring_hook = on_io;
	reads_end_with = -EIO;
	assert_int_equal(walk_begin(s), 0);
	wait_walks(1);
	assert_int_equal(info().unreadable, 3);
	assert_int_equal(info().damaged, 0);
	assert_int_equal(info().known_bad, 3);
	assert_int_equal(info().objects, 5);
	assert_int_equal(pins(), 0);
	reads_end_with = 0;
	assert_int_equal(walk_begin(s), 0);
	wait_walks(2);
	assert_int_equal(info().known_bad, 0);
	assert_int_equal(info().walk_errors, 0);
	/* Of one that has failed nothing is said of objects. */
	disk_fail(&extent_store(st)->vol->disk, "for a test");
	reads_end_with = -EIO;
	assert_int_equal(walk_begin(s), 0);
	wait_walks(3);
	assert_int_equal(info().known_bad, 0);
	assert_int_equal(info().unreadable, 3);
	reads_end_with = 0;
	fault_ring_hook = NULL;
}

/* One that hangs: a read is waited for, nothing else is begun, and what was asked meanwhile is done then. */
static void
test_disk_hangs(void **state)
{
	make_scrub(0, FAST);
	fault_ring_hook = on_io;
	reads_end_with = FAULT_HOLD;
	assert_int_equal(walk_begin(s), 0);
	wait_read();
	turn_for(50 * NS_PER_MS);
	assert_int_equal(walk_busy(s), 1);
	assert_int_equal(pins(), 1);
	walk_pause(s, true);
	assert_int_equal(info().state, WALK_PAUSED);
	walk_pause(s, false);
	assert_int_equal(walk_cancel(s), 0);
	assert_int_equal(walk_cancel(s), -EALREADY);
	assert_int_equal(walk_begin(s), -EALREADY);
	assert_int_equal(info().state, WALK_RUNNING);
	reads_end_with = 0;
	wait_until(info().state == WALK_IDLE)
		turn();
	assert_int_equal(info().walks, 0);
	assert_int_equal(pins(), 0);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(1);
	fault_ring_hook = NULL;
}

/* ---- parts of uploads in progress ---- */

static uint8_t upload_id[STORE_UPLOAD_ID_BYTES];

static void
begin_upload(const struct store_key *k)
{
	struct store_upload *u = calloc(1, sizeof *u);
	int r;

	op_arm(&u->op, l.p);
	r = store_upload_create(l.p, k, NULL, 0, u);
	assert_int_equal(r == 0 ? op_wait(&l, &u->op) : r < 0 ? r : u->op.result, 0);
	memcpy(upload_id, u->id, sizeof upload_id);
	free(u);
}

static void
put_part(const struct store_key *k, uint32_t number, uint32_t size, uint64_t seed)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	struct store_commit c = { .last = size ? b : NULL, .last_len = size };

	fill(b->mem, size, seed, 0);
	assert_int_equal(store_put_init_part(l.p, put, k, upload_id, number, size), 0);
	op_arm(&put->op, l.p);
	assert_int_equal(store_put_commit(l.p, put, &c), 0);
	assert_int_equal(op_wait(&l, &put->op), 0);
	bufpool_put(&l.bufs, b);
	free(put);
}

static int
end_upload(const struct store_key *k)
{
	struct store_upload *u = calloc(1, sizeof *u);
	int r;

	op_arm(&u->op, l.p);
	r = store_upload_abort(l.p, k, upload_id, u);
	r = r == 0 ? op_wait(&l, &u->op) : r < 0 ? r : u->op.result;
	free(u);
	return r;
}

#define PART_BYTES (MIB - 5)

/* They are read, found and named as objects are, page by page; what ended is passed by. */
static void
test_parts(void **state)
{
	struct store_key k = key_of("a", "upload"), many = key_of("a", "upload of many");

	begin_upload(&many);
	for (uint32_t i = 1; i <= 260; i++)
		put_part(&many, i, 100, 1000 + i);
	begin_upload(&k);
	put_part(&k, 1, PART_BYTES, 21);
	put_part(&k, 7, 0, 22);
	put_part(&k, 9, 5000, 23);
	make_scrub(0, FAST);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(1);
	assert_int_equal(info().objects, 5 + 3 + 260);
	assert_int_equal(info().bytes, ALL_BYTES + PART_BYTES + 5000 + 26000);
	assert_int_equal(info().damaged + info().unreadable, 0);
	assert_int_equal(pins(), 0);
	rot(21, MIB / 2);
	rot(1260, 3);
	assert_int_equal(walk_begin(s), 0);
	wait_walks(2);
	assert_int_equal(info().damaged, 2);
	assert_int_equal(info().known_bad, 2);
	assert_int_equal(info().walk_objects, 5 + 3 + 260);
	/* It is aborted while it is read. */
	scrub_set(0, 8 * MIB);
	assert_int_equal(walk_begin(s), 0);
	wait_bytes(info().bytes + 5100 + 3 * BUF_SMALL_BYTES);
	assert_int_equal(end_upload(&k), 0);
	scrub_set(0, FAST);
	wait_walks(3);
	assert_int_equal(info().known_bad, 1);
	assert_int_equal(info().walk_objects, 5 + 260);
	assert_int_equal(pins(), 0);
}

/* ---- second copies ---- */

#define TWO_KEYS 8
#define TWO_BYTES 5000

static char disk_of[2][128];
static char two_key[TWO_KEYS][32]; /* the first is on disk 0, the second on disk 1 */

static int
setup_two(void **state)
{
	static struct store_disk_conf disks[2];
	struct store_del op = { .op.done = on_put };
	char err[512];
	int r;

	log_set_level((enum log_level) - 1);
	for (int i = 0; i < 2; i++) {
		dir_make(disk_of[i]);
		conf = conf_for(&disks[i], disk_of[i], 64 * MIB);
	}
	conf.ops = &store_set_ops;
	conf.disks.disk = disks;
	conf.disks.nr = 2;
	conf.disks.engine = &extent_ops;
	conf.disks.engines_max = 2;
	if (store_format(&conf, false, err, sizeof err) < 0 || store_start(&conf, &st, err, sizeof err) < 0)
		return -1;
	loop_start(&l, st);
	r = store_bucket_create(l.p, "2b", 2, 2, &op);
	assert_int_equal(r == 0 ? op_wait(&l, &op.op) : r < 0 ? r : op.op.result, 0);
	for (int i = 0, n = 0; i < TWO_KEYS; n++) {
		struct store_key k;

		snprintf(two_key[i], sizeof two_key[i], "key-%d", n);
		k = key_of("2b", two_key[i]);
		k.copies = 2;
		if (set_primary(set_of(st), &k) != 0)
			continue;
		assert_int_equal(put_simple(&l, "2b", two_key[i], TWO_BYTES, 100 + (uint64_t)i), 0);
		i++;
	}
	return 0;
}

static int
teardown_two(void **state)
{
	fault_ring_hook = NULL;
	memcpy(dir, disk_of[0], sizeof dir);
	dir_remove(disk_of[1]);
	return teardown(state);
}

static void
walk_once(void)
{
	uint64_t walks = info().walks;

	assert_int_equal(walk_begin(s), 0);
	wait_walks(walks + 1);
}

static void
wait_repaired(uint64_t nr)
{
	wait_until(set_counted(set_of(st), COUNT_REPAIRED) >= nr)
		turn();
	assert_int_equal(set_counted(set_of(st), COUNT_REPAIRED), nr);
}

/* Both copies are read; a damaged second one is counted, named and written anew. */
static void
test_seconds(void **state)
{
	make_scrub(0, FAST);
	walk_once();
	assert_int_equal(info().objects, TWO_KEYS);
	assert_int_equal(info().bytes, 2 * TWO_KEYS * TWO_BYTES);
	assert_int_equal(info().damaged + info().unreadable, 0);
	rot_on(disk_of[1], 103, 17);
	walk_once();
	assert_int_equal(info().damaged, 1);
	wait_repaired(1);
	walk_once();
	assert_int_equal(info().damaged, 1);
	assert_int_equal(info().unreadable, 0);
	/* One whose first is damaged is read no further than that: the reader was given the second, and the first is mended. */
	rot_on(disk_of[0], 104, 17);
	walk_once();
	wait_repaired(2);
	assert_int_equal(info().damaged, 1);
	for (int i = 0; i < TWO_KEYS; i++)
		assert_int_equal(obj_check(&l, "2b", two_key[i], TWO_BYTES, 100 + (uint64_t)i), 0);
	assert_int_equal(set_counted(set_of(st), COUNT_REPAIRED), 2);
}

/* The first thing that is read of the second disk cannot be, for good. */
static char bad_name[32];
static uint64_t bad_off;

static int
bad_sector(const struct fault_io *io)
{
	if (io->kind != FAULT_READ || strncmp(io->name, "seg-", 4) != 0 ||
	    strncmp(io->path, disk_of[1], strlen(disk_of[1])) != 0)
		return 0;
	if (!bad_name[0]) {
		snprintf(bad_name, sizeof bad_name, "%s", io->name);
		bad_off = io->off;
	}
	return strcmp(io->name, bad_name) == 0 && io->off <= bad_off && bad_off < io->off + io->len ? -EIO
												    : 0;
}

static void
test_seconds_unreadable(void **state)
{
	make_scrub(0, FAST);
	bad_name[0] = 0;
	fault_ring_hook = bad_sector;
	walk_once();
	assert_string_not_equal(bad_name, "");
	assert_int_equal(info().unreadable, 1);
	wait_repaired(1);
	walk_once();
	assert_int_equal(info().unreadable, 1);
	assert_int_equal(info().damaged, 0);
}

/* The same of parts, of either copy; who completes them then has what was put. */
static void
test_parts_of_two(void **state)
{
	struct store_key k = key_of("2b", two_key[0]);
	struct store_complete c = { .part_nr = 2, .meta.etag.parts = 2 };
	struct store_part_ref refs[2] = { { .number = 1 }, { .number = 2 } };
	int r;

	begin_upload(&k);
	put_part(&k, 1, PART_BYTES, 21);
	put_part(&k, 2, 5000, 22);
	make_scrub(0, FAST);
	walk_once();
	assert_int_equal(info().objects, TWO_KEYS + 2);
	assert_int_equal(info().bytes, 2 * (TWO_KEYS * TWO_BYTES + PART_BYTES + 5000));
	rot_on(disk_of[1], 21, MIB / 2);
	walk_once();
	assert_int_equal(info().damaged, 1);
	wait_repaired(1);
	rot_on(disk_of[0], 22, 17);
	rot_on(disk_of[0], 21, 17);
	walk_once();
	/* Who reads a part at the first is given the second, and has all parts of the upload mended. */
	assert_int_equal(info().damaged, 1);
	wait_repaired(2);
	walk_once();
	assert_int_equal(info().damaged, 1);
	assert_int_equal(info().known_bad, 0);
	c.parts = refs;
	op_arm(&c.op, l.p);
	r = store_upload_complete(l.p, &k, upload_id, &c);
	assert_int_equal(r == 0 ? op_wait(&l, &c.op) : r < 0 ? r : c.op.result, 0);
	walk_once();
	assert_int_equal(info().damaged + info().unreadable, 1);
	assert_int_equal(set_counted(set_of(st), COUNT_READ_SECONDARY), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reads_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_comes_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_finds_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keeps_to_its_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_survives_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stands_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seconds, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_seconds_unreadable, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts_of_two, setup_two, teardown_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
