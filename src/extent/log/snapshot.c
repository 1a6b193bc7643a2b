/*
 * Snapshots (store.md section 5): the index, pinned at a block boundary, written into space of its own, so
 * that the log before it can go.  snapshot_check() and snapshot_done() run as leader, the rest on the helper
 * thread.
 *
 *   leader: pin --> WANTED --> helper: chain written --> flush --> read back --> superblock --> flush
 *                                                                                                 |
 *   leader: unpin <-- WALKED <-- helper: log trimmed, older space back <--------------------------'
 */
#include "extent/extent_int.h"

#include "extent/disk/sync.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RETRY_NS (2 * NS_PER_S)
#define PIECE_BYTES (128u << 10) /* a commit's flush waits for no more than this */
#define REST_MAX_NS (2 * NS_PER_MS)

/* Pins what is published; the log goes on behind it. */
static int
begin(struct disk *d)
{
	int pin = tree_pin(d->tree, &d->snap_root);

	if (pin < 0)
		return pin;
	d->snap_pin = pin;
	d->snap_gen = tree_gen(d->tree) - 1;
	d->snap_new = (struct snap_ref){ .begin = d->next, .version_max = atomic_load(&d->st->version) };
	atomic_store(&d->snap_state, SNAP_WANTED);
	return 0;
}

void
snapshot_check(struct disk *d)
{
	/* Commits wait for room, and one more snapshot would trim to the current one: due, however little
	 * came since. */
	bool force = d->log_is_full && atomic_load(&d->trim_at) < atomic_load(&d->snap_begin);
	uint64_t since = log_linear(d, d->next.lap, d->next.pos) -
			 atomic_load_explicit(&d->snap_begin, memory_order_relaxed);

	if (atomic_load(&d->snap_state) != SNAP_IDLE || disk_failed(d))
		return;
	if (!atomic_load(&d->snap_asked) &&
	    ((!force && since <= d->geo.log_bytes / 10 * 3) || clock_ns() < atomic_load(&d->snap_retry_ns)))
		return;
	if (begin(d) != 0)
		return;
	/* Behind begin(): who asked sees one of the two until it is made. */
	atomic_store(&d->snap_asked, false);
	helper_ring(d);
}

void
extent_snapshot(struct store *store)
{
	struct extent_store *st = extent_store(store);
	for (int i = 0; i < st->disk_nr; i++) {
		atomic_store(&st->disk[i]->snap_asked, true);
		atomic_store(&st->disk[i]->want_lead, true);
	}
	port_kick_all(st);
}

int
snapshot_now(struct disk *d, struct ring *r)
{
	int e = begin(d);

	if (e == 0) {
		e = snapshot_write(d, r);
		snapshot_done(d);
	}
	return e;
}

void
snapshot_done(struct disk *d)
{
	tree_unpin(d->tree, d->snap_pin);
	atomic_store(&d->snap_state, SNAP_IDLE);
}

/* ---- the chain ---- */

struct chain {
	struct disk *d;
	struct ring *r;
	struct snap_ref ref;
	struct snap_space space;
	uint8_t *buf;
	uint32_t len, used, records; /* of the block being filled */
	bool disk_erred;             /* not for want of space or memory */
	/* at the last rest, and the log at the beginning */
	uint64_t rested_ns, commits, log_used;
};

static int
of_disk(struct chain *c, int e)
{
	c->disk_erred |= e < 0;
	return e;
}

/*
 * Commits come first: while there are some, the helper rests as long as it worked, so that their flushes
 * find the disk idle half of the time.  Not so when the log fills: of the 20 % that are there for the
 * walk a quarter may pass at this pace; nor when the helper is waited for.
 */
static void
rest(struct chain *c)
{
	struct disk *d = c->d;
	uint64_t commits = atomic_load_explicit(&d->stats.commits, memory_order_relaxed), now = clock_ns();
	uint64_t ns = c->rested_ns ? now - c->rested_ns : 0;
	uint64_t log_used = atomic_load_explicit(&d->log_used, memory_order_relaxed);
	bool others = commits != c->commits;

	c->commits = commits;
	c->rested_ns = now;
	if (!ns || !others || atomic_load(&d->seg_hungry) || atomic_load(&d->helper_stop) ||
	    log_used > c->log_used + d->geo.log_bytes / 20 || log_used > d->geo.log_bytes / 10 * 7)
		return;
	nanosleep(&(struct timespec){ .tv_nsec = (long)(ns < REST_MAX_NS ? ns : REST_MAX_NS) }, NULL);
	c->rested_ns = clock_ns();
}

static int
block_io(struct chain *c, bool is_write, uint64_t ext, uint32_t len)
{
	int e = 0;

	for (uint32_t at = 0; e == 0 && at < len; at += PIECE_BYTES) {
		uint32_t n = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;

		e = is_write ? sio_write(c->d, c->r, &ext, 1, at, c->buf + at, n)
			     : sio_read(c->d, c->r, &ext, 1, at, c->buf + at, n);
		rest(c);
	}
	return e;
}

static uint32_t
block_len(const struct disk *d, const struct extent *x)
{
	uint64_t bytes = (uint64_t)x->units * d->geo.unit_bytes;

	return bytes < FMT_BLOCK_MAX ? (uint32_t)bytes : FMT_BLOCK_MAX;
}

/* Takes space for one more block; the one being filled names it. */
static int
more_space(struct chain *c, struct extent *ret_x)
{
	struct disk *d = c->d;
	int e = alloc_take_held(d->alloc, FMT_BLOCK_MAX / d->geo.unit_bytes, 1, ret_x);

	return e < 0 ? e : snap_space_add(&c->space, ret_x);
}

/* A chain of one block needs no more than what is in it.  (Of a longer one the block before has said how long
 * the last one is.) */
static void
shrink(struct chain *c)
{
	struct extent *x = &c->space.ext[0];
	uint32_t units = (uint32_t)(align_up(c->used, c->d->geo.unit_bytes) / c->d->geo.unit_bytes);

	if (c->ref.block_nr || units >= x->units)
		return;
	alloc_free(c->d->alloc, &(struct extent){ x->unit + units, x->units - units });
	x->units = units;
	c->len = block_len(c->d, x);
}

/* Writes the block; next: where the chain goes on, or NULL. */
static int
write_block(struct chain *c, const struct extent *next)
{
	struct disk *d = c->d;
	const struct extent *here = &c->space.ext[c->space.nr - (next ? 2 : 1)];
	uint64_t ext = ext_make(here->unit, here->units);
	struct snap_head h = { .id = c->ref.id,
			       .index = (uint32_t)c->ref.block_nr,
			       .used_bytes = c->used,
			       .record_nr = c->records };

	memcpy(h.disk_uuid, d->sb.disk_uuid, 16);
	h.next_ext = next ? ext_make(next->unit, next->units) : SNAP_LAST;
	h.next_bytes = next ? block_len(d, next) : 0;
	snap_seal(c->buf, c->len, &h);
	if (c->ref.block_nr == 0) {
		c->ref.head_ext = ext;
		c->ref.head_bytes = c->len;
	}
	c->ref.block_nr++;
	c->ref.record_nr += c->records;
	c->ref.bytes += c->len;
	c->ref.crc64 = crc64_nvme(c->ref.crc64, &h.crc64, 8);
	return of_disk(c, block_io(c, true, ext, c->len));
}

static int
begin_block(struct chain *c)
{
	struct extent next;
	int e = more_space(c, &next);

	if (e == 0 && c->len)
		e = write_block(c, &next);
	c->len = e == 0 ? block_len(c->d, &next) : 0;
	c->used = SNAP_HEAD_BYTES;
	c->records = 0;
	return e;
}

static int
write_chain(struct chain *c)
{
	struct tree_cursor *cur = malloc(sizeof *cur);
	int e = cur ? 0 : -ENOMEM;

	if (e < 0)
		return e;
	tree_cursor_init(cur, c->d->tree, c->d->snap_root);
	tree_cursor_once(cur, c->d->snap_pin);
	for (bool there = tree_seek(cur, "", 0, false); there && e == 0; there = tree_next(cur)) {
		struct rec_view v;
		size_t n;

		rec_view_of(cur->rec, (const uint8_t *)cur->key, cur->key_len, &v);
		n = rec_encoded_bytes(&v);
		if (c->used + n > c->len)
			e = begin_block(c);
		if (e == 0 && atomic_load(&c->d->helper_stop))
			e = -ECANCELED;
		if (e < 0)
			break;
		c->used += (uint32_t)rec_encode(c->buf + c->used, &v);
		c->records++;
	}
	free(cur);
	if (e < 0 || !c->len)
		return e;
	shrink(c);
	return write_block(c, NULL);
}

/* Reads the chain back from the disk. */
static int
verify_chain(struct chain *c)
{
	uint64_t crc = 0;

	for (uint32_t i = 0; i < c->space.nr; i++) {
		uint64_t ext = ext_make(c->space.ext[i].unit, c->space.ext[i].units);
		uint32_t len = block_len(c->d, &c->space.ext[i]);
		struct snap_head h;
		int e = block_io(c, false, ext, len);

		if (e == 0)
			e = snap_open(c->buf, len, &h);
		if (e == 0 && (h.id != c->ref.id || h.index != i))
			e = -EBADMSG;
		if (e < 0)
			return of_disk(c, e);
		crc = crc64_nvme(crc, &h.crc64, 8);
	}
	return of_disk(c, crc == c->ref.crc64 ? 0 : -EBADMSG);
}

static void
free_space(struct disk *d, struct snap_space *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		alloc_free(d->alloc, &s->ext[i]);
	if (s->nr)
		atomic_fetch_add(&d->freed_nr, 1);
	s->nr = 0;
}

/* The superblock names it: the log before the previous one may go, and the one before that as well. */
static int
make_current(struct chain *c)
{
	struct disk *d = c->d;
	struct snap_space oldest = d->snap_space[1];
	const struct log_pos *keep;
	int e;

	d->sb.snap[1] = d->sb.snap[0];
	d->sb.snap[0] = c->ref;
	e = disk_write_super(d, c->r);
	if (e < 0)
		return e;
	d->snap_space[1] = d->snap_space[0];
	d->snap_space[0] = c->space;
	keep = &d->sb.snap[RULE_TRIM_TO_PREVIOUS ? 1 : 0].begin;
	atomic_fetch_sub(&d->log_used, log_linear(d, keep->lap, keep->pos) - atomic_load(&d->trim_at));
	atomic_store(&d->trim_at, log_linear(d, keep->lap, keep->pos));
	atomic_store(&d->snap_begin, log_linear(d, c->ref.begin.lap, c->ref.begin.pos));
	free_space(d, &oldest);
	free(oldest.ext);
	atomic_fetch_add(&d->stats.snapshots, 1);
	if (c->ref.bytes > d->geo.log_bytes / 2)
		log_warn("%s: a snapshot takes %llu MiB, more than half of the log: it was formatted too "
			 "small for so many objects",
			 d->path, (unsigned long long)(c->ref.bytes >> 20));
	return 0;
}

int
snapshot_write(struct disk *d, struct ring *r)
{
	struct chain c = { .d = d, .r = r, .ref = d->snap_new };
	uint64_t begun_ns = clock_ns();
	int e;

	c.ref.id = d->sb.snap[0].id + 1;
	c.log_used = atomic_load(&d->log_used);
	c.buf = sync_alloc(FMT_BLOCK_MAX);
	e = c.buf ? write_chain(&c) : -ENOMEM;
	if (e == 0)
		e = of_disk(&c, disk_flush_sync(d, r));
	if (e == 0)
		e = verify_chain(&c);
	if (e == 0 && (e = make_current(&c)) < 0)
		disk_fail(d, "writing the superblock failed: %s", strerror(-e));
	sync_free(c.buf);
	if (e == 0) {
		atomic_store(&d->stats.snapshot_bytes, c.ref.bytes);
		atomic_store(&d->stats.snapshot_ns, clock_ns() - begun_ns);
		return 0;
	}
	if (c.disk_erred) {
		/* A failed write or flush is final whatever its number (section 6), and so is a disk that
		 * does not give back what was just written.  Quarantined: the space is not given back. */
		disk_fail(d, "writing a snapshot failed: %s", strerror(-e));
	} else {
		if (e != -ECANCELED)
			log_warn("%s: a snapshot could not be made (%s); trying again", d->path,
				 strerror(-e));
		if (!disk_failed(d))
			free_space(d, &c.space);
	}
	free(c.space.ext);
	atomic_store(&d->snap_retry_ns, clock_ns() + RETRY_NS);
	return e;
}
