/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations: what the request machine (req/) calls when it knows what is asked for.  The machine reaches
 * them through the table only, which core/ puts into struct req_env.
 */
#ifndef GANTRY_OPS_OPS_H
#define GANTRY_OPS_OPS_H

#include "dialect/dialect.h"
#include "req/operation.h"

/* Declares the first step of each row; several rows may have the same. */
#define OP(id, name, start, ...) enum verdict start(struct req *rq);
#include "dialect/op.def"

/* Holds what each operation gives the machine, by enum op; OP_NONE has nothing. */
extern const struct op_entry op_table[OP_NR];

#endif
