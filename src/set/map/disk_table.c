/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the placement map as pure functions; see disk_table.h. */
#include "set/map/disk_table.h"

#include "set/map/set_rules.h"
#include "base/check.h"

#include <string.h>

/* State of an assignment of slots to disks, one slot after the other. At any time each disk has its share of
 * the slots assigned so far. */
struct dealer {
	uint64_t weight[STORE_DISKS_MAX], total;
	int64_t credit[STORE_DISKS_MAX];
	uint64_t disks; /* bitmap of disks with a weight */
};

/* Adds a disk to the assignment of slots. The weight of a disk is its size in MiB, so that the sum over all
 * disks does not overflow; the weight of a disk smaller than a MiB is 1. */
static void
weigh(struct dealer *d, int disk, uint64_t size_bytes)
{
	d->weight[disk] = size_bytes ? (size_bytes >> 20) + (size_bytes < 1 << 20) : 0;
	d->total += d->weight[disk];
	if (d->weight[disk])
		d->disks |= (uint64_t)1 << disk;
}

static uint8_t
deal(struct dealer *d)
{
	int best = d->disks ? __builtin_ctzll(d->disks) : 0;

	for (uint64_t rest = d->disks; rest; rest &= rest - 1) {
		int i = __builtin_ctzll(rest);

		d->credit[i] += (int64_t)d->weight[i];
		if (d->credit[i] > d->credit[best])
			best = i;
	}
	d->credit[best] -= (int64_t)d->total;
	return (uint8_t)best;
}

void
table_make(struct disk_table *ret_table, const uint8_t uuid[][UUID_BYTES], const uint64_t *size_bytes, int nr,
	   uint64_t start_no)
{
	struct disk_table *t = ret_table;
	struct dealer d = { .total = 0 };

	memset(t, 0, sizeof *t);
	t->version = start_no << TABLE_CHANGE_BITS | 1;
	t->members = t->in = nr < STORE_DISKS_MAX ? ((uint64_t)1 << nr) - 1 : UINT64_MAX;
	memset(t->second, TABLE_NO_DISK, sizeof t->second);
	for (int i = 0; i < nr; i++) {
		memcpy(t->uuid[i], uuid[i], UUID_BYTES);
		weigh(&d, i, size_bytes[i]);
	}
	for (int i = 0; i < STORE_SLOT_NR; i++)
		t->home[i] = t->first[i] = deal(&d);
}

int
table_find(const struct disk_table *t, const uint8_t uuid[UUID_BYTES])
{
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(t->members, i) && memcmp(t->uuid[i], uuid, UUID_BYTES) == 0)
			return i;
	}
	return -1;
}

bool
table_is_full(const struct disk_table *t, int slot)
{
	return t->full[slot / 8] >> slot % 8 & 1;
}

void
table_set_full(struct disk_table *t, int slot, bool full)
{
	if (full)
		t->full[slot / 8] |= (uint8_t)(1 << slot % 8);
	else
		t->full[slot / 8] &= (uint8_t) ~(1 << slot % 8);
}

bool
table_lose(struct disk_table *t, uint64_t present)
{
	bool changes = false;

	for (int i = 0; i < STORE_SLOT_NR; i++) {
		uint8_t first = t->first[i], second = t->second[i];
		bool has_first = table_has(present, first);
		bool has_second = table_has(present, second);
		bool may_lead = table_is_full(t, i) || (has_second && !RULE_FULL_ONLY);

		if (!may_lead || (has_first == has_second && (has_first || RULE_BOTH_AWAY_KEEP_FULL)))
			continue;
		if (has_second) {
			t->first[i] = second;
			t->second[i] = first;
		}
		changes |= table_is_full(t, i) || has_second;
		table_set_full(t, i, false);
	}
	return changes;
}

void
table_wait(struct disk_table *t, uint64_t present, uint64_t behind)
{
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		uint8_t first = t->first[i], second = t->second[i];

		if (!table_is_full(t, i))
			continue;
		if (table_has(behind, first) && !table_has(present, second)) {
			t->first[i] = second;
			t->second[i] = first;
			table_set_full(t, i, false);
		} else if (!table_has(present, first) && table_has(behind, second)) {
			table_set_full(t, i, false);
		}
	}
}

/* ---- shares ---- */

void
table_shares(uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX], int ret_want[STORE_DISKS_MAX])
{
	struct dealer d = { .total = 0 };

	memset(ret_want, 0, STORE_DISKS_MAX * sizeof *ret_want);
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(disks, i))
			weigh(&d, i, size_bytes[i]);
	}
	for (int i = 0; d.total && i < STORE_SLOT_NR; i++)
		ret_want[deal(&d)]++;
}

int
table_poorest(uint64_t disks, const int want[STORE_DISKS_MAX], const int has[STORE_DISKS_MAX])
{
	int best = -1;

	for (uint64_t rest = disks; rest; rest &= rest - 1) {
		int i = __builtin_ctzll(rest);

		if (want[i] && (best < 0 || want[i] - has[i] > want[best] - has[best]))
			best = i;
	}
	return best;
}

/* ---- seconds ---- */

bool
table_pair(struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX], bool full)
{
	uint64_t stay = t->members & ~t->draining;
	int want[STORE_DISKS_MAX], has[STORE_DISKS_MAX] = { 0 };
	bool changes = false;

	table_shares(stay, size_bytes, want);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		if (t->second[i] != TABLE_NO_DISK)
			has[t->second[i]]++;
	}
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		int to = t->second[i] == TABLE_NO_DISK
				 ? table_poorest(stay & ~((uint64_t)1 << t->first[i]), want, has)
				 : -1;

		if (to < 0)
			continue;
		t->second[i] = (uint8_t)to;
		table_set_full(t, i, full);
		has[to]++;
		changes = true;
	}
	return changes;
}

bool
table_start(struct disk_table *t, uint64_t present, uint64_t start_no)
{
	bool lost = table_lose(t, present), changes = t->in != present || lost;

	if (changes) {
		t->in = present;
		t->version = start_no << TABLE_CHANGE_BITS | 1;
	}
	return changes;
}

void
table_forget(struct disk_table *t, uint64_t disks, const uint64_t size_bytes[STORE_DISKS_MAX],
	     struct store_slots *ret_lost)
{
	struct dealer d = { .total = 0 };
	bool has_two = false;

	memset(ret_lost, 0, sizeof *ret_lost);
	for (int i = 0; i < STORE_DISKS_MAX; i++) {
		if (table_has(t->members & ~disks, i))
			weigh(&d, i, size_bytes[i]);
		if (table_has(disks, i))
			memset(t->uuid[i], 0, UUID_BYTES);
	}
	t->members &= ~disks;
	t->in &= ~disks;
	t->draining &= ~disks;
	t->filling &= ~disks;
	/* A drain ends if no other disk is left that can take the slots of the disk, or the second copies of
	 * its keys. */
	for (int i = 0; i < STORE_SLOT_NR; i++)
		has_two |= t->second[i] != TABLE_NO_DISK;
	if (__builtin_popcountll(t->members & ~t->draining) < (has_two ? 2 : 1))
		t->draining = 0;
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		bool lost_first = table_has(disks, t->first[i]), was_full = table_is_full(t, i);
		bool has_second = t->second[i] != TABLE_NO_DISK && !table_has(disks, t->second[i]);

		if (table_has(disks, t->home[i])) {
			t->home[i] = deal(&d);
			slots_add(ret_lost, (unsigned)i);
		}
		if (lost_first || !has_second)
			table_set_full(t, i, false);
		if (lost_first) {
			t->first[i] = has_second && was_full ? t->second[i] : t->home[i];
			if (!(has_second && was_full))
				slots_add(ret_lost, (unsigned)(STORE_SLOT_NR + i));
		}
		if (!has_second || t->second[i] == t->first[i])
			t->second[i] = TABLE_NO_DISK;
	}
}

/* ---- changes in service ---- */

void
table_plan(const struct disk_table *t, const uint64_t size_bytes[STORE_DISKS_MAX],
	   uint8_t ret_home[STORE_SLOT_NR])
{
	uint64_t stay = t->members & ~t->draining;
	int want[STORE_DISKS_MAX], has[STORE_DISKS_MAX] = { 0 };

	memcpy(ret_home, t->home, sizeof t->home);
	if (table_gives_up(t))
		return;
	table_shares(stay, size_bytes, want);
	for (int i = 0; i < STORE_SLOT_NR; i++)
		has[t->home[i]]++;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < STORE_SLOT_NR; i++) {
			int home = ret_home[i],
			    to = table_poorest(pass ? t->filling & stay : stay, want, has);
			bool leaves = pass ? to >= 0 && has[home] > want[home] && has[to] < want[to]
					   : table_has(t->draining, home);

			if (!leaves || to < 0 || to == home)
				continue;
			has[home]--;
			has[to]++;
			ret_home[i] = (uint8_t)to;
		}
	}
}

int
table_count(const struct disk_table *t, int disk)
{
	int n = 0;

	for (int i = 0; i < STORE_SLOT_NR; i++)
		n += t->home[i] == disk;
	return n;
}

int
table_roles(const struct disk_table *t, int disk)
{
	int n = table_count(t, disk);

	for (int i = 0; i < STORE_SLOT_NR; i++)
		n += (t->first[i] == disk) + (t->second[i] == disk);
	return n;
}

bool
table_is_drained(const struct disk_table *t, int disk)
{
	return table_roles(t, disk) == 0 && table_has(t->members & t->draining, disk) && !table_gives_up(t);
}

void
table_add(struct disk_table *t, int disk, const uint8_t uuid[UUID_BYTES])
{
	check(!table_has(t->members, disk));
	t->members |= (uint64_t)1 << disk;
	t->filling |= (uint64_t)1 << disk;
	memcpy(t->uuid[disk], uuid, UUID_BYTES);
}

void
table_remove(struct disk_table *t, int disk)
{
	uint64_t bit = (uint64_t)1 << disk;

	check(table_roles(t, disk) == 0);
	t->members &= ~bit;
	t->in &= ~bit;
	t->draining &= ~bit;
	t->filling &= ~bit;
	memset(t->uuid[disk], 0, UUID_BYTES);
}
