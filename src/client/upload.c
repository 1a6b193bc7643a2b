/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in parts, and copies that the server makes by itself.  Parts take the way of gantry_put(). */
#include "client/client_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES (64u << 10)
/* A server may work on these for long without a word. */
#define WORK_TIMEOUT_MS 600000u
#define NO_PART INT_MIN /* instead of a part's number */

/* What these answers say. */
struct said {
	char id[GANTRY_UPLOAD_ID_MAX], etag[136], sum[16];
	bool is_whole; /* what was asked for is there */
};

static int
on_element(void *cookie, const char *path, const char *text, size_t len)
{
	struct said *s = cookie;
	char *out = NULL;
	size_t cap = 0;

	if (!strcmp(path, "UploadId")) {
		out = s->id;
		cap = sizeof s->id;
	} else if (!strcmp(path, "ETag")) {
		out = s->etag;
		cap = sizeof s->etag;
	} else if (!strcmp(path, "ChecksumCRC64NVME")) {
		out = s->sum;
		cap = sizeof s->sum;
	}
	if (out && (len >= cap || !reply_copy(out, cap, text)))
		return -EPROTO;
	return 0;
}

static void
take_said(struct call *c, const struct said *s)
{
	snprintf(c->r.etag, sizeof c->r.etag, "%s", s->etag);
	snprintf(c->r.stored_checksum, sizeof c->r.stored_checksum, "%s", s->sum);
}

/* Appends the upload's id and a part's number to the call's URL. */
static int
name_upload(struct call *c, const char *id, int number)
{
	char text[16];
	struct field pair[] = { { "partNumber", number == NO_PART ? NULL : text }, { "uploadId", id } };
	bool is_named = id && *id;
	char *url;

	if (!is_named || (number != NO_PART && (number < 1 || number > GANTRY_PARTS_MAX))) {
		call_say(c, is_named ? "the number of a part is 1 to 10000" : "no upload is named");
		return -EINVAL;
	}
	snprintf(text, sizeof text, "%d", number);
	url = url_query(c->url, pair, 2);
	if (!url)
		return -ENOMEM;
	free(c->url);
	c->url = url;
	return 0;
}

int
gantry_upload_begin(struct gantry *g, const char *url, const struct gantry_request *req, char *ret_id,
		    struct gantry_result *res)
{
	const struct field pair = { "uploads", "" };
	struct gantry_result own;
	struct said said = { .id = "" };
	struct call c;
	char *begin = NULL;
	int e = call_begin(&c, g, url, req, res, &own);

	*ret_id = 0;
	if (e == 0) {
		begin = url_query(c.url, &pair, 1);
		e = begin ? 0 : -ENOMEM;
	}
	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_POST);

		x.url = begin;
		if (c.req.checksum) {
			x.extra[0] = (struct field){ "x-amz-checksum-algorithm", "CRC64NVME" };
			x.extra[1] = (struct field){ "x-amz-checksum-type", "FULL_OBJECT" };
		}
		e = call_xml(&c, &x, ANSWER_BYTES, "InitiateMultipartUploadResult", on_element, &said);
	}
	if (e == 0 && !*said.id) {
		call_say(&c, "the server began an upload and does not say its id");
		e = -EPROTO;
	}
	if (e == 0)
		memcpy(ret_id, said.id, sizeof said.id);
	free(begin);
	return call_end(&c, e, res);
}

int
gantry_upload_put(struct gantry *g, const char *url, const char *id, int number, const void *ptr, size_t size,
		  const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, NULL, res, &own);

	if (e == 0 && g->dialect != GANTRY_S3) {
		call_say(&c, "the scality dialect has no such request");
		e = -EOPNOTSUPP;
	}
	if (e == 0)
		e = name_upload(&c, id, number);
	if (e < 0)
		return call_end(&c, e, res);

	char *part = c.url;

	c.url = NULL;
	call_end(&c, 0, NULL);
	e = gantry_put(g, part, ptr, size, req, res);
	free(part);
	return e;
}

/* ---- copies ---- */

/* "/bucket/key" of a URL on the same server as the call's.  malloc'ed; NULL with an error. */
static char *
source_path(struct call *c, const char *source, int *ret_e)
{
	char *clean = source ? url_clean(source) : NULL, *path;
	const char *slashes = clean ? strstr(clean, "://") : NULL;
	size_t host;

	*ret_e = clean ? -EINVAL : source ? -ENOMEM : -EINVAL;
	if (!slashes || strchr(clean, '?')) {
		call_say(c, "the source of a copy is a URL without a query");
		free(clean);
		return NULL;
	}
	host = (size_t)(slashes + 3 - clean);
	host += strcspn(clean + host, "/");
	if (strncmp(clean, c->url, host) != 0 || (c->url[host] && !strchr("/?", c->url[host]))) {
		call_say(c, "source and destination of a copy are not on the same server");
		*ret_e = -EXDEV;
		free(clean);
		return NULL;
	}
	path = strdup(clean + host);
	free(clean);
	*ret_e = path ? 0 : -ENOMEM;
	if (path && strlen(path) > FIELD_VALUE_MAX) {
		call_say(c, "the source's name is too long");
		*ret_e = -ENAMETOOLONG;
		free(path);
		return NULL;
	}
	return path;
}

/* The request of a copy, of the whole or of a range. */
static int
copy(struct call *c, const char *source, const char *range, const char *root)
{
	struct exchange x = call_exchange(c, METHOD_PUT);
	struct said said = { .id = "" };
	int e, n = 0;
	char *path = source_path(c, source, &e);

	if (!path)
		return e;
	x.extra[n++] = (struct field){ "x-amz-copy-source", path };
	if (range)
		x.extra[n++] = (struct field){ "x-amz-copy-source-range", range };
	if (c->req.source_if_match)
		x.extra[n++] = (struct field){ "x-amz-copy-source-if-match", c->req.source_if_match };
	/* A copy keeps its source's type. */
	x.no_content_type = true;
	if (!x.timeout_ms)
		x.timeout_ms = WORK_TIMEOUT_MS;
	e = call_xml(c, &x, ANSWER_BYTES, root, on_element, &said);
	if (e == 0)
		take_said(c, &said);
	free(path);
	return e;
}

int
gantry_copy(struct gantry *g, const char *url, const char *source, const struct gantry_request *req,
	    struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0)
		e = copy(&c, source, NULL, "CopyObjectResult");
	return call_end(&c, e, res);
}

int
gantry_upload_copy(struct gantry *g, const char *url, const char *id, int number, const char *source,
		   uint64_t first, uint64_t size, const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	char range[64];
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0 && (first + size < first || (size == 0 && first))) {
		call_say(&c, "a range of a copy that is none");
		e = -EINVAL;
	}
	if (e == 0)
		e = name_upload(&c, id, number);
	if (e == 0) {
		snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)first,
			 (unsigned long long)(first + size - 1));
		e = copy(&c, source, size ? range : NULL, "CopyPartResult");
	}
	return call_end(&c, e, res);
}

/* ---- the end of an upload ---- */

static void
print_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", f);
		else if (*text == '&')
			fputs("&amp;", f);
		else
			putc(*text, f);
	}
}

/* The document that names the parts.  malloc'ed; NULL: no memory. */
static char *
completion(const struct gantry_part *parts, size_t nr, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	fputs("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", f);
	for (size_t i = 0; i < nr; i++) {
		fprintf(f, "<Part><PartNumber>%d</PartNumber><ETag>", parts[i].number);
		print_text(f, parts[i].etag);
		fputs("</ETag></Part>", f);
	}
	fputs("</CompleteMultipartUpload>", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

int
gantry_upload_complete(struct gantry *g, const char *url, const char *id, const struct gantry_part *parts,
		       size_t nr, const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own;
	struct said said = { .id = "" };
	struct call c;
	char *body = NULL;
	size_t len;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0)
		e = name_upload(&c, id, NO_PART);
	if (e == 0) {
		body = completion(parts, nr, &len);
		e = body ? 0 : -ENOMEM;
	}
	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_POST);

		x.body = body;
		x.size = len;
		x.content_type = "application/xml";
		if (!x.timeout_ms)
			x.timeout_ms = WORK_TIMEOUT_MS;
		e = call_xml(&c, &x, ANSWER_BYTES, "CompleteMultipartUploadResult", on_element, &said);
	}
	if (e == 0)
		take_said(&c, &said);
	free(body);
	return call_end(&c, e, res);
}

int
gantry_upload_abort(struct gantry *g, const char *url, const char *id, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, NULL, res, &own);

	if (e == 0)
		e = name_upload(&c, id, NO_PART);
	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_DELETE);

		e = call_s3(&c, &x);
	}
	return call_end(&c, e, res);
}
