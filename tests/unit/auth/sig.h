/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of auth/ share: the published credentials, requests that are signed for them. */
#ifndef GANTRY_TESTS_AUTH_SIG_H
#define GANTRY_TESTS_AUTH_SIG_H

#include "tests/tools/sign/signer.h"
#include "tests/unit/dialect/build.h"

#include "auth/auth.h"

#define AK "AKIAIOSFODNN7EXAMPLE"
#define SK "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define DAY_S 1369353600ull /* 20130524T000000Z */
#define STAMP "20130524T000000Z"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static inline struct auth_keys *
keys_from(const char *yaml)
{
	struct auth_keys *keys = NULL;

	assert_int_equal(auth_keys_parse(yaml, strlen(yaml), "test", &keys, stderr), 0);
	return keys;
}

static inline struct auth_keys *
example_keys(void)
{
	static struct auth_keys *keys;

	if (!keys)
		keys = keys_from("- { access_key: " AK ", secret_key: \"" SK "\" }\n");
	return keys;
}

static inline struct signer
example_signer(void)
{
	return (struct signer){ AK, SK, "us-east-1", "s3", STAMP };
}

static inline struct auth_env
example_env(void)
{
	return (struct auth_env){ .keys = example_keys(), .region = "us-east-1", .skew_s = 900 };
}

/* Puts Authorization on a request built with rq_with(); kept until the next call. */
static inline struct rq *
sign(struct rq *r, const struct signer *s)
{
	static char value[4096], target[4096];
	struct sg_header h[SG_HEADERS_MAX];
	char list[2048] = "", scope[160], hex[65], *q;
	const struct field *hash = dialect_field(&r->in, "x-amz-content-sha256", NULL);

	snprintf(target, sizeof target, "%s", r->target);
	q = strchr(target, '?');
	if (q)
		*q++ = 0;
	for (int i = 0; i < r->in.field_nr; i++)
		h[i] = (struct sg_header){ r->fields[i].name, r->fields[i].value, false };
	sg_sign(s, r->in.method, target, q ? q : "", h, r->in.field_nr, hash ? hash->value : EMPTY, hex);
	sg_signed_headers(h, r->in.field_nr, list, sizeof list);
	sg_scope(s, scope);
	snprintf(value, sizeof value, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		 s->access_key, scope, list, hex);
	rq_field(r, "Authorization", value);
	return r;
}

#endif
