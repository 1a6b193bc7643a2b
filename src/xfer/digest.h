/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums over the bytes of one PUT, in order: MD5, CRC32, CRC32C, SHA-1, SHA-256 (the store computes
 * CRC64-NVME). Contexts are reused from request to request; the hashes are OpenSSL's, the CRCs ISA-L's. One
 * thread at a time uses a digest.
 */
#ifndef GANTRY_XFER_DIGEST_H
#define GANTRY_XFER_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum digest_kind { DIGEST_MD5, DIGEST_SHA1, DIGEST_SHA256, DIGEST_CRC32, DIGEST_CRC32C, DIGEST_NR };
#define DIGEST_BIT(k) (1u << (k))

struct digest {
	unsigned mask; /* bits (DIGEST_BIT()) of the checksums being computed */
	void *md[3];   /* contexts of OpenSSL (EVP_MD_CTX); each is made at its first use */
	uint32_t crc32, crc32c;
};

/* Starts the computation of the checksums in mask. Returns 0 or -ENOMEM. */
int digest_begin(struct digest *d, unsigned mask);
void digest_update(struct digest *d, const void *data, size_t len);
/* Writes the value of the checksum k to out in wire order (CRCs most significant byte first). Returns its
 * length in bytes. Called once per kind after each digest_begin(). */
size_t digest_value(struct digest *d, enum digest_kind k, uint8_t out[32]);
void digest_fini(struct digest *d);

#endif
