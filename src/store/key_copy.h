/* SPDX-License-Identifier: Apache-2.0 */
/* key_copy - copies of keys: one with its bytes, and a page of the keys that an engine has, from a scan. */
#ifndef GANTRY_STORE_KEY_COPY_H
#define GANTRY_STORE_KEY_COPY_H

#include "store/ops.h"

#include <string.h>

#ifndef WALK_KEYS
#define WALK_KEYS 256 /* number of keys in one page of a scan */
#endif
#define KEY_NAME_MAX (STORE_BUCKET_MAX + STORE_KEY_MAX)

/* Copies bucket name and key to `name`, of KEY_NAME_MAX bytes or as many as the two have. Returns the key that refers to the
 * copy. */
static inline struct store_key
key_copy(char *name, const struct store_key *k)
{
	struct store_key copy = *k;

	copy.bucket = memcpy(name, k->bucket, k->bucket_len);
	copy.key = memcpy(name + k->bucket_len, k->key, k->key_len);
	return copy;
}

/* Returns true if two keys have the same bucket name and the same name. */
static inline bool
key_same_name(const struct store_key *a, const struct store_key *b)
{
	return a->bucket_len == b->bucket_len && a->key_len == b->key_len &&
	       memcmp(a->bucket, b->bucket, a->bucket_len) == 0 && memcmp(a->key, b->key, a->key_len) == 0;
}

/* A page of the keys of an engine. */
struct key_page {
	struct store_walk w; /* zeroed at first, except for slots and differs_from */
	int nr;
	struct {
		struct store_key key;
		char name[KEY_NAME_MAX];
	} at[WALK_KEYS];
};

static inline bool
key_page_add(struct store_walk *w, const struct store_key *k)
{
	struct key_page *kp = container_of(w, struct key_page, w);

	kp->at[kp->nr].key = key_copy(kp->at[kp->nr].name, k);
	return ++kp->nr < WALK_KEYS;
}

/* Fills the page with the next keys of the scan at a port; w.more: further keys are left. Returns >= 0 or -errno. */
static inline int
key_page_next(struct key_page *kp, struct store_port *p)
{
	kp->nr = 0;
	kp->w.key = key_page_add;
	return p->ops->member->walk(p, &kp->w);
}

#endif
