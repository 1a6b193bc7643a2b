/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pages, metrics and health say of keys with two copies: how many have one only and why, which disk is needed, how far healing is.  On the
 * admin thread.  Where no bucket has two copies they say nothing, and metrics are 0.
 */
#include "main/daemon.h"

#include "admin/admin.h"
#include "base/clock.h"
#include "base/disk_name.h"
#include "stats/stats.h"
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- texts ---- */

#define TEXT_BYTES 256
struct text {
	char *at;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->len)
		n = t->len ? (int)t->len - 1 : 0;
	t->at += n;
	t->len -= (size_t)n;
}

/* Names the first of them, and says how many there are besides. */
static void
add_disks(struct text *t, const struct store *st, uint64_t units)
{
	struct store_unit_info info;
	char name[DISK_NAME_BYTES];
	int first = __builtin_ctzll(units), more = __builtin_popcountll(units) - 1;

	store_unit_info(st, first, &info);
	add(t, "disk %s", disk_name(name, info.uuid, info.name));
	if (more)
		add(t, " and %d more", more);
}

static bool
all_failed(const struct store *st, uint64_t units)
{
	for (; units; units &= units - 1) {
		struct store_unit_info info;

		store_unit_info(st, __builtin_ctzll(units), &info);
		if (info.state != UNIT_FAILED)
			return false;
	}
	return true;
}

static void
add_time(struct text *t, uint64_t ns)
{
	uint64_t s = (ns + NS_PER_S - 1) / NS_PER_S;

	if (s < 120)
		add(t, "%llu s", (unsigned long long)s);
	else
		add(t, "%llu min", (unsigned long long)((s + 59) / 60));
}

/* When the first of them is given up. */
static uint64_t
soonest(const struct store_copies_info *i)
{
	uint64_t ns = UINT64_MAX;

	for (uint64_t units = i->away; units; units &= units - 1) {
		uint64_t in = i->replaced_in_ns[__builtin_ctzll(units)];

		ns = in < ns ? in : ns;
	}
	return ns;
}

static void
say_exposed(const struct store *st, const struct store_copies_info *i, struct text *t)
{
	add(t, "%llu objects (%llu bytes) have one copy", (unsigned long long)i->exposed_objects,
	    (unsigned long long)i->exposed_bytes);
	if (i->away) {
		add(t, ": ");
		add_disks(t, st, i->away);
		add(t, " %s away", i->away & (i->away - 1) ? "are" : "is");
		if (i->may_replace && soonest(i) > 0) {
			add(t, ", and another takes its place in ");
			add_time(t, soonest(i));
		}
	}
	if (i->is_healing) {
		add(t, "%s being copied, %llu of about %llu bytes", i->away ? "; some are" : " and are",
		    (unsigned long long)i->heal_bytes_done, (unsigned long long)i->heal_bytes_total);
		if (i->heal_left_ns) {
			add(t, ", some ");
			add_time(t, i->heal_left_ns);
			add(t, " left");
		}
	}
	if (i->trouble[0])
		add(t, "; copying stands still: %s", i->trouble);
}

static void
say_needed(const struct store *st, const struct store_copies_info *i, struct text *t)
{
	bool reads = all_failed(st, i->needed);

	add_disks(t, st, i->needed);
	add(t, " %s needed: of keys with two copies no other disk has all in %llu of %d slots, which %s",
	    i->needed & (i->needed - 1) ? "are" : "is", (unsigned long long)i->unreachable_slots,
	    STORE_SLOT_NR, reads ? "are read-only" : "answer 503");
}

void
copies_health(const struct store *st, struct admin_reasons *r)
{
	struct store_copies_info i = { .is_used = false };
	char text[TEXT_BYTES];

	if (st)
		store_copies_info(st, &i);
	if (i.exposed_objects || i.exposed_bytes) {
		say_exposed(st, &i, &(struct text){ text, sizeof text });
		admin_reason(r, REASON_ONE_COPY, "", "%s", text);
	}
	if (i.needed) {
		say_needed(st, &i, &(struct text){ text, sizeof text });
		admin_reason(r, REASON_DISK_NEEDED, "", "%s", text);
	}
}

/* ---- metrics, JSON ---- */

void
copies_metrics(const struct store *st, struct stats_out *out)
{
	struct store_copies_info i = { .is_used = false };

	if (st)
		store_copies_info(st, &i);
	stats_emit(out, M_COPIES_OBJECTS, i.objects, NULL);
	stats_emit(out, M_COPIES_BYTES, i.bytes, NULL);
	stats_emit(out, M_COPIES_EXPOSED_OBJECTS, i.exposed_objects, NULL);
	stats_emit(out, M_COPIES_EXPOSED_BYTES, i.exposed_bytes, NULL);
	stats_emit(out, M_COPIES_UNREACHABLE, i.unreachable_slots, NULL);
	stats_emit(out, M_COPIES_AWAY, __builtin_popcountll(i.away), NULL);
	stats_emit(out, M_COPIES_HEALING, i.is_healing, NULL);
	stats_emit(out, M_COPIES_HEALED, i.heal_bytes_done, NULL);
	stats_emit(out, M_COPIES_TO_HEAL, i.heal_bytes_total, NULL);
	stats_emit(out, M_COPIES_MISSED, i.missed, NULL);
	stats_emit(out, M_COPIES_REPAIRED, i.repaired, NULL);
	stats_emit(out, M_COPIES_SECOND_READS, i.read_second, NULL);
}

static void
show_disks(const struct store *st, const struct store_copies_info *i, uint64_t units, bool are_away,
	   FILE *out)
{
	putc('[', out);
	for (uint64_t left = units; left; left &= left - 1) {
		int unit = __builtin_ctzll(left);
		struct store_unit_info info;

		store_unit_info(st, unit, &info);
		fputs(left == units ? "{\"disk\":" : ",{\"disk\":", out);
		json_string(out, info.label);
		fputs(",\"uuid\":", out);
		json_string(out, info.uuid);
		fputs(",\"path\":", out);
		json_string(out, info.name[0] ? info.name : NULL);
		if (are_away && i->may_replace)
			fprintf(out, ",\"replaced_in_seconds\":%llu",
				(unsigned long long)(i->replaced_in_ns[unit] / NS_PER_S));
		putc('}', out);
	}
	putc(']', out);
}

void
copies_show(const struct store *st, FILE *out)
{
	struct store_copies_info i;

	store_copies_info(st, &i);
	if (!i.is_used)
		return;
	fprintf(out,
		",\n\"copies\":{\"objects\":%llu,\"bytes\":%llu,\"exposed_objects\":%llu,\"exposed_bytes\":%"
		"llu,"
		"\"unreachable_slots\":%llu,\"missed\":%llu,\"repaired\":%llu,\"second_reads\":%llu,",
		(unsigned long long)i.objects, (unsigned long long)i.bytes,
		(unsigned long long)i.exposed_objects, (unsigned long long)i.exposed_bytes,
		(unsigned long long)i.unreachable_slots, (unsigned long long)i.missed,
		(unsigned long long)i.repaired, (unsigned long long)i.read_second);
	fprintf(out,
		"\"healing\":%s,\"healed_bytes\":%llu,\"to_heal_bytes\":%llu,\"heal_rate\":%llu,"
		"\"heal_seconds_left\":%llu,\"trouble\":",
		i.is_healing ? "true" : "false", (unsigned long long)i.heal_bytes_done,
		(unsigned long long)i.heal_bytes_total, (unsigned long long)i.heal_rate,
		(unsigned long long)(i.heal_left_ns / NS_PER_S));
	json_string(out, i.trouble[0] ? i.trouble : NULL);
	fputs(",\"away\":", out);
	show_disks(st, &i, i.away, true, out);
	fputs(",\"needed\":", out);
	show_disks(st, &i, i.needed, false, out);
	putc('}', out);
}
