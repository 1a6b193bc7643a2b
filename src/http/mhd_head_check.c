/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door: takes a request's head from libmicrohttpd 0.9.75 and refuses what that library lets through.
 *
 * What header fields show (Content-Length beside chunked, repeated Host and the like) dialect/ refuses with
 * an error of its own; here is what it cannot see: bytes that no field may hold, names with a blank before
 * the colon (the library takes "Content-Length : 5" for an unknown field and the five bytes for a request),
 * heads that are too large, bytes that a NUL hides.  And here the connection is marked for closing when the
 * end of the request is a matter of opinion.
 */
#include "http/http_int.h"

#include "dialect/rules.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

void *
head_target(void *cls, const char *uri, struct MHD_Connection *mc)
{
	struct hconn *c = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	size_t len = strlen(uri);

	/* The library decodes and cuts its own copy next, in its own way: ours is decoded by dialect/. */
	conn_head_get(c);
	c->head->target_len = len;
	c->head->uri = uri;
	conn_target_set(c, uri, len <= HTTP_TARGET_MAX ? len : 0);
	return c;
}

static bool
target_is_clean(const char *s, size_t len)
{
	return len > 0 && !memchr(s, ' ', len) && !has_control(s, len);
}

struct gather {
	struct hconn *c;
	bool too_many, unclean;
	int lengths, codings, others; /* Content-Length, Transfer-Encoding, of these not "chunked" */
	bool length_given;            /* a Content-Length that is not 0 */
	const char *value_end;        /* of the field before this one */
};

/*
 * Expect with an empty body.  libmicrohttpd answers "100 Continue" when it has nothing better to say, which
 * is too late for an answer that is ready, unless the answer comes in the first call, and that closes the
 * connection.  So the library's copy of the value is made unknown to it (it lies in the connection's own
 * memory pool); ours stays as it was sent.  The 100 goes out here: botocore mistakes the answer to its *next*
 * request when a final one came without it on a connection that goes on.  A TLS session that takes
 * only half of a record could not go on with the library's; there the connection ends instead.
 */
static void
hide_expect(struct hconn *c, struct field *f)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (f->value_len >= sizeof c->head->expect || strcasecmp(f->value, "100-continue") != 0)
		return;
	memcpy(c->head->expect, f->value, f->value_len + 1);
	*(char *)(uintptr_t)f->value = '-';
	f->value = c->head->expect;
	/* The answer before this request is out, so nothing can be in the way. */
	c->close_after = c->l->cert || send(c->fd, go_on, sizeof go_on - 1, MSG_DONTWAIT | MSG_NOSIGNAL) !=
					       sizeof go_on - 1;
}

/*
 * Up to 0.9.76 the library glues a folded line to the name of its field: "Transfer-Encoding:" and " chunked"
 * on the next line become a field "Transfer-Encodingchunked", and the body a request.  The name is then a
 * copy, away from the value; otherwise both lie where they were received, with the colon (now a NUL) and
 * blanks between them.
 */
static bool
is_folded(const struct field *f)
{
	uintptr_t from = (uintptr_t)f->name + f->name_len + 1, to = (uintptr_t)f->value;
	const char *p = f->name + f->name_len + 1;

	if (to < from || to - from > HTTP_POOL_BYTES)
		return true;
	for (; from < to && is_blank(*p); p++)
		from++;
	return from < to;
}

/*
 * Up to 0.9.76 a NUL ends a target or a value, and the library ignores the text after it on the line: another
 * server may read another object's name there.  The head is in memory as it was received, so a line that ends
 * where its text does ends in one byte (LF) or two.
 */
static bool
is_gap(const char *from, const char *to, unsigned least, unsigned most)
{
	uintptr_t n = (uintptr_t)to - (uintptr_t)from;

	return n >= least && n <= most;
}

static bool
has_nul(const struct gather *g, const char *method, const char *version)
{
	const union MHD_ConnectionInfo *size =
		MHD_get_connection_info(g->c->mc, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	if (!is_gap(g->c->head->uri + g->c->head->target_len, version, 1, 1))
		return true;
	return g->value_end && size && !is_gap(g->value_end, method + size->header_size, 2, 4);
}

static void
look_at(struct gather *g, const struct field *f)
{
	if (f->name_len == 14 && strcasecmp(f->name, "content-length") == 0) {
		g->lengths++;
		g->length_given |= strspn(f->value, "0") != f->value_len;
	} else if (f->name_len == 17 && strcasecmp(f->name, "transfer-encoding") == 0) {
		g->codings++;
		g->others += strcasecmp(f->value, "chunked") != 0;
	}
}

static enum MHD_Result
gather_field(void *cookie, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
	     size_t value_len)
{
	struct gather *g = cookie;
	struct hconn *c = g->c;
	struct field *f;

	if (c->head->field_nr == DIALECT_FIELDS_MAX) {
		g->too_many = true;
		return MHD_NO;
	}
	f = &c->head->fields[c->head->field_nr++];
	*f = (struct field){ name, value ? value : "", (uint32_t)name_len,
			     (uint32_t)(value ? value_len : 0) };
	if (g->value_end && c->l->h->folds_wrong && !is_gap(g->value_end, name, 1, 2))
		g->unclean = true;
	g->value_end = f->value + f->value_len;
	/* Blanks after a value are not part of it. */
	while (f->value_len && (f->value[f->value_len - 1] == ' ' || f->value[f->value_len - 1] == '\t'))
		((char *)(uintptr_t)f->value)[--f->value_len] = 0;
	c->head->absent_lengths &= ~(UINT64_C(1) << name_len % 64);
	c->head->header_bytes += name_len + value_len + 4;
	if (!value || (c->l->h->folds_wrong && is_folded(f)))
		g->unclean = true;
	if (!dialect_is_field_name(f->name, f->name_len) || !dialect_is_text(f->value, f->value_len))
		g->unclean = true;
	look_at(g, f);
	return MHD_YES;
}

enum canned
head_check(struct hconn *c, const char *method, const char *version)
{
	struct gather g = { .c = c };
	size_t method_len = strlen(method);

	c->head->field_nr = 0;
	c->head->absent_lengths = UINT64_MAX;
	c->head->header_bytes = c->head->target_len + method_len;
	c->body_ended = false;
	c->close_after = false;
	MHD_get_connection_values_n(c->mc, MHD_HEADER_KIND, gather_field, &g);
	c->has_body = g.codings || g.length_given;
	/*
	 * The library ends a chunk's line at a bare LF, where others go on reading: to a proxy that sends
	 * such a body on as it came, a request may be in it that is one to us alone.  So the bytes after a
	 * body in chunks are never read.
	 */
	c->must_close = g.lengths > 1 || g.codings;
	if (g.too_many || c->head->header_bytes > HTTP_HEADER_MAX ||
	    c->head->header_bytes + (size_t)c->head->field_nr * HTTP_FIELD_BYTES > HTTP_NOTED_MAX)
		return CANNED_TOO_LARGE;
	if (c->head->target_len > HTTP_TARGET_MAX || !target_is_clean(c->head->target, c->head->target_len))
		return CANNED_BAD_URI;
	if (c->l->h->folds_wrong && has_nul(&g, method, version))
		return CANNED_BAD;
	if (g.unclean || g.others || !dialect_is_field_name(method, method_len))
		return CANNED_BAD;
	for (int i = 0; i < c->head->field_nr && !c->has_body; i++) {
		if (c->head->fields[i].name_len == 6 && strcasecmp(c->head->fields[i].name, "expect") == 0)
			hide_expect(c, &c->head->fields[i]);
	}
	return CANNED_NR;
}
