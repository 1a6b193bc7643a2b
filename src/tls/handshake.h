/* SPDX-License-Identifier: Apache-2.0 */
/* The part of tls.c for the daemons of libmicrohttpd: the callback by which GnuTLS requests a certificate during a handshake. */
#ifndef GANTRY_TLS_HANDSHAKE_H
#define GANTRY_TLS_HANDSHAKE_H

#include "tls/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* The certificate of the daemon that runs. GnuTLS passes no pointer of ours to the callback, so the owner of
 * the daemon sets this variable before each run. */
extern _Thread_local struct tls_cert *tls_current;

/* Passes the certificate and key of tls_current to GnuTLS (a gnutls_certificate_retrieve_function3). Returns
 * 0 or -1. */
int tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		 gnutls_pcert_st **ret_chain, unsigned *ret_chain_nr, gnutls_ocsp_data_st **ret_ocsp,
		 unsigned *ret_ocsp_nr, gnutls_privkey_t *ret_key, unsigned *ret_flags);

/* GnuTLS priorities: at least TLS 1.2, and only key exchanges with forward secrecy. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:%SERVER_PRECEDENCE"

#endif
