/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the state and the parts of uploads of keys with two copies. The result is a state of the primary that
 * both disks have (M16). The state of an upload is read first without the key lock, and read again with the
 * lock if the key was locked. Parts are listed with the lock, because a long list takes several steps.
 */
#include "set/replicas.h"

#include "set/map/set_rules.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_TRIES 2

struct look_two {
	struct set_port *port;
	struct store_op *op; /* operation of the caller */
	struct store_key key;
	struct set_hold hold;
	struct set_wait wait;
	int tries;
	uint8_t id[STORE_UPLOAD_ID_BYTES];
	/* Only one of `st` and `list` is used: `st` for the state of an upload, `list` for its parts. */
	struct store_stat *st;
	struct store_part_list *list; /* list of the caller */
	void *attrs;
	uint32_t cap;
	struct store_part_list mine;
	char name[STORE_BUCKET_MAX + STORE_KEY_MAX];
};

static void
look_free(struct look_two *lk)
{
	if (lk->hold.key)
		set_release(set_key_locks(port_set(lk->port)), &lk->hold);
	port_unpin(lk->port);
	free(lk);
}

static void
look_over(struct look_two *lk, int result)
{
	struct store_op *op = lk->op;

	if (lk->list)
		lk->list->more = result >= 0 && lk->mine.more;
	look_free(lk);
	op->result = result;
	op->done(op);
}

static int look(struct look_two *lk);

static void
look_again(struct look_two *lk)
{
	int r = look(lk);

	if (r != 0)
		look_over(lk, r < 0 ? r : lk->st ? lk->st->op.result : lk->mine.op.result);
}

static void
on_hold(struct msg *m)
{
	look_again(container_of(m, struct look_two, hold.msg));
}

static void
on_kept(struct msg *m)
{
	look_again(container_of(m, struct look_two, wait.msg));
}

static bool
on_part(struct store_part_list *pl, const struct store_part *part)
{
	struct look_two *lk = container_of(pl, struct look_two, mine);

	return lk->list->part(lk->list, part);
}

static void
on_list(struct store_op *op)
{
	look_over(container_of(container_of(op, struct store_part_list, op), struct look_two, mine),
		  op->result);
}

/* Lists parts. Returns 1 if the list is complete, 0 if the list is in progress, or -errno. */
static int
list(struct look_two *lk, struct store_port *e)
{
	lk->mine.op.done = on_list;
	lk->mine.part = on_part;
	lk->mine.after = lk->list->after;
	lk->mine.max = lk->list->max;
	return e->ops->list_parts(e, &lk->key, lk->id, &lk->mine);
}

/* Starts the read. Returns 1 if the read is complete, 0 if the read is in progress, or -errno. */
static int
look_at(struct look_two *lk, int home)
{
	struct store_port *e = port_engine(lk->port, home);
	bool is_there;
	int r;

	/* M39: a failed disk is not asked about the contents of a bucket that has changed since the
	 * failure. */
	if (set_has_missed(port_set(lk->port), home, lk->key.bucket, lk->key.bucket_len, &is_there))
		return is_there ? -ENOENT : -ENXIO;
	if (lk->list)
		return list(lk, e);
	r = e->ops->upload_stat(e, &lk->key, lk->id, lk->attrs, lk->cap, lk->st);
	check(r != 0);
	return r;
}

/* Takes the key lock. Returns 1 if the lock is held, 0 if the wait for the lock has begun, or -errno. */
static int
hold(struct look_two *lk)
{
	int r;

	lk->hold.mb = port_mailbox(lk->port);
	lk->hold.go = on_hold;
	r = set_hold(set_key_locks(port_set(lk->port)), &lk->key, &lk->hold);
	return r < 0 ? -EAGAIN : r;
}

static int
look(struct look_two *lk)
{
	struct set *s = port_set(lk->port);
	int home = set_primary(s, &lk->key), r;

	if (home == SET_NOWHERE)
		return -ENODEV;
	if (lk->hold.key && set_is_open(&lk->hold))
		return -EAGAIN;
	/* The disk has failed, and another disk may have a newer record: the read waits for the recovery
	 * task, and tries again. */
	if (!set_is_in(s, home) && lk->tries++ < FAILED_TRIES) {
		lk->wait.mb = port_mailbox(lk->port);
		lk->wait.go = on_kept;
		set_wait_kept(s, &lk->wait);
		return 0;
	}
	if (lk->list && RULE_SETTLED_VISIBLE && !lk->hold.key) {
		r = hold(lk);
		if (r <= 0)
			return r;
	}
	r = look_at(lk, home);
	if (r < 0 || lk->list || lk->hold.key || !RULE_SETTLED_VISIBLE ||
	    !set_is_held(set_key_locks(s), &lk->key))
		return r;
	r = hold(lk);
	return r > 0 ? look(lk) : r;
}

static int
begin(struct look_two *lk, struct set_port *p, const struct store_key *k, const uint8_t *id,
      struct store_op *op)
{
	int r;

	op->port = port_base(p);
	lk->op = op;
	lk->port = p;
	lk->key = *k;
	lk->key.bucket = memcpy(lk->name, k->bucket, k->bucket_len);
	lk->key.key = memcpy(lk->name + k->bucket_len, k->key, k->key_len);
	memcpy(lk->id, id, sizeof lk->id);
	port_pin(p);
	r = look(lk);
	if (r == 0)
		return 0;
	if (r < 0) {
		op->result = r;
	} else if (lk->list) {
		op->result = lk->mine.op.result;
		lk->list->more = lk->mine.more;
	}
	look_free(lk);
	return 1;
}

int
set_two_upload_stat(struct set_port *p, const struct store_key *k, const uint8_t *id, void *attrs,
		    uint32_t cap, struct store_stat *st)
{
	struct look_two *lk = calloc(1, sizeof *lk);

	if (!lk)
		return -EAGAIN;
	lk->st = st;
	lk->attrs = attrs;
	lk->cap = cap;
	return begin(lk, p, k, id, &st->op);
}

int
set_two_list_parts(struct set_port *p, const struct store_key *k, const uint8_t *id,
		   struct store_part_list *pl)
{
	struct look_two *lk = calloc(1, sizeof *lk);

	if (!lk)
		return -EAGAIN;
	lk->list = pl;
	pl->more = false;
	return begin(lk, p, k, id, &pl->op);
}
