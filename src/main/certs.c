/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of listeners that use HTTPS: read by the main thread at the start and by reload.c, shown by the admin thread. */
#include "main/daemon.h"

#include "base/age_clock.h"
#include "base/clock.h"
#include "base/log.h"
#include "stats/stats.h"
#include "tls/tls.h"

#include <errno.h>

#define SOON_S (14 * 24 * 3600ll)

/* A listener and its files.  name: as messages about the configuration have it. */
struct place {
	char name[32];
	const char *address, *certificate, *key;
};

/* Describes the listener with that index of a certificate.  Returns false if it uses plain HTTP, or if there is none. */
static bool
place_of(const struct conf *c, int i, struct place *ret_p)
{
	*ret_p = (struct place){ .name = "admin" };
	if (i == CERT_OF_ADMIN) {
		ret_p->address = c->admin.address;
		ret_p->certificate = c->admin.tls_certificate;
		ret_p->key = c->admin.tls_key;
	} else if (i < c->listen_nr) {
		snprintf(ret_p->name, sizeof ret_p->name, "listen[%d]", i);
		ret_p->address = c->listen[i].address;
		ret_p->certificate = c->listen[i].tls_certificate;
		ret_p->key = c->listen[i].tls_key;
	}
	return ret_p->certificate != NULL;
}

/* Writes a sentence about a certificate that an operator has to renew, or that is not valid yet.  Returns false if there is nothing to do. */
static bool
has_to_act(const struct place *p, struct tls_cert *cert, char *out, size_t cap)
{
	long long now = (long long)(clock_wall_ns() / NS_PER_S), left = tls_cert_ends_s(cert) - now,
		  until = tls_cert_begins_s(cert) - now;
	int at = snprintf(out, cap, "listener https://%s: the certificate %s ", p->address, p->certificate);

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
say_end(const struct place *p, struct tls_cert *cert)
{
	char text[700], end[AGE_TEXT_BYTES];

	if (has_to_act(p, cert, text, sizeof text)) {
		log_event(LOG_EV_CERTIFICATE, LOG_WARN, "%s", text);
		return;
	}
	age_clock_text((uint64_t)tls_cert_ends_s(cert) * NS_PER_S, end);
	log_note("listener https://%s: the certificate %s is valid until %s", p->address, p->certificate,
		 end);
}

int
daemon_load_certs(const struct conf *conf, struct tls_cert *certs[DAEMON_CERTS])
{
	char err[512];
	struct place p;

	for (int i = 0; i < DAEMON_CERTS; i++) {
		int r;

		certs[i] = NULL;
		if (!place_of(conf, i, &p))
			continue;
		r = tls_cert_load(p.certificate, p.key, &certs[i], err, sizeof err);
		if (r < 0) {
			log_error("listener %s: %s", p.address, r == -ENOMEM ? "out of memory" : err);
			return r;
		}
		say_end(&p, certs[i]);
	}
	return 0;
}

int
daemon_check_certs(const struct conf *conf, struct tls_cert *const certs[DAEMON_CERTS], FILE *err)
{
	struct place p;
	int rc = 0;

	for (int i = 0; i < DAEMON_CERTS; i++) {
		struct tls_cert *cert = NULL;
		char why[512];
		int r;

		if (!certs[i] || !place_of(conf, i, &p))
			continue;
		r = tls_cert_load(p.certificate, p.key, &cert, why, sizeof why);
		if (r < 0) {
			fprintf(err, "%s: %s\n", p.name, r == -ENOMEM ? "out of memory" : why);
			rc = -EINVAL;
		}
		tls_cert_free(cert);
	}
	return rc;
}

int
daemon_reload_certs(const struct conf *conf, struct tls_cert *const certs[DAEMON_CERTS])
{
	char err[512];
	struct place p;
	int rc = 0;

	for (int i = 0; i < DAEMON_CERTS; i++) {
		int r;

		if (!certs[i] || !place_of(conf, i, &p))
			continue;
		r = tls_cert_reload(certs[i], p.certificate, p.key, err, sizeof err);
		if (r < 0) {
			log_event(LOG_EV_CERTIFICATE, LOG_ERROR, "listener %s keeps its certificate: %s",
				  p.address, err);
			rc = r;
			continue;
		}
		say_end(&p, certs[i]);
	}
	return rc;
}

void
daemon_free_certs(struct tls_cert *certs[DAEMON_CERTS])
{
	for (int i = 0; i < DAEMON_CERTS; i++)
		tls_cert_free(certs[i]);
}

/* ---- for the pages ---- */

void
certs_health(struct daemon *d, struct admin_reasons *r)
{
	const struct conf *c = daemon_conf(d);
	char text[700];
	struct place p;

	for (int i = 0; i < DAEMON_CERTS; i++) {
		if (d->certs[i] && place_of(c, i, &p) && has_to_act(&p, d->certs[i], text, sizeof text))
			admin_reason(r, REASON_CERTIFICATE_ENDS, p.address, "%s", text);
	}
	daemon_conf_put(c);
}

void
certs_metrics(struct daemon *d, struct stats_out *out)
{
	const struct conf *c = daemon_conf(d);
	struct place p;

	for (int i = 0; i < DAEMON_CERTS; i++) {
		long long end = d->certs[i] ? tls_cert_ends_s(d->certs[i]) : 0;

		if (end > 0 && place_of(c, i, &p))
			stats_emit(out, M_TLS_EXPIRY, (uint64_t)end, p.name, p.certificate, NULL);
	}
	daemon_conf_put(c);
}

void
certs_show(struct daemon *d, int i, FILE *out)
{
	const struct conf *c = daemon_conf(d);
	struct tls_cert *cert = d->certs[i];
	struct place p;

	if (cert && place_of(c, i, &p)) {
		fputs(",\"https\":true,\"certificate\":{\"file\":", out);
		json_string(out, p.certificate);
		fprintf(out, ",\"begins_unix_seconds\":%lld,\"expires_unix_seconds\":%lld}",
			tls_cert_begins_s(cert), tls_cert_ends_s(cert));
	} else {
		fputs(",\"https\":false,\"certificate\":null", out);
	}
	daemon_conf_put(c);
}
