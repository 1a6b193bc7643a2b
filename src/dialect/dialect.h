/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two dialects: the meaning of a request, and the text of its answer. Pure text, no I/O; any thread.
 * Memory is allocated only for tags, forms and XML.
 *
 * dialect_read_target() decodes the target of a request; dialect_parse() turns method, decoded target and
 * header fields into a struct target: operation, bucket, key, range, conditions, descriptor. Header
 * differences between clients are rows of one table (dialect/wire.c), not branches. protocol.md sections 2.0,
 * 3 and 4.
 */
#ifndef GANTRY_DIALECT_DIALECT_H
#define GANTRY_DIALECT_DIALECT_H

#include "base/span.h"
#include "conf/conf.h"
#include "dialect/fault.h"
#include "token/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* largest number of header fields of a request; more are FAULT_HEADERS_TOO_LARGE */
#define DIALECT_FIELDS_MAX 128
#define DIALECT_TARGET_MAX 8192 /* largest size of a request target, in bytes */
#define DIALECT_PARAMS_MAX 128  /* largest number of parameters in a query */
#define DIALECT_KEY_MAX 1024
#define DIALECT_ATTRS_MAX (12u << 10)
/* largest size of user metadata in bytes, the sum of names and values, as in S3 */
#define DIALECT_META_MAX 2048
#define DIALECT_ETAGS_MAX 8
#define DIALECT_DELIMITER_MAX 63
/* largest size of the tags of an object or bucket as text, in bytes; see dialect/tags.h */
#define DIALECT_TAGS_MAX 8192
#define DIALECT_PARTS_MAX 10000
#define DIALECT_OWNER "gantry" /* owner of every bucket, as lists and x-amz-expected-bucket-owner name it */
#define DIALECT_LIST_MAX 1000  /* default and largest number of entries on a page of a list */

struct field {
	const char *name, *value; /* texts, terminated; the lengths exclude the NUL */
	uint32_t name_len, value_len;
};

static inline bool
name_is(const struct field *f, const char *name)
{
	return span_is_nocase((struct span){ f->name, f->name_len }, name);
}

static inline bool
name_begins(const struct field *f, const char *prefix)
{
	return span_begins_nocase((struct span){ f->name, f->name_len }, prefix);
}

/* Returns the value without blanks around it. */
static inline struct span
field_text(const struct field *f)
{
	return span_trim((struct span){ f->value, f->value_len });
}

/* The large parts of a struct target, as bits. Most operations have none of them. */
enum target_part {
	TARGET_NOTHING = 0,
	TARGET_ATTRS = 1,
	TARGET_COPY = 2,
	TARGET_LIST = 4,
	TARGET_ATTRS_COPY = TARGET_ATTRS | TARGET_COPY,
	TARGET_ATTRS_LIST = TARGET_ATTRS | TARGET_LIST,
};

/* A source of memory for the parts of targets. get() returns the memory of one part, with any content, or
 * NULL if none is left: the request is then FAULT_BUSY. The memory has DIALECT_ATTRS_MAX bytes for
 * TARGET_ATTRS, and holds a struct copy_source for TARGET_COPY, a struct list_query for TARGET_LIST. */
struct target_source {
	void *(*get)(void *cookie, enum target_part part);
	void *cookie;
};

/* A parameter of a query: offsets in the text of its struct uri, decoded and terminated. */
struct uri_param {
	uint16_t name, name_len, value, value_len;
};

/*
 * A decoded request target. The daemon's actions and the signature depend on this alone.
 *
 * S3: path and parameters are decoded. Parameters are in the order of their encoded names, each name once; a
 * repeated parameter that has an effect is a fault. Scality: the path is the whole target, unchanged, and
 * there are no parameters.
 */
struct uri {
	enum fault fault; /* fault of the target; FAULT_NONE: there is none; with a fault, path and parameters
	                   * are empty */
	const char *why;
	struct span path; /* path, terminated; it begins with a slash */
	const char *text; /* text into which the parameters point */
	int param_nr;
	struct uri_param param[DIALECT_PARAMS_MAX];
};

static inline struct span
uri_name(const struct uri *uri, int i)
{
	return (struct span){ uri->text + uri->param[i].name, uri->param[i].name_len };
}

static inline struct span
uri_value(const struct uri *uri, int i)
{
	return (struct span){ uri->text + uri->param[i].value, uri->param[i].value_len };
}

/* Characters that an encoded path or query has unchanged: letters, digits and "-._~"; a path also slashes. */
extern const bool uri_unreserved[256];

/* A request as received. The caller keeps everything until the request ends. */
struct dialect_in {
	const struct conf_listen *listen;
	const struct conf_rdma *rdma;
	const struct conf_s3 *s3; /* settings of S3; NULL: no domains, so path style only */
	struct target_source parts;
	const char *method;
	const struct uri *uri; /* decoded target, from dialect_read_target() */
	const struct field *fields;
	int field_nr;
	bool http_1_0; /* true: the request line named HTTP/1.0 */
};

/* The operations OP_..., listed in op.def. */
enum op {
	OP_NONE,
#define OP(id, ...) OP_##id,
#include "dialect/op.def"
	OP_NR
};
/* names of the operations, such as "PutObject", for logs and metrics */
extern const char *const op_name[OP_NR];

enum method { METHOD_OTHER, METHOD_PUT, METHOD_GET, METHOD_HEAD, METHOD_DELETE, METHOD_POST, METHOD_OPTIONS };
enum op_level { LEVEL_SERVICE, LEVEL_BUCKET, LEVEL_OBJECT };
enum op_body {
	BODY_NONE,
	BODY_OBJECT, /* the bytes of an object or a part, from the HTTP body or the window */
	BODY_TEXT,   /* XML, which is collected completely; it can be empty if it is optional */
	BODY_FORM,   /* multipart/form-data (s3doc/form.h) */
};
/* The right that an access key needs for an operation; checked by auth_allows(). */
enum op_right {
	/* right to make or change the bucket; the strictest right, and therefore the default */
	RIGHT_BUCKET,
	/* RIGHT_BUCKET, and the right to delete the bucket, or its contents by its lifecycle rules */
	RIGHT_DELETE_BUCKET,
	RIGHT_WRITE_KEY,   /* to write the key */
	RIGHT_REPLACE_KEY, /* to change the object of the key */
	RIGHT_DELETE_KEY,  /* to remove the key */
	RIGHT_COPY,        /* right to write the key, and to read the source of the copy */
	RIGHT_READ_KEY,    /* to read the key */
	RIGHT_LIST_BUCKET, /* right to list the whole bucket, and to read its configuration */
	RIGHT_LIST_PREFIX, /* right to list the keys that begin with the requested prefix */
	RIGHT_SEE_BUCKET,  /* right to know that the bucket exists; each key is checked later */
	RIGHT_KNOWN,       /* a known access key is sufficient; each bucket is checked later */
	RIGHT_ANYBODY,     /* no right is needed when the request begins; some operations check a right
	                    * later */
};
/* The properties of an operation: its row of op.def. */
struct op_info {
	enum method method;
	enum op_level level;
	enum op_body body;
	bool writes; /* true: the operation changes something */
	enum op_right right;
	int ok;         /* HTTP status of success */
	unsigned parts; /* parts of struct target that the operation needs, as TARGET_... bits */
};
extern const struct op_info op_info[OP_NR];

/* Returns true if a descriptor can move bytes to the server for the operation; otherwise it is ignored (item
 * 77). */
static inline bool
op_pulls(enum op op)
{
	return op_info[op].body == BODY_OBJECT;
}

static inline bool
op_moves(enum op op)
{
	return op_pulls(op) || op == OP_GET_OBJECT;
}

/* The header that carried the descriptor. It determines the form of success, decline and failure (protocol.md
 * 4.1, 4.2). */
enum wire_form {
	WIRE_NONE, /* no descriptor: bytes are in the HTTP body */
#define WIRE(id, ...) WIRE_##id,
#include "dialect/wire.def"
	WIRE_NR
};

enum range_kind { RANGE_NONE, RANGE_FROM_TO, RANGE_FROM, RANGE_SUFFIX };
struct range {
	enum range_kind kind;
	uint64_t first, last; /* range of bytes; SUFFIX: the last `last` bytes */
};

/* A list of ETags as in If-Match: "*" or quoted strings, compared as text (a weak prefix is ignored). */
struct etag_list {
	bool present, any;
	int nr;
	struct {
		const char *text; /* text of the list without quotes, in the request's memory */
		uint32_t len;
	} etag[DIALECT_ETAGS_MAX];
};

enum checksum_kind { SUM_CRC64NVME, SUM_CRC32, SUM_CRC32C, SUM_SHA1, SUM_SHA256, SUM_MD5, SUM_NR };
struct checksum {
	bool given; /* true: the request has a value, which must be verified */
	/* true: the request names the checksum without a value, which must be computed and returned (item
	 * 46) */
	bool wanted;
	/* true only for x-amz-content-sha256 of a body: a mismatch is FAULT_SHA_MISMATCH, and the value is
	 * neither stored nor returned. */
	bool payload_hash;
	uint8_t value[32];
	uint8_t len;
};
/* names of the checksum headers: "x-amz-checksum-crc64nvme" to "content-md5" */
extern const char *const checksum_header[SUM_NR];

/* The way in which the checksum of a multipart object is computed (protocol.md 4.6). */
enum checksum_type { SUM_TYPE_NONE, SUM_TYPE_FULL_OBJECT, SUM_TYPE_COMPOSITE };

enum target_directive { DIRECTIVE_COPY, DIRECTIVE_REPLACE };

/* The attributes requested by GetObjectAttributes, as bits. */
enum { ATTR_ETAG = 1, ATTR_CHECKSUM = 2, ATTR_PARTS = 4, ATTR_STORAGE_CLASS = 8, ATTR_SIZE = 16 };

/* The headers about the source of a copy: x-amz-copy-source and the headers that belong to it. The source
 * object may be in any bucket: the caller checks the right with auth_may(). */
struct copy_source {
	char bucket[64];
	uint16_t bucket_len, key_len;
	/* range of UploadPartCopy: RANGE_NONE or RANGE_FROM_TO; a range beyond the source is
	 * FAULT_BAD_ARGUMENT */
	struct range range;
	struct etag_list if_match, if_none_match;
	bool have_if_modified_since, have_if_unmodified_since;
	uint64_t if_modified_since_s, if_unmodified_since_s;
	/* directives for metadata and tags; REPLACE: target.attrs has the new ones */
	enum target_directive metadata, tagging;
	/* CopyObject names a storage class or an encryption, possibly the current one: for a copy onto itself
	 * S3 requires that the request names a change, not that there is one. */
	bool names_change;
	char key[DIALECT_KEY_MAX + 1];
};

/* The subject of a list, and its first entry. Texts are decoded, terminated bytes. */
struct list_query {
	/* max-keys, max-uploads, max-parts or max-buckets, 0 to 1000; larger values count as 1000
	 * (max-buckets: 10,000) */
	uint32_t max;
	bool have_max;
	bool encoding_url, fetch_owner;
	bool have_token;       /* true: `after` is from a continuation token */
	bool have_empty_token; /* true: the request has an empty continuation token */
	bool have_start_after;
	bool have_upload_id_marker;
	/* id of an upload, with have_upload_id_marker: the list continues after this upload of key `after` */
	uint8_t upload_id_marker[16];
	/* number of a part: the list has the parts with larger numbers; also for GetObjectAttributes */
	uint32_t part_number_marker;
	uint16_t prefix_len, after_len, start_after_len;
	uint8_t delimiter_len;
	char delimiter[DIALECT_DELIMITER_MAX + 1];
	char prefix[DIALECT_KEY_MAX + 1];
	/* The list has entries whose name (for a common prefix: the prefix) sorts after this text; after_len
	 * 0: from the first entry. The text is marker, key-marker, start-after or the decoded
	 * continuation-token. */
	char after[DIALECT_KEY_MAX + 1];
	/* start-after as received; a continuation token takes precedence. */
	char start_after[DIALECT_KEY_MAX + 1];
};

struct target {
	enum op op;
	char bucket[64];
	uint16_t bucket_len;
	char key[DIALECT_KEY_MAX + 1];
	uint16_t key_len;
	bool virtual_host; /* true: the field Host named the bucket */

	struct range range;
	struct etag_list if_match, if_none_match;
	bool have_if_modified_since, have_if_unmodified_since;
	uint64_t if_modified_since_s, if_unmodified_since_s;
	/* If-Range, only together with a range: an ETag (without quotes; a weak one never matches) or a date.
	 * For dialect_conditions(). */
	bool have_if_range, if_range_is_date;
	const char *if_range_etag;
	uint32_t if_range_etag_len;
	uint64_t if_range_s;

	bool have_content_length, chunked;
	uint64_t content_length;
	bool expect_continue;
	/* The body is in aws-chunked frames, for auth_stream: indicated by Content-Encoding or by a
	 * STREAMING- x-amz-content-sha256. auth/ determines the form of the signature. */
	bool aws_chunked;
	bool have_decoded_length; /* true: decoded_length is the value of x-amz-decoded-content-length */
	uint64_t decoded_length;
	/* true: x-amz-trailer announced one checksum; for an object sum[trailer].wanted is set as well */
	bool have_trailer;
	enum checksum_kind trailer;
	struct checksum text_sum; /* checksum of a text body, with the value from the trailer (req/) */

	/* for FAULT_METHOD: bitmap of the methods that the resource supports, 1 << METHOD_ each */
	uint8_t allow;

	/* Multipart; partNumber also on GET and HEAD. */
	uint16_t part_number; /* number of a part, 1 to 10000; 0: none; on GET and HEAD as well */
	bool have_upload_id;
	/* id of an upload, with have_upload_id; an invalid text is FAULT_NO_SUCH_UPLOAD */
	uint8_t upload_id[16];
	/* type of the checksum, for CreateMultipartUpload and CompleteMultipartUpload */
	enum checksum_type checksum_type;
	/* true: x-amz-checksum-algorithm, or a value that implies an algorithm, is present */
	bool have_algorithm;
	enum checksum_kind algorithm;
	/* CompleteMultipartUpload: true: the size must equal the sum of the parts */
	bool have_mp_object_size;
	uint64_t mp_object_size;
	/* CompleteMultipartUpload: number in "-N" after the received checksum; 0: none */
	uint32_t composite_parts;

	unsigned object_attributes; /* GetObjectAttributes: requested attributes, as ATTR_ bits */
	uint8_t copies;             /* CreateBucket: x-gantry-copies; 0: absent */
	/* Text bodies: the SHA-256 given by x-amz-content-sha256 (sum[] refers to the same bytes, except for
	 * CompleteMultipartUpload, where it refers to the object). */
	bool have_body_sha256;
	uint8_t body_sha256[32];
	/* DeleteObject: true: x-amz-if-match-size, x-amz-if-match-last-modified-time are present */
	bool have_if_match_size, have_if_match_mtime;
	uint64_t if_match_size, if_match_mtime_s;
	int tag_nr; /* number of tags of this upload, which are in attrs as x-amz-tagging */

	bool moved; /* true: the query contains header fields */

	/* The name of the first unknown x-amz-* header, in the request's memory; len 0: none. It has no
	 * effect, and the answer should report it. */
	struct span unknown_header;

	enum wire_form wire;
	/* descriptor, if wire is not WIRE_NONE; valid only after dialect_token() */
	struct token token;
	bool rdma_agent_cuobj; /* true: the answer repeats x-amz-rdma-agent: cuobj (item 84) */

	struct checksum sum[SUM_NR];
	/* true: x-amz-checksum-mode is ENABLED, and the answer to HEAD, or to GET with a body, has the stored
	 * checksums */
	bool checksum_mode;
	/* for a counter, true: a checksum of the empty string came with a window (item 45) */
	bool sums_of_empty_ignored;

	/*
	 * Uploads: content headers, x-amz-meta-*, x-amz-storage-class and x-amz-tagging, packed
	 * (dialect_attrs_*). GET and HEAD: the values of response-*, under the names of the headers that they
	 * replace.
	 */
	unsigned char *attrs; /* packed attributes, DIALECT_ATTRS_MAX bytes; NULL: none, and attrs_len is 0 */
	uint32_t attrs_len;
	struct copy_source *copy; /* source of a copy; NULL for other operations */
	struct list_query *list;  /* parameters of a list; NULL for other operations */
	/* The source of attrs, copy and list. The supplier takes them back when the request has ended, in
	 * every case. */
	struct target_source source;
};

/* Gets memory for those of the given parts (bits) that the target does not have yet; copy and list are
 * cleared. Returns FAULT_NONE or FAULT_BUSY. dialect_parse() does this for the parts of the operation; a GET
 * with response-* gets attrs as well. */
enum fault target_get(struct target *t, unsigned parts, const char **ret_why);

/*
 * Reads a request target: decodes it once and in place, before any other use. target has len bytes and a NUL,
 * and belongs to uri as long as that is used. dialect_parse() reports errors of the target after errors of
 * the fields; in->uri may be unset, all other members must be set.
 */
void dialect_read_target(const struct dialect_in *in, char *target, size_t len, struct uri *uri);

/*
 * Makes a target of a request. Returns FAULT_NONE, or the fault to answer; *ret_why then points at a static
 * sentence that describes the error and its place. It also checks the head of the request: Content-Length
 * with chunked, repeated or differing Content-Length, missing or repeated Host, repeated descriptor headers,
 * a descriptor of another dialect, unknown query keys (501), and so on. Signatures: see auth/. The descriptor
 * is not decoded here.
 */
enum fault dialect_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* Decodes, after authorisation (protocol.md 4.5), the descriptor into t->token and checks it against the
 * operation. Returns FAULT_NONE, FAULT_BAD_TOKEN or another fault. A descriptor whose form is switched off is
 * not parsed, and becomes TOKEN_OFF. For operations that move no bytes the token is ignored and t->wire
 * becomes WIRE_NONE. */
enum fault dialect_token(const struct dialect_in *in, struct target *t, const char **ret_why);

/* Returns a header by lower-case name, or NULL. *ret_nr: number of its occurrences. */
const struct field *dialect_field_n(const struct dialect_in *in, const char *name, size_t len, int *ret_nr);
static inline const struct field *
dialect_field(const struct dialect_in *in, const char *name, int *ret_nr)
{
	/* The function is inline so that the compiler computes the length: a request needs about twenty of
	 * these calls. */
	return dialect_field_n(in, name, strlen(name), ret_nr);
}

/* Returns the value of a header that is a list, joining its lines if there are several (RFC 9110 5.3): the
 * non-empty ones, joined by ", " in buf. The result has p NULL if the header is absent, or cap is too small;
 * *ret_nr (may be NULL) is the number of its occurrences. */
struct span dialect_field_list(const struct dialect_in *in, const char *name, char *buf, size_t cap,
			       int *ret_nr);

/* Returns true if a GET of that form that moved fewer bytes than requested is 200, not 206 (protocol.md
 * 4.3). */
bool dialect_wire_clips(enum wire_form w);
/* Returns true if descriptors of that form come in the header of that name. */
bool dialect_wire_carries(enum wire_form w, const char *header);
/* Returns true if a header of that name carries a descriptor or belongs to one. */
bool dialect_is_wire_header(struct span name);
/* Returns true if a signed request must include that header in its signature: host, x-amz-*, x-gantry-*,
 * every header that carries a descriptor. relax: auth.require_signed_headers allows some descriptors
 * unsigned. */
bool dialect_must_sign(struct span name, bool relax);
/* Returns the reason, a static sentence, why a signed request with a descriptor of that form must also sign
 * that header, which determines which bytes move or whether any do (wire.def). Returns NULL if it need not be
 * signed. */
const char *dialect_must_sign_beside(enum wire_form w, struct span name, bool relax);

/* Returns true if the value of that header determines the source or destination of bytes, and is not only
 * stored. */
bool dialect_header_steers(struct span name);

/* Returns true if the text is a token (RFC 9110 5.6.2), the form of methods and names of fields. */
bool dialect_is_field_name(const char *text, size_t len);
/* Returns true if the text, as the value of a field, has no control character except tabs. Some parsers take
 * a lone CR for the end of a line, and NUL for the end of the text. */
bool dialect_is_text(const char *text, size_t len);

/* Returns true for a preflight request of a browser (CORS). Method, bucket, key and its three headers contain
 * the question; query, signatures, tokens and all other content are ignored. */
static inline bool
dialect_is_preflight(const struct dialect_in *in)
{
	return in->method[0] == 'O' && strcmp(in->method, "OPTIONS") == 0 &&
	       in->listen->dialect == DIALECT_S3;
}

/* Finds x-amz-content-sha256 if it has an effect. Returns NULL if it is absent, or if the URL was signed
 * without it, because then the user of the URL, who is not the signer, may have added it. A value that
 * announces frames has an effect even then, and auth/ refuses it: frames are never stored as an object. */
const struct field *dialect_payload_hash(const struct dialect_in *in, int *ret_nr);

/* Returns true if the query contains any part of a signature (X-Amz-Signature etc., also of version 2). S3
 * only; for auth/. */
bool dialect_query_signed(const struct dialect_in *in);

/* Resolves a range of an object of size bytes. Returns 0 with the bytes [*ret_off, *ret_off + *ret_len) and
 * *ret_partial; or -ERANGE (416). */
int range_resolve(const struct range *r, uint64_t size_bytes, uint64_t *ret_off, uint64_t *ret_len,
		  bool *ret_partial);

/* Returns true if the ETag text (without quotes) matches the list. */
bool etag_list_has(const struct etag_list *l, const char *etag, size_t len);

/*
 * Evaluates If-Match and the related conditions against the existing object, with the precedence of RFC 9110
 * section 13.2.2 (items 48, 69). etag_text has no quotes; NULL: there is no such object (PUT, DELETE).
 * mtime_s: time of modification in seconds since 1970. Returns FAULT_NONE if the request continues; an
 * If-Range that does not hold has removed t->range. Otherwise returns FAULT_NOT_MODIFIED (only for GET and
 * HEAD), FAULT_PRECONDITION, or FAULT_NO_SUCH_KEY (If-Match without an object).
 */
enum fault dialect_conditions(struct target *t, const char *etag_text, size_t etag_len, uint64_t mtime_s);

/* Evaluates the conditions x-amz-copy-source-if-* against the source, as AWS does: an If-Match that holds
 * takes precedence over If-Unmodified-Since, and an If-None-Match that fails over If-Modified-Since. Returns
 * FAULT_NONE or FAULT_PRECONDITION. */
enum fault dialect_copy_conditions(const struct copy_source *c, const char *etag_text, size_t etag_len,
				   uint64_t mtime_s);

/* Length of an upload id as text. The text begins with a letter that is not a digit of any base, because XML
 * parsers convert texts that may be numbers. Ids without this letter, as they were written earlier, can be
 * read, too. */
#define DIALECT_UPLOAD_ID_LEN 33
void dialect_upload_id_text(const uint8_t id[16], char out[DIALECT_UPLOAD_ID_LEN + 1]);
int dialect_upload_id_parse(const char *text, size_t len, uint8_t ret_id[16]);

/* Returns the name by which clients request an algorithm, such as "CRC64NVME"; NULL for SUM_MD5. */
const char *checksum_name(enum checksum_kind k);
/* Returns the length of a checksum in bytes. */
size_t checksum_len(enum checksum_kind k);

/* ---- stored attributes ---- */

/* A packed sequence of (name, value), written by dialect_parse(), returned on GET and HEAD. */

/* Calls fn for each pair of packed attributes. Returns 0, or -EINVAL if the bytes are damaged. */
int dialect_attrs_each(const void *attrs, size_t len,
		       void (*fn)(void *cookie, const char *name, size_t name_len, const char *value,
				  size_t value_len),
		       void *cookie);
/* Appends a pair to packed attributes, also for a checksum. Returns 0 or -ENOSPC. */
int dialect_attrs_add(unsigned char *attrs, uint32_t *len, uint32_t cap, const char *name, size_t name_len,
		      const char *value, size_t value_len);

/* Returns true if the attribute is a header for GET and HEAD. x-amz-tagging is not: it is returned as
 * x-amz-tagging-count, and by requests for tags. */
bool dialect_attr_is_header(const char *name, size_t name_len);
/* Returns the value of a packed attribute; NULL: it is absent. */
const char *dialect_attr(const void *attrs, size_t len, const char *name, size_t *ret_len);

/* ---- answers ---- */

/* Returns true if a value has bytes that are not ASCII. */
bool dialect_needs_words(const char *value, size_t len);
/* Writes a value as encoded words (RFC 2047) of at most 75 characters, and NUL; no character is split. A
 * value that is not UTF-8 is taken as Latin-1. Returns the length; 0: cap is too small. */
size_t dialect_words(const char *value, size_t len, char *out, size_t cap);

/* The standard header fields of answers, FIELD_..., listed in reply_field.def. */
enum reply_field {
#define REPLY_FIELD(id, ...) FIELD_##id,
#include "dialect/reply_field.def"
	FIELD_NR
};
/* The name of each field in the spelling of each dialect. */
extern const char *const field_name[2][FIELD_NR];
/* Finds a field by its name in lower case; FIELD_NR: not found. */
enum reply_field reply_field_find(const char *name, size_t len);

/* Writes the value of Allow for a request that was refused by FAULT_METHOD: the methods that its resource knows. */
#define DIALECT_ALLOW_BYTES 64
void dialect_allow(const struct target *t, char out[DIALECT_ALLOW_BYTES]);

/* The details of an error body, which is S3 XML or the text of Scality. Sizes and range are for a 416.
 * resource is escaped. */
struct error_detail {
	const char *message; /* message; NULL: the message of the fault */
	const char *request_id;
	const char *resource;
	size_t resource_len;
	bool have_size;
	uint64_t size_bytes;    /* size of the object, for <ActualObjectSize> */
	const char *range_text; /* range of the request, for <RangeRequested> */
	const char *region;     /* region that signatures must name, for <Region> */
	/* texts for <StringToSign> and <CanonicalRequest>, if there is room; NULL: none */
	const char *to_sign, *canonical;
	size_t canonical_len;
};
size_t dialect_error_body(enum conf_dialect d, enum fault f, const struct error_detail *e, char *out,
			  size_t cap);

/* The form of an outcome in the answer, for each wire form (protocol.md 4.1, 4.2). */
struct outcome {
	int status;
	int reply;  /* value of x-amz-rdma-reply; 0: the header is absent */
	bool bytes; /* true: the answer has x-amz-rdma-bytes-transferred (and x-amz-rdma-bytes on GET) */
	bool etag;
	/* true: the body contains the data, because a GET has no descriptor, or because its outcome is
	 * OUT_DECLINED_2XX */
	bool body_data;
	/* true: the body is the error body of the dialect (declined: of FAULT_RDMA_NOT_SUPPORTED) */
	bool body_error;
};
/* The kind of an outcome. DECLINED_2XX is a decline as rdma.decline_2xx requires it, for clients that fall
 * back to HTTP only after a 2xx. */
enum outcome_kind { OUT_DONE, OUT_DECLINED, OUT_DECLINED_2XX, OUT_FAILED, OUT_ERROR };
/* Returns the form of an outcome. partial: the status is 206. f: the fault of FAILED and ERROR. FAILED is an
 * error of the data plane: if its fault has status 500, the reply header has the status, too; any other fault
 * (the deadline before a byte moved, the store) has the form of ERROR. */
struct outcome dialect_outcome(enum wire_form w, enum op op, enum outcome_kind kind, bool partial,
			       enum fault f);

/* Writes and parses dates of RFC 9110.  out: "Wed, 21 Oct 2015 07:28:00 GMT" and NUL (30 bytes). */
void http_date_format(uint64_t unix_s, char out[30]);
int http_date_parse(const char *text, size_t len, uint64_t *ret_unix_s);

#endif
