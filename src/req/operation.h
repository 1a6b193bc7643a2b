/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of an operation to the request machine: its steps, its hooks, and its entry in the table of
 * req_env. The machine knows an operation's number and its row of op.def, and calls its code through the
 * entry only.
 */
#ifndef GANTRY_REQ_OPERATION_H
#define GANTRY_REQ_OPERATION_H

#include "dialect/dialect.h"

#include <stddef.h>

struct req;

enum verdict { REQ_GO, REQ_WAIT, REQ_STOP };
typedef enum verdict (*step_fn)(struct req *rq);

/* Takes bytes of a request's body, and returns the number taken, as req_body() does. */
typedef size_t (*take_fn)(struct req *rq, const void *data, size_t len);
/* Receives a header field of a reply; name is in lower case, value ends with a NUL. */
typedef void (*header_fn)(void *cookie, const char *name, const char *value);

/* The hooks of an operation for bodies and replies, in addition to its steps. Each hook may be NULL. */
struct op_hooks {
	/* Takes a body that is not text. NULL: the operation has no such body. */
	take_fn take;
	/* true: the checksum headers refer to the resulting object, not to the text body */
	bool sums_of_object;
	/* Checks whether the body that take() received is complete. Returns FAULT_NONE or the fault to
	 * answer. */
	enum fault (*body_end)(struct req *rq, const char **ret_why);
	/* Adds header fields to a reply with that outcome and kind, by reply_text() and similar functions. */
	void (*headers)(struct req *rq, const struct outcome *o, enum outcome_kind kind);
	/* Adds header fields that are not stored in the request, after all others, when the reply is sent. */
	void (*stored)(struct req *rq, header_fn header, void *cookie);
};

/* The entry of an operation in req_env's table, by enum op. */
struct op_entry {
	step_fn start; /* first step of the operation; NULL: not served, 501 */
	const struct op_hooks *hooks;
};

#endif
