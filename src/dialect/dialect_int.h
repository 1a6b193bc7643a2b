/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of dialect/. Pure functions, which any thread may call. */
#ifndef GANTRY_DIALECT_DIALECT_INT_H
#define GANTRY_DIALECT_DIALECT_INT_H

#include "dialect/dialect.h"
#include "dialect/rules.h"

#include <string.h>
#include <strings.h>

/* ---- texts, eight bytes at a time ---- */

#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns the first eight bytes of a text that has as many. */
static inline uint64_t
word_at(const char *text)
{
	uint64_t w;

	memcpy(&w, text, sizeof w);
	return w;
}

static inline bool
word_is_ascii(uint64_t w)
{
	return !(w & EIGHT(0x80));
}

/* Returns true if one of the eight bytes is below 0x20, or 0x7f: the subtraction sets the high bit of a byte that is
 * less. */
static inline bool
word_has_control(uint64_t w)
{
	uint64_t del = w ^ EIGHT(0x7f);

	return (((w - EIGHT(0x20)) & ~w) | ((del - EIGHT(1)) & ~del)) & EIGHT(0x80);
}

/* ---- wire.c: the one table of descriptor headers ---- */

enum decline_style {
	/* decline by HTTP status 501 with the header x-amz-rdma-reply: 501 (protocol.md 4.1) */
	DECLINE_501_REPLY,
	DECLINE_501, /* decline by HTTP status 501 without an S3 header (protocol.md 4.2) */
};

/* The rule whether the signature of a request must cover the header with the descriptor. A descriptor names
 * the memory to which bytes are written. */
enum wire_sign {
	SIGN_ALWAYS,
	SIGN_UNLESS_RELAXED, /* the header may be unsigned if auth.require_signed_headers is false */
};

/* The answers that carry x-amz-rdma-reply. */
enum wire_reply {
	REPLY_NEVER,
	REPLY_MOVED,  /* answers about success or failure of the RDMA transfer, with the byte count */
	REPLY_ALWAYS, /* every answer, errors included */
};

struct wire_row {
	const char *header;
	size_t header_len;
	/* prefix of the names of headers that belong to the descriptor; NULL: only `header` does */
	const char *family;
	enum conf_dialect dialect;
	/* Decodes the descriptor in field f, whose name is `header`, into t->token. Returns 0 or -EINVAL. */
	int (*parse)(const struct dialect_in *in, const struct field *f, struct target *t,
		     const char **ret_why);
	/* Returns true if a value is a descriptor of this row; NULL: every value is one. */
	bool (*shape)(const char *text, size_t len);
	/* Returns true if the configuration allows descriptors of this row; NULL: they are always allowed. */
	bool (*served)(const struct conf_rdma *c);
	enum decline_style decline;
	enum wire_reply reply;
	enum wire_sign sign;
	/* true: a GET without Range of an object that is larger than the window is answered with 200; false:
	 * with 206 (4.3) */
	bool clips_as_200;
	struct {
		/* name: name of the header; repeated: sentence of the answer if the header occurs more than
		 * once */
		const char *name, *repeated;
	} companion[2]; /* other headers with a part of the descriptor; name NULL: there is no further one */
};
extern const struct wire_row wire_rows[WIRE_NR];

/* Returns true if descriptors of form w are sent in the header of that name. */
bool wire_carries(enum wire_form w, struct span name);
/* Finds the descriptor of a request, and sets t->wire. Returns FAULT_NONE or a fault; t->wire is set also
 * with a fault, because the form of the answer depends on it. */
enum fault wire_find(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- fields.c ---- */

/* Finds the field with this name. Returns FAULT_NONE, and the field in *ret_f, NULL if the field is absent;
 * FAULT_BAD_REQUEST with the sentence `repeated` if there are several such fields. */
static inline enum fault
field_one(const struct dialect_in *in, const char *name, const char *repeated, const struct field **ret_f,
	  const char **ret_why)
{
	int nr;

	*ret_f = dialect_field(in, name, &nr);
	return nr > 1 ? refuse(ret_why, FAULT_BAD_REQUEST, repeated) : FAULT_NONE;
}
/* Checks the head of a request for errors that libmicrohttpd accepts: in names and values of fields, in Host,
 * and in the headers about the length of the body. */
enum fault fields_check_head(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- uri.c, query.c ---- */

/* Sets t->op, bucket and key from the method and the decoded target. */
enum fault uri_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Returns the methods that a resource of that level supports without a query, a bit 1 << METHOD_... for
 * each. */
uint8_t query_allow(enum op_level level);
/* Sets t->op, which follows from method, level and query keys, and the members of *t that the values of the
 * query keys determine. */
enum fault query_parse(const struct uri *uri, enum method m, enum op_level level, struct target *t,
		       const char **ret_why);
/* Returns true if the query key has a meaning for the server, or belongs to a signature. */
bool query_key_known(struct span key);
/* Returns true if the query key is, in any letter case, the name of a header that has an effect. */
bool query_key_is_header(struct span key);

/* ---- headers.c ---- */
/* Returns true if a name begins with x-amz-, in any letter case. Inline, because it is called several times
 * for most names. */
static inline bool
dialect_is_amz(struct span name)
{
	return name.len >= 6 && (name.p[0] | 0x20) == 'x' && name.p[1] == '-' && (name.p[2] | 0x20) == 'a' &&
	       (name.p[3] | 0x20) == 'm' && (name.p[4] | 0x20) == 'z' && name.p[5] == '-';
}
/* The meaning of a query key that is the name of a header: the column QUERY of header.def. */
enum header_query { HEADER_STAYS, HEADER_MOVES, HEADER_SUMS, HEADER_PASSES };
/* Returns the meaning of a query key that is, in any letter case, the name of a header. Returns HEADER_STAYS
 * also if header.def does not have the name, or if the header has a descriptor. */
enum header_query header_in_query(struct span key);
/* Returns true if the server knows the x-amz-* header of that name. */
bool header_is_known(struct span name);
/* A copy of a request in which the header fields from the query follow the received header fields. */
struct moved {
	struct dialect_in in; /* the request with all fields; it points into this struct */
	struct field fields[DIALECT_FIELDS_MAX];
};
/* Fills in *m from a request. op: operation that follows from method and query. Returns FAULT_NONE or the
 * fault. */
enum fault moved_find(const struct dialect_in *in, enum op op, struct moved *m, const char **ret_why);

/* ---- copy.c ---- */
/* Parses x-amz-copy-source and related headers into t->copy. */
enum fault copy_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- range.c, cond.c, sums.c, attrs.c ---- */
void range_parse(struct span text, struct range *ret_range);
enum fault cond_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Parses a condition header with a list of ETags into *l. cond_date() parses a condition header with a date.
 * cond_date() returns false if the header is absent or has no valid date; then there is no condition. */
enum fault cond_etags(const struct dialect_in *in, const char *name, struct etag_list *l,
		      const char **ret_why);
bool cond_date(const struct dialect_in *in, const char *name, uint64_t *ret_s);
/* Parses a checksum in the query of a presigned URL for an upload into *t. */
enum fault sums_from_query(struct span key, struct span value, struct target *t, const char **ret_why);
/* Parses x-amz-tagging into t->attrs and t->tag_nr. */
enum fault attrs_parse_tags(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Determines whether the body has aws-chunked frames, and sets t->aws_chunked, the decoded length and the
 * trailer. */
enum fault stream_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* ---- date.c ---- */
struct civil {
	uint64_t year;
	/* month: 1 to 12; weekday: 0 (Sunday) to 6 */
	int month, day, hour, minute, second, weekday;
};
void civil_from_unix(uint64_t unix_s, struct civil *ret);

#endif
