/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of TLS listeners, see tls.h.  The handshake's callback (tls_retrieve) is for http/ and admin/.
 *
 * A handshake may span several calls into GnuTLS, and a reload may come between them; so each one gets copies
 * that GnuTLS frees when it is over.  That costs some ten microseconds, where a handshake costs a
 * millisecond.
 */
#include "tls/handshake.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHAIN_MAX 8
#define FILE_MAX_BYTES (1u << 20)

struct pair {
	gnutls_x509_crt_t chain[CHAIN_MAX];
	unsigned chain_nr;
	gnutls_x509_privkey_t key;
};

struct tls_cert {
	pthread_mutex_t lock;
	struct pair pair;
};

static void
pair_fini(struct pair *p)
{
	for (unsigned i = 0; i < p->chain_nr; i++)
		gnutls_x509_crt_deinit(p->chain[i]);
	if (p->key)
		gnutls_x509_privkey_deinit(p->key);
	memset(p, 0, sizeof *p);
}

/* The whole of a small regular file; secret: nobody else may read it. */
static int
read_file(const char *path, bool secret, gnutls_datum_t *ret, char *err, size_t err_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	struct stat st;
	ssize_t n = 0;

	*ret = (gnutls_datum_t){ 0 };
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		snprintf(err, err_len, "%s: %s", path, strerror(-r));
	} else if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > FILE_MAX_BYTES) {
		r = -EINVAL;
		snprintf(err, err_len, "%s: not a file of 1 byte to 1 MiB", path);
	} else if (secret && (st.st_mode & (S_IRWXO | S_IWGRP))) {
		r = -EPERM;
		snprintf(err, err_len,
			 "%s: a private key that others can read (mode %04o); chmod 0600 or 0640", path,
			 st.st_mode & 07777);
	} else if (!(ret->data = malloc((size_t)st.st_size))) {
		r = -ENOMEM;
		snprintf(err, err_len, "%s: out of memory", path);
	} else {
		n = read(fd, ret->data, (size_t)st.st_size);
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			snprintf(err, err_len, "%s: %s", path, strerror(-r));
			free(ret->data);
			ret->data = NULL;
		}
		ret->size = n > 0 ? (unsigned)n : 0;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static int
read_chain(const char *path, struct pair *p, char *err, size_t err_len)
{
	gnutls_datum_t text;
	int r = read_file(path, false, &text, err, err_len);

	if (r < 0)
		return r;
	p->chain_nr = CHAIN_MAX;
	r = gnutls_x509_crt_list_import(p->chain, &p->chain_nr, &text, GNUTLS_X509_FMT_PEM,
					GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED |
						GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
	free(text.data);
	if (r > 0)
		return 0;
	p->chain_nr = 0;
	snprintf(err, err_len, "%s: no certificate chain in PEM, the server's own first: %s", path,
		 r < 0 ? gnutls_strerror(r) : "there is none");
	return -EINVAL;
}

static int
read_key(const char *path, struct pair *p, char *err, size_t err_len)
{
	gnutls_datum_t text;
	int r = read_file(path, true, &text, err, err_len);

	if (r < 0)
		return r;
	r = gnutls_x509_privkey_init(&p->key);
	if (r == 0)
		r = gnutls_x509_privkey_import2(p->key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
	gnutls_memset(text.data, 0, text.size);
	free(text.data);
	if (r == 0)
		return 0;
	snprintf(err, err_len, "%s: no private key in PEM: %s", path, gnutls_strerror(r));
	return -EINVAL;
}

static int
see_that_they_fit(const char *cert_path, const char *key_path, const struct pair *p, char *err,
		  size_t err_len)
{
	unsigned char a[64], b[64];
	size_t a_len = sizeof a, b_len = sizeof b;

	if (gnutls_x509_crt_get_key_id(p->chain[0], GNUTLS_KEYID_USE_SHA256, a, &a_len) == 0 &&
	    gnutls_x509_privkey_get_key_id(p->key, GNUTLS_KEYID_USE_SHA256, b, &b_len) == 0 &&
	    a_len == b_len && memcmp(a, b, a_len) == 0)
		return 0;
	snprintf(err, err_len, "%s is not the key of the certificate in %s", key_path, cert_path);
	return -EINVAL;
}

static int
pair_load(const char *cert_path, const char *key_path, struct pair *p, char *err, size_t err_len)
{
	int r;

	memset(p, 0, sizeof *p);
	r = read_chain(cert_path, p, err, err_len);
	if (r == 0)
		r = read_key(key_path, p, err, err_len);
	if (r == 0)
		r = see_that_they_fit(cert_path, key_path, p, err, err_len);
	if (r < 0)
		pair_fini(p);
	return r;
}

int
tls_cert_load(const char *cert_path, const char *key_path, struct tls_cert **ret_cert, char *err,
	      size_t err_len)
{
	struct tls_cert *c = calloc(1, sizeof *c);
	int r;

	if (!c)
		return -ENOMEM;
	r = pair_load(cert_path, key_path, &c->pair, err, err_len);
	if (r < 0) {
		free(c);
		return r;
	}
	pthread_mutex_init(&c->lock, NULL);
	*ret_cert = c;
	return 0;
}

int
tls_cert_reload(struct tls_cert *c, const char *cert_path, const char *key_path, char *err, size_t err_len)
{
	struct pair fresh, old;
	int r = pair_load(cert_path, key_path, &fresh, err, err_len);

	if (r < 0)
		return r;
	pthread_mutex_lock(&c->lock);
	old = c->pair;
	c->pair = fresh;
	pthread_mutex_unlock(&c->lock);
	pair_fini(&old);
	return 0;
}

void
tls_cert_free(struct tls_cert *c)
{
	if (!c)
		return;
	pair_fini(&c->pair);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

long long
tls_cert_begins_s(struct tls_cert *c)
{
	long long at;

	pthread_mutex_lock(&c->lock);
	at = gnutls_x509_crt_get_activation_time(c->pair.chain[0]);
	pthread_mutex_unlock(&c->lock);
	return at;
}

long long
tls_cert_ends_s(struct tls_cert *c)
{
	long long at;

	pthread_mutex_lock(&c->lock);
	at = gnutls_x509_crt_get_expiration_time(c->pair.chain[0]);
	pthread_mutex_unlock(&c->lock);
	return at;
}

/* ---- the handshake ---- */

static int
copy_key(const struct pair *p, gnutls_privkey_t *ret_key)
{
	gnutls_x509_privkey_t key = NULL;
	int r = gnutls_x509_privkey_init(&key);

	if (r < 0)
		return r;
	r = gnutls_x509_privkey_cpy(key, p->key);
	if (r == 0)
		r = gnutls_privkey_init(ret_key);
	if (r == 0) {
		r = gnutls_privkey_import_x509(*ret_key, key, GNUTLS_PRIVKEY_IMPORT_AUTO_RELEASE);
		if (r == 0)
			return 0;
		gnutls_privkey_deinit(*ret_key);
	}
	gnutls_x509_privkey_deinit(key);
	return r;
}

/* Copies of the chain and key, in GnuTLS's own memory. */
static int
copy_pair(const struct pair *p, gnutls_pcert_st **ret_chain, gnutls_privkey_t *ret_key)
{
	gnutls_pcert_st *chain = gnutls_calloc(p->chain_nr, sizeof *chain);
	unsigned n = 0;
	int r = chain ? 0 : GNUTLS_E_MEMORY_ERROR;

	while (r == 0 && n < p->chain_nr) {
		r = gnutls_pcert_import_x509(&chain[n], p->chain[n], 0);
		n += r == 0;
	}
	if (r == 0)
		r = copy_key(p, ret_key);
	if (r == 0) {
		*ret_chain = chain;
		return 0;
	}
	while (n > 0)
		gnutls_pcert_deinit(&chain[--n]);
	gnutls_free(chain);
	return r;
}

_Thread_local struct tls_cert *tls_current;

int
tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **ret_chain,
	     unsigned *ret_chain_nr, gnutls_ocsp_data_st **ret_ocsp, unsigned *ret_ocsp_nr,
	     gnutls_privkey_t *ret_key, unsigned *ret_flags)
{
	struct tls_cert *c = tls_current;
	int r;

	check(c);
	pthread_mutex_lock(&c->lock);
	r = copy_pair(&c->pair, ret_chain, ret_key);
	*ret_chain_nr = c->pair.chain_nr;
	pthread_mutex_unlock(&c->lock);
	*ret_ocsp = NULL;
	*ret_ocsp_nr = 0;
	*ret_flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return r;
}
