/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifecycle rules of a bucket: read from XML, stored packed among the bucket's attributes, evaluated by the
 * lifecycle walk. Pure functions; any thread.
 *
 * Supported: expiration by age or date, end of unfinished uploads, filters by prefix, tags and size.
 * Transitions to other storage classes are refused, because there are none. Rules about old versions are
 * stored and have no effect, because there are no versions.
 */
#ifndef GANTRY_S3DOC_LIFECYCLE_H
#define GANTRY_S3DOC_LIFECYCLE_H

#include "dialect/fault.h"
#include "dialect/text.h"

#define LIFECYCLE_RULES_MAX 1000
#define LIFECYCLE_PACKED_MAX (24u << 10)

/* Appends the packed form of the rules in a body to `packed`.  FAULT_MALFORMED_XML, FAULT_BAD_REQUEST,
 * FAULT_BAD_ARGUMENT, FAULT_NOT_IMPLEMENTED (transitions), FAULT_BUSY (no memory). */
enum fault lifecycle_from_xml(const char *body, size_t len, struct text *packed, const char **ret_why);
/* Appends <LifecycleConfiguration>. 0, or -EINVAL on bytes that lifecycle_from_xml() did not write. */
int lifecycle_to_xml(struct text *x, const void *packed, size_t packed_len);

/* Returns true if the object is due to be deleted. tags: canonical text of dialect/tags.h.  Ages count from
 * the midnight (UTC) that follows mtime, as S3 has it. false as well on bytes that we did not write. */
bool lifecycle_due(const void *packed, size_t packed_len, const char *key, size_t key_len,
		   uint64_t size_bytes, const char *tags, size_t tags_len, uint64_t mtime_s, uint64_t now_s);
/* Returns true if an unfinished upload that began then is due to be aborted. */
bool lifecycle_upload_due(const void *packed, size_t packed_len, const char *key, size_t key_len,
			  uint64_t began_s, uint64_t now_s);
/* Returns the time from which lifecycle_due() is true, for x-amz-expiration: 0 for never; *ret_id points into
 * packed. */
uint64_t lifecycle_expiry(const void *packed, size_t packed_len, const char *key, size_t key_len,
			  uint64_t size_bytes, const char *tags, size_t tags_len, uint64_t mtime_s,
			  const char **ret_id, size_t *ret_id_len);

#endif
