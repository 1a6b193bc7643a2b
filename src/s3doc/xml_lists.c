/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as XML: objects, versions, uploads, parts, buckets.  See xml.h; called by req/. */
#include "s3doc/xml_int.h"

#include "base/check.h"

#define TOKEN_MARK "\1" /* as query.c reads it */

/* A name: percent-encoded where the client asked for it, since XML cannot carry every byte. */
static void
put_name(struct text *x, const struct target *t, const char *element, const char *p, size_t len)
{
	if (!t->list->encoding_url) {
		text_element(x, element, p, len);
		return;
	}
	text_fmt(x, "<%s>", element);
	text_url(x, p, len, true);
	text_fmt(x, "</%s>", element);
}

static void
put_owner(struct text *x, const char *element)
{
	text_fmt(x, "<%s><ID>" DIALECT_OWNER "</ID><DisplayName>" DIALECT_OWNER "</DisplayName></%s>",
		 element, element);
}

static void
put_bool(struct text *x, const char *element, bool v)
{
	text_element_str(x, element, v ? "true" : "false");
}

static const char *
type_text(enum checksum_type type)
{
	return type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT";
}

static const char *
root_of(enum op op)
{
	switch (op) {
	case OP_LIST_OBJECT_VERSIONS:
		return "ListVersionsResult";
	case OP_LIST_MULTIPART_UPLOADS:
		return "ListMultipartUploadsResult";
	default:
		return "ListBucketResult";
	}
}

static void
put_token(struct text *x, const char *element, const char *after, size_t len)
{
	char bytes[DIALECT_KEY_MAX + 1] = TOKEN_MARK;

	check(len <= DIALECT_KEY_MAX);
	memcpy(bytes + 1, after, len);
	text_fmt(x, "<%s>", element);
	text_base64url(x, bytes, len + 1);
	text_fmt(x, "</%s>", element);
}

/* Where this page begins, as the client said it. */
static void
put_start(struct text *x, const struct target *t)
{
	const struct list_query *l = t->list;
	char id[DIALECT_UPLOAD_ID_LEN + 1] = "";

	switch (t->op) {
	case OP_LIST_OBJECTS:
		put_name(x, t, "Marker", l->after, l->after_len);
		break;
	case OP_LIST_OBJECTS_V2:
		if (l->have_token)
			put_token(x, "ContinuationToken", l->after, l->after_len);
		else if (l->have_empty_token)
			text_element_str(x, "ContinuationToken", "");
		if (l->have_start_after)
			put_name(x, t, "StartAfter", l->start_after, l->start_after_len);
		break;
	case OP_LIST_OBJECT_VERSIONS:
		put_name(x, t, "KeyMarker", l->after, l->after_len);
		text_str(x, "<VersionIdMarker></VersionIdMarker>");
		break;
	default:
		put_name(x, t, "KeyMarker", l->after, l->after_len);
		if (l->have_upload_id_marker)
			dialect_upload_id_text(l->upload_id_marker, id);
		text_element_str(x, "UploadIdMarker", id);
		break;
	}
}

void
xml_list_begin(struct text *x, const struct target *t)
{
	const struct list_query *l = t->list;
	bool uploads = t->op == OP_LIST_MULTIPART_UPLOADS;

	check(l && t->bucket_len > 0);
	text_fmt(x, XML_DECL "<%s xmlns=\"" XML_NS "\">", root_of(t->op));
	text_element(x, uploads ? "Bucket" : "Name", t->bucket, t->bucket_len);
	put_name(x, t, "Prefix", l->prefix, l->prefix_len);
	if (l->delimiter_len)
		put_name(x, t, "Delimiter", l->delimiter, l->delimiter_len);
	put_start(x, t);
	text_element_u64(x, uploads ? "MaxUploads" : "MaxKeys", l->max);
	if (l->encoding_url)
		text_element_str(x, "EncodingType", "url");
}

static void
put_upload(struct text *x, const struct target *t, const struct xml_entry *e)
{
	char id[DIALECT_UPLOAD_ID_LEN + 1];

	check(e->upload_id);
	dialect_upload_id_text(e->upload_id, id);
	text_str(x, "<Upload>");
	put_name(x, t, "Key", e->key, e->key_len);
	text_element_str(x, "UploadId", id);
	put_owner(x, "Initiator");
	put_owner(x, "Owner");
	text_element_str(x, "StorageClass", e->storage_class ? e->storage_class : "STANDARD");
	text_element_time(x, "Initiated", e->mtime_ns);
	if (e->checksum_algorithm) {
		text_element_str(x, "ChecksumAlgorithm", e->checksum_algorithm);
		text_element_str(x, "ChecksumType", type_text(e->checksum_type));
	}
	text_str(x, "</Upload>");
}

static void
put_object(struct text *x, const struct target *t, const struct xml_entry *e)
{
	bool versions = t->op == OP_LIST_OBJECT_VERSIONS;

	text_str(x, versions ? "<Version>" : "<Contents>");
	put_name(x, t, "Key", e->key, e->key_len);
	if (versions)
		text_str(x, "<VersionId>null</VersionId><IsLatest>true</IsLatest>");
	text_element_time(x, "LastModified", e->mtime_ns);
	xml_etag_put(x, e->etag, e->etag_len);
	if (e->checksum_algorithm) {
		text_element_str(x, "ChecksumAlgorithm", e->checksum_algorithm);
		if (e->checksum_type != SUM_TYPE_NONE)
			text_element_str(x, "ChecksumType", type_text(e->checksum_type));
	}
	text_element_u64(x, "Size", e->size_bytes);
	if (t->op != OP_LIST_OBJECTS_V2 || t->list->fetch_owner)
		put_owner(x, "Owner");
	text_element_str(x, "StorageClass", e->storage_class ? e->storage_class : "STANDARD");
	text_str(x, versions ? "</Version>" : "</Contents>");
}

void
xml_list_entry(struct text *x, const struct target *t, const struct xml_entry *e)
{
	check(e->key_len > 0 && e->key_len <= DIALECT_KEY_MAX);
	if (e->is_prefix) {
		text_str(x, "<CommonPrefixes>");
		put_name(x, t, "Prefix", e->key, e->key_len);
		text_str(x, "</CommonPrefixes>");
	} else if (t->op == OP_LIST_MULTIPART_UPLOADS) {
		put_upload(x, t, e);
	} else {
		put_object(x, t, e);
	}
}

void
xml_list_end(struct text *x, const struct target *t, bool truncated, const struct xml_entry *last,
	     uint32_t count)
{
	char id[DIALECT_UPLOAD_ID_LEN + 1] = "";

	check(count <= t->list->max && (count == 0) == !last);
	put_bool(x, "IsTruncated", truncated);
	if (t->op == OP_LIST_OBJECTS_V2)
		text_element_u64(x, "KeyCount", count);
	if (truncated && last) {
		switch (t->op) {
		case OP_LIST_OBJECTS:
			put_name(x, t, "NextMarker", last->key, last->key_len);
			break;
		case OP_LIST_OBJECTS_V2:
			put_token(x, "NextContinuationToken", last->key, last->key_len);
			break;
		case OP_LIST_OBJECT_VERSIONS:
			put_name(x, t, "NextKeyMarker", last->key, last->key_len);
			text_str(x, "<NextVersionIdMarker>null</NextVersionIdMarker>");
			break;
		default:
			put_name(x, t, "NextKeyMarker", last->key, last->key_len);
			if (last->upload_id && !last->is_prefix)
				dialect_upload_id_text(last->upload_id, id);
			text_element_str(x, "NextUploadIdMarker", id);
			break;
		}
	}
	text_fmt(x, "</%s>", root_of(t->op));
}

/* ---- parts ---- */

void
xml_parts_begin(struct text *x, const struct target *t, const char *storage_class,
		const char *checksum_algorithm, enum checksum_type type)
{
	char id[DIALECT_UPLOAD_ID_LEN + 1];

	dialect_upload_id_text(t->upload_id, id);
	text_str(x, XML_DECL "<ListPartsResult xmlns=\"" XML_NS "\">");
	text_element(x, "Bucket", t->bucket, t->bucket_len);
	put_name(x, t, "Key", t->key, t->key_len);
	text_element_str(x, "UploadId", id);
	put_owner(x, "Initiator");
	put_owner(x, "Owner");
	text_element_str(x, "StorageClass", storage_class ? storage_class : "STANDARD");
	text_element_u64(x, "PartNumberMarker", t->list->part_number_marker);
	text_element_u64(x, "MaxParts", t->list->max);
	if (t->list->encoding_url)
		text_element_str(x, "EncodingType", "url");
	if (checksum_algorithm) {
		text_element_str(x, "ChecksumAlgorithm", checksum_algorithm);
		text_element_str(x, "ChecksumType", type_text(type));
	}
}

void
xml_parts_entry(struct text *x, const struct xml_part_entry *e)
{
	check(e->number > 0 && e->number <= DIALECT_PARTS_MAX);
	text_str(x, "<Part>");
	text_element_u64(x, "PartNumber", e->number);
	text_element_time(x, "LastModified", e->mtime_ns);
	xml_etag_put(x, e->etag, e->etag_len);
	text_element_u64(x, "Size", e->size_bytes);
	if (e->sums)
		xml_sums_put(x, e->sums);
	text_str(x, "</Part>");
}

void
xml_parts_end(struct text *x, const struct target *t, bool truncated, uint16_t last)
{
	check(last <= DIALECT_PARTS_MAX);
	put_bool(x, "IsTruncated", truncated);
	if (truncated)
		text_element_u64(x, "NextPartNumberMarker", last);
	text_str(x, "</ListPartsResult>");
}

/* ---- buckets ---- */

void
xml_buckets_begin(struct text *x)
{
	text_str(x, XML_DECL "<ListAllMyBucketsResult xmlns=\"" XML_NS "\">");
	put_owner(x, "Owner");
	text_str(x, "<Buckets>");
}

void
xml_buckets_entry(struct text *x, const char *name, size_t len, uint64_t ctime_ns)
{
	check(len > 0 && len <= 63);
	text_str(x, "<Bucket>");
	text_element(x, "Name", name, len);
	text_element_time(x, "CreationDate", ctime_ns);
	text_str(x, "</Bucket>");
}

void
xml_buckets_end(struct text *x, const struct target *t, bool truncated, const char *last, size_t last_len)
{
	text_str(x, "</Buckets>");
	if (t->list->prefix_len)
		text_element(x, "Prefix", t->list->prefix, t->list->prefix_len);
	if (truncated && last)
		put_token(x, "ContinuationToken", last, last_len);
	text_str(x, "</ListAllMyBucketsResult>");
}
