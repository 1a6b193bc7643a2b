/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures in the header and in the query: AWS's published examples, and what a signature has to cover. */
#include "ask.h"

#include "auth/auth_int.h"

/* item 81 */
static void
published(void **state)
{
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	assert_fault(ask_at(example_get(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_EMPTY);
	assert_string_equal(id.entry->access_key, AK);
	assert_false(id.anonymous || id.presigned);
	identity_put(&id);
	assert_fault(ask_at(example_put(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_HASH);
	identity_put(&id);
	r = for_op(example("GET", "/?lifecycle", EMPTY,
			   AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
					 "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")),
		   OP_GET_BUCKET_LIFECYCLE);
	assert_fault(ask(r), FAULT_NONE);
	r = for_op(example("GET", "/?max-keys=2&prefix=J", EMPTY,
			   AUTHORIZATION("host;x-amz-content-sha256;x-amz-date",
					 "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")),
		   OP_LIST_OBJECTS);
	assert_fault(ask(r), FAULT_NONE);
	/* The order on the wire does not matter. */
	r->target = "/?prefix=J&max-keys=2";
	assert_fault(ask(r), FAULT_NONE);
	assert_fault(ask_at(example_presigned(), &env, DAY_S, &id), FAULT_NONE);
	assert_int_equal(id.payload, PAYLOAD_UNSIGNED);
	assert_true(id.presigned);
	identity_put(&id);
}

/* A key that is kept for a region signs for that region only: two pairs of regions with the same 32-bit FNV-1a hash, regions that
 * are the beginning of another one, and the longest names. */
static void
regions_of_one_hash(void **state)
{
	static const char *const regions[] = {
		"liquid",
		"costarring",
		"macallums",
		"declinate",
		"",
		"l",
		"a-region-with-a-name-of-the-largest-length-which-is-63-bytes-xx",
		"a-region-with-a-name-of-the-largest-length-which-is-63-bytes-xy"
	};
	struct auth_env env = example_env();

	env.region = CONF_ANY_REGION;
	for (size_t turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
			struct signer s = example_signer();
			struct identity id;
			struct rq *r = rq_with(s3("GET", "/bkt/obj"), "x-amz-date", STAMP,
					       "x-amz-content-sha256", EMPTY, NULL);

			s.region = regions[i];
			assert_fault(ask_at(sign(r, &s), &env, DAY_S, &id), FAULT_NONE);
			identity_put(&id);
		}
	}
}

/* ---- tampering ---- */

/* Tells whether it is a letter of an escape: its case says nothing. */
static bool
is_hex_letter(const char *text, size_t i)
{
	bool escape = (i > 0 && text[i - 1] == '%') || (i > 1 && text[i - 2] == '%');

	return escape && ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'f');
}

/* Every byte of text, with several others in its place. */
static void
tamper_text(struct rq *r, char *text, size_t len, const char *what, size_t from)
{
	static const unsigned char flips[] = { 0x01, 0x02, 0x20, 0x10, 0x80 };

	for (size_t i = from; i < len; i++) {
		for (size_t k = 0; k < sizeof flips; k++) {
			char was = text[i];

			text[i] = (char)(was ^ flips[k]);
			if (text == r->target && flips[k] == 0x20 && is_hex_letter(text, i))
				assert_fault(ask(r), FAULT_NONE);
			else if (text[i] && !refused(r))
				fail_msg("%s: byte %zu changed from %c to %c passes", what, i, was, text[i]);
			text[i] = was;
		}
	}
}

static void
tamper(struct rq *r)
{
	const char *old_method = r->in.method, *old_target = r->target;
	char method[16], target[1024];

	assert_fault(ask(r), FAULT_NONE);
	snprintf(method, sizeof method, "%s", r->in.method);
	snprintf(target, sizeof target, "%s", r->target);
	r->in.method = method;
	tamper_text(r, method, strlen(method), "method", 0);
	r->target = target;
	tamper_text(r, target, r->target_len, "target", 0);
	for (int i = 0; i < r->in.field_nr; i++) {
		struct field *f = &r->fields[i];
		char name[64], value[1024];
		const char *was = f->value, *named = f->name;

		snprintf(value, sizeof value, "%s", f->value);
		f->value = value;
		tamper_text(r, value, f->value_len, f->name, 0);
		f->value = was;
		/* Under another name it is missing. */
		snprintf(name, sizeof name, "%s", f->name);
		f->name = name;
		for (size_t k = 0; k < f->name_len; k++) {
			name[k] ^= 1;
			assert_true(refused(r) || strcasecmp(named, "authorization") == 0);
			name[k] ^= 1;
		}
		f->name = named;
	}
	r->in.method = old_method;
	r->target = old_target;
	assert_fault(ask(r), FAULT_NONE);
}

static void
every_byte(void **state)
{
	struct signer s = example_signer();
	struct rq *r = example_get();

	/* Without Authorization it is an anonymous request, which this listener does not serve. */
	r->listen.anonymous = false;
	tamper(r);
	r = example_put();
	r->listen.anonymous = false;
	tamper(r);
	r = example_presigned();
	r->listen.anonymous = false;
	tamper(r);
	/* item 81: all headers signed, a port in Host; a descriptor */
	r = for_op(rq_with(s3("PUT", "/bkt/a%20b%2Bc?partNumber=1&x-id=PutObject"), "content-length", "0",
			   "user-agent", "x  y   z", "x-amz-content-sha256", "UNSIGNED-PAYLOAD", "x-amz-date",
			   STAMP, "x-amz-rdma-token", DC81, "x-amz-meta-a", "1", NULL),
		   OP_PUT_OBJECT);
	r->fields[2].value = "x y z"; /* as the signer has to write it */
	r->fields[2].value_len = 5;
	r->t.wire = WIRE_AMZ;
	sign(r, &s);
	r->listen.anonymous = false;
	tamper(r);
	r->fields[2].value = "x  y   z";
	r->fields[2].value_len = 8;
	assert_fault(ask(r), FAULT_NONE);
}

/* ---- what must be signed ---- */

static struct rq *
unsigned_extra(const char *name, const char *value)
{
	struct signer s = example_signer();
	struct rq *r = for_op(rq_with(s3("PUT", "/bkt/obj"), "content-length", "0", "x-amz-content-sha256",
				      "UNSIGNED-PAYLOAD", "x-amz-date", STAMP, NULL),
			      OP_PUT_OBJECT);

	sign(r, &s);
	rq_field(r, name, value);
	return r;
}

/* item 82 */
static void
unsigned_headers(void **state)
{
	static const char *const names[] = { "x-amz-rdma-token",   "X-Amz-Rdma-Token",   "x-rdma-info",
					     "x-cuobj-rdma-descr", "x-amz-meta-a",       "x-amz-copy-source",
					     "X-AMZ-ACL",          "x-cuobj-new-header", "x-amz-rdma-agent",
					     "x-gantry-copies",    "X-Gantry-New-Header" };
	static const char *const headers[] = {
#define WIRE(id, header, ...) header,
#include "dialect/wire.def"
	};
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		r = unsigned_extra(names[i], DC81);
		assert_fault(ask(r), FAULT_ACCESS_DENIED);
		assert_int_equal(fault_info(FAULT_ACCESS_DENIED)->status, 403);
	}
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		assert_true(dialect_is_wire_header(span_of(headers[i])));
		assert_fault(ask(unsigned_extra(headers[i], DC81)), FAULT_ACCESS_DENIED);
	}
	env.relax = true;
	assert_fault(ask_at(unsigned_extra("x-rdma-info", DC81), &env, DAY_S, &id), FAULT_NONE);
	identity_put(&id);
	assert_fault(ask_at(unsigned_extra("x-amz-rdma-token", DC81), &env, DAY_S, &id), FAULT_ACCESS_DENIED);
	assert_fault(ask(unsigned_extra("range", "bytes=0-1")), FAULT_NONE);
	/* A second one of a signed header is part of what is signed. */
	assert_fault(ask(unsigned_extra("x-amz-date", STAMP)), FAULT_ACCESS_DENIED);
	assert_fault(ask(unsigned_extra("content-length", "0")), FAULT_SIGNATURE);
	/* A presigned URL: the token only as a signed header. */
	r = rq_with(example_presigned(), "x-amz-rdma-token", DC81, NULL);
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
	/* Host is not signed. */
	r = for_op(rq_with(rq_bare(DIALECT_S3, "GET", "/bkt/obj"), "x-amz-date", STAMP,
			   "x-amz-content-sha256", EMPTY, NULL),
		   OP_GET_OBJECT);
	sign(r, &(struct signer){ AK, SK, "us-east-1", "s3", STAMP });
	rq_field(r, "Host", "x");
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
}

/* One signature, two texts: SigV4 folds runs of blanks.  What says which bytes move may not have any. */
static void
blanks_in_headers(void **state)
{
	static const struct {
		const char *name, *plain, *other;
		enum fault f;
	} cases[] = {
		{ "x-amz-copy-source", "/bkt/a b", "/bkt/a  b", FAULT_BAD_REQUEST },
		{ "x-amz-copy-source", "/bkt/a b", "/bkt/a   b", FAULT_BAD_REQUEST },
		{ "X-Amz-Tagging", "a=b c", "a=b  c", FAULT_BAD_REQUEST },
		{ "x-amz-meta-rdma-token", "a b", "a  b", FAULT_BAD_REQUEST },
		{ "x-amz-rdma-token", "a b", "a  b", FAULT_BAD_REQUEST },
		{ "x-rdma-info", "a b", "a  b", FAULT_BAD_REQUEST },
		{ "x-cuobj-content-length", "1 2", "1  2", FAULT_BAD_REQUEST },
		{ "x-amz-copy-source", "/bkt/a\tb", "/bkt/a\tb", FAULT_BAD_REQUEST },
		{ "x-amz-copy-source", "/bkt/a b", " /bkt/a b\t", FAULT_NONE },
		{ "x-amz-meta-a", "a b", "a   b", FAULT_NONE }, /* only stored */
	};
	struct signer s = example_signer();

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct rq *r = for_op(rq_with(s3("PUT", "/bkt/obj"), "content-length", "0",
					      "x-amz-content-sha256", "UNSIGNED-PAYLOAD", "x-amz-date", STAMP,
					      cases[i].name, cases[i].plain, NULL),
				      OP_PUT_OBJECT);
		struct field *f = &r->fields[r->in.field_nr - 1];

		sign(r, &s);
		f->value = cases[i].other;
		f->value_len = (uint32_t)strlen(f->value);
		if (ask(r) != cases[i].f)
			fail_msg("%s: \"%s\": fault %d, %s", cases[i].name, f->value, ask(r), r->why);
	}
}

/* ---- the body ---- */

static enum fault
ask_hash(const char *hash, enum op op, enum wire_form wire, bool body)
{
	struct signer s = example_signer();
	struct rq *r = for_op(s3("PUT", "/bkt/obj"), op);

	r->t.wire = wire;
	r->t.have_content_length = true;
	r->t.content_length = body ? 5 : 0;
	r->t.have_decoded_length = true;
	rq_with(r, "x-amz-date", STAMP, NULL);
	if (hash)
		rq_field(r, "x-amz-content-sha256", hash);
	return ask(sign(r, &s));
}

/* item 47 */
static void
payload(void **state)
{
	static const char other[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";

	assert_fault(ask_hash("UNSIGNED-PAYLOAD", OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_NONE);
	assert_fault(ask_hash(EMPTY, OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_NONE);
	assert_fault(ask_hash(other, OP_PUT_OBJECT, WIRE_AMZ, false), FAULT_SHA_MISMATCH);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_AMZ, false),
		     FAULT_BAD_REQUEST);
	assert_fault(ask_hash("STREAMING-UNSIGNED-PAYLOAD-TRAILER", OP_PUT_OBJECT, WIRE_AMZ, false),
		     FAULT_BAD_REQUEST);
	assert_fault(ask_hash(other, OP_GET_OBJECT, WIRE_NONE, false), FAULT_SHA_MISMATCH);
	assert_fault(ask_hash(other, OP_PUT_OBJECT, WIRE_NONE, true), FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_NONE, true),
		     FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_DELETE_OBJECTS, WIRE_NONE, true),
		     FAULT_NONE);
	assert_fault(ask_hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", OP_DELETE_BUCKET, WIRE_NONE, true),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(ask_hash("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", OP_PUT_OBJECT, WIRE_NONE, true),
		     FAULT_NOT_IMPLEMENTED);
	assert_fault(ask_hash("rubbish", OP_PUT_OBJECT, WIRE_NONE, true), FAULT_BAD_ARGUMENT);
	assert_fault(ask_hash(NULL, OP_PUT_OBJECT, WIRE_NONE, true), FAULT_BAD_REQUEST);
	/* Without a body some leave it out and sign the hash of nothing. */
	assert_fault(ask_hash(NULL, OP_GET_OBJECT, WIRE_NONE, false), FAULT_NONE);
}

/* ---- forms ---- */

static void
forms(void **state)
{
	static const char policy[] = "eyJleHBpcmF0aW9uIjogIjIwMTMtMDUtMjRUMDA6MDA6MDBaIn0=";
	static const char credential[] = AK "/20130524/us-east-1/s3/aws4_request";
	struct signer s = example_signer();
	struct auth_env env = example_env();
	struct auth_form form = { policy, "AWS4-HMAC-SHA256", credential, STAMP, NULL, NULL, strlen(policy),
				  16,     strlen(credential), 16,         64,    0 };
	struct identity id;
	uint8_t key[32], mac[32];
	char hex[65], changed[sizeof policy];
	const char *why;

	sg_key(&s, key);
	sg_mac(key, 32, policy, strlen(policy), mac);
	sg_hex(mac, 32, hex);
	form.signature = hex;
	identity_init(&id);
	assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_NONE);
	assert_string_equal(id.entry->access_key, AK);
	identity_put(&id);
	for (size_t i = 0; i < strlen(policy); i++) {
		memcpy(changed, policy, sizeof policy);
		changed[i] ^= 1;
		form.policy = changed;
		assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_SIGNATURE);
	}
	form.policy = NULL;
	assert_fault(auth_check_form(&env, &form, DAY_S, &id, &why), FAULT_ACCESS_DENIED);
}

/* A preflight is nobody's, and is let in: what it says of a signature is of the request to come. */
static void
preflights(void **state)
{
	static const char *const authorizations[] = { "", "AWS4-HMAC-SHA256 nonsense", "AWS a:b",
						      "Bearer x" };

	for (size_t i = 0; i < sizeof authorizations / sizeof *authorizations; i++) {
		struct auth_env env = example_env();
		struct identity id;
		struct rq *r =
			for_op(rq_with(s3("OPTIONS", "/bkt/k?X-Amz-Signature=0&Expires=1"), "authorization",
				       authorizations[i], "x-amz-content-sha256", "nonsense", NULL),
			       OP_OPTIONS);

		r->listen.anonymous = i % 2;
		rq_read(r);
		assert_fault(auth_check(&env, &r->in, &r->t, DAY_S, &id, &r->why), FAULT_NONE);
		assert_true(!id.anonymous && !id.entry && auth_allows(&id, &r->t));
		assert_false(auth_may(&id, AUTH_READ, "bkt", 3, "k", 1));
	}
}

/* The published URL with a field that it does not sign. */
static struct rq *
url_with(const char *name, const char *value)
{
	struct rq *r = rq_with(example_presigned(), name, value, NULL);

	assert_fault(rq_parse(r), FAULT_NONE);
	return r;
}

/* Whoever uses a URL may add x-amz-content-sha256, and nothing is made of it; of the other x-amz-* nobody may
 * add any. */
static void
unsigned_beside_a_url(void **state)
{
	static const char *const hashes[] = {
		"UNSIGNED-PAYLOAD", EMPTY, "nonsense", "",
		"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"
	};
	static const char *const headers[] = {
#define TAKEN(name, ...) "x-amz-" name,
#define REFUSED(name, ...) "x-amz-" name,
#include "dialect/header.def"
	};
	static const char *const frames[] = { "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
					      "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
					      "STREAMING-UNSIGNED-PAYLOAD-TRAILER" };
	struct auth_env env = example_env();
	struct identity id;
	struct rq *r;

	for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
		r = url_with("X-Amz-Content-Sha256", hashes[i]);
		rq_field(r, "x-amz-content-sha256", hashes[i]);
		assert_fault(ask_at(r, &env, DAY_S, &id), FAULT_NONE);
		assert_int_equal(id.payload, PAYLOAD_UNSIGNED);
		identity_put(&id);
		/* Of an upload it is no checksum, either. */
		r = rq_with(s3("PUT", "/bkt/obj?X-Amz-Signature=0&X-Amz-SignedHeaders=host%3Bx-amz-date"),
			    "content-length", "5", "x-amz-content-sha256", hashes[i], NULL);
		assert_fault(rq_parse(r), FAULT_NONE);
		assert_false(r->t.sum[SUM_SHA256].given);
		r = rq_with(s3("POST", "/bkt?delete&X-Amz-Signature=0&X-Amz-SignedHeaders=host"),
			    "content-length", "5", "content-md5",
			    "1B2M2Y8AsgTpgAmY7PhCfg==", "x-amz-content-sha256", hashes[i], NULL);
		assert_fault(rq_parse(r), FAULT_NONE);
		assert_false(r->t.have_body_sha256);
	}
	/* Where it is signed it counts. */
	r = rq_with(s3("PUT", "/bkt/obj?X-Amz-SignedHeaders=host%3Bx-amz-content-sha256"), "content-length",
		    "5", "x-amz-content-sha256", "nonsense", NULL);
	assert_fault(rq_parse(r), FAULT_BAD_ARGUMENT);
	/* Frames are not stored as an object. */
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
		assert_fault(ask(url_with("x-amz-content-sha256", frames[i])), FAULT_ACCESS_DENIED);
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		if (strcmp(headers[i], "x-amz-content-sha256") == 0)
			continue;
		r = rq_with(example_presigned(), headers[i], "1", NULL);
		assert_fault(ask(r), FAULT_ACCESS_DENIED);
	}
	assert_fault(ask(rq_with(example_presigned(), "x-amz-nobody-knows", "1", NULL)), FAULT_ACCESS_DENIED);
	assert_fault(ask(rq_with(example_presigned(), "x-gantry-copies", "1", NULL)), FAULT_ACCESS_DENIED);
	assert_fault(ask(rq_with(example_presigned(), "x-amz-rdma-token", DC81, NULL)), FAULT_ACCESS_DENIED);
	/* Beside Authorization it is signed, as ever. */
	r = for_op(example("GET", "/test.txt", EMPTY, AUTHORIZATION("host;x-amz-date", EMPTY)),
		   OP_GET_OBJECT);
	assert_fault(ask(r), FAULT_ACCESS_DENIED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preflights),        cmocka_unit_test(unsigned_beside_a_url),
		cmocka_unit_test(published),         cmocka_unit_test(regions_of_one_hash),
		cmocka_unit_test(every_byte),        cmocka_unit_test(unsigned_headers),
		cmocka_unit_test(payload),           cmocka_unit_test(forms),
		cmocka_unit_test(blanks_in_headers),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	auth_keys_put(example_keys());
	return r;
}
