/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two dialects of requests, S3 and Scality: finds the meaning of a request, and writes the text of its
 * answer. Any thread may call the functions; they do no I/O, and allocate only for tags, forms and XML.
 *
 * dialect_read_target() decodes the target of a request; dialect_parse() turns method, decoded target and
 * header fields into a struct target: operation, bucket, key, range, conditions, descriptor. Clients differ
 * in the headers of their descriptors; each such header is a row of wire.def. See protocol.md sections 2.0, 3
 * and 4.
 */
#ifndef GANTRY_DIALECT_DIALECT_H
#define GANTRY_DIALECT_DIALECT_H

#include "base/span.h"
#include "conf/conf.h"
#include "dialect/fault.h"
#include "dialect/field.h"
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
/* name of the owner of every bucket, in lists and in x-amz-expected-bucket-owner */
#define DIALECT_OWNER "gantry"
#define DIALECT_LIST_MAX 1000 /* default and largest number of entries on a page of a list */

/* Bits for the memory blocks of a struct target: attrs, copy and list. Most operations need none of them. */
enum target_part {
	TARGET_NOTHING = 0,
	TARGET_ATTRS = 1,
	TARGET_COPY = 2,
	TARGET_LIST = 4,
	TARGET_ATTRS_COPY = TARGET_ATTRS | TARGET_COPY,
	TARGET_ATTRS_LIST = TARGET_ATTRS | TARGET_LIST,
};

/* The source of the memory blocks of targets. get() returns a block with any content: DIALECT_ATTRS_MAX bytes
 * for TARGET_ATTRS, a struct copy_source for TARGET_COPY, a struct list_query for TARGET_LIST. get() returns
 * NULL if no block is free; then the request ends with FAULT_BUSY. */
struct target_source {
	void *(*get)(void *cookie, enum target_part part);
	void *cookie;
};

/* A parameter of a query: offsets in uri.text and lengths of its decoded name and value, which end with a
 * NUL. */
struct uri_param {
	uint16_t name, name_len, value, value_len;
};

/*
 * A decoded request target. Both the operation and the check of the signature use this decoded form and no
 * other.
 *
 * S3: path and parameters are decoded. The parameters are sorted by their encoded names, and no name occurs
 * twice; a repeated parameter that has an effect is a fault. Scality: path is the whole target, not decoded,
 * and there are no parameters.
 */
struct uri {
	/* fault of the target; FAULT_NONE: it is valid; after a fault path and parameters are empty */
	enum fault fault;
	const char *why;
	struct span path; /* path, which begins with a slash and ends with a NUL */
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

/* true for the characters that are not percent-encoded in a query: letters, digits and "-._~". In a path,
 * slashes are not encoded either. */
extern const bool uri_unreserved[256];

/* A request as received. The caller keeps all texts and structs to which it points until the request ends. */
struct dialect_in {
	const struct conf_listen *listen;
	const struct conf_rdma *rdma;
	/* settings of S3; NULL: there are no domains, so that only the path names a bucket */
	const struct conf_s3 *s3;
	struct target_source parts;
	const char *method;
	const struct uri *uri; /* decoded target, from dialect_read_target() */
	const struct field *fields;
	int field_nr;
	/* bit n % 64 set: no field has a name of n bytes; 0: the caller has not determined the lengths */
	uint64_t absent_lengths;
	bool http_1_0; /* true: the request line named HTTP/1.0 */
	bool is_clean; /* true: the caller has checked the characters of all fields, as dialect_parse() would */
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
	BODY_OBJECT, /* the bytes of an object or a part of an upload, by HTTP or RDMA */
	BODY_TEXT,   /* XML, passed to the operation as a whole; can be empty if it is optional */
	BODY_FORM,   /* multipart/form-data (s3doc/form.h) */
};
/* The right that an access key needs for an operation; checked by auth_allows(). */
enum op_right {
	/* right to create or configure the bucket; the default (0), because it is the strictest right */
	RIGHT_BUCKET,
	/* RIGHT_BUCKET, and the right to delete the bucket, or its contents by its lifecycle rules */
	RIGHT_DELETE_BUCKET,
	RIGHT_WRITE_KEY, /* right to write the key */
	/* right to change an existing object, such as its tags; a grant with no_overwrite lacks this right */
	RIGHT_REPLACE_KEY,
	RIGHT_DELETE_KEY,  /* right to delete the key */
	RIGHT_COPY,        /* right to write the key, and to read the source of the copy */
	RIGHT_READ_KEY,    /* right to read the key */
	RIGHT_LIST_BUCKET, /* right to list the whole bucket, and to read its configuration */
	RIGHT_LIST_PREFIX, /* right to list the keys that begin with the requested prefix */
	/* right to know that the bucket exists; the operation checks the right to each key later */
	RIGHT_SEE_BUCKET,
	RIGHT_KNOWN,   /* any known access key is sufficient; each bucket is checked later */
	RIGHT_ANYBODY, /* no right is needed at first; some operations check a right later */
};
/* The properties of an operation: its row of op.def. */
struct op_info {
	enum method method;
	enum op_level level;
	enum op_body body;
	bool writes; /* true: the operation changes something */
	enum op_right right;
	int ok;         /* HTTP status of success */
	unsigned parts; /* memory blocks of struct target that the operation needs, TARGET_... bits */
};
extern const struct op_info op_info[OP_NR];

/* Returns true if the operation receives object bytes, so that a descriptor can move them to the server by
 * RDMA. If op_moves() is false, a descriptor is ignored (item 77). */
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

/* The header in which the descriptor of a request arrived. The forms of the answers about success, decline
 * and failure depend on this header (protocol.md 4.1, 4.2). */
enum wire_form {
	WIRE_NONE, /* no descriptor: bytes are in the HTTP body */
#define WIRE(id, ...) WIRE_##id,
#include "dialect/wire.def"
	WIRE_NR
};

enum range_kind { RANGE_NONE, RANGE_FROM_TO, RANGE_FROM, RANGE_SUFFIX };
struct range {
	enum range_kind kind;
	/* numbers of the first and the last byte; RANGE_SUFFIX: the range is the last `last` bytes */
	uint64_t first, last;
};

/* A list of ETags such as the value of If-Match: "*" (any), or quoted strings. ETags are compared as text;
 * the prefix W/ of a weak ETag is ignored. */
struct etag_list {
	bool present, any;
	int nr;
	struct {
		const char *text; /* text of the ETag without quotes, in the request's memory */
		uint32_t len;
	} etag[DIALECT_ETAGS_MAX];
};

enum checksum_kind { SUM_CRC64NVME, SUM_CRC32, SUM_CRC32C, SUM_SHA1, SUM_SHA256, SUM_MD5, SUM_NR };
struct checksum {
	bool given; /* true: the request has a value, which must be verified */
	/* true: the request asks for this checksum without a value: the server computes and returns it */
	bool wanted;
	/* true: x-amz-content-sha256, neither stored nor returned; a mismatch is FAULT_SHA_MISMATCH */
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

/* The values of x-amz-copy-source and the other headers about the source of a copy. The source object can be
 * in any bucket: the caller checks the right to it with auth_may(). */
struct copy_source {
	char bucket[64];
	uint16_t bucket_len, key_len;
	/* range of UploadPartCopy: RANGE_NONE or RANGE_FROM_TO; beyond the source: FAULT_BAD_ARGUMENT */
	struct range range;
	struct etag_list if_match, if_none_match;
	bool have_if_modified_since, have_if_unmodified_since;
	uint64_t if_modified_since_s, if_unmodified_since_s;
	/* sources of metadata and tags of the new object. COPY: the source of the copy; REPLACE: attrs */
	enum target_directive metadata, tagging;
	/* true: a CopyObject names a storage class or an encryption, possibly the current one. S3 allows a
	 * copy of an object onto itself only if the request names a change, even if nothing changes. */
	bool names_change;
	char key[DIALECT_KEY_MAX + 1];
};

/* The parameters of a list: its first entry and its choice of entries. Texts are decoded and end with NUL. */
struct list_query {
	/* max-keys, max-uploads, max-parts or max-buckets: largest number of entries, 0 to 1000 (max-buckets:
	 * to 10,000); a larger value of the request is reduced to this limit */
	uint32_t max;
	bool have_max;
	bool encoding_url, fetch_owner;
	bool have_token;       /* true: `after` is from a continuation token */
	bool have_empty_token; /* true: the request has an empty continuation token */
	bool have_start_after;
	bool have_upload_id_marker;
	/* valid if have_upload_id_marker: the list begins after the upload with this id and the key
	 * `after` */
	uint8_t upload_id_marker[16];
	/* part number after which the list of parts begins, also in GetObjectAttributes */
	uint32_t part_number_marker;
	uint16_t prefix_len, after_len, start_after_len;
	uint8_t delimiter_len;
	char delimiter[DIALECT_DELIMITER_MAX + 1];
	char prefix[DIALECT_KEY_MAX + 1];
	/* Text after which the list begins: its entries have a name, or common prefix, that sorts after this
	 * text; after_len 0: the list begins with the first entry. The text comes from marker, key-marker,
	 * start-after or the decoded continuation-token. */
	char after[DIALECT_KEY_MAX + 1];
	/* start-after as received; with a continuation token it has no effect on `after`. */
	char start_after[DIALECT_KEY_MAX + 1];
};

struct target {
	enum op op;
	char bucket[64];
	uint16_t bucket_len, key_len;

	struct range range;
	struct etag_list if_match, if_none_match;
	bool have_if_modified_since, have_if_unmodified_since;
	uint64_t if_modified_since_s, if_unmodified_since_s;
	/* If-Range of a request with a range: an ETag (without quotes; a weak ETag never matches) or a
	 * date. */
	bool have_if_range, if_range_is_date;
	const char *if_range_etag;
	uint32_t if_range_etag_len;
	uint64_t if_range_s;

	bool virtual_host; /* true: the field Host named the bucket */
	bool have_content_length, chunked;
	uint64_t content_length;
	bool expect_continue;
	/* true: the body has aws-chunked frames, which struct auth_stream removes. Content-Encoding or a
	 * value STREAMING-... of x-amz-content-sha256 announces them. auth/ determines whether chunks are
	 * signed. */
	bool aws_chunked;
	bool have_decoded_length; /* true: decoded_length is the value of x-amz-decoded-content-length */
	uint64_t decoded_length;
	/* true: x-amz-trailer announced a checksum of kind `trailer`; for objects sum[trailer].wanted is
	 * set */
	bool have_trailer;
	enum checksum_kind trailer;
	struct checksum text_sum; /* checksum of a text body; req/ adds the value from the trailer */

	/* for FAULT_METHOD: the methods that the resource supports, a bit 1 << METHOD_... for each */
	uint8_t allow;

	/* Members of multipart operations. */
	uint16_t part_number; /* partNumber, also of GET and HEAD, 1 to 10000; 0: the request has none */
	bool have_upload_id;
	/* valid if have_upload_id: id of the upload; an invalid text is FAULT_NO_SUCH_UPLOAD */
	uint8_t upload_id[16];
	/* type of the checksum, for CreateMultipartUpload and CompleteMultipartUpload */
	enum checksum_type checksum_type;
	/* true: x-amz-checksum-algorithm or a checksum header names a checksum algorithm */
	bool have_algorithm;
	enum checksum_kind algorithm;
	/* CompleteMultipartUpload: true: the parts together must have mp_object_size bytes */
	bool have_mp_object_size;
	uint64_t mp_object_size;
	/* CompleteMultipartUpload: number N of "-N" after the received checksum; 0: there is no "-N" */
	uint32_t composite_parts;
	unsigned object_attributes; /* GetObjectAttributes: requested attributes, as ATTR_ bits */
	uint32_t ttl_s; /* value of x-gantry-ttl of an operation that writes an object; 0: absent */
	uint8_t copies; /* CreateBucket: value of x-gantry-copies; 0: the header is absent */
	/* Text bodies: the SHA-256 of the body from x-amz-content-sha256. sum[] also has checksums of the
	 * body, but for CompleteMultipartUpload checksums of the object. */
	bool have_body_sha256;
	uint8_t body_sha256[32];
	/* DeleteObject: true: x-amz-if-match-size or x-amz-if-match-last-modified-time is present */
	bool have_if_match_size, have_if_match_mtime;
	uint64_t if_match_size, if_match_mtime_s;
	int tag_nr; /* number of tags in attrs (x-amz-tagging) of this upload */
	bool moved; /* true: the query contains header fields that the SDK has moved there */

	/* Name of the first unknown x-amz-* header, in the request's memory; length 0: there is none. The
	 * header has no effect; the answer reports its name. */
	struct span unknown_header;

	enum wire_form wire;
	/* decoded descriptor; valid after dialect_token() if wire is not WIRE_NONE */
	struct token token;
	bool rdma_agent_cuobj; /* true: the answer repeats x-amz-rdma-agent: cuobj (item 84) */

	struct checksum sum[SUM_NR];
	/* true: x-amz-checksum-mode is ENABLED: HEAD, and GET over HTTP, return the stored checksums */
	bool checksum_mode;
	/* true: a checksum of the empty string came with a window: it is ignored and counted (item 45) */
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
	/* Provides the memory of attrs, copy and list; the owner of the source frees it after the request. */
	struct target_source source;
	char key[DIALECT_KEY_MAX + 1]; /* key_len bytes and a NUL; the bytes after it are not cleared */
};

/* Gets the given memory blocks (TARGET_... bits), except those that the target has already; clears copy and
 * list. Returns FAULT_NONE; FAULT_BUSY: no block is free. dialect_parse() calls it for the blocks of the
 * operation, and for attrs of a GET with response-*. */
enum fault target_get(struct target *t, unsigned parts, const char **ret_why);

/*
 * Decodes a request target in place, before any other use of it, and fills in *uri, whose texts point into
 * target. target: len bytes and a NUL, which the caller keeps as long as *uri. All members of *in but uri are
 * set. An error is stored in uri->fault, and dialect_parse() returns it if the header fields have no error.
 */
void dialect_read_target(const struct dialect_in *in, char *target, size_t len, struct uri *uri);

/*
 * Parses a request into *t. Checks the head of the request as well: Content-Length together with chunked,
 * repeated or differing Content-Length, missing or repeated Host, repeated descriptor headers, a descriptor
 * of the other dialect, unknown query keys, and so on. It neither checks signatures (auth/) nor decodes the
 * descriptor (dialect_token()). Returns FAULT_NONE; or the fault to answer, with a static sentence in
 * *ret_why that describes the error and its place.
 */
enum fault dialect_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* Decodes the descriptor into t->token, and checks that the operation can use it. Called after the
 * authorisation (protocol.md 4.5). A descriptor whose form is switched off is not parsed, and its kind
 * becomes TOKEN_OFF. If the operation moves no bytes, ignores the descriptor and sets t->wire to WIRE_NONE.
 * Returns FAULT_NONE, FAULT_BAD_TOKEN or another fault. */
enum fault dialect_token(const struct dialect_in *in, struct target *t, const char **ret_why);

/* Returns the first header with a name of lower-case letters, digits and '-'; NULL: there is none. *ret_nr (may be
 * NULL): number of such headers. dialect_field_n() is for names whose length the caller knows. */
const struct field *dialect_field_search(const struct dialect_in *in, const char *name, size_t len,
					 int *ret_nr);
static inline const struct field *
dialect_field_n(const struct dialect_in *in, const char *name, size_t len, int *ret_nr)
{
	/* A request needs about twenty of these calls, mostly for absent headers. */
	if (!(in->absent_lengths >> len % 64 & 1))
		return dialect_field_search(in, name, len, ret_nr);
	if (ret_nr)
		*ret_nr = 0;
	return NULL;
}
static inline const struct field *
dialect_field(const struct dialect_in *in, const char *name, int *ret_nr)
{
	return dialect_field_n(in, name, strlen(name), ret_nr);
}

/* Returns the value of a header that is a list. If the header occurs several times, the values that are not
 * empty are joined by ", " in buf (RFC 9110 5.3). p of the result is NULL if the header is absent, or if buf,
 * of cap bytes, is too small. *ret_nr (may be NULL): number of occurrences. */
struct span dialect_field_list(const struct dialect_in *in, const char *name, char *buf, size_t cap,
			       int *ret_nr);

/* Returns true if a GET that moved fewer bytes than requested, with a descriptor of form w, is answered with
 * 200; false: with 206 (protocol.md 4.3). */
bool dialect_wire_clips(enum wire_form w);
/* Returns true if descriptors of form w are sent in the header of that name. */
bool dialect_wire_carries(enum wire_form w, const char *header);
/* Returns true if a header of that name contains a descriptor, or belongs to another header's descriptor. */
bool dialect_is_wire_header(struct span name);
/* Returns true if the signature of a request must cover that header: host, x-amz-*, x-gantry-*, and every
 * header with a descriptor. relax: true: x-rdma-info and x-cuobj-* are excepted (auth.require_signed_headers
 * is false). */
bool dialect_must_sign(struct span name, bool relax);
/* Returns a static sentence about why the signature of a request with a descriptor of form w must cover that
 * header: the header determines which bytes are moved, or whether any are (BESIDE in wire.def). Returns NULL
 * if the signature need not cover it. */
const char *dialect_must_sign_beside(enum wire_form w, struct span name, bool relax);

/* Returns true for a header whose value the server acts on, and does not only store: a header with a
 * descriptor, x-amz-copy-source*, x-amz-tagging. */
bool dialect_header_steers(struct span name);

/* Returns true if the text has the form of methods and header names (a token of RFC 9110 5.6.2). */
bool dialect_is_field_name(const char *text, size_t len);
/* Returns true if the value of a header has no control character except tabs. Other programs may take a
 * single CR for the end of a line, and a NUL for the end of the value. */
bool dialect_is_text(const char *text, size_t len);

/* Returns true for a preflight request of a browser (CORS). Only the method, bucket, key and CORS headers of
 * a preflight request are used; query, signature, descriptor and all other content are ignored. */
static inline bool
dialect_is_preflight(const struct dialect_in *in)
{
	return in->method[0] == 'O' && strcmp(in->method, "OPTIONS") == 0 &&
	       in->listen->dialect == DIALECT_S3;
}

/* Returns the header x-amz-content-sha256. Returns NULL if the header is absent, or if the request has a
 * presigned URL whose signature does not cover the header: the user of the URL may then have added the
 * header. A value that announces aws-chunked frames is returned even then, so that auth/ refuses it, and
 * frames are never stored as object bytes. *ret_nr: number of these headers. */
const struct field *dialect_payload_hash(const struct dialect_in *in, int *ret_nr);

/* Returns true if the query has any key of a signature (X-Amz-Signature etc., also of version 2). S3 only. */
bool dialect_query_signed(const struct dialect_in *in);

/* Applies a range to an object of size_bytes. Returns 0 and the bytes [*ret_off, *ret_off + *ret_len),
 * *ret_partial: the answer is 206; or -ERANGE: no byte is in the range (416). */
int range_resolve(const struct range *r, uint64_t size_bytes, uint64_t *ret_off, uint64_t *ret_len,
		  bool *ret_partial);

/* Returns true if the ETag text (without quotes) matches the list. */
bool etag_list_has(const struct etag_list *l, const char *etag, size_t len);

/*
 * Evaluates If-Match and the related conditions against the existing object, with the precedence of RFC 9110
 * section 13.2.2 (items 48, 69). etag_text: ETag of the object without quotes; NULL: there is no object (PUT,
 * DELETE). mtime_s: the object's time of modification in seconds since 1970. Returns FAULT_NONE if the
 * request continues (without t->range if If-Range does not hold); otherwise returns FAULT_NOT_MODIFIED
 * (only for GET and HEAD), FAULT_PRECONDITION, or FAULT_NO_SUCH_KEY (If-Match, and there is no object).
 */
enum fault dialect_conditions(struct target *t, const char *etag_text, size_t etag_len, uint64_t mtime_s);

/* Evaluates the conditions x-amz-copy-source-if-* against the source of a copy. As at AWS,
 * if-unmodified-since is ignored if if-match holds, and if-modified-since is ignored if if-none-match fails.
 * etag_text, mtime_s: ETag without quotes, and time of modification, of the source. Returns FAULT_NONE or
 * FAULT_PRECONDITION. */
enum fault dialect_copy_conditions(const struct copy_source *c, const char *etag_text, size_t etag_len,
				   uint64_t mtime_s);

/* Length of an upload id as text, in characters. The text begins with a letter that cannot begin a number,
 * because some XML parsers convert texts that look like numbers. Ids without this letter, which earlier
 * versions wrote, are accepted as well. */
#define DIALECT_UPLOAD_ID_LEN 33
void dialect_upload_id_text(const uint8_t id[16], char out[DIALECT_UPLOAD_ID_LEN + 1]);
int dialect_upload_id_parse(const char *text, size_t len, uint8_t ret_id[16]);

/* Returns the name of a checksum algorithm in requests, such as "CRC64NVME"; NULL for SUM_MD5. */
const char *checksum_name(enum checksum_kind k);
/* Returns the length of a checksum in bytes. */
size_t checksum_len(enum checksum_kind k);

/* ---- stored attributes ---- */

/* The attributes of an object are stored as a packed sequence of pairs of name and value. dialect_parse()
 * writes the sequence, and answers to GET and HEAD return the pairs as headers. */

/* Calls fn for each pair of packed attributes. Returns 0, or -EINVAL if the bytes are damaged. */
int dialect_attrs_each(const void *attrs, size_t len,
		       void (*fn)(void *cookie, const char *name, size_t name_len, const char *value,
				  size_t value_len),
		       void *cookie);
/* Appends a pair of name and value to packed attributes. *len: their length in bytes, of at most cap. Returns
 * 0, or -ENOSPC if cap is too small. */
int dialect_attrs_add(unsigned char *attrs, uint32_t *len, uint32_t cap, const char *name, size_t name_len,
		      const char *value, size_t value_len);

/* Returns true if answers to GET and HEAD have the attribute as a header. False for x-amz-tagging: these
 * answers have x-amz-tagging-count instead, and GetObjectTagging returns the tags. */
bool dialect_attr_is_header(const char *name, size_t name_len);
/* Returns the value of an attribute among packed attributes, without a NUL at its end; NULL: absent. */
const char *dialect_attr(const void *attrs, size_t len, const char *name, size_t *ret_len);

/* ---- answers ---- */

/* Returns true if a value has bytes that are not ASCII. */
bool dialect_needs_words(const char *value, size_t len);
/* Writes a value as encoded words (RFC 2047) of at most 75 characters each, and a NUL; no character is split
 * between words. A value that is not UTF-8 counts as Latin-1. Returns the number of bytes without the NUL; 0:
 * out, of cap bytes, is too small. */
size_t dialect_words(const char *value, size_t len, char *out, size_t cap);

/* The standard header fields of answers, FIELD_..., listed in reply_field.def. */
enum reply_field {
#define REPLY_FIELD(id, ...) FIELD_##id,
#include "dialect/reply_field.def"
	FIELD_NR
};
/* The name of each field as answers in each dialect (enum conf_dialect) spell it. */
extern const char *const field_name[2][FIELD_NR];
/* Finds a field by its name in lower case; FIELD_NR: not found. */
enum reply_field reply_field_find(const char *name, size_t len);

#define DIALECT_ALLOW_BYTES 64
/* Writes the value of the Allow header for FAULT_METHOD: the methods in t->allow. */
void dialect_allow(const struct target *t, char out[DIALECT_ALLOW_BYTES]);

/* The details for an error body, which is XML in the dialect S3 and plain text in the dialect Scality.
 * size_bytes and range_text are for status 416. resource: the requested path, escaped when it is written. */
struct error_detail {
	const char *message; /* sentence for the user; NULL: the sentence of the fault */
	const char *request_id;
	const char *resource;
	size_t resource_len;
	bool have_size;
	uint64_t size_bytes;    /* size of the object, for <ActualObjectSize> */
	const char *range_text; /* range of the request, for <RangeRequested> */
	const char *region;     /* region that signatures must name, for <Region> */
	/* texts for <StringToSign> and <CanonicalRequest>, left out if the body has no room; NULL: none */
	const char *to_sign, *canonical;
	size_t canonical_len;
};
size_t dialect_error_body(enum conf_dialect d, enum fault f, const struct error_detail *e, char *out,
			  size_t cap);

/* The parts of an answer that show the outcome; they depend on the wire form (protocol.md 4.1, 4.2). */
struct outcome {
	int status;
	int reply;  /* value of x-amz-rdma-reply; 0: the header is absent */
	bool bytes; /* true: the answer has x-amz-rdma-bytes-transferred (and x-amz-rdma-bytes on GET) */
	bool etag;
	/* true: the body has the object's bytes: a GET without descriptor, or OUT_DECLINED_2XX */
	bool body_data;
	/* true: the body is an error body; for a decline that of FAULT_RDMA_NOT_SUPPORTED */
	bool body_error;
};
/* The kind of an outcome. DONE: success. DECLINED: RDMA is not used, and the client may use HTTP.
 * DECLINED_2XX: a decline with a status of 2xx, for clients in rdma.decline_2xx. FAILED: the RDMA transfer
 * failed. ERROR: another error. */
enum outcome_kind { OUT_DONE, OUT_DECLINED, OUT_DECLINED_2XX, OUT_FAILED, OUT_ERROR };
/* Returns the form of an outcome. partial: true: the status of success is 206. f: the fault, for FAILED and
 * ERROR. FAILED with a fault of status 500: x-amz-rdma-reply is 500 as well. FAILED with any other fault,
 * such as a deadline that passed before a byte moved: the form is that of ERROR. */
struct outcome dialect_outcome(enum wire_form w, enum op op, enum outcome_kind kind, bool partial,
			       enum fault f);

/* Writes a date of RFC 9110, such as "Wed, 21 Oct 2015 07:28:00 GMT", and a NUL: 30 bytes. http_date_parse()
 * parses such a date, and returns 0 or -EINVAL. */
void http_date_format(uint64_t unix_s, char out[30]);
int http_date_parse(const char *text, size_t len, uint64_t *ret_unix_s);

#endif
