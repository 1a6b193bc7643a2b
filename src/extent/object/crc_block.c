/*
 * The port's cache of trailers.  A trailer is read once per use of an object and checked against the record;
 * reads of the same record share it while it is in use, and later as long as it stays in the cache.  On the
 * port's thread.
 */
#include "extent/object/read_int.h"

#include "base/check.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

int
trailers_init(struct extent_port *p)
{
	list_init(&p->trailer_lru);
	list_init(&p->trailer_waiters);
	p->trailers = calloc(TRAILERS_PER_PORT, sizeof *p->trailers);
	p->trailer_mem = mmap(NULL, (size_t)TRAILERS_PER_PORT * FMT_TRAILER_MAX, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->trailer_mem == MAP_FAILED)
		p->trailer_mem = NULL;
	if (!p->trailers || !p->trailer_mem)
		return -ENOMEM;
	for (unsigned i = 0; i < TRAILERS_PER_PORT; i++) {
		struct trailer *t = &p->trailers[i];

		t->crc = (uint64_t *)(void *)((char *)p->trailer_mem + (size_t)i * FMT_TRAILER_MAX);
		list_init(&t->waiters);
		list_push_tail(&p->trailer_lru, &t->lru);
	}
	return 0;
}

void
trailers_fini(struct extent_port *p)
{
	if (p->trailer_mem)
		munmap(p->trailer_mem, (size_t)TRAILERS_PER_PORT * FMT_TRAILER_MAX);
	free(p->trailers);
}

static struct trailer **
slot_of(struct extent_port *p, uint64_t version)
{
	return &p->trailer_hash[(version * 0x9e3779b97f4a7c15u >> 32) % TRAILERS_PER_PORT];
}

static void
forget(struct extent_port *p, struct trailer *t)
{
	struct trailer **link = slot_of(p, t->version);

	while (t->version && *link != t)
		link = &(*link)->hash_next;
	if (t->version)
		*link = t->hash_next;
	t->version = 0;
	t->state = TRAILER_EMPTY;
}

bool
trailer_fits(const uint64_t *crc, const struct rec *r)
{
	uint32_t nr = granules(r->size_bytes);
	uint64_t all = crc[0];

	for (uint32_t i = 1; i < nr; i++) {
		uint64_t len = i + 1 < nr ? STORE_GRANULE : r->size_bytes - (uint64_t)i * STORE_GRANULE;

		all = crc64_nvme_combine(all, crc[i], len);
	}
	return all == r->crc64;
}

static void
on_loaded(struct xio *x)
{
	struct trailer *t = container_of(x, struct trailer, x);
	struct extent_port *p = x->p;
	int error = x->error;
	struct list waiters;

	if (error == 0 && !trailer_fits(t->crc, t->rec)) {
		atomic_fetch_add_explicit(&x->d->stats.crc_errors, 1, memory_order_relaxed);
		error = -EBADMSG;
	}
	t->rec = NULL;
	t->state = error ? TRAILER_EMPTY : TRAILER_GOOD;
	if (error)
		forget(p, t);
	/* Their ends may begin other reads, which must not join this list. */
	waiters = t->waiters;
	waiters.next->prev = waiters.prev->next = &waiters;
	list_init(&t->waiters);
	for (struct list *l; (l = list_pop(&waiters)) != NULL;)
		read_trailer_over(container_of(l, struct read_int, link), error);
}

int
trailer_get(struct extent_port *p, struct read_int *ri)
{
	const struct rec *r = ri->rec;
	struct trailer *t = *slot_of(p, r->version);
	struct list *l;

	while (t && t->version != r->version)
		t = t->hash_next;
	if (!t) {
		l = list_first(&p->trailer_lru);
		if (!l) {
			list_push_tail(&p->trailer_waiters, &ri->link);
			return -EAGAIN;
		}
		t = container_of(l, struct trailer, lru);
		forget(p, t);
		t->version = r->version;
		t->hash_next = *slot_of(p, r->version);
		*slot_of(p, r->version) = t;
	}
	if (t->refs++ == 0)
		list_del(&t->lru);
	ri->trailer = t;
	if (t->state == TRAILER_GOOD)
		return 1;
	list_push_tail(&t->waiters, &ri->link);
	if (t->state == TRAILER_EMPTY) {
		t->state = TRAILER_LOADING;
		t->rec = r;
		xio_start(&t->x, p, ri->obj->disk, false, rec_entries(r), r->entry_nr,
			  align_up(r->size_bytes, FMT_ALIGN), t->crc,
			  (uint32_t)align_up(trailer_bytes(r->size_bytes), FMT_ALIGN), RING_NO_REGION,
			  on_loaded);
	}
	return 0;
}

void
trailer_put(struct extent_port *p, struct trailer *t)
{
	struct list *l;

	check(t->refs > 0);
	if (--t->refs)
		return;
	list_push_tail(&p->trailer_lru, &t->lru);
	l = list_pop(&p->trailer_waiters);
	if (l)
		read_part_begin(container_of(l, struct read_int, link));
}
