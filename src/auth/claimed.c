/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a request says it is from, when nothing of that was or could be verified: for the access log, which would name
 * nobody for the very requests that somebody will ask about.  Called by req/ on a core's thread; pure.
 *
 * Nothing is decided by it, so it takes what any signer writes, of whichever version, and whatever comes near.
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

/* The value as it stands, encoded. */
static struct span
in_query(const struct dialect_in *in)
{
	struct span path, query;

	dialect_target_split(in, &path, &query);
	while (query.len) {
		struct span value = span_cut(&query, '&'), name = span_cut(&value, '=');

		if (span_is_nocase(name, "X-Amz-Credential") || span_is(name, "AWSAccessKeyId"))
			return value;
	}
	return (struct span){ "", 0 };
}

size_t
auth_claimed_key(const struct dialect_in *in, char *out, size_t cap)
{
	const struct field *f = dialect_field(in, "authorization", NULL);
	char decoded[AUTH_ACCESS_KEY_MAX + AUTH_SCOPE_MAX];
	struct span key = { "", 0 }, raw;

	if (in->listen->dialect != DIALECT_S3)
		return 0;
	if (f) {
		key = in_header(field_text(f));
	} else {
		int n;

		raw = in_query(in);
		raw.len = raw.len < sizeof decoded ? raw.len : sizeof decoded;
		n = span_decode(raw, 0, decoded, sizeof decoded);
		key = up_to((struct span){ decoded, n < 0 ? 0 : (size_t)n }, "/");
	}
	if (key.len > cap)
		key.len = cap;
	memcpy(out, key.p, key.len);
	return key.len;
}
