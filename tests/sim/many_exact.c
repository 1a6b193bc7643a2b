/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short histories of two or three disks, in every way, see sim.h and main.c: two or three clients do one thing each while a disk fails, is
 * drained or gets a second copy; nothing is left to chance but what a seed chooses once for all of them.
 *
 *	all at rest --> the scenario, by a schedule, up to a cut --> a start without one of the disks, which may be cut --> a PUT
 *	--> a start with all --> everything is there, and as it should be
 */
#include "tests/sim/many_int.h"

#include "base/check.h"

static const struct scenario {
	const char *name;
	int disks;
	unsigned two; /* bits of buckets */
	int fails;    /* which disk of the key fails: 1: its first, 2: its second; 0: none */
	bool moves;   /* the key's disk is drained */
	bool heals;   /* its second has missed something, and is made whole */
	bool removes; /* the bucket is removed */
} scenarios[] = {
	{ "two writers", .disks = 2 },
	{ "a writer, and DeleteBucket", .disks = 2, .removes = true },
	{ "a writer, and the disk fails", .disks = 2, .fails = 1 },
	{ "two writers; two copies", .disks = 2, .two = 3 },
	{ "a writer, and DeleteBucket; two copies", .disks = 2, .two = 3, .removes = true },
	{ "a writer, and the first fails", .disks = 2, .two = 3, .fails = 1 },
	{ "a writer, and the second fails", .disks = 2, .two = 3, .fails = 2 },
	{ "two writers, and a second is healed", .disks = 3, .two = 3, .heals = true },
	{ "two writers, and slots move", .disks = 2, .moves = true },
	{ "two writers, and slots move; two copies", .disks = 3, .two = 3, .moves = true },
};
static const struct scenario *sc;

const char *
many_exact_name(int scenario)
{
	return scenario < (int)(sizeof scenarios / sizeof *scenarios) ? scenarios[scenario].name : NULL;
}

bool
many_exact_fails(int scenario)
{
	return scenarios[scenario].fails != 0;
}

int
many_exact_disks(int scenario)
{
	return scenarios[scenario].disks;
}

void
many_exact_profile(int scenario)
{
	const struct scenario *s = &scenarios[scenario];

	profile_for_exact(s->disks, s->two, s->moves);
}

/* The bucket and the key that it is about. */
static int
bucket(void)
{
	return sc->removes;
}

/* ---- who does what ---- */

static void
prepare_main(int nr)
{
	struct many_client *c = &many_clients[0];

	many_make(c, 0);
	many_make(c, 1);
	if (!sc->removes)
		many_put(c, 0, 0);
}

/* Something that the disk which is away does not hear of. */
static void
miss_main(int nr)
{
	many_put(&many_clients[0], 0, 0);
}

static void
writer_main(int nr)
{
	struct many_client *c = &many_clients[0];

	if (sc->fails || sc->removes)
		many_put(c, bucket(), 0);
	else
		do_twins(c, bucket(), 0);
}

static void
other_main(int nr)
{
	if (sc->removes)
		many_remove(&many_clients[1], bucket());
	else if (sc->moves)
		moves_drain(many_home(0, 0));
}

static void
reader_main(int nr)
{
	struct many_client *c = &many_clients[2];

	many_get(c, bucket(), 0);
	many_get(c, bucket(), 0);
	many_see_list(c, bucket());
}

static void
last_main(int nr)
{
	struct many_client *c = &many_clients[0];

	many_verify_main(0);
	if (!many_keys[bucket()][0].is_open)
		many_put(c, bucket(), 0);
	many_verify_main(0);
}

/* ---- steps ---- */

static void
do_alone(void (*fn)(int nr))
{
	co_start(CO_CLIENT, 0, fn);
	sim_go(many_over, 0);
}

static bool
all_rests(void)
{
	return many_over() && moves_over();
}

static void
count_events(int64_t cut_at, int64_t fail_at, int fails)
{
	sim_events = (struct events){ .is_on = true,
				      .last = simdisk_changes + many_told(),
				      .cut_at = cut_at,
				      .fail_at = fail_at,
				      .fails = fails };
}

static void
dies_cut(const uint64_t *mask, unsigned *ret_units)
{
	sim_events.is_on = false;
	simdisk_cut_mask = mask;
	many_dies(true);
	many_none_fails();
	simdisk_cut_mask = NULL;
	*ret_units = simdisk_cut_units;
}

static void
begin(void)
{
	int second;

	many_start_all();
	many_look_at_homes();
	do_alone(prepare_main);
	sim_go(all_rests, 0);
	if (!sc->heals)
		return;
	second = pairs_second(0, 0);
	many_dies(false);
	many_choose(1u << second);
	check(many_start(0));
	many_look_at_homes();
	do_alone(miss_main);
	many_dies(false);
	many_start_all();
	many_look_at_homes();
}

/* True: it was cut. */
static bool
scenario(struct many_plan *p)
{
	int fails = sc->fails == 1 ? many_home(0, 0) : sc->fails == 2 ? pairs_second(0, 0) : -1;
	bool is_cut;

	sim_schedule.decisions = 0;
	sim_schedule.hold_at = p->hold_at;
	sim_schedule.was_held = false;
	count_events(p->cut_at, p->fail_at, fails);
	co_start(CO_CLIENT, 0, writer_main);
	co_start(CO_CLIENT, 1, other_main);
	co_start(CO_CLIENT, 2, reader_main);
	is_cut = !sim_go(all_rests, 0);
	p->ret_events = sim_events.nr;
	p->ret_decisions = sim_schedule.decisions;
	p->ret_was_held = sim_schedule.was_held;
	sim_schedule.hold_at = sim_schedule.held = -1;
	return is_cut;
}

/* True: it serves. */
static bool
start_without(struct many_plan *p)
{
	bool serves;

	many_choose(p->missing < 0 ? 0 : 1u << p->missing);
	count_events(p->start_cut_at, -1, -1);
	serves = many_start(0);
	p->ret_start_events = sim_events.nr;
	p->ret_start_was_cut = !serves && p->start_cut_at >= 0 && (int64_t)sim_events.nr > p->start_cut_at;
	sim_events.is_on = false;
	return serves;
}

static void
settle(void)
{
	sim_go(all_rests, 0);
	moves_check();
	if (sc->two)
		do_alone(pairs_check_main);
	do_alone(many_verify_main);
	if (many_hurt() == 0)
		quotas_compare();
}

void
many_exact(struct many_plan *p)
{
	sc = &scenarios[p->scenario];
	sim_schedule = (struct schedule){ .is_on = true, .hold_at = -1, .held = -1 };
	sim_events.is_on = false;
	many_begin_history();
	begin();
	p->ret_was_cut = scenario(p);
	dies_cut(&p->mask, &p->ret_units);
	simdisk_cut_mask = &p->start_mask;
	if (start_without(p)) {
		simdisk_cut_mask = NULL;
		many_look_at_homes();
		do_alone(last_main);
		many_dies(false);
	}
	p->ret_start_units = simdisk_cut_units;
	simdisk_cut_mask = NULL;
	many_start_all();
	many_look_at_homes();
	do_alone(many_verify_main);
	if (sc->two)
		do_alone(pairs_same_main);
	settle();
	many_dies(false);
}
