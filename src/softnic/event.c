/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion channels and asynchronous events.
 *
 * Both kinds of event queue show themselves through a descriptor that is readable exactly while the queue is
 * not empty (struct sn_flag, an eventfd), so programs can put it into epoll and set O_NONBLOCK on it.
 */
#include "softnic/softnic.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the flag ---- */

int
sn_flag_init(struct sn_flag *fl)
{
	fl->fd = eventfd(0, EFD_CLOEXEC);
	fl->set = false;

	return fl->fd < 0 ? -errno : 0;
}

void
sn_flag_fini(struct sn_flag *fl)
{
	close(fl->fd);
}

void
sn_flag_set(struct sn_flag *fl, bool on)
{
	uint64_t one = 1;
	ssize_t n;

	if (fl->set == on || fl->fd < 0)
		return;
	/* The counter is 1 when set and 0 when not, so neither call can block. */
	n = on ? write(fl->fd, &one, sizeof(one)) : read(fl->fd, &one, sizeof(one));
	sn_check(n == sizeof(one));
	fl->set = on;
}

int
sn_flag_wait(const struct sn_flag *fl, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fcntl(fd, F_GETFL) & O_NONBLOCK) {
		if (poll(&p, 1, 0) > 0)
			return 0;
		errno = EAGAIN;
		return -1;
	}

	return poll(&p, 1, -1) < 0 ? -1 : 0;
}

/* ---- completion channels ---- */

SN_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct sn_chan *ch = NULL;
	int r;

	if (sn_dead(sn_ctx(context)))
		errno = EIO;
	else
		ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	r = sn_flag_init(&ch->flag);
	if (r < 0) {
		free(ch);
		errno = -r;
		return NULL;
	}
	ch->chan.context = context;
	ch->chan.fd = ch->flag.fd;
	ch->last = &ch->first;
	pthread_mutex_init(&ch->lock, NULL);

	return &ch->chan;
}

SN_EXPORT int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct sn_chan *ch = (struct sn_chan *)channel;

	if (channel->refcnt) {
		/* By a queue that is kept.  If that was said to be destroyed, so is this. */
		if (sn_left_keep(channel->context, SN_CHAN, ch) != 0)
			return EBUSY;
		close(channel->fd);
		return 0;
	}
	sn_chan_destroy(ch);

	return 0;
}

void
sn_chan_destroy(struct sn_chan *ch)
{
	if (ch->flag.fd >= 0)
		sn_flag_fini(&ch->flag);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

void
sn_chan_notify(struct sn_chan *ch, struct sn_cq *cq)
{
	pthread_mutex_lock(&ch->lock);
	if (cq->ev_waiting++ == 0) {
		cq->ev_next = NULL;
		*ch->last = cq;
		ch->last = &cq->ev_next;
	}
	sn_flag_set(&ch->flag, true);
	pthread_mutex_unlock(&ch->lock);
}

/* Under ch->lock. */
static void
unlink_cq(struct sn_chan *ch, const struct sn_cq *cq)
{
	struct sn_cq **at = &ch->first;

	while (*at && *at != cq)
		at = &(*at)->ev_next;
	if (!*at)
		return;
	if (ch->last == &(*at)->ev_next)
		ch->last = at;
	*at = (*at)->ev_next;
}

void
sn_chan_forget(struct sn_chan *ch, struct sn_cq *cq)
{
	pthread_mutex_lock(&ch->lock);
	unlink_cq(ch, cq);
	cq->ev_waiting = 0;
	sn_flag_set(&ch->flag, ch->first != NULL);
	pthread_mutex_unlock(&ch->lock);
}

SN_EXPORT int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ret_cq, void **ret_context)
{
	struct sn_chan *ch = (struct sn_chan *)channel;

	for (;;) {
		pthread_mutex_lock(&ch->lock);
		struct sn_cq *cq = ch->first;

		if (cq) {
			cq->ev_got++;
			cq->ev_waiting--;
			unlink_cq(ch, cq);
			if (cq->ev_waiting) { /* to the end: others first */
				cq->ev_next = NULL;
				*ch->last = cq;
				ch->last = &cq->ev_next;
			}
			sn_flag_set(&ch->flag, ch->first != NULL);
			pthread_mutex_unlock(&ch->lock);
			*ret_cq = (struct ibv_cq *)&cq->ex;
			*ret_context = cq->ex.cq_context;
			return 0;
		}
		pthread_mutex_unlock(&ch->lock);
		if (sn_flag_wait(&ch->flag, channel->fd) < 0)
			return -1;
	}
}

SN_EXPORT void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- asynchronous events ---- */

int
sn_async_init(struct sn_ctx *ctx)
{
	struct sn_async *as = &ctx->async;

	as->last = &as->first;
	as->port_changes = atomic_load(&sn_port(ctx)->changes);
	as->losses = atomic_load(&sn_port(ctx)->losses);
	for (int i = 0; i < FAB_NEWS_NR; i++)
		as->news[i] = atomic_load(&sn_port(ctx)->news[i]);
	pthread_mutex_init(&as->lock, NULL);

	return sn_flag_init(&as->flag);
}

void
sn_async_fini(struct sn_ctx *ctx)
{
	struct sn_async *as = &ctx->async;

	while (as->first) {
		struct sn_event *e = as->first;

		as->first = e->next;
		free(e);
	}
	sn_flag_fini(&as->flag);
	pthread_mutex_destroy(&as->lock);
}

static void
raise_event(struct sn_ctx *ctx, const struct ibv_async_event *ev)
{
	struct sn_event *e = calloc(1, sizeof(*e));

	if (!e) {
		sn_warn("no memory for an asynchronous event; it is lost");
		return;
	}
	e->ev = *ev;
	pthread_mutex_lock(&ctx->async.lock);
	*ctx->async.last = e;
	ctx->async.last = &e->next;
	sn_flag_set(&ctx->async.flag, true);
	pthread_mutex_unlock(&ctx->async.lock);
}

void
sn_async_raise(struct sn_ctx *ctx, enum ibv_event_type type, void *element)
{
	struct ibv_async_event ev = { .event_type = type };

	ev.element.qp = element; /* cq, qp and srq share the place */
	raise_event(ctx, &ev);
}

void
sn_async_raise_port(struct sn_ctx *ctx, enum ibv_event_type type)
{
	struct ibv_async_event ev = { .event_type = type };

	ev.element.port_num = 1;
	raise_event(ctx, &ev);
}

static bool
is_port_event(enum ibv_event_type t)
{
	return t == IBV_EVENT_PORT_ACTIVE || t == IBV_EVENT_PORT_ERR || t == IBV_EVENT_GID_CHANGE ||
	       t == IBV_EVENT_PKEY_CHANGE || t == IBV_EVENT_DEVICE_FATAL;
}

void
sn_async_forget(struct sn_ctx *ctx, const void *element)
{
	struct sn_async *as = &ctx->async;
	struct sn_event **at = &as->first;

	pthread_mutex_lock(&as->lock);
	while (*at) {
		struct sn_event *e = *at;

		if (!is_port_event(e->ev.event_type) && e->ev.element.qp == element) {
			*at = e->next;
			free(e);
		} else {
			at = &e->next;
		}
	}
	as->last = at;
	sn_flag_set(&as->flag, as->first != NULL);
	pthread_mutex_unlock(&as->lock);
}

/* Counts what the application has fetched, so that destroying the object
 * can wait for the acknowledgements. */
static void
count_got(const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		((struct sn_cq *)ev->element.cq)->async_got++;
		break;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		((struct sn_srq *)ev->element.srq)->async_got++;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		((struct sn_qp *)ev->element.qp)->async_got++;
		break;
	default:
		break;
	}
}

SN_EXPORT int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct sn_async *as = &sn_ctx(context)->async;

	for (;;) {
		pthread_mutex_lock(&as->lock);
		struct sn_event *e = as->first;

		if (e) {
			as->first = e->next;
			if (!as->first)
				as->last = &as->first;
			sn_flag_set(&as->flag, as->first != NULL);
			count_got(&e->ev);
			pthread_mutex_unlock(&as->lock);
			*event = e->ev;
			free(e);
			return 0;
		}
		pthread_mutex_unlock(&as->lock);
		if (sn_flag_wait(&as->flag, context->async_fd) < 0)
			return -1;
	}
}

SN_EXPORT void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_signal(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
		return;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		pthread_mutex_lock(&event->element.srq->mutex);
		event->element.srq->events_completed++;
		pthread_cond_signal(&event->element.srq->cond);
		pthread_mutex_unlock(&event->element.srq->mutex);
		return;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_signal(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
		return;
	default:
		return;
	}
}
