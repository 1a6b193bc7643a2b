/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port's cache of CRC blocks.  A CRC block is read once per use of an object and checked against the
 * record; reads of the same record share it while it is in use, and later as long as it stays in the
 * cache.  On the port's thread.
 */
#include "extent/object/read_int.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

int
crc_blocks_init(struct extent_port *p)
{
	list_init(&p->crc_block_lru);
	list_init(&p->crc_block_waiters);
	p->crc_blocks = calloc(CRC_BLOCKS_PER_PORT, sizeof *p->crc_blocks);
	p->crc_block_mem = mmap(NULL, (size_t)CRC_BLOCKS_PER_PORT * FMT_CRC_BLOCK_MAX, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->crc_block_mem == MAP_FAILED)
		p->crc_block_mem = NULL;
	if (!p->crc_blocks || !p->crc_block_mem)
		return -ENOMEM;
	for (unsigned i = 0; i < CRC_BLOCKS_PER_PORT; i++) {
		struct crc_block *t = &p->crc_blocks[i];

		t->crc = (uint64_t *)(void *)((char *)p->crc_block_mem + (size_t)i * FMT_CRC_BLOCK_MAX);
		list_init(&t->waiters);
		list_push_tail(&p->crc_block_lru, &t->lru);
	}
	return 0;
}

void
crc_blocks_fini(struct extent_port *p)
{
	if (p->crc_block_mem)
		munmap(p->crc_block_mem, (size_t)CRC_BLOCKS_PER_PORT * FMT_CRC_BLOCK_MAX);
	free(p->crc_blocks);
}

static struct crc_block **
slot_of(struct extent_port *p, uint64_t version)
{
	return &p->crc_block_hash[(version * 0x9e3779b97f4a7c15u >> 32) % CRC_BLOCKS_PER_PORT];
}

static void
forget(struct extent_port *p, struct crc_block *t)
{
	struct crc_block **link = slot_of(p, t->version);

	while (t->version && *link != t)
		link = &(*link)->hash_next;
	if (t->version)
		*link = t->hash_next;
	t->version = 0;
	t->state = CRC_BLOCK_EMPTY;
}

static void
on_loaded(struct xio *x)
{
	struct crc_block *t = container_of(x, struct crc_block, x);
	struct extent_port *p = container_of(x->p, struct extent_port, vp.io);
	int error = x->error;
	struct list waiters;

	if (error == 0 && !crc_block_fits(t->crc, t->rec->size_bytes, t->crc64)) {
		atomic_fetch_add_explicit(&x->d->stats.crc_errors, 1, memory_order_relaxed);
		error = -EBADMSG;
	}
	t->rec = NULL;
	t->state = error ? CRC_BLOCK_EMPTY : CRC_BLOCK_GOOD;
	if (error)
		forget(p, t);
	/* Their ends may begin other reads, which must not join this list. */
	list_take(&waiters, &t->waiters);
	for (struct list *l; (l = list_pop(&waiters)) != NULL;)
		read_crc_block_done(container_of(l, struct read_int, link), error);
}

int
crc_block_get(struct extent_port *p, struct read_int *ri)
{
	const struct rec *r = ri->rec;
	struct crc_block *t = *slot_of(p, r->version);
	struct list *l;

	/* A record that came from another disk may have the version of one that is, or was, of this. */
	while (t && (t->version != r->version || t->crc64 != r->crc64))
		t = t->hash_next;
	if (!t) {
		l = list_first(&p->crc_block_lru);
		if (!l) {
			list_push_tail(&p->crc_block_waiters, &ri->link);
			return -EAGAIN;
		}
		t = container_of(l, struct crc_block, lru);
		forget(p, t);
		t->version = r->version;
		t->crc64 = r->crc64;
		t->hash_next = *slot_of(p, r->version);
		*slot_of(p, r->version) = t;
	}
	if (t->refs++ == 0)
		list_del(&t->lru);
	ri->crc_block = t;
	if (t->state == CRC_BLOCK_GOOD)
		return 1;
	list_push_tail(&t->waiters, &ri->link);
	if (t->state == CRC_BLOCK_EMPTY) {
		t->state = CRC_BLOCK_LOADING;
		t->rec = r;
		xio_start(&t->x, &p->vp.io, &ri->obj->vol->disk, false, rec_entries(r), r->entry_nr,
			  align_up(r->size_bytes, FMT_ALIGN), t->crc,
			  (uint32_t)align_up(crc_block_bytes(r->size_bytes), FMT_ALIGN), RING_NO_REGION,
			  on_loaded);
	}
	return 0;
}

void
crc_block_put(struct extent_port *p, struct crc_block *t)
{
	struct list *l;

	check(t->refs > 0);
	if (--t->refs)
		return;
	list_push_tail(&p->crc_block_lru, &t->lru);
	l = list_pop(&p->crc_block_waiters);
	if (l)
		read_segment_begin(container_of(l, struct read_int, link));
}
