/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements start and stop of a set, and the operations on one key. An operation on one key uses one engine
 * from its first call to its end. See set.h.
 */
#include "set/disk_names.h"

#include "model/quota.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

/* Reports a line of status for each disk, and stops at the first disk that fails. */
static int
set_upgrade(const struct store_conf *conf, char *said, size_t said_len)
{
	int r = set_check_conf(conf, said, said_len);
	size_t at = 0;

	for (int i = 0; r == 0 && i < conf->disks.nr; i++) {
		struct store_conf c = set_engine_conf(conf, i);

		if (at && at + 1 < said_len)
			said[at++] = '\n';
		r = store_task(&c, TASK_UPGRADE, said + at, said_len - at);
		at += strlen(said + at);
	}
	return r;
}

static int
set_task(const struct store_conf *conf, enum store_task task, char *said, size_t said_len)
{
	switch (task) {
	case TASK_CHECK_CONF:
		return set_check_conf(conf, said, said_len);
	case TASK_LOOK:
		return set_look(conf, said, said_len);
	case TASK_UPGRADE:
		return set_upgrade(conf, said, said_len);
	default:
		return set_forget(conf, said, said_len);
	}
}

static void
set_stop(struct store *st)
{
	struct set *s = set_of(st);

	set_move_end(s);
	set_table_end(s);
	set_members_end(s);
	quota_book_free(s->base.quotas);
	set_parts_fini(s);
	free(s);
}

/* Starts the engines. */
static int
start_disks(struct set *s, char *err, size_t err_len)
{
	struct set_found *f = malloc(sizeof *f);
	int r = f ? set_start_disks(&s->conf, f, err, err_len) : -ENOMEM;

	if (r == 0) {
		s->base.quotas = f->quotas;
		memcpy(s->counter, f->counter, (size_t)f->nr);
		set_members_begin(s, f);
		for (int i = 0; i < STORE_SLOT_NR; i++)
			set_assign(s, (unsigned)i, SET_PRIMARY, f->engine_of[f->table.home[i]]);
		set_replicas_begin(s, &f->table, f->engine_of, f->has_two);
		set_table_begin(s, &f->table, f->start_no);
	}
	free(f);
	return r;
}

/* Completes the reason in err, if a start failed because the process may not open enough file descriptors:
 * adds the path of a disk and the limit to raise, if err does not have them. */
static void
say_descriptors(const struct store_conf *conf, int error, char *err, size_t err_len)
{
	char why[512];
	bool has_disk = false;

	for (int i = 0; i < conf->disks.nr; i++)
		has_disk |= strstr(err, conf->disks.disk[i].path) != NULL;
	snprintf(why, sizeof why, "%s", err[0] ? err : strerror(-error));
	snprintf(err, err_len, "%s%s%s%s", has_disk ? "" : conf->disks.disk[0].path, has_disk ? "" : ": ",
		 why, strstr(why, "LimitNOFILE=") ? "" : "; raise LimitNOFILE= of the unit, or ulimit -n");
}

/* Returns true if all disks are there, and none has an object with an expiry. */
static bool
are_without_expiry(const struct set *s)
{
	bool are = !set_misses_some(s);

	for (int i = 0; i < set_engines(s); i++)
		are &= store_had_no_expiry(set_engine(s, i));
	return are;
}

static int
set_start(const struct store_conf *conf, struct store **ret_store, char *err, size_t err_len)
{
	int r = set_check_conf(conf, err, err_len);
	struct set *s = r == 0 ? calloc(1, sizeof *s) : NULL;

	if (!s)
		return r < 0 ? r : -ENOMEM;
	s->base.ops = &store_set_ops;
	s->conf = *conf;
	s->conf.disks.watch = &s->watch;
	for (int i = 0; i < STORE_DISKS_MAX; i++)
		s->counter[i] = (uint8_t)i;
	s->watch.failed = set_on_failed;
	set_parts_init(s);
	r = start_disks(s, err, err_len);
	s->conf.disks.disk = NULL;
	s->conf.disks.nr = 0;
	if (r == 0)
		r = set_move_begin(s, err, err_len);
	if (r == -EMFILE || r == -ENFILE)
		say_descriptors(conf, r, err, err_len);
	if (r < 0) {
		set_stop(&s->base);
		return r;
	}
	s->base.has_no_expiry = are_without_expiry(s);
	*ret_store = &s->base;
	return r;
}

/* ---- ports, in addition to ports.c ---- */

/* Returns the lane of a key: the index of the key's engine; -1: the set has one engine, or the disk is
 * missing. -EROFS: a change (`changes`) would be refused, because the disk has failed. A change of a key with
 * two copies is never refused here, because another disk may accept it. */
static int
set_lane(struct store_port *sp, const struct store_key *k, bool changes)
{
	struct set_port *p = set_port(sp);
	int error, home = p->nr > 1 ? set_primary(p->set, k) : SET_NOWHERE;
	struct store_key two;

	if (home == SET_NOWHERE)
		return -1;
	if (changes && !set_has_two(sp, k, &two) && !set_port_to_write(sp, k, &error))
		return error;
	return home;
}

/* ---- one key ---- */

static int
set_look_up(struct store_port *sp, const struct store_look *l, struct store_op *op)
{
	bool is_bucket = l->kind == LOOK_BUCKET || l->kind == LOOK_BUCKET_ATTRS;

	return is_bucket ? set_look_bucket(sp, l, op) : set_look_key(sp, l, op);
}

static int
set_apply(struct store_port *sp, const struct store_change *c, struct store_op *op)
{
	switch (c->act) {
	case ACT_CREATE_BUCKET:
		return set_bucket_create(sp, c, op);
	case ACT_DELETE_BUCKET:
		return set_bucket_delete(sp, c, op);
	case ACT_SET_BUCKET_ATTRS:
	case ACT_SET_QUOTA:
		return set_bucket_set(sp, c, op);
	default:
		check(c->act < ACT_CREATE_BUCKET);
		return set_change(sp, c, op);
	}
}

/* ---- state for operators ---- */

/* Requests a snapshot of every engine, even if an earlier one fails. Returns the first error. */
static int
set_snapshot(struct store *st)
{
	struct set *s = set_of(st);
	int r = 0;

	for (int i = 0; i < set_engines(s); i++) {
		int one = store_snapshot(set_engine(s, i));

		if (r == 0)
			r = one;
	}
	return r;
}

static void
set_reread(struct store_port *sp)
{
	struct set_port *p = set_port(sp);

	for (int i = 0; i < p->nr; i++)
		store_reread(port_engine(p, i));
}

static void
add_move(const struct set *s, int unit, struct store_unit_info *info)
{
	struct store_move_info move;
	bool moves;

	set_move_info(&s->base, &move);
	moves = (move.draining | move.filling) >> unit & 1;
	store_unit_add(info, "move_bytes_done", moves ? move.bytes_done : 0, !moves);
	store_unit_add(info, "move_bytes_total", moves ? move.bytes_total : 0, !moves);
	store_unit_add(info, "move_seconds_left", moves ? move.left_ns / NS_PER_S : 0, !moves);
	if (moves)
		info->move = move.draining >> unit & 1 ? "drain" : "fill";
	if (!moves || info->state != UNIT_OK)
		return;
	info->state = UNIT_MOVING;
	if (!info->reason[0] && move.trouble[0])
		snprintf(info->reason, sizeof info->reason, "its %s stands still: %.210s",
			 move.draining >> unit & 1 ? "draining" : "filling", move.trouble);
}

static void
set_unit_info(const struct store *st, int unit, struct store_unit_info *ret_info)
{
	const struct set *s = set_of(st);
	int engine = set_unit(s, unit)->engine;

	disk_look_unit(s, unit, ret_info);
	ret_info->uuid = set_unit(s, unit)->uuid;
	ret_info->store_uuid = set_store_uuid(s);
	disk_label(s, unit, ret_info->label);
	if (set_is_drained(s, unit)) {
		ret_info->state = UNIT_DRAINED;
		snprintf(ret_info->reason, sizeof ret_info->reason,
			 "it may be pulled; take it off store.disks before the next start");
	} else if (engine == SET_NOWHERE) {
		ret_info->state = UNIT_MISSING;
		snprintf(ret_info->reason, sizeof ret_info->reason, "it is missing since the start");
	} else {
		add_move(s, unit, ret_info);
	}
}

/* ---- the table ---- */

/* store.c passes operations on open objects and PUTs directly to the engine, except for keys with two copies. */
const struct store_ops store_set_ops = {
	.name = "set",
	.task = set_task,
	.format = set_format_disks,
	.start = set_start,
	.fsck = set_fsck,
	.stop = set_stop,
	.lane = set_lane,
	.attach = set_attach,
	.detach = set_detach,
	.turn = set_turn,
	.look = set_look_up,
	.close = set_close,
	.read_plan = set_read_plan,
	.read = set_read,
	.read_cancel = set_read_cancel,
	.obj_part = set_obj_part,
	.put_write = set_put_write,
	.write_cancel = set_write_cancel,
	.put_commit = set_put_commit,
	.put_abort = set_put_abort,
	.apply = set_apply,
	.put_init = set_put_init,
	.list = set_list,
	.snapshot = set_snapshot,
	.reread = set_reread,
	.change_disks = set_change_disks,
	.disks_info = set_disks_info,
	.background = set_background,
	.unit_info = set_unit_info,
};
