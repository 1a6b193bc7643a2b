/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets with two copies on a set of disks, see sim.h and many.c: who has to serve their keys behind a start, two changes of a key at
 * once, and both copies side by side when all is at rest.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"
#include "set/replicas.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* By disk; -1: none. */
struct pair {
	int first, second;
	bool is_full;
};

static struct pair before[STORE_SLOT_NR]; /* of the newest table that the disks of a start have */
static bool knows_before;
static unsigned tried; /* disks */
static struct pair owed
	[STORE_SLOT_NR]; /* those that were full when a start went on without either: the next that is there serves it */
static struct pair last[STORE_SLOT_NR]; /* of the table of the last life */
static bool knows_last;
static struct pair begun[STORE_SLOT_NR]; /* when this life began */
static bool begun_well;
static int copied_disk;         /* an older copy of it is there; -1: none is */
static uint64_t copied_version; /* of its table */
static int older_disk;          /* it was put back from its copy, and has had no table since; -1: none is */
static unsigned older_now;      /* bits of the disks that a start takes for older copies of themselves */
static unsigned rots, rotten;   /* bits of the disk whose bytes may rot; of which some have */

/* Bits of buckets: which have two copies, or are made so; of which it is open whether that was changed. */
static unsigned two, unsure;

bool
many_has_two(int b)
{
	return two >> b & 1;
}

unsigned
many_place(int b, int k)
{
	struct store_key sk = many_key(b, k);

	return set_slot(&sk) + (many_has_two(b) ? STORE_SLOT_NR : 0);
}

static void
pairs_of(const struct disk_table *t, struct pair *ret)
{
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		ret[i].first = moves_number(t, t->first[i]);
		ret[i].second = t->second[i] == TABLE_NO_DISK ? -1 : moves_number(t, t->second[i]);
		ret[i].is_full = table_is_full(t, i);
		if (ret[i].is_full && (ret[i].second < 0 || ret[i].first == ret[i].second))
			sim_fail("slot %d is full, and its disks are %d and %d", i, ret[i].first,
				 ret[i].second);
	}
}

static bool
has(unsigned disks, int disk)
{
	return disk >= 0 && disks >> disk & 1;
}

static bool
are_those(const struct pair *a, const struct pair *b)
{
	return (a->first == b->first && a->second == b->second) ||
	       (a->first == b->second && a->second == b->first);
}

/* ---- damage ---- */

/* Bytes that a client wrote: nothing else is all the same. */
static bool
is_clients(const uint8_t *page)
{
	enum { LIKE = 128 };

	return page[0] && memcmp(page, page + 1, LIKE - 1) == 0;
}

/* All keys with two copies have them, and the rest of what the disks have is such that a power cut takes none of it. */
int
pairs_may_rot(void)
{
	const struct set *s = set_of(sim_store);
	bool all = !simdisk_late();

	for (int i = 0; i < STORE_SLOT_NR; i++)
		all &= set_primary_at(s, (unsigned)(STORE_SLOT_NR + i)) != SET_NOWHERE &&
		       set_secondary_at(s, table_place((unsigned)i, true)) != SET_NOWHERE;
	return all ? __builtin_ctz(rots) : -1;
}

void
pairs_has_rotten(void)
{
	rotten = rots;
}

void
pairs_rot(void)
{
	int d = pairs_may_rot();

	for (int i = 0; d >= 0 && i < SEGS_MAX; i++) {
		int name = d * SIM_FILES + FILE_SEG + i, file;

		if (!simdisk_exists(name))
			continue;
		file = simdisk_open(name);
		for (uint32_t page = 0; page < simdisk_bytes(file) / PAGE; page++) {
			if (!is_clients(simdisk_page(file, page)) || !one_in(2))
				continue;
			simdisk_damage(file, page);
			counts.rots++;
			rotten = rots;
		}
	}
}

unsigned
pairs_rotten(void)
{
	return rotten;
}

/* ---- older copies ---- */

/* Nobody alone has what was acknowledged on that disk: of each key that it is the first of another one has all, and others have the newest table. */
static bool
others_have_all(int d)
{
	static struct disk_table t, its;
	int number;

	if (simdisk_late() || !moves_newest(~(1u << d), &t) || !moves_newest(1u << d, &its) ||
	    its.version > t.version)
		return false;
	number = table_find(&t, many_uuid[d]);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (number < 0 || !table_has(t.in, number) || (t.first[i] == number && !table_is_full(&t, i)))
			return false;
	}
	return true;
}

void
pairs_older(void)
{
	static struct disk_table t;

	if (simdisk_late() || older_disk >= 0)
		return;
	if (copied_disk < 0 || !one_in(prof.older)) {
		copied_disk = (int)below((uint32_t)prof.disks);
		check(moves_newest(1u << copied_disk, &t));
		copied_version = t.version;
		simdisk_copy(copied_disk);
		return;
	}
	/* One of this life, or the one before, is none that could be told. */
	check(moves_newest(~0u, &t));
	if (!others_have_all(copied_disk) ||
	    copied_version >> TABLE_CHANGE_BITS == t.version >> TABLE_CHANGE_BITS)
		return;
	say("disk %d is an older copy of itself", copied_disk);
	counts.older++;
	simdisk_put_back(copied_disk);
	older_disk = copied_disk;
	copied_disk = -1;
}

bool
pairs_can_start(unsigned present)
{
	static struct disk_table t, newest;

	if (older_disk < 0)
		return true;
	return !simdisk_late() && moves_newest(~0u, &newest) &&
	       moves_newest(present & ~(1u << older_disk), &t) && t.version == newest.version;
}

/* ---- starts ---- */

void
pairs_begin(void)
{
	two = prof.two;
	unsure = 0;
	copied_disk = older_disk = -1;
	rotten = 0;
	rots = 1u << below((uint32_t)prof.disks);
	knows_before = knows_last = false;
	memset(owed, 0, sizeof owed);
}

void
pairs_before_start(unsigned present)
{
	static struct disk_table t;

	tried = present;
	/* A start that could read only the older superblock of a disk has marked the disk as an older copy of itself. */
	older_now = older_disk >= 0 ? moves_behind(present) : prof.eio_read ? moves_marked(present) : 0;
	knows_last &= !(older_disk >= 0 && simdisk_late());
	/* One that was begun last may be in a superblock alone that cannot be read. */
	knows_before = prof.two && !simdisk_late() && !(prof.eio_read && sim_disk_may_fail) &&
		       moves_newest(present, &t);
	if (knows_before)
		pairs_of(&t, before);
	/* Nobody could write what neither of them was there for. */
	for (int i = 0; knows_before && i < STORE_SLOT_NR; i++)
		before[i].is_full |= owed[i].is_full && are_those(&owed[i], &before[i]);
}

void
pairs_not_started(void)
{
	/* It may have written a table without those that were not there. */
	knows_last = false;
	memset(owed, 0, sizeof owed);
}

/* Whoever is first, or was second and had all, serves: so the table said, and so it was when the last life ended. */
void
pairs_started(unsigned serving)
{
	const struct set *s = set_of(sim_store);
	unsigned good = serving & ~older_now;

	if (has(serving, older_disk))
		older_disk = -1;
	/* One that failed on the way may have had a newer table. */
	knows_before &= !(tried & ~serving);
	knows_last &= !(tried & ~serving);
	for (int i = 0; prof.two && i < STORE_SLOT_NR; i++) {
		bool serves = set_primary_at(s, (unsigned)(STORE_SLOT_NR + i)) != SET_NOWHERE;
		const struct pair *p = &before[i], *l = &last[i];

		if (knows_before && serves != (has(p->is_full ? good : serving, p->first) ||
					       (p->is_full && has(good, p->second))))
			sim_fail("of slot %d disk %d was the first, disk %d the second%s: it is %sserved", i,
				 p->first, p->second, p->is_full ? ", and full" : "", serves ? "" : "not ");
		if (knows_last && !serves && (has(good, l->first) || (l->is_full && has(good, l->second))))
			sim_fail("slot %d was on disk %d and disk %d%s, and is not served", i, l->first,
				 l->second, l->is_full ? ", both full" : "");
		owed[i] = knows_before && !has(serving, p->first) && !has(serving, p->second)
				  ? *p
				  : (struct pair){ .is_full = false };
	}
	begun_well = prof.two;
	if (begun_well)
		pairs_of(&s->map.table, begun);
}

/* The process is about to die.  hurt: a disk has failed, or may have. */
void
pairs_die(bool hurt)
{
	const struct set *s = set_of(sim_store);

	counts.missed += set_counted(s, COUNT_MISSED);
	counts.read_second += set_counted(s, COUNT_READ_SECONDARY);
	counts.repaired += set_counted(s, COUNT_REPAIRED);
	knows_last = prof.two && !hurt && !s->map.settling && s->map.begun == set_in(s) &&
		     s->map.unwritten == 0 && !set_is_read_only(s);
	if (!knows_last)
		return;
	pairs_of(&s->map.table, last);
	for (int i = 0; i < STORE_SLOT_NR && !prof.moves && !set_counted(s, COUNT_MISSED); i++) {
		if (begun[i].is_full && !last[i].is_full)
			sim_fail("the second of slot %d had all, and nothing has happened to it", i);
	}
}

bool
pairs_is_away(int b, int k)
{
	return set_primary_at(set_of(sim_store), (unsigned)(many_place(b, k))) == SET_NOWHERE;
}

bool
pairs_first_is_away(int b, int k)
{
	const struct set *s = set_of(sim_store);
	int engine = set_engine_of(s, s->map.table.first[many_place(b, k) % STORE_SLOT_NR]);

	return engine < 0 || !set_is_in(s, engine);
}

bool
pairs_one_is_away(int b, int k)
{
	return set_primary_at(set_of(sim_store), (unsigned)(many_place(b, k) % STORE_SLOT_NR)) == SET_NOWHERE;
}

bool
pairs_miss_some(void)
{
	const struct set *s = set_of(sim_store);

	for (int i = STORE_SLOT_NR; i < STORE_PLACE_NR; i++) {
		if (set_primary_at(s, (unsigned)i) == SET_NOWHERE)
			return true;
	}
	return false;
}

bool
pairs_are_lost_with(const struct disk_table *t, int disk, int b, int k)
{
	unsigned slot = many_place(b, k) % STORE_SLOT_NR;
	int second = t->second[slot] == TABLE_NO_DISK ? -1 : moves_number(t, t->second[slot]);

	return moves_number(t, t->first[slot]) == disk && (second < 0 || !table_is_full(t, (int)slot));
}

/* The disk that has all of it, too; -1: none. */
int
pairs_second(int b, int k)
{
	const struct set *s = set_of(sim_store);
	int engine = set_secondary_at(s, many_place(b, k));

	return engine == SET_NOWHERE ? -1 : moves_disk(s, engine);
}

/* ---- another number of copies ---- */

void
pairs_see_bucket(int b, unsigned copies)
{
	bool is = copies == 2;

	if (is != many_has_two(b) && !(unsure >> b & 1))
		sim_fail("bucket %d has %u copies", b, copies);
	two = (two & ~(1u << b)) | (unsigned)is << b;
	unsure &= ~(1u << b);
}

bool
pairs_are_sure(void)
{
	return unsure == 0;
}

void
pairs_copies_main(int nr)
{
	struct many_client *c = &many_clients[0];
	int b = one_in(2), full, r;
	unsigned copies = many_has_two(b) ? 1 : 2;

	if (many_buckets[b].nr > 1 || many_buckets[b].may[0] == 0 || many_buckets[b].is_open)
		return;
	for (int k = one_in(3) ? KEYS : 0; k < KEYS; k++) {
		if (many_keys[b][k].nr > 1 || many_keys[b][k].may[0] != 0)
			many_delete(c, b, k);
	}
	full = many_is_full(b);
	many_begin(c);
	unsure |= full == 1 ? 0 : 1u << b;
	say("client 0 gives bucket %d %u copies, and %s", b, copies,
	    full < 0 ? "may be something"
	    : full   ? "something is in it"
		     : "nothing is in it");
	r = many_wait(c, store_bucket_create(many_port(c), bucket_name(b), strlen(bucket_name(b)), copies,
					     &c->u.del));
	say("%u copies of bucket %d: %d", copies, b, r);
	counts.copies_changed += r == 0;
	if ((r == 0 && full == 1) || (r == -ENOTEMPTY && full == 0) || r == -EEXIST)
		sim_fail("bucket %d gets %u copies: %d, and %s in it", b, copies, r,
			 full == 1 ? "there is something" : "there is nothing");
	if (r == -EDOM && !(copies == 2 && (prof.moves || set_disks(set_of(sim_store)) < 2)))
		sim_fail("there are %d disks, and two copies are refused", set_disks(set_of(sim_store)));
	if (r < 0 && r != -ENOTEMPTY && r != -EDOM)
		many_check_bucket_error(r, true, "giving a bucket another number of copies");
	if (r == 0)
		two ^= 1u << b;
	/* Whatever else it says, some disks may have it. */
	if (r == 0 || r == -ENOTEMPTY || r == -EDOM || r == -ENODEV || r == -EAGAIN)
		unsure &= ~(1u << b);
}

/* ---- two changes at once ---- */

static struct twin {
	union {
		struct store_op op;
		struct store_put put;
		struct store_del del;
	} u;
	bool flag;
	int result;
	uint32_t id; /* 0: it deletes */
} twins[CLIENTS][2];

static void
on_twin(struct store_op *op)
{
	container_of(op, struct twin, u.op)->flag = true;
}

static void
begin_twin(struct store_port *p, struct twin *t, const struct store_key *sk)
{
	struct store_commit sc = { .inline_data = "inlined!", .inline_len = 8 };

	memset(t, 0, offsetof(struct twin, id));
	t->u.op.done = on_twin;
	if (t->id) {
		memcpy(sc.meta.etag.sum, &t->id, sizeof t->id);
		t->result = store_put_init(p, &t->u.put, sk, 8);
		if (t->result == 0)
			t->result = store_put_commit(p, &t->u.put, &sc);
	} else {
		t->result = store_delete(p, sk, NULL, &t->u.del);
	}
	t->flag = t->result != 0;
	if (t->result > 0)
		t->result = t->u.op.result;
}

void
do_twins(struct many_client *c, int b, int k)
{
	struct store_key sk = many_key(b, k);
	struct cell *cell = &many_keys[b][k];
	struct twin *t = twins[c->nr];
	uint64_t since;

	many_begin(c);
	if (!cell_rests(cell))
		return;
	for (int i = 0; i < 2; i++) {
		t[i].id = i && one_in(3) ? 0 : ++many_ids;
		if (t[i].id)
			quotas_size(t[i].id, 8);
	}
	quotas_leaves(b, cell);
	cell->pending = t[0].id;
	cell->other = t[1].id;
	cell->since = since = ++many_events;
	counts.puts += 2;
	say("client %d puts %u and %u at once in bucket %d key %d, at home on %d", c->nr, t[0].id, t[1].id, b,
	    k, many_home(b, k));
	for (int i = 0; i < 2; i++) {
		begin_twin(many_port(c), &t[i], &sk);
		if (i == 0 && one_in(2))
			co_yield ();
	}
	for (int i = 0; i < 2; i++) {
		bool waited = !t[i].flag || t[i].result == 0;

		co_wait(&t[i].flag, c->port);
		if (waited && t[i].result == 0)
			t[i].result = t[i].u.op.result;
		if (t[i].id)
			store_put_abort(many_port(c), &t[i].u.put);
	}
	say("put of %u: %d; of %u: %d", t[0].id, t[0].result, t[1].id, t[1].result);
	for (int i = 0; i < 2; i++) {
		/* As in do_del(). */
		if (t[i].result >= 0 && many_is_away(b, k) && (t[i].id || !many_may_lack(b, since)))
			sim_fail("a change of bucket %d key %d is acknowledged, and its disk is away", b, k);
		if (t[i].id)
			many_check_carried(t[i].result, "one of two PUTs");
		if (t[i].result == -EDQUOT)
			quotas_check_refused(b, since, "one of two PUTs");
		else if (t[i].result < 0 && t[i].result != -ENXIO && (t[i].id || t[i].result != -ENOENT))
			many_check_key_error(t[i].result, b, k, since, "one of two changes");
	}
	cell_twins_over(cell, t[0].result, t[0].id, t[1].result, t[1].id);
}

/* ---- at rest ---- */

struct found {
	struct store_walk w;
	int first, second; /* disks */
};

static bool
on_different(struct store_walk *w, const struct store_key *k)
{
	const struct found *f = container_of(w, struct found, w);

	sim_fail("%.*s %.*s is not the same on disk %d and on disk %d", k->bucket_len, k->bucket, k->key_len,
		 k->key, f->first, f->second);
	return true;
}

static _Alignas(4096) char side_memory[2][STORE_PIECE + BUF_SLACK_BYTES];

struct side {
	struct store_port *p;
	int disk;
	struct store_obj obj;
	struct store_read rd;
	struct buf buf;
	bool flag;
};
static struct side sides[2];

static void
on_read(struct store_op *op)
{
	container_of(op, struct side, rd.op)->flag = true;
}

static int
read_side(struct side *s, uint64_t off, uint32_t n)
{
	int r;

	s->flag = false;
	s->rd = (struct store_read){ .op.done = on_read };
	r = store_read(s->p, &s->obj, &s->rd, &s->buf, off, n);
	if (r == 0)
		co_wait(&s->flag, 0);
	return r < 0 ? r : s->rd.op.result;
}

static void
same_bytes(int b, int k, uint64_t size)
{
	uint32_t skew;

	for (uint64_t off = 0, n; off < size; off += n - skew) {
		n = store_read_plan(&sides[0].obj, off, size - off, STORE_PIECE, &skew);
		for (int i = 0; i < 2; i++) {
			int r = read_side(&sides[i], off - skew, (uint32_t)n);

			if (r < 0)
				sim_fail("a copy cannot be read: %d", r);
		}
		if (memcmp(sides[0].buf.mem + sides[0].rd.lead + skew,
			   sides[1].buf.mem + sides[1].rd.lead + skew, n - skew) != 0)
			sim_fail("the copies of bucket %d key %d have different bytes", b, k);
	}
}

/* Opens both copies at their disks.  False: there are not two. */
static bool
open_sides(struct set_port *sp, int b, int k, int r[2])
{
	const struct set *s = sp->set;
	struct store_key sk = many_key(b, k);
	int engine[2] = { set_primary_at(s, many_place(b, k)), set_secondary_at(s, many_place(b, k)) };

	if (engine[0] == SET_NOWHERE || engine[1] == SET_NOWHERE)
		return false;
	sk.copies = 2;
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){ .p = port_engine(sp, engine[i]), .disk = moves_disk(s, engine[i]) };
		sides[i].buf = (struct buf){ .mem = side_memory[i], .cap_bytes = STORE_PIECE };
		r[i] = store_open(sides[i].p, &sk, &sides[i].obj);
		if (r[i] > 0)
			r[i] = sides[i].obj.op.result;
	}
	return true;
}

static void
same_object(struct set_port *sp, int b, int k)
{
	int r[2];

	if (!open_sides(sp, b, k, r))
		return;
	if (r[0] != r[1])
		sim_fail("bucket %d key %d is %d on disk %d, %d on disk %d", b, k, r[0], sides[0].disk, r[1],
			 sides[1].disk);
	if (r[0] < 0)
		return;
	if (sides[0].obj.version != sides[1].obj.version || sides[0].obj.crc64 != sides[1].obj.crc64 ||
	    sides[0].obj.size_bytes != sides[1].obj.size_bytes ||
	    sides[0].obj.part_nr != sides[1].obj.part_nr ||
	    sides[0].obj.meta.mtime_ns != sides[1].obj.meta.mtime_ns ||
	    sides[0].obj.meta.expires_ns != sides[1].obj.meta.expires_ns ||
	    sides[0].obj.meta.attrs_len != sides[1].obj.meta.attrs_len ||
	    memcmp(&sides[0].obj.meta.etag, &sides[1].obj.meta.etag, sizeof sides[0].obj.meta.etag) != 0 ||
	    (sides[0].obj.meta.attrs_len &&
	     memcmp(sides[0].obj.meta.attrs, sides[1].obj.meta.attrs, sides[0].obj.meta.attrs_len) != 0))
		sim_fail("the copies of bucket %d key %d are not of one version", b, k);
	same_bytes(b, k, sides[0].obj.size_bytes);
	counts.compared++;
	for (int i = 0; i < 2; i++)
		store_close(sides[i].p, &sides[i].obj);
}

static struct set_port *
first_port(void)
{
	static const bool yes = true;

	co_wait(&yes, 0);
	if (ports[0].asleep)
		store_turn(ports[0].p, TURN_WAKES);
	ports[0].asleep = false;
	return set_port(ports[0].p);
}

/* ---- mending ---- */

static struct mender {
	struct store_obj obj;
	struct store_read rd;
	bool opened, was_read;
} mender;

static void
on_mender_open(struct store_op *op)
{
	mender.opened = true;
}

static void
on_mender_read(struct store_op *op)
{
	mender.was_read = true;
}

/* Reads one copy as the scrub does. */
static void
read_copy(int b, int k, bool is_second)
{
	struct mender *m = &mender;
	struct store_key sk = many_key(b, k);
	struct store_port *p = ports[0].p;
	uint32_t skew;
	int r;

	*m = (struct mender){ .obj.op.done = on_mender_open };
	r = is_second ? store_open_second(p, &sk, &m->obj) : store_open(p, &sk, &m->obj);
	if (r == 0)
		co_wait(&m->opened, 0);
	if (r < 0 || m->obj.op.result < 0)
		return;
	sides[0].buf = (struct buf){ .mem = side_memory[0], .cap_bytes = STORE_PIECE };
	for (uint64_t off = 0, n; off < m->obj.size_bytes; off += n - skew) {
		n = store_read_plan(&m->obj, off, m->obj.size_bytes - off, STORE_PIECE, &skew);
		m->was_read = false;
		m->rd = (struct store_read){ .op.done = on_mender_read };
		r = store_read(p, &m->obj, &m->rd, &sides[0].buf, off - skew, (uint32_t)n);
		if (r == 0)
			co_wait(&m->was_read, 0);
		if (!is_second && (r < 0 || m->rd.op.result < 0))
			sim_fail("bucket %d key %d: %d, and it has two copies of which one is whole", b, k,
				 r < 0 ? r : m->rd.op.result);
	}
	store_close(p, &m->obj);
}

/* Returns true if a disk cannot read its copy. */
static bool
is_damaged(struct set_port *sp, int b, int k)
{
	bool is = false;
	int r[2];

	if (!open_sides(sp, b, k, r))
		return false;
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];
		uint32_t skew;

		is |= r[i] < 0 && r[i] != -ENOENT && r[i] != -ENXIO;
		for (uint64_t off = 0, n; r[i] >= 0 && off < s->obj.size_bytes; off += n - skew) {
			n = store_read_plan(&s->obj, off, s->obj.size_bytes - off, STORE_PIECE, &skew);
			is |= read_side(s, off - skew, (uint32_t)n) < 0;
		}
		if (r[i] >= 0)
			store_close(s->p, &s->obj);
	}
	return is;
}

static bool
some_are_damaged(struct set_port *sp)
{
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS && many_has_two(b); k++) {
			if (is_damaged(sp, b, k))
				return true;
		}
	}
	return false;
}

/* One is mended at a time, after a read of it. */
static void
mend_all(struct set_port *sp)
{
	static const bool yes = true;

	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < 2 * KEYS && many_has_two(b); k++) {
			read_copy(b, k / 2, k % 2);
			while (!list_empty(port_waiting(sp, PORT_REPAIRS)))
				co_wait(&yes, 0);
		}
	}
}

/* A repair is a change like others: while the log has no room it ends with -EAGAIN, and the next read of the object requests
 * it again (docs/set.md, Repair). */
void
pairs_mend_main(int nr)
{
	enum { PASSES = 5 };
	struct set_port *sp = first_port();

	mend_all(sp);
	for (int i = 1; i < PASSES && some_are_damaged(sp); i++)
		mend_all(sp);
}

/* Both disks of each slot have the same records. */
static void
same_indexes(struct set_port *sp)
{
	const struct set *s = sp->set;

	for (int i = 0; i < set_engines(s); i++) {
		for (int j = 0; j < set_engines(s); j++) {
			struct store_slots slots = { 0 };
			struct found f = { .w.slots = &slots,
					   .w.differs_from = port_engine(sp, j),
					   .w.key = on_different,
					   .first = moves_disk(s, i),
					   .second = moves_disk(s, j) };

			for (int k = 0; k < STORE_SLOT_NR; k++) {
				int first = set_primary_at(s, (unsigned)(STORE_SLOT_NR + k)),
				    second = set_secondary_at(s, table_place((unsigned)k, true));

				if (second != SET_NOWHERE &&
				    ((first == i && second == j) || (first == j && second == i)))
					slots_add(&slots, (unsigned)(STORE_SLOT_NR + k));
			}
			if (i == j || !(set_all(s) >> i & 1) || !(set_all(s) >> j & 1))
				continue;
			do
				check(port_engine(sp, i)->ops->member->walk(port_engine(sp, i), &f.w) >= 0);
			while (f.w.more);
		}
	}
}

/* What a start leaves, before anybody writes. */
void
pairs_same_main(int nr)
{
	struct set_port *sp = first_port();

	if (sim_rule_on[SIM_ALIGN_START] && many_hurt() == 0)
		same_indexes(sp);
}

/* When nothing is under way: whoever is said to have all has it. */
void
pairs_settled_main(int nr)
{
	struct set_port *sp = first_port();

	if (sim_rule_on[SIM_COPY_BEFORE_ANSWER])
		same_indexes(sp);
}

/* Each key with two copies has them, and they are equal; as a client, when nobody else is one. */
void
pairs_check_main(int nr)
{
	struct set_port *sp = first_port();
	const struct set *s = sp->set;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int first = set_primary_at(s, (unsigned)(STORE_SLOT_NR + i)),
		    second = set_secondary_at(s, table_place((unsigned)i, true));

		if (table_is_full(&s->map.table, i) != (second != SET_NOWHERE))
			sim_fail("slot %d: the second is %sfull, and is %d", i,
				 table_is_full(&s->map.table, i) ? "" : "not ", second);
		if (set_uses_pairs(s) && set_units(s) > 1 && set_disks(s) > 1 && first != SET_NOWHERE &&
		    second == SET_NOWHERE && !prof.eio_write && !s->conf.disks.moves_wait)
			sim_fail("slot %d has one copy, and nobody makes another", i);
	}
	same_indexes(sp);
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS && many_has_two(b); k++)
			same_object(sp, b, k);
	}
}
