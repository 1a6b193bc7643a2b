/*
 * Chunks that nobody owns any more: of manifests that died, of PUTs that ended without one, and what a start
 * finds. Their removal is a record per chunk, packed by the leader behind whatever else is in the block.
 */
#include "store/store_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
gc_init(struct disk *d)
{
	d->gc_end = &d->gc;
	d->gc_mem = calloc(GC_COMMITS, sizeof *d->gc_mem);
	if (!d->gc_mem)
		return -ENOMEM;
	for (int i = 0; i < GC_COMMITS; i++) {
		d->gc_mem[i].next = d->gc_free;
		d->gc_free = &d->gc_mem[i];
	}
	return 0;
}

static void
free_jobs(struct gc_job *j)
{
	while (j) {
		struct gc_job *next = j->next;

		if (!j->dead)
			free(j);
		j = next;
	}
}

void
gc_fini(struct disk *d)
{
	/* What is left is ownerless, and the next start collects it. */
	free_jobs(d->gc);
	free_jobs(atomic_exchange(&d->gc_new, NULL));
	d->gc = NULL;
	free(d->gc_mem);
	d->gc_mem = NULL;
}

void
gc_add(struct disk *d, struct gc_job *job)
{
	job->next = NULL;
	*d->gc_end = job;
	d->gc_end = &job->next;
}

void
gc_orphans(struct disk *d, const uint8_t id[CHUNK_ID_BYTES], uint32_t from, uint32_t nr)
{
	/* Only for aborted objects of more than a chunk.  Without memory they wait for the next start. */
	struct gc_job *job = from < nr ? calloc(1, sizeof *job) : NULL;

	if (!job)
		return;
	memcpy(job->id, id, CHUNK_ID_BYTES);
	job->at = from;
	job->nr = nr;
	job->next = atomic_load(&d->gc_new);
	while (!atomic_compare_exchange_weak(&d->gc_new, &job->next, job))
		;
	atomic_store(&d->want_lead, true);
}

static void
job_over(struct disk *d, struct gc_job *job)
{
	struct dead *dead = job->dead;
	struct map_ref map;

	if (!dead) {
		free(job);
		return;
	}
	if (rec_map(dead->rec, &map))
		extents_free(d, &map.ext, 1);
	rec_retire(d, dead->rec);
	dead_put(d, dead);
}

/* The key of the next chunk of the job. */
static void
job_key(const struct gc_job *job, uint8_t key[CHUNK_KEY_BYTES])
{
	if (job->dead) {
		const struct chunk_ref *ch = rec_entries(job->dead->rec);

		key_chunk(key, ch[job->at].id, ch[job->at].index);
	} else {
		key_chunk(key, job->id, job->at);
	}
}

void
gc_commit_over(struct disk *d, struct commit *c)
{
	struct gc_commit *g = container_of(c, struct gc_commit, c);

	g->next = d->gc_free;
	d->gc_free = g;
}

static bool
pack_one(struct disk *d, const uint8_t key[CHUNK_KEY_BYTES])
{
	struct gc_commit *g = d->gc_free;
	enum room room = judge_room(d, REC_HEAD_BYTES + CHUNK_KEY_BYTES + 8, true);

	/* Nobody else may be waiting: it is for these that the next snapshot is due. */
	if (room == ROOM_LOG_FULL)
		d->log_is_full = true;
	if (!g || room != ROOM_YES)
		return false;
	if (tree_reserve_deletes(d->tree, 1) < 0)
		return false;
	*g = (struct gc_commit){ .c = { .is_gc = true, .disk = d, .kind = COMMIT_DELETE } };
	memcpy(g->key, key, CHUNK_KEY_BYTES);
	g->c.dead = dead_get(d);
	if (!g->c.dead) {
		tree_unreserve(d->tree, 1);
		return false;
	}
	d->gc_free = g->next;
	g->c.view = (struct rec_view){ .op = REC_DELETE, .key = g->key, .key_len = CHUNK_KEY_BYTES };
	g->c.view.version = atomic_fetch_add(&d->st->version, 1) + 1;
	g->c.key_hash = key_hash(g->key, CHUNK_KEY_BYTES);
	judge_pack(d, &g->c);
	return true;
}

void
gc_pack(struct disk *d)
{
	struct gc_job *job = atomic_exchange(&d->gc_new, NULL);

	while (job) {
		struct gc_job *next = job->next;

		gc_add(d, job);
		job = next;
	}
	while ((job = d->gc) != NULL) {
		for (; job->at < job->nr; job->at++) {
			uint8_t key[CHUNK_KEY_BYTES];

			job_key(job, key);
			if (tree_find(d->tree, key, CHUNK_KEY_BYTES) && !pack_one(d, key))
				return;
		}
		d->gc = job->next;
		if (!d->gc)
			d->gc_end = &d->gc;
		job_over(d, job);
	}
}
