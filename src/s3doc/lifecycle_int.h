/* SPDX-License-Identifier: Apache-2.0 */
/* The packed form of lifecycle rules, shared by the code that reads and writes XML and the code that
 * evaluates the rules. */
#ifndef GANTRY_S3DOC_LIFECYCLE_INT_H
#define GANTRY_S3DOC_LIFECYCLE_INT_H

#include "s3doc/lifecycle.h"
#include "s3doc/pack.h"

#define LIFECYCLE_FORM 1
#define LIFECYCLE_DAY ((uint64_t)86400)

enum {
	R_ENABLED = 1,
	R_DAYS = 2,
	R_DATE = 4,
	R_MARKER = 8, /* the rule has ExpiredObjectDeleteMarker, which is stored and has no effect */
	R_ABORT = 16,
	R_GREATER = 32,
	R_LESS = 64,
	R_OLD_FORM = 128, /* Prefix is an element of the rule itself, not of a Filter */
	R_NONCURRENT = 256,
	R_NEWER = 512
};

/* A rule without its strings. */
struct lifecycle_head {
	unsigned flags;
	uint32_t days, abort_days, noncurrent_days, newer;
	uint64_t date_s, greater, less;
};

struct lifecycle_rule {
	struct lifecycle_head h;
	struct span id, prefix, tags;
};

/* Returns an unpacker that is at the first rule. Each call of lifecycle_next() stores the next rule in *r and
 * returns true; false: there are no more rules, or the packed bytes are damaged. */
struct unpacker lifecycle_rules(const void *packed, size_t len);
bool lifecycle_next(struct unpacker *u, struct lifecycle_rule *r);
void lifecycle_pack(struct text *x, const struct lifecycle_rule *r);

#endif
