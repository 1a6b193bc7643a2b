/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signature as it came: from the Authorization header or the query of a presigned URL to a struct sigv4,
 * nothing of which is believed yet.  Called by auth.c and form.c; pure.  The query is decoded already, and has
 * each name once (dialect/decode.c).
 *
 * Strict on purpose: whatever a signer writes in one way only is taken in one way only.
 */
#include "auth/auth_int.h"

#include "base/hex.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define SERVICE_SCOPE "/s3/aws4_request"

int
signature_parse(struct span b, uint8_t out[32])
{
	unsigned upper = 0;

	if (b.len != 64)
		return -EINVAL;
	for (int i = 0; i < 64; i++)
		upper |= (unsigned char)(b.p[i] - 'A') < 26;
	return upper ? -EINVAL : hex_bytes(b.p, out, 32);
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
stamp_parse(struct span text, char out[AUTH_STAMP_LEN + 1], uint64_t *ret_unix_s)
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

static void
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

/* Writes "20130524/us-east-1/s3/aws4_request". date: 8 digits; region: at most AUTH_REGION_MAX bytes. */
static void
put_scope(struct span date, struct span region, char out[AUTH_SCOPE_MAX])
{
	_Static_assert(8 + 1 + AUTH_REGION_MAX + sizeof SERVICE_SCOPE <= AUTH_SCOPE_MAX, "the longest scope");

	memcpy(out, date.p, date.len);
	out += date.len;
	*out++ = '/';
	memcpy(out, region.p, region.len);
	memcpy(out + region.len, SERVICE_SCOPE, sizeof SERVICE_SCOPE);
}

enum fault
scan_credential(struct span text, const char *region, enum fault bad, struct sigv4 *s, const char **ret_why)
{
	struct span rest = text, part[5];

	for (int i = 0; i < 5; i++) {
		if (i && !rest.len)
			return refuse(ret_why, bad,
				      "The credential is not ACCESSKEY/DATE/REGION/s3/aws4_request.");
		part[i] = span_cut(&rest, '/');
	}
	if (rest.len || !part[0].len || part[0].len > AUTH_ACCESS_KEY_MAX || part[1].len != 8)
		return refuse(ret_why, bad, "The credential is not ACCESSKEY/DATE/REGION/s3/aws4_request.");
	for (int i = 0; i < 8; i++) {
		if (part[1].p[i] < '0' || part[1].p[i] > '9')
			return refuse(ret_why, bad, "The date of the credential is not 8 digits.");
	}
	/* Clients that were told of no region sign for none. */
	if (part[2].len && !span_is(part[2], region) && strcmp(region, CONF_ANY_REGION) != 0)
		return refuse(ret_why, bad, "The region of the credential is not this server's.");
	if (part[2].len > AUTH_REGION_MAX)
		return refuse(ret_why, bad, "The region of the credential is longer than 63 bytes.");
	if (!span_is(part[3], "s3"))
		return refuse(ret_why, bad, "The service of the credential is not s3.");
	if (!span_is(part[4], "aws4_request"))
		return refuse(ret_why, bad, "The credential does not end in aws4_request.");
	s->access_key = part[0];
	s->region = part[2];
	put_scope(part[1], part[2], s->scope);
	return FAULT_NONE;
}

/* x-amz-date, or Date in either of the two forms that signers write. */
static enum fault
scan_date(const struct dialect_in *in, struct sigv4 *s, const char **ret_why)
{
	const struct field *f;
	struct span text;
	int nr;

	f = dialect_field(in, "x-amz-date", &nr);
	if (!f)
		f = dialect_field(in, "date", &nr);
	if (!f || nr > 1)
		return refuse(ret_why, FAULT_ACCESS_DENIED,
			      "A signed request needs exactly one x-amz-date (or Date).");
	text = field_text(f);
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
	struct span rest, part;
	unsigned seen = 0;
	enum fault f;
	int nr;

	rest = field_text(dialect_field(in, "authorization", &nr));
	if (nr > 1)
		return refuse(ret_why, FAULT_AUTH_HEADER, "Authorization came more than once.");
	part = span_cut(&rest, ' ');
	if (span_is(part, "AWS"))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Signatures of version 2 are not served in Authorization: " SIGV2_HELP);
	if (span_begins(part, "AWS4-") && !span_is(part, ALGORITHM))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "The only algorithm served is " ALGORITHM ".");
	if (!span_is(part, ALGORITHM))
		return refuse(ret_why, FAULT_AUTH_HEADER, "Authorization is not " ALGORITHM " ....");
	while (rest.len) {
		unsigned which;

		part = span_cut(&rest, ',');
		while (part.len && part.p[0] == ' ') {
			part.p++;
			part.len--;
		}
		which = span_begins(part, "Credential=")      ? CREDENTIAL
			: span_begins(part, "SignedHeaders=") ? HEADERS
			: span_begins(part, "Signature=")     ? SIGNATURE
							      : 0;
		if (!which || (seen & which))
			return refuse(ret_why, FAULT_AUTH_HEADER,
				      "Authorization has one Credential, SignedHeaders and Signature each, "
				      "and nothing else.");
		seen |= which;
		span_cut(&part, '=');
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
		s->token = field_text(token);
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

bool
sigv2_is_key(struct span name)
{
	return span_is(name, "AWSAccessKeyId") || span_is(name, "Signature") || span_is(name, "Expires");
}

/* Each is there once: decode.c has seen to that. */
static enum fault
query_values(const struct uri *uri, struct span value[Q_NR], const char **ret_why)
{
	for (int i = 0; i < uri->param_nr; i++) {
		struct span name = uri_name(uri, i);

		for (int q = 0; q < Q_NR; q++) {
			if (span_is(name, query_name[q]))
				value[q] = uri_value(uri, i);
		}
		if (sigv2_is_key(name))
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "URLs signed by version 2 are not served (auth.sigv2): " SIGV2_HELP);
		/* As signers of version 2 write it. */
		if (span_is(name, "x-amz-security-token"))
			return refuse(ret_why, FAULT_BAD_ARGUMENT,
				      "X-Amz-Security-Token is not spelled in the letters that it has.");
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
parse_expires(struct span text, uint64_t *ret)
{
	if (!text.len || text.len > 6 || text.p[0] == '0' || span_decimal(text, ret) < 0)
		return -EINVAL;
	return *ret > AUTH_EXPIRES_MAX_S ? -EINVAL : 0;
}

enum fault
scan_query(const struct dialect_in *in, const char *region, struct sigv4 *s, const char **ret_why)
{
	struct span value[Q_NR] = { { NULL, 0 } };
	enum fault f;

	s->presigned = true;
	f = query_values(in->uri, value, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (!span_is(value[Q_ALGORITHM], ALGORITHM))
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Algorithm is not " ALGORITHM ".");
	f = scan_credential(value[Q_CREDENTIAL], region, FAULT_AUTH_QUERY, s, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (stamp_parse(value[Q_DATE], s->stamp, &s->time_s) < 0 || memcmp(s->scope, s->stamp, 8) != 0)
		return refuse(ret_why, FAULT_AUTH_QUERY,
			      "X-Amz-Date is not like 20130524T000000Z, or not the credential's day.");
	if (parse_expires(value[Q_EXPIRES], &s->expires_s) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Expires is not 1 to 604800 seconds.");
	s->signed_headers = value[Q_HEADERS];
	if (signature_parse(value[Q_SIGNATURE], s->signature) < 0)
		return refuse(ret_why, FAULT_AUTH_QUERY, "X-Amz-Signature is not 64 hexadecimal digits.");
	if (value[Q_TOKEN].p)
		s->token = value[Q_TOKEN];
	return FAULT_NONE;
}
