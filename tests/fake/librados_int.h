/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the cluster in memory (librados.h). */
#ifndef TESTS_FAKE_LIBRADOS_INT_H
#define TESTS_FAKE_LIBRADOS_INT_H

#include "tests/fake/librados.h"

#include <rados/librados.h>
#include <stddef.h>

/* ---- librados_objects.c: objects, and operations on them ---- */

/* A sorted map of byte strings: an omap, or the attributes of an object. */
struct pair {
	char *key, *val; /* both are followed by a NUL */
	size_t key_len, val_len;
};
struct pairs {
	struct pair *pair;
	uint32_t nr, cap;
};

struct object {
	struct object *next;
	char *name, *ns;
	char *data;
	size_t len;
	struct pairs xattrs, omap;
};

struct fake_pool {
	const char *name;
	struct object *hash[1024];
};
#define FAKE_POOLS 2
extern struct fake_pool fake_pools[FAKE_POOLS];

enum step_kind {
	/* conditions */
	STEP_ASSERT_EXISTS,
	STEP_CREATE,
	STEP_CMP_XATTR,
	STEP_CMP_OMAP,
	/* changes */
	STEP_SET_XATTR,
	STEP_SET_OMAP,
	STEP_RM_OMAP,
	STEP_WRITE,
	STEP_WRITE_FULL,
	STEP_REMOVE,
	/* reads */
	STEP_READ,
	STEP_GET_XATTR,
	STEP_GET_XATTRS,
	STEP_GET_OMAP,
	STEP_GET_OMAP_KEYS,
	STEP_STAT,
};

/* A copy of pairs, through which a reader iterates. */
struct iter {
	struct pairs pairs;
	uint32_t at;
};

struct step {
	enum step_kind kind;
	bool exclusive;
	struct pairs pairs; /* copies of the keys and values */
	uint64_t off, max;
	char *buf; /* where results are stored */
	size_t cap, *ret_len;
	struct iter *iter;
	unsigned char *ret_more;
	int *ret_error;
};

struct operation {
	struct step *step;
	uint32_t nr, cap;
};

struct step *fake_step(struct operation *op, enum step_kind kind);
void fake_step_pair(struct step *s, const char *key, size_t key_len, const char *val, size_t val_len);
void fake_operation_free(struct operation *op);
bool fake_is_write(const struct operation *op);
bool fake_compares_omap(const struct operation *op);
/* Carries an operation out on an object of a namespace. page_max 0: pages are as large as requested. Returns 0 or more, or -errno. */
int fake_operate(struct fake_pool *pool, const char *ns, const char *name, struct operation *op,
		 uint64_t page_max);
/* Raises the generation of an index shard. Returns false if the object has none. */
bool fake_raise(struct fake_pool *pool, const char *ns, const char *name);
void fake_objects_drop(void);
void fake_pairs_free(struct pairs *p);
char *fake_copy(const char *bytes, size_t len);

/* ---- librados_helper.c ---- */

/* Checks that no helper runs. */
void fake_helpers_check(void);

#endif
