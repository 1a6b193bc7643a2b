/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations, called by the state machine of requests (req/). The state machine reaches them only through
 * the table that core/ puts into struct req_env.
 */
#ifndef GANTRY_OPS_OPS_H
#define GANTRY_OPS_OPS_H

#include "dialect/dialect.h"
#include "req/operation.h"

/* Declares the first step of each row of op.def. Some rows have the same first step. */
#define OP(id, name, start, ...) enum verdict start(struct req *rq);
#include "dialect/op.def"

/* The entries of all operations, by enum op; the entry of OP_NONE is empty. */
extern const struct op_entry op_table[OP_NR];

#endif
