/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST of an HTML form: fields, then a file, which becomes an object as a PUT over HTTP does.  The core's
 * thread.
 *
 *   start -> fields ... -> put_start() ... -> reply
 *
 * The bytes of the body come through form_take(); until the fields have been judged, those of the file wait
 * with the client.
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "base/clock.h"
#include "s3doc/form.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct form_job {
	struct form form;
	struct form_success success;
	struct form_limits limits;
	struct text location;
	bool accepted;
	/* What the parser gave and there was no room for: bytes of its own, ... */
	const char *held;
	size_t held_len;
	/* ... or of the body, which will come once more, and after them some that it has seen. */
	size_t again, skip;
};

static enum verdict form_fields(struct req *rq);
static enum verdict form_done(struct req *rq);

static void
form_fini(struct req *rq)
{
	text_free(&((struct form_job *)rq->job)->location);
}

enum verdict
form_start(struct req *rq)
{
	const struct field *type = dialect_field(&rq->in, "content-type", NULL);
	struct form_job *j = req_job(rq, sizeof *j, form_fini);
	const char *why = NULL;
	enum fault f;

	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	if (!rq->wants_body)
		return req_fail(rq, FAULT_POST_FORM, "The form is empty.");
	f = form_init(&j->form, type ? type->value : "", type ? type->value_len : 0, &why);
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	j->limits.max_bytes = UINT64_MAX;
	return req_go(rq, form_fields);
}

/* ---- the bytes ---- */

static size_t
put_file(struct req *rq, const void *data, size_t len)
{
	struct form_job *j = rq->job;
	size_t n = put_take(rq, data, len);

	if (rq->http_bytes > j->limits.max_bytes)
		req_cancel(rq, FAULT_TOO_LARGE, "The file is larger than the policy allows.");
	return n;
}

/* One run of the file, at `run` of the body or in the parser.  True: all of it was taken. */
static bool
put_run(struct req *rq, const char *data, size_t len, size_t *at, size_t used, const char *run,
	size_t run_len)
{
	struct form_job *j = rq->job;
	size_t n = put_file(rq, run, run_len);

	*at += used;
	if (n == run_len)
		return true;
	if (run >= data && run < data + len) {
		j->again = run_len - n;
		j->skip = (size_t)(data + *at - (run + run_len));
		*at = (size_t)(run - data) + n;
	} else {
		/* The body must not end before that is gone: one byte of it comes again. */
		check(*at > 0);
		j->held = run + n;
		j->held_len = run_len - n;
		j->skip = 1;
		--*at;
	}
	return false;
}

/* What could not be put before.  True: all of it is gone. */
static bool
put_rest(struct req *rq, const char *data, size_t len, size_t *at)
{
	struct form_job *j = rq->job;
	size_t n;

	if (j->held_len) {
		n = put_file(rq, j->held, j->held_len);
		j->held += n;
		j->held_len -= n;
		if (j->held_len)
			return false;
	}
	if (j->again) {
		n = j->again < len ? j->again : len;
		n = put_file(rq, data, n);
		*at += n;
		j->again -= n;
		if (j->again)
			return false;
	}
	n = j->skip < len - *at ? j->skip : len - *at;
	*at += n;
	j->skip -= n;
	return true;
}

static size_t
form_take(struct req *rq, const void *body, size_t len)
{
	struct form_job *j = rq->job;
	const char *data = body, *why = NULL;
	size_t at = 0;

	rq->progress_ns = clock_ns();
	if (!put_rest(rq, data, len, &at))
		return rq->fault != FAULT_NONE ? len : at;
	while (at < len && rq->fault == FAULT_NONE) {
		size_t used, run_len;
		const void *run;
		enum fault f = form_feed(&j->form, data + at, len - at, &used, &run, &run_len, &why);

		if (f != FAULT_NONE) {
			req_cancel(rq, f, why);
			break;
		}
		if (j->form.have_file && !j->accepted) {
			req_wake(rq);
			return at + used;
		}
		if (run_len == 0)
			at += used;
		else if (!put_run(rq, data, len, &at, used, run, run_len))
			break;
	}
	return rq->fault != FAULT_NONE ? len : at;
}

static enum fault
form_whole(struct req *rq, const char **ret_why)
{
	struct form_job *j = rq->job;
	enum fault f = form_end(&j->form, ret_why);

	if (f == FAULT_NONE && rq->http_bytes < j->limits.min_bytes) {
		*ret_why = "The file is smaller than the policy allows.";
		f = FAULT_ENTITY_TOO_SMALL;
	}
	return f;
}

/* ---- the fields ---- */

/* Who signed the policy; a form without one is anonymous. */
static enum fault
form_identity(struct req *rq, const struct form *form, const char **ret_why)
{
	struct auth_form af;
	struct auth_env ae;

	af.policy = form_get(form, "policy", &af.policy_len);
	af.algorithm = form_get(form, "x-amz-algorithm", &af.algorithm_len);
	af.credential = form_get(form, "x-amz-credential", &af.credential_len);
	af.date = form_get(form, "x-amz-date", &af.date_len);
	af.signature = form_get(form, "x-amz-signature", &af.signature_len);
	af.security_token = form_get(form, "x-amz-security-token", &af.security_token_len);
	af.access_key = form_get(form, "awsaccesskeyid", &af.access_key_len);
	af.signature2 = form_get(form, "signature", &af.signature2_len);
	if (af.signature || af.credential || af.algorithm || af.access_key || af.signature2) {
		if (!af.credential && af.access_key)
			rq->claimed = (struct span){ af.access_key, af.access_key_len };
		if (af.credential) {
			struct span rest = { af.credential, af.credential_len };

			rq->claimed = span_cut(&rest, '/');
		}
		front_auth_env(rq, &ae);
		return auth_check_form(&ae, &af, clock_wall_ns() / NS_PER_S, &rq->identity, ret_why);
	}
	if (!rq->listen->anonymous) {
		*ret_why = "The form has no signature.";
		return FAULT_ACCESS_DENIED;
	}
	rq->identity.anonymous = true;
	return browser_check(rq, ret_why);
}

static enum fault
judge(struct req *rq, struct form_job *j, const char **ret_why)
{
	struct target *t = &rq->target;
	size_t len;
	enum fault f;

	t->attrs_len = 0;
	f = form_target(&j->form, &rq->in, t, &j->success, ret_why);
	if (f == FAULT_NONE)
		f = form_identity(rq, &j->form, ret_why);
	if (f == FAULT_NONE && form_get(&j->form, "policy", &len))
		f = form_policy(&j->form, t, clock_wall_ns() / NS_PER_S, &j->limits, ret_why);
	if (f == FAULT_NONE && !may_key(rq, AUTH_WRITE, t->key, t->key_len)) {
		*ret_why = "The access key has no grant for this.";
		f = FAULT_ACCESS_DENIED;
	}
	if (f == FAULT_NONE && t->ttl_s && !may_key(rq, AUTH_DELETE, t->key, t->key_len))
		f = why_not_key(rq, AUTH_DELETE, t->key, t->key_len);
	return f;
}

static enum verdict
form_fields(struct req *rq)
{
	struct form_job *j = rq->job;
	const char *why = NULL;
	enum fault f;

	if (!j->form.have_file) {
		if (!rq->body_ended)
			return req_wait(rq, "form", form_fields);
		f = form_end(&j->form, &why);
		return req_fail(rq, f != FAULT_NONE ? f : FAULT_POST_FORM, why);
	}
	f = judge(rq, j, &why);
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	j->accepted = true;
	form_accept(&j->form);
	/* The length that was given is the form's. */
	rq->target.have_content_length = false;
	return put_object(rq, form_done);
}

/* ---- the answer ---- */

/* A URL as it may stand in a header: what comes out of a file's name need not be fit for that. */
static void
write_url(struct text *x, const char *url, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)url[i];

		if (c > ' ' && c < 0x7f && !strchr("\"<>\\^`{|}", c))
			text_put(x, url + i, 1);
		else
			text_fmt(x, "%%%02X", c);
	}
}

/* The page that the form wants to see next, and what became of it. */
static void
write_redirect(struct req *rq, struct form_job *j)
{
	struct text *x = &j->location;
	char etag[48];
	size_t len = etag_text(&rq->etag, etag);

	write_url(x, j->success.redirect, j->success.redirect_len);
	text_str(x, memchr(j->success.redirect, '?', j->success.redirect_len) ? "&" : "?");
	text_str(x, "bucket=");
	text_url(x, rq->target.bucket, rq->target.bucket_len, false);
	text_str(x, "&key=");
	text_url(x, rq->target.key, rq->target.key_len, false);
	text_str(x, "&etag=%22");
	text_put(x, etag, len);
	text_str(x, "%22");
	text_put(x, "", 1);
}

static enum verdict
form_done(struct req *rq)
{
	struct form_job *j = rq->job;
	char etag[48];
	size_t len = etag_text(&rq->etag, etag);

	if (j->success.redirect) {
		write_redirect(rq, j);
		rq->status_instead = 303;
	} else {
		write_location(rq, &j->location);
		rq->status_instead = j->success.status;
	}
	if (!text_ok(&j->location))
		return req_go(rq, req_reply_step);
	if (rq->status_instead != 201)
		return req_go(rq, req_reply_step);
	xml_post_result(&rq->out, &rq->target, j->location.p, etag, len);
	/* The object is there: an answer without a body is better than an error. */
	return text_ok(&rq->out) ? req_reply_xml(rq) : req_go(rq, req_reply_step);
}

static void
form_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	const struct form_job *j = rq->job;

	if (kind != OUT_DONE)
		return;
	reply_etag(rq);
	if (text_ok(&j->location) && j->location.len)
		reply_ref(rq, reply_name(rq, FIELD_LOCATION), j->location.p);
}

const struct op_hooks form_hooks = { .take = form_take, .body_end = form_whole, .headers = form_headers };
