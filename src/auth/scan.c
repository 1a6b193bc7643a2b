/*
 * A signature as it came: from the Authorization header or the query of a presigned URL to a struct sigv4,
 * nothing of which is believed yet.  Called by auth.c and form.c; pure.
 *
 * Strict on purpose: whatever a signer writes in one way only is taken in one way only.
 */
#include "auth/auth_int.h"

#include "base/hex.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define EXPIRES_MAX_S (7u * 86400)
#define SERVICE_SCOPE "/s3/aws4_request"

struct bytes
header_value(const struct field *f)
{
	struct bytes b = { f->value, f->value_len };

	while (b.len && (b.p[0] == ' ' || b.p[0] == '\t')) {
		b.p++;
		b.len--;
	}
	while (b.len && (b.p[b.len - 1] == ' ' || b.p[b.len - 1] == '\t'))
		b.len--;
	return b;
}

int
signature_parse(struct bytes b, uint8_t out[32])
{
	if (b.len != 64)
		return -EINVAL;
	for (size_t i = 0; i < b.len; i++) {
		if (b.p[i] >= 'A' && b.p[i] <= 'F')
			return -EINVAL;
	}
	return hex_bytes(b.p, out, 32);
}

struct bytes
cut(struct bytes *rest, char sep)
{
	const char *at = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
	struct bytes head = { rest->p, at ? (size_t)(at - rest->p) : rest->len };
	size_t skip = head.len + (at ? 1 : 0);

	rest->p += skip;
	rest->len -= skip;
	return head;
}

/* n digits at p; the caller has seen that they are digits. */
static unsigned
number(const char *p, int n)
{
	unsigned v = 0;

	for (int i = 0; i < n; i++)
		v = v * 10 + (unsigned)(p[i] - '0');
	return v;
}

/* Days since 1970 of a day in the Gregorian calendar; year >= 1970. */
static uint64_t
days_of(unsigned year, unsigned month, unsigned day)
{
	static const uint16_t before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
	unsigned y = year - (month <= 2);

	return (uint64_t)365 * (year - 1970) + (y / 4 - y / 100 + y / 400) -
	       (1969 / 4 - 1969 / 100 + 1969 / 400) + before[month - 1] + day - 1;
}

int
stamp_parse(struct bytes text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s)
{
	static const uint8_t days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned year, month, day, hour, minute, second;

	if (text.len != AUTH_STAMP_LEN)
		return -EINVAL;
	for (size_t i = 0; i < AUTH_STAMP_LEN; i++) {
		char want = i == 8 ? 'T' : i == 15 ? 'Z' : 0;

		if (want ? text.p[i] != want : text.p[i] < '0' || text.p[i] > '9')
			return -EINVAL;
	}
	year = number(text.p, 4);
	month = number(text.p + 4, 2);
	day = number(text.p + 6, 2);
	hour = number(text.p + 9, 2);
	minute = number(text.p + 11, 2);
	second = number(text.p + 13, 2);
	if (year < 1970 || month < 1 || month > 12 || day < 1 || day > days[month - 1] || hour > 23 ||
	    minute > 59 || second > 60)
		return -EINVAL;
	memcpy(out, text.p, AUTH_STAMP_LEN);
	out[AUTH_STAMP_LEN] = 0;
	*ret_unix_s = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
	return 0;
}

void
stamp_format(uint64_t unix_s, char out[AUTH_STAMP_LEN + 1])
{
	time_t t = (time_t)unix_s;
	struct tm tm;

	/* Unlike strftime(), never with a year of five digits or a locale's. */
	if (!gmtime_r(&t, &tm) || tm.tm_year > 8099)
		memset(&tm, 0, sizeof tm);
	snprintf(out, AUTH_STAMP_LEN + 1, "%04u%02u%02uT%02u%02u%02uZ", (unsigned)(tm.tm_year + 1900) % 10000,
		 (unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

enum fault
scan_credential(struct bytes text, const char *region, enum fault bad, struct sigv4 *s, const char **ret_why)
{
	struct bytes rest = text, part[5];

	for (int i = 0; i < 5; i++) {
		if (i && !rest.len)
			return refuse(ret_why, bad,
				      "The credential is not ACCESSKEY/DATE/REGION/s3/aws4_request.");
		part[i] = cut(&rest, '/');
	}
	if (rest.len || !part[0].len || part[0].len > AUTH_ACCESS_KEY_MAX || part[1].len != 8)
		return refuse(ret_why, bad, "The credential is not ACCESSKEY/DATE/REGION/s3/aws4_request.");
	for (int i = 0; i < 8; i++) {
		if (part[1].p[i] < '0' || part[1].p[i] > '9')
			return refuse(ret_why, bad, "The date of the credential is not 8 digits.");
	}
	if (!bytes_are(part[2], region))
		return refuse(ret_why, bad, "The region of the credential is not this server's.");
	if (!bytes_are(part[3], "s3"))
		return refuse(ret_why, bad, "The service of the credential is not s3.");
	if (!bytes_are(part[4], "aws4_request"))
		return refuse(ret_why, bad, "The credential does not end in aws4_request.");
	s->access_key = part[0];
	snprintf(s->scope, sizeof s->scope, "%.8s/%s" SERVICE_SCOPE, part[1].p, region);
	return FAULT_NONE;
}

/* x-amz-date, or Date in either of the two forms that signers write. */
static enum fault
scan_date(const struct dialect_in *in, struct sigv4 *s, const char **ret_why)
{
	const struct field *f;
	struct bytes text;
	int nr;

	f = dialect_field(in, "x-amz-date", &nr);
	if (!f)
		f = dialect_field(in, "date", &nr);
	if (!f || nr > 1)
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "A signed request needs exactly one x-amz-date (or Date).");
	text = header_value(f);
	if (stamp_parse(text, s->stamp, &s->time_s) == 0)
		return FAULT_NONE;
	if (f->name_len != 4 || http_date_parse(text.p, text.len, &s->time_s) < 0)
		return refuse(ret_why, FAULT_ACCESS_DENIED, "x-amz-date (or Date) is not a date.");
	stamp_format(s->time_s, s->stamp);
	return FAULT_NONE;
}

enum fault
scan_header(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why)
{
	enum { CREDENTIAL = 1, HEADERS = 2, SIGNATURE = 4 };
	const struct field *token;
	struct bytes rest, part;
	unsigned seen = 0;
	enum fault f;
	int nr;

	rest = header_value(dialect_field(in, "authorization", &nr));
	if (nr > 1)
		return refuse(ret_why, FAULT_AUTH_HEADER, "Authorization came more than once.");
	part = cut(&rest, ' ');
	if (bytes_are(part, "AWS"))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Signatures of version 2 are not supported; use " ALGORITHM ".");
	if (bytes_begin(part, "AWS4-") && !bytes_are(part, ALGORITHM))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "The only algorithm served is " ALGORITHM ".");
	if (!bytes_are(part, ALGORITHM))
		return refuse(ret_why, FAULT_AUTH_HEADER, "Authorization is not " ALGORITHM " ....");
	while (rest.len) {
		unsigned which;

		part = cut(&rest, ',');
		while (part.len && part.p[0] == ' ') {
			part.p++;
			part.len--;
		}
		which = bytes_begin(part, "Credential=")      ? CREDENTIAL
			: bytes_begin(part, "SignedHeaders=") ? HEADERS
			: bytes_begin(part, "Signature=")     ? SIGNATURE
							      : 0;
		if (!which || (seen & which))
			return refuse(ret_why, FAULT_AUTH_HEADER,
				      "Authorization has one Credential, SignedHeaders and Signature each, "
				      "and nothing else.");
		seen |= which;
		cut(&part, '=');
		f = FAULT_NONE;
		if (which == CREDENTIAL)
			f = scan_credential(part, region, FAULT_AUTH_HEADER, s, ret_why);
		else if (which == HEADERS)
			s->signed_headers = part;
		else if (signature_parse(part, s->signature) < 0)
			f = refuse(ret_why, FAULT_AUTH_HEADER, "Signature is not 64 hexadecimal digits.");
		if (f != FAULT_NONE)
			return f;
	}
	if (seen != (CREDENTIAL | HEADERS | SIGNATURE))
		return refuse(ret_why, FAULT_AUTH_HEADER,
			      "Authorization lacks Credential, SignedHeaders or Signature.");
	f = scan_date(in, s, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (memcmp(s->scope, s->stamp, 8) != 0)
		return refuse(ret_why, FAULT_AUTH_HEADER,
			      "The date of the credential is not that of the request.");
	token = dialect_field(in, "x-amz-security-token", &nr);
	if (nr > 1)
		return refuse(ret_why, FAULT_SECURITY_TOKEN, "x-amz-security-token came more than once.");
	if (token)
		s->token = header_value(token);
	return FAULT_NONE;
}

/* ---- presigned ---- */

enum { Q_ALGORITHM, Q_CREDENTIAL, Q_DATE, Q_EXPIRES, Q_HEADERS, Q_SIGNATURE, Q_TOKEN, Q_NR };

static const char *const query_name[Q_NR] = {
	[Q_ALGORITHM] = "X-Amz-Algorithm",
	[Q_CREDENTIAL] = "X-Amz-Credential",
	[Q_DATE] = "X-Amz-Date",
	[Q_EXPIRES] = "X-Amz-Expires",
	[Q_HEADERS] = "X-Amz-SignedHeaders",
	[Q_SIGNATURE] = "X-Amz-Signature",
	[Q_TOKEN] = "X-Amz-Security-Token",
};

void
target_split(const struct dialect_in *in, struct bytes *ret_path, struct bytes *ret_query)
{
	struct bytes all = { in->target, in->target_len };
	size_t skip = 0;

	if (all.len >= 7 && strncasecmp(all.p, "http://", 7) == 0)
		skip = 7;
	else if (all.len >= 8 && strncasecmp(all.p, "https://", 8) == 0)
		skip = 8;
	if (skip) {
		while (skip < all.len && all.p[skip] != '/' && all.p[skip] != '?')
			skip++;
		all.p += skip;
		all.len -= skip;
	}
	*ret_path = cut(&all, '?');
	if (!ret_path->len)
		*ret_path = bytes_of("/");
	*ret_query = all;
}

/* Percent-decoded into out; '+' stays.  0 or -EINVAL. */
static int
decode(struct bytes in, char *out, size_t cap, struct bytes *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < in.len; i++) {
		int c = (unsigned char)in.p[i];

		if (c == '%') {
			if (in.len - i < 3 || hex_digit(in.p[i + 1]) < 0 || hex_digit(in.p[i + 2]) < 0)
				return -EINVAL;
			c = hex_digit(in.p[i + 1]) << 4 | hex_digit(in.p[i + 2]);
			i += 2;
		}
		if (n == cap || c == 0)
			return -EINVAL;
		out[n++] = (char)c;
	}
	*ret = (struct bytes){ out, n };
	return 0;
}

static enum fault
query_values(struct bytes query, struct bytes value[Q_NR], const char **ret_why)
{
	while (query.len) {
		struct bytes v = cut(&query, '&'), name = cut(&v, '=');

		for (int q = 0; q < Q_NR; q++) {
			if (!bytes_are(name, query_name[q]))
				continue;
			if (value[q].p)
				return refuse(ret_why, FAULT_AUTH_QUERY,
					      "A query parameter of the signature came twice.");
			value[q] = v;
		}
		if (bytes_are(name, "AWSAccessKeyId") || bytes_are(name, "Signature") ||
		    bytes_are(name, "Expires"))
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "Signatures of version 2 are not supported; use " ALGORITHM ".");
	}
	for (int q = 0; q < Q_NR; q++) {
		if (!value[q].p && q != Q_TOKEN)
			return refuse(ret_why, FAULT_AUTH_QUERY,
				      "A presigned URL needs X-Amz-Algorithm, -Credential, -Date, -Expires, "
				      "-SignedHeaders and -Signature.");
	}
	return FAULT_NONE;
}

static int
parse_expires(struct bytes text, uint64_t *ret)
{
	uint64_t v = 0;

	if (!text.len || text.len > 6 || text.p[0] == '0')
		return -EINVAL;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(text.p[i] - '0');
	}
	*ret = v;
	return v > EXPIRES_MAX_S ? -EINVAL : 0;
}

enum fault
scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why)
{
	struct bytes path, query, value[Q_NR] = { { NULL, 0 } }, credential;
	enum fault f;

	s->presigned = true;
	target_split(in, &path, &query);
	f = query_values(query, value, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (!bytes_are(value[Q_ALGORITHM], ALGORITHM))
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Algorithm is not " ALGORITHM ".");
	if (decode(value[Q_CREDENTIAL], s->credential_text, sizeof s->credential_text, &credential) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Credential is not well-formed.");
	f = scan_credential(credential, region, FAULT_AUTH_QUERY, s, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (stamp_parse(value[Q_DATE], s->stamp, &s->time_s) < 0 || memcmp(s->scope, s->stamp, 8) != 0)
		return refuse(ret_why, FAULT_AUTH_QUERY,
			      "X-Amz-Date is not like 20130524T000000Z, or not the credential's day.");
	if (parse_expires(value[Q_EXPIRES], &s->expires_s) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Expires is not 1 to 604800 seconds.");
	if (decode(value[Q_HEADERS], s->headers_text, sizeof s->headers_text, &s->signed_headers) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-SignedHeaders is not well-formed.");
	if (signature_parse(value[Q_SIGNATURE], s->signature) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Signature is not 64 hexadecimal digits.");
	if (value[Q_TOKEN].p && decode(value[Q_TOKEN], s->token_text, sizeof s->token_text, &s->token) < 0)
		return refuse(ret_why, FAULT_SECURITY_TOKEN, "X-Amz-Security-Token is not well-formed.");
	return FAULT_NONE;
}
