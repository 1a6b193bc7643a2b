/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksum headers of a PUT (protocol.md 4.6; items 44-47, 52).  See dialect.h; called by parse.c.
 *
 * With a descriptor, and of a copy, the body is empty while the object is not: SDKs then add checksums of the
 * empty string, which say nothing about the object and are dropped.
 */
#include "dialect/dialect_int.h"

#include "base/base64.h"
#include "base/hex.h"

const char *const checksum_header[SUM_NR] = {
	[SUM_CRC64NVME] = "x-amz-checksum-crc64nvme", [SUM_CRC32] = "x-amz-checksum-crc32",
	[SUM_CRC32C] = "x-amz-checksum-crc32c",       [SUM_SHA1] = "x-amz-checksum-sha1",
	[SUM_SHA256] = "x-amz-checksum-sha256",       [SUM_MD5] = "content-md5",
};

/* Length, what the empty string gives, and the sentence for a value that cannot be one. */
static const struct {
	uint8_t len;
	uint8_t of_empty[32];
	const char *algorithm, *why;
} sums[SUM_NR] = {
	[SUM_CRC64NVME] = { 8,
			    { 0 },
			    "CRC64NVME",
			    "x-amz-checksum-crc64nvme is not one base64 value of 8 bytes." },
	[SUM_CRC32] = { 4, { 0 }, "CRC32", "x-amz-checksum-crc32 is not one base64 value of 4 bytes." },
	[SUM_CRC32C] = { 4, { 0 }, "CRC32C", "x-amz-checksum-crc32c is not one base64 value of 4 bytes." },
	[SUM_SHA1] = { 20,
		       { 0xda, 0x39, 0xa3, 0xee, 0x5e, 0x6b, 0x4b, 0x0d, 0x32, 0x55,
			 0xbf, 0xef, 0x95, 0x60, 0x18, 0x90, 0xaf, 0xd8, 0x07, 0x09 },
		       "SHA1",
		       "x-amz-checksum-sha1 is not one base64 value of 20 bytes." },
	[SUM_SHA256] = { 32,
			 { 0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4,
			   0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
			   0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55 },
			 "SHA256",
			 "x-amz-checksum-sha256 is not one base64 value of 32 bytes." },
	[SUM_MD5] = { 16,
		      { 0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8,
			0x42, 0x7e },
		      NULL,
		      "Content-MD5 is not one base64 value of 16 bytes." },
};

/* "-N" after a checksum of checksums. */
static void
cut_parts(struct span *s, uint32_t *ret_parts)
{
	const char *dash = memchr(s->p, '-', s->len);
	uint64_t n;

	if (!dash || span_decimal((struct span){ dash + 1, s->len - (size_t)(dash - s->p) - 1 }, &n) < 0 ||
	    n == 0 || n > DIALECT_PARTS_MAX)
		return;
	s->len = (size_t)(dash - s->p);
	*ret_parts = (uint32_t)n;
}

static enum fault
parse_value(const struct dialect_in *in, struct target *t, enum checksum_kind k, const char **ret_why)
{
	struct checksum *c = &t->sum[k];
	size_t len = 0;
	int nr;
	const struct field *f = dialect_field(in, checksum_header[k], &nr);
	struct span s;

	if (!f)
		return FAULT_NONE;
	if (c->given)
		return refuse(ret_why, FAULT_BAD_REQUEST, "A checksum came in the query and in a header.");
	s = field_text(f);
	if (t->op == OP_COMPLETE_MULTIPART_UPLOAD)
		cut_parts(&s, &t->composite_parts);
	if (nr > 1 || base64_decode(s.p, s.len, c->value, sizeof c->value, &len) < 0 || len != sums[k].len)
		return refuse(ret_why, k == SUM_MD5 ? FAULT_INVALID_DIGEST : FAULT_BAD_REQUEST, sums[k].why);
	c->len = sums[k].len;
	c->given = true;
	if (k != SUM_MD5) {
		t->have_algorithm = true;
		t->algorithm = k;
	}
	if ((t->wire != WIRE_NONE || t->op == OP_COPY_OBJECT) &&
	    memcmp(c->value, sums[k].of_empty, len) == 0) {
		c->given = false;
		t->sums_of_empty_ignored = true;
	}
	return FAULT_NONE;
}

/*
 * SDKs that sign a URL before there is a body put the checksum of nothing into it; the user of the URL can
 * do nothing about that, so it is dropped, as with a window.
 */
enum fault
sums_from_query(struct span key, struct span value, struct target *t, const char **ret_why)
{
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		struct checksum *c = &t->sum[k];
		size_t len = 0;

		if (!span_is_nocase(key, checksum_header[k]))
			continue;
		if (c->given || base64_decode(value.p, value.len, c->value, sizeof c->value, &len) < 0 ||
		    len != sums[k].len)
			return refuse(ret_why, FAULT_BAD_REQUEST, sums[k].why);
		if (memcmp(c->value, sums[k].of_empty, len) == 0) {
			t->sums_of_empty_ignored = true;
			return FAULT_NONE;
		}
		c->len = sums[k].len;
		c->given = true;
		t->have_algorithm = true;
		t->algorithm = k;
	}
	return FAULT_NONE;
}

/* Both names are in use: S3's own, and the one that SDKs send with an upload. */
static enum fault
parse_algorithm(const struct dialect_in *in, struct target *t, const char *name, const char **ret_why)
{
	const struct field *f = dialect_field(in, name, NULL);

	if (!f)
		return FAULT_NONE;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (span_is_nocase(field_text(f), sums[k].algorithm)) {
			t->sum[k].wanted = !t->sum[k].given;
			t->have_algorithm = true;
			t->algorithm = k;
			return FAULT_NONE;
		}
	}
	return refuse(ret_why, FAULT_BAD_REQUEST, "The checksum algorithm named is not known.");
}

/* x-amz-content-sha256 speaks of the HTTP body (protocol.md 4.5, item 47). */
static enum fault
parse_payload_hash(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	struct checksum *c = &t->sum[SUM_SHA256];
	bool window = t->wire != WIRE_NONE;
	const struct field *f;
	uint8_t hash[32];
	struct span s;
	int nr;

	f = dialect_payload_hash(in, &nr);
	if (nr > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST, "x-amz-content-sha256 came more than once.");
	if (!f)
		return FAULT_NONE;
	s = field_text(f);
	if (span_is(s, "UNSIGNED-PAYLOAD"))
		return FAULT_NONE;
	/* stream.c has looked at the one, and the other has no body that anybody would look at. */
	if (t->aws_chunked || op_info[t->op].body == BODY_NONE)
		return FAULT_NONE;
	if (s.len != 64 || hex_bytes(s.p, hash, 32) < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-content-sha256 is neither UNSIGNED-PAYLOAD nor 64 hexadecimal digits.");
	if (op_info[t->op].body == BODY_TEXT) {
		t->have_body_sha256 = true;
		memcpy(t->body_sha256, hash, sizeof hash);
		return FAULT_NONE;
	}
	if (window)
		return memcmp(hash, sums[SUM_SHA256].of_empty, 32) == 0
			       ? FAULT_NONE
			       : refuse(ret_why, FAULT_SHA_MISMATCH,
					"x-amz-content-sha256 is of a body, and the request has an RDMA "
					"descriptor instead.");
	if (c->given)
		return memcmp(hash, c->value, 32) == 0
			       ? FAULT_NONE
			       : refuse(ret_why, FAULT_SHA_MISMATCH,
					"x-amz-content-sha256 and x-amz-checksum-sha256 differ.");
	c->given = true;
	/* Named as the object's checksum as well: then it is that, stored and returned (item 46). */
	c->payload_hash = !c->wanted;
	c->len = 32;
	memcpy(c->value, hash, 32);
	return FAULT_NONE;
}

/* A checksum that we cannot verify must not pass as if we had. */
static enum fault
check_unknown(const struct dialect_in *in, const char **ret_why)
{
	for (int i = 0; i < in->field_nr; i++) {
		const struct field *f = &in->fields[i];

		if (name_begins(f, "x-amz-checksum-") &&
		    !header_is_known((struct span){ f->name, f->name_len }))
			return refuse(ret_why, FAULT_NOT_IMPLEMENTED,
				      "x-amz-checksum-*: this algorithm is not implemented.");
	}
	return FAULT_NONE;
}

const char *
checksum_name(enum checksum_kind k)
{
	return sums[k].algorithm;
}

size_t
checksum_len(enum checksum_kind k)
{
	return sums[k].len;
}

/* What the algorithm can be: a CRC64 is always of the whole object, a hash never (protocol.md 4.6). */
static enum fault
parse_type(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;
	bool crc64 = t->algorithm == SUM_CRC64NVME,
	     crc = crc64 || t->algorithm == SUM_CRC32 || t->algorithm == SUM_CRC32C;
	enum fault r =
		field_one(in, "x-amz-checksum-type", "x-amz-checksum-type came more than once.", &f, ret_why);

	if (r != FAULT_NONE)
		return r;
	if (t->have_algorithm && t->op == OP_CREATE_MULTIPART_UPLOAD)
		t->checksum_type = crc64 ? SUM_TYPE_FULL_OBJECT : SUM_TYPE_COMPOSITE;
	if (!f)
		return FAULT_NONE;
	if (span_is_nocase(field_text(f), "FULL_OBJECT"))
		t->checksum_type = SUM_TYPE_FULL_OBJECT;
	else if (span_is_nocase(field_text(f), "COMPOSITE"))
		t->checksum_type = SUM_TYPE_COMPOSITE;
	else
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "x-amz-checksum-type is neither FULL_OBJECT nor COMPOSITE.");
	if (!t->have_algorithm)
		return t->op == OP_CREATE_MULTIPART_UPLOAD
			       ? refuse(ret_why, FAULT_BAD_REQUEST,
					"x-amz-checksum-type came without x-amz-checksum-algorithm.")
			       : FAULT_NONE;
	if ((t->checksum_type == SUM_TYPE_FULL_OBJECT && !crc) ||
	    (t->checksum_type == SUM_TYPE_COMPOSITE && crc64))
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "x-amz-checksum-type does not go with the checksum algorithm.");
	return FAULT_NONE;
}

/* CompleteMultipartUpload: the size that the parts must add up to. */
static enum fault
parse_object_size(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	const struct field *f;
	enum fault r = field_one(in, "x-amz-mp-object-size", "x-amz-mp-object-size came more than once.", &f,
				 ret_why);

	if (r != FAULT_NONE || !f)
		return r;
	if (span_decimal(field_text(f), &t->mp_object_size) < 0)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "x-amz-mp-object-size is not a decimal number of 64 bits.");
	t->have_mp_object_size = true;
	return FAULT_NONE;
}

enum fault
sums_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	enum fault f = check_unknown(in, ret_why);
	int algorithms = 0;

	for (enum checksum_kind k = 0; k < SUM_NR && f == FAULT_NONE; k++)
		f = parse_value(in, t, k, ret_why);
	if (f == FAULT_NONE)
		f = parse_algorithm(in, t, "x-amz-checksum-algorithm", ret_why);
	if (f == FAULT_NONE)
		f = parse_algorithm(in, t, "x-amz-sdk-checksum-algorithm", ret_why);
	if (f != FAULT_NONE)
		return f;
	for (enum checksum_kind k = 0; k < SUM_MD5; k++)
		algorithms += t->sum[k].given || t->sum[k].wanted;
	if (algorithms > 1)
		return refuse(ret_why, FAULT_BAD_REQUEST,
			      "The request names more than one checksum algorithm.");
	if (t->op == OP_CREATE_MULTIPART_UPLOAD || t->op == OP_COMPLETE_MULTIPART_UPLOAD)
		f = parse_type(in, t, ret_why);
	if (f == FAULT_NONE && t->op == OP_COMPLETE_MULTIPART_UPLOAD)
		f = parse_object_size(in, t, ret_why);
	return f == FAULT_NONE ? parse_payload_hash(in, t, ret_why) : f;
}
