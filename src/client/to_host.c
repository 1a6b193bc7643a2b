/* SPDX-License-Identifier: Apache-2.0 */
/* A copy from memory of a device to the host's, for programs that have both.  Any thread. */
#include "client/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
gantry_copy_to_host(struct gantry *g, void *dst, const void *src, size_t size,
		    const struct gantry_request *req, struct gantry_result *res)
{
	struct gantry_result own = { .size = res && res->size ? res->size : sizeof own };
	struct gantry_request r = { 0 };
	struct gpu_stream *s = NULL;
	int e = 0;

	if (req)
		memcpy(&r, req, req->size && req->size < sizeof r ? req->size : sizeof r);
	if (!g->stage) {
		snprintf(own.message, sizeof own.message,
			 "the context stages nothing (gantry_options.stage)");
		e = -EOPNOTSUPP;
	} else if (!is_mine(g)) {
		snprintf(own.message, sizeof own.message,
			 "the context was opened before a fork(), by another process");
		e = -EOPNOTSUPP;
	}
	if (e == 0 && r.wait != GANTRY_WAIT_NONE)
		e = gpu_wait(src, r.wait, r.wait_for, own.message, sizeof own.message);
	if (e == 0)
		e = stage_stream(g, src, &s, own.message, sizeof own.message);
	if (e == 0) {
		e = gpu_copy_start(s, dst, src, size, GANTRY_TO_HOST, own.message, sizeof own.message);
		if (e == 0)
			e = gpu_copy_wait(s, own.message, sizeof own.message);
		stage_stream_give(g, s);
	}
	if (res)
		memcpy(res, &own, own.size < sizeof own ? own.size : sizeof own);
	return e;
}
