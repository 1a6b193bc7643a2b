/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on a connection, for every caller: its head, its end.  The file calls no other file of http/. */
#include "http/http_int.h"

#include "base/check.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
conn_release(struct hconn *c)
{
	check(!c->polling && !c->rq);
	c->where = CONN_FREE;
	pool_put(&c->l->h->conns, c);
}

void
conn_resume(struct hconn *c)
{
	check(c->suspended);
	c->suspended = false;
	MHD_resume_connection(c->mc);
	c->l->hot = true;
}

/*
 * When a stream ends with an error in the first call after a suspension, the library (0.9.75) closes the
 * connection, but does not free it. The connection is then in no list of events, and the library frees it only
 * after the end of all connections that were active before it, or after limits.idle. A resumed connection gets
 * a turn, and in this turn the library frees it.
 */
void
conn_remind(struct hconn *c)
{
	MHD_suspend_connection(c->mc);
	c->suspended = true;
	conn_resume(c);
}

void
conn_reset(struct hconn *c)
{
	/* Dissolving the association is what makes TCP send a reset at once,
	 * no matter which process or library still holds the socket. */
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	connect(c->fd, &none, sizeof none);
}

void
conn_todo(struct hconn *c)
{
	if (!list_linked(&c->todo))
		list_push_tail(&c->l->h->todo, &c->todo);
}

/* It does not count any more, though it takes the library a turn to close it. */
static void
conn_leaves(struct hconn *c)
{
	if (c->leaving)
		return;
	c->leaving = true;
	c->l->h->leaving_nr++;
	if (list_linked(&c->unfinished))
		list_del(&c->unfinished);
}

void
conn_dismiss(struct hconn *c)
{
	conn_leaves(c);
	/* The library sees the end of the input. */
	shutdown(c->fd, SHUT_RD);
}

void
conn_abort(struct hconn *c)
{
	if (c->aborted)
		return;
	c->aborted = true;
	conn_leaves(c);
	conn_reset(c);
	if (c->suspended)
		conn_resume(c);
	c->l->hot = true;
}

void
conn_head_get(struct hconn *c)
{
	struct http *h = c->l->h;

	if (c->head)
		return;
	c->head = pool_get(&h->heads);
	check(c->head); /* no connection has two */
	c->head->target = c->head->short_target;
}

/* Gives back the memory for a long target. */
static void
conn_target_short(struct hconn *c)
{
	if (c->head->target != c->head->short_target)
		pool_put(&c->l->h->long_targets, c->head->target);
	c->head->target = c->head->short_target;
}

void
conn_target_set(struct hconn *c, const char *target, size_t len)
{
	struct head *head = c->head;

	conn_target_short(c);
	if (len >= sizeof head->short_target) {
		head->target = pool_get(&c->l->h->long_targets);
		check(head->target);
	}
	memcpy(head->target, target, len);
	head->target[len] = 0;
}

void
conn_head_put(struct hconn *c)
{
	struct http *h = c->l->h;

	if (!c->head)
		return;
	conn_target_short(c);
	pool_put(&h->heads, c->head);
	c->head = NULL;
}

void
conn_uncount(struct hconn *c)
{
	struct http *h = c->l->h;

	h->open_nr--;
	h->leaving_nr -= c->leaving;
	if (list_linked(&c->unfinished))
		list_del(&c->unfinished);
	if (c->peer_count)
		peers_remove(h->peers, c->peer_count);
	c->peer_count = NULL;
}

void
conn_drop(struct hconn *c)
{
	struct http *h = c->l->h;

	close(c->fd);
	list_del(&c->link);
	conn_uncount(c);
	pool_put(&h->prefaces, c->preface);
	c->preface = NULL;
	c->where = CONN_CLOSED;
	if (c->polling)
		ring_cancel(h->ring, &c->poll);
	else
		conn_release(c);
}

void
conn_unmap(struct sockaddr_storage *sa)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four = { .sin_family = AF_INET };

	if (sa->ss_family != AF_INET6)
		return;
	memcpy(&six, sa, sizeof six);
	if (!IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	four.sin_port = six.sin6_port;
	memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
	memset(sa, 0, sizeof *sa);
	memcpy(sa, &four, sizeof four);
}
