/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC-SHA-256, see sha256.h. */
/* The low-level calls are deprecated in favour of EVP, which allocates (see the header); they use the same
 * machine instructions. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "auth/sha256.h"

#include "base/check.h"

#include <openssl/crypto.h>
#include <string.h>

#define BLOCK 64

void
sha256_begin(struct sha256 *h)
{
	check(SHA256_Init(&h->ctx) == 1);
}

void
sha256_add(struct sha256 *h, const void *data, size_t len)
{
	if (len)
		check(SHA256_Update(&h->ctx, data, len) == 1);
}

void
sha256_end(struct sha256 *h, uint8_t out[32])
{
	check(SHA256_Final(out, &h->ctx) == 1);
}

void
sha256_of(const void *data, size_t len, uint8_t out[32])
{
	struct sha256 h;

	sha256_begin(&h);
	sha256_add(&h, data, len);
	sha256_end(&h, out);
}

void
hmac256_begin(struct hmac256 *m, const void *key, size_t len)
{
	uint8_t block[BLOCK] = { 0 }, pad[BLOCK];

	if (len > BLOCK)
		sha256_of(key, len, block);
	else if (len)
		memcpy(block, key, len);
	for (int i = 0; i < BLOCK; i++)
		pad[i] = block[i] ^ 0x36;
	sha256_begin(&m->inner);
	sha256_add(&m->inner, pad, BLOCK);
	for (int i = 0; i < BLOCK; i++)
		pad[i] = block[i] ^ 0x5c;
	sha256_begin(&m->outer);
	sha256_add(&m->outer, pad, BLOCK);
	OPENSSL_cleanse(block, sizeof block);
	OPENSSL_cleanse(pad, sizeof pad);
}

void
hmac256_add(struct hmac256 *m, const void *data, size_t len)
{
	sha256_add(&m->inner, data, len);
}

void
hmac256_end(struct hmac256 *m, uint8_t out[32])
{
	uint8_t hash[32];

	sha256_end(&m->inner, hash);
	sha256_add(&m->outer, hash, sizeof hash);
	sha256_end(&m->outer, out);
	OPENSSL_cleanse(m, sizeof *m);
}

void
hmac256_of(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[32])
{
	struct hmac256 m;

	hmac256_begin(&m, key, key_len);
	hmac256_add(&m, data, len);
	hmac256_end(&m, out);
}
