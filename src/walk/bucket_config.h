/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a bucket has besides objects: CORS rules, lifecycle rules and tags, packed together into the
 * attributes that the store keeps for it.  Used by the operations that show and change them, and by whoever
 * follows them. The thread of the port.
 *
 * Each of them lies there as {kind, 4 bytes of length, bytes}; the bytes are those that s3doc/ made of the
 * XML.
 */
#ifndef GANTRY_WALK_BUCKET_CONFIG_H
#define GANTRY_WALK_BUCKET_CONFIG_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* Numbers them as they are on the disk: BUCKET_..., from 1 to BUCKET_ATTR_NR - 1. */
enum bucket_attr {
#define SUBRES(id, number, ...) BUCKET_##id = number,
#include "dialect/subres.def"
	BUCKET_ATTR_NR
};

struct bucket_attrs {
	struct store_stat stat; /* the reading; its version is theirs */
	uint8_t *p;             /* malloc'd */
};

/*
 * Starts reading all of them (store.h: < 0, 0, > 0); the result is ba->stat.op's: 0, -ENXIO.  The caller has
 * set ba->stat.op.done, and frees what came, or did not.  -ENOMEM.
 */
int bucket_attrs_read(struct store_port *p, const char *name, size_t name_len, struct bucket_attrs *ba);
/* Finds the one of that kind; *ret_p points into ba.  false: the bucket has none. */
bool bucket_attrs_find(const struct bucket_attrs *ba, enum bucket_attr kind, const void **ret_p,
		       uint32_t *ret_len);
/* Appends to x all that there is, with the one of that kind replaced; len 0: without it. */
void bucket_attrs_replace(const struct bucket_attrs *ba, enum bucket_attr kind, const void *p, uint32_t len,
			  struct text *x);
/* Frees what bucket_attrs_read() took, when that is done.  Fine on a zeroed one. */
void bucket_attrs_free(struct bucket_attrs *ba);

#endif
