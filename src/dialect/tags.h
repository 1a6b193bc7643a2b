/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags of objects and buckets. Pure functions, which any thread may call.
 *
 * Tags are stored as the text of a canonical x-amz-tagging header: "key=value&key=value", with '%', '&', '=',
 * '+' and control bytes as %XX, and all other bytes unchanged. The attributes of an object or bucket have
 * this text as the value of x-amz-tagging. A key has 1 to 128 characters and is unique, a value 0 to 256
 * characters. An object has at most 10 tags, a bucket 50.
 */
#ifndef GANTRY_DIALECT_TAGS_H
#define GANTRY_DIALECT_TAGS_H

#include "base/span.h"
#include "dialect/fault.h"
#include "dialect/text.h"

#define ATTR_TAGGING "x-amz-tagging" /* name of the tags among the attributes of an object */

#define TAGS_OBJECT_MAX 10
#define TAGS_BUCKET_MAX 50

#define TAG_KEY_CHARS 128
#define TAG_VALUE_CHARS 256
#define TAG_KEY_BYTES (TAG_KEY_CHARS * 4)
#define TAG_VALUE_BYTES (TAG_VALUE_CHARS * 4)

/* Parses a value of x-amz-tagging, and appends the tags to `out` in canonical form. *ret_nr: number of tags.
 * Returns FAULT_NONE, FAULT_INVALID_TAG, FAULT_BAD_ARGUMENT, or FAULT_BUSY if there is no memory.
 * (s3doc/tags_xml.h parses and writes tags as XML.) */
enum fault tags_from_header(const char *value, size_t len, struct text *out, int *ret_nr,
			    const char **ret_why);

/* State of tags_add(), which builds a canonical text of tags one by one. The caller sets `out`, `from` and
 * `max`; all other members start as 0. */
struct tags_builder {
	struct text *out;
	size_t from; /* offset in out at which the tags begin */
	int nr, max;
	size_t key_len, value_len;
	char key[TAG_KEY_BYTES], value[TAG_VALUE_BYTES];
};
/* Appends the tag b->key, b->value to b->out. Returns FAULT_NONE; FAULT_INVALID_TAG: the tag is invalid, its
 * key occurs twice, or there are more than b->max tags; FAULT_BUSY: no memory. */
enum fault tags_add(struct tags_builder *b, const char **ret_why);

/* Calls fn with the decoded key and value of each tag. Returns 0, or -EINVAL if the text is not canonical. */
int tags_each(const char *tags, size_t len,
	      void (*fn)(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len),
	      void *cookie);
int tags_count(const char *tags, size_t len);

/* A canonical text of tags, split into its tags once for many comparisons. The tags point into the text. */
struct tags_cut {
	int nr; /* number of tags; tags beyond the limit of a bucket are omitted */
	struct span tag[TAGS_BUCKET_MAX];
};
void tags_cut(const char *tags, size_t len, struct tags_cut *ret_cut);
/* Returns true if `have` contains each tag of `want` with the same value; false also if a text is not
 * canonical. The encoded tags are compared; the number of comparisons is at most the number of tags in `have`
 * times that in `want`. */
bool tags_have_all(const struct tags_cut *have, const char *want, size_t want_len);

#endif
