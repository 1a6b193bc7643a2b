/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws-chunked bodies.  The first byte chooses the form, the second the size of the pieces that come at a
 * time.  The decoder takes no byte twice, hands on only what lies in its input, comes to the same end
 * whatever the pieces, and never takes a signed stream that is not signed.
 *
 * With bit 6 of the first byte the rest is not a body but what one is made of: chunks of a length and so many
 * bytes each. The body is framed and signed as a client would, and comes back as it was; with any of its bits
 * turned it is refused.
 */
#include "auth/auth.h"
#include "base/base64.h"
#include "base/hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

struct out {
	enum fault fault;
	uint64_t bytes;
	struct sha256 hash;
	uint8_t sum[32];
	struct checksum checksum;
};

static void
decode(const struct identity *id, uint64_t promised, enum checksum_kind trailer, const uint8_t *data,
       size_t len, size_t step, size_t room, uint32_t seed, struct out *o)
{
	struct auth_stream s;
	const char *why = NULL;
	size_t at = 0;

	memset(o, 0, sizeof *o);
	sha256_begin(&o->hash);
	auth_stream_init(&s, id, promised, trailer);
	while (at < len) {
		size_t n = len - at < step ? len - at : step, used, run;

		/* Pieces of one length never cut the same stream in two ways. */
		if (seed) {
			seed = seed * 1664525 + 1013904223;
			n = (seed >> 8) % n + 1;
		}

		if (auth_stream_feed(&s, data + at, n, &used, &run) < 0)
			break;
		must(used + run <= n && used + run > 0);
		at += used;
		if (run > room)
			run = room;
		if (!run)
			continue;
		sha256_add(&o->hash, data + at, run);
		auth_stream_took(&s, data + at, run);
		o->bytes += run;
		at += run;
		must(o->bytes <= promised);
	}
	o->fault = auth_stream_end(&s, &o->checksum, &why);
	must(why && (o->fault == FAULT_NONE || *why));
	must(o->fault != FAULT_NONE || promised == UINT64_MAX || o->bytes == promised);
	sha256_end(&o->hash, o->sum);
}

/* ---- a body as it comes ---- */

/* Whole and in pieces, of one length or of any: the same. */
static void
decode_all(const struct identity *id, uint64_t promised, enum checksum_kind trailer, const uint8_t *data,
	   size_t len, uint8_t pace, struct out *whole)
{
	/* Of a long body no more than some hundred. */
	size_t step = (size_t)(pace % 13) + 1 + len / 128;
	struct out pieces;

	decode(id, promised, trailer, data, len, len, len, 0, whole);
	if (pace & 0x10)
		decode(id, promised, trailer, data, len, 4 * step, step, pace, &pieces);
	else
		decode(id, promised, trailer, data, len, step, 3, 0, &pieces);
	must(whole->fault == pieces.fault);
	if (whole->fault != FAULT_NONE)
		return;
	must(whole->bytes == pieces.bytes && memcmp(whole->sum, pieces.sum, 32) == 0);
	must(memcmp(&whole->checksum, &pieces.checksum, sizeof whole->checksum) == 0);
}

/* ---- a body that is signed ---- */

#define BODY_MAX (4u << 10)

struct writer {
	const struct identity *id;
	uint8_t previous[32];
	size_t len;
	char out[BODY_MAX];
};

static void
sign(struct writer *w, const char *algorithm, bool chunk, const uint8_t hash[32], char out[64])
{
	static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
	char text[512], before[64], hex[64];
	int n;

	hex_write(before, w->previous, 32);
	hex_write(hex, hash, 32);
	n = snprintf(text, sizeof text, "%s\n%s\n%s\n%.64s\n%s%.64s", algorithm, w->id->stamp, w->id->scope,
		     before, chunk ? empty : "", hex);
	hmac256_of(w->id->signing_key, 32, text, (size_t)n, w->previous);
	hex_write(out, w->previous, 32);
}

static void
put_chunk(struct writer *w, const uint8_t *p, size_t len)
{
	uint8_t hash[32];
	char hex[64];

	w->len += (size_t)sprintf(w->out + w->len, "%zx", len);
	if (w->id->payload != PAYLOAD_STREAM_UNSIGNED_TRAILER) {
		sha256_of(p, len, hash);
		sign(w, "AWS4-HMAC-SHA256-PAYLOAD", true, hash, hex);
		w->len += (size_t)sprintf(w->out + w->len, ";chunk-signature=%.64s", hex);
	}
	w->len += (size_t)sprintf(w->out + w->len, "\r\n");
	memcpy(w->out + w->len, p, len);
	w->len += len;
	/* Behind the last one a trailer may come. */
	if (len)
		w->len += (size_t)sprintf(w->out + w->len, "\r\n");
}

static void
put_trailer(struct writer *w, enum checksum_kind kind, const uint8_t *bytes)
{
	static const uint8_t lens[SUM_NR] = { [SUM_CRC64NVME] = 8, [SUM_CRC32] = 4,   [SUM_CRC32C] = 4,
					      [SUM_SHA1] = 20,     [SUM_SHA256] = 32, [SUM_MD5] = 16 };
	char line[128] = "", value[BASE64_LEN(32) + 1], hex[64];
	uint8_t hash[32];

	if (kind < SUM_NR) {
		base64_encode(bytes, lens[kind], value);
		snprintf(line, sizeof line, "%s:%s\n", checksum_header[kind], value);
		w->len += (size_t)sprintf(w->out + w->len, "%s:%s\r\n", checksum_header[kind], value);
	}
	if (w->id->payload == PAYLOAD_STREAM_SIGNED_TRAILER) {
		sha256_of(line, strlen(line), hash);
		sign(w, "AWS4-HMAC-SHA256-TRAILER", false, hash, hex);
		w->len += (size_t)sprintf(w->out + w->len, "x-amz-trailer-signature:%.64s\r\n", hex);
	}
	w->len += (size_t)sprintf(w->out + w->len, "\r\n");
}

static void
sign_and_decode(const struct identity *id, uint64_t promised, enum checksum_kind trailer, const uint8_t *data,
		size_t len, uint8_t pace)
{
	static const uint8_t bytes[32] = { 0xfb, 0xff, 1 };
	static struct writer w;
	struct sha256 all;
	struct out got;
	uint8_t sum[32];
	uint64_t total = 0;
	size_t turn = 0;

	w.id = id;
	w.len = 0;
	memcpy(w.previous, id->signature, 32);
	sha256_begin(&all);
	if (id->payload == PAYLOAD_STREAM_SIGNED)
		trailer = SUM_NR;
	/* A chunk takes 255 bytes and its frame, and so does the end. */
	for (size_t n; len > 1 && w.len + 1024 < BODY_MAX; data += n, len -= n) {
		turn = turn * 31 + *data;
		n = *data++;
		len--;
		n = n < 1 ? 1 : n;
		n = n < len ? n : len;
		put_chunk(&w, data, n);
		sha256_add(&all, data, n);
		total += n;
	}
	sha256_end(&all, sum);
	promised = promised == UINT64_MAX ? promised : total;
	put_chunk(&w, (const uint8_t *)"", 0);
	put_trailer(&w, trailer, bytes);
	decode_all(id, promised, trailer, (const uint8_t *)w.out, w.len, pace, &got);
	must(got.fault == FAULT_NONE && got.bytes == total && memcmp(got.sum, sum, 32) == 0);
	must(got.checksum.given == (trailer != SUM_NR) &&
	     memcmp(got.checksum.value, bytes, got.checksum.len) == 0);
	/* Nobody signs what an unsigned one says, and its last line may end in a bare LF. */
	if (id->payload == PAYLOAD_STREAM_UNSIGNED_TRAILER)
		return;
	w.out[turn * 64 % w.len] ^= 1;
	w.out[(turn * 64 + pace) % w.len] ^= 2;
	decode_all(id, promised, trailer, (const uint8_t *)w.out, w.len, pace, &got);
	must(got.fault != FAULT_NONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const enum auth_payload forms[] = { PAYLOAD_STREAM_UNSIGNED_TRAILER, PAYLOAD_STREAM_SIGNED,
						   PAYLOAD_STREAM_SIGNED_TRAILER };
	struct identity id;
	struct out whole;
	enum checksum_kind trailer;
	uint64_t promised;

	if (len < 2)
		return 0;
	identity_init(&id);
	id.payload = forms[data[0] % 3];
	trailer = (enum checksum_kind)(data[0] / 3 % (SUM_NR + 1));
	if (trailer == SUM_MD5)
		trailer = SUM_NR;
	promised = data[0] & 0x80 ? UINT64_MAX : data[1];
	memset(id.signing_key, 7, sizeof id.signing_key);
	strcpy(id.stamp, "20130524T000000Z");
	strcpy(id.scope, "20130524/us-east-1/s3/aws4_request");
	if (data[0] & 0x40) {
		sign_and_decode(&id, promised, trailer, data + 2, len - 2, data[1]);
		return 0;
	}
	decode_all(&id, promised, trailer, data + 2, len - 2, data[1], &whole);
	if (whole.fault == FAULT_NONE) {
		must(id.payload == PAYLOAD_STREAM_UNSIGNED_TRAILER);
		must(whole.checksum.given == (trailer != SUM_NR));
	}
	return 0;
}
