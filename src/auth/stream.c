/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws-chunked bodies, see auth.h: frames off, signatures of chunks and trailer verified.  Called by req/ as
 * the body comes, on the request's core.
 *
 *   SIZE[;chunk-signature=64 digits] CRLF  bytes CRLF  ...  0[;...] CRLF  [name:value CRLF ...] CRLF
 *
 * Lines of the trailer may end in LF alone.  Where the checksum's does (minio-go), an empty line may stand
 * before the signature, or, where there is no signature, a second one after it:
 *
 *   name:value LF  CRLF  x-amz-trailer-signature:64 digits CRLF  CRLF
 *   name:value LF  CRLF  CRLF
 */
#include "auth/auth_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/hex.h"

#include <errno.h>
#include <openssl/crypto.h>

enum { ST_SIZE, ST_DATA, ST_DATA_END, ST_FINAL, ST_TRAILER, ST_TAIL, ST_DONE, ST_BAD };

static void
bad(struct auth_stream *s, enum fault f, const char *why)
{
	if (s->fault == FAULT_NONE) {
		s->fault = f;
		s->why = why;
	}
	s->state = ST_BAD;
}

static bool
is_signed(const struct auth_stream *s)
{
	return s->payload != PAYLOAD_STREAM_UNSIGNED_TRAILER;
}

void
auth_stream_init(struct auth_stream *s, const struct identity *id, uint64_t decoded_len,
		 enum checksum_kind trailer)
{
	check(auth_payload_is_stream(id->payload));
	s->payload = id->payload;
	s->state = ST_SIZE;
	s->have_trailer_name = trailer < SUM_NR;
	s->have_trailer = s->have_trailer_signature = false;
	s->bare_lf = s->blank_seen = false;
	s->trailer = trailer;
	s->decoded_len = decoded_len;
	s->decoded = s->left = 0;
	s->id = id;
	s->line_len = 0;
	s->sum = (struct checksum){ 0 };
	s->fault = FAULT_NONE;
	s->why = "";
	memcpy(s->previous, id->signature, sizeof s->previous);
	sha256_begin(&s->lines);
}

/* Does `given` sign what was hashed, after the signature before?  It is the next one to chain from then. */
static bool
signature_holds(struct auth_stream *s, const char *algorithm, bool chunk, struct sha256 *h)
{
	uint8_t hash[32], out[32];
	char text[sizeof "AWS4-HMAC-SHA256-PAYLOAD\n\n\n\n\n" + AUTH_STAMP_LEN + AUTH_SCOPE_MAX + 3 * 64];
	char previous[64], hex[64];
	int n;

	hex_write(previous, s->previous, 32);
	sha256_end(h, hash);
	hex_write(hex, hash, 32);
	n = snprintf(text, sizeof text, "%s\n%s\n%s\n%.64s\n%s%.64s", algorithm, s->id->stamp, s->id->scope,
		     previous, chunk ? HASH_OF_EMPTY "\n" : "", hex);
	check(n > 0 && (size_t)n < sizeof text);
	hmac256_of(s->id->signing_key, 32, text, (size_t)n, out);
	if (CRYPTO_memcmp(out, s->given, 32) != 0)
		return false;
	memcpy(s->previous, out, 32);
	return true;
}

static void
chunk_ended(struct auth_stream *s)
{
	if (is_signed(s) && !signature_holds(s, "AWS4-HMAC-SHA256-PAYLOAD", true, &s->chunk))
		bad(s, FAULT_SIGNATURE, "The signature of a chunk does not hold.");
}

/* ---- lines ---- */

/* "SIZE" or "SIZE;chunk-signature=..." */
static void
size_line(struct auth_stream *s, struct span line)
{
	struct span size = span_cut(&line, ';');
	uint64_t n;

	if (size.len < 1 || size.len > 16 || hex_u64(size.p, size.len, &n) < 0) {
		bad(s, FAULT_BAD_CHUNK, "The size of a chunk is not 1 to 16 hexadecimal digits.");
		return;
	}
	if (is_signed(s) ? !span_begins(line, "chunk-signature=") : line.len || size.p + size.len != line.p) {
		bad(s, FAULT_BAD_CHUNK,
		    is_signed(s) ? "A chunk has no chunk-signature."
				 : "A chunk of an unsigned stream has an extension.");
		return;
	}
	if (is_signed(s)) {
		span_cut(&line, '=');
		if (signature_parse(line, s->given) < 0) {
			bad(s, FAULT_BAD_CHUNK, "A chunk-signature is not 64 hexadecimal digits.");
			return;
		}
		sha256_begin(&s->chunk);
	}
	if (n > s->decoded_len - s->decoded) {
		bad(s, FAULT_BAD_CHUNK, "The chunks have more bytes than x-amz-decoded-content-length says.");
		return;
	}
	s->left = n;
	s->state = ST_DATA;
	if (n == 0) {
		s->state = s->payload == PAYLOAD_STREAM_SIGNED ? ST_FINAL : ST_TRAILER;
		chunk_ended(s);
	}
}

static void
trailer_sum(struct auth_stream *s, struct span name, struct span value)
{
	static const uint8_t lens[SUM_NR] = { [SUM_CRC64NVME] = 8, [SUM_CRC32] = 4,   [SUM_CRC32C] = 4,
					      [SUM_SHA1] = 20,     [SUM_SHA256] = 32, [SUM_MD5] = 16 };
	size_t len;

	if (!s->have_trailer_name || s->have_trailer || !span_is(name, checksum_header[s->trailer])) {
		bad(s, FAULT_BAD_TRAILER, "The trailer is not the one that x-amz-trailer announced.");
		return;
	}
	if (base64_decode(value.p, value.len, s->sum.value, sizeof s->sum.value, &len) < 0 ||
	    len != lens[s->trailer]) {
		bad(s, FAULT_BAD_TRAILER, "The trailer's checksum is not base64 of the right length.");
		return;
	}
	s->sum.given = true;
	s->sum.len = (uint8_t)len;
	s->have_trailer = true;
	sha256_add(&s->lines, name.p, name.len);
	sha256_add(&s->lines, ":", 1);
	sha256_add(&s->lines, value.p, value.len);
	sha256_add(&s->lines, "\n", 1);
}

/* The end of the trailer, unless it is the empty line that may come before its signature. */
static void
trailer_blank(struct auth_stream *s)
{
	if (s->payload == PAYLOAD_STREAM_SIGNED_TRAILER && !s->have_trailer_signature && s->bare_lf &&
	    !s->blank_seen)
		s->blank_seen = true;
	else
		s->state = s->bare_lf && !s->blank_seen ? ST_TAIL : ST_DONE;
}

static void
trailer_line(struct auth_stream *s, struct span line, bool bare_lf)
{
	struct span name, value;

	if (line.len == 0) {
		trailer_blank(s);
		return;
	}
	s->bare_lf = bare_lf;
	if (s->have_trailer_signature || !memchr(line.p, ':', line.len)) {
		bad(s, FAULT_BAD_TRAILER,
		    "A line of the trailer is not name:value, or follows its signature.");
		return;
	}
	name = span_cut(&line, ':');
	for (size_t i = 0; i < name.len; i++) {
		if (name.p[i] >= 'A' && name.p[i] <= 'Z')
			s->line[(size_t)(name.p - s->line) + i] += 'a' - 'A';
	}
	value = span_trim(line);
	if (s->payload != PAYLOAD_STREAM_SIGNED_TRAILER || !span_is(name, "x-amz-trailer-signature")) {
		trailer_sum(s, name, value);
		return;
	}
	s->have_trailer_signature = true;
	if (signature_parse(value, s->given) < 0 ||
	    !signature_holds(s, "AWS4-HMAC-SHA256-TRAILER", false, &s->lines))
		bad(s, FAULT_SIGNATURE, "The signature of the trailer does not hold.");
}

static void
whole_line(struct auth_stream *s, struct span line)
{
	bool bare_lf = line.len == 0 || line.p[line.len - 1] != '\r';

	if (!bare_lf) {
		line.len--;
	} else if (s->state != ST_TRAILER) {
		bad(s, FAULT_BAD_CHUNK, "A line of the chunks does not end in CRLF.");
		return;
	}
	switch (s->state) {
	case ST_SIZE:
		size_line(s, line);
		break;
	case ST_TRAILER:
		trailer_line(s, line, bare_lf);
		break;
	case ST_TAIL:
		if (line.len)
			bad(s, FAULT_BAD_CHUNK, "Bytes follow the last chunk.");
		else
			s->state = ST_DONE;
		break;
	default:
		if (line.len)
			bad(s, FAULT_BAD_CHUNK, "A chunk is longer than its size says.");
		else
			s->state = s->state == ST_FINAL ? ST_DONE : ST_SIZE;
		break;
	}
}

/* Takes bytes up to the end of a line; how many. */
static size_t
feed_line(struct auth_stream *s, const char *p, size_t len)
{
	const char *lf = memchr(p, '\n', len);
	size_t n = lf ? (size_t)(lf - p) : len;
	struct span line;

	if (n > sizeof s->line - s->line_len) {
		bad(s, FAULT_BAD_CHUNK, "A line of the chunks is too long.");
		return len;
	}
	memcpy(s->line + s->line_len, p, n);
	s->line_len += (uint16_t)n;
	if (!lf)
		return n;
	line = (struct span){ s->line, s->line_len };
	s->line_len = 0;
	whole_line(s, line);
	return n + 1;
}

/* ---- the stream ---- */

int
auth_stream_feed(struct auth_stream *s, const void *data, size_t len, size_t *ret_used, size_t *ret_run)
{
	const char *p = data;
	size_t used = 0;

	*ret_run = 0;
	while (used < len && s->state != ST_BAD && s->state != ST_DATA) {
		if (s->state == ST_DONE)
			bad(s, FAULT_BAD_CHUNK, "Bytes follow the last chunk.");
		else
			used += feed_line(s, p + used, len - used);
	}
	*ret_used = used;
	if (s->state == ST_BAD)
		return -EINVAL;
	if (s->state == ST_DATA)
		*ret_run = s->left < len - used ? (size_t)s->left : len - used;
	return 0;
}

void
auth_stream_took(struct auth_stream *s, const void *run, size_t n)
{
	check(s->state == ST_DATA && n <= s->left);
	if (is_signed(s))
		sha256_add(&s->chunk, run, n);
	s->left -= n;
	s->decoded += n;
	if (s->left == 0) {
		s->state = ST_DATA_END;
		chunk_ended(s);
	}
}

enum fault
auth_stream_end(struct auth_stream *s, struct checksum *ret_sum, const char **ret_why)
{
	bool over = s->state == ST_DONE || (s->state == ST_TAIL && s->line_len == 0);

	/* What ends where the signature of the trailer should be lacks that. */
	if (!over && s->state != ST_BAD && (!s->blank_seen || s->have_trailer_signature))
		bad(s, FAULT_INCOMPLETE_BODY, "The body ended before its last chunk.");
	else if (s->decoded_len != UINT64_MAX && s->decoded != s->decoded_len)
		bad(s, FAULT_INCOMPLETE_BODY,
		    "The chunks have fewer bytes than x-amz-decoded-content-length says.");
	else if (s->payload == PAYLOAD_STREAM_SIGNED_TRAILER && !s->have_trailer_signature)
		bad(s, FAULT_SIGNATURE, "The trailer is not signed.");
	else if (s->have_trailer_name && !s->have_trailer)
		bad(s, FAULT_BAD_TRAILER, "The trailer that x-amz-trailer announced did not come.");
	*ret_why = s->why;
	if (s->fault == FAULT_NONE && s->have_trailer && ret_sum) {
		ret_sum->given = true;
		ret_sum->len = s->sum.len;
		memcpy(ret_sum->value, s->sum.value, sizeof ret_sum->value);
	}
	return s->fault;
}
