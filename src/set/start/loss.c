/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the objects that are lost with disks that are given up (--forget); see start_int.h. */
#include "set/start/start_int.h"

#include "model/quota.h"

#include <stdio.h>

/* Recovers the present disks. Returns false if a disk cannot be recovered. */
static bool
recover_all(struct start *s)
{
	bool all = true;

	if (quota_book_new(start_count(s->present), &s->quotas) < 0)
		return false;
	start_each(s, false, start_recover_one);
	for (int i = 0; i < s->nr; i++)
		all &= !s->disk[i].st || s->disk[i].error >= 0;
	return all;
}

/* Adds the share that is lost to an estimate. there: usage of the slots that the present disks have; lost_nr: number of the other
 * slots. */
static void
add_share(struct store_use *estimate, const struct store_use *there, int lost_nr)
{
	double share = lost_nr < STORE_SLOT_NR ? (double)lost_nr / (STORE_SLOT_NR - lost_nr) : 0;

	estimate->objects += (uint64_t)((double)there->objects * share + 0.5);
	estimate->bytes += (uint64_t)((double)there->bytes * share + 0.5);
}

void
start_say_estimate(struct start *s, char *text, size_t len)
{
	struct store_use one = { 0 }, two = { 0 }, lost = { 0 }, use;
	int lost_one = 0, lost_two = 0;

	text[0] = 0;
	if (!s->ops->two_use || !recover_all(s))
		return;
	quota_lock(s->quotas);
	quota_total(s->quotas, &one);
	quota_unlock(s->quotas);
	for (int i = 0; i < STORE_SLOT_NR; i++) {
		bool is_lost = slots_has(&s->lost, table_place((unsigned)i, true));
		const struct disk *d = start_disk_at(s, s->next.first[i]);

		lost_one += table_has(s->forgotten, s->table.home[i]);
		lost_two += is_lost;
		if (is_lost || !d)
			continue;
		s->ops->two_use(d->st, (unsigned)i, &use);
		two.objects += use.objects;
		two.bytes += use.bytes;
	}
	/* The ledger has the bytes of both copies. */
	one.objects -= two.objects < one.objects ? two.objects : one.objects;
	one.bytes -= 2 * two.bytes < one.bytes ? 2 * two.bytes : one.bytes;
	add_share(&lost, &one, lost_one);
	add_share(&lost, &two, lost_two);
	if (lost.objects)
		snprintf(text, len, ", about %llu object%s (%llu bytes) by what the other disks have",
			 (unsigned long long)lost.objects, lost.objects == 1 ? "" : "s",
			 (unsigned long long)lost.bytes);
}
