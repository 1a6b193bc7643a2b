/* SPDX-License-Identifier: Apache-2.0 */
/* The query table, virtual hosts, list parameters, copy sources: query.c, uri.c, copy.c, parse.c. */
#include "build.h"

#include "dialect/query_keys.h"

#include <stdio.h>

#define ID "0123456789abcdef0123456789abcdef"

/* item 77, item 85: the operations of 3.13 exist, and take what belongs to them. */
static void
operations(void **state)
{
	static const struct {
		const char *method, *target;
		enum fault f;
		enum op op;
	} cases[] = {
		{ "GET", "/?max-buckets=5&prefix=a&continuation-token=AWE%3D", FAULT_NONE, OP_LIST_BUCKETS },
		{ "GET", "/?max-buckets=0", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?location", FAULT_NONE, OP_GET_BUCKET_LOCATION },
		{ "GET", "/bkt?location=", FAULT_NONE, OP_GET_BUCKET_LOCATION },
		{ "GET", "/bkt?versioning", FAULT_NONE, OP_GET_BUCKET_VERSIONING },
		{ "GET", "/bkt?versions&prefix=a", FAULT_NONE, OP_LIST_OBJECT_VERSIONS },
		{ "GET", "/bkt?uploads&max-uploads=3", FAULT_NONE, OP_LIST_MULTIPART_UPLOADS },
		{ "GET", "/bkt?list-type=2", FAULT_NONE, OP_LIST_OBJECTS_V2 },
		{ "GET", "/bkt/?list-type=2&prefix=&encoding-type=url", FAULT_NONE, OP_LIST_OBJECTS_V2 },
		{ "GET", "/bkt?list-type=1", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?list-type=2&marker=a", FAULT_NOT_IMPLEMENTED },
		{ "GET", "/bkt?prefix=a&marker=b&delimiter=%2F&max-keys=3", FAULT_NONE, OP_LIST_OBJECTS },
		{ "GET", "/bkt?acl", FAULT_NONE, OP_GET_BUCKET_ACL },
		{ "GET", "/bkt?cors", FAULT_NONE, OP_GET_BUCKET_CORS },
		{ "GET", "/bkt?lifecycle", FAULT_NONE, OP_GET_BUCKET_LIFECYCLE },
		{ "GET", "/bkt?tagging", FAULT_NONE, OP_GET_BUCKET_TAGGING },
		{ "GET", "/bkt?policy", FAULT_NONE, OP_GET_BUCKET_POLICY },
		{ "GET", "/bkt?policyStatus", FAULT_NONE, OP_GET_BUCKET_POLICY_STATUS },
		{ "GET", "/bkt?encryption", FAULT_NONE, OP_GET_BUCKET_ENCRYPTION },
		{ "GET", "/bkt?publicAccessBlock", FAULT_NONE, OP_GET_BUCKET_PUBLIC_ACCESS },
		{ "GET", "/bkt?ownershipControls", FAULT_NONE, OP_GET_BUCKET_OWNERSHIP },
		{ "GET", "/bkt?logging", FAULT_NONE, OP_GET_BUCKET_LOGGING },
		{ "GET", "/bkt?requestPayment", FAULT_NONE, OP_GET_BUCKET_REQUEST_PAYMENT },
		{ "GET", "/bkt?website", FAULT_NONE, OP_GET_BUCKET_WEBSITE },
		{ "GET", "/bkt?notification", FAULT_NONE, OP_GET_BUCKET_NOTIFICATION },
		{ "GET", "/bkt?replication", FAULT_NONE, OP_GET_BUCKET_REPLICATION },
		{ "GET", "/bkt?accelerate", FAULT_NONE, OP_GET_BUCKET_ACCELERATE },
		{ "GET", "/bkt?object-lock", FAULT_NONE, OP_GET_OBJECT_LOCK },
		{ "GET", "/bkt?inventory", FAULT_NONE, OP_LIST_BUCKET_INVENTORY },
		{ "GET", "/bkt?inventory&continuation-token=", FAULT_NONE, OP_LIST_BUCKET_INVENTORY },
		{ "GET", "/bkt?inventory&id=a", FAULT_NONE, OP_GET_BUCKET_INVENTORY },
		{ "PUT", "/bkt?inventory&id=a", FAULT_NOT_IMPLEMENTED },
		{ "DELETE", "/bkt?inventory&id=a", FAULT_NOT_IMPLEMENTED },
		{ "GET", "/bkt?metrics&analytics", FAULT_NOT_IMPLEMENTED },
		{ "PUT", "/bkt/obj?retention&versionId=null", FAULT_NONE, OP_PUT_OBJECT_RETENTION },
		{ "PUT", "/bkt/obj?legal-hold&acl", FAULT_NOT_IMPLEMENTED },
		{ "DELETE", "/bkt/obj?legal-hold", FAULT_NOT_IMPLEMENTED },
		{ "DELETE", "/bkt?policy", FAULT_NONE, OP_DELETE_BUCKET_POLICY },
		{ "PUT", "/bkt?cors", FAULT_NONE, OP_PUT_BUCKET_CORS },
		{ "PUT", "/bkt?lifecycle", FAULT_NONE, OP_PUT_BUCKET_LIFECYCLE },
		{ "PUT", "/bkt?tagging", FAULT_NONE, OP_PUT_BUCKET_TAGGING },
		{ "PUT", "/bkt?acl", FAULT_NONE, OP_PUT_BUCKET_ACL },
		{ "PUT", "/bkt?versioning", FAULT_NONE, OP_PUT_BUCKET_VERSIONING },
		{ "PUT", "/bkt?policy", FAULT_NOT_IMPLEMENTED },
		{ "DELETE", "/bkt?cors", FAULT_NONE, OP_DELETE_BUCKET_CORS },
		{ "DELETE", "/bkt?lifecycle", FAULT_NONE, OP_DELETE_BUCKET_LIFECYCLE },
		{ "DELETE", "/bkt?tagging", FAULT_NONE, OP_DELETE_BUCKET_TAGGING },
		{ "DELETE", "/bkt?uploads", FAULT_NOT_IMPLEMENTED },
		{ "POST", "/bkt?delete", FAULT_NONE, OP_DELETE_OBJECTS },
		{ "POST", "/bkt/?delete=", FAULT_NONE, OP_DELETE_OBJECTS },
		{ "POST", "/bkt/obj?uploads", FAULT_NONE, OP_CREATE_MULTIPART_UPLOAD },
		{ "POST", "/bkt/obj?uploadId=" ID, FAULT_NONE, OP_COMPLETE_MULTIPART_UPLOAD },
		{ "POST", "/bkt/obj?restore", FAULT_NOT_IMPLEMENTED },
		{ "POST", "/bkt/obj?select&select-type=2", FAULT_NOT_IMPLEMENTED },
		{ "PUT", "/bkt/obj?uploadId=" ID "&partNumber=7", FAULT_NONE, OP_UPLOAD_PART },
		{ "PUT", "/bkt/obj?partNumber=10000&uploadId=" ID "&x-id=UploadPart", FAULT_NONE,
		  OP_UPLOAD_PART },
		{ "PUT", "/bkt/obj?partNumber=1", FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?uploadId=" ID, FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?partNumber=0&uploadId=" ID, FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?partNumber=10001&uploadId=" ID, FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?partNumber=-1&uploadId=" ID, FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?partNumber=&uploadId=" ID, FAULT_BAD_ARGUMENT },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=x", FAULT_NO_SUCH_UPLOAD },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=u" ID, FAULT_NONE, OP_UPLOAD_PART },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=U" ID, FAULT_NO_SUCH_UPLOAD },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=uu" ID, FAULT_NO_SUCH_UPLOAD },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=0" ID, FAULT_NO_SUCH_UPLOAD },
		{ "PUT", "/bkt/obj?partNumber=1&uploadId=0123456789ABCDEF0123456789abcdef",
		  FAULT_NO_SUCH_UPLOAD },
		{ "DELETE", "/bkt/obj?uploadId=" ID, FAULT_NONE, OP_ABORT_MULTIPART_UPLOAD },
		{ "GET", "/bkt/obj?uploadId=" ID "&max-parts=5&part-number-marker=2", FAULT_NONE,
		  OP_LIST_PARTS },
		{ "GET", "/bkt/obj?partNumber=3", FAULT_NONE, OP_GET_OBJECT },
		{ "HEAD", "/bkt/obj?partNumber=3", FAULT_NONE, OP_HEAD_OBJECT },
		{ "GET", "/bkt/obj?versionId=null", FAULT_NONE, OP_GET_OBJECT },
		{ "GET", "/bkt/obj?versionId=3", FAULT_NO_SUCH_VERSION },
		{ "DELETE", "/bkt/obj?versionId=null", FAULT_NONE, OP_DELETE_OBJECT },
		{ "PUT", "/bkt/obj?versionId=null", FAULT_NOT_IMPLEMENTED },
		{ "GET", "/bkt/obj?tagging", FAULT_NONE, OP_GET_OBJECT_TAGGING },
		{ "PUT", "/bkt/obj?tagging", FAULT_NONE, OP_PUT_OBJECT_TAGGING },
		{ "DELETE", "/bkt/obj?tagging", FAULT_NONE, OP_DELETE_OBJECT_TAGGING },
		{ "GET", "/bkt/obj?acl", FAULT_NONE, OP_GET_OBJECT_ACL },
		{ "PUT", "/bkt/obj?acl", FAULT_NONE, OP_PUT_OBJECT_ACL },
		{ "PUT", "/bkt/obj?%61cl", FAULT_NONE, OP_PUT_OBJECT_ACL },
		{ "GET", "/bkt/obj?torrent", FAULT_NOT_IMPLEMENTED },
		/* Twice is refused, however it is spelled. */
		{ "GET", "/bkt?prefix=a&prefix=b", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?prefix=a&%70refix=b", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?cors&cors", FAULT_BAD_ARGUMENT },
		/* Numbers and words. */
		{ "GET", "/bkt?max-keys=x", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?max-keys=-1", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?max-keys=", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?max-keys=2147483648", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?encoding-type=xml", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?list-type=2&fetch-owner=maybe", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?prefix=%00", FAULT_BAD_URI },
		{ "GET", "/bkt?prefix=%ff", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?prefix=%4", FAULT_BAD_URI },
		{ "GET", "/bkt?list-type=2&continuation-token=abc", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?list-type=2&continuation-token=YWJj", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?versions&version-id-marker=7", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?uploads&key-marker=k&upload-id-marker=7", FAULT_BAD_ARGUMENT },
		{ "GET", "/bkt?uploads&upload-id-marker=7", FAULT_NONE, OP_LIST_MULTIPART_UPLOADS },
		{ "PUT", "/bkt?logging", FAULT_NONE, OP_PUT_BUCKET_LOGGING },
		{ "PUT", "/bkt?object-lock", FAULT_NONE, OP_PUT_OBJECT_LOCK },
		{ "PUT", "/bkt?abac", FAULT_NONE, OP_PUT_BUCKET_ABAC },
		{ "GET", "/bkt?abac", FAULT_NONE, OP_GET_BUCKET_ABAC },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = s3(cases[i].method, cases[i].target);
		enum fault f;

		rq_field(r, "content-length", "0");
		/* DeleteObjects wants to know that; others take it. */
		if (strcmp(cases[i].method, "POST") == 0)
			rq_field(r, "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
		f = rq_parse(r);
		if (f != cases[i].f || (f == FAULT_NONE && r->t.op != cases[i].op))
			fail_msg("%s %s: fault %d, %s, %s", cases[i].method, cases[i].target, f, r->why,
				 op_name[r->t.op]);
	}
}

/* The large parts of a target are asked for where the operation has them, and are not always to be had. */
static void
parts(void **state)
{
	static const struct {
		const char *method, *target, *header;
		unsigned parts;
	} cases[] = {
		{ "GET", "/", NULL, TARGET_LIST },
		{ "GET", "/bkt?list-type=2", NULL, TARGET_LIST },
		{ "GET", "/bkt?cors", NULL, TARGET_NOTHING },
		{ "HEAD", "/bkt/obj", NULL, TARGET_NOTHING },
		{ "GET", "/bkt/obj", NULL, TARGET_NOTHING },
		{ "GET", "/bkt/obj?response-content-type=a", NULL, TARGET_ATTRS },
		{ "GET", "/bkt/obj?uploadId=" ID, NULL, TARGET_ATTRS | TARGET_LIST },
		{ "PUT", "/bkt/obj", NULL, TARGET_ATTRS },
		{ "PUT", "/bkt/obj", "src/a", TARGET_ATTRS | TARGET_COPY },
		{ "DELETE", "/bkt/obj", NULL, TARGET_NOTHING },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (unsigned without = 0; without <= TARGET_LIST; without = without ? without * 2 : 1) {
			struct rq *r = s3(cases[i].method, cases[i].target);
			enum fault want = cases[i].parts & without ? FAULT_BUSY : FAULT_NONE;

			rq_field(r, "content-length", "0");
			if (cases[i].header)
				rq_field(r, "x-amz-copy-source", cases[i].header);
			r->parts_not = without;
			assert_fault(rq_parse(r), want);
			assert_int_equal(r->parts & ~cases[i].parts, 0);
			assert_true(want == FAULT_BUSY || r->parts == cases[i].parts);
		}
	}
}

/* No request asks for two operations. */
static void
shapes(void **state)
{
	static const struct query_shape shape[OP_NR] = {
		[OP_NONE] = { ELSEWHERE, 0 },
#define OP(id, name, start, method, level, body, writes, right, ok, parts, needs, may)                       \
	[OP_##id] = { needs, may },
#include "dialect/op.def"
	};

	for (enum op a = OP_NONE + 1; a < OP_NR; a++) {
		for (enum op b = a + 1; b < OP_NR; b++) {
			const struct query_shape *x = &shape[a], *y = &shape[b];

			if (op_info[a].method != op_info[b].method || op_info[a].level != op_info[b].level ||
			    (x->needs | y->needs) & ELSEWHERE)
				continue;
			if (!(x->needs & ~(y->needs | y->may)) && !(y->needs & ~(x->needs | x->may)))
				fail_msg("one query asks for %s and for %s", op_name[a], op_name[b]);
		}
	}
}

/* What the rights of operations ask about is there. */
static void
parts_of_rights(void **state)
{
	for (enum op op = 0; op < OP_NR; op++) {
		assert_true(op_info[op].right != RIGHT_COPY || op_info[op].parts & TARGET_COPY);
		assert_true(op_info[op].right != RIGHT_LIST_PREFIX || op_info[op].parts & TARGET_LIST);
	}
}

/* Every operation has a name, and one that moves nothing ignores a descriptor.  item 77 */
static void
operation_table(void **state)
{
	struct rq *r;

	for (enum op op = 0; op < OP_NR; op++) {
		assert_non_null(op_name[op]);
		assert_int_equal(op_moves(op),
				 op == OP_PUT_OBJECT || op == OP_GET_OBJECT || op == OP_UPLOAD_PART);
	}
	r = rq_with(s3("GET", "/bkt?list-type=2"), "x-amz-rdma-token", "nonsense", NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_NONE);
	/* item 51: a part's descriptor is decoded as an object's is. */
	r = rq_with(s3("PUT", "/bkt/obj?partNumber=2&uploadId=" ID), "x-amz-rdma-token", DC81, NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_int_equal(r->t.wire, WIRE_AMZ);
	assert_int_equal(r->t.token.size, 0x400000);
	assert_int_equal(r->t.part_number, 2);
	r = rq_with(s3("PUT", "/bkt/obj?partNumber=2&uploadId=" ID), "x-amz-rdma-token", DC81,
		    "content-length", "5", NULL);
	assert_fault(rq_token(r), FAULT_BAD_REQUEST);
	/* item 70 */
	r = rq_with(s3("GET", "/bkt/obj?partNumber=1"), "x-amz-rdma-token", DC81, NULL);
	assert_fault(rq_token(r), FAULT_NONE);
	assert_true(r->t.wire == WIRE_AMZ && r->t.part_number == 1);
	assert_fault(rq_parse(rq_with(s3("GET", "/bkt/obj?partNumber=1"), "range", "bytes=0-1", NULL)),
		     FAULT_BAD_REQUEST);
}

static void
list_parameters(void **state)
{
	char target[8192] = "/bkt?prefix=";
	struct rq *r = s3("GET", "/bkt?prefix=a%2Fb+c%2B&delimiter=%2F%2F&marker=m%C3%A9&max-keys=5000");

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.list->prefix, "a/b c+");
	assert_string_equal(r->t.list->delimiter, "//");
	assert_string_equal(r->t.list->after, "m\xc3\xa9");
	assert_int_equal(r->t.list->max, 1000);
	assert_false(r->t.list->encoding_url || r->t.list->have_token);
	r = s3("GET",
	       "/bkt?list-type=2&continuation-token=AWEvYg%3D%3D&start-after=zz&max-keys=0&fetch-owner=true");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.list->after, "a/b");
	assert_true(r->t.list->have_token && r->t.list->fetch_owner && r->t.list->max == 0);
	r = s3("GET", "/bkt?list-type=2&start-after=zz&continuation-token=AWEvYg%3D%3D");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.list->after, "a/b");
	r = s3("GET", "/bkt?list-type=2&continuation-token=AWH%2F");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.list->have_token && r->t.list->after_len == 2 && r->t.list->after[1] == (char)0xff);
	/* The alphabet of URLs is what we give out. */
	r = s3("GET", "/bkt?list-type=2&continuation-token=AWH_");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.list->have_token && r->t.list->after_len == 2 && r->t.list->after[1] == (char)0xff);
	r = s3("GET", "/bkt?list-type=2&continuation-token=AWEvYg");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_string_equal(r->t.list->after, "a/b");
	assert_fault(rq_parse(s3("GET", "/bkt?list-type=2&continuation-token=AWEvYgAAA")),
		     FAULT_BAD_ARGUMENT);
	r = s3("GET", "/bkt?list-type=2&start-after=zz&continuation-token=");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.list->have_start_after && !r->t.list->have_token);
	r = s3("GET", "/bkt?uploads&key-marker=k&upload-id-marker=" ID);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.list->have_upload_id_marker && r->t.list->upload_id_marker[1] == 0x23);
	r = s3("GET", "/bkt");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.list->max == 1000 && r->t.list->after_len == 0 && r->t.list->prefix[0] == 0);
	for (int over = 0; over < 2; over++) {
		target[12] = 0;
		for (int i = 0; i < DIALECT_KEY_MAX + over; i++)
			strcat(target, "%61");
		assert_fault(rq_parse(s3("GET", target)), over ? FAULT_BAD_ARGUMENT : FAULT_NONE);
	}
}

/* Nothing between the "=" and what follows is no delimiter, and not a bad one: clients send it so. */
static void
empty_delimiter(void **state)
{
	static const char *const targets[] = { "/bkt?delimiter=", "/bkt?list-type=2&delimiter=&prefix=a",
					       "/bkt?uploads&delimiter=" };
	char target[DIALECT_DELIMITER_MAX + 32] = "/bkt?delimiter=";
	size_t head = strlen(target);

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		struct rq *r = s3("GET", targets[i]);

		assert_fault(rq_parse(r), FAULT_NONE);
		assert_int_equal(r->t.list->delimiter_len, 0);
		assert_string_equal(r->t.list->delimiter, "");
	}
	/* The other end: the longest one, and one byte more. */
	for (size_t over = 0; over < 2; over++) {
		struct rq *r;

		memset(target + head, '-', DIALECT_DELIMITER_MAX + over);
		target[head + DIALECT_DELIMITER_MAX + over] = 0;
		r = s3("GET", target);
		assert_fault(rq_parse(r), over ? FAULT_BAD_ARGUMENT : FAULT_NONE);
		assert_int_equal(r->t.list->delimiter_len, over ? 0 : DIALECT_DELIMITER_MAX);
	}
}

static void
response_overrides(void **state)
{
	struct rq *r = s3(
		"GET", "/bkt/obj?response-content-type=text%2Fplain&response-content-disposition="
		       "attachment%3B+filename%3D%22a%22&response-expires=x&response-cache-control=no-cache"
		       "&response-content-language=de&response-content-encoding=gzip");
	const char *v;
	size_t len;

	assert_fault(rq_parse(r), FAULT_NONE);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "content-type", &len);
	assert_true(v && len == 10 && memcmp(v, "text/plain", 10) == 0);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "content-disposition", &len);
	assert_true(v && len == 24 && memcmp(v, "attachment; filename=\"a\"", len) == 0);
	assert_null(dialect_attr(r->t.attrs, r->t.attrs_len, "etag", &len));
	assert_fault(rq_parse(s3("GET", "/bkt/obj?response-content-type=a%0d%0aset-cookie:b")),
		     FAULT_BAD_ARGUMENT);
	/* Elsewhere it is passed over, whatever its value is. */
	assert_fault(rq_parse(rq_with(s3("PUT", "/bkt/obj?response-content-type=a%0d"), "content-length", "0",
				      NULL)),
		     FAULT_NONE);
}

/* item 83 */
static void
virtual_hosts(void **state)
{
	static const struct {
		const char *host, *target;
		enum fault f;
		enum op op;
		const char *bucket, *key;
	} cases[] = {
		{ "bkt.s3.test", "/a/b", FAULT_NONE, OP_GET_OBJECT, "bkt", "a/b" },
		{ "bkt.s3.test:9000", "/a/b", FAULT_NONE, OP_GET_OBJECT, "bkt", "a/b" },
		{ "BKT.S3.Test", "/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "bkt.s3.test", "/", FAULT_NONE, OP_LIST_OBJECTS, "bkt", "" },
		{ "bkt.s3.test", "/?location", FAULT_NONE, OP_GET_BUCKET_LOCATION, "bkt", "" },
		{ "bkt.s3.test", "//a", FAULT_NONE, OP_GET_OBJECT, "bkt", "/a" },
		{ "a.b.s3.test", "/a", FAULT_NONE, OP_GET_OBJECT, "a.b", "a" },
		{ "bkt.test", "/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		/* The longest domain counts, and a domain itself is path style. */
		{ "s3.test", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "s3.test:80", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "test", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "10.0.0.9:9000", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "[::1]:9000", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ "bkts3.test2", "/bkt/a", FAULT_NONE, OP_GET_OBJECT, "bkt", "a" },
		{ ".s3.test", "/bkt/a", FAULT_BAD_BUCKET_NAME },
		{ "a_b.s3.test", "/a", FAULT_BAD_BUCKET_NAME },
		{ "b%6bt.s3.test", "/a", FAULT_BAD_BUCKET_NAME },
	};
	struct conf_s3 conf = { .domains = { (char *)"test", (char *)"s3.test" }, .domain_nr = 2 };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = rq_bare(DIALECT_S3, "GET", cases[i].target);
		enum fault f;

		r->in.s3 = &conf;
		rq_field(r, "Host", cases[i].host);
		f = rq_parse(r);
		if (f != cases[i].f)
			fail_msg("%s %s: fault %d, %s", cases[i].host, cases[i].target, f, r->why);
		if (f)
			continue;
		assert_int_equal(r->t.op, cases[i].op);
		assert_string_equal(r->t.bucket, cases[i].bucket);
		assert_string_equal(r->t.key, cases[i].key);
	}
}

/* item T6: the routes of hipobj-rc-v2, while it is not served; item T5: POST only */
static void
control_routes(void **state)
{
	static const char *const routes[] = { "/.hipobj-rc/prepare", "/.hipobj-rc/ready",
					      "/.hipobj-rc/cancel" };
	struct rq *r;

	for (int i = 0; i < 3; i++) {
		assert_fault(rq_parse(s3("POST", routes[i])), FAULT_RC_OFF);
		assert_fault(rq_parse(s3("GET", routes[i])), FAULT_METHOD);
	}
	assert_int_equal(fault_info(FAULT_RC_OFF)->status, 501);
	assert_fault(rq_parse(s3("POST", "/.hipobj-rc/other")), FAULT_BAD_BUCKET_NAME);
	/* item T8: those of rc: tokens are operations, which know whether they are served. */
	r = s3("POST", "/.s3rdma-rc/connect");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_RC_CONNECT);
	r = s3("POST", "/.s3rdma-rc/disconnect");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_RC_DISCONNECT);
	assert_fault(rq_parse(s3("GET", "/.s3rdma-rc/connect")), FAULT_METHOD);
	assert_fault(rq_parse(s3("POST", "/.s3rdma-rc/other")), FAULT_BAD_BUCKET_NAME);
}

static struct rq *
copy_of(const char *source)
{
	return rq_with(s3("PUT", "/bkt/obj"), "content-length", "0", "x-amz-copy-source", source, NULL);
}

static void
copy_sources(void **state)
{
	static const struct {
		const char *source;
		enum fault f;
		const char *bucket, *key;
	} cases[] = {
		{ "/src/a/b", FAULT_NONE, "src", "a/b" },
		{ "src/a%20b%2Bc+d", FAULT_NONE, "src", "a b+c+d" },
		{ "src%2Fa%2Fb", FAULT_NONE, "src", "a/b" },
		/* Decoded first: minio-cpp, and whoever encodes "/bucket/key" as a whole. */
		{ "%2Fsrc%2Fa", FAULT_NONE, "src", "a" },
		{ "%2fsrc/a", FAULT_NONE, "src", "a" },
		{ "/src%2Fa", FAULT_NONE, "src", "a" },
		{ "s%72c/a", FAULT_NONE, "src", "a" },
		{ "/src//a", FAULT_NONE, "src", "/a" },
		{ "src/%2Fa", FAULT_NONE, "src", "/a" },
		{ "src/a%2520", FAULT_NONE, "src", "a%20" },
		{ "src%2Fa%3FversionId=1", FAULT_NONE, "src", "a?versionId=1" },
		{ "%2F%2Fsrc%2Fa", FAULT_BAD_ARGUMENT },
		{ "%2F/src/a", FAULT_BAD_ARGUMENT },
		{ "src%2Fa?versionId=null", FAULT_NONE, "src", "a" },
		{ "src/a?", FAULT_BAD_ARGUMENT },
		{ "src%zz/a", FAULT_BAD_ARGUMENT },
		{ "src/a?versionId=null", FAULT_NONE, "src", "a" },
		{ "src/a%3FversionId=1", FAULT_NONE, "src", "a?versionId=1" },
		{ "src/a?versionId=1", FAULT_NO_SUCH_VERSION },
		{ "src/a?x", FAULT_BAD_ARGUMENT },
		{ "src", FAULT_BAD_ARGUMENT },
		{ "src/", FAULT_BAD_ARGUMENT },
		{ "", FAULT_BAD_ARGUMENT },
		{ "/", FAULT_BAD_ARGUMENT },
		{ "//a", FAULT_BAD_ARGUMENT },
		{ "Src/a", FAULT_BAD_ARGUMENT },
		{ ".scality/a", FAULT_BAD_ARGUMENT },
		{ "src/a%00", FAULT_BAD_ARGUMENT },
		{ "src/%ff", FAULT_BAD_ARGUMENT },
		{ "src/%zz", FAULT_BAD_ARGUMENT },
	};
	struct rq *r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum fault f;

		r = copy_of(cases[i].source);
		f = rq_parse(r);
		if (f != cases[i].f)
			fail_msg("%s: fault %d, %s", cases[i].source, f, r->why);
		if (f)
			continue;
		assert_int_equal(r->t.op, OP_COPY_OBJECT);
		assert_string_equal(r->t.copy->bucket, cases[i].bucket);
		assert_string_equal(r->t.copy->key, cases[i].key);
	}
	/* Directives: what is replaced is in attrs. */
	r = rq_with(copy_of("src/a"), "x-amz-meta-a", "b", "x-amz-tagging", "t=1", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.attrs_len == 0 && r->t.tag_nr == 0 && r->t.copy->metadata == DIRECTIVE_COPY);
	r = rq_with(copy_of("src/a"), "x-amz-meta-a", "b", "x-amz-tagging", "t=1", "x-amz-metadata-directive",
		    "REPLACE", "x-amz-tagging-directive", "REPLACE", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.attrs_len > 0 && r->t.tag_nr == 1 && r->t.copy->tagging == DIRECTIVE_REPLACE);
	assert_fault(rq_parse(rq_with(copy_of("src/a"), "x-amz-metadata-directive", "MOVE", NULL)),
		     FAULT_BAD_ARGUMENT);
	assert_fault(rq_parse(rq_with(copy_of("src/a"), "x-amz-copy-source-range", "bytes=0-1", NULL)),
		     FAULT_BAD_ARGUMENT);
	assert_fault(rq_parse(rq_with(copy_of("src/a"), "x-amz-copy-source", "src/b", NULL)),
		     FAULT_BAD_REQUEST);
	/* The hash of the empty body is not one of the object. */
	r = rq_with(copy_of("src/a"), "x-amz-content-sha256",
		    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_false(r->t.sum[SUM_SHA256].given);
	/* Parts. */
	r = rq_with(s3("PUT", "/bkt/obj?partNumber=1&uploadId=" ID), "x-amz-copy-source", "src/a",
		    "x-amz-copy-source-range", "bytes=5-9", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.op, OP_UPLOAD_PART_COPY);
	assert_true(r->t.copy->range.first == 5 && r->t.copy->range.last == 9);
	r = rq_with(s3("PUT", "/bkt/obj?partNumber=1&uploadId=" ID), "x-amz-copy-source", "src/a",
		    "x-amz-copy-source-range", "bytes=5-", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_ARGUMENT);
}

static void
copy_conditions(void **state)
{
	struct rq *r =
		rq_with(copy_of("src/a"), "x-amz-copy-source-if-match", "\"e\"",
			"x-amz-copy-source-if-unmodified-since", "Wed, 21 Oct 2015 07:28:00 GMT", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	/* If-Match that holds outweighs the date. */
	assert_fault(dialect_copy_conditions(r->t.copy, "e", 1, 2000000000), FAULT_NONE);
	assert_fault(dialect_copy_conditions(r->t.copy, "f", 1, 0), FAULT_PRECONDITION);
	r = rq_with(copy_of("src/a"), "x-amz-copy-source-if-none-match", "\"e\"",
		    "x-amz-copy-source-if-modified-since", "Wed, 21 Oct 2015 07:28:00 GMT", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_copy_conditions(r->t.copy, "e", 1, 2000000000), FAULT_PRECONDITION);
	assert_fault(dialect_copy_conditions(r->t.copy, "f", 1, 0), FAULT_NONE);
	r = rq_with(copy_of("src/a"), "x-amz-copy-source-if-modified-since", "Wed, 21 Oct 2015 07:28:00 GMT",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_fault(dialect_copy_conditions(r->t.copy, "e", 1, 1445412480), FAULT_PRECONDITION);
	assert_fault(dialect_copy_conditions(r->t.copy, "e", 1, 1445412481), FAULT_NONE);
}

/* item 52, item 56: what a multipart upload is to be checked with */
static void
multipart_checksums(void **state)
{
	static const struct {
		const char *algorithm, *type;
		enum fault f;
		enum checksum_type want;
	} cases[] = {
		{ "CRC64NVME", NULL, FAULT_NONE, SUM_TYPE_FULL_OBJECT },
		{ "CRC64NVME", "FULL_OBJECT", FAULT_NONE, SUM_TYPE_FULL_OBJECT },
		{ "CRC64NVME", "COMPOSITE", FAULT_BAD_REQUEST },
		{ "CRC32", NULL, FAULT_NONE, SUM_TYPE_COMPOSITE },
		{ "CRC32C", "FULL_OBJECT", FAULT_NONE, SUM_TYPE_FULL_OBJECT },
		{ "SHA256", NULL, FAULT_NONE, SUM_TYPE_COMPOSITE },
		{ "SHA1", "FULL_OBJECT", FAULT_BAD_REQUEST },
		{ "SHA256", "HALF", FAULT_BAD_REQUEST },
		{ NULL, "COMPOSITE", FAULT_BAD_REQUEST },
		{ "MD4", NULL, FAULT_BAD_REQUEST },
		{ NULL, NULL, FAULT_NONE, SUM_TYPE_NONE },
	};
	struct rq *r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		enum fault f;

		r = s3("POST", "/bkt/obj?uploads");
		if (cases[i].algorithm)
			rq_field(r, "x-amz-checksum-algorithm", cases[i].algorithm);
		if (cases[i].type)
			rq_field(r, "x-amz-checksum-type", cases[i].type);
		f = rq_parse(r);
		if (f != cases[i].f || (f == FAULT_NONE && r->t.checksum_type != cases[i].want))
			fail_msg("case %zu: fault %d, %s", i, f, r->why);
	}
	r = rq_with(s3("POST", "/bkt/obj?uploadId=" ID), "content-length", "10", "x-amz-checksum-crc32",
		    "y/Q5Jg==-3", "x-amz-mp-object-size", "123", "x-amz-checksum-type", "COMPOSITE",
		    "x-amz-content-sha256",
		    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "if-none-match", "*",
		    NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC32].given && r->t.composite_parts == 3 && r->t.have_mp_object_size);
	assert_true(r->t.mp_object_size == 123 && r->t.have_body_sha256 && !r->t.sum[SUM_SHA256].given);
	assert_true(r->t.if_none_match.any && r->t.have_upload_id && r->t.upload_id[0] == 0x01);
}

/* Frames: what the headers say; the trailer is one checksum that is then expected. */
static void
streaming(void **state)
{
	struct rq *r =
		rq_with(s3("PUT", "/bkt/obj"), "content-length", "100", "content-encoding",
			"gzip, aws-chunked", "x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			"x-amz-decoded-content-length", "60", "x-amz-trailer", "x-amz-checksum-crc32", NULL);
	const char *v;
	size_t len;

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.aws_chunked && r->t.have_decoded_length && r->t.decoded_length == 60);
	assert_true(r->t.have_trailer && r->t.trailer == SUM_CRC32 && r->t.sum[SUM_CRC32].wanted);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "content-encoding", &len);
	assert_true(v && len == 4 && memcmp(v, "gzip", 4) == 0);
	r = rq_with(put_body(), "content-encoding", "aws-chunked", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.aws_chunked && !r->t.have_decoded_length && r->t.attrs_len == 0);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-content-sha256",
				      "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(rq_with(put_body(), "content-encoding", "aws-chunked",
				      "x-amz-decoded-content-length", "6", NULL)),
		     FAULT_BAD_REQUEST);
	assert_fault(rq_parse(rq_with(put_body(), "content-encoding", "aws-chunked", "x-amz-trailer",
				      "x-amz-checksum-md4", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(rq_parse(rq_with(scality("PUT", "/k"), "content-length", "5", "content-encoding",
				      "aws-chunked", NULL)),
		     FAULT_NOT_IMPLEMENTED);
	/* XML in frames: the trailer is of these bytes, a checksum of a completion is the object's. */
	r = rq_with(s3("POST", "/bkt?delete"), "content-length", "50", "content-encoding", "aws-chunked",
		    "x-amz-decoded-content-length", "5", "x-amz-trailer", "x-amz-checksum-crc32", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.aws_chunked && r->t.have_trailer && r->t.trailer == SUM_CRC32);
	r = rq_with(s3("POST", "/bkt/obj?uploadId=" ID), "content-length", "50", "x-amz-content-sha256",
		    "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-decoded-content-length", "5",
		    "x-amz-trailer", "x-amz-checksum-crc32", "x-amz-checksum-crc32", "y/Q5Jg==-3", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC32].given && r->t.composite_parts == 3 && r->t.have_trailer);
	assert_false(r->t.text_sum.given);
	assert_fault(rq_parse(rq_with(s3("POST", "/bkt?delete"), "transfer-encoding", "chunked", NULL)),
		     FAULT_LENGTH_REQUIRED);
}

static void
object_attributes(void **state)
{
	struct rq *r = rq_with(s3("GET", "/bkt/obj?attributes"), "x-amz-object-attributes",
			       "ETag, ObjectSize,ObjectParts", "x-amz-object-attributes", "Checksum",
			       "x-amz-max-parts", "7", "x-amz-part-number-marker", "3", NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.object_attributes, ATTR_ETAG | ATTR_SIZE | ATTR_PARTS | ATTR_CHECKSUM);
	assert_true(r->t.list->max == 7 && r->t.list->part_number_marker == 3);
	assert_fault(rq_parse(s3("GET", "/bkt/obj?attributes")), FAULT_BAD_ARGUMENT);
	assert_fault(
		rq_parse(rq_with(s3("GET", "/bkt/obj?attributes"), "x-amz-object-attributes", "Owner", NULL)),
		FAULT_BAD_ARGUMENT);
	r = rq_with(s3("DELETE", "/bkt/obj"), "x-amz-if-match-size", "5", "x-amz-if-match-last-modified-time",
		    "Wed, 21 Oct 2015 07:28:00 GMT", "if-match", "\"e\"", NULL);
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.have_if_match_size && r->t.if_match_size == 5 &&
		    r->t.if_match_mtime_s == 1445412480);
	assert_fault(rq_parse(rq_with(s3("DELETE", "/bkt/obj"), "x-amz-if-match-size", "x", NULL)),
		     FAULT_BAD_ARGUMENT);
}

/* What SDKs put into a URL that they sign. */
static void
sums_in_the_query(void **state)
{
	struct rq *r =
		s3("PUT", "/bkt/obj?x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32"
			  "&X-Amz-Signature=0&x-id=PutObject");

	rq_field(r, "content-length", "5");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(!r->t.sum[SUM_CRC32].given && r->t.sums_of_empty_ignored);
	r = s3("PUT", "/bkt/obj?x-amz-checksum-crc32=y%2FQ5Jg%3D%3D");
	rq_field(r, "content-length", "5");
	assert_fault(rq_parse(r), FAULT_NONE);
	assert_true(r->t.sum[SUM_CRC32].given && r->t.sum[SUM_CRC32].value[0] == 0xcb);
	rq_field(r, "x-amz-checksum-crc32", "AAAAAA==");
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	r = s3("PUT", "/bkt/obj?x-amz-checksum-crc32=zz");
	rq_field(r, "content-length", "5");
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
	r = s3("PUT", "/bkt/obj?x-amz-checksum-crc32=y%2FQ5Jg%3D%3D&x-amz-checksum-crc32c=4waSgw%3D%3D");
	rq_field(r, "content-length", "5");
	assert_fault(rq_parse(r), FAULT_BAD_REQUEST);
}

/* A descriptor moves bytes: in a query, where nobody looks for one, it is refused whatever its header is
 * called. */
static void
descriptors_in_the_query(void **state)
{
	static const char *const headers[] = {
#define WIRE(id, header, ...) header,
#include "dialect/wire.def"
	};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		char target[128];

		snprintf(target, sizeof target, "/bkt/obj?%s=1", headers[i]);
		assert_fault(rq_parse(s3("GET", target)), FAULT_NOT_IMPLEMENTED);
		assert_true(dialect_must_sign(span_of(headers[i]), false));
	}
	assert_fault(rq_parse(s3("GET", "/bkt/obj?x-my-own=1")), FAULT_NONE);
	assert_fault(rq_parse(s3("PUT", "/bkt?x-gantry-copies=2")), FAULT_NOT_IMPLEMENTED);
}

static void
tags_of_a_put(void **state)
{
	struct rq *r = rq_with(put_body(), "x-amz-tagging", "a=1&b%20c=%26%3D", NULL);
	const char *v;
	size_t len;

	assert_fault(rq_parse(r), FAULT_NONE);
	assert_int_equal(r->t.tag_nr, 2);
	v = dialect_attr(r->t.attrs, r->t.attrs_len, "x-amz-tagging", &len);
	assert_true(v && len == 14 && memcmp(v, "a=1&b c=%26%3D", 14) == 0);
	assert_false(dialect_attr_is_header("x-amz-tagging", 13));
	assert_true(dialect_attr_is_header("x-amz-meta-a", 12));
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-tagging", "a=1&a=2", NULL)), FAULT_INVALID_TAG);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-tagging", "a=%zz", NULL)), FAULT_BAD_ARGUMENT);
	assert_fault(rq_parse(rq_with(put_body(), "x-amz-tagging", "=2", NULL)), FAULT_INVALID_TAG);
}

/* What is given out begins with a letter: XML parsers make numbers of digits, and of 12e4.  Ids from before
 * are read. */
static void
upload_ids(void **state)
{
	static const struct {
		const char *hex;
		uint8_t first;
	} cases[] = { { "00000000000000020000000000000224", 0x00 },
		      { "12e40000000000000000000000000000", 0x12 },
		      { "abcdef00000000000000000000000000", 0xab } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[DIALECT_UPLOAD_ID_LEN + 1];
		uint8_t id[16], again[16];

		assert_int_equal(dialect_upload_id_parse(cases[i].hex, 32, id), 0);
		assert_int_equal(id[0], cases[i].first);
		dialect_upload_id_text(id, text);
		assert_int_equal(strlen(text), DIALECT_UPLOAD_ID_LEN);
		assert_true(text[0] >= 'a' && text[0] <= 'z');
		assert_string_equal(text + 1, cases[i].hex);
		assert_int_equal(dialect_upload_id_parse(text, strlen(text), again), 0);
		assert_memory_equal(again, id, 16);
		assert_true(dialect_upload_id_parse(text, strlen(text) - 1, again) < 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upload_ids),
		cmocka_unit_test(operations),
		cmocka_unit_test(parts),
		cmocka_unit_test(shapes),
		cmocka_unit_test(parts_of_rights),
		cmocka_unit_test(operation_table),
		cmocka_unit_test(list_parameters),
		cmocka_unit_test(response_overrides),
		cmocka_unit_test(virtual_hosts),
		cmocka_unit_test(control_routes),
		cmocka_unit_test(copy_sources),
		cmocka_unit_test(copy_conditions),
		cmocka_unit_test(multipart_checksums),
		cmocka_unit_test(streaming),
		cmocka_unit_test(object_attributes),
		cmocka_unit_test(tags_of_a_put),
		cmocka_unit_test(sums_in_the_query),
		cmocka_unit_test(descriptors_in_the_query),
		cmocka_unit_test(empty_delimiter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
