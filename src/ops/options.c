/* A CORS preflight: may a page of that origin make the request it announces?  The core's thread. */
#include "ops/ops_int.h"

enum verdict
options_start(struct req *rq)
{
	const struct field *origin = dialect_field(&rq->in, "origin", NULL);
	const struct field *method = dialect_field(&rq->in, "access-control-request-method", NULL);
	const struct field *headers = dialect_field(&rq->in, "access-control-request-headers", NULL);

	if (!origin || !method)
		return req_fail(
			rq, FAULT_BAD_REQUEST,
			"Insufficient information. Origin and Access-Control-Request-Method are needed.");
	if (!cors_find(rq, origin, method->value, method->value_len, headers))
		return req_fail(rq, FAULT_CORS_FORBIDDEN, NULL);
	return req_go(rq, req_reply_step);
}
