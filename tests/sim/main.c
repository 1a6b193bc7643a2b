/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation of the store, see sim.h.
 *
 *	sim [--seed N] [--ops K] [--histories H] [--secs S]   random histories from seed N on
 *	sim --many ...                                        the same of several disks; --pairs: some have buckets with two copies;
 *	                                                      --no-room: of a disk some writes find no room, in all that can have it;
 *	                                                      --lost: the same of lost segments
 *	sim --exhaustive [--secs S] [--sample N]              short ones, cut everywhere; or at one step of N
 *	sim --exhaustive --many [--secs S] [--sample N]       the same of two disks, or three, one of which is missing behind the cut; or
 *	                                                      every Nth way of the first round
 *	sim --way ...                                         one of these ways again
 *	sim --sectors [--secs S]                              each sector of a short one bad
 *	sim --rules [--pairs]                                 each rule off: the loss must be found; with --pairs those that take
 *	                                                      longest, too; --part K/N: each N-th rule, from K on
 *	sim --replay N [--off RULE] [-v]                      one history again
 *	sim --for RULE ...                                    histories as in that rule's hunt, all rules on
 *
 * Exit 0: as it should be; 1: a history failed (or a rule was not missed); 2: usage.
 */
#include "tests/sim/sim.h"

#include "base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const rule_names[] = {
#define NAME(name) #name,
	SIM_RULES(NAME)
#undef NAME
};

static struct {
	uint64_t seed, histories, secs, sample;
	int ops;
	bool is_many;           /* several disks */
	int profile;            /* the rule whose hunt's histories these are, or -1: of all kinds */
	unsigned part, part_nr; /* hunt_all() takes each part_nr-th rule, from that one on */
} opt = { .histories = 2000, .profile = -1, .part_nr = 1 };

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- crashes of what is tested are failures of the history ---- */

static void
on_signal(int sig)
{
	sim_fail("signal %d", sig);
}

static void
catch_crashes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* They tell it better. */
	(void)on_signal;
#else
	static char stack[64u << 10];
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER };

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGFPE, &sa, NULL);
#endif
}

/* ---- one history ---- */

static void
run(uint64_t seed)
{
	if (opt.profile >= 0)
		profile_for_rule((enum sim_rule)opt.profile);
	else if (opt.is_many)
		profile_choose_many(seed);
	else
		profile_choose(seed);
	if (opt.ops)
		prof.ops = opt.ops;
	history_run(seed, NULL);
}

static void
tell_failure(void)
{
	const char *option = opt.profile < 0            ? sim_pairs     ? " --pairs"
							  : opt.is_many ? " --many"
									: ""
			     : sim_rule_on[opt.profile] ? " --for "
							: " --off ";

	printf("FAILED: seed %llu: %s\n        trace %016llx; again with: --replay %llu%s%s%s%s -v\n",
	       (unsigned long long)outcome.seed, outcome.what, (unsigned long long)outcome.hash,
	       (unsigned long long)outcome.seed, option, opt.profile >= 0 ? rule_names[opt.profile] : "",
	       sim_no_room ? " --no-room" : "", sim_lost ? " --lost" : "");
}

/* The same seed once more must fail in the same way. */
static int
same_again(void)
{
	struct sim_result first = outcome;

	run(first.seed);
	if (outcome.failed == first.failed && outcome.hash == first.hash &&
	    strcmp(outcome.what, first.what) == 0)
		return 0;
	printf("seed %llu does not give the same history again: trace %016llx, was %016llx (%s)\n",
	       (unsigned long long)first.seed, (unsigned long long)outcome.hash,
	       (unsigned long long)first.hash, outcome.what);
	return 1;
}

static void
tell_counts(double began)
{
	printf("%llu histories in %.1f s: %llu starts, %llu cuts, %llu kills, %llu clean stops; %llu PUTs, "
	       "%llu GETs, %llu others; %llu uploads, %llu parts, %llu completed, %llu again, %llu "
	       "aborted, %llu attributes; %llu refused; %llu snapshots, %llu laps of the log, %llu late "
	       "writes, "
	       "%llu I/O errors, %llu host blocks, %llu looks at another host's, %llu soft, %llu older "
	       "snapshots given up, %llu maps (%llu in pieces), %llu rotten (%llu repaired, %llu healed); "
	       "%llu "
	       "times no space (%llu of the index), %llu over a quota, %llu not now; "
	       "%llu "
	       "starts in storms of them; %llu objects moved together, %llu seen so; %llu writes without "
	       "room, %llu "
	       "PUTs after that; %llu files lost with "
	       "bytes of %llu objects, %llu reads of these\n",
	       (unsigned long long)counts.histories, seconds() - began, (unsigned long long)counts.starts,
	       (unsigned long long)counts.cuts, (unsigned long long)counts.kills,
	       (unsigned long long)counts.cleans, (unsigned long long)counts.puts,
	       (unsigned long long)counts.gets, (unsigned long long)counts.dels,
	       (unsigned long long)counts.uploads, (unsigned long long)counts.parts,
	       (unsigned long long)counts.completed, (unsigned long long)counts.repeated,
	       (unsigned long long)counts.aborted, (unsigned long long)counts.attrs,
	       (unsigned long long)counts.refused, (unsigned long long)counts.snapshots,
	       (unsigned long long)counts.laps, (unsigned long long)counts.late_writes,
	       (unsigned long long)counts.io_errors, (unsigned long long)counts.beats,
	       (unsigned long long)counts.host_waits, (unsigned long long)counts.soft,
	       (unsigned long long)counts.given_up, (unsigned long long)counts.maps,
	       (unsigned long long)counts.map_lists, (unsigned long long)counts.rots,
	       (unsigned long long)counts.repairs, (unsigned long long)counts.healed,
	       (unsigned long long)counts.no_space, (unsigned long long)counts.index_full,
	       (unsigned long long)counts.over_quota, (unsigned long long)counts.not_now,
	       (unsigned long long)counts.storm_starts, (unsigned long long)counts.moves,
	       (unsigned long long)counts.packed, (unsigned long long)counts.no_room,
	       (unsigned long long)counts.found_room, (unsigned long long)counts.lost_files,
	       (unsigned long long)counts.lost_objects, (unsigned long long)counts.lost_reads);
	if (opt.is_many)
		printf("%llu drains asked for, %llu disks drained, %llu added, %llu cancelled, %llu put "
		       "back; %llu "
		       "times slots moved; %llu times a bucket was bounded\n",
		       (unsigned long long)counts.drains, (unsigned long long)counts.drained,
		       (unsigned long long)counts.added, (unsigned long long)counts.cancels,
		       (unsigned long long)counts.put_back, (unsigned long long)counts.slots_moved,
		       (unsigned long long)counts.quotas);
	if (opt.is_many || counts.compared)
		printf("%llu copies compared, %llu seconds missed something, %llu reads from a second, %llu "
		       "repaired, %llu times another number of copies, %llu older disks put back, %llu "
		       "drains "
		       "took the seconds off\n",
		       (unsigned long long)counts.compared, (unsigned long long)counts.missed,
		       (unsigned long long)counts.read_second, (unsigned long long)counts.repaired,
		       (unsigned long long)counts.copies_changed, (unsigned long long)counts.older,
		       (unsigned long long)counts.to_one);
}

static int
random_histories(void)
{
	double began = seconds();
	uint64_t n;

	printf("SEED=%llu\n", (unsigned long long)opt.seed);
	for (n = 0; opt.secs ? seconds() - began < (double)opt.secs : n < opt.histories; n++) {
		run(opt.seed + n);
		if (!outcome.failed && n % 512 == 0 && same_again())
			return 1;
		if (outcome.failed) {
			tell_failure();
			same_again();
			tell_counts(began);
			return 1;
		}
	}
	tell_counts(began);
	return 0;
}

/* ---- each rule off ---- */

#define HUNT_MAX 100000

/* Those whose hunt takes seconds: they are looked for with --pairs alone. */
static bool
is_slow(int rule)
{
	return rule == SIM_BOTH_TABLES || rule == SIM_MOVE_NOT_COLLECTED;
}

/* What a rule's hunt runs without besides the rule itself: a failed write ends the disk, and only where it
 * does not, it matters that its space stays alone. */
static int
also_off(enum sim_rule rule)
{
	return rule == SIM_REUSE_WRITES_OVER ? SIM_FAILED_IS_FINAL : -1;
}

/* Returns the number of histories that the hunt of a rule leaves out: where few show the loss, those before the first that does by the seed of
 * sim/rules. When the code changes, another history shows it, and the hunt takes longer. */
static uint64_t
hunt_from(enum sim_rule rule)
{
	return rule == SIM_TABLE_IN_BOTH ? 4100 : rule == SIM_GATE_FORWARD ? 28900 : 0;
}

static void
switch_off(enum sim_rule rule)
{
	sim_rule_on[rule] = false;
	if (also_off(rule) >= 0)
		sim_rule_on[also_off(rule)] = false;
}

static void
switch_all_on(void)
{
	for (int i = 0; i < SIM_RULE_NR; i++)
		sim_rule_on[i] = true;
}

/*
 * The history that failed, with the rule on.  Nothing may be lost where every rule is.  Where the other rule
 * that the hunt does without accounts for the loss by itself, this history shows nothing of the rule: the
 * hunt goes on.
 */
enum because { OF_THE_RULE, OF_THE_OTHER, OF_A_BUG };

static enum because
because_of(enum sim_rule rule, uint64_t seed)
{
	enum because why = OF_THE_RULE;

	sim_rule_on[rule] = true;
	if (also_off(rule) >= 0) {
		run(seed);
		if (outcome.failed)
			why = OF_THE_OTHER;
		sim_rule_on[also_off(rule)] = true;
	}
	run(seed);
	if (outcome.failed) {
		printf("with every rule on, --for %s:\n", rule_names[rule]);
		tell_failure();
		why = OF_A_BUG;
	}
	switch_off(rule);
	return why;
}

static int
hunt(enum sim_rule rule)
{
	double began = seconds();
	uint64_t n, from = opt.seed + hunt_from(rule);
	int bad = 1;

	opt.profile = (int)rule;
	switch_off(rule);
	for (n = 0; n < HUNT_MAX; n++) {
		struct sim_result found;
		enum because why;

		run(from + n);
		if (!outcome.failed)
			continue;
		found = outcome;
		bad = same_again();
		why = because_of(rule, found.seed);
		if (why == OF_THE_OTHER)
			continue;
		bad |= why == OF_A_BUG;
		printf("%-22s seed %llu, history %llu, %.2f s, trace %016llx: %s\n", rule_names[rule],
		       (unsigned long long)found.seed, (unsigned long long)n + 1, seconds() - began,
		       (unsigned long long)found.hash, found.what);
		break;
	}
	if (n == HUNT_MAX) {
		printf("rule %s is off, and %d histories from seed %llu on show no loss\n", rule_names[rule],
		       HUNT_MAX, (unsigned long long)from);
		bad = 1;
	}
	switch_all_on();
	opt.profile = -1;
	return bad;
}

static int
rule_by_name(const char *name)
{
	for (int i = 0; i < SIM_RULE_NR; i++) {
		if (strcmp(rule_names[i], name) == 0)
			return i;
	}
	fprintf(stderr, "sim: no rule %s\n", name);
	exit(2);
}

static int
hunt_all(const char *only)
{
	int bad = 0;

	printf("SEED=%llu\n", (unsigned long long)opt.seed);
	for (int i = 0; i < SIM_RULE_NR; i++) {
		if (only ? i == rule_by_name(only)
			 : (unsigned)i % opt.part_nr == opt.part && (sim_pairs || !is_slow(i)))
			bad |= hunt((enum sim_rule)i);
	}
	return bad;
}

/* ---- every cut ---- */

#define EXACT_BITS 6

/* All subsets of few pages; of many: all, none, each alone, each missing, and some. */
static uint64_t
mask_nr(unsigned units)
{
	return units <= EXACT_BITS ? 1ull << units : 2 + 2 * (units < 64 ? units : 64) + 16;
}

static uint64_t
mask_at(unsigned units, uint64_t i)
{
	unsigned n = units < 64 ? units : 64;
	uint64_t all = n == 64 ? UINT64_MAX : (1ull << n) - 1;

	if (units <= EXACT_BITS)
		return i;
	if (i < 2)
		return i ? all : 0;
	if (i < 2 + n)
		return 1ull << (i - 2);
	if (i < 2 + 2ull * n)
		return all & ~(1ull << (i - 2 - n));
	return (i * 0x9e3779b97f4a7c15u ^ i << 40) & all;
}

/* Counts what exact_one() has run since a history began. A sample has so many of one history, or a few more: most have 500, some 12,000. */
#define SAMPLE_RUNS 1000
static uint64_t exact_runs;

static bool
has_enough(void)
{
	return opt.sample && exact_runs >= SAMPLE_RUNS;
}

static int
exact_one(uint64_t seed, struct plan *p)
{
	exact_runs++;
	profile_choose(seed);
	prof.ops = 2 + (int)(seed % 3);
	prof.clients = 1 + (int)(seed / 3 % 3);
	prof.keys = 1 + (int)(seed / 9 % 2);
	if (seed % 2) {
		prof.w_upload = 30;
		prof.w_attrs = 4;
	}
	if (seed % 3 == 2) {
		/* Few are enough to be moved together. */
		prof.pack_rate = 1 << 30;
		prof.keys = 3;
		prof.size_equal = 1500;
	}
	prof.rot = prof.soft = prof.no_room = prof.eio_flush = prof.eio_read = prof.eio_write = 0;
	/* Large objects in what others have left: maps, and chunks that have no owner yet. */
	if (p->is_sector && seed % 2) {
		prof.ops = 24;
		prof.w_upload = prof.w_get = prof.w_list = prof.w_attrs = prof.pre = 0;
		prof.size_huge = prof.size_mid = 10;
		prof.keys = 6;
		prof.clients = 3;
		prof.seg_nr = prof.segs_there = 2;
	}
	history_run(seed, p);
	if (!outcome.failed)
		return 0;
	printf("FAILED: seed %llu cut at step %lld mask %llx, %s cut at %lld mask %llx: %s\n",
	       (unsigned long long)seed, (long long)p->cut_step, (unsigned long long)p->mask,
	       p->is_upgrade ? "upgrade" : "recovery",
	       (long long)(p->is_upgrade ? p->upgrade_step : p->recovery_step),
	       (unsigned long long)p->recovery_mask, outcome.what);
	return 1;
}

/* Counts the steps of a history of LAST steps at which it is cut: with --sample N one of N. */
static uint64_t
steps_of(uint64_t last)
{
	return opt.sample ? (last + opt.sample - 1) / opt.sample : last;
}

/* Names the Kth of them. Those of a sample lie all over the history, for the last may have no turn (SAMPLE_RUNS). */
static uint64_t
step_at(uint64_t seed, uint64_t k, uint64_t last)
{
	return opt.sample ? (seed + k * 7919) % last : k;
}

/* A store that is cut somewhere and of an earlier format version: every step of the upgrade, every subset of what is
 * not flushed there. */
static int
exact_upgrades(uint64_t seed, uint64_t steps)
{
	struct plan p = { .cut_step = (int64_t)(seed * 7 % (steps + 1)),
			  .is_upgrade = true,
			  .upgrade_step = -1 };
	struct plan base = p;
	uint64_t last;

	base.mask = p.mask = seed * 0x9e3779b97f4a7c15u;
	if (exact_one(seed, &p))
		return 1;
	last = p.ret_upgrade_steps;
	for (uint64_t k = 0; k < steps_of(last) && !has_enough(); k++) {
		uint64_t s = step_at(seed, k, last), nr = 1;
		unsigned units = 0;

		for (uint64_t m = 0; m < nr; m++) {
			p = base;
			p.upgrade_step = (int64_t)s;
			p.recovery_mask = mask_at(units, m);
			if (exact_one(seed, &p))
				return 1;
			units = p.ret_recovery_units;
			nr = mask_nr(units);
		}
	}
	return 0;
}

/* With --secs: when even a history under way ends.  Few take so long, and those much longer. */
#define EXACT_PATIENCE_S 60
static double exact_until;
static uint64_t exact_unfinished;

/* Cuts one short history at every step, with every subset of the writes that are not flushed there; at some steps also
 * every step of the start after the cut. With --sample N: at one step of N. */
static int
exact_history(uint64_t seed)
{
	struct plan p = { .cut_step = -1, .recovery_step = -1 };
	uint64_t last;

	exact_runs = 0;
	if (exact_one(seed, &p))
		return 1;
	last = p.ret_steps;
	if (exact_upgrades(seed, last))
		return 1;
	exact_runs = 0;
	for (uint64_t n = 0; n < steps_of(last) && !has_enough(); n++) {
		uint64_t s = step_at(seed, n, last);
		unsigned units;

		if (opt.secs && seconds() > exact_until) {
			exact_unfinished++;
			return 0;
		}
		p = (struct plan){ .cut_step = (int64_t)s, .recovery_step = -1, .mask = UINT64_MAX };
		if (exact_one(seed, &p))
			return 1;
		units = p.ret_units;
		for (uint64_t m = 0; m < mask_nr(units); m++) {
			uint64_t mask = mask_at(units, m), steps;

			p = (struct plan){ .cut_step = (int64_t)s, .recovery_step = -1, .mask = mask };
			if (exact_one(seed, &p))
				return 1;
			steps = p.ret_recovery_steps;
			for (uint64_t r = 0;
			     (m == 0 || m + 1 == mask_nr(units)) && s % 4 == seed % 4 && r < steps; r++) {
				for (int k = 0; k < 3; k++) {
					p = (struct plan){ .cut_step = (int64_t)s,
							   .mask = mask,
							   .recovery_step = (int64_t)r,
							   .recovery_mask = k == 0   ? 0
									    : k == 1 ? UINT64_MAX
										     : seed + r };
					if (exact_one(seed, &p))
						return 1;
				}
			}
		}
	}
	return 0;
}

static int
exhaustive(void)
{
	double began = seconds();
	uint64_t n;

	printf("SEED=%llu\n", (unsigned long long)opt.seed);
	exact_until = began + (double)opt.secs + EXACT_PATIENCE_S;
	for (n = 0; opt.secs ? seconds() - began < (double)opt.secs : n < opt.histories; n++) {
		if (exact_history(opt.seed + n))
			return 1;
	}
	printf("%llu short histories, each cut %s%s\n", (unsigned long long)n,
	       opt.sample ? "at a sample of its steps" : "everywhere",
	       exact_unfinished ? ", but not the last, which takes too long" : "");
	tell_counts(began);
	return 0;
}

/* ---- every cut, of several disks ---- */

static uint64_t ways, turns;

/* Those that are not in the sample are left out. */
static bool
is_left_out(uint64_t seed)
{
	return opt.sample && (turns++ + seed) % opt.sample;
}

/* Runs it once for each disk that may be missing behind the cut, and with none missing. */
static int
exact_missing(uint64_t seed, const struct many_plan *like, struct many_plan *ret)
{
	for (int missing = -1; missing < many_exact_disks(like->scenario); missing++) {
		struct many_plan p = *like;

		if (is_left_out(seed))
			continue;
		p.missing = missing;
		history_run_exact(seed, &p);
		ways++;
		if (missing < 0)
			*ret = p;
		if (!outcome.failed)
			continue;
		printf("FAILED: %s: seed %llu, held at %lld, fails at %lld, cut at %lld mask %llx, disk %d "
		       "missing, start cut at "
		       "%lld mask %llx: %s\n",
		       many_exact_name(p.scenario), (unsigned long long)seed, (long long)p.hold_at,
		       (long long)p.fail_at, (long long)p.cut_at, (unsigned long long)p.mask, missing,
		       (long long)p.start_cut_at, (unsigned long long)p.start_mask, outcome.what);
		printf("again with: --way %d,%lld,%lld,%lld,%#llx,%d,%lld,%#llx --seed %llu\n", p.scenario,
		       (long long)p.hold_at, (long long)p.fail_at, (long long)p.cut_at,
		       (unsigned long long)p.mask, missing, (long long)p.start_cut_at,
		       (unsigned long long)p.start_mask, (unsigned long long)seed);
		return 1;
	}
	return 0;
}

static bool
is_too_late(void)
{
	return opt.secs && seconds() > exact_until;
}

/* How much is done at each cut: of what is not flushed nothing or all is kept; or any of it; or the start behind it is cut, too. */
enum depth { OF_ALL_OR_NONE, OF_ANY, OF_STARTS };

static int
exact_cut(uint64_t seed, const struct many_plan *like, enum depth depth)
{
	uint64_t nr = depth == OF_ANY ? 1 : 2;
	unsigned units = 0;

	for (uint64_t m = 0; m < nr && !is_too_late(); m++) {
		struct many_plan p = *like, ret = *like;

		p.mask = depth == OF_ANY ? mask_at(units, m) : m ? UINT64_MAX : 0;
		if (exact_missing(seed, &p, &ret))
			return 1;
		if (depth == OF_ANY && m == 0) {
			units = ret.ret_units;
			nr = mask_nr(units);
		}
		for (int64_t at = 0; depth == OF_STARTS && at < (int64_t)ret.ret_start_events; at++) {
			for (int k = 0; k < 2 && !is_too_late(); k++) {
				struct many_plan q = p, unused;

				q.start_cut_at = at;
				q.start_mask = k ? UINT64_MAX : 0;
				if (exact_missing(seed, &q, &unused))
					return 1;
			}
		}
	}
	return 0;
}

/* Every cut of a scenario in which that one is held, and the disk fails there. */
static int
exact_cuts(uint64_t seed, struct many_plan *p, enum depth depth)
{
	struct many_plan whole = *p;

	whole.cut_at = -1;
	whole.missing = -1;
	history_run_exact(seed, &whole);
	ways++;
	p->ret_events = whole.ret_events;
	p->ret_decisions = whole.ret_decisions;
	p->ret_was_held = whole.ret_was_held;
	if (outcome.failed)
		return exact_missing(seed, &whole, p);
	if (p->hold_at >= 0 && !whole.ret_was_held)
		return 0;
	for (int64_t at = p->fail_at > 0 ? p->fail_at : 0; at < (int64_t)whole.ret_events; at++) {
		struct many_plan q = *p;

		q.cut_at = at;
		if (exact_cut(seed, &q, depth))
			return 1;
	}
	return 0;
}

static struct many_plan
plan_of(int scenario)
{
	return (struct many_plan){ .scenario = scenario,
				   .hold_at = -1,
				   .fail_at = -1,
				   .cut_at = -1,
				   .start_cut_at = -1,
				   .missing = -1 };
}

/* All of one kind. */
static int
exact_scenario(uint64_t seed, int scenario, enum depth depth, bool holds)
{
	struct many_plan p = plan_of(scenario), whole = p;

	history_run_exact(seed, &whole);
	for (int64_t hold = holds ? 0 : -1; hold < (holds ? (int64_t)whole.ret_decisions : 0); hold++) {
		int64_t fails = many_exact_fails(scenario) ? (int64_t)whole.ret_events : 1;

		/* With somebody who stands still the disk fails early, in the middle and late. */
		for (int64_t at = 0; at < fails; at += holds ? 1 + fails / 3 : 1) {
			struct many_plan q = p;

			q.hold_at = hold;
			q.fail_at = many_exact_fails(scenario) ? at : -1;
			if (is_too_late())
				return 0;
			if (exact_cuts(seed, &q, depth))
				return 1;
		}
	}
	return 0;
}

static int
exhaustive_many(void)
{
	static const struct {
		const char *what;
		enum depth depth;
		bool holds;
	} rounds[] = {
		{ "every cut, with nothing or all of what is not flushed", OF_ALL_OR_NONE, false },
		{ "every cut, with any of what is not flushed", OF_ANY, false },
		{ "every cut, and one of the start behind it", OF_STARTS, false },
		{ "every cut, with one who stands still somewhere", OF_ALL_OR_NONE, true },
	};
	double began = seconds();

	printf("SEED=%llu\n", (unsigned long long)opt.seed);
	for (size_t r = 0; r < sizeof rounds / sizeof *rounds; r++) {
		uint64_t before = ways;
		int s;

		/* Each has its share of the time. */
		exact_until = seconds() + (double)opt.secs / (sizeof rounds / sizeof *rounds);

		for (s = 0; many_exact_name(s) && !is_too_late(); s++) {
			if (exact_scenario(opt.seed, s, rounds[r].depth, rounds[r].holds))
				return 1;
		}
		printf("%s: %llu ways, %s\n", rounds[r].what, (unsigned long long)(ways - before),
		       many_exact_name(s) || is_too_late() ? "not all"
		       : opt.sample                        ? "a sample"
							   : "all");
		if (opt.sample)
			break;
	}
	tell_counts(began);
	return 0;
}

/* One of them again. */
static int
one_way(const char *text)
{
	struct many_plan p = plan_of(0);
	long long hold, fail, cut, start;
	unsigned long long mask, start_mask;

	if (sscanf(text, "%d,%lld,%lld,%lld,%llx,%d,%lld,%llx", &p.scenario, &hold, &fail, &cut, &mask,
		   &p.missing, &start, &start_mask) != 8 ||
	    !many_exact_name(p.scenario))
		return 2;
	p.hold_at = hold;
	p.fail_at = fail;
	p.cut_at = cut;
	p.start_cut_at = start;
	p.mask = mask;
	p.start_mask = start_mask;
	history_run_exact(opt.seed, &p);
	printf("%s: %s\n", many_exact_name(p.scenario), outcome.failed ? outcome.what : "as it should be");
	return outcome.failed;
}

/* ---- every sector ---- */

/* A short history, stopped cleanly, killed in the middle of something, or cut. */
static int
sectors_of(uint64_t seed)
{
	struct plan p = { .cut_step = -1, .is_sector = true };
	uint64_t nr = 1, steps;

	/* How long it is. */
	p.sector = UINT64_MAX;
	if (exact_one(seed, &p))
		return 1;
	steps = p.ret_steps;
	for (int end = 0; end < 3; end++) {
		int64_t cut = end ? (int64_t)((seed * 7 + (uint64_t)end) % (steps + 1)) : -1;

		for (uint64_t i = 0; i < nr; i++) {
			p = (struct plan){ .cut_step = cut, .is_sector = true, .sector = i, .end = end };
			if (exact_one(seed, &p)) {
				printf("        sector %llu, end %d\n", (unsigned long long)i, end);
				return 1;
			}
			nr = p.ret_sectors;
		}
	}
	return 0;
}

static int
sectors(void)
{
	double began = seconds();
	uint64_t n;

	printf("SEED=%llu\n", (unsigned long long)opt.seed);
	for (n = 0; opt.secs ? seconds() - began < (double)opt.secs : n < opt.histories; n++) {
		if (sectors_of(opt.seed + n))
			return 1;
	}
	printf("%llu short histories, stopped, killed and cut, %llu times with one of their sectors bad: "
	       "%llu "
	       "starts said where, and what a repair drops\n",
	       (unsigned long long)n, (unsigned long long)counts.sectors,
	       (unsigned long long)counts.sectors_told);
	tell_counts(began);
	return counts.sectors_told == 0;
}

static void
usage(void)
{
	fprintf(stderr, "usage: sim [--seed N] [--ops K] [--histories H] [--secs S] [--exhaustive] "
			"[--sectors] [--many] [--pairs] [--no-room] [--lost] [--sample N] [--way ...] "
			"[--rules [--part K/N]] "
			"[--rule NAME] [--replay N] [--off NAME | --for NAME] [-v]\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	enum { RANDOM, EXHAUSTIVE, SECTORS, RULES, REPLAY, WAY } mode = RANDOM;
	const char *seed = getenv("SEED"), *only = NULL, *way = NULL;
	struct timespec ts;

	env_init();
	log_set_level((enum log_level) - 1); /* disks fail here all the time */
	catch_crashes();
	clock_gettime(CLOCK_REALTIME, &ts);
	opt.seed = seed && *seed ? strtoull(seed, NULL, 0) : (uint64_t)ts.tv_sec * 1000;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(a, "--exhaustive") == 0) {
			mode = EXHAUSTIVE;
		} else if (strcmp(a, "--sectors") == 0) {
			mode = SECTORS;
		} else if (strcmp(a, "--rules") == 0) {
			mode = RULES;
		} else if (strcmp(a, "--many") == 0) {
			opt.is_many = true;
		} else if (strcmp(a, "--pairs") == 0) {
			opt.is_many = sim_pairs = true;
		} else if (strcmp(a, "--no-room") == 0) {
			sim_no_room = true;
		} else if (strcmp(a, "--lost") == 0) {
			sim_lost = true;
		} else if (strcmp(a, "-v") == 0) {
			sim_verbose = true;
		} else if (!v) {
			usage();
		} else if (strcmp(a, "--seed") == 0) {
			opt.seed = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(a, "--ops") == 0) {
			opt.ops = atoi(argv[++i]);
		} else if (strcmp(a, "--histories") == 0) {
			opt.histories = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(a, "--secs") == 0) {
			opt.secs = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(a, "--rule") == 0) {
			mode = RULES;
			only = argv[++i];
		} else if (strcmp(a, "--part") == 0) {
			if (sscanf(argv[++i], "%u/%u", &opt.part, &opt.part_nr) != 2 ||
			    opt.part >= opt.part_nr)
				usage();
		} else if (strcmp(a, "--sample") == 0) {
			opt.sample = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(a, "--way") == 0) {
			mode = WAY;
			way = argv[++i];
		} else if (strcmp(a, "--replay") == 0) {
			mode = REPLAY;
			opt.seed = strtoull(argv[++i], NULL, 0);
		} else if (strcmp(a, "--off") == 0) {
			opt.profile = rule_by_name(argv[++i]);
			switch_off((enum sim_rule)opt.profile);
		} else if (strcmp(a, "--for") == 0) {
			opt.profile = rule_by_name(argv[++i]);
		} else {
			usage();
		}
	}
	if (sim_verbose)
		log_set_level(LOG_NOTE);
	setvbuf(stdout, NULL, _IOLBF, 0);
	switch (mode) {
	case EXHAUSTIVE:
		return opt.is_many ? exhaustive_many() : exhaustive();
	case WAY:
		return one_way(way);
	case SECTORS:
		return sectors();
	case RULES:
		return hunt_all(only);
	case REPLAY:
		run(opt.seed);
		if (outcome.failed)
			tell_failure();
		printf("seed %llu: trace %016llx\n", (unsigned long long)opt.seed,
		       (unsigned long long)outcome.hash);
		return outcome.failed;
	default:
		return random_histories();
	}
}
