/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each operation: op.def as arrays.  See dialect.h. */
#include "dialect/dialect.h"

const char *const op_name[OP_NR] = {
	[OP_NONE] = "Unknown",
#define OP(id, name, ...) [OP_##id] = name,
#include "dialect/op.def"
};

const struct op_info op_info[OP_NR] = {
	[OP_NONE] = { .method = METHOD_OTHER, .right = RIGHT_BUCKET, .ok = 200 },
#define OP(id, name, start, method_, level_, body_, writes_, right_, ok_, parts_, needs, may)                \
	[OP_##id] = { .method = METHOD_##method_,                                                            \
		      .level = LEVEL_##level_,                                                               \
		      .body = BODY_##body_,                                                                  \
		      .writes = writes_,                                                                     \
		      .right = RIGHT_##right_,                                                               \
		      .ok = ok_,                                                                             \
		      .parts = TARGET_##parts_ },
#include "dialect/op.def"
};
