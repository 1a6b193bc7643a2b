/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of an S3 request: one table from method, level and keys to the operation, with the keys that each
 * takes.  Called by uri.c.
 *
 * A key that the operation does not take is refused where it may turn the request into another one: PUT
 * /b/k?acl must never overwrite k, nor may PUT /b/k?ACL, or a key that S3 will have tomorrow.  A request that
 * changes nothing may have keys that are nobody's, as on S3.  Names are compared as they were hashed, decoded
 * and letter by letter; only what is refused is refused in any letters.
 */
#include "dialect/dialect_int.h"
#include "dialect/query_keys.h"

#include "base/base64.h"

#include <errno.h>

#define CURSOR_MARK 1 /* the first byte of a continuation token */
#define RESPONSE_MAX 1024

enum kind { NAMES, REFINES };
struct key {
	const char *name;
	uint8_t len;
	enum kind kind;
};
static const struct key keys[P_NR] = {
#define QUERY(id, key, kind, take) [P_##id] = { key, sizeof key - 1, kind },
#include "dialect/query.def"
};

static const char *const missing[] = {
#define QUERY(id, ...)
#define MISSING(key) key,
#include "dialect/query.def"
};

static const char *const passed[] = {
#define QUERY(id, ...)
#define PASSED(key) key,
#include "dialect/query.def"
};

static const struct query_shape shapes[OP_NR] = {
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
				       "x-amz-security-token", /* as version 2 has it */
				       "X-Amz-Content-Sha256",
				       "AWSAccessKeyId",
				       "Signature",
				       "Expires" };

static bool
key_signs(struct span key)
{
	/* Each request's parameters are asked about twice. */
	if ((key.p[0] | 0x20) != 'x' && key.p[0] != 'A' && key.p[0] != 'S' && key.p[0] != 'E')
		return false;
	for (size_t i = 0; i < sizeof signing / sizeof *signing; i++) {
		if (span_is(key, signing[i]))
			return true;
	}
	return false;
}

static bool
key_signs_nocase(struct span key)
{
	for (size_t i = 0; i < sizeof signing / sizeof *signing; i++) {
		if (span_is_nocase(key, signing[i]))
			return true;
	}
	return false;
}

/* In any letters, the name of something that a request can be about. */
static bool
key_names(struct span key)
{
	for (enum param p = 0; p < P_NR; p++) {
		if (keys[p].kind == NAMES && span_is_nocase(key, keys[p].name))
			return true;
	}
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		if (span_is_nocase(key, missing[i]))
			return true;
	}
	return false;
}

static bool
key_passes(struct span key)
{
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		if (span_is_nocase(key, passed[i]))
			return true;
	}
	return false;
}

bool
query_key_is_header(struct span key)
{
	static const char *const ours[] = { "x-amz-", "x-rdma-", "x-cuobj-", "x-scal-", "x-gantry-" };

	if (key.len < 2 || (key.p[0] | 0x20) != 'x' || key.p[1] != '-')
		return false;
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
		if (span_begins_nocase(key, ours[i]))
			return true;
	}
	return dialect_is_wire_header(key);
}

static enum param
key_of(struct span key)
{
	for (enum param p = 0; p < P_NR; p++) {
		if (key.len == keys[p].len && memcmp(key.p, keys[p].name, key.len) == 0)
			return p;
	}
	return P_NR;
}

bool
query_key_known(struct span key)
{
	return key_of(key) < P_NR || key_signs(key);
}

bool
dialect_query_signed(const struct dialect_in *in)
{
	for (int i = 0; i < in->uri->param_nr; i++) {
		if (key_signs(uri_name(in->uri, i)))
			return true;
	}
	return false;
}

static enum param
param_of(struct span key)
{
	enum param p = key_of(key);

	if (p < P_NR)
		return p;
	if (key_signs(key))
		return P_ANY;
	if (key_signs_nocase(key))
		return P_SIGNS;
	switch (header_in_query(key)) {
	case HEADER_MOVES:
		return P_MOVED;
	case HEADER_SUMS:
		return P_SUM;
	case HEADER_PASSES:
		return P_ANY;
	default:
		break;
	}
	if (query_key_is_header(key) || key_names(key))
		return P_MISSING;
	if (key_passes(key))
		return P_ANY;
	/* "x-...": for the access log of its sender, and ignored, as on S3; x-id names the operation
	 * that an SDK believes it calls. */
	return span_begins(key, "x-") ? P_ANY : P_STRANGER;
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

/* A name to begin with or after. */
static enum fault
name(struct span value, char out[DIALECT_KEY_MAX + 1], uint16_t *ret_len, const char **ret_why)
{
	bool good = value.len <= DIALECT_KEY_MAX && is_utf8(value.p, value.len);
	size_t n = good ? value.len : 0;

	memcpy(out, value.p, n);
	out[n] = 0;
	*ret_len = (uint16_t)n;
	return good ? FAULT_NONE
		    : refuse(ret_why, FAULT_BAD_ARGUMENT,
			     "A prefix or marker is longer than 1024 bytes, or is not UTF-8.");
}

/* A page may end at a key of a scality listener, which is any bytes.  The token goes out in the alphabet of
 * URLs and without padding; a client that has made it the other one, or padded it, means the same. */
static enum fault
page_cursor(struct span value, struct target *t, const char **ret_why)
{
	char text[BASE64_LEN(DIALECT_KEY_MAX + 1) + 4], bytes[DIALECT_KEY_MAX + 1];
	size_t len = 0, n = value.len;

	if (n <= BASE64_LEN(DIALECT_KEY_MAX + 1)) {
		for (size_t i = 0; i < n; i++)
			text[i] = (char)(value.p[i] == '-' ? '+' : value.p[i] == '_' ? '/' : value.p[i]);
		while (n % 4)
			text[n++] = '=';
	}
	if (n > BASE64_LEN(DIALECT_KEY_MAX + 1) || base64_decode(text, n, bytes, sizeof bytes, &len) < 0 ||
	    len < 2 || bytes[0] != CURSOR_MARK || memchr(bytes, 0, len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "The continuation token is not one of ours.");
	memcpy(t->list->after, bytes + 1, len - 1);
	t->list->after[len - 1] = 0;
	t->list->after_len = (uint16_t)(len - 1);
	t->list->have_token = true;
	return FAULT_NONE;
}

/* All begin with "response-", and the rest is the header. */
static enum fault
take_response_header(const char *key, struct span value, struct target *t, const char **ret_why)
{
	const char *header = key + sizeof "response-" - 1;

	if (value.len > RESPONSE_MAX || has_control(value.p, value.len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "A response-* value is longer than 1024 bytes, or cannot be a header's.");
	return attrs_put(t, header, strlen(header), value, ret_why);
}

static enum fault
value_is_ignored(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return FAULT_NONE;
}

static enum fault
take_list_type(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return span_is(value, "2") ? FAULT_NONE
				   : refuse(ret_why, FAULT_BAD_ARGUMENT, "list-type can only be 2.");
}

static enum fault
take_part_number(const char *key, struct span value, struct target *t, const char **ret_why)
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
take_upload_id(const char *key, struct span value, struct target *t, const char **ret_why)
{
	if (dialect_upload_id_parse(value.p, value.len, t->upload_id) < 0)
		return refuse(ret_why, FAULT_NO_SUCH_UPLOAD, "The upload id is not one of ours.");
	t->have_upload_id = true;
	return FAULT_NONE;
}

static enum fault
take_version_id(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return span_is(value, "null") ? FAULT_NONE
				      : refuse(ret_why, FAULT_NO_SUCH_VERSION,
					       "There are no versions: versionId can only be null.");
}

/* ---- where a list begins, and how it looks: prefix and delimiter, and one key after which it begins ---- */

static enum fault
take_continuation(const char *key, struct span value, struct target *t, const char **ret_why)
{
	/* Some clients send the key without a value for the first page. */
	t->list->have_empty_token = value.len == 0;
	return value.len == 0 ? FAULT_NONE : page_cursor(value, t, ret_why);
}

static enum fault
take_delimiter(const char *key, struct span value, struct target *t, const char **ret_why)
{
	struct list_query *l = t->list;
	bool good = value.len <= DIALECT_DELIMITER_MAX && is_utf8(value.p, value.len);
	size_t n = good ? value.len : 0;

	memcpy(l->delimiter, value.p, n);
	l->delimiter[n] = 0;
	l->delimiter_len = (uint8_t)n;
	return good ? FAULT_NONE
		    : refuse(ret_why, FAULT_BAD_ARGUMENT,
			     "The delimiter is longer than 63 bytes, or not UTF-8.");
}

static enum fault
take_encoding(const char *key, struct span value, struct target *t, const char **ret_why)
{
	t->list->encoding_url = span_is_nocase(value, "url");
	return t->list->encoding_url || value.len == 0
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_BAD_ARGUMENT, "encoding-type can only be url.");
}

static enum fault
take_fetch_owner(const char *key, struct span value, struct target *t, const char **ret_why)
{
	t->list->fetch_owner = span_is_nocase(value, "true");
	return t->list->fetch_owner || span_is_nocase(value, "false")
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_BAD_ARGUMENT, "fetch-owner is neither true nor false.");
}

static enum fault
take_marker(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return name(value, t->list->after, &t->list->after_len, ret_why);
}

static enum fault
take_start_after(const char *key, struct span value, struct target *t, const char **ret_why)
{
	struct list_query *l = t->list;
	enum fault f = name(value, l->start_after, &l->start_after_len, ret_why);

	l->have_start_after = l->start_after_len > 0;
	/* A continuation token outweighs it, whichever comes first. */
	if (f == FAULT_NONE && !l->have_token) {
		memcpy(l->after, l->start_after, l->start_after_len + 1u);
		l->after_len = l->start_after_len;
	}
	return f;
}

static enum fault
take_prefix(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return name(value, t->list->prefix, &t->list->prefix_len, ret_why);
}

static enum fault
take_max_buckets(const char *key, struct span value, struct target *t, const char **ret_why)
{
	enum fault f = page(value, 10000, t, ret_why);

	/* An empty page could not say where the next one begins. */
	return f == FAULT_NONE && t->list->max == 0
		       ? refuse(ret_why, FAULT_BAD_ARGUMENT, "max-buckets is not 1 or more.")
		       : f;
}

static enum fault
take_max_entries(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return page(value, DIALECT_LIST_MAX, t, ret_why);
}

static enum fault
take_part_marker(const char *key, struct span value, struct target *t, const char **ret_why)
{
	uint64_t n = 0;
	enum fault f = number(value, INT32_MAX, &n, "part-number-marker is not a number.", ret_why);

	t->list->part_number_marker = (uint32_t)n;
	return f;
}

static enum fault
take_upload_marker(const char *key, struct span value, struct target *t, const char **ret_why)
{
	/* It says nothing without a key-marker, which stands before it in the order of parameters. */
	if (value.len == 0 || t->list->after_len == 0)
		return FAULT_NONE;
	if (dialect_upload_id_parse(value.p, value.len, t->list->upload_id_marker) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "upload-id-marker is not an upload id of ours.");
	t->list->have_upload_id_marker = true;
	return FAULT_NONE;
}

static enum fault
take_version_marker(const char *key, struct span value, struct target *t, const char **ret_why)
{
	return value.len == 0 || span_is(value, "null")
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_BAD_ARGUMENT, "version-id-marker can only be null.");
}

static enum fault (*const takes[P_NR])(const char *key, struct span value, struct target *t,
				       const char **ret_why) = {
#define QUERY(id, key, kind, take) [P_##id] = take,
#include "dialect/query.def"
};

static enum op
op_of(enum method m, enum op_level level, uint64_t have)
{
	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		const struct query_shape *s = &shapes[op];

		if (op_info[op].method == m && op_info[op].level == level && (have & s->needs) == s->needs &&
		    !(have & ~(s->needs | s->may)))
			return op;
	}
	return OP_NONE;
}

uint8_t
query_allow(enum op_level level)
{
	/* A preflight is asked of every bucket and every object. */
	uint8_t allow = level != LEVEL_SERVICE ? 1 << METHOD_OPTIONS : 0;

	for (enum op op = OP_NONE + 1; op < OP_NR; op++) {
		if (op_info[op].level == level && shapes[op].needs == 0)
			allow |= (uint8_t)(1 << op_info[op].method);
	}
	return allow;
}

/* What was named but cannot be had, in words that help. */
static enum fault
no_row(enum method m, enum op_level level, uint64_t have, struct target *t, const char **ret_why)
{
	bool part = have & BIT(P_PART_NUMBER), upload = have & BIT(P_UPLOAD_ID);

	if (m == METHOD_PUT && level == LEVEL_OBJECT && part != upload)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "partNumber and uploadId go together.");
	if (have)
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "The query of the request names a subresource that is not implemented.");
	t->allow = query_allow(level);
	return refuse(ret_why, FAULT_METHOD,
		      level == LEVEL_SERVICE ? "The method is not allowed on the service itself."
					     : "The method is not allowed on this resource.");
}

/* Finds out what each parameter is, and which keys there are. */
static enum fault
classify(const struct uri *uri, enum method m, uint8_t which[DIALECT_PARAMS_MAX], uint64_t *ret_have,
	 const char **ret_why)
{
	*ret_have = 0;
	for (int i = 0; i < uri->param_nr; i++) {
		enum param p = param_of(uri_name(uri, i));

		if (p == P_SIGNS)
			return refuse(ret_why, FAULT_BAD_ARGUMENT,
				      "A query parameter of a signature is not spelled in the letters that "
				      "it has.");
		if (p == P_MISSING || (p == P_STRANGER && m != METHOD_GET && m != METHOD_HEAD))
			return refuse(
				ret_why, FAULT_NOT_IMPLEMENTED,
				"The query of the request names a subresource that is not implemented.");
		*ret_have |= BIT(p);
		which[i] = (uint8_t)p;
	}
	return FAULT_NONE;
}

enum fault
query_parse(const struct uri *uri, enum method m, enum op_level level, struct target *t, const char **ret_why)
{
	uint8_t which[DIALECT_PARAMS_MAX];
	uint64_t have;
	enum fault f;

	/* It has no parameters: decode.c has read none. */
	if (m == METHOD_OPTIONS && level != LEVEL_SERVICE) {
		t->op = OP_OPTIONS;
		return FAULT_NONE;
	}
	f = classify(uri, m, which, &have, ret_why);
	if (f != FAULT_NONE)
		return f;
	t->op = op_of(m, level, have & DECIDES);
	if (t->op == OP_NONE)
		return no_row(m, level, have & DECIDES, t, ret_why);
	t->moved = have & BIT(P_MOVED) || (have & BIT(P_SUM) && !op_pulls(t->op));
	have &= shapes[t->op].needs | shapes[t->op].may;
	f = target_get(t, op_info[t->op].parts, ret_why);
	for (int i = 0; i < uri->param_nr && f == FAULT_NONE; i++) {
		if (which[i] < P_NR && have & BIT(which[i]))
			f = takes[which[i]](keys[which[i]].name, uri_value(uri, i), t, ret_why);
		else if (which[i] == P_SUM && op_pulls(t->op))
			f = sums_from_query(uri_name(uri, i), uri_value(uri, i), t, ret_why);
	}
	return f;
}
