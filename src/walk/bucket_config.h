/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a bucket: CORS rules, lifecycle rules and tags, packed together into the bucket's
 * attributes in the store. Used by the operations that show and change the configuration, and by the walks,
 * on the thread of the port.
 *
 * Each attribute is stored as {kind, 4 bytes of length, bytes}; s3doc/ makes the bytes from the XML.
 */
#ifndef GANTRY_WALK_BUCKET_CONFIG_H
#define GANTRY_WALK_BUCKET_CONFIG_H

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* Kinds of the attributes of a bucket; the value is the number under which the attribute is stored on disk
 * (NUMBER in subres.def), 1 to BUCKET_ATTR_NR - 1. */
enum bucket_attr {
#define SUBRES(id, number, ...) BUCKET_##id = number,
#include "dialect/subres.def"
	BUCKET_ATTR_NR
};

struct bucket_attrs {
	struct store_stat stat; /* operation that reads the attributes; has their version */
	uint8_t *p;             /* allocated memory of the attributes, to be freed with free() */
};

/*
 * Starts reading all attributes of a bucket. Returns the same values as every function of store.h that starts
 * an operation, or -ENOMEM. The result is in ba->stat.op: 0, or -ENXIO if the bucket does not exist. The
 * caller has set ba->stat.op.done, and frees the attributes in every case.
 */
int bucket_attrs_read(struct store_port *p, const char *name, size_t name_len, struct bucket_attrs *ba);
/* Finds the attribute of a kind; *ret_p points into ba. Returns false if the bucket has no attribute of this
 * kind. */
bool bucket_attrs_find(const struct bucket_attrs *ba, enum bucket_attr kind, const void **ret_p,
		       uint32_t *ret_len);
/* Appends all attributes to x, with the attribute of `kind` replaced by the len bytes at p; len 0: without
 * this attribute. */
void bucket_attrs_replace(const struct bucket_attrs *ba, enum bucket_attr kind, const void *p, uint32_t len,
			  struct text *x);
/* Frees the memory of bucket_attrs_read(), after its end. A zeroed struct is allowed. */
void bucket_attrs_free(struct bucket_attrs *ba);

#endif
