/* SPDX-License-Identifier: Apache-2.0 */
/* A CORS preflight: may a page of that origin make the request it announces?  The core's thread. */
#include "ops/ops_int.h"

#include <errno.h>

static enum verdict
options_known(struct req *rq)
{
	const struct field *origin = dialect_field(&rq->in, "origin", NULL);
	const struct field *method = dialect_field(&rq->in, "access-control-request-method", NULL);
	char joined[DIALECT_ATTRS_MAX];
	int nr, r = rq->battrs.stat.op.result;
	struct span list =
		dialect_field_list(&rq->in, "access-control-request-headers", joined, sizeof joined, &nr);
	struct field headers = { .value = list.p, .value_len = (uint32_t)list.len };

	/* A bucket that is not there allows nothing; what one that cannot be asked would allow is not
	 * known. */
	if (r < 0 && r != -ENXIO)
		return req_fail(rq, fault_of(r), NULL);
	if ((nr && !list.p) || !cors_find(rq, origin, method->value, method->value_len, nr ? &headers : NULL))
		return req_fail(rq, FAULT_CORS_FORBIDDEN, NULL);
	return req_go(rq, req_reply_step);
}

enum verdict
options_start(struct req *rq)
{
	if (!dialect_field(&rq->in, "origin", NULL) ||
	    !dialect_field(&rq->in, "access-control-request-method", NULL))
		return req_fail(
			rq, FAULT_BAD_REQUEST,
			"Insufficient information. Origin and Access-Control-Request-Method are needed.");
	return req_read_battrs(rq, options_known);
}
