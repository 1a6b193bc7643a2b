/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas on a set of disks, see sim.h and many.c: clients bound what a bucket may hold, and change that; each bucket's bound is one client's.
 *
 * What is refused must have been too much for a bound that may have held, with all that may have been there; what grows and is answered
 * leaves no more than the bound, of what is there for sure.  When nothing runs, what is counted is what is there.
 */
#include "tests/sim/many_int.h"

#include "base/check.h"
#include "model/quota.h"

#include <errno.h>
#include <string.h>

#define ID_MOD 10000u /* a bound of bytes says which one it is */

struct cell many_bounds[BUCKETS];
static uint32_t size_of[IDS_MAX]; /* bytes of what has that id */
static struct store_use max_of[IDS_MAX];
/* Bytes of all contents of each bucket that may have been removed or overwritten since the store was last at rest. They count as bytes in
 * progress while a move, a resynchronisation or a client reads them. */
static uint64_t left_bytes[BUCKETS];

static const struct store_use unbounded = { STORE_UNBOUNDED, STORE_UNBOUNDED, STORE_UNBOUNDED };

void
quotas_begin(void)
{
	_Static_assert(IDS_MAX < ID_MOD, "each id is told by the bytes of its bound");
	memset(size_of, 0, sizeof size_of);
	memset(left_bytes, 0, sizeof left_bytes);
	max_of[0] = unbounded;
}

void
quotas_size(uint32_t id, uint32_t size)
{
	check(id < IDS_MAX);
	size_of[id] = size;
}

uint32_t
quotas_size_of(uint32_t id)
{
	uint32_t content = many_content(id);

	return content < IDS_MAX ? size_of[content] : 0;
}

/* ---- what may be there, and what is for sure ---- */

void
quotas_most(const struct cell *c, uint64_t since, uint64_t *ret_nr, uint64_t *ret_bytes)
{
	uint32_t most = 0, reserved = 0, nr = 0;
	bool may_be = c->since > since;

	for (int i = 0; i < c->nr + 2; i++) {
		uint32_t id = i < c->nr ? c->may[i] : i == c->nr ? c->pending : c->other;

		if (id == UNKNOWN_ID || id == 0)
			continue;
		may_be = true;
		/* A PUT in progress has reserved for its bytes, in addition to those that are there. */
		nr += i >= c->nr;
		reserved += i >= c->nr ? quotas_size_of(id) : 0;
		most = quotas_size_of(id) > most ? quotas_size_of(id) : most;
	}
	/* What was there meanwhile nobody knows any more. */
	if (c->since > since)
		most = BIG * PARTS;
	*ret_nr = may_be + nr;
	*ret_bytes = most + reserved;
}

bool
quotas_is_sure(const struct cell *c)
{
	return c->nr == 1 && cell_rests(c) && !c->is_open;
}

static unsigned copies_of(int b);

void
quotas_leaves(int b, const struct cell *c)
{
	for (int i = 0; i < c->nr; i++) {
		if (c->may[i])
			left_bytes[b] += quota_part_bytes(quotas_size_of(c->may[i])) * copies_of(b);
	}
}

/* Each copy takes the bytes. */
static unsigned
copies_of(int b)
{
	return many_has_two(b) ? 2 : 1;
}

static struct store_use
most_of(int b, uint64_t since)
{
	struct store_use use = { 0 };

	for (int k = 0; k < KEYS; k++) {
		uint64_t nr, bytes;

		quotas_most(&many_keys[b][k], since, &nr, &bytes);
		use.objects += nr;
		use.bytes += bytes;
	}
	uploads_most(b, since, &use);
	use.bytes *= copies_of(b);
	return use;
}

/* Of what no disk serves nobody counts. */
static struct store_use
least_of(int b)
{
	struct store_use use = { 0 };

	for (int k = 0; k < KEYS; k++) {
		const struct cell *c = &many_keys[b][k];

		if (!quotas_is_sure(c) || !c->may[0] || many_is_away(b, k))
			continue;
		use.objects++;
		use.bytes += quotas_size_of(c->may[0]);
	}
	uploads_least(b, &use);
	use.bytes *= copies_of(b);
	return use;
}

/* left: bytes that may be in progress in addition */
static bool
is_beyond(const struct store_use *use, uint64_t left, const struct store_use *max)
{
	return (left && use->bytes + left > max->bytes) || use->objects > max->objects ||
	       use->bytes > max->bytes || use->uploads > max->uploads;
}

void
quotas_check_refused(int b, uint64_t since, const char *what)
{
	const struct cell *c = &many_bounds[b];
	struct store_use most = most_of(b, since);

	counts.over_quota++;
	/* Which bound held when it was judged is not known any more. */
	if (c->since > since || many_bucket_changed(b, since))
		return;
	for (int i = 0; i < c->nr; i++) {
		if (is_beyond(&most, left_bytes[b], &max_of[c->may[i]]))
			return;
	}
	if (c->pending != UNKNOWN_ID && is_beyond(&most, left_bytes[b], &max_of[c->pending]))
		return;
	sim_fail("%s is refused: bucket %d holds %llu objects, %llu bytes and %llu uploads at most, and no "
		 "bound "
		 "says that this is too much",
		 what, b, (unsigned long long)most.objects, (unsigned long long)most.bytes,
		 (unsigned long long)most.uploads);
}

/* Where a disk fails, or a block is given up, what was to be removed by it stays: so much as clients can ask for at once. */
static uint64_t
slack(void)
{
	unsigned hurt = (many_hurt() & ~many_away()) | many_short();

	return 2ull * CLIENTS * (unsigned)__builtin_popcount(hurt);
}

void
quotas_check_grown(int b, uint64_t since, const struct store_use *grown, const char *what)
{
	const struct cell *c = &many_bounds[b];
	const struct store_use *max = &max_of[c->may[0]];
	struct store_use least;
	uint64_t more = slack();

	if (!quotas_is_sure(c) || c->may[0] == 0 || c->since > since || many_bucket_changed(b, since))
		return;
	least = least_of(b);
	if ((grown->objects && max->objects != STORE_UNBOUNDED && least.objects > max->objects + more) ||
	    (grown->bytes && max->bytes != STORE_UNBOUNDED &&
	     least.bytes > max->bytes + more * BIG * copies_of(b)) ||
	    (grown->uploads && max->uploads != STORE_UNBOUNDED && least.uploads > max->uploads + more))
		sim_fail("%s is answered, and bucket %d, with a bound of %lld objects, %lld bytes and %lld "
			 "uploads, "
			 "has %llu, %llu and %llu",
			 what, b, (long long)max->objects, (long long)max->bytes, (long long)max->uploads,
			 (unsigned long long)least.objects, (unsigned long long)least.bytes,
			 (unsigned long long)least.uploads);
}

/* ---- bounds ---- */

void
do_quota(struct many_client *c, int b)
{
	struct cell *cell = &many_bounds[b];
	uint32_t id = ++many_ids;
	struct store_use max = { .objects = one_in(3) ? STORE_UNBOUNDED : below(6),
				 .bytes = (uint64_t)below(6) * ID_MOD + id,
				 .uploads = one_in(3) ? below(3) : STORE_UNBOUNDED };
	uint64_t since;
	int r;

	check(id < IDS_MAX);
	if (one_in(4)) {
		id = 0;
		max = unbounded;
	}
	max_of[id] = max;
	many_begin(c);
	counts.quotas++;
	cell->pending = id;
	cell->since = since = ++many_events;
	say("client %d bounds bucket %d by %lld objects, %lld bytes, %lld uploads: %u", c->nr, b,
	    (long long)max.objects, (long long)max.bytes, (long long)max.uploads, id);
	r = many_wait(c, store_bucket_set_quota(many_port(c), bucket_name(b), strlen(bucket_name(b)), &max,
						&c->u.set));
	say("bound %u: %d", id, r);
	cell_over(cell, r, id);
	many_of_bucket_over(cell, b, since);
	if (r < 0 && r != -ENXIO)
		many_check_bucket_error(r, false, "setting a bucket's quota");
}

void
quotas_see(int b)
{
	struct store_quota_info info;
	uint32_t id;

	if (many_bucket_changed(b, many_events) ||
	    store_bucket_quota(sim_store, bucket_name(b), strlen(bucket_name(b)), &info) < 0)
		return;
	id = info.has_bound ? (uint32_t)(info.max.bytes % ID_MOD) : 0;
	if (id >= IDS_MAX || memcmp(&info.max, &max_of[id], sizeof info.max) != 0)
		sim_fail("bucket %d has a bound that nobody set", b);
	cell_seen(&many_bounds[b], id, "the bound", b, -1);
}

/* ---- when nothing runs ---- */

void
quotas_compare(void)
{
	memset(left_bytes, 0, sizeof left_bytes);
	for (int b = 0; b < BUCKETS; b++) {
		struct store_quota_info info;
		struct store_use is = { 0 };
		bool is_sure = quotas_is_sure(&many_buckets[b]) && many_buckets[b].may[0] == 1;

		for (int k = 0; k < KEYS; k++)
			is_sure &= quotas_is_sure(&many_keys[b][k]);
		if (!is_sure || !uploads_are_sure(b))
			continue;
		is = least_of(b);
		if (store_bucket_quota(sim_store, bucket_name(b), strlen(bucket_name(b)), &info) < 0)
			sim_fail("bucket %d is there, and nothing is counted of it", b);
		if (memcmp(&is, &info.used, sizeof is) != 0)
			sim_fail("bucket %d has %llu objects, %llu bytes and %llu uploads, counted are %llu, "
				 "%llu and %llu",
				 b, (unsigned long long)is.objects, (unsigned long long)is.bytes,
				 (unsigned long long)is.uploads, (unsigned long long)info.used.objects,
				 (unsigned long long)info.used.bytes, (unsigned long long)info.used.uploads);
	}
}
