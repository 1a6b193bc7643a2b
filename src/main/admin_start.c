/* SPDX-License-Identifier: Apache-2.0 */
/* The start of the admin thread. */
#include "main/daemon.h"
#include "main/options.h"

#include "admin/admin.h"
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Reads the bearer token; what is wrong with it is logged. */
static int
read_token(const struct conf *conf, char token[ADMIN_TOKEN_MAX + 2])
{
	char *why = NULL;
	size_t len;
	FILE *err = open_memstream(&why, &len);
	int r = err ? daemon_read_token(conf, token, err) : -ENOMEM;

	if (err && fclose(err) != 0)
		r = -ENOMEM;
	if (r == -ENOMEM)
		log_event(LOG_EV_START_FAILED, LOG_ERROR, "admin: %s", strerror(-r));
	else if (r < 0)
		log_event(LOG_EV_START_FAILED, LOG_ERROR, "%.*s", (int)strcspn(why, "\n"), why);
	free(why);
	return r;
}

/* Has mutes of health survive a restart, where there is a place for them. */
static void
keep_mutes(struct daemon *d)
{
	char path[PATH_MAX];
	int r = daemon_state_path(d->conf, d->source, "mutes", path, sizeof path);

	if (r == 0)
		r = admin_keep_mutes(d->admin, path);
	if (r < 0 && r != -ENOENT)
		log_warn("mutes of health end with this process: %s", strerror(-r));
}

static void
warn_about_token(const struct conf *conf)
{
	if (conf->admin.token_file && conf->admin.address && !conf->admin.tls_certificate &&
	    !conf_is_loopback(&conf->admin.sa))
		log_warn("admin.address %s: the token of admin.token_file is sent in clear text, because "
			 "there is "
			 "no admin.tls_certificate",
			 conf->admin.address);
}

int
daemon_start_admin(struct daemon *d)
{
	const struct conf *conf = d->conf;
	struct admin_params params = { .address = conf->admin.address,
				       .sa = &conf->admin.sa,
				       .sa_len = conf->admin.sa_len,
				       .cert = d->certs[CERT_OF_ADMIN],
				       .socket = conf->admin.socket,
				       .s3 = &conf->s3 };
	char err[256], token[ADMIN_TOKEN_MAX + 2];
	struct admin_env env;
	int r;

	if (!params.address && !params.socket) {
		log_warn("neither admin.address nor admin.socket is set: no health, no metrics");
		return 0;
	}
	r = read_token(conf, token);
	if (r < 0)
		return r == -ENOMEM ? EXIT_RUNTIME : EXIT_CONFIG;
	params.token = token;
	warn_about_token(conf);
	pages_env(d, &env);
	r = admin_start(&params, &env, &d->admin, err, sizeof err);
	if (r == 0) {
		keep_mutes(d);
		atomic_store(&d->admin_listens, true);
		return 0;
	}
	log_event(LOG_EV_START_FAILED, LOG_ERROR, "%s", err);
	return r == -ENOMEM || r == -EMFILE || r == -EAGAIN ? EXIT_RUNTIME : EXIT_MISSING;
}
