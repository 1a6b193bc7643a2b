/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the id of a secret, see keys.h. Pure functions. */
#include "auth/auth_int.h"

#include "base/hex.h"

#include <openssl/crypto.h>

/* A change of the tag changes every id. The NUL at its end, and that of the access key, end these texts. */
#define TAG "gantry secret id 1"

void
secret_id(const char *access_key, const char *secret, char out[AUTH_SECRET_ID_LEN + 1])
{
	struct sha256 h;
	uint8_t hash[32];

	sha256_begin(&h);
	sha256_add(&h, TAG, sizeof TAG);
	sha256_add(&h, access_key, strlen(access_key) + 1);
	sha256_add(&h, secret, strlen(secret));
	sha256_end(&h, hash);
	hex_write(out, hash, AUTH_SECRET_ID_LEN / 2);
	out[AUTH_SECRET_ID_LEN] = 0;
	OPENSSL_cleanse(hash, sizeof hash);
}

const char *
identity_secret_id(const struct identity *id)
{
	return id->entry ? id->entry->id : NULL;
}
