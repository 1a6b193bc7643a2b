/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request as it came to a struct target, in the order in which an answer may depend on it: which
 * descriptor (it decides how errors look), whether the head is sound, what is meant, what is asked for beyond
 * that.  See dialect.h.
 */
#include "dialect/dialect_int.h"

#define CREATE_BODY_MAX (64u << 10) /* a CreateBucketConfiguration; read and ignored */

static bool
is_s3(const struct dialect_in *in)
{
	return in->listen->dialect == DIALECT_S3;
}

/* The body of an object or a part: in the window, or in HTTP with its end known, never both (4.3, 4.4; items
 * 39, 40). */
static enum fault
parse_bytes(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	bool window = t->wire != WIRE_NONE;
	enum fault f;

	if (dialect_field(in, "content-range", NULL))
		return refuse(ret_why, FAULT_BAD_REQUEST, "Content-Range: a PUT stores whole objects only.");
	if (window && t->chunked)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Transfer-Encoding and an RDMA descriptor came together.");
	if (window && t->content_length > 0)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "A body and an RDMA descriptor came together: a request with a token has no "
			      "body, and its "
			      "Content-Length is 0.");
	if (!window && !t->chunked && !t->have_content_length)
		return refuse(ret_why, FAULT_LENGTH_REQUIRED, "Content-Length is missing.");
	f = stream_parse(in, t, ret_why);
	if (f == FAULT_NONE && !is_s3(in))
		return t->aws_chunked ? refuse(ret_why, FAULT_NOT_IMPLEMENTED,
					       "aws-chunked is not implemented in this dialect.")
				      : attrs_parse(in, t, ret_why);
	return f == FAULT_NONE ? sums_parse(in, t, ret_why) : f;
}

/* Content-MD5, x-amz-checksum-*, or one announced as a trailer; what only names an algorithm is none, and
 * so is the hash that is signed. */
static bool
has_sum(const struct target *t)
{
	for (enum checksum_kind k = 0; k < SUM_NR; k++) {
		if (t->sum[k].given && !t->sum[k].payload_hash)
			return true;
	}
	return t->have_trailer;
}

/* A text that is read whole: its length is known beforehand, and req/ has a limit for it. */
static enum fault
parse_text(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *type = dialect_field(in, "content-type", NULL);
	static const char form[] = "multipart/form-data";
	struct span s = type ? field_text(type) : (struct span){ "", 0 };
	enum fault f;

	if (op_info[t->op].body == BODY_FORM &&
	    (s.len < sizeof form - 1 || strncasecmp(s.p, form, sizeof form - 1) != 0))
		return refuse(ret_why, FAULT_PRECONDITION, "A POST to a bucket must be multipart/form-data.");
	if (t->chunked)
		return refuse(ret_why, FAULT_LENGTH_REQUIRED,
			      "The body of this request needs a Content-Length.");
	if (t->op == OP_CREATE_BUCKET && t->content_length > CREATE_BODY_MAX)
		return refuse(ret_why, FAULT_TOO_LARGE, "The bucket's configuration is larger than 64 KiB.");
	if (op_info[t->op].body == BODY_FORM)
		return FAULT_NONE;
	f = stream_parse(in, t, ret_why);
	if (f == FAULT_NONE)
		f = sums_parse(in, t, ret_why);
	if (f == FAULT_NONE && t->op == OP_DELETE_OBJECTS && !has_sum(t))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "DeleteObjects needs Content-MD5 or x-amz-checksum-*, also as a trailer.");
	return f;
}

static enum fault
parse_no_body(struct target *t, const char **ret_why)
{
	if (t->chunked || t->content_length > 0)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A body came with a method that takes none.");
	return FAULT_NONE;
}

static enum fault
parse_read(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	int nr;
	const struct field *f = dialect_field(in, "range", &nr);

	if (f && t->part_number)
		return refuse(ret_why, FAULT_BAD_REQUEST, "Range and partNumber came together.");
	/* Several ranges, in one header or in two, are not served: the whole object (4.3).  HEAD answers as GET
	 * would: S3 does, and clients find out so whether ranges work. */
	if (f && nr == 1 && (t->op == OP_GET_OBJECT || is_s3(in)))
		range_parse(field_text(f), &t->range);
	return FAULT_NONE;
}

/* x-amz-object-attributes of GetObjectAttributes: names with commas, in one header or several. */
static enum fault
parse_attributes(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	static const char *const names[] = { "ETag", "Checksum", "ObjectParts", "StorageClass",
					     "ObjectSize" };
	const struct field *f;
	uint64_t v = 0;

	for (int i = 0; i < in->field_nr; i++) {
		struct span list = { in->fields[i].value, in->fields[i].value_len };

		if (!name_is(&in->fields[i], "x-amz-object-attributes"))
			continue;
		while (list.len) {
			struct span one = span_trim(span_cut(&list, ','));
			unsigned bit = 0;

			for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
				bit |= span_is(one, names[k]) ? 1u << k : 0;
			if (!bit)
				return refuse(ret_why, FAULT_BAD_ARGUMENT,
					      "x-amz-object-attributes has a name that is not known.");
			t->object_attributes |= bit;
		}
	}
	if (!t->object_attributes)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-object-attributes is missing or empty.");
	f = dialect_field(in, "x-amz-max-parts", NULL);
	if (f && span_decimal(field_text(f), &v) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-max-parts is not a number.");
	if (f)
		t->list->max = v < DIALECT_LIST_MAX ? (uint32_t)v : DIALECT_LIST_MAX;
	f = dialect_field(in, "x-amz-part-number-marker", NULL);
	if (f && (span_decimal(field_text(f), &v) < 0 || v > INT32_MAX))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-part-number-marker is not a number.");
	t->list->part_number_marker = f ? (uint32_t)v : 0;
	return FAULT_NONE;
}

/* What an object is to carry besides its bytes. */
static enum fault
parse_carried(const struct dialect_in *in, struct target *t, bool meta, bool tags, const char **ret_why)
{
	enum fault f = FAULT_NONE;

	if (meta)
		f = attrs_parse(in, t, ret_why);
	if (f == FAULT_NONE)
		f = attrs_parse_class(in, t, ret_why);
	if (f == FAULT_NONE && tags)
		f = attrs_parse_tags(in, t, ret_why);
	return f;
}

static enum fault
parse_body(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	switch (op_info[t->op].body) {
	case BODY_OBJECT:
		return parse_bytes(in, t, ret_why);
	case BODY_TEXT:
	case BODY_FORM:
		return parse_text(in, t, ret_why);
	default:
		return parse_no_body(t, ret_why);
	}
}

/* On how many disks a new bucket is to have each object. */
static enum fault
parse_copies(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *copies;
	enum fault f =
		field_one(in, "x-gantry-copies", "x-gantry-copies came more than once.", &copies, ret_why);

	if (f != FAULT_NONE || !copies)
		return f;
	t->copies = span_is(field_text(copies), "1") ? 1 : span_is(field_text(copies), "2") ? 2 : 0;
	return t->copies ? FAULT_NONE : refuse(ret_why, FAULT_BAD_ARGUMENT, "x-gantry-copies is 1 or 2.");
}

enum fault
ttl_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	int nr;
	const struct field *f = dialect_field(in, "x-gantry-ttl", &nr);
	uint64_t s;

	if (!f)
		return FAULT_NONE;
	if (nr > 1 || span_decimal(field_text(f), &s) < 0 || s < 1 || s > DIALECT_TTL_MAX)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-gantry-ttl is a number of seconds from 1 to 315360000.");
	t->ttl_s = (uint32_t)s;
	return FAULT_NONE;
}

static enum fault
parse_op(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	enum fault f = parse_body(in, t, ret_why);

	if (f == FAULT_NONE &&
	    (t->op == OP_PUT_OBJECT || t->op == OP_COPY_OBJECT || t->op == OP_CREATE_MULTIPART_UPLOAD))
		f = ttl_parse(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	switch (t->op) {
	case OP_GET_OBJECT:
	case OP_HEAD_OBJECT:
		return parse_read(in, t, ret_why);
	case OP_CREATE_BUCKET:
		if (!is_new_bucket_name(t->bucket, t->bucket_len))
			return refuse(ret_why, FAULT_BAD_BUCKET_NAME,
				      "A label of the bucket name begins or ends with a hyphen.");
		return parse_copies(in, t, ret_why);
	case OP_GET_OBJECT_ATTRIBUTES:
		return parse_attributes(in, t, ret_why);
	case OP_PUT_OBJECT:
		return is_s3(in) ? parse_carried(in, t, true, true, ret_why) : FAULT_NONE;
	case OP_CREATE_MULTIPART_UPLOAD:
		f = sums_parse(in, t, ret_why);
		return f == FAULT_NONE ? parse_carried(in, t, true, true, ret_why) : f;
	case OP_COPY_OBJECT:
		f = copy_parse(in, t, ret_why);
		if (f == FAULT_NONE)
			f = sums_parse(in, t, ret_why);
		return f == FAULT_NONE ? parse_carried(in, t, t->copy->metadata == DIRECTIVE_REPLACE,
						       t->copy->tagging == DIRECTIVE_REPLACE, ret_why)
				       : f;
	case OP_UPLOAD_PART_COPY:
		return copy_parse(in, t, ret_why);
	default:
		return FAULT_NONE;
	}
}

/* A PUT with x-amz-copy-source is another operation. */
static enum fault
find_copy(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	if (!op_pulls(t->op) || !is_s3(in) || !dialect_field(in, "x-amz-copy-source", NULL))
		return FAULT_NONE;
	if (t->wire != WIRE_NONE)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "x-amz-copy-source and an RDMA descriptor came together.");
	t->op = t->op == OP_PUT_OBJECT ? OP_COPY_OBJECT : OP_UPLOAD_PART_COPY;
	return FAULT_NONE;
}

enum fault
dialect_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const char *wire_why = "";
	const struct field *agent, *mode;
	enum fault f, wire_fault;
	struct moved moved;
	bool window;

	memset(t, 0, offsetof(struct target, key));
	t->key[0] = 0;
	t->source = in->parts;
	*ret_why = "";
	if (in->field_nr > DIALECT_FIELDS_MAX)
		return refuse(ret_why, FAULT_HEADERS_TOO_LARGE,
			      "The request has more than 128 header fields.");
	wire_fault = dialect_is_preflight(in) ? FAULT_NONE : wire_find(in, t, &wire_why);
	f = fields_check_head(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (wire_fault != FAULT_NONE)
		return refuse(ret_why, wire_fault, wire_why);
	f = uri_parse(in, t, ret_why);
	if (f == FAULT_NONE && t->moved) {
		f = moved_find(in, t->op, &moved, ret_why);
		in = &moved.in;
	}
	if (f == FAULT_NONE)
		f = find_copy(in, t, ret_why);
	if (f == FAULT_NONE)
		f = target_get(t, op_info[t->op].parts, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (t->op == OP_OPTIONS)
		return parse_no_body(t, ret_why);
	window = t->wire != WIRE_NONE;
	if (!op_moves(t->op))
		t->wire = WIRE_NONE;
	if (is_s3(in))
		f = refused_check(in, t, ret_why);
	if (f == FAULT_NONE)
		f = parse_op(in, t, ret_why);
	/* Clients with descriptors ask so for the length of all of it (item 76). */
	if (window && t->op == OP_HEAD_OBJECT)
		t->range.kind = RANGE_NONE;
	if (f == FAULT_NONE)
		f = cond_parse(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	agent = dialect_field(in, "x-amz-rdma-agent", NULL);
	t->rdma_agent_cuobj = t->wire != WIRE_NONE && agent && span_is(field_text(agent), "cuobj");
	mode = dialect_field(in, "x-amz-checksum-mode", NULL);
	t->checksum_mode |= mode && span_is_nocase(field_text(mode), "enabled");
	return FAULT_NONE;
}
