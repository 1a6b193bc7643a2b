/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, RC: the daemon's connections of the RC transport, the limits that refused some, and a connection of
 * this machine's. */
#include "client/cmd/doctor/doctor.h"

#include "client/cmd/common/admin_client.h"
#include "client/gantry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of connections that `gantry -j 16` makes. */
#define USUAL_CONNECTIONS 16

void
doctor_ask_rc(struct doctor *d)
{
	json_t *status;
	char err[512];

	if (doctor_ask(d, "/status", &status, NULL, err, sizeof err) < 0)
		return;
	d->rc = json_is_object(json_object_get(json_object_get(status, "rdma"), "rc")) ? RC_ON : RC_OFF;
	json_decref(status);
}

/* Returns the value of a key in the daemon's configuration; 0: unknown. */
static double
limit_of(const json_t *conf, const char *key)
{
	const char *text = json_string_value(json_object_get(json_object_get(conf, key), "value"));

	return text ? strtod(text, NULL) : 0;
}

/* Says for a limit that refused connects which setting raises it. */
static void
say_refused(struct doctor *d, const json_t *rc, const json_t *conf, const char *limit, const char *about)
{
	double nr = json_at(json_object_get(rc, "refused"), limit);
	char path[64];

	if (nr <= 0)
		return;
	snprintf(path, sizeof path, "rdma.rc.%s", limit);
	if (strcmp(limit, "queue") == 0)
		doctor_say(d, FOUND_WARN, "rc", "%.0f connects refused since the start: %s", nr, about);
	else
		doctor_say(d, FOUND_WARN, "rc",
			   "%.0f connects refused since the start: %s (%s is %.0f; raise it if these clients "
			   "are yours)",
			   nr, about, path, limit_of(conf, path));
}

static void
say_connections(struct doctor *d, const json_t *rc, const json_t *conf)
{
	double per_peer = limit_of(conf, "rdma.rc.per_peer"), all = limit_of(conf, "rdma.rc.connections");

	doctor_say(d, FOUND_OK, "rc",
		   "rdma.rc.shim is on: %.0f connections made, at most %.0f at a time, %.0f of a client",
		   json_at(rc, "made"), all, per_peer);
	if (all > 0 && (per_peer < USUAL_CONNECTIONS || all < USUAL_CONNECTIONS))
		doctor_say(d, FOUND_WARN, "rc",
			   "gantry -j %d uses %d connections, and rdma.rc.%s is %.0f: the other transfers go "
			   "over "
			   "HTTP",
			   USUAL_CONNECTIONS, USUAL_CONNECTIONS,
			   per_peer < USUAL_CONNECTIONS ? "per_peer" : "connections",
			   per_peer < USUAL_CONNECTIONS ? per_peer : all);
	say_refused(d, rc, conf, "connections", "as many clients were connected as may be");
	say_refused(d, rc, conf, "per_peer", "a client had as many as it may have");
	say_refused(d, rc, conf, "connect_rate", "a client connected too often in a second");
	say_refused(d, rc, conf, "queue",
		    "too many waited; does the kernel look for clients that are absent (ip neigh)?");
	if (json_at(rc, "failed") > 0)
		doctor_say(d, FOUND_WARN, "rc",
			   "%.0f connects failed since the start: no route to the client's address, or the "
			   "device made no queue pair; journalctl -u gantryd has the error",
			   json_at(rc, "failed"));
	if (json_at(rc, "busy") > 0)
		doctor_say(d, FOUND_WARN, "rc",
			   "%.0f requests named a connection that another request had: a client needs a "
			   "connection for each of its concurrent requests",
			   json_at(rc, "busy"));
}

/* ---- a connection ---- */

/* Is the admin listener on this machine? */
static bool
is_here(const char *admin)
{
	return *admin == '/' || *admin == '.' || strstr(admin, "127.0.0.1") || strstr(admin, "[::1]") ||
	       strstr(admin, "localhost");
}

/* Makes the URL of the daemon's first S3 listener without TLS, at the host of the admin listener if its own address is a
 * wildcard. Returns false if there is none. */
static bool
url_of(const struct doctor *d, const json_t *status, const json_t *conf, char *url, size_t cap)
{
	const json_t *all = json_object_get(status, "listeners");

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *l = json_array_get(all, i);
		const char *at = json_text_at(l, "address", ""), *port = strrchr(at, ':'), *host = d->admin;
		char key[48];

		snprintf(key, sizeof key, "listen[%zu].tls_certificate", i);
		if (!port || strcmp(json_text_at(l, "dialect", ""), "s3") != 0 ||
		    strcmp(json_text_at(json_object_get(conf, key), "value", "none"), "none") != 0)
			continue;
		if (strncmp(at, "0.0.0.0:", 8) != 0 && strncmp(at, "[::]:", 5) != 0)
			return snprintf(url, cap, "http://%s", at) < (int)cap;
		host = strstr(host, "://") ? strstr(host, "://") + 3 : host;
		if (is_here(d->admin))
			return snprintf(url, cap, "http://127.0.0.1%s", port) < (int)cap;
		return snprintf(url, cap, "http://%.*s%s", (int)(strcspn(host, ":/")), host, port) < (int)cap;
	}
	return false;
}

/* Says what became of a connect. reason: "": the server has the connection. */
static void
say_connect(struct doctor *d, const char *url, const char *reason)
{
	if (!*reason)
		doctor_say(d, FOUND_OK, "rc", "a queue pair of this machine connects to %s, and disconnects",
			   url);
	else if (strstr(reason, "not-allowed") && is_here(d->admin))
		doctor_say(d, FOUND_NOTE, "rc",
			   "no connection to %s was tried: the daemon does not allow its own addresses "
			   "(rdma.allow_special); --admin http://SERVER:9001 on a client tries one",
			   url);
	else if (strstr(reason, "not-allowed"))
		doctor_say(d, FOUND_STOP, "rc",
			   "a queue pair of this machine does not connect to %s: its address is not in "
			   "rdma.allow of the server (gantry doctor ADDRESS says which networks are)",
			   url);
	else
		doctor_say(d, FOUND_WARN, "rc", "a queue pair of this machine does not connect to %s: %s",
			   url, reason);
}

/* Connects to the daemon as a client does: a GET of an object that there is not, over RC. */
static void
try_connect(struct doctor *d, const char *url)
{
	struct gantry_options o = { .size = sizeof o, .transport = GANTRY_TRANSPORT_RC };
	struct gantry_request req = { .size = sizeof req, .timeout_ms = 10000 };
	struct gantry_result res = { .size = sizeof res };
	char object[160], memory[64];
	struct gantry *g;

	snprintf(object, sizeof object, "%s/gantry-doctor/nothing", url);
	/* A machine without ports has been told. */
	if (gantry_open(&o, &g) < 0)
		return;
	if (gantry_is_connected(g)) {
		gantry_get(g, object, memory, sizeof memory, 0, &req, &res);
		say_connect(d, url, res.status || *res.reason ? res.reason : res.message);
	}
	gantry_close(g);
}

void
doctor_rc(struct doctor *d, const json_t *status)
{
	char url[128];
	const json_t *rc = json_object_get(json_object_get(status, "rdma"), "rc");
	json_t *conf = NULL;
	char err[512];

	if (json_is_null(rc))
		doctor_say(
			d, FOUND_NOTE, "rc",
			"rdma.rc.shim is off: clients whose adapters have no DC use HTTP (rdma.rc.shim: on "
			"serves them, too)");
	if (!json_is_object(rc))
		return;
	doctor_ask(d, "/config", &conf, NULL, err, sizeof err);
	say_connections(d, rc, conf);
	if (url_of(d, status, conf, url, sizeof url))
		try_connect(d, url);
	json_decref(conf);
}
