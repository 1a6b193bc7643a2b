/* SPDX-License-Identifier: Apache-2.0 */
/* Results of single operations as XML, and the answers that never vary.  See xml.h; called by req/. */
#include "s3doc/xml_int.h"

#include "base/check.h"

static const char *const sum_element[SUM_NR] = {
	[SUM_CRC64NVME] = "ChecksumCRC64NVME", [SUM_CRC32] = "ChecksumCRC32",
	[SUM_CRC32C] = "ChecksumCRC32C",       [SUM_SHA1] = "ChecksumSHA1",
	[SUM_SHA256] = "ChecksumSHA256",
};

void
xml_sums_put(struct text *x, const struct xml_sums *s)
{
	bool any = false;

	check(s->composite_parts <= DIALECT_PARTS_MAX);
	for (enum checksum_kind k = 0; k < SUM_MD5; k++) {
		if (!s->sum[k].have)
			continue;
		any = true;
		text_fmt(x, "<%s>", sum_element[k]);
		text_base64(x, s->sum[k].value, checksum_len(k));
		if (s->composite_parts)
			text_fmt(x, "-%u", s->composite_parts);
		text_fmt(x, "</%s>", sum_element[k]);
	}
	if (any && s->type != SUM_TYPE_NONE)
		text_element_str(x, "ChecksumType",
				 s->type == SUM_TYPE_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT");
}

void
xml_etag_put(struct text *x, const char *etag, size_t len)
{
	text_str(x, "<ETag>&quot;");
	text_xml(x, etag, len);
	text_str(x, "&quot;</ETag>");
}

void
xml_copy_result(struct text *x, enum op op, const char *etag, size_t etag_len, uint64_t mtime_ns,
		const struct xml_sums *sums)
{
	const char *root = op == OP_UPLOAD_PART_COPY ? "CopyPartResult" : "CopyObjectResult";

	check(op == OP_UPLOAD_PART_COPY || op == OP_COPY_OBJECT);
	text_fmt(x, XML_DECL "<%s xmlns=\"" XML_NS "\">", root);
	text_element_time(x, "LastModified", mtime_ns);
	xml_etag_put(x, etag, etag_len);
	if (sums)
		xml_sums_put(x, sums);
	text_fmt(x, "</%s>", root);
}

void
xml_create_result(struct text *x, const struct target *t, const uint8_t upload_id[16])
{
	char id[DIALECT_UPLOAD_ID_LEN + 1];

	dialect_upload_id_text(upload_id, id);
	text_str(x, XML_DECL "<InitiateMultipartUploadResult xmlns=\"" XML_NS "\">");
	text_element(x, "Bucket", t->bucket, t->bucket_len);
	text_element(x, "Key", t->key, t->key_len);
	text_element_str(x, "UploadId", id);
	text_str(x, "</InitiateMultipartUploadResult>");
}

void
xml_complete_result(struct text *x, const struct target *t, const char *location, const char *etag,
		    size_t etag_len, const struct xml_sums *sums)
{
	text_str(x, XML_DECL "<CompleteMultipartUploadResult xmlns=\"" XML_NS "\">");
	text_element_str(x, "Location", location);
	text_element(x, "Bucket", t->bucket, t->bucket_len);
	text_element(x, "Key", t->key, t->key_len);
	xml_etag_put(x, etag, etag_len);
	if (sums)
		xml_sums_put(x, sums);
	text_str(x, "</CompleteMultipartUploadResult>");
}

void
xml_post_result(struct text *x, const struct target *t, const char *location, const char *etag,
		size_t etag_len)
{
	text_str(x, XML_DECL "<PostResponse>");
	text_element_str(x, "Location", location);
	text_element(x, "Bucket", t->bucket, t->bucket_len);
	text_element(x, "Key", t->key, t->key_len);
	xml_etag_put(x, etag, etag_len);
	text_str(x, "</PostResponse>");
}

void
xml_deleted_begin(struct text *x)
{
	text_str(x, XML_DECL "<DeleteResult xmlns=\"" XML_NS "\">");
}

void
xml_deleted(struct text *x, const char *key, size_t len)
{
	text_str(x, "<Deleted>");
	text_element(x, "Key", key, len);
	text_str(x, "</Deleted>");
}

void
xml_not_deleted(struct text *x, const char *key, size_t len, enum fault f, const char *message)
{
	check(f != FAULT_NONE);
	text_str(x, "<Error>");
	text_element(x, "Key", key, len);
	text_element_str(x, "Code", fault_info(f)->code);
	text_element_str(x, "Message", message && *message ? message : fault_info(f)->message);
	text_str(x, "</Error>");
}

void
xml_deleted_end(struct text *x)
{
	text_str(x, "</DeleteResult>");
}

static void
put_object_parts(struct text *x, const struct target *t, const struct xml_attributes *a)
{
	check(t->list && a->part_nr <= a->parts_total && a->parts_total <= DIALECT_PARTS_MAX);
	text_str(x, "<ObjectParts>");
	text_element_u64(x, "PartsCount", a->parts_total);
	text_element_u64(x, "PartNumberMarker", t->list->part_number_marker);
	text_element_u64(x, "NextPartNumberMarker", a->part_nr ? a->parts[a->part_nr - 1].number : 0);
	text_element_u64(x, "MaxParts", t->list->max);
	text_element_str(x, "IsTruncated", a->truncated ? "true" : "false");
	for (uint32_t i = 0; i < a->part_nr; i++) {
		text_str(x, "<Part>");
		text_element_u64(x, "PartNumber", a->parts[i].number);
		text_element_u64(x, "Size", a->parts[i].size_bytes);
		if (a->parts[i].sums)
			xml_sums_put(x, a->parts[i].sums);
		text_str(x, "</Part>");
	}
	text_str(x, "</ObjectParts>");
}

void
xml_object_attributes(struct text *x, const struct target *t, const struct xml_attributes *a)
{
	text_str(x, XML_DECL "<GetObjectAttributesResponse xmlns=\"" XML_NS "\">");
	/* Here, and only here, the ETag has no quotes. */
	if (t->object_attributes & ATTR_ETAG)
		text_element(x, "ETag", a->etag, a->etag_len);
	if (t->object_attributes & ATTR_CHECKSUM && a->sums) {
		text_str(x, "<Checksum>");
		xml_sums_put(x, a->sums);
		text_str(x, "</Checksum>");
	}
	if (t->object_attributes & ATTR_PARTS && a->parts_total)
		put_object_parts(x, t, a);
	if (t->object_attributes & ATTR_STORAGE_CLASS)
		text_element_str(x, "StorageClass", a->storage_class ? a->storage_class : "STANDARD");
	if (t->object_attributes & ATTR_SIZE)
		text_element_u64(x, "ObjectSize", a->size_bytes);
	text_str(x, "</GetObjectAttributesResponse>");
}

void
xml_acl(struct text *x)
{
	text_str(x, XML_DECL
		 "<AccessControlPolicy xmlns=\"" XML_NS "\">"
		 "<Owner><ID>gantry</ID><DisplayName>gantry</DisplayName></Owner>"
		 "<AccessControlList><Grant>"
		 "<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
		 "xsi:type=\"CanonicalUser\"><ID>gantry</ID><DisplayName>gantry</DisplayName></Grantee>"
		 "<Permission>FULL_CONTROL</Permission></Grant></AccessControlList></AccessControlPolicy>");
}

#define NONE_OF_THEM "<IsTruncated>false</IsTruncated>"
#define NO_LOCK                                                                                              \
	{                                                                                                    \
		.fault = FAULT_BAD_REQUEST, .why = "The bucket has no object lock configuration."            \
	}

enum fault
dialect_canned(enum op op, const char *region, struct text *out, const char **ret_why)
{
	static const struct {
		const char *element, *inside;
		enum fault fault;
		const char *why;
	} rows[OP_NR] = {
		[OP_GET_BUCKET_VERSIONING] = { "VersioningConfiguration", "" },
		[OP_GET_BUCKET_LOGGING] = { "BucketLoggingStatus", "" },
		[OP_GET_BUCKET_NOTIFICATION] = { "NotificationConfiguration", "" },
		[OP_GET_BUCKET_ACCELERATE] = { "AccelerateConfiguration", "" },
		[OP_GET_BUCKET_REQUEST_PAYMENT] = { "RequestPaymentConfiguration",
						    "<Payer>BucketOwner</Payer>" },
		[OP_GET_BUCKET_ABAC] = { "AbacStatus", "<Status>Disabled</Status>" },
		[OP_GET_BUCKET_POLICY] = { .fault = FAULT_NO_SUCH_POLICY },
		[OP_GET_BUCKET_POLICY_STATUS] = { .fault = FAULT_NO_SUCH_POLICY },
		[OP_GET_BUCKET_WEBSITE] = { .fault = FAULT_NO_SUCH_WEBSITE },
		[OP_GET_BUCKET_REPLICATION] = { .fault = FAULT_NO_SUCH_REPLICATION },
		[OP_GET_OBJECT_LOCK] = { .fault = FAULT_NO_SUCH_OBJECT_LOCK },
		[OP_LIST_BUCKET_ANALYTICS] = { "ListBucketAnalyticsConfigurationResult", NONE_OF_THEM },
		[OP_LIST_BUCKET_INTELLIGENT_TIERING] = { "ListBucketIntelligentTieringConfigurationsOutput",
							 NONE_OF_THEM },
		[OP_LIST_BUCKET_INVENTORY] = { "ListInventoryConfigurationsResult", NONE_OF_THEM },
		[OP_LIST_BUCKET_METRICS] = { "ListMetricsConfigurationsResult", NONE_OF_THEM },
		[OP_GET_BUCKET_ANALYTICS] = { .fault = FAULT_NO_SUCH_CONFIGURATION },
		[OP_GET_BUCKET_INTELLIGENT_TIERING] = { .fault = FAULT_NO_SUCH_CONFIGURATION },
		[OP_GET_BUCKET_INVENTORY] = { .fault = FAULT_NO_SUCH_CONFIGURATION },
		[OP_GET_BUCKET_METRICS] = { .fault = FAULT_NO_SUCH_CONFIGURATION },
		[OP_GET_OBJECT_RETENTION] = NO_LOCK,
		[OP_PUT_OBJECT_RETENTION] = NO_LOCK,
		[OP_GET_OBJECT_LEGAL_HOLD] = NO_LOCK,
		[OP_PUT_OBJECT_LEGAL_HOLD] = NO_LOCK,
	};

	check(op < OP_NR && !(rows[op].element && rows[op].fault));
	*ret_why = "";
	if (op == OP_GET_BUCKET_ACL) {
		xml_acl(out);
	} else if (op == OP_GET_BUCKET_LOCATION) {
		/* us-east-1 is the empty name. */
		text_str(out, XML_DECL "<LocationConstraint xmlns=\"" XML_NS "\">");
		if (strcmp(region, "us-east-1") != 0)
			text_xml(out, region, strlen(region));
		text_str(out, "</LocationConstraint>");
	} else if (rows[op].element) {
		text_fmt(out, XML_DECL "<%s xmlns=\"" XML_NS "\">%s</%s>", rows[op].element, rows[op].inside,
			 rows[op].element);
	} else {
		*ret_why = rows[op].why ? rows[op].why : "";
		return rows[op].fault ? rows[op].fault : FAULT_NOT_IMPLEMENTED;
	}
	return text_ok(out) ? FAULT_NONE : FAULT_BUSY;
}
