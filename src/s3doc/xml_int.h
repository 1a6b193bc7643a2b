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
 * The description of a body: the paths of its elements below the root ("Part/ETag"). begin and end are
 * called with the index of the element's path in `paths`. An element whose path is not in the list is
 * FAULT_MALFORMED_XML. For an element with children end gets an empty text. If begin or end returns a fault,
 * the parser stops and returns it.
 */
struct xml_doc {
	const char *root, *other_root; /* other_root: a second root that is accepted; NULL: none */
	const char *const *paths;      /* NULL-terminated */
	enum fault (*begin)(void *cookie, int path, const char **ret_why); /* NULL: not called */
	enum fault (*end)(void *cookie, int path, struct span text, const char **ret_why);
	void *cookie;
};
enum fault xml_read(const struct xml_doc *doc, const char *body, size_t len, const char **ret_why);

/* Writes the elements of the given checksums. */
void xml_sums_put(struct text *x, const struct xml_sums *s);

/* Writes an <ETag> element, with the quotes of the ETag. */
void xml_etag_put(struct text *x, const char *etag, size_t len);

#endif
