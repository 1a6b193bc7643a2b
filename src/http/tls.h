/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener's certificate and key, for libmicrohttpd's handshakes (by GnuTLS, on the core's thread).
 *
 * One struct tls_cert per listener with TLS, made by main, shared by the cores. A reload replaces its
 * contents: later handshakes use the new certificate, established connections are not affected. Any thread.
 */
#ifndef GANTRY_HTTP_TLS_H
#define GANTRY_HTTP_TLS_H

#include <stddef.h>

struct tls_cert;

/*
 * Reads certificate (PEM; the leaf first, then its chain) and private key (PEM, not encrypted; the file must
 * not be world-readable) and checks that they match. Returns 0, or -errno with a sentence that names the file
 * in err: -EINVAL no certificate or key, or not a pair; -EPERM the key can be read by others; else as
 * open(2).
 */
int tls_cert_load(const char *cert_path, const char *key_path, struct tls_cert **ret_cert, char *err,
		  size_t err_len);

/* Reads both files again (other paths are allowed). After an error the certificate is unchanged. */
int tls_cert_reload(struct tls_cert *c, const char *cert_path, const char *key_path, char *err,
		    size_t err_len);

/* Frees the certificate. No handshake may be in progress. NULL is allowed. */
void tls_cert_free(struct tls_cert *c);

/* Returns when the certificate begins to be valid, in seconds since 1970. */
long long tls_cert_begins_s(struct tls_cert *c);
/* Returns the time at which the certificate expires, in seconds since 1970. */
long long tls_cert_ends_s(struct tls_cert *c);

#endif
