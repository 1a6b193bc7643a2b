/* SPDX-License-Identifier: Apache-2.0 */
/* The gantry command: options, then one of the commands.  man/gantry.1 is its manual. */
#include "client/cmd/bench/bench.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"
#include "client/cmd/move/transfer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <strings.h>
#include <unistd.h>

static void
take_number(const char *text, const char *what, double min, double max, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret >= min && *ret <= max))
		words_bad(NULL, what, text);
}

static const char *
take_method(const char *text)
{
	static const char *const all[] = { "GET", "PUT", "HEAD", "DELETE" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcasecmp(all[i], text))
			return all[i];
	words_bad(NULL, "--method wants GET, PUT, HEAD or DELETE", text);
}

static void
take_option(struct cmd *c, int opt)
{
	double n;
	uint64_t s;

	switch (opt) {
	case OPT_NO_RDMA:
		c->no_rdma = true;
		break;
	case OPT_REQUIRE_RDMA:
		c->require_rdma = true;
		break;
	case OPT_SCALITY:
		c->scality = true;
		break;
	case OPT_CHECKSUM:
		c->checksum = true;
		break;
	case OPT_DEVICE:
		c->device = optarg;
		break;
	case OPT_DC_KEY:
		c->dc_key = optarg;
		break;
	case OPT_TRAFFIC_CLASS:
		take_number(optarg, "--traffic-class wants a number from 0 to 255", 0, 255, &n);
		c->traffic_class = n > 0 ? (int)n : GANTRY_TRAFFIC_CLASS_0;
		break;
	case OPT_SERVICE_LEVEL:
		take_number(optarg, "--service-level wants a number from 0 to 15", 0, 15, &n);
		c->service_level = (int)n;
		break;
	case OPT_PATH_MTU:
		take_number(optarg, "--path-mtu wants 256, 512, 1024, 2048 or 4096", 256, 4096, &n);
		c->path_mtu = (int)n;
		break;
	case OPT_PKEY_INDEX:
		take_number(optarg, "--pkey-index wants a number from 0 to 65535", 0, 65535, &n);
		c->pkey_index = (int)n;
		break;
	case OPT_ACCESS_KEY:
		c->access_key = optarg;
		break;
	case OPT_SECRET:
		c->secret = optarg;
		break;
	case OPT_REGION:
		c->region = optarg;
		break;
	case OPT_CONFIG:
		c->config = optarg;
		break;
	case OPT_TIMEOUT:
		take_number(optarg, "--timeout wants seconds, from 0.001 to 1000000", 0.001, 1e6, &n);
		c->timeout_ms = (unsigned)(n * 1000);
		break;
	case OPT_ACKS:
		c->acks = optarg;
		break;
	case OPT_JOBS:
		take_number(optarg, "-j wants a number from 1 to 64", 1, JOBS_MAX, &n);
		c->jobs = (int)n;
		break;
	case OPT_DIRECTORY:
		c->dir = optarg;
		break;
	case OPT_ADMIN:
		c->admin = optarg;
		break;
	case OPT_INTERVAL:
		take_number(optarg, "--interval wants seconds, from 0.1 to 86400", .1, 86400, &c->interval_s);
		break;
	case OPT_COUNT:
		take_number(optarg, "--count wants a number from 1 on", 1, 1e9, &n);
		c->count = (int)n;
		break;
	case OPT_RECURSIVE:
		c->recursive = true;
		break;
	case OPT_INCLUDE:
	case OPT_EXCLUDE:
		if (c->filter_nr == FILTERS_MAX)
			words_bad(NULL, "--include and --exclude: more than 64", optarg);
		c->filter[c->filter_nr++] = (struct filter){ optarg, opt == OPT_INCLUDE };
		break;
	case OPT_DRY_RUN:
		c->dry_run = true;
		break;
	case OPT_DELETE:
		c->deletes = true;
		break;
	case OPT_YES:
		c->yes = true;
		break;
	case OPT_FORCE:
		c->force = true;
		break;
	case OPT_LONG:
		c->is_long = true;
		break;
	case OPT_HUMAN:
		c->human = true;
		break;
	case OPT_DEPTH:
		take_number(optarg, "--depth wants a number from 0 to 100", 0, 100, &n);
		c->depth = (int)n;
		break;
	case OPT_RANGE:
		if (!part_parse(optarg, &c->part))
			words_bad(NULL, "--range wants FIRST-LAST, FIRST- or -LENGTH, in bytes", optarg);
		break;
	case OPT_METHOD:
		c->method = take_method(optarg);
		break;
	case OPT_EXPIRES:
		if (!duration_parse(optarg, GANTRY_PRESIGN_MAX_S, &s))
			words_bad(NULL,
				  "--expires wants a time from 1 second to 7 days, such as 90, 15m, 12h, 7d",
				  optarg);
		c->expires_s = (unsigned)s;
		break;
	case OPT_BUCKET:
		c->key.bucket = optarg;
		break;
	case OPT_PREFIX:
		c->key.prefix = optarg;
		break;
	case OPT_READ_ONLY:
		c->key.read_only = true;
		break;
	case OPT_NO_DELETE:
		c->key.no_delete = true;
		break;
	case OPT_NO_OVERWRITE:
		c->key.no_overwrite = true;
		break;
	case OPT_FROM:
		c->key.from = optarg;
		break;
	case OPT_MAX_OBJECTS:
		c->max_objects = optarg;
		break;
	case OPT_MAX_BYTES:
		c->max_bytes = optarg;
		break;
	case OPT_SIZE:
		c->disk_size = optarg;
		break;
	case OPT_COPIES:
		if (strcmp(optarg, "1") != 0 && strcmp(optarg, "2") != 0)
			words_bad(NULL, "--copies wants 1 or 2", optarg);
		c->copies = optarg[0] - '0';
		break;
	case OPT_MAX_UPLOADS:
		c->max_uploads = optarg;
		break;
	case OPT_UNTIL:
		c->key.until = optarg;
		break;
	case OPT_FILE:
		c->key.file = optarg;
		break;
	case OPT_CONF:
		c->key.conf = optarg;
		break;
	case OPT_SIZES:
		c->sizes = optarg;
		break;
	case OPT_CONCURRENCY:
		c->at_once = optarg;
		break;
	case OPT_MIX:
		c->mix = optarg;
		break;
	case OPT_WAY:
		c->ways = optarg;
		break;
	case OPT_TIME:
		take_number(optarg, "--time wants seconds, from 0.1 to 86400", .1, 86400, &c->time_s);
		break;
	case OPT_WARM_UP:
		take_number(optarg, "--warm-up wants seconds, from 0 to 3600", 0, 3600, &c->warm_up_s);
		break;
	case OPT_ROUNDS:
		take_number(optarg, "--rounds wants a number from 1 to 100", 1, 100, &n);
		c->rounds = (int)n;
		break;
	case OPT_OBJECTS:
		take_number(optarg, "--objects wants a number from 1 to 10000000", 1, 1e7, &n);
		c->objects = (uint64_t)n;
		break;
	case OPT_RATE:
		take_number(optarg, "--rate wants requests a second, from 0.001 to 10000000", .001, 1e7,
			    &c->rate);
		break;
	case OPT_SEED:
		take_number(optarg, "--seed wants a number from 0 to 4294967295", 0, 4294967295., &n);
		c->seed = (uint64_t)n;
		c->has_seed = true;
		break;
	case OPT_VERIFY:
		c->verify = true;
		break;
	case OPT_LISTEN:
		c->listens = true;
		break;
	case OPT_LARGEST:
		if (!bench_size(optarg, &c->largest) || c->largest > HW_LARGEST)
			words_bad(NULL, "--largest wants a size from 1 to 1g, such as 65536, 64m", optarg);
		break;
	case OPT_ONLY:
		c->only = optarg;
		break;
	case OPT_NO_TIMES:
		c->no_times = true;
		break;
	case OPT_JSON:
		c->json = true;
		break;
	case OPT_QUIET:
		c->quiet = true;
		break;
	case OPT_VERSION:
		printf("gantry %s (protocol %d: RDMA DC v1)\n", gantry_version(), GANTRY_PROTOCOL_RDMA_DC_V1);
		exit(fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED);
	case OPT_HELP:
		c->help = true;
		break;
	default:
		/* getopt has said what is wrong. */
		fprintf(stderr, "gantry: `gantry --help` shows what there is\n");
		exit(EXIT_USAGE);
	}
}

static int
run_put(struct cmd *c, char **w)
{
	return cmd_put(c, w[0], w[1]);
}

static int
run_get(struct cmd *c, char **w)
{
	return cmd_get(c, w[0], w[1]);
}

static int
run_head(struct cmd *c, char **w)
{
	return cmd_head(c, w[0]);
}

static int
run_cat(struct cmd *c, char **w)
{
	return cmd_cat(c, w[0]);
}

static int
run_stat(struct cmd *c, char **w)
{
	return cmd_stat(c, w[0]);
}

static int
run_presign(struct cmd *c, char **w)
{
	return cmd_presign(c, w[0]);
}

static int
run_ls(struct cmd *c, char **w)
{
	return cmd_ls(c, w[0]);
}

static int
run_du(struct cmd *c, char **w)
{
	return cmd_du(c, w[0]);
}

static int
run_cp(struct cmd *c, char **w)
{
	return cmd_cp(c, w[0], w[1]);
}

static int
run_sync(struct cmd *c, char **w)
{
	return cmd_sync(c, w[0], w[1]);
}

static int
run_bench(struct cmd *c, char **w)
{
	return cmd_bench(c, w[0]);
}

static int
run_rm(struct cmd *c, char **w)
{
	return cmd_rm(c, w[0]);
}

static int
run_mb(struct cmd *c, char **w)
{
	return cmd_mb(c, w[0]);
}

static int
run_rb(struct cmd *c, char **w)
{
	return cmd_rb(c, w[0]);
}

static int
run_mput(struct cmd *c, char **w)
{
	return cmd_many(c, true, w[0], w[1]);
}

static int
run_mget(struct cmd *c, char **w)
{
	return cmd_many(c, false, w[0], w[1]);
}

static int
run_ports(struct cmd *c, char **w)
{
	return cmd_ports(c);
}

static int
run_status(struct cmd *c, char **w)
{
	return cmd_status(c);
}

static int
run_top(struct cmd *c, char **w)
{
	return cmd_top(c);
}

static int
run_doctor(struct cmd *c, char **w)
{
	return cmd_doctor(c, w[0]);
}

static int
run_hwcheck(struct cmd *c, char **w)
{
	return cmd_hwcheck(c, w[0]);
}

static int
run_key(struct cmd *c, char **w)
{
	return cmd_key(c, w[0], w[1]);
}

static int
run_bucket(struct cmd *c, char **w)
{
	return cmd_bucket(c, w[0], w[1]);
}

static int
run_disk(struct cmd *c, char **w)
{
	return cmd_disk(c, w[0], w[1]);
}

static int (*const run[COMMAND_NR])(struct cmd *c, char **w) = {
#define COMMAND(name, ...) run_##name,
#include "client/cmd/common/command.def"
#undef COMMAND
};

/* A mapped file that somebody cuts short while we read it. */
static void
on_bus_error(int sig)
{
	static const char text[] = ": the file became shorter while it was read\n";
	const char *name = mapped_file ? mapped_file : "?";
	struct iovec line[] = { { (void *)(uintptr_t) "gantry: ", 8 },
				{ (void *)(uintptr_t)name, strlen(name) },
				{ (void *)(uintptr_t)text, sizeof text - 1 } };
	ssize_t n = writev(STDERR_FILENO, line, 3);

	(void)n;
	_exit(EXIT_FAILED);
}

/* From options or, as other S3 clients do, from the environment: all of it from where the access key is. */
static void
find_keys(const struct cmd *c, struct gantry_options *o)
{
	o->region = c->region ? c->region : getenv("AWS_REGION");
	if (!o->region || !*o->region)
		o->region = getenv("AWS_DEFAULT_REGION");
	o->access_key = c->access_key;
	o->secret_key = c->secret;
	/* A scality listener has no signatures: what the environment says is meant for others. */
	if (c->access_key || c->scality)
		return;
	o->access_key = getenv("AWS_ACCESS_KEY_ID");
	if (!c->secret)
		o->secret_key = getenv("AWS_SECRET_ACCESS_KEY");
	o->session_token = getenv("AWS_SESSION_TOKEN");
}

static struct gantry *
open_library(const struct cmd *c)
{
	struct gantry_options o = { .size = sizeof o,
				    .flags = c->no_rdma ? GANTRY_NO_RDMA : 0,
				    .dialect = c->scality ? GANTRY_SCALITY : GANTRY_S3,
				    .device = c->device,
				    .dc_key = c->dc_key,
				    .traffic_class = c->traffic_class,
				    .service_level = c->service_level,
				    .path_mtu = c->path_mtu,
				    .pkey_index = c->pkey_index,
				    .config_file = c->config };
	struct gantry *g;
	int e;

	find_keys(c, &o);
	e = gantry_open(&o, &g);
	if (e == 0)
		return g;
	fprintf(stderr, "gantry: %s\n", *gantry_open_error() ? gantry_open_error() : strerror(-e));
	exit(EXIT_FAILED);
}

int
main(int argc, char **argv)
{
	struct sigaction bus = { .sa_handler = on_bus_error }, pipe = { .sa_handler = SIG_IGN };
	struct cmd c = { .part = { .last = UINT64_MAX },
			 .method = "GET",
			 .expires_s = 3600,
			 .time_s = 10,
			 .warm_up_s = 1 };
	enum command_id id;
	int opt, url;

	while ((opt = words_option(argc, argv)) != -1)
		take_option(&c, opt);
	/* Other programs' spelling of the option. */
	if (optind < argc && !strcmp(argv[optind], "help")) {
		c.help = true;
		optind++;
	}
	if (c.help && optind == argc)
		return words_help(COMMAND_NR);
	if (optind == argc)
		words_bad(NULL, "no command", NULL);
	id = words_command(argv[optind++]);
	if (c.help)
		return words_help(id);
	words_judge(id, argc - optind, argv + optind);
	url = words_url_at(id);
	if (url >= 0)
		/* Only a put has its file in front. */
		argv[optind + url] = (char *)words_url(id, argv[optind + url], argv[optind], c.scality);
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGPIPE, &pipe, NULL);
	if (!(commands[id].takes & (FOR_DAEMON | FOR_KEY | FOR_HW)))
		c.g = open_library(&c);
	int rc = run[id](&c, argv + optind);

	gantry_close(c.g);
	/* A full disk behind our standard output is a failure like any other. */
	if (fflush(stdout) != 0 && rc == EXIT_OK)
		rc = EXIT_FAILED;
	return rc;
}
