/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first step: what is asked for, by whom, and may they.  Everything here is decided from text and
 * published state, so a request that fails here is answered before any body is read and before the network or
 * the disk is touched.
 */
#define LOG_MODULE "req"
#include "req/machine.h"

#include "base/log.h"
#include "rdma/rc.h"

#include <errno.h>

static enum verdict front_op(struct req *rq);

/* May who asks have the adapter reach that address? As rdma_gid_allowed() says it; NULL: the token names
 * none. */
static int
may_aim(const struct req *rq, const uint8_t *gid)
{
	if (!auth_gid_allowed(&rq->identity, gid))
		return -EACCES;
	return rdma_gid_allowed(rq->rs->env.rdma, &rq->rs->env.conf->rdma, gid,
				(const struct sockaddr *)&rq->peer);
}

/* The token comes after authorisation (protocol.md 4.5): an unauthenticated caller learns nothing from its
 * validation. */
static enum verdict
front_token(struct req *rq)
{
	struct token *tok = &rq->target.token;
	const char *why = NULL;
	enum fault f = dialect_token(&rq->in, &rq->target, &why);
	int r;

	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	if (rq->target.wire == WIRE_NONE)
		return req_go(rq, front_op);
	rq->is_tokened = true;
	if (!chan_serves(rq->rs->env.chan, tok->kind))
		return req_go(rq, front_op);
	if (tok->bad)
		return req_fail(rq, FAULT_BAD_TOKEN, tok->bad);
	/* The address that the connection has was allowed when it was made; it must be allowed to who asks now. */
	if (tok->kind == TOKEN_RC_SHIM &&
	    !rdma_rc_find(rq->rs->env.rdma, (struct sockaddr *)&rq->peer, tok)) {
		rq->not_connected = true;
		return req_go(rq, front_op);
	}
	r = may_aim(rq, tok->have_gid ? tok->gid : NULL);
	if (r == -EACCES)
		return req_fail(rq, FAULT_ACCESS_DENIED,
				"The token names an address that no token of this client may name.");
	rq->must_route = r > 0;
	/* Declined by lease_start(): what is wrong with the request itself is said before. */
	rq->not_allowed = r < 0;
	return req_go(rq, front_op);
}

/* A request that dialect_parse() lets through and nobody here serves is a client's disappointment, not the
 * daemon's end. */
static enum verdict
not_served(struct req *rq)
{
	return req_fail(rq, FAULT_NOT_IMPLEMENTED, "This operation is not implemented.");
}

static enum verdict
front_op(struct req *rq)
{
	enum op op = rq->target.op;
	const struct op_entry *entry = &rq->rs->env.operations[op];
	step_fn start = entry->start ? entry->start : not_served;

	rq->hooks = entry->hooks;
	if (rq->hooks)
		rq->take = rq->hooks->take;
	return op_info[op].body == BODY_TEXT ? body_collect(rq, start) : req_go(rq, start);
}

/* A header that S3 has invented meanwhile is served as if it were not there, and that is said. */
static void
note_unknown(const struct req *rq)
{
	struct span name = rq->target.unknown_header;
	int len = name.len < 100 ? (int)name.len : 100;
	char id[17];

	stats_event(rq->rs->env.stats,
		    op_info[rq->target.op].writes ? STATS_UNKNOWN_WRITE : STATS_UNKNOWN_READ);
	req_id_text(rq, id);
	log_limited(LOG_NOTE, "request %s, %s: the header %.*s is not known here and has no effect", id,
		    op_name[rq->target.op], len, name.p);
}

/* Tells whether a fault of the parser says something of what is here, and not only of the request. */
static bool
is_about_content(enum fault f)
{
	return f == FAULT_NOT_IMPLEMENTED || f == FAULT_NO_SUCH_VERSION || f == FAULT_NO_SUCH_UPLOAD;
}

/* Tells whether the bytes after the head of a request with this fault cannot be read as its body. */
static bool
is_about_framing(enum fault f)
{
	return f == FAULT_BAD_REQUEST || f == FAULT_BAD_URI || f == FAULT_HEADERS_TOO_LARGE ||
	       f == FAULT_LENGTH_REQUIRED;
}

/* It is understood: is it granted?  f: FAULT_NONE, or why it was not understood. */
static enum verdict
admit(struct req *rq, enum fault f, const char *why)
{
	const char *who_why;
	enum fault who = is_about_content(f) ? front_who(rq, &who_why) : FAULT_NONE;

	if (f == FAULT_NONE)
		f = front_auth(rq, &why);
	if (who != FAULT_NONE) {
		f = who;
		why = who_why;
	}
	rq->bad_framing = is_about_framing(f);
	if (f != FAULT_NONE) {
		enum verdict v = req_fail(rq, f, why);

		req_declined_control(rq);
		return v;
	}
	if (rq->rs->draining)
		return req_fail(rq, FAULT_UNAVAILABLE, "The server is draining.");
	f = pace_lane_get(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f,
				f == FAULT_BUSY ? "The requests for this disk have their share of those that "
						  "are served at a time."
						: NULL);
	if (!pace_slot_get(rq))
		return req_fail(rq, FAULT_BUSY, NULL);
	space_watch(rq->rs);
	if (rq->target.unknown_header.len)
		note_unknown(rq);
	req_deadlines(rq, rq->target.content_length);
	if (rq->target.wire != WIRE_NONE)
		return req_go(rq, front_token);
	return req_go(rq, front_op);
}

static enum verdict
front_cors(struct req *rq)
{
	cors_look(rq);
	return admit(rq, rq->parsed, rq->parsed_why);
}

enum verdict
front(struct req *rq)
{
	const char *why = NULL;
	enum fault f;

	rq->in.parts = (struct target_source){ req_target_part, rq };
	f = dialect_parse(&rq->in, &rq->target, &why);
	/* Also for a request that fails: what comes after its headers has to be read or cut off. */
	rq->wants_body =
		rq->target.chunked || (rq->target.have_content_length && rq->target.content_length > 0);
	if (is_about_framing(f) || !cors_concerns(rq))
		return admit(rq, f, why);
	/* Rules come first, because an answer that is a refusal has their headers as well: without them a browser
	 * does not show the page which refusal it is. */
	rq->parsed = f;
	rq->parsed_why = why;
	req_deadlines(rq, rq->target.content_length);
	return req_read_battrs(rq, front_cors);
}
