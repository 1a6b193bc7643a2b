/* SPDX-License-Identifier: Apache-2.0 */
/* The gantry command: options, then one of the commands.  man/gantry.1 is its manual. */
#include "client/cmd/cmd.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: gantry [options] COMMAND ...\n"
	"\n"
	"  put FILE URL          store a file ('-': standard input) as an object\n"
	"  get URL FILE          fetch an object into a file ('-': standard output)\n"
	"  head URL              size, ETag, date\n"
	"  rm URL                remove an object\n"
	"  mput LIST URL         store every file that LIST names, below -C DIR, as URL/NAME\n"
	"  mget LIST URL         fetch every URL/NAME into a file below -C DIR\n"
	"  mb URL                make a bucket\n"
	"  ports                 the RDMA ports that would be used, or why there are none\n"
	"  status                the state of a gantryd, on one screen\n"
	"  top                   what it does, live (q ends it)\n"
	"  doctor [ADDRESS]      what is in the way of RDMA on this machine, and to that client\n"
	"\n"
	"URL is http://HOST:PORT/BUCKET/KEY, with --scality http://HOST:PORT/KEY.\n"
	"\n"
	"  --no-rdma             everything over HTTP\n"
	"  --require-rdma        exit 4 when bytes went over HTTP\n"
	"  --scality             speak the dialect of a scality listener\n"
	"  --checksum            put: send a CRC64NVME; get: compare the file with the stored one\n"
	"  --device LIST         RDMA devices or addresses, 'auto' for all\n"
	"  --dc-key KEY          DC key (default: configuration, else 0xffeeddcc)\n"
	"  --config FILE         cuobj.json or cufile.json to read instead of the usual ones\n"
	"  --access-key KEY      sign requests (AWS Signature Version 4); default $AWS_ACCESS_KEY_ID\n"
	"  --secret SECRET       its secret; default $AWS_SECRET_ACCESS_KEY, which nobody sees in a list of "
	"processes\n"
	"  --region REGION       that is signed for (default $AWS_REGION, $AWS_DEFAULT_REGION, us-east-1)\n"
	"  --timeout SECONDS     for one request (default: 10, more for large objects)\n"
	"  -j, --jobs N          files, or pieces of one get, at once (default 4)\n"
	"  -C, --directory DIR   where the names of mput and mget are (default .)\n"
	"  --acks FILE           mput, mget: append each name as soon as it is done\n"
	"  --admin NAME          status, top, doctor: gantryd's admin listener, http://HOST:PORT or its "
	"socket's path\n"
	"  --interval SECONDS    top: between two samples (default 1)\n"
	"  --count N             top: end after so many\n"
	"  --json                one JSON object a line\n"
	"  -q, --quiet           only errors\n"
	"  --version, --help\n"
	"\n"
	"Exit: 0 done, 1 failed, 2 usage, 3 not found, 4 done but not by RDMA (--require-rdma)\n";

enum {
	OPT_NO_RDMA = 256,
	OPT_REQUIRE_RDMA,
	OPT_SCALITY,
	OPT_CHECKSUM,
	OPT_DEVICE,
	OPT_DC_KEY,
	OPT_CONFIG,
	OPT_ACCESS_KEY,
	OPT_SECRET,
	OPT_REGION,
	OPT_TIMEOUT,
	OPT_ACKS,
	OPT_ADMIN,
	OPT_INTERVAL,
	OPT_COUNT,
	OPT_JSON,
	OPT_VERSION,
	OPT_HELP
};

static const struct option options[] = {
	{ "no-rdma", no_argument, NULL, OPT_NO_RDMA },
	{ "require-rdma", no_argument, NULL, OPT_REQUIRE_RDMA },
	{ "scality", no_argument, NULL, OPT_SCALITY },
	{ "checksum", no_argument, NULL, OPT_CHECKSUM },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "dc-key", required_argument, NULL, OPT_DC_KEY },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "access-key", required_argument, NULL, OPT_ACCESS_KEY },
	{ "secret", required_argument, NULL, OPT_SECRET },
	{ "region", required_argument, NULL, OPT_REGION },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "jobs", required_argument, NULL, 'j' },
	{ "directory", required_argument, NULL, 'C' },
	{ "acks", required_argument, NULL, OPT_ACKS },
	{ "admin", required_argument, NULL, OPT_ADMIN },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

static _Noreturn void
bad_usage(const char *what, const char *word)
{
	fprintf(stderr, "gantry: %s%s%s\ngantry: `gantry --help` shows how\n", what, word ? ": " : "",
		word ? word : "");
	exit(EXIT_USAGE);
}

static void
take_number(const char *text, const char *what, double min, double max, double *ret)
{
	char *end;

	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret >= min && *ret <= max))
		bad_usage(what, text);
}

static _Noreturn void
show(const char *text)
{
	fputs(text, stdout);
	exit(fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED);
}

static void
take_option(struct cmd *c, int opt)
{
	double n;

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
	case 'j':
		take_number(optarg, "-j wants a number from 1 to 64", 1, JOBS_MAX, &n);
		c->jobs = (int)n;
		break;
	case 'C':
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
	case OPT_JSON:
		c->json = true;
		break;
	case 'q':
		c->quiet = true;
		break;
	case OPT_VERSION:
		printf("gantry %s (protocol %d: RDMA DC v1)\n", gantry_version(), GANTRY_PROTOCOL_RDMA_DC_V1);
		show("");
	case OPT_HELP:
		show(usage);
	default:
		exit(EXIT_USAGE); /* getopt has said what is wrong */
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

static const struct command {
	const char *name;
	int words, more; /* it needs so many words, and may have so many more */
	int url;         /* which word is the URL; -1: none */
	bool operator;   /* asks about a machine or a daemon: without libgantry's ports */
	int (*run)(struct cmd *c, char **w);
} commands[] = {
	{ "put", 2, 0, 1, false, run_put },       { "get", 2, 0, 0, false, run_get },
	{ "head", 1, 0, 0, false, run_head },     { "rm", 1, 0, 0, false, run_rm },
	{ "mput", 2, 0, 1, false, run_mput },     { "mget", 2, 0, 1, false, run_mget },
	{ "mb", 1, 0, 0, false, run_mb },         { "ports", 0, 0, -1, false, run_ports },
	{ "status", 0, 0, -1, true, run_status }, { "top", 0, 0, -1, true, run_top },
	{ "doctor", 0, 1, -1, true, run_doctor },
};

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	bad_usage("no such command", name);
}

static void
check_url(const char *url)
{
	const char *host = !strncmp(url, "http://", 7)    ? url + 7
			   : !strncmp(url, "https://", 8) ? url + 8
							  : NULL;

	if (!host || !*host || *host == '/')
		bad_usage("not a URL (http://HOST:PORT/BUCKET/KEY)", url);
}

/* A mapped file that somebody cuts short while we read it. */
static void
on_bus_error(int sig)
{
	static const char text[] = "gantry: a file became shorter while it was read\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

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
	struct cmd c = { .jobs = 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "j:C:q", options, NULL)) != -1)
		take_option(&c, opt);
	if (optind == argc)
		bad_usage("no command", NULL);
	const struct command *cmd = find_command(argv[optind++]);

	if (argc - optind < cmd->words || argc - optind > cmd->words + cmd->more)
		bad_usage("too few or too many words for", cmd->name);
	if (cmd->url >= 0)
		check_url(argv[optind + cmd->url]);
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGPIPE, &pipe, NULL);
	if (!cmd->operator)
		c.g = open_library(&c);
	int rc = cmd->run(&c, argv + optind);

	gantry_close(c.g);
	/* A full disk behind our standard output is a failure like any other. */
	if (fflush(stdout) != 0 && rc == EXIT_OK)
		rc = EXIT_FAILED;
	return rc;
}
