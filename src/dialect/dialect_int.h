/* What the files of dialect/ share.  Pure text; any thread. */
#ifndef GANTRY_DIALECT_DIALECT_INT_H
#define GANTRY_DIALECT_DIALECT_INT_H

#include "dialect/dialect.h"

#include <string.h>
#include <strings.h>

/* Bytes of a request, not terminated. */
struct span {
	const char *p;
	size_t len;
};

static inline enum fault
refuse(const char **ret_why, enum fault f, const char *why)
{
	*ret_why = why;
	return f;
}

static inline bool
span_is(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len == n && memcmp(s.p, text, n) == 0;
}

/* Without regard to case. */
static inline bool
span_is_nocase(struct span s, const char *text)
{
	size_t n = strlen(text);

	return s.len == n && strncasecmp(s.p, text, n) == 0;
}

static inline bool
name_is(const struct field *f, const char *name)
{
	return span_is_nocase((struct span){ f->name, f->name_len }, name);
}

static inline bool
name_begins(const struct field *f, const char *prefix)
{
	size_t n = strlen(prefix);

	return f->name_len >= n && strncasecmp(f->name, prefix, n) == 0;
}

/* ---- headers.c: the one table of descriptor headers ---- */

enum decline_style {
	DECLINE_BODY,      /* HTTP success + reply 501; a GET has the data in its body, a PUT nothing (4.1) */
	DECLINE_501_REPLY, /* HTTP 501 + reply 501, for clients that take any 2xx for success (4.2) */
	DECLINE_501,       /* HTTP 501 and no S3 header */
};

struct wire_row {
	const char *header; /* NULL: found by the shape of another row's value */
	enum conf_dialect dialect;
	/* Decodes the descriptor in f (the field named `header`) into t->token.  0 or -EINVAL. */
	int (*parse)(const struct dialect_in *in, const struct field *f, struct target *t,
		     const char **ret_why);
	enum decline_style decline;
	bool reply;        /* success and data-plane failure carry x-amz-rdma-reply and the byte count */
	bool reply_always; /* so does every error (item 104) */
};
extern const struct wire_row wire_rows[WIRE_NR];

/* Sets t->wire, also when it returns a fault: the answer to that fault depends on it. */
enum fault wire_find(const struct dialect_in *in, struct target *t, const char **ret_why);
/* The field that carries t->wire's descriptor. */
const struct field *wire_field(const struct dialect_in *in, const struct target *t);

/* ---- fields.c ---- */

/* The value without blanks around it. */
struct span field_text(const struct field *f);
/* The only field of that name, NULL when absent; more than one is FAULT_BAD_REQUEST with `repeated`. */
enum fault field_one(const struct dialect_in *in, const char *name, const char *repeated,
		     const struct field **ret_f, const char **ret_why);
/* Digits only.  0 or -EINVAL, also above 64 bits. */
int span_decimal(struct span s, uint64_t *ret_value);
/* Names and values are clean, Host, message framing: what libmicrohttpd lets through.
 */
enum fault fields_door(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- uri.c ---- */

/* Method and raw target to op, bucket, key. */
enum fault uri_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- refused.c: headers that ask for what we do not do ---- */
enum fault refused_check(const struct dialect_in *in, const char **ret_why);

/* ---- range.c, cond.c, sums.c, attrs.c ---- */
void range_parse(struct span text, struct range *ret_range);
enum fault cond_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
enum fault sums_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
enum fault attrs_parse(const struct dialect_in *in, struct target *t, const char **ret_why);

/* ---- date.c ---- */
struct civil {
	uint64_t year;
	int month, day, hour, minute, second, weekday; /* month from 1, weekday from Sunday = 0 */
};
void civil_from_unix(uint64_t unix_s, struct civil *ret);

#endif
