/* SPDX-License-Identifier: Apache-2.0 */
/* aws-chunked bodies: AWS's published example, all three forms, every checksum, and what must not pass. */
#include "sig.h"

#define SIZE 66560

struct body {
	char *p;
	size_t len;
};

static struct body
body_end(FILE *f, char **text, size_t *len)
{
	fclose(f);
	return (struct body){ *text, *len };
}

struct form {
	enum auth_payload payload;
	const char *trailer; /* "name:value", without a line end */
	enum checksum_kind sum;
};

static struct identity
seed_identity(enum auth_payload payload, const char seed[65])
{
	struct signer s = example_signer();
	struct identity id;

	identity_init(&id);
	id.payload = payload;
	sg_key(&s, id.signing_key);
	for (int i = 0; i < 32; i++)
		sscanf(seed + 2 * i, "%2hhx", &id.signature[i]);
	strcpy(id.stamp, STAMP);
	strcpy(id.scope, "20130524/us-east-1/s3/aws4_request");
	return id;
}

/* Frames around data. */
static struct body
frames(const struct form *form, const char seed[65], const char *data, size_t len, size_t chunk)
{
	struct signer s = example_signer();
	char previous[65], sig[65], *text = NULL, line[256];
	size_t text_len, at = 0, n;
	FILE *f = open_memstream(&text, &text_len);
	bool is_signed = form->payload != PAYLOAD_STREAM_UNSIGNED_TRAILER;

	memcpy(previous, seed, 65);
	do {
		n = len - at < chunk ? len - at : chunk;
		fprintf(f, "%zx", n);
		if (is_signed) {
			sg_chunk(&s, false, data + at, n, previous, sig);
			fprintf(f, ";chunk-signature=%s", sig);
			memcpy(previous, sig, 65);
		}
		fputs("\r\n", f);
		fwrite(data + at, 1, n, f);
		if (n)
			fputs("\r\n", f);
		at += n;
	} while (n);
	if (form->trailer)
		fprintf(f, "%s\r\n", form->trailer);
	if (form->payload == PAYLOAD_STREAM_SIGNED_TRAILER) {
		snprintf(line, sizeof line, "%s%s", form->trailer ? form->trailer : "",
			 form->trailer ? "\n" : "");
		sg_chunk(&s, true, line, strlen(line), previous, sig);
		fprintf(f, "x-amz-trailer-signature:%s\r\n", sig);
	}
	fputs("\r\n", f);
	return body_end(f, &text, &text_len);
}

static bool came_whole; /* out of decode(): the bytes were those wanted */

/* Feeds in pieces of `step` bytes, hands on at most `room` at a time; what came out is compared. */
static enum fault
decode(const struct form *form, const struct identity *id, struct body b, uint64_t decoded, const char *want,
       size_t want_len, size_t step, size_t room, struct checksum *sum)
{
	struct auth_stream s;
	const char *why;
	size_t at = 0, out = 0;
	enum fault f;

	auth_stream_init(&s, id, decoded, form->trailer ? form->sum : SUM_NR);
	while (at < b.len) {
		size_t n = b.len - at < step ? b.len - at : step, used, run;

		if (auth_stream_feed(&s, b.p + at, n, &used, &run) < 0)
			break;
		assert_true(used + run <= n && (used || run));
		at += used;
		if (run > room)
			run = room;
		if (!run)
			continue;
		if (want && (out + run > want_len || memcmp(want + out, b.p + at, run) != 0))
			want = NULL; /* wrong bytes: the end must say so */
		auth_stream_took(&s, b.p + at, run);
		at += run;
		out += run;
	}
	f = auth_stream_end(&s, sum, &why);
	assert_true(f == FAULT_NONE || strlen(why) > 10);
	came_whole = want && out == want_len;
	if (f == FAULT_NONE && id->payload != PAYLOAD_STREAM_UNSIGNED_TRAILER)
		assert_true(came_whole);
	return f;
}

static const char seed_hex[] = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

/* The whole of the published example: the request, then its body. */
static void
published(void **state)
{
	static const struct form form = { PAYLOAD_STREAM_SIGNED, NULL, SUM_NR };
	struct auth_env env = example_env();
	struct identity id;
	char *text = NULL, *data = malloc(SIZE);
	size_t len;
	struct body b;
	FILE *f;
	struct rq *r = rq_with(
		rq_bare(DIALECT_S3, "PUT", "/examplebucket/chunkObject.txt"), "Host", "s3.amazonaws.com",
		"x-amz-date", STAMP, "x-amz-storage-class", "REDUCED_REDUNDANCY", "Authorization",
		"AWS4-HMAC-SHA256 Credential=" AK "/20130524/us-east-1/s3/"
		"aws4_request,SignedHeaders=content-encoding;content-length;host;x-amz-"
		"content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,Signature="
		"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
		"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Encoding",
		"aws-chunked", "x-amz-decoded-content-length", "66560", "Content-Length", "66824", NULL);

	memset(&r->t, 0, sizeof r->t);
	r->t.op = OP_PUT_OBJECT;
	r->t.have_content_length = r->t.have_decoded_length = r->t.aws_chunked = true;
	r->t.content_length = 66824;
	rq_read(r);
	assert_fault(auth_check(&env, &r->in, &r->t, DAY_S, &id, &r->why), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_STREAM_SIGNED);
	memset(data, 'a', SIZE);
	f = open_memstream(&text, &len);
	fputs("10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n",
	      f);
	fwrite(data, 1, 65536, f);
	fputs("\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n",
	      f);
	fwrite(data, 1, 1024, f);
	fputs("\r\n0;chunk-signature="
	      "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
	      f);
	b = body_end(f, &text, &len);
	assert_int_equal(b.len, 66824);
	assert_fault(decode(&form, &id, b, SIZE, data, SIZE, b.len, SIZE, NULL), FAULT_NONE);
	assert_fault(decode(&form, &id, b, SIZE, data, SIZE, 7, 5, NULL), FAULT_NONE);
	assert_fault(decode(&form, &id, b, UINT64_MAX, data, SIZE, 100, 1, NULL), FAULT_NONE);
	/* Our own signer makes the same. */
	{
		struct body own = frames(&form, seed_hex, data, SIZE, 65536);

		assert_int_equal(own.len, b.len);
		assert_memory_equal(own.p, b.p, b.len);
		free(own.p);
	}
	identity_put(&id);
	free(text);
	free(data);
}

/* AWS's example of a signed trailer: same data, the checksum behind it. */
static void
published_trailer(void **state)
{
	static const struct form form = { PAYLOAD_STREAM_SIGNED_TRAILER,
					  "x-amz-checksum-crc32c:sOO8/Q==", SUM_CRC32C };
	struct identity id = seed_identity(
		form.payload, "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e");
	struct checksum sum = { 0 };
	char *text = NULL, *data = malloc(SIZE);
	size_t len;
	struct body b;
	FILE *f = open_memstream(&text, &len);

	memset(data, 'a', SIZE);
	fputs("10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n",
	      f);
	fwrite(data, 1, 65536, f);
	fputs("\r\n400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n",
	      f);
	fwrite(data, 1, 1024, f);
	fputs("\r\n0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n"
	      "x-amz-checksum-crc32c:sOO8/Q==\r\n"
	      "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n"
	      "\r\n",
	      f);
	b = body_end(f, &text, &len);
	assert_fault(decode(&form, &id, b, SIZE, data, SIZE, b.len, SIZE, &sum), FAULT_NONE);
	assert_true(sum.given && sum.len == 4);
	assert_memory_equal(sum.value, "\xb0\xe3\xbc\xfd", 4);
	free(text);
	free(data);
}

static const struct form forms[] = {
	{ PAYLOAD_STREAM_SIGNED, NULL, SUM_NR },
	{ PAYLOAD_STREAM_SIGNED_TRAILER, "x-amz-checksum-crc32:y/Q5Jg==", SUM_CRC32 },
	{ PAYLOAD_STREAM_SIGNED_TRAILER,
	  "x-amz-checksum-sha256:FeKw09eaj1TUpzOaTg07OB7bSKjAIwylW9XkVJ2Gypo=", SUM_SHA256 },
	{ PAYLOAD_STREAM_UNSIGNED_TRAILER, "x-amz-checksum-crc32c:4waSgw==", SUM_CRC32C },
	{ PAYLOAD_STREAM_UNSIGNED_TRAILER, "x-amz-checksum-sha1:98O8HYCOBHMq32eZZczDTKeuNEE=", SUM_SHA1 },
	{ PAYLOAD_STREAM_UNSIGNED_TRAILER, "x-amz-checksum-crc64nvme:rosUhgp5mIg=", SUM_CRC64NVME },
	{ PAYLOAD_STREAM_UNSIGNED_TRAILER, NULL, SUM_NR },
	{ PAYLOAD_STREAM_SIGNED_TRAILER, NULL, SUM_NR },
};

#define FORMS (sizeof forms / sizeof *forms)

static void
every_form(void **state)
{
	static const char data[] = "123456789";

	for (size_t i = 0; i < FORMS; i++) {
		struct identity id = seed_identity(forms[i].payload, seed_hex);

		for (size_t len = 0; len <= 9; len += 9) {
			for (size_t chunk = 1; chunk <= 10; chunk += 3) {
				struct body b = frames(&forms[i], seed_hex, data, len, chunk);

				for (size_t step = 1; step <= b.len; step += step < 8 ? 1 : 37) {
					struct checksum sum = { 0 };

					assert_fault(decode(&forms[i], &id, b, len, data, len, step, 2, &sum),
						     FAULT_NONE);
					assert_int_equal(sum.given, forms[i].trailer != NULL);
				}
				free(b.p);
			}
		}
	}
}

/* Every byte of the frames of a signed stream, the payload too; and every cut. */
static void
tampered(void **state)
{
	static const char data[] = "123456789";

	for (size_t i = 0; i < FORMS; i++) {
		struct identity id = seed_identity(forms[i].payload, seed_hex);
		struct body b = frames(&forms[i], seed_hex, data, 9, 4);
		struct checksum good = { 0 };

		assert_fault(decode(&forms[i], &id, b, 9, data, 9, b.len, 9, &good), FAULT_NONE);
		for (size_t k = 0; k < b.len; k++) {
			for (int flip = 1; flip < 256; flip <<= 1) {
				struct checksum sum = { 0 };
				enum fault f;

				b.p[k] ^= (char)flip;
				f = decode(&forms[i], &id, b, 9, data, 9, 5, 9, &sum);
				b.p[k] ^= (char)flip;
				/* Bytes that are not signed are for the checksum to guard. */
				if (f == FAULT_NONE && !came_whole)
					continue;
				if (f != FAULT_NONE) {
					assert_true(fault_info(f)->status == 400 ||
						    fault_info(f)->status == 403);
					continue;
				}
				/* decode() has seen that the bytes are the same.  A checksum that differs is
				 * for the caller to find out; letters of a name, or a bare LF, mean the
				 * same. */
				if (forms[i].payload == PAYLOAD_STREAM_SIGNED ||
				    (memcmp(&sum, &good, sizeof sum) == 0 && flip != 0x20 && b.p[k] != '\r' &&
				     b.p[k] != ':'))
					fail_msg("form %zu: byte %zu (%c) flipped by %x passes", i, k, b.p[k],
						 flip);
			}
		}
		for (size_t cut = 0; cut < b.len; cut++) {
			struct body part = { b.p, cut };
			enum fault f = decode(&forms[i], &id, part, 9, data, 9, 3, 9, NULL);

			assert_int_equal(fault_info(f)->status, f == FAULT_SIGNATURE ? 403 : 400);
		}
		/* Something behind it; another length than promised. */
		b.p = realloc(b.p, b.len + 2);
		memcpy(b.p + b.len, "\r\n", 2);
		b.len += 2;
		assert_fault(decode(&forms[i], &id, b, 9, data, 9, 5, 9, NULL), FAULT_BAD_CHUNK);
		b.len -= 2;
		assert_fault(decode(&forms[i], &id, b, 10, data, 9, 5, 9, NULL), FAULT_INCOMPLETE_BODY);
		assert_fault(decode(&forms[i], &id, b, 8, data, 9, 5, 9, NULL), FAULT_BAD_CHUNK);
		free(b.p);
	}
}

/* Chunks in another order, one of another request, an unsigned one among signed ones. */
static void
spliced(void **state)
{
	static const struct form form = { PAYLOAD_STREAM_SIGNED, NULL, SUM_NR };
	struct identity id = seed_identity(form.payload, seed_hex);
	struct body b = frames(&form, seed_hex, "aaaabbbb", 8, 4);
	size_t one = strlen("4;chunk-signature=") + 64 + 2 + 4 + 2;
	char *swap = malloc(b.len);
	static const char other[] = "5f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
	struct identity second = seed_identity(form.payload, other);

	memcpy(swap, b.p + one, one);
	memcpy(swap + one, b.p, one);
	memcpy(swap + 2 * one, b.p + 2 * one, b.len - 2 * one);
	assert_fault(decode(&form, &id, (struct body){ swap, b.len }, 8, NULL, 0, 9, 9, NULL),
		     FAULT_SIGNATURE);
	assert_fault(decode(&form, &second, b, 8, NULL, 0, 9, 9, NULL), FAULT_SIGNATURE);
	free(swap);
	free(b.p);
}

static void
malformed(void **state)
{
	static const struct {
		const char *text;
		enum fault fault;
	} bad[] = {
		{ "", FAULT_INCOMPLETE_BODY },
		{ "\r\n", FAULT_BAD_CHUNK },
		{ "5\r\n12345\r\n0\r\n", FAULT_INCOMPLETE_BODY },
		{ "5\r\n123456\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "5\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "5 \r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ " 5\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "0x5\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "-5\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "5;\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "5;a=b\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "00000000000000005\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "ffffffffffffffff\r\n12345\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
		{ "5\r\n12345\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n", FAULT_BAD_TRAILER },
		{ "5\r\n12345\r\n0\r\nnonsense\r\n\r\n", FAULT_BAD_TRAILER },
		{ "5\r\n12345\r\n0\r\n\r\n0\r\n\r\n", FAULT_BAD_CHUNK },
	};
	static const struct form plain = { PAYLOAD_STREAM_UNSIGNED_TRAILER, NULL, SUM_NR };
	struct identity id = seed_identity(plain.payload, seed_hex);
	char longest[1024];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct body b = { (char *)(uintptr_t)bad[i].text, strlen(bad[i].text) };

		for (size_t step = 1; step < 40; step += 13) {
			if (decode(&plain, &id, b, 5, NULL, 0, step, 9, NULL) != bad[i].fault)
				fail_msg("%s", bad[i].text);
		}
	}
	memset(longest, '1', sizeof longest);
	assert_fault(decode(&plain, &id, (struct body){ longest, sizeof longest }, 5, NULL, 0, 50, 9, NULL),
		     FAULT_BAD_CHUNK);
}

/* Announced and not there, there twice, of the wrong length. */
static void
trailers(void **state)
{
	static const struct {
		const char *text;
		enum fault fault;
	} rows[] = {
		{ "0\r\n\r\n", FAULT_BAD_TRAILER },
		{ "0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", FAULT_NONE },
		{ "0\r\nX-Amz-Checksum-CRC32: AAAAAA== \n\r\n", FAULT_NONE },
		{ "0\r\nx-amz-checksum-crc32:AAAAAA==\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n",
		  FAULT_BAD_TRAILER },
		{ "0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n", FAULT_BAD_TRAILER },
		{ "0\r\nx-amz-checksum-crc32:AAAAAAA=\r\n\r\n", FAULT_BAD_TRAILER },
		{ "0\r\nx-amz-checksum-crc32:\r\n\r\n", FAULT_BAD_TRAILER },
		{ "0\r\nx-amz-checksum-crc32:AAAAAA==\r\n", FAULT_INCOMPLETE_BODY },
		{ "0\r\nx-amz-trailer-signature:" EMPTY "\r\n\r\n", FAULT_BAD_TRAILER },
	};
	static const struct form form = { PAYLOAD_STREAM_UNSIGNED_TRAILER, "x", SUM_CRC32 };
	struct identity id = seed_identity(form.payload, seed_hex);

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct body b = { (char *)(uintptr_t)rows[i].text, strlen(rows[i].text) };

		if (decode(&form, &id, b, 0, "", 0, 4, 9, NULL) != rows[i].fault)
			fail_msg("%s", rows[i].text);
	}
}

/* As minio-go sends them: the checksum's line ends in LF, and an empty line is where nobody else has one. */
static void
bare_lf_trailers(void **state)
{
	static const struct {
		const char *behind; /* the checksum's line; %s is its signature's digits */
		bool is_signed;
		enum fault fault;
	} rows[] = {
		{ "\n\r\nx-amz-trailer-signature:%s\r\n\r\n", true, FAULT_NONE },
		{ "\nx-amz-trailer-signature:%s\r\n\r\n", true, FAULT_NONE },
		{ "\nx-amz-trailer-signature:%s\n\n", true, FAULT_NONE },
		{ "\n\r\n\r\n", true, FAULT_SIGNATURE },
		{ "\n\r\n", true, FAULT_SIGNATURE },
		{ "\n\r\n\r\nx-amz-trailer-signature:%s\r\n\r\n", true, FAULT_BAD_CHUNK },
		{ "\n\r\nx-amz-trailer-signature:%s\r\n", true, FAULT_INCOMPLETE_BODY },
		{ "\n\r\nx-amz-trailer-signature:%s\r\n\r\n\r\n", true, FAULT_BAD_CHUNK },
		{ "\r\n\r\nx-amz-trailer-signature:%s\r\n\r\n", true, FAULT_BAD_CHUNK },
		{ "\n\r\n\r\n", false, FAULT_NONE },
		{ "\n\r\n", false, FAULT_NONE },
		{ "\n", false, FAULT_INCOMPLETE_BODY },
		{ "\n\r\n\r", false, FAULT_INCOMPLETE_BODY },
		{ "\n\r\n\n", false, FAULT_BAD_CHUNK },
		{ "\n\r\nx\r\n", false, FAULT_BAD_CHUNK },
		{ "\n\r\n\r\n\r\n", false, FAULT_BAD_CHUNK },
		{ "\r\n\r\n\r\n", false, FAULT_BAD_CHUNK },
	};
	static const char sum[] = "x-amz-checksum-crc32:y/Q5Jg==", data[] = "123456789";

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct form form = { rows[i].is_signed ? PAYLOAD_STREAM_SIGNED_TRAILER
						       : PAYLOAD_STREAM_UNSIGNED_TRAILER,
				     sum, SUM_CRC32 };
		struct identity id = seed_identity(form.payload, seed_hex);
		struct body b = frames(&form, seed_hex, data, 9, 9);
		char *behind = memmem(b.p, b.len, sum, sizeof sum - 1), digits[65] = "";
		size_t head = (size_t)(behind - b.p) + sizeof sum - 1;
		const char *mark = memmem(b.p, b.len, "trailer-signature:", 18);
		struct body own = { malloc(b.len + 64), head };

		assert_non_null(behind);
		assert_true(!mark == !rows[i].is_signed);
		if (mark)
			memcpy(digits, mark + 18, 64);
		memcpy(own.p, b.p, head);
		mark = strstr(rows[i].behind, "%s");
		own.len += (size_t)sprintf(
			own.p + head, "%.*s%s%s",
			(int)(mark ? (size_t)(mark - rows[i].behind) : strlen(rows[i].behind)),
			rows[i].behind, mark ? digits : "", mark ? mark + 2 : "");
		for (size_t step = 1; step <= own.len; step += step < 8 ? 1 : 61) {
			struct checksum got = { 0 };

			if (decode(&form, &id, own, 9, data, 9, step, 9, &got) != rows[i].fault)
				fail_msg("%zu, by %zu", i, step);
			assert_int_equal(got.given, rows[i].fault == FAULT_NONE);
		}
		free(own.p);
		free(b.p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),  cmocka_unit_test(published_trailer),
		cmocka_unit_test(every_form), cmocka_unit_test(tampered),
		cmocka_unit_test(spliced),    cmocka_unit_test(malformed),
		cmocka_unit_test(trailers),   cmocka_unit_test(bare_lf_trailers),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	auth_keys_put(example_keys());
	return r;
}
