/* SPDX-License-Identifier: Apache-2.0 */
/* See serve.h. */
#include "serve.h"

#include "base/check.h"

#include <poll.h>

static void
serve_on_accept(struct ring_op *op, int res, bool more)
{
	struct serve *s = (struct serve *)((char *)op - offsetof(struct serve, accept_op));
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;

	if (res >= 0 && getpeername(res, (struct sockaddr *)&peer, &len) == 0)
		http_add(s->http, 0, res, (struct sockaddr *)&peer, len);
	else if (res >= 0)
		close(res);
	if (!more && !s->stop)
		ring_accept(s->ring, op, s->lfd);
}

static void
serve_on_mail(struct ring_op *op, int res, bool more)
{
	struct serve *s = (struct serve *)((char *)op - offsetof(struct serve, mail_op));

	if (!more && !s->stop)
		ring_poll(s->ring, op, s->mb.efd, POLLIN, true);
}

static void
serve_on_wake(struct msg *m)
{
}

static void
serve_turn(struct serve *s)
{
	uint64_t now, wait = http_timeout_ns(s->http);
	bool asleep;

	if (timers_next(&s->timers) != UINT64_MAX) {
		now = clock_ns();
		wait = timers_next(&s->timers) <= now         ? 0
		       : timers_next(&s->timers) - now < wait ? timers_next(&s->timers) - now
							      : wait;
	}
	asleep = wait && mailbox_sleep(&s->mb);
	check(ring_turn(s->ring, asleep ? wait : 0) >= 0);
	if (asleep)
		mailbox_wake(&s->mb);
	mailbox_run(&s->mb, 0);
	timers_run(&s->timers, clock_ns());
	reqs_run(s->reqs);
	http_run(s->http);
	s->heads_begun = s->http->heads.begun;
	s->heads_used = s->http->heads.used;
	s->long_targets_begun = s->http->long_targets.begun;
	s->long_targets_used = s->http->long_targets.used;
	s->conns = http_connections(s->http);
	s->turns++;
}

static void *
serve_thread(void *arg)
{
	struct serve *s = arg;
	struct req_env env = {
		.conf = &s->conf, .timers = &s->timers, .stats = &s->stats, .ops = &http_reply_ops
	};

	check(ring_new(&(struct ring_params){ .entries = 64 }, &s->ring) == 0);
	check(reqs_new(&env, &s->reqs) == 0);
	check(peers_new(http_connections_max(&s->conf), &s->peers) == 0);
	check(http_new(&s->conf, NULL, s->peers, s->ring, &s->stats, &s->http) == 0);
	http_set_reqs(s->http, s->reqs);
	s->accept_op.done = serve_on_accept;
	s->mail_op.done = serve_on_mail;
	ring_accept(s->ring, &s->accept_op, s->lfd);
	ring_poll(s->ring, &s->mail_op, s->mb.efd, POLLIN, true);
	s->ready = true;
	while (!s->stop) {
		serve_turn(s);
		if (s->drain)
			http_drain(s->http);
	}
	if (!s->abandon) {
		http_abort(s->http);
		wait_until(!http_connections(s->http) && !reqs_live(s->reqs))
			serve_turn(s);
	}
	ring_cancel(s->ring, &s->accept_op);
	ring_cancel(s->ring, &s->mail_op);
	http_free(s->http);
	peers_free(s->peers);
	/* What the requests still had under way. */
	wait_until(!reqs_live(s->reqs)) {
		ring_turn(s->ring, NS_PER_MS);
		timers_run(&s->timers, clock_ns());
	}
	wait_until(!ring_inflight(s->ring))
		ring_turn(s->ring, NS_PER_MS);
	reqs_free(s->reqs);
	ring_free(s->ring);
	return NULL;
}

uint64_t serve_progress_ns = 60 * NS_PER_S;
uint64_t serve_head_ns = 60 * NS_PER_S;
int serve_per_address;
const char *serve_proxy;

struct serve *
serve_start(int connections, uint64_t idle_ns)
{
	struct serve *s = calloc(1, sizeof *s);
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;

	s->conf.limits.connections = connections;
	s->conf.limits.idle_ns = idle_ns;
	s->conf.limits.s3_progress_ns = serve_progress_ns;
	s->conf.limits.head_ns = serve_head_ns;
	s->conf.limits.connections_per_address = serve_per_address;
	s->conf.limits.requests = 64;
	s->conf.listen_nr = 1;
	s->conf.listen[0].address = "test";
	if (serve_proxy) {
		check(conf_net_parse(serve_proxy, &s->conf.listen[0].proxy.net[0]) == 0);
		s->conf.listen[0].proxy.nr = 1;
	}
	s->lfd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(bind(s->lfd, (struct sockaddr *)&sa, len) == 0 && listen(s->lfd, 128) == 0);
	check(getsockname(s->lfd, (struct sockaddr *)&sa, &len) == 0);
	s->port = ntohs(sa.sin_port);
	check(mailbox_init(&s->mb) == 0);
	memset(&fake_req_counts, 0, sizeof fake_req_counts);
	check(pthread_create(&s->thread, NULL, serve_thread, s) == 0);
	wait_until(s->ready)
		usleep(100);
	return s;
}

void
serve_nudge(struct serve *s)
{
	mailbox_post(&s->mb, &s->wake, serve_on_wake);
}

void
serve_stop(struct serve *s)
{
	s->stop = true;
	serve_nudge(s);
	pthread_join(s->thread, NULL);
	assert_int_equal(fake_req_counts.begun, fake_req_counts.ended);
	assert_int_equal(fake_req_counts.live, 0);
	mailbox_fini(&s->mb);
	close(s->lfd);
	free(s);
}

int
client(struct serve *s)
{
	return client_of(s->port);
}
