/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, RC: the daemon's connections of the RC transport, and the limits that refused some. */
#include "client/cmd/doctor/doctor.h"

#include "client/cmd/common/admin_client.h"

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

	if (admin_json(d->admin, "/status", &status, NULL, err, sizeof err) < 0)
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

void
doctor_rc(struct doctor *d, const json_t *status)
{
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
	admin_json(d->admin, "/config", &conf, NULL, err, sizeof err);
	say_connections(d, rc, conf);
	json_decref(conf);
}
