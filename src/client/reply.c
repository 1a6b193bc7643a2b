/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer means.  Pure functions: the honesty of libgantry is here, and tested without a network.
 *
 * Success by RDMA needs HTTP 2xx, a reply code of 200 or 206 and, on GET, the number of bytes (item 116); the
 * Scality dialect has no such headers, its 2xx is success.  No reply code, or 501, is a decline.  Everything
 * that contradicts itself is treated as not done by RDMA.
 */
#include "client/client_int.h"

#include "base/printable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void
reply_init(struct reply *r)
{
	*r = (struct reply){ 0 };
}

/* A plain decimal number of at most 20 digits, with nothing after it but what `tail` may begin with. */
static bool
decimal(const char *text, const char *tail, uint64_t *ret_value, const char **ret_end)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	if (errno || (*end && !strchr(tail, *end)))
		return false;
	*ret_end = end;
	return true;
}

/* It goes to a terminal or a log sooner or later, and a server may have chosen it to do something there. */
bool
reply_copy(char *out, size_t cap, const char *text)
{
	snprintf(out, cap, "%s", text);
	return !printable(out, "");
}

/* bytes A-B/TOTAL, bytes A-B/ *, bytes * /TOTAL (without the blanks) */
static void
content_range(struct reply *r, const char *v)
{
	const char *end;
	uint64_t first, last;

	if (strncasecmp(v, "bytes ", 6) != 0)
		return;
	v += 6;
	if (*v == '*') {
		end = v + 1;
	} else {
		if (!decimal(v, "-", &first, &end) || *end != '-' || !decimal(end + 1, "/", &last, &end) ||
		    last < first)
			return;
		r->has_range = true;
		r->range_first = first;
		r->range_last = last;
	}
	if (*end == '/' && decimal(end + 1, "", &r->range_total, &end))
		r->has_total = true;
}

void
reply_header(struct reply *r, const char *line, size_t len)
{
	char text[1024], *v;
	const char *end;
	uint64_t n;

	snprintf(text, sizeof text, "%.*s", (int)len, line);
	v = strchr(text, ':');
	if (!v)
		return;
	*v++ = 0;
	v += strspn(v, " \t");
	for (size_t l = strlen(v); l && strchr(" \t\r\n", v[l - 1]); l--)
		v[l - 1] = 0;
	if (!strcasecmp(text, "x-amz-request-id")) {
		r->has_request_id = true;
	} else if (!strcasecmp(text, "x-amz-rdma-reply")) {
		/* A code and perhaps a peer token after a colon, which only connected transports use. */
		r->has_reply = true;
		r->code = decimal(v, ":", &n, &end) && n <= 999 ? (int)n : -1;
	} else if (!strcasecmp(text, "x-amz-rdma-bytes-transferred") ||
		   (!strcasecmp(text, "x-amz-rdma-bytes") && !r->has_bytes)) {
		if (decimal(v, "/", &n, &end)) {
			r->has_bytes = true;
			r->bytes = n;
		}
	} else if (!strcasecmp(text, "content-length")) {
		r->has_content_length = decimal(v, "", &r->content_length, &end);
	} else if (!strcasecmp(text, "transfer-encoding")) {
		r->is_chunked = !strcasecmp(v, "chunked");
	} else if (!strcasecmp(text, "content-range")) {
		content_range(r, v);
	} else if (!strcasecmp(text, "etag")) {
		/* One that is not what the server has is none: it would match nothing. */
		if (!reply_copy(r->etag, sizeof r->etag, v))
			*r->etag = 0;
	} else if (!strcasecmp(text, "x-gantry-rdma-reason")) {
		reply_copy(r->reason, sizeof r->reason, v);
	} else if (!strcasecmp(text, "x-gantry-copies")) {
		r->copies = decimal(v, "", &n, &end) && n <= 255 ? (unsigned)n : 0;
	} else if (!strcasecmp(text, "x-amz-rdma-checksum")) {
		reply_copy(r->checksum, sizeof r->checksum, v);
	} else if (!strcasecmp(text, "x-amz-checksum-crc64nvme")) {
		reply_copy(r->stored_checksum, sizeof r->stored_checksum, v);
	} else if (!strcasecmp(text, "last-modified")) {
		reply_copy(r->last_modified, sizeof r->last_modified, v);
	} else if (!strcasecmp(text, "retry-after")) {
		if (decimal(v, "", &n, &end))
			r->retry_after_s = n > 60 ? 60 : (unsigned)n;
	}
}

void
reply_header_to(const char *line, size_t len, gantry_header_fn *fn, void *cookie)
{
	char *name = strndup(line, len), *value = name ? strchr(name, ':') : NULL;

	if (value && value > name) {
		*value++ = 0;
		value += strspn(value, " \t\r\n");
		for (size_t n = strlen(value); n && strchr(" \t\r\n", value[n - 1]); n--)
			value[n - 1] = 0;
		for (char *p = name; *p; p++)
			*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
		printable(name, "");
		printable(value, "");
		fn(cookie, name, value);
	}
	free(name);
}

static void
unescape(const char *from, size_t len, char *out, size_t cap)
{
	static const struct {
		const char *name;
		char c;
	} entity[] = {
		{ "&lt;", '<' }, { "&gt;", '>' }, { "&amp;", '&' }, { "&quot;", '"' }, { "&apos;", '\'' }
	};
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < cap; i++) {
		char c = from[i];

		for (size_t k = 0; c == '&' && k < sizeof entity / sizeof *entity; k++) {
			size_t l = strlen(entity[k].name);

			if (len - i >= l && !memcmp(from + i, entity[k].name, l)) {
				c = entity[k].c;
				i += l - 1;
				break;
			}
		}
		out[n++] = c;
	}
	out[n] = 0;
	printable(out, "");
}

void
reply_xml(const struct reply *r, const char *name, char *out, size_t cap)
{
	char open[64];
	const char *end = r->error + r->error_len;

	*out = 0;
	snprintf(open, sizeof open, "<%s>", name);
	const char *from = memmem(r->error, r->error_len, open, strlen(open));

	if (!from)
		return;
	from += strlen(open);
	snprintf(open, sizeof open, "</%s>", name);
	const char *to = memmem(from, (size_t)(end - from), open, strlen(open));

	unescape(from, (size_t)((to ? to : end) - from), out, cap);
}

static bool
is_2xx(const struct reply *r)
{
	return r->status >= 200 && r->status <= 299;
}

/* The request was refused as such, with or without RDMA. */
static enum verdict
judge_error(const struct reply *r, enum gantry_dialect d, const char **ret_why)
{
	if (r->has_reply && (r->code == 501 || r->status == 501)) {
		*ret_why = "the server declined";
		return VERDICT_DECLINED;
	}
	if (r->status == 501) {
		*ret_why = "the server does not support this kind of token";
		return VERDICT_DECLINED;
	}
	/* A reply code beside an error status speaks of the transfer;
	 * Scality's dialect has only the status. */
	if (r->has_reply || (d == GANTRY_SCALITY && r->status == 500)) {
		*ret_why = "the transfer failed";
		return VERDICT_FAILED;
	}
	if (r->status == 503)
		return VERDICT_BUSY;
	return r->status == 416 ? VERDICT_END : VERDICT_ERROR;
}

enum verdict
judge_put(const struct reply *r, enum gantry_dialect d, uint64_t size, const char **ret_why)
{
	*ret_why = "";
	if (!is_2xx(r))
		return judge_error(r, d, ret_why);
	if (d == GANTRY_SCALITY)
		return VERDICT_RDMA;
	if (!r->has_reply) {
		*ret_why = "the server ignored the token";
		return VERDICT_DECLINED;
	}
	if (r->code == 501) {
		*ret_why = "the server declined";
		return VERDICT_DECLINED;
	}
	if (r->code != 200 && r->code != 206) {
		*ret_why = "the transfer failed";
		return VERDICT_FAILED;
	}
	if (r->has_bytes && r->bytes != size) {
		*ret_why = "the server took another number of bytes";
		return VERDICT_FAILED;
	}
	if (r->body_bytes) {
		*ret_why = "the server's answer has a body in addition to its success";
		return VERDICT_FAILED;
	}
	return VERDICT_RDMA;
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Is `bytes` all that size bytes from offset on can be?  A server or a cache may answer less of a range than
 * was asked (RFC 9110 15.3.7): what is short and does not reach the object's end is not the answer that a
 * caller believes to have.  whole: how long the object is when the answer is not of a range.
 */
static bool
is_all(const struct reply *r, uint64_t offset, uint64_t size, uint64_t bytes, uint64_t whole)
{
	if (r->has_range) {
		if (r->range_first != offset || r->range_last - r->range_first + 1 != bytes)
			return false;
		if (!r->has_total)
			return bytes == size;
		return r->range_last < r->range_total && bytes == smaller(size, r->range_total - offset);
	}
	/* Without a range in the answer it is the object from its first byte on; unless it says that it is
	 * only a part. */
	if (offset != 0)
		return false;
	return bytes == (r->status == 206 || r->code == 206 ? size : smaller(size, whole));
}

bool
body_is_all(const struct reply *r, uint64_t offset, uint64_t size)
{
	uint64_t whole = UINT64_MAX; /* it ends where the connection does: nobody knows whether that is all */

	if (r->is_chunked)
		whole = r->body_bytes;
	else if (r->has_content_length)
		whole = r->content_length;
	/* More than fits is the rest of an object, of which no range was taken. */
	if (r->body_overflow && (r->has_range || r->status == 206))
		return false;
	if (r->body_overflow)
		whole = UINT64_MAX;
	return is_all(r, offset, size, r->body_bytes, whole);
}

/* A 2xx whose body should hold the data. */
static enum verdict
judge_body(const struct reply *r, uint64_t offset, uint64_t size, uint64_t *ret_bytes, const char **ret_why)
{
	if (!r->body_bytes || r->body_overflow || !body_is_all(r, offset, size))
		return VERDICT_DECLINED; /* ask again, without a token */
	*ret_bytes = r->body_bytes;
	if (!**ret_why)
		*ret_why = "the server declined";
	return VERDICT_BODY;
}

static enum verdict
judge_get_scality(const struct reply *r, uint64_t offset, uint64_t size, uint64_t *ret_bytes,
		  const char **ret_why)
{
	if (r->body_bytes) {
		*ret_why = "the server sent the data in the body";
		return judge_body(r, offset, size, ret_bytes, ret_why);
	}
	/* We always ask for a range: only its echo says how much came. */
	if (!r->has_range) {
		*ret_why = "the server does not say how many bytes it moved";
		return VERDICT_DECLINED;
	}
	if (r->range_first != offset || r->range_last - r->range_first >= size) {
		*ret_why = "the server moved another range";
		return VERDICT_FAILED;
	}
	*ret_bytes = r->range_last - r->range_first + 1;
	if (!is_all(r, offset, size, *ret_bytes, 0)) {
		*ret_bytes = 0;
		*ret_why = "the server moved fewer bytes than there are";
		return VERDICT_FAILED;
	}
	return VERDICT_RDMA;
}

enum verdict
judge_get(const struct reply *r, enum gantry_dialect d, uint64_t offset, uint64_t size, uint64_t *ret_bytes,
	  const char **ret_why)
{
	*ret_why = "";
	if (!is_2xx(r))
		return judge_error(r, d, ret_why);
	if (d == GANTRY_SCALITY)
		return judge_get_scality(r, offset, size, ret_bytes, ret_why);
	if (!r->has_reply || r->code == 501) {
		*ret_why = r->has_reply ? "the server declined" : "the server ignored the token";
		return judge_body(r, offset, size, ret_bytes, ret_why);
	}
	if (r->code != 200 && r->code != 206) {
		*ret_why = "the transfer failed";
		return VERDICT_FAILED;
	}
	if (!r->has_bytes) {
		*ret_why = "the server does not say how many bytes it moved";
		return VERDICT_DECLINED;
	}
	if (r->bytes > size || r->body_bytes ||
	    (r->has_range && (r->range_first != offset || r->range_last - r->range_first + 1 != r->bytes)) ||
	    (!r->has_range && offset != 0)) {
		*ret_why = "the server's answer contradicts itself";
		return VERDICT_FAILED;
	}
	if (!is_all(r, offset, size, r->bytes, r->bytes)) {
		*ret_why = "the server moved fewer bytes than there are";
		return VERDICT_FAILED;
	}
	*ret_bytes = r->bytes;
	return VERDICT_RDMA;
}

enum verdict
judge_plain(const struct reply *r)
{
	if (is_2xx(r))
		return VERDICT_BODY;
	if (r->status == 503)
		return VERDICT_BUSY;
	return r->status == 416 ? VERDICT_END : VERDICT_ERROR;
}

int
status_errno(const struct reply *r)
{
	switch (r->status) {
	case 401:
	case 403:
		return -EACCES;
	case 404:
		return -ENOENT;
	case 409:
		return -EEXIST;
	case 412:
		return -ESTALE;
	case 413:
		return -EFBIG;
	case 416:
		return -ERANGE;
	case 400:
	case 405:
		return -EINVAL;
	case 503:
		return -EAGAIN;
	case 507:
		return -ENOSPC;
	}
	return -EIO;
}
