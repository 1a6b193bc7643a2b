/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a query as numbers and bits: query.def, and their use in op.def. Private to query.c. */
#ifndef GANTRY_DIALECT_QUERY_KEYS_H
#define GANTRY_DIALECT_QUERY_KEYS_H

#include <stdint.h>

enum param {
#define QUERY(id, ...) P_##id,
#include "dialect/query.def"
	P_NR,
	P_ANY = P_NR, /* known and without effect */
	P_SUM,        /* a header of a checksum that an SDK moved into a signed URL */
	P_MOVED,      /* any other header that an SDK moved into a signed URL */
	P_SIGNS,      /* part of a signature, in another letter case */
	P_MISSING,    /* requests a feature that does not exist here */
	P_STRANGER,   /* unknown key */
};

#define BIT(p) ((uint64_t)1 << (p))
_Static_assert(P_STRANGER <= 62, "one bit each, and one that none has");

/* ---- what op.def says of keys ---- */

#define Q(p) BIT(P_##p)
#define ELSEWHERE BIT(63) /* for operations that no query selects */
/* "id" selects one of several subresources, and is ignored where there are none. */
#define LISTING (Q(PREFIX) | Q(DELIMITER) | Q(ENCODING) | Q(ID))
#define PAGING (Q(CONTINUATION) | Q(START_AFTER) | Q(FETCH_OWNER))
#define BUCKETS (Q(MAX_BUCKETS) | Q(CONTINUATION) | Q(PREFIX) | Q(BUCKET_REGION))
#define RESPONSE                                                                                             \
	(Q(R_CACHE_CONTROL) | Q(R_DISPOSITION) | Q(R_ENCODING) | Q(R_EXPIRES) | Q(R_LANGUAGE) | Q(R_TYPE))
#define READING (RESPONSE | Q(VERSION_ID) | Q(PART_NUMBER) | Q(ID))

/* The keys that determine the operation. response-* never does: where it has no meaning it is ignored. */
#define DECIDES ((BIT(P_NR) - 1) & ~RESPONSE)

/* The queries that select an operation: all keys of needs, and no key beyond needs and may. */
struct query_shape {
	uint64_t needs, may;
};

#endif
