/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of gateway.c that any thread may make: ids, epochs, garbage, and the state of this gateway and of
 * others.
 */

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "rados/io/rstore.h"
#define LOG_MODULE "store"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- ids ---- */

int
gateway_id(struct rstore *st, struct rid *ret_id)
{
	struct gateway *gw = &st->gw;
	bool is_short;
	int e = 0;

	if (atomic_load_explicit(&gw->is_fenced, memory_order_relaxed))
		return -ESHUTDOWN;
	pthread_mutex_lock(&gw->id_lock);
	check(gw->first <= gw->next && gw->next <= gw->last);
	if (gw->next == gw->last || gw->next - gw->first >= ID_WINDOW)
		e = -EAGAIN;
	else
		*ret_id = (struct rid){ gw->instance, gw->next++ };
	is_short = gw->last - gw->next == ID_AHEAD / 2;
	pthread_mutex_unlock(&gw->id_lock);
	if (is_short || e < 0)
		periodic_wake(&gw->beat);
	return e;
}

void
gateway_id_over(struct rstore *st, struct rid id)
{
	struct gateway *gw = &st->gw;
	uint32_t bit = (uint32_t)(id.counter % ID_WINDOW);

	pthread_mutex_lock(&gw->id_lock);
	check(id.instance == gw->instance && id.counter >= gw->first && id.counter < gw->next);
	check(!(gw->id_over[bit / 8] & 1u << bit % 8));
	gw->id_over[bit / 8] |= (uint8_t)(1u << bit % 8);
	for (;; gw->first++) {
		bit = (uint32_t)(gw->first % ID_WINDOW);
		if (gw->first == gw->next || !(gw->id_over[bit / 8] & 1u << bit % 8))
			break;
		gw->id_over[bit / 8] &= (uint8_t) ~(1u << bit % 8);
	}
	pthread_mutex_unlock(&gw->id_lock);
}

/* ---- epochs ---- */

/*
 * A gateway's row has the oldest epoch that the gateway pins, and the epoch advances only after every row has
 * reached it. So at most two epochs are pinned at a time, and they differ in their lowest bit.
 */
uint64_t
gateway_pin(struct rstore *st)
{
	struct gateway *gw = &st->gw;

	for (;;) {
		uint64_t epoch = atomic_load(&gw->epoch);

		atomic_fetch_add(&gw->pins[epoch & 1], 1);
		if (atomic_load(&gw->epoch) == epoch)
			return epoch;
		atomic_fetch_sub(&gw->pins[epoch & 1], 1);
	}
}

void
gateway_unpin(struct rstore *st, uint64_t epoch)
{
	check(atomic_fetch_sub(&st->gw.pins[epoch & 1], 1) > 0);
}

uint64_t
gateway_oldest_epoch(struct gateway *gw)
{
	uint64_t epoch = atomic_load(&gw->epoch);

	return epoch && atomic_load(&gw->pins[(epoch - 1) & 1]) ? epoch - 1 : epoch;
}

/* ---- problems that last ---- */

bool
lasting_due(struct rstore *st, uint64_t crc64, uint64_t first_ns)
{
	struct lasting *l = &st->gw.lasting[crc64 % LASTING_MAX];
	uint64_t now = clock_ns();
	bool is_due;

	pthread_mutex_lock(&st->gw.lock);
	is_due = l->crc64 != crc64 || now - l->at_ns >= l->pause_ns;
	if (is_due && first_ns) {
		first_ns = l->crc64 != crc64 ? first_ns : 2 * l->pause_ns;
		*l = (struct lasting){ crc64, now, first_ns < LASTING_NS ? first_ns : LASTING_NS };
	}
	pthread_mutex_unlock(&st->gw.lock);
	return is_due;
}

void
lasting_log(struct rstore *st, int level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	level = lasting_due(st, crc64_nvme(0, text, strlen(text)), LASTING_NS) ? level : LOG_DEBUG;
	log_at(level, "%s", text);
}

/* ---- garbage, and the end of a gateway ---- */

void
gateway_dirty(struct rstore *st, struct rshard *s)
{
	struct gateway *gw = &st->gw;

	pthread_mutex_lock(&gw->lock);
	if (!list_linked(&s->dirty)) {
		if (s->bucket)
			atomic_fetch_add(&s->bucket->refs, 1);
		list_push_tail(&gw->dirty, &s->dirty);
	}
	pthread_mutex_unlock(&gw->lock);
}

/* Writes the text of fenced_by: all gateways that may have declared this one dead, by the table that was
 * read last. Called under the lock. */
static void
say_who(struct gateway *gw)
{
	char names[sizeof gw->fenced_by - 20] = "the cluster's blocklist, or by one that it has not met";
	uint32_t nr = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < gw->peer_nr && at < sizeof names; i++) {
		const struct peer *p = &gw->peers[i];

		if (p->instance != gw->instance)
			at += (size_t)snprintf(names + at, sizeof names - at, "%sinstance %u on host %s",
					       nr++ ? ", " : "", p->instance, p->row.host);
	}
	snprintf(gw->fenced_by, sizeof gw->fenced_by, "fenced by %s%s", nr > 1 ? "one of: " : "", names);
}

void
gateway_fence(struct rstore *st)
{
	struct gateway *gw = &st->gw;
	bool was;

	pthread_mutex_lock(&gw->lock);
	was = atomic_load(&gw->is_fenced);
	if (!was)
		say_who(gw);
	atomic_store(&gw->is_fenced, true);
	pthread_mutex_unlock(&gw->lock);
	if (!was)
		log_error("this gateway (number %u) is %s: nothing more is done here", gw->instance,
			  gw->fenced_by);
}

bool
gateway_is_gone(struct rstore *st, uint32_t instance)
{
	struct gateway *gw = &st->gw;
	bool is_gone;

	pthread_mutex_lock(&gw->lock);
	is_gone = instance != gw->instance && instance < gw->next_instance;
	for (uint32_t i = 0; is_gone && i < gw->peer_nr; i++)
		is_gone = gw->peers[i].instance != instance;
	pthread_mutex_unlock(&gw->lock);
	return is_gone;
}
