/* SPDX-License-Identifier: Apache-2.0 */
/* The log block: room, records, head; see block.h. */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"

#include <string.h>

void
block_reset(struct vol *vol)
{
	struct block *b = &vol->block;

	for (struct commit *c = b->batch; c; c = c->next)
		b->overlay[c->key_hash % OVERLAY_SLOTS] = NULL;
	b->batch = NULL;
	b->batch_end = &b->batch;
	b->after = NULL;
	b->after_end = &b->after;
	b->used = BLOCK_HEAD_BYTES;
	b->records = b->counted = 0;
	b->written_ns = 0;
	b->data_bytes = 0;
	atomic_store(&b->left, 1);
	atomic_store(&b->error, 0);
	usage_drop(vol);
}

enum room
block_room(const struct vol *vol, size_t rec_bytes, bool last_stand)
{
	const struct block *b = &vol->block;
	uint64_t ring = vol->disk.geo.log_bytes, block = vol->disk.geo.block_bytes;
	uint64_t used = vol_head(vol) - atomic_load(&vol->snap.trim_at);
	uint64_t limit = ring / 5 * 4;

	if (rec_bytes == 0) /* a stamp leaves room for an epoch block */
		limit = ring - 2 * block;
	else if (last_stand)
		limit = ring - (3 * block > ring / 20 ? 3 * block : ring / 20);
	if (used > limit)
		return ROOM_LOG_FULL;
	if (b->used + rec_bytes > block || b->records >= BLOCK_RECORDS_MAX)
		return ROOM_NEXT_BLOCK;
	return ROOM_YES;
}

struct commit *
block_find(const struct vol *vol, const uint8_t *key, size_t len, uint32_t hash)
{
	if (!RULE_JUDGE_PENDING)
		return NULL;
	for (struct commit *c = vol->block.overlay[hash % OVERLAY_SLOTS]; c; c = c->hash_next) {
		if (c->key_hash == hash && c->view.key_len == len && memcmp(c->view.key, key, len) == 0)
			return c;
	}
	return NULL;
}

void
block_pack(struct vol *vol, struct commit *c)
{
	struct block *b = &vol->block;

	/* Of mapped entries, which are also in memory, the record has only the location. */
	b->used += (uint32_t)rec_encode(b->mem + b->used, &c->view);
	b->records++;
	c->next = NULL;
	*b->batch_end = c;
	b->batch_end = &c->next;
	c->hash_next = b->overlay[c->key_hash % OVERLAY_SLOTS];
	b->overlay[c->key_hash % OVERLAY_SLOTS] = c;
	if (c->is_gc || c->is_also)
		return;
	if (c->step_ns) {
		b->counted++;
		step_took(&vol->led, 1, c->step_ns, vol->leader.step_ns);
	}
	/* Counted before the state changes, so that commit_data_done() on another thread finds its share;
	 * uncounted if the data writes have already ended. */
	atomic_fetch_add(&b->left, 1);
	if (atomic_fetch_or(&c->state, CS_IN_BLOCK) & CS_DATA_DONE)
		atomic_fetch_sub(&b->left, 1);
}

struct block_head
block_head_at(const struct log_pos *at, enum block_kind kind, uint32_t used_bytes, uint32_t record_nr)
{
	return (struct block_head){
		.kind = (uint16_t)kind,
		.len_bytes = (uint32_t)align_up(used_bytes, FMT_ALIGN),
		.used_bytes = used_bytes,
		.record_nr = record_nr,
		.epoch = at->epoch,
		.seq = at->seq,
		.lap = at->lap,
		.pos = at->pos,
		.prev_crc = at->prev_crc,
	};
}

void
block_make_head(struct vol *vol)
{
	struct block *b = &vol->block;

	b->head = block_head_at(&vol->leader.next, BLOCK_RECORDS, b->used, b->records);
	b->head.flushed_upto = vol->leader.flushed_seq;
	block_seal(b->mem, &b->head, vol->leader.next.nonce);
}

void
block_advance(struct log_pos *pos, const struct geometry *geo, const struct block_head *h)
{
	pos->seq = h->seq + 1;
	pos->prev_crc = h->crc64;
	pos->pos = h->pos + h->len_bytes;
	pos->lap = h->lap;
	if (geo->log_bytes - pos->pos < geo->block_bytes) {
		pos->pos = 0;
		pos->lap++;
	}
	if (h->kind == BLOCK_EPOCH) {
		pos->epoch = h->new_epoch;
		memcpy(pos->nonce, h->new_nonce, 16);
	}
}
