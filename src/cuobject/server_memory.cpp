/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of class cuObjServer: buffers, their registration, and views of them. */
#include "cuobject/server_int.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

enum { ENTRIES_MAX = 10 /* maximum number of entries of one registration */ };

void
buffer_drop(struct rdma_buffer *b)
{
	if (--b->refs == 0)
		free(b);
}

void *
cuObjServer::allocHostBuffer(size_t size)
{
	return gantry_host_alloc(size);
}

static struct rdma_buffer *
buffer_new(struct session *s, size_t nr)
{
	struct rdma_buffer *b = static_cast<struct rdma_buffer *>(
		calloc(1, sizeof(struct rdma_buffer) + nr * sizeof(struct gantry_piece)));

	if (b) {
		b->of = s;
		b->refs = 1;
	} else {
		say(CUOBJ_LOG_PATH_ERROR, "no memory for a buffer of %zu entries", nr);
	}
	return b;
}

/* Takes its regions back.  -EBUSY: an operation uses it, and so the first of them; none is taken back then.  Locked. */
static int
regions_end(struct rdma_buffer *b)
{
	int e = 0;

	for (int i = 0; i < b->nr && e == 0; i++) {
		e = gantry_region_del(b->piece[i].region);
		if (e == 0)
			b->piece[i].region = nullptr;
	}
	return e;
}

static struct rdma_buffer *
register_all(struct session *s, const cuObjScatterGatherEntry_t *entry, size_t nr)
{
	struct rdma_buffer *b;
	int e = 0;

	if (nr == 0 || nr > ENTRIES_MAX) {
		say(CUOBJ_LOG_PATH_ERROR, "registering %zu entries: 1 to %d", nr, ENTRIES_MAX);
		return nullptr;
	}
	for (size_t i = 0; i < nr; i++) {
		if (!entry[i].addr || !entry[i].size) {
			say(CUOBJ_LOG_PATH_ERROR, "registering %zu bytes at %p: there is nothing",
			    entry[i].size, entry[i].addr);
			return nullptr;
		}
	}
	if (!s || !s->server) {
		say(CUOBJ_LOG_PATH_ERROR, "registering: there is no session");
		return nullptr;
	}
	b = buffer_new(s, nr);
	if (!b)
		return nullptr;
	pthread_mutex_lock(&s->memory);
	for (size_t i = 0; i < nr && e == 0; i++) {
		b->piece[i].mem = entry[i].addr;
		b->piece[i].len = entry[i].size;
		e = s->server
			    ? gantry_region_add(s->server, entry[i].addr, entry[i].size, &b->piece[i].region)
			    : -ENODEV;
		b->nr += e == 0;
		b->size += entry[i].size;
	}
	if (e < 0) {
		/* Nobody has used what was registered before. */
		regions_end(b);
		buffer_drop(b);
		b = nullptr;
	} else {
		pthread_mutex_lock(&s->list);
		b->next = s->buffers;
		s->buffers = b;
		pthread_mutex_unlock(&s->list);
	}
	pthread_mutex_unlock(&s->memory);
	return b;
}

struct rdma_buffer *
cuObjServer::registerBuffer(void *ptr, size_t size)
{
	cuObjScatterGatherEntry_t one = { ptr, size };

	return register_all(session_of(state), &one, 1);
}

struct rdma_buffer *
cuObjServer::registerBuffer(std::vector<cuObjScatterGatherEntry_t> sglist)
{
	return register_all(session_of(state), sglist.data(), sglist.size());
}

/* Where the list has it, which is all that is known of a pointer that a program gives; null: nowhere.  With s->list. */
static struct rdma_buffer **
place_of(struct session *s, const struct rdma_buffer *b)
{
	for (struct rdma_buffer **at = &s->buffers; *at; at = &(*at)->next) {
		if (*at == b)
			return at;
	}
	return nullptr;
}

/* -ENOENT: it is not registered.  Where it stays registered, on_log() hears why.  Locked. */
static int
deregister(struct session *s, struct rdma_buffer *b)
{
	struct rdma_buffer **at;
	int e;

	pthread_mutex_lock(&s->list);
	at = place_of(s, b);
	pthread_mutex_unlock(&s->list);
	e = at ? regions_end(b) : -ENOENT;
	if (e == 0) {
		pthread_mutex_lock(&s->list);
		*place_of(s, b) = b->next;
		pthread_mutex_unlock(&s->list);
		buffer_drop(b);
	}
	return at ? 0 : -ENOENT;
}

void
cuObjServer::deRegisterBuffer(struct rdma_buffer *b)
{
	struct session *s = session_of(state);
	int e;

	if (!b || !s)
		return;
	pthread_mutex_lock(&s->memory);
	e = deregister(s, b);
	pthread_mutex_unlock(&s->memory);
	if (e < 0)
		say(CUOBJ_LOG_PATH_ERROR, "deregistering what is no registered buffer of this server, or was "
					  "one: putRDMABufferFromSgList() takes views back");
}

/* Is every part within the buffer?  *ret_sum: how long they are together. */
static bool
are_within(const struct rdma_buffer *base, const std::vector<cuObjScatterGatherEntryWithOffset_t> &parts,
	   size_t *ret_sum)
{
	size_t sum = 0;

	for (const auto &e : parts) {
		sum += e.size;
		if (e.offset < 0 || (size_t)e.offset > base->size || e.size == 0 ||
		    e.size > base->size - (size_t)e.offset || sum > base->size) {
			say(CUOBJ_LOG_PATH_ERROR,
			    "a view of %zu bytes at %lld is not within the %zu bytes of its buffer", e.size,
			    (long long)e.offset, base->size);
			return false;
		}
	}
	*ret_sum = sum;
	return true;
}

struct rdma_buffer *
cuObjServer::getRDMABufferFromSgList(struct rdma_buffer *base,
				     std::vector<cuObjScatterGatherEntryWithOffset_t> sglist)
{
	struct session *s = session_of(state);
	struct rdma_buffer *view = nullptr;
	size_t sum;
	bool is;

	if (!s)
		return nullptr;
	pthread_mutex_lock(&s->list);
	is = !sglist.empty() && place_of(s, base) && base->nr == 1;
	if (is && are_within(base, sglist, &sum))
		view = buffer_new(s, sglist.size());
	if (view) {
		view->base = base;
		base->refs++;
	}
	pthread_mutex_unlock(&s->list);
	if (!is)
		say(CUOBJ_LOG_PATH_ERROR,
		    "a view is of a registered buffer of one entry, and has one part at least");
	if (!view)
		return nullptr;
	view->size = sum;
	for (const auto &e : sglist) {
		struct gantry_piece *p = &view->piece[view->nr++];

		p->mem = static_cast<char *>(base->piece[0].mem) + e.offset;
		p->len = e.size;
	}
	return view;
}

void
cuObjServer::putRDMABufferFromSgList(struct rdma_buffer *b)
{
	if (!b || !b->base) {
		say(CUOBJ_LOG_PATH_ERROR, "%s is no view", b ? "a registered buffer" : "null");
		return;
	}
	buffer_drop(b->base);
	buffer_drop(b);
}
