/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files that read and write XML. Pure functions, which any thread may call. */
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
 * The description of an XML document. paths: the elements that it may have, each as its path below the root
 * ("Part/ETag"); any other element is FAULT_MALFORMED_XML. begin() and end() are called at the beginning and
 * the end of each element; path: index of the element in paths; text: content of the element, empty if it has
 * children. If begin() or end() returns a fault, the parser stops and returns the fault.
 */
struct xml_doc {
	const char *root, *other_root; /* other_root: a second root that is accepted; NULL: none */
	const char *const *paths;      /* paths of the elements; the array ends with NULL */
	/* function for the beginning of an element; NULL: none */
	enum fault (*begin)(void *cookie, int path, const char **ret_why);
	enum fault (*end)(void *cookie, int path, struct span text, const char **ret_why);
	void *cookie;
};
enum fault xml_read(const struct xml_doc *doc, const char *body, size_t len, const char **ret_why);

/* Appends an element for each checksum that *s has. */
void xml_sums_put(struct text *x, const struct xml_sums *s);

/* Appends an <ETag> element; adds the quotes to the ETag. */
void xml_etag_put(struct text *x, const char *etag, size_t len);

#endif
