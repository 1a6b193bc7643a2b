/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags of objects and buckets. Pure functions; any thread.
 *
 * They are stored as text, "key=value&key=value", with '%', '&', '=', '+' and control bytes as %XX and all
 * other bytes unchanged: a canonical x-amz-tagging header. They can therefore be stored in an object's
 * attributes under that name, and in a bucket's. Keys have 1-128 characters and are unique, values 0-256; at
 * most 10 for an object, 50 for a bucket.
 */
#ifndef GANTRY_DIALECT_TAGS_H
#define GANTRY_DIALECT_TAGS_H

#include "base/span.h"
#include "dialect/fault.h"
#include "dialect/text.h"

#define ATTR_TAGGING "x-amz-tagging" /* of an object, among its attributes */

#define TAGS_OBJECT_MAX 10
#define TAGS_BUCKET_MAX 50

#define TAG_KEY_CHARS 128
#define TAG_VALUE_CHARS 256
#define TAG_KEY_BYTES (TAG_KEY_CHARS * 4)
#define TAG_VALUE_BYTES (TAG_VALUE_CHARS * 4)

/* Appends x-amz-tagging to `out` in canonical form.  FAULT_INVALID_TAG, FAULT_BAD_ARGUMENT, FAULT_BUSY (no
 * memory).  The XML of tags is read and written by s3doc/tags_xml.h. */
enum fault tags_from_header(const char *value, size_t len, struct text *out, int *ret_nr,
			    const char **ret_why);

/* Collects tags one by one; the caller sets `out`, `from` and `max`, all other members begin as 0. */
struct tags_builder {
	struct text *out;
	size_t from; /* offset in out at which the tags begin */
	int nr, max;
	size_t key_len, value_len;
	char key[TAG_KEY_BYTES], value[TAG_VALUE_BYTES];
};
/* Appends the tag in key and value.  FAULT_NONE, FAULT_INVALID_TAG, FAULT_BUSY (no memory). */
enum fault tags_add(struct tags_builder *b, const char **ret_why);

/* Calls fn with decoded keys and values; 0, or -EINVAL for text that is not canonical. */
int tags_each(const char *tags, size_t len,
	      void (*fn)(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len),
	      void *cookie);
int tags_count(const char *tags, size_t len);

/* Tags split once, for many comparisons; they point into the text. */
struct tags_cut {
	int nr; /* tags beyond the limit of a bucket are omitted */
	struct span tag[TAGS_BUCKET_MAX];
};
void tags_cut(const char *tags, size_t len, struct tags_cut *ret_cut);
/* Returns true if `have` contains each tag of `want`, with that value; false also for text that is not
 * canonical. Needs at most tags times tags comparisons, because canonical text is compared unchanged. */
bool tags_have_all(const struct tags_cut *have, const char *want, size_t want_len);

#endif
