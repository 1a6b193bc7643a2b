/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x-amz-copy-source and the headers that go with it.  See struct copy_source; copy_parse() is called by
 * parse.c for CopyObject and UploadPartCopy.
 */
#include "dialect/dialect_int.h"

#include <errno.h>

#define SOURCE_MAX (1 + 63 + 1 + DIALECT_KEY_MAX) /* "/bucket/key" */

/* Takes "?versionId=null" off, which is all that may follow the name. */
static enum fault
cut_version(struct span *s, const char **ret_why)
{
	struct span query = *s;

	*s = span_cut(&query, '?');
	if (s->p + s->len == query.p)
		return FAULT_NONE;
	if (!span_begins(query, "versionId="))
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-copy-source: a '?' that belongs to the key must be written %3F.");
	return span_is(query, "versionId=null")
		       ? FAULT_NONE
		       : refuse(ret_why, FAULT_NO_SUCH_VERSION,
				"x-amz-copy-source: there are no versions, versionId can only be null.");
}

/* "bucket/key" or "/bucket/key": decoded first, so that either slash may be encoded, and once; a plus is
 * one. */
static enum fault
parse_source(struct span s, struct copy_source *c, const char **ret_why)
{
	enum fault f = cut_version(&s, ret_why);
	char text[SOURCE_MAX];
	struct span bucket, key;
	int n;

	if (f != FAULT_NONE)
		return f;
	n = span_decode(s, DECODE_STRICT, text, sizeof text);
	if (n == -E2BIG)
		return refuse(ret_why, FAULT_KEY_TOO_LONG,
			      "x-amz-copy-source: the key is longer than 1024 bytes.");
	if (n < 0)
		return refuse(ret_why, FAULT_BAD_ARGUMENT,
			      "x-amz-copy-source has a bad percent sequence or a NUL.");
	key = (struct span){ text, (size_t)n };
	if (span_begins(key, "/"))
		key = (struct span){ text + 1, key.len - 1 };
	bucket = span_cut(&key, '/');
	if (!is_bucket_name(bucket.p, bucket.len))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-copy-source has no valid bucket name.");
	f = key_check(key.p, key.len, ret_why);
	if (f != FAULT_NONE)
		return f == FAULT_BAD_URI ? FAULT_BAD_ARGUMENT : f;
	memcpy(c->bucket, bucket.p, bucket.len);
	c->bucket[bucket.len] = 0;
	c->bucket_len = (uint16_t)bucket.len;
	memcpy(c->key, key.p, key.len);
	c->key[key.len] = 0;
	c->key_len = (uint16_t)key.len;
	return FAULT_NONE;
}

static enum fault
parse_directive(const struct dialect_in *in, const char *name, const char *why, enum target_directive *ret,
		const char **ret_why)
{
	const struct field *f;
	enum fault r = field_one(in, name, why, &f, ret_why);

	*ret = DIRECTIVE_COPY;
	if (r != FAULT_NONE || !f || span_is(field_text(f), "COPY"))
		return r;
	if (!span_is(field_text(f), "REPLACE"))
		return refuse(ret_why, FAULT_BAD_ARGUMENT, why);
	*ret = DIRECTIVE_REPLACE;
	return FAULT_NONE;
}

static enum fault
parse_range(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	static const char why[] = "x-amz-copy-source-range is not one bytes=first-last.";
	const struct field *f;
	enum fault r = field_one(in, "x-amz-copy-source-range", why, &f, ret_why);

	if (r != FAULT_NONE || !f)
		return r;
	if (t->op != OP_UPLOAD_PART_COPY)
		return refuse(ret_why, FAULT_BAD_ARGUMENT, "x-amz-copy-source-range is for parts only.");
	range_parse(field_text(f), &t->copy->range);
	return t->copy->range.kind == RANGE_FROM_TO ? FAULT_NONE : refuse(ret_why, FAULT_BAD_ARGUMENT, why);
}

/* Is there such a field, and does it say anything? */
static bool
names(const struct dialect_in *in, const char *name)
{
	const struct field *f = dialect_field(in, name, NULL);

	return f && field_text(f).len > 0;
}

enum fault
copy_parse(const struct dialect_in *in, struct target *t, const char **ret_why)
{
	struct copy_source *c = t->copy;
	const struct field *source;
	enum fault f;

	f = field_one(in, "x-amz-copy-source", "x-amz-copy-source came more than once.", &source, ret_why);
	if (f == FAULT_NONE)
		f = parse_source(field_text(source), c, ret_why);
	if (f == FAULT_NONE)
		f = parse_range(in, t, ret_why);
	if (f == FAULT_NONE)
		f = cond_etags(in, "x-amz-copy-source-if-match", &c->if_match, ret_why);
	if (f == FAULT_NONE)
		f = cond_etags(in, "x-amz-copy-source-if-none-match", &c->if_none_match, ret_why);
	if (f != FAULT_NONE)
		return f;
	c->have_if_modified_since =
		cond_date(in, "x-amz-copy-source-if-modified-since", &c->if_modified_since_s);
	c->have_if_unmodified_since =
		cond_date(in, "x-amz-copy-source-if-unmodified-since", &c->if_unmodified_since_s);
	if (t->op != OP_COPY_OBJECT)
		return FAULT_NONE;
	c->names_change = names(in, "x-amz-storage-class") || names(in, "x-amz-server-side-encryption");
	f = parse_directive(in, "x-amz-metadata-directive",
			    "x-amz-metadata-directive is neither one COPY nor one REPLACE.", &c->metadata,
			    ret_why);
	if (f == FAULT_NONE)
		f = parse_directive(in, "x-amz-tagging-directive",
				    "x-amz-tagging-directive is neither one COPY nor one REPLACE.",
				    &c->tagging, ret_why);
	return f;
}

enum fault
dialect_copy_conditions(const struct copy_source *c, const char *etag_text, size_t etag_len, uint64_t mtime_s)
{
	if (c->if_match.present) {
		if (!etag_list_has(&c->if_match, etag_text, etag_len))
			return FAULT_PRECONDITION;
	} else if (c->have_if_unmodified_since && mtime_s > c->if_unmodified_since_s) {
		return FAULT_PRECONDITION;
	}
	if (c->if_none_match.present)
		return etag_list_has(&c->if_none_match, etag_text, etag_len) ? FAULT_PRECONDITION
									     : FAULT_NONE;
	if (c->have_if_modified_since && mtime_s <= c->if_modified_since_s)
		return FAULT_PRECONDITION;
	return FAULT_NONE;
}
