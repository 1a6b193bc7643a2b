/*
 * aws-chunked bodies.  The first byte chooses the form, the second the size of the pieces that come at a
 * time.  The decoder takes no byte twice, hands on only what lies in its input, comes to the same end
 * whatever the pieces, and never takes a signed stream that is not signed.
 */
#include "auth/auth.h"

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
       size_t len, size_t step, size_t room, struct out *o)
{
	struct auth_stream s;
	const char *why = NULL;
	size_t at = 0;

	memset(o, 0, sizeof *o);
	sha256_begin(&o->hash);
	auth_stream_init(&s, id, promised, trailer);
	while (at < len) {
		size_t n = len - at < step ? len - at : step, used, run;

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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const enum auth_payload forms[] = { PAYLOAD_STREAM_UNSIGNED_TRAILER, PAYLOAD_STREAM_SIGNED,
						   PAYLOAD_STREAM_SIGNED_TRAILER };
	struct identity id;
	struct out whole, pieces;
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
	decode(&id, promised, trailer, data + 2, len - 2, len, len, &whole);
	decode(&id, promised, trailer, data + 2, len - 2, (size_t)(data[1] % 13) + 1, 3, &pieces);
	must(whole.fault == pieces.fault);
	if (whole.fault == FAULT_NONE) {
		must(id.payload == PAYLOAD_STREAM_UNSIGNED_TRAILER);
		must(whole.bytes == pieces.bytes && memcmp(whole.sum, pieces.sum, 32) == 0);
		must(memcmp(&whole.checksum, &pieces.checksum, sizeof whole.checksum) == 0);
		must(whole.checksum.given == (trailer != SUM_NR));
	}
	return 0;
}
