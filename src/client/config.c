/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libgantry learns which ports and which DC key to use: arguments first, then cuobj.json or cufile.json
 * (protocol.md item 117).  Called by gantry_open() only.
 */
#include "client/client_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)
#define RETRIES_MAX 100
#define RETRY_DELAY_MAX_MS 60000

static int
parse_key(const char *text, uint64_t *ret_key)
{
	char *end;

	/* strtoull() would take blanks and a sign. */
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret_key = strtoull(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

struct reader {
	struct config *c;
	char why[160];
};

/* ---- numbers that mark packets ---- */

#define MARKS 4
static const struct mark {
	const char *key;
	size_t offset;
	int min, max;
} marks[MARKS] = { { "rdma_traffic_class", offsetof(struct config, traffic_class), 0, 255 },
		   { "rdma_service_level", offsetof(struct config, service_level), 0, 15 },
		   { "rdma_path_mtu", offsetof(struct config, path_mtu), 256, 4096 },
		   { "rdma_pkey_index", offsetof(struct config, pkey_index), 0, 65535 } };

static int
set_mark(struct config *c, const struct mark *m, long value, char *err, size_t err_len)
{
	bool good = value >= m->min && value <= m->max;

	/* An MTU is a power of two. */
	if (m->offset == offsetof(struct config, path_mtu) && (value & (value - 1)))
		good = false;
	if (!good) {
		snprintf(err, err_len, "%s %ld: %d to %d%s", m->key, value, m->min, m->max,
			 m->offset == offsetof(struct config, path_mtu) ? ", a power of two" : "");
		return -EINVAL;
	}
	*(int *)(void *)((char *)c + m->offset) = (int)value;
	return 0;
}

static int
mark_from_text(struct reader *rd, const char *key, const char *text)
{
	for (int i = 0; i < MARKS; i++) {
		uint64_t value;

		if (strcmp(key, marks[i].key) != 0)
			continue;
		if (parse_key(text, &value) < 0 || value > INT32_MAX) {
			snprintf(rd->why, sizeof rd->why, "%s is not a number", key);
			return -ERANGE;
		}
		return set_mark(rd->c, &marks[i], (long)value, rd->why, sizeof rd->why) < 0 ? -ERANGE : 0;
	}
	return 0;
}

/* Options come over the file's; 0 leaves that. */
static int
marks_of_options(const struct gantry_options *o, struct config *c, char *err, size_t err_len)
{
	const int given[MARKS] = { o->traffic_class, o->service_level, o->path_mtu, o->pkey_index };

	for (int i = 0; i < MARKS; i++) {
		bool is_zero = i == 0 && given[i] == GANTRY_TRAFFIC_CLASS_0;

		if (given[i] && set_mark(c, &marks[i], is_zero ? 0 : given[i], err, err_len) < 0)
			return -EINVAL;
	}
	return 0;
}

/* ---- the transport ---- */

static int
transport_parse(const char *text, enum gantry_transport *ret)
{
	static const char *const names[] = { "auto", "dc", "rc" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret = (enum gantry_transport)i;
		return 0;
	}
	return -EINVAL;
}

/* The server of tokens that programs send themselves. */
static int
set_endpoint(struct config *c, const char *text)
{
	if ((strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) ||
	    strlen(text) >= sizeof c->rc_endpoint)
		return -EINVAL;
	snprintf(c->rc_endpoint, sizeof c->rc_endpoint, "%s", text);
	return 0;
}

/* Options come over the file's. */
static int
transport_of_options(const struct gantry_options *o, struct config *c, char *err, size_t err_len)
{
	if (o->transport < GANTRY_TRANSPORT_AUTO || o->transport > GANTRY_TRANSPORT_RC) {
		snprintf(err, err_len, "unknown transport %d", (int)o->transport);
		return -EINVAL;
	}
	if (o->transport != GANTRY_TRANSPORT_AUTO)
		c->transport = o->transport;
	if (o->dialect == GANTRY_SCALITY && c->transport == GANTRY_TRANSPORT_RC) {
		snprintf(err, err_len, "the scality dialect has no RC");
		return -EINVAL;
	}
	return 0;
}

/* ---- the file ---- */

/* A whole number; what is above most counts as most. */
static int
parse_count(const char *text, enum json_type type, int most, int *ret)
{
	uint64_t n;

	if (type != JSON_NUMBER || parse_key(text, &n) < 0)
		return -EINVAL;
	*ret = n > (uint64_t)most ? most : (int)n;
	return 0;
}

static int
on_value(void *cookie, const char *key, enum json_type type, const char *text, size_t len)
{
	struct reader *rd = cookie;
	struct config *c = rd->c;

	/* Other keys of these files (rdma_load_balancing_policy, allow_compat_mode, ...) mean nothing to us. */
	if (!strcmp(key, "rdma_dc_key")) {
		if ((type != JSON_STRING && type != JSON_NUMBER) || parse_key(text, &c->dc_key) < 0) {
			snprintf(rd->why, sizeof rd->why, "rdma_dc_key is not a number");
			return -ERANGE;
		}
		c->has_dc_key = true;
	}
	if (!strcmp(key, "rdma_dev_addr_list") && type == JSON_STRING && len) {
		if (c->device_nr == CONFIG_DEVICES_MAX || len >= sizeof c->device[0]) {
			snprintf(rd->why, sizeof rd->why,
				 "rdma_dev_addr_list has more than 16 entries, or a very long one");
			return -ERANGE;
		}
		memcpy(c->device[c->device_nr++], text, len + 1);
	}
	if (!strcmp(key, "rdma_peer_type") && type == JSON_STRING)
		c->no_dmabuf = strstr(text, "peer") != NULL;
	if (!strcmp(key, "rdma_transport") &&
	    (type != JSON_STRING || transport_parse(text, &c->transport) < 0)) {
		snprintf(rd->why, sizeof rd->why, "rdma_transport is not auto, dc or rc");
		return -ERANGE;
	}
	if (!strcmp(key, "rdma_rc_endpoint") && (type != JSON_STRING || set_endpoint(c, text) < 0)) {
		snprintf(rd->why, sizeof rd->why, "rdma_rc_endpoint is not http://HOST:PORT");
		return -ERANGE;
	}
	if (!strcmp(key, "rdma_multipath_enabled"))
		c->is_multipath = type == JSON_TRUE;
	if ((!strcmp(key, "rdma_io_retry_count") && parse_count(text, type, RETRIES_MAX, &c->retries) < 0) ||
	    (!strcmp(key, "rdma_io_retry_delay_ms") &&
	     parse_count(text, type, RETRY_DELAY_MAX_MS, &c->retry_delay_ms) < 0)) {
		snprintf(rd->why, sizeof rd->why, "%s is not a number from 0 on", key);
		return -ERANGE;
	}
	return type == JSON_STRING || type == JSON_NUMBER ? mark_from_text(rd, key, text) : 0;
}

int
config_parse(const char *text, size_t len, struct config *c, char *err, size_t err_len)
{
	struct reader rd = { .c = c };
	const char *why = NULL;
	int line = 0;
	int r = json_parse(text, len, on_value, &rd, &line, &why);

	if (r == 0)
		return 0;
	if (*rd.why)
		snprintf(err, err_len, "%s", rd.why);
	else
		snprintf(err, err_len, "line %d: %s", line, why);
	return -EINVAL;
}

/* 0, -ENOENT, or another -errno with a sentence. */
static int
load_file(const char *path, struct config *c, char *err, size_t err_len)
{
	char *text = malloc(FILE_MAX), why[160];
	size_t len = 0;
	int r = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (!text || fd < 0) {
		r = text ? -errno : -ENOMEM;
		snprintf(err, err_len, "%s: %s", path, strerror(-r));
		goto out;
	}
	for (;;) {
		ssize_t n = read(fd, text + len, FILE_MAX - len);

		if (n < 0) {
			r = -errno;
			snprintf(err, err_len, "%s: %s", path, strerror(errno));
			goto out;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	r = config_parse(text, len, c, why, sizeof why);
	if (r < 0)
		snprintf(err, err_len, "%s: %s", path, why);
	else
		snprintf(c->origin, sizeof c->origin, "%s", path);
out:
	if (fd >= 0)
		close(fd);
	free(text);
	return r;
}

/* A file that a variable names must be there; the default one need not. */
static int
load_default(struct config *c, char *err, size_t err_len)
{
	static const struct {
		const char *variable, *path;
	} place[] = { { "CUOBJ_ENV_PATH_JSON", "/etc/cuobj.json" },
		      { "CUFILE_ENV_PATH_JSON", "/etc/cufile.json" } };

	for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
		const char *named = getenv(place[i].variable);
		bool is_named = named && *named;
		int r = load_file(is_named ? named : place[i].path, c, err, err_len);

		if (is_named || r != -ENOENT)
			return r;
	}
	return 0;
}

static int
parse_devices(const char *text, struct config *c, char *err, size_t err_len)
{
	c->device_nr = 0;
	while (*text) {
		size_t n = strcspn(text, ", ");

		if (n >= sizeof c->device[0] || c->device_nr == CONFIG_DEVICES_MAX) {
			snprintf(err, err_len, "device list: more than %d entries, or a very long one",
				 CONFIG_DEVICES_MAX);
			return -EINVAL;
		}
		if (n) {
			memcpy(c->device[c->device_nr], text, n);
			c->device[c->device_nr++][n] = 0;
		}
		text += n;
		text += strspn(text, ", ");
	}
	if (c->device_nr == 1 && !strcmp(c->device[0], "auto"))
		c->device_nr = 0;
	return 0;
}

/* Does a variable of the environment say no? */
static bool
is_switched_off(const char *text)
{
	static const char *const no[] = { "0", "false", "no", "off" };

	for (size_t i = 0; text && i < sizeof no / sizeof *no; i++) {
		if (!strcasecmp(text, no[i]))
			return true;
	}
	return false;
}

int
config_load(const struct gantry_options *o, struct config *ret_c, char *err, size_t err_len)
{
	struct config c = {
		.dc_key = DEFAULT_DC_KEY, .traffic_class = -1, .retries = 3, .retry_delay_ms = 100
	};
	const char *endpoint;
	int r = 0;

	if (!o->config_file)
		r = load_default(&c, err, err_len);
	else if (*o->config_file)
		r = load_file(o->config_file, &c, err, err_len);
	if (r == 0 && o->device && *o->device)
		r = parse_devices(o->device, &c, err, err_len);
	if (r == 0 && o->dc_key && *o->dc_key) {
		r = parse_key(o->dc_key, &c.dc_key);
		if (r < 0)
			snprintf(err, err_len, "DC key \"%s\" is not a number", o->dc_key);
	}
	if (is_switched_off(getenv("CUFILE_DMABUF_ENABLE")))
		c.no_dmabuf = true;
	if (r == 0)
		r = marks_of_options(o, &c, err, err_len);
	if (r == 0)
		r = transport_of_options(o, &c, err, err_len);
	endpoint = getenv("GANTRY_RC_ENDPOINT");
	if (r == 0 && endpoint && *endpoint && set_endpoint(&c, endpoint) < 0) {
		snprintf(err, err_len, "GANTRY_RC_ENDPOINT is not http://HOST:PORT");
		r = -EINVAL;
	}
	if (r == 0)
		*ret_c = c;
	return r == -ENOENT ? -EINVAL : r;
}
