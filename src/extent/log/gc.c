/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of records without an owner: chunks and parts of dead manifests, chunks of PUTs that ended without
 * a manifest, parts of ended uploads, remaining records of a removed bucket, and records that a start finds.
 * Each removal is a record of the log, which the leader packs after the other records of the block.
 */
#include "extent/log/vol.h"

#include "extent/disk/rules.h"
#include "extent/log/parts.h"
#include "base/list.h"

#include <stdlib.h>
#include <string.h>

int
gc_init(struct vol *vol)
{
	vol->leader.gc_end = &vol->leader.gc;
	return pool_init(&vol->leader.removals, sizeof(struct gc_commit), GC_COMMITS);
}

static void
free_jobs(struct gc_job *j)
{
	while (j) {
		struct gc_job *next = j->next;

		/* The job of a dead manifest is a part of the dead record, which belongs to the leader's
		 * pool. */
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
	/* The next start collects the remaining records, which have no owner. */
	free_jobs(vol->leader.gc);
	free_jobs(atomic_exchange(&vol->gc_new, NULL));
	vol->leader.gc = NULL;
	pool_fini(&vol->leader.removals);
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
	job->type = KEY_PART;
	job->nr = UINT32_MAX;
	memcpy(job->id, id, CHUNK_ID_BYTES);
	job->skip = nr ? skip : NULL;
	for (uint32_t i = 0; i < nr; i++)
		skip[parts[i].number / 8] |= (uint8_t)(1u << parts[i].number % 8);
	return job;
}

struct gc_job *
gc_bucket_job(const uint8_t *name, size_t len, uint64_t before)
{
	struct gc_job *job = calloc(1, sizeof *job + sizeof(struct gc_bucket));

	if (!job)
		return NULL;
	job->bucket = (struct gc_bucket *)(job + 1);
	job->bucket->before = before;
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
	/* Rare: only aborted objects of several chunks, and failed blocks. Without memory the records
	 * remain until the next start. */
	struct gc_job *job = from < nr ? calloc(1, sizeof *job) : NULL;

	if (!job)
		return;
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
	if (job->dead)
		dead_end(vol, job->dead);
	else
		free(job);
	atomic_fetch_sub(&vol->dead_nr, 1);
}

/* ---- the next record of a job ---- */

/* Returns true if a part has an owner again. Such a part was foreign and had been removed; its upload or
 * object may have been sent to this disk once more. */
static bool
is_back(const struct vol *vol, const uint8_t *key, const struct rec *r)
{
	return vol->slots && RULE_MOVE_NOT_COLLECTED && key[0] == KEY_PART && has_owner(vol->tree, key, r);
}

/* Finds the key of the next chunk or part of a dead manifest that has a record. */
static bool
next_of_manifest(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	const struct chunk_ref *ch = rec_entries(job->dead->rec);

	for (; job->at < job->nr; job->at++) {
		const struct rec *r;

		key_chunk(key, ch[job->at].id, ch[job->at].index);
		key[0] = job->type;
		r = tree_find(vol->tree, key, CHUNK_KEY_BYTES);
		if (r && !is_back(vol, key, r))
			return true;
	}
	return false;
}

/* Finds the key of the next chunk or part of an id, from number job->at on. */
static bool
next_of_id(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	struct tree_cursor c;

	key_chunk(key, job->id, job->at);
	key[0] = job->type;
	for (bool there = tree_begin(&c, vol->tree, key, CHUNK_KEY_BYTES, false);
	     there && tree_begins(&c, key, 1 + CHUNK_ID_BYTES); there = tree_next(&c)) {
		uint32_t number = key_index((const uint8_t *)c.key);

		if (number >= job->nr)
			return false;
		if ((job->skip && job->skip[number / 8] >> number % 8 & 1) ||
		    is_back(vol, (const uint8_t *)c.key, c.rec))
			continue;
		job->at = number;
		memcpy(key, c.key, CHUNK_KEY_BYTES);
		return true;
	}
	return false;
}

/* Finds the next remaining record of a removed bucket. Returns the length of its key; 0: none. */
static size_t
next_of_bucket(struct vol *vol, struct gc_bucket *b, uint8_t *key)
{
	struct tree_cursor c;

	for (;;) {
		size_t fixed = 2u + b->name_len;

		for (bool there = tree_begin(&c, vol->tree, b->at, b->at_len, false);
		     there && tree_begins(&c, b->at, fixed); there = tree_next(&c)) {
			if (((const struct rec *)c.rec)->version >= b->before)
				continue;
			/* A new bucket of that name has set a record in this block, which replaces the
			 * remaining one; a removal after it would remove the new record. */
			if (block_find(vol, (const uint8_t *)c.key, c.key_len,
				       key_hash((const uint8_t *)c.key, c.key_len)))
				continue;
			memcpy(b->at, c.key, c.key_len);
			b->at_len = c.key_len;
			memcpy(key, c.key, c.key_len);
			return c.key_len;
		}
		b->at[0] = disk_key_next(MODEL_UPLOAD, b->at[0] == KEY_BATTRS ? 0 : b->at[0]);
		if (!b->at[0])
			return 0;
		b->at_len = (uint16_t)fixed;
	}
}

/* Finds the key of the next record that the job removes. Returns its length; 0: the job is done. */
static size_t
next_key(struct vol *vol, struct gc_job *job, uint8_t *key)
{
	if (job->bucket)
		return next_of_bucket(vol, job->bucket, key);
	return (job->dead ? next_of_manifest(vol, job, key) : next_of_id(vol, job, key)) ? CHUNK_KEY_BYTES
											 : 0;
}

/* Moves the job past the record that was packed. */
static void
go_on(struct gc_job *job)
{
	job->at++;
	/* The lowest key after that record. */
	if (job->bucket)
		job->bucket->at[job->bucket->at_len++] = 0;
}

/* Adds a job for a removal whose block failed, because the first job has moved past the record. */
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
	job = r ? gc_bucket_job(g->key + 1, (size_t)(nul - g->key - 1), r->version + 1) : NULL;
	/* Without memory the record remains until the next start. */
	if (job)
		gc_add(vol, job);
}

/* Ends a removal, which was published or has failed. */
static void
on_done(struct commit *c)
{
	struct gc_commit *g = container_of(c, struct gc_commit, c);
	struct vol *vol = g->vol;

	atomic_fetch_sub(&vol->dead_nr, 1);
	if (c->result < 0 && !disk_failed(&vol->disk))
		again(vol, g);
	pool_put(&vol->leader.removals, g);
}

static bool
pack_one(struct vol *vol, const uint8_t *key, size_t len)
{
	enum room room = block_room(vol, REC_HEAD_BYTES + len + 8, true);
	struct gc_commit *g = room == ROOM_YES ? pool_get(&vol->leader.removals) : NULL;

	/* Perhaps no commit waits for the log, so the removals themselves must make a snapshot due. */
	if (room == ROOM_LOG_FULL)
		vol->leader.log_is_full = true;
	if (!g)
		return false;
	*g = (struct gc_commit){
		.vol = vol,
		.c = { .is_gc = true,
		       .finished = on_done,
		       .kind = COMMIT_DELETE,
		       .key_hash = key_hash(key, len),
		       .view = { .op = REC_DELETE, .key = g->key, .key_len = (uint16_t)len } }
	};
	memcpy(g->key, key, len);
	if (commit_set_aside(vol, &g->c, true) < 0) {
		pool_put(&vol->leader.removals, g);
		return false;
	}
	atomic_fetch_add(&vol->dead_nr, 1);
	g->c.view.version = atomic_fetch_add(&vol->version, 1) + 1;
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
