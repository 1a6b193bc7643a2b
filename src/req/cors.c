/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-origin requests: the headers that every answer to a request with an Origin gets.
 * Rules live with the bucket (subres.c).  The core's thread; only such requests cost anything.
 */
#include "req/machine.h"

#include "base/check.h"
#include "walk/bucket_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
cors_find(struct req *rq, const struct field *origin, const char *method, size_t method_len,
	  const struct field *headers)
{
	const void *packed;
	uint32_t len;
	bool found = false;

	if (rq->battrs.stat.op.result >= 0 && bucket_attrs_find(&rq->battrs, BUCKET_CORS, &packed, &len) &&
	    req_hold_text(rq, sizeof *rq->cors) == 0) {
		rq->cors = malloc(sizeof *rq->cors);
		found = rq->cors && cors_match(packed, len, origin->value, origin->value_len, method,
					       method_len, headers ? headers->value : NULL,
					       headers ? headers->value_len : 0, rq->cors);
		if (!found) {
			free(rq->cors);
			rq->cors = NULL;
		}
	}
	bucket_attrs_free(&rq->battrs);
	return found;
}

bool
cors_concerns(const struct req *rq)
{
	return dialect_field(&rq->in, "origin", NULL) && rq->target.bucket_len > 0 &&
	       op_info[rq->target.op].method != METHOD_OPTIONS && rq->listen->dialect == DIALECT_S3;
}

void
cors_look(struct req *rq)
{
	cors_find(rq, dialect_field(&rq->in, "origin", NULL), rq->in.method, strlen(rq->in.method), NULL);
}

/* They point into rq->cors, which lives as long as the reply. */
void
cors_headers(struct req *rq, header_fn header, void *cookie)
{
	const struct cors_answer *a = rq->cors;
	char age[16];

	if (!a)
		return;
	header(cookie, reply_name(rq, FIELD_ALLOW_ORIGIN), a->origin);
	if (a->credentials)
		header(cookie, reply_name(rq, FIELD_ALLOW_CREDENTIALS), "true");
	if (a->methods[0])
		header(cookie, reply_name(rq, FIELD_ALLOW_METHODS), a->methods);
	if (a->headers[0])
		header(cookie, reply_name(rq, FIELD_ALLOW_HEADERS), a->headers);
	if (a->expose[0])
		header(cookie, reply_name(rq, FIELD_EXPOSE_HEADERS), a->expose);
	if (a->max_age_s) {
		snprintf(age, sizeof age, "%u", a->max_age_s);
		header(cookie, reply_name(rq, FIELD_MAX_AGE), age);
	}
	header(cookie, reply_name(rq, FIELD_VARY),
	       "Origin, Access-Control-Request-Headers, Access-Control-Request-Method");
}
