/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots (docs/engine.md section 3): the index, pinned at a block boundary, is written into space of its
 * own, so that the log before the boundary can be trimmed. snapshot_check() and snapshot_done() run on the
 * leader, the other functions on the helper thread.
 *
 *     leader: pin --> WANTED --> helper: chain written --> flush --> read back --> superblock --> flush
 *                                                                                                   |
 *     leader: unpin <-- WALKED <-- helper: log trimmed, older space freed <-------------------------'
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
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
#define PIECE_BYTES (128u << 10) /* the flush of a commit waits for at most one such write */
#define REST_MAX_NS (2 * NS_PER_MS)

/* Returns the length of the log between two snapshots of this size: a quarter of it, so that snapshots
 * write at most four bytes for each byte of the log; at least 30 % of the ring, and at most 36 %: after
 * two such lengths a snapshot can still be written before commits have to wait. */
static uint64_t
interval_for(const struct geometry *g, uint64_t bytes)
{
	uint64_t least = g->log_bytes / 100 * 30, most = g->log_bytes / 100 * 36;

	return bytes / 4 < least ? least : bytes / 4 > most ? most : bytes / 4;
}

/* Sets snap.load, if the log is too small for this ratio. */
static void
note_load(struct vol *vol, uint64_t interval)
{
	uint64_t bytes = vol->leader.rec_bytes, load = bytes / 4 > interval ? bytes * 10 / interval : 0;

	load = load < UINT32_MAX ? load : UINT32_MAX;
	if (atomic_load_explicit(&vol->snap.load, memory_order_relaxed) != load)
		atomic_store_explicit(&vol->snap.load, (uint32_t)load, memory_order_relaxed);
}

/* Pins the published index; later blocks do not change the pinned state. */
static void
begin(struct vol *vol)
{
	struct snapshot *snap = &vol->snap;

	tree_pin(vol->tree, &snap->root);
	snap->gen = tree_gen(vol->tree) - 1;
	snap->bytes = vol->leader.rec_bytes;
	snap->ref = (struct snap_ref){ .begin = vol->leader.next, .version_max = atomic_load(&vol->version) };
	atomic_store(&snap->state, SNAP_WANTED);
}

void
snapshot_check(struct vol *vol)
{
	struct snapshot *snap = &vol->snap;
	/* Commits wait for room, and one more snapshot would trim the log up to the current one: it is
	 * due, however short the log since then. */
	bool force = (vol->leader.log_is_full || vol_refuses_puts(vol)) &&
		     atomic_load(&snap->trim_at) < atomic_load(&snap->begin);
	uint64_t since = vol_head(vol) - atomic_load_explicit(&snap->begin, memory_order_relaxed);
	uint64_t interval = interval_for(&vol->disk.geo, vol->leader.rec_bytes);

	note_load(vol, interval);
	if (atomic_load(&snap->state) != SNAP_IDLE || disk_failed(&vol->disk))
		return;
	if (!atomic_load(&snap->asked) &&
	    ((!force && since <= interval) || clock_ns() < atomic_load(&snap->retry_ns)))
		return;
	begin(vol);
	/* Cleared after begin(): the requester sees `asked` or the state until the snapshot is made. */
	atomic_store(&snap->asked, false);
	helper_ring(&vol->helper);
}

int
snapshot_now(struct vol *vol, struct ring *r)
{
	int e;

	vol->snap.at_start = true;
	do {
		atomic_store(&vol->snap.asked, false);
		begin(vol);
		e = snapshot_write(vol, r);
		snapshot_done(vol);
	} while (e < 0 && atomic_load(&vol->snap.asked));
	vol->snap.at_start = false;
	return e;
}

void
snapshot_done(struct vol *vol)
{
	tree_unpin(vol->tree);
	atomic_store(&vol->snap.state, SNAP_IDLE);
}

/* ---- the chain ---- */

int
snap_space_add(struct snap_space *s, uint64_t ext)
{
	if (s->nr == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 64;
		uint64_t *more = realloc(s->ext, cap * sizeof *more);

		if (!more)
			return -ENOMEM;
		s->ext = more;
		s->cap = cap;
	}
	s->ext[s->nr++] = ext;
	return 0;
}

int
snap_chain_ok(const struct snap_chain *c, const struct geometry *geo)
{
	return ext_ok(c->ext, geo) && c->len <= FMT_BLOCK_MAX &&
			       c->len <= (uint64_t)ext_nr(c->ext) * geo->unit_bytes
		       ? 0
		       : -EBADMSG;
}

int
snap_chain_take(struct snap_chain *c, const struct super *sb, const void *buf, struct snap_head *ret_head)
{
	struct snap_head *h = ret_head;
	int e = snap_open(buf, c->len, h);

	if (e == 0 && (h->id != c->ref->id || h->index != (uint32_t)c->index ||
		       memcmp(h->disk_uuid, sb->disk_uuid, sizeof h->disk_uuid) != 0 ||
		       (h->next_ext == SNAP_LAST) != (c->index + 1 == c->ref->block_nr)))
		e = -EBADMSG;
	if (e < 0)
		return e;
	c->index++;
	c->crc64 = crc64_nvme(c->crc64, &h->crc64, sizeof h->crc64);
	c->record_nr += h->record_nr;
	c->ext = h->next_ext;
	c->len = h->next_bytes;
	return 0;
}

int
snap_chain_end(const struct snap_chain *c)
{
	return c->crc64 == c->ref->crc64 && c->record_nr == c->ref->record_nr ? 0 : -EBADMSG;
}

struct chain {
	struct vol *vol;
	struct ring *r;
	struct snap_ref ref;
	struct snap_space space;
	uint8_t *buf;
	uint32_t len, used, records, older; /* counters of the block that is being filled */
	uint64_t left;                      /* bytes of records and extents that are not written yet */
	bool lacks_room;                    /* a write failed because the storage of the disk is full */
	bool disk_erred;                    /* the disk failed for another reason than space or memory */
	/* values at the last pause */
	uint64_t rested_ns, commits;
	uint64_t unhurried; /* length of the used log up to which the helper pauses */
};

static int
of_disk(struct chain *c, int e)
{
	/* -EAGAIN comes from the kernel, not from the disk; after -ENOSPC the disk has written nothing. */
	c->disk_erred |= e < 0 && e != -EAGAIN && e != -ENOSPC;
	c->lacks_room |= e == -ENOSPC;
	return e;
}

/*
 * Pauses in favour of commits. While there are commits, the helper pauses for as long as it worked, so that
 * their flushes find the disk idle half of the time. There is no pause if the log fills: of the space before
 * commits have to wait, a quarter may be used at this pace. There is none either if other work waits for the
 * helper.
 */
static void
rest(struct chain *c)
{
	struct vol *vol = c->vol;
	uint64_t commits = atomic_load_explicit(&vol->stats.commits, memory_order_relaxed), now = clock_ns();
	uint64_t ns = c->rested_ns ? now - c->rested_ns : 0;
	uint64_t log_used = atomic_load_explicit(&vol->log_used, memory_order_relaxed);
	bool others = commits != c->commits;

	c->commits = commits;
	c->rested_ns = now;
	if (!ns || !others || atomic_load(&vol->disk.seg_hungry) || atomic_load(&vol->helper.stop) ||
	    log_used >= c->unhurried)
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

		e = is_write ? sio_write(&c->vol->disk, c->r, &ext, 1, at, c->buf + at, n)
			     : sio_read(&c->vol->disk, c->r, &ext, 1, at, c->buf + at, n);
		rest(c);
		disk_beat(&c->vol->disk, c->r);
		disk_super_work(&c->vol->disk, c->r);
	}
	return e;
}

static uint32_t
block_len(const struct vol *vol, uint64_t ext)
{
	uint64_t bytes = (uint64_t)ext_nr(ext) * vol->disk.geo.unit_bytes;

	return bytes < FMT_BLOCK_MAX ? (uint32_t)bytes : FMT_BLOCK_MAX;
}

/* Allocates space for one more block, which the block that is being filled will name. */
static int
more_space(struct chain *c, uint64_t *ret_ext)
{
	struct vol *vol = c->vol;
	uint64_t bytes = SNAP_HEAD_BYTES + c->left, unit = vol->disk.geo.unit_bytes;
	struct extent x;
	int e;

	/* The last block takes no more space than it needs. */
	bytes = bytes < FMT_BLOCK_MAX ? align_up(bytes, unit) : FMT_BLOCK_MAX;
	e = alloc_take_held(vol->disk.alloc, (uint32_t)(bytes / unit), &x);
	*ret_ext = e == 0 ? ext_make(x.unit, x.units) : 0;
	return e < 0 ? e : snap_space_add(&c->space, *ret_ext);
}

/* Frees unused space of a chain with a single block. (In a longer chain the previous block already has the
 * length of the last one.) */
static void
shrink(struct chain *c)
{
	uint64_t *ext = &c->space.ext[0];
	uint32_t units =
		(uint32_t)(align_up(c->used, c->vol->disk.geo.unit_bytes) / c->vol->disk.geo.unit_bytes);

	if (c->ref.block_nr || units >= ext_nr(*ext))
		return;
	alloc_free(c->vol->disk.alloc, &(struct extent){ ext_unit(*ext) + units, ext_nr(*ext) - units },
		   true);
	*ext = ext_make(ext_unit(*ext), units);
	c->len = block_len(c->vol, *ext);
}

/* Writes the block; next: extent of the next block, or SNAP_LAST. */
static int
write_block(struct chain *c, uint64_t next)
{
	struct vol *vol = c->vol;
	uint64_t ext = c->space.ext[c->space.nr - (next != SNAP_LAST ? 2 : 1)];
	struct snap_head h = { .id = c->ref.id,
			       .index = (uint32_t)c->ref.block_nr,
			       .used_bytes = c->used,
			       .record_nr = c->records,
			       .next_ext = next,
			       .next_bytes = next != SNAP_LAST ? block_len(vol, next) : 0,
			       .older_id = vol->disk.sb.snap[0].id,
			       .older_nr = c->older };

	memcpy(h.disk_uuid, vol->disk.sb.disk_uuid, 16);
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
	uint64_t next;
	int e = more_space(c, &next);

	if (e == 0 && c->len)
		e = write_block(c, next);
	c->len = e == 0 ? block_len(c->vol, next) : 0;
	c->used = SNAP_HEAD_BYTES;
	c->records = c->older = 0;
	return e;
}

/* Makes room for n bytes in the block that is being filled, or begins another block. */
static int
make_room(struct chain *c, size_t n)
{
	int e = c->used + n > c->len ? begin_block(c) : 0;

	c->left -= n < c->left ? n : c->left;
	return e;
}

/* Adds the extents of the snapshot that becomes the older one, so that a start need not read that snapshot
 * to know its space. */
static int
name_older(struct chain *c)
{
	const struct snap_space *s = &c->vol->snap.space[0];
	int e = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		e = make_room(c, SNAP_OLDER_BYTES);
		if (e < 0)
			break;
		memcpy(c->buf + c->used, &s->ext[i], SNAP_OLDER_BYTES);
		c->used += SNAP_OLDER_BYTES;
		c->older++;
	}
	return e;
}

static int
write_chain(struct chain *c)
{
	struct tree_cursor *cur = malloc(sizeof *cur);
	int e = cur ? 0 : -ENOMEM;

	if (e < 0)
		return e;
	tree_cursor_init(cur, c->vol->tree, c->vol->snap.root);
	tree_cursor_once(cur);
	for (bool there = tree_seek(cur, "", 0, false); there && e == 0; there = tree_next(cur)) {
		struct rec_view v;
		size_t n;

		rec_view_of(cur->rec, (const uint8_t *)cur->key, cur->key_len, &v);
		n = rec_encoded_bytes(&v);
		e = make_room(c, n);
		if (e == 0 && atomic_load(&c->vol->helper.stop))
			e = -ECANCELED;
		if (e < 0)
			break;
		c->used += (uint32_t)rec_encode(c->buf + c->used, &v);
		c->records++;
	}
	free(cur);
	if (e == 0)
		e = name_older(c);
	if (e < 0 || !c->len)
		return e;
	shrink(c);
	return write_block(c, SNAP_LAST);
}

/* Reads the chain back from the disk. */
static int
verify_chain(struct chain *c)
{
	struct snap_chain chain;
	struct snap_head h;
	int e = 0;

	snap_chain_begin(&chain, &c->ref);
	while (e == 0 && chain.index < c->ref.block_nr) {
		e = block_io(c, false, chain.ext, chain.len);
		if (e == 0)
			e = snap_chain_take(&chain, &c->vol->disk.sb, c->buf, &h);
	}
	return of_disk(c, e < 0 ? e : snap_chain_end(&chain));
}

static void
free_space(struct vol *vol, struct snap_space *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		alloc_free(vol->disk.alloc, &(struct extent){ ext_unit(s->ext[i]), ext_nr(s->ext[i]) }, true);
	if (s->nr)
		atomic_fetch_add(&vol->disk.freed_nr, 1);
	s->nr = 0;
}

/* Trims the log up to the begin of a snapshot. */
static void
trim_to(struct vol *vol, const struct log_pos *keep)
{
	uint64_t at = vol_linear(vol, keep);

	atomic_fetch_sub(&vol->log_used, at - atomic_load(&vol->snap.trim_at));
	atomic_store(&vol->snap.trim_at, at);
}

/* Writes a superblock with these two snapshots. Returns 0; -ENOSPC: the superblock still has the previous
 * ones; or another -errno. */
static int
write_refs(struct vol *vol, struct ring *r, struct snap_ref newer, struct snap_ref older)
{
	struct snap_ref *snap = vol->disk.sb.snap, was[2] = { snap[0], snap[1] };
	int e;

	snap[0] = newer;
	snap[1] = older;
	e = disk_write_super(&vol->disk, r);
	if (e == -ENOSPC)
		memcpy(snap, was, sizeof was);
	return e;
}

/* Makes the written snapshot the current one, by a superblock. Then trims the log before the previous
 * snapshot, and frees the snapshot before that. */
static int
make_current(struct chain *c)
{
	struct vol *vol = c->vol;
	struct snap_space oldest = vol->snap.space[1];
	uint32_t load;
	int e = of_disk(c, write_refs(vol, c->r, c->ref, vol->disk.sb.snap[0]));

	if (e < 0)
		return e;
	vol->snap.space[1] = vol->snap.space[0];
	vol->snap.space[0] = c->space;
	trim_to(vol, &vol->disk.sb.snap[RULE_TRIM_TO_PREVIOUS ? 1 : 0].begin);
	atomic_store(&vol->snap.one_left, false);
	atomic_store(&vol->snap.begin, vol_linear(vol, &c->ref.begin));
	free_space(vol, &oldest);
	free(oldest.ext);
	atomic_fetch_add(&vol->stats.snapshots, 1);
	load = atomic_load_explicit(&vol->snap.load, memory_order_relaxed);
	if (load)
		log_warn("%s: snapshots write %u.%u times what the log does: it was formatted too small for "
			 "so "
			 "many objects",
			 vol->disk.name, load / 10, load % 10);
	return 0;
}

void
snapshot_drop_older(struct vol *vol)
{
	vol->disk.sb.snap[1] = (struct snap_ref){ 0 };
	atomic_store(&vol->snap.one_left, true);
	trim_to(vol, &vol->disk.sb.snap[0].begin);
	free_space(vol, &vol->snap.space[1]);
}

/*
 * Drops the older snapshot, because there is no space for a third one. The older one is needed only if the
 * newer one cannot be read, and the log must not fill for this purpose; the next snapshot uses its space.
 * Returns 0; -ENOSPC: there is no older one, or the log is not half full yet; or another -errno.
 */
static int
give_up_older(struct vol *vol, struct ring *r)
{
	const struct snap_ref *ref = vol->disk.sb.snap;
	struct snapshot *snap = &vol->snap;
	int e;

	if (!ref[1].id || (!snap->at_start && atomic_load(&vol->log_used) <= vol->disk.geo.log_bytes / 2))
		return -ENOSPC;
	log_warn("%s: no room for a third snapshot: the older one, %llu, is given up", vol->disk.name,
		 (unsigned long long)ref[1].id);
	e = write_refs(vol, r, ref[0], (struct snap_ref){ 0 });
	if (e < 0)
		return e;
	snapshot_drop_older(vol);
	atomic_store(&snap->asked, true);
	return 0;
}

int
snapshot_write(struct vol *vol, struct ring *r)
{
	struct chain c = { .vol = vol, .r = r, .ref = vol->snap.ref, .left = vol->snap.bytes };
	uint64_t begun_ns = clock_ns(), used, wait = vol->disk.geo.log_bytes / 10 * 8;
	bool again = false;
	int e;

	c.ref.id = vol->disk.sb.snap[0].id + 1;
	c.left += (uint64_t)vol->snap.space[0].nr * SNAP_OLDER_BYTES;
	used = atomic_load(&vol->log_used);
	c.unhurried = used < wait ? used + (wait - used) / 4 : 0;
	c.buf = sync_alloc(FMT_BLOCK_MAX);
	e = c.buf ? write_chain(&c) : -ENOMEM;
	if (e == 0)
		e = of_disk(&c, disk_flush_sync(&vol->disk, r));
	if (e == 0)
		e = verify_chain(&c);
	if (e == 0)
		e = make_current(&c);
	free(c.buf);
	if (e == 0) {
		atomic_store(&vol->stats.snapshot_bytes, c.ref.bytes);
		atomic_store(&vol->stats.snapshot_ns, clock_ns() - begun_ns);
		return 0;
	}
	if (c.disk_erred) {
		/* A failed write or flush is final, whatever the error (docs/set.md section 5), and so is a
		 * disk that does not return what was just written. Its space is not freed. */
		disk_fail(&vol->disk, "writing a snapshot failed: %s", strerror(-e));
	} else {
		if (!disk_failed(&vol->disk))
			free_space(vol, &c.space);
		if (e == -ENOSPC && !c.lacks_room)
			again = give_up_older(vol, r) == 0;
		if (!again && e != -ECANCELED && !disk_failed(&vol->disk))
			log_warn("%s: a snapshot could not be made (%s); trying again", vol->disk.name,
				 strerror(-e));
	}
	free(c.space.ext);
	atomic_store(&vol->snap.retry_ns, again ? 0 : clock_ns() + RETRY_NS);
	return e;
}
