/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers past the library.  libmicrohttpd takes an answer with the head of a request or after its body
 * (0.9.75 and all that came since), so one that is known in between waits for the rest of the body.  It does
 * here while the body flows: the connection may then go on.  When nothing of the body has come for a while, or
 * the rest takes longer than limits.s3_progress, or the answer is not to wait (others do), it is written to
 * the socket and the connection ended.  So it is after DISCARD_BYTES of a body in chunks, which may have no end, and
 * whose connection is closed in any case.
 *
 * The request is over with that, and what it holds goes back at once.  The library closes the connection by
 * its own time-out, at most a second after the last of the body; the socket then lingers as after every
 * answer that came before the end of a body (mhd_linger.c).
 */
#include "http/http_int.h"

#include "base/clock.h"

#define STALLED_NS (NS_PER_S / 4) /* a body of which nothing came for so long does not flow */
#define DISCARD_BYTES (64ull << 20)

/* Returns true if the body arrives, so that the answer can wait for the end of it. */
static bool
flows(const struct hconn *c, uint64_t now)
{
	bool is_too_long = c->must_close && c->taken - c->owed_taken > DISCARD_BYTES;

	return c->body_ns + STALLED_NS > now && !req_reply(c->rq)->at_once && !is_too_long;
}

void
early_reply_watch(struct hconn *c)
{
	uint64_t now;

	if (list_linked(&c->owed) || c->replied_early)
		return;
	now = clock_ns();
	c->owed_since_ns = c->look_ns = now;
	c->owed_taken = c->taken;
	if (!flows(c, now)) {
		list_push_head(&c->l->h->owed, &c->owed);
		return;
	}
	c->look_ns += STALLED_NS;
	list_push_tail(&c->l->h->owed, &c->owed); /* in the order of look_ns, as all wait as long */
}

void
early_reply_forget(struct hconn *c)
{
	if (list_linked(&c->owed))
		list_del(&c->owed);
}

static bool
write_reply(struct hconn *c)
{
	const struct reply *r = req_reply(c->rq);
	struct past_answer a;

	/* Not of a known size here; and dialect/ refuses the bodies of requests that are answered so. */
	if (r->body == REPLY_STREAM && r->len_bytes)
		return false;
	past_begin(&a, c, r->status);
	req_reply_headers(c->rq, past_line, &a);
	past_end(&a, r->status != 204 && r->status != 304, r->body == REPLY_TEXT ? r->text : NULL,
		 r->body == REPLY_EMPTY ? 0 : r->len_bytes);
	return past_send(c, &a);
}

/* Nobody but us may answer on this connection any more. */
static void
answer_early(struct hconn *c)
{
	struct req *rq = c->rq;
	bool sent = write_reply(c);

	c->replied_early = true;
	c->linger = sent;
	c->rq = NULL;
	req_end(rq, sent);
	if (!sent) {
		conn_abort(c);
		return;
	}
	MHD_set_connection_option(c->mc, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
	c->l->hot = true;
}

bool
early_reply_run(struct http *h)
{
	bool any = false;
	uint64_t now;

	if (list_empty(&h->owed))
		return false;
	now = clock_ns();
	list_for_each_safe(l, &h->owed)
	{
		struct hconn *c = container_of(l, struct hconn, owed);

		if (c->look_ns > now)
			break;
		list_del(&c->owed);
		if (!flows(c, now) || c->owed_since_ns + h->conf->limits.s3_progress_ns <= now) {
			answer_early(c);
			any = true;
		} else {
			c->look_ns = now + STALLED_NS;
			list_push_tail(&h->owed, &c->owed);
		}
	}
	return any;
}
