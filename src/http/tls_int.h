/* SPDX-License-Identifier: Apache-2.0 */
/* What http.c needs of tls.c: the callback that GnuTLS asks for a certificate during a handshake. */
#ifndef GANTRY_HTTP_TLS_INT_H
#define GANTRY_HTTP_TLS_INT_H

#include "http/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* Names whose handshakes run: the callback gets no pointer of ours, so http.c sets this around MHD_run(). */
extern _Thread_local struct tls_cert *tls_current;

/* Hands out the certificate of tls_current (gnutls_certificate_retrieve_function3). */
int tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		 gnutls_pcert_st **ret_chain, unsigned *ret_chain_nr, gnutls_ocsp_data_st **ret_ocsp,
		 unsigned *ret_ocsp_nr, gnutls_privkey_t *ret_key, unsigned *ret_flags);

/* Nothing older than TLS 1.2, and no key exchange without forward secrecy. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:%SERVER_PRECEDENCE"

#endif
