/*
 * Tags of objects and buckets.  Pure functions; any thread.
 *
 * They are kept as text, "key=value&key=value", with '%', '&', '=', '+' and control bytes as %XX and all else
 * as it is: a canonical x-amz-tagging header.  So they can live in an object's attributes under that name,
 * and in a bucket's.  Keys are 1-128 characters and unique, values 0-256; at most 10 for an object, 50 for a
 * bucket.
 */
#ifndef GANTRY_DIALECT_TAGS_H
#define GANTRY_DIALECT_TAGS_H

#include "dialect/fault.h"
#include "dialect/text.h"

#define ATTR_TAGGING "x-amz-tagging" /* an object's, among its attributes */

#define TAGS_OBJECT_MAX 10
#define TAGS_BUCKET_MAX 50

/* x-amz-tagging, and the Tagging body: both appended to `out` in canonical form.  FAULT_INVALID_TAG,
 * FAULT_BAD_ARGUMENT, FAULT_MALFORMED_XML, FAULT_BUSY (no memory). */
enum fault tags_from_header(const char *value, size_t len, struct text *out, int *ret_nr,
			    const char **ret_why);
enum fault tags_from_xml(const char *body, size_t len, int max, struct text *out, int *ret_nr,
			 const char **ret_why);
/* <Tagging> */
void tags_to_xml(struct text *x, const char *tags, size_t len);

/* Its <Tag>s alone. */
void tags_to_xml_each(struct text *x, const char *tags, size_t len);

/* Calls fn with decoded keys and values; 0, or -EINVAL on what is not canonical. */
int tags_each(const char *tags, size_t len,
	      void (*fn)(void *cookie, const char *key, size_t key_len, const char *value, size_t value_len),
	      void *cookie);
int tags_count(const char *tags, size_t len);
bool tags_have(const char *tags, size_t len, const char *key, size_t key_len, const char *value,
	       size_t value_len);

#endif
