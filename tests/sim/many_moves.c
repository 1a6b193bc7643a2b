/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while a set of them serves, see sim.h and many.c: an operator drains, adds and cancels while clients go on.
 * The mover of the set is a coroutine: what it asks of threads is here.
 *
 * Where a slot is, and who is a member, may hang on which table a cut left: there the table is believed, and the checker asks
 * whether everything is where it says.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"
#include "model/quota.h"
#include "set/replicas.h"
/* Of the engine there is one, too. */
#define mover set_mover
#include "set/mover.h"
#undef mover

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFS 3 /* MOVE_SENDS */

static unsigned made;                     /* bits: a store is on them */
static unsigned gone;                     /* ... that was drained or given up, and may not serve any more */
static unsigned may_have[STORE_PLACE_NR]; /* disks that had the place in this life */
static int next_swing;                    /* the disk whose turn it is to be drained */
static bool may_move;                     /* slots may have moved since they were looked at */

/* ---- threads ---- */

int sim_mover_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int sim_mover_join(pthread_t thread, void **ret);
int sim_mover_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int sim_mover_name(pthread_t thread, const char *name);
int sim_user_turn(struct ring *r, uint64_t wait_ns);
void sim_looked_up(void);
int sim_format_one(const struct store_conf *conf, bool force, char *err, size_t err_len);
int sim_bufs_init(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base);
struct buf *sim_bufs_get(struct bufpool *bp, enum buf_class cls);
void sim_bufs_put(struct bufpool *bp, struct buf *b);
void sim_bufs_fini(struct bufpool *bp);

static void *(*mover_fn)(void *);
static void *mover_arg;

static void
mover_main(int nr)
{
	mover_fn(mover_arg);
}

int
sim_mover_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	memset(thread, 0, sizeof *thread);
	mover_fn = fn;
	mover_arg = arg;
	co_start(CO_MOVER, 0, mover_main);
	return 0;
}

int
sim_mover_join(pthread_t thread, void **ret)
{
	while (co_runs(CO_MOVER, 0))
		co_poll(NULL);
	return 0;
}

int
sim_mover_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	co_poll(NULL);
	pthread_mutex_lock(mutex);
	return 0;
}

int
sim_mover_name(pthread_t thread, const char *name)
{
	return 0;
}

void
moves_note(void)
{
	const struct set *s = set_of(sim_store);

	for (int i = 0; i < STORE_PLACE_NR; i++) {
		if (set_primary_at(s, (unsigned)i) != SET_NOWHERE)
			may_have[i] |= 1u << moves_disk(s, set_primary_at(s, (unsigned)i));
	}
}

/* Who waits by a loop of his own: only the mover does so while others go on. */
int
sim_user_turn(struct ring *r, uint64_t wait_ns)
{
	if (!co_is(CO_MOVER))
		return ring_turn(r, wait_ns);
	if (sim_store)
		moves_note();
	co_poll(r);
	return ring_turn(r, 0);
}

void
sim_looked_up(void)
{
	struct many_client *c = many_self;

	if (!co_is(CO_CLIENT) || !one_in(prof.look_hold))
		return;
	ports[c->port].busy = c->nr + 1;
	for (uint32_t n = 1 + below(400); n; n--)
		co_yield ();
	ports[c->port].busy = 0;
}

/* ---- buffers of the mover ---- */

static struct buf bufs[BUFS];
static _Alignas(4096) char buf_memory[BUFS][STORE_PIECE + BUF_SLACK_BYTES];

int
sim_bufs_init(struct bufpool *bp, enum buf_class cls, size_t bytes, int region_base)
{
	for (int i = 0; i < BUFS; i++)
		bufs[i] = (struct buf){ .mem = buf_memory[i], .cap_bytes = STORE_PIECE };
	return 0;
}

struct buf *
sim_bufs_get(struct bufpool *bp, enum buf_class cls)
{
	for (int i = 0; i < BUFS; i++) {
		if (!bufs[i].in_use) {
			bufs[i].in_use = true;
			return &bufs[i];
		}
	}
	check(!"the mover has more buffers than are there");
	return NULL;
}

void
sim_bufs_put(struct bufpool *bp, struct buf *b)
{
	b->in_use = false;
}

void
sim_bufs_fini(struct bufpool *bp)
{
	for (int i = 0; i < BUFS; i++)
		check(!bufs[i].in_use);
}

/* ---- who is who ---- */

/* "sim", "sim1", ... */
static int
number_in(const char *path)
{
	return atoi(path + strlen("sim"));
}

int
moves_disk(const struct set *s, int engine)
{
	return number_in(extent_store(set_engine(s, engine))->vol->disk.path);
}

unsigned
moves_members(const struct disk_table *t)
{
	unsigned bits = 0;

	for (int d = 0; d < prof.disks; d++) {
		if ((made >> d & 1) && table_find(t, many_uuid[d]) >= 0)
			bits |= 1u << d;
	}
	return bits;
}

int
moves_number(const struct disk_table *t, int number)
{
	for (int d = 0; d < prof.disks; d++) {
		if ((made >> d & 1) && memcmp(t->uuid[number], many_uuid[d], UUID_BYTES) == 0)
			return d;
	}
	return -1;
}

int
moves_home(const struct disk_table *t, int slot)
{
	return moves_number(t, t->home[slot]);
}

/* The newest superblock of a disk. */
static bool
newest_super(int d, struct super *ret)
{
	static const int names[] = { FILE_SUPER, FILE_SUPER2 };
	static uint8_t bytes[FMT_SUPER_BYTES];
	static struct super sb;
	uint64_t gen = 0;

	for (int i = 0; made >> d & 1 && i < 2; i++) {
		int file = simdisk_open(d * SIM_FILES + names[i]);

		for (uint32_t page = 0; page < FMT_SUPER_BYTES / PAGE; page++)
			memcpy(bytes + page * PAGE, simdisk_page(file, page), PAGE);
		if (super_decode(bytes, sizeof bytes, &sb) < 0 || sb.gen < gen)
			continue;
		gen = sb.gen;
		*ret = sb;
	}
	return gen != 0;
}

bool
moves_newest(unsigned disks, struct disk_table *ret_table)
{
	static struct super newest;
	bool found = false;

	for (int d = 0; d < prof.disks; d++) {
		/* One that was drained may know it. */
		if (!(disks >> d & 1) || !newest_super(d, &newest) ||
		    table_find(&newest.table, newest.disk_uuid) < 0)
			continue;
		if (!found || newest.table.version > ret_table->version)
			*ret_table = newest.table;
		found = true;
	}
	return found;
}

unsigned
moves_behind(unsigned disks)
{
	static struct disk_table t;
	static struct super sb;
	unsigned bits = 0;

	if (simdisk_late() || !moves_newest(disks, &t))
		return disks;
	for (int d = 0; d < prof.disks; d++) {
		int number = table_find(&t, many_uuid[d]);

		if (!(disks >> d & 1) || number < 0 || !table_has(t.in, number) || !newest_super(d, &sb))
			continue;
		bits |= (unsigned)(sb.start_no < t.version >> TABLE_CHANGE_BITS || sb.is_behind) << d;
	}
	return bits;
}

unsigned
moves_marked(unsigned disks)
{
	static struct super sb;
	unsigned bits = 0;

	for (int d = 0; d < prof.disks; d++) {
		if ((disks >> d & 1) && newest_super(d, &sb))
			bits |= (unsigned)sb.is_behind << d;
	}
	return bits;
}

unsigned
moves_gone(void)
{
	return gone;
}

unsigned
moves_made(void)
{
	return made;
}

void
moves_leave(int disk)
{
	gone |= 1u << disk;
}

bool
moves_may(void)
{
	return may_move;
}

void
moves_looked(const struct disk_table *t)
{
	may_move = (t->draining | t->filling) != 0;
	memset(may_have, 0, sizeof may_have);
	moves_note();
}

unsigned
moves_had(unsigned place)
{
	if (sim_store)
		moves_note();
	return may_have[place];
}

void
moves_begin(unsigned members)
{
	made = members;
	gone = 0;
	next_swing = 0;
	may_move = false;
	memset(may_have, 0, sizeof may_have);
}

void
moves_die(void)
{
	const struct set *s = set_of(sim_store);

	for (int i = 0; i < set_units(s); i++) {
		if (set_is_drained(s, i)) {
			int engine = set_unit(s, i)->engine;
			int d = engine == SET_NOWHERE ? number_in(set_unit(s, i)->path)
						      : moves_disk(s, engine);

			counts.drained++;
			/* One that was drained before the start may have been made anew since. */
			if (engine != SET_NOWHERE || !(many_disks_of(s, UINT64_MAX) >> d & 1))
				gone |= 1u << d;
		}
	}
	/* Twice each time. */
	counts.slots_moved += s->placement.relocations / 2;
}

/* ---- what an operator does ---- */

static const char *const paths[DISKS_MAX] = { "sim", "sim1", "sim2", "sim3", "sim4" };

/* In place of store_format(): at once, as on the others. */
int
sim_format_one(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	const struct store_birth *b = conf->disks.birth;
	int d = number_in(conf->disks.disk->path);
	static struct super sb;

	if ((made >> d & 1) && !force) {
		snprintf(err, err_len, "has a store already");
		return -EALREADY;
	}
	sb = sim_super();
	memcpy(sb.store_uuid, b->store_uuid, UUID_BYTES);
	memcpy(sb.disk_uuid, b->table.uuid[b->number], UUID_BYTES);
	memcpy(many_uuid[d], sb.disk_uuid, UUID_BYTES);
	sb.table = b->table;
	for (int name = d * SIM_FILES; name < (d + 1) * SIM_FILES; name++) {
		if (simdisk_exists(name))
			simdisk_unlink(name);
	}
	sim_make_disk(d, &sb);
	made |= 1u << d;
	gone &= ~(1u << d);
	return 0;
}

static bool
runs(void)
{
	struct store_move_info info;

	store_move_info(sim_store, &info);
	return info.is_running;
}

/* ... but for what gives way. */
static bool
is_busy(void)
{
	return runs() && ((const struct set_mover *)(const void *)set_of(sim_store)->mover)->job != JOB_HEAL;
}

static bool
is_engine(int disk)
{
	const struct set *s = set_of(sim_store);

	for (int i = 0; i < set_engines(s); i++) {
		if (moves_disk(s, i) == disk)
			return true;
	}
	return false;
}

static int
change(const struct store_disk_change *c)
{
	static const char *const words[] = { "drains", "adds", "cancels" };
	char said[256] = "";
	int r;

	say("the operator %s %s", words[c->kind], c->disk ? c->disk : "");
	r = store_change_disks(sim_store, c, said, sizeof said);
	say("the operator %s: %d %s", words[c->kind], r, said);
	return r;
}

/* Some disk explains it. */
static bool
is_hurt(void)
{
	return many_hurt() != 0;
}

/* What runs is about to end: it is waited for by who asks for the next. */
static bool
is_ending(void)
{
	const struct set *s = set_of(sim_store);
	const struct set_mover *m = (const void *)s->mover;

	return !(s->map.table.draining | s->map.table.filling) ||
	       (m->cancel_is_answered && m->cancelled == 0);
}

static bool
was_drained(const struct set *s, int disk)
{
	for (int i = 0; i < set_units(s); i++) {
		int engine = set_unit(s, i)->engine;

		if ((set_is_drained(s, i)) &&
		    (engine == SET_NOWHERE ? number_in(set_unit(s, i)->path) : moves_disk(s, engine)) == disk)
			return true;
	}
	return false;
}

/* A bucket with two copies that a disk which is there has; -1: there is none. */
static int
find_two(const struct set *s)
{
	for (int b = 0; b < BUCKETS; b++) {
		uint8_t key[1 + STORE_BUCKET_MAX];
		int len = key_bucket(key, bucket_name(b), strlen(bucket_name(b)));

		for (int i = 0; i < set_engines(s); i++) {
			const struct rec *r = set_all(s) >> i & 1
						      ? tree_get(extent_store(set_engine(s, i))->vol->tree,
								 key, (size_t)len)
						      : NULL;

			if (r && rec_copies(r) > 1)
				return b;
		}
	}
	return -1;
}

void
moves_drain(int d)
{
	const struct set *s = set_of(sim_store);
	unsigned serving = many_disks_of(s, set_all(s));
	bool ran = is_busy(), ends = is_ending(), is_last = serving == 1u << d,
	     has_bits = (s->map.table.draining | s->map.table.filling) != 0;
	bool had_pairs = set_uses_pairs(s);
	uint64_t removed = s->buckets.removed;
	int had_two = find_two(s), r;

	may_move = true;
	counts.drains++;
	r = change(&(struct store_disk_change){ .kind = DISK_DRAIN, .disk = paths[d] });
	if (r == 0 && !(serving >> d & 1))
		sim_fail("disk %d is no member, and is to be drained", d);
	if (r == 0 && ran && !ends)
		sim_fail("disk %d is to be drained beside another change", d);
	if (r == 0 && is_last)
		sim_fail("the last disk is to be drained");
	if (r == 0 && __builtin_popcount(serving) == 2 && (s->map.table.draining & ~s->map.table.filling) &&
	    find_two(s) >= 0)
		sim_fail("disk %d is to be drained, one is left, and bucket %d has two copies", d,
			 find_two(s));
	if (r == -EPERM && __builtin_popcount(serving) == 2) {
		/* It may have come and gone meanwhile, and so may the other disk. */
		if (many_disks_of(s, set_all(s)) == serving && had_two < 0 && find_two(s) < 0 &&
		    removed == s->buckets.removed && !is_hurt())
			sim_fail("disk %d is not drained, and no bucket has two copies", d);
		is_last = true;
	}
	counts.to_one += r == 0 && had_pairs && !set_uses_pairs(s);
	/* One that was drained, and has come again since the start, is not told from what it was. */
	is_last |= r == -EALREADY && was_drained(s, d);
	if (r < 0 && !ran && !is_hurt() && !is_last && (serving >> d & 1) && r != -ENOSPC &&
	    !(r == -EBUSY && has_bits))
		sim_fail("draining disk %d: %d", d, r);
	counts.no_space += r == -ENOSPC;
}

static void
add(int d)
{
	const struct set *s = set_of(sim_store);
	bool ran = is_busy(), ends = is_ending(), force = (made >> d & 1) && !one_in(4);
	int r;

	/* One that is a member, or is one of another time, is left alone. */
	if (is_engine(d) || (moves_members(&s->map.table) >> d & 1))
		return;
	sim_absent &= ~(1u << d);
	may_move = true;
	r = change(&(struct store_disk_change){ .kind = DISK_ADD, .disk = paths[d], .force = force });
	counts.added += r == 0;
	if (r == 0 && ran && !ends)
		sim_fail("disk %d is added beside another change", d);
	if (r < 0 && !ran && !is_hurt() && r != -EAGAIN && !(r == -ENOSPC && many_short()) &&
	    !(r == -EALREADY && !force && (made >> d & 1)))
		sim_fail("adding disk %d: %d", d, r);
}

static void
cancel(void)
{
	bool ran = is_busy();
	int r = change(&(struct store_disk_change){ .kind = DISK_CANCEL });

	counts.cancels += r == 0;
	/* What it waits for may end by itself, or not at all. */
	if (ran ? r != 0 && r != -ENOENT && !is_hurt() : r != -ENOENT && !is_hurt())
		sim_fail("a cancel is answered %d", r);
}

static void
pause_for(uint64_t ns)
{
	static const bool never;

	co_until(1 + ns);
	co_wait(&never, -1);
}

static void
swing(void)
{
	unsigned out = ((1u << prof.disks) - 1) & ~moves_members(&set_of(sim_store)->map.table);

	if (is_busy() && one_in(2))
		cancel();
	else if (!is_busy() && out)
		add(__builtin_ctz(out));
	else if (!is_busy())
		moves_drain(next_swing++ % prof.disks);
}

static void
one_change(void)
{
	uint32_t w = below(8);

	if (prof.swings)
		swing();
	else if (w < 3)
		moves_drain((int)below((uint32_t)prof.disks));
	else if (w < 5)
		add((int)below((uint32_t)prof.disks));
	else if (w < 6 || is_busy())
		cancel();
	else
		moves_drain((int)below((uint32_t)prof.disks));
}

void
moves_main(int nr)
{
	bool stays = one_in(2);

	while (ops_left > 0 || (stays && is_busy())) {
		pause_for(below(4 * NS_PER_MS));
		if (ops_left > 0 && prof.moves && one_in(prof.moves))
			one_change();
	}
}

void
moves_calm_main(int nr)
{
	int d = (int)below((uint32_t)prof.disks);

	moves_drain(d);
	while (is_busy())
		pause_for(NS_PER_MS);
	if (one_in(2))
		add((d + 1) % prof.disks);
}

/* ---- at rest ---- */

bool
moves_over(void)
{
	const struct set *s = set_of(sim_store);

	if (runs() || co_runs(CO_MOVER, 0))
		return false;
	for (int i = 0; i < set_engines(s); i++) {
		struct vol *vol = extent_store(set_engine(s, i))->vol;

		/* One that has failed rests for good. */
		if (!(set_all(s) >> i & 1) || disk_failed(&vol->disk))
			continue;
		for (int p = 0; p < prof.ports; p++) {
			if (extent_port(port_engine(set_port(ports[p].p), i))->vp.io.inflight)
				return false;
		}
		if (atomic_load(&vol->pending) || vol->leader.queue || vol->leader.dying || vol->leader.gc ||
		    atomic_load(&vol->gc_new) || atomic_load(&vol->unpinned) || atomic_load(&vol->dead_nr) ||
		    atomic_load(&vol->is_led))
			return false;
	}
	return true;
}

struct found {
	struct store_walk w;
	const struct set *s;
	int engine;
};

static bool
on_name(struct store_walk *w, const struct store_key *k)
{
	const struct found *f = container_of(w, struct found, w);

	if (set_primary(f->s, k) != f->engine && set_secondary(f->s, k) != f->engine)
		sim_fail("disk %d has something of %.*s %.*s, which is at home on disk %d",
			 moves_disk(f->s, f->engine), k->bucket_len, k->bucket, k->key_len, k->key,
			 moves_disk(f->s, set_primary(f->s, k)));
	return true;
}

static void
look_at_books(const struct set *s)
{
	struct quota_book *again;

	check(quota_book_new(set_engines(s), &again) == 0);
	for (int i = 0; i < set_engines(s); i++) {
		if (set_all(s) >> i & 1)
			check(model_recount(extent_store(set_engine(s, i))->vol, again) == 0);
	}
	for (int b = 0; b < BUCKETS; b++) {
		struct store_quota_info is, twice;
		int e = quota_look(s->base.quotas, bucket_name(b), strlen(bucket_name(b)), &is);
		int f = quota_look(again, bucket_name(b), strlen(bucket_name(b)), &twice);

		if (e != f)
			sim_fail("bucket %d: is counted %d, a start would say %d", b, e, f);
		if (e == 0 && memcmp(&is.used, &twice.used, sizeof is.used) != 0)
			sim_fail("bucket %d: %llu objects, %llu bytes and %llu uploads are counted, a start "
				 "would "
				 "count %llu, %llu and %llu",
				 b, (unsigned long long)is.used.objects, (unsigned long long)is.used.bytes,
				 (unsigned long long)is.used.uploads, (unsigned long long)twice.used.objects,
				 (unsigned long long)twice.used.bytes,
				 (unsigned long long)twice.used.uploads);
	}
	quota_book_free(again);
}

void
moves_check(void)
{
	const struct set *s = set_of(sim_store);

	if (s->map.table.draining | s->map.table.filling)
		sim_fail("slots were to move, and nobody moves them (draining %llx, filling %llx, version "
			 "%llx)",
			 (unsigned long long)s->map.table.draining, (unsigned long long)s->map.table.filling,
			 (unsigned long long)s->map.table.version);
	for (int i = 0; i < set_engines(s); i++) {
		struct store_port *p = port_engine(set_port(ports[0].p), i);
		struct found f = { .w.key = on_name, .s = s, .engine = i };

		if (!(set_all(s) >> i & 1))
			continue;
		do
			check(p->ops->member->walk(p, &f.w) >= 0);
		while (f.w.more);
	}
	look_at_books(s);
}
