/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation is to the request machine: steps, hooks, and an entry for each in the table of
 * req_env.  The machine knows an operation's number and its row of op.def, and reaches what it does through
 * the entry only.
 */
#ifndef GANTRY_REQ_OPERATION_H
#define GANTRY_REQ_OPERATION_H

#include "dialect/dialect.h"

#include <stddef.h>

struct req;

enum verdict { REQ_GO, REQ_WAIT, REQ_STOP };
typedef enum verdict (*step_fn)(struct req *rq);

/* Takes bytes of a request's body and returns how many, as req_body(). */
typedef size_t (*take_fn)(struct req *rq, const void *data, size_t len);
/* Takes a header field of a reply; name in lower case, value terminated. */
typedef void (*header_fn)(void *cookie, const char *name, const char *value);

/* Says what an operation has to do with bodies and replies, where it is more than its steps.  Any may be
 * NULL. */
struct op_hooks {
	/* Takes a body that is not text.  NULL: the operation has no use for it. */
	take_fn take;
	/* The checksum headers speak of the object that comes of it, not of a body that is text. */
	bool sums_of_object;
	/* Tells whether a body that take() took, and that is over, was whole: FAULT_NONE or what to
	 * answer. */
	enum fault (*body_end)(struct req *rq, const char **ret_why);
	/* Adds header fields to a reply of that outcome, of whatever kind, with reply_text() and its like. */
	void (*headers)(struct req *rq, const struct outcome *o, enum outcome_kind kind);
	/* Hands out fields that are kept elsewhere, behind all others, when the reply leaves. */
	void (*stored)(struct req *rq, header_fn header, void *cookie);
};

/* Says what an operation gives the machine: an entry of req_env's table, by enum op. */
struct op_entry {
	step_fn start; /* its first step; NULL: not served, 501 */
	const struct op_hooks *hooks;
};

#endif
