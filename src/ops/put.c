/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PUT: bytes out of the client's window, or out of the HTTP body, into the store.
 *
 *   start -> [checked] -> ticket -> lease -> leased -> pulled -> verified -> committed -> reply
 *                           ^------- again -----------/    once, when the network lost the READs
 *                     \-> ticket (HTTP) -> accepting ... body ... -> fed -^
 *      any of them -> req_fail() -> drain -> reply
 */
#include "ops/ops_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hex.h"

#include <errno.h>
#include <string.h>

static enum verdict put_leased(struct req *rq);
static enum verdict put_declined(struct req *rq);
static enum verdict put_part(struct req *rq);
static enum verdict put_look(struct req *rq);
static enum verdict put_checked(struct req *rq);
static enum verdict put_begin(struct req *rq);
static enum verdict put_pulled(struct req *rq);
static enum verdict put_http_ticketed(struct req *rq);
static enum verdict put_accepting(struct req *rq);
static enum verdict put_verify(struct req *rq);
static enum verdict put_committed(struct req *rq);

/* The store computes CRC64-NVME itself; these are the others. */
static const struct {
	enum checksum_kind sum;
	enum digest_kind digest;
} digests[] = {
	{ SUM_CRC32, DIGEST_CRC32 },   { SUM_CRC32C, DIGEST_CRC32C }, { SUM_SHA1, DIGEST_SHA1 },
	{ SUM_SHA256, DIGEST_SHA256 }, { SUM_MD5, DIGEST_MD5 },
};

/* Which digests run over the bytes: an MD5 for the ETag, and what the client gave or wants. */
static unsigned
digest_mask(const struct req *rq)
{
	bool md5 = !rq->is_tokened && rq->rs->env.conf->s3.etag == S3_ETAG_MD5;
	unsigned mask = md5 ? DIGEST_BIT(DIGEST_MD5) : 0;

	for (size_t i = 0; i < sizeof digests / sizeof *digests; i++) {
		if (rq->target.sum[digests[i].sum].given || rq->target.sum[digests[i].sum].wanted)
			mask |= DIGEST_BIT(digests[i].digest);
	}
	return mask;
}

static bool
is_part(const struct req *rq)
{
	return rq->target.op == OP_UPLOAD_PART || rq->target.op == OP_UPLOAD_PART_COPY;
}

uint64_t
put_limit(const struct req *rq)
{
	const struct conf *c = rq->rs->env.conf;

	return is_part(rq) ? c->limits.part_bytes : c->limits.object_bytes;
}

/* How much is to come, as far as that is known. */
static uint64_t
put_announced(const struct req *rq)
{
	const struct target *t = &rq->target;

	if (rq->is_tokened)
		return t->token.size;
	return t->have_content_length ? t->content_length : 0;
}

static enum fault
put_fault(const struct req *rq, int err)
{
	return is_part(rq) ? upload_fault(err) : fault_of(err);
}

int
put_init(struct req *rq, uint64_t size_bytes)
{
	struct store_put *put = req_put_part(rq);
	struct store_key k = req_key(rq);

	if (!put)
		return -EAGAIN;
	if (is_part(rq))
		return store_put_init_part(rq->rs->env.store, put, &k, rq->target.upload_id,
					   rq->target.part_number, size_bytes);
	return store_put_init(rq->rs->env.store, put, &k, size_bytes);
}

enum fault
put_pre_fault(const struct target *t, const char **ret_why)
{
	if (!t->if_none_match.present || t->if_none_match.any || !t->if_match.any)
		return FAULT_NONE;
	*ret_why = "If-Match: * beside If-None-Match with ETags is not implemented on a write.";
	return FAULT_NOT_IMPLEMENTED;
}

enum verdict
put_start(struct req *rq)
{
	return put_object(rq, req_reply_step);
}

enum verdict
put_object(struct req *rq, step_fn then)
{
	rq->then = then;
	if (put_announced(rq) > put_limit(rq))
		return req_fail(rq, FAULT_TOO_LARGE, NULL);
	return is_part(rq) ? req_stat_upload(rq, put_part) : req_expect_bucket(rq, put_look);
}

static enum verdict
put_part(struct req *rq)
{
	const char *why = NULL;
	enum fault f = part_prepare(rq, &why);

	return f != FAULT_NONE ? req_fail(rq, f, why) : req_go(rq, put_begin);
}

static enum verdict
put_look(struct req *rq)
{
	const struct target *t = &rq->target;
	struct store_key k = req_key(rq);
	const char *why = NULL;
	enum fault f = put_pre_fault(t, &why);
	int r;

	if (f != FAULT_NONE)
		return req_fail(rq, f, why);
	if (!t->if_match.present && !t->if_none_match.present)
		return req_go(rq, put_begin);
	/* A first look at published state, so that a refusal moves nothing (item 48); the leader judges
	 * again. */
	rq->obj.op.done = req_on_obj;
	rq->obj.op.result = 0;
	r = store_open(rq->rs->env.store, &k, &rq->obj);
	if (r < 0) {
		rq->obj.op.result = r;
		return req_go(rq, put_checked);
	}
	return req_await(rq, r, "open", put_checked);
}

static enum verdict
put_checked(struct req *rq)
{
	int r = rq->obj.op.result;
	char etag[48];
	size_t len = 0;
	uint64_t mtime_s = 0;
	enum fault f;

	if (r < 0 && r != -ENOENT)
		return req_fail(rq, fault_of(r), NULL);
	if (r >= 0) {
		len = etag_text(&rq->obj.meta.etag, etag);
		mtime_s = rq->obj.meta.mtime_ns / NS_PER_S;
		store_close(rq->rs->env.store, &rq->obj);
	}
	f = dialect_conditions(&rq->target, r >= 0 ? etag : NULL, len, mtime_s);
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : req_go(rq, put_begin);
}

static enum verdict
put_begin(struct req *rq)
{
	if (digest_begin(&rq->digest, digest_mask(rq)) < 0)
		return req_fail(rq, FAULT_BUSY, NULL);
	if (rq->is_tokened) {
		req_deadlines(rq, rq->target.token.size);
		return req_lease(rq, put_leased, put_declined);
	}
	return req_http_ticket(rq, put_http_ticketed);
}

/* ---- by RDMA ---- */

static enum verdict
put_declined(struct req *rq)
{
	req_declined(rq);
	return req_go(rq, req_reply_step);
}

static enum verdict
put_leased(struct req *rq)
{
	int r = put_init(rq, rq->target.token.size);

	if (r < 0)
		return req_fail(rq, put_fault(rq, r), NULL);
	rq->phase = PHASE_MOVING;
	xfer_pull(&rq->xfer, &rq->change->put, rq->target.token.size, &rq->lease, &rq->digest,
		  rq->rs->env.conf->rdma.inflight_bytes);
	return req_go(rq, put_pulled);
}

/*
 * READs change nothing at the client, so they may be tried once more on a fresh channel: when the network
 * lost them (the handle of the address is made again then), or when the queue pair went down under them.  Not
 * when the client's memory said no; not on a connection of RC, which has ended with the first READ; not for a
 * client that is gone or out of time (req_cancel() set the fault).
 */
static bool
may_pull_again(const struct req *rq)
{
	return rq->lease.failed && !rq->retried && !rq->gone && rq->fault == FAULT_NONE &&
	       rq->target.token.kind != TOKEN_RC_SHIM &&
	       (rq->xfer.result == -EIO || rq->xfer.result == -ECANCELED) &&
	       (rq->lease.status == WCS_RETRY_EXC || rq->lease.status == WCS_FLUSHED);
}

/* From the ticket on, in the same order as everybody; the deadline in all is still the first one's. */
static enum verdict
put_again(struct req *rq)
{
	rq->retried = true;
	stats_event(rq->rs->env.stats, STATS_RETRIED);
	xfer_fini(&rq->xfer);
	lease_release(rq);
	memset(&rq->lease, 0, sizeof rq->lease);
	if (digest_begin(&rq->digest, rq->digest.mask) < 0)
		return req_fail(rq, FAULT_TRANSFER, NULL);
	return req_lease(rq, put_leased, put_declined);
}

static enum verdict
put_pulled(struct req *rq)
{
	if (!rq->xfer.ended)
		return req_wait(rq, "pull", put_pulled);
	check(rq->xfer.inflight == 0);
	check(rq->lease.outstanding == 0);
	rq->rdma_bytes = rq->xfer.moved;
	if (may_pull_again(rq)) {
		store_put_abort(rq->rs->env.store, &rq->change->put);
		return req_go(rq, put_again);
	}
	if (rq->xfer.result < 0) {
		rq->errno_seen = rq->xfer.result;
		return req_fail(rq, rq->lease.failed ? FAULT_TRANSFER : fault_of(rq->xfer.result), NULL);
	}
	/* The wire is done: the channel is somebody else's during the commit. */
	lease_release(rq);
	return req_go(rq, put_verify);
}

/* ---- over HTTP ---- */

static enum verdict
put_http_ticketed(struct req *rq)
{
	int r;

	if (!rq->xfer.have_ticket)
		return req_wait(rq, "ticket", put_http_ticketed);
	r = put_init(rq, rq->target.have_content_length ? rq->target.content_length : STORE_SIZE_UNKNOWN);
	if (r < 0)
		return req_fail(rq, put_fault(rq, r), NULL);
	rq->phase = PHASE_MOVING;
	xfer_accept(&rq->xfer, &rq->change->put, &rq->digest);
	return req_go(rq, put_accepting);
}

static enum verdict
put_accepting(struct req *rq)
{
	const char *why = NULL;
	enum fault f;

	if (rq->xfer.result < 0)
		return req_fail(rq, fault_of(rq->xfer.result), NULL);
	if (rq->hooks->body_end && rq->body_ended && !rq->xfer.fed_all) {
		f = rq->hooks->body_end(rq, &why);
		if (f != FAULT_NONE)
			return req_fail(rq, f, why);
	}
	if (rq->body_ended && !rq->xfer.fed_all) {
		if (rq->target.have_content_length && rq->http_bytes != rq->target.content_length)
			return req_fail(rq, FAULT_INCOMPLETE_BODY, NULL);
		xfer_feed_end(&rq->xfer);
	}
	/* A PUT of no bytes at all: libmicrohttpd calls once, with nothing. */
	if (!rq->xfer.ended && !rq->wants_body && !rq->xfer.fed_all)
		xfer_feed_end(&rq->xfer);
	if (!rq->xfer.ended)
		return req_wait(rq, rq->xfer.fed_all ? "write" : "body", put_accepting);
	return rq->xfer.result < 0 ? req_fail(rq, fault_of(rq->xfer.result), NULL) : req_go(rq, put_verify);
}

size_t
put_take(struct req *rq, const void *data, size_t len)
{
	size_t n;

	if (rq->xfer.mode != XFER_ACCEPT)
		return 0; /* waits for its ticket */
	n = xfer_feed(&rq->xfer, data, len);
	rq->http_bytes += n;
	if (rq->xfer.result < 0) {
		req_wake(rq);
		return len;
	}
	if (rq->http_bytes > put_limit(rq))
		req_cancel(rq, FAULT_TOO_LARGE, NULL);
	return n;
}

/* ---- both ---- */

/* The digest's value as given, wanted, or the body's MD5; and into the stored attributes what a HEAD gives
 * back later. */
static enum fault
verify_one(struct req *rq, enum checksum_kind sum, enum digest_kind digest)
{
	struct checksum *c = &rq->target.sum[sum];
	uint8_t value[32];
	char text[64];
	size_t len;

	if (!(rq->digest.mask & DIGEST_BIT(digest)))
		return FAULT_NONE;
	len = digest_value(&rq->digest, digest, value);
	if (c->given && (c->len != len || memcmp(c->value, value, len) != 0))
		return c->payload_hash ? FAULT_SHA_MISMATCH : FAULT_BAD_DIGEST;
	if (c->payload_hash)
		return FAULT_NONE;
	if (digest == DIGEST_MD5) {
		if (!rq->is_tokened)
			memcpy(rq->etag.sum, value, 16);
		return FAULT_NONE;
	}
	memcpy(c->value, value, len);
	c->len = (uint8_t)len;
	base64_encode(value, len, text);
	return dialect_attrs_add(rq->target.attrs, &rq->target.attrs_len, DIALECT_ATTRS_MAX,
				 checksum_header[sum], strlen(checksum_header[sum]), text, strlen(text)) < 0
		       ? FAULT_META_TOO_LARGE
		       : FAULT_NONE;
}

/* A number nobody can guess from the bytes and nobody has seen before: xorshift128+ over seed bits of the
 * kernel. */
static void
etag_random(struct reqs *rs, uint8_t out[16])
{
	for (int i = 0; i < 2; i++) {
		uint64_t a = rs->rng[0], b = rs->rng[1], v;

		rs->rng[0] = b;
		a ^= a << 23;
		rs->rng[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
		v = rs->rng[1] + b;
		memcpy(out + 8 * i, &v, 8);
	}
}

/* S3 documents If-None-Match: * alone; of ETags it does what RFC 9110 says. */
void
put_fill_pre(const struct target *t, struct store_pre *pre)
{
	const struct etag_list *match = &t->if_match, *none = &t->if_none_match, *l = match;

	memset(pre, 0, sizeof *pre);
	/* Of If-Match and If-None-Match: * together nothing holds: no ETag is left then. */
	if (match->present && (!match->any || none->any))
		pre->kind = PRE_MATCH;
	else if (none->any)
		pre->kind = PRE_ABSENT;
	else if (none->present)
		pre->kind = PRE_NONE_MATCH;
	else if (match->present)
		pre->kind = PRE_MATCH_ANY;
	if (pre->kind == PRE_NONE_MATCH)
		l = none;
	for (int i = 0; i < l->nr && pre->etag_nr < STORE_PRE_ETAGS; i++) {
		/* Where both came, it must be one of those and none of these. */
		if (l == match && etag_list_has(none, l->etag[i].text, l->etag[i].len))
			continue;
		if (etag_parse(l->etag[i].text, l->etag[i].len, &pre->etags[pre->etag_nr]) == 0)
			pre->etag_nr++;
	}
}

void
put_fill_write_pre(const struct req *rq, struct store_pre *pre)
{
	put_fill_pre(&rq->target, pre);
	pre->keep = !may_key(rq, AUTH_REPLACE, rq->target.key, rq->target.key_len);
}

enum verdict
put_commit_to(struct req *rq, uint64_t mtime_ns, step_fn next)
{
	const struct checksum *crc = &rq->target.sum[SUM_CRC64NVME];
	struct store_put *put = &rq->change->put;
	struct store_commit c;
	int r;

	memset(&c, 0, sizeof c);
	c.meta.etag = rq->etag;
	c.meta.mtime_ns = mtime_ns;
	c.meta.attrs = rq->target.attrs;
	c.meta.attrs_len = rq->target.attrs_len;
	c.meta.expires_ns = rq->expires_ns = expires_after(rq->target.ttl_s);
	if (!is_part(rq))
		put_fill_write_pre(rq, &c.pre);
	c.last = xfer_last(&rq->xfer, &c.last_len);
	if (c.last && put->size_bytes == 0 && c.last_len <= store_limits(rq->rs->env.store)->inline_bytes) {
		c.inline_data = c.last->mem;
		c.inline_len = c.last_len;
		c.last = NULL;
	}
	if (crc->given) {
		c.have_expect_crc64 = true;
		c.expect_crc64 = sum_to_u64(crc->value);
	}
	c.progress_ns = &rq->xfer.progress_ns;
	put->op.done = req_on_put;
	r = store_put_commit(rq->rs->env.store, put, &c);
	if (r < 0)
		return req_fail(rq, put_fault(rq, r), NULL);
	rq->phase = PHASE_COMMIT;
	return req_await(rq, r, "commit", next);
}

enum fault
put_sums(struct req *rq)
{
	for (size_t i = 0; i < sizeof digests / sizeof *digests; i++) {
		enum fault f = verify_one(rq, digests[i].sum, digests[i].digest);

		if (f != FAULT_NONE)
			return f;
	}
	return FAULT_NONE;
}

static enum verdict
put_verify(struct req *rq)
{
	enum fault f;

	/* No MD5 was made: of bytes by RDMA, or s3.etag says random and no Content-MD5 asked for one. */
	if (rq->is_tokened || !(rq->digest.mask & DIGEST_BIT(DIGEST_MD5))) {
		etag_random(rq->rs, rq->etag.sum);
		rq->etag.parts = STORE_ETAG_RDMA;
	}
	if (rq->target.sums_of_empty_ignored)
		stats_event(rq->rs->env.stats, STATS_SUMS_IGNORED);
	f = put_sums(rq);
	return f != FAULT_NONE ? req_fail(rq, f, NULL) : put_commit_to(rq, 0, put_committed);
}

static enum verdict
put_committed(struct req *rq)
{
	int r = rq->change->put.op.result;

	if (r < 0) {
		rq->errno_seen = r;
		return req_fail(rq, put_fault(rq, r),
				r == -ECANCELED ? "The disk failed during the commit; the object may exist."
						: NULL);
	}
	expires_written(rq);
	return req_go(rq, rq->then);
}

/* ---- what the reply says ---- */

/* Checksums that the client gave or asked for, of a PUT that was done (protocol.md 4.6). */
static void
checksum_headers(struct req *rq)
{
	bool any = false;

	for (int k = 0; k < SUM_NR; k++) {
		const struct checksum *c = &rq->target.sum[k];
		char text[64];

		if (k == SUM_MD5 || c->payload_hash || !(c->given || c->wanted))
			continue;
		if (k == SUM_CRC64NVME)
			sum_text64(rq->change->put.crc64, text);
		else
			base64_encode(c->value, c->len, text);
		reply_text(rq, checksum_header[k], text);
		any = true;
	}
	/* Of one PUT it is always that. */
	if (any && !is_part(rq))
		reply_text(rq, ATTR_SUM_TYPE, "FULL_OBJECT");
}

static void
put_headers(struct req *rq, const struct outcome *o, enum outcome_kind kind)
{
	struct store_meta meta = { .attrs = rq->target.attrs, .attrs_len = rq->target.attrs_len };

	if (kind != OUT_DONE)
		return;
	checksum_headers(rq);
	if (is_part(rq))
		return;
	meta.mtime_ns = clock_wall_ns();
	reply_expiration(rq, rq->http_bytes + rq->rdma_bytes, &meta);
}

const struct op_hooks put_hooks = { .take = put_take, .headers = put_headers };
