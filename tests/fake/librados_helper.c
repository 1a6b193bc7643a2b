/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of gateways without threads, in the place of base/periodic.c: a turn is made when the test asks for it. */
#include "tests/fake/librados_int.h"

#include "rados/io/rstore.h"
#include "rados/rados.h"

#include "base/check.h"
#include "base/clock.h"

#define HELPERS_MAX 64

static struct periodic *helpers[HELPERS_MAX];
static unsigned helper_nr;
static bool is_turning;

static bool
is_beat(const struct periodic *h)
{
	return h == &((const struct rstore *)h->cookie)->gw.beat;
}

static void
turn(struct periodic *h)
{
	check(!is_turning);
	is_turning = true;
	h->is_asked = false;
	h->turn(h->cookie);
	is_turning = false;
}

int
periodic_start(struct periodic *h, const char *name, uint64_t every_ns, void (*fn)(void *cookie),
	       void *cookie)
{
	check(fn && every_ns > 0 && helper_nr < HELPERS_MAX);
	*h = (struct periodic){ .every_ns = every_ns, .turn = fn, .cookie = cookie, .is_running = true };
	helpers[helper_nr++] = h;
	/* The first turn reads the table of gateways, so that the own row has a rank. */
	if (is_beat(h))
		turn(h);
	return 0;
}

void
periodic_wake(struct periodic *h)
{
	h->is_asked = true;
}

void
periodic_stop(struct periodic *h)
{
	unsigned at = 0;

	if (!h->is_running)
		return;
	while (at < helper_nr && helpers[at] != h)
		at++;
	check(at < helper_nr);
	helper_nr--;
	for (; at < helper_nr; at++)
		helpers[at] = helpers[at + 1];
	h->is_running = false;
}

void
fake_helpers_check(void)
{
	check(helper_nr == 0);
}

void
fake_rados_turn_helpers(void)
{
	/* The heartbeats are first: a gateway whose row did not change between two reads by another one is
	 * declared dead. */
	for (int beats = 1; beats >= 0; beats--) {
		for (unsigned i = 0; i < helper_nr; i++) {
			if (is_beat(helpers[i]) == beats)
				turn(helpers[i]);
		}
	}
}

static bool
turn_woken(void)
{
	bool any = false, beats = false;

	for (unsigned i = 0; i < helper_nr; i++)
		beats |= helpers[i]->is_asked && is_beat(helpers[i]);
	for (unsigned i = 0; i < helper_nr; i++) {
		if (!helpers[i]->is_asked && !(beats && is_beat(helpers[i])))
			continue;
		turn(helpers[i]);
		any = true;
	}
	return any;
}

bool
fake_rados_turn(struct mailbox *mb)
{
	bool any = fake_rados_step();

	any |= mailbox_run(mb, 0) > 0;
	return turn_woken() || any;
}

/* The time after which a gateway is dead is longer than the real time of a test; its user may shorten it. */
struct store_conf
fake_rados_conf(const char *ns, uint32_t index_shards)
{
	return (struct store_conf){ .ops = &rados_store_ops,
				    .ports_max = 1,
				    .rados = { .conf = "memory",
					       .user = "admin",
					       .meta_pool = "gantry.meta",
					       .data_pool = "gantry.data",
					       .ns = ns,
					       .index_shards = index_shards,
					       .object_bytes = 2 << 20,
					       .dead_after_ns = 3600 * NS_PER_S } };
}
