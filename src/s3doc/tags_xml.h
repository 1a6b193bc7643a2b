/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of objects and buckets as XML; as text they are in dialect/tags.h. Pure functions; any thread. */
#ifndef GANTRY_S3DOC_TAGS_XML_H
#define GANTRY_S3DOC_TAGS_XML_H

#include "dialect/tags.h"

/* Appends the tags of a <Tagging> body, max of them at most, to `out` in canonical form.  FAULT_INVALID_TAG,
 * FAULT_MALFORMED_XML, FAULT_BUSY (no memory). */
enum fault tags_from_xml(const char *body, size_t len, int max, struct text *out, int *ret_nr,
			 const char **ret_why);
/* Appends <Tagging>, the tags by key. */
void tags_to_xml(struct text *x, const char *tags, size_t len);
/* Appends only the <Tag> elements, in their order. */
void tags_to_xml_each(struct text *x, const char *tags, size_t len);

/* Reads tags that are part of another document: the elements of one set, and the state between them. The
 * caller sets tags.out, .from and .max, all other members begin as 0. */
enum tag_element { TAG_SET, TAG, TAG_KEY, TAG_VALUE };
struct tags_reader {
	struct tags_builder tags;
	bool have_key, have_value;
};
/* Handles the end of an element; text is its content. */
enum fault tags_read_end(struct tags_reader *r, enum tag_element e, struct span text, const char **ret_why);

/* Reads and writes the tags of a bucket, for subres.def. */
enum fault bucket_tags_from_xml(const char *body, size_t len, struct text *out, const char **ret_why);
int bucket_tags_to_xml(struct text *x, const void *tags, size_t len);

#endif
