/* SPDX-License-Identifier: Apache-2.0 */
/* The members of struct cmd that options set, by the column TAKE of option.def; see options.h. */
#include "client/cmd/options.h"

#include "client/cmd/bench/bench.h"
#include "client/cmd/common/words.h"
#include "client/cmd/move/transfer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static double
number(const char *name, const char *wants, double least, double most)
{
	char *end, text[128];
	double n = strtod(optarg, &end);

	if (end != optarg && !*end && n >= least && n <= most)
		return n;
	snprintf(text, sizeof text, "%s wants %s", name, wants);
	words_bad(NULL, text, optarg);
}

/* ---- options that are more than a member ---- */

static void
take_traffic_class(struct cmd *c)
{
	double n = number("--traffic-class", "a number from 0 to 255", 0, 255);

	c->traffic_class = n > 0 ? (int)n : GANTRY_TRAFFIC_CLASS_0;
}

static void
take_transport(struct cmd *c)
{
	static const char *const names[] = { "auto", "dc", "rc" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(names[i], optarg) != 0)
			continue;
		c->transport = (enum gantry_transport)i;
		return;
	}
	words_bad(NULL, "--transport wants auto, dc or rc", optarg);
}

static void
take_timeout(struct cmd *c)
{
	c->timeout_ms = (unsigned)(number("--timeout", "seconds, from 0.001 to 1000000", 0.001, 1e6) * 1000);
}

static void
take_filter(struct cmd *c, bool is_include)
{
	if (c->filter_nr == FILTERS_MAX)
		words_bad(NULL, "--include and --exclude: more than 64", optarg);
	c->filter[c->filter_nr++] = (struct filter){ optarg, is_include };
}

static void
take_include(struct cmd *c)
{
	take_filter(c, true);
}

static void
take_exclude(struct cmd *c)
{
	take_filter(c, false);
}

static void
take_copies(struct cmd *c)
{
	if (strcmp(optarg, "1") != 0 && strcmp(optarg, "2") != 0)
		words_bad(NULL, "--copies wants 1 or 2", optarg);
	c->copies = optarg[0] - '0';
}

static void
take_range(struct cmd *c)
{
	if (!part_parse(optarg, &c->part))
		words_bad(NULL, "--range wants FIRST-LAST, FIRST- or -LENGTH, in bytes", optarg);
}

static void
take_method(struct cmd *c)
{
	static const char *const all[] = { "GET", "PUT", "HEAD", "DELETE" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcasecmp(all[i], optarg) != 0)
			continue;
		c->method = all[i];
		return;
	}
	words_bad(NULL, "--method wants GET, PUT, HEAD or DELETE", optarg);
}

static void
take_expires(struct cmd *c)
{
	uint64_t s;

	if (!duration_parse(optarg, GANTRY_PRESIGN_MAX_S, &s))
		words_bad(NULL, "--expires wants a time from 1 second to 7 days, such as 90, 15m, 12h, 7d",
			  optarg);
	c->expires_s = (unsigned)s;
}

static void
take_seed(struct cmd *c)
{
	c->seed = (uint64_t)number("--seed", "a number from 0 to 4294967295", 0, 4294967295.);
	c->has_seed = true;
}

static void
take_largest(struct cmd *c)
{
	if (!bench_size(optarg, &c->largest) || c->largest > HW_LARGEST)
		words_bad(NULL, "--largest wants a size from 1 to 1g, such as 65536, 64m", optarg);
}

static void
take_version(struct cmd *c)
{
	printf("gantry %s (protocol %d: RDMA DC v1)\n", gantry_version(), GANTRY_PROTOCOL_RDMA_DC_V1);
	exit(fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED);
}

/* ---- the table ---- */

enum kind { TAKE_FLAG, TAKE_TEXT, TAKE_INT, TAKE_WHOLE, TAKE_REAL };

static const struct option_value {
	const char *name;            /* with its dashes */
	void (*take)(struct cmd *c); /* NULL: the rest says how */
	enum kind kind;
	size_t member; /* its offset */
	double least, most;
	const char *wants;
} values[OPTIONS_NR] = {
#define FLAG(m) .kind = TAKE_FLAG, .member = offsetof(struct cmd, m)
#define TEXT(m) .kind = TAKE_TEXT, .member = offsetof(struct cmd, m)
#define INT(m, lo, hi, w)                                                                                    \
	.kind = TAKE_INT, .member = offsetof(struct cmd, m), .least = lo, .most = hi, .wants = w
#define WHOLE(m, lo, hi, w)                                                                                  \
	.kind = TAKE_WHOLE, .member = offsetof(struct cmd, m), .least = lo, .most = hi, .wants = w
#define REAL(m, lo, hi, w)                                                                                   \
	.kind = TAKE_REAL, .member = offsetof(struct cmd, m), .least = lo, .most = hi, .wants = w
#define BY(fn) .take = fn
#define OPTION(id, letter, text, arg, concerns, how, complete, help)                                         \
	[OPT_##id - OPT_BEGIN] = { .name = "--" text, how },
#include "client/cmd/common/option.def"
#undef OPTION
};

void
option_take(struct cmd *c, int opt)
{
	const struct option_value *v;
	void *member;

	if (opt <= OPT_BEGIN || opt >= OPT_END) {
		/* getopt has said what is wrong. */
		fprintf(stderr, "gantry: `gantry --help` shows what there is\n");
		exit(EXIT_USAGE);
	}
	v = &values[opt - OPT_BEGIN];
	member = (char *)c + v->member;
	if (v->take) {
		v->take(c);
		return;
	}
	switch (v->kind) {
	case TAKE_FLAG:
		*(bool *)member = true;
		break;
	case TAKE_TEXT:
		*(const char **)member = optarg;
		break;
	case TAKE_INT:
		*(int *)member = (int)number(v->name, v->wants, v->least, v->most);
		break;
	case TAKE_WHOLE:
		*(uint64_t *)member = (uint64_t)number(v->name, v->wants, v->least, v->most);
		break;
	case TAKE_REAL:
		*(double *)member = number(v->name, v->wants, v->least, v->most);
		break;
	}
}
