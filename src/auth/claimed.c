/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a request says it is from, when nothing of that was or could be verified: for the access log, which
 * would name nobody for the very requests that somebody will ask about.  Called by req/ on a core's thread;
 * pure.
 *
 * Nothing is decided by it, so it takes what any signer writes, of whichever version, and whatever comes
 * near.
 */
#include "auth/auth_int.h"

/* Up to the first of `ends`, or blank or comma. */
static struct span
up_to(struct span s, const char *ends)
{
	size_t n = 0;

	while (n < s.len && !strchr(ends, s.p[n]) && s.p[n] != ' ' && s.p[n] != ',')
		n++;
	return (struct span){ s.p, n };
}

/* "AWS4-HMAC-SHA256 Credential=KEY/20130524/...", or "AWS KEY:signature" of version 2. */
static struct span
in_header(struct span s)
{
	static const char name[] = "Credential=";

	for (size_t i = 0; i + sizeof name - 1 <= s.len; i++) {
		if (strncasecmp(s.p + i, name, sizeof name - 1) == 0)
			return up_to((struct span){ s.p + i + sizeof name - 1, s.len - i - sizeof name + 1 },
				     "/");
	}
	if (span_begins(s, "AWS "))
		return up_to((struct span){ s.p + 4, s.len - 4 }, ":");
	return (struct span){ "", 0 };
}

static struct span
in_query(const struct uri *uri)
{
	for (int i = 0; i < uri->param_nr; i++) {
		struct span name = uri_name(uri, i);

		if (span_is_nocase(name, "X-Amz-Credential") || span_is(name, "AWSAccessKeyId"))
			return up_to(uri_value(uri, i), "/");
	}
	return (struct span){ "", 0 };
}

size_t
auth_claimed_key(const struct dialect_in *in, char *out, size_t cap)
{
	const struct field *f = dialect_field(in, "authorization", NULL);
	struct span key = { "", 0 };

	if (in->listen->dialect != DIALECT_S3)
		return 0;
	if (f)
		key = in_header(field_text(f));
	else if (in->uri)
		key = in_query(in->uri);
	if (key.len > cap)
		key.len = cap;
	memcpy(out, key.p, key.len);
	return key.len;
}
