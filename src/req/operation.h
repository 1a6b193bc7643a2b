/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of an operation to the state machine of requests: its steps, its hooks, and its entry in the
 * table of req_env. The state machine knows the number of an operation and its row of op.def, and calls the
 * code of the operation only through the entry. */
#ifndef GANTRY_REQ_OPERATION_H
#define GANTRY_REQ_OPERATION_H

#include "dialect/dialect.h"

#include <stddef.h>

struct req;

enum verdict { REQ_GO, REQ_WAIT, REQ_STOP };
typedef enum verdict (*step_fn)(struct req *rq);

/* Takes bytes of a request's body. Returns the number of bytes taken; fewer than len: the connection is
 * suspended until ops->ready(). */
typedef size_t (*take_fn)(struct req *rq, const void *data, size_t len);
/* Receives a header field of a reply. name: in lower case; value: terminated. */
typedef void (*header_fn)(void *cookie, const char *name, const char *value);

/* The hooks of an operation for bodies and replies, in addition to its steps; NULL: the operation does not
 * need the hook. */
struct op_hooks {
	/* Takes the bytes of a body that is not collected as text. NULL: the operation has no such body. */
	take_fn take;
	/* true: checksum header fields of the request refer to the resulting object, not to the body */
	bool sums_of_object;
	/* Checks whether the bytes that take() received are a complete body. Returns FAULT_NONE or the fault
	 * for the reply. */
	enum fault (*body_end)(struct req *rq, const char **ret_why);
	/* Adds header fields to the reply with reply_text() and similar functions. o, kind: outcome of the
	 * request. */
	void (*headers)(struct req *rq, const struct outcome *o, enum outcome_kind kind);
	/* Passes header fields that are not stored in the request to header(), after all other fields, when
	 * the reply is sent. */
	void (*stored)(struct req *rq, header_fn header, void *cookie);
};

/* The functions of an operation: its first step and its hooks. An entry of the table req_env.operations,
 * whose index is an enum op. */
struct op_entry {
	/* first step of the operation; NULL: the operation is not supported, and is answered 501 */
	step_fn start;
	const struct op_hooks *hooks;
};

#endif
