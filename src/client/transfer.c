/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put, get: attempts by RDMA, then over HTTP, and an honest account of it.  Runs on the
 * caller's thread.
 *
 *     token -> answer -> done
 *               |  |  +-> failed: once more with a new token, then HTTP
 *               |  +----> declined: HTTP
 *               +-------> 503: again, a little later
 *
 * Whatever the outcome, when a call returns its window is closed: the server has vouched that nothing is
 * under way, or the DC target is gone (protocol.md 6, last paragraph).
 */
#include "client/client_int.h"

#include "base/base64.h"
#include "base/crc64.h"
#include "client/rc.h"
#include "client/stage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RDMA_TRIES 2
#define MORE_TRIES 8 /* of declined requests, beside one for each port: by another transport or connection */

/* ---- by RDMA ---- */

/* Why not even to try; NULL: try. */
static const char *
why_not_rdma(struct call *c)
{
	if (c->req.no_rdma)
		return "RDMA was not asked for";
	if (!gantry_is_connected(c->g))
		return gantry_rdma_reason(c->g);
	if (c->size == 0)
		return "an empty object";
	c->wants_stage = c->memory.is_device &&
			 (c->size > GANTRY_REGISTER_MAX || (c->memory.region && c->memory.region->is_staged));
	if (c->size > GANTRY_REGISTER_MAX)
		return "4 GiB and more do not fit a token";
	return c->wants_stage ? "the memory is registered to be staged" : NULL;
}

/* The checksum that goes with a GET (protocol.md section 8).  False: it is there and wrong. */
static bool
verify(struct call *c, uint64_t bytes)
{
	static const char name[] = "CRC64NVME ";
	unsigned char want[8];
	size_t n;
	uint64_t value = 0;

	if (strncmp(c->r.checksum, name, sizeof name - 1) != 0)
		return true;
	const char *text = c->r.checksum + sizeof name - 1;

	if (base64_decode(text, strlen(text), want, sizeof want, &n) < 0 || n != sizeof want)
		return false;
	for (size_t i = 0; i < n; i++)
		value = value << 8 | want[i];
	c->res->has_crc64nvme = 1;
	if (c->memory.is_device) {
		c->res->crc64nvme = value;
		return true;
	}
	c->res->crc64nvme = crc64_nvme(0, c->memory.ptr, bytes);
	c->res->checksum_verified = c->res->crc64nvme == value;
	return c->res->checksum_verified;
}

/* Can bytes go over HTTP? */
static bool
can_use_body(const struct call *c)
{
	return !c->memory.is_device || c->g->copy || stage_can(c->g, c->memory.ptr);
}

static enum verdict
judge(struct call *c, bool is_put, const char **ret_why)
{
	uint64_t bytes = c->size;
	enum verdict v = is_put ? judge_put(&c->r, c->g->dialect, c->size, ret_why)
				: judge_get(&c->r, c->g->dialect, c->offset, c->size, &bytes, ret_why);

	if (v == VERDICT_RDMA && !is_put && !verify(c, bytes)) {
		*ret_why = "the bytes that came do not match the server's checksum";
		v = VERDICT_FAILED;
	}
	/* Bytes that nobody could take where they have to go. */
	if (v == VERDICT_BODY && !is_put && !can_use_body(c))
		v = VERDICT_DECLINED;
	if (v == VERDICT_RDMA || v == VERDICT_BODY) {
		c->res->path = v == VERDICT_RDMA ? GANTRY_PATH_RDMA : GANTRY_PATH_HTTP;
		c->res->bytes = bytes;
	}
	return v;
}

static int
no_memory(struct call *c)
{
	explain_unmapped(c->memory.ptr, c->size, c->res->message, sizeof c->res->message);
	c->r.status = 0; /* the message is ours, not the server's */
	return -EFAULT;
}

/* ---- a request with a token ---- */

/* Can nothing be under way any more, by the server's own word? */
static bool
vouched(const struct call *c, enum verdict v)
{
	if (v == VERDICT_DECLINED)
		return !c->r.has_reply || c->r.code == 501;
	return v != VERDICT_FAILED;
}

/* Was it declined for the port that the token names, so that another may do? */
static bool
is_unreachable(const struct reply *r)
{
	return strcmp(r->reason, "unreachable") == 0 || strcmp(r->reason, "needs-router") == 0 ||
	       strcmp(r->reason, "not-allowed") == 0 || strcmp(r->reason, "no-rail") == 0;
}

/* Memory that cannot be registered, for e, goes another way.  0, or -EFAULT: it is not there. */
static int
unregistered(struct call *c, int e)
{
	/* The adapter's driver has seen every page. */
	int kind = e == -EFAULT ? memory_kind(c->memory.ptr, c->size, true) : 0;

	if (kind < 0)
		return no_memory(c);
	c->memory.is_device |= kind == 1;
	/* -EIO: there was no port, or no target. */
	c->wants_stage = c->memory.is_device && e != -EIO;
	return 0;
}

/* One attempt by RDMA, and what to do after it. */
struct attempt {
	enum verdict verdict;
	bool another; /* it was declined because of its port, its transport or its connection, and there is another */
	int lost; /* of this call: connections that the server did not know just after they were made */
};

/* There is no window, for e.  0 with a verdict, or -errno. */
static int
no_window(struct call *c, const struct window *w, int e, const char *why, struct attempt *a)
{
	if (w->is_final)
		return e;
	a->verdict = VERDICT_DECLINED;
	c->r = (struct reply){ 0 };
	/* A server that declined DC has said more than that it has no RC either. */
	if (e != -EOPNOTSUPP || !*c->res->reason)
		call_reason(c, why);
	/* Other processes may keep their connections for hours: the next calls do not wait for one before they use HTTP. */
	if (e == -EUSERS && !(c->g->flags & GANTRY_RDMA_ONLY))
		transport_lacks(c->g, c->url, GANTRY_TRANSPORT_RC, why);
	if (e == -EHOSTUNREACH)
		a->another = port_avoid(c->g, w->port, c->memory.region, server_of(c->url));
	return unregistered(c, e);
}

/* The request with the token of a window. */
static int
exchange(struct call *c, bool is_put, const struct window *w)
{
	struct exchange x = call_exchange(c, is_put ? METHOD_PUT : METHOD_GET);

	x.token = w->token;
	if (!x.timeout_ms) /* the server's own budget is of this form, ours is longer */
		x.timeout_ms = 10000 + (unsigned)(c->size / (32u << 20)) * 1000;
	if (is_put) {
		x.checksum = *c->checksum ? c->checksum : NULL;
	} else {
		/* A decline may bring the bytes in the body. */
		x.buffer = can_use_body(c) ? c->memory.ptr : NULL;
		x.has_range = true;
		x.range_first = c->offset;
		x.range_last = c->offset + c->size - 1;
	}
	return call_run(c, &x);
}

/* Was it declined for the connection that the token names? */
static bool
is_lost(const struct call *c, const struct window *w)
{
	return w->target->conn &&
	       (strcmp(c->r.reason, "not-connected") == 0 || strcmp(c->r.reason, "connection-busy") == 0);
}

/* The connection is of no use any more.  Once a new one was not known either, requests and connects come to different
 * servers, or from different addresses. */
static void
on_lost(struct call *c, struct window *w, struct attempt *a)
{
	if (rc_lost(c->g, w->target))
		a->lost++;
	a->another = a->lost < 2;
	if (!a->another)
		transport_lacks(c->g, c->url, GANTRY_TRANSPORT_RC, c->r.reason);
}

/* Did the server decline the transport as such, where that makes a difference? */
static bool
lacks(const struct call *c, const struct window *w)
{
	const char *reason = c->r.reason;

	if (w->transport == GANTRY_TRANSPORT_RC)
		return !strcmp(reason, "token-family") || !strcmp(reason, "no-device");
	return c->g->rc && c->g->transport == GANTRY_TRANSPORT_AUTO &&
	       (!strcmp(reason, "token-family") || !strcmp(reason, "no-device") ||
		!strcmp(reason, "no-rail"));
}

/* Stores it. Returns true if another transport may do. */
static bool
learn_lack(struct call *c, const struct window *w)
{
	bool is_rc = w->transport == GANTRY_TRANSPORT_RC, is_off = !strcmp(c->r.reason, "token-family");
	char why[96];

	snprintf(why, sizeof why, "%s%.80s", is_rc ? "rc: " : "",
		 is_rc && is_off ? "off at the server" : c->r.reason);
	transport_lacks(c->g, c->url, w->transport, why);
	return !is_rc;
}

/* What the answer says of the port, the transport and the connection. */
static void
learn(struct call *c, struct window *w, unsigned changes, struct attempt *a)
{
	bool is_declined = a->verdict == VERDICT_DECLINED;

	if (a->verdict == VERDICT_FAILED || (is_declined && is_unreachable(&c->r))) {
		/* The token may have named an address that is gone, and the device have told so meanwhile: then the next one does better. */
		if (port_reread(c->g, w->port) || w->port->changes != changes)
			a->verdict = VERDICT_FAILED;
		else if (is_declined)
			a->another = port_avoid(c->g, w->port, c->memory.region, server_of(c->url));
	}
	if (a->verdict == VERDICT_DECLINED && !a->another && lacks(c, w))
		a->another = learn_lack(c, w);
}

/* Keeps the address in the token of a declined request. */
static void
keep_address(struct call *c, const struct window *w)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char *out = c->res->declined_address;
	size_t cap = sizeof c->res->declined_address;
	struct token t;
	const char *why;

	*out = 0;
	if (token_parse(w->token, strlen(w->token), &t, &why) < 0 || t.kind != TOKEN_DC || !t.have_gid)
		return;
	if (memcmp(t.gid, mapped, sizeof mapped) == 0)
		inet_ntop(AF_INET, t.gid + sizeof mapped, out, (socklen_t)cap);
	else
		inet_ntop(AF_INET6, t.gid, out, (socklen_t)cap);
}

/* One request with a token of its own.  0 with a verdict, or -errno. */
static int
tokened(struct call *c, bool is_put, struct attempt *a)
{
	uint64_t server = server_of(c->url);
	struct window w, was;
	unsigned changes;
	bool lost;
	char why[160] = "";
	const char *sentence = why;
	int e = window_open(c, server, is_put, &w, why, sizeof why), closed;

	a->another = false;
	if (e < 0)
		return no_window(c, &w, e, why, a);
	e = is_put ? sum_up(c) : 0;
	if (e < 0) {
		port_settle(c->g, w.port, server, false);
		window_close(&w, true);
		return e;
	}
	changes = w.target->changes;
	e = exchange(c, is_put, &w);
	a->verdict = e < 0 ? VERDICT_ERROR : judge(c, is_put, &sentence);
	lost = a->verdict == VERDICT_DECLINED && is_lost(c, &w);
	if (lost)
		on_lost(c, &w, a);
	was = w;
	closed = window_close(&w, e == 0 && !lost && vouched(c, a->verdict));
	learn(c, &was, changes, a);
	/* Whatever else it answered, it did not say that it cannot reach the port. */
	if (!a->another || lost)
		port_settle(c->g, was.port, server, e == 0);
	if (closed < 0) {
		call_say(c, "the memory could not be taken back from the NIC: do not reuse it");
		return closed;
	}
	if (e == 0)
		call_reason(c, sentence);
	if (e == 0 && a->verdict == VERDICT_DECLINED)
		keep_address(c, &was);
	if (e == 0 && a->verdict == VERDICT_RDMA)
		c->res->transport = was.transport;
	return e;
}

/* 0 done, 1 do it over HTTP, or -errno. */
static int
by_rdma(struct call *c, bool is_put)
{
	struct attempt a = { .verdict = VERDICT_FAILED };

	for (int tries = 0, busy = 0, more = 0; tries < RDMA_TRIES;) {
		int e = tokened(c, is_put, &a);

		if (e < 0)
			return e;
		switch (a.verdict) {
		case VERDICT_RDMA:
			*c->res->reason = *c->res->declined_address = 0;
			return 0;
		case VERDICT_BODY:
			return 0;
		case VERDICT_DECLINED:
			if (!a.another || more++ >= c->g->port_nr + MORE_TRIES)
				return 1;
			break;
		case VERDICT_BUSY:
			if (!call_back_off(c, busy++))
				return status_errno(&c->r);
			break;
		case VERDICT_FAILED:
			/* A NIC may reach the host's memory where it does not reach a device's. */
			c->wants_stage = c->memory.is_device;
			tries++;
			break;
		default:
			return status_errno(&c->r);
		}
	}
	return 1;
}

/* ---- objects ---- */

static int
put_http(struct call *c)
{
	struct exchange x = call_exchange(c, METHOD_PUT);

	int e = sum_up(c);

	x.body = c->memory.ptr ? c->memory.ptr : "";
	x.checksum = *c->checksum ? c->checksum : NULL;
	if (e == 0)
		e = call_run_plain(c, &x);
	if (e == 0 && judge_plain(&c->r) != VERDICT_BODY)
		e = status_errno(&c->r);
	/* A server that stores an object says so by its ETag; a page that asks for a password says 200,
	 * too. */
	if (e == 0 && c->g->dialect == GANTRY_S3 && !*c->r.etag) {
		snprintf(c->res->message, sizeof c->res->message,
			 "the server answered %d without an ETag, and not as S3 does: nothing says that it "
			 "is stored",
			 c->r.status);
		e = -EPROTO;
	}
	if (e == 0) {
		c->res->path = GANTRY_PATH_HTTP;
		c->res->bytes = c->size;
	}
	return e;
}

/* Finds out about the memory of a call that moves bytes, and waits for what has to come before.  0 or -errno. */
static int
take_memory(struct call *c, const void *ptr, uint64_t size)
{
	struct memory *m = &c->memory;
	int kind = 0;

	c->size = size;
	*m = (struct memory){ .ptr = (char *)(uintptr_t)ptr, .size = size };
	if (size)
		kind = region_take(c->g, ptr, size, &m->region);
	if (m->region)
		m->is_device = m->region->is_device;
	else if (size && kind == 0)
		kind = memory_kind(ptr, size, false);
	if (kind < 0)
		return no_memory(c);
	m->is_device |= kind == 1;
	if (c->req.wait == GANTRY_WAIT_NONE)
		return 0;
	return gpu_wait(ptr, c->req.wait, c->req.wait_for, c->res->message, sizeof c->res->message);
}

/* Tries RDMA where it can be tried.  0 done, 1 over HTTP now, -errno. */
static int
prefer_rdma(struct call *c, bool is_put)
{
	const char *why = why_not_rdma(c);
	int e = 1;

	if (why)
		call_reason(c, why);
	else
		e = by_rdma(c, is_put);
	if (e == 1 && c->wants_stage && stage_can(c->g, c->memory.ptr))
		e = is_put ? staged_put(c) : staged_get(c);
	if ((c->g->flags & GANTRY_RDMA_ONLY) && (e == 1 || (e == 0 && c->res->path == GANTRY_PATH_HTTP)) &&
	    c->size) {
		snprintf(c->res->message, sizeof c->res->message, "not by RDMA: %s", c->res->reason);
		c->r.status = 0; /* the message is ours, not the server's */
		e = -EOPNOTSUPP;
	} else if (e == 1 && !can_use_body(c)) {
		snprintf(c->res->message, sizeof c->res->message,
			 "not by RDMA: %s; and over HTTP no bytes go from or to %s without a copy function",
			 c->res->reason, memory_name(c->memory.ptr, c->size));
		c->r.status = 0;
		e = -EOPNOTSUPP;
	}
	return e;
}

int
gantry_put(struct gantry *g, const char *url, const void *ptr, size_t size, const struct gantry_request *req,
	   struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0 && size && !ptr) {
		call_say(&c, "no memory given");
		e = -EINVAL;
	}
	if (e == 0)
		e = take_memory(&c, ptr, size);
	/* Bytes that may be staged are summed up there. */
	if (e == 0 && !(c.memory.is_device && !g->copy && stage_can(g, ptr)))
		e = sum_up(&c);
	if (e == 0) {
		e = prefer_rdma(&c, true);
		if (e == 1)
			e = put_http(&c);
	}
	if (e == 0) {
		own.object_size = size;
		own.has_object_size = 1;
	}
	return call_end(&c, e, res);
}

/* A 416 that does not say how long the object is: asks. */
static int
ask_size(struct call *c)
{
	struct exchange x = call_exchange(c, METHOD_HEAD);
	int e = call_run_plain(c, &x);

	if (e == 0 && judge_plain(&c->r) != VERDICT_BODY)
		e = status_errno(&c->r);
	c->r.has_total = e == 0 && c->r.has_content_length;
	c->r.range_total = c->r.content_length;
	return e;
}

/* 416: an empty object is nothing wrong when it is read from its beginning. */
static int
at_the_end(struct call *c)
{
	char text[32];
	int e = 0;

	if (c->offset != 0)
		return -ERANGE;
	if (!c->r.has_total) {
		reply_xml(&c->r, "ActualObjectSize", text, sizeof text);
		c->r.has_total = *text != 0;
		c->r.range_total = strtoull(text, NULL, 10);
	}
	if (!c->r.has_total)
		e = ask_size(c);
	if (e < 0)
		return e;
	if (!c->r.has_total || c->r.range_total != 0) {
		if (c->r.status < 300)
			call_say(c, "the server refuses the range of an object that is not empty");
		return -ERANGE;
	}
	c->res->path = GANTRY_PATH_NONE;
	c->res->bytes = 0;
	snprintf(c->res->reason, sizeof c->res->reason, "an empty object");
	return 0;
}

static int
get_http(struct call *c)
{
	struct exchange x = call_exchange(c, METHOD_GET);

	x.buffer = c->memory.ptr;
	x.has_range = true;
	x.range_first = c->offset;
	x.range_last = c->offset + c->size - 1;
	x.want_checksum = c->req.checksum;
	int e = call_run_plain(c, &x);

	if (e < 0)
		return e;
	if (judge_plain(&c->r) != VERDICT_BODY)
		return status_errno(&c->r);
	/* A server that ignores the range sends the object from its beginning. */
	if (c->r.has_range ? c->r.range_first != c->offset : c->offset != 0) {
		call_say(c, "the server sent another range");
		return -EPROTO;
	}
	if (!body_is_all(&c->r, c->offset, c->size)) {
		snprintf(c->res->message, sizeof c->res->message,
			 "the server's answer is incomplete: %llu bytes came, and it does not say that the "
			 "object ends there",
			 (unsigned long long)c->r.body_bytes);
		return -EPROTO;
	}
	c->res->path = GANTRY_PATH_HTTP;
	c->res->bytes = c->r.body_bytes;
	return 0;
}

static void
learn_object_size(struct call *c)
{
	if (c->r.has_total) {
		c->res->object_size = c->r.range_total;
		c->res->has_object_size = 1;
	} else if (c->r.status == 200 && c->offset == 0 && c->r.has_content_length &&
		   c->res->path == GANTRY_PATH_HTTP) {
		c->res->object_size = c->r.content_length;
		c->res->has_object_size = 1;
	} else if (c->r.status == 200 && c->offset == 0 && c->res->path == GANTRY_PATH_RDMA) {
		c->res->object_size = c->res->bytes; /* reply 200: the whole object */
		c->res->has_object_size = 1;
	}
}

int
gantry_get(struct gantry *g, const char *url, void *ptr, size_t size, uint64_t offset,
	   const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0 && (!ptr || !size || offset + size < offset)) {
		call_say(&c, "no memory given, or a range beyond 2^64");
		e = -EINVAL;
	}
	if (e == 0)
		e = take_memory(&c, ptr, size);
	if (e == 0) {
		c.offset = offset;
		e = prefer_rdma(&c, false);
		if (e == 1)
			e = get_http(&c);
		if (e == -ERANGE && c.r.status == 416)
			e = at_the_end(&c);
		if (e == 0 && own.path == GANTRY_PATH_RDMA && c.memory.is_device)
			e = gpu_flush(ptr, own.message, sizeof own.message);
	}
	if ((e == 0 || e == -ERANGE) && !c.is_filled_in)
		learn_object_size(&c);
	return call_end(&c, e, res);
}
