/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML bodies as events, on libxml2's push parser.  See xml_int.h.
 *
 * Nothing of a document type is taken, so there are no entities to grow and nothing to fetch; the parser's
 * own tree is never built.  Memory is this struct and what libxml2 holds of one tag.
 */
#include "s3doc/xml_int.h"

#include "base/check.h"
#include "base/markup.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define FEED_BYTES (64u << 10)
#define TAG_MAX 1024 /* bytes of a tag with its attributes, of which none says anything here */

struct reader {
	const struct xml_doc *doc;
	xmlParserCtxtPtr parser;
	enum fault fault;
	const char *why;
	int depth; /* open elements, the root among them */
	size_t path_len[XML_DEPTH_MAX + 1];
	bool parent[XML_DEPTH_MAX + 1];
	char path[XML_PATH_MAX];
	size_t text_len;
	char text[XML_TEXT_MAX];
};

static void
stop(struct reader *r, enum fault f, const char *why)
{
	check(f != FAULT_NONE && why);
	if (r->fault == FAULT_NONE) {
		r->fault = f;
		r->why = why;
	}
	xmlStopParser(r->parser);
}

static int
path_find(const struct reader *r)
{
	for (int i = 0; r->doc->paths[i]; i++) {
		if (strcmp(r->doc->paths[i], r->path) == 0)
			return i;
	}
	return -1;
}

static bool
is_blank_text(const struct reader *r)
{
	for (size_t i = 0; i < r->text_len; i++) {
		if (!strchr(" \t\r\n", r->text[i]) || r->text[i] == 0)
			return false;
	}
	return true;
}

static void
open_root(struct reader *r, const char *name)
{
	const struct xml_doc *d = r->doc;

	if (strcmp(name, d->root) != 0 && (!d->other_root || strcmp(name, d->other_root) != 0))
		stop(r, FAULT_MALFORMED_XML, "The root element of the XML is not the one of this operation.");
}

static void
on_open(void *cookie, const xmlChar *local, const xmlChar *prefix, const xmlChar *uri, int ns_nr,
	const xmlChar **ns, int attr_nr, int default_nr, const xmlChar **attrs)
{
	struct reader *r = cookie;
	const char *name = (const char *)local;
	size_t len = r->depth > 0 ? r->path_len[r->depth - 1] : 0, n = strlen(name);
	enum fault f;
	int at;

	if (r->fault)
		return;
	if (!is_blank_text(r)) {
		stop(r, FAULT_MALFORMED_XML, "The XML has text beside elements.");
		return;
	}
	if (r->depth == XML_DEPTH_MAX || len + n + 2 > sizeof r->path) {
		stop(r, FAULT_MALFORMED_XML, "The XML is nested too deeply.");
		return;
	}
	r->text_len = 0;
	r->parent[r->depth] = false;
	if (r->depth == 0) {
		r->path_len[r->depth++] = 0;
		open_root(r, name);
		return;
	}
	r->parent[r->depth - 1] = true;
	if (len)
		r->path[len++] = '/';
	memcpy(r->path + len, name, n + 1);
	r->path_len[r->depth++] = len + n;
	at = path_find(r);
	if (at < 0) {
		stop(r, FAULT_MALFORMED_XML, "The XML has an element that is not known here.");
		return;
	}
	f = r->doc->begin ? r->doc->begin(r->doc->cookie, at, &r->why) : FAULT_NONE;
	if (f)
		stop(r, f, r->why);
}

static void
on_close(void *cookie, const xmlChar *local, const xmlChar *prefix, const xmlChar *uri)
{
	struct reader *r = cookie;
	enum fault f = FAULT_NONE;

	if (r->fault || r->depth == 0)
		return;
	if (r->parent[r->depth - 1]) {
		if (!is_blank_text(r)) {
			stop(r, FAULT_MALFORMED_XML, "The XML has text beside elements.");
			return;
		}
		r->text_len = 0;
	}
	r->depth--;
	/* The root is no element with a value. */
	if (r->depth == 0 && !is_blank_text(r)) {
		stop(r, FAULT_MALFORMED_XML, "The XML has text beside elements.");
		return;
	}
	if (r->depth > 0) {
		int at = path_find(r);

		/* on_open() found it, and a document whose elements all end in a fault needs no end. */
		check(at >= 0 && r->doc->end && r->path_len[r->depth] < sizeof r->path);
		f = r->doc->end(r->doc->cookie, at, (struct span){ r->text, r->text_len }, &r->why);
		r->path[r->path_len[r->depth - 1]] = 0;
	}
	r->text_len = 0;
	if (f)
		stop(r, f, r->why);
}

static void
on_text(void *cookie, const xmlChar *p, int len)
{
	struct reader *r = cookie;

	if (r->fault || r->depth == 0)
		return;
	check(r->text_len <= sizeof r->text);
	if (len < 0 || (size_t)len > sizeof r->text - r->text_len) {
		stop(r, FAULT_MALFORMED_XML, "An element of the XML has more than 8192 bytes of text.");
		return;
	}
	memcpy(r->text + r->text_len, p, (size_t)len);
	r->text_len += (size_t)len;
}

static void
on_doctype(void *cookie, const xmlChar *name, const xmlChar *external, const xmlChar *system)
{
	stop(cookie, FAULT_MALFORMED_XML, "The XML has a document type declaration.");
}

static void
on_error(void *cookie, xmlErrorPtr error)
{
	/* What is wrong is asked of the parser in the end; it must not write to stderr. */
}

static pthread_once_t init_once = PTHREAD_ONCE_INIT;

static void
feed(struct reader *r, const char *body, size_t len)
{
	size_t done = 0;

	while (done < len && r->fault == FAULT_NONE) {
		size_t n = len - done < FEED_BYTES ? len - done : FEED_BYTES;

		if (xmlParseChunk(r->parser, body + done, (int)n, 0) != 0)
			break;
		done += n;
	}
	if (r->fault == FAULT_NONE && done == len)
		xmlParseChunk(r->parser, NULL, 0, 1);
	if (r->fault != FAULT_NONE)
		return;
	if (r->parser->errNo == XML_ERR_NO_MEMORY) {
		r->fault = FAULT_BUSY;
		r->why = "There is no memory for the XML.";
	} else if (done < len || !r->parser->wellFormed || r->depth != 0) {
		r->fault = FAULT_MALFORMED_XML;
		r->why = "The XML is not well-formed.";
	}
}

enum fault
xml_read(const struct xml_doc *doc, const char *body, size_t len, const char **ret_why)
{
	xmlSAXHandler sax = { .internalSubset = on_doctype,
			      .characters = on_text,
			      .ignorableWhitespace = on_text,
			      .cdataBlock = on_text,
			      .startElementNs = on_open,
			      .endElementNs = on_close,
			      .serror = on_error,
			      .initialized = XML_SAX2_MAGIC };
	struct reader *r;
	enum fault f;

	check(doc->root && doc->paths && (doc->begin || doc->end));
	/* Only UTF-8 is read, so text is never longer than the bytes it came in: readers count on that. */
	if (len >= 2 && (memcmp(body, "\xff\xfe", 2) == 0 || memcmp(body, "\xfe\xff", 2) == 0))
		return refuse(ret_why, FAULT_MALFORMED_XML, "The XML is not in UTF-8.");
	/* A byte order mark is no text (XML 1.0, 4.3.3); libxml2 skips it only where it finds out the encoding itself. */
	if (len >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0) {
		body += 3;
		len -= 3;
	}
	if (!markup_tags_are_short(body, len, TAG_MAX))
		return refuse(ret_why, FAULT_MALFORMED_XML, "The XML has a tag of more than 1024 bytes.");
	pthread_once(&init_once, xmlInitParser);
	r = calloc(1, sizeof *r);
	if (r) {
		r->doc = doc;
		r->parser = xmlCreatePushParserCtxt(&sax, r, NULL, 0, NULL);
	}
	if (!r || !r->parser) {
		free(r);
		return refuse(ret_why, FAULT_BUSY, "There is no memory for the XML.");
	}
	/* UTF-8, whatever the declaration says: what clients send,
	 * and no converter is then ever asked for. */
	xmlCtxtUseOptions(r->parser, XML_PARSE_NONET | XML_PARSE_IGNORE_ENC);
	xmlSwitchEncoding(r->parser, XML_CHAR_ENCODING_UTF8);
	feed(r, body, len);
	f = r->fault;
	*ret_why = f ? r->why : "";
	xmlFreeDoc(r->parser->myDoc);
	xmlFreeParserCtxt(r->parser);
	free(r);
	return f;
}
