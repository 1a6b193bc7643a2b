/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a set tells an engine about slots, and asks it: the commands of the leader (log/slots.h), and the walk over what is
 * here of some slots.  On the port's thread.
 */
#include "extent/object/object.h"

#include "extent/log/parts.h"

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

int
extent_slots(struct store_port *sp, enum store_slots_act act, struct store_slots_op *o)
{
	static const uint8_t no_key[] = { 's' };
	struct extent_port *p = extent_port(sp);
	struct slots_cmd *cmd = (struct slots_cmd *)o->priv;

	if (!p->vp.vol->slots)
		return -EOPNOTSUPP;
	o->op.port = &p->base;
	o->op.result = 0;
	if (act == SLOTS_DISOWN) {
		slots_set_own(p->vp.vol->slots, o->slots, false);
		return 1;
	}
	cmd->o = o;
	cmd->act = act;
	cmd->c = (struct commit){ .kind = COMMIT_SLOTS, .finished = on_done, .state = CS_DATA_DONE };
	cmd->c.view = (struct rec_view){ .op = REC_DELETE, .key = no_key, .key_len = sizeof no_key };
	commit_submit(&p->vp, &cmd->c);
	return 0;
}

/* ---- the walk ---- */

#define WALK_SLICE 512

/* One of the two that a walk goes along, over keys of one type. */
struct along {
	struct tree_cursor c;
	uint8_t type;
	bool there;
	struct slot_name n; /* where it stands; at NULL: there is no more */
};

static void
look(struct along *a, bool there)
{
	a->there = there;
	a->n = there && (uint8_t)a->c.key[0] == a->type ? slot_name((const uint8_t *)a->c.key, a->c.key_len)
							: (struct slot_name){ 0 };
}

/* Begins after the name where the last call ended. */
static void
begin(struct along *a, const struct tree *t, const struct store_walk *w, uint8_t type)
{
	uint8_t from[2 + sizeof w->at];
	size_t len = 1;

	a->type = from[0] = type;
	memcpy(from + 1, w->at, w->at_len);
	len += w->at_len;
	/* The position after all uploads of a name has no zero. */
	if (w->at_len && key_is_upload(type))
		from[len++] = 1;
	look(a, tree_begin(&a->c, t, from, len, w->at_len && key_is_object(type)));
}

static void
set_at(struct store_walk *w, const struct slot_name *n)
{
	memcpy(w->at, n->at, n->len);
	w->at_len = (uint16_t)n->len;
}

/* False: it does not want another one. */
static bool
give(struct store_walk *w, const struct slot_name *n)
{
	struct store_key k;

	set_at(w, n);
	k = name_key(&(struct slot_name){ w->at, n->len, n->has_two });
	return w->key(w, &k);
}

/* ---- what differs ---- */

#define FOLLOW_STEPS 8 /* from one key to the next that both have; beyond them a search is faster */

/* The record of that key on the other engine, whose keys are gone through in the same order. */
static const struct rec *
follow(struct along *a, const struct tree_cursor *c)
{
	int r = 1;

	for (int i = 0; a->there; i++) {
		r = tree_compare(c->key, c->key_len, a->c.key, a->c.key_len);
		if (r <= 0)
			break;
		a->there = i < FOLLOW_STEPS ? tree_next(&a->c) : tree_seek(&a->c, c->key, c->key_len, false);
	}
	return a->there && r == 0 ? a->c.rec : NULL;
}

static bool
parts_differ(const struct tree *t, const struct tree *other, const uint8_t *id)
{
	struct tree_cursor c;
	struct along there = { .there = true };
	uint8_t key[CHUNK_KEY_BYTES];

	key_part(key, id, 0);
	there.there = tree_begin(&there.c, other, key, sizeof key, false);
	for (bool here = tree_begin(&c, t, key, sizeof key, false);
	     here && tree_begins(&c, key, 1 + CHUNK_ID_BYTES); here = tree_next(&c)) {
		if (!send_is_same(c.rec, follow(&there, &c)))
			return true;
	}
	return false;
}

/* up: at the first of the name. */
static bool
uploads_differ(const struct tree *t, const struct tree *other, const struct along *up)
{
	size_t name_len = up->n.len + 2; /* with the type, and the 0 after the name */
	struct tree_cursor c = up->c;

	for (bool here = true;
	     here && c.key_len == name_len + CHUNK_ID_BYTES && tree_begins(&c, up->c.key, name_len);
	     here = tree_next(&c)) {
		const uint8_t *key = (const uint8_t *)c.key;

		if (!has_bucket(t, key, c.key_len, c.rec))
			continue;
		if (!has_bucket(other, key, c.key_len, tree_get(other, key, c.key_len)) ||
		    parts_differ(t, other, key + name_len))
			return true;
	}
	return false;
}

/* Are there places of keys with so many copies among these? */
static bool
wants(const struct store_slots *slots, bool has_two)
{
	uint64_t any = 0;

	for (unsigned i = 0; slots && i < STORE_SLOT_NR / 64; i++)
		any |= slots->bit[table_place(0, has_two) / 64 + i];
	return !slots || any;
}

/* Goes along the keys with so many copies.  False: no further in this call. */
static bool
walk_some(const struct tree *t, struct store_walk *w, bool has_two, int *left, int *ret_given)
{
	const struct tree *other = w->differs_from ? extent_port(w->differs_from)->vp.vol->tree : NULL;
	struct along obj, up, there;

	if (other)
		begin(&there, other, w, key_object_type(has_two));
	begin(&obj, t, w, key_object_type(has_two));
	begin(&up, t, w, key_upload_type(has_two));
	for (bool go_on = true;; (*left)--) {
		int c = !up.n.at ? -1 : !obj.n.at ? 1 : tree_compare(obj.n.at, obj.n.len, up.n.at, up.n.len);
		const struct slot_name *n = c <= 0 ? &obj.n : &up.n;

		if (!n->at && go_on && *left)
			return true;
		if (!n->at || !*left || !go_on) {
			w->more = n->at || !has_two;
			return false;
		}
		if ((!w->slots || slots_has(w->slots, name_place(n))) &&
		    (!other || (c <= 0 && !send_is_same(obj.c.rec, follow(&there, &obj.c))) ||
		     (c >= 0 && uploads_differ(t, other, &up)))) {
			go_on = give(w, n);
			(*ret_given)++;
		} else if (*left == 1) {
			set_at(w, n);
		}
		if (c >= 0)
			look(&up, tree_skip(&up.c, up.n.len + 2));
		if (c <= 0)
			look(&obj, tree_next(&obj.c));
	}
}

int
extent_walk(struct store_port *sp, struct store_walk *w)
{
	const struct tree *t = extent_port(sp)->vp.vol->tree;
	int left = WALK_SLICE, given = 0;

	w->more = false;
	if (!w->at_two && wants(w->slots, false) && !walk_some(t, w, false, &left, &given))
		return given;
	if (!w->at_two) {
		w->at_two = true;
		w->at_len = 0;
	}
	if (wants(w->slots, true))
		walk_some(t, w, true, &left, &given);
	return given;
}
