/*
 * The query of an S3 request: one table from method, level and keys to the operation, with the keys that each
 * takes.  Called by uri.c.
 *
 * A key that the operation does not take is refused, since it may turn the request into another one: PUT
 * /b/k?acl must never overwrite k.  A key that comes twice is refused as well: a proxy may go by the other.
 */
#include "dialect/dialect_int.h"

#include "base/base64.h"

#include <errno.h>

#define TOKEN_MARK 1 /* the first byte of a continuation token */

enum param {
	/* these say what is meant */
	P_ACCELERATE,
	P_ACL,
	P_ATTRIBUTES,
	P_CORS,
	P_DELETE,
	P_ENCRYPTION,
	P_LIFECYCLE,
	P_LIST_TYPE,
	P_LOCATION,
	P_LOGGING,
	P_NOTIFICATION,
	P_OBJECT_LOCK,
	P_OWNERSHIP,
	P_PART_NUMBER,
	P_POLICY,
	P_POLICY_STATUS,
	P_PUBLIC_ACCESS,
	P_REPLICATION,
	P_REQUEST_PAYMENT,
	P_TAGGING,
	P_UPLOAD_ID,
	P_UPLOADS,
	P_VERSIONING,
	P_VERSIONS,
	P_WEBSITE,
	/* these say more about it */
	P_BUCKET_REGION,
	P_CHECKSUM_MODE,
	P_CONTINUATION,
	P_DELIMITER,
	P_ENCODING,
	P_FETCH_OWNER,
	P_KEY_MARKER,
	P_MARKER,
	P_MAX_BUCKETS,
	P_MAX_KEYS,
	P_MAX_PARTS,
	P_MAX_UPLOADS,
	P_PART_MARKER,
	P_PREFIX,
	P_R_CACHE_CONTROL,
	P_R_DISPOSITION,
	P_R_ENCODING,
	P_R_EXPIRES,
	P_R_LANGUAGE,
	P_R_TYPE,
	P_START_AFTER,
	P_UPLOAD_MARKER,
	P_VERSION_ID,
	P_VERSION_MARKER,
	P_NR,
	P_ANY = P_NR, /* known and without effect */
	P_SUM,        /* a checksum that an SDK moved from the headers into a signed URL */
	P_MOVED,      /* a header, likewise, of what an object is to carry */
	P_UNKNOWN
};

#define BIT(p) ((uint64_t)1 << (p))
_Static_assert(P_NR <= 63, "one bit each, and one that none has");

static const char *const names[P_NR] = {
	[P_ACCELERATE] = "accelerate",
	[P_ACL] = "acl",
	[P_ATTRIBUTES] = "attributes",
	[P_CORS] = "cors",
	[P_DELETE] = "delete",
	[P_ENCRYPTION] = "encryption",
	[P_LIFECYCLE] = "lifecycle",
	[P_LIST_TYPE] = "list-type",
	[P_LOCATION] = "location",
	[P_LOGGING] = "logging",
	[P_NOTIFICATION] = "notification",
	[P_OBJECT_LOCK] = "object-lock",
	[P_OWNERSHIP] = "ownershipControls",
	[P_PART_NUMBER] = "partNumber",
	[P_POLICY] = "policy",
	[P_POLICY_STATUS] = "policyStatus",
	[P_PUBLIC_ACCESS] = "publicAccessBlock",
	[P_REPLICATION] = "replication",
	[P_REQUEST_PAYMENT] = "requestPayment",
	[P_TAGGING] = "tagging",
	[P_UPLOAD_ID] = "uploadId",
	[P_UPLOADS] = "uploads",
	[P_VERSIONING] = "versioning",
	[P_VERSIONS] = "versions",
	[P_WEBSITE] = "website",
	[P_BUCKET_REGION] = "bucket-region",
	[P_CHECKSUM_MODE] = "x-amz-checksum-mode",
	[P_CONTINUATION] = "continuation-token",
	[P_DELIMITER] = "delimiter",
	[P_ENCODING] = "encoding-type",
	[P_FETCH_OWNER] = "fetch-owner",
	[P_KEY_MARKER] = "key-marker",
	[P_MARKER] = "marker",
	[P_MAX_BUCKETS] = "max-buckets",
	[P_MAX_KEYS] = "max-keys",
	[P_MAX_PARTS] = "max-parts",
	[P_MAX_UPLOADS] = "max-uploads",
	[P_PART_MARKER] = "part-number-marker",
	[P_PREFIX] = "prefix",
	[P_R_CACHE_CONTROL] = "response-cache-control",
	[P_R_DISPOSITION] = "response-content-disposition",
	[P_R_ENCODING] = "response-content-encoding",
	[P_R_EXPIRES] = "response-expires",
	[P_R_LANGUAGE] = "response-content-language",
	[P_R_TYPE] = "response-content-type",
	[P_START_AFTER] = "start-after",
	[P_UPLOAD_MARKER] = "upload-id-marker",
	[P_VERSION_ID] = "versionId",
	[P_VERSION_MARKER] = "version-id-marker",
};

/* What op.def says of keys. */
#define Q(p) BIT(P_##p)
#define ELSEWHERE BIT(63) /* no query has it */
#define LISTING (Q(PREFIX) | Q(DELIMITER) | Q(ENCODING))
#define PAGING (Q(CONTINUATION) | Q(START_AFTER) | Q(FETCH_OWNER))
#define BUCKETS (Q(MAX_BUCKETS) | Q(CONTINUATION) | Q(PREFIX) | Q(BUCKET_REGION))
#define RESPONSE                                                                                             \
	(Q(R_CACHE_CONTROL) | Q(R_DISPOSITION) | Q(R_ENCODING) | Q(R_EXPIRES) | Q(R_LANGUAGE) | Q(R_TYPE))
#define READING (RESPONSE | Q(VERSION_ID) | Q(PART_NUMBER) | Q(CHECKSUM_MODE))

/* Which request asks for an operation: all of needs, and nothing beyond needs and may. */
static const struct shape {
	uint64_t needs, may;
} shapes[OP_NR] = {
	[OP_NONE] = { ELSEWHERE, 0 },
#define OP(id, name, start, method, level, body, writes, right, ok, parts, needs_, may_)                     \
	[OP_##id] = { needs_, may_ },
#include "dialect/op.def"
};

/* What a signed URL carries: auth/ verifies it, so it is not unknown. */
static const char *const signing[] = { "X-Amz-Signature",
				       "X-Amz-Algorithm",
				       "X-Amz-Credential",
				       "X-Amz-Date",
				       "X-Amz-Expires",
				       "X-Amz-SignedHeaders",
				       "X-Amz-Security-Token",
				       "X-Amz-Content-Sha256",
				       "AWSAccessKeyId",
				       "Signature",
				       "Expires" };

bool
query_key_signs(struct span key)
{
	for (size_t i = 0; i < sizeof signing / sizeof *signing; i++) {
		if (span_is(key, signing[i]))
			return true;
	}
	return false;
}

bool
query_next(struct span *query, struct span *ret_key, struct span *ret_value)
{
	while (query->len) {
		struct span pair = span_cut(query, '&');

		if (pair.len == 0)
			continue;
		*ret_key = span_cut(&pair, '=');
		*ret_value = pair;
		return true;
	}
	return false;
}

/* "x-...": for the access log of whoever sends it, and ignored, as on AWS.  But what is a header's name asks
 * for something (SDKs move headers into signed URLs). */
static bool
is_callers_own(struct span key)
{
	static const char *const ours[] = { "x-amz-", "x-rdma-", "x-cuobj-", "x-scal-", "x-gantry-" };

	if (!span_begins(key, "x-") || dialect_is_wire_header(key))
		return false;
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		if (span_begins_nocase(key, ours[i]))
			return false;
	}
	return true;
}

static enum param
param_of(struct span key)
{
	char name[48];
	int n = span_decode(key, DECODE_STRICT, name, sizeof name);

	if (query_key_moved(key))
		return P_MOVED;
	if (n < 0)
		return P_UNKNOWN;
	key = (struct span){ name, (size_t)n };
	for (enum param p = 0; p < P_NR; p++) {
		if (span_is(key, names[p]))
			return p;
	}
	/* (x-id names the operation that an SDK believes it calls.) */
	if (is_callers_own(key) || span_is(key, "x-amz-sdk-checksum-algorithm") || query_key_signs(key))
		return P_ANY;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (span_is_nocase(key, checksum_header[k]))
			return P_SUM;
	}
	return P_UNKNOWN;
}

static enum fault
number(struct span value, uint64_t max, uint64_t *ret, const char *wrong, const char **ret_why)
{
	if (span_decimal(value, ret) < 0 || *ret > max)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, wrong);
	return FAULT_NONE;
}

/* max-keys and its kin: more than a page is a page. */
static enum fault
page(struct span value, uint32_t most, struct target *t, const char **ret_why)
{
	uint64_t v = 0;
	enum fault f = number(value, INT32_MAX, &v,
			      "max-keys, max-uploads, max-parts or max-buckets is not a "
			      "number from 0 to 2147483647.",
			      ret_why);

	t->list->max = v < most ? (uint32_t)v : most;
	t->list->have_max = true;
	return f;
}

/* A name to begin with or behind. */
static enum fault
name(struct span value, char out[DIALECT_KEY_MAX + 1], uint16_t *ret_len, const char **ret_why)
{
	int n = span_decode(value, DECODE_STRICT | DECODE_PLUS, out, DIALECT_KEY_MAX);

	if (n < 0 || !is_utf8(out, (size_t)n)) {
		out[0] = 0;
		*ret_len = 0;
		return refuse(
			ret_why, FAULT_BAD_ARGUMENT,
			"A prefix or marker is longer than 1024 bytes, has a bad percent sequence or a NUL, "
			"or is not UTF-8.");
	}
	out[n] = 0;
	*ret_len = (uint16_t)n;
	return FAULT_NONE;
}

/* A page may end at a key of a scality listener, which is any bytes. */
static enum fault
token(struct span value, struct target *t, const char **ret_why)
{
	char text[BASE64_LEN(DIALECT_KEY_MAX + 1) + 1], bytes[DIALECT_KEY_MAX + 1];
	size_t len = 0;
	int n = span_decode(value, DECODE_STRICT, text, sizeof text);

	if (n <= 0 || base64_decode(text, (size_t)n, bytes, sizeof bytes, &len) < 0 || len < 2 ||
	    bytes[0] != TOKEN_MARK || memchr(bytes, 0, len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "The continuation token is not one of ours.");
	memcpy(t->list->after, bytes + 1, len - 1);
	t->list->after[len - 1] = 0;
	t->list->after_len = (uint16_t)(len - 1);
	t->list->have_token = true;
	return FAULT_NONE;
}

static enum fault
response_header(enum param p, struct span value, struct target *t, const char **ret_why)
{
	/* All begin with "response-", and the rest is the header. */
	const char *header = names[p] + sizeof "response-" - 1;
	char text[1024];
	int n = span_decode(value, DECODE_STRICT | DECODE_PLUS, text, sizeof text);

	if (n < 0 || has_control(text, (size_t)n))
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "A response-* value is longer than 1024 bytes, or cannot be a header's.");
	return attrs_put(t, header, strlen(header), (struct span){ text, (size_t)n }, ret_why);
}

static enum fault
delimiter(struct span value, struct target *t, const char **ret_why)
{
	struct list_query *l = t->list;
	int n = span_decode(value, DECODE_STRICT | DECODE_PLUS, l->delimiter, DIALECT_DELIMITER_MAX);

	if (n < 0 || !is_utf8(l->delimiter, (size_t)n)) {
		l->delimiter[0] = 0;
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "The delimiter is longer than 63 bytes, or not UTF-8.");
	}
	l->delimiter[n] = 0;
	l->delimiter_len = (uint8_t)n;
	return FAULT_NONE;
}

static enum fault
upload_marker(struct span value, struct target *t, const char **ret_why)
{
	if (value.len == 0)
		return FAULT_NONE;
	if (dialect_upload_id_parse(value.p, value.len, t->list->upload_id_marker) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "upload-id-marker is not an upload id of ours.");
	t->list->have_upload_id_marker = true;
	return FAULT_NONE;
}

static enum fault
part_number(struct span value, struct target *t, const char **ret_why)
{
	static const char why[] = "partNumber is not a number from 1 to 10000.";
	uint64_t v = 0;
	enum fault f = number(value, DIALECT_PARTS_MAX, &v, why, ret_why);

	if (f == FAULT_NONE && v == 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, why);
	t->part_number = (uint16_t)v;
	return f;
}

static enum fault
boolean(struct span value, bool *ret, const char *wrong, const char **ret_why)
{
	*ret = span_is_nocase(value, "true");
	return *ret || span_is_nocase(value, "false") ? FAULT_NONE
						      : refuse(ret_why, FAULT_BAD_ARGUMENT, wrong);
}

/* Those that place a list: what one of them says may be said by no other,
 * but for a token, which outweighs. */
static enum fault
listing(enum param p, struct span v, struct target *t, const char **ret_why)
{
	struct list_query *l = t->list;
	uint64_t n = 0;
	enum fault f;

	switch (p) {
	case P_CONTINUATION:
		/* Some clients send the key without a value for the first page. */
		return v.len == 0 ? FAULT_NONE : token(v, t, ret_why);
	case P_DELIMITER:
		return delimiter(v, t, ret_why);
	case P_ENCODING:
		l->encoding_url = span_is_nocase(v, "url");
		return l->encoding_url || v.len == 0
			       ? FAULT_NONE
			       : refuse(ret_why, FAULT_BAD_ARGUMENT, "encoding-type can only be url.");
	case P_FETCH_OWNER:
		return boolean(v, &l->fetch_owner, "fetch-owner is neither true nor false.", ret_why);
	case P_MARKER:
	case P_KEY_MARKER:
		return name(v, l->after, &l->after_len, ret_why);
	case P_START_AFTER:
		if (l->have_token)
			return FAULT_NONE;
		f = name(v, l->after, &l->after_len, ret_why);
		l->have_start_after = l->after_len > 0;
		return f;
	case P_PREFIX:
		return name(v, l->prefix, &l->prefix_len, ret_why);
	case P_MAX_BUCKETS:
		f = page(v, 10000, t, ret_why);
		/* An empty page could not say where the next one begins. */
		return f == FAULT_NONE && l->max == 0
			       ? refuse(ret_why, FAULT_BAD_ARGUMENT, "max-buckets is not 1 or more.")
			       : f;
	case P_MAX_KEYS:
	case P_MAX_PARTS:
	case P_MAX_UPLOADS:
		return page(v, DIALECT_LIST_MAX, t, ret_why);
	case P_PART_MARKER:
		f = number(v, INT32_MAX, &n, "part-number-marker is not a number.", ret_why);
		l->part_number_marker = (uint32_t)n;
		return f;
	case P_UPLOAD_MARKER:
		return upload_marker(v, t, ret_why);
	case P_VERSION_MARKER:
		return v.len == 0 || span_is(v, "null")
			       ? FAULT_NONE
			       : refuse(ret_why, FAULT_BAD_ARGUMENT, "version-id-marker can only be null.");
	default:
		return FAULT_NONE;
	}
}

static enum fault
apply(enum param p, struct span v, struct target *t, const char **ret_why)
{
	switch (p) {
	case P_LIST_TYPE:
		return span_is(v, "2") ? FAULT_NONE
				       : refuse(ret_why, FAULT_BAD_ARGUMENT, "list-type can only be 2.");
	case P_PART_NUMBER:
		return part_number(v, t, ret_why);
	case P_UPLOAD_ID:
		if (dialect_upload_id_parse(v.p, v.len, t->upload_id) < 0)
			return refuse(ret_why, FAULT_NO_SUCH_UPLOAD, "The upload id is not one of ours.");
		t->have_upload_id = true;
		return FAULT_NONE;
	case P_VERSION_ID:
		return span_is(v, "null") ? FAULT_NONE
					  : refuse(ret_why, FAULT_NO_SUCH_VERSION,
						   "There are no versions: versionId can only be null.");
	case P_CHECKSUM_MODE:
		t->checksum_mode = span_is_nocase(v, "enabled");
		return FAULT_NONE;
	case P_R_CACHE_CONTROL:
	case P_R_DISPOSITION:
	case P_R_ENCODING:
	case P_R_EXPIRES:
	case P_R_LANGUAGE:
	case P_R_TYPE:
		return response_header(p, v, t, ret_why);
	default:
		return listing(p, v, t, ret_why);
	}
}

static enum op
op_of(enum method m, enum op_level level, uint64_t have)
{
	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		const struct shape *s = &shapes[op];

		if (op_info[op].method == m && op_info[op].level == level && (have & s->needs) == s->needs &&
		    !(have & ~(s->needs | s->may)))
			return op;
	}
	return OP_NONE;
}

/* What was named but cannot be had, in words that help. */
static enum fault
no_row(enum method m, enum op_level level, uint64_t have, const char **ret_why)
{
	bool part = have & BIT(P_PART_NUMBER), upload = have & BIT(P_UPLOAD_ID);

	if (m == METHOD_PUT && level == LEVEL_OBJECT && part != upload)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "partNumber and uploadId go together.");
	if (have)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "The query of the request names a subresource that is not implemented.");
	return refuse(ret_why, FAULT_METHOD,
		      level == LEVEL_SERVICE ? "The method is not allowed on the service itself."
					     : "The method is not allowed on this resource.");
}

enum fault
query_parse(struct span query, enum method m, enum op_level level, struct target *t, const char **ret_why)
{
	struct span rest = query, key, value;
	uint64_t have = 0;
	bool moved = false;
	enum fault f = FAULT_NONE;

	/* A preflight asks about a request that will have this query. */
	if (m == METHOD_OPTIONS && level != LEVEL_SERVICE) {
		t->op = OP_OPTIONS;
		return FAULT_NONE;
	}
	while (query_next(&rest, &key, &value)) {
		enum param p = param_of(key);

		if (p == P_UNKNOWN)
			return refuse(
				ret_why, FAULT_NOT_IMPLEMENTED,
				"The query of the request names a subresource that is not implemented.");
		moved |= p == P_MOVED;
		if (p >= P_NR)
			continue;
		if (have & BIT(p))
			return refuse(ret_why, FAULT_BAD_ARGUMENT, "A key of the query came more than once.");
		have |= BIT(p);
	}
	t->op = op_of(m, level, have);
	if (t->op == OP_NONE)
		return no_row(m, level, have, ret_why);
	f = target_get(t, op_info[t->op].parts, ret_why);
	if (moved && t->op != OP_PUT_OBJECT && t->op != OP_CREATE_MULTIPART_UPLOAD)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "The query of the request has a header of an upload.");
	while (f == FAULT_NONE && query_next(&query, &key, &value)) {
		enum param p = param_of(key);

		if (p < P_NR)
			f = apply(p, value, t, ret_why);
		else if (p == P_SUM && op_pulls(t->op))
			f = sums_from_query(key, value, t, ret_why);
	}
	return f;
}
