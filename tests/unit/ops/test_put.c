/* SPDX-License-Identifier: Apache-2.0 */
/* PUT through the request machine: by token and by body, checksums, preconditions, declines. */
#include "tests/fake/mem_store.h"
#include "tests/unit/ops/rig.h"

#include "base/base64.h"
#include "base/crc64.h"
#include "stats/stats.h"
#include "xfer/digest.h"

#include <errno.h>

static int
put(struct xchg *x, const char *key, size_t len, const char *name, const char *value)
{
	char target[128];

	snprintf(target, sizeof target, "/bkt/%s", key);
	x_init(x, 0, "PUT", target);
	x_field(x, "content-length", "0");
	if (name)
		x_field(x, name, "%s", value);
	x_token(x, "x-amz-rdma-token", 0, len);
	return x_run(x);
}

static uint64_t
head_size(const char *key)
{
	struct xchg x;
	char target[128];
	uint64_t n = UINT64_MAX;

	snprintf(target, sizeof target, "/bkt/%s", key);
	x_init(&x, 0, "HEAD", target);
	if (x_run(&x) == 200)
		n = req_reply(x.rq)->len_bytes;
	x_end(&x);
	return n;
}

static void
crc_text(const void *data, size_t len, char out[16])
{
	uint64_t crc = crc64_nvme(0, data, len);
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(crc >> (56 - 8 * i));
	base64_encode(b, 8, out);
}

/* item 33, item 34, item 36, item 40, item 50 */
static void
test_done(void **state)
{
	struct xchg x;
	const char *etag;

	pattern(rig.win, 70000, 4);
	assert_int_equal(put(&x, "a", 70000, NULL, NULL), 200);
	assert_header(&x, "x-amz-rdma-reply", "200");
	assert_header(&x, "x-amz-rdma-bytes-transferred", "70000");
	etag = x_header(&x, "etag");
	assert_non_null(etag);
	assert_int_equal(strlen(etag), 36); /* "<32 hex>-r" and quotes */
	assert_int_equal(req_reply(x.rq)->body, REPLY_EMPTY);
	x_end(&x);
	assert_int_equal(head_size("a"), 70000);
	assert_int_equal(fake_chan_stats(rig.chan)->pushes, 0); /* item 17 */
}

/* item 44, item 46, item 45: checksums over the bytes that RDMA brought */
static void
test_checksums(void **state)
{
	struct xchg x;
	char crc[16];

	pattern(rig.win, 300000, 6);
	crc_text(rig.win, 300000, crc);
	assert_int_equal(put(&x, "k", 300000, "x-amz-checksum-crc64nvme", crc), 200);
	assert_header(&x, "x-amz-checksum-crc64nvme", crc);
	x_end(&x);
	assert_int_equal(put(&x, "k2", 300000, "x-amz-checksum-algorithm", "CRC64NVME"), 200);
	assert_header(&x, "x-amz-checksum-crc64nvme", crc);
	x_end(&x);
	assert_int_equal(put(&x, "k3", 300000, "x-amz-checksum-crc64nvme", "rosUhgp5mIg="), 400);
	assert_no_header(&x, "x-amz-rdma-reply");
	assert_non_null(strstr(req_reply(x.rq)->text, "BadDigest"));
	x_end(&x);
	assert_int_equal(head_size("k3"), UINT64_MAX);
	assert_int_equal(put(&x, "k4", 300000, "x-amz-checksum-sha256",
			     "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
			 200);
	x_end(&x);
	assert_int_equal(put(&x, "k5", 300000, "x-amz-checksum-crc32c", "4waSgw=="), 400);
	x_end(&x);
	assert_int_equal(head_size("k5"), UINT64_MAX);
}

/* item 44: each algorithm's value over what RDMA brought, in pieces that arrive in any order: the right one
 * is taken and said again, one that is a bit off is not. */
static void
test_given_sums(void **state)
{
	static const struct {
		enum digest_kind kind;
		const char *header;
	} t[] = { { DIGEST_CRC32, "x-amz-checksum-crc32" },
		  { DIGEST_CRC32C, "x-amz-checksum-crc32c" },
		  { DIGEST_SHA1, "x-amz-checksum-sha1" },
		  { DIGEST_SHA256, "x-amz-checksum-sha256" } };
	static const size_t sizes[] = { 300, 3500000 };
	static struct digest dg;
	uint8_t sum[32];
	char text[64];
	struct xchg x;

	for (size_t i = 0; i < 8; i++) {
		size_t len = sizes[i / 4], n;

		pattern(rig.win, len, (unsigned)i);
		assert_int_equal(digest_begin(&dg, DIGEST_BIT(t[i % 4].kind)), 0);
		digest_update(&dg, rig.win, len);
		n = digest_value(&dg, t[i % 4].kind, sum);
		base64_encode(sum, n, text);
		assert_int_equal(put(&x, "good", len, t[i % 4].header, text), 200);
		assert_header(&x, t[i % 4].header, text);
		x_end(&x);
		assert_int_equal(head_size("good"), len);
		sum[n - 1] ^= 1;
		base64_encode(sum, n, text);
		assert_int_equal(put(&x, "bad", len, t[i % 4].header, text), 400);
		assert_non_null(strstr(req_reply(x.rq)->text, "BadDigest"));
		x_end(&x);
		assert_int_equal(head_size("bad"), UINT64_MAX);
	}
	digest_fini(&dg);
}

/* item 37, item 38: declined, nothing stored, and again with a body */
static void
test_declined(void **state)
{
	struct xchg x;
	char body[5000];

	fake_chan_decline(rig.chan, -EOPNOTSUPP, CHAN_UNREACHABLE);
	assert_int_equal(put(&x, "p", 5000, NULL, NULL), 501);
	assert_header(&x, "x-amz-rdma-reply", "501");
	assert_header(&x, "x-gantry-rdma-reason", "unreachable");
	assert_header(&x, "content-type", "application/xml");
	assert_no_header(&x, "etag");
	assert_no_header(&x, "x-amz-rdma-bytes-transferred");
	assert_no_header(&x, "retry-after");
	assert_non_null(
		strstr(req_reply(x.rq)->text, "<Code>RDMANotSupported</Code><Message>No route leads"));
	assert_false(req_reply(x.rq)->close); /* item 79 */
	x_end(&x);
	assert_int_equal(head_size("p"), UINT64_MAX);
	x_init(&x, 0, "PUT", "/bkt/p");
	x_token(&x, "x-rdma-info", 0, 5000);
	assert_int_equal(x_run(&x), 501); /* item 100 */
	x_end(&x);
	x_init(&x, 1, "PUT", "/p");
	x_token(&x, "x-scal-rdma", 0, 5000);
	assert_int_equal(x_run(&x), 501); /* item 95 */
	x_end(&x);
	fake_chan_decline(rig.chan, 0, CHAN_OK);
	memset(body, 'x', sizeof body);
	x_init(&x, 0, "PUT", "/bkt/p");
	x_field(&x, "content-length", "5000");
	x_begin(&x);
	for (size_t at = 0; at < sizeof body;) {
		at += req_body(x.rq, body + at, sizeof body - at);
		rig_turn();
	}
	req_body_end(x.rq);
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 200);
	x_end(&x);
	assert_int_equal(head_size("p"), 5000);
}

/* Counted by who asked: here that is nobody known. */
static int
remote_access_errors(void)
{
	static const char name[] = "gantry_rdma_remote_access_errors_total{access_key=\"-\"} ";
	struct stats_out *out;
	char *text, *at;
	size_t len;
	int n;

	assert_int_equal(stats_out_new(&out), 0);
	stats_collect(rig.stats, out);
	assert_int_equal(stats_out_text(out, &text, &len), 0);
	stats_out_free(out);
	at = strstr(text, name);
	assert_non_null(at);
	n = atoi(at + sizeof name - 1);
	free(text);
	return n;
}

/* item 41, item 42: the data plane fails: 500, the version before remains, a repeat works */
static void
test_failed(void **state)
{
	struct xchg x;

	put_object("f", 3000000, 1);
	assert_int_equal(remote_access_errors(), 0);
	fake_chan_script(rig.chan, 3, WCS_REM_ACCESS);
	assert_int_equal(put(&x, "f", 2000000 + 1048576, NULL, NULL), 500);
	assert_int_equal(remote_access_errors(), 1);
	assert_header(&x, "x-amz-rdma-reply", "500");
	assert_no_header(&x, "etag");
	assert_non_null(strstr(req_reply(x.rq)->text, "RDMATransferFailed"));
	x_end(&x);
	assert_int_equal(head_size("f"), 3000000);
	assert_int_equal(put(&x, "f", 4000000, NULL, NULL), 200);
	x_end(&x);
	assert_int_equal(head_size("f"), 4000000);
}

/* item 48, item 39 */
static void
test_refused(void **state)
{
	uint64_t pulls;
	struct xchg x;

	put_object("n", 1000, 1);
	pulls = fake_chan_stats(rig.chan)->pulls;
	assert_int_equal(put(&x, "n", 1000, "if-none-match", "*"), 412);
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	assert_int_equal(put(&x, "new", 1000, "if-match", "*"), 404);
	x_end(&x);
	assert_int_equal(put(&x, "n", 0, NULL, NULL), 400);
	x_end(&x);
	x_init(&x, 0, "PUT", "/nobucket/n");
	x_token(&x, "x-amz-rdma-token", 0, 1000);
	assert_int_equal(x_run(&x), 404);
	x_end(&x);
	rig.conf->limits.object_bytes = 999;
	assert_int_equal(put(&x, "n", 1000, NULL, NULL), 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "EntityTooLarge"));
	x_end(&x);
	assert_int_equal(fake_chan_stats(rig.chan)->pulls, pulls);
}

/* item 49: metadata comes back */
static void
test_metadata(void **state)
{
	struct xchg x;

	pattern(rig.win, 10, 1);
	x_init(&x, 0, "PUT", "/bkt/m");
	x_field(&x, "content-type", "text/x-test");
	x_field(&x, "x-amz-meta-Colour", "deep blue");
	x_field(&x, "cache-control", "no-store");
	x_token(&x, "x-amz-rdma-token", 0, 10);
	assert_int_equal(x_run(&x), 200);
	x_end(&x);
	x_init(&x, 0, "HEAD", "/bkt/m");
	assert_int_equal(x_run(&x), 200);
	assert_header(&x, "content-type", "text/x-test");
	assert_header(&x, "x-amz-meta-colour", "deep blue");
	assert_header(&x, "cache-control", "no-store");
	x_end(&x);
}

/* Bodies of unknown length, fed in odd portions: MD5 ETag, sizes right. */
static void
test_chunked(void **state)
{
	static const size_t sizes[] = { 0, 1, 256, 257, 65535, 65536, 65537, 200000, 3000001 };
	static unsigned char body[3000001];

	pattern(body, sizeof body, 8);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct xchg x;

		x_init(&x, 0, "PUT", "/bkt/chunked");
		x_field(&x, "transfer-encoding", "chunked");
		x_begin(&x);
		assert_true(req_wants_body(x.rq));
		for (size_t at = 0; at < sizes[i];) {
			size_t n = sizes[i] - at < 7777 ? sizes[i] - at : 7777;

			at += req_body(x.rq, body + at, n);
			rig_turn();
		}
		req_body_end(x.rq);
		rig_until(req_is_ready(x.rq));
		assert_int_equal(req_reply(x.rq)->status, 200);
		assert_int_equal(strlen(x_header(&x, "etag")), 34);
		x_end(&x);
		assert_int_equal(head_size("chunked"), sizes[i]);
	}
}

/* Feeds a body until it is taken or answered; how much was taken. */
static size_t
feed(struct xchg *x, const unsigned char *body, size_t len)
{
	size_t at = 0;

	while (at < len && !req_is_ready(x->rq)) {
		at += req_body(x->rq, body + at, len - at < 5000 ? len - at : 5000);
		rig_turn();
	}
	if (!req_is_ready(x->rq))
		req_body_end(x->rq);
	rig_until(req_is_ready(x->rq));
	return at;
}

/* limits.object: what says its length is refused before a byte is taken, what does not when it has too many;
 * and a body that ends early is not an object. */
static void
test_body_limits(void **state)
{
	static unsigned char body[400000];
	struct xchg x;

	rig.conf->limits.object_bytes = 100000;
	x_init(&x, 0, "PUT", "/bkt/large");
	x_field(&x, "content-length", "100001");
	x_begin(&x);
	rig_until(req_is_ready(x.rq));
	assert_int_equal(req_reply(x.rq)->status, 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "EntityTooLarge"));
	x_end(&x);
	x_init(&x, 0, "PUT", "/bkt/large");
	x_field(&x, "transfer-encoding", "chunked");
	x_begin(&x);
	assert_true(feed(&x, body, sizeof body) < 200000);
	assert_int_equal(req_reply(x.rq)->status, 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "EntityTooLarge"));
	x_end(&x);
	x_init(&x, 0, "PUT", "/bkt/large");
	x_field(&x, "content-length", "50000");
	x_begin(&x);
	assert_int_equal(feed(&x, body, 49999), 49999);
	assert_int_equal(req_reply(x.rq)->status, 400);
	assert_non_null(strstr(req_reply(x.rq)->text, "IncompleteBody"));
	x_end(&x);
	assert_int_equal(head_size("large"), UINT64_MAX);
	x_init(&x, 0, "PUT", "/bkt/large");
	x_field(&x, "transfer-encoding", "chunked");
	x_begin(&x);
	assert_int_equal(feed(&x, body, 100000), 100000);
	assert_int_equal(req_reply(x.rq)->status, 200);
	x_end(&x);
}

/* A body that comes while the first looks at bucket and object are still under way waits, also when the
 * request before in the same slot had a body too. */
static void
test_body_early(void **state)
{
	struct mem_store_tuning never_at_once = { .seed = 1, .stat_at_once = 100 };
	struct xchg x;
	char body[100];

	memset(body, 'e', sizeof body);
	mem_store_tune(rig.store, &never_at_once);
	for (int i = 0; i < 2; i++) {
		x_init(&x, 0, "PUT", i == 0 ? "/bkt/before" : "/bkt/early");
		x_field(&x, "content-length", "100");
		if (i == 1)
			x_field(&x, "if-none-match", "*");
		mem_store_hold(rig.store, i == 1);
		x_begin(&x);
		if (i == 1) {
			assert_int_equal(req_body(x.rq, body, sizeof body), 0);
			mem_store_hold(rig.store, false);
			rig_until(x.ready_nr > 1); /* the bucket was looked at, then the object */
		}
		assert_int_equal(req_body(x.rq, body, sizeof body), sizeof body);
		req_body_end(x.rq);
		rig_until(req_is_ready(x.rq));
		assert_int_equal(req_reply(x.rq)->status, 200);
		x_end(&x);
	}
	assert_int_equal(head_size("early"), 100);
}

/* A daemon that is to stop takes nothing new, and ends what it has. */
static void
test_draining(void **state)
{
	struct xchg under_way, x;

	put_object("d", 1000, 1);
	fake_chan_hold(rig.chan, true);
	x_init(&under_way, 0, "PUT", "/bkt/under-way");
	x_token(&under_way, "x-amz-rdma-token", 0, 1000);
	x_begin(&under_way);
	rig_until(fake_chan_op_nr(rig.chan) == 1);
	reqs_drain(rig.reqs, true);
	assert_int_equal(put(&x, "new", 1000, NULL, NULL), 503);
	assert_header(&x, "retry-after", "1");
	assert_no_header(&x, "x-amz-rdma-reply");
	x_end(&x);
	x_init(&x, 0, "GET", "/bkt/d");
	assert_int_equal(x_run(&x), 503);
	x_end(&x);
	fake_chan_hold(rig.chan, false);
	fake_chan_complete_all(rig.chan);
	rig_until(req_is_ready(under_way.rq));
	assert_int_equal(req_reply(under_way.rq)->status, 200);
	x_end(&under_way);
	reqs_drain(rig.reqs, false);
	assert_int_equal(head_size("new"), UINT64_MAX);
	assert_int_equal(head_size("under-way"), 1000);
}

static uint64_t
retried(void)
{
	return stats_get(&stats_core(rig.stats, 0)->events[STATS_RETRIED]);
}

/* READs that the network lost are tried once more, on a fresh lease */
static void
test_again(void **state)
{
	static const enum rdma_status bad[] = { WCS_RETRY_EXC, WCS_FLUSHED };
	unsigned char *want = malloc(3500000);
	uint64_t leases;
	struct xchg x;

	pattern(want, 3500000, 11);
	for (int i = 0; i < 2; i++) {
		memcpy(rig.win, want, 3500000);
		leases = fake_chan_stats(rig.chan)->leases;
		fake_chan_script(rig.chan, 3, bad[i]);
		assert_int_equal(put(&x, "again", 3500000, "x-amz-checksum-algorithm", "CRC32C"), 200);
		assert_header(&x, "x-amz-rdma-reply", "200");
		assert_header(&x, "x-amz-rdma-bytes-transferred", "3500000");
		assert_non_null(x_header(&x, "x-amz-checksum-crc32c"));
		x_end(&x);
		assert_int_equal(fake_chan_stats(rig.chan)->leases, leases + 2);
		assert_int_equal(retried(), i + 1);
		memset(rig.win, GUARD, WIN_MAX);
		x_init(&x, 0, "GET", "/bkt/again");
		x_token(&x, "x-amz-rdma-token", 0, 3500000);
		assert_int_equal(x_run(&x), 200);
		assert_memory_equal(rig.win, want, 3500000);
		x_end(&x);
	}
	free(want);
}

/* Once, and not for everything: a second failure, memory that says no, the WRITEs of a GET. */
static void
test_not_again(void **state)
{
	struct xchg x;
	uint64_t leases;

	fake_chan_script(rig.chan, 1, WCS_RETRY_EXC);
	fake_chan_script(rig.chan, 2, WCS_RETRY_EXC);
	assert_int_equal(put(&x, "twice", 1000, NULL, NULL), 500);
	assert_header(&x, "x-amz-rdma-reply", "500");
	x_end(&x);
	assert_int_equal(retried(), 1);
	leases = fake_chan_stats(rig.chan)->leases;
	fake_chan_script(rig.chan, 1, WCS_REM_ACCESS);
	assert_int_equal(put(&x, "no", 1000, NULL, NULL), 500);
	x_end(&x);
	assert_int_equal(fake_chan_stats(rig.chan)->leases, leases + 1);
	put_object("get", 1000, 1);
	fake_chan_script(rig.chan, 1, WCS_RETRY_EXC);
	x_init(&x, 0, "GET", "/bkt/get");
	x_token(&x, "x-amz-rdma-token", 0, 1000);
	assert_int_equal(x_run(&x), 500);
	x_end(&x);
	assert_int_equal(retried(), 1);
	assert_int_equal(head_size("twice"), UINT64_MAX);
}

/* What moved once is a failed transfer afterwards: no decline, no 503; and nothing for a client that left. */
static void
test_again_ends(void **state)
{
	uint64_t leases, now;
	struct xchg x;

	for (int i = 0; i < 3; i++) {
		fake_chan_hold(rig.chan, true);
		x_init(&x, 0, "PUT", "/bkt/ends");
		x_token(&x, "x-amz-rdma-token", 0, 3000000);
		x_begin(&x);
		rig_until(fake_chan_op_nr(rig.chan) == 2 || fake_chan_op_nr(rig.chan) == 3);
		leases = fake_chan_stats(rig.chan)->leases;
		if (i == 0)
			fake_chan_decline(rig.chan, -EOPNOTSUPP, CHAN_NO_RAIL);
		fake_chan_hold_leases(rig.chan, i == 1);
		fake_chan_hold_flush(rig.chan, i == 2);
		fake_chan_fail(rig.chan, fake_chan_op(rig.chan, 0), WCS_RETRY_EXC);
		if (i == 1) { /* the deadline finds it waiting for the second lease */
			rig_until(fake_chan_stats(rig.chan)->waiting == 1);
			now = clock_ns() + RIG_LATE_NS;
			clock_fake(&now);
		} else if (i == 2) {
			req_gone(x.rq);
			fake_chan_hold_flush(rig.chan, false);
		}
		rig_until(req_is_ready(x.rq));
		assert_int_equal(req_reply(x.rq)->status, 500);
		assert_header(&x, "x-amz-rdma-reply", "500");
		assert_int_equal(fake_chan_stats(rig.chan)->leases, leases);
		x_end(&x);
		clock_fake(NULL);
		fake_chan_decline(rig.chan, 0, CHAN_OK);
		fake_chan_hold(rig.chan, false);
		fake_chan_hold_leases(rig.chan, false);
	}
	assert_int_equal(retried(), 2);
	assert_int_equal(head_size("ends"), UINT64_MAX);
}

/* The store brings a PUT to where its key is.  Where it cannot, the client is told so, and nothing is moved once more. */
static void
test_moved(void **state)
{
	static const size_t lens[] = { 200, 70000, 3500000 };
	unsigned char *body = calloc(1, 3500000);

	for (size_t i = 0; i < 2 * sizeof lens / sizeof *lens; i++) {
		uint64_t leases = fake_chan_stats(rig.chan)->leases;
		size_t len = lens[i / 2];
		struct xchg x;

		mem_store_fail(rig.store, MEM_COMMIT, -EXDEV, 0, 1);
		if (i % 2 == 0) {
			assert_int_equal(put(&x, "moved", len, "x-amz-checksum-algorithm", "CRC32C"), 503);
		} else {
			x_init(&x, 0, "PUT", "/bkt/moved");
			x_field(&x, "content-length", "%zu", len);
			x_begin(&x);
			assert_int_equal(feed(&x, body, len), len);
			assert_int_equal(req_reply(x.rq)->status, 503);
		}
		x_end(&x);
		assert_int_equal(fake_chan_stats(rig.chan)->leases, leases + (i % 2 == 0));
		assert_int_equal(retried(), 0);
		assert_int_equal(head_size("moved"), UINT64_MAX);
	}
	free(body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_done, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_checksums, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_given_sums, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_declined, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_failed, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_refused, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_metadata, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_chunked, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_body_limits, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_body_early, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_draining, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_again, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_not_again, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_moved, rig_start, rig_stop),
		cmocka_unit_test_setup_teardown(test_again_ends, rig_start, rig_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
