/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a set tells an engine about slots, and asks it: the commands of the leader (log/slots.h), and the walk over what is
 * here of some slots.  On the port's thread.
 */
#include "extent/object/object.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>

/* ---- the leader's commands ---- */

_Static_assert(sizeof(struct slots_cmd) <= STORE_PRIV_SLOTS, "STORE_PRIV_SLOTS is too small");

static void
on_done(struct commit *c)
{
	struct store_op *op = &container_of(c, struct slots_cmd, c)->o->op;

	op->result = c->result;
	op->done(op);
}

static int
command(struct store_port *sp, struct store_slots_op *o, enum slots_what what)
{
	static const uint8_t no_key[] = { 's' };
	struct extent_port *p = extent_port(sp);
	struct slots_cmd *cmd = (struct slots_cmd *)o->priv;

	if (!p->vp.vol->slots)
		return -EOPNOTSUPP;
	o->op.port = &p->base;
	o->op.result = 0;
	cmd->o = o;
	cmd->what = what;
	cmd->c = (struct commit){ .kind = COMMIT_SLOTS, .finished = on_done, .state = CS_DATA_DONE };
	cmd->c.view = (struct rec_view){ .op = REC_DELETE, .key = no_key, .key_len = sizeof no_key };
	commit_submit(&p->vp, &cmd->c);
	return 0;
}

int
extent_watch(struct store_port *p, struct store_slots_op *o)
{
	return command(p, o, SLOTS_WATCH);
}

int
extent_freeze(struct store_port *p, struct store_slots_op *o)
{
	return command(p, o, SLOTS_FREEZE);
}

int
extent_thaw(struct store_port *p, struct store_slots_op *o)
{
	return command(p, o, SLOTS_THAW);
}

int
extent_take(struct store_port *p, struct store_slots_op *o)
{
	return command(p, o, SLOTS_TAKE);
}

int
extent_leave(struct store_port *p, struct store_slots_op *o)
{
	return command(p, o, SLOTS_LEAVE);
}

/* ---- the walk ---- */

#define WALK_SLICE 512

static int
compare(const struct slot_name *x, const struct slot_name *y)
{
	int c = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* The name where a cursor stands, if that is still of its type. */
static struct slot_name
name_at(const struct tree_cursor *c, bool there, uint8_t type)
{
	return there && (uint8_t)c->key[0] == type ? slot_name((const uint8_t *)c->key, c->key_len)
						   : (struct slot_name){ 0 };
}

/* Behind the name where the last call ended. */
static bool
begin(struct tree_cursor *c, const struct tree *t, const struct store_walk *w, uint8_t type)
{
	uint8_t from[2 + sizeof w->at];
	size_t len = 1;

	from[0] = type;
	memcpy(from + 1, w->at, w->at_len);
	len += w->at_len;
	/* Behind all uploads of a name there is no zero. */
	if (w->at_len && type == KEY_UPLOAD)
		from[len++] = 1;
	tree_cursor_init(c, t, tree_root(t));
	return tree_seek(c, from, len, w->at_len && type == KEY_OBJECT);
}

/* False: it does not want another one. */
static bool
give(struct store_walk *w, const struct slot_name *n)
{
	const uint8_t *nul = memchr(n->at, 0, n->len);
	struct store_key k = { .bucket = (const char *)w->at };

	memcpy(w->at, n->at, n->len);
	w->at_len = (uint16_t)n->len;
	k.bucket_len = (uint16_t)(nul - n->at);
	k.key = k.bucket + k.bucket_len + 1;
	k.key_len = (uint16_t)(n->len - k.bucket_len - 1);
	return w->key(w, &k);
}

int
extent_walk(struct store_port *sp, struct store_walk *w)
{
	const struct tree *t = extent_port(sp)->vp.vol->tree;
	struct tree_cursor obj, up;
	bool has_obj = begin(&obj, t, w, KEY_OBJECT), has_up = begin(&up, t, w, KEY_UPLOAD);
	bool go_on = true;
	int given = 0;

	w->more = false;
	for (int i = 0;; i++) {
		struct slot_name o = name_at(&obj, has_obj, KEY_OBJECT);
		struct slot_name u = name_at(&up, has_up, KEY_UPLOAD);
		int c = !u.at ? -1 : !o.at ? 1 : compare(&o, &u);
		struct slot_name *n = c <= 0 ? &o : &u;

		if (!n->at)
			return given;
		if (i == WALK_SLICE || !go_on) {
			w->more = true;
			return given;
		}
		if (!w->slots || slots_has(w->slots, name_slot(n))) {
			go_on = give(w, n);
			given++;
		} else if (i + 1 == WALK_SLICE) {
			memcpy(w->at, n->at, n->len);
			w->at_len = (uint16_t)n->len;
		}
		if (c >= 0)
			has_up = tree_skip(&up, u.len + 2);
		if (c <= 0)
			has_obj = tree_next(&obj);
	}
}
