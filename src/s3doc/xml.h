/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML of S3: request bodies to structs, results to text. Pure functions on whole bodies, whose size the
 * caller limits; any thread.
 *
 * Bodies are read with libxml2 as a stream of events. A document type declaration, entities other than the
 * five, nesting beyond 8, unknown elements and a wrong root are FAULT_MALFORMED_XML; no external resource is
 * ever loaded. FAULT_BUSY: no memory. *ret_why is a static sentence.
 */
#ifndef GANTRY_S3DOC_XML_H
#define GANTRY_S3DOC_XML_H

#include "dialect/dialect.h"
#include "dialect/text.h"

#define XML_DELETE_MAX 1000

/* ---- bodies ---- */

struct xml_part {
	uint16_t number; /* 1-10000, ascending */
	uint8_t etag_len;
	bool have_sum;
	enum checksum_kind sum;
	uint8_t value[32];
	char etag[64]; /* without quotes; etag_len 0: longer than any ETag of ours, matches none */
};

struct xml_complete {
	struct xml_part *parts;
	int part_nr;
};
/* Parses CompleteMultipartUpload. FAULT_INVALID_PART_ORDER too. */
enum fault xml_complete_parse(const char *body, size_t len, struct xml_complete *ret, const char **ret_why);
void xml_complete_free(struct xml_complete *c);

struct xml_delete_key {
	const char *key; /* in xml_delete.text; terminated */
	uint32_t key_len;
	enum fault fault; /* this key cannot be deleted: FAULT_KEY_TOO_LONG, FAULT_NO_SUCH_VERSION, ... */
	bool have_etag, have_size, have_mtime; /* delete only if the object has that value */
	uint8_t etag_len;
	char etag[64]; /* without quotes; "*": any */
	uint64_t size_bytes, mtime_s;
};

struct xml_delete {
	bool quiet;
	int nr; /* 1-1000 */
	struct xml_delete_key *keys;
	char *text;
};
enum fault xml_delete_parse(const char *body, size_t len, struct xml_delete *ret, const char **ret_why);
void xml_delete_free(struct xml_delete *d);

/* Parses CreateBucketConfiguration: an empty body is allowed; a location other than region (or "" and
 * "us-east-1") is FAULT_INVALID_LOCATION. NULL region: any location is allowed. Its tags for the bucket,
 * checked like those of PutBucketTagging, are appended to tags as bucket_tags_from_xml() does. */
enum fault xml_create_bucket_parse(const char *body, size_t len, const char *region, struct text *tags,
				   const char **ret_why);
/* Parses AccessControlPolicy: only the owner's FULL_CONTROL; an empty body is allowed with x-amz-acl. */
enum fault xml_acl_parse(const char *body, size_t len, const char **ret_why);
/* Parses a bucket setting and accepts the only supported value: no versions, paid for by its owner, not
 * accelerated, no notifications, no request log, no object lock, no access by tags. FAULT_NOT_IMPLEMENTED for
 * any other value. */
enum fault xml_versioning_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_payer_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_acceleration_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_notifications_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_logging_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_object_lock_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_abac_parse(const char *body, size_t len, const char **ret_why);
/* Parses ServerSideEncryptionConfiguration: AES256, or FAULT_NOT_IMPLEMENTED. */
enum fault xml_encryption_parse(const char *body, size_t len, const char **ret_why);

/* ---- answers ---- */

/* Answers an operation whose answer depends only on the region: FAULT_NONE with *out written, or the fault to
 * answer. */
enum fault dialect_canned(enum op op, const char *region, struct text *out, const char **ret_why);

/* Checksums of an object or part as elements. */
struct xml_sums {
	struct {
		bool have;
		uint8_t value[32];
	} sum[SUM_NR];
	enum checksum_type type;  /* SUM_TYPE_NONE: no ChecksumType */
	uint32_t composite_parts; /* N of "-N" after the values; 0: none */
};

struct xml_entry {
	const char *key; /* key; for a prefix: the prefix */
	size_t key_len;
	bool is_prefix;
	uint64_t size_bytes, mtime_ns; /* for an upload: the time of its start */
	const char *etag;              /* without quotes */
	size_t etag_len;
	const char *storage_class;      /* NULL: STANDARD */
	const uint8_t *upload_id;       /* of an upload: 16 bytes */
	const char *checksum_algorithm; /* "CRC64NVME" or NULL */
	enum checksum_type checksum_type;
};

/* Writes the answer of OP_LIST_OBJECTS, _V2, OP_LIST_OBJECT_VERSIONS, OP_LIST_MULTIPART_UPLOADS. end: `last`
 * is the last entry, count the number of entries. */
void xml_list_begin(struct text *x, const struct target *t);
void xml_list_entry(struct text *x, const struct target *t, const struct xml_entry *e);
void xml_list_end(struct text *x, const struct target *t, bool truncated, const struct xml_entry *last,
		  uint32_t count);

struct xml_part_entry {
	uint16_t number;
	uint64_t size_bytes, mtime_ns;
	const char *etag;
	size_t etag_len;
	const struct xml_sums *sums; /* or NULL */
};
/* Writes the answer of OP_LIST_PARTS; storage_class NULL: STANDARD; last: the highest number listed, 0 for
 * none. */
void xml_parts_begin(struct text *x, const struct target *t, const char *storage_class,
		     const char *checksum_algorithm, enum checksum_type type);
void xml_parts_entry(struct text *x, const struct xml_part_entry *e);
void xml_parts_end(struct text *x, const struct target *t, bool truncated, uint16_t last);

/* Writes the answer of ListBuckets, using list.after and list.max. */
void xml_buckets_begin(struct text *x);
void xml_buckets_entry(struct text *x, const char *name, size_t len, uint64_t ctime_ns);
void xml_buckets_end(struct text *x, const struct target *t, bool truncated, const char *last,
		     size_t last_len);

/* Writes CopyObjectResult or CopyPartResult. */
void xml_copy_result(struct text *x, enum op op, const char *etag, size_t etag_len, uint64_t mtime_ns,
		     const struct xml_sums *sums);
void xml_create_result(struct text *x, const struct target *t, const uint8_t upload_id[16]);
/* Writes CompleteMultipartUploadResult.  location: "http://host/bucket/key", already percent-encoded. */
void xml_complete_result(struct text *x, const struct target *t, const char *location, const char *etag,
			 size_t etag_len, const struct xml_sums *sums);
/* Writes PostResponse, for success_action_status 201. */
void xml_post_result(struct text *x, const struct target *t, const char *location, const char *etag,
		     size_t etag_len);

void xml_deleted_begin(struct text *x);
void xml_deleted(struct text *x, const char *key, size_t len);
void xml_not_deleted(struct text *x, const char *key, size_t len, enum fault f, const char *message);
void xml_deleted_end(struct text *x);

/* GetObjectAttributes, by t->object_attributes.  parts_total 0: the object has no parts; entries: those above
 * list.part_number_marker, at most list.max. */
struct xml_attributes {
	const char *etag;
	size_t etag_len;
	uint64_t size_bytes;
	const char *storage_class; /* NULL: STANDARD */
	const struct xml_sums *sums;
	uint32_t parts_total;
	const struct xml_part_entry *parts;
	uint32_t part_nr;
	bool truncated;
};
void xml_object_attributes(struct text *x, const struct target *t, const struct xml_attributes *a);

/* Writes the encryption of a bucket whose disks encrypt. */
void xml_encryption(struct text *x);

/* Writes an access control list with the owner's FULL_CONTROL. */
void xml_acl(struct text *x);

#endif
