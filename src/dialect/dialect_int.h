/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of dialect/.  Pure text; any thread. */
#ifndef GANTRY_DIALECT_DIALECT_INT_H
#define GANTRY_DIALECT_DIALECT_INT_H

#include "dialect/dialect.h"
#include "dialect/rules.h"

#include <string.h>
#include <strings.h>

/* ---- wire.c: the one table of descriptor headers ---- */

enum decline_style {
	DECLINE_501_REPLY, /* decline by HTTP 501 and reply 501 (4.1) */
	DECLINE_501,       /* decline by HTTP 501 without an S3 header (4.2) */
};

/* The rule for unsigned headers of a signed request: the window that the header names is the destination of
 * the bytes. */
enum wire_sign {
	SIGN_ALWAYS,
	SIGN_UNLESS_RELAXED, /* may be unsigned if auth.require_signed_headers is relaxed */
};

/* The answers that carry x-amz-rdma-reply. */
enum wire_reply {
	REPLY_NEVER,
	REPLY_MOVED,  /* answers about success or failure of the data plane, with the byte count */
	REPLY_ALWAYS, /* every answer, also an error */
};

struct wire_row {
	const char *header;
	size_t header_len;
	/* prefix of the names of headers that belong to the descriptor; NULL: only `header` does */
	const char *family;
	enum conf_dialect dialect;
	/* Decodes the descriptor in f, the field named `header`, into t->token. Returns 0 or -EINVAL. */
	int (*parse)(const struct dialect_in *in, const struct field *f, struct target *t,
		     const char **ret_why);
	/* Returns true if a value has the form of this row; NULL: every value belongs to this row */
	bool (*shape)(const char *text, size_t len);
	/* Returns true if the form is served by this configuration; NULL: always */
	bool (*served)(const struct conf_rdma *c);
	enum decline_style decline;
	enum wire_reply reply;
	enum wire_sign sign;
	/* true: a GET without Range of an object that is larger than the window is 200 (4.3) */
	bool clips_as_200;
	struct {
		/* name of the header, and the sentence of the answer if it occurs more than once */
		const char *name, *repeated;
	} companion[2]; /* headers that are parts of the descriptor; name NULL: none */
};
extern const struct wire_row wire_rows[WIRE_NR];

/* Returns true if the header with this name carries descriptors of this form. */
bool wire_carries(enum wire_form w, struct span name);
/* Finds the descriptor of a request and sets t->wire, also if it returns a fault: the answer to the fault
 * depends on it. */
enum fault wire_find(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- fields.c ---- */

/* Finds the only field with this name; *ret is NULL if it is absent. If there are several, returns
 * FAULT_BAD_REQUEST with the sentence `repeated`. */
enum fault field_one(const struct dialect_in *in, const char *name, const char *repeated,
		     const struct field **ret_f, const char **ret_why);
/* Checks names and values, Host, and message framing, for the errors that libmicrohttpd accepts. */
enum fault fields_check_head(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- uri.c, query.c ---- */

/* Parses method and decoded target to op, bucket, key. */
enum fault uri_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Returns the methods that a resource of that kind supports without a query, 1 << METHOD_ each. */
uint8_t query_allow(enum op_level level);
/* Finds t->op from method, level and query keys, and sets the other members of *t that the keys determine. */
enum fault query_parse(const struct uri *uri, enum method m, enum op_level level, struct target *t,
		       const char **ret_why);
/* Returns true if a key of that name has a meaning here, or belongs to a signature. */
bool query_key_known(struct span key);
/* Returns true if the key is the name of a header that requests something, in any letter case. */
bool query_key_is_header(struct span key);

/* ---- headers.c ---- */
/* Tells whether a name begins with x-amz-, in any letter case: most names are asked about several times. */
static inline bool
dialect_is_amz(struct span name)
{
	return name.len >= 6 && (name.p[0] | 0x20) == 'x' && name.p[1] == '-' && (name.p[2] | 0x20) == 'a' &&
	       (name.p[3] | 0x20) == 'm' && (name.p[4] | 0x20) == 'z' && name.p[5] == '-';
}
/* The meaning of a header's name in a query: the column QUERY of header.def. */
enum header_query { HEADER_STAYS, HEADER_MOVES, HEADER_SUMS, HEADER_PASSES };
/* Returns the meaning of a query key with a header's name, in any letter case. The result is STAYS also if
 * the name is not in the table, or the header carries a descriptor. */
enum header_query header_in_query(struct span key);
/* Returns true if an x-amz-* field of that name is known here. */
bool header_is_known(struct span name);
/* Finds the first unknown x-amz-* field, for t->unknown_header. */
void unknown_find(const struct dialect_in *in, struct target *t);
/* A request whose header fields are followed by the fields from its query. */
struct moved {
	struct dialect_in in; /* request with all fields; valid as long as this struct */
	struct field fields[DIALECT_FIELDS_MAX];
};
/* Makes the request with the fields from its query. op is the operation of method and query. */
enum fault moved_find(const struct dialect_in *in, enum op op, struct moved *m, const char **ret_why);

/* ---- copy.c ---- */
/* Parses x-amz-copy-source and related headers to t->copy. */
enum fault copy_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- range.c, cond.c, sums.c, attrs.c ---- */
void range_parse(struct span text, struct range *ret_range);
enum fault cond_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Parses a list of ETags. cond_date() parses a date; a text that is not a date is no condition. */
enum fault cond_etags(const struct dialect_in *in, const char *name, struct etag_list *l,
		      const char **ret_why);
bool cond_date(const struct dialect_in *in, const char *name, uint64_t *ret_s);
/* Parses a checksum in the query of an upload's signed URL. */
enum fault sums_from_query(struct span key, struct span value, struct target *t, const char **ret_why);
/* Parses x-amz-tagging. */
enum fault attrs_parse_tags(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Determines whether the body is in aws-chunked frames, and their attributes. */
enum fault stream_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* ---- date.c ---- */
struct civil {
	uint64_t year;
	/* date and time; months count from 1, weekdays from Sunday = 0 */
	int month, day, hour, minute, second, weekday;
};
void civil_from_unix(uint64_t unix_s, struct civil *ret);

#endif
