/* The operations by number: the rows of op.def as the machine uses them.  A start that is missing does not link. */
#include "ops/ops.h"

const struct op_entry op_table[OP_NR] = {
#define OP(id, name, start_, ...) [OP_##id] = { .start = start_ },
#include "dialect/op.def"
};
