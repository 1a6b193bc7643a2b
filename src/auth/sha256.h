/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC-SHA-256 without an allocation, for signatures. Pure functions, which any thread may call.
 *
 * libcrypto's block function does the work. The EVP interface of libcrypto is not used: it allocates a
 * context for every hash and looks the algorithm up each time, which costs more than hashing the short texts
 * of a signature.
 */
#ifndef GANTRY_AUTH_SHA256_H
#define GANTRY_AUTH_SHA256_H

#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>

struct sha256 {
	SHA256_CTX ctx;
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
void sha256_end(struct sha256 *h, uint8_t out[32]);
void sha256_of(const void *data, size_t len, uint8_t out[32]);

/* A key of HMAC-SHA-256 in the form that is used: the states of the two hashes after the block of the key. A MAC by a key
 * in this form hashes two blocks less. The states are as secret as the key. */
struct hmac256_key {
	uint32_t inner[8], outer[8];
};

void hmac256_key(struct hmac256_key *k, const void *key, size_t len);
/* Computes the MAC of data. */
void hmac256(const struct hmac256_key *k, const void *data, size_t len, uint8_t out[32]);
/* Computes the MAC of data by a key that is used once. */
void hmac256_of(const void *key, size_t key_len, const void *data, size_t len, uint8_t out[32]);

#endif
