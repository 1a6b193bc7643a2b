/* SPDX-License-Identifier: Apache-2.0 */
/* What moves no bytes of an object: head, stat, delete, buckets.  Runs on the caller's thread. */
#include "client/client_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
gantry_head(struct gantry *g, const char *url, const struct gantry_request *req, struct gantry_result *res)
{
	return gantry_stat(g, url, req, NULL, NULL, res);
}

int
gantry_stat(struct gantry *g, const char *url, const struct gantry_request *req, gantry_header_fn *fn,
	    void *cookie, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_HEAD);

		x.want_checksum = c.req.checksum || fn;
		x.header = fn;
		x.header_cookie = cookie;
		e = call_run_plain(&c, &x);
		if (e == 0 && judge_plain(&c.r) != VERDICT_BODY)
			e = status_errno(&c.r);
	}
	if (e == 0 && c.r.has_content_length) {
		own.object_size = c.r.content_length;
		own.has_object_size = 1;
	}
	return call_end(&c, e, res);
}

int
gantry_delete(struct gantry *g, const char *url, const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin(&c, g, url, req, res, &own);

	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_DELETE);

		e = call_run_plain(&c, &x);
		if (e == 0 && judge_plain(&c.r) != VERDICT_BODY)
			e = status_errno(&c.r);
	}
	return call_end(&c, e, res);
}

int
gantry_remove_bucket(struct gantry *g, const char *url, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin_bucket(&c, g, url, NULL, res, &own);

	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_DELETE);

		e = call_s3(&c, &x);
	}
	return call_end(&c, e == -EEXIST ? -ENOTEMPTY : e, res);
}

int
gantry_make_bucket(struct gantry *g, const char *url, struct gantry_result *res)
{
	return gantry_make_bucket_copies(g, url, 0, res);
}

int
gantry_make_bucket_copies(struct gantry *g, const char *url, int copies, struct gantry_result *res)
{
	struct gantry_result own;
	struct call c;
	int e = call_begin_bucket(&c, g, url, NULL, res, &own);
	char text[16], code[64];

	if (e == 0 && copies < 0) {
		call_say(&c, "the number of copies is negative");
		e = -EINVAL;
	}
	if (e == 0) {
		struct exchange x = call_exchange(&c, METHOD_PUT);

		x.body = "";
		snprintf(text, sizeof text, "%d", copies);
		if (copies)
			x.extra[0] = (struct field){ "x-gantry-copies", text };
		e = call_s3(&c, &x);
		reply_xml(&c.r, "Code", code, sizeof code);
		if (c.r.status == 409 && (!copies || c.r.copies == (unsigned)copies))
			e = 0;
		else if (c.r.status == 409 && strcmp(code, "InvalidBucketState") == 0)
			e = -ENOTEMPTY;
		/* A server that knows nothing of copies makes the bucket, and heeds no header that it does not know. */
		if (e == 0 && copies && c.r.copies != (unsigned)copies) {
			call_say(&c, "the bucket is there, but the server knows nothing of x-gantry-copies");
			e = -EOPNOTSUPP;
		}
	}
	return call_end(&c, e, res);
}
