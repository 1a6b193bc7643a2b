/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle rules of a bucket: read from XML, stored in a packed form among the bucket's attributes, and
 * evaluated by the lifecycle walk. Pure functions, which any thread may call.
 *
 * Supported: expiration by age or date, end of unfinished uploads, filters by prefix, tags and size.
 * Transitions are refused, because there is only one storage class. Rules about noncurrent versions are
 * stored and have no effect, because an object has only one version.
 */
#ifndef GANTRY_S3DOC_LIFECYCLE_H
#define GANTRY_S3DOC_LIFECYCLE_H

#include "dialect/fault.h"
#include "dialect/text.h"

#define LIFECYCLE_RULES_MAX 1000
#define LIFECYCLE_PACKED_MAX (24u << 10)

/* Parses the rules of a body and appends their packed form to `packed`. Returns FAULT_NONE,
 * FAULT_MALFORMED_XML, FAULT_BAD_REQUEST, FAULT_BAD_ARGUMENT, FAULT_NOT_IMPLEMENTED for transitions, or
 * FAULT_BUSY if there is no memory. */
enum fault lifecycle_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why);
/* Appends a <LifecycleConfiguration> element to x. Returns 0, or -EINVAL if lifecycle_from_xml() did not
 * write the packed bytes. */
int lifecycle_to_xml(struct text *x, const void *packed, size_t packed_len);

/* ID of the rule that `gantry bucket set --expire` writes. */
#define LIFECYCLE_EXPIRE_ID "gantry-expire"
/* Replaces the text of `out` by the packed rules with the rule of LIFECYCLE_EXPIRE_ID: all objects of the bucket expire
 * after `days`; 0: without this rule. Other rules are not changed. packed_len 0: there are no rules. If no rule is left,
 * `out` is empty. Returns 0; -EINVAL: the packed bytes are damaged; -E2BIG: too many rules; -ENOMEM. */
int lifecycle_set_expire(struct text *out, const void *packed, size_t packed_len, uint32_t days);
/* Returns the number of rules other than that of LIFECYCLE_EXPIRE_ID. *ret_days: days of that rule; 0: no such rule. */
int lifecycle_look(const void *packed, size_t packed_len, uint32_t *ret_days);

/* Returns true if a rule requires that the object be deleted at the time now_s. tags: canonical text of
 * dialect/tags.h. The age of an object counts from the midnight (UTC) after mtime_s, as in S3. Returns false
 * if the packed bytes are damaged. */
bool lifecycle_due(const void *packed, size_t packed_len, const char *key, size_t key_len,
		   uint64_t size_bytes, const char *tags, size_t tags_len, uint64_t mtime_s, uint64_t now_s);
/* Returns true if a rule requires that an unfinished upload which began at began_s be aborted at the time
 * now_s. Returns false if the packed bytes are damaged. */
bool lifecycle_upload_due(const void *packed, size_t packed_len, const char *key, size_t key_len,
			  uint64_t began_s, uint64_t now_s);
/* Returns the time, in seconds since 1970, from which lifecycle_due() is true, for the header
 * x-amz-expiration; 0: no rule applies. *ret_id: id of the rule, which points into packed. */
uint64_t lifecycle_expiry(const void *packed, size_t packed_len, const char *key, size_t key_len,
			  uint64_t size_bytes, const char *tags, size_t tags_len, uint64_t mtime_s,
			  const char **ret_id, size_t *ret_id_len);

#endif
