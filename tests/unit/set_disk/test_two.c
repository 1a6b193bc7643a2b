/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets with two copies: what is answered is on two disks; what the loss of a disk costs, while it serves and before a start; what is
 * half done is made whole; what is damaged on one is read from the other; a copy that is lost is made again.
 */
#include "extent/engine.h" /* ahead of the rig, whose names it does not know */

#include "disks_rig.h"

#include "set/map_int.h"
#include "tests/unit/extent/crumbs.h"
#include "tests/unit/extent/drop.h"
#include "tests/fake/fault_ring.h"

#include "set/replicas.h"

#include <limits.h>
#include <sched.h>

#define BUCKET "2b"
#define KEYS 60

static struct loop l;

/* Of each disk: what is asked of it fails so (result < 0), or is held. */
static _Atomic int bad[DISKS];
static _Atomic int bad_kind = FAULT_WRITE;
static _Atomic int bad_files;
enum { FILES_ALL, FILES_SUPER, FILES_OTHERS };

static _Atomic bool is_held; /* something waits for a disk that hangs */
static _Atomic int no_room_on =
	-1; /* bytes of objects cannot be written there: no memory, which says nothing of the disk */

/* What a disk had then cannot be read, until it is written over: as of sectors that went bad. */
#define SEGS 16
#define GRANULES 16384
static _Atomic int unreadable = -1; /* a disk; -1: none */
static _Atomic bool written[SEGS][GRANULES];

static int
look_at_sectors(const struct fault_io *io)
{
	unsigned seg;
	bool is_bad = false;

	if (unreadable < 0 || strncmp(io->path, dir[unreadable], strlen(dir[unreadable])) != 0 ||
	    sscanf(io->name, "seg-%u", &seg) != 1 || io->kind == FAULT_FLUSH)
		return 0;
	for (uint64_t at = io->off / 4096; at <= (io->off + io->len - 1) / 4096; at++) {
		if (io->kind == FAULT_WRITE)
			written[seg % SEGS][at % GRANULES] = true;
		is_bad |= !written[seg % SEGS][at % GRANULES];
	}
	return is_bad ? -EIO : 0;
}

static int
hook(const struct fault_io *io)
{
	int r = look_at_sectors(io);

	if (r)
		return r;
	if (no_room_on >= 0 && io->kind == FAULT_WRITE && strncmp(io->name, "seg-", 4) == 0 &&
	    strncmp(io->path, dir[no_room_on], strlen(dir[no_room_on])) == 0)
		return -ENOMEM;
	if (bad_files && (bad_files == FILES_SUPER) != (strncmp(io->name, "super", 5) == 0))
		return 0;
	for (int i = 0; i < DISKS; i++) {
		if (bad[i] && (int)io->kind == bad_kind && strncmp(io->path, dir[i], strlen(dir[i])) == 0) {
			is_held |= bad[i] == FAULT_HOLD;
			return bad[i];
		}
	}
	return 0;
}

static void
all_good(void)
{
	for (int i = 0; i < DISKS; i++)
		bad[i] = 0;
	bad_kind = FAULT_WRITE;
	bad_files = FILES_ALL;
	unreadable = no_room_on = -1;
}

static void
up(void)
{
	if (store_start(&conf, &st, err, sizeof err) < 0)
		fail_msg("%s", err);
	loop_start(&l, st);
}

static void
down(void)
{
	loop_stop(&l);
	store_stop(st);
}

static void
restart(void)
{
	down();
	up();
}

static int
setup_of(int nr)
{
	fault_ring_hook = hook;
	all_good();
	begin(nr);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	up();
	return 0;
}

static int
setup_two(void **state)
{
	return setup_of(2);
}

static int
setup_three(void **state)
{
	return setup_of(3);
}

/* Two small ones and a large one: what has a copy there has the other one on either of these. */
static int
setup_uneven(void **state)
{
	fault_ring_hook = hook;
	all_good();
	for (int i = 0; i < DISKS; i++) {
		dir_make(dir[i]);
		disks[i] =
			(struct store_disk_conf){ .path = dir[i], .size_bytes = (i == 2 ? 256 : 64) * MIB };
	}
	use(3);
	if (store_format(&conf, false, err, sizeof err) < 0)
		fail_msg("%s", err);
	up();
	return 0;
}

static int
setup_four(void **state)
{
	return setup_of(4);
}

/* A write that takes half a second is a disk that hangs. */
static int
setup_hang(void **state)
{
	fault_ring_hook = hook;
	all_good();
	begin(2);
	conf.disks.timeout_ns = 500 * NS_PER_MS;
	up();
	return 0;
}

static int
teardown(void **state)
{
	/* What a test that failed holds up nothing waits for. */
	all_good();
	down();
	end();
	return 0;
}

static int
make_bucket(const char *bucket, unsigned copies)
{
	struct store_del op;
	int r;

	op_arm(&op.op, l.p);
	r = store_bucket_create(l.p, bucket, strlen(bucket), copies, &op);
	return r == 0 ? op_wait(&l, &op.op) : r < 0 ? r : op.op.result;
}

static int
make_two(const char *bucket)
{
	return make_bucket(bucket, 2);
}

static int
remove_bucket(const char *bucket)
{
	struct store_del op;
	int r;

	op_arm(&op.op, l.p);
	r = store_bucket_delete(l.p, bucket, strlen(bucket), &op);
	return r == 0 ? op_wait(&l, &op.op) : r < 0 ? r : op.op.result;
}

static uint64_t
size_of(int i)
{
	static const uint64_t size[] = { 5, 0, 256, 257, 5000, 70000, 1 * MIB, 3 * MIB + 5 };

	return size[i % 8];
}

static int
put_nr(int i, uint64_t seed)
{
	char name[32];
	struct put_args a = { .bucket = BUCKET, .key = name, .size = size_of(i), .seed = seed };

	snprintf(name, sizeof name, "key-%03d", i);
	return obj_put(&l, &a);
}

static int
check_nr(int i, uint64_t seed)
{
	char name[32];

	snprintf(name, sizeof name, "key-%03d", i);
	return obj_check(&l, BUCKET, name, size_of(i), seed);
}

static void
put_all(uint64_t seed)
{
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(put_nr(i, seed), 0);
}

static void
must_have_all(uint64_t seed)
{
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(check_nr(i, seed), 0);
}

static int listed;

static bool
on_listed(struct store_list *ls, const struct store_entry *e)
{
	listed++;
	return true;
}

static int
list_all(void)
{
	struct store_list ls = { .bucket = BUCKET, .bucket_len = 2, .max = 10000, .entry = on_listed };
	int r;

	listed = 0;
	op_arm(&ls.op, l.p);
	r = store_list(l.p, &ls);
	r = r == 0 ? op_wait(&l, &ls.op) : r < 0 ? r : ls.op.result;
	return r < 0 ? r : listed;
}

/* The version that a disk has of a key; 0: none. */
static uint64_t
version_on(int engine, int i)
{
	struct store_port *e = port_engine(set_port(l.p), engine);
	char name[32];
	struct store_key k;
	struct store_obj *o = calloc(1, sizeof *o);
	uint64_t version = 0;

	snprintf(name, sizeof name, "key-%03d", i);
	k = key_of(BUCKET, name);
	if (store_open(e, &k, o) > 0 && o->op.result >= 0) {
		version = o->version;
		store_close(e, o);
	}
	free(o);
	return version;
}

static uint64_t
version_of(int engine, const struct store_key *k)
{
	struct store_port *e = port_engine(set_port(l.p), engine);
	struct store_obj *o = calloc(1, sizeof *o);
	uint64_t version = 0;

	if (store_open(e, k, o) > 0 && o->op.result >= 0) {
		version = o->version;
		store_close(e, o);
	}
	free(o);
	return version;
}

/* How many disks have a key; -1: not the same. */
static int
copies_of(int i)
{
	uint64_t of = 0;
	int nr = 0;

	for (int e = 0; e < set_engines(set_of(st)); e++) {
		uint64_t v = version_on(e, i);

		if (v && of && v != of)
			return -1;
		of = v ? v : of;
		nr += v != 0;
	}
	return nr;
}

static void
must_have_copies(int nr)
{
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(copies_of(i), nr);
}

/* What a disk has of slots that are no longer its own goes by and by. */
static void
wait_copies(int nr)
{
	uint64_t until = clock_ns() + PATIENCE_NS;

	for (int i = 0; i < KEYS; i++) {
		while (copies_of(i) != nr && clock_ns() < until)
			loop_for(&l, NS_PER_MS);
	}
	must_have_copies(nr);
}

static bool
is_full(void)
{
	static struct disk_table t;
	bool full = true;

	set_get_table(set_of(st), &t);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		full &= table_is_full(&t, i);
	return full;
}

static void
wait_full(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;

	while (!is_full()) {
		loop_for(&l, NS_PER_MS);
		assert_true(clock_ns() < until);
	}
}

/* ---- what is answered is on both ---- */

static void
test_both(void **state)
{
	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	must_have_all(1);
	must_have_copies(2);
	assert_int_equal(list_all(), KEYS);
	put_all(2);
	must_have_copies(2);
	for (int i = 0; i < KEYS; i += 2) {
		char name[32];

		snprintf(name, sizeof name, "key-%03d", i);
		assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
		assert_int_equal(copies_of(i), 0);
	}
	assert_int_equal(list_all(), KEYS / 2);
	restart();
	assert_int_equal(list_all(), KEYS / 2);
	assert_int_equal(check_nr(1, 2), 0);
	assert_int_equal(set_counted(set_of(st), COUNT_MISSED), 0);
}

/* ---- a copy of a disk ---- */

/* Copies a disk beside itself, or puts that copy in its place. */
static void
copy_disk(int disk, bool back)
{
	char cmd[2048];

	if (back)
		snprintf(cmd, sizeof cmd, "rm -r %s && mv %s.copy %s", dir[disk], dir[disk], dir[disk]);
	else
		snprintf(cmd, sizeof cmd, "cp -a --sparse=never %s %s.copy", dir[disk], dir[disk]);
	assert_int_equal(system(cmd), 0);
}

/* ---- a disk fails ---- */

static void
fail_one(int disk)
{
	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	bad[disk] = -EIO;
	for (int i = 0; i < KEYS; i++) {
		uint64_t until = clock_ns() + PATIENCE_NS;
		int r;

		/* A PUT whose first disk fails under it is to be sent again. */
		while ((r = put_nr(i, 2)) != 0 && clock_ns() < until) {
			assert_true(r == -ECANCELED || r == -EROFS || r == -EAGAIN);
			loop_for(&l, NS_PER_MS);
		}
		assert_int_equal(r, 0);
	}
	must_have_all(2);
	/* A disk that has failed is not mended. */
	assert_int_equal(set_counted(set_of(st), COUNT_REPAIRED), 0);
	assert_int_equal(list_all(), KEYS);
	for (int i = 0; i < KEYS; i += 3) {
		char name[32];

		snprintf(name, sizeof name, "key-%03d", i);
		assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
		assert_int_equal(check_nr(i, 2), -ENOENT);
	}
	all_good();
	restart();
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(check_nr(i, 2), i % 3 ? 0 : -ENOENT);
	wait_full();
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(copies_of(i), i % 3 ? 2 : 0);
}

static void
test_fail_first(void **state)
{
	fail_one(0);
}

static void
test_fail_last(void **state)
{
	fail_one(1);
}

/* The first bucket with two copies is made while a disk is missing: the others have all of its keys. */
static void
test_made_without(void **state)
{
	for (int away = 0; away < 3; away++) {
		char name[8];

		accept(away);
		down();
		leave_out(away, 3);
		conf.disks.accept_missing_nr = 3;
		up();
		if (away == 0)
			assert_int_equal(make_two(BUCKET), 0);
		put_all(1 + (uint64_t)away);
		must_have_all(1 + (uint64_t)away);
		assert_int_equal(list_all(), KEYS);
		down();
		all_again(3);
		conf.disks.accept_missing_nr = 3;
		up();
		must_have_all(1 + (uint64_t)away);
		wait_full();
		wait_copies(2);
		snprintf(name, sizeof name, "2b-%d", away);
		assert_int_equal(make_two(name), 0);
	}
}

/* Another bucket is made while the first one waits for who answers in the place of a disk that is missing: it waits, too, and not who puts
 * something into it, who was told that a disk is missing. */
static void
test_made_beside(void **state)
{
	static struct loop other;
	struct store_del first, second;
	bool waits;

	accept(0);
	down();
	leave_out(0, 3);
	conf.disks.accept_missing_nr = 3;
	if (store_start(&conf, &st, err, sizeof err) < 0)
		fail_msg("%s", err);
	/* The keeper is on the thread of the port that is there longest: it stands still. */
	loop_start(&other, st);
	loop_start(&l, st);
	op_arm(&first.op, l.p);
	assert_int_equal(store_bucket_create(l.p, "2a", 2, 2, &first), 0);
	while (!set_uses_pairs(set_of(st)))
		loop_turn(&l);
	op_arm(&second.op, l.p);
	assert_int_equal(store_bucket_create(l.p, BUCKET, 2, 2, &second), 0);
	loop_for(&l, 50 * NS_PER_MS);
	waits = first.op.port && second.op.port;
	while (first.op.port || second.op.port) {
		loop_turn(&l);
		loop_turn(&other);
	}
	loop_stop(&other);
	assert_true(waits);
	assert_true(first.op.result == 0 && second.op.result == 0);
	put_all(1);
	must_have_all(1);
}

/* A third disk takes the place of one that stays away. */
static void
test_heal_elsewhere(void **state)
{
	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	must_have_copies(2);
	accept(1);
	down();
	leave_out(1, 3);
	conf.disks.accept_missing_nr = 2;
	conf.disks.heal_after_ns = 1;
	up();
	must_have_all(1);
	wait_full();
	must_have_copies(2);
	put_all(2);
	must_have_copies(2);
	down();
	all_again(3);
	up();
	must_have_all(2);
	/* What the third one has by now the second one loses. */
	wait_copies(2);
}

/* ---- between the first and the second ---- */

static void
test_half_done(void **state)
{
	struct store_port *set = l.p;
	char name[32];

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	/* As if the power had gone when the first had it: by its own port. */
	for (int i = 0; i < KEYS; i += 2) {
		struct store_key k;
		struct put_args a = { .bucket = BUCKET, .key = name, .size = size_of(i), .seed = 2 };

		snprintf(name, sizeof name, "key-%03d", i);
		k = key_of(BUCKET, name);
		l.p = port_engine(set_port(set), set_primary_at(set_of(st), (unsigned)(store_place(&k))));
		if (i % 4)
			assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
		else
			assert_int_equal(obj_put(&l, &a), 0);
		l.p = set;
	}
	restart();
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(check_nr(i, i % 4 == 0 ? 2 : 1), i % 4 == 2 ? -ENOENT : 0);
		assert_int_equal(copies_of(i), i % 4 == 2 ? 0 : 2);
	}
}

/* ---- what is damaged ---- */

static void
lose_sectors(int disk)
{
	memset((void *)written, 0, sizeof written);
	unreadable = disk;
}

/* Writes over all bytes of objects that one disk has: segments but for their first page. */
static void
spoil(int disk)
{
	static char junk[65536];
	char path[300];

	memset(junk, 0x5a, sizeof junk);
	for (int i = 0;; i++) {
		int fd;
		struct stat sb;

		snprintf(path, sizeof path, "%s/seg-%04d", dir[disk], i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			break;
		assert_int_equal(fstat(fd, &sb), 0);
		for (off_t off = 0; off < sb.st_size; off += (off_t)sizeof junk)
			assert_true(pwrite(fd, junk, sizeof junk, off) == sizeof junk);
		assert_int_equal(fsync(fd), 0);
		close(fd);
	}
}

/* Reads a copy as the scrub does: what is damaged is mended before the read ends. */
static int
scrub_copy(int i, uint64_t seed, bool is_second)
{
	char name[32];
	struct store_key k;
	struct store_obj *o = calloc(1, sizeof *o);
	int r;

	snprintf(name, sizeof name, "key-%03d", i);
	k = key_of(BUCKET, name);
	o->op.done = on_put;
	r = is_second ? store_open_second(l.p, &k, o) : store_open(l.p, &k, o);
	r = r == 0 ? op_wait(&l, &o->op) : r > 0 ? o->op.result : r;
	o->op.port = l.p;
	if (r >= 0) {
		o->mends_first = true;
		r = obj_read(&l, o, seed);
		store_close(l.p, o);
	}
	free(o);
	return r;
}

/* Returns how many second copies were damaged. */
static int
scrub_seconds(uint64_t seed)
{
	int nr = 0;

	for (int i = 0; i < KEYS; i++)
		nr += scrub_copy(i, seed, true) != 0;
	return nr;
}

/* What one disk has is read from the other, and written anew. */
static void
lose_bytes(void (*lose)(int disk))
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct set *c;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	lose(0);
	must_have_all(1);
	c = set_of(st);
	assert_true(set_counted(c, COUNT_READ_SECONDARY) > 0);
	/* One at a time is mended, as it is read. */
	for (uint64_t seen = 0; clock_ns() < until;) {
		uint64_t now;

		must_have_all(1);
		loop_for(&l, 20 * NS_PER_MS);
		now = set_counted(c, COUNT_READ_SECONDARY);
		if (now == seen)
			break;
		seen = now;
	}
	assert_true(set_counted(c, COUNT_REPAIRED) > 0);
	must_have_copies(2);
	/* Of others it had the second copy: the scrub reads that. */
	assert_true(scrub_seconds(1) > 0);
	assert_int_equal(scrub_seconds(1), 0);
	lose(1);
	must_have_all(1);
}

/* Nobody has read what is damaged: one walk mends all of it, of both copies. */
static void
test_scrubbed(void **state)
{
	struct set *c;
	uint64_t seen;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	spoil(0);
	c = set_of(st);
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(scrub_copy(i, 1, false), 0);
	seen = set_counted(c, COUNT_READ_SECONDARY);
	assert_true(seen > 0 && set_counted(c, COUNT_REPAIRED) > 0);
	must_have_all(1);
	assert_int_equal(set_counted(c, COUNT_READ_SECONDARY), seen);
	assert_true(scrub_seconds(1) > 0);
	assert_int_equal(scrub_seconds(1), 0);
	spoil(1);
	must_have_all(1);
}

static void
test_damaged(void **state)
{
	lose_bytes(spoil);
}

static void
test_unreadable(void **state)
{
	lose_bytes(lose_sectors);
	assert_true(set_is_in(set_of(st), 0) && set_is_in(set_of(st), 1));
}

/* What is open is a version that both have replaced by now: its bytes are not read from where another one is. */
static void
test_other_version(void **state)
{
	struct store_obj *o = calloc(1, sizeof *o);
	int nr = 0;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k;

		snprintf(name, sizeof name, "key-%03d", i);
		k = key_of(BUCKET, name);
		if (size_of(i) < 5000 || set_primary_at(set_of(st), (unsigned)(store_place(&k))) != 0)
			continue;
		assert_int_equal(obj_open(&l, BUCKET, name, o), 0);
		assert_int_equal(put_nr(i, 2), 0);
		lose_sectors(0);
		assert_int_equal(obj_read(&l, o, 1), -EIO);
		unreadable = -1;
		store_close(l.p, o);
		assert_int_equal(check_nr(i, 2), 0);
		nr++;
	}
	assert_true(nr > 5);
	assert_int_equal(set_counted(set_of(st), COUNT_READ_SECONDARY), 0);
	free(o);
}

static struct store_ops blind_ops; /* as those of an engine, which cannot read its records */

static int
open_blind(struct store_port *p, const struct store_key *k, struct store_obj *obj)
{
	obj->op.port = p;
	obj->is_open = false;
	obj->op.result = -EBADMSG;
	return 1;
}

/* An object whose record the first cannot give is the second's; whoever asks for that copy is told. */
static void
test_record_damaged(void **state)
{
	struct store_port *e;
	struct set *c;
	int firsts = 0;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	c = set_of(st);
	e = port_engine(set_port(l.p), 0);
	blind_ops = *e->ops;
	blind_ops.open = open_blind;
	e->ops = &blind_ops;
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k;
		bool is_first;

		snprintf(name, sizeof name, "key-%03d", i);
		k = key_of(BUCKET, name);
		is_first = set_primary_at(set_of(st), (unsigned)(store_place(&k))) == 0;
		assert_int_equal(check_nr(i, 1), 0);
		firsts += is_first;
		assert_int_equal(set_counted(c, COUNT_READ_SECONDARY), firsts);
		assert_int_equal(scrub_copy(i, 1, true), is_first ? 0 : -EBADMSG);
		/* It is mended behind who has opened it. */
		loop_for(&l, NS_PER_MS);
	}
	assert_in_range(firsts, 1, KEYS - 1);
	e->ops = port_engine(set_port(l.p), 1)->ops;
	must_have_all(1);
}

static void
say_line(void *cookie, const char *line)
{
	printf("fsck: %s\n", line);
}

/* The end of a disk's log is lost, and a repair cuts it: what was acknowledged is on the other disk, whichever was the first, and both have
 * it when that is copied. */
static void
test_repaired_disk(void **state)
{
	char cmd[512];
	int r;

	assert_int_equal(make_two(BUCKET), 0);
	for (int cut = 0; cut < 2; cut++) {
		uint64_t seed = 1 + 2 * (uint64_t)cut;

		put_all(seed);
		down();
		snprintf(cmd, sizeof cmd, "cp -a %s/log %s.log.save", dir[cut], dir[cut]);
		assert_int_equal(system(cmd), 0);
		up();
		put_all(seed + 1);
		assert_int_equal(obj_delete(&l, BUCKET, "key-003", NULL), 1);
		down();
		snprintf(cmd, sizeof cmd, "mv %s.log.save %s/log", dir[cut], dir[cut]);
		assert_int_equal(system(cmd), 0);
		assert_true(store_start(&conf, &st, err, sizeof err) < 0);
		assert_non_null(strstr(err, "--fsck --repair"));
		/* What the log still names may be written over by now. */
		r = store_fsck(&conf, true, say_line, NULL);
		assert_true(r == 1 || r == -ENOTRECOVERABLE);
		/* One that is cut on the way changes nothing about it. */
		bad[!cut] = -EIO;
		assert_true(store_start(&conf, &st, err, sizeof err) < 0);
		bad[!cut] = 0;
		up();
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(check_nr(i, seed + 1), i == 3 ? -ENOENT : 0);
		wait_full();
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(copies_of(i), i == 3 ? 0 : 2);
		/* Once it has all it is as the other one. */
		restart();
		assert_true(is_full());
		assert_int_equal(put_nr(3, seed + 1), 0);
		must_have_all(seed + 1);
	}
}

/* ---- a disk that hangs ---- */

static void
test_hangs(void **state)
{
	char name[32];
	int done = 0;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	bad[1] = FAULT_HOLD;
	/* One of several pieces is the first that meets it. */
	for (int n = 0; n < 2 * KEYS; n++) {
		int i = n % KEYS;
		struct store_key k;

		snprintf(name, sizeof name, "key-%03d", i);
		k = key_of(BUCKET, name);
		/* Those of which it is the second. */
		if (set_primary_at(set_of(st), (unsigned)(store_place(&k))) == 1 ||
		    (size_of(i) > STORE_PIECE) != (n < KEYS))
			continue;
		assert_int_equal(put_nr(i, 2), 0);
		assert_int_equal(check_nr(i, 2), 0);
		done++;
	}
	assert_true(done > 5);
	assert_false(set_is_in(set_of(st), 1));
	all_good();
}

/* ---- uploads ---- */

static uint8_t upload_id[STORE_UPLOAD_ID_BYTES];

static void
begin_upload(const struct store_key *k)
{
	struct store_upload *u = calloc(1, sizeof *u);
	int r;

	op_arm(&u->op, l.p);
	r = store_upload_create(l.p, k, "attrs", 5, u);
	assert_int_equal(r == 0 ? op_wait(&l, &u->op) : r < 0 ? r : u->op.result, 0);
	memcpy(upload_id, u->id, sizeof upload_id);
	free(u);
}

static void
begin_part(const struct store_key *k, struct store_put *put, uint32_t number)
{
	struct store_commit c = { .inline_data = "bytes", .inline_len = 5 };

	memset(put, 0, sizeof *put);
	assert_int_equal(store_put_init_part(l.p, put, k, upload_id, number, 5), 0);
	op_arm(&put->op, l.p);
	assert_int_equal(store_put_commit(l.p, put, &c), 0);
}

static int parts_seen;

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	parts_seen++;
	return true;
}

static int
begin_list(struct store_port *p, const struct store_key *k, struct store_part_list *pl)
{
	memset(pl, 0, sizeof *pl);
	pl->max = 100;
	pl->part = on_part;
	parts_seen = 0;
	op_arm(&pl->op, p);
	return store_list_parts(p, k, upload_id, pl);
}

static int
begin_stat(const struct store_key *k, char attrs[8], struct store_stat *stat)
{
	memset(stat, 0, sizeof *stat);
	op_arm(&stat->op, l.p);
	return store_upload_stat(l.p, k, upload_id, attrs, 8, stat);
}

/* What one disk has of an upload, and the other one not yet, is waited for by who looks at it. */
static void
test_uploads_settled(void **state)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_upload *u = calloc(1, sizeof *u);
	struct store_part_list list;
	struct store_stat stat;
	struct store_key k;
	char name[32], attrs[8];
	int n = 0;

	assert_int_equal(make_two(BUCKET), 0);
	do {
		snprintf(name, sizeof name, "upload-%d", n++);
		k = key_of(BUCKET, name);
	} while (set_primary_at(set_of(st), (unsigned)(store_place(&k))) != 0);
	begin_upload(&k);
	begin_part(&k, put, 1);
	assert_int_equal(op_wait(&l, &put->op), 0);
	assert_int_equal(begin_stat(&k, attrs, &stat), 1);
	assert_int_equal(stat.op.result, 0);
	assert_memory_equal(attrs, "attrs", 5);
	assert_int_equal(begin_list(l.p, &k, &list), 1);
	assert_int_equal(list.op.result, 1);
	/* A part. */
	bad[1] = FAULT_HOLD;
	begin_part(&k, put, 2);
	loop_for(&l, 50 * NS_PER_MS);
	assert_non_null(put->op.port);
	assert_int_equal(begin_list(port_engine(set_port(l.p), 0), &k, &list), 1);
	assert_int_equal(list.op.result, 2);
	assert_int_equal(begin_stat(&k, attrs, &stat), 0);
	assert_int_equal(begin_list(l.p, &k, &list), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_true(put->op.port && stat.op.port && list.op.port && parts_seen == 0);
	all_good();
	assert_int_equal(op_wait(&l, &list.op), 2);
	assert_true(parts_seen == 2 && !list.more);
	assert_int_equal(op_wait(&l, &stat.op), 0);
	assert_int_equal(op_wait(&l, &put->op), 0);
	/* Its end. */
	bad[1] = FAULT_HOLD;
	op_arm(&u->op, l.p);
	assert_int_equal(store_upload_abort(l.p, &k, upload_id, u), 0);
	loop_for(&l, 50 * NS_PER_MS);
	assert_int_equal(begin_list(port_engine(set_port(l.p), 0), &k, &list), 1);
	assert_int_equal(list.op.result, -ENOENT);
	assert_int_equal(begin_stat(&k, attrs, &stat), 0);
	assert_int_equal(begin_list(l.p, &k, &list), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_true(u->op.port && stat.op.port && list.op.port);
	all_good();
	assert_int_equal(op_wait(&l, &u->op), 0);
	assert_int_equal(op_wait(&l, &stat.op), -ENOENT);
	assert_int_equal(op_wait(&l, &list.op), -ENOENT);
	free(put);
	free(u);
}

/* A change that one disk has, and the other one not yet, is waited for by who opens the object: it is not shown before that, and not the one
 * before it after that. */
static void
test_open_settled(void **state)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_commit c = { .inline_data = "newer", .inline_len = 5 };
	struct store_obj *o = calloc(1, sizeof *o);
	uint64_t until = clock_ns() + PATIENCE_NS, was;
	struct store_key k;
	char name[32];
	int n = 0;

	assert_int_equal(make_two(BUCKET), 0);
	do {
		snprintf(name, sizeof name, "settled-%d", n++);
		k = key_of(BUCKET, name);
	} while (set_primary_at(set_of(st), (unsigned)(store_place(&k))) != 0);
	assert_int_equal(put_simple(&l, BUCKET, name, 7, 1), 0);
	was = version_of(0, &k);
	bad[1] = FAULT_HOLD;
	assert_int_equal(store_put_init(l.p, put, &k, 5), 0);
	op_arm(&put->op, l.p);
	assert_int_equal(store_put_commit(l.p, put, &c), 0);
	while (version_of(0, &k) == was && clock_ns() < until)
		loop_for(&l, NS_PER_MS);
	assert_true(version_of(0, &k) > was && version_of(1, &k) == was);
	op_arm(&o->op, l.p);
	assert_int_equal(store_open(l.p, &k, o), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_true(put->op.port && o->op.port && !o->is_open);
	all_good();
	assert_int_equal(op_wait(&l, &o->op), 0);
	o->op.port = l.p;
	assert_int_equal(o->size_bytes, 5);
	store_close(l.p, o);
	assert_int_equal(op_wait(&l, &put->op), 0);
	free(o);
	free(put);
}

/* ---- disks that come and go ---- */

static char said[512];

struct call {
	struct store_disk_change c;
	int result;
	_Atomic bool is_over;
};

static void *
call_main(void *arg)
{
	struct call *c = arg;

	c->result = store_change_disks(st, &c->c, said, sizeof said);
	atomic_store(&c->is_over, true);
	return NULL;
}

static int round_nr;
static int more_nr; /* keys beside those of KEYS */
static uint64_t seed_of[KEYS];

/* What clients do meanwhile. */
static void
change_some(void)
{
	int i = round_nr++ % KEYS;
	uint64_t seed = (uint64_t)round_nr;

	int r = put_nr(i, seed);

	/* Its bytes are where the key was: clients send it again. */
	assert_true(r == 0 || r == -EXDEV);
	if (r == 0)
		seed_of[i] = seed;
	i = (i * 7 + 3) % KEYS;
	assert_int_equal(check_nr(i, seed_of[i]), 0);
	if (round_nr % 16 == 0)
		assert_int_equal(list_all(), KEYS + more_nr);
}

static int
ask_while(int kind, const char *disk, uint64_t size_bytes, void (*turn)(void))
{
	struct call c = { .c = { .disk = disk, .size_bytes = size_bytes } };
	pthread_t thread;

	c.c.kind = kind;
	assert_int_equal(pthread_create(&thread, NULL, call_main, &c), 0);
	while (!atomic_load(&c.is_over))
		turn();
	pthread_join(thread, NULL);
	return c.result;
}

static int
ask(int kind, const char *disk, uint64_t size_bytes)
{
	return ask_while(kind, disk, size_bytes, change_some);
}

static void
turn_a_while(void)
{
	loop_for(&l, NS_PER_MS);
}

/* Asks while nobody changes anything. */
static int
ask_alone(int kind, const char *disk, uint64_t size_bytes)
{
	return ask_while(kind, disk, size_bytes, turn_a_while);
}

static void
wait_for_mover(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_move_info i;

	do {
		loop_for(&l, NS_PER_MS);
		store_move_info(st, &i);
	} while (i.is_running && clock_ns() < until);
	if (i.is_running)
		fail_msg("it does not end: %s", i.trouble);
}

static uint64_t most_done, most_slots; /* of progress that was seen */

/* Progress goes one way, and is over when all is. */
static void
must_make_sense(const struct store_move_info *i)
{
	static struct disk_table t;
	int roles = 0;

	if (!i->draining && !i->filling)
		return;
	assert_true(i->slots_done <= i->slots_total && i->bytes_done <= i->bytes_total);
	assert_true(i->slots_done >= most_done);
	most_done = i->slots_done;
	most_slots = i->slots_total;
	set_get_table(set_of(st), &t);
	for (int d = 0; d < STORE_DISKS_MAX; d++)
		roles += table_has(t.draining, d) ? table_roles(&t, d) : 0;
	/* What was read of the two before the table was. */
	if (roles)
		assert_true(i->slots_done < i->slots_total);
}

static void
wait_for_end(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_move_info i;

	do {
		change_some();
		store_move_info(st, &i);
		must_make_sense(&i);
	} while ((i.draining || i.filling) && clock_ns() < until);
	if (i.draining || i.filling)
		fail_msg("it does not end: %s", i.trouble);
	wait_full();
}

static void
begin_changes(void)
{
	round_nr = 0;
	most_done = most_slots = 0;
	assert_int_equal(make_two(BUCKET), 0);
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(put_nr(i, 1), 0);
		seed_of[i] = 1;
	}
}

/* Each object counts once, its bytes for both copies, wherever they are and after any start. */
static void
must_be_counted(void)
{
	struct store_quota_info q;
	uint64_t bytes = 0;

	for (int i = 0; i < KEYS; i++)
		bytes += 2 * size_of(i);
	assert_int_equal(store_bucket_quota(st, BUCKET, 2, &q), 0);
	assert_int_equal(q.used.objects, KEYS);
	assert_int_equal(q.used.bytes, bytes);
}

static void
must_be_whole(void)
{
	must_be_counted();
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(check_nr(i, seed_of[i]), 0);
		assert_int_equal(copies_of(i), 2);
	}
	assert_int_equal(list_all(), KEYS);
}

static void
test_drain(void **state)
{
	static struct disk_table t;
	struct store_move_info info;
	char which[2] = "1";

	begin_changes();
	set_get_table(set_of(st), &t);
	store_set_move_rate(st, 1);
	assert_int_equal(ask(DISK_DRAIN, which, 0), 0);
	store_move_info(st, &info);
	must_make_sense(&info);
	store_set_move_rate(st, 0);
	wait_for_end();
	must_be_whole();
	/* Every slot that it had, each copy once. */
	assert_int_equal(most_slots, table_roles(&t, 1));
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(version_on(1, i), 0);
	/* Two copies need two disks. */
	which[0] = '0';
	assert_int_equal(ask(DISK_DRAIN, which, 0), -EPERM);
	assert_non_null(strstr(said, "two copies"));
	must_be_counted();
	down();
	leave_out(1, 3);
	up();
	must_be_whole();
}

/* A disk fails that is to be the second of what another one leaves: nothing is lost, all goes on with what is left, and the drain
 * when it is back. */
static void
target_fails(int files)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_move_info info;
	char which[2] = "1";

	begin_changes();
	store_set_move_rate(st, 1);
	assert_int_equal(ask(DISK_DRAIN, which, 0), 0);
	bad_files = files;
	bad[2] = -EIO;
	store_set_move_rate(st, 0);
	/* Nobody else writes there. */
	while (set_is_in(set_of(st), 2) && clock_ns() < until)
		loop_for(&l, NS_PER_MS);
	assert_false(set_is_in(set_of(st), 2));
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(check_nr(i, seed_of[i]), 0);
	for (int i = 0; i < KEYS; i++) {
		int r;

		while ((r = put_nr(i, 1000)) == -ECANCELED || r == -EROFS || r == -EAGAIN || r == -EXDEV) {
			assert_true(clock_ns() < until);
			loop_for(&l, NS_PER_MS);
		}
		assert_int_equal(r, 0);
		seed_of[i] = 1000;
	}
	assert_true(set_is_in(set_of(st), 0) && set_is_in(set_of(st), 1));
	/* It waits for the one that failed. */
	store_move_info(st, &info);
	assert_true(info.is_running && info.draining);
	all_good();
	restart();
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(check_nr(i, 1000), 0);
	most_done = most_slots = 0;
	wait_for_end();
	must_be_whole();
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(version_on(1, i), 0);
}

static void
test_target_fails(void **state)
{
	target_fails(FILES_OTHERS);
}

/* ... while the table is written that makes it so. */
static void
test_target_fails_switching(void **state)
{
	target_fails(FILES_SUPER);
}

/* Slots go together, also where several disks may have them: each table is flushed on all disks. */
static void
test_drain_together(void **state)
{
	static struct disk_table was, is;
	char which[2] = "1";

	begin_changes();
	set_get_table(set_of(st), &was);
	assert_int_equal(ask(DISK_DRAIN, which, 0), 0);
	wait_for_end();
	must_be_whole();
	set_get_table(set_of(st), &is);
	assert_in_range(is.version - was.version, 1, 100);
}

/* The other copy cannot go where the one is: all of a small disk comes to the other small one, and nothing moves when there is no room for it. */
static void
test_no_room(void **state)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_unit_info info;
	char name[32];
	struct put_args a = { .bucket = BUCKET, .key = name, .size = 1 * MIB, .seed = 1 };
	int r;

	begin_changes();
	do {
		snprintf(name, sizeof name, "zz-fill-%03d", more_nr);
		assert_int_equal(obj_put(&l, &a), 0);
		more_nr++;
		store_unit_info(st, 0, &info);
	} while (info.free_bytes > info.size_bytes * 2 / 5);
	assert_int_equal(ask(DISK_DRAIN, "0", 0), -ENOSPC);
	assert_non_null(strstr(said, "there is no room: "));
	/* Nor can the two small ones have all of it, each. */
	assert_int_equal(ask(DISK_DRAIN, "2", 0), -ENOSPC);
	assert_int_equal(set_of(st)->map->table.draining, 0);
	while (more_nr > 0) {
		snprintf(name, sizeof name, "zz-fill-%03d", --more_nr);
		assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
	}
	/* The room comes back by and by. */
	while ((r = ask(DISK_DRAIN, "0", 0)) == -ENOSPC && clock_ns() < until)
		loop_for(&l, 10 * NS_PER_MS);
	assert_int_equal(r, 0);
	wait_for_end();
	must_be_whole();
}

static void
test_add(void **state)
{
	static struct disk_table t;
	int roles = 0;

	begin_changes();
	assert_int_equal(ask(DISK_ADD, dir[2], 128 * MIB), 0);
	wait_for_end();
	must_be_whole();
	set_get_table(set_of(st), &t);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		assert_true(t.first[i] != t.second[i]);
		roles += (t.first[i] == 2) + (t.second[i] == 2);
	}
	/* 128 of 288 MiB, within a tenth. */
	assert_in_range(roles, 2 * STORE_SLOT_NR * 40 / 100, 2 * STORE_SLOT_NR * 49 / 100);
	down();
	all_again(3);
	up();
	must_be_whole();
}

/* ---- a second that misses a change, and stays in service ---- */

/* The i-th key whose first is disk `first`, and whose second is disk `second`. */
static struct store_key
key_of_pair(char name[32], int first, int second, int i)
{
	static struct disk_table t;

	set_get_table(set_of(st), &t);
	for (int n = 0;; n++) {
		struct store_key k;
		unsigned slot;

		snprintf(name, 32, "pair-%d", n);
		k = key_of(BUCKET, name);
		slot = set_slot(&k);
		if (t.first[slot] == first && t.second[slot] == second && i-- == 0)
			return k;
	}
}

static int
put_key(const char *name, uint64_t size, uint64_t seed)
{
	struct put_args a = { .bucket = BUCKET, .key = name, .size = size, .seed = seed };

	return obj_put(&l, &a);
}

static bool
key_is_full(const struct store_key *k)
{
	static struct disk_table t;

	set_get_table(set_of(st), &t);
	return table_is_full(&t, (int)set_slot(k));
}

static uint64_t
missed(void)
{
	return set_counted(set_of(st), COUNT_MISSED);
}

/* ---- an older copy of a disk ---- */

static void
must_not_start(void)
{
	assert_int_not_equal(store_start(&conf, &st, err, sizeof err), 0);
}

/* Where the start in which the older copy was found comes to nothing, the next one knows it all the same. */
static void
test_older_cut_start(void **state)
{
	assert_int_equal(make_two(BUCKET), 0);
	for (int older = 0; older < 2; older++) {
		uint64_t seed = 1 + 2 * (uint64_t)older;

		put_all(seed);
		down();
		copy_disk(older, false);
		up();
		put_all(seed + 1);
		down();
		copy_disk(older, true);
		bad[!older] = -EIO;
		must_not_start();
		bad[!older] = 0;
		up();
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(check_nr(i, seed + 1), 0);
		wait_full();
	}
}

/* A start that one disk did not hear of makes no older copy of it. */
static void
test_unheard_start(void **state)
{
	char name[2][32];

	assert_int_equal(make_two(BUCKET), 0);
	for (int i = 0; i < 3; i++)
		accept(i);
	for (int i = 0; i < 2; i++) {
		key_of_pair(name[i], 1 + i, 2 - i, 0);
		assert_int_equal(put_key(name[i], 70000, 1), 0);
	}
	down();
	bad[1] = -EIO;
	must_not_start();
	bad[1] = 0;
	leave_out(2, 3);
	conf.disks.accept_missing_nr = 3;
	up();
	for (int i = 0; i < 2; i++)
		assert_int_equal(obj_check(&l, BUCKET, name[i], 70000, 1), 0);
}

/* It heals without a restart when what was in the way has gone. */
static void
test_missed_heals(void **state)
{
	char name[32];
	struct store_key k;

	assert_int_equal(make_two(BUCKET), 0);
	k = key_of_pair(name, 0, 1, 0);
	assert_int_equal(put_key(name, 70000, 1), 0);
	no_room_on = 1;
	assert_int_equal(put_key(name, 70000, 2), 0);
	assert_false(key_is_full(&k));
	/* What one copy alone is to have is answered as ever. */
	assert_int_equal(put_key(name, 70000, 3), 0);
	assert_int_equal(missed(), 1);
	no_room_on = -1;
	wait_full();
	assert_int_equal(version_of(1, &k), version_of(0, &k));
	assert_int_equal(obj_check(&l, BUCKET, name, 70000, 3), 0);
}

/* Takes all room of disk 1, with keys that have one copy; how many were tried. */
static int
fill_second(void)
{
	char name[32];
	int nr = 0;

	for (uint64_t size = 4 * MIB; size >= 4096; size /= 8) {
		for (int r = 0; r != -ENOSPC; nr++) {
			struct put_args a = { .bucket = "1b", .key = name, .size = size, .seed = 1 };
			struct store_key k;

			snprintf(name, sizeof name, "key-%d", nr);
			k = key_of("1b", name);
			r = set_primary(set_of(st), &k) == 1 ? obj_put(&l, &a) : 0;
			assert_true(r == 0 || r == -ENOSPC);
		}
	}
	return nr;
}

/* The i-th of them that it has. */
static void
key_with_one(char name[32], int disk, int i)
{
	for (int n = 0;; n++) {
		struct store_key k;

		snprintf(name, 32, "key-%d", n);
		k = key_of("1b", name);
		if (set_primary(set_of(st), &k) == disk && i-- == 0)
			return;
	}
}

/* A disk that is full is not away: what has no room there is refused, however it comes, and nothing of it is on the other one. */
static void
test_second_full(void **state)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct put_args a = { .bucket = BUCKET, .seed = 2 };
	struct store_unit_info before, after;
	char name[32], other[32];
	struct store_key k;
	int nr;

	assert_int_equal(make_two(BUCKET), 0);
	assert_int_equal(make_bucket("1b", 1), 0);
	k = key_of_pair(name, 0, 1, 0);
	a.key = name;
	assert_int_equal(put_key(name, 70000, 1), 0);
	begin_upload(&k);
	nr = fill_second();
	store_unit_info(st, 0, &before);
	for (int i = 0; i < 20; i++) {
		/* Announced; at its first piece; as small as not to be inline. */
		a.size = i % 2 ? 4 * MIB : 257;
		a.announce = i % 4 == 1 ? STORE_SIZE_UNKNOWN : 0;
		assert_int_equal(obj_put(&l, &a), -ENOSPC);
	}
	assert_int_equal(store_put_init_part(l.p, put, &k, upload_id, 1, 5), -ENOSPC);
	assert_true(key_is_full(&k));
	assert_int_equal(missed(), 0);
	assert_true(set_is_in(set_of(st), 1));
	assert_int_equal(obj_check(&l, BUCKET, name, 70000, 1), 0);
	assert_int_equal(version_of(0, &k), version_of(1, &k));
	loop_for(&l, 20 * NS_PER_MS);
	store_unit_info(st, 0, &after);
	assert_int_equal(before.free_bytes, after.free_bytes);
	/* What takes no room there is on both. */
	assert_int_equal(put_key(name, 5, 3), 0);
	assert_int_equal(version_of(0, &k), version_of(1, &k));
	/* There is room for some pieces, not for all. */
	for (int i = 0; i < 2; i++) {
		uint64_t until = clock_ns() + PATIENCE_NS;

		key_with_one(other, 1, i);
		assert_int_equal(obj_delete(&l, "1b", other, NULL), 1);
		do {
			loop_for(&l, NS_PER_MS);
			store_unit_info(st, 1, &after);
		} while (after.free_bytes < (uint64_t)(i + 1) * 4 * MIB && clock_ns() < until);
	}
	a.size = 16 * MIB;
	a.announce = STORE_SIZE_UNKNOWN;
	assert_int_equal(obj_put(&l, &a), -ENOSPC);
	assert_true(key_is_full(&k) && set_is_in(set_of(st), 1));
	assert_int_equal(missed(), 0);
	assert_int_equal(obj_check(&l, BUCKET, name, 5, 3), 0);
	assert_int_equal(version_of(0, &k), version_of(1, &k));
	for (int i = 0; i < nr; i++) {
		snprintf(other, sizeof other, "key-%d", i);
		assert_true(obj_delete(&l, "1b", other, NULL) >= 0);
	}
	assert_int_equal(put_key(name, 4 * MIB, 2), 0);
	assert_int_equal(version_of(1, &k), version_of(0, &k));
	assert_int_equal(missed(), 0);
	free(put);
}

/* ---- a disk that fails, and stays so ---- */

/* Another one gets the copies that it had, without a restart. */
static void
test_heal_in_service(void **state)
{
	static struct disk_table t;
	uint64_t until;

	down();
	conf.disks.heal_after_ns = 200 * NS_PER_MS;
	up();
	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	bad[1] = -EIO;
	until = clock_ns() + PATIENCE_NS;
	for (int i = 0; i < KEYS; i++) {
		int r;

		/* A PUT whose first disk fails under it is to be sent again. */
		while ((r = put_nr(i, 2)) != 0 && clock_ns() < until)
			loop_for(&l, NS_PER_MS);
		assert_int_equal(r, 0);
	}
	assert_false(set_is_in(set_of(st), 1));
	wait_full();
	set_get_table(set_of(st), &t);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		assert_true(t.first[i] != 1 && t.second[i] != 1);
	must_have_all(2);
	for (int i = 0; i < KEYS; i++) {
		assert_true(version_on(0, i) > 0);
		assert_int_equal(version_on(0, i), version_on(2, i));
	}
	put_all(3);
	must_have_all(3);
	/* What the one that failed has, it has no more when it is back. */
	all_good();
	restart();
	wait_full();
	must_have_all(3);
	until = clock_ns() + PATIENCE_NS;
	for (int i = 0; i < KEYS; i++) {
		while (copies_of(i) != 2 && clock_ns() < until)
			loop_for(&l, NS_PER_MS);
	}
	must_have_copies(2);
}

/* ---- a disk that fails while the table is written, or a change is under way ---- */

/* The second fails: nobody is told of a change that only the first has before a table says so which all have. */
static void
test_table_before_answer(void **state)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct store_commit c = { .inline_data = "newer", .inline_len = 5 };
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_key k;
	char name[32];

	assert_int_equal(make_two(BUCKET), 0);
	k = key_of_pair(name, 0, 1, 0);
	assert_int_equal(put_key(name, 7, 1), 0);
	is_held = false;
	bad[2] = FAULT_HOLD;
	bad[1] = -EIO;
	assert_int_equal(store_put_init(l.p, put, &k, 5), 0);
	op_arm(&put->op, l.p);
	assert_int_equal(store_put_commit(l.p, put, &c), 0);
	while (!is_held && clock_ns() < until)
		loop_for(&l, NS_PER_MS);
	loop_for(&l, 20 * NS_PER_MS);
	assert_true(put->op.port && set_is_in(set_of(st), 1));
	bad[2] = 0;
	assert_int_equal(op_wait(&l, &put->op), 0);
	assert_false(set_is_in(set_of(st), 1));
	assert_false(key_is_full(&k));
	free(put);
}

/* Another core: it turns by itself, keeps the set, and leads where it puts something. */
static struct other {
	pthread_t thread;
	struct store_user *user;
	struct store_key key; /* that it is to put */
	char name[32];
	_Atomic bool is_there, puts, stop, is_over;
} other;

static void *
other_main(void *arg)
{
	static const struct store_commit c = { .inline_data = "other", .inline_len = 5 };
	struct store_port *p;
	struct store_put put;

	assert_int_equal(store_user_new(&st, 1, &other.user), 0);
	p = store_user_port(other.user, 0);
	atomic_store(&other.is_there, true);
	while (!atomic_load(&other.stop)) {
		if (!atomic_load(&other.puts)) {
			store_user_turn(other.user);
			continue;
		}
		if (store_put_init(p, &put, &other.key, 5) == 0) {
			(void)STORE_DO(other.user, &put.op, store_put_commit(p, &put, &c));
			store_put_abort(p, &put);
		}
		atomic_store(&other.puts, false);
	}
	store_user_free(other.user);
	atomic_store(&other.is_over, true);
	return NULL;
}

/* This thread leads no disk, so that none waits for it when it stands still. */
static void
leave_leads(void)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	bool leads;

	do {
		loop_for(&l, NS_PER_MS);
		leads = false;
		for (int i = 0; i < set_engines(set_of(st)); i++)
			leads |= atomic_load(&extent_store(set_engine(set_of(st), i))->vol->is_led);
	} while (leads && clock_ns() < until);
	assert_false(leads);
}

/* Nothing of this thread runs. */
static void
wait_other(bool (*is)(const struct store_key *k), const struct store_key *k)
{
	uint64_t until = clock_ns() + PATIENCE_NS;

	while (!is(k) && clock_ns() < until)
		sched_yield();
	assert_true(is(k));
}

static bool
is_gone(const struct store_key *k)
{
	return version_of(0, k) == 0;
}

static bool
has_new_first(const struct store_key *k)
{
	return set_primary(set_of(st), k) == 1;
}

static bool
is_waited_for(const struct store_key *k)
{
	return is_held;
}

static bool
has_put(const struct store_key *k)
{
	return !atomic_load(&other.puts);
}

/*
 * M8: the first has a change, and before the second is asked for it the first fails, and the table that makes the second the first is written
 * (is_held: on one disk, another one hangs) or effective.  The second has it when it is answered, or it is begun anew there.
 */
static void
fail_behind_change(bool is_table_held)
{
	struct store_del op;
	struct store_key k;
	char name[32];

	loop_stop(&l);
	other = (struct other){ .is_there = false };
	assert_int_equal(pthread_create(&other.thread, NULL, other_main, NULL), 0);
	while (!atomic_load(&other.is_there))
		sched_yield();
	loop_start(&l, st);
	assert_int_equal(make_two(BUCKET), 0);
	k = key_of_pair(name, 0, 1, 0);
	other.key = key_of_pair(other.name, 0, 1, 1);
	assert_int_equal(put_key(name, 7, 1), 0);
	/* The other one leads the first disk, so what comes of the change waits for this one to look. */
	leave_leads();
	is_held = false;
	bad[0] = FAULT_HOLD;
	atomic_store(&other.puts, true);
	wait_other(is_waited_for, &k);
	op_arm(&op.op, l.p);
	assert_int_equal(store_delete(l.p, &k, NULL, &op), 0);
	bad[0] = 0;
	wait_other(is_gone, &k);
	wait_other(has_put, &k);
	is_held = false;
	bad[2] = is_table_held ? FAULT_HOLD : 0;
	bad[0] = -EIO;
	atomic_store(&other.puts, true);
	wait_other(is_table_held ? is_waited_for : has_new_first, &k);
	assert_true(version_of(1, &k) > 0);
	if (is_table_held) {
		loop_for(&l, 20 * NS_PER_MS);
		assert_true(set_is_in(set_of(st), 0));
		/* Whatever the table is, it has gone. */
		assert_true(op.op.port || version_of(1, &k) == 0);
		bad[2] = 0;
	}
	assert_int_equal(op_wait(&l, &op.op), 1);
	assert_int_equal(version_of(1, &k), 0);
	assert_int_equal(obj_check(&l, BUCKET, name, 7, 1), -ENOENT);
	/* It is so for good. */
	wait_other(has_put, &k);
	atomic_store(&other.stop, true);
	while (!atomic_load(&other.is_over))
		loop_for(&l, NS_PER_MS);
	pthread_join(other.thread, NULL);
	all_good();
	restart();
	assert_int_equal(obj_check(&l, BUCKET, name, 7, 1), -ENOENT);
	wait_full();
	assert_true(version_of(0, &k) == 0 && version_of(1, &k) == 0);
}

static void
test_first_fails_behind(void **state)
{
	fail_behind_change(false);
}

static void
test_first_fails_in_table(void **state)
{
	fail_behind_change(true);
}

/* ---- what is damaged when a disk is drained ---- */

/* Its bytes are those of an object of that seed from off on. */
static int
put_part_at(const struct store_key *k, uint32_t number, uint64_t size, uint64_t seed, uint64_t off)
{
	struct store_put *put = calloc(1, sizeof *put);
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	struct store_commit c = { .last = b, .last_len = (uint32_t)size };
	int r = store_put_init_part(l.p, put, k, upload_id, number, size);

	fill(b->mem, size, seed, off);
	if (r == 0) {
		op_arm(&put->op, l.p);
		r = store_put_commit(l.p, put, &c);
		r = r == 0 ? op_wait(&l, &put->op) : r;
	}
	store_put_abort(l.p, put);
	bufpool_put(&l.bufs, b);
	free(put);
	return r;
}

static int
put_part(const struct store_key *k, uint32_t number, uint64_t size, uint64_t seed)
{
	return put_part_at(k, number, size, seed, 0);
}

static int
complete(const struct store_key *k, uint32_t parts)
{
	struct store_complete *c = calloc(1, sizeof *c);
	struct store_part_ref refs[4] = { { .number = 0 } };
	int r;

	for (uint32_t i = 0; i < parts; i++)
		refs[i].number = i + 1;
	c->parts = refs;
	c->part_nr = parts;
	c->meta.etag.parts = parts;
	op_arm(&c->op, l.p);
	r = store_upload_complete(l.p, k, upload_id, c);
	r = r < 0 ? r : r > 0 ? c->op.result : op_wait(&l, &c->op);
	free(c);
	return r;
}

/* A PUT, or a part, is begun and given to be committed after the first has failed, and before the table that says so is written. */
static void
begin_as_first_fails(bool is_part)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_put *put = calloc(1, sizeof *put);
	struct buf *b = bufpool_get(&l.bufs, BUF_LARGE);
	struct store_commit c = { .last = b, .last_len = 70000 };
	char name[32], other_name[32];
	struct store_key k;
	int r;

	assert_int_equal(make_two(BUCKET), 0);
	k = key_of_pair(name, 0, 1, 0);
	key_of_pair(other_name, 0, 1, 1);
	assert_int_equal(put_key(name, 7, 1), 0);
	begin_upload(&k);
	/* A table is not written, as one disk hangs. */
	is_held = false;
	bad[2] = FAULT_HOLD;
	bad[0] = -EIO;
	assert_int_equal(put_key(other_name, 7, 1), -ECANCELED);
	while (!is_held && clock_ns() < until)
		loop_for(&l, NS_PER_MS);
	assert_true(is_held && set_has_failed(set_of(st), 0));
	assert_int_equal(set_primary(set_of(st), &k), 0);
	r = is_part ? store_put_init_part(l.p, put, &k, upload_id, 1, c.last_len)
		    : store_put_init(l.p, put, &k, c.last_len);
	assert_int_equal(r, 0);
	fill(b->mem, c.last_len, 2, 0);
	op_arm(&put->op, l.p);
	assert_int_equal(store_put_commit(l.p, put, &c), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_non_null(put->op.port);
	assert_int_equal(set_primary(set_of(st), &k), 0);
	bad[2] = 0;
	assert_int_equal(op_wait(&l, &put->op), 0);
	assert_int_equal(set_primary(set_of(st), &k), 1);
	bufpool_put(&l.bufs, b);
	free(put);
	if (is_part)
		assert_int_equal(complete(&k, 1), 0);
	assert_int_equal(obj_check(&l, BUCKET, name, 70000, 2), 0);
	all_good();
	restart();
	assert_int_equal(obj_check(&l, BUCKET, name, 70000, 2), 0);
	wait_full();
	assert_true(version_of(1, &k) && version_of(0, &k) == version_of(1, &k));
}

static void
test_begun_as_first_fails(void **state)
{
	begin_as_first_fails(false);
}

static void
test_part_begun_as_first_fails(void **state)
{
	begin_as_first_fails(true);
}

/* What a disk cannot give that stays, of objects and of an upload in progress, which nobody reads, comes from the one that is drained: that ends,
 * and all has two copies. */
static void
drain_with(void (*lose)(int disk))
{
	char name[32];
	struct store_key k;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	k = key_of_pair(name, 0, 1, 0);
	begin_upload(&k);
	assert_int_equal(put_part(&k, 1, 70000, 7), 0);
	assert_int_equal(put_part(&k, 2, 5000, 8), 0);
	lose(0);
	assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), 0);
	wait_for_mover();
	assert_int_equal(__builtin_popcountll(set_of(st)->map->table.members), 2);
	assert_true(set_counted(set_of(st), COUNT_REPAIRED) > 1);
	assert_int_equal(complete(&k, 2), 0);
	must_have_all(1);
	must_have_copies(2);
	assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
}

static void
test_drain_damaged(void **state)
{
	drain_with(spoil);
}

static void
test_drain_unreadable(void **state)
{
	drain_with(lose_sectors);
}

/* ---- parts that a repair of the disk could not keep ---- */

/* Writes over the map of the chunk that an engine has of part 1 of an upload. */
static void
spoil_map(int engine)
{
	struct store_port *e = port_engine(set_port(l.p), engine);
	struct vol *vol = extent_port(e)->st->vol;
	const struct rec *r;
	uint8_t key[CHUNK_KEY_BYTES], byte;
	struct map_ref map;
	uint64_t off;
	int fd;

	r = part_of_upload(e, upload_id, 1, key);
	assert_non_null(r);
	chunk_of(r, 0, key);
	r = tree_get(vol->tree, key, sizeof key);
	assert_true(r && rec_map(r, &map));
	fd = disk_addr(&vol->disk, ext_unit(map.ext[0]), &off);
	/* Its own descriptor wants whole pages. */
	snprintf(err, sizeof err, "/proc/self/fd/%d", fd);
	fd = open(err, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)off) == 1);
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)off), 1);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* Of two parts, the first of which has a map on the disk whose free space is in crumbs. */
static void
put_parts(const struct store_key *k)
{
	begin_upload(k);
	assert_int_equal(put_part_at(k, 1, MIB, 7, 0), 0);
	assert_int_equal(put_part_at(k, 2, 70000, 7, MIB), 0);
}

static int
check_on(int engine, const char *name)
{
	struct store_port *set = l.p;
	int r;

	l.p = port_engine(set_port(set), engine);
	r = obj_check(&l, BUCKET, name, MIB + 70000, 7);
	l.p = set;
	return r;
}

/* Chunks of parts are dropped, of objects and of uploads in progress, on the disk that was the first of one key and the second of another: when
 * both have all, each disk has all bytes by itself. */
static void
test_repaired_parts(void **state)
{
	uint8_t id[4][STORE_UPLOAD_ID_BYTES];
	struct store_port *set = l.p;
	struct store_key k[4];
	char name[4][32];

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	l.p = port_engine(set_port(set), 0);
	make_crumbs(&l);
	l.p = set;
	for (int i = 0; i < 4; i++) {
		k[i] = key_of_pair(name[i], i % 2, !(i % 2), i);
		put_parts(&k[i]);
		memcpy(id[i], upload_id, sizeof upload_id);
		spoil_map(0);
		if (i < 2)
			assert_int_equal(complete(&k[i], 2), 0);
	}
	down();
	assert_true(store_start(&conf, &st, err, sizeof err) < 0);
	assert_non_null(strstr(err, "--fsck --repair"));
	assert_int_equal(store_fsck(&conf, true, say_line, NULL), -ENOTRECOVERABLE);
	up();
	for (int i = 0; i < 2; i++)
		assert_int_equal(obj_check(&l, BUCKET, name[i], MIB + 70000, 7), 0);
	wait_full();
	for (int i = 0; i < 4; i++) {
		memcpy(upload_id, id[i], sizeof upload_id);
		if (i >= 2)
			assert_int_equal(complete(&k[i], 2), 0);
		assert_int_equal(check_on(0, name[i]), 0);
		assert_int_equal(check_on(1, name[i]), 0);
	}
	assert_int_equal(set_counted(set_of(st), COUNT_REPAIRED), 0);
	must_have_all(1);
	must_have_copies(2);
}

/* ---- down to one disk ---- */

static int
seconds_nr(void)
{
	static struct disk_table t;
	int nr = 0;

	set_get_table(set_of(st), &t);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		nr += t.second[i] != TABLE_NO_DISK;
	return nr;
}

static bool
is_used(void)
{
	return set_uses_pairs(set_of(st));
}

static void
remove_all(void)
{
	for (int i = 0; i < KEYS; i++) {
		char name[32];

		snprintf(name, sizeof name, "key-%03d", i);
		assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
	}
	assert_int_equal(remove_bucket(BUCKET), 0);
}

static void
must_have_one(void)
{
	assert_int_equal(obj_check(&l, "1b", "one", 70000, 1), 0);
}

/* What was put into the bucket of one copy before. */
static void
put_one(void)
{
	struct put_args a = { .bucket = "1b", .key = "one", .size = 70000, .seed = 1 };

	assert_int_equal(make_bucket("1b", 1), 0);
	assert_int_equal(obj_put(&l, &a), 0);
}

/* As long as a bucket has two copies two disks stay, and who asks is told which bucket that is; when it is gone one may stay, and with
 * another disk there are buckets with two copies again.  Once in one life, once with restarts. */
static void
test_to_one(void **state)
{
	for (int again = 0; again < 2; again++) {
		assert_int_equal(make_two(BUCKET), 0);
		put_one();
		put_all(1);
		assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), -EPERM);
		assert_non_null(strstr(said, "bucket " BUCKET " has two copies of each object"));
		assert_non_null(strstr(said, "add another disk first"));
		assert_true(set_of(st)->map->table.draining == 0 && is_full() && is_used());
		must_have_copies(2);
		remove_all();
		if (again)
			restart();
		/* Of a bucket that is no more slots have seconds. */
		assert_true(is_used() && seconds_nr() == STORE_SLOT_NR);
		assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), 0);
		assert_true(!is_used() && seconds_nr() == 0);
		/* One disk alone stays, whatever has gone by now. */
		assert_int_equal(make_two(BUCKET), -EDOM);
		if (again)
			restart();
		wait_for_mover();
		assert_int_equal(__builtin_popcountll(set_of(st)->map->table.members), 1);
		must_have_one();
		assert_int_equal(make_two(BUCKET), -EDOM);
		if (again) {
			down();
			leave_out(1, 2);
			up();
			assert_false(is_used());
		}
		assert_int_equal(ask_alone(DISK_ADD, dir[2], 128 * MIB), 0);
		wait_for_mover();
		assert_true(!is_used() && seconds_nr() == 0);
		assert_int_equal(make_two(BUCKET), 0);
		/* There was nothing that a disk could have missed. */
		assert_true(is_full() && seconds_nr() == STORE_SLOT_NR);
		put_all(2);
		must_have_all(2);
		must_have_copies(2);
		must_have_one();
		if (!again) {
			teardown(state);
			setup_of(2);
		}
	}
}

/* A drain to one disk is cancelled: seconds come again with the next bucket. */
static void
test_to_one_cancelled(void **state)
{
	assert_int_equal(make_two(BUCKET), 0);
	put_one();
	assert_int_equal(remove_bucket(BUCKET), 0);
	store_set_move_rate(st, 1);
	assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), 0);
	assert_int_equal(seconds_nr(), 0);
	assert_int_equal(ask_alone(DISK_CANCEL, NULL, 0), 0);
	store_set_move_rate(st, 0);
	wait_for_mover();
	assert_int_equal(make_two(BUCKET), 0);
	assert_true(is_full() && seconds_nr() == STORE_SLOT_NR);
	put_all(2);
	must_have_copies(2);
	must_have_one();
}

/* A bucket with two copies is asked for while the seconds are taken off: there is none on one disk. */
static void
test_to_one_race(void **state)
{
	struct call c = { .c = { .kind = DISK_DRAIN, .disk = "1" } };
	uint64_t until = clock_ns() + PATIENCE_NS;
	struct store_del op;
	pthread_t thread;

	assert_int_equal(make_two(BUCKET), 0);
	put_one();
	assert_int_equal(remove_bucket(BUCKET), 0);
	is_held = false;
	bad_files = FILES_SUPER;
	bad[0] = FAULT_HOLD;
	assert_int_equal(pthread_create(&thread, NULL, call_main, &c), 0);
	while (!is_held && clock_ns() < until)
		loop_for(&l, NS_PER_MS);
	assert_true(is_held && is_used());
	op_arm(&op.op, l.p);
	assert_int_equal(store_bucket_create(l.p, BUCKET, 2, 2, &op), 0);
	loop_for(&l, 20 * NS_PER_MS);
	assert_non_null(op.op.port);
	all_good();
	assert_int_equal(op_wait(&l, &op.op), -EAGAIN);
	while (!atomic_load(&c.is_over))
		loop_for(&l, NS_PER_MS);
	pthread_join(thread, NULL);
	assert_int_equal(c.result, 0);
	assert_int_equal(make_two(BUCKET), -EDOM);
	wait_for_mover();
	must_have_one();
}

static _Atomic int supers_left = INT_MAX; /* so many are written, then the power goes */
static _Atomic bool is_cut;

static int
hook_supers(const struct fault_io *io)
{
	/* Disks are written by threads of their own: each write takes its number, so that not one more gets through than was allowed. */
	if (io->kind == FAULT_WRITE && strncmp(io->name, "super", 5) == 0 &&
	    atomic_fetch_sub(&supers_left, 1) <= 0) {
		is_cut = true;
		return -EIO;
	}
	return is_cut && io->kind != FAULT_READ ? -EIO : 0;
}

/* The power goes while the seconds are taken off, or behind that: the next start goes on with the drain, or knows nothing of it. */
static void
test_to_one_cut(void **state)
{
	static const int after[] = { 0, 1, 3 };

	for (size_t n = 0; n < sizeof after / sizeof *after; n++) {
		uint64_t until = clock_ns() + PATIENCE_NS;
		bool drains;

		assert_int_equal(make_two(BUCKET), 0);
		put_one();
		assert_int_equal(remove_bucket(BUCKET), 0);
		fault_ring_hook = hook_supers;
		supers_left = after[n];
		ask_alone(DISK_DRAIN, "1", 0);
		while (!is_cut && clock_ns() < until)
			loop_for(&l, NS_PER_MS);
		assert_true(is_cut);
		down();
		supers_left = INT_MAX;
		is_cut = false;
		fault_ring_hook = hook;
		up();
		wait_for_mover();
		must_have_one();
		drains = __builtin_popcountll(set_of(st)->map->table.members) == 1;
		assert_int_equal(seconds_nr(), drains ? 0 : STORE_SLOT_NR);
		/* The first that is written is enough. */
		assert_int_equal(drains, after[n] > 0);
		if (!drains) {
			assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), 0);
			wait_for_mover();
		}
		assert_int_equal(make_two(BUCKET), -EDOM);
		assert_int_equal(ask_alone(DISK_ADD, dir[2], 128 * MIB), 0);
		wait_for_mover();
		assert_int_equal(make_two(BUCKET), 0);
		assert_true(is_full());
		must_have_one();
		teardown(state);
		setup_of(2);
	}
}

/* A key of the bucket of one copy whose disk is the second, put so often that its move takes time. */
static void
hold_up(void)
{
	char name[32];
	struct put_args a = { .bucket = "1b", .key = name, .size = 200000, .seed = 1 };

	for (int i = 0, nr = 0; nr < 4; i++) {
		struct store_key k;

		snprintf(name, sizeof name, "heavy-%d", i);
		k = key_of("1b", name);
		if (set_primary(set_of(st), &k) != 1)
			continue;
		assert_int_equal(obj_put(&l, &a), 0);
		nr++;
	}
}

/*
 * A second has missed that an object was removed, and the drain during which its disk failed was cancelled: what it has of that is of a bucket
 * which is no more.  In the next one of that name it is not: the disk has not all before it is gone.
 */
static void
left_over(bool is_made_at_once)
{
	static struct disk_table t;
	char name[32];
	struct store_key k;

	down();
	/* Nobody heals. */
	conf.disks.moves_wait = true;
	up();
	assert_int_equal(make_two(BUCKET), 0);
	put_one();
	hold_up();
	k = key_of_pair(name, 0, 1, 0);
	assert_int_equal(put_key(name, 70000, 1), 0);
	no_room_on = 1;
	assert_int_equal(put_key(name, 70000, 2), 0);
	no_room_on = -1;
	assert_false(key_is_full(&k));
	assert_int_equal(obj_delete(&l, BUCKET, name, NULL), 1);
	assert_int_equal(remove_bucket(BUCKET), 0);
	assert_true(version_of(0, &k) == 0 && version_of(1, &k) > 0);
	store_set_move_rate(st, 1);
	assert_int_equal(ask_alone(DISK_DRAIN, "1", 0), 0);
	/* It fails by the next change of buckets. */
	bad[1] = -EIO;
	assert_int_equal(make_bucket("1c", 1), 0);
	assert_false(set_is_in(set_of(st), 1));
	assert_int_equal(ask_alone(DISK_CANCEL, NULL, 0), 0);
	wait_for_mover();
	all_good();
	if (!is_made_at_once)
		conf.disks.moves_wait = false;
	restart();
	if (is_made_at_once) {
		assert_true(version_of(1, &k) > 0);
		assert_int_equal(make_two(BUCKET), 0);
		set_get_table(set_of(st), &t);
		for (int i = 0; i < STORE_SLOT_NR; i++)
			assert_int_equal(table_is_full(&t, i), t.second[i] != 1);
		conf.disks.moves_wait = false;
		restart();
	} else {
		wait_for_mover();
		assert_int_equal(version_of(1, &k), 0);
		assert_int_equal(make_two(BUCKET), 0);
		assert_true(is_full());
	}
	wait_full();
	assert_true(version_of(0, &k) == 0 && version_of(1, &k) == 0);
	assert_int_equal(obj_check(&l, BUCKET, name, 70000, 1), -ENOENT);
}

static void
test_to_one_left(void **state)
{
	left_over(true);
}

static void
test_to_one_left_removed(void **state)
{
	left_over(false);
}

/* ---- a disk that is given up ---- */

static void
give_up(int disk)
{
	conf.disks.forget = (const uint8_t(*)[UUID_BYTES]) & accepted[disk];
	conf.disks.forget_nr = 1;
	if (store_forget(&conf, err, sizeof err) < 0)
		fail_msg("%s", err);
	conf.disks.forget_nr = 0;
}

/* One of a pair is lost while the machine is off: the other one has all, and goes on when the operator says so. */
static void
test_forget(void **state)
{
	begin_changes();
	accept(1);
	down();
	leave_out(1, 2);
	conf.disks.accept_missing_nr = 2;
	assert_true(store_start(&conf, &st, err, sizeof err) < 0);
	assert_non_null(strstr(err, "only 1 of 2"));
	give_up(1);
	assert_string_equal(
		err,
		"given up: 1 disk; the store has 1 now; 0 of 4096 slots of keys with two copies begin empty");
	up();
	assert_int_equal(list_all(), KEYS);
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(check_nr(i, 1), 0);
		assert_int_equal(copies_of(i), 1);
	}
	assert_int_equal(ask(DISK_ADD, dir[2], 128 * MIB), 0);
	wait_for_end();
	must_be_whole();
}

/* What was written while the other one was away is lost with the disk that has it, and the operator is told how much that may be. */
static void
test_forget_exposed(void **state)
{
	static struct disk_table t;
	int slots = 0, lost = 0;
	char text[128];

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	accept(0);
	accept(1);
	down();
	leave_out(1, 3);
	conf.disks.accept_missing_nr = 2;
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	up();
	set_get_table(set_of(st), &t);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		slots += t.first[i] == 0 && !table_is_full(&t, i);
	assert_in_range(slots, 1, STORE_SLOT_NR - 1);
	down();
	all_again(3);
	leave_out(0, 3);
	give_up(0);
	snprintf(
		text, sizeof text,
		"given up: 1 disk; the store has 2 now; %d of 4096 slots of keys with two copies begin empty",
		slots);
	assert_string_equal(err, text);
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	up();
	for (int i = 0; i < KEYS; i++) {
		char name[32];
		struct store_key k;
		bool is_lost;

		snprintf(name, sizeof name, "key-%03d", i);
		k = key_of(BUCKET, name);
		is_lost = t.first[set_slot(&k)] == 0 && !table_is_full(&t, (int)set_slot(&k));
		assert_int_equal(check_nr(i, 1), is_lost ? -ENOENT : 0);
		lost += is_lost;
	}
	assert_in_range(lost, 1, KEYS - 1);
	assert_int_equal(list_all(), KEYS - lost);
	put_all(2);
	wait_full();
	must_have_all(2);
	must_have_copies(2);
}

/* Copies are being made again when an operator asks for what cannot be done: they are made all the same. */
static void
test_heals_behind_a_refusal(void **state)
{
	struct store_move_info i;
	uint64_t until = clock_ns() + PATIENCE_NS;

	begin_changes();
	accept(1);
	down();
	leave_out(1, 3);
	conf.disks.accept_missing_nr = 2;
	conf.disks.heal_after_ns = 1000 * NS_PER_S;
	up();
	put_all(1);
	down();
	all_again(3);
	conf.disks.move_rate = 1;
	up();
	do {
		loop_for(&l, NS_PER_MS);
		store_move_info(st, &i);
	} while ((!i.is_running || !i.bytes_done) && clock_ns() < until);
	assert_true(i.is_running);
	assert_false(is_full());
	assert_true(ask(DISK_ADD, "/dev/null/none", 128 * MIB) < 0);
	assert_false(is_full());
	store_set_move_rate(st, 0);
	wait_full();
	must_be_whole();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_made_without, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_made_beside, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_older_cut_start, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_unheard_start, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_fail_first, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_fail_last, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_heal_elsewhere, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_half_done, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_scrubbed, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_other_version, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_record_damaged, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_repaired_disk, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_hangs, setup_hang, teardown),
		cmocka_unit_test_setup_teardown(test_open_settled, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_table_before_answer, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_first_fails_behind, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_first_fails_in_table, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_begun_as_first_fails, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_part_begun_as_first_fails, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_drain_damaged, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_drain_unreadable, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_repaired_parts, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_uploads_settled, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_drain, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_drain_together, setup_four, teardown),
		cmocka_unit_test_setup_teardown(test_target_fails, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_target_fails_switching, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup_uneven, teardown),
		cmocka_unit_test_setup_teardown(test_add, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_missed_heals, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_second_full, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_heal_in_service, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_to_one, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_cancelled, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_race, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_cut, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_left, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_left_removed, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_forget_exposed, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_heals_behind_a_refusal, setup_three, teardown),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
