/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Method and path to operation, bucket and key.  See dialect.h; called by parse.c.
 *
 * S3: "/", "/bucket", "/bucket/key", or without the bucket where Host names it (virtual-host style); the
 * query is query.c's, and decode.c has decoded both: an encoded slash after the bucket is a slash.  Scality:
 * all that follows "/" (or "/v1/") is the key, a '?' as well; its clients do not encode keys.  So neither
 * dialect reaches an operation of the other (item 99).
 *
 * A key is bytes: decoded once, '+' stays '+', ".." is an ordinary name.
 */
#include "dialect/dialect_int.h"

#include <errno.h>
#include <stdio.h>

static const char *const names[] = {
	[METHOD_PUT] = "PUT",       [METHOD_GET] = "GET",   [METHOD_HEAD] = "HEAD",
	[METHOD_DELETE] = "DELETE", [METHOD_POST] = "POST", [METHOD_OPTIONS] = "OPTIONS"
};

static enum method
method_of(const char *name)
{
	for (enum method m = METHOD_PUT; m <= METHOD_OPTIONS; m++) {
		if (name[0] == names[m][0] && strcmp(name, names[m]) == 0)
			return m;
	}
	return METHOD_OTHER;
}

void
dialect_allow(const struct target *t, char out[DIALECT_ALLOW_BYTES])
{
	size_t len = 0;

	out[0] = 0;
	for (enum method m = METHOD_PUT; m <= METHOD_OPTIONS; m++) {
		if (t->allow & 1 << m)
			len += (size_t)snprintf(out + len, DIALECT_ALLOW_BYTES - len, "%s%s", len ? ", " : "",
						names[m]);
	}
}

static enum fault
set_key(struct target *t, int len, const char **ret_why)
{
	if (len == -E2BIG)
		return refuse(ret_why, FAULT_KEY_TOO_LONG, "The key is longer than 1024 bytes.");
	if (len < 0)
		return refuse(ret_why, FAULT_BAD_URI, "The key has a NUL.");
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
	int domain_nr = in->s3 ? in->s3->domain_nr : 0;
	struct span host = domain_nr ? host_name(in) : (struct span){ "", 0 };
	size_t longest = 0;

	for (int i = 0; i < domain_nr; i++) {
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

/* Routes that connect queue pairs (protocol.md section 8): two operations, and those of a protocol that is not served, whose
 * clients fall back on one answer only, which has a marker.  No bucket can have such a name.  t->op stays OP_NONE for any
 * other path. */
static enum fault
control_route(struct span path, enum method m, struct target *t, const char **ret_why)
{
	static const struct {
		const char *path;
		enum op op; /* OP_NONE: not served */
	} routes[] = {
		{ "/.hipobj-rc/prepare", OP_NONE },
		{ "/.hipobj-rc/ready", OP_NONE },
		{ "/.hipobj-rc/cancel", OP_NONE },
		{ "/.s3rdma-rc/connect", OP_RC_CONNECT },
		{ "/.s3rdma-rc/disconnect", OP_RC_DISCONNECT },
	};

	if (!span_begins(path, "/."))
		return FAULT_NONE;
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
		if (!span_is(path, routes[i].path))
			continue;
		t->allow = 1 << METHOD_POST;
		if (m != METHOD_POST)
			return refuse(ret_why, FAULT_METHOD, "This route takes POST only.");
		t->op = routes[i].op;
		return t->op != OP_NONE ? FAULT_NONE
					: refuse(ret_why, FAULT_RC_OFF, "hipobj-rc-v2 is not served.");
	}
	return FAULT_NONE;
}

static char
lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static enum fault
set_bucket(struct span name, struct target *t, const char **ret_why)
{
	if (name.len >= sizeof t->bucket)
		name.len = 0;
	for (size_t i = 0; i < name.len; i++)
		t->bucket[i] = t->virtual_host ? lower(name.p[i]) : name.p[i];
	if (!is_bucket_name(t->bucket, name.len)) {
		t->bucket[0] = 0;
		return refuse(
			ret_why, FAULT_BAD_BUCKET_NAME,
			"A bucket's name has 3 to 63 of a-z, 0-9, '-' and '.', a letter or a digit first and "
			"last, and is no IP address.");
	}
	t->bucket[name.len] = 0;
	t->bucket_len = (uint16_t)name.len;
	return FAULT_NONE;
}

/* The two parts of a path; bucket.len 0: the service itself. */
static void
split_path(struct span path, struct span *ret_bucket, struct span *ret_key)
{
	const char *slash = memchr(path.p + 1, '/', path.len - 1);

	*ret_bucket = (struct span){ path.p + 1, slash ? (size_t)(slash - path.p) - 1 : path.len - 1 };
	*ret_key = slash ? (struct span){ slash + 1, path.len - ret_bucket->len - 2 }
			 : (struct span){ path.p + path.len, 0 };
}

static enum fault
parse_s3(const struct dialect_in *in, enum method m, struct target *t, const char **ret_why)
{
	struct span path = in->uri->path, bucket, key = { "", 0 };
	enum fault f;

	t->virtual_host = bucket_of_host(in, &bucket);
	if (t->virtual_host) {
		key = (struct span){ path.p + 1, path.len - 1 };
	} else {
		f = control_route(path, m, t, ret_why);
		if (f != FAULT_NONE || t->op != OP_NONE)
			return f;
		if (path.len == 1)
			return query_parse(in->uri, m, LEVEL_SERVICE, t, ret_why);
		split_path(path, &bucket, &key);
	}
	f = set_bucket(bucket, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (key.len == 0)
		return query_parse(in->uri, m, LEVEL_BUCKET, t, ret_why);
	f = key_check(key.p, key.len, ret_why);
	if (f != FAULT_NONE)
		return f;
	memcpy(t->key, key.p, key.len);
	t->key[key.len] = 0;
	t->key_len = (uint16_t)key.len;
	return query_parse(in->uri, m, LEVEL_OBJECT, t, ret_why);
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
	enum method m = method_of(in->method);

	if (m == METHOD_OTHER) {
		/* Before it is known what the path names. */
		t->allow = in->listen->dialect == DIALECT_SCALITY
				   ? 1 << METHOD_PUT | 1 << METHOD_GET | 1 << METHOD_HEAD | 1 << METHOD_DELETE
				   : query_allow(LEVEL_BUCKET) | query_allow(LEVEL_OBJECT);
		return refuse(ret_why, FAULT_METHOD, "The method is not known here.");
	}
	if (in->uri->fault != FAULT_NONE)
		return refuse(ret_why, in->uri->fault, in->uri->why);
	if (in->listen->dialect == DIALECT_SCALITY)
		return parse_scality(in->listen, in->uri->path, m, t, ret_why);
	return parse_s3(in, m, t, ret_why);
}
