/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets by their meaning: what each spelling is hashed as, and what is done.  decode.c, uri.c, query.c of
 * dialect/, canon.c.
 */
#include "ask.h"

#include "auth/auth_int.h"

#include <time.h>

#define V "b1x.s3.test"
#define P "s3.test"
/* The six other parameters of a presigned URL, sorted. */
#define S                                                                                                    \
	"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" AK "%2F20130524%2Fus-east-1%2Fs3%2F"            \
	"aws4_request&X-Amz-Date=" STAMP "&X-Amz-Expires=9&X-Amz-SignedHeaders=host"

static struct conf_s3 s3_conf = { .domains = { (char *)P }, .domain_nr = 1 };

struct row {
	int nr;
	const char *method, *host, *target;
	const char *path, *query; /* as hashed; NULL: refused before */
	enum fault fault;
	enum op op;
	const char *bucket, *key, *prefix; /* prefix: of a list */
	bool presigned;
};

#define NO_HASH NULL, NULL
#define GET_KEY FAULT_NONE, OP_GET_OBJECT
#define PUT_KEY FAULT_NONE, OP_PUT_OBJECT
#define LIST FAULT_NONE, OP_LIST_OBJECTS

static const struct row rows[] = {
	{ 1, "GET", P, "/b1x/a=b", "/b1x/a%3Db", "", GET_KEY, "b1x", "a=b" },
	{ 2, "GET", P, "/b1x/a%3db", "/b1x/a%3Db", "", GET_KEY, "b1x", "a=b" },
	{ 3, "PUT", P, "/b1x/=:@,$&;!*'()", "/b1x/%3D%3A%40%2C%24%26%3B%21%2A%27%28%29", "", PUT_KEY, "b1x",
	  "=:@,$&;!*'()" },
	{ 4, "GET", P, "/b1x/%61%62%7E%2D", "/b1x/ab~-", "", GET_KEY, "b1x", "ab~-" },
	{ 5, "GET", P, "/b1x/a%2Fb", "/b1x/a/b", "", GET_KEY, "b1x", "a/b" },
	{ 6, "GET", P, "/b1x%2Fk", "/b1x/k", "", GET_KEY, "b1x", "k" },
	{ 7, "GET", P, "/%2Fb1x/k", "//b1x/k", "", FAULT_BAD_BUCKET_NAME },
	{ 8, "GET", P, "/b1x//a///b", "/b1x//a///b", "", GET_KEY, "b1x", "/a///b" },
	{ 9, "GET", P, "/b1x/%2Fa", "/b1x//a", "", GET_KEY, "b1x", "/a" }, /* Java's spelling of // */
	{ 10, "GET", P, "/b1x/a/../b/.", "/b1x/a/../b/.", "", GET_KEY, "b1x", "a/../b/." },
	{ 11, "GET", P, "/b1x/%2e%2e/b2x/k", "/b1x/../b2x/k", "", GET_KEY, "b1x", "../b2x/k" },
	{ 12, "GET", P, "/b1x/p+q", "/b1x/p%2Bq", "", GET_KEY, "b1x", "p+q" },
	{ 13, "GET", P, "/b1x/p%2Bq", "/b1x/p%2Bq", "", GET_KEY, "b1x", "p+q" },
	{ 14, "GET", P, "/b1x/p%20q", "/b1x/p%20q", "", GET_KEY, "b1x", "p q" },
	{ 15, "GET", P, "/b1x/%2525", "/b1x/%2525", "", GET_KEY, "b1x", "%25" }, /* once only */
	{ 16, "GET", P, "/b1x/k%3Facl", "/b1x/k%3Facl", "", GET_KEY, "b1x", "k?acl" },
	{ 17, "GET", P, "/b1x/k?acl", "/b1x/k", "acl=", FAULT_NONE, OP_GET_OBJECT_ACL, "b1x", "k" },
	{ 18, "PUT", P, "/b1x/k?%61cl", "/b1x/k", "acl=", FAULT_NONE, OP_PUT_OBJECT_ACL, "b1x", "k" },
	{ 19, "PUT", P, "/b1x/k?ACL", "/b1x/k", "ACL=", FAULT_NOT_IMPLEMENTED },
	{ 20, "GET", P, "/b1x/k%26acl", "/b1x/k%26acl", "", GET_KEY, "b1x", "k&acl" },
	{ 21, "GET", P, "/b1x/a%00b", NO_HASH, FAULT_BAD_URI },
	{ 22, "GET", P, "/b1x/a%zz", NO_HASH, FAULT_BAD_URI },
	{ 23, "GET", P, "/b1x/a%4", NO_HASH, FAULT_BAD_URI },
	{ 24, "GET", P, "/b1x?prefix=%", NO_HASH, FAULT_BAD_URI },
	{ 25, "GET", P, "/b1x/%FF", "/b1x/%FF", "", FAULT_BAD_URI },
	{ 26, "GET", P, "/b1x/%C0%AF", "/b1x/%C0%AF", "", FAULT_BAD_URI }, /* overlong */
	{ 27, "GET", P, "/b1x/%c3%bc", "/b1x/%C3%BC", "", GET_KEY, "b1x", "\xc3\xbc" },
	{ 28, "GET", P, "/b1x/\xfc", "/b1x/%FC", "", FAULT_BAD_URI },
	{ 29, "GET", P, "/b1x/a%0Ab", "/b1x/a%0Ab", "", FAULT_BAD_URI },
	{ 30, "GET", P, "/b1x#x", NO_HASH, FAULT_BAD_URI },
	{ 31, "GET", P, "/b1x", "/b1x", "", LIST, "b1x", "" },
	{ 32, "GET", P, "/b1x/", "/b1x/", "", LIST, "b1x", "" },
	{ 33, "GET", P, "/b1x/k/", "/b1x/k/", "", GET_KEY, "b1x", "k/" },
	{ 34, "GET", V, "/k", "/k", "", GET_KEY, "b1x", "k" },
	{ 35, "GET", V, "/b2x/k", "/b2x/k", "", GET_KEY, "b1x", "b2x/k" },
	{ 36, "GET", V, "/%2Fk", "//k", "", GET_KEY, "b1x", "/k" },
	{ 37, "GET", P, "http://S3.test/b1x/k", "/b1x/k", "", GET_KEY, "b1x", "k" },
	{ 38, "GET", P, "http://b2x.s3.test/k", NO_HASH, FAULT_BAD_REQUEST },
	{ 39, "GET", P, "/b1x?delimiter=/&prefix=tree/", "/b1x", "delimiter=%2F&prefix=tree%2F", LIST, "b1x",
	  "", "tree/" },
	{ 40, "GET", P, "/b1x?prefix=a+b*%7E&list-type=2", "/b1x", "list-type=2&prefix=a%20b%2A~", FAULT_NONE,
	  OP_LIST_OBJECTS_V2, "b1x", "", "a b*~" },
	{ 41, "GET", P, "/b1x?prefix=a%2Bb", "/b1x", "prefix=a%2Bb", LIST, "b1x", "", "a+b" },
	{ 42, "GET", P, "/b1x?list-type=%32", "/b1x", "list-type=2", FAULT_NONE, OP_LIST_OBJECTS_V2, "b1x",
	  "" },
	{ 43, "GET", P, "/b1x?%70refix=a%26max-keys%3D1", "/b1x", "prefix=a%26max-keys%3D1", LIST, "b1x", "",
	  "a&max-keys=1" },
	{ 44, "GET", P, "/b1x?prefix%3Da", "/b1x", "prefix%3Da=", LIST, "b1x", "", "" },
	{ 45, "GET", P, "/b1x?prefix=a=b", "/b1x", "prefix=a%3Db", LIST, "b1x", "", "a=b" },
	{ 46, "GET", P, "/b1x?prefix&list-type=2&", "/b1x", "list-type=2&prefix=", FAULT_NONE,
	  OP_LIST_OBJECTS_V2, "b1x", "", "" },
	{ 47, "GET", P, "/b1x?&&=x&prefix=a", "/b1x", "prefix=a", LIST, "b1x", "", "a" },
	{ 48, "GET", P, "/b1x?prefix=a&prefix=b", NO_HASH, FAULT_BAD_ARGUMENT },
	{ 49, "GET", P, "/b1x?prefix=a&%70refix=b", NO_HASH, FAULT_BAD_ARGUMENT },
	/* strangers: the first, as AWS */
	{ 50, "GET", P, "/b1x?b=1&a=2&a=1", "/b1x", "a=2&b=1", LIST, "b1x", "", "" },
	/* the order is of the encoded names */
	{ 51, "GET", P, "/b1x?a-=1&a%2F=2&a=3", "/b1x", "a=3&a%2F=2&a-=1", LIST, "b1x", "", "" },
	{ 52, "GET", P, "/b1x?prefix=a;max-keys=1", "/b1x", "prefix=a%3Bmax-keys%3D1", LIST, "b1x", "",
	  "a;max-keys=1" },
	{ 53, "GET", P, "/b1x/k?v=1?acl", "/b1x/k", "v=1%3Facl", GET_KEY, "b1x", "k" },
	{ 54, "GET", P, "/b1x/k?" S "&X-Amz-Signature=0", "/b1x/k", S, GET_KEY, "b1x", "k", NULL, true },
	{ 55, "GET", P, "/b1x/k?" S "&X%2DAmz%2DSignature=0", "/b1x/k", S, GET_KEY, "b1x", "k", NULL, true },
	{ 56, "GET", P, "/b1x/k?" S "&X-Amz-Signature=0&X-Amz-%53ignature=1", NO_HASH, FAULT_BAD_ARGUMENT },
	{ 57, "GET", P, "/b1x/k?" S "&X-Amz-Signature=0&X-Amz-Expires=99", NO_HASH, FAULT_BAD_ARGUMENT },
	{ 58, "GET", P, "/b1x/k?" S "&X-Amz-Signature=0&x-amz-expires=99", NO_HASH, FAULT_BAD_ARGUMENT },
	/* never "unsigned" */
	{ 59, "GET", P, "/b1x/k?x-amz-signature=0", "/b1x/k", "x-amz-signature=0", FAULT_BAD_ARGUMENT },
	/* by dialect/; that it is signed twice says twice_signed() */
	{ 60, "GET", P, "/b1x/k?X%2DAmz%2DSignature=0", "/b1x/k", "X-Amz-Signature=0", GET_KEY, "b1x", "k" },
	{ 61, "PUT", P, "/b1x/k?" S "&X-Amz-Signature=0&x-amz-meta-a=1&x-amz-meta-A=2", NO_HASH,
	  FAULT_BAD_ARGUMENT },
	{ 62, "PUT", P, "/b1x/k?" S "&X-Amz-Signature=0&x-amz-meta-a=1+2", "/b1x/k", S "&x-amz-meta-a=1%202",
	  PUT_KEY, "b1x", "k", NULL, true },
};

static struct rq *
of(const char *method, const char *host, const char *target)
{
	struct rq *r = rq_with(rq_bare(DIALECT_S3, method, target), "Host", host, NULL);

	r->in.s3 = &s3_conf;
	if (strcmp(method, "PUT") == 0)
		rq_field(r, "content-length", "0");
	return r;
}

/* The first lines of what is hashed. */
static const char *
hashed(const struct rq *r, bool presigned, const char **ret_query)
{
	static char text[3 * DIALECT_TARGET_MAX + 256];
	struct sigv4 s = { .presigned = presigned };
	size_t n = canon_text(&r->in, &s, span_of("-"), text, sizeof text - 1);
	char *path, *query;

	assert_true(n > 0);
	text[n] = 0;
	assert_memory_equal(text, r->in.method, strlen(r->in.method));
	path = strchr(text, '\n') + 1;
	query = strchr(path, '\n') + 1;
	query[-1] = 0;
	*strchr(query, '\n') = 0;
	*ret_query = query;
	return path;
}

/* item 81: every spelling, by its meaning */
static void
spellings(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *w = &rows[i];
		struct rq *r = of(w->method, w->host, w->target);
		enum fault f = rq_parse(r);
		const char *path, *query;

		assert_int_equal(w->nr, i + 1);
		if (f != w->fault)
			fail_msg("%d, %s: fault %d (%s), not %d", w->nr, w->target, f, r->why, w->fault);
		assert_int_equal(r->uri.fault != FAULT_NONE, !w->path);
		if (w->path) {
			path = hashed(r, w->presigned, &query);
			if (strcmp(path, w->path) != 0 || strcmp(query, w->query) != 0)
				fail_msg("%d, %s: %s?%s, not %s?%s", w->nr, w->target, path, query, w->path,
					 w->query);
		}
		if (f != FAULT_NONE)
			continue;
		if (r->t.op != w->op || strcmp(r->t.bucket, w->bucket) != 0 || strcmp(r->t.key, w->key) != 0)
			fail_msg("%d, %s: %s of %s and %s", w->nr, w->target, op_name[r->t.op], r->t.bucket,
				 r->t.key);
		if (w->prefix)
			assert_string_equal(r->t.list->prefix, w->prefix);
	}
}

/* The last of them: the blank that was hashed is the one that is stored. */
static void
moved_blank(void **state)
{
	struct rq *r = of("PUT", P, "/b1x/k?x-amz-meta-a=1+2&x-amz-meta-b=%2B");
	const char *v;
	size_t len;

	assert_fault(rq_parse(r), FAULT_NONE);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-meta-a", &len);
	assert_true(v && len == 3 && memcmp(v, "1 2", 3) == 0);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-meta-b", &len);
	assert_true(v && len == 1 && *v == '+');
}

/* Case 60, and the signature whose name is escaped is one. */
static void
twice_signed(void **state)
{
	struct rq *r = for_op(of("GET", P, "/b1x/k?X%2DAmz%2DSignature=0"), OP_GET_OBJECT);

	r->listen.anonymous = true;
	assert_fault(ask(r), FAULT_AUTH_QUERY);
	rq_field(r, "Authorization", AUTHORIZATION("host", EMPTY));
	assert_fault(ask(r), FAULT_BAD_REQUEST);
}

/* A header that SignedHeaders names and that is in the URL in its place, as the AWS SDK for JavaScript of version 2 has it. */
static void
named_and_moved(void **state)
{
	static const struct {
		const char *query, *field, *names, *said;
		bool presigned;
		enum fault f;
	} cases[] = {
		{ "x-amz-acl=private", NULL, "host;x-amz-acl", "x-amz-acl:private\n", true, FAULT_NONE },
		{ "X-Amz-Acl=private", NULL, "host;x-amz-acl", "x-amz-acl:private\n", true, FAULT_NONE },
		/* Runs of blanks are one, as in a header. */
		{ "x-amz-tagging=a%3D1%20%202", NULL, "host;x-amz-tagging", "x-amz-tagging:a=1 2\n", true,
		  FAULT_NONE },
		/* The header that was sent counts, where there is one. */
		{ "x-amz-acl=private", "x-amz-acl", "host;x-amz-acl", "x-amz-acl:sent\n", true, FAULT_NONE },
		{ "x-amz-acl=private", NULL, "host;x-amz-acl", NULL, false, FAULT_SIGNATURE },
		{ "x-amz-acls=private", NULL, "host;x-amz-acl", NULL, true, FAULT_SIGNATURE },
		{ "content-type=a", NULL, "content-type;host", NULL, true, FAULT_SIGNATURE },
		{ "x-amz-rdma-token=a", NULL, "host;x-amz-rdma-token", NULL, true, FAULT_SIGNATURE },
	};
	static char target[256], text[1024];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sigv4 s = { .presigned = cases[i].presigned,
				   .signed_headers = span_of(cases[i].names) };
		struct rq *r;
		const char *why = "";
		size_t n;

		snprintf(target, sizeof target, "/b1x/k?%s", cases[i].query);
		r = of("GET", P, target);
		if (cases[i].field)
			rq_field(r, cases[i].field, "sent");
		rq_read(r);
		if (canon_check_headers(&r->in, &s, false, &why) != cases[i].f)
			fail_msg("%s: %s", cases[i].query, why);
		if (!cases[i].said)
			continue;
		n = canon_text(&r->in, &s, span_of("-"), text, sizeof text - 1);
		text[n] = 0;
		if (!strstr(text, cases[i].said))
			fail_msg("%s: %s", cases[i].query, text);
	}
}

/* Signed as S3 has it, and sent in another spelling: what s3fs, the Java and C++ SDKs and aws4fetch do. */
static void
other_spellings(void **state)
{
	static const struct {
		const char *host, *sign, *send;
		enum fault f;
	} cases[] = {
		{ P, "/b1x/dt%3D2024-01-01/a", "/b1x/dt=2024-01-01/a", FAULT_NONE },
		{ P, "/b1x/%24%26%2C%3A%3D%40", "/b1x/$&,:=@", FAULT_NONE },
		{ P, "/b1x//a", "/b1x/%2Fa", FAULT_NONE },
		{ P, "/b1x/~", "/b1x/%7e", FAULT_NONE },
		{ P, "/b1x?delimiter=%2F&prefix=tree%2F", "/b1x?delimiter=/&prefix=tree/", FAULT_NONE },
		{ P, "/b1x?prefix=a%20b%2A~", "/b1x?prefix=a+b*%7E", FAULT_NONE },
		{ P, "/b1x?list-type=2&prefix=", "/b1x?prefix&list-type=2", FAULT_NONE },
		{ V, "/b1x/k", "/b1x%2Fk", FAULT_NONE },
		{ P, "/b1x/k", "http://S3.TEST/b1x/k", FAULT_NONE },
		/* A plus in a path is a plus, and what is signed raw was signed otherwise. */
		{ P, "/b1x/p%20q", "/b1x/p+q", FAULT_SIGNATURE },
		{ P, "/b1x/dt=1", "/b1x/dt=1", FAULT_SIGNATURE },
		{ P, "/b1x?prefix=a%2Fb", "/b1x?prefix=a%252Fb", FAULT_SIGNATURE },
		{ P, "/b1x/k?acl=", "/b1x/k?ACL", FAULT_SIGNATURE },
		{ P, "/b1x/k", "/b1x/k?acl", FAULT_SIGNATURE },
	};
	struct signer s = example_signer();

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = for_op(rq_with(of("GET", cases[i].host, cases[i].sign), "x-amz-content-sha256",
					      EMPTY, "x-amz-date", STAMP, NULL),
				      OP_GET_OBJECT);

		sign(r, &s);
		r->target = cases[i].send;
		r->target_len = strlen(r->target);
		if (ask(r) != cases[i].f)
			fail_msg("%s for %s: fault %d, %s", cases[i].send, cases[i].sign, ask(r), r->why);
	}
}

/* ---- the table ---- */

static void
bounds(void **state)
{
	static char target[DIALECT_TARGET_MAX + 16];
	struct rq *r;
	size_t n;

	for (int nr = 128; nr <= 129; nr++) {
		n = (size_t)sprintf(target, "/b1x?");
		for (int i = 0; i < nr; i++)
			n += (size_t)sprintf(target + n, "&v%d=%d", i * 7 % 129, i);
		r = of("GET", P, target);
		assert_fault(rq_parse(r), nr == 128 ? FAULT_NONE : FAULT_BAD_REQUEST);
		for (int i = 1; i < r->uri.param_nr; i++)
			assert_true(strcmp(uri_name(&r->uri, i - 1).p, uri_name(&r->uri, i).p) < 0);
		assert_int_equal(r->uri.param_nr, nr == 128 ? 128 : 0);
	}
	/* As long as it may be, and one byte more; escapes only. */
	for (int over = 0; over < 2; over++) {
		memset(target, 'k', sizeof target);
		memcpy(target, "/b1x?v=", 7);
		target[DIALECT_TARGET_MAX + over] = 0;
		assert_fault(rq_parse(of("GET", P, target)), over ? FAULT_BAD_URI : FAULT_NONE);
	}
	n = (size_t)sprintf(target, "/b1x?v=");
	while (n + 3 <= DIALECT_TARGET_MAX)
		n += (size_t)sprintf(target + n, "%%41");
	r = of("GET", P, target);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(uri_value(&r->uri, 0).len, (n - 7) / 3);
}

/* A stranger's second value, and one whose name has other letters. */
static void
strangers(void **state)
{
	struct rq *r = of("GET", P, "/b1x?v=1&V=2&v=3&w=");

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->uri.param_nr, 3);
	assert_string_equal(uri_value(&r->uri, 1).p, "1");
	assert_string_equal(uri_name(&r->uri, 0).p, "V");
	assert_string_equal(uri_value(&r->uri, 2).p, "");
}

/* A text of any length, hashed in one piece or in several, has the hash of its bytes. */
static void
long_texts(void **state)
{
	static char value[5000], text[3 * sizeof value + 512];
	struct sigv4 s = { .signed_headers = span_of("host;x-amz-meta-a;x-amz-meta-b") };

	for (size_t n = 0; n < sizeof value; n += n < 1100 ? 1 : 97) {
		struct rq *r;
		uint8_t want[32], hash[32];
		size_t len;

		memset(value, 'v', n);
		value[n] = 0;
		r = rq_with(of("GET", P, "/b1x/k?acl"), "x-amz-meta-a", value, "x-amz-meta-b", value, NULL);
		rq_read(r);
		len = canon_text(&r->in, &s, span_of(EMPTY), text, sizeof text);
		assert_true(len > 2 * n);
		assert_int_equal(canon_text(&r->in, &s, span_of(EMPTY), text, len), len);
		assert_int_equal(canon_text(&r->in, &s, span_of(EMPTY), text, len - 1), 0);
		canon_text(&r->in, &s, span_of(EMPTY), text, sizeof text);
		sha256_of(text, len, want);
		canon_hash(&r->in, &s, span_of(EMPTY), hash);
		assert_memory_equal(hash, want, sizeof want);
	}
}

/* ---- what the answer to a refused signature says ---- */

static void
explained(void **state)
{
	struct auth_env env = example_env();
	struct signer s = example_signer();
	static struct auth_explained x;
	static const char head[] = "AWS4-HMAC-SHA256\n" STAMP "\n20130524/us-east-1/s3/aws4_request\n";
	struct rq *r = for_op(rq_with(of("GET", P, "/b1x/a%3Db?acl="), "x-amz-content-sha256", EMPTY,
				      "x-amz-date", STAMP, "x-amz-security-token", "very-secret-token",
				      "x-amz-rdma-token", DC81, NULL),
			      OP_GET_OBJECT);

	sign(r, &s);
	rq_read(r);
	assert_true(auth_explain(&env, &r->in, &x));
	x.canonical[x.canonical_len] = 0;
	assert_string_equal(x.canonical,
			    "GET\n/b1x/a%3Db\nacl=\nhost:" P "\nx-amz-content-sha256:" EMPTY
			    "\nx-amz-date:" STAMP "\nx-amz-rdma-token:...\nx-amz-security-token:..."
			    "\n\nhost;x-amz-content-sha256;x-amz-date;x-amz-rdma-token;"
			    "x-amz-security-token\n" EMPTY);
	assert_memory_equal(x.to_sign, head, sizeof head - 1);
	assert_int_equal(strlen(x.to_sign), sizeof head - 1 + 64);
	/* In a query as well. */
	r = for_op(
		of("GET", P, "/b1x/k?" S "&X-Amz-Signature=" EMPTY "&X-Amz-Security-Token=very-secret-token"),
		OP_GET_OBJECT);
	rq_read(r);
	assert_true(auth_explain(&env, &r->in, &x));
	x.canonical[x.canonical_len] = 0;
	assert_null(strstr(x.canonical, "secret"));
	assert_non_null(strstr(x.canonical, "&X-Amz-Security-Token=...&X-Amz-SignedHeaders=host\nhost:" P
					    "\n\nhost\nUNSIGNED-PAYLOAD"));
	assert_null(strstr(x.canonical, "X-Amz-Signature"));
	/* Nobody signed. */
	r = of("GET", P, "/b1x/k");
	rq_read(r);
	assert_false(auth_explain(&env, &r->in, &x));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spellings),       cmocka_unit_test(moved_blank),
		cmocka_unit_test(twice_signed),    cmocka_unit_test(other_spellings),
		cmocka_unit_test(bounds),          cmocka_unit_test(strangers),
		cmocka_unit_test(named_and_moved), cmocka_unit_test(explained),
		cmocka_unit_test(long_texts),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	auth_keys_put(example_keys());
	return r;
}
