/* SPDX-License-Identifier: Apache-2.0 */
/* The query keys of query.def as numbers, and as bits for the rows of op.def. Private to query.c. */
#ifndef GANTRY_DIALECT_QUERY_KEYS_H
#define GANTRY_DIALECT_QUERY_KEYS_H

#include <stdint.h>

enum param {
#define QUERY(id, ...) P_##id,
#include "dialect/query.def"
	P_NR,
	P_ANY = P_NR, /* a known key that has no effect */
	P_SUM,        /* a checksum header that an SDK moved into a presigned URL */
	P_MOVED,      /* any other header that an SDK moved into a presigned URL */
	P_SIGNS,      /* a key of a signature, spelled in another letter case */
	P_MISSING,    /* a key of S3 for an operation that the server does not have (MISSING) */
	P_STRANGER,   /* any other key */
};

#define BIT(p) ((uint64_t)1 << (p))
_Static_assert(P_STRANGER <= 62, "one bit each, and one that none has");

/* ---- what op.def says of keys ---- */

#define Q(p) BIT(P_##p)
#define ELSEWHERE BIT(63) /* value of NEEDS for operations that no query selects */
/* Query keys that every listing accepts. "id" selects one of several configurations of a subresource; a
 * listing has none, so it ignores the key. */
#define LISTING (Q(PREFIX) | Q(DELIMITER) | Q(ENCODING) | Q(ID))
#define PAGING (Q(CONTINUATION) | Q(START_AFTER) | Q(FETCH_OWNER))
#define BUCKETS (Q(MAX_BUCKETS) | Q(CONTINUATION) | Q(PREFIX) | Q(BUCKET_REGION))
#define RESPONSE                                                                                             \
	(Q(R_CACHE_CONTROL) | Q(R_DISPOSITION) | Q(R_ENCODING) | Q(R_EXPIRES) | Q(R_LANGUAGE) | Q(R_TYPE))
#define READING (RESPONSE | Q(VERSION_ID) | Q(PART_NUMBER) | Q(ID))

/* The keys that count when the operation of a request is searched. The keys response-* do not count: an
 * operation that has no use for them ignores them. */
#define DECIDES ((BIT(P_NR) - 1) & ~RESPONSE)

/* The query keys of an operation, as bitmaps of BIT(P_...). A query selects the operation if the query has
 * every key in `needs`, and no key outside of `needs` and `may`. */
struct query_shape {
	uint64_t needs, may;
};

#endif
