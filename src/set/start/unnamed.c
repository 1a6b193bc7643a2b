/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens members that the configuration does not name: disks that were added while the daemon served, and have
 * no line in the file yet. The record (store/record.h) has the UUID and the last path of each member. The
 * disk at that path is used only if it has this UUID and belongs to this store.
 */
#include "set/start/start_int.h"

#include "base/path.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool
is_wanted(const struct start *s, const struct store_record_disk *r)
{
	for (int i = 0; i < s->conf->disks.forget_nr; i++) {
		if (memcmp(s->conf->disks.forget[i], r->uuid, UUID_BYTES) == 0)
			return false;
	}
	for (int i = 0; i < s->nr; i++) {
		if (memcmp(s->disk[i].id.uuid, r->uuid, UUID_BYTES) == 0 ||
		    path_leads_same(start_path(&s->disk[i]), r->path))
			return false;
	}
	return r->path[0];
}

void
start_open_unnamed(struct start *s)
{
	const struct store_record *record = s->conf->disks.record;

	for (int i = 0; record && i < record->nr && s->nr < STORE_DISKS_MAX; i++) {
		const struct store_record_disk *r = &record->disk[i];
		struct disk *d = &s->disk[s->nr];

		if (!is_wanted(s, r))
			continue;
		d->of = s;
		d->unnamed = r;
		d->unnamed_conf = (struct store_disk_conf){ .path = r->path };
		d->conf = s->disk[0].conf;
		d->conf.disks.disk = &d->unnamed_conf;
		s->nr++;
		d->error = start_open_one(d);
	}
}

void
start_leave_unnamed(struct start *s)
{
	for (int i = 0; i < s->nr; i++) {
		struct disk *d = &s->disk[i];
		int number = d->unnamed ? table_find(&s->table, d->unnamed->uuid) : 0;
		char name[DISK_NAME_BYTES];

		if (!d->unnamed || d->is_drained)
			continue;
		if (number < 0) {
			store_stop(d->st);
			d->st = NULL;
			d->is_out = d->is_drained = true;
		} else if (d->st) {
			log_warn("disk %s is used from where it was, and store.disks does not name it",
				 disk_name_of(name, d->unnamed->uuid, start_path(d)));
		}
	}
}
