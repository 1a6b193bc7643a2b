/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reasons of readiness and of health (admin/reason.def), as far as main knows them.  The callers are the admin thread and control
 * calls, one at a time; no function here waits for a core, and what is not there yet is left out.
 */
#include "main/daemon.h"

#include "admin/admin.h"
#include "base/advice.h"
#include "base/age_clock.h"
#include "base/clock.h"
#include "base/disk_name.h"
#include "base/log.h"
#include "core/core.h"
#include "rdma/rdma.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

/* Bounds in percent, and by how much less ends the reason. */
#define DISK_FULL_PERCENT 95
#define INDEX_FULL_PERCENT 90
#define FULL_ENDS_PERCENT 2
#define FULL_HOLDS_NS (10 * NS_PER_S) /* a write that found no room on a disk with some */
#define WRITE_WAITS_US 10000000ull

/* Returns the first remedy of a row. */
static const char *
remedy(enum advice_id id, char text[200])
{
	advice_first(text, 200, id, NULL);
	return text;
}

static int
unit_nr(const struct daemon *d)
{
	const struct store *st = atomic_load(&d->store);

	return st ? store_unit_nr(st) : 0;
}

static int
rail_nr(const struct daemon *d)
{
	return d->rdma ? rdma_rail_nr(d->rdma) : 0;
}

static bool
any_rail_serves(const struct daemon *d)
{
	for (int i = 0; i < rail_nr(d); i++) {
		struct rdma_rail_info info;

		rdma_rail_get_info(rdma_rail(d->rdma, i), &info);
		if (info.state == RAIL_UP && info.serves)
			return true;
	}
	return false;
}

/* Says it where too few disks serve.  Pools of a cluster are its own affair. */
static void
disks_ready(struct daemon *d, struct admin_reasons *r)
{
	int serving = 0, gone = 0, nr = unit_nr(d), least;
	const struct conf *c = daemon_conf(d);

	least = c->store.min_disks;
	daemon_conf_put(c);
	if (!nr || strcmp(store_name(atomic_load(&d->store)), "rados") == 0)
		return;
	for (int i = 0; i < nr; i++) {
		struct store_unit_info info;

		store_unit_info(atomic_load(&d->store), i, &info);
		serving += store_unit_serves(info.state);
		gone += info.state == UNIT_DRAINED;
	}
	nr -= gone;
	least = least ? least : nr > 1 ? nr - 1 : 1;
	/* One was drained: the others are all there are. */
	least = least < nr ? least : nr;
	if (2 * serving < nr)
		admin_reason(r, REASON_FEW_DISKS, "",
			     "%d of %d disks serve, fewer than half: all is read-only until a restart",
			     serving, nr);
	else if (serving < least)
		admin_reason(r, REASON_FEW_DISKS, "", "%d of %d disks serve, and store.min_disks wants %d",
			     serving, nr, least);
}

void
health_ready(void *cookie, struct admin_reasons *r)
{
	struct daemon *d = cookie;
	int phase = atomic_load(&d->phase);
	char why[256];

	if (phase != PHASE_SERVING)
		admin_reason(r, REASON_NOT_SERVING, "", "%s", phase_name[phase]);
	else if (atomic_load(&d->drained))
		admin_reason(r, REASON_DRAINING, "", "draining on request (POST /control/resume ends it)");
	else if (d->conf->rdma.require && !any_rail_serves(d))
		admin_reason(r, REASON_NO_RAIL, "", "rdma.require is set, and no RDMA rail is up");
	else if (!store_answers(atomic_load(&d->store), why, sizeof why))
		admin_reason(r, REASON_STORE_SILENT, "", "the store does not answer: %s", why);
	else
		disks_ready(d, r);
}

static bool
all_unusable(const struct rdma_rail_stats *st)
{
	int eps = atomic_load(&st->eps.all);

	return eps > 0 && atomic_load(&st->eps_unusable) == eps;
}

/* ---- room ---- */

/* Judges one measure of fullness.  refused: how many writes found no room, since the start. */
static bool
is_full(struct health_fill *f, uint64_t used, uint64_t all, unsigned percent, uint64_t refused)
{
	uint64_t now = clock_ns();

	if (refused != f->refused)
		f->refused_ns = now;
	if ((double)used * 100 >= (double)all * percent || refused != f->refused)
		f->is_full = true;
	else if ((double)used * 100 < (double)all * (percent - FULL_ENDS_PERCENT) &&
		 now - f->refused_ns >= FULL_HOLDS_NS)
		f->is_full = false;
	f->refused = refused;
	return f->is_full;
}

/* Says what of a disk is full. */
static void
room(struct health_unit *u, const struct store_unit_info *info, const char *unit, const char *object,
     struct admin_reasons *r)
{
	uint64_t may = info->size_bytes > info->own_bytes ? info->size_bytes - info->own_bytes : 0,
		 used = may > info->free_bytes ? may - info->free_bytes : 0,
		 index = store_unit_number(info, "index_bytes"),
		 index_max = store_unit_number(info, "index_max_bytes");

	int lacks = (int)store_unit_number(info, "no_room");
	char text[200];

	if (lacks)
		admin_reason(
			r, REASON_DISK_FULL, object,
			"%s: the file system or device below it has no room for what it counts as free: %s; "
			"writes that need it answer 507; %s",
			unit, strerror(lacks), remedy(ADVICE_NO_ROOM, text));
	else if (may &&
		 is_full(&u->space, used, may, DISK_FULL_PERCENT, store_unit_number(info, "space_refused")))
		admin_reason(r, REASON_DISK_FULL, object,
			     "%s is full: %.1f %% of what objects may take on it is taken, and what its keys "
			     "need goes nowhere "
			     "else; %llu writes found no room since the start",
			     unit, 100.0 * (double)used / (double)may, (unsigned long long)u->space.refused);
	if (index_max && is_full(&u->index, index, index_max, INDEX_FULL_PERCENT,
				 store_unit_number(info, "index_refused")))
		admin_reason(r, REASON_INDEX_FULL, object,
			     "the index of %s is full: %llu of %llu MiB (memory.index); %llu writes found no "
			     "room in it since "
			     "the start",
			     unit, (unsigned long long)(index >> 20), (unsigned long long)(index_max >> 20),
			     (unsigned long long)u->index.refused);
}

/* ---- disks and pools ---- */

bool
health_waits(const struct store_unit_info *info, bool is_pool, char *out, size_t cap)
{
	uint64_t wait_us = store_unit_number(info, "oldest_wait_us");

	snprintf(out, cap,
		 is_pool ? "its oldest operation waits since %llu s"
			 : "no write or flush has ended for %llu s, and some wait",
		 (unsigned long long)(wait_us / 1000000));
	return wait_us >= WRITE_WAITS_US;
}

static void
unit_health(struct daemon *d, int i, bool is_pool, struct admin_reasons *r)
{
	struct health_unit *u = &d->unit_health[i];
	struct store_unit_info info;
	char unit[DISK_NAME_BYTES + 8], name[DISK_NAME_BYTES], object[64], text[200], waits[80];

	store_unit_info(atomic_load(&d->store), i, &info);
	snprintf(unit, sizeof unit, "%s %s", is_pool ? "pool" : "disk",
		 disk_name(name, info.uuid, info.name));
	snprintf(object, sizeof object, "%s", is_pool || !info.uuid[0] ? info.name : info.uuid);
	if (strcmp(u->object, object) != 0) {
		*u = (struct health_unit){ .space.refused = store_unit_number(&info, "space_refused"),
					   .index.refused = store_unit_number(&info, "index_refused") };
		snprintf(u->object, sizeof u->object, "%s", object);
	}
	if (info.state == UNIT_FAILED && !is_pool)
		admin_reason(r, REASON_DISK_FAILED, object, "%s failed, read-only until a restart: %s; %s",
			     unit, info.reason, remedy(ADVICE_DISK_FAILED, text));
	else if (info.state == UNIT_MISSING)
		admin_reason(r, REASON_DISK_MISSING, object,
			     "%s is missing: what only it has answers 503; %s", unit,
			     remedy(ADVICE_DISK_AWAY, text));
	else if (info.reason[0] && info.state != UNIT_DRAINED)
		admin_reason(
			r, store_unit_number(&info, "path_elsewhere") ? REASON_DISK_PATH : REASON_DISK_NOTICE,
			object, "%s: %s", unit, info.reason);
	if (!store_unit_serves(info.state))
		return;
	room(u, &info, unit, object, r);
	if (health_waits(&info, is_pool, waits, sizeof waits))
		admin_reason(r, REASON_WRITE_WAITS, object, "%s: %s", unit, waits);
}

static void
rail_health(struct daemon *d, int i, struct admin_reasons *r)
{
	struct rdma_rail_info info;
	char rail[80];

	rdma_rail_get_info(rdma_rail(d->rdma, i), &info);
	snprintf(rail, sizeof rail, "%s:%d", info.device, info.port);
	if (info.state != RAIL_UP && !info.spare)
		admin_reason(r, REASON_RAIL_DOWN, rail, "rail %s is %s", rail,
			     info.state == RAIL_DOWN ? "down" : "lost");
	else if (info.state == RAIL_UP && all_unusable(rdma_rail_stats(rdma_rail(d->rdma, i))))
		admin_reason(r, REASON_RAIL_UNUSABLE, rail, "rail %s: none of its channels can be used",
			     rail);
}

/* ---- reloads, the log ---- */

static void
clock_health(struct admin_reasons *r)
{
	struct age_jump jump;
	char from[AGE_TEXT_BYTES], to[AGE_TEXT_BYTES], first[200];

	if (!age_clock_jumped(&jump))
		return;
	age_clock_text(jump.from_ns, from);
	age_clock_text(jump.to_ns, to);
	admin_reason(
		r, REASON_CLOCK_JUMPED, "",
		"the clock jumped from %s to %s: nothing is deleted because of its age by the new time for "
		"another %llu min, unless the clock is right before; %s",
		from, to, (unsigned long long)((jump.left_ns + 60 * NS_PER_S - 1) / (60 * NS_PER_S)),
		remedy(ADVICE_CLOCK_JUMPED, first));
}

static void
the_rest(struct daemon *d, struct admin_reasons *r)
{
	struct log_dropped dropped;
	char text[200], why[512];

	if (daemon_reload_failed(d, why, sizeof why))
		admin_reason(r, REASON_RELOAD_FAILED, "",
			     "the file on disk is not in use, but the configuration before the last reload, "
			     "which failed: %s",
			     why);
	clock_health(r);
	daemon_audit_health(r);
	log_get_dropped(&dropped);
	if (dropped.audit_waiting)
		admin_reason(r, REASON_LOG_DROPPED, "",
			     "%llu warnings, errors or lines of the access log were dropped: the reader of "
			     "the log does not read; %s",
			     (unsigned long long)dropped.audit_waiting, remedy(ADVICE_LOG_UNREAD, text));
}

void
health_reasons(void *cookie, struct admin_reasons *r)
{
	struct daemon *d = cookie;
	struct store *st = atomic_load(&d->store);
	char missing[256];

	for (int i = 0; i < unit_nr(d) && i < HEALTH_UNITS_MAX; i++)
		unit_health(d, i, strcmp(store_name(st), "rados") == 0, r);
	copies_health(st, r);
	below_health(st, r);
	remember_health(d, r);
	if (d->rdma && rdma_missing(d->rdma, missing, sizeof missing))
		admin_reason(r, REASON_DEVICE_MISSING, "", "%s", missing);
	for (int i = 0; i < rail_nr(d); i++)
		rail_health(d, i, r);
	certs_health(d, r);
	the_rest(d, r);
}
