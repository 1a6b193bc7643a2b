/*
 * The first step: what is asked for, by whom, and may they.  Everything here is decided from text and
 * published state, so a request that fails here is answered before any body is read and before the network or
 * the disk is touched.
 */
#include "req/req_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

/* The token comes after authorisation (protocol.md 4.5): an unauthenticated caller learns nothing from its
 * validation. */
static enum verdict
front_token(struct req *rq)
{
	const struct conf *c = rq->rs->env.conf;
	const struct token *tok = &rq->target.token;
	const char *why = NULL;
	enum fault f = dialect_token(&rq->in, &rq->target, &why);

	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	if (rq->target.wire == WIRE_NONE)
		return req_go(rq, front_op);
	rq->is_tokened = true;
	if (!rq->target.token_family_declined &&
	    rdma_gid_allowed(rq->rs->env.rdma, &c->rdma, tok->have_gid ? tok->gid : NULL,
			     (struct sockaddr *)&rq->peer) < 0)
		return req_fail(rq, FAULT_ACCESS_DENIED,
				"The token names an address that this server may not reach.");
	if (rq->target.op == OP_PUT_OBJECT && tok->size > c->limits.object_bytes)
		return req_fail(rq, FAULT_TOO_LARGE, NULL);
	return req_go(rq, front_op);
}

enum verdict
front_op(struct req *rq)
{
	switch (rq->target.op) {
	case OP_GET_OBJECT:
	case OP_HEAD_OBJECT:
		return req_go(rq, get_start);
	case OP_PUT_OBJECT:
		return req_go(rq, put_start);
	case OP_DELETE_OBJECT:
		return req_go(rq, delete_start);
	case OP_CREATE_BUCKET:
	case OP_HEAD_BUCKET:
	case OP_DELETE_BUCKET:
	case OP_LIST_BUCKETS:
		return req_go(rq, bucket_start);
	case OP_NONE:
	case OP_NR:
		break;
	default:
		return req_fail(rq, FAULT_NOT_IMPLEMENTED, NULL);
	}
	check(!"an operation that dialect_parse() let through");
	return REQ_STOP;
}

/* Who asks, and whether that is granted to them. */
static enum fault
front_auth(struct req *rq, const char **ret_why)
{
	const struct req_env *env = &rq->rs->env;
	struct auth_env ae = { .keys = env->keys,
			       .region = env->conf->auth.region,
			       .replay = env->replay,
			       .peer = (struct sockaddr *)&rq->peer,
			       .skew_s = 900 };
	enum fault f =
		auth_check(&ae, &rq->in, &rq->target, clock_wall_ns() / NS_PER_S, &rq->identity, ret_why);

	if (f == FAULT_NONE && !auth_allows(&rq->identity, &rq->target)) {
		*ret_why = "The access key has no grant for this.";
		f = FAULT_ACCESS_DENIED;
	}
	return f;
}

enum verdict
front(struct req *rq)
{
	const char *why = NULL;
	enum fault f = dialect_parse(&rq->in, &rq->target, &why);

	/* Also for a request that fails: what comes behind its headers has to be read or cut off. */
	rq->wants_body =
		rq->target.chunked || (rq->target.have_content_length && rq->target.content_length > 0);
	if (f == FAULT_NONE)
		f = front_auth(rq, &why);
	rq->bad_framing = f == FAULT_BAD_REQUEST || f == FAULT_BAD_URI || f == FAULT_HEADERS_TOO_LARGE ||
			  f == FAULT_LENGTH_REQUIRED;
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	if (rq->rs->draining)
		return req_fail(rq, FAULT_UNAVAILABLE, "The server is draining.");
	req_deadlines(rq, rq->target.content_length);
	if (rq->target.wire != WIRE_NONE)
		return req_go(rq, front_token);
	return req_go(rq, front_op);
}

struct store_key
req_key(const struct req *rq)
{
	return (struct store_key){ .bucket = rq->target.bucket,
				   .bucket_len = rq->target.bucket_len,
				   .key = rq->target.key,
				   .key_len = rq->target.key_len };
}
