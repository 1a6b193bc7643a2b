/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of listeners that use HTTPS: read by the main thread at the start and by reload.c, shown by the admin thread. */
#include "main/daemon.h"

#include "base/age_clock.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/tls.h"
#include "stats/stats.h"

#include <errno.h>

#define SOON_S (14 * 24 * 3600ll)

/* Writes a sentence about a certificate that an operator has to renew, or that is not valid yet.  Returns false if there is nothing to do. */
static bool
has_to_act(const struct conf_listen *l, struct tls_cert *cert, char *out, size_t cap)
{
	long long now = (long long)(clock_wall_ns() / NS_PER_S), left = tls_cert_ends_s(cert) - now,
		  until = tls_cert_begins_s(cert) - now;
	int at = snprintf(out, cap, "listener https://%s: the certificate %s ", l->address,
			  l->tls_certificate);

	if (at < 0 || (size_t)at >= cap)
		at = (int)cap - 1;
	out += at;
	cap -= (size_t)at;
	if (until > 0)
		snprintf(out, cap, "is not valid yet, for another %lld min: is the clock right?",
			 (until + 59) / 60);
	else if (left < 0)
		snprintf(out, cap, "has expired");
	else
		snprintf(out, cap, "expires in %lld days", left / (24 * 3600));
	return until > 0 || left < SOON_S;
}

static void
say_end(const struct conf_listen *l, struct tls_cert *cert)
{
	char text[700], end[AGE_TEXT_BYTES];

	if (has_to_act(l, cert, text, sizeof text)) {
		log_event(LOG_EV_CERTIFICATE, LOG_WARN, "%s", text);
		return;
	}
	age_clock_text((uint64_t)tls_cert_ends_s(cert) * NS_PER_S, end);
	log_note("listener https://%s: the certificate %s is valid until %s", l->address, l->tls_certificate,
		 end);
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

/* ---- for the pages ---- */

void
certs_health(struct daemon *d, struct admin_reasons *r)
{
	const struct conf *c = daemon_conf(d);
	char text[700];

	for (int i = 0; i < c->listen_nr; i++) {
		if (d->certs[i] && has_to_act(&c->listen[i], d->certs[i], text, sizeof text))
			admin_reason(r, REASON_CERTIFICATE_ENDS, c->listen[i].address, "%s", text);
	}
	daemon_conf_put(c);
}

void
certs_metrics(struct daemon *d, struct stats_out *out)
{
	const struct conf *c = daemon_conf(d);
	char name[32];

	for (int i = 0; i < c->listen_nr; i++) {
		long long end = d->certs[i] ? tls_cert_ends_s(d->certs[i]) : 0;

		snprintf(name, sizeof name, "listen[%d]", i);
		if (end > 0)
			stats_emit(out, M_TLS_EXPIRY, (uint64_t)end, name, c->listen[i].tls_certificate,
				   NULL);
	}
	daemon_conf_put(c);
}

void
certs_show(struct daemon *d, int listener, FILE *out)
{
	const struct conf *c = daemon_conf(d);
	struct tls_cert *cert = d->certs[listener];

	fprintf(out, ",\"https\":%s,\"certificate\":", cert ? "true" : "false");
	if (cert) {
		fputs("{\"file\":", out);
		json_string(out, c->listen[listener].tls_certificate);
		fprintf(out, ",\"begins_unix_seconds\":%lld,\"expires_unix_seconds\":%lld}",
			tls_cert_begins_s(cert), tls_cert_ends_s(cert));
	} else {
		fputs("null", out);
	}
	daemon_conf_put(c);
}
