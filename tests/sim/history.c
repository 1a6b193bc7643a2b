/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One history, see sim.h: format, then lives: start, check, clients, and an end by cut, kill or clean stop,
 * anywhere; at last a start without faults, everything read, a clean stop, and once more.
 */
#include "tests/sim/sim.h"

#include "base/check.h"
#include "extent/extent.h"
#include "tests/fake/engine_alone.h"
#include "tests/fixtures/old_super.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 400000u
#define MOVE_STEPS 400u /* in which few objects are moved together */

struct sim_result outcome;
struct store *sim_store;
bool sim_disk_may_fail;
struct profile prof;
struct sim_counts counts;
static jmp_buf failed;
static struct plan *plan;

enum end { END_NONE, END_CUT, END_KILL };

_Noreturn void
sim_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(outcome.what, sizeof outcome.what, fmt, ap);
	va_end(ap);
	outcome.failed = true;
	_longjmp(failed, 1);
}

/* ---- format ---- */

/* The file of one of the two superblocks, and where in it. */
static int
super_place(const struct super *sb, uint32_t i, uint64_t *ret_off)
{
	*ret_off = i && prof.is_device ? geo_second_off(&sb->geo) : 0;
	return simdisk_open(i && !prof.is_device ? FILE_SUPER2 : FILE_SUPER);
}

static struct super formatted;

static bool
is_super(int file, uint32_t page)
{
	bool is = false;

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t off;

		is |= super_place(&formatted, i, &off) == file && page - off / PAGE < FMT_SUPER_BYTES / PAGE;
	}
	return is;
}

/* The log and the superblocks are flushed themselves whenever they are written. */
static void
copied(enum odd how, uint32_t one_of)
{
	for (int name = 0; !prof.is_device && name < FILE_SEG + SEGS_MAX; name++) {
		if (simdisk_exists(name))
			simdisk_copied(simdisk_open(name), how, one_of);
	}
}

struct super
sim_super(void)
{
	static struct super sb;

	memset(&sb, 0, sizeof sb);
	sb.kind = prof.is_device ? SUPER_DEVICE : SUPER_DIRECTORY;
	sb.geo = (struct geometry){ .log_bytes = prof.log_bytes,
				    .seg_bytes = 256u << 10,
				    .seg_nr = prof.seg_nr,
				    .unit_bytes = FMT_UNIT_BYTES,
				    .block_bytes = 8u << 10,
				    .granule_bytes = STORE_GRANULE,
				    .chunk_bytes = FMT_CHUNK_BYTES };
	sb.geo.size_bytes = FMT_DEVICE_HEAD_BYTES + sb.geo.log_bytes + sb.geo.seg_nr * sb.geo.seg_bytes +
			    FMT_DEVICE_TAIL_BYTES;
	for (int i = 0; i < 16; i++) {
		sb.store_uuid[i] = sb.disk_uuid[i] = (uint8_t)i;
		sb.nonce[i] = (uint8_t)rng();
	}
	sb.epoch = 1;
	sb.snap[0].id = 1;
	sb.snap[0].begin = (struct log_pos){ .seq = 1, .epoch = 1 };
	memcpy(sb.snap[0].begin.nonce, sb.nonce, 16);
	sb.start_no = 1;
	return sb;
}

void
sim_make_disk(int disk, const struct super *made)
{
	static uint8_t buf[FMT_SUPER_BYTES], zero[PAGE];
	static struct super sb;
	int name = disk * SIM_FILES;

	sb = *made;
	simdisk_create(name + FILE_SUPER);
	if (!prof.is_device) {
		simdisk_create(name + FILE_LOG);
		simdisk_create(name + FILE_SUPER2);
		simdisk_put(simdisk_open(name + FILE_LOG), sb.geo.log_bytes - PAGE, zero, PAGE);
	}
	for (int i = 0; i < 2; i++) {
		uint64_t off = i && prof.is_device ? geo_second_off(&sb.geo) : 0;

		sb.gen = 2u - (unsigned)i;
		super_encode(buf, &sb);
		simdisk_put(simdisk_open(name + (i && !prof.is_device ? FILE_SUPER2 : FILE_SUPER)), off, buf,
			    FMT_SUPER_BYTES);
	}
	for (int i = 0; !prof.is_device && i < (int)prof.segs_there; i++) {
		simdisk_create(name + FILE_SEG + i);
		simdisk_put(simdisk_open(name + FILE_SEG + i), sb.geo.seg_bytes - PAGE, zero, PAGE);
	}
	simdisk_sync_dir();
}

static void
format(void)
{
	formatted = sim_super();
	super_table_of_one(&formatted);
	sim_make_disk(0, &formatted);
	if (prof.copied)
		copied(prof.copied_how, prof.copied);
}

/* ---- damage that no rule of writing prevents ---- */

static enum rot { ROT_NONE, ROT_LOG, ROT_SECOND } rotten; /* ROT_SECOND: of something that there are two of */
static int open_result;
static char open_error[1200];
static bool rotted; /* once: two such faults are more than is promised against */

/* A page of the log, and of the unit. */
static int
log_page(const struct vol *vol, uint32_t *page)
{
	*page += (uint32_t)(vol->disk.log_off / PAGE);
	return simdisk_open(vol->disk.is_device ? FILE_SUPER : FILE_LOG);
}

static int
unit_page(const struct vol *vol, uint64_t unit, uint32_t *ret_page)
{
	uint64_t per_seg = geo_seg_units(&vol->disk.geo);

	if (vol->disk.is_device) {
		*ret_page = (uint32_t)((vol->disk.seg_off + unit * FMT_UNIT_BYTES) / PAGE);
		return simdisk_open(FILE_SUPER);
	}
	*ret_page = (uint32_t)(unit % per_seg * (FMT_UNIT_BYTES / PAGE));
	return simdisk_open(FILE_SEG + (int)(unit / per_seg));
}

static void
rot_snapshot(const struct vol *vol)
{
	const struct snap_ref *s = &vol->disk.sb.snap[below(2)];
	uint32_t page;
	int file;

	if (s->block_nr == 0 || vol->disk.sb.snap[1].id == 0)
		return;
	rotten = ROT_SECOND;
	file = unit_page(vol, ext_unit(s->head_ext), &page);
	simdisk_damage(file, page);
}

static void
rot_super(const struct vol *vol)
{
	uint64_t off;
	int file = super_place(&vol->disk.sb, below(2), &off);

	rotten = ROT_SECOND;
	simdisk_damage(file, (uint32_t)(off / PAGE));
}

/* The first MiB of a device is written over, or a file is gone. */
static void
lose_head(void)
{
	static const uint8_t zero[PAGE];

	rotten = ROT_SECOND;
	say("the head of the disk is lost");
	if (!prof.is_device)
		simdisk_unlink(one_in(2) ? FILE_SUPER : FILE_SUPER2);
	for (uint64_t off = 0; prof.is_device && off < FMT_DEVICE_HEAD_BYTES; off += PAGE)
		simdisk_put(simdisk_open(FILE_SUPER), off, zero, PAGE);
	simdisk_sync_dir();
}

/* The last page of the log that went bad and that a start need not read: the log comes around to it later. */
static struct {
	int file;
	uint32_t page;
	uint64_t starts; /* number of starts before it went bad */
} old_log;

static void
note_old_log(int file, uint32_t page)
{
	old_log.file = file;
	old_log.page = page;
	old_log.starts = counts.starts;
}

/* A log block of the running epoch that a later one, flushed too, says was flushed; or the one that began the
 * epoch, which the superblock knows. */
static void
rot_log(const struct vol *vol)
{
	uint32_t pages = (uint32_t)(vol->disk.geo.log_bytes / PAGE), found[64], nr = 0, at;
	bool epoch = one_in(4);

	for (uint32_t i = 0; i < pages && nr < 64; i++) {
		int file = log_page(vol, (at = i, &at));
		const uint8_t *page = simdisk_page(file, at);
		struct block_head h;

		if (!block_peek(page) || !block_claims(page, &h) || h.seq > vol->leader.stamped ||
		    h.seq < vol->disk.sb.snap[0].begin.seq)
			continue;
		if (epoch ? h.new_epoch == vol->leader.next.epoch && h.epoch < h.new_epoch
			  : h.epoch == vol->leader.next.epoch)
			found[nr++] = at;
	}
	if (!nr)
		return;
	rotten = ROT_LOG;
	at = found[below(nr)];
	simdisk_damage(log_page(vol, &(uint32_t){ 0 }), at);
	/* New snapshots, which the scrub asks for, make it old. */
	note_old_log(log_page(vol, &(uint32_t){ 0 }), at);
}

/* The last block that was flushed, of which nothing else tells. */
static void
rot_end(const struct vol *vol)
{
	uint32_t pages = (uint32_t)(vol->disk.geo.log_bytes / PAGE);

	for (uint32_t i = 0; i < pages; i++) {
		struct block_head h;
		uint32_t at = i;
		int file = log_page(vol, &at);

		if (!block_claims(simdisk_page(file, at), &h) || h.seq != vol->leader.flushed_seq ||
		    h.epoch != vol->leader.next.epoch)
			continue;
		rotten = ROT_LOG;
		simdisk_unreadable(file, at);
		/* A snapshot may make it old. */
		note_old_log(file, at);
		return;
	}
}

/* What was written before the snapshots began: nothing is believed there. */
static void
rot_old_log(const struct vol *vol)
{
	uint64_t block = vol->disk.geo.block_bytes, head = vol_head(vol) + 2 * block,
		 end = atomic_load(&vol->snap.trim_at) + vol->disk.geo.log_bytes;
	uint32_t page;
	int file;

	if (end < head + PAGE)
		return;
	page = (uint32_t)((head + below((uint32_t)(end - head))) % vol->disk.geo.log_bytes / PAGE);
	rotten = ROT_SECOND;
	file = log_page(vol, &page);
	simdisk_damage(file, page);
	note_old_log(file, page);
}

/* The log has come around to the page that went bad, and a block may have been there. */
static bool
old_log_is_due(void)
{
	return counts.starts > old_log.starts + 1 && simdisk_is_bad(old_log.file, old_log.page) &&
	       open_result == -EIO && strstr(open_error, "may have been there");
}

/* Nobody needs it. */
static void
rot_host(const struct vol *vol)
{
	int file = simdisk_open(vol->disk.is_device ? FILE_SUPER : FILE_HOST);

	if (file < 0)
		return;
	rotten = ROT_SECOND;
	simdisk_damage(file, vol->disk.is_device ? FMT_HOST_OFF / PAGE : 0);
}

static void
rot(void)
{
	const struct vol *vol = sim_vol();

	/* Between two superblocks it is not clear which of them counts. */
	if (atomic_load(&vol->snap.state) != SNAP_IDLE)
		return;
	switch (below(8)) {
	case 7:
		rot_end(vol);
		break;
	case 6:
		lose_head();
		break;
	case 0:
		rot_snapshot(vol);
		break;
	case 4:
		rot_old_log(vol);
		break;
	case 1:
		rot_super(vol);
		break;
	case 5:
		rot_host(vol);
		break;
	default:
		rot_log(vol);
		break;
	}
}

/* ---- life and death ---- */

static uint64_t steps;
static unsigned faults_at_start;

static void
die(enum end how)
{
	bool rots = how == END_CUT && sim_store && !disk_failed(&sim_vol()->disk) && !rotted &&
		    rotten == ROT_NONE && one_in(prof.rot);

	say("%s at step %llu", how == END_CUT ? "cut" : "kill", (unsigned long long)steps);
	counts.cuts += how == END_CUT;
	counts.kills += how == END_KILL;
	if (sim_store && !simdisk_faults && disk_failed(&sim_vol()->disk))
		sim_fail("the disk failed of what it has not said: %s", sim_vol()->disk.reason);
	if (sim_store) {
		counts.snapshots += atomic_load(&sim_vol()->stats.snapshots);
		counts.moves += atomic_load(&sim_vol()->packs.moved_nr);
		counts.laps += sim_vol()->leader.next.lap;
		counts.given_up += sim_vol()->disk.sb.snap[0].id > 1 && !sim_vol()->disk.sb.snap[1].id;
	}
	if (how == END_CUT) {
		simdisk_cut();
		/* The next start is after a boot, sometimes of another machine. */
		sim_boot++;
		sim_machine = one_in(4) ? sim_machine + 1 : sim_machine;
	} else {
		simdisk_kill();
	}
	if (rots)
		rot();
	rotted |= rotten != ROT_NONE;
	counts.rots += rots && rotten != ROT_NONE;
	sched_drop();
	rings_drop();
	sim_store = NULL;
	env_drop_memory();
	model_process_over();
	clients_begin();
}

/* One for all buckets: what is written to each counts for the others. */
static void
set_quota(struct store *st)
{
	struct store_pattern_quota q = { .any_suffix = true,
					 .max = prof.quota,
					 .max_buckets = STORE_UNBOUNDED };

	check(store_set_quotas(st, &q, prof.quota.objects != 0) == 0);
}

static void
start_main(int nr)
{
	struct store_disk_conf dc = { .path = "sim" };
	struct store_conf conf = { .ops = engine_alone(),
				   .disks.disk = &dc,
				   .disks.nr = 1,
				   .disks.index_bytes = prof.index_bytes,
				   .disks.pack_rate = prof.pack_rate,
				   .disks.lock_wait_ns = 3600 * NS_PER_S,
				   .ports_max = PORTS_MAX };
	struct store *st;

	open_result = store_start(&conf, &st, open_error, sizeof open_error);
	if (open_result < 0)
		return;
	for (int i = 0; i < prof.ports; i++) {
		struct sim_port *sp = &ports[i];

		check(ring_new(&(struct ring_params){ .entries = 128 }, &sp->ring) == 0);
		check(mailbox_init(&sp->mb) == 0);
		sp->timers = (struct timers){ 0 };
		sp->there = true;
		check(store_attach(st, sp->ring, &sp->mb, &sp->timers, &sp->p) == 0);
	}
	sim_store = st;
	set_quota(st);
	/* Nothing has run yet: this is what the start found. */
	model_recovered(st, ports[0].p);
	if (!disk_failed(&extent_store(st)->vol->disk))
		model_space(st, "after the start", false);
}

static _Noreturn void
no_end(void)
{
	struct vol *vol = sim_vol();
	bool run = false;

	for (int i = 0; i < CLIENTS_MAX; i++)
		run |= co_runs(CO_CLIENT, i);
	if (!sim_store || !vol)
		sim_fail("it comes to no end");
	sim_fail("it comes to no end: clients %d helper %d flying %u; pending %d queue %d dying %d gc %d "
		 "dead %d snap %d "
		 "leader %d stamped %d want_lead %d log used %llu segs_coming %d",
		 run, co_runs(CO_HELPER, 0), simdisk_inflight(), atomic_load(&vol->pending) != NULL,
		 vol->leader.queue != NULL, vol->leader.dying != NULL, vol->leader.gc != NULL,
		 (int)atomic_load(&vol->dead_nr), atomic_load(&vol->snap.state), atomic_load(&vol->is_led),
		 vol->leader.stamped >= vol->leader.last_records_seq, atomic_load(&vol->want_lead),
		 (unsigned long long)atomic_load(&vol->log_used), atomic_load(&vol->disk.segs_coming));
}

struct events sim_events;

/* True: it is cut behind what happened last. */
static bool
is_at_cut(struct events *e)
{
	uint64_t now = simdisk_changes + many_told();

	if (!e->is_on || now == e->last)
		return false;
	e->last = now;
	if ((int64_t)e->nr == e->fail_at && e->fails >= 0)
		many_fail(e->fails);
	return (int64_t)e->nr++ == e->cut_at;
}

/* Goes on until done() or the end of this life.  True: done. */
static bool
run_until(bool (*done)(void), uint64_t life, enum end *how)
{
	uint64_t begun = steps;

	while (!done()) {
		if (life &&
		    (steps - begun >= life ||
		     (prof.at_super && simdisk_writes_super() && one_in(prof.at_super)) ||
		     (prof.at_log && co_runs(CO_START, 0) && simdisk_writes_log() && one_in(prof.at_log))))
			return false;
		if (steps - begun > STEPS_MAX)
			no_end();
		if (!sched_step()) {
			if (life && simdisk_hung)
				return false;
			sim_fail("nothing can go on");
		}
		steps++;
		if (is_at_cut(&sim_events))
			return false;
	}
	return true;
}

bool
sim_go(bool (*done)(void), uint64_t life)
{
	enum end how;

	return run_until(done, life, &how);
}

static bool
start_over(void)
{
	return !co_runs(CO_START, 0);
}

static enum end
choose_end(void)
{
	return prof.kill && one_in(prof.kill) ? END_KILL : END_CUT;
}

/* 0: open.  1: cut on the way.  2: refused, and that is right. */
static int
start(bool calm, uint64_t life)
{
	enum end how = choose_end();

	open_result = 0;
	if (one_in(prof.copied_again))
		copied(ODD_SHARED, prof.copied);
	simdisk_faults = calm ? simdisk_faults : 0;
	simdisk_soft = calm ? simdisk_soft : 0;
	simdisk_refused = calm ? simdisk_refused : 0;
	simdisk_log_refused = calm ? simdisk_log_refused : 0;
	faults_at_start = simdisk_faults + simdisk_soft + simdisk_refused;
	sim_disk_may_fail = !calm;
	counts.starts++;
	co_start(CO_START, 0, start_main);
	if (!run_until(start_over, life, &how)) {
		die(how);
		return 1;
	}
	if (open_result == 0) {
		if (rotten == ROT_SECOND)
			say("started in spite of what is damaged");
		rotten = ROT_NONE;
		return 0;
	}
	say("start: %d %s", open_result, open_error);
	trace(40, (uint64_t)(int64_t)open_result, 0);
	if (old_log_is_due() ||
	    (rotten == ROT_LOG && (open_result == -ENOTRECOVERABLE || open_result == -EIO))) {
		die(END_KILL);
		return 2;
	}
	if (simdisk_faults + simdisk_soft + simdisk_refused == faults_at_start)
		sim_fail("the start failed without a fault: %d %s", open_result, open_error);
	die(END_KILL);
	return 1;
}

static char told[1 << 16]; /* by a repair */

static void
on_fsck(void *cookie, const char *line)
{
	size_t at = strlen(told);

	say("fsck: %s", line);
	snprintf(told + at, sizeof told - at, "%s\n", line);
}

static void
fsck_main(int nr)
{
	struct store_disk_conf dc = { .path = "sim" };
	struct store_conf conf = { .ops = &extent_ops,
				   .disks.disk = &dc,
				   .disks.nr = 1,
				   .disks.index_bytes = prof.index_bytes,
				   .ports_max = 1 };

	told[0] = 0;
	open_result = store_fsck(&conf, FSCK_REPAIR, on_fsck, NULL);
}

static bool
at_rest(void)
{
	struct vol *vol = sim_vol();

	if (disk_failed(&vol->disk))
		return true;
	for (int i = 0; i < prof.ports; i++) {
		if (ports[i].there && extent_port(ports[i].p)->vp.io.inflight)
			return false;
	}
	return !atomic_load(&vol->pending) && !vol->leader.queue && !vol->leader.dying && !vol->leader.gc &&
	       !atomic_load(&vol->gc_new) && !atomic_load(&vol->unpinned) && !atomic_load(&vol->dead_nr) &&
	       atomic_load(&vol->snap.state) == SNAP_IDLE && !atomic_load(&vol->is_led) &&
	       !(simdisk_inflight() && co_runs(CO_HELPER, 0));
}

/* What could be moved together is, if there is room and reason. */
static bool
all_moved(void)
{
	return at_rest() && (disk_failed(&sim_vol()->disk) || atomic_load(&sim_vol()->packs.loose_nr) < 2);
}

static bool
all_detached(void)
{
	bool all = true;

	for (int i = 0; i < prof.ports; i++) {
		struct sim_port *sp = &ports[i];

		if (!sp->there)
			continue;
		if (sp->asleep)
			store_turn(sp->p, TURN_WAKES);
		sp->asleep = false;
		if (!store_detach(sp->p)) {
			all = false;
			continue;
		}
		ring_free(sp->ring);
		mailbox_fini(&sp->mb);
		*sp = (struct sim_port){ 0 };
	}
	return all;
}

static void
stop_main(int nr)
{
	store_stop(sim_store);
	sim_store = NULL;
}

/* Everything back, stamped, stopped; then as after a kill, with nothing in flight. */
static bool
clean_stop(uint64_t life, enum end *how)
{
	counts.cleans++;
	if (!run_until(all_detached, life, how))
		return false;
	counts.snapshots += atomic_load(&sim_vol()->stats.snapshots);
	counts.moves += atomic_load(&sim_vol()->packs.moved_nr);
	co_start(CO_START, 0, stop_main);
	if (!run_until(start_over, life, how))
		return false;
	simdisk_kill();
	sched_drop();
	rings_drop();
	env_drop_memory();
	return true;
}

static uint64_t readings;

static bool
reread_over(void)
{
	const struct reread *rr = &sim_vol()->reread;

	return disk_failed(&sim_vol()->disk) ||
	       (atomic_load(&rr->ended) > readings && !rr->step && !rr->heal_id && !atomic_load(&rr->bad));
}

/* Something rots while it is served, is read again, and healed: as if it had not been.  False: life is over. */
static bool
rot_and_heal(uint64_t life)
{
	const struct vol *vol = sim_vol();
	uint64_t found = atomic_load(&vol->reread.found), newest = vol->disk.sb.snap[0].id, now;
	enum end how = END_CUT;

	if (atomic_load(&vol->snap.state) != SNAP_IDLE)
		return true;
	switch (below(3)) {
	case 0:
		rot_snapshot(vol);
		break;
	case 1:
		rot_super(vol);
		break;
	default:
		rot_log(vol);
		break;
	}
	/* Two such faults at once are more than is promised against. */
	if (rotted)
		life = 0;
	found += rotten != ROT_NONE;
	counts.rots += rotten != ROT_NONE;
	for (int i = 0; i < 2; i++) {
		readings = atomic_load(&vol->reread.ended);
		store_reread(ports[0].p);
		/* What is not healed yet is still damaged at the start behind a cut. */
		if (!run_until(reread_over, life, &how))
			return false;
		counts.healed += rotten != ROT_NONE;
		rotten = ROT_NONE;
		if (disk_failed(&vol->disk))
			return true;
		/* What rotted before the start, which needs but one of what there are two, is found as well; and a
		 * snapshot that came by itself may have been faster. */
		now = atomic_load(&vol->reread.found);
		if ((now < found && vol->disk.sb.snap[0].id == newest) || now > found + (i == 0 && rotted))
			sim_fail("reading %d finds %llu damaged places, not %llu", i, (unsigned long long)now,
				 (unsigned long long)found);
		found = now;
	}
	rotted = false;
	return true;
}

static bool ends; /* what comes is the last life, or all is deleted in it nevertheless */

/* A life behind a start.  Ends dead. */
static void
live(bool calm)
{
	/* Often short: the beginnings are what is many. */
	uint64_t life = calm || one_in(4) ? 0 : 1 + below(one_in(2) ? 400 : 100 + (uint32_t)prof.ops * 60);
	enum end how = choose_end();

	ops_left = calm ? 0 : prof.ops;
	co_start(CO_CLIENT, 0, client_verify);
	if (!run_until(clients_over, life, &how)) {
		die(how);
		return;
	}
	clients_start();
	if (!run_until(clients_over, life, &how)) {
		die(how);
		return;
	}
	if (!calm && simdisk_refused && !disk_failed(&sim_vol()->disk) && !one_in(3)) {
		sim_disk_may_fail = false;
		co_start(CO_CLIENT, 0, client_finds_room);
		run_until(clients_over, 0, &how);
	}
	if (calm || one_in(2)) {
		if (run_until(at_rest, life, &how) && !simdisk_faults && !simdisk_soft && model_is_known())
			model_space(sim_store, "at rest", true);
		if (!disk_failed(&sim_vol()->disk))
			model_quota(sim_store, true);
	}
	if (prof.rot && !prof.no_room && !prof.ballast && !simdisk_faults && !simdisk_soft &&
	    one_in(calm ? 2 : 4) && !rot_and_heal(calm || one_in(2) ? 0 : 1 + below(400))) {
		die(how);
		return;
	}
	if (calm) {
		co_start(CO_CLIENT, 0, client_can_write);
		run_until(clients_over, 0, &how);
	}
	if (calm && ends && !disk_failed(&sim_vol()->disk)) {
		co_start(CO_CLIENT, 0, client_can_empty);
		run_until(clients_over, 0, &how);
	}
	if (calm || (prof.clean && one_in(prof.clean))) {
		if (clean_stop(calm ? 0 : life, &how))
			return;
	}
	die(how);
}

/* The log is cut where it is damaged.  What comes back may have lost its space since, and is then told as
 * damaged. False: there is no way. */
static bool
repair(void)
{
	enum end how = END_KILL;
	int r = 0, tries;

	for (tries = 0; tries < 2; tries++) {
		unsigned refused = simdisk_refused;

		co_start(CO_START, 0, fsck_main);
		run_until(start_over, 0, &how);
		r = open_result;
		if (simdisk_refused == refused || r == 1 || r == -ENOTRECOVERABLE)
			break;
		/* One that found no room is made once more, with room. */
		die(END_KILL);
		sim_disk_may_fail = false;
	}
	/* The first one may have written over what was damaged. */
	if (r != 1 && r != -ENOTRECOVERABLE && !(tries && r == 0))
		sim_fail("a repair ended with %d", r);
	die(END_KILL);
	model_any_state = model_damaged = true;
	if (start(true, 0) != 0)
		return false;
	live(true);
	counts.repairs++;
	return true;
}

/* Start after start, none of which lives to serve: each leaves a block in the log.
 * False: there is no way. */
static bool
storm(void)
{
	for (uint64_t n = 5 + below(40); n > 0; n--) {
		int s = start(false, 1 + below(prof.at_super ? 200 : 60));

		if (s == 2 && !repair())
			return false;
		if (s == 0)
			die(choose_end());
		counts.storm_starts++;
	}
	return true;
}

/* ---- files that are lost ---- */

static bool has_lost;

uint32_t
sim_snapshot_segs(const struct vol *vol)
{
	uint64_t per_seg = geo_seg_units(&vol->disk.geo);
	uint32_t segs = 0;

	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < vol->snap.space[i].nr; j++)
			segs |= 1u << ext_unit(vol->snap.space[i].ext[j]) / per_seg;
	}
	return segs;
}

/* Of a store that has just started, and has published nothing since: it dies, and they vanish.  *ret_named: the segments that records
 * name.  Returns the bits of the segments that are gone. */
static uint32_t
remove_segments(uint32_t *ret_named)
{
	const struct vol *vol = sim_vol();
	uint32_t snaps = sim_snapshot_segs(vol), gone = 0;
	bool is_sure = !disk_failed(&vol->disk) && atomic_load(&vol->snap.state) == SNAP_IDLE;

	*ret_named = model_places(vol);
	die(choose_end());
	while (simdisk_late())
		simdisk_land_late(0);
	for (int i = 0; is_sure && i < SEGS_MAX; i++) {
		if (!simdisk_exists(FILE_SEG + i) || snaps >> i & 1 || !one_in(*ret_named >> i & 1 ? 2 : 16))
			continue;
		say("segment %d is lost", i);
		simdisk_unlink(FILE_SEG + i);
		gone |= 1u << i;
		counts.lost_files++;
	}
	simdisk_sync_dir();
	return gone;
}

/* The repair lists the objects that are lost, and no others. */
static void
check_told(void)
{
	if (strstr(told, "lost: part '") || strstr(told, "lost: chunk '"))
		sim_fail("the repair names no upload: %s", told);
	for (int b = 0; b < BUCKETS; b++) {
		for (int k = 0; k < KEYS_MAX; k++) {
			char line[100];
			uint32_t id = model.id[b][k];
			bool is = id && model_is_lost(id);

			/* Of one without a map it says that it is dropped. */
			snprintf(line, sizeof line, "%s'%s/%s' ",
				 is && !ops[id].may_be_dropped ? "lost: object " : "", bucket_name(b),
				 key_name(k));
			if (!strstr(told, line) == is)
				sim_fail("bucket %d key %d: it is lost: %d, and the repair says: %s", b, k,
					 is, told);
		}
	}
}

/* Cut somewhere, it can be made again. */
static void
repair_files(void)
{
	enum end how = choose_end();
	bool was_cut = false;

	co_start(CO_START, 0, fsck_main);
	if (!run_until(start_over, one_in(3) ? 1 + below(200) : 0, &how)) {
		was_cut = true;
		die(how);
		while (simdisk_late())
			simdisk_land_late(0);
		co_start(CO_START, 0, fsck_main);
		run_until(start_over, 0, &how);
	}
	/* The first one may have made the files, and then data is damaged and no file is lost; as where a map is lost. */
	if (open_result != 1 && !(was_cut && open_result == 0) &&
	    !(open_result == -ENOTRECOVERABLE && (was_cut || strstr(told, "whose map"))))
		sim_fail("a repair of lost files ended with %d: %s", open_result, told);
	if (!was_cut)
		check_told();
	die(END_KILL);
}

/* Some segments vanish between two lives.  A start refuses if they had something, and a repair lists the objects; these are damaged from
 * then on, and everything else is whole. */
static void
lose_files(void)
{
	struct profile was = prof;
	uint32_t gone, named;
	unsigned lost;
	int s;

	/* Nothing moves. */
	prof.pack_rate = 0;
	s = start(true, 0);
	prof = was;
	if (s != 0)
		return;
	gone = remove_segments(&named);
	if (!gone)
		return;
	lost = model_lose(gone);
	has_lost = lost != 0;
	counts.lost_objects += lost;
	rotten = ROT_LOG;
	s = start(true, 0);
	rotten = ROT_NONE;
	if (s == 0) {
		if (lost)
			sim_fail("a start does without files that have bytes of %u objects", lost);
		live(true);
		return;
	}
	if (!(named & gone) || open_result != -ENOTRECOVERABLE || !strstr(open_error, "is not there"))
		sim_fail("lost files end the start like this: %d %s", open_result, open_error);
	repair_files();
	if (start(true, 0) != 0)
		sim_fail("it does not start behind the repair: %d %s", open_result, open_error);
	live(true);
}

static void
lives(void)
{
	for (int i = 0; i < prof.lives; i++) {
		uint64_t in_start = prof.cut_in_recovery && one_in(prof.cut_in_recovery) ? 1 + below(60) : 0;
		int s;

		if (prof.storm && one_in(prof.storm) && !storm())
			return;
		if (!has_lost && one_in(prof.lost))
			lose_files();
		s = start(false, in_start);
		if (s == 2 && !repair())
			return;
		if (s == 0)
			live(false);
	}
	for (int i = 0; i < 2; i++) {
		int s;

		ends = i == 1 || one_in(4);
		s = start(true, 0);
		if (s == 2 && !repair())
			return;
		if (s == 0)
			live(true);
	}
}

/* ---- exhaustive: one bad sector ---- */

/* The start goes on, or says where it is and what a repair drops; and goes on behind that. */
static void
start_without(int file, uint32_t page)
{
	int s;

	simdisk_unreadable(file, page);
	/* Data has one copy: that it cannot be read is told. */
	model_damaged = simdisk_is_data(file, page);
	rotten = ROT_LOG;
	s = start(true, 0);
	rotten = ROT_NONE;
	if (s == 0) {
		live(true);
		return;
	}
	if (open_result != -EIO || !strstr(open_error, "cannot be read") ||
	    !strstr(open_error, "; last resort: gantryd --fsck --repair"))
		sim_fail("a bad sector ends the start like this: %d %s", open_result, open_error);
	counts.sectors_told++;
	if (!repair())
		sim_fail("it does not start behind the repair: %d %s", open_result, open_error);
}

static void
exact_sector(void)
{
	enum end how = END_KILL;
	uint32_t page;
	int file;

	if (plan->end == 0) {
		run_until(clients_over, 0, &how);
		run_until(at_rest, 0, &how);
		clean_stop(0, &how);
		model_process_over();
		clients_begin();
	} else {
		die(plan->end == 1 ? END_KILL : END_CUT);
	}
	/* What the dead process has begun is over before anybody may start. */
	while (simdisk_late())
		simdisk_land_late(0);
	for (plan->ret_sectors = 0; simdisk_nth(plan->ret_sectors, &file, &page);)
		plan->ret_sectors++;
	/* A superblock that a cut left torn, and a bad sector in the other one, are two faults. */
	if (!simdisk_nth(plan->sector, &file, &page) || (plan->end == 2 && is_super(file, page)))
		return;
	counts.sectors++;
	start_without(file, page);
}

/* ---- exhaustive: one cut, everything chosen ---- */

static void exact_upgrade(void);

static void
exact(void)
{
	enum end how = END_CUT;
	uint64_t life = plan->cut_step < 0 ? 0 : (uint64_t)plan->cut_step + 1;

	start(true, 0);
	co_start(CO_CLIENT, 0, client_prepare);
	run_until(clients_over, 0, &how);
	steps = 0;
	ops_left = prof.ops;
	clients_start();
	if (run_until(clients_over, life, &how)) {
		uint64_t left = plan->cut_step < 0 ? MOVE_STEPS : life - steps;

		if (prof.pack_rate)
			run_until(all_moved, left ? left : 1, &how);
		else
			run_until(at_rest, plan->cut_step < 0 ? 0 : 60, &how);
	}
	plan->ret_steps = steps;
	if (plan->is_sector) {
		exact_sector();
		return;
	}
	simdisk_cut_mask = &plan->mask;
	die(END_CUT);
	plan->ret_units = simdisk_cut_units;
	if (plan->is_upgrade) {
		exact_upgrade();
		return;
	}
	steps = 0;
	if (plan->recovery_step >= 0) {
		simdisk_cut_mask = &plan->recovery_mask;
		if (start(true, (uint64_t)plan->recovery_step + 1) == 0)
			die(END_CUT);
		plan->ret_recovery_units = simdisk_cut_units;
	}
	simdisk_cut_mask = NULL;
	steps = 0;
	start(true, 0);
	plan->ret_recovery_steps = steps;
	live(true);
}

/* ---- exhaustive: the step from an older format version, cut anywhere ---- */

/* Gives both superblocks the number of an older version. */
static void
make_old(void)
{
	static uint8_t buf[FMT_SUPER_BYTES];
	struct super sb;
	uint64_t off;

	fmt_oldest = OLD_VERSION;
	for (uint32_t i = 0; i < 2; i++) {
		int file = super_place(&formatted, i, &off);

		for (uint32_t at = 0; at < FMT_SUPER_BYTES / PAGE; at++)
			memcpy(buf + at * PAGE, simdisk_page(file, (uint32_t)(off / PAGE) + at), PAGE);
		/* One that was cut while it was written stays as it is. */
		if (super_decode(buf, sizeof buf, &sb) != 0)
			continue;
		/* An older version has no such records. */
		if (sb.records_version)
			return;
		super_renumber(buf, OLD_VERSION);
		simdisk_put(file, off, buf, FMT_SUPER_BYTES);
	}
}

static void
upgrade_main(int nr)
{
	struct store_disk_conf dc = { .path = "sim" };
	struct store_conf conf = {
		.ops = &extent_ops, .disks.disk = &dc, .disks.nr = 1, .disks.lock_wait_ns = 3600 * NS_PER_S
	};

	open_result = store_task(&conf, TASK_UPGRADE, open_error, sizeof open_error);
}

/* True: it was not cut. */
static bool
upgrade(uint64_t life)
{
	enum end how = END_CUT;

	open_result = 0;
	co_start(CO_START, 0, upgrade_main);
	if (!run_until(start_over, life, &how)) {
		die(END_CUT);
		return false;
	}
	if (open_result < 0)
		sim_fail("the upgrade failed without a fault: %d %s", open_result, open_error);
	die(END_KILL);
	return true;
}

/* A start of what is not whole is refused, and changes nothing. */
static void
start_is_refused(void)
{
	enum end how = END_KILL;

	co_start(CO_START, 0, start_main);
	run_until(start_over, 0, &how);
	if (open_result == 0)
		return; /* the cut came behind the last write */
	if (open_result != -EINVAL)
		sim_fail("a start in the middle of an upgrade ended with %d %s", open_result, open_error);
	die(END_KILL);
}

static void
exact_upgrade(void)
{
	bool whole;

	make_old();
	steps = 0;
	simdisk_cut_mask = &plan->recovery_mask;
	whole = upgrade(plan->upgrade_step < 0 ? 0 : (uint64_t)plan->upgrade_step + 1);
	plan->ret_upgrade_steps = steps;
	plan->ret_recovery_units = simdisk_cut_units;
	simdisk_cut_mask = NULL;
	steps = 0;
	if (!whole) {
		start_is_refused();
		if (sim_store)
			die(END_KILL);
		upgrade(0);
	}
	start(true, 0);
	live(true);
}

static struct many_plan *many_plan;

void
history_run_exact(uint64_t seed, struct many_plan *p)
{
	many_plan = p;
	many_exact_profile(p->scenario);
	history_run(seed, NULL);
	many_plan = NULL;
	sim_events.is_on = sim_schedule.is_on = false;
}

void
history_run(uint64_t seed, struct plan *p)
{
	outcome = (struct sim_result){ .seed = seed };
	plan = p;
	steps = 0;
	rotten = ROT_NONE;
	rotted = ends = has_lost = false;
	old_log.file = -1;
	sim_machine = sim_boot = 0;
	env_begin(seed);
	simdisk_cut_mask = NULL;
	simdisk_faults = simdisk_soft = simdisk_refused = simdisk_log_refused = 0;
	simdisk_begin();
	model_begin();
	clients_begin();
	sim_store = NULL;
	counts.histories++;
	if (_setjmp(failed) == 0) {
		if (!prof.disks)
			format();
		if (many_plan)
			many_exact(many_plan);
		else if (prof.disks)
			many_run();
		else if (plan)
			exact();
		else
			lives();
	}
	co_now = NULL;
	sched_drop();
	rings_drop();
	sim_store = NULL;
	env_drop_memory();
	outcome.hash = trace_hash;
}
