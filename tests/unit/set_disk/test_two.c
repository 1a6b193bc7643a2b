/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets with two copies on disks that fail, hang, are full, damaged or repaired.  These are on files because errors of files, damage of
 * bytes and sectors, the room of a disk as its segments have it, and a disk's own repair are tested; set/test_mem_copies, test_mem_pairs and
 * test_mem_moves have all else.
 */
#include "extent/engine.h" /* ahead of the rig, whose names it does not know */

#include "disks_rig.h"

#include "set/map_change.h"
#include "tests/unit/extent/crumbs.h"
#include "tests/unit/extent/drop.h"
#include "tests/fake/fault_ring.h"

#include "set/replicas.h"

#define BUCKET "2b"
#define KEYS 60

static struct loop l;

/* Results of writes, by disk: -errno, or FAULT_HOLD; 0: none fails. */
static _Atomic int bad[DISKS];
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
	for (int i = 0; i < DISKS; i++) {
		if (bad[i] && io->kind == FAULT_WRITE && strncmp(io->path, dir[i], strlen(dir[i])) == 0)
			return bad[i];
	}
	return 0;
}

static void
all_good(void)
{
	for (int i = 0; i < DISKS; i++)
		bad[i] = 0;
	unreadable = no_room_on = -1;
}

static void
turn_a_while(void)
{
	loop_for(&l, NS_PER_MS);
}

static void
up(void)
{
	if (store_start(&conf, &st, err, sizeof err) < 0)
		fail_msg("%s", err);
	loop_start(&l, st);
	turn_other = turn_a_while;
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
	wait_until(is_full())
		loop_for(&l, NS_PER_MS);
}

/* ---- a disk fails ---- */

static void
fail_one(int disk)
{
	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	bad[disk] = -EIO;
	for (int i = 0; i < KEYS; i++) {
		int r;

		/* A PUT whose first disk fails under it is to be sent again. */
		wait_until((r = put_nr(i, 2)) == 0) {
			assert_true(r == -ECANCELED || r == -EROFS || r == -EAGAIN);
			loop_for(&l, NS_PER_MS);
		}
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
	uint64_t seen = 0, now;
	struct set *c;

	assert_int_equal(make_two(BUCKET), 0);
	put_all(1);
	lose(0);
	must_have_all(1);
	c = set_of(st);
	assert_true(set_counted(c, COUNT_READ_SECONDARY) > 0);
	/* One at a time is mended, as it is read. */
	wait_until((now = set_counted(c, COUNT_READ_SECONDARY)) == seen) {
		seen = now;
		must_have_all(1);
		loop_for(&l, 20 * NS_PER_MS);
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

/* ---- a secondary that is full ---- */

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
		key_with_one(other, 1, i);
		assert_int_equal(obj_delete(&l, "1b", other, NULL), 1);
		wait_until((store_unit_info(st, 1, &after), after.free_bytes >= (uint64_t)(i + 1) * 4 * MIB))
			loop_for(&l, NS_PER_MS);
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
	assert_int_equal(ask(DISK_DRAIN, dir[1]), 0);
	wait_for_mover();
	assert_int_equal(__builtin_popcountll(set_of(st)->map.table.members), 2);
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

/* ---- records that outlive their bucket ---- */

/* What was put into the bucket of one copy before. */
static void
put_one(void)
{
	struct put_args a = { .bucket = "1b", .key = "one", .size = 70000, .seed = 1 };

	assert_int_equal(make_bucket("1b", 1), 0);
	assert_int_equal(obj_put(&l, &a), 0);
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
	assert_int_equal(ask(DISK_DRAIN, dir[1]), 0);
	/* It fails by the next change of buckets. */
	bad[1] = -EIO;
	assert_int_equal(make_bucket("1c", 1), 0);
	assert_false(set_is_in(set_of(st), 1));
	assert_int_equal(ask(DISK_CANCEL, NULL), 0);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fail_first, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_fail_last, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_scrubbed, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_repaired_disk, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_hangs, setup_hang, teardown),
		cmocka_unit_test_setup_teardown(test_drain_damaged, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_drain_unreadable, setup_three, teardown),
		cmocka_unit_test_setup_teardown(test_repaired_parts, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_second_full, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_left, setup_two, teardown),
		cmocka_unit_test_setup_teardown(test_to_one_left_removed, setup_two, teardown),
	};

	if (getenv("ONLY"))
		cmocka_set_test_filter(getenv("ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
