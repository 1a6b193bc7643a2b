/* SPDX-License-Identifier: Apache-2.0 */
/* A context from opening to closing. */
#include "client/client_int.h"

#include "base/clock.h"
#include "client/rc.h"
#include "client/stage.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_LIFE_MS 5000u

static _Thread_local char open_error[512];

const char *
gantry_version(void)
{
	return GANTRY_VERSION;
}

const char *
gantry_open_error(void)
{
	return open_error;
}

/* A caller built against a smaller struct knows less: the rest stays zero. */
static struct gantry_options
copy_options(const struct gantry_options *o)
{
	struct gantry_options c = { 0 };

	if (o)
		memcpy(&c, o, o->size && o->size < sizeof c ? o->size : sizeof c);
	return c;
}

static int
open_ports(struct gantry *g, const struct gantry_options *o)
{
	struct config c;
	bool is_chosen;
	int r = config_load(o, &c, open_error, sizeof open_error);

	if (r < 0)
		return r;
	is_chosen = c.transport != GANTRY_TRANSPORT_AUTO;
	/* The Scality dialect has no form for RC, and programs' tokens need to know their server. */
	if (o->dialect == GANTRY_SCALITY || ((o->flags & OPEN_FOR_TOKENS) && !*c.rc_endpoint && !is_chosen))
		c.transport = GANTRY_TRANSPORT_DC;
	g->no_dmabuf = c.no_dmabuf;
	g->retries = c.is_multipath ? c.retries : 0;
	g->retry_delay_ms = c.retry_delay_ms;
	if (o->flags & GANTRY_NO_RDMA) {
		snprintf(g->why_no_rdma, sizeof g->why_no_rdma, "RDMA is switched off");
		return 0;
	}
	r = ports_open(&c, g->port, &g->port_nr, g->why_no_rdma, sizeof g->why_no_rdma);
	if (r < 0)
		snprintf(open_error, sizeof open_error, "%s%s%s", g->why_no_rdma,
			 *c.origin ? ", named in " : "", c.origin);
	if (r == 0 && !g->port_nr && is_chosen) {
		snprintf(open_error, sizeof open_error, "transport %s: %s",
			 c.transport == GANTRY_TRANSPORT_DC ? "dc" : "rc", g->why_no_rdma);
		r = -ENODEV;
	}
	if (g->port_nr)
		*g->why_no_rdma = 0;
	g->transport = c.transport;
	if (r == 0 && g->port_nr && c.transport != GANTRY_TRANSPORT_DC)
		r = rc_open(g);
	if (r == 0 && g->rc && *c.rc_endpoint) {
		g->rc_endpoint = strdup(c.rc_endpoint);
		r = g->rc_endpoint ? 0 : -ENOMEM;
	}
	return r;
}

/* The strings that signing takes, copied: 0, -EINVAL, -ENOMEM. */
static int
copy_keys(struct gantry *g, const struct gantry_options *o)
{
	const char *region = o->region && *o->region ? o->region : "us-east-1";
	bool has_key = o->access_key && *o->access_key, has_secret = o->secret_key && *o->secret_key;

	if (has_key != has_secret || (has_key && o->dialect != GANTRY_S3)) {
		snprintf(open_error, sizeof open_error,
			 has_key != has_secret ? "an access key and its secret go together"
					       : "the scality dialect has no signatures");
		return -EINVAL;
	}
	if (!has_key)
		return 0;
	/* The end of the line that a file had them in, most often. */
	if (!fits_header(o->access_key) || !fits_header(o->secret_key) || !fits_header(o->session_token) ||
	    !fits_header(region)) {
		snprintf(open_error, sizeof open_error,
			 "an access key, secret, session token or region has a control character");
		return -EINVAL;
	}
	g->access_key = strdup(o->access_key);
	g->secret_key = strdup(o->secret_key);
	if (o->session_token && *o->session_token)
		g->session_token = strdup(o->session_token);
	g->region = strdup(region);
	return g->access_key && g->secret_key && g->region &&
			       (g->session_token || !o->session_token || !*o->session_token)
		       ? 0
		       : -ENOMEM;
}

/* Copies the path of the certificates: 0, -EINVAL, -ENOMEM. */
static int
copy_ca(struct gantry *g, const struct gantry_options *o)
{
	bool is_ours = o->ca_file && *o->ca_file;
	const char *path = is_ours ? o->ca_file : getenv("AWS_CA_BUNDLE");
	FILE *f;

	if (!path || !*path)
		return 0;
	f = fopen(path, "re");
	if (!f || fgetc(f) == EOF) {
		snprintf(open_error, sizeof open_error, "%s: %s: %s",
			 is_ours ? "certificates" : "AWS_CA_BUNDLE", path,
			 !f || ferror(f) ? strerror(errno) : "the file is empty");
		if (f)
			fclose(f);
		return -EINVAL;
	}
	fclose(f);
	g->ca_file = strdup(path);
	return g->ca_file ? 0 : -ENOMEM;
}

static int
open_stage(struct gantry *g, const struct gantry_options *o)
{
	int e = o->stage == 1 ? stage_open(g, o->stage_bytes) : -EINVAL;

	if (e == -EINVAL)
		snprintf(open_error, sizeof open_error,
			 o->stage == 1 ? "the stage has 256 KiB to 4 GiB - 1" : "stage is 0 or 1");
	return e;
}

static void
wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void
context_free(struct gantry *g)
{
	events_stop(g);
	rc_close(g);
	targets_close(g);
	regions_close(g);
	stage_close(g);
	for (int i = 0; i < g->port_nr; i++)
		port_close(&g->port[i]);
	handles_close(g);
	free(g->access_key);
	free(g->region);
	free(g->rc_endpoint);
	free(g->ca_file);
	wipe(g->secret_key);
	wipe(g->session_token);
	pthread_mutex_destroy(&g->lock);
	stripes_destroy(g);
	pthread_rwlock_destroy(&g->log_lock);
	free(g);
}

void
gantry_close(struct gantry *g)
{
	/* What a child inherits is its parent's. */
	if (g && is_mine(g) && shared_give(g))
		context_free(g);
}

int
gantry_open(const struct gantry_options *options, struct gantry **ret_g)
{
	struct gantry_options o = copy_options(options);
	struct gantry *g;
	int r;

	*open_error = 0;
	if (o.dialect != GANTRY_S3 && o.dialect != GANTRY_SCALITY) {
		snprintf(open_error, sizeof open_error, "unknown dialect %d", (int)o.dialect);
		return -EINVAL;
	}
	g = stripe_alloc(sizeof *g);
	if (!g)
		return -ENOMEM;
	pthread_mutex_init(&g->lock, NULL);
	r = targets_init(g);
	if (r < 0) {
		pthread_mutex_destroy(&g->lock);
		free(g);
		return r;
	}
	list_init(&g->regions);
	stripes_init(g);
	pthread_rwlock_init(&g->log_lock, NULL);
	g->wake_fd = -1;
	g->log_most = GANTRY_LOG_PUT;
	g->forks = forks;
	g->flags = o.flags;
	g->dialect = o.dialect;
	g->connect_timeout_ms = o.connect_timeout_ms ? o.connect_timeout_ms : 5000;
	g->timeout_ms = o.timeout_ms;
	if (!(o.flags & GANTRY_TARGET_PER_CALL))
		g->target_life_ns = (o.target_life_ms ? o.target_life_ms : TARGET_LIFE_MS) * NS_PER_MS;
	g->copy = o.copy;
	g->copy_cookie = o.copy_cookie;
	g->max_callback_bytes = o.max_callback_bytes && o.max_callback_bytes < GANTRY_REGISTER_MAX
					? o.max_callback_bytes
					: GANTRY_REGISTER_MAX;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		snprintf(open_error, sizeof open_error, "libcurl does not start");
		r = -EIO;
	} else {
		r = copy_keys(g, &o);
		if (r == 0)
			r = copy_ca(g, &o);
		if (r == 0 && o.stage)
			r = open_stage(g, &o);
		if (r == 0)
			r = open_ports(g, &o);
		if (r == 0 && g->port_nr)
			r = events_start(g);
	}
	if (r < 0) {
		context_free(g);
		return r;
	}
	*ret_g = g;
	return 0;
}

int
gantry_is_connected(const struct gantry *g)
{
	for (int i = 0; is_mine(g) && i < g->port_nr; i++) {
		if (!g->port[i].is_down)
			return 1;
	}
	return 0;
}

const char *
gantry_rdma_reason(const struct gantry *g)
{
	if (!g->port_nr || gantry_is_connected(g))
		return g->why_no_rdma;
	return is_mine(g) ? "every port is down"
			  : "the context was opened before a fork(), by another process";
}

const char *
gantry_port(const struct gantry *g, int i)
{
	return i >= 0 && i < g->port_nr ? g->port[i].name : NULL;
}

const char *
gantry_port_transports(const struct gantry *g, int i)
{
	if (i < 0 || i >= g->port_nr)
		return NULL;
	return !g->port[i].has_dc ? "rc" : g->rc ? "dc, rc" : "dc";
}
