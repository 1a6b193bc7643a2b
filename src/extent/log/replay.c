/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the log, block by block, as long as each block is the expected one. Blocks are trusted if a later
 * block records their flush.
 */
#include "extent/log/recover_int.h"

#include "extent/log/parts.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"
#include "store/damage.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the search after the end of the log for blocks that must not exist. The near limit applies if
 * the host block exists: it has the newest block that was flushed before its last heartbeat, so the search
 * is needed only for later blocks, and covers at least 63 of them. */
#ifndef LOOK_NEAR_MAX
#define LOOK_NEAR_MAX ((uint64_t)64 << 20)
#endif
#define LOOK_FAR_MAX ((uint64_t)1 << 30)

/*
 * Returns true if an unreadable block at the expected position is known not to be a trusted one: the disk was
 * closed after the previous block; or no request can have been served after it, because the superblock does
 * not know its epoch; or the readable part of its first page is of another block, because a flushed block has
 * its whole head.
 */
static bool
is_known_end(struct replay *rp)
{
	const struct disk *d = &rp->vol->disk;
	const struct log_pos *at = &rp->pos;
	struct block_head h;
	const uint8_t *page;

	if (!RULE_END_IS_KNOWN)
		return true;
	if (d->host.there && d->host.seen.closed && d->host.seen.log_seq + 1 == at->seq)
		return true;
	if (!d->lost_super && d->sb.epoch < at->epoch)
		return true;
	return log_window(&rp->log, at->pos, FMT_ALIGN, &page) == 0 &&
	       (!block_claims(page, &h) || !log_is_expected(at, &h));
}

/* Refuses a start whose log may continue at an unreadable block. A repair takes the block for the end of
 * the log, and reports what it drops. Returns 0 for a repair; otherwise -errno. */
static int
refuse_end(struct replay *rp, int error)
{
	const struct disk *d = &rp->vol->disk;
	struct recover_report *rep = rp->rep;
	char where[DISK_PLACE_BYTES], behind[96] = "", loss[96];
	bool was_flushed;
	int e;

	rp->cut = rp->pos;
	e = replay_look_behind(rp, false);
	if (e < 0)
		return e;
	was_flushed = e > 0 || (d->host.there && d->host.seen.log_seq >= rp->pos.seq);
	rp->unreadable_nr = 0;
	snprintf(loss, sizeof loss, "%llu records of objects, and those of block %llu,",
		 (unsigned long long)rp->behind_records, (unsigned long long)rp->pos.seq);
	if (rp->behind_blocks)
		snprintf(behind, sizeof behind, ", and %llu blocks after it with %llu records",
			 (unsigned long long)rp->behind_blocks, (unsigned long long)rp->behind_records);
	disk_place(d, -1, rp->pos.pos, where);
	if (!rep->repair)
		return refuse_with(rp, error, ADVICE_LOG_DAMAGED, &(struct advice_values){ .loss = loss },
				   "%s cannot be read: %s; block %llu of the log %s%s", where,
				   strerror(-error), (unsigned long long)rp->pos.seq,
				   was_flushed ? "was there" : "may have been there", behind);
	report(rep, "%s cannot be read: taken as the log's end; drops block %llu%s%s", where,
	       (unsigned long long)rp->pos.seq, was_flushed ? "" : ", if it was there", behind);
	rep->was_damaged = true;
	if (rep->damage)
		rep->damage->sums.has_unknown |= rp->behind_blocks || was_flushed;
	return 0;
}

/* Records of a block are in random order, and so are their nodes of the index in memory: the nodes of the
 * next records are fetched while earlier records are applied. */
#define AHEAD 8

static int
apply_block(struct replay *rp, const struct block_head *h, const uint8_t *bytes)
{
	uint32_t at = BLOCK_HEAD_BYTES, decoded = 0;
	struct rec_view v[AHEAD];

	for (uint32_t i = 0; i < h->record_nr; i++) {
		int n, e;

		for (; decoded < h->record_nr && decoded < i + AHEAD; decoded++) {
			struct rec_view *next = &v[decoded % AHEAD];

			n = rec_decode(bytes + at, h->used_bytes - at, &rp->vol->disk.geo, next);
			if (n < 0)
				break;
			tree_prefetch(rp->vol->tree, next->key, next->key_len);
			at += (uint32_t)n;
		}
		if (decoded == i)
			return disk_refuse(&rp->vol->disk, -ENOTRECOVERABLE,
					   "log offset %llu: record %u is impossible",
					   (unsigned long long)h->pos, i);
		e = apply_record(rp, &v[i % AHEAD]);
		if (e < 0)
			return e;
	}
	return 0;
}

/* Applies the blocks of the tail up to this sequence number: they were flushed, so they are trusted
 * regardless of their data. */
static int
believe(struct replay *rp, uint64_t upto)
{
	struct tail_block *b;
	int e = 0;

	while (e == 0 && (b = rp->tail) != NULL && b->head.seq <= upto) {
		e = apply_block(rp, &b->head, b->bytes);
		rp->tail = b->next;
		if (!rp->tail)
			rp->tail_end = &rp->tail;
		free(b);
	}
	return e;
}

static int
remember(struct replay *rp, const struct block_head *h, const uint8_t *bytes)
{
	struct tail_block *b = aligned_alloc(16, align_up(sizeof *b + h->len_bytes, 16));

	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->head = *h;
	b->at = rp->pos;
	memcpy(b->bytes, bytes, h->len_bytes);
	*rp->tail_end = b;
	rp->tail_end = &b->next;
	return 0;
}

uint64_t
replay_count(struct replay *rp)
{
	struct log_pos was = rp->pos;
	struct block_head h;
	const uint8_t *bytes;
	uint64_t nr = 0;

	for (const struct tail_block *b = rp->tail; b; b = b->next)
		nr += b->head.record_nr;
	while (log_next(&rp->log, &rp->pos, &h, &bytes) == 0) {
		nr += h.record_nr;
		block_advance(&rp->pos, &rp->vol->disk.geo, &h);
	}
	rp->pos = was;
	return nr;
}

int
replay_log(struct replay *rp)
{
	const struct host *host = &rp->vol->disk.host;
	uint64_t last = host->there ? host->seen.log_seq : 0, first;
	struct meter_disk *meter = rp->rep->meter;
	const uint8_t *bytes;
	struct block_head h;
	int e;

	rp->pos = rp->vol->disk.sb.snap[0].begin;
	first = rp->pos.seq;
	meter_step(meter, METER_LOG, 0);
	for (;;) {
		e = log_next(&rp->log, &rp->pos, &h, &bytes);
		if (e == -ENOENT)
			return 0;
		if (sync_is_unreadable(e))
			return is_known_end(rp) ? 0 : refuse_end(rp, e);
		if (e < 0)
			return disk_refuse(&rp->vol->disk, e, "the log cannot be read at %llu: %s",
					   (unsigned long long)rp->pos.pos, strerror(-e));
		e = believe(rp, h.flushed_upto);
		/* An epoch block is written after a flush of all earlier blocks, and counts as flushed
		 * itself. */
		if (e == 0 && h.flushed_upto >= h.seq)
			e = apply_block(rp, &h, bytes);
		else if (e == 0)
			e = remember(rp, &h, bytes);
		if (e == -ENOSPC || e == -ENOMEM)
			return refuse_memory(rp, e, rp->applied + replay_count(rp));
		if (e < 0)
			return e;
		block_advance(&rp->pos, &rp->vol->disk.geo, &h);
		meter_add(meter, h.len_bytes);
		/* The host block has the number of a late block, but not its offset. */
		if (last > first)
			meter_estimate(meter, rp->pos.seq - first, last - first + 1);
	}
}

/* ---- after the end ---- */

static void
list_records(struct replay *rp, const struct block_head *h, const uint8_t *bytes)
{
	uint32_t at = BLOCK_HEAD_BYTES;

	for (uint32_t i = 0; i < h->record_nr; i++) {
		struct rec_view v;
		char name[OWNER_TEXT], line[OWNER_TEXT + 100];
		int n = rec_decode(bytes + at, h->used_bytes - at, &rp->vol->disk.geo, &v);

		if (n < 0)
			return;
		name_text(rp, name, sizeof name, &v);
		snprintf(line, sizeof line, "drops the %s of %s (version %llu)",
			 v.op == REC_PUT ? "writing" : "removal", name, (unsigned long long)v.version);
		report_dropped(rp, &v, line);
		rp->cut_records++;
		at += (uint32_t)n;
	}
}

/* Returns true for a block of the running epoch, or one that ends it, which records that blocks after the
 * cut were flushed. */
static bool
is_witness(const struct replay *rp, const struct block_head *h)
{
	return h->epoch == rp->pos.epoch && h->flushed_upto >= rp->cut.seq && h->seq >= rp->cut.seq;
}

/* Notes a bad sector, which proves nothing. */
static void
pass_over(struct replay *rp, uint64_t pos)
{
	if (rp->unreadable_nr < UNREADABLE_MAX)
		rp->unreadable[rp->unreadable_nr++] = pos;
}

int
replay_look_behind(struct replay *rp, bool list)
{
	uint64_t log = rp->vol->disk.geo.log_bytes, done = 0, pos = rp->cut.pos;
	uint64_t most = rp->vol->disk.host.there ? LOOK_NEAR_MAX : LOOK_FAR_MAX;
	int found = 0;

	if (most > log)
		most = log;
	rp->behind_blocks = rp->behind_records = 0;

	while (done < most) {
		const uint8_t *bytes;
		struct block_head h;
		uint64_t step = FMT_ALIGN;
		int e;

		if (pos >= log)
			pos = 0;
		e = log_window(&rp->log, pos, FMT_ALIGN, &bytes);
		if (sync_is_unreadable(e)) {
			pass_over(rp, pos);
			pos += FMT_ALIGN;
			done += FMT_ALIGN;
			continue;
		}
		if (e < 0)
			return disk_refuse(&rp->vol->disk, e, "the log cannot be read at %llu: %s",
					   (unsigned long long)pos, strerror(-e));
		/* A cheap check first: nearly all blocks here are of another epoch. */
		if (block_claims(bytes, &h) && h.epoch == rp->pos.epoch) {
			e = log_open(&rp->log, pos, rp->pos.nonce, &h, &bytes);
			if (sync_is_unreadable(e))
				pass_over(rp, pos);
			else if (e < 0 && e != -ENOENT && e != -EBADMSG)
				return e;
			if (e == 0 && h.pos == pos && is_witness(rp, &h)) {
				if (!found)
					snprintf(rp->damage, sizeof rp->damage,
						 "damaged at log offset %llu (block %llu%s%s): block %llu at "
						 "%llu says it was flushed",
						 (unsigned long long)rp->cut.pos,
						 (unsigned long long)rp->cut.seq,
						 rp->cut_key[0] ? ", data of " : "", rp->cut_key,
						 (unsigned long long)h.seq, (unsigned long long)pos);
				found = 1;
				rp->behind_blocks++;
				rp->behind_records += h.record_nr;
				if (list)
					list_records(rp, &h, bytes);
			}
			if (e == 0)
				step = h.len_bytes;
		}
		pos += step;
		done += step;
	}
	if (rp->unreadable_nr)
		report(rp->rep, "%s: %u places of the log after its end cannot be read, the first at %llu",
		       rp->vol->disk.name, rp->unreadable_nr, (unsigned long long)rp->unreadable[0]);
	return found;
}
