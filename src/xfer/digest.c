/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of one PUT; see digest.h. */
#include "xfer/digest.h"

#include "base/check.h"

#include <errno.h>
#include <isa-l.h>
#include <openssl/evp.h>
#include <pthread.h>

/* Asked for once: a look-up by EVP_sha256() and the like costs each run
 * more than the hash of a small piece. */
static EVP_MD *md_of[DIGEST_SHA256 + 1];
static pthread_once_t md_once = PTHREAD_ONCE_INIT;

static void
md_fetch(void)
{
	md_of[DIGEST_MD5] = EVP_MD_fetch(NULL, "MD5", NULL);
	md_of[DIGEST_SHA1] = EVP_MD_fetch(NULL, "SHA1", NULL);
	md_of[DIGEST_SHA256] = EVP_MD_fetch(NULL, "SHA256", NULL);
}

int
digest_begin(struct digest *d, unsigned mask)
{
	d->mask = mask;
	d->crc32 = 0;
	d->crc32c = ~0u;
	for (int k = DIGEST_MD5; k <= DIGEST_SHA256; k++) {
		if (!(mask & DIGEST_BIT(k)))
			continue;
		pthread_once(&md_once, md_fetch);
		if (!d->md[k])
			d->md[k] = EVP_MD_CTX_new();
		if (!d->md[k] || !md_of[k] || EVP_DigestInit_ex2(d->md[k], md_of[k], NULL) != 1)
			return -ENOMEM;
	}
	return 0;
}

void
digest_update(struct digest *d, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (int k = DIGEST_MD5; k <= DIGEST_SHA256; k++) {
		if (d->mask & DIGEST_BIT(k))
			check(EVP_DigestUpdate(d->md[k], data, len) == 1);
	}
	/* crc32_iscsi() counts in int and takes a pointer to non-const:
	 * callers' pieces are far below 2 GiB. */
	check(len <= 1u << 30);
	if (d->mask & DIGEST_BIT(DIGEST_CRC32))
		d->crc32 = crc32_gzip_refl(d->crc32, p, len);
	if (d->mask & DIGEST_BIT(DIGEST_CRC32C))
		d->crc32c = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, d->crc32c);
}

size_t
digest_value(struct digest *d, enum digest_kind k, uint8_t out[32])
{
	unsigned n = 0;
	uint32_t crc;

	check(d->mask & DIGEST_BIT(k));
	if (k <= DIGEST_SHA256) {
		check(EVP_DigestFinal_ex(d->md[k], out, &n) == 1);
		return n;
	}
	crc = k == DIGEST_CRC32 ? d->crc32 : ~d->crc32c;
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(crc >> (24 - 8 * i));
	return 4;
}

void
digest_fini(struct digest *d)
{
	for (int k = 0; k <= DIGEST_SHA256; k++) {
		EVP_MD_CTX_free(d->md[k]);
		d->md[k] = NULL;
	}
}
