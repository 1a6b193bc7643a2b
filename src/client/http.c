/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP exchange over libcurl.  A handle keeps its connections and is used by one call at a time; idle
 * ones wait in the context, last used first, so that a single thread stays on one connection.
 */
#include "client/client_int.h"

#include "base/clock.h"
#include "base/printable.h"
#include "client/stage.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without a time-out an exchange may last, but not stand still. */
#define STALL_S 30L

static const char *const method_name[] = { [METHOD_PUT] = "PUT",
					   [METHOD_GET] = "GET",
					   [METHOD_HEAD] = "HEAD",
					   [METHOD_DELETE] = "DELETE",
					   [METHOD_POST] = "POST" };

struct handle {
	struct handle *next;
	struct gantry *g;
	CURL *curl;
	/* The exchange that runs. */
	const struct exchange *x;
	struct reply *r;
	uint64_t sent;
	int copy_error; /* what copying from or to memory of a device came to */
	char copy_why[200];
	struct bounce *bounce; /* of memory of a device, where no function of the program's copies */
	bool has_head;         /* of the answer that counts: what follows are a body and trailers */
};

struct handle *
handle_get(struct gantry *g)
{
	pthread_mutex_lock(&g->lock);
	struct handle *h = g->free_handles;

	if (h)
		g->free_handles = h->next;
	pthread_mutex_unlock(&g->lock);
	if (h)
		return h;
	h = calloc(1, sizeof *h);
	if (!h)
		return NULL;
	h->g = g;
	h->curl = curl_easy_init();
	if (!h->curl) {
		free(h);
		return NULL;
	}
	return h;
}

void
handle_put(struct gantry *g, struct handle *h)
{
	pthread_mutex_lock(&g->lock);
	h->next = g->free_handles;
	g->free_handles = h;
	pthread_mutex_unlock(&g->lock);
}

void
handles_close(struct gantry *g)
{
	while (g->free_handles) {
		struct handle *h = g->free_handles;

		g->free_handles = h->next;
		curl_easy_cleanup(h->curl);
		free(h);
	}
}

/* ---- curl's callbacks ---- */

static size_t
on_header(char *line, size_t size, size_t n, void *cookie)
{
	struct handle *h = cookie;
	long status = 0;

	/* Trailers say nothing: they came when the answer was known already. */
	if (h->has_head)
		return size * n;
	/* A status line begins a new answer (after 100 Continue): what came before does not count. */
	if (n >= 5 && !memcmp(line, "HTTP/", 5)) {
		reply_init(h->r);
		h->r->first_ns = clock_ns();
	} else if (*line == '\r' || *line == '\n') {
		curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
		h->has_head = status >= 200;
	} else {
		reply_header(h->r, line, n);
		curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
		if (h->x->header && status >= 200 && status <= 299)
			reply_header_to(line, n, h->x->header, h->x->header_cookie);
	}
	return size * n;
}

/* ---- between curl's buffers and the memory of the call ---- */

/* Copies as the program says. */
static int
copy_by_program(struct handle *h, void *dst, const void *src, size_t n, enum gantry_copy_to to)
{
	int e = h->g->copy(h->g->copy_cookie, dst, src, n, to);

	e = e <= 0 ? e : -EIO;
	if (e < 0)
		snprintf(h->copy_why, sizeof h->copy_why, "the copy function for memory of a device: %s",
			 error_text(-e));
	return e;
}

static int
has_bounce(struct handle *h, const void *memory, uint64_t size)
{
	return h->bounce ? 0 : bounce_open(h->g, memory, size, &h->bounce, h->copy_why, sizeof h->copy_why);
}

/* Takes the next n bytes of the body that is sent. */
static bool
take(struct handle *h, char *out, size_t n)
{
	const char *from = (const char *)h->x->body + h->sent, *ready;
	size_t nr;
	int e = 0;

	if (!h->x->is_device) {
		memcpy(out, from, n);
	} else if (h->g->copy) {
		e = copy_by_program(h, out, from, n, GANTRY_TO_HOST);
	} else {
		e = has_bounce(h, h->x->body, h->x->size);
		for (uint64_t at = h->sent; e == 0 && n > 0; at += nr, out += nr, n -= nr) {
			e = bounce_peek(h->bounce, at, &ready, &nr, h->copy_why, sizeof h->copy_why);
			nr = e < 0 ? 0 : nr < n ? nr : n;
			memcpy(out, e < 0 ? out : ready, nr);
		}
	}
	h->copy_error = e;
	return e == 0;
}

/* Puts the next n bytes of the body that came where they belong. */
static bool
put_down(struct handle *h, const char *bytes, size_t n)
{
	uint64_t at = h->r->body_bytes;
	char *to = (char *)h->x->buffer + at;
	int e = 0;

	if (!h->x->is_device) {
		memcpy(to, bytes, n);
	} else if (h->g->copy) {
		e = copy_by_program(h, to, bytes, n, GANTRY_TO_DEVICE);
	} else {
		e = has_bounce(h, h->x->buffer, h->x->buffer_size);
		if (e == 0)
			e = bounce_push(h->bounce, at, bytes, n, h->copy_why, sizeof h->copy_why);
	}
	h->copy_error = e;
	return e == 0;
}

/* ---- curl's callbacks: bodies ---- */

static size_t
on_body(char *bytes, size_t size, size_t n, void *cookie)
{
	struct handle *h = cookie;
	struct reply *r = h->r;
	long status = 0;

	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200 || status > 299 || !h->x->buffer) {
		size_t room = sizeof r->error - r->error_len, take = n < room ? n : room;

		memcpy(r->error + r->error_len, bytes, take);
		r->error_len += take;
		r->body_bytes += n;
		return n;
	}
	if (n > h->x->buffer_size - r->body_bytes) {
		n = (size_t)(h->x->buffer_size - r->body_bytes);
		r->body_overflow = true;
	}
	if (n && !put_down(h, bytes, n))
		return 0;
	r->body_bytes += n;
	if (r->body_overflow)
		return 0; /* ends the exchange */
	return n;
}

static size_t
on_read(char *out, size_t size, size_t n, void *cookie)
{
	struct handle *h = cookie;
	uint64_t left = h->x->size - h->sent;
	size_t nr = left < n * size ? (size_t)left : n * size;

	if (nr && !take(h, out, nr))
		return CURL_READFUNC_ABORT;
	h->sent += nr;
	return nr;
}

/* curl rewinds a body when a kept connection turns out to be dead. */
static int
on_seek(void *cookie, curl_off_t offset, int origin)
{
	struct handle *h = cookie;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > h->x->size)
		return CURL_SEEKFUNC_FAIL;
	h->sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- one exchange ---- */

static struct curl_slist *
add_header(struct curl_slist *list, const char *name, const char *value)
{
	char line[FIELD_VALUE_MAX + 64];

	/* The value may be a program's: it must not bring headers of its own. */
	snprintf(line, sizeof line, "%s: %.*s", name, FIELD_VALUE_MAX, value);
	line[strcspn(line, "\r\n")] = 0;
	return curl_slist_append(list, line);
}

bool
fits_header(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static struct curl_slist *
headers(const struct exchange *x)
{
	/* No "Expect: 100-continue": a refusal comes early anyway, and a token's PUT has no body. */
	struct curl_slist *l = curl_slist_append(NULL, "Expect:");
	char text[64];

	if (x->token)
		l = add_header(l, x->dialect == GANTRY_SCALITY ? "x-scal-rdma" : "x-amz-rdma-token",
			       x->token);
	/* Not CURLOPT_RANGE: what is in this list is signed. */
	if (x->has_range) {
		snprintf(text, sizeof text, "bytes=%llu-%llu", (unsigned long long)x->range_first,
			 (unsigned long long)x->range_last);
		l = add_header(l, "range", text);
	}
	if (x->checksum)
		l = add_header(l, "x-amz-checksum-crc64nvme", x->checksum);
	if (x->want_checksum)
		l = add_header(l, "x-amz-checksum-mode", "ENABLED");
	if (x->if_match)
		l = add_header(l, "if-match", x->if_match);
	if (x->if_none_match)
		l = add_header(l, "if-none-match", x->if_none_match);
	if (x->ttl_s && (x->method == METHOD_PUT || x->method == METHOD_POST)) {
		snprintf(text, sizeof text, "%llu", (unsigned long long)x->ttl_s);
		l = add_header(l, "x-gantry-ttl", text);
	}
	for (int i = 0; i < EXTRA_MAX && x->extra[i].name; i++)
		l = add_header(l, x->extra[i].name, x->extra[i].value);
	if ((x->method == METHOD_PUT || x->method == METHOD_POST) && !x->no_content_type)
		l = add_header(l, "content-type",
			       x->content_type ? x->content_type : "application/octet-stream");
	return l;
}

static void
set_method(CURL *c, struct handle *h, const struct exchange *x)
{
	switch (x->method) {
	case METHOD_PUT:
		/* With a token the body is empty, and Content-Length: 0 says so. */
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(x->body ? x->size : 0));
		curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
		curl_easy_setopt(c, CURLOPT_READDATA, h);
		curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
		curl_easy_setopt(c, CURLOPT_SEEKDATA, h);
		break;
	case METHOD_POST:
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(x->body ? x->size : 0));
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, x->body ? x->body : "");
		break;
	case METHOD_GET:
		curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
		break;
	case METHOD_HEAD:
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
		break;
	case METHOD_DELETE:
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, "DELETE");
		break;
	}
}

static int
curl_errno(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EINVAL;
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
	case CURLE_PARTIAL_FILE:
		return -EPIPE;
	default:
		return -EIO;
	}
}

/* Sets the options of an exchange. error: buffer of CURL_ERROR_SIZE bytes for the reason of a failure. */
static void
set_options(struct handle *h, const struct exchange *x, struct curl_slist *list, char *error)
{
	CURL *c = h->curl;

	curl_easy_reset(c); /* keeps the connections */
	curl_easy_setopt(c, CURLOPT_URL, x->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	if (h->g->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, h->g->ca_file);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	/* A proxy has another address than the memory of this client. */
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "libgantry/" GANTRY_VERSION);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)x->connect_timeout_ms);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)x->timeout_ms);
	if (!x->timeout_ms) {
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, STALL_S);
	}
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 262144L);
	curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, 262144L);
	set_method(c, h, x);
}

/* Returns the result of an exchange, with a reason in why if it is an error. code, e: result of libcurl, as its code and as
 * 0 or -errno. */
static int
judge(struct handle *h, CURLcode code, int e, const char *error, char *why, size_t why_len)
{
	/* The caller judges a body that is too long; the response is complete otherwise. */
	if (code == CURLE_WRITE_ERROR && h->r->body_overflow)
		e = 0;
	if (h->copy_error < 0) {
		snprintf(why, why_len, "%s", h->copy_why);
		return h->copy_error;
	}
	if (code == CURLE_URL_MALFORMAT) {
		snprintf(why, why_len,
			 "this is no URL of a server: http://HOST:PORT/..., with a port from 1 to 65535");
		return e;
	}
	if (e < 0) {
		snprintf(why, why_len, "%s", *error ? error : curl_easy_strerror(code));
		printable(why, ""); /* some quote the server */
	}
	return e;
}

int
http_exchange(struct handle *h, const struct exchange *x, struct reply *r, char *why, size_t why_len)
{
	CURL *c = h->curl;
	struct curl_slist *list = headers(x);
	char error[CURL_ERROR_SIZE] = "";
	long status = 0;

	reply_init(r);
	if (h->g->access_key && !sign_exchange(h->g, method_name[x->method], x->url, &list)) {
		curl_slist_free_all(list);
		snprintf(why, why_len, "the request could not be signed");
		return -ENOMEM;
	}
	h->x = x;
	h->r = r;
	h->sent = 0;
	h->copy_error = 0;
	h->has_head = false;
	set_options(h, x, list, error);

	CURLcode code = curl_easy_perform(c);
	int e = curl_errno(code), copied;

	copied = bounce_close(h->bounce, h->copy_why, sizeof h->copy_why);
	h->bounce = NULL;
	if (h->copy_error == 0)
		h->copy_error = copied;

	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	r->status = (int)status;
	curl_slist_free_all(list);
	e = judge(h, code, e, error, why, why_len);
	h->x = NULL;
	h->r = NULL;
	return e;
}
