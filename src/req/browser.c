/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unsigned requests that a browser was made to send by a page of somebody else: such a page may reach what
 * the person before it reaches, and no signature says that they meant it.  The core's thread.
 *
 * A signed request is never asked here, nor is a form with a policy: the person who signed it meant it.
 */
#include "req/machine.h"

#include <string.h>
#include <strings.h>

static struct span
text_of(const struct req *rq, const char *name)
{
	const struct field *f = dialect_field(&rq->in, name, NULL);

	return f ? (struct span){ f->value, f->value_len } : (struct span){ "", 0 };
}

/* Did we serve the page, under a name that nobody else can give us? */
static bool
is_our_page(const struct req *rq, struct span origin)
{
	struct span host = text_of(rq, "host");
	size_t scheme = span_begins(origin, "http://") ? 7 : span_begins(origin, "https://") ? 8 : 0;

	return scheme && origin.len - scheme == host.len &&
	       strncasecmp(origin.p + scheme, host.p, host.len) == 0 &&
	       conf_host_is_ours(rq->in.s3, host.p, host.len);
}

enum fault
browser_check(const struct req *rq, const char **ret_why)
{
	struct span host, origin, site;

	if (conf_is_loopback(&rq->listen->sa)) {
		host = text_of(rq, "host");
		if (!conf_host_is_ours(rq->in.s3, host.p, host.len)) {
			*ret_why = "Host: an unsigned request on a loopback listener has to name an address, "
				   "localhost, or a name in s3.domain.";
			return FAULT_ACCESS_DENIED;
		}
	}
	/* Where the bucket's CORS rules allow the origin this method, cors_look() has found the rule. */
	if (!op_info[rq->target.op].writes || rq->cors)
		return FAULT_NONE;
	site = text_of(rq, "sec-fetch-site");
	origin = text_of(rq, "origin");
	if (span_is(site, "cross-site") || span_is(site, "same-site")) {
		*ret_why = "Sec-Fetch-Site: a page of another origin sent this unsigned request, and no CORS "
			   "rule "
			   "of the bucket allows it.";
		return FAULT_ACCESS_DENIED;
	}
	if (origin.len && !is_our_page(rq, origin)) {
		*ret_why =
			"Origin: no CORS rule of the bucket allows this unsigned request from that origin.";
		return FAULT_ACCESS_DENIED;
	}
	return FAULT_NONE;
}
