/* SPDX-License-Identifier: Apache-2.0 */
/* An engine as one of a set: its start in steps, each with a ring of its own, and the table in its superblock. */
#include "extent/engine.h"

#include "extent/disk/sync.h"
#include "extent/object/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
member_open(const struct store_conf *conf, struct store **ret_store, struct store_member *ret_member,
	    char *err, size_t err_len)
{
	struct extent_store *st;
	const struct super *sb;
	struct ring *r;
	int e;

	memset(ret_member, 0, sizeof *ret_member);
	e = sync_ring(&r, err, err_len);
	if (e < 0)
		return e;
	e = extent_open_disk(conf, r, NULL, &st, ret_member, err, err_len);
	ring_free(r);
	if (e < 0)
		return e;
	sb = &st->vol->disk.sb;
	memcpy(ret_member->store_uuid, sb->store_uuid, UUID_BYTES);
	ret_member->size_bytes = sb->geo.size_bytes;
	ret_member->start_no = sb->start_no;
	ret_member->is_behind = sb->is_behind;
	ret_member->table = &sb->table;
	*ret_store = &st->base;
	return 0;
}

static int
member_recover(struct store *store, const struct store_slots *slots, uint64_t index_bytes,
	       struct quota_book *quotas, int counter, uint64_t *ret_start_no, char *err, size_t err_len)
{
	struct extent_store *st = extent_store(store);
	struct ring *r;
	int e = sync_ring(&r, err, err_len);

	if (e < 0)
		return e;
	st->base.quotas = st->vol->quotas = quotas;
	st->vol->counter = counter;
	slots_free(st->vol->slots);
	st->vol->slots = NULL;
	e = slots ? slots_new(slots, &st->vol->slots) : 0;
	if (e == 0)
		e = vol_recover(st->vol, index_bytes, r, &st->rep, ret_start_no);
	ring_free(r);
	return engine_refuse(st, e, err, err_len);
}

static int
member_begin(struct store *store, uint64_t start_no, bool is_behind, char *err, size_t err_len)
{
	struct extent_store *st = extent_store(store);
	struct ring *r;
	int e = sync_ring(&r, err, err_len);

	if (e < 0)
		return e;
	st->vol->disk.sb.is_behind = is_behind;
	e = vol_begin(st->vol, start_no, r);
	st->has_begun = e == 0;
	ring_free(r);
	return engine_refuse(st, e, err, err_len);
}

static int
member_set_table(struct store *store, const struct disk_table *t, char *err, size_t err_len)
{
	struct disk *d = &extent_store(store)->vol->disk;
	struct ring *r;
	int e = sync_ring(&r, err, err_len);

	if (e < 0)
		return e;
	d->sb.table = *t;
	e = disk_write_table(d, r);
	ring_free(r);
	if (e < 0)
		snprintf(err, err_len, "%s: cannot write the superblock: %s", d->name, strerror(-e));
	return e;
}

static int
member_serve(struct store *store, char *err, size_t err_len)
{
	struct vol *vol = extent_store(store)->vol;
	int e = helper_start(&vol->helper);

	store->has_no_expiry = atomic_load(&vol->disk.records_version) < rec_version(REC_EXPIRES);
	return e < 0 ? refuse(err, err_len, e, "cannot start the helper thread: %s", strerror(-e)) : 0;
}

static void
member_put_table(struct store *store, const struct disk_table *t, struct store_table_write *w)
{
	struct vol *vol = extent_store(store)->vol;

	disk_ask_table(&vol->disk, t, w);
	helper_ring(&vol->helper);
}

static bool
member_has_failed(const struct store *store)
{
	return disk_failed(&extent_store(store)->vol->disk);
}

static void
member_two_use(const struct store *store, unsigned slot, struct store_use *ret_use)
{
	const struct slots *sl = extent_store(store)->vol->slots;

	*ret_use = (struct store_use){ 0 };
	if (!sl)
		return;
	ret_use->objects = atomic_load_explicit(&sl->two_objects[slot], memory_order_relaxed);
	ret_use->bytes = atomic_load_explicit(&sl->two_bytes[slot], memory_order_relaxed);
}

const struct store_member_ops extent_member_ops = {
	.open = member_open,
	.recover = member_recover,
	.begin = member_begin,
	.set_table = member_set_table,
	.serve = member_serve,
	.put_table = member_put_table,
	.has_failed = member_has_failed,
	.walk = extent_walk,
	.send = extent_send,
	.copy_commit = extent_copy_commit,
	.slots = extent_slots,
	.two_use = member_two_use,
};
