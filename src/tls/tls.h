/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listener's certificate and key, for libmicrohttpd's handshakes (by GnuTLS, on the thread of the core or of
 * the admin listener).
 *
 * Each listener with TLS has a struct tls_cert, which main makes, and which all cores share. A reload replaces its
 * contents: later handshakes use the new certificate, and established connections are not affected. Any thread may
 * call these functions.
 */
#ifndef GANTRY_TLS_TLS_H
#define GANTRY_TLS_TLS_H

#include <stddef.h>

struct tls_cert;

/*
 * Reads a certificate (PEM; the leaf first, then its chain) and its private key (PEM, not encrypted; the file
 * must not be world-readable), and checks that they match. Returns 0; or, after writing a sentence that names
 * the file to err, -EINVAL: no certificate or key, or they do not match; -EPERM: the key file is
 * world-readable; or the -errno of reading a file.
 */
int tls_cert_load(const char *cert_path, const char *key_path, struct tls_cert **ret_cert, char *err,
		  size_t err_len);

/* Reads certificate and key again, from the same or other paths. Returns the results of tls_cert_load();
 * after an error the certificate is unchanged. */
int tls_cert_reload(struct tls_cert *c, const char *cert_path, const char *key_path, char *err,
		    size_t err_len);

/* Frees the certificate. No handshake may be in progress. NULL is allowed. */
void tls_cert_free(struct tls_cert *c);

/* Returns the time from which the certificate is valid, in seconds since 1970. */
long long tls_cert_begins_s(struct tls_cert *c);
/* Returns the time at which the certificate expires, in seconds since 1970. */
long long tls_cert_ends_s(struct tls_cert *c);

#endif
