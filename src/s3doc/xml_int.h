/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the readers of XML bodies. Pure; any thread. */
#ifndef GANTRY_S3DOC_XML_INT_H
#define GANTRY_S3DOC_XML_INT_H

#include "dialect/rules.h"
#include "s3doc/xml.h"

#define XML_DEPTH_MAX 8
#define XML_PATH_MAX 192
#define XML_TEXT_MAX 8192

#define XML_NS "http://s3.amazonaws.com/doc/2006-03-01/"
#define XML_DECL "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"

/*
 * A body, described by the paths of its elements below the root ("Part/ETag"). begin and end get the index of
 * the path in `paths`; an element that is not listed is FAULT_MALFORMED_XML. end of an element with children
 * gets an empty text. A fault that they return ends the reading.
 */
struct xml_doc {
	const char *root, *other_root; /* other_root: also accepted, or NULL */
	const char *const *paths;      /* NULL-terminated */
	enum fault (*begin)(void *cookie, int path, const char **ret_why); /* or NULL */
	enum fault (*end)(void *cookie, int path, struct span text, const char **ret_why);
	void *cookie;
};
enum fault xml_read(const struct xml_doc *doc, const char *body, size_t len, const char **ret_why);

/* Writes the elements of checksums. */
void xml_sums_put(struct text *x, const struct xml_sums *s);

/* Writes <ETag>, with quotes in it. */
void xml_etag_put(struct text *x, const char *etag, size_t len);

#endif
