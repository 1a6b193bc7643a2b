/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 and HMAC-SHA-256, see sha256.h. */
/* The low-level calls are deprecated in favour of EVP, which allocates (see the header); they use the same
 * machine instructions. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "auth/sha256.h"

#include "base/check.h"

#include <string.h>

#define BLOCK 64 /* bytes that the hash takes at once */
_Static_assert(sizeof(SHA_LONG) == sizeof(uint32_t), "the state of libcrypto is eight words of 32 bits");

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

/* Hashes the block of a key, and returns the state after it. */
static void
key_state(const uint8_t block[BLOCK], uint8_t pad, uint32_t state[8])
{
	struct sha256 h;
	uint8_t padded[BLOCK];

	for (int i = 0; i < BLOCK; i++)
		padded[i] = block[i] ^ pad;
	sha256_begin(&h);
	sha256_add(&h, padded, BLOCK);
	memcpy(state, h.ctx.h, sizeof h.ctx.h);
	explicit_bzero(&h, sizeof h);
	explicit_bzero(padded, sizeof padded);
}

void
hmac256_key(struct hmac256_key *k, const void *key, size_t len)
{
	uint8_t block[BLOCK] = { 0 };

	if (len > BLOCK)
		sha256_of(key, len, block);
	else if (len)
		memcpy(block, key, len);
	key_state(block, 0x36, k->inner);
	key_state(block, 0x5c, k->outer);
	explicit_bzero(block, sizeof block);
}

/* Hashes data after the block of a key. */
static void
hash_from(const uint32_t state[8], const void *data, size_t len, uint8_t out[32])
{
	struct sha256 h = { { .Nl = 8 * BLOCK /* bits */, .md_len = SHA256_DIGEST_LENGTH } };

	memcpy(h.ctx.h, state, sizeof h.ctx.h);
	sha256_add(&h, data, len);
	sha256_end(&h, out);
	explicit_bzero(&h, sizeof h);
}

void
hmac256(const struct hmac256_key *k, const void *data, size_t len, uint8_t out[32])
{
	uint8_t hash[32];

	hash_from(k->inner, data, len, hash);
	hash_from(k->outer, hash, sizeof hash, out);
}

void
hmac256_of(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[32])
{
	struct hmac256_key k;

	hmac256_key(&k, key, key_len);
	hmac256(&k, data, len, out);
	explicit_bzero(&k, sizeof k);
}
