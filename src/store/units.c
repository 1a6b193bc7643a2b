/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of units.h: each calls the function of the back end with the same name. No state. */
#include "store/ops.h"
#include "store/units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool
store_has_snapshots(const struct store *st)
{
	return st->ops->snapshot != NULL;
}

bool
store_had_no_expiry(const struct store *st)
{
	return st->has_no_expiry;
}

int
store_snapshot(struct store *st)
{
	return st->ops->snapshot ? st->ops->snapshot(st) : -EOPNOTSUPP;
}

const char *
store_background(const struct store *st)
{
	return st->ops->background ? st->ops->background(st) : NULL;
}

void
store_reread(struct store_port *p)
{
	if (p->ops->reread)
		p->ops->reread(p);
}

const char *
store_name(const struct store *st)
{
	return st->ops->name;
}

int
store_change_disks(struct store *st, const struct store_disk_change *c, char *said, size_t said_len)
{
	if (st->ops->change_disks)
		return st->ops->change_disks(st, c, said, said_len);
	snprintf(said, said_len, "a store on %s has no disks that come and go", st->ops->name);
	return -EOPNOTSUPP;
}

void
store_move_info(const struct store *st, struct store_move_info *ret_info)
{
	*ret_info = (struct store_move_info){ .is_running = false };
	if (st->ops->disks_info)
		st->ops->disks_info(st, ret_info, NULL);
}

void
store_copies_info(const struct store *st, struct store_copies_info *ret_info)
{
	*ret_info = (struct store_copies_info){ .is_used = false };
	if (st->ops->disks_info)
		st->ops->disks_info(st, NULL, ret_info);
}

void
store_set_move_rate(struct store *st, uint64_t bytes)
{
	const struct store_disk_change c = { .kind = DISK_MOVE_RATE, .rate = bytes };
	char said[1];

	if (st->ops->change_disks)
		st->ops->change_disks(st, &c, said, sizeof said);
}

int
store_unit_nr(const struct store *st)
{
	return atomic_load(&st->unit_nr);
}

bool
store_is_fenced(const struct store *st)
{
	char why[1];

	return st->ops->answers && st->ops->answers(st, why, sizeof why) == STORE_IS_FENCED;
}

bool
store_answers(const struct store *st, char *why, size_t len)
{
	return !st->ops->answers || st->ops->answers(st, why, len) == STORE_ANSWERS;
}

void
store_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info)
{
	st->ops->unit_info(st, unit, ret_info);
	if (!ret_info->label[0])
		snprintf(ret_info->label, sizeof ret_info->label, "%s", ret_info->name);
}

uint64_t
store_unit_number(const struct store_unit_info *info, const char *name)
{
	for (int i = 0; i < info->number_nr; i++) {
		if (strcmp(info->number[i].name, name) == 0)
			return info->number[i].value;
	}
	return 0;
}
