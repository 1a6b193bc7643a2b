/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate when a store will be full; see capacity.h. */
#include "main/capacity.h"

#define DAY_S 86400.0

void
capacity_add(struct capacity *c, uint64_t now_ns, uint64_t size_bytes, uint64_t used_bytes)
{
	unsigned last = (c->next + CAPACITY_SAMPLES - 1) % CAPACITY_SAMPLES;

	if (c->size_bytes != size_bytes)
		*c = (struct capacity){ .size_bytes = size_bytes };
	if (c->nr && now_ns - c->sample[last].at_ns < CAPACITY_EVERY_NS)
		return;
	c->sample[c->next].at_ns = now_ns;
	c->sample[c->next].used_bytes = used_bytes;
	c->next = (c->next + 1) % CAPACITY_SAMPLES;
	if (c->nr < CAPACITY_SAMPLES)
		c->nr++;
}

void
capacity_view(const struct capacity *c, uint64_t free_bytes, struct capacity_view *ret_view)
{
	unsigned last = (c->next + CAPACITY_SAMPLES - 1) % CAPACITY_SAMPLES;
	unsigned first = (c->next + CAPACITY_SAMPLES - c->nr) % CAPACITY_SAMPLES;
	double grown, s;

	*ret_view = (struct capacity_view){ .outlook = CAPACITY_YOUNG };
	if (c->nr < 2)
		return;
	s = (double)(c->sample[last].at_ns - c->sample[first].at_ns) / (double)NS_PER_S;
	ret_view->history_s = (uint64_t)s;
	if (s * (double)NS_PER_S < (double)CAPACITY_YOUNG_NS)
		return;
	grown = (double)c->sample[last].used_bytes - (double)c->sample[first].used_bytes;
	ret_view->bytes_per_day = (int64_t)(grown / s * DAY_S);
	ret_view->outlook = CAPACITY_STEADY;
	if (grown <= 0 || (double)free_bytes / grown * s > (double)CAPACITY_FAR_S)
		return;
	ret_view->outlook = CAPACITY_FILLS;
	ret_view->full_s = (uint64_t)((double)free_bytes / grown * s);
}
