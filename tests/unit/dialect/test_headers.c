/* SPDX-License-Identifier: Apache-2.0 */
/* Preflights, and header fields in the query: every row of the tables, with every operation. */
#include "build.h"

#include "dialect/query_keys.h"

#include <stdio.h>

static const char *const query_keys[] = {
#define QUERY(id, key, ...) key,
#define MISSING(key) key,
#include "dialect/query.def"
};

static const char *const wire_headers[] = {
#define WIRE(id, header, ...) header,
#include "dialect/wire.def"
};

/* ---- preflights ---- */

static void
must_be_preflight(struct rq *r, const char *what)
{
	enum fault f = rq_parse(r);

	if (f != FAULT_NONE || r->t.op != OP_OPTIONS)
		fail_msg("OPTIONS %s, %s: fault %d, %s", r->target, what, f, r->why);
	assert_string_equal(r->t.bucket, "bkt");
	assert_string_equal(r->t.key, "a/k");
	assert_int_equal(r->t.wire, WIRE_NONE);
	assert_int_equal(r->t.unknown_header.len, 0);
	assert_false(dialect_query_signed(&r->in));
}

/* What a preflight asks about is its path: the query is of the request to come. */
static void
preflight_queries(void **state)
{
	static const char *const queries[] = {
		"",
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20130524%2Fus-east-1%2Fs3%2Faws4_"
		"request&"
		"X-Amz-Date=20130524T000000Z&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=0",
		"X-Amz-Signature=",
		"x-amz-signature=0&X-AMZ-SIGNATURE=1",
		"X-Amz-Signature=0&X-Amz-Signature=1",
		"AWSAccessKeyId=a&Signature=b&Expires=1",
		"X-Amz-Algorithm=AWS4-ECDSA-P256-SHA256",
		"X-Amz-Meta-A=1&x-amz-meta-a=2",
		"%",
		"a=%zz&%00=%00",
		"\"<>{}|\\^`",
		"&&&=&==",
		"partNumber=x&uploadId=y&list-type=9&max-keys=-1",
		"acl&acl&ACL",
		"torrent",
		"nobody-knows-me=1",
		"x-gantry-copies=2",
	};
	char target[1024];

	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		snprintf(target, sizeof target, "/bkt/a%%2Fk?%s", queries[i]);
		must_be_preflight(s3("OPTIONS", target), "odd query");
	}
	for (size_t i = 0; i < sizeof query_keys / sizeof *query_keys; i++) {
		snprintf(target, sizeof target, "/bkt/a/k?%s=%%25&%s=2", query_keys[i], query_keys[i]);
		must_be_preflight(s3("OPTIONS", target), query_keys[i]);
	}
	for (size_t i = 0; i < sizeof wire_headers / sizeof *wire_headers; i++) {
		snprintf(target, sizeof target, "/bkt/a/k?%s=1", wire_headers[i]);
		must_be_preflight(s3("OPTIONS", target), wire_headers[i]);
	}
	/* The path is still one that could be a key's. */
	assert_fault(rq_parse(s3("OPTIONS", "/bkt/%zz")), FAULT_BAD_URI);
	assert_fault(rq_parse(s3("OPTIONS", "/b_t/k?X-Amz-Signature=0")), FAULT_BAD_BUCKET_NAME);
	assert_fault(rq_parse(s3("OPTIONS", "/?X-Amz-Signature=0")), FAULT_METHOD);
	assert_fault(rq_parse(scality("OPTIONS", "/bkt/k")), FAULT_NOT_IMPLEMENTED);
}

/* Nor do its headers say anything of a token, or of what is asked for. */
static void
preflight_headers(void **state)
{
	static const char *const headers[][2] = {
		{ "Authorization", "AWS4-HMAC-SHA256 nonsense" },
		{ "Authorization", "Bearer x" },
		{ "x-amz-date", "never" },
		{ "x-amz-content-sha256", "nonsense" },
		{ "x-amz-acl", "public-read" },
		{ "x-amz-expected-bucket-owner", "somebody" },
		{ "x-amz-copy-source", "//" },
		{ "x-amz-nobody-knows", "1" },
		{ "x-gantry-copies", "7" },
	};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), headers[i][0], headers[i][1], NULL),
				  headers[i][0]);
	for (size_t i = 0; i < sizeof wire_headers / sizeof *wire_headers; i++)
		must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), wire_headers[i], DC81, wire_headers[i],
					  "nonsense", NULL),
				  wire_headers[i]);
	/* Framing is of the message. */
	assert_fault(rq_parse(rq_with(s3("OPTIONS", "/bkt/k"), "content-length", "5", NULL)),
		     FAULT_BAD_REQUEST);
}

/* ---- headers in the query ---- */

enum { WHOLE, BEGINS };
enum { STAYS, MOVES, SUMS, PASSES };

static const struct row {
	const char *name, *allow[2];
	int match, query;
	bool refused;
} rows[] = {
#define TAKEN(name, match, query) { "x-amz-" name, { NULL }, match, query, false },
#define REFUSED(name, match, query, allow, also, fault, why)                                                 \
	{ "x-amz-" name, { allow, also }, match, query, true },
#include "dialect/header.def"
};
#define ROWS (sizeof rows / sizeof *rows)

/* A preflight's query and fields are of the request to come, whatever their names and values. */
static void
preflight_rows(void **state)
{
	static const char *const texts[] = { "", "1", "public-read", "nonsense,", "aws:kms" };

	for (size_t i = 0; i < ROWS; i++) {
		for (size_t v = 0; v < sizeof texts / sizeof *texts; v++) {
			char name[64], target[256];

			snprintf(name, sizeof name, "%s%s", rows[i].name, rows[i].match == BEGINS ? "x" : "");
			must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), name, texts[v], NULL), name);
			must_be_preflight(rq_with(s3("OPTIONS", "/bkt/a/k"), name, texts[v], name, "2", NULL),
					  name);
			snprintf(target, sizeof target, "/bkt/a/k?%s=%s&%s=2", name, texts[v], name);
			must_be_preflight(s3("OPTIONS", target), name);
		}
	}
}

static const struct query_shape shapes[OP_NR] = {
#define OP(id, name, start, method, level, body, writes, right, ok, parts, needs_, may_)                     \
	[OP_##id] = { needs_, may_ },
#include "dialect/op.def"
};

static const char *const methods[] = {
	[METHOD_PUT] = "PUT",       [METHOD_GET] = "GET",   [METHOD_HEAD] = "HEAD",
	[METHOD_DELETE] = "DELETE", [METHOD_POST] = "POST", [METHOD_OPTIONS] = "OPTIONS"
};

#define ID "0123456789abcdef0123456789abcdef"

/* Operations that a path of their own selects: what stands in their query has no effect. */
static bool
is_route(enum op op)
{
	return op == OP_RC_CONNECT || op == OP_RC_DISCONNECT;
}

/* A request that asks for that operation and has `more` in its query. */
static struct rq *
asking(enum op op, const char *more)
{
	static char target[2048];
	struct rq *r;
	int n = snprintf(target, sizeof target, "%s?",
			 op_info[op].level == LEVEL_SERVICE  ? "/"
			 : op_info[op].level == LEVEL_BUCKET ? "/bkt"
							     : "/bkt/obj");

	for (enum param p = 0; p < P_NR; p++) {
		bool has = shapes[op].needs & BIT(p);

		/* Parts that are copied are asked for by a header, too. */
		if (op == OP_UPLOAD_PART_COPY)
			has = p == P_PART_NUMBER || p == P_UPLOAD_ID;
		if (has)
			n += snprintf(target + n, sizeof target - (size_t)n, "%s=%s&", query_keys[p],
				      p == P_LIST_TYPE     ? "2"
				      : p == P_PART_NUMBER ? "1"
				      : p == P_UPLOAD_ID   ? ID
							   : "");
	}
	snprintf(target + n, sizeof target - (size_t)n, "%s", more);
	r = rq_with(s3(methods[op_info[op].method], target), "content-length", "0", NULL);
	if (op == OP_COPY_OBJECT || op == OP_UPLOAD_PART_COPY)
		rq_field(r, "x-amz-copy-source", "src/a");
	if (op == OP_DELETE_OBJECTS)
		rq_field(r, "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
	if (op == OP_POST_OBJECT)
		rq_field(r, "content-type", "multipart/form-data; boundary=x");
	return r;
}

/* All that came of a request, but for where it is. */
struct came {
	enum fault fault;
	char why[256];
	struct target t;
	struct list_query list;
	struct copy_source copy;
	unsigned char attrs[DIALECT_ATTRS_MAX];
};

static void
came_of(struct rq *r, bool below, struct came *c)
{
	struct conf_s3 conf = { .encrypted_below = below };

	r->in.s3 = &conf;
	memset(c, 0, sizeof *c);
	c->fault = rq_parse(r);
	snprintf(c->why, sizeof c->why, "%s", r->why);
	if (c->fault != FAULT_NONE)
		return;
	c->t = r->t;
	c->t.moved = false;
	c->t.unknown_header = (struct span){ NULL, r->t.unknown_header.len };
	if (r->t.list)
		c->list = r->list;
	if (r->t.copy)
		c->copy = r->copy;
	if (r->t.attrs)
		memcpy(c->attrs, r->attrs, r->t.attrs_len);
}

static void
respell(char *name, int how)
{
	bool begin = true;

	for (char *p = name; *p; p++) {
		bool upper = how == 1 || (how == 2 && begin);

		begin = *p == '-';
		if (upper && *p >= 'a' && *p <= 'z')
			*p = (char)(*p - 32);
	}
}

static const char *const values[] = { "",
				      "1",
				      "private",
				      "public-read",
				      "requester",
				      "ENABLED",
				      "CRC32",
				      "SHA256",
				      "FULL_OBJECT",
				      "COMPOSITE",
				      "REPLACE",
				      "COPY",
				      "STANDARD_IA",
				      "GLACIER",
				      "STANDARD",
				      "AES256",
				      "false",
				      "aws:kms",
				      "ETag",
				      "y/Q5Jg==",
				      "gantry",
				      "a=1",
				      "no such",
				      "Wed, 21 Oct 2015 07:28:00 GMT" };

static unsigned compared, refused;

/* A field, and a parameter of that name and value: the same came of both. */
static void
must_be_the_same(enum op op, const char *name, const char *value, bool below)
{
	static struct came header, query;
	char text[256], param[512] = "";

	came_of(rq_with(asking(op, ""), name, value, NULL), below, &header);
	for (int how = 0; how < 3; how++) {
		int n;

		snprintf(text, sizeof text, "%s", name);
		respell(text, how);
		n = snprintf(param, sizeof param, "%s=", text);
		for (const char *v = value; *v; v++)
			n += snprintf(param + n, sizeof param - (size_t)n, "%%%02X", (unsigned char)*v);
		came_of(asking(op, param), below, &query);
		if (header.fault != query.fault || strcmp(header.why, query.why) != 0)
			fail_msg("%s, %s: %s: as a header %s: %s; in the query %s: %s", op_name[op], text,
				 value, fault_info(header.fault)->code, header.why,
				 fault_info(query.fault)->code, query.why);
		if (memcmp(&header, &query, sizeof header) != 0)
			fail_msg("%s, %s: %s: what came of it differs", op_name[op], text, value);
		compared++;
		refused += query.fault != FAULT_NONE;
	}
}

/* What the header of a row does, its parameter does, with every operation. */
static void
rows_in_the_query(void **state)
{
	static const char *const ends[] = { "", "x", "Key-id" };

	for (size_t i = 0; i < ROWS; i++) {
		for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
			if (op == OP_OPTIONS || is_route(op) || rows[i].query == STAYS ||
			    (rows[i].query == SUMS && op_info[op].method == METHOD_PUT))
				continue;
			for (size_t e = 0; e < (rows[i].match == BEGINS ? 3 : 1); e++) {
				char name[128];

				snprintf(name, sizeof name, "%s%s", rows[i].name, ends[e]);
				for (size_t v = 0; v < sizeof values / sizeof *values; v++)
					must_be_the_same(op, name, values[v], v % 2);
				for (int v = 0; v < 2 && rows[i].allow[v]; v++)
					must_be_the_same(op, name, rows[i].allow[v], false);
				must_be_the_same(op, name, "AES256", true);
			}
		}
	}
	print_message("%u comparisons, %u refusals\n", compared, refused);
	assert_true(refused > 1000 && compared - refused > 1000);
}

/* What is read somewhere else than in the query is refused there, and no header decides what is meant. */
static void
rows_that_stay(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		char target[256], name[128];

		for (int how = 0; how < 3; how++) {
			bool signs = strcmp(rows[i].name, "x-amz-date") == 0 ||
				     strcmp(rows[i].name, "x-amz-content-sha256") == 0 ||
				     strcmp(rows[i].name, "x-amz-security-token") == 0;
			struct rq *r;
			enum fault f;

			snprintf(name, sizeof name, "%s", rows[i].name);
			respell(name, how);
			snprintf(target, sizeof target, "/bkt/obj?%s=1", name);
			r = rq_with(s3("PUT", target), "content-length", "5", NULL);
			f = rq_parse(r);
			if (rows[i].query != STAYS) {
				assert_int_not_equal(f == FAULT_NOT_IMPLEMENTED && !rows[i].refused, true);
				assert_int_equal(strstr(r->why, "subresource") != NULL, false);
			} else if (!signs) {
				assert_fault(f, FAULT_NOT_IMPLEMENTED);
			} else {
				/* In the letters that a signature has them in, auth/ asks for them. */
				bool small = how == 0 && strcmp(rows[i].name, "x-amz-security-token") == 0;

				assert_fault(f, how == 2 || small ? FAULT_NONE : FAULT_BAD_ARGUMENT);
			}
		}
	}
	for (size_t i = 0; i < sizeof wire_headers / sizeof *wire_headers; i++) {
		char target[256], name[128];

		for (int how = 0; how < 3; how++) {
			snprintf(name, sizeof name, "%s", wire_headers[i]);
			respell(name, how);
			snprintf(target, sizeof target, "/bkt/obj?%s=%s", name, DC81);
			assert_fault(rq_parse(s3("GET", target)), FAULT_NOT_IMPLEMENTED);
			assert_fault(rq_parse(rq_with(s3("PUT", target), "content-length", "0", NULL)),
				     FAULT_NOT_IMPLEMENTED);
		}
	}
	assert_fault(rq_parse(s3("GET", "/bkt/obj?x-amz-nobody-knows=1")), FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(s3("PUT", "/bkt?X-Gantry-Copies=2")), FAULT_NOT_IMPLEMENTED);
}

/* A parameter that means nothing for the method, and headers that are no x-amz-*: SDKs sign them into URLs of
 * uploads. */
static void
parameters_that_say_nothing(void **state)
{
	static const char *const passed[] = {
#define QUERY(id, key, ...)
#define PASSED(key) key,
#include "dialect/query.def"
	};
	static struct came without, with;

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		if (op == OP_OPTIONS || is_route(op))
			continue;
		came_of(asking(op, ""), false, &without);
		for (enum param p = 0; p < P_NR; p++) {
			char more[128];

			snprintf(more, sizeof more, "%s=a%%2Fb", query_keys[p]);
			if (!(RESPONSE & BIT(p)) || shapes[op].may & BIT(p))
				continue;
			came_of(asking(op, more), false, &with);
			if (memcmp(&with, &without, sizeof with) != 0)
				fail_msg("%s with %s: %s", op_name[op], more, with.why);
		}
		for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
			for (int how = 0; how < 3; how++) {
				char more[128];

				snprintf(more, sizeof more, "%s=a%%2Fb", passed[i]);
				respell(more, how == 2 ? 2 : 0);
				came_of(asking(op, more), false, &with);
				if (memcmp(&with, &without, sizeof with) != 0)
					fail_msg("%s with %s: %s", op_name[op], more, with.why);
			}
		}
		/* What nobody knows is refused where something is written. */
		came_of(asking(op, "nobody-knows=1"), false, &with);
		assert_int_equal(with.fault,
				 op_info[op].method == METHOD_GET || op_info[op].method == METHOD_HEAD
					 ? without.fault
					 : FAULT_NOT_IMPLEMENTED);
	}
}

/* A key that selects an operation is refused for every other one: in any letters if it is missing here, in other letters
 * if it is not. */
static void
keys_that_name(void **state)
{
	enum { NAMES, REFINES };
	static const struct {
		const char *key;
		int kind;
		bool missing;
	} all[] = {
#define QUERY(id, key, kind, take) { key, kind, false },
#define MISSING(key) { key, NAMES, true },
#include "dialect/query.def"
	};
	static struct came with;
	unsigned asked = 0;

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
			for (int how = 0; how < 3; how++) {
				char key[64], more[80];

				snprintf(key, sizeof key, "%s", all[i].key);
				respell(key, how);
				if (op == OP_OPTIONS || is_route(op) || all[i].kind != NAMES ||
				    (!all[i].missing && strcmp(key, all[i].key) == 0))
					continue;
				snprintf(more, sizeof more, "%s=", key);
				came_of(asking(op, more), false, &with);
				if (with.fault != FAULT_NOT_IMPLEMENTED)
					fail_msg("%s with %s: fault %d, %s", op_name[op], key, with.fault,
						 with.why);
				asked++;
			}
		}
	}
	assert_true(asked > 1000);
}

/* Range is of GetObject and HeadObject: for every other operation it says nothing, whatever its value. */
static void
ranges(void **state)
{
	static const char *const texts[] = {
		"bytes=0-1", "bytes=-1", "bytes=5-", "bytes=2-1", "nonsense", ""
	};
	static struct came without, with;

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		bool reads = op == OP_GET_OBJECT || op == OP_HEAD_OBJECT;

		if (op == OP_OPTIONS || is_route(op))
			continue;
		came_of(asking(op, ""), false, &without);
		for (size_t v = 0; v < sizeof texts / sizeof *texts; v++) {
			came_of(rq_with(asking(op, ""), "Range", texts[v], NULL), false, &with);
			if (reads && v < 3)
				assert_int_not_equal(with.t.range.kind, RANGE_NONE);
			else if (memcmp(&with, &without, sizeof with) != 0)
				fail_msg("%s with Range: %s: %s", op_name[op], texts[v], with.why);
		}
	}
}

/* The lines of a stored header that is a list are one list, in their order; any other comes once. */
static void
lines_of_stored_headers(void **state)
{
	static const char *const lists[] = { "content-encoding", "content-language", "cache-control" };
	unsigned stored = 0, joined = 0;

	for (enum reply_field h = 0; h < FIELD_NR; h++) {
		const char *name = field_name[DIALECT_S3][h], *lower = field_name[DIALECT_SCALITY][h], *v;
		struct rq *r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", name, "a", NULL);
		bool list = false;
		size_t len;

		if (h == FIELD_CONTENT_LENGTH || rq_parse(r) != FAULT_NONE ||
		    !dialect_attr(r->t.attrs, r->t.attrs_len, lower, &len))
			continue;
		stored++;
		for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
			list |= strcmp(lower, lists[i]) == 0;
		r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "5", name, "b", lower, "", name, "a, c",
			    NULL);
		assert_fault(rq_parse(r), list ? FAULT_NONE : FAULT_BAD_REQUEST);
		if (!list)
			continue;
		v = dialect_attr(r->t.attrs, r->t.attrs_len, lower, &len);
		assert_true(v && len == 7 && memcmp(v, "b, a, c", 7) == 0);
		joined++;
	}
	assert_true(stored == 6 && joined == sizeof lists / sizeof *lists);
}

/* Refusals that name what helps. */
static void
refusals_that_help(void **state)
{
	struct rq *r;
	int nr = 0;

	for (size_t i = 0; i < ROWS; i++) {
		if (!strstr(rows[i].name, "server-side-encryption"))
			continue;
		r = rq_with(s3("PUT", "/bkt/obj"), "content-length", "0", rows[i].name, "aws:kms", NULL);
		assert_fault(rq_parse(r), FAULT_NOT_IMPLEMENTED);
		assert_non_null(strstr(r->why, "s3.encrypted_below"));
		nr++;
	}
	assert_true(nr >= 2);
	/* A connector sends the size of the window as the length of a body that never comes. */
	r = rq_with(s3("PUT", "/bkt/obj"), "x-amz-rdma-token", DC81, "content-length", "4194304", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	assert_non_null(strstr(r->why, "a request with a token has no body"));
}

/* A field and a parameter of one name are two fields of it. */
static void
both(void **state)
{
	struct rq *r = rq_with(s3("PUT", "/bkt/obj?x-amz-storage-class=STANDARD_IA"), "content-length", "5",
			       "x-amz-storage-class", "GLACIER_IR", NULL);
	const char *v;
	size_t len;

	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	r = rq_with(s3("PUT", "/bkt/obj?X-Amz-Meta-A=2"), "content-length", "5", "x-amz-meta-a", "1", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-meta-a", &len);
	assert_true(v && len == 3 && memcmp(v, "1,2", 3) == 0);
	assert_true(r->t.moved);
	/* 126 fields of its own, and two more than there is room for. */
	r = rq_with(s3("PUT", "/bkt/obj?x-amz-acl=private&x-amz-meta-b=1"), "content-length", "5", NULL);
	while (r->in.field_nr < DIALECT_FIELDS_MAX - 1)
		rq_field(r, "x-amz-meta-a", "");
	assert_fault(rq_parse(r), FAULT_HEADERS_TOO_LARGE);
	r->in.field_nr--;
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(rq_parse(s3("GET", "/bkt/obj?x-amz-meta-a%20b=1")), FAULT_BAD_ARGUMENT);
	assert_fault(rq_parse(s3("GET", "/bkt/obj?x-amz-meta-a=1%0D%0Ab:2")), FAULT_BAD_ARGUMENT);
	/* On the listener of Scality's clients it is all the key. */
	r = rq_with(scality("PUT", "/k?x-amz-acl=private"), "content-length", "5", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.key, "k?x-amz-acl=private");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_that_help),
		cmocka_unit_test(preflight_queries),
		cmocka_unit_test(preflight_headers),
		cmocka_unit_test(preflight_rows),
		cmocka_unit_test(rows_in_the_query),
		cmocka_unit_test(rows_that_stay),
		cmocka_unit_test(parameters_that_say_nothing),
		cmocka_unit_test(keys_that_name),
		cmocka_unit_test(ranges),
		cmocka_unit_test(lines_of_stored_headers),
		cmocka_unit_test(both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
