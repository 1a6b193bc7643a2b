/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of objects and buckets as XML. dialect/tags.h has the same tags as text. Pure functions; any
 * thread. */
#ifndef GANTRY_S3DOC_TAGS_XML_H
#define GANTRY_S3DOC_TAGS_XML_H

#include "dialect/tags.h"

/* Parses the tags of a <Tagging> body, at most max of them, and appends them to `out` in canonical form.
 * Returns FAULT_NONE, FAULT_INVALID_TAG, FAULT_MALFORMED_XML, or FAULT_BUSY if there is no memory. */
enum fault tags_from_xml(const char *body, size_t len, int max, struct text *out, int *ret_nr,
			 const char **ret_why);
/* Appends a <Tagging> element to x, with the tags sorted by key. */
void tags_to_xml(struct text *x, const char *tags, size_t len);
/* Appends only the <Tag> elements to x, in their order. */
void tags_to_xml_each(struct text *x, const char *tags, size_t len);

/* A reader of tags that are part of another document: the elements of a set of tags, and the state between
 * them. The caller sets tags.out, tags.from and tags.max; all other members start as 0. */
enum tag_element { TAG_SET, TAG, TAG_KEY, TAG_VALUE };
struct tags_reader {
	struct tags_builder tags;
	bool have_key, have_value;
};
/* Handles the end of an element with the content `text`. */
enum fault tags_read_end(struct tags_reader *r, enum tag_element e, struct span text, const char **ret_why);

/* Parses the tags of a bucket, as the parser of subres.def. */
enum fault bucket_tags_from_xml(const char *body, size_t len, struct text *out, const char **ret_why);
int bucket_tags_to_xml(struct text *x, const void *tags, size_t len);

#endif
