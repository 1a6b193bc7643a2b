/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, opens, starts and frees a volume; see vol.h. */
#include "extent/log/vol.h"

#include "extent/disk/sync.h"
#include "extent/log/recover.h"
#include "store/damage.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PINS_EXPECTED 16384

int
vol_new(int users_max, struct vol **ret_vol)
{
	size_t bytes = align_up(sizeof(struct vol) + (size_t)users_max * sizeof(struct port_steps), 64);
	struct vol *vol = aligned_alloc(64, bytes);

	if (!vol)
		return -ENOMEM;
	memset(vol, 0, bytes);
	vol->port_steps_nr = users_max;
	disk_init(&vol->disk);
	helper_init(&vol->helper, &vol->disk, vol_upkeep);
	vol->leader.queue_end = &vol->leader.queue;
	vol->leader.dying_end = &vol->leader.dying;
	block_reset(vol);
	if (quiesce_new(users_max, &vol->quiesce) < 0) {
		vol_free(vol);
		return -ENOMEM;
	}
	*ret_vol = vol;
	return 0;
}

void
vol_free(struct vol *vol)
{
	if (!vol)
		return;
	recover_free(vol);
	gc_fini(vol);
	free(vol->reread.buf);
	mover_fini(vol);
	if (vol->tree)
		records_drop_outside(vol);
	dead_fini(vol);
	tree_free(vol->tree);
	pin_table_free(vol->pins);
	quiesce_free(vol->quiesce);
	pack_fini(vol);
	disk_fini(&vol->disk);
	helper_fini(&vol->helper);
	for (int i = 0; i < 2; i++)
		free(vol->snap.space[i].ext);
	free(vol->block.mem);
	free(vol->flush.ops);
	slots_free(vol->slots);
	free(vol);
}

/* Allocates the structures that depend on the geometry. */
static int
make_memory(struct vol *vol)
{
	const struct disk *d = &vol->disk;
	int e;

	vol->block.mem = sync_alloc(d->geo.block_bytes);
	vol->flush.ops = calloc(1 + (d->is_device ? 0 : (size_t)d->geo.seg_nr), sizeof *vol->flush.ops);
	if (!vol->block.mem || !vol->flush.ops)
		return -ENOMEM;
	e = gc_init(vol);
	if (e == 0)
		e = tree_new(vol->index_bytes, vol->quiesce, &vol->tree);
	if (e == 0)
		e = pin_table_new(PINS_EXPECTED, &vol->pins);
	if (e == 0)
		e = pack_init(vol);
	return e;
}

/* Refuses a disk of an older format: a start would write the current format version, a step that only
 * --upgrade takes. */
static int
refuse_old(struct disk *d)
{
	if (d->sb.version >= FMT_VERSION)
		return disk_refuse(
			d, -EINVAL,
			"the step to format %u was begun and is not over; gantryd --upgrade ends it",
			FMT_VERSION);
	return disk_refuse(
		d, -EINVAL,
		"the store is of format %u, this version serves format %u; gantryd --upgrade makes the "
		"step, after which earlier versions refuse it",
		d->sb.version, FMT_VERSION);
}

/* Checks whether another process may have the disk open. A check that only reads reports this, and
 * continues. */
static int
ask_for_host(struct vol *vol, struct ring *r, struct recover_report *rep)
{
	struct host *h = &vol->disk.host;
	char who[160];

	if (!rep->check_only)
		return host_wait(h, r, vol->disk.name, vol->disk.why, sizeof vol->disk.why);
	host_text(h, who, sizeof who);
	if (who[0])
		report(rep, "%s: %s has it open, or did not close it", vol->disk.name, who);
	if (h->damaged)
		report(rep, "%s: the host block is damaged; a start rewrites it", vol->disk.name);
	return 0;
}

int
vol_open(struct vol *vol, const struct store_disk_conf *dc, uint64_t lock_wait_ns, struct ring *r,
	 struct recover_report *rep)
{
	int e;

	vol->disk.is_lenient = rep->repair;
	e = disk_open(&vol->disk, dc, r, lock_wait_ns);
	rep->disk = e == 0 && rep->damage ? damage_disk(rep->damage, vol->disk.name) : rep->disk;
	if (e == 0 && vol->disk.is_old && !rep->check_only)
		e = refuse_old(&vol->disk);
	if (e == 0 && vol->disk.read_only)
		report(rep,
		       "%s: opened for reading only (%s): no proof that no daemon has it open, and what one "
		       "writes meanwhile looks like damage",
		       vol->disk.name, strerror(-vol->disk.read_only));
	if (e == 0)
		e = ask_for_host(vol, r, rep);
	if (e == 0 && rep->repair && !rep->check_only)
		e = disk_mend_log(&vol->disk, r);
	return e;
}

int
vol_recover(struct vol *vol, uint64_t index_bytes, struct ring *r, struct recover_report *rep,
	    uint64_t *ret_start_no)
{
	int e;

	vol->index_bytes = index_bytes;
	vol->disk.why[0] = 0;
	e = make_memory(vol);
	if (e == 0)
		e = recover(vol, r, rep, ret_start_no);
	return e;
}

int
vol_begin(struct vol *vol, uint64_t start_no, struct ring *r)
{
	int e;

	vol->disk.why[0] = 0;
	e = recover_begin(vol, start_no, r);
	recover_free(vol);
	return e == 0 ? disk_layout_in_use(&vol->disk) : e;
}

void
vol_last_stamp(struct vol *vol, struct ring *r)
{
	const struct leader *ld = &vol->leader;
	struct disk *d = &vol->disk;
	int e;

	if (disk_failed(d) || ld->stamped >= ld->last_records_seq || block_room(vol, 0, true) != ROOM_YES)
		return;
	block_reset(vol);
	block_make_head(vol);
	e = sync_write(r, d->log.fd, vol->block.mem, vol->block.head.len_bytes,
		       d->log_off + vol->block.head.pos);
	if (e == 0)
		e = disk_flush_sync(d, r);
	if (e == 0)
		atomic_store(&d->log_seq, vol->block.head.seq);
	if (e < 0)
		log_warn("%s: the last stamp could not be written: %s", d->name, strerror(-e));
}
