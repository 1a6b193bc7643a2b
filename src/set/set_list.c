/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the objects and uploads of a set by merging the lists of its engines, and the buckets of its metadata leader. */
#include "set/map/set_rules.h"
#include "set/set_int.h"
#include "model/merge.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/* Returns true if the records of this engine belong to an earlier bucket of this name, so that the engine
 * counts as having no keys of the bucket. */
static bool
has_nothing(const struct merge_of *of, int i, struct store_list *ls)
{
	bool is_there;

	if (!set_has_missed(set_port(of->port)->set, i, ls->bucket, ls->bucket_len, &is_there))
		return false;
	ls->op.result = is_there ? 0 : -ENXIO;
	ls->more = false;
	return true;
}

/* Returns the engine that is source i of the merge. The sources are all engines of the set, beginning with
 * the metadata leader (of->first). Engines that are not members are sources without keys. */
static int
engine_of(const struct merge_of *of, int i)
{
	return (i + of->first) % of->nr;
}

/* Restricts the list of an engine to the partitions of which the engine is the primary. A disk that hangs, or
 * that partitions are leaving, may still show older records of partitions whose primary is another disk now. */
static void
ask_home(const struct set *s, int engine, struct store_list *ls)
{
	struct store_slots *slots = merge_slots(ls);

	memset(slots, 0, sizeof *slots);
	for (int i = 0; i < STORE_PLACE_NR; i++) {
		if (set_primary_at(s, (unsigned)i) == engine)
			slots_add(slots, (unsigned)i);
	}
	ls->slots = slots;
}

/* Returns 0 if the bucket exists, or -ENXIO. */
static int
find_bucket(const struct merge_of *of, const struct store_list *ls)
{
	struct store_stat st;
	int r = store_bucket_head(of->port, ls->bucket, ls->bucket_len, &st);

	/* The metadata leader answers from memory, without a wait. */
	check(r != 0);
	return r < 0 ? r : st.op.result;
}

static int
list_engine(const struct merge_of *of, int source, struct store_list *ls)
{
	struct set_port *p = set_port(of->port);
	int i = engine_of(of, source);

	if (!(set_all(p->set) >> i & 1)) {
		/* If the metadata leader left the map after the list had begun, or leaves at this moment, the
		 * list still ends with -ENXIO if the bucket does not exist. */
		ls->op.result = source ? -ENXIO : find_bucket(of, ls);
		ls->more = false;
		return 1;
	}
	if (set_is_leaving(p->set, i) || (of->settle && set_in(p->set) != set_all(p->set)))
		ask_home(p->set, i, ls);
	return has_nothing(of, i, ls) ? 1 : port_engine(p, i)->ops->list(port_engine(p, i), ls);
}

/* Waits for the key locks of the bucket (M16). A change that holds a key lock while a page is made may
 * already be on the page, although it is not on both disks. */
static int
settle(const struct merge_of *of, struct merge_wait *w)
{
	return set_wait_held(set_key_locks(set_port(of->port)->set), of->bucket, of->bucket_len, w);
}

int
set_list(struct store_port *sp, struct store_list *ls)
{
	struct set_port *p = set_port(sp);
	struct set *s = p->set;
	int first = set_head(s);
	bool two;

	if (!ls->bucket || set_units(s) == 1)
		return port_engine(p, first)->ops->list(port_engine(p, first), ls);
	two = set_bucket_has_two(sp, ls->bucket, ls->bucket_len);
	/* A list that lacks the keys of a missing disk must be marked as partial. */
	ls->is_partial = two ? set_misses_places(s) : set_misses_some(s);
	if (ls->is_partial && !ls->may_be_partial)
		return -ENODEV;
	return merge_list(&(struct merge_of){ .port = sp,
					      .mb = p->mb,
					      .inflight = &p->inflight,
					      .nr = p->nr,
					      .nr_now = &p->nr,
					      .bucket = ls->bucket,
					      .bucket_len = ls->bucket_len,
					      .first = first,
					      .changes = set_relocations(s),
					      .settle = two && RULE_SETTLED_VISIBLE ? settle : NULL,
					      .list = list_engine },
			  ls);
}
