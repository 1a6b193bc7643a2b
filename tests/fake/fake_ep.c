/* See fake_ep.h. */
#include "fake_ep.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rdma_cq {
	unsigned context;
	int depth;
};

struct rdma_dci {
	unsigned context;
	bool gone;
	enum { QP_RTS, QP_ERR } state;
	int depth;
};

struct rdma_ah {
	int refs;
};

struct fake_ep fake_ep;
static struct rdma_ah the_ah;

void
fake_dc_init(void)
{
	memset(&fake_ep, 0, sizeof fake_ep);
	memset(&the_ah, 0, sizeof the_ah);
	fake_ep.rail_nr = 1;
	fake_ep.context = 1;
	fake_ep.ah_result = 1;
	fake_ep.limits.read_depth = 16;
	list_init(&fake_ep.jobs);
	list_init(&fake_ep.ah_waits);
}

/* --- rails --- */

int
rdma_rail_nr(const struct rdma *rd)
{
	return fake_ep.rail_nr;
}

struct rdma_rail *
rdma_rail(struct rdma *rd, int i)
{
	check(i == 0);
	return (struct rdma_rail *)&fake_ep;
}

struct rdma_rail_stats *
rdma_rail_stats(struct rdma_rail *rail)
{
	return &fake_ep.stats;
}

enum rail_state
rdma_rail_state(const struct rdma_rail *rail)
{
	return fake_ep.state;
}

unsigned
rdma_rail_generation(const struct rdma_rail *rail)
{
	return fake_ep.generation;
}

unsigned
rdma_rail_context(const struct rdma_rail *rail)
{
	return fake_ep.context;
}

void
fake_dc_set_context(unsigned context, unsigned closed)
{
	/* Of a context that is given up nobody hears any more; its work requests stay the hardware's. */
	for (int i = 0; !context && i < FAKE_WRS_MAX; i++)
		fake_ep.wr[i].lost = fake_ep.wr[i].used;
	if (closed > fake_ep.closed)
		check(fake_ep.dcis == 0 && fake_ep.cqs == 0);
	fake_ep.context = context;
	fake_ep.closed = closed;
	if (fake_ep.watch)
		fake_ep.watch->changed(fake_ep.watch);
}

void
fake_dc_set_state(enum rail_state state, bool new_generation)
{
	fake_ep.state = state;
	fake_ep.generation += new_generation;
	if (fake_ep.watch)
		fake_ep.watch->changed(fake_ep.watch);
}

void
rdma_rail_stuck(struct rdma_rail *rail, int by)
{
	fake_ep.stuck += by;
	check(fake_ep.stuck >= 0);
	fake_dc_set_state(fake_ep.stuck || !fake_ep.context ? RAIL_LOST : RAIL_UP, false);
}

void
rdma_rail_broken(struct rdma_rail *rail, const char *why)
{
	fake_ep.broken = true;
}

void
rdma_watch_add(struct rdma *rd, struct rdma_watch *w)
{
	fake_ep.watch = w;
}

void
rdma_watch_del(struct rdma *rd, struct rdma_watch *w)
{
	fake_ep.watch = NULL;
}

int
rdma_route(struct rdma *rd, const struct token *tok, const struct sockaddr *local,
	   struct rail_route *ret_route)
{
	if (fake_ep.route_result)
		return fake_ep.route_result;
	if (fake_ep.state != RAIL_UP)
		return -ENETDOWN;
	*ret_route = (struct rail_route){ .rail = 0 };
	return 0;
}

/* --- address handles --- */

int
rdma_ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_ah_wait *w,
	    struct rdma_ah **ret_ah)
{
	if (fake_ep.ah_result > 0) {
		fake_ep.ah_refs++;
		*ret_ah = &the_ah;
	} else if (fake_ep.ah_result == 0) {
		list_push_tail(&fake_ep.ah_waits, &w->link);
	}
	return fake_ep.ah_result;
}

int
fake_dc_ah_answer(int result)
{
	int n = 0;

	for (struct list *l; (l = list_pop(&fake_ep.ah_waits)); n++) {
		struct rdma_ah_wait *w = container_of(l, struct rdma_ah_wait, link);

		w->result = result;
		w->ah = result == 0 ? &the_ah : NULL;
		fake_ep.ah_refs += result == 0;
		w->done(w);
	}
	return n;
}

void
rdma_ah_put(struct rdma_rail *rail, struct rdma_ah *ah)
{
	check(ah == &the_ah);
	check(fake_ep.ah_refs-- > 0);
}

void
rdma_ah_forget(struct rdma_rail *rail, struct rdma_ah *ah)
{
	check(ah == &the_ah);
	fake_ep.forgotten++;
}

/* --- completion queues --- */

int
rdma_cq_new(struct rdma_rail *rail, int depth, struct rdma_cq **ret_cq)
{
	fake_ep.cq_tries++;
	if (fake_ep.cq_result)
		return fake_ep.cq_result;
	if (!fake_ep.context)
		return -ENODEV;
	*ret_cq = calloc(1, sizeof **ret_cq);
	check(*ret_cq);
	(*ret_cq)->depth = fake_ep.cq_depth = depth;
	(*ret_cq)->context = fake_ep.context;
	fake_ep.cqs++;
	return 0;
}

void
rdma_cq_free(struct rdma_cq *cq)
{
	if (!cq)
		return;
	check(fake_ep.dcis == 0);
	fake_ep.cqs--;
	fake_ep.cqe_nr = 0;
	free(cq);
}

int
rdma_cq_fd(const struct rdma_cq *cq)
{
	return 99 + (int)cq->context;
}

int
rdma_cq_poll(struct rdma_cq *cq, struct rdma_completion *ret_wc, int max)
{
	int n = fake_ep.cqe_nr < max ? fake_ep.cqe_nr : max;

	fake_ep.polls++;
	check(fake_ep.cqe_nr <= cq->depth);
	memcpy(ret_wc, fake_ep.cqe, (size_t)n * sizeof *ret_wc);
	memmove(fake_ep.cqe, fake_ep.cqe + n, (size_t)(fake_ep.cqe_nr - n) * sizeof *ret_wc);
	fake_ep.cqe_nr -= n;
	return n;
}

unsigned
rdma_cq_context(const struct rdma_cq *cq)
{
	return cq->context;
}

void
rdma_cq_arm(struct rdma_cq *cq)
{
	fake_ep.armed++;
}

void
rdma_cq_event(struct rdma_cq *cq)
{
}

void
fake_dc_stray(uint64_t wr_id, enum rdma_status status)
{
	check(fake_ep.cqe_nr < FAKE_WRS_MAX);
	fake_ep.cqe[fake_ep.cqe_nr++] = (struct rdma_completion){ .wr_id = wr_id, .status = status };
}

/* --- initiators --- */

void
rdma_dci_limits(const struct rdma_rail *rail, int want, struct rdma_dci_limits *ret_limits)
{
	*ret_limits = fake_ep.limits;
	if (!ret_limits->send_depth)
		ret_limits->send_depth = want;
}

int
rdma_dci_new(struct rdma_rail *rail, struct rdma_cq *cq, int send_depth, struct rdma_dci **ret_dci)
{
	if (fake_ep.new_result)
		return fake_ep.new_result;
	if (cq->context != fake_ep.context)
		return -ENODEV;
	*ret_dci = calloc(1, sizeof **ret_dci);
	check(*ret_dci);
	(*ret_dci)->depth = send_depth;
	(*ret_dci)->context = cq->context;
	fake_ep.dcis++;
	fake_ep.created++;
	return 0;
}

/* The oldest work request, of dci or of anybody; lost ones too when asked. */
static struct fake_wr *
oldest(const struct rdma_dci *dci, uint64_t from, bool lost_too)
{
	struct fake_wr *best = NULL;

	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		struct fake_wr *w = &fake_ep.wr[i];

		if (w->used && w->order >= from && (!dci || w->dci == dci) && (lost_too || !w->lost) &&
		    (!best || w->order < best->order))
			best = w;
	}
	return best;
}

int
rdma_dci_error(struct rdma_dci *dci)
{
	struct fake_wr *w;

	fake_ep.errors++;
	if (dci->context != fake_ep.context)
		return -EIO;
	if (fake_ep.error_result)
		return fake_ep.error_result;
	dci->state = QP_ERR;
	while (!fake_ep.no_flush && (w = oldest(dci, 0, false)))
		fake_dc_complete(w, WCS_FLUSHED);
	return 0;
}

int
rdma_dci_reset(struct rdma_dci *dci)
{
	if (dci->context != fake_ep.context)
		return -EIO;
	if (fake_ep.reset_result)
		return fake_ep.reset_result;
	check(!oldest(dci, 0, true)); /* nothing may be outstanding */
	dci->state = QP_RTS;
	fake_ep.resets++;
	return 0;
}

int
rdma_dci_free(struct rdma_dci *dci, bool idle)
{
	struct fake_wr *w;
	int n = 0;

	if (!dci)
		return 0;
	if (!dci->gone && fake_ep.free_result && dci->context == fake_ep.context)
		return fake_ep.free_result;
	if (dci->context != fake_ep.context && !idle && fake_ep.closed < dci->context) {
		fake_ep.dcis -= !dci->gone;
		dci->gone = true;
		return -EINPROGRESS;
	}
	while ((w = oldest(dci, 0, true)))
		w->used = false;
	/* The device's library cleans the queue of this pair's completions; they are told by their number. */
	for (int i = 0; i < fake_ep.cqe_nr; i++)
		fake_ep.cqe[n++] = fake_ep.cqe[i];
	fake_ep.cqe_nr = n;
	fake_ep.dcis -= !dci->gone;
	fake_ep.destroyed++;
	free(dci);
	return 0;
}

int
rdma_dci_post(struct rdma_dci *dci, const struct rdma_wr *wr)
{
	int n = 0;

	if (fake_ep.post_result)
		return fake_ep.post_result;
	check(wr->ah == &the_ah);
	for (int i = 0; i < FAKE_WRS_MAX; i++)
		n += fake_ep.wr[i].used && fake_ep.wr[i].dci == dci;
	check(n < dci->depth);
	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		struct fake_wr *w = &fake_ep.wr[i];

		if (w->used)
			continue;
		*w = (struct fake_wr){ .wr = *wr, .dci = dci, .order = fake_ep.order++, .used = true };
		fake_ep.posts++;
		*(wr->is_write ? &fake_ep.writes : &fake_ep.reads) += 1;
		if (dci->state == QP_ERR &&
		    !fake_ep.no_flush) /* in error already, which the core has not seen yet */
			fake_dc_complete(w, WCS_FLUSHED);
		return 0;
	}
	check(!"room for a work request");
	return -ENOMEM;
}

int
fake_dc_wr_nr(void)
{
	int n = 0;

	for (int i = 0; i < FAKE_WRS_MAX; i++)
		n += fake_ep.wr[i].used && !fake_ep.wr[i].lost;
	return n;
}

struct fake_wr *
fake_dc_wr(int i)
{
	struct fake_wr *w = oldest(NULL, 0, false);

	while (w && i-- > 0)
		w = oldest(NULL, w->order + 1, false);
	return w;
}

void
fake_dc_complete(struct fake_wr *w, enum rdma_status status)
{
	check(w->used);
	w->used = false;
	if (status != WCS_SUCCESS && status != WCS_FLUSHED) {
		struct rdma_dci *dci = w->dci;

		fake_dc_stray(w->wr.wr_id, status);
		dci->state = QP_ERR; /* and everything behind it flushes */
		while (!fake_ep.no_flush && (w = oldest(dci, 0, false)))
			fake_dc_complete(w, WCS_FLUSHED);
		return;
	}
	fake_dc_stray(w->wr.wr_id, status);
}

void
fake_dc_complete_all(void)
{
	for (struct fake_wr *w; (w = oldest(NULL, 0, false));)
		fake_dc_complete(w, WCS_SUCCESS);
}

bool
fake_dc_holds(const void *mem)
{
	for (int i = 0; i < FAKE_WRS_MAX; i++) {
		const struct fake_wr *w = &fake_ep.wr[i];

		if (w->used && (const char *)mem >= (const char *)w->wr.mem &&
		    (const char *)mem < (const char *)w->wr.mem + w->wr.len)
			return true;
	}
	return false;
}

/* --- the helper --- */

void
rdma_job_post(struct rdma_rail *rail, struct rdma_job *job)
{
	list_push_tail(&fake_ep.jobs, &job->link);
}

int
fake_dc_run_jobs(int max)
{
	int n = 0;

	for (struct list *l; (!max || n < max) && (l = list_pop(&fake_ep.jobs)); n++) {
		struct rdma_job *job = container_of(l, struct rdma_job, link);

		job->run(job);
	}
	return n;
}

int
fake_dc_job_nr(void)
{
	int n = 0;

	list_for_each(l, &fake_ep.jobs) n++;
	return n;
}
