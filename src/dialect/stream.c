/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies in aws-chunked frames: what the headers say of them.  The frames are auth/'s to take apart.  Called
 * by parse.c for bodies that are objects or XML.
 *
 * Such a body is announced by "Content-Encoding: aws-chunked", by a STREAMING- x-amz-content-sha256, or by
 * both; to store the frames as the object would be the worst of outcomes, so either is enough, unless the hash
 * of a plain body says that there are none: the bytes are compared with it.
 */
#include "dialect/dialect_int.h"

/* "aws-chunked" anywhere in the list. */
static bool
coding_says_so(const struct dialect_in *in)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];
		struct span list = { f->value, f->value_len };

		if (!name_is(f, "content-encoding"))
			continue;
		while (list.len) {
			if (span_is_nocase(span_trim(span_cut(&list, ',')), "aws-chunked"))
				return true;
		}
	}
	return false;
}

static enum fault
parse_trailer(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;
	enum fault r = field_one(in, "x-amz-trailer", "x-amz-trailer came more than once.", &f, ret_why);

	if (r != FAULT_NONE || !f || field_text(f).len == 0)
		return r;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (span_is_nocase(field_text(f), checksum_header[k])) {
			t->have_trailer = true;
			t->trailer = k;
			/* Of these bytes; on a completion the other checksums are the object's. */
			if (op_info[t->op].body == BODY_TEXT)
				return FAULT_NONE;
			t->sum[k].wanted = !t->sum[k].given;
			t->have_algorithm = true;
			t->algorithm = k;
			return FAULT_NONE;
		}
	}
	return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
		      "x-amz-trailer names something else than one checksum we know.");
}

enum fault
stream_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f = dialect_payload_hash(in, NULL), *length;
	struct span sha = f ? field_text(f) : (struct span){ "", 0 };
	bool streaming = sha.len >= 10 && memcmp(sha.p, "STREAMING-", 10) == 0;
	bool coding = coding_says_so(in), plain, trailer;
	enum fault r;

	if (streaming && !span_is(sha, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") &&
	    !span_is(sha, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER") &&
	    !span_is(sha, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"))
		return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
			      "x-amz-content-sha256: this kind of streaming payload is not implemented.");
	f = dialect_field(in, "x-amz-trailer", NULL);
	trailer = f && field_text(f).len;
	if (t->wire != WIRE_NONE && (streaming || coding || trailer))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "A body in aws-chunked frames and an RDMA descriptor came together.");
	if (trailer && !streaming && !coding)
		return refuse(ret_why, FAULT_BAD_REQUEST, "x-amz-trailer came without a body that has one.");
	/* The hash of a plain body is of the bytes as they come, whatever a program has said of their encoding. */
	plain = sha.len && !streaming && !span_is(sha, "UNSIGNED-PAYLOAD");
	if (coding && plain && (trailer || dialect_field(in, "x-amz-decoded-content-length", NULL)))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The body is announced in aws-chunked frames, and x-amz-content-sha256 is of a "
			      "plain body.");
	t->aws_chunked = streaming || (coding && !plain);
	if (!t->aws_chunked)
		return FAULT_NONE;
	r = field_one(in, "x-amz-decoded-content-length", "x-amz-decoded-content-length came more than once.",
		      &length, ret_why);
	if (r != FAULT_NONE)
		return r;
	if (length) {
		if (span_decimal(field_text(length), &t->decoded_length) < 0)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "x-amz-decoded-content-length is not a decimal number of 64 bits.");
		t->have_decoded_length = true;
		if (t->have_content_length && t->decoded_length > t->content_length)
			return refuse(ret_why, FAULT_BAD_REQUEST,
				      "x-amz-decoded-content-length is more than Content-Length.");
	}
	return parse_trailer(in, t, ret_why);
}
