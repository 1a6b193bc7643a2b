/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that hold buffers and requests and hardly move a byte: whose request is ended for others, how that
 * is answered, and what is left for requests with tokens.  (What a pool of buffers decides is
 * xfer/test_pace.c's.)
 */
#include "tests/unit/ops/rig.h"

#include <errno.h>

/* Requests, those of them without a token, and the writes of these; buffers, and those that writes may have. */
enum { REQUESTS = 64, PLAIN = 48, WRITES = 36, FEW_WRITES = 32, ALL_WRITES = 48, BUFS = 16, WRITE_BUFS = 12 };

static uint64_t rig_now; /* the fake clock */
static struct xchg many[REQUESTS + 8];
static int many_nr;
static int cut; /* streams and other replies that were cut off */
static struct sockaddr_in addresses[256];

static int
start(void **state)
{
	rig_small.http_bytes = BUFS * (BUF_SMALL_BYTES + BUF_SLACK_BYTES);
	rig_small.queue = 256;
	rig_start(state);
	rig.conf->limits.body_rate = 64u << 10;
	rig.conf->limits.body_grace_ns = 400 * NS_PER_MS;
	rig_now = 1000 * NS_PER_S;
	clock_fake(&rig_now);
	/* It was armed by the real clock, for the requests of rig_start(). */
	timer_disarm(&rig.timers, &rig.reqs->space);
	many_nr = cut = 0;
	/* So that no two of the test's addresses share a number. */
	rig.reqs->client_key[0] = rig.reqs->client_key[1] = 4;
	for (unsigned i = 0; i < 256; i++) {
		addresses[i].sin_family = AF_INET;
		addresses[i].sin_addr.s_addr = htonl(0x0a000001 + i);
	}
	return 0;
}

static int
stop(void **state)
{
	for (int i = 0; i < many_nr; i++) {
		if (many[i].rq)
			req_end(many[i].rq, false);
	}
	return rig_stop(state);
}

static struct xchg *
begin(const char *method, const char *target, unsigned long long body, int from)
{
	struct xchg *x = &many[many_nr++];

	x_init(x, 0, method, target);
	x->in.peer = (struct sockaddr *)&addresses[from];
	if (body || strcmp(method, "PUT") == 0)
		x_field(x, "content-length", "%llu", body);
	if (strstr(target, "?delete"))
		x_field(x, "content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==");
	x_begin(x);
	if (!body && !req_is_ready(x->rq))
		req_body_end(x->rq);
	return x;
}

/* A PUT of which a byte came. */
static struct xchg *
drip(int from)
{
	static char target[REQUESTS + 8][32];
	char *name = target[many_nr];
	struct xchg *x;

	snprintf(name, sizeof target[0], "/bkt/slow%d", many_nr);
	x = begin("PUT", name, 1 << 20, from);
	rig_until(x->rq->xfer.mode == XFER_ACCEPT || x->rq->xfer.is_waiting || req_is_ready(x->rq));
	req_body(x->rq, "a", 1);
	return x;
}

/* What http/ does with a connection that it is told to end. */
static void
end_cut(struct xchg *x)
{
	char byte[1];

	if (!x->rq || !x->abort_nr)
		return;
	assert_int_equal(x->abort_nr, 1);
	if (req_reply(x->rq)->body == REPLY_STREAM)
		assert_true(req_stream_read(x->rq, x->rq->xfer.in_order, byte, 1) < 0);
	req_end(x->rq, false);
	x->rq = NULL;
	cut++;
}

/* Does nobody wait for the disk? */
static bool
settled(void)
{
	for (int i = 0; i < many_nr; i++) {
		if (many[i].rq && many[i].rq->xfer.inflight > 0)
			return false;
	}
	return true;
}

static void
pass(int ms)
{
	for (int t = 0; t < ms; t += 100) {
		rig_now += 100 * NS_PER_MS;
		rig_turn();
		for (int i = 0; i < many_nr; i++)
			end_cut(&many[i]);
		rig_turn();
		rig_until(settled());
	}
}

static int
ready(bool revoked)
{
	int n = 0;

	for (int i = 0; i < many_nr; i++)
		n += many[i].rq && req_is_ready(many[i].rq) && (!revoked || many[i].rq->revoked);
	return n;
}

static void
assert_absent(const char *key)
{
	struct xchg x;

	x_init(&x, 0, "HEAD", key);
	x.in.peer = (struct sockaddr *)&addresses[200];
	assert_int_equal(x_run(&x), 404);
	x_end(&x);
}

/* Slow PUTs have every buffer that writes may have: while nobody waits they are left alone; who waits has one soon, and the PUT
 * that gave way is answered, not stored. */
static void
test_put(void **state)
{
	struct xchg *mine, *slow = NULL;

	for (int i = 0; i < WRITE_BUFS; i++)
		drip(i);
	for (int i = 0; i < 10; i++) {
		pass(6000);
		for (int k = 0; k < WRITE_BUFS; k++)
			req_body(many[k].rq, "a", 1);
	}
	assert_int_equal(ready(false), 0);
	mine = begin("PUT", "/bkt/mine", 5, 100);
	rig_until(mine->rq->xfer.is_waiting);
	pass(600);
	assert_true(mine->rq->xfer.have_ticket);
	assert_int_equal(ready(true), 1);
	for (int i = 0; i < WRITE_BUFS; i++)
		slow = req_is_ready(many[i].rq) ? &many[i] : slow;
	assert_int_equal(req_reply(slow->rq)->status, 400);
	assert_non_null(strstr(req_reply(slow->rq)->text, "RequestTimeout"));
	assert_true(req_reply(slow->rq)->at_once);
	assert_true(req_reply(slow->rq)->close);
	assert_int_equal(req_body(mine->rq, "12345", 5), 5);
	req_body_end(mine->rq);
	rig_until(req_is_ready(mine->rq));
	assert_int_equal(req_reply(mine->rq)->status, 200);
	assert_absent(slow->in.target);
}

/* Readers of a large object that take nothing: the same, and what cannot be answered any more is cut off. */
static void
test_get(void **state)
{
	struct xchg *mine;

	put_object("o", 4 << 20, 1);
	for (int i = 0; i < 16; i++) {
		begin("GET", "/bkt/o", 0, i);
		rig_until(req_is_ready(many[i].rq) || many[i].rq->xfer.is_waiting);
	}
	/* The first have read ahead as far as they may; the others get their buffers one after the other. */
	pass(3000);
	assert_true(cut > 0);
	mine = begin("GET", "/bkt/o", 0, 100);
	rig_until(mine->rq->xfer.is_waiting || req_is_ready(mine->rq));
	pass(600);
	rig_until(req_is_ready(mine->rq));
	assert_int_equal(req_reply(mine->rq)->status, 200);
}

/* claim TM37: those of which all, or some buffers' worth, has arrived get their buffers first, behind
 * whomever they came. */
static void
test_late(void **state)
{
	struct xchg *small, *large, *unknown;

	for (int i = 0; i < 16; i++)
		drip(i);
	large = begin("PUT", "/bkt/large", 1 << 20, 100);
	rig_until(large->rq->xfer.is_waiting);
	small = begin("PUT", "/bkt/small", 1000, 101);
	rig_until(small->rq->xfer.is_waiting);
	unknown = &many[many_nr++];
	x_init(unknown, 0, "PUT", "/bkt/unknown");
	unknown->in.peer = (struct sockaddr *)&addresses[102];
	x_field(unknown, "transfer-encoding", "chunked");
	x_begin(unknown);
	rig_until(unknown->rq->xfer.is_waiting);
	rig_arrived_bytes = 1000;
	pass(100);
	assert_true(large->rq->xfer.is_late);
	assert_false(small->rq->xfer.is_late);
	assert_false(unknown->rq->xfer.is_late);
	rig_arrived_bytes = 32u << 10;
	pass(100);
	assert_false(large->rq->xfer.is_late);
	rig_arrived_bytes = UINT32_MAX;
}

/* A stream that was read to its end needs no buffer, and holds none while the network still has it. */
static void
test_read_to_end(void **state)
{
	static char sink[1 << 20];
	struct xchg *x;
	uint64_t pos = 0;

	put_object("o", 1 << 20, 1);
	x = begin("GET", "/bkt/o", 0, 1);
	rig_until(req_is_ready(x->rq));
	while (pos < 1 << 20) {
		ssize_t n = req_stream_read(x->rq, pos, sink, sizeof sink);

		assert_true(n >= 0);
		pos += (uint64_t)n;
		rig_turn();
	}
	assert_int_equal(rig.reqs->http_pieces.tickets_out, 0);
	assert_int_equal(rig.http_bufs.avail[BUF_SMALL], rig.http_bufs.total[BUF_SMALL]);
	req_end(x->rq, true);
	x->rq = NULL;
}

/* claim TM33: a quarter of the requests is for those with tokens; of the others' an address has as many as
 * there are, and gives way when another one comes. */
static void
test_slots(void **state)
{
	struct xchg *x, *tokened;
	int before;

	put_object("o", 100000, 1);
	for (int i = 0; i < WRITES; i++)
		drip(1);
	for (int i = 0; i < PLAIN - WRITES; i++) {
		x = begin("GET", "/bkt?list-type=2", 0, 1);
		rig_until(req_is_ready(x->rq));
	}
	assert_int_equal(reqs_live(rig.reqs), PLAIN);
	assert_int_equal(ready(false), PLAIN - WRITES);
	/* Its own are as many as there may be. */
	x = begin("GET", "/bkt/o", 0, 1);
	rig_until(req_is_ready(x->rq));
	assert_int_equal(req_reply(x->rq)->status, 503);
	assert_non_null(strstr(req_reply(x->rq)->text, "SlowDown"));
	req_end(x->rq, true);
	x->rq = NULL;
	assert_int_equal(ready(true), 0);
	/* Another address's are served at once: those that wait for a buffer anyhow go. */
	for (int i = 0; i < 6; i++) {
		x = begin("HEAD", "/bkt/o", 0, 2 + i);
		rig_until(req_is_ready(x->rq));
		assert_int_equal(req_reply(x->rq)->status, 200);
	}
	before = ready(true);
	assert_true(before >= 6 && before <= 12);
	for (int i = 0; i < PLAIN; i++) {
		if (!many[i].rq->revoked)
			continue;
		assert_int_equal(many[i].rq->xfer.client, many[0].rq->xfer.client);
		assert_int_equal(req_reply(many[i].rq)->status, 503);
		assert_true(req_reply(many[i].rq)->at_once);
	}
	/* Tokens have what is left. */
	for (int i = 0; i < 4; i++) {
		tokened = &many[many_nr++];
		x_init(tokened, 0, "GET", "/bkt/o");
		tokened->in.peer = (struct sockaddr *)&addresses[1];
		x_token(tokened, "x-amz-rdma-token", 0, 100000);
		assert_int_equal(x_run(tokened), 200);
		assert_header(tokened, "x-amz-rdma-reply", "200");
	}
}

/* claim TM33: the client that has most gives way only with requests that wait for it. Where it has none, the next does. */
static void
test_slots_of_next(void **state)
{
	enum { LISTS = 28, DRIPS = PLAIN - LISTS };
	struct xchg *x;
	int revoked = 0;

	put_object("o", 100000, 1);
	/* The kernel may still be sending replies as new as these. */
	for (int i = 0; i < LISTS; i++) {
		x = begin("GET", "/bkt?list-type=2", 0, 1);
		rig_until(req_is_ready(x->rq));
	}
	for (int i = 0; i < DRIPS; i++)
		drip(2);
	assert_int_equal(reqs_live(rig.reqs), PLAIN);
	x = begin("HEAD", "/bkt/o", 0, 3);
	rig_until(req_is_ready(x->rq));
	assert_int_equal(req_reply(x->rq)->status, 200);
	for (int i = 0; i < LISTS; i++)
		assert_false(many[i].rq->revoked);
	for (int i = LISTS; i < PLAIN; i++)
		revoked += many[i].rq->revoked;
	assert_true(revoked >= 1 && revoked <= DRIPS / 2);
}

/* However many addresses there are: slow ones go when requests are few, and one that has as many as others
 * have is not ended for those. */
static void
test_slow_slots(void **state)
{
	int left;

	for (int i = 0; i < WRITES; i++)
		drip(i);
	pass(300);
	assert_int_equal(ready(true), 0);
	pass(1000);
	/* Those with a buffer are slow at once, the rest when it is their turn; until some more are free. */
	left = WRITES - ready(true);
	assert_true(left < FEW_WRITES);
	assert_true(left >= 8);
	for (int i = 0; i < WRITES; i++) {
		if (req_is_ready(many[i].rq))
			assert_int_equal(req_reply(many[i].rq)->status, 400);
	}
}

/* XML that comes byte by byte holds requests as well, */
static void
test_xml_slots(void **state)
{
	for (int i = 0; i < WRITES; i++) {
		struct xchg *x = begin("POST", "/bkt?delete", 1000, i);

		assert_int_equal(req_body(x->rq, "<", 1), 1);
	}
	pass(300);
	assert_int_equal(ready(false), 0);
	pass(1000);
	assert_int_equal(ready(true), WRITES / 4);
	for (int i = 0; i < WRITES; i++) {
		if (req_is_ready(many[i].rq))
			assert_int_equal(req_reply(many[i].rq)->status, 400);
	}
}

/* ... and so do lists that nobody reads. */
static void
test_list_slots(void **state)
{
	for (int i = 0; i < PLAIN; i++) {
		struct xchg *x = begin("GET", "/bkt?list-type=2", 0, i);

		rig_until(req_is_ready(x->rq));
	}
	pass(300);
	assert_int_equal(cut, 0);
	pass(1000);
	assert_int_equal(cut, PLAIN / 4);
}

/* Slow PUTs of one address are all writes that there may be: a PUT of another one has a request and a buffer, and a second
 * one of the same address has not. */
static void
test_write_slots(void **state)
{
	struct xchg *x;

	for (int i = 0; i < WRITES; i++)
		drip(1);
	x = begin("PUT", "/bkt/mine", 5, 1);
	rig_until(req_is_ready(x->rq));
	assert_int_equal(req_reply(x->rq)->status, 503);
	assert_int_equal(ready(true), 0);
	x = begin("PUT", "/bkt/mine", 5, 2);
	rig_until(x->rq->xfer.is_waiting || x->rq->xfer.have_ticket);
	assert_true(ready(true) > 0 && ready(true) <= WRITES / 16);
	pass(300);
	assert_true(x->rq->xfer.have_ticket);
	assert_int_equal(req_body(x->rq, "12345", 5), 5);
	req_body_end(x->rq);
	rig_until(req_is_ready(x->rq));
	assert_int_equal(req_reply(x->rq)->status, 200);
}

static struct xchg *
tokened(const char *method, const char *target)
{
	struct xchg *x = &many[many_nr++];

	x_init(x, 0, method, target);
	x->in.peer = (struct sockaddr *)&addresses[1];
	x_token(x, "x-amz-rdma-token", 0, 100000);
	x_begin(x);
	if (!req_is_ready(x->rq))
		req_body_end(x->rq);
	return x;
}

/* The store does not answer: writes have their share of requests and buffers, further ones are refused at once, and reads
 * are taken, over HTTP and with tokens; when it answers, all are done. */
static void
test_writes_hang(void **state)
{
	int reads, refused = 0;

	put_object("o", 100000, 1);
	mem_store_hold(rig.store, true);
	for (int i = 0; i < WRITES + 1; i++)
		begin("PUT", "/bkt/empty", 0, 1);
	rig_until(ready(false) == 1);
	for (int i = 0; i < ALL_WRITES - WRITES + 1; i++)
		tokened("PUT", "/bkt/full");
	rig_until(ready(false) == 2);
	reads = many_nr;
	for (int i = 0; i < 4; i++) {
		begin("GET", "/bkt/o", 0, 1);
		tokened("GET", "/bkt/o");
	}
	for (int i = 0; i < 100; i++)
		rig_turn();
	assert_int_equal(ready(false), 2);
	mem_store_hold(rig.store, false);
	rig_until(ready(false) == many_nr);
	for (int i = 0; i < many_nr; i++) {
		int status = req_reply(many[i].rq)->status;

		refused += status == 503;
		assert_true(status == 200 || (status == 503 && i < reads));
	}
	assert_int_equal(refused, 2);
}

/* Returns the status of a PUT of so many bytes whose beginning ends with this error of the store; 0: none. */
static unsigned
put_refused(int error, unsigned bytes)
{
	struct xchg x;
	unsigned status;

	if (error)
		mem_store_fail(rig.store, MEM_PUT_INIT, error, 0, 1);
	x_init(&x, 0, "PUT", "/bkt/other");
	x_token(&x, "x-amz-rdma-token", 0, bytes);
	status = (unsigned)x_run(&x);
	x_end(&x);
	return status;
}

/* Passes a second in which a body that is not slow, and each byte of one that is, arrive. */
static void
pass_second(struct xchg *honest, struct xchg *const slow[], int slow_nr)
{
	static char bytes[16 << 10];

	for (int i = 0; i < 10; i++) {
		pass(100);
		req_body(honest->rq, bytes, sizeof bytes);
	}
	for (int i = 0; i < slow_nr; i++) {
		if (!slow[i]->rq->revoked)
			req_body(slow[i]->rq, "aaaa", 1 + (unsigned)i);
	}
}

static void
remove_object(const char *target)
{
	struct xchg x;

	x_init(&x, 0, "DELETE", target);
	x.in.peer = (struct sockaddr *)&addresses[200];
	assert_int_equal(x_run(&x), 204);
	x_end(&x);
}

static int
revoked_of(struct xchg *const x[], int nr)
{
	int n = 0;

	for (int i = 0; i < nr; i++)
		n += x[i]->rq->revoked;
	return n;
}

enum { DRIPS = 4 };

/* Begins a body of 3 MiB, of which 2 MiB are stored. */
static struct xchg *
stored(int from)
{
	static char target[DRIPS][32], bytes[64 << 10];
	char *name = target[many_nr];
	struct xchg *x;

	snprintf(name, sizeof target[0], "/bkt/slow%d", many_nr);
	x = begin("PUT", name, 3 << 20, from);
	rig_until(x->rq->xfer.mode == XFER_ACCEPT);
	for (size_t left = 2 << 20; left > 0;) {
		left -= req_body(x->rq, bytes, left < sizeof bytes ? left : sizeof bytes);
		rig_turn();
	}
	rig_until(x->rq->xfer.moved == 2 << 20);
	return x;
}

/* Fills in DRIPS bodies of which 2 MiB are stored and the rest arrives byte by byte, the first of them the slowest, two GETs
 * that are not read, and a body that arrives at once. */
static void
begin_holders(struct xchg *drips[DRIPS], struct xchg *gets[2], struct xchg **ret_honest)
{
	many_nr = cut = 0;
	for (int i = 0; i < DRIPS; i++)
		drips[i] = stored(1);
	*ret_honest = begin("PUT", "/bkt/honest", 8 << 20, 4);
	rig_until((*ret_honest)->rq->xfer.mode == XFER_ACCEPT);
	put_object("removed", 4 << 20, 1);
	put_object("present", 4 << 20, 1);
	gets[0] = begin("GET", "/bkt/removed", 0, 2);
	gets[1] = begin("GET", "/bkt/present", 0, 3);
	rig_until(req_is_ready(gets[0]->rq) && req_is_ready(gets[1]->rq));
	for (int i = 0; i < 5; i++)
		pass_second(*ret_honest, drips, DRIPS);
	assert_int_equal(ready(true) + cut, 0);
}

static void
end_holders(struct xchg *drips[DRIPS], struct xchg *gets[2], struct xchg *honest)
{
	assert_false(honest->rq->revoked);
	req_end(honest->rq, false);
	honest->rq = NULL;
	for (int i = 0; i < DRIPS; i++) {
		req_end(drips[i]->rq, true);
		drips[i]->rq = NULL;
	}
	for (int i = 0; i < 2; i++) {
		if (gets[i]->rq)
			req_end(gets[i]->rq, false);
		gets[i]->rq = NULL;
	}
}

/* claim TM71: a slow PUT holds space. It is ended after another request was refused for want of space, the slowest first, and
 * only as many are ended as hold the missing bytes; none if they do not hold as much. */
static void
test_space(void **state)
{
	struct xchg *drips[DRIPS], *gets[2], *honest;

	rig.conf->limits.s3_progress_ns = 100 * NS_PER_S;
	begin_holders(drips, gets, &honest);
	/* a quota, a PUT that is answered, and one that is too large for all of them */
	assert_int_equal(put_refused(-EDQUOT, 100000), 403);
	assert_int_equal(put_refused(0, 100000), 200);
	assert_int_equal(put_refused(-ENOSPC, 9 << 20), 507);
	for (int i = 0; i < 8; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(ready(true) + cut, 0);
	/* one whose commit finds no room in the index */
	mem_store_fail(rig.store, MEM_COMMIT, -ENOSPC, 0, 1);
	assert_int_equal(put_refused(0, 100000), 507);
	for (int i = 0; i < 4; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(ready(true) + cut, 0);
	/* a smaller one, for which two are enough */
	assert_int_equal(put_refused(-ENOSPC, (2 << 20) + 10000), 507);
	for (int i = 0; i < 8; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(revoked_of(drips, DRIPS), 2);
	assert_true(drips[0]->rq->revoked && drips[1]->rq->revoked);
	assert_int_equal(req_reply(drips[0]->rq)->status, 400);
	assert_non_null(strstr(req_reply(drips[0]->rq)->text, "no space for others"));
	assert_int_equal(cut, 0);
	end_holders(drips, gets, honest);
	pass(61000);
	assert_false(rig.reqs->pace.armed);
	assert_absent("/bkt/slow0");
}

/* claim TM71: a GET holds the space of an object that was removed after its begin; a GET of an object that is there holds none. */
static void
test_space_of_removed(void **state)
{
	struct xchg *drips[DRIPS], *gets[2], *honest;

	rig.conf->limits.s3_progress_ns = 100 * NS_PER_S;
	begin_holders(drips, gets, &honest);
	assert_int_equal(put_refused(-ENOSPC, 9 << 20), 507);
	for (int i = 0; i < 8; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(ready(true) + cut, 0);
	remove_object("/bkt/removed");
	assert_int_equal(put_refused(-ENOSPC, 9 << 20), 507);
	for (int i = 0; i < 8; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(cut, 1);
	assert_null(gets[0]->rq);
	assert_int_equal(revoked_of(drips, DRIPS), 3);
	end_holders(drips, gets, honest);
}

/* claim TM71: the refusal by one core ends requests of another, which hold the bytes together with requests of a third. */
static void
test_space_of_cores(void **state)
{
	struct xchg *drips[DRIPS], *gets[2], *honest;

	rig.conf->limits.s3_progress_ns = 100 * NS_PER_S;
	begin_holders(drips, gets, &honest);
	atomic_store(&rig.want.lane, drips[0]->rq->lane);
	atomic_store(&rig.want.left, 10 << 20);
	atomic_store(&rig.want.at_ns, clock_ns());
	for (int i = 0; i < 8; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(revoked_of(drips, DRIPS), 0);
	atomic_store(&rig.want.held[7], 3 << 20);
	atomic_store(&rig.want.seen_ns[7], atomic_load(&rig.want.at_ns));
	for (int i = 0; i < 2; i++)
		pass_second(honest, drips, DRIPS);
	assert_int_equal(revoked_of(drips, DRIPS), DRIPS);
	assert_in_range(atomic_load(&rig.want.left), (2 << 20) - 1000, 2 << 20);
	end_holders(drips, gets, honest);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put, start, stop),
		cmocka_unit_test_setup_teardown(test_get, start, stop),
		cmocka_unit_test_setup_teardown(test_late, start, stop),
		cmocka_unit_test_setup_teardown(test_read_to_end, start, stop),
		cmocka_unit_test_setup_teardown(test_slots, start, stop),
		cmocka_unit_test_setup_teardown(test_slots_of_next, start, stop),
		cmocka_unit_test_setup_teardown(test_write_slots, start, stop),
		cmocka_unit_test_setup_teardown(test_writes_hang, start, stop),
		cmocka_unit_test_setup_teardown(test_slow_slots, start, stop),
		cmocka_unit_test_setup_teardown(test_xml_slots, start, stop),
		cmocka_unit_test_setup_teardown(test_list_slots, start, stop),
		cmocka_unit_test_setup_teardown(test_space, start, stop),
		cmocka_unit_test_setup_teardown(test_space_of_removed, start, stop),
		cmocka_unit_test_setup_teardown(test_space_of_cores, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
