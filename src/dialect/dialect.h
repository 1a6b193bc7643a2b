/*
 * The two dialects: what a request asks for, and the texts that answer it.  Pure text, no I/O, no allocation;
 * any thread.
 *
 * dialect_parse() turns method, raw target and header fields into a struct target: operation, bucket, key,
 * range, conditions, descriptor.  Header differences between clients are rows of one table
 * (dialect/headers.c), not branches. protocol.md sections 2.0, 3 and 4.
 */
#ifndef GANTRY_DIALECT_DIALECT_H
#define GANTRY_DIALECT_DIALECT_H

#include "conf/conf.h"
#include "dialect/fault.h"
#include "token/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIALECT_FIELDS_MAX 128 /* header fields of one request; more is FAULT_HEADERS_TOO_LARGE */
#define DIALECT_KEY_MAX 1024
#define DIALECT_ATTRS_MAX (12u << 10)
#define DIALECT_META_MAX 2048 /* user metadata: sum of names and values, as S3 */
#define DIALECT_ETAGS_MAX 8

struct field {
	const char *name, *value; /* terminated; the length counts */
	uint32_t name_len, value_len;
};

/* A request as it came.  Everything is kept by the caller until the request ends. */
struct dialect_in {
	const struct conf_listen *listen;
	const struct conf_rdma *rdma;
	const char *method;
	const char *target; /* raw: as on the request line, undecoded, with the query */
	size_t target_len;
	const struct field *fields;
	int field_nr;
};

enum op {
	OP_NONE,
	OP_PUT_OBJECT,
	OP_GET_OBJECT,
	OP_HEAD_OBJECT,
	OP_DELETE_OBJECT,
	OP_CREATE_BUCKET,
	OP_HEAD_BUCKET,
	OP_DELETE_BUCKET,
	OP_LIST_BUCKETS,
	OP_NR
};
extern const char *const op_name[OP_NR]; /* "PutObject", ...: logs, metric labels */

/* Which header carried the descriptor: decides how success, decline and failure look (protocol.md 4.1, 4.2).
 */
enum wire_form {
	WIRE_NONE, /* bytes in the HTTP body */
	WIRE_AMZ,  /* x-amz-rdma-token, DC forms: 4.1 */
	WIRE_SCAL, /* x-scal-rdma */
	WIRE_DELL, /* x-rdma-info: decline is HTTP 501 + reply 501 */
	WIRE_META, /* x-amz-meta-rdma-token, when on (off and of exact shape: FAULT_RDMA_NOT_SUPPORTED) */
	WIRE_TRIO, /* x-cuobj-*: decline is HTTP 501 + reply 501 */
	WIRE_HIP,  /* 2.4 in x-amz-rdma-token: declined; every answer carries a reply header (item 104) */
	WIRE_NR
};

enum range_kind { RANGE_NONE, RANGE_FROM_TO, RANGE_FROM, RANGE_SUFFIX };
struct range {
	enum range_kind kind;
	uint64_t first, last; /* SUFFIX: last = n */
};

/* A list of ETags as in If-Match.  "*" or quoted strings; comparison as text (weak prefix ignored). */
struct etag_list {
	bool present, any;
	int nr;
	struct {
		const char *text; /* without quotes, in the request's memory */
		uint32_t len;
	} etag[DIALECT_ETAGS_MAX];
};

enum checksum_kind { SUM_CRC64NVME, SUM_CRC32, SUM_CRC32C, SUM_SHA1, SUM_SHA256, SUM_MD5, SUM_NR };
struct checksum {
	bool given;  /* a value came: verify it */
	bool wanted; /* named without a value: compute and return (item 46) */
	/* Only as x-amz-content-sha256 of a body: a mismatch is FAULT_SHA_MISMATCH, and it is neither stored
	 * nor returned. */
	bool payload_hash;
	uint8_t value[32];
	uint8_t len;
};
extern const char *const checksum_header[SUM_NR]; /* "x-amz-checksum-crc64nvme", ..., "content-md5" */

struct target {
	enum op op;
	char bucket[64];
	uint16_t bucket_len;
	char key[DIALECT_KEY_MAX + 1];
	uint16_t key_len;

	struct range range;
	struct etag_list if_match, if_none_match;
	bool have_if_modified_since, have_if_unmodified_since;
	uint64_t if_modified_since_s, if_unmodified_since_s;
	/* If-Range (only with a range): an ETag (quotes kept off, weak ones never match) or a date.  For
	 * dialect_conditions(). */
	bool have_if_range, if_range_is_date;
	const char *if_range_etag;
	uint32_t if_range_etag_len;
	uint64_t if_range_s;

	bool have_content_length, chunked;
	uint64_t content_length;
	bool expect_continue;

	enum wire_form wire;
	struct token token;         /* wire != WIRE_NONE; validated only as far as authorisation allows: see
				       dialect_token() */
	bool token_family_declined; /* recognised, not served (2.4, 2.6, rc:, ofi): decline */
	bool rdma_agent_cuobj;      /* echo x-amz-rdma-agent: cuobj (item 84) */

	struct checksum sum[SUM_NR];
	bool checksum_mode; /* x-amz-checksum-mode: ENABLED: give the stored checksums on HEAD and on a GET
			       with a body */
	bool sums_of_empty_ignored; /* counted: a checksum of the empty string came with a window (item 45) */

	/* Content-Type, content headers and x-amz-meta-* of a PUT, packed (dialect_attrs_*). */
	unsigned char attrs[DIALECT_ATTRS_MAX];
	uint32_t attrs_len;
};

/*
 * FAULT_NONE, or what to answer; *ret_why then points at one static sentence that names what is wrong and
 * where. The door guard is here too: Content-Length with chunked, repeated or differing Content-Length,
 * missing or repeated Host, repeated descriptor headers, a descriptor of another dialect, unknown query keys
 * (501), and so on.  Signatures: see auth/. Does everything except decoding the descriptor.
 */
enum fault dialect_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* Second half, after authorisation (protocol.md 4.5): decodes the descriptor into t->token, checks it against
 * the operation. FAULT_BAD_TOKEN etc.  For operations that move nothing the token is ignored and t->wire
 * becomes WIRE_NONE. */
enum fault dialect_token(const struct dialect_in *in, struct target *t, const char **ret_why);

/* A header by lower-case name: its value, or NULL.  *ret_nr: how often it came. */
const struct field *dialect_field(const struct dialect_in *in, const char *name, int *ret_nr);

/* Does the query carry any part of a signature (X-Amz-Signature and its kin, also of version 2)?  S3 only;
 * for auth/. */
bool dialect_query_signed(const struct dialect_in *in);

/* Resolves a range against an object of size bytes: 0 with [*ret_off, *ret_off + *ret_len), *ret_partial;
 * -ERANGE is 416. */
int range_resolve(const struct range *r, uint64_t size_bytes, uint64_t *ret_off, uint64_t *ret_len,
		  bool *ret_partial);

/* Does the ETag text (without quotes) match the list? */
bool etag_list_has(const struct etag_list *l, const char *etag, size_t len);

/*
 * If-Match and its kin against the object as it is, with the precedence of RFC 9110 section 13.2.2; moves
 * nothing (items 48, 69). etag_text without quotes, NULL when there is no such object (PUT, DELETE); mtime_s
 * in seconds. FAULT_NONE: go on (an If-Range that does not hold has then taken t->range away);
 * FAULT_NOT_MODIFIED only on GET and HEAD, FAULT_PRECONDITION, FAULT_NO_SUCH_KEY (If-Match and no object).
 */
enum fault dialect_conditions(struct target *t, const char *etag_text, size_t etag_len, uint64_t mtime_s);

/* ---- stored attributes: a packed sequence of (name, value), written by dialect_parse(), given back on GET
 * and HEAD ---- */

/* Calls fn for each pair; stops and returns -EINVAL on bytes that we did not write. */
int dialect_attrs_each(const void *attrs, size_t len,
		       void (*fn)(void *cookie, const char *name, size_t name_len, const char *value,
				  size_t value_len),
		       void *cookie);
/* Appends a pair (checksums go in this way too).  0 or -ENOSPC. */
int dialect_attrs_add(unsigned char *attrs, uint32_t *len, uint32_t cap, const char *name, size_t name_len,
		      const char *value, size_t value_len);

/* ---- answers
 * ---------------------------------------------------------------------------------------------------------
 */

/* An S3 XML error (or the Scality text); size and range for 416.  Returns the length; never more than cap.
 * resource is escaped. */
struct error_detail {
	const char *message; /* NULL: the fault's own */
	const char *request_id;
	const char *resource;
	size_t resource_len;
	bool have_size;
	uint64_t size_bytes;    /* <ActualObjectSize> */
	const char *range_text; /* <RangeRequested> */
};
size_t dialect_error_body(enum conf_dialect d, enum fault f, const struct error_detail *e, char *out,
			  size_t cap);

/* <ListAllMyBucketsResult>: begin, one entry each, end; each returns the bytes written, 0 when it does not
 * fit. */
size_t dialect_buckets_begin(char *out, size_t cap);
size_t dialect_buckets_entry(char *out, size_t cap, const char *name, size_t len, uint64_t ctime_ns);
size_t dialect_buckets_end(char *out, size_t cap);

/* How an outcome looks on the wire, for each form (4.1, 4.2). */
struct outcome {
	int status;
	int reply;  /* x-amz-rdma-reply; 0: no such header */
	bool bytes; /* x-amz-rdma-bytes-transferred (and x-amz-rdma-bytes on GET) */
	bool etag;
	bool body_data;  /* a GET without a descriptor, or a declined one: the data in the body */
	bool body_error; /* the error body of the dialect (declined: of FAULT_RDMA_NOT_SUPPORTED) */
};
enum outcome_kind { OUT_DONE, OUT_DECLINED, OUT_FAILED, OUT_ERROR };
/* partial: 206.  f: for FAILED and ERROR.  FAILED is the data plane: with a fault whose status is 500 the
 * reply header says so too; with any other (the deadline before a byte moved, the store) it looks like ERROR.
 */
struct outcome dialect_outcome(enum wire_form w, enum op op, enum outcome_kind kind, bool partial,
			       enum fault f);

/* RFC 9110 dates.  out: "Wed, 21 Oct 2015 07:28:00 GMT" and NUL (30 bytes). */
void http_date_format(uint64_t unix_s, char out[30]);
int http_date_parse(const char *text, size_t len, uint64_t *ret_unix_s);

#endif
