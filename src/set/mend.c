/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs damaged copies of keys with the bytes of their other copies, one after the other at each port. */
#include "set/look.h"

#include "store/own_buf.h"
#include "base/buf.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mend {
	struct key_op ko;
	bool of_second; /* true: the damaged copy is the secondary */
	struct list link;
	struct set_wait *waits; /* wait of a read for the repair; NULL: no read waits */
	struct store_send send;
	struct buf buf;
	uint8_t id[STORE_UPLOAD_ID_BYTES]; /* id of the upload whose part is damaged */
};

static void start(struct mend *m);

static void
over(struct mend *m, int result)
{
	struct set_port *p = m->ko.port;
	struct list *next;

	if (result >= 0 && !m->send.changes) {
		/* The repair read the bytes without an error, so nothing was rewritten. */
	} else if (result >= 0) {
		set_count(p->set, COUNT_REPAIRED);
		log_note("%s of bucket %.*s that was damaged was rewritten from its other copy",
			 m->send.only_upload ? "a part of an upload" : "an object", m->send.key.bucket_len,
			 m->send.key.bucket);
	} else if (result != -ESTALE) {
		log_limited(LOG_WARN,
			    "an object that is damaged could not be rewritten from its other copy: %s",
			    strerror(-result));
	}
	p->waiting.repairs = false;
	/* The port is not freed before this message arrives, because objects are open. */
	if (m->waits)
		mailbox_post(m->waits->mb, &m->waits->msg, m->waits->go);
	key_op_end(&m->ko);
	free(m->buf.mem);
	free(m);
	next = list_pop(&p->waiting.repairs_waiting);
	if (next)
		start(container_of(next, struct mend, link));
}

static void
on_sent(struct store_op *op)
{
	over(container_of(container_of(op, struct store_send, op), struct mend, send), op->result);
}

static void
send(struct key_op *ko)
{
	struct mend *m = container_of(ko, struct mend, ko);
	struct set *s = ko->port->set;
	int home = set_primary(s, &ko->key), second = set_secondary(s, &ko->key), r = -ESTALE;

	m->send.key = ko->key;
	m->send.op.done = on_sent;
	m->send.is_repair = true;
	m->send.buf = &m->buf;
	if (home != SET_NOWHERE && second != SET_NOWHERE) {
		struct store_port *from = port_engine(ko->port, m->of_second ? home : second);
		struct store_port *to = port_engine(ko->port, m->of_second ? second : home);

		r = from->ops->member->send(from, to, &m->send);
	}
	if (r != 0)
		over(m, r < 0 ? r : m->send.op.result);
}

static void
start(struct mend *m)
{
	int r = -EAGAIN;

	m->ko.port->waiting.repairs = true;
	if (store_buf_make(&m->buf, BUF_LARGE_BYTES))
		r = key_op_lock(&m->ko, send);
	if (r < 0)
		over(m, r);
	else if (r > 0)
		send(&m->ko);
}

bool
mend_begin(struct look *lk, struct set_wait *waits)
{
	struct set_port *p = lk->ko.port;
	struct mend *m = p->waiting.repairs && !waits ? NULL : calloc(1, sizeof *m);

	if (!m)
		return false;
	key_op_init(&m->ko, p, &lk->ko.key);
	port_pin(p);
	m->waits = waits;
	m->of_second = lk->is_second;
	if (lk->call.kind == LOOK_PART)
		m->send.only_upload = memcpy(m->id, lk->id, sizeof m->id);
	if (p->waiting.repairs)
		list_push_tail(&p->waiting.repairs_waiting, &m->link);
	else
		start(m);
	return waits != NULL;
}
