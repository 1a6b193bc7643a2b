/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML of S3: parses request bodies into structs, and writes answers as text. Pure functions, which need the
 * complete body; the caller limits its size. Any thread may call these functions.
 *
 * libxml2 reads bodies as a stream of events. The parsers return FAULT_NONE; FAULT_MALFORMED_XML for a
 * document type declaration, an entity other than the five of XML, more than 8 levels of elements, an unknown
 * element or a wrong root; or FAULT_BUSY if there is no memory. *ret_why is a static sentence. External
 * resources are never loaded.
 */
#ifndef GANTRY_S3DOC_XML_H
#define GANTRY_S3DOC_XML_H

#include "dialect/dialect.h"
#include "dialect/text.h"

#define XML_DELETE_MAX 1000

/* ---- bodies ---- */

struct xml_part {
	uint16_t number; /* part number, 1 to 10000; the numbers ascend */
	uint8_t etag_len;
	bool have_sum;
	enum checksum_kind sum;
	uint8_t value[32];
	/* ETag without quotes; etag_len 0: the received ETag was longer than any ETag of the daemon, so it
	 * matches no part */
	char etag[64];
};

struct xml_complete {
	struct xml_part *parts;
	int part_nr;
};
/* Parses a CompleteMultipartUpload body; *ret is freed by xml_complete_free(). Returns
 * FAULT_INVALID_PART_ORDER if the part numbers do not ascend. */
enum fault xml_complete_parse(const char *body, size_t len, struct xml_complete *ret, const char **ret_why);
void xml_complete_free(struct xml_complete *c);

struct xml_delete_key {
	const char *key; /* points into xml_delete.text; ends with a NUL */
	uint32_t key_len;
	/* reason why this key cannot be deleted: FAULT_KEY_TOO_LONG, FAULT_NO_SUCH_VERSION, ...; FAULT_NONE:
	 * the key is deleted */
	enum fault fault;
	/* true: the key is deleted only if its object has this ETag, size or time of modification */
	bool have_etag, have_size, have_mtime;
	uint8_t etag_len;
	char etag[64]; /* ETag without quotes; "*": any ETag */
	uint64_t size_bytes, mtime_s;
};

struct xml_delete {
	bool quiet;
	int nr; /* number of keys, 1 to 1000 */
	struct xml_delete_key *keys;
	char *text;
};
enum fault xml_delete_parse(const char *body, size_t len, struct xml_delete *ret, const char **ret_why);
void xml_delete_free(struct xml_delete *d);

/* Parses a CreateBucketConfiguration body, or an empty body. Appends the tags of the bucket to `tags`,
 * checked and in the form of bucket_tags_from_xml(). region: the location that is allowed in addition to ""
 * and "us-east-1"; NULL: every location is allowed. Returns FAULT_INVALID_LOCATION for any other location. */
enum fault xml_create_bucket_parse(const char *body, size_t len, const char *region, struct text *tags,
				   const char **ret_why);
/* Parses an AccessControlPolicy body, which may grant nothing but FULL_CONTROL to the owner. An empty body is
 * accepted, because a request with x-amz-acl has no body. */
enum fault xml_acl_parse(const char *body, size_t len, const char **ret_why);
/* Parses the VersioningConfiguration of a bucket. The functions from xml_versioning_parse() to
 * xml_abac_parse() accept only the value that describes the daemon: no versions, the owner pays, no
 * acceleration, no notifications, no request log, no object lock, no access by tags. They return
 * FAULT_NOT_IMPLEMENTED for any other value. */
enum fault xml_versioning_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_payer_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_acceleration_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_notifications_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_logging_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_object_lock_parse(const char *body, size_t len, const char **ret_why);
enum fault xml_abac_parse(const char *body, size_t len, const char **ret_why);
/* Parses ServerSideEncryptionConfiguration. Returns FAULT_NOT_IMPLEMENTED if the algorithm is not AES256. */
enum fault xml_encryption_parse(const char *body, size_t len, const char **ret_why);

/* ---- answers ---- */

/* Writes to *out the answer of an operation that has always the same answer in a region. Returns FAULT_NONE,
 * or the fault to answer. */
enum fault dialect_canned(enum op op, const char *region, struct text *out, const char **ret_why);

/* Checksums of an object or part, for the elements of an answer. */
struct xml_sums {
	struct {
		bool have;
		uint8_t value[32];
	} sum[SUM_NR];
	enum checksum_type type; /* SUM_TYPE_NONE: the answer has no ChecksumType */
	/* number N of parts, written as "-N" after each value; 0: "-N" is not written */
	uint32_t composite_parts;
};

struct xml_entry {
	const char *key; /* key of an object or upload, or a common prefix */
	size_t key_len;
	bool is_prefix;
	uint64_t size_bytes, mtime_ns; /* mtime_ns: time of modification; of an upload: time of its start */
	const char *etag;              /* ETag without quotes */
	size_t etag_len;
	const char *storage_class;      /* storage class; NULL: STANDARD */
	const uint8_t *upload_id;       /* id of the upload, 16 bytes; NULL: not an upload */
	const char *checksum_algorithm; /* name of the algorithm, such as "CRC64NVME"; NULL: none */
	enum checksum_type checksum_type;
};

/* Writes an answer of OP_LIST_OBJECTS, OP_LIST_OBJECTS_V2, OP_LIST_OBJECT_VERSIONS or
 * OP_LIST_MULTIPART_UPLOADS: the beginning (xml_list_begin()), each entry, and the end. last: the last entry;
 * count: number of entries. */
void xml_list_begin(struct text *x, const struct target *t);
void xml_list_entry(struct text *x, const struct target *t, const struct xml_entry *e);
void xml_list_end(struct text *x, const struct target *t, bool truncated, const struct xml_entry *last,
		  uint32_t count);

struct xml_part_entry {
	uint16_t number;
	uint64_t size_bytes, mtime_ns;
	const char *etag;
	size_t etag_len;
	const struct xml_sums *sums; /* checksums of the part; NULL: none */
};
/* Writes an answer of OP_LIST_PARTS: the beginning (xml_parts_begin()), an entry for each part, and the end.
 * storage_class NULL: STANDARD. last: the highest part number in the answer; 0: the answer has no part. */
void xml_parts_begin(struct text *x, const struct target *t, const char *storage_class,
		     const char *checksum_algorithm, enum checksum_type type);
void xml_parts_entry(struct text *x, const struct xml_part_entry *e);
void xml_parts_end(struct text *x, const struct target *t, bool truncated, uint16_t last);

/* Writes an answer of ListBuckets: the beginning (xml_buckets_begin()), an entry for each bucket, and the
 * end. xml_buckets_end() uses after and max of t->list; last: name of the last bucket. */
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
/* Writes a PostResponse, the answer to a form with success_action_status 201. */
void xml_post_result(struct text *x, const struct target *t, const char *location, const char *etag,
		     size_t etag_len);

void xml_deleted_begin(struct text *x);
void xml_deleted(struct text *x, const char *key, size_t len);
void xml_not_deleted(struct text *x, const char *key, size_t len, enum fault f, const char *message);
void xml_deleted_end(struct text *x);

/* The content of an answer of GetObjectAttributes; t->object_attributes selects the elements that are
 * written. parts_total: number of parts of the object, 0: no parts. parts: the parts in this answer, part_nr
 * of them, at most t->list->max; their part numbers are above t->list->part_number_marker. */
struct xml_attributes {
	const char *etag;
	size_t etag_len;
	uint64_t size_bytes;
	const char *storage_class; /* storage class; NULL: STANDARD */
	const struct xml_sums *sums;
	uint32_t parts_total;
	const struct xml_part_entry *parts;
	uint32_t part_nr;
	bool truncated;
};
void xml_object_attributes(struct text *x, const struct target *t, const struct xml_attributes *a);

/* Writes the encryption setting of a bucket, AES256. Called if the operator has declared that the disks
 * encrypt (s3.encrypted_below). */
void xml_encryption(struct text *x);

/* Writes an access control list with the owner's FULL_CONTROL. */
void xml_acl(struct text *x);

#endif
