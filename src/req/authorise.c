/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks, may they, and the aws-chunked frames of a signed body: what a request has to do with auth/.
 * Called by front.c as the first thing after parsing, and by req.c for the bytes of a body; a core's thread.
 */
#include "req/machine.h"

#include "base/clock.h"

void
front_auth_env(const struct req *rq, struct auth_env *ret)
{
	const struct req_env *env = &rq->rs->env;

	*ret = (struct auth_env){ .keys = env->keys,
				  .region = env->conf->auth.region,
				  .replay = env->replay,
				  .replay_mode = env->conf->auth.replay,
				  .peer = (const struct sockaddr *)&rq->peer,
				  .skew_s = env->conf->auth.clock_skew_ns / NS_PER_S,
				  .sigv2 = env->conf->auth.sigv2 == SIGV2_PRESIGNED,
				  .relax = !env->conf->auth.require_signed_headers };
}

/* ---- aws-chunked frames ---- */

/* Ends such a body: fails the request, or puts what the trailer said with the other checksums. */
static void
frames_end(struct req *rq)
{
	struct target *t = &rq->target;
	const char *why;
	struct checksum *sum = op_info[t->op].body == BODY_TEXT ? &t->text_sum : &t->sum[t->trailer];
	enum fault f = auth_stream_end(&rq->frames, t->have_trailer ? sum : NULL, &why);

	if (f != FAULT_NONE)
		req_cancel(rq, f, why);
}

/* Takes bytes of such a body: hands what is not frame to body_take(). */
static size_t
frames_feed(struct req *rq, const void *data, size_t len)
{
	const char *p = data;
	size_t at = 0;

	while (at < len) {
		size_t used, run, n;

		if (auth_stream_feed(&rq->frames, p + at, len - at, &used, &run) < 0) {
			frames_end(rq);
			return len;
		}
		at += used;
		if (run == 0)
			continue;
		n = body_take(rq, p + at, run);
		if (rq->replied || rq->fault != FAULT_NONE)
			return len;
		auth_stream_took(&rq->frames, p + at, n);
		at += n;
		if (n < run)
			break; /* no room: the rest comes again */
	}
	return at;
}

/* ---- who asks ---- */

enum fault
front_auth(struct req *rq, const char **ret_why)
{
	struct target *t = &rq->target;
	struct auth_env ae;
	enum fault f;

	front_auth_env(rq, &ae);
	f = auth_check(&ae, &rq->in, t, clock_wall_ns() / NS_PER_S, &rq->identity, ret_why);
	if (f != FAULT_NONE)
		return f;
	/* A form may have a signature of its own (form.c asks), and a preflight changes and shows nothing. */
	if (!rq->identity.entry && t->op != OP_POST_OBJECT && t->op != OP_OPTIONS)
		f = browser_check(rq, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (!auth_allows(&rq->identity, t)) {
		f = auth_denial_of(&rq->identity, t);
		*ret_why = f == FAULT_ACCESS_DENIED ? "The access key has no grant for this." : NULL;
		return f;
	}
	if (auth_payload_is_stream(rq->identity.payload)) {
		auth_stream_init(&rq->frames, &rq->identity, t->decoded_length,
				 t->have_trailer ? t->trailer : SUM_NR);
		rq->feed = frames_feed;
		rq->feed_end = frames_end;
		/* From here on it is the length of the object that counts. */
		t->have_content_length = true;
		t->content_length = t->decoded_length;
	}
	return FAULT_NONE;
}

/* Whether a subresource or a version is there at all is told to those who may know of the bucket. */
enum fault
front_who(struct req *rq, const char **ret_why)
{
	const struct target *t = &rq->target;
	struct auth_env ae;
	enum fault f;

	front_auth_env(rq, &ae);
	f = auth_check(&ae, &rq->in, NULL, clock_wall_ns() / NS_PER_S, &rq->identity, ret_why);
	if (f != FAULT_NONE || t->bucket_len == 0 || may_see_bucket(rq, t->bucket, t->bucket_len))
		return f;
	*ret_why = "The access key has no grant for this.";
	return FAULT_ACCESS_DENIED;
}

bool
may_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len)
{
	return auth_may(&rq->identity, right, rq->target.bucket, rq->target.bucket_len, key, key_len);
}

enum fault
why_not_key(const struct req *rq, enum auth_right right, const char *key, size_t key_len)
{
	return auth_denial(&rq->identity, right, rq->target.bucket, rq->target.bucket_len, key, key_len);
}

bool
may_see_bucket(const struct req *rq, const char *bucket, size_t bucket_len)
{
	return auth_may(&rq->identity, AUTH_LIST, bucket, bucket_len, NULL, 0);
}
