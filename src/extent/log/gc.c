/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that nobody owns any more: chunks and parts of manifests that died, chunks of PUTs that ended
 * without one, parts of uploads that ended, what a removed bucket leaves, and what a start finds.  Their
 * removal is a record each, packed by the leader behind whatever else is in the block.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/log/parts.h"
#include "base/check.h"
#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
gc_init(struct vol *vol)
{
	struct leader *ld = &vol->leader;

	ld->gc_end = &ld->gc;
	ld->gc_mem = calloc(GC_COMMITS, sizeof *ld->gc_mem);
	if (!ld->gc_mem)
		return -ENOMEM;
	for (int i = 0; i < GC_COMMITS; i++) {
		ld->gc_mem[i].next = ld->gc_free;
		ld->gc_free = &ld->gc_mem[i];
	}
	return 0;
}

static void
free_jobs(struct gc_job *j)
{
	while (j) {
		struct gc_job *next = j->next;

		/* The job of a dead manifest lies in what is the leader's pool. */
		if (j->dead)
			rec_drop_outside(j->dead->rec);
		else
			free(j);
		j = next;
	}
}

void
gc_fini(struct vol *vol)
{
	/* What is left is ownerless, and the next start collects it. */
	free_jobs(vol->leader.gc);
	free_jobs(atomic_exchange(&vol->gc_new, NULL));
	vol->leader.gc = NULL;
	free(vol->leader.gc_mem);
	vol->leader.gc_mem = NULL;
}

static void
enqueue(struct vol *vol, struct gc_job *job)
{
	job->next = NULL;
	*vol->leader.gc_end = job;
	vol->leader.gc_end = &job->next;
}

void
gc_add(struct vol *vol, struct gc_job *job)
{
	atomic_fetch_add(&vol->dead_nr, 1);
	enqueue(vol, job);
}

struct gc_job *
gc_upload_job(const uint8_t id[CHUNK_ID_BYTES], const struct store_part_ref *parts, uint32_t nr)
{
	struct gc_job *job = calloc(1, sizeof *job + (nr ? STORE_PART_NR_MAX / 8 + 1 : 0));
	uint8_t *skip = (uint8_t *)(job + 1);

	if (!job)
		return NULL;
	job->kind = GC_PARTS;
	job->at = 1;
	memcpy(job->id, id, CHUNK_ID_BYTES);
	job->skip = nr ? skip : NULL;
	for (uint32_t i = 0; i < nr; i++)
		skip[parts[i].number / 8] |= (uint8_t)(1u << parts[i].number % 8);
	return job;
}

struct gc_job *
gc_bucket_job(const uint8_t *name, size_t len)
{
	struct gc_job *job = calloc(1, sizeof *job + sizeof(struct gc_bucket));

	if (!job)
		return NULL;
	job->kind = GC_BUCKET;
	job->bucket = (struct gc_bucket *)(job + 1);
	job->bucket->name_len = (uint16_t)len;
	memcpy(job->bucket->name, name, len);
	/* Attributes first, then uploads. */
	job->bucket->at[0] = KEY_BATTRS;
	memcpy(job->bucket->at + 1, name, len);
	job->bucket->at[1 + len] = 0;
	job->bucket->at_len = (uint16_t)(2 + len);
	return job;
}

void
gc_orphans(struct vol *vol, uint8_t type, const uint8_t id[CHUNK_ID_BYTES], uint32_t from, uint32_t nr)
{
	/* Only for aborted objects of more than a chunk.  Without memory they wait for the next start. */
	struct gc_job *job = from < nr ? calloc(1, sizeof *job) : NULL;

	if (!job)
		return;
	job->kind = GC_RANGE;
	job->type = type;
	memcpy(job->id, id, CHUNK_ID_BYTES);
	job->at = from;
	job->nr = nr;
	atomic_fetch_add(&vol->dead_nr, 1);
	job->next = atomic_load(&vol->gc_new);
	while (!atomic_compare_exchange_weak(&vol->gc_new, &job->next, job))
		;
	atomic_store(&vol->want_lead, true);
}

static void
job_done(struct vol *vol, struct gc_job *job)
{
	struct dead *dead = job->dead;
	struct map_ref map;

	if (!dead) {
		free(job);
	} else {
		if (rec_map(dead->rec, &map))
			disk_extents_free(&vol->disk, map.ext, map.nr);
		rec_retire(vol, dead->rec);
		dead_put(vol, dead);
	}
	atomic_fetch_sub(&vol->dead_nr, 1);
}

/* ---- what a job removes next ---- */

/* Has a part come back?  One that was left over, and went: then its upload, or its object, may be sent here once more. */
static bool
is_back(const struct vol *vol, const uint8_t *key, const struct rec *r)
{
	return vol->slots && RULE_MOVE_NOT_COLLECTED && key[0] == KEY_PART && has_owner(vol->tree, key, r);
}

/* By their numbers: the key, if there is such a record. */
static bool
numbered(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	for (; job->at < job->nr; job->at++) {
		const uint8_t *id = job->id;
		uint32_t index = job->at;
		const struct rec *r;

		if (job->dead) {
			const struct chunk_ref *ch = rec_entries(job->dead->rec);

			id = ch[job->at].id;
			index = ch[job->at].index;
		}
		key_chunk(key, id, index);
		key[0] = job->type;
		r = tree_find(vol->tree, key, CHUNK_KEY_BYTES);
		if (r && !is_back(vol, key, r))
			return true;
	}
	return false;
}

/* What is there of an upload, from a number on. */
static bool
next_part(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	struct tree_cursor c;
	bool there;

	key_part(key, job->id, job->at);
	tree_cursor_init(&c, vol->tree, tree_root(vol->tree));
	for (there = tree_seek(&c, key, CHUNK_KEY_BYTES, false); there; there = tree_next(&c)) {
		uint32_t number;

		if (c.key_len != CHUNK_KEY_BYTES || memcmp(c.key, key, 1 + CHUNK_ID_BYTES) != 0)
			return false;
		number = key_index((const uint8_t *)c.key);
		if (job->skip && job->skip[number / 8] >> number % 8 & 1)
			continue;
		if (is_back(vol, (const uint8_t *)c.key, c.rec))
			continue;
		job->at = number;
		memcpy(key, c.key, CHUNK_KEY_BYTES);
		return true;
	}
	return false;
}

/* What is there of a bucket that was removed: its length, or 0. */
static size_t
next_of_bucket(struct vol *vol, struct gc_bucket *b, uint8_t *key)
{
	struct tree_cursor c;

	for (;;) {
		size_t fixed = 2u + b->name_len;
		bool there;

		tree_cursor_init(&c, vol->tree, tree_root(vol->tree));
		for (there = tree_seek(&c, b->at, b->at_len, false); there; there = tree_next(&c)) {
			if (c.key_len < fixed || memcmp(c.key, b->at, fixed) != 0)
				break;
			if (((const struct rec *)c.rec)->version >= b->before)
				continue;
			/* A new bucket of that name sets its own in this block: they replace it, and a
			 * removal behind them would be theirs. */
			if (block_find(vol, (const uint8_t *)c.key, c.key_len,
				       key_hash((const uint8_t *)c.key, c.key_len)))
				continue;
			memcpy(b->at, c.key, c.key_len);
			b->at_len = c.key_len;
			memcpy(key, c.key, c.key_len);
			return c.key_len;
		}
		if (b->at[0] == KEY_UPLOAD2)
			return 0;
		b->at[0] = key_upload_type(b->at[0] == KEY_UPLOAD);
		b->at_len = (uint16_t)fixed;
	}
}

/* The key of the next record that the job removes; 0: it is done. */
static size_t
next_key(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	switch (job->kind) {
	case GC_PARTS:
		return next_part(vol, job, key) ? CHUNK_KEY_BYTES : 0;
	case GC_BUCKET:
		return next_of_bucket(vol, job->bucket, key);
	default:
		return numbered(vol, job, key) ? CHUNK_KEY_BYTES : 0;
	}
}

/* Behind the one that was packed. */
static void
go_on(struct gc_job *job)
{
	job->at++;
	/* The least key behind it. */
	if (job->kind == GC_BUCKET)
		job->bucket->at[job->bucket->at_len++] = 0;
}

/* Its block was given up, and its job is past it. */
static void
again(struct vol *vol, const struct gc_commit *g)
{
	const struct rec *r = tree_find(vol->tree, g->key, g->c.view.key_len);
	const uint8_t *nul;
	struct gc_job *job;

	if (g->key[0] == KEY_CHUNK || g->key[0] == KEY_PART) {
		gc_orphans(vol, g->key[0], g->key + 1, key_index(g->key), key_index(g->key) + 1);
		return;
	}
	nul = memchr(g->key, 0, g->c.view.key_len);
	job = r ? gc_bucket_job(g->key + 1, (size_t)(nul - g->key - 1)) : NULL;
	/* Without memory it waits for the next start. */
	if (!job)
		return;
	job->bucket->before = r->version + 1;
	gc_add(vol, job);
}

/* The removal was published, or will never be. */
static void
on_done(struct commit *c)
{
	struct gc_commit *g = container_of(c, struct gc_commit, c);
	struct vol *vol = g->vol;

	atomic_fetch_sub(&vol->dead_nr, 1);
	if (c->result < 0 && !disk_failed(&vol->disk))
		again(vol, g);
	g->next = vol->leader.gc_free;
	vol->leader.gc_free = g;
}

static bool
pack_one(struct vol *vol, const uint8_t *key, size_t len)
{
	struct gc_commit *g = vol->leader.gc_free, *next;
	enum room room = block_room(vol, REC_HEAD_BYTES + len + 8, true);

	/* Nobody else may be waiting: it is for these that the next snapshot is due. */
	if (room == ROOM_LOG_FULL)
		vol->leader.log_is_full = true;
	if (!g || room != ROOM_YES)
		return false;
	if (tree_reserve_deletes(vol->tree, 1) < 0)
		return false;
	next = g->next;
	*g = (struct gc_commit){ .vol = vol,
				 .c = { .is_gc = true, .finished = on_done, .kind = COMMIT_DELETE } };
	memcpy(g->key, key, len);
	g->c.dead = dead_get(vol);
	if (!g->c.dead) {
		tree_unreserve(vol->tree, 1);
		return false;
	}
	vol->leader.gc_free = next;
	atomic_fetch_add(&vol->dead_nr, 1);
	g->c.view = (struct rec_view){ .op = REC_DELETE, .key = g->key, .key_len = (uint16_t)len };
	g->c.view.version = atomic_fetch_add(&vol->version, 1) + 1;
	g->c.key_hash = key_hash(g->key, len);
	block_pack(vol, &g->c);
	return true;
}

void
gc_pack(struct vol *vol)
{
	struct gc_job *job = atomic_exchange(&vol->gc_new, NULL);

	while (job) {
		struct gc_job *next = job->next;

		enqueue(vol, job);
		job = next;
	}
	while ((job = vol->leader.gc) != NULL) {
		uint8_t key[KEY_BYTES_MAX];
		size_t len;

		while ((len = next_key(vol, job, key)) != 0) {
			if (!pack_one(vol, key, len))
				return;
			go_on(job);
		}
		vol->leader.gc = job->next;
		if (!vol->leader.gc)
			vol->leader.gc_end = &vol->leader.gc;
		job_done(vol, job);
	}
}
