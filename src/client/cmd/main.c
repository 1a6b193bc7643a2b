/* SPDX-License-Identifier: Apache-2.0 */
/* The gantry command: options, then one of the commands.  man/gantry.1 is its manual. */
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"
#include "client/cmd/move/transfer.h"
#include "client/cmd/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

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
run_health(struct cmd *c, char **w)
{
	return cmd_health(c, w[0], w[1]);
}

static int
run_top(struct cmd *c, char **w)
{
	return cmd_top(c);
}

static int
run_trace(struct cmd *c, char **w)
{
	return cmd_trace(c);
}

static int
run_doctor(struct cmd *c, char **w)
{
	return cmd_doctor(c, w[0]);
}

static int
run_support(struct cmd *c, char **w)
{
	return cmd_support(c);
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

static void
say(void *cookie, enum gantry_log_level level, const char *text)
{
	bar_hide();
	fprintf(stderr, "gantry: %s\n", text);
	bar_show();
}

/* --verbose: tells of the ports, and from now on what the library has to say. */
static void
be_verbose(struct gantry *g)
{
	for (int i = 0; gantry_port(g, i); i++)
		fprintf(stderr, "gantry: port %s: %s\n", gantry_port(g, i), gantry_port_transports(g, i));
	if (!gantry_port(g, 0))
		fprintf(stderr, "gantry: no port: %s\n", gantry_rdma_reason(g));
	gantry_set_log(g, say, NULL);
	gantry_set_log_level(g, GANTRY_LOG_INFO);
}

/* uses_rdma false: the command moves no bytes of objects, and the library needs neither ports nor their
 * configuration. */
static struct gantry *
open_library(const struct cmd *c, bool uses_rdma)
{
	struct gantry_options o = { .size = sizeof o,
				    .flags = c->no_rdma || !uses_rdma ? GANTRY_NO_RDMA : 0,
				    .timeout_ms = c->timeout_ms,
				    .dialect = c->scality ? GANTRY_SCALITY : GANTRY_S3,
				    .device = c->device,
				    .transport = c->transport,
				    .dc_key = c->dc_key,
				    .traffic_class = c->traffic_class,
				    .service_level = c->service_level,
				    .path_mtu = c->path_mtu,
				    .pkey_index = c->pkey_index,
				    .config_file = uses_rdma ? c->config : "",
				    .ca_file = c->ca_file };
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
	bool given[OPTIONS_NR] = { false };
	enum command_id id;
	int opt, url;
	bool compares;

	while ((opt = words_option(argc, argv)) != -1) {
		option_take(&c, opt);
		given[opt - OPT_BEGIN] = true;
	}
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
	c.name = commands[id].name;
	if (c.help)
		return words_help(id);
	words_options_judge(id, given);
	words_judge(id, argc - optind, argv + optind);
	words_modes_judge(id, &c, given, argv + optind);
	compares = id == COMMAND_bench && c.key.compare;
	url = compares ? -1 : words_url_at(id);
	if (url >= 0)
		/* Only a put has its file in front. */
		argv[optind + url] = (char *)words_url(id, argv[optind + url], argv[optind], c.scality);
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGPIPE, &pipe, NULL);
	if (commands[id].takes & (FOR_DAEMON | FOR_KEY | FOR_BENCH))
		admin_secure(c.ca_file, c.token_file);
	if (c.worker && bench_worker_begin() != EXIT_OK)
		return EXIT_USAGE;
	if (!(commands[id].takes & (FOR_DAEMON | FOR_KEY | FOR_HW)) && !compares)
		c.g = open_library(&c, commands[id].takes & (FOR_BYTES | FOR_PORTS));
	if (c.verbose)
		be_verbose(c.g);
	int rc = run[id](&c, argv + optind);

	gantry_close(c.g);
	/* A full disk behind our standard output is a failure like any other. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && rc == EXIT_OK)
		rc = EXIT_FAILED;
	return rc;
}
