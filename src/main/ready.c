/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the daemon says that it serves: a line with the addresses that it really has, for the log, for the
 * program that waits for --ready-file, and for systemd.
 */
#include "main/daemon.h"
#include "main/notify.h"
#include "main/options.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
daemon_listen_text(const struct conf_listen *l, int port, char *out, size_t cap)
{
	char host[ADDRESS_TEXT_BYTES];

	address_text((const struct sockaddr *)&l->sa, host);
	snprintf(out, cap, l->sa.ss_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host, port);
}

/* "ready s3=127.0.0.1:40123 scality=... admin=... admin_socket=..."; the caller frees it. */
static char *
ready_line(const struct daemon *d)
{
	struct cores *cores = atomic_load(&d->cores);
	const struct conf *conf = d->conf;
	char *line = NULL, text[64];
	size_t len;
	FILE *f = open_memstream(&line, &len);

	if (!f)
		return NULL;
	fputs("ready", f);
	for (int i = 0; i < conf->listen_nr; i++) {
		daemon_listen_text(&conf->listen[i], cores_listen_port(cores, i), text, sizeof text);
		fprintf(f, " %s=%s", conf->listen[i].dialect == DIALECT_S3 ? "s3" : "scality", text);
	}
	if (conf->admin.address) {
		struct conf_listen l = { .sa = conf->admin.sa };

		daemon_listen_text(&l, admin_port(d->admin), text, sizeof text);
		fprintf(f, " admin=%s", text);
	}
	if (conf->admin.socket)
		fprintf(f, " admin_socket=%s", conf->admin.socket);
	if (fclose(f) != 0) {
		free(line);
		return NULL;
	}
	return line;
}

/* Under another name first: a program that waits for the file finds it whole. */
static int
write_ready_file(const char *path, const char *line)
{
	char *tmp;
	FILE *f;
	int r = 0;

	if (asprintf(&tmp, "%s.tmp", path) < 0)
		return -ENOMEM;
	f = fopen(tmp, "we");
	if (!f) {
		r = -errno;
	} else {
		if (fprintf(f, "%s\n", line) < 0)
			r = -EIO;
		if (fclose(f) != 0)
			r = -errno;
		if (r == 0 && rename(tmp, path) < 0)
			r = -errno;
	}
	free(tmp);
	return r;
}

/* Returns true if another attempt, with the same configuration, may succeed. */
static bool
is_shortage(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOSPC || r == -EDQUOT || r == -EIO;
}

int
daemon_say_ready(struct daemon *d, const char *ready_file)
{
	char *line = ready_line(d);
	int r;

	if (!line) {
		log_error("out of memory");
		return EXIT_RUNTIME;
	}
	/* The lines of the start come before the file; a reader that does not read delays the file by a second. */
	log_flush(NS_PER_S);
	atomic_store(&d->phase, PHASE_SERVING);
	r = ready_file ? write_ready_file(ready_file, line) : 0;
	if (r < 0) {
		log_error("%s: %s", ready_file, strerror(-r));
		free(line);
		return is_shortage(r) ? EXIT_RUNTIME : EXIT_CONFIG;
	}
	log_event(LOG_EV_READY, LOG_NOTE, "%s", line);
	log_say("gantryd: %s\n", line);
	notify_send("READY=1\nSTATUS=Serving: %s", line + strlen("ready "));
	free(line);
	return 0;
}
