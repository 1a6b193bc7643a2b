/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's life: format, open, close; what operators see; and its table of functions. */
#include "extent/engine.h"

#include "extent/disk/file.h"
#include "extent/disk/sync.h"
#include "extent/object/object.h"
#include "base/check.h"
#include "store/meter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELPERS_MAX 2

static int
extent_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	struct store_birth *birth = conf->disks.birth;

	if (birth)
		birth->meter = meter_of(conf->disks.meter, conf->disks.disk[0].path);
	return disk_format(&conf->disks.disk[0], conf->disks.index_bytes, birth, force, err, err_len);
}

/* Makes the step to the format of this version, the only task of an engine. */
static int
extent_task(const struct store_conf *conf, enum store_task task, char *said, size_t said_len)
{
	const struct store_disk_conf *dc = &conf->disks.disk[0];
	struct disk d;
	struct ring *r;
	uint32_t was;
	int e = task == TASK_UPGRADE ? sync_ring(&r, said, said_len) : -ENOSYS;

	if (e < 0)
		return e;
	disk_init(&d);
	e = disk_open(&d, dc, r, conf->disks.lock_wait_ns);
	was = d.sb.version;
	if (e == 0 && d.is_old)
		e = host_wait(&d.host, r, d.name, d.why, sizeof d.why);
	/* Nobody begins it beside this one, nor starts what this one has half done. */
	if (e == 0 && d.is_old)
		e = disk_claim(&d, r, UINT64_MAX);
	if (e == 0 && d.is_old && (e = disk_write_supers(&d, r)) < 0)
		disk_refuse(&d, e, "the step to format %u failed: %s", FMT_VERSION, strerror(-e));
	if (e < 0)
		snprintf(said, said_len, "%s", d.why);
	else if (!d.is_old)
		snprintf(said, said_len, "%s: is of format %u already", d.name, FMT_VERSION);
	else if (was < FMT_VERSION)
		snprintf(said, said_len, "%s: was of format %u, is of format %u now", d.name, was,
			 FMT_VERSION);
	else
		snprintf(said, said_len, "%s: the step to format %u, which was begun before, is over", d.name,
			 FMT_VERSION);
	disk_release(&d, r);
	disk_fini(&d);
	ring_free(r);
	return e;
}

/* ---- open ---- */

static int
extent_new(const struct store_conf *conf, struct extent_store **ret_store)
{
	struct extent_store *st = calloc(1, sizeof *st);

	check(conf->disks.nr == 1);
	if (!st)
		return -ENOMEM;
	st->base.ops = &extent_ops;
	st->base.unit_nr = 1;
	st->ports_max = conf->ports_max > 0 ? conf->ports_max : 1;
	st->port = calloc((size_t)st->ports_max, sizeof(struct extent_port *));
	pthread_mutex_init(&st->ports_lock, NULL);
	if (!st->port || vol_new(st->ports_max + HELPERS_MAX, &st->vol) < 0) {
		extent_free(st);
		return -ENOMEM;
	}
	st->vol->disk.watch = conf->disks.watch;
	st->vol->disk.is_examined = conf->disks.is_examined;
	st->vol->mover.rate = conf->disks.pack_rate;
	/* The only one is waited for: nothing is served by giving it up. */
	st->vol->disk.timeout_ns = conf->disks.beside > 0 ? conf->disks.timeout_ns : 0;
	st->vol->disk.workers_max = conf->disks.beside > 0 ? RING_WORKERS / 2 : 0;
	st->vol->above = st;
	st->vol->kick = port_kick;
	st->vol->space = port_kick_all;
	*ret_store = st;
	return 0;
}

void
extent_free(struct extent_store *st)
{
	vol_free(st->vol);
	pthread_mutex_destroy(&st->ports_lock);
	free(st->port);
	free(st);
}

int
engine_refuse(struct extent_store *st, int e, char *err, size_t err_len)
{
	struct disk *d = &st->vol->disk;

	if (e == 0)
		return 0;
	if (!d->why[0])
		snprintf(d->why, sizeof d->why, "%s: %s", d->path, strerror(-e));
	e = sync_no_room(e, d->why, sizeof d->why);
	snprintf(err, err_len, "%s", d->why);
	return e;
}

int
extent_open_disk(const struct store_conf *conf, struct ring *r, struct recover_report *rep,
		 struct extent_store **ret_store, struct store_member *ret_who, char *err, size_t err_len)
{
	const struct store_disk_conf *dc = &conf->disks.disk[0];
	struct extent_store *st;
	int e = extent_new(conf, &st);

	memset(ret_who, 0, sizeof *ret_who);
	if (e < 0)
		return refuse(err, err_len, e, "%s: %s", dc->path, strerror(-e));
	rep = rep ? rep : &st->rep;
	rep->meter = meter_of(conf->disks.meter, dc->path);
	e = engine_refuse(st, vol_open(st->vol, dc, conf->disks.lock_wait_ns, r, rep), err, err_len);
	memcpy(ret_who->uuid, st->vol->disk.uuid, UUID_BYTES);
	ret_who->is_made = st->vol->disk.has_super;
	if (e < 0)
		extent_free(st);
	else
		*ret_store = st;
	return e;
}

/* ---- close ---- */

static void
extent_stop(struct store *store)
{
	struct extent_store *st = extent_store(store);
	struct ring *r;

	for (int i = 0; i < st->ports_max; i++)
		check(!st->port[i]);
	helper_stop(&st->vol->helper);
	if (st->has_begun && ring_new(&(struct ring_params){ .entries = 64 }, &r) == 0) {
		vol_last_stamp(st->vol, r);
		disk_release(&st->vol->disk, r);
		ring_free(r);
	}
	extent_free(st);
}

/* ---- operators ---- */

static int
extent_snapshot(struct store *store)
{
	struct extent_store *st = extent_store(store);

	atomic_store(&st->vol->snap.asked, true);
	atomic_store(&st->vol->want_lead, true);
	port_kick_all(st);
	return 0;
}

static void
extent_reread(struct store_port *sp)
{
	reread_ask(extent_port(sp)->vp.vol);
}

/* Each would have a unit of its own. */
static uint64_t
packed_saved(const struct vol *vol)
{
	uint64_t nr = atomic_load(&vol->packs.packed_nr), units = atomic_load(&vol->packs.unit_nr);

	return nr > units ? (nr - units) * vol->disk.geo.unit_bytes : 0;
}

/* The state of the disk, and why it is so, or what is not as it should be although it serves. */
static void
add_state(struct vol *vol, struct store_unit_info *info)
{
	struct disk *d = &vol->disk;
	uint32_t odd_nr, load = atomic_load_explicit(&vol->snap.load, memory_order_relaxed);
	unsigned bad;

	pthread_mutex_lock(&d->reason_lock);
	info->state = (enum store_unit_state)atomic_load(&d->state);
	snprintf(info->reason, sizeof info->reason, "%s", d->reason);
	pthread_mutex_unlock(&d->reason_lock);
	if (info->state != UNIT_OK)
		return;
	if (atomic_load(&d->path_place) != PLACE_SAME)
		snprintf(info->reason, sizeof info->reason,
			 "its path leads elsewhere, although the disk is open and whole: the next start will "
			 "not find it");
	else if (atomic_load(&vol->snap.one_left))
		snprintf(info->reason, sizeof info->reason,
			 "there is only one snapshot: no room for another, or it was damaged");
	else if ((bad = atomic_load(&vol->reread.bad)) != 0)
		snprintf(info->reason, sizeof info->reason,
			 "damaged on the disk, and not yet rewritten:%s%s%s",
			 bad & REREAD_SUPER ? " a superblock" : "",
			 bad & REREAD_SNAPSHOT ? " a snapshot" : "", bad & REREAD_LOG ? " the log" : "");
	else if (!atomic_load(&d->layout.is_through) && (odd_nr = atomic_load(&d->layout.odd_nr)) != 0)
		snprintf(info->reason, sizeof info->reason,
			 "%u segments were copied with holes or shared blocks: slower until they are "
			 "rewritten",
			 odd_nr);
	else if (load)
		snprintf(info->reason, sizeof info->reason,
			 "snapshots write %u.%u times what the log does: it was formatted too small for so "
			 "many "
			 "objects",
			 load / 10, load % 10);
}

static void
add_disk(struct disk *d, struct store_unit_info *info)
{
	struct alloc_stats as;
	uint64_t room, held;

	alloc_stats(d->alloc, &as);
	/* Segments not made yet are free as well; what is held back for snapshots is not. */
	room = geo_units(&d->geo) - as.units + as.free + as.leased;
	held = as.held_back < room ? as.held_back : room;
	info->free_bytes = (room - held) * d->geo.unit_bytes;
	info->own_bytes = info->size_bytes - (geo_units(&d->geo) - held) * d->geo.unit_bytes;
	info->read_bytes = atomic_load(&d->stats.read_bytes);
	info->read_ops = atomic_load(&d->stats.read_ops);
	info->written_bytes = atomic_load(&d->stats.written_bytes);
	info->write_ops = atomic_load(&d->stats.write_ops);
	info->flushes = atomic_load(&d->stats.flushes);
	for (int io = 0; io < DISK_IO_NR; io++)
		latency_read(&d->stats.latency[io], info->latency[io].buckets, &info->latency[io].sum_ns);
	info->errors = atomic_load(&d->stats.errors);
}

static void
add_objects(struct vol *vol, struct store_unit_info *info)
{
	const struct slots *sl = vol->slots;
	/* What is left over is counted as an object as well, a moment earlier. */
	uint64_t left = sl ? atomic_load(&sl->left_objects[0]) : 0;
	uint64_t copies = sl ? atomic_load(&sl->left_objects[1]) : 0;
	uint64_t objects = atomic_load(&vol->stats.objects);

	store_unit_add(info, "objects", objects > left + copies ? objects - left - copies : 0, false);
	store_unit_add(info, "leftover_objects", left, true);
	store_unit_add(info, "leftover_bytes", sl ? atomic_load(&sl->left_bytes[0]) : 0, true);
	/* Of keys with two copies, which another disk has first. */
	store_unit_add(info, "copy_objects", copies, true);
	store_unit_add(info, "copy_bytes", sl ? atomic_load(&sl->left_bytes[1]) : 0, true);
	store_unit_add(info, "copy_uploads", sl ? atomic_load(&sl->left_uploads[1]) : 0, true);
	store_unit_add(info, "leftover_uploads", sl ? atomic_load(&sl->left_uploads[0]) : 0, true);
}

/* Returns true if a snapshot is asked for or being made.  In this order: the state changes before the request is forgotten. */
static bool
snapshot_runs(const struct vol *vol)
{
	return atomic_load(&vol->snap.asked) || atomic_load(&vol->snap.state) != SNAP_IDLE;
}

static void
extent_unit_info(const struct store *store, int unit, struct store_unit_info *ret_info)
{
	struct vol *vol = extent_store(store)->vol;
	struct disk *d = &vol->disk;
	struct store_unit_info info = { .name = d->path, .size_bytes = d->geo.size_bytes };
	uint64_t used = tree_used_bytes(vol->tree);

	add_state(vol, &info);
	add_disk(d, &info);
	steps_info(vol, info.commit);
	store_unit_add(&info, "log_bytes", d->geo.log_bytes, false);
	store_unit_add(&info, "log_used_bytes", atomic_load(&vol->log_used), false);
	add_objects(vol, &info);
	store_unit_add(&info, "index_bytes", used, false);
	store_unit_add(&info, "index_max_bytes", tree_max_bytes(vol->tree), false);
	/* The leaves of a tree that is made again are of all sizes. */
	store_unit_add(&info, "index_start_bytes", used + used / 16, false);
	/* What shares units, and how many these are; what could, but has one of its own. */
	store_unit_add(&info, "packed_objects", atomic_load(&vol->packs.packed_nr), false);
	store_unit_add(&info, "packed_units", atomic_load(&vol->packs.unit_nr), false);
	store_unit_add(&info, "loose_objects", atomic_load(&vol->packs.loose_nr), false);
	store_unit_add(&info, "packed_bytes_saved", packed_saved(vol), false);
	store_unit_add(&info, "packed_moves", atomic_load(&vol->packs.moved_nr), false);
	store_unit_add(&info, "commits", atomic_load(&vol->stats.commits), false);
	store_unit_add(&info, "records", atomic_load(&vol->stats.records), false);
	store_unit_add(&info, "snapshots", atomic_load(&vol->stats.snapshots), false);
	/* Of the newest one made since the start: size, and how long it took. */
	store_unit_add(&info, "snapshot_bytes", atomic_load(&vol->stats.snapshot_bytes), true);
	store_unit_add(&info, "snapshot_ns", atomic_load(&vol->stats.snapshot_ns), true);
	store_unit_add(&info, "snapshot_runs", snapshot_runs(vol), true);
	store_unit_add(&info, "metadata_checks", atomic_load(&vol->reread.ended), true);
	store_unit_add(&info, "metadata_damaged", atomic_load(&vol->reread.found), false);
	store_unit_add(&info, "segments_to_rewrite", atomic_load(&d->layout.odd_nr), false);
	store_unit_add(&info, "cut_records", atomic_load(&vol->stats.cut_records), false);
	store_unit_add(&info, "crc_errors", atomic_load(&d->stats.crc_errors), false);
	store_unit_add(&info, "oldest_wait_us", disk_writes_wait_ns(d) / NS_PER_US, true);
	store_unit_add(&info, "space_refused", atomic_load(&d->stats.space_refused), true);
	store_unit_add(&info, "no_room", (uint64_t)-disk_lacks(d), true);
	store_unit_add(&info, "path_elsewhere", atomic_load(&d->path_place) != PLACE_SAME, true);
	store_unit_add(&info, "index_refused", atomic_load(&d->stats.index_refused), true);
	store_unit_add(&info, "pins", pin_nr(vol->pins), false);
	*ret_info = info;
}

/* A disk that has failed does nothing any more.  Packing before removal, which it makes work for. */
static const char *
extent_background(const struct store *store)
{
	struct vol *vol = extent_store(store)->vol;

	if (disk_failed(&vol->disk))
		return NULL;
	if (mover_has_work(vol))
		return "packing";
	if (snapshot_runs(vol))
		return "log";
	return atomic_load(&vol->dead_nr) ? "removal" : NULL;
}

/* ---- the table ---- */

static int
extent_look(struct store_port *p, const struct store_look *l, struct store_op *op)
{
	static int (*const look[LOOK_NR])(struct store_port *, const struct store_look *,
					  struct store_op *) = {
		[LOOK_OBJECT] = extent_open,        [LOOK_PART] = extent_open_part,
		[LOOK_UPLOAD] = extent_upload_stat, [LOOK_PARTS] = extent_list_parts,
		[LOOK_BUCKET] = extent_bucket_head, [LOOK_BUCKET_ATTRS] = extent_bucket_get_attrs,
		[LOOK_PUT] = extent_open_put,
	};

	op->port = p;
	return l->is_second ? -ENODATA : look[l->kind](p, l, op);
}

const struct store_ops extent_ops = {
	.name = "disks",
	.task = extent_task,
	.format = extent_format,
	.fsck = extent_fsck,
	.stop = extent_stop,
	.attach = extent_attach,
	.detach = extent_detach,
	.turn = extent_turn,
	.look = extent_look,
	.close = extent_close,
	.read_plan = extent_read_plan,
	.read = extent_read,
	.put_init = extent_put_init,
	.put_write = extent_put_write,
	.put_commit = extent_put_commit,
	.put_abort = extent_put_abort,
	.apply = extent_apply,
	.obj_part = extent_obj_part,
	.list = extent_list,
	.snapshot = extent_snapshot,
	.reread = extent_reread,
	.unit_info = extent_unit_info,
	.background = extent_background,
	.member = &extent_member_ops,
};
