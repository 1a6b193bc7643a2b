/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeleteObjects: up to 1000 keys of one bucket, several at a time, each judged by itself.  The core's thread.
 *
 *   start -> run ... run -> reply        each key: [open ...] delete ...
 */
#include "ops/ops_int.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16

struct del_slot {
	struct store_obj obj;
	struct store_del del;
	struct req *rq;
	int index; /* of the key; -1: free */
};

struct deletes_job {
	struct xml_delete body;
	uint8_t *fault; /* of each key */
	int next, busy;
	struct del_slot slot[SLOTS];
};

static enum verdict deletes_run(struct req *rq);

static void
deletes_fini(struct req *rq)
{
	struct deletes_job *j = rq->job;

	xml_delete_free(&j->body);
	free(j->fault);
}

/* Also of a request whose client has gone meanwhile: what is deleted is deleted. */
static void
log_key(const struct req *rq, int index)
{
	const struct deletes_job *j = rq->job;

	report_key(rq, j->body.keys[index].key, j->body.keys[index].key_len, (enum fault)j->fault[index]);
}

static void
finish(struct del_slot *s, int result)
{
	struct deletes_job *j = s->rq->job;

	/* What is not there is deleted, whatever the condition. */
	if (result < 0 && result != -ENOENT)
		j->fault[s->index] = (uint8_t)fault_of(result);
	log_key(s->rq, s->index);
	s->index = -1;
	j->busy--;
	s->rq->progress_ns = clock_ns();
}

static struct store_key
key_of(const struct del_slot *s)
{
	const struct target *t = &s->rq->target;
	const struct xml_delete_key *k = &((struct deletes_job *)s->rq->job)->body.keys[s->index];

	return (struct store_key){ .bucket = t->bucket,
				   .bucket_len = t->bucket_len,
				   .key = k->key,
				   .key_len = (uint16_t)k->key_len };
}

static void
on_del(struct store_op *op)
{
	struct del_slot *s = container_of(container_of(op, struct store_del, op), struct del_slot, del);
	struct req *rq = s->rq;

	rq->holds--;
	finish(s, op->result);
	req_wake(rq);
}

static void
go_delete(struct del_slot *s, const struct store_pre *pre)
{
	struct store_key key = key_of(s);
	int r;

	s->del.op.done = on_del;
	r = store_delete(s->rq->rs->env.store, &key, pre, &s->del);
	if (r == 0)
		s->rq->holds++;
	else
		finish(s, r < 0 ? r : s->del.op.result);
}

/* Only if it is as large or as old as the client says: then that very version. */
static void
opened(struct del_slot *s)
{
	struct deletes_job *j = s->rq->job;
	const struct xml_delete_key *k = &j->body.keys[s->index];
	struct store_pre pre = { .kind = PRE_VERSION, .version = s->obj.version };
	int r = s->obj.op.result;
	char etag[48];
	size_t len;

	if (r < 0) {
		finish(s, r);
		return;
	}
	len = etag_text(&s->obj.meta.etag, etag);
	if ((k->have_size && k->size_bytes != s->obj.size_bytes) ||
	    (k->have_mtime && k->mtime_s != s->obj.meta.mtime_ns / NS_PER_S) ||
	    (k->have_etag && strcmp(k->etag, "*") != 0 &&
	     (k->etag_len != len || memcmp(k->etag, etag, len) != 0)))
		r = -ESTALE;
	store_close(s->rq->rs->env.store, &s->obj);
	if (r < 0)
		finish(s, r);
	else
		go_delete(s, &pre);
}

static void
on_open(struct store_op *op)
{
	struct del_slot *s = container_of(container_of(op, struct store_obj, op), struct del_slot, obj);
	struct req *rq = s->rq;

	rq->holds--;
	if (rq->fault == FAULT_NONE) {
		opened(s);
	} else {
		store_close(rq->rs->env.store, &s->obj);
		finish(s, -ECANCELED);
	}
	req_wake(rq);
}

static void
go_open(struct del_slot *s)
{
	struct store_key key = key_of(s);
	int r;

	memset(&s->obj, 0, sizeof s->obj);
	s->obj.op.done = on_open;
	r = store_open(s->rq->rs->env.store, &key, &s->obj);
	if (r == 0) {
		s->rq->holds++;
		return;
	}
	if (r < 0)
		s->obj.op.result = r;
	opened(s);
}

static void
go(struct del_slot *s, int index)
{
	struct deletes_job *j = s->rq->job;
	const struct xml_delete_key *k = &j->body.keys[index];
	struct store_pre none = { .kind = PRE_NONE };

	if (k->fault != FAULT_NONE || !may_key(s->rq, AUTH_DELETE, k->key, k->key_len)) {
		j->fault[index] = (uint8_t)(k->fault != FAULT_NONE
						    ? k->fault
						    : why_not_key(s->rq, AUTH_DELETE, k->key, k->key_len));
		log_key(s->rq, index);
		return;
	}
	s->index = index;
	j->busy++;
	if (k->have_etag || k->have_size || k->have_mtime)
		go_open(s);
	else
		go_delete(s, &none);
}

static enum verdict
deletes_reply(struct req *rq)
{
	struct deletes_job *j = rq->job;

	xml_deleted_begin(&rq->out);
	for (int i = 0; i < j->body.nr; i++) {
		const struct xml_delete_key *k = &j->body.keys[i];

		if (j->fault[i])
			xml_not_deleted(&rq->out, k->key, k->key_len, (enum fault)j->fault[i], NULL);
		else if (!j->body.quiet)
			xml_deleted(&rq->out, k->key, k->key_len);
	}
	xml_deleted_end(&rq->out);
	return req_reply_xml(rq);
}

static enum verdict
deletes_run(struct req *rq)
{
	struct deletes_job *j = rq->job;

	for (int i = 0; i < SLOTS; i++) {
		while (j->slot[i].index < 0 && j->next < j->body.nr)
			go(&j->slot[i], j->next++);
	}
	if (j->busy)
		return req_wait(rq, "deletes", deletes_run);
	return req_go(rq, deletes_reply);
}

static enum verdict
deletes_begin(struct req *rq)
{
	const char *why = NULL;
	struct deletes_job *j;
	enum fault f;

	_Static_assert(FAULT_NR <= UINT8_MAX, "a fault in a byte");
	j = req_job(rq, sizeof *j, deletes_fini);
	if (!j)
		return req_fail(rq, FAULT_BUSY, NULL);
	f = xml_delete_parse(rq->body, rq->body_len, &j->body, &why);
	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	j->fault = calloc((size_t)j->body.nr, 1);
	if (!j->fault)
		return req_fail(rq, FAULT_BUSY, NULL);
	for (int i = 0; i < SLOTS; i++) {
		j->slot[i].rq = rq;
		j->slot[i].index = -1;
	}
	rq->phase = PHASE_COMMIT;
	return req_go(rq, deletes_run);
}

enum verdict
deletes_start(struct req *rq)
{
	return req_need_bucket(rq, deletes_begin);
}
