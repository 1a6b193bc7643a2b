/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the kernel's connection manager, by librdmacm, where it would go to reach an address: what the routes of network interfaces do
 * not tell.  That is a GID of which nobody knows the interface, and InfiniBand, where the subnet manager's record of the path has the
 * service level too.
 *
 * The answer comes as an event, on a thread of its own: a library that fails, or that does not come back,
 * costs the caller a short wait once, and then nothing for a minute.  One question at a time; a caller that
 * waits too long for a turn gets the answer that the route is unknown.
 */
#define LOG_MODULE "rdma"
#include "rdma/rdma_int.h"

#include "base/clock.h"
#include "base/log.h"

#include <infiniband/ib.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Less than a request waits for an address handle (RDMA_TARGET_WAIT_NS): without an answer the handle is made all the same. */
#define KERNEL_MS 120
#define EVENT_MS 150
#define ANSWER_MS 200
#define REST_NS (60 * NS_PER_S) /* after a question that had no answer */
#define STOP_S 1

struct cm_oracle {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum {
		ORACLE_IDLE,
		ORACLE_ASKED,
		ORACLE_DONE,
		ORACLE_LEFT
	} state; /* LEFT: nobody waits for the answer */
	struct cm_question question;
	struct cm_answer answer;
	int result;
	uint64_t rest_until_ns;
	bool started, stop, ended, said;
	pthread_t thread;
};

/* ---- one question, on the thread ---- */

static void
address_ip(const uint8_t gid[16], struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof *ret);
	if (gid_is_v4(gid)) {
		struct sockaddr_in *sin = (void *)ret;

		sin->sin_family = AF_INET;
		memcpy(&sin->sin_addr, gid + 12, 4);
	} else {
		struct sockaddr_in6 *sin6 = (void *)ret;

		sin6->sin6_family = AF_INET6;
		memcpy(&sin6->sin6_addr, gid, 16);
	}
}

static void
address_ib(const uint8_t gid[16], uint16_t pkey, struct sockaddr_storage *ret)
{
	struct sockaddr_ib *sib = (void *)ret;

	memset(ret, 0, sizeof *ret);
	sib->sib_family = AF_IB;
	sib->sib_pkey = htobe16(pkey);
	memcpy(sib->sib_addr.sib_raw, gid, 16);
	sib->sib_sid = htobe64(RDMA_IB_PS_IB);
	sib->sib_sid_mask = htobe64(RDMA_IB_IP_PS_MASK);
}

/* What an error of the kernel says of the address: that nothing leads there, or nothing. */
static int
judge(int err)
{
	return err == -ENETUNREACH || err == -EHOSTUNREACH ? -ENETUNREACH : -ENODATA;
}

/* Waits for an event: 0 if it is that one, else what the kernel says, or -ETIME. */
static int
await(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *e;
	int r;

	if (poll(&p, 1, EVENT_MS) != 1)
		return -ETIME;
	if (rdma_get_cm_event(channel, &e))
		return -ENODATA;
	/* A path that the subnet manager does not have is an error of the route without a number of the system's. */
	r = e->event == wanted                      ? 0
	    : e->event == RDMA_CM_EVENT_ROUTE_ERROR ? e->status == -ETIMEDOUT ? -ENODATA : -ENETUNREACH
						    : judge(e->status);
	rdma_ack_cm_event(e);
	return r;
}

static int
ask_id(struct rdma_event_channel *channel, struct rdma_cm_id *id, const struct cm_question *q,
       struct cm_answer *ret)
{
	struct sockaddr_storage from, to;
	int r;

	if (q->is_ib) {
		address_ib(q->src, q->pkey, &from);
		address_ib(q->dst, q->pkey, &to);
		if (rdma_bind_addr(id, (struct sockaddr *)&from))
			return -ENODATA;
	} else {
		address_ip(q->dst, &to);
	}
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, KERNEL_MS))
		return judge(-errno);
	r = await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (r < 0)
		return r;
	if (!id->verbs)
		return -ENODATA; /* an address of this host's */
	ret->guid = ibv_get_device_guid(id->verbs->device);
	ret->port = id->port_num;
	if (!q->is_ib)
		return 0;
	if (rdma_resolve_route(id, KERNEL_MS))
		return judge(-errno);
	r = await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (r == 0 && id->route.num_paths > 0)
		ret->service_level = id->route.path_rec[0].sl;
	return r;
}

/* -ENOSYS: there is no connection manager. */
static int
ask_library(const struct cm_question *q, struct cm_answer *ret)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int r;

	if (!channel)
		return -ENOSYS;
	*ret = (struct cm_answer){ .service_level = -1 };
	if (rdma_create_id(channel, &id, NULL, q->is_ib ? RDMA_PS_IB : RDMA_PS_TCP)) {
		r = -ENOSYS;
	} else {
		r = ask_id(channel, id, q, ret);
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(channel);
	return r;
}

static void *
oracle_main(void *arg)
{
	struct cm_oracle *o = arg;

	pthread_mutex_lock(&o->lock);
	while (!o->stop) {
		struct cm_question q;
		struct cm_answer a;
		int r;

		if (o->state != ORACLE_ASKED) {
			pthread_cond_wait(&o->changed, &o->lock);
			continue;
		}
		q = o->question;
		pthread_mutex_unlock(&o->lock);
		r = ask_library(&q, &a);
		pthread_mutex_lock(&o->lock);
		o->answer = a;
		o->result = r;
		o->state = o->state == ORACLE_LEFT ? ORACLE_IDLE : ORACLE_DONE;
		pthread_cond_broadcast(&o->changed);
	}
	o->ended = true;
	pthread_cond_broadcast(&o->changed);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

/* ---- who asks ---- */

int
cm_oracle_new(struct cm_oracle **ret_oracle)
{
	struct cm_oracle *o = calloc(1, sizeof *o);
	pthread_condattr_t attr;

	if (!o)
		return -ENOMEM;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&o->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret_oracle = o;
	return 0;
}

static struct timespec
from_now(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / NS_PER_S);
	t.tv_nsec = (long)(ns % NS_PER_S);
	return t;
}

void
cm_oracle_free(struct cm_oracle *o)
{
	struct timespec until = from_now(STOP_S * NS_PER_S);
	bool ended;
	int r = 0;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->stop = true;
	pthread_cond_broadcast(&o->changed);
	while (o->started && !o->ended && r == 0)
		r = pthread_cond_timedwait(&o->changed, &o->lock, &until);
	ended = o->ended;
	pthread_mutex_unlock(&o->lock);
	if (o->started && ended) {
		pthread_join(o->thread, NULL);
	} else if (o->started) {
		/* It is inside the library, and what it holds is its own for as long as it stays there. */
		log_warn("librdmacm does not come back; its thread is left to itself");
		pthread_detach(o->thread);
		return;
	}
	pthread_cond_destroy(&o->changed);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Under the lock.  Has nobody ask for a while. */
static void
rest(struct cm_oracle *o, const char *why)
{
	o->rest_until_ns = clock_ns() + REST_NS;
	if (!o->said)
		log_note("%s: routes are asked of the network interfaces alone", why);
	o->said = true;
}

/* Under the lock. */
static int
ask(struct cm_oracle *o, const struct cm_question *q, struct cm_answer *ret_answer)
{
	struct timespec until = from_now(ANSWER_MS * (NS_PER_S / 1000));
	int r = 0;

	if (clock_ns() < o->rest_until_ns)
		return -ENODATA;
	if (!o->started) {
		if (thread_start(&o->thread, "gantry-cm", oracle_main, o) < 0)
			return -ENODATA;
		o->started = true;
	}
	while (o->state != ORACLE_IDLE && r == 0)
		r = pthread_cond_timedwait(&o->changed, &o->lock, &until);
	if (o->state != ORACLE_IDLE)
		return -ENODATA;
	o->question = *q;
	o->state = ORACLE_ASKED;
	pthread_cond_broadcast(&o->changed);
	for (r = 0; o->state == ORACLE_ASKED && r == 0;)
		r = pthread_cond_timedwait(&o->changed, &o->lock, &until);
	if (o->state == ORACLE_ASKED) {
		o->state = ORACLE_LEFT;
		rest(o, "librdmacm does not answer");
		return -ENODATA;
	}
	o->state = ORACLE_IDLE;
	*ret_answer = o->answer;
	r = o->result;
	pthread_cond_broadcast(&o->changed);
	if (r == -ENOSYS)
		rest(o, "the kernel has no connection manager (rdma_ucm)");
	else if (r == -ETIME)
		rest(o, "the kernel's connection manager does not answer");
	return r == 0 || r == -ENETUNREACH ? r : -ENODATA;
}

int
cm_oracle_ask(struct cm_oracle *o, const struct cm_question *q, struct cm_answer *ret_answer)
{
	int r;

	pthread_mutex_lock(&o->lock);
	r = ask(o, q, ret_answer);
	pthread_mutex_unlock(&o->lock);
	return r;
}
