/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues for the application: creation, plain polling, extended polling, destruction. cqe.c adds
 * the completions. Polling returns the send queue slots of a work request and of the unsignaled ones
 * before it; nothing else does (as on mlx5), so a program that never signals runs out of them.
 */
#include "softnic/engine.h"

static struct sn_cq *
sn_cq(struct ibv_cq *cq)
{
	return (struct sn_cq *)cq;
}

static struct sn_cq *
sn_cqx(struct ibv_cq_ex *cq)
{
	return (struct sn_cq *)cq;
}

/* ---- consumer ---- */

/* Under cq->lock. */
static bool
pop(struct sn_cq *cq, struct sn_cqe *e)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&cq->head, memory_order_acquire))
		return false;
	*e = cq->ring[tail & cq->mask];
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	if (!e->is_recv)
		atomic_store_explicit(&e->qp->freed, e->sq_upto, memory_order_release);

	return true;
}

static bool
looks_empty(const struct sn_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->head, memory_order_relaxed);
}

static bool
pop_one(struct sn_cq *cq, struct sn_cqe *e)
{
	bool got;

	if (looks_empty(cq) && !sn_engine_assist(cq->ctx))
		return false;
	pthread_mutex_lock(&cq->lock);
	got = pop(cq, e);
	pthread_mutex_unlock(&cq->lock);

	return got;
}

int
sn_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct sn_cq *cq = sn_cq(ibcq);
	struct sn_cqe e;
	int got = 0;

	if (looks_empty(cq) && !sn_engine_assist(cq->ctx))
		return 0;
	pthread_mutex_lock(&cq->lock);
	while (got < n && pop(cq, &e)) {
		wc[got++] = (struct ibv_wc){
			.wr_id = e.wr_id,
			.status = e.status,
			.opcode = e.opcode,
			.vendor_err = e.vendor,
			.byte_len = e.byte_len,
			.imm_data = e.imm,
			.qp_num = e.qpn,
			.wc_flags = e.flags,
		};
	}
	pthread_mutex_unlock(&cq->lock);

	return got;
}

static void
show(struct sn_cq *cq)
{
	cq->ex.wr_id = cq->cur.wr_id;
	cq->ex.status = cq->cur.status;
}

/* On ENOENT nothing is held: no end_poll follows. */
static int
start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct sn_cq *cq = sn_cqx(ibcq);

	if (attr->comp_mask)
		return EINVAL;
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->poll_lock);
	if (!pop_one(cq, &cq->cur)) {
		if (!cq->single_threaded)
			pthread_mutex_unlock(&cq->poll_lock);
		return ENOENT;
	}
	show(cq);

	return 0;
}

static int
next_poll(struct ibv_cq_ex *ibcq)
{
	struct sn_cq *cq = sn_cqx(ibcq);
	struct sn_cqe e;
	bool got;

	pthread_mutex_lock(&cq->lock);
	got = pop(cq, &e);
	pthread_mutex_unlock(&cq->lock);
	if (!got)
		return ENOENT;
	cq->cur = e;
	show(cq);

	return 0;
}

static void
end_poll(struct ibv_cq_ex *ibcq)
{
	if (!sn_cqx(ibcq)->single_threaded)
		pthread_mutex_unlock(&sn_cqx(ibcq)->poll_lock);
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.opcode;
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.vendor;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.byte_len;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.qpn;
}

static uint32_t
read_zero(struct ibv_cq_ex *cq)
{
	return 0;
}

static __be32
read_imm(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.imm;
}

static unsigned int
read_flags(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.flags;
}

static uint8_t
read_zero8(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint16_t
read_zero16(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint64_t
read_ts(struct ibv_cq_ex *cq)
{
	return sn_cqx(cq)->cur.ts_ns;
}

static uint64_t
read_wallclock(struct ibv_cq_ex *cq)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec -
	       (sn_now_ns() - sn_cqx(cq)->cur.ts_ns);
}

static void
read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	memset(info, 0, sizeof(*info));
}

/* ---- life ---- */

static void
fill_ops(struct ibv_cq_ex *x)
{
	x->start_poll = start_poll;
	x->next_poll = next_poll;
	x->end_poll = end_poll;
	x->read_opcode = read_opcode;
	x->read_vendor_err = read_vendor_err;
	x->read_byte_len = read_byte_len;
	x->read_imm_data = read_imm;
	x->read_qp_num = read_qp_num;
	x->read_src_qp = read_zero;
	x->read_wc_flags = read_flags;
	x->read_slid = read_zero;
	x->read_sl = read_zero8;
	x->read_dlid_path_bits = read_zero8;
	x->read_completion_ts = read_ts;
	x->read_cvlan = read_zero16;
	x->read_flow_tag = read_zero;
	x->read_tm_info = read_tm_info;
	x->read_completion_wallclock_ns = read_wallclock;
}

static struct sn_cq *
create(struct ibv_context *context, uint32_t cqe, void *cq_context, struct ibv_comp_channel *ch,
       uint32_t vector)
{
	struct sn_cq *cq;
	uint32_t size;
	int r;

	if (sn_inherited(context) || cqe < 1 || cqe > SN_MAX_CQE ||
	    vector >= (uint32_t)context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	r = sn_refused(context, FAB_OP_CREATE_CQ, 0);
	if (r) {
		errno = r;
		return NULL;
	}
	size = sn_pow2(cqe + 1); /* one entry stays free: mlx5 reports size - 1 */
	cq = calloc(1, sizeof(*cq));
	if (cq)
		cq->ring = calloc(size, sizeof(*cq->ring));
	if (!cq || !cq->ring) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->ctx = sn_ctx(context);
	cq->mask = size - 1;
	atomic_fetch_add(&sn_self.proc->cqs[vector % FAB_VECTORS], 1);
	cq->ex.context = context;
	cq->ex.channel = ch;
	cq->ex.cq_context = cq_context;
	cq->ex.cqe = (int)size - 1;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	if (ch) {
		pthread_mutex_lock(&context->mutex);
		ch->refcnt++;
		pthread_mutex_unlock(&context->mutex);
	}

	return cq;
}

SN_EXPORT struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *ch, int vector)
{
	struct sn_cq *cq = create(context, cqe < 0 ? 0 : (uint32_t)cqe, cq_context, ch, (uint32_t)vector);

	return cq ? (struct ibv_cq *)&cq->ex : NULL;
}

struct ibv_cq_ex *
sn_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *a)
{
	struct sn_cq *cq;

	if (a->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS ||
	    a->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = create(context, a->cqe, a->cq_context, a->channel, a->comp_vector);
	if (!cq)
		return NULL;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		cq->single_threaded = a->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	fill_ops(&cq->ex);

	return &cq->ex;
}

SN_EXPORT int
ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct sn_cq *cq = sn_cq(ibcq);
	uint32_t size, n;
	struct sn_cqe *ring;

	if (cqe < 1 || cqe > SN_MAX_CQE)
		return EINVAL;
	if (sn_dead(cq->ctx))
		return EIO;
	size = sn_pow2((uint32_t)cqe + 1);
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	pthread_mutex_lock(&cq->lock);
	uint32_t tail = atomic_load(&cq->tail);

	n = atomic_load(&cq->head) - tail;
	if (n > size - 1) {
		pthread_mutex_unlock(&cq->lock);
		free(ring);
		return EINVAL;
	}
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(tail + i) & cq->mask];
	struct sn_cqe *old = cq->ring;

	cq->ring = ring;
	cq->mask = size - 1;
	atomic_store(&cq->tail, 0);
	atomic_store(&cq->head, n);
	ibcq->cqe = (int)size - 1;
	pthread_mutex_unlock(&cq->lock);
	free(old);

	return 0;
}

int
sn_req_notify(struct ibv_cq *ibcq, int solicited_only)
{
	struct sn_cq *cq = sn_cq(ibcq);

	pthread_mutex_lock(&cq->lock);
	/* A second request may widen the first, not narrow it. */
	if (!solicited_only)
		cq->armed = 1;
	else if (cq->armed == 0)
		cq->armed = 2;
	pthread_mutex_unlock(&cq->lock);

	return 0;
}

/* Waits until the application has acknowledged every event it fetched. */
SN_EXPORT int
ibv_destroy_cq(struct ibv_cq *ibcq)
{
	int r = sn_left_keep(ibcq->context, SN_CQ, ibcq);

	return r < 0 ? sn_cq_destroy(ibcq) : r;
}

int
sn_cq_destroy(struct ibv_cq *ibcq)
{
	struct sn_cq *cq = sn_cq(ibcq);
	uint32_t got = 0, async_got;

	if (atomic_load(&cq->users) != 0)
		return EBUSY;
	if (ibcq->channel) {
		struct sn_chan *ch = (struct sn_chan *)ibcq->channel;

		sn_chan_forget(ch, cq);
		got = cq->ev_got;
		pthread_mutex_lock(&ibcq->context->mutex);
		ibcq->channel->refcnt--;
		pthread_mutex_unlock(&ibcq->context->mutex);
	}
	sn_async_forget(cq->ctx, cq);
	async_got = cq->async_got;
	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->comp_events_completed != got || ibcq->async_events_completed != async_got)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->poll_lock);
	free(cq->ring);
	free(cq);

	return 0;
}
