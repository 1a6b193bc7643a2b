/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration over the index, and the filling of the index at a start. */
#include "extent/log/recover_int.h"

#include <errno.h>
#include <stdlib.h>

int
each_record(struct vol *vol, uint8_t type,
	    int (*fn)(void *cookie, const uint8_t *key, size_t len, struct rec *r), void *cookie)
{
	struct tree_cursor *c = malloc(sizeof *c);
	int e = 0;

	if (!c)
		return -ENOMEM;
	for (bool there = tree_begin(c, vol->tree, &type, type != 0, false);
	     there && e == 0 && (!type || (uint8_t)c->key[0] == type); there = tree_next(c))
		e = fn(cookie, (const uint8_t *)c->key, c->key_len, c->rec);
	free(c);
	return e;
}

static int
drop_outside(void *cookie, const uint8_t *key, size_t len, struct rec *r)
{
	rec_drop_outside(r);
	return 0;
}

void
records_drop_outside(struct vol *vol)
{
	each_record(vol, 0, drop_outside, NULL);
	for (struct dead *dead = vol->leader.dying; dead; dead = dead->next)
		rec_drop_outside(dead->rec);
	for (struct dead *dead = atomic_load(&vol->unpinned); dead; dead = dead->next)
		rec_drop_outside(dead->rec);
}

int
apply_record(struct replay *rp, const struct rec_view *v)
{
	struct vol *vol = rp->vol;
	struct rec *rec = NULL, *old;

	if (tree_reserve(vol->tree, true) < 0)
		return -ENOSPC;
	if (v->op == REC_PUT) {
		rec = rec_new(vol->tree, v, v->entries);
		if (!rec) {
			tree_unreserve(vol->tree);
			return -ENOSPC;
		}
		old = rp->load ? tree_load_put(rp->load, v->key, v->key_len, rec)
			       : tree_put(vol->tree, v->key, v->key_len, rec);
	} else {
		old = tree_del(vol->tree, v->key, v->key_len);
	}
	rp->applied++;
	rec_count(vol, v->key, v->key_len, rec, old);
	rec_drop(vol->tree, old);
	rp->version_max = v->version > rp->version_max ? v->version : rp->version_max;
	return 0;
}
