/* SPDX-License-Identifier: Apache-2.0 */
/* What a program asks for, checked, and as rdma/ wants it. */
#include "server/server_int.h"

#include "base/clock.h"
#include "conf/conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_OF_TIMEOUT 4 /* a try may take as many times the timeout */
#define LATE_NS (100 * NS_PER_MS)
#define TARGETS_MIN 1024

static const struct gantry_server_params defaults = {
	.log_level = GANTRY_SERVER_LOG_INFO,
	.channels = 128,
	.cq_depth = 640,
	.dc_key = 0xffeeddcc,
	.timeout = 16,
	.retry_cnt = 7,
	.rnr_retry = 7,
	.hop_limit = 64,
	.traffic_class = -1,
	.max_sge = 10,
	.delay_mode = GANTRY_DELAY_BATCH,
	.delay_interval_ns = 5000,
	.qp_reset_on_failure = 1,
};

void
gantry_server_defaults(struct gantry_server_params *p, size_t size)
{
	struct gantry_server_params d = defaults;

	d.size = size;
	memset(p, 0, size);
	memcpy(p, &d, size < sizeof d ? size : sizeof d);
}

/* Takes what the program knows of the struct. */
static void
copy(struct gantry_server_params *to, const struct gantry_server_params *p)
{
	*to = defaults;
	if (p)
		memcpy(to, p, p->size < sizeof *to ? p->size : sizeof *to);
	to->size = sizeof *to;
}

static int
check_ranges(const struct gantry_server_params *p, char *err, size_t err_len)
{
	const struct {
		const char *name;
		long long value, min, max;
	} row[] = {
		{ "channels", p->channels, 1, GANTRY_CHANNELS_MAX },
		{ "cq_depth", p->cq_depth, 1, 1 << 22 },
		{ "service_level", p->service_level, 0, 15 },
		{ "timeout", p->timeout, 0, 31 },
		{ "retry_cnt", p->retry_cnt, 0, 7 },
		{ "rnr_retry", p->rnr_retry, 0, 7 },
		{ "hop_limit", p->hop_limit, 1, 255 },
		{ "pkey_index", p->pkey_index, 0, 65535 },
		{ "traffic_class", p->traffic_class, -1, 255 },
		{ "max_sge", p->max_sge, 1, GANTRY_PIECES_MAX },
		{ "max_rd_atomic", p->max_rd_atomic, 0, 255 },
		{ "path_mtu", p->path_mtu, 0, 4096 },
		{ "delay_mode", (long long)p->delay_mode, GANTRY_DELAY_NONE, GANTRY_DELAY_ADAPTIVE },
		{ "log_level", (long long)p->log_level, GANTRY_SERVER_LOG_ERROR, GANTRY_SERVER_LOG_DEBUG },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		if (row[i].value >= row[i].min && row[i].value <= row[i].max)
			continue;
		snprintf(err, err_len, "%s is %lld: it must be %lld to %lld", row[i].name, row[i].value,
			 row[i].min, row[i].max);
		return -EINVAL;
	}
	if (p->path_mtu && (p->path_mtu < 256 || (p->path_mtu & (p->path_mtu - 1)))) {
		snprintf(err, err_len, "path_mtu is %d: it must be 256, 512, 1024, 2048 or 4096",
			 p->path_mtu);
		return -EINVAL;
	}
	return 0;
}

/* Takes the next of a list of words, separated by commas and blanks; NULL: there are no more. */
static char *
next_word(char **rest)
{
	char *word = *rest + strspn(*rest, ", \t");
	size_t len = strcspn(word, ", \t");

	if (!len)
		return NULL;
	*rest = word + len;
	if (**rest)
		*(*rest)++ = 0;
	return word;
}

static int
take_addresses(struct gantry_server *s, const char *address, char *err, size_t err_len)
{
	char *rest, *word;

	s->conf.mode = RDMA_AUTO;
	if (!address || !*address || strcmp(address, "auto") == 0)
		return 0;
	s->conf.mode = RDMA_LIST;
	s->names = strdup(address);
	if (!s->names) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	rest = s->names;
	while ((word = next_word(&rest))) {
		if (s->conf.device_nr == CONF_DEVICES_MAX) {
			snprintf(err, err_len, "more than %d addresses", CONF_DEVICES_MAX);
			return -EINVAL;
		}
		s->conf.devices[s->conf.device_nr++] = word;
	}
	if (s->conf.device_nr == 0) {
		snprintf(err, err_len, "\"%s\" names no address", address);
		return -EINVAL;
	}
	return 0;
}

/* What one word allows. */
static int
allow_word(struct conf_rdma *c, const char *word, bool *ret_subnet)
{
	if (strcmp(word, "subnet") == 0)
		*ret_subnet = true;
	else if (strcmp(word, "routed") == 0)
		c->allow_routed = true;
	else if (strcmp(word, "loopback") == 0)
		c->allow_loopback = true;
	else if (strcmp(word, "self") == 0)
		c->allow_self = true;
	else if (strcmp(word, "link-local") == 0)
		c->allow_link_local = true;
	else if (c->allow_nr == CONF_NETS_MAX)
		return -E2BIG;
	else
		return conf_net_parse(word, &c->allow[c->allow_nr++]);
	return 0;
}

static int
take_allow(struct conf_rdma *c, const char *allow, char *err, size_t err_len)
{
	char *text, *rest, *word, why[CONF_NET_REFUSAL_MAX];
	bool subnet = false;
	int r = 0;

	/* A program that does not say is as its operator says: one that was written for another library cannot. */
	if (!allow)
		allow = secure_getenv("GANTRY_SERVER_ALLOW");
	if (!allow)
		return 0; /* the subnets of the ports */
	text = strdup(allow);
	if (!text) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	rest = text;
	while (r == 0 && (word = next_word(&rest))) {
		r = allow_word(c, word, &subnet);
		if (r == -E2BIG)
			snprintf(err, err_len, "allow has more than %d address blocks", CONF_NETS_MAX);
		else if (r < 0)
			snprintf(err, err_len,
				 "allow: \"%.100s\": %s; nor is it \"subnet\", \"routed\", \"loopback\", "
				 "\"self\" or "
				 "\"link-local\"",
				 word, conf_net_refusal(word, why));
	}
	free(text);
	if (r < 0)
		return -EINVAL;
	if (subnet && c->allow_nr) {
		snprintf(err, err_len,
			 "allow: \"subnet\" stands without address blocks: name those subnets too");
		return -EINVAL;
	}
	/* No block at all means the subnets: where these are not meant, there is one that nobody is in. */
	if (!subnet && !c->allow_nr)
		c->allow[c->allow_nr++] = (struct conf_net){ .prefix = 128 };
	return 0;
}

int
params_take(struct gantry_server *s, const struct gantry_server_params *p, char *err, size_t err_len)
{
	struct conf_rdma *c = &s->conf;
	int r;

	if (p && p->size < offsetof(struct gantry_server_params, allow)) {
		snprintf(err, err_len, "size is %zu: gantry_server_defaults() sets it", p->size);
		return -EINVAL;
	}
	copy(&s->p, p);
	s->log = s->p.log;
	s->log_cookie = s->p.log_cookie;
	r = check_ranges(&s->p, err, err_len);
	if (r < 0)
		return r;
	s->log_level = (int)s->p.log_level;
	*c = (struct conf_rdma){
		.dc_key = s->p.dc_key,
		.channels = s->p.channels,
		.cq_depth = (int)s->p.cq_depth,
		.max_sge = s->p.max_sge,
		.service_level = s->p.service_level,
		.traffic_class = s->p.traffic_class < 0 ? CONF_CLASS_AUTO : s->p.traffic_class,
		.hop_limit = s->p.hop_limit,
		.pkey_index = s->p.pkey_index,
		.relaxed_ordering = ORDERING_AUTO,
		.timeout = s->p.timeout,
		.retry_cnt = s->p.retry_cnt,
		.rnr_retry = s->p.rnr_retry,
		.max_rd_atomic = s->p.max_rd_atomic,
		.path_mtu = s->p.path_mtu,
		.poll_batch = 16,
		/* What channels keep is not evicted: there is one more for each, whomever their tokens name. */
		.ah_cache = s->p.channels * (HELD_NR + 1) > TARGETS_MIN ? s->p.channels * (HELD_NR + 1)
									: TARGETS_MIN,
	};
	r = take_addresses(s, s->p.address, err, err_len);
	if (r == 0)
		r = take_allow(c, s->p.allow, err, err_len);
	s->p.address = s->p.allow = NULL;
	if (s->p.timeout)
		s->limit_ns = (4096ull << s->p.timeout) * TRIES_OF_TIMEOUT * ((uint64_t)s->p.retry_cnt + 1) +
			      LATE_NS;
	return r;
}
