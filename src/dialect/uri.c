/*
 * Method and raw request target to operation, bucket and key.  See dialect.h; called by parse.c.
 *
 * S3, path style: "/", "/bucket", "/bucket/key".  A query key that we do not know is refused, since it may
 * turn the request into another one: PUT /b/k?acl must never overwrite k.  Scality: all that follows "/" (or
 * "/v1/") is the key, a '?' as well; its clients do not encode keys.  So neither dialect reaches an operation
 * of the other (item 99).
 *
 * A key is bytes: decoded once, '+' stays '+', ".." is an ordinary name.
 */
#include "dialect/dialect_int.h"

#include "base/hex.h"

#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>

enum method { METHOD_OTHER, METHOD_PUT, METHOD_GET, METHOD_HEAD, METHOD_DELETE, METHOD_POST, METHOD_OPTIONS };

static enum method
method_of(const char *name)
{
	static const char *const names[] = {
		[METHOD_PUT] = "PUT",       [METHOD_GET] = "GET",   [METHOD_HEAD] = "HEAD",
		[METHOD_DELETE] = "DELETE", [METHOD_POST] = "POST", [METHOD_OPTIONS] = "OPTIONS"
	};

	for (enum method m = METHOD_PUT; m <= METHOD_OPTIONS; m++) {
		if (strcmp(name, names[m]) == 0)
			return m;
	}
	return METHOD_OTHER;
}

/* Strips "http://authority" of an absolute-form target, which RFC 9112 section 3.2.2 wants every server to
 * take. */
static struct span
origin_form(struct span s)
{
	static const struct span root = { "/", 1 };
	size_t skip = 0;
	const char *path;

	if (s.len >= 7 && strncasecmp(s.p, "http://", 7) == 0)
		skip = 7;
	else if (s.len >= 8 && strncasecmp(s.p, "https://", 8) == 0)
		skip = 8;
	if (skip == 0)
		return s;
	s.p += skip;
	s.len -= skip;
	for (path = s.p; path < s.p + s.len && *path != '/' && *path != '?'; path++)
		;
	s.len -= (size_t)(path - s.p);
	s.p = path;
	return s.len ? s : root;
}

/*
 * Percent-decodes once.  Returns the length, -EINVAL for a bad sequence (strict) or a NUL, -E2BIG beyond cap.
 * Not strict: a '%' without two hex digits behind it stands for itself.
 */
static int
decode(struct span s, bool strict, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.p[i];

		if (c == '%') {
			bool whole =
				s.len - i > 2 && hex_digit(s.p[i + 1]) >= 0 && hex_digit(s.p[i + 2]) >= 0;

			if (!whole && strict)
				return -EINVAL;
			if (whole) {
				c = (char)(hex_digit(s.p[i + 1]) << 4 | hex_digit(s.p[i + 2]));
				i += 2;
			}
		}
		if (c == 0)
			return -EINVAL;
		/* Past the end only the count goes on: a NUL or a bad sequence behind it is still the better
		 * answer. */
		if (n < cap)
			out[n] = c;
		n++;
	}
	return n > cap ? -E2BIG : (int)n;
}

/* Shortest form, no surrogates, nothing above U+10FFFF. */
static bool
is_utf8(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	while (p < end) {
		uint32_t v = *p, min;
		int more;

		if (v < 0x80) {
			p++;
			continue;
		}
		if ((v & 0xe0) == 0xc0) {
			more = 1;
			min = 0x80;
			v &= 0x1f;
		} else if ((v & 0xf0) == 0xe0) {
			more = 2;
			min = 0x800;
			v &= 0x0f;
		} else if ((v & 0xf8) == 0xf0) {
			more = 3;
			min = 0x10000;
			v &= 0x07;
		} else {
			return false;
		}
		if (end - p <= more)
			return false;
		for (p++; more; more--, p++) {
			if ((*p & 0xc0) != 0x80)
				return false;
			v = v << 6 | (*p & 0x3f);
		}
		if (v < min || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
			return false;
	}
	return true;
}

static bool
is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* 3-63 characters, lower case, digits, '-' and single '.', alphanumeric ends, not an IPv4 address: as S3. */
static bool
is_bucket_name(const char *name, size_t len)
{
	struct in_addr ip;

	if (len < 3 || len > 63 || !is_lower_alnum(name[0]) || !is_lower_alnum(name[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_lower_alnum(name[i]) && name[i] != '-' && (name[i] != '.' || name[i - 1] == '.'))
			return false;
	}
	return inet_pton(AF_INET, name, &ip) != 1;
}

/* What a signed URL carries: auth/ refuses or verifies it, so it is not unknown. */
static const char *const signature_keys[] = {
	"X-Amz-Signature",     "X-Amz-Algorithm",      "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
	"X-Amz-SignedHeaders", "X-Amz-Security-Token", "AWSAccessKeyId",   "Signature",  "Expires"
};

static bool
is_signature_key(struct span key)
{
	for (size_t i = 0; i < sizeof signature_keys / sizeof *signature_keys; i++) {
		if (span_is(key, signature_keys[i]))
			return true;
	}
	return false;
}

/* Cuts the next "key[=value]" off *query and returns its key; false at the end. */
static bool
next_key(struct span *query, struct span *ret_key)
{
	while (query->len) {
		const char *amp = memchr(query->p, '&', query->len);
		size_t len = amp ? (size_t)(amp - query->p) : query->len;
		const char *eq = memchr(query->p, '=', len);

		*ret_key = (struct span){ query->p, eq ? (size_t)(eq - query->p) : len };
		query->p += amp ? len + 1 : len;
		query->len -= amp ? len + 1 : len;
		if (len)
			return true;
	}
	return false;
}

static struct span
split_query(struct span *path)
{
	const char *q = memchr(path->p, '?', path->len);
	struct span query = { path->p + path->len, 0 };

	if (q) {
		query = (struct span){ q + 1, path->len - (size_t)(q - path->p) - 1 };
		path->len = (size_t)(q - path->p);
	}
	return query;
}

bool
dialect_query_signed(const struct dialect_in *in)
{
	struct span path = origin_form((struct span){ in->target, in->target_len }), query, key;

	if (in->listen->dialect != DIALECT_S3)
		return false;
	query = split_query(&path);
	while (next_key(&query, &key)) {
		if (is_signature_key(key))
			return true;
	}
	return false;
}

static enum fault
check_query(struct span query, const char **ret_why)
{
	struct span key;

	while (next_key(&query, &key)) {
		/* x-id names the operation that an SDK believes it calls; it changes nothing. */
		if (span_is(key, "x-id") || is_signature_key(key))
			continue;
		if (span_is(key, "versionId"))
			return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				      "versionId: versions are not implemented.");
		if (span_is(key, "uploadId") || span_is(key, "uploads") || span_is(key, "partNumber"))
			return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				      "Multipart uploads are not implemented.");
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "The query of the request names a subresource that is not implemented.");
	}
	return FAULT_NONE;
}

static enum fault
set_key(struct target *t, int len, const char **ret_why)
{
	if (len == -E2BIG)
		return refuse(ret_why, FAULT_KEY_TOO_LONG, "The key is longer than 1024 bytes.");
	if (len < 0)
		return refuse(ret_why, FAULT_BAD_URI, "The key has a bad percent sequence or a NUL.");
	t->key[len] = 0;
	t->key_len = (uint16_t)len;
	return FAULT_NONE;
}

/* What the method means at the three levels of a path. */
static const struct {
	enum op root, bucket, object;
} s3_ops[] = {
	[METHOD_PUT] = { OP_NONE, OP_CREATE_BUCKET, OP_PUT_OBJECT },
	[METHOD_GET] = { OP_LIST_BUCKETS, OP_NONE, OP_GET_OBJECT },
	[METHOD_HEAD] = { OP_NONE, OP_HEAD_BUCKET, OP_HEAD_OBJECT },
	[METHOD_DELETE] = { OP_NONE, OP_DELETE_BUCKET, OP_DELETE_OBJECT },
};

static enum fault
parse_s3(struct span s, enum method m, struct target *t, const char **ret_why)
{
	struct span query, bucket, key;
	const char *slash;
	enum fault f;
	int n;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7f || c == '#')
			return refuse(ret_why, FAULT_BAD_URI,
				      "The request target has a character that must be encoded.");
	}
	query = split_query(&s);
	f = check_query(query, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (s.len == 1) {
		t->op = s3_ops[m].root;
		return t->op ? FAULT_NONE
			     : refuse(ret_why, FAULT_METHOD,
				      "The method is not allowed on the service itself.");
	}
	slash = memchr(s.p + 1, '/', s.len - 1);
	bucket = (struct span){ s.p + 1, slash ? (size_t)(slash - s.p) - 1 : s.len - 1 };
	key = slash ? (struct span){ slash + 1, s.len - bucket.len - 2 } : (struct span){ s.p + s.len, 0 };
	n = decode(bucket, true, t->bucket, sizeof t->bucket - 1);
	if (n == -EINVAL)
		return refuse(ret_why, FAULT_BAD_URI, "The bucket name has a bad percent sequence or a NUL.");
	if (n > 0)
		t->bucket[n] = 0;
	if (n <= 0 || !is_bucket_name(t->bucket, (size_t)n)) {
		t->bucket[0] = 0;
		return refuse(ret_why, FAULT_BAD_BUCKET_NAME, "The bucket name is not valid.");
	}
	t->bucket_len = (uint16_t)n;
	if (key.len == 0) {
		t->op = s3_ops[m].bucket;
		return t->op ? FAULT_NONE
			     : refuse(ret_why, FAULT_NOT_IMPLEMENTED, "Listing objects is not implemented.");
	}
	f = set_key(t, decode(key, true, t->key, DIALECT_KEY_MAX), ret_why);
	if (f == FAULT_NONE && !is_utf8(t->key, t->key_len))
		f = refuse(ret_why, FAULT_BAD_URI, "The key is not UTF-8.");
	if (f == FAULT_NONE)
		t->op = s3_ops[m].object;
	return f;
}

static enum fault
parse_scality(const struct conf_listen *l, struct span s, enum method m, struct target *t,
	      const char **ret_why)
{
	static const char v1[] = "/v1/";
	size_t skip = l->v1_prefix ? sizeof v1 - 1 : 1, bucket_len = strlen(l->bucket);
	enum fault f;
	int n;

	if (s.len <= skip || memcmp(s.p, v1, skip) != 0)
		return refuse(ret_why, FAULT_NOT_FOUND, "There is no key in the request target.");
	if (bucket_len >= sizeof t->bucket)
		return refuse(ret_why, FAULT_INTERNAL,
			      "The listener's bucket has a name of more than 63 characters.");
	memcpy(t->bucket, l->bucket, bucket_len + 1);
	t->bucket_len = (uint16_t)bucket_len;
	s.p += skip;
	s.len -= skip;
	if (l->decode) {
		n = decode(s, false, t->key, DIALECT_KEY_MAX);
	} else if (memchr(s.p, 0, s.len)) {
		n = -EINVAL;
	} else if (s.len > DIALECT_KEY_MAX) {
		n = -E2BIG;
	} else {
		memcpy(t->key, s.p, s.len);
		n = (int)s.len;
	}
	f = set_key(t, n, ret_why);
	if (f == FAULT_NONE)
		t->op = s3_ops[m].object;
	return f;
}

enum fault
uri_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	struct span s = origin_form((struct span){ in->target, in->target_len });
	enum method m = method_of(in->method);

	if (m == METHOD_OTHER)
		return refuse(ret_why, FAULT_METHOD, "The method is not known here.");
	if (m == METHOD_POST || m == METHOD_OPTIONS)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "POST and OPTIONS are not implemented.");
	if (s.len == 0 || s.p[0] != '/')
		return refuse(ret_why, FAULT_BAD_URI, "The request target does not begin with a slash.");
	if (in->listen->dialect == DIALECT_SCALITY)
		return parse_scality(in->listen, s, m, t, ret_why);
	return parse_s3(s, m, t, ret_why);
}
