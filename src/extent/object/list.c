/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, a page at a time.  A list releases the index every LIST_SLICE keys, posts itself and continues after
 * the last name, so that neither the loop nor the reclaiming of nodes waits for a long page.  Names that have
 * the delimiter after the prefix are one entry, and the search continues after all names with this beginning.
 * On the port's thread.
 */
#include "extent/object/object.h"

#include "base/mailbox.h"
#include "model/merge.h"

#include <errno.h>
#include <string.h>

#ifndef LIST_SLICE
#define LIST_SLICE 256
#endif

struct list_int {
	struct extent_port *port;
	uint64_t born; /* uploads that are older belong to an earlier bucket of the name */
	uint32_t given;
	uint16_t fixed_len; /* of key: type byte, bucket, 0 */
	uint16_t want_len;  /* fixed part and prefix: what every key begins with */
	uint16_t tail_len;  /* of key: after the name */
	uint16_t at_len;    /* where to go on */
	bool after;         /* strictly after it */
	bool is_full;       /* only whether there is more is still asked */
	uint8_t type;
	uint8_t at[KEY_BYTES_MAX];
};
_Static_assert(sizeof(struct list_int) <= STORE_PRIV_LIST, "STORE_PRIV_LIST is too small");

static bool
give(struct store_list *ls, const struct list_int *li, const struct tree_cursor *c, size_t common)
{
	const struct rec *r = c->rec;
	struct store_entry e = { .name = c->key + li->fixed_len };

	if (common) {
		e.name_len = common;
		e.is_prefix = true;
		return ls->entry(ls, &e);
	}
	e.name_len = (size_t)c->key_len - li->fixed_len - li->tail_len;
	rec_list(r, &e);
	if (li->type == KEY_BUCKET)
		e.copies = (uint8_t)rec_copies(r);
	if (key_is_upload(li->type))
		e.upload_id = (const uint8_t *)c->key + c->key_len - CHUNK_ID_BYTES;
	return ls->entry(ls, &e);
}

/* What every key of the page begins with lies in the operation: bucket and prefix. */
static bool
belongs(const struct store_list *ls, const struct list_int *li, const struct tree_cursor *c)
{
	if (c->key_len < li->want_len || (uint8_t)c->key[0] != li->type)
		return false;
	if (ls->bucket &&
	    (memcmp(c->key + 1, ls->bucket, ls->bucket_len) != 0 || c->key[1 + ls->bucket_len] != 0))
		return false;
	return ls->prefix_len == 0 || memcmp(c->key + li->fixed_len, ls->prefix, ls->prefix_len) == 0;
}

/* Is it there for who lists?  Not what is left of an earlier bucket, or of a disk that has the key now. */
static bool
is_shown(const struct store_list *ls, const struct list_int *li, const struct tree_cursor *c)
{
	const struct rec *r = c->rec;
	struct slot_name n;

	if ((key_is_upload(li->type) && !model_is_of(r->version, li->born)) || !rec_is_there(r, ls->now_ns))
		return false;
	if (!ls->slots)
		return slots_own_key(li->port->vp.vol->slots, (const uint8_t *)c->key, c->key_len);
	n = slot_name((const uint8_t *)c->key, c->key_len);
	return !n.at || slots_has(ls->slots, name_place(&n));
}

/* Goes on from the least string after all that begin with the first len bytes of at. */
static void
go_behind(struct list_int *li, size_t len)
{
	while (li->at[len - 1] == 0xff)
		len--; /* the type byte is less */
	li->at[len - 1]++;
	li->at_len = (uint16_t)len;
	li->after = false;
}

/* One slice.  True: the page is over. */
static bool
slice(struct store_list *ls, struct list_int *li)
{
	struct tree_cursor c;
	bool there;

	there = tree_begin(&c, li->port->vp.vol->tree, li->at, li->at_len, li->after);
	for (int i = 0; i < LIST_SLICE; i++) {
		size_t common;

		if (!there || !belongs(ls, li, &c))
			return true;
		if (!is_shown(ls, li, &c)) {
			memcpy(li->at, c.key, c.key_len);
			li->at_len = c.key_len;
			li->after = true;
			there = tree_next(&c);
			continue;
		}
		if (li->given == ls->max || li->is_full) {
			ls->more = true;
			return true;
		}
		li->given++;
		common = merge_common(ls, c.key + li->fixed_len,
				      (size_t)c.key_len - li->fixed_len - li->tail_len);
		memcpy(li->at, c.key, c.key_len);
		li->at_len = c.key_len;
		li->after = true;
		if (common)
			go_behind(li, li->fixed_len + common);
		li->is_full = !give(ls, li, &c, common);
		there = common ? tree_skip(&c, li->fixed_len + common) : tree_next(&c);
	}
	return false;
}

/* The bucket whose uploads these are, if it is still there. */
static bool
bucket_born(const struct store_list *ls, struct list_int *li, bool *ret_has_two)
{
	const struct rec *r = bucket_find(li->port, ls->bucket, ls->bucket_len);

	if (!r)
		return false;
	li->born = r->version;
	*ret_has_two = r->copies > 1;
	return true;
}

static void
on_turn(struct msg *m)
{
	struct store_list *ls = container_of(container_of(m, struct store_op, msg), struct store_list, op);
	struct list_int *li = (struct list_int *)ls->priv;
	bool has_two;

	if ((!key_is_upload(li->type) || bucket_born(ls, li, &has_two)) && !slice(ls, li)) {
		mailbox_post(li->port->vp.mb, &ls->op.msg, on_turn);
		return;
	}
	li->port->vp.io.inflight--;
	ls->op.result = (int)li->given;
	ls->op.done(&ls->op);
}

/* Does the page begin after the name `after`, and not with the prefix? */
static bool
is_behind(const struct store_list *ls)
{
	uint16_t n = ls->after_len < ls->prefix_len ? ls->after_len : ls->prefix_len;
	int c;

	if (!ls->after || !ls->after_len)
		return false;
	c = n ? memcmp(ls->after, ls->prefix, n) : 0;
	return c > 0 || (c == 0 && ls->after_len >= ls->prefix_len);
}

static void
first_key(const struct store_list *ls, struct list_int *li)
{
	bool behind = is_behind(ls);
	const char *from = behind ? ls->after : ls->prefix;
	uint16_t len = behind ? ls->after_len : ls->prefix_len;

	li->at[0] = li->type;
	li->fixed_len = 1;
	if (ls->bucket) {
		memcpy(li->at + 1, ls->bucket, ls->bucket_len);
		li->at[1 + ls->bucket_len] = 0;
		li->fixed_len = (uint16_t)(2 + ls->bucket_len);
	}
	if (len)
		memcpy(li->at + li->fixed_len, from, len);
	li->at_len = (uint16_t)(li->fixed_len + len);
	li->want_len = (uint16_t)(li->fixed_len + ls->prefix_len);
	li->after = behind;
	if (behind && merge_after_common(ls)) {
		go_behind(li, li->at_len);
	} else if (behind && key_is_upload(li->type)) {
		/* After this one; or after all of the key, where no other key's can be. */
		li->at[li->at_len++] = ls->after_id ? 0 : 1;
		if (ls->after_id) {
			memcpy(li->at + li->at_len, ls->after_id, CHUNK_ID_BYTES);
			li->at_len += CHUNK_ID_BYTES;
		}
		li->after = ls->after_id != NULL;
	}
}

int
extent_list(struct store_port *sp, struct store_list *ls)
{
	struct extent_port *p = extent_port(sp);
	uint8_t type = ls->of_uploads ? KEY_UPLOAD : ls->bucket ? KEY_OBJECT : KEY_BUCKET;
	struct list_int *li = (struct list_int *)ls->priv;
	bool has_two = false;

	ls->op.port = &p->base;
	ls->more = false;
	memset(li, 0, offsetof(struct list_int, at));
	li->port = p;
	li->type = type;
	li->tail_len = (uint16_t)key_tail_bytes(type);
	first_key(ls, li);
	if (ls->bucket && !bucket_born(ls, li, &has_two))
		return finish(&ls->op, -ENXIO);
	/* A bucket with two copies of each key has keys of other types. */
	if (ls->bucket)
		li->type = li->at[0] = ls->of_uploads ? key_upload_type(has_two) : key_object_type(has_two);
	if (slice(ls, li))
		return finish(&ls->op, (int)li->given);
	p->vp.io.inflight++;
	mailbox_post(p->vp.mb, &ls->op.msg, on_turn);
	return 0;
}
