/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the adaptor that requests call about their connection, see req/req.h. On the core's thread. */
#include "http/http_int.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

static void
on_ready(void *conn)
{
	struct hconn *c = conn;

	if (c->suspended)
		conn_resume(c);
	else if (c->stage == STAGE_BODY && c->has_body && !c->body_ended && req_is_ready(c->rq))
		early_reply_watch(c);
}

static void
on_abort(void *conn)
{
	conn_abort(conn);
}

static uint64_t
on_arrived(void *conn)
{
	struct hconn *c = conn;
	int n = 0;

	return c->offered + (ioctl(c->fd, FIONREAD, &n) == 0 && n > 0 ? (uint64_t)n : 0);
}

/* Returns the bytes in the socket, which include those of headers and of TLS. */
static uint64_t
on_unsent(void *conn)
{
	struct hconn *c = conn;
	int n = 0;

	return ioctl(c->fd, SIOCOUTQ, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

const struct reply_ops http_reply_ops = {
	.ready = on_ready, .abort = on_abort, .arrived = on_arrived, .unsent = on_unsent
};
