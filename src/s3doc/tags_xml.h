/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the tags of objects and buckets as XML. In memory tags have the canonical form of
 * dialect/tags.h. Pure functions, which any thread may call. */
#ifndef GANTRY_S3DOC_TAGS_XML_H
#define GANTRY_S3DOC_TAGS_XML_H

#include "dialect/tags.h"

/* Parses a <Tagging> body with at most max tags, and appends the tags to `out` in canonical form. *ret_nr:
 * number of tags. Returns FAULT_NONE, FAULT_INVALID_TAG, FAULT_MALFORMED_XML, or FAULT_BUSY if there is no
 * memory. */
enum fault tags_from_xml(const char *body, size_t len, int max, struct text *out, int *ret_nr,
			 const char **ret_why);
/* Appends a <Tagging> element to x, with the tags sorted by key. */
void tags_to_xml(struct text *x, const char *tags, size_t len);
/* Appends the <Tag> elements alone to x, in the order of `tags`. */
void tags_to_xml_each(struct text *x, const char *tags, size_t len);

/* Elements of a <TagSet>, for tags_read_end(). */
enum tag_element { TAG_SET, TAG, TAG_KEY, TAG_VALUE };
/* State of the reader of a <TagSet> inside another document; one struct serves the whole set. The caller sets
 * tags.out, tags.from and tags.max; all other members start as 0. */
struct tags_reader {
	struct tags_builder tags;
	bool have_set; /* true: the TagSet has ended; a second one is malformed */
	bool have_key, have_value;
};
/* Handles the end of element e, whose content is `text`. At the end of a <Tag> appends the tag to tags.out. A
 * second <TagSet> is refused.
 * Returns FAULT_NONE, FAULT_INVALID_TAG, FAULT_MALFORMED_XML, or FAULT_BUSY if there is no memory. */
enum fault tags_read_end(struct tags_reader *r, enum tag_element e, struct span text, const char **ret_why);

/* Parses (bucket_tags_from_xml()) or writes (bucket_tags_to_xml()) the tags of a bucket: the functions of the
 * row TAGGING in subres.def. */
enum fault bucket_tags_from_xml(const char *body, size_t len, struct text *out, const char **ret_why);
int bucket_tags_to_xml(struct text *x, const void *tags, size_t len);

#endif
