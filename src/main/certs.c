/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of listeners that speak HTTPS: read at start, read anew on a reload.  Main thread. */
#include "main/daemon.h"

#include "base/log.h"
#include "http/tls.h"

#include <errno.h>
#include <time.h>

#define SOON_S (14 * 24 * 3600ll)

static void
say_end(const struct conf_listen *l, struct tls_cert *cert)
{
	long long now = (long long)time(NULL), left = tls_cert_ends_s(cert) - now;
	long long until = tls_cert_begins_s(cert) - now;

	if (until > 0)
		log_event(LOG_EV_CERTIFICATE, LOG_WARN,
			  "listener %s: the certificate %s is not valid yet, for another %lld min: is the "
			  "clock right?",
			  l->address, l->tls_certificate, (until + 59) / 60);
	else if (left < 0)
		log_event(LOG_EV_CERTIFICATE, LOG_WARN, "listener %s: the certificate %s has expired",
			  l->address, l->tls_certificate);
	else if (left < SOON_S)
		log_event(LOG_EV_CERTIFICATE, LOG_WARN,
			  "listener %s: the certificate %s expires in %lld days", l->address,
			  l->tls_certificate, left / (24 * 3600));
}

int
daemon_load_certs(const struct conf *conf, struct tls_cert *certs[CONF_LISTEN_MAX])
{
	char err[512];

	for (int i = 0; i < conf->listen_nr; i++) {
		const struct conf_listen *l = &conf->listen[i];
		int r;

		certs[i] = NULL;
		if (!l->tls_certificate)
			continue;
		r = tls_cert_load(l->tls_certificate, l->tls_key, &certs[i], err, sizeof err);
		if (r < 0) {
			log_error("listener %s: %s", l->address, r == -ENOMEM ? "out of memory" : err);
			return r;
		}
		say_end(l, certs[i]);
	}
	return 0;
}

int
daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[CONF_LISTEN_MAX])
{
	char err[512];
	int rc = 0;

	for (int i = 0; i < conf->listen_nr; i++) {
		const struct conf_listen *l = &conf->listen[i];
		int r;

		if (!certs[i] || !l->tls_certificate)
			continue;
		r = tls_cert_reload(certs[i], l->tls_certificate, l->tls_key, err, sizeof err);
		if (r < 0) {
			log_event(LOG_EV_CERTIFICATE, LOG_ERROR, "listener %s keeps its certificate: %s",
				  l->address, err);
			rc = r;
			continue;
		}
		say_end(l, certs[i]);
	}
	return rc;
}

void
daemon_free_certs(struct tls_cert *certs[CONF_LISTEN_MAX])
{
	for (int i = 0; i < CONF_LISTEN_MAX; i++)
		tls_cert_free(certs[i]);
}
