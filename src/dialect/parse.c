/*
 * From a request as it came to a struct target, in the order in which an answer may depend on it: which
 * descriptor (it decides how errors look), the door guard, what is meant, what is asked for beyond that.  See
 * dialect.h.
 */
#include "dialect/dialect_int.h"

#define CREATE_BODY_MAX (64u << 10) /* a CreateBucketConfiguration; read and ignored */

static bool
is_s3(const struct dialect_in *in)
{
	return in->listen->dialect == DIALECT_S3;
}

/* "aws-chunked" anywhere in the list: the body is not the object's bytes. */
static bool
is_aws_chunked(const struct dialect_in *in)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];
		const char *p = f->value, *end = p + f->value_len;

		if (!name_is(f, "content-encoding"))
			continue;
		while (p < end) {
			const char *comma = memchr(p, ',', (size_t)(end - p));
			const char *stop = comma ? comma : end;
			struct field part = { .value = p, .value_len = (uint32_t)(stop - p) };

			if (span_is_nocase(field_text(&part), "aws-chunked"))
				return true;
			p = comma ? comma + 1 : end;
		}
	}
	return false;
}

/* The body of a PUT: in the window, or in HTTP with its end known, never both (4.3, 4.4; items 39, 40). */
static enum fault
parse_put(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	bool window = t->wire != WIRE_NONE;
	enum fault f;

	if (is_s3(in) && dialect_field(in, "x-amz-copy-source", NULL))
		return window ? refuse(ret_why, FAULT_BAD_REQUEST,
				       "x-amz-copy-source and an RDMA descriptor came together.")
			      : refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				       "x-amz-copy-source: copying is not implemented.");
	if (dialect_field(in, "content-range", NULL))
		return refuse(ret_why, FAULT_BAD_REQUEST, "Content-Range: a PUT stores whole objects only.");
	if (window && t->chunked)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "Transfer-Encoding and an RDMA descriptor came together.");
	if (window && t->content_length > 0)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A body and an RDMA descriptor came together.");
	if (!window && !t->chunked && !t->have_content_length)
		return refuse(ret_why, FAULT_LENGTH_REQUIRED, "Content-Length is missing.");
	if (is_aws_chunked(in))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "Content-Encoding: aws-chunked is not implemented.");
	f = is_s3(in) ? sums_parse(in, t, ret_why) : FAULT_NONE;
	return f == FAULT_NONE ? attrs_parse(in, t, ret_why) : f;
}

static enum fault
check_body(struct target *t, const char **ret_why)
{
	if (t->op == OP_CREATE_BUCKET) {
		if (t->chunked)
			return refuse(ret_why, FAULT_LENGTH_REQUIRED,
				      "A bucket's configuration needs a Content-Length.");
		if (t->content_length > CREATE_BODY_MAX)
			return refuse(ret_why, FAULT_TOO_LARGE,
				      "The bucket's configuration is larger than 64 KiB.");
		return FAULT_NONE;
	}
	if (t->chunked || t->content_length > 0)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A body came with a method that takes none.");
	return FAULT_NONE;
}

static enum fault
parse_op(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;
	int nr;

	if (t->op == OP_PUT_OBJECT)
		return parse_put(in, t, ret_why);
	if (t->op == OP_GET_OBJECT) {
		f = dialect_field(in, "range", &nr);
		/* Several ranges, in one header or in two, are not served: the whole object (4.3). */
		if (f && nr == 1)
			range_parse(field_text(f), &t->range);
	}
	return check_body(t, ret_why);
}

enum fault
dialect_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const char *wire_why = "";
	const struct field *agent, *mode;
	enum fault f, wire_fault;

	memset(t, 0, offsetof(struct target, attrs));
	t->attrs_len = 0;
	*ret_why = "";
	if (in->field_nr > DIALECT_FIELDS_MAX)
		return refuse(ret_why, FAULT_HEADERS_TOO_LARGE,
			      "The request has more than 128 header fields.");
	wire_fault = wire_find(in, t, &wire_why);
	f = fields_door(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (wire_fault != FAULT_NONE)
		return refuse(ret_why, wire_fault, wire_why);
	f = uri_parse(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	if (t->op != OP_PUT_OBJECT && t->op != OP_GET_OBJECT)
		t->wire = WIRE_NONE;
	if (t->wire == WIRE_META && !in->rdma->meta_token)
		return refuse(ret_why, FAULT_RDMA_NOT_SUPPORTED,
			      "x-amz-meta-rdma-token is not served (rdma.meta_token is off).");
	if (is_s3(in))
		f = refused_check(in, ret_why);
	if (f == FAULT_NONE)
		f = parse_op(in, t, ret_why);
	if (f == FAULT_NONE)
		f = cond_parse(in, t, ret_why);
	if (f != FAULT_NONE)
		return f;
	agent = dialect_field(in, "x-amz-rdma-agent", NULL);
	t->rdma_agent_cuobj = t->wire != WIRE_NONE && agent && span_is(field_text(agent), "cuobj");
	mode = dialect_field(in, "x-amz-checksum-mode", NULL);
	t->checksum_mode = mode && span_is_nocase(field_text(mode), "enabled");
	return FAULT_NONE;
}
