/*
 * Who is asking and may they.  Pure; keys come from conf.
 *
 * Until signatures exist: a request that carries one (Authorization, X-Amz-Signature and friends in the
 * query) is refused with FAULT_SIGNATURE, never served as if it were anonymous; aws-chunked bodies and
 * STREAMING- payload hashes are FAULT_NOT_IMPLEMENTED; an unsigned one is served only where the listener says
 * anonymous.  The scality dialect has no authentication at all (protocol.md 4.5).
 */
#ifndef GANTRY_AUTH_AUTH_H
#define GANTRY_AUTH_AUTH_H

#include "dialect/dialect.h"

struct identity {
	bool anonymous;
};

enum fault auth_check(const struct dialect_in *in, const struct target *t, struct identity *ret_id,
		      const char **ret_why);

#endif
