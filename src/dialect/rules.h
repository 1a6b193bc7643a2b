/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that the parser of requests (dialect/) and the parsers of XML and forms (s3doc/) share: the form of
 * names, keys and dates, and the fields of an upload, which are headers or fields of a form. Pure functions,
 * which any thread may call.
 */
#ifndef GANTRY_DIALECT_RULES_H
#define GANTRY_DIALECT_RULES_H

#include "dialect/dialect.h"

/* Returns f and sets *ret_why to why. */
static inline enum fault
refuse(const char **ret_why, enum fault f, const char *why)
{
	*ret_why = why;
	return f;
}

/* ---- names.c ---- */

/* Returns the length in bytes of the first UTF-8 character of the text; 0: it is invalid. */
int utf8_length(const char *text, size_t len);
bool is_utf8(const char *text, size_t len);
/* Counts the characters of valid UTF-8. */
size_t utf8_count(const char *text, size_t len);
bool has_control(const char *text, size_t len);
/* Returns true for a valid name of a bucket, as in S3: 3 to 63 lower-case letters, digits, '-' and '.',
 * without two adjacent '.', with a letter or digit at both ends, and not an IPv4 address. */
bool is_bucket_name(const char *name, size_t len);
/* Returns true if a bucket may be created with that name: the name is valid (is_bucket_name()), and none of
 * the labels between its dots begins or ends with a hyphen. Existing buckets may have such labels. */
bool is_new_bucket_name(const char *name, size_t len);
/* Checks that an S3 object can have that key. Returns FAULT_NONE or the fault. */
enum fault key_check(const char *key, size_t len, const char **ret_why);

/* ---- date.c ---- */

/* Parses a date such as "2015-10-21", with or without a time such as "T07:28:00Z" or "T07:28:00.000Z".
 * Returns 0 or -EINVAL. */
int iso_date_parse(const char *text, size_t len, uint64_t *ret_unix_s);

/* ---- the fields of an upload: headers.c, sums.c, attrs.c ---- */

/* Checks the headers for features that the server does not have. Returns FAULT_NONE, or the fault of the
 * first such header. Sets t->unknown_header to the name of the first x-amz-* header that the server does not know. */
enum fault refused_check(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Parses the checksum headers into t->sum and related members. */
enum fault sums_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Parses the content headers and the user metadata, and appends them to t->attrs. */
enum fault attrs_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
enum fault attrs_parse_class(const struct dialect_in *in, struct target *t, const char **ret_why);
#define DIALECT_TTL_MAX 315360000u /* largest x-gantry-ttl, in seconds: 3650 days */
/* Reads x-gantry-ttl into t->ttl_s. */
enum fault ttl_parse(const struct dialect_in *in, struct target *t, const char **ret_why);
/* Appends a name and a value to t->attrs. */
enum fault attrs_put(struct target *t, const char *name, size_t name_len, struct span value,
		     const char **ret_why);

#endif
