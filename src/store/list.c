/*
 * Listing, a page at a time.  It lets go of the index every LIST_SLICE keys, posts itself and goes on behind
 * the last name, so that neither the loop nor the reclaiming of nodes waits for a long page.  On the port's
 * thread.
 */
#include "store/store_int.h"

#include "base/mailbox.h"

#include <errno.h>
#include <string.h>

#define LIST_SLICE 256

struct list_int {
	struct store_port *port;
	struct disk *disk;
	uint32_t given;
	uint16_t fixed_len; /* of key: type byte, bucket, 0 */
	uint16_t want_len;  /* fixed part and prefix: what every key begins with */
	uint16_t at_len;    /* where to go on */
	bool after;         /* strictly behind it */
	uint8_t at[KEY_BYTES_MAX];
};
_Static_assert(sizeof(struct list_int) <= sizeof((struct store_list *)0)->priv,
	       "store_list.priv is too small");

static bool
give(struct store_list *ls, const struct list_int *li, const struct tree_cursor *c)
{
	const struct rec *r = c->rec;
	struct store_entry e = {
		.name = c->key + li->fixed_len,
		.name_len = (size_t)c->key_len - li->fixed_len,
		.size_bytes = r->size_bytes,
		.mtime_ns = r->mtime_ns,
		.version = r->version,
		.etag = rec_etag(r),
	};

	return ls->entry(ls, &e);
}

/* What every key of the page begins with lies in the operation: bucket and prefix. */
static bool
belongs(const struct store_list *ls, const struct list_int *li, const struct tree_cursor *c)
{
	if (c->key_len < li->want_len || (uint8_t)c->key[0] != (ls->bucket ? KEY_OBJECT : KEY_BUCKET))
		return false;
	if (ls->bucket &&
	    (memcmp(c->key + 1, ls->bucket, ls->bucket_len) != 0 || c->key[1 + ls->bucket_len] != 0))
		return false;
	return ls->prefix_len == 0 || memcmp(c->key + li->fixed_len, ls->prefix, ls->prefix_len) == 0;
}

/* One slice.  True: the page is over. */
static bool
slice(struct store_list *ls, struct list_int *li)
{
	struct tree_cursor c;
	bool there;

	tree_cursor_init(&c, li->disk->tree, tree_root(li->disk->tree));
	there = tree_seek(&c, li->at, li->at_len, li->after);
	for (int i = 0; i < LIST_SLICE; i++) {
		if (!there || !belongs(ls, li, &c))
			return true;
		if (li->given == ls->max) {
			ls->more = true;
			return true;
		}
		li->given++;
		memcpy(li->at, c.key, c.key_len);
		li->at_len = c.key_len;
		li->after = true;
		if (!give(ls, li, &c)) {
			there = tree_next(&c);
			ls->more = there && belongs(ls, li, &c);
			return true;
		}
		there = tree_next(&c);
	}
	return false;
}

static void
on_turn(struct msg *m)
{
	struct store_list *ls = container_of(container_of(m, struct store_op, msg), struct store_list, op);
	struct list_int *li = (struct list_int *)ls->priv;

	if (!slice(ls, li)) {
		mailbox_post(li->port->mb, &ls->op.msg, on_turn);
		return;
	}
	li->port->inflight--;
	ls->op.result = (int)li->given;
	ls->op.done(&ls->op);
}

static int
first_key(const struct store_list *ls, struct list_int *li)
{
	bool behind =
		ls->after && ls->after_len &&
		(ls->prefix_len == 0 ||
		 memcmp(ls->after, ls->prefix,
			ls->after_len < ls->prefix_len ? ls->after_len : ls->prefix_len) > 0 ||
		 (ls->after_len >= ls->prefix_len && memcmp(ls->after, ls->prefix, ls->prefix_len) == 0));
	const char *from = behind ? ls->after : ls->prefix;
	uint16_t len = behind ? ls->after_len : ls->prefix_len;

	if (ls->bucket_len > STORE_BUCKET_MAX || len > STORE_KEY_MAX || ls->prefix_len > STORE_KEY_MAX)
		return -ENAMETOOLONG;
	li->at[0] = ls->bucket ? KEY_OBJECT : KEY_BUCKET;
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
	return 0;
}

int
store_list(struct store_port *p, struct store_list *ls)
{
	struct list_int *li = (struct list_int *)ls->priv;
	int e;

	ls->op.port = p;
	ls->more = false;
	memset(li, 0, offsetof(struct list_int, at));
	li->port = p;
	li->disk = p->st->disk[0];
	e = first_key(ls, li);
	if (e < 0)
		return e;
	if (ls->bucket &&
	    (ls->bucket_len == 0 || store_bucket_head(p, ls->bucket, ls->bucket_len, NULL) < 0)) {
		ls->op.result = -ENXIO;
		return 1;
	}
	if (slice(ls, li)) {
		ls->op.result = (int)li->given;
		return 1;
	}
	p->inflight++;
	mailbox_post(p->mb, &ls->op.msg, on_turn);
	return 0;
}
