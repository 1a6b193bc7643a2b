/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of errors, in both dialects: into room that is there, since no memory may be what is wrong.  See
 * dialect.h. */
#include "dialect/dialect_int.h"

#include <stdarg.h>
#include <stdio.h>

struct writer {
	char *out;
	size_t cap, len;
	bool full;
};

static void
put(struct writer *w, const char *p, size_t len)
{
	if (w->full || len > w->cap - w->len) {
		w->full = true;
		return;
	}
	memcpy(w->out + w->len, p, len);
	w->len += len;
}

static void
put_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void
putf(struct writer *w, const char *fmt, ...)
{
	char text[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	put(w, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* Escaped; what XML 1.0 cannot hold, and bytes above ASCII that may be anything, become '?'. */
static void
put_escaped(struct writer *w, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)p[i];

		switch (c) {
		case '&':
			put_text(w, "&amp;");
			break;
		case '<':
			put_text(w, "&lt;");
			break;
		case '>':
			put_text(w, "&gt;");
			break;
		case '"':
			put_text(w, "&quot;");
			break;
		case '\'':
			put_text(w, "&apos;");
			break;
		default:
			put(w, c < 0x20 || c >= 0x7f ? "?" : &p[i], 1);
			break;
		}
	}
}

static void
put_element(struct writer *w, const char *name, const char *text, size_t len)
{
	putf(w, "<%s>", name);
	put_escaped(w, text, len);
	putf(w, "</%s>", name);
}

/* The same with the line ends that it has. */
static void
put_lines(struct writer *w, const char *name, const char *text, size_t len)
{
	struct span rest = { text, len };

	putf(w, "<%s>", name);
	while (rest.len) {
		struct span line = span_cut(&rest, '\n');

		put_escaped(w, line.p, line.len);
		put(w, "\n", rest.p[-1] == '\n');
	}
	putf(w, "</%s>", name);
}

static size_t
written(const struct writer *w)
{
	return w->full ? 0 : w->len;
}

static size_t
error_xml(enum fault f, const struct error_detail *e, bool resource, bool explain, char *out, size_t cap)
{
	const struct fault_info *fi = fault_info(f);
	const char *message = e->message && *e->message ? e->message : fi->message;
	struct writer w = { out, cap, 0, false };

	put_text(&w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>");
	put_element(&w, "Code", fi->code, strlen(fi->code));
	put_element(&w, "Message", message, strlen(message));
	if (resource)
		put_element(&w, "Resource", e->resource, e->resource_len);
	if (e->range_text)
		put_element(&w, "RangeRequested", e->range_text, strlen(e->range_text));
	if (e->have_size)
		putf(&w, "<ActualObjectSize>%llu</ActualObjectSize>", (unsigned long long)e->size_bytes);
	if (e->region)
		put_element(&w, "Region", e->region, strlen(e->region));
	if (explain) {
		put_lines(&w, "StringToSign", e->to_sign, strlen(e->to_sign));
		put_lines(&w, "CanonicalRequest", e->canonical, e->canonical_len);
	}
	if (e->request_id)
		put_element(&w, "RequestId", e->request_id, strlen(e->request_id));
	put_text(&w, "</Error>");
	return written(&w);
}

size_t
dialect_error_body(enum conf_dialect d, enum fault f, const struct error_detail *e, char *out, size_t cap)
{
	const struct fault_info *fi = fault_info(f);
	size_t n;

	if (d == DIALECT_SCALITY) {
		struct writer w = { out, cap, 0, false };

		put_text(&w, fi->code);
		put_text(&w, ": ");
		put_text(&w, e->message && *e->message ? e->message : fi->message);
		put_text(&w, "\n");
		return written(&w);
	}
	/* A resource may be all quotes and ten times its size: better without it than no body. */
	n = e->canonical ? error_xml(f, e, e->resource != NULL, true, out, cap) : 0;
	if (n == 0)
		n = error_xml(f, e, e->resource != NULL, false, out, cap);
	return n || !e->resource ? n : error_xml(f, e, false, false, out, cap);
}
