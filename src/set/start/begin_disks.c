/* SPDX-License-Identifier: Apache-2.0 */
/* Makes each disk of a start ready: the disk recovers, stores the start number, gets the placement map, and
 * serves; see start_int.h. */
#include "set/start/start_int.h"

#include "set/map/set_rules.h"
#include "base/check.h"

#include <string.h>

int
start_find_head(const struct start *s)
{
	uint64_t of = s->table.in & s->present;

	return __builtin_ctzll(of ? of : s->present);
}

static uint64_t
total_bytes(const struct start *s)
{
	uint64_t bytes = 0;

	for (int i = 0; i < s->nr; i++)
		bytes += s->disk[i].st ? s->disk[i].id.size_bytes : 0;
	return bytes;
}

/* Returns the index of the disk's counter in the quota ledger. Counter 0 is that of the metadata leader. */
static int
counter_of(const struct disk *d)
{
	uint64_t before = d->of->present & (((uint64_t)1 << d->number) - 1);
	int head = start_find_head(d->of);

	return d->number == head ? 0 : start_count(before) + (d->number < head);
}

/* Recovers the disk with its assigned partitions. M13: records in other slots count as absent. */
int
start_recover_one(struct disk *d)
{
	uint64_t index_bytes = d->of->conf->disks.index_bytes;
	struct store_slots slots = { .bit = { 0 } };

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (d->of->table.home[i] == d->number)
			slots_add(&slots, table_place((unsigned)i, false));
		if (d->of->next.first[i] == d->number &&
		    !slots_has(&d->of->lost, table_place((unsigned)i, true)))
			slots_add(&slots, table_place((unsigned)i, true));
	}
	d->counter = counter_of(d);
	return d->of->ops->recover(d->st, RULE_TABLE_DECIDES ? &slots : NULL,
				   set_share_of(index_bytes, d->id.size_bytes, total_bytes(d->of)),
				   d->of->quotas, d->counter, &d->start_no, d->err, sizeof d->err);
}

static int
begin_one(struct disk *d)
{
	return d->of->ops->begin(d->st, d->of->start_no, d->is_behind, d->err, sizeof d->err);
}

int
start_set_table_one(struct disk *d)
{
	if (!RULE_TABLE_ALL && d->number != start_find_head(d->of))
		return 0;
	return d->of->ops->set_table(d->st, &d->of->table, d->err, sizeof d->err);
}

int
start_serve_one(struct disk *d)
{
	return d->of->ops->serve(d->st, d->err, sizeof d->err);
}

int
start_drop_failed(struct start *s)
{
	int e = 0;

	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];

		if (!d->st || d->error >= 0)
			continue;
		if (start_count(s->table.members) == 1)
			return start_refuse_disk(s, d);
		d->is_out = true;
		e = AGAIN;
	}
	return e;
}

int
start_begin_all(struct start *s)
{
	s->start_no = 0;
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && s->disk[i].start_no > s->start_no)
			s->start_no = s->disk[i].start_no;
	}
	start_each(s, false, begin_one);
	return start_drop_failed(s);
}

static bool
all_have_table(const struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		if (s->disk[i].st && memcmp(s->disk[i].id.table, &s->table, sizeof s->table) != 0)
			return false;
	}
	return true;
}

int
start_write_table(struct start *s)
{
	uint64_t size[STORE_DISKS_MAX];
	bool has_all = !RULE_TABLE_REDO || (start_count(s->table.members) == 1 && all_have_table(s)), changes;
	uint64_t no = RULE_START_NO ? s->start_no : (s->table.version >> TABLE_CHANGE_BITS) + 1;

	start_sizes(s, size);
	/* M35: disks are forgotten only when all remaining members are present. M4: a majority counts
	 * members, also those that did not take part in the newest map. */
	check(!s->forgotten || s->present == (s->table.members & ~s->forgotten));
	check((s->present & ~s->table.members) == 0);
	if (s->forgotten)
		table_forget(&s->table, s->forgotten, size, &s->lost);
	start_lose(s, &s->table);
	changes = table_start(&s->table, s->present, no);
	if (!changes && !s->forgotten && has_all)
		return 0;
	s->start_no = no;
	s->table.version = no << TABLE_CHANGE_BITS | 1;
	start_each(s, false, start_set_table_one);
	return start_drop_failed(s);
}
