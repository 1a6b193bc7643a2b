/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted request machine; see fake_req.h. */
#include "fake_req.h"

#include "base/check.h"
#include "base/crc64.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/timer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ECHO_MAX (1u << 20)
#define DRAIN_NS (20 * NS_PER_MS)

struct reqs {
	struct req_env env;
	struct list live, ready;
	int live_nr;
	bool draining;
	struct req_conf *use;
};

struct req {
	struct reqs *rs;
	struct list link, ready_link;
	struct timer timer;
	void *conn;
	char path[64];
	char peer[INET6_ADDRSTRLEN + 8]; /* address and port */
	char whole[48];                  /* length and CRC of the target, of which path has the beginning */
	bool head, tokened, wants_body, ready, ended, gone;
	struct reply reply;
	char *text;
	size_t text_len;
	uint64_t got, mid, every, at, fail_at;
	uint64_t pause_ns;
	bool paused;
};

struct fake_req_counts fake_req_counts;

int
reqs_new(const struct req_env *env, struct reqs **ret_reqs)
{
	struct reqs *rs = calloc(1, sizeof *rs);

	rs->env = *env;
	list_init(&rs->live);
	list_init(&rs->ready);
	*ret_reqs = rs;
	return 0;
}

void
reqs_set_conf(struct reqs *rs, struct req_conf *use)
{
	struct req_conf *old = rs->use;

	rs->use = use;
	if (use) {
		use->users++;
		rs->env.conf = use->conf;
		fake_req_counts.confs++;
	}
	if (old && --old->users == 0)
		old->unused(old);
}

int
reqs_queued(const struct reqs *rs)
{
	return 0;
}

bool
reqs_trace(struct reqs *rs, const char *id)
{
	return strcmp(id, "here") == 0 && rs->env.core == 1;
}

bool
reqs_show(const struct reqs *rs, const char *id, void (*line)(void *cookie, const char *text), void *cookie)
{
	if (strcmp(id, "here") != 0 || rs->env.core != 1)
		return false;
	line(cookie, "id=here");
	line(cookie, "us=1 did=runs");
	return true;
}

void
reqs_free(struct reqs *rs)
{
	if (rs) {
		check(rs->live_nr == 0);
		reqs_set_conf(rs, NULL);
	}
	free(rs);
}

int
reqs_live(const struct reqs *rs)
{
	return rs->live_nr;
}

uint32_t
reqs_client_of(const struct reqs *rs, const struct sockaddr *peer)
{
	return 0;
}

void
reqs_refused(struct reqs *rs, const struct req_in *in, enum fault f, char out[17])
{
	snprintf(out, 17, "%016d", rs->live_nr);
}

void
reqs_drain(struct reqs *rs, bool on)
{
	rs->draining = on;
}

void
reqs_dump(const struct reqs *rs, void (*line)(void *cookie, const char *text), void *cookie)
{
	list_for_each(l, &rs->live)
	{
		line(cookie, container_of(l, struct req, link)->path);
	}
}

static void
release(struct req *rq)
{
	timer_disarm(rq->rs->env.timers, &rq->timer);
	if (list_linked(&rq->ready_link))
		list_del(&rq->ready_link);
	list_del(&rq->link);
	rq->rs->live_nr--;
	fake_req_counts.live--;
	free(rq->text);
	free(rq);
}

/* Tells http/ at the next reqs_run(). */
static void
wake(struct req *rq)
{
	if (!list_linked(&rq->ready_link))
		list_push_tail(&rq->rs->ready, &rq->ready_link);
}

int
reqs_run(struct reqs *rs)
{
	struct list *l;
	int n = 0;

	while ((l = list_pop(&rs->ready))) {
		struct req *rq = container_of(l, struct req, ready_link);

		rs->env.ops->ready(rq->conn);
		n++;
	}
	return n;
}

static void
set_reply(struct req *rq, int status, enum reply_body body, uint64_t len)
{
	rq->reply = (struct reply){ .status = status,
				    .body = body,
				    .len_bytes = len,
				    .text = rq->text,
				    .at_once = rq->reply.at_once };
	if (rq->head && body != REPLY_EMPTY)
		rq->reply.body = REPLY_LENGTH_ONLY;
	rq->ready = true;
}

static void
on_delay(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	set_reply(rq, 200, REPLY_EMPTY, 0);
	wake(rq);
}

static void
on_late_reject(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	set_reply(rq, 403, REPLY_EMPTY, 0);
	rq->reply.close = true;
	wake(rq);
}

static void
on_pause_over(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	rq->paused = false;
	wake(rq);
}

static void
on_body_stored(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	if (rq->every) {
		rq->text = malloc(32);
		rq->text_len = (size_t)snprintf(rq->text, 32, "%llu", (unsigned long long)rq->got);
	}
	set_reply(rq, 200, REPLY_TEXT, rq->text_len);
	wake(rq);
}

static void
on_stalled(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	rq->rs->env.ops->abort(rq->conn);
}

static void
on_drained(struct timer *t)
{
	struct req *rq = container_of(t, struct req, timer);

	if (rq->ended) {
		release(rq);
		return;
	}
	set_reply(rq, 500, REPLY_EMPTY, 0);
	wake(rq);
}

static void
arm(struct req *rq, uint64_t ns, void (*fn)(struct timer *))
{
	timer_arm(rq->rs->env.timers, &rq->timer, clock_ns() + ns, fn);
}

static void
list_fields(struct req *rq, const struct req_in *req)
{
	const struct dialect_in *in = &req->in;
	FILE *f = open_memstream(&rq->text, &rq->text_len);

	fprintf(f, "%s %.*s\n", in->method, (int)req->target_len, req->target);
	for (int i = 0; i < in->field_nr; i++) {
		check(strlen(in->fields[i].name) == in->fields[i].name_len);
		check(strlen(in->fields[i].value) == in->fields[i].value_len);
		fprintf(f, "%s: %s\n", in->fields[i].name, in->fields[i].value);
	}
	fclose(f);
}

/* True: refused as dialect/ would. */
static bool
guard(struct req *rq, const struct dialect_in *in)
{
	int cl = 0, te = 0, host = 0;

	for (int i = 0; i < in->field_nr; i++) {
		cl += strcasecmp(in->fields[i].name, "content-length") == 0;
		te += strcasecmp(in->fields[i].name, "transfer-encoding") == 0;
		host += strcasecmp(in->fields[i].name, "host") == 0;
		rq->tokened |= strcasecmp(in->fields[i].name, "x-amz-rdma-token") == 0;
	}
	if (host == 1 && cl <= 1 && te <= 1 && !(cl && te))
		return false;
	set_reply(rq, 400, REPLY_EMPTY, 0);
	rq->reply.close = true;
	return true;
}

static void
script_body(struct req *rq, const char *p)
{
	unsigned long long a = 0, b = 0;

	if (strcmp(p, "/echo") == 0) {
		rq->wants_body = true;
	} else if (sscanf(p, "/slow/%llu/%llu", &a, &b) == 2) {
		rq->wants_body = true;
		rq->every = a;
		rq->pause_ns = b * NS_PER_MS;
	} else if (sscanf(p, "/mid/%llu", &a) == 1 || sscanf(p, "/mid-at-once/%llu", &a) == 1) {
		rq->wants_body = true;
		rq->reply.at_once = p[4] == '-';
		rq->mid = a;
	} else if (sscanf(p, "/patience/%llu", &a) == 1 || sscanf(p, "/choke/%llu", &a) == 1) {
		rq->wants_body = true;
		rq->paused = p[1] == 'c';
		arm(rq, a * NS_PER_MS, on_late_reject);
	} else {
		set_reply(rq, 404, REPLY_EMPTY, 0);
	}
}

static void
script_stream(struct req *rq, const char *p)
{
	unsigned long long a = 0, b = 0, c = 0;

	if (sscanf(p, "/stream/%llu/%llu/%llu", &a, &b, &c) >= 1) {
		rq->every = b;
		rq->pause_ns = c * NS_PER_MS;
	} else if (sscanf(p, "/broken/%llu/%llu/%llu", &a, &b, &c) >= 2) {
		rq->fail_at = b;
		rq->every = c ? b : 0;
		rq->pause_ns = c * NS_PER_MS;
	} else if (sscanf(p, "/stall/%llu", &a) == 1) {
		rq->every = a / 2;
		arm(rq, 100 * NS_PER_MS, on_stalled);
	} else if (sscanf(p, "/clog/%llu", &a) == 1) {
		arm(rq, 200 * NS_PER_MS, on_stalled);
	} else {
		script_body(rq, p);
		return;
	}
	set_reply(rq, 200, REPLY_STREAM, a);
}

static void
script(struct req *rq, const struct req_in *in)
{
	const char *p = rq->path;
	unsigned long long a = 0;

	if (guard(rq, &in->in))
		return;
	if (strcmp(p, "/now") == 0) {
		set_reply(rq, 200, REPLY_EMPTY, 0);
	} else if (sscanf(p, "/status/%llu", &a) == 1) {
		set_reply(rq, (int)a, REPLY_EMPTY, 0);
	} else if (sscanf(p, "/text/%llu", &a) == 1) {
		if (!rq->head) {
			rq->text = malloc(a + 1);
			memset(rq->text, 'x', a);
		}
		set_reply(rq, 200, REPLY_TEXT, a);
	} else if (strcmp(p, "/peer") == 0) {
		rq->text = strdup(rq->peer);
		set_reply(rq, 200, REPLY_TEXT, strlen(rq->peer));
	} else if (strncmp(p, "/fields", 7) == 0) {
		list_fields(rq, in);
		set_reply(rq, 200, REPLY_TEXT, rq->text_len);
	} else if (sscanf(p, "/delay/%llu", &a) == 1) {
		arm(rq, a * NS_PER_MS, on_delay);
	} else if (sscanf(p, "/late-reject/%llu", &a) == 1) {
		arm(rq, a * NS_PER_MS, on_late_reject);
	} else if (strcmp(p, "/reject") == 0) {
		set_reply(rq, 403, REPLY_EMPTY, 0);
		rq->reply.close = true;
	} else if (sscanf(p, "/block/%llu", &a) == 1) {
		usleep((useconds_t)a * 1000);
		set_reply(rq, 200, REPLY_EMPTY, 0);
	} else if (strcmp(p, "/never") != 0) {
		script_stream(rq, p);
	}
}

static void
note_peer(struct req *rq, const struct sockaddr *sa)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *four = (const struct sockaddr_in *)sa;
	bool is_six = sa->sa_family == AF_INET6;
	char text[INET6_ADDRSTRLEN];

	check(inet_ntop(sa->sa_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, text,
			sizeof text));
	snprintf(rq->peer, sizeof rq->peer, "%s %u", text, ntohs(is_six ? six->sin6_port : four->sin_port));
}

struct req *
req_begin(struct reqs *rs, const struct req_in *in)
{
	struct req *rq;

	if (strcmp(in->target, "/full") == 0)
		return NULL;
	check(strlen(in->target) == in->target_len);
	check(in->local->sa_family == AF_INET || in->local->sa_family == AF_INET6);
	check(in->peer->sa_family == AF_INET || in->peer->sa_family == AF_INET6);
	check(in->peer->sa_family == AF_INET ||
	      !IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)in->peer)->sin6_addr));
	if (rs->env.between) {
		rs->env.between(rs->env.between_cookie);
		fake_req_counts.between++;
	}
	rq = calloc(1, sizeof *rq);
	rq->rs = rs;
	rq->conn = in->conn;
	rq->fail_at = UINT64_MAX;
	list_init(&rq->ready_link);
	list_push_tail(&rs->live, &rq->link);
	rs->live_nr++;
	fake_req_counts.live++;
	fake_req_counts.begun++;
	note_peer(rq, in->peer);
	snprintf(rq->path, sizeof rq->path, "%s", in->target);
	snprintf(rq->whole, sizeof rq->whole, "%zu %016llx", in->target_len,
		 (unsigned long long)crc64_nvme(0, in->target, in->target_len));
	rq->head = strcmp(in->in.method, "HEAD") == 0;
	script(rq, in);
	fake_req_counts.tokened += rq->tokened;
	return rq;
}

bool
req_wants_body(const struct req *rq)
{
	return rq->wants_body;
}

size_t
req_body(struct req *rq, const void *data, size_t len)
{
	if (rq->ready)
		return len;
	if (rq->paused)
		return 0;
	if (rq->every && len > rq->every) {
		len = rq->every;
		rq->paused = true;
		arm(rq, rq->pause_ns, on_pause_over);
	}
	if (!rq->every && !rq->mid) {
		check(rq->text_len + len <= ECHO_MAX);
		rq->text = realloc(rq->text, rq->text_len + len);
		memcpy(rq->text + rq->text_len, data, len);
		rq->text_len += len;
	}
	rq->got += len;
	fake_req_counts.body_bytes += len;
	if (rq->mid && rq->got >= rq->mid)
		set_reply(rq, 403, REPLY_EMPTY, 0);
	return len;
}

void
req_body_end(struct req *rq)
{
	if (rq->ready)
		return;
	/* Known later, as from a disk. */
	arm(rq, NS_PER_MS, on_body_stored);
}

void
req_gone(struct req *rq)
{
	if (rq->gone || rq->ended)
		return;
	rq->gone = true;
	fake_req_counts.gone++;
	if (!rq->ready)
		arm(rq, DRAIN_NS, on_drained);
}

bool
req_is_tokened(const struct req *rq)
{
	return rq->tokened;
}

bool
req_is_ready(const struct req *rq)
{
	return rq->ready;
}

const struct reply *
req_reply(struct req *rq)
{
	check(rq->ready);
	rq->reply.text = rq->text;
	return &rq->reply;
}

void
req_reply_headers(struct req *rq, void (*header)(void *cookie, const char *name, const char *value),
		  void *cookie)
{
	header(cookie, "x-amz-request-id", "0123456789ABCDEF");
	header(cookie, "x-path", rq->path);
	header(cookie, "x-target", rq->whole);
}

ssize_t
req_stream_read(struct req *rq, uint64_t pos, void *buf, size_t max)
{
	size_t n = max;

	check(pos == rq->at && max > 0);
	if (rq->paused)
		return 0;
	if (pos >= rq->fail_at)
		return -EIO;
	if (n > rq->fail_at - pos)
		n = (size_t)(rq->fail_at - pos);
	if (n > rq->reply.len_bytes - pos)
		n = (size_t)(rq->reply.len_bytes - pos);
	if (rq->every && n > rq->every - pos % rq->every)
		n = (size_t)(rq->every - pos % rq->every);
	for (size_t i = 0; i < n; i++)
		((char *)buf)[i] = fake_req_byte(pos + i);
	rq->at += n;
	fake_req_counts.stream_bytes += n;
	if (rq->every && rq->at % rq->every == 0 && rq->at < rq->reply.len_bytes) {
		rq->paused = true;
		if (rq->pause_ns)
			arm(rq, rq->pause_ns, on_pause_over);
	}
	return (ssize_t)n;
}

void
req_end(struct req *rq, bool sent)
{
	check(!rq->ended);
	rq->ended = true;
	fake_req_counts.ended++;
	fake_req_counts.sent += sent;
	if (list_linked(&rq->ready_link))
		list_del(&rq->ready_link);
	if (rq->ready || !rq->tokened)
		release(rq);
	else
		arm(rq, DRAIN_NS, on_drained); /* work requests are being flushed */
}
