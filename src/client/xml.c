/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers in XML, read by libxml2.  The server may be anybody: an answer is bounded by its caller, has no document
 * type and so no entities to grow, and nothing is fetched.  Memory is the reader's and one element's text.
 */
#include "client/client_int.h"

#include "base/markup.h"

#include <libxml/xmlreader.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8
#define PATH_MAX_BYTES 256
#define TEXT_MAX 8192
#define TAG_MAX 1024

struct xml {
	xmlTextReaderPtr reader;
	const char *root;
	xml_fn *fn;
	void *cookie;
	int depth; /* of open elements, the root among them */
	size_t path_len[DEPTH_MAX];
	char path[PATH_MAX_BYTES];
	size_t text_len;
	char text[TEXT_MAX + 1];
	bool is_done; /* the root has ended */
};

static int
open_element(struct xml *x)
{
	const char *name = (const char *)xmlTextReaderConstLocalName(x->reader);
	size_t len = x->depth > 1 ? x->path_len[x->depth - 1] : 0, n = name ? strlen(name) : 0;

	if (!name || x->depth == DEPTH_MAX || len + n + 2 > sizeof x->path)
		return -EPROTO;
	x->text_len = 0;
	if (x->depth == 0) {
		if (strcmp(name, x->root) != 0)
			return -ENOMSG;
	} else {
		if (len)
			x->path[len++] = '/';
		memcpy(x->path + len, name, n + 1);
		len += n;
	}
	x->path_len[x->depth++] = len;
	return 0;
}

static int
close_element(struct xml *x)
{
	int e = 0;

	x->depth--;
	if (x->depth == 0) {
		x->is_done = true;
		return 0;
	}
	x->path[x->path_len[x->depth]] = 0;
	x->text[x->text_len] = 0;
	e = x->fn(x->cookie, x->path, x->text, x->text_len);
	x->text_len = 0;
	return e;
}

static int
add_text(struct xml *x)
{
	const char *text = (const char *)xmlTextReaderConstValue(x->reader);
	size_t n = text ? strlen(text) : 0;

	if (n > TEXT_MAX - x->text_len)
		return -EPROTO;
	memcpy(x->text + x->text_len, text ? text : "", n);
	x->text_len += n;
	return 0;
}

static int
take_node(struct xml *x)
{
	int e;

	switch (xmlTextReaderNodeType(x->reader)) {
	case XML_READER_TYPE_ELEMENT:
		e = open_element(x);
		return e == 0 && xmlTextReaderIsEmptyElement(x->reader) ? close_element(x) : e;
	case XML_READER_TYPE_END_ELEMENT:
		return close_element(x);
	case XML_READER_TYPE_TEXT:
	case XML_READER_TYPE_CDATA:
	case XML_READER_TYPE_WHITESPACE:
	case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
		return add_text(x);
	case XML_READER_TYPE_COMMENT:
	case XML_READER_TYPE_PROCESSING_INSTRUCTION:
	case XML_READER_TYPE_XML_DECLARATION:
		return 0;
	default:
		return -EPROTO;
	}
}

int
xml_answer(const char *body, size_t len, const char *root, xml_fn *fn, void *cookie)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct xml *x;
	int e = 0, more = 0;

	/* Blanks in front keep a connection open while a server works. */
	while (len && strchr(" \t\r\n", *body) && *body) {
		body++;
		len--;
	}
	if (!len || len > INT32_MAX || memmem(body, len, "<!DOCTYPE", 9) ||
	    !markup_tags_are_short(body, len, TAG_MAX))
		return -EPROTO;
	pthread_once(&once, xmlInitParser);
	x = calloc(1, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->root = root;
	x->fn = fn;
	x->cookie = cookie;
	x->reader = xmlReaderForMemory(body, (int)len, NULL, "UTF-8",
				       XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (!x->reader)
		e = -ENOMEM;
	while (e == 0 && (more = xmlTextReaderRead(x->reader)) == 1)
		e = take_node(x);
	if (e == 0 && (more < 0 || !x->is_done))
		e = -EPROTO;
	xmlFreeTextReader(x->reader);
	free(x);
	return e;
}

/* Success that turns out to be none while the answer is on its way is told in the body. */
static int
error_in_success(struct call *c, const char *body, size_t len)
{
	char code[64];

	c->r.error_len = len < sizeof c->r.error ? len : sizeof c->r.error;
	memcpy(c->r.error, body, c->r.error_len);
	reply_xml(&c->r, "Code", code, sizeof code);
	if (!*code)
		return -EPROTO;
	reply_xml(&c->r, "Message", c->res->message, sizeof c->res->message);
	if (!strncmp(code, "NoSuch", 6))
		return -ENOENT;
	if (!strcmp(code, "PreconditionFailed"))
		return -ESTALE;
	return !strcmp(code, "SlowDown") || !strcmp(code, "ServiceUnavailable") ? -EAGAIN : -EIO;
}

int
call_xml(struct call *c, struct exchange *x, size_t cap, const char *root, xml_fn *fn, void *cookie)
{
	char *body = malloc(cap);
	int e;

	if (!body)
		return -ENOMEM;
	x->buffer = body;
	x->buffer_size = cap;
	e = call_s3(c, x);
	if (e == 0)
		e = c->r.body_overflow ? -EPROTO
				       : xml_answer(body, (size_t)c->r.body_bytes, root, fn, cookie);
	if (e == -ENOMSG)
		e = error_in_success(c, body, (size_t)c->r.body_bytes);
	if (e == -EPROTO && !*c->res->message)
		call_say(c, "the server's answer is not the XML that was asked for");
	free(body);
	return e;
}
