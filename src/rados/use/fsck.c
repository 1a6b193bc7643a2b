/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --fsck: reads all records of the index and the names of all data objects, and compares them. Reports data
 * objects that no record names, and missing data objects. The bytes are not read; the scrub reads them.
 *
 * Gateways may run at the same time. Three kinds of ids are left out: those that a running gateway may use;
 * those of a dead gateway that has not been cleaned up, whose last change may still arrive; those of gateways
 * that started after the check. The name of a data object moves in the index from a part to the object's
 * record, and from there to garbage, so the index is read in this order. A data object is reported as missing
 * only if a record still names it afterwards.
 *
 * A repair does not make the damaged row of a bucket again, because the shards have neither the name of the bucket
 * nor the time of its creation. The row may be restored from a copy of the table, so the shards and all objects
 * without an owner remain; likewise if a shard is missing.
 */
#include "rados/use/fsck.h"

#include "rados/io/fault.h"
#include "rados/io/rows.h"
#include "rados/io/rstore.h"
#include "rados/use/fsck_int.h"
#include "store/damage.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- gateways ---- */

static int
read_gateways(struct checking *c)
{
	int e = gateway_read_table(c->st, "ix", &c->gateways);

	for (uint32_t i = 0; e == 0 && i < c->gateways.nr; i++) {
		const struct peer *p = &c->gateways.peers[i];

		if (p->is_damaged) {
			fsck_tell(c, "gateway %u: its row is damaged: its data without an owner is left out",
				  p->instance);
			c->damage++;
		} else if (p->is_dead) {
			fsck_tell(c,
				  "gateway %u on %s is dead, and not cleaned up after yet: its operations in "
				  "progress are left out",
				  p->instance, p->row.host);
		}
	}
	return e;
}

/* ---- data objects ---- */

static int
by_id(const void *a, const void *b)
{
	const struct rid *x = &((const struct named *)a)->id, *y = &((const struct named *)b)->id;

	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	return x->counter < y->counter ? -1 : x->counter > y->counter;
}

/* Sorts the names and removes duplicates: a name that moved in the meantime was found twice. */
static void
sort_named(struct checking *c)
{
	size_t nr = 0;

	if (!c->nr)
		return;
	qsort(c->named, c->nr, sizeof *c->named, by_id);
	for (size_t i = 1; i < c->nr; i++) {
		struct named *last = &c->named[nr], *n = &c->named[i];

		if (by_id(last, n) != 0)
			c->named[++nr] = *n;
		else if (n->found == UINT32_MAX)
			last->found = UINT32_MAX;
	}
	c->nr = nr + 1;
}

static struct named *
find(const struct checking *c, struct rid id)
{
	const struct named key = { .id = id };

	return c->nr ? bsearch(&key, c->named, c->nr, sizeof *c->named, by_id) : NULL;
}

static bool
is_under_way(const struct checking *c, struct rid id)
{
	if (id.instance >= c->gateways.next)
		return true;
	for (uint32_t i = 0; i < c->gateways.nr; i++) {
		const struct peer *p = &c->gateways.peers[i];

		/* The row of zeros of a gateway whose row is damaged concerns all its ids. */
		if (p->instance == id.instance && id.counter >= p->row.first)
			return true;
	}
	return false;
}

static int
look_at(struct checking *c, enum pool pool, const char *name, struct rid id, uint32_t n, bool is_map)
{
	struct named *found = find(c, id);
	uint64_t size;
	time_t mtime;
	int e;

	if (found && (is_map ? found->is_map : n < found->nr)) {
		found->found += found->found != UINT32_MAX;
		return 0;
	}
	if (c->is_blind || is_under_way(c, id))
		return 0;
	fsck_tell(c, "%s %s has no owner%s", is_map ? "map" : "data object", name,
		  c->repair ? ": removed" : "");
	fsck_count_damage(c, c->repair);
	if (c->sums && rados_stat(c->st->client[0].io[pool], name, &size, &mtime) == 0) {
		c->sums->unnamed.objects++;
		c->sums->unnamed.bytes += size;
	}
	if (!c->repair)
		return 0;
	e = rados_remove(c->st->client[0].io[pool], name);
	return e == -ENOENT ? 0 : e;
}

static int
each_object(struct checking *c, enum pool pool)
{
	rados_list_ctx_t list;
	const char *name;
	int e = rados_nobjects_list_open(c->st->client[0].io[pool], &list);

	if (e < 0)
		return e;
	while ((e = rados_nobjects_list_next(list, &name, NULL, NULL)) == 0) {
		unsigned long long counter;
		struct rid id;
		uint32_t n = 0;
		int end = 0;

		meter_add(c->meter, 1);
		if (pool == POOL_DATA)
			sscanf(name, "%8x.%16llx.%8x%n", &id.instance, &counter, &n, &end);
		else
			sscanf(name, "map.%8x.%16llx%n", &id.instance, &counter, &end);
		if (!end || name[end]) {
			/* The meta pool has other objects as well; the data pool has one with the
			 * description of the store. */
			if (pool == POOL_DATA && strcmp(name, OBJECT_STORE) != 0) {
				fsck_tell(c, "data object %s: no name of ours", name);
				c->damage++;
			}
			continue;
		}
		id.counter = counter;
		e = look_at(c, pool, name, id, n, pool == POOL_META);
		if (e < 0)
			break;
	}
	rados_nobjects_list_close(list);
	return e == -ENOENT ? 0 : e;
}

static bool
is_missing(const struct checking *c, const struct named *n)
{
	return n->found < n->nr && !is_under_way(c, n->id);
}

/* Reports missing data objects that a second reading of the index still finds: the others were replaced or
 * deleted in the meantime. */
static int
tell_missing(struct checking *c)
{
	struct checking again = { .st = c->st };
	bool any = false;
	int e = 0;

	for (size_t i = 0; i < c->nr && !any; i++)
		any = is_missing(c, &c->named[i]);
	if (any)
		e = each_row(c->st, OBJECT_BUCKETS, "", fsck_on_bucket, &again);
	if (e == 0)
		sort_named(&again);
	for (size_t i = 0; e == 0 && any && i < c->nr; i++) {
		const struct named *n = &c->named[i], *still = find(&again, n->id);

		if (!is_missing(c, n) || !still || still->found == UINT32_MAX)
			continue;
		fsck_tell(c, "%s%s: %u of %u objects are missing", n->is_map ? "map." : "",
			  rid_text(n->id).text, n->nr - n->found, n->nr);
		c->damage++;
	}
	free(again.named);
	return e;
}

int
fsck_store(const struct rstore *st, enum fsck_mode mode, struct damage_sums *sums, struct meter_disk *meter,
	   void (*say)(void *cookie, const char *line), void *cookie)
{
	struct checking c = { .st = st,
			      .repair = mode == FSCK_REPAIR,
			      .sums = sums,
			      .meter = meter,
			      .say = say,
			      .cookie = cookie };
	int e = read_gateways(&c);

	fault_point("fsck.gateways");
	if (e == 0)
		e = each_row(st, OBJECT_BUCKETS, "", fsck_on_bucket, &c);
	if (e == 0) {
		sort_named(&c);
		fault_point("fsck.index");
		meter_step(meter, METER_NAMES, 0);
		e = each_object(&c, POOL_DATA);
	}
	if (e == 0)
		e = each_object(&c, POOL_META);
	if (e == 0)
		e = tell_missing(&c);
	free(c.named);
	free(c.gateways.peers);
	if (e == 0 && mode == FSCK_PREVIEW && c.would)
		return 1;
	return e < 0 ? e : c.damage ? -ENOTRECOVERABLE : c.removed ? 1 : 0;
}
