/*
 * The store's life: format, open, close, and what operators see.  A store is a set of disks; one today.
 */
#include "extent/extent.h"

#include "extent/extent_int.h"
#include "extent/disk/file.h"
#include "extent/disk/sync.h"
#include "base/check.h"
#include "base/clock.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINS_EXPECTED 16384
#define HELPERS_MAX 2

static int
check_conf(const struct store_conf *conf, char *err, size_t err_len)
{
	if (conf->disk_nr == 1)
		return 0;
	if (conf->disk_nr < 1)
		snprintf(err, err_len, "no disk is configured");
	else
		snprintf(err, err_len, "%d disks are configured; this version serves one disk per store",
			 conf->disk_nr);
	return -EINVAL;
}

int
extent_format(const struct store_conf *conf, bool force, char *err, size_t err_len)
{
	int e = check_conf(conf, err, err_len);

	for (int i = 0; e == 0 && i < conf->disk_nr; i++)
		e = disk_format(&conf->disks[i], force, err, err_len);
	return e;
}

/* ---- open ---- */

static void
disk_free(struct disk *d)
{
	if (!d)
		return;
	gc_fini(d);
	if (d->tree)
		records_drop_outside(d);
	dead_fini(d);
	tree_free(d->tree);
	alloc_free_all(d->alloc);
	pin_table_free(d->pins);
	disk_close(d);
	for (int i = 0; i < 2; i++)
		free(d->snap_space[i].ext);
	sync_free(d->block);
	free(d->flush_ops);
	pthread_mutex_destroy(&d->reason_lock);
	pthread_mutex_destroy(&d->helper_lock);
	pthread_cond_destroy(&d->helper_cond);
	free(d);
}

static struct disk *
disk_new(struct extent_store *st, int nr)
{
	struct disk *d = aligned_alloc(64, align_up(sizeof *d, 64));

	if (!d)
		return NULL;
	memset(d, 0, sizeof *d);
	d->st = st;
	d->nr = nr;
	d->dir_fd = d->super_fd = d->log_fd = -1;
	pthread_mutex_init(&d->reason_lock, NULL);
	pthread_mutex_init(&d->helper_lock, NULL);
	pthread_cond_init(&d->helper_cond, NULL);
	d->queue_end = &d->queue;
	d->dying_end = &d->dying;
	judge_reset(d);
	return d;
}

/* What needs the geometry. */
static int
disk_memory(struct disk *d)
{
	uint64_t seg_units = geo_seg_units(&d->geo), run = RUN_BYTES / d->geo.unit_bytes;
	int e;

	if (run > seg_units / 2)
		run = seg_units / 2;
	d->block = sync_alloc(d->geo.block_bytes);
	d->flush_ops = calloc(1 + (d->flush_all ? d->geo.seg_nr : 0), sizeof *d->flush_ops);
	if (!d->block || !d->flush_ops)
		return -ENOMEM;
	e = gc_init(d);
	if (e == 0)
		e = tree_new(d->st->index_bytes, d->st->quiesce, &d->tree);
	if (e == 0)
		e = alloc_new(geo_units(&d->geo), (uint32_t)seg_units, (uint32_t)run, &d->alloc);
	if (e == 0)
		e = pin_table_new(PINS_EXPECTED, &d->pins);
	return e;
}

static int
extent_new(const struct store_conf *conf, struct extent_store **ret_store)
{
	struct extent_store *st = calloc(1, sizeof *st);

	if (!st)
		return -ENOMEM;
	st->base.ops = &extent_ops;
	st->ports_max = conf->ports_max > 0 ? conf->ports_max : 1;
	st->index_bytes = conf->index_bytes / (uint64_t)conf->disk_nr;
	st->port = calloc((size_t)st->ports_max, sizeof(struct extent_port *));
	pthread_mutex_init(&st->ports_lock, NULL);
	if (!st->port || quiesce_new(st->ports_max + HELPERS_MAX, &st->quiesce) < 0) {
		extent_free(st);
		return -ENOMEM;
	}
	*ret_store = st;
	return 0;
}

void
extent_free(struct extent_store *st)
{
	if (!st)
		return;
	for (int i = 0; i < st->disk_nr; i++)
		disk_free(st->disk[i]);
	quiesce_free(st->quiesce);
	pthread_mutex_destroy(&st->ports_lock);
	free(st->port);
	free(st);
}

int
extent_open_with(const struct store_conf *conf, struct ring *r, struct recover_report *rep,
		 struct extent_store **ret_store, char *err, size_t err_len)
{
	struct extent_store *st = NULL;
	int e;

	err[0] = 0;
	e = check_conf(conf, err, err_len);
	if (e == 0)
		e = extent_new(conf, &st);
	if (e < 0)
		goto out;
	for (int i = 0; e == 0 && i < conf->disk_nr; i++) {
		struct disk *d = disk_new(st, i);

		if (!d) {
			e = -ENOMEM;
			break;
		}
		st->disk[st->disk_nr++] = d;
		e = disk_open(d, &conf->disks[i], r, conf->lock_wait_ns, err, err_len);
		if (e == 0)
			e = disk_memory(d);
		if (e == 0)
			e = recover_disk(d, r, rep, err, err_len);
	}
	if (e < 0)
		extent_free(st);
	else
		*ret_store = st;
out:
	if (e < 0 && !err[0])
		snprintf(err, err_len, "%s: %s", conf->disk_nr > 0 ? conf->disks[0].path : "store",
			 strerror(-e));
	return e;
}

int
extent_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	struct recover_report rep = { 0 };
	struct extent_store *st = NULL;
	struct ring *r;
	int e = ring_new(&(struct ring_params){ .entries = 64 }, &r);

	if (e < 0) {
		snprintf(err, err_len, "cannot make a ring: %s%s", strerror(-e),
			 e == -ENOMEM ? " (limit of locked memory: LimitMEMLOCK=, ulimit -l)" : "");
		return e;
	}
	e = extent_open_with(conf, r, &rep, &st, err, err_len);
	ring_free(r);
	for (int i = 0; e == 0 && i < st->disk_nr; i++)
		e = helper_start(st->disk[i]);
	if (e < 0 && st) {
		snprintf(err, err_len, "cannot start the helper thread: %s", strerror(-e));
		for (int i = 0; i < st->disk_nr; i++)
			helper_stop(st->disk[i]);
		extent_free(st);
	} else if (e == 0) {
		*ret_store = &st->base;
	}
	return e;
}

/* ---- close ---- */

/* A clean stop ends with a stamp: the next start need not read any data. */
static void
last_stamp(struct disk *d, struct ring *r)
{
	int e;

	if (disk_failed(d) || d->stamped >= d->last_records_seq || judge_room(d, 0, true) != ROOM_YES)
		return;
	judge_reset(d);
	d->head = (struct block_head){ .kind = BLOCK_RECORDS,
				       .len_bytes = FMT_ALIGN,
				       .used_bytes = BLOCK_HEAD_BYTES,
				       .epoch = d->next.epoch,
				       .seq = d->next.seq,
				       .lap = d->next.lap,
				       .pos = d->next.pos,
				       .prev_crc = d->next.prev_crc,
				       .flushed_upto = d->flushed_seq };
	block_seal(d->block, &d->head, d->next.nonce);
	e = sync_write(r, d->log_fd, d->block, d->head.len_bytes, d->log_off + d->head.pos);
	if (e == 0)
		e = disk_flush_sync(d, r);
	if (e < 0)
		log_warn("%s: the last stamp could not be written: %s", d->path, strerror(-e));
}

void
extent_stop(struct store *store)
{
	struct extent_store *st = extent_store(store);
	struct ring *r;

	if (!st)
		return;
	for (int i = 0; i < st->ports_max; i++)
		check(!st->port[i]);
	for (int i = 0; i < st->disk_nr; i++)
		helper_stop(st->disk[i]);
	if (ring_new(&(struct ring_params){ .entries = 64 }, &r) == 0) {
		for (int i = 0; i < st->disk_nr; i++)
			last_stamp(st->disk[i], r);
		ring_free(r);
	}
	extent_free(st);
}

/* ---- operators ---- */

int
extent_disk_nr(const struct store *store)
{
	const struct extent_store *st = extent_store(store);
	return st->disk_nr;
}

void
extent_disk_info(const struct store *store, int disk, struct store_disk_info *ret_info)
{
	const struct extent_store *st = extent_store(store);
	struct disk *d = st->disk[disk];
	struct store_disk_info info = { .path = d->path,
					.size_bytes = d->geo.size_bytes,
					.log_bytes = d->geo.log_bytes };
	struct alloc_stats as;
	struct tree_stats ts;

	alloc_stats(d->alloc, &as);
	tree_stats(d->tree, &ts);
	pthread_mutex_lock(&d->reason_lock);
	info.state = (enum store_disk_state)atomic_load(&d->state);
	memcpy(info.reason, d->reason, sizeof info.reason);
	pthread_mutex_unlock(&d->reason_lock);
	/* Segments not made yet are free as well. */
	info.free_bytes = (geo_units(&d->geo) - as.units + as.free + as.leased) * d->geo.unit_bytes;
	info.log_used_bytes = atomic_load(&d->log_used);
	info.objects = atomic_load(&d->stats.objects);
	info.index_bytes = ts.used_bytes;
	info.read_bytes = atomic_load(&d->stats.read_bytes);
	info.read_ops = atomic_load(&d->stats.read_ops);
	info.written_bytes = atomic_load(&d->stats.written_bytes);
	info.write_ops = atomic_load(&d->stats.write_ops);
	info.flushes = atomic_load(&d->stats.flushes);
	for (int io = 0; io < DISK_IO_NR; io++) {
		for (int i = 0; i < LATENCY_NR; i++)
			info.latency[io].buckets[i] = atomic_load(&d->stats.latency[io].buckets[i]);
		info.latency[io].sum_ns = atomic_load(&d->stats.latency[io].sum_ns);
	}
	info.errors = atomic_load(&d->stats.errors);
	info.crc_errors = atomic_load(&d->stats.crc_errors);
	info.commits = atomic_load(&d->stats.commits);
	info.records = atomic_load(&d->stats.records);
	info.snapshots = atomic_load(&d->stats.snapshots);
	info.snapshot_bytes = atomic_load(&d->stats.snapshot_bytes);
	info.snapshot_ns = atomic_load(&d->stats.snapshot_ns);
	/* In this order: what was asked for begins before it is not asked for any more. */
	info.snapshot_runs = atomic_load(&d->snap_asked);
	info.snapshot_runs |= atomic_load(&d->snap_state) != SNAP_IDLE;
	info.cut_records = atomic_load(&d->stats.cut_records);
	info.pins = pin_nr(d->pins);
	*ret_info = info;
}

const struct store_ops extent_ops = {
	.name = "disks",
	.format = extent_format,
	.start = extent_start,
	.fsck = extent_fsck,
	.stop = extent_stop,
	.attach = extent_attach,
	.detach = extent_detach,
	.quiesce = extent_quiesce,
	.sleep = extent_sleep,
	.wake = extent_wake,
	.open = extent_open,
	.close = extent_close,
	.read_plan = extent_read_plan,
	.read = extent_read,
	.put_init = extent_put_init,
	.put_write = extent_put_write,
	.put_commit = extent_put_commit,
	.put_abort = extent_put_abort,
	.delete = extent_delete,
	.set_attrs = extent_set_attrs,
	.upload_create = extent_upload_create,
	.upload_abort = extent_upload_abort,
	.upload_stat = extent_upload_stat,
	.put_init_part = extent_put_init_part,
	.upload_complete = extent_upload_complete,
	.list_parts = extent_list_parts,
	.obj_part = extent_obj_part,
	.obj_part_at = extent_obj_part_at,
	.bucket_create = extent_bucket_create,
	.bucket_delete = extent_bucket_delete,
	.bucket_head = extent_bucket_head,
	.bucket_set_attrs = extent_bucket_set_attrs,
	.bucket_get_attrs = extent_bucket_get_attrs,
	.list = extent_list,
	.list_uploads = extent_list_uploads,
	.snapshot = extent_snapshot,
	.disk_nr = extent_disk_nr,
	.disk_info = extent_disk_info,
};
