/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are text (XML): collected whole, checked against what the request says of them, handed to the
 * step that wants them.  The core's thread.
 *
 * Not the data path: the memory is malloc'd, grows as the bytes come, is bounded per request by
 * limits.xml_bytes and per core by REQ_TEXT_TOTAL, and goes with the request.
 */
#include "req/machine.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/crc64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum verdict body_whole(struct req *rq);

/* What is not taken waits with the client: until the operation began, or for good if it has no use for a
 * body. */
size_t
body_take(struct req *rq, const void *data, size_t len)
{
	return rq->take ? rq->take(rq, data, len) : 0;
}

static bool
grow(struct req *rq, size_t need)
{
	size_t cap = rq->body_cap ? rq->body_cap : 4096;
	char *bigger;

	while (cap < need)
		cap *= 2;
	if (cap == rq->body_cap)
		return true;
	if (req_hold_text(rq, cap - rq->body_cap) < 0)
		return false;
	bigger = realloc(rq->body, cap);
	if (!bigger)
		return false;
	rq->body = bigger;
	rq->body_cap = cap;
	return true;
}

static size_t
collect(struct req *rq, const void *data, size_t len)
{
	if (rq->body_len + len > rq->rs->env.conf->limits.xml_bytes) {
		req_cancel(rq, FAULT_TEXT_TOO_LARGE, "The body is larger than limits.xml.");
		return len;
	}
	/* One more for the end of a string. */
	if (!grow(rq, rq->body_len + len + 1)) {
		req_cancel(rq, FAULT_BUSY, NULL);
		return len;
	}
	memcpy(rq->body + rq->body_len, data, len);
	rq->body_len += len;
	rq->progress_ns = clock_ns();
	return len;
}

enum verdict
body_collect(struct req *rq, step_fn next)
{
	uint64_t max = rq->rs->env.conf->limits.xml_bytes;

	if (rq->target.have_content_length && rq->target.content_length > max)
		return req_fail(rq, FAULT_TEXT_TOO_LARGE, "The body is larger than limits.xml.");
	rq->take = collect;
	rq->then = next;
	return req_go(rq, body_whole);
}

/* ---- what the request says of its body ---- */

static bool
digest_is(struct req *rq, enum digest_kind kind, const uint8_t *want, size_t len)
{
	uint8_t have[32];

	return digest_value(&rq->digest, kind, have) == len && memcmp(have, want, len) == 0;
}

static bool
crc64_is(const struct req *rq, const uint8_t want[8])
{
	uint64_t crc = crc64_nvme(0, rq->body, rq->body_len);

	for (int i = 0; i < 8; i++) {
		if (want[i] != (uint8_t)(crc >> (56 - 8 * i)))
			return false;
	}
	return true;
}

/* A text is what the checksum headers of most operations speak of. */
static bool
speaks_of_body(const struct req *rq, enum checksum_kind k)
{
	return rq->target.sum[k].given && (k == SUM_MD5 || !rq->hooks || !rq->hooks->sums_of_object);
}

static bool
sum_is(struct req *rq, enum checksum_kind k, const struct checksum *c)
{
	return k == SUM_CRC64NVME ? crc64_is(rq, c->value)
				  : digest_is(rq, digest_of_sum(k), c->value, c->len);
}

static enum fault
body_check(struct req *rq)
{
	const struct target *t = &rq->target;
	unsigned mask = t->have_body_sha256 ? DIGEST_BIT(DIGEST_SHA256) : 0;

	if (t->text_sum.given && t->trailer != SUM_CRC64NVME)
		mask |= DIGEST_BIT(digest_of_sum(t->trailer));

	for (enum checksum_kind k = 0; k < SUM_NR; k++) {
		if (k != SUM_CRC64NVME && speaks_of_body(rq, k))
			mask |= DIGEST_BIT(digest_of_sum(k));
	}
	if (mask) {
		if (digest_begin(&rq->digest, mask) < 0)
			return FAULT_BUSY;
		digest_update(&rq->digest, rq->body, rq->body_len);
	}
	if (t->have_body_sha256) {
		uint8_t have[32];

		digest_value(&rq->digest, DIGEST_SHA256, have);
		if (memcmp(have, t->body_sha256, sizeof have) != 0)
			return FAULT_SHA_MISMATCH;
		if (speaks_of_body(rq, SUM_SHA256) &&
		    memcmp(have, t->sum[SUM_SHA256].value, sizeof have) != 0)
			return FAULT_BAD_DIGEST;
	}
	for (enum checksum_kind k = 0; k < SUM_NR; k++) {
		const struct checksum *c = &t->sum[k];

		if (!speaks_of_body(rq, k) || (k == SUM_SHA256 && t->have_body_sha256))
			continue;
		if (!sum_is(rq, k, c))
			return c->payload_hash ? FAULT_SHA_MISMATCH : FAULT_BAD_DIGEST;
	}
	if (t->text_sum.given && !sum_is(rq, t->trailer, &t->text_sum))
		return FAULT_BAD_DIGEST;
	return FAULT_NONE;
}

static enum verdict
body_whole(struct req *rq)
{
	enum fault f;

	if (rq->wants_body && !rq->body_ended)
		return req_wait(rq, "body", body_whole);
	rq->take = NULL;
	if (rq->wants_body && rq->target.have_content_length && !rq->target.aws_chunked &&
	    rq->body_len != rq->target.content_length)
		return req_fail(rq, FAULT_INCOMPLETE_BODY, NULL);
	/* A string also when nothing came. */
	if (!grow(rq, rq->body_len + 1))
		return req_fail(rq, FAULT_BUSY, NULL);
	rq->body[rq->body_len] = 0;
	f = body_check(rq);
	if (f != FAULT_NONE)
		return req_fail(rq, f, NULL);
	return req_go(rq, rq->then);
}
