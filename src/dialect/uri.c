/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method and raw request target to operation, bucket and key.  See dialect.h; called by parse.c.
 *
 * S3: "/", "/bucket", "/bucket/key", or without the bucket where Host names it (virtual-host style); the
 * query is query.c's.  Scality: all that follows "/" (or "/v1/") is the key, a '?' as well; its clients do
 * not encode keys.  So neither dialect reaches an operation of the other (item 99).
 *
 * A key is bytes: decoded once, '+' stays '+', ".." is an ordinary name.
 */
#include "dialect/dialect_int.h"

#include <errno.h>

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

	if (s.len && s.p[0] == '/')
		return s;
	if (span_begins_nocase(s, "http://"))
		skip = 7;
	else if (span_begins_nocase(s, "https://"))
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

void
dialect_target_split(const struct dialect_in *in, struct span *ret_path, struct span *ret_query)
{
	*ret_query = origin_form((struct span){ in->target, in->target_len });
	*ret_path = span_cut(ret_query, '?');
}

bool
dialect_query_signed(const struct dialect_in *in)
{
	struct span path, query, key, value;

	if (in->listen->dialect != DIALECT_S3)
		return false;
	dialect_target_split(in, &path, &query);
	while (query_next(&query, &key, &value)) {
		if (query_key_signs(key))
			return true;
	}
	return false;
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

/* The host of a Host field: without port, and not an address in brackets. */
static struct span
host_name(const struct dialect_in *in)
{
	const struct field *f = dialect_field(in, "host", NULL);
	struct span s = { "", 0 };

	if (f)
		s = field_text(f);
	return span_cut(&s, ':');
}

/* The part of Host in front of the longest domain of ours that it ends in; false for path style. */
static bool
bucket_of_host(const struct dialect_in *in, struct span *ret_bucket)
{
	struct span host = host_name(in);
	size_t longest = 0;

	for (int i = 0; in->s3 && i < in->s3->domain_nr; i++) {
		const char *domain = in->s3->domains[i];
		size_t n = strlen(domain);

		if (span_is_nocase(host, domain))
			return false;
		if (host.len > n + 1 && n > longest && host.p[host.len - n - 1] == '.' &&
		    strncasecmp(host.p + host.len - n, domain, n) == 0)
			longest = n;
	}
	*ret_bucket = (struct span){ host.p, longest ? host.len - longest - 1 : 0 };
	return longest > 0;
}

/* Routes of other protocols on the same port, which connect queue pairs (protocol.md section 8).  Clients of
 * hipobj-rc-v2 fall back on one answer only, which has a marker.  No bucket can have such a name. */
static enum fault
control_route(struct span path, enum method m, const char **ret_why)
{
	static const struct {
		const char *path, *why;
		enum fault fault;
	} routes[] = {
		{ "/.hipobj-rc/prepare", "hipobj-rc-v2 is not served.", FAULT_RC_OFF },
		{ "/.hipobj-rc/ready", "hipobj-rc-v2 is not served.", FAULT_RC_OFF },
		{ "/.hipobj-rc/cancel", "hipobj-rc-v2 is not served.", FAULT_RC_OFF },
		{ "/.s3rdma-rc/connect", "RC connections are not served.", FAULT_RDMA_NOT_SUPPORTED },
		{ "/.s3rdma-rc/disconnect", "RC connections are not served.", FAULT_RDMA_NOT_SUPPORTED },
	};

	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
		if (!span_is(path, routes[i].path))
			continue;
		return m == METHOD_POST ? refuse(ret_why, routes[i].fault, routes[i].why)
					: refuse(ret_why, FAULT_METHOD, "This route takes POST only.");
	}
	return FAULT_NONE;
}

static enum fault
set_bucket(struct span raw, bool encoded, struct target *t, const char **ret_why)
{
	int n = (int)raw.len;

	if (encoded)
		n = span_decode(raw, DECODE_STRICT, t->bucket, sizeof t->bucket - 1);
	else if (raw.len >= sizeof t->bucket)
		n = -E2BIG;
	else
		for (size_t i = 0; i < raw.len; i++)
			t->bucket[i] = (char)(raw.p[i] >= 'A' && raw.p[i] <= 'Z' ? raw.p[i] + 32 : raw.p[i]);
	if (n == -EINVAL)
		return refuse(ret_why, FAULT_BAD_URI, "The bucket name has a bad percent sequence or a NUL.");
	if (n <= 0 || !is_bucket_name(t->bucket, (size_t)n)) {
		t->bucket[0] = 0;
		return refuse(ret_why, FAULT_BAD_BUCKET_NAME, "The bucket name is not valid.");
	}
	t->bucket[n] = 0;
	t->bucket_len = (uint16_t)n;
	return FAULT_NONE;
}

/* The two parts of a path, raw; bucket.len 0: the service itself. */
static void
split_path(struct span path, struct span *ret_bucket, struct span *ret_key)
{
	const char *slash = memchr(path.p + 1, '/', path.len - 1);

	*ret_bucket = (struct span){ path.p + 1, slash ? (size_t)(slash - path.p) - 1 : path.len - 1 };
	*ret_key = slash ? (struct span){ slash + 1, path.len - ret_bucket->len - 2 }
			 : (struct span){ path.p + path.len, 0 };
}

static enum fault
parse_s3(const struct dialect_in *in, struct span s, enum method m, struct target *t, const char **ret_why)
{
	struct span query = s, bucket, key = { "", 0 };
	enum fault f;

	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= 0x20 || c == 0x7f || c == '#')
			return refuse(ret_why, FAULT_BAD_URI,
				      "The request target has a character that must be encoded.");
	}
	s = span_cut(&query, '?');
	t->virtual_host = bucket_of_host(in, &bucket);
	if (t->virtual_host) {
		key = (struct span){ s.p + 1, s.len - 1 };
	} else {
		f = control_route(s, m, ret_why);
		if (f != FAULT_NONE)
			return f;
		if (s.len == 1)
			return query_parse(query, m, LEVEL_SERVICE, t, ret_why);
		split_path(s, &bucket, &key);
	}
	f = set_bucket(bucket, !t->virtual_host, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (key.len == 0)
		return query_parse(query, m, LEVEL_BUCKET, t, ret_why);
	f = set_key(t, span_decode(key, DECODE_STRICT, t->key, DIALECT_KEY_MAX), ret_why);
	if (f == FAULT_NONE)
		f = key_check(t->key, t->key_len, ret_why);
	return f == FAULT_NONE ? query_parse(query, m, LEVEL_OBJECT, t, ret_why) : f;
}

static enum fault
parse_scality(const struct conf_listen *l, struct span s, enum method m, struct target *t,
	      const char **ret_why)
{
	static const char v1[] = "/v1/";
	static const enum op ops[] = { [METHOD_PUT] = OP_PUT_OBJECT,
				       [METHOD_GET] = OP_GET_OBJECT,
				       [METHOD_HEAD] = OP_HEAD_OBJECT,
				       [METHOD_DELETE] = OP_DELETE_OBJECT };
	size_t skip = l->v1_prefix ? sizeof v1 - 1 : 1, bucket_len = strlen(l->bucket);
	enum fault f;
	int n;

	if (m == METHOD_POST || m == METHOD_OPTIONS)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED, "POST and OPTIONS are not implemented.");
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
		n = span_decode(s, 0, t->key, DIALECT_KEY_MAX);
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
		t->op = ops[m];
	return f;
}

enum fault
uri_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	struct span s = origin_form((struct span){ in->target, in->target_len });
	enum method m = method_of(in->method);

	if (m == METHOD_OTHER)
		return refuse(ret_why, FAULT_METHOD, "The method is not known here.");
	if (s.len == 0 || s.p[0] != '/')
		return refuse(ret_why, FAULT_BAD_URI, "The request target does not begin with a slash.");
	if (in->listen->dialect == DIALECT_SCALITY)
		return parse_scality(in->listen, s, m, t, ret_why);
	return parse_s3(in, s, m, t, ret_why);
}
