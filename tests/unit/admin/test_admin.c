/* SPDX-License-Identifier: Apache-2.0 */
/* A real admin thread on a free loopback port and on a Unix socket, asked over plain sockets. */
#include "admin/admin.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* What the functions of the environment answer; changed while the thread runs. */
static struct {
	_Atomic uint64_t turned_ago_ns[2];
	_Atomic bool asleep[2], not_ready, not_healthy;
} fake;

static _Atomic bool holds; /* a control call goes on as long as this is so */

static int
fake_core_nr(void *cookie)
{
	return 2;
}

static void
fake_core(void *cookie, int core, struct admin_core *ret_core)
{
	ret_core->asleep = fake.asleep[core];
	ret_core->turned_ago_ns = fake.turned_ago_ns[core];
}

static void
fake_ready(void *cookie, struct admin_reasons *r)
{
	if (fake.not_ready)
		admin_reason(r, REASON_DRAINING, "", "draining %d", 5);
}

static void
fake_health(void *cookie, struct admin_reasons *r)
{
	if (!fake.not_healthy)
		return;
	admin_reason(r, REASON_DISK_FAILED, "0", "disk 0: \"gone\"");
	for (int i = 0; i < 200; i++)
		admin_reason(r, REASON_RAIL_DOWN, "", "and more");
}

static void
fake_metrics(void *cookie, struct stats_out *out)
{
	stats_emit(out, M_RAIL_UP, 1, "mlx5_0", NULL);
}

static void
fake_status(void *cookie, FILE *out)
{
	fputs("{\"version\":", out);
	json_string(out, "1\n\"\\\xff\xc3\xa4\x01");
	fputs(",\"none\":", out);
	json_string(out, NULL);
	putc('}', out);
}

static int
fake_request(void *cookie, const char *id, FILE *out)
{
	fprintf(out, "{\"id\":\"%s\"}", id);
	return strcmp(id, "4711") == 0 ? 200 : strcmp(id, "stuck") == 0 ? 503 : 404;
}

static void
fake_rails(void *cookie, FILE *out)
{
	fputs("[]", out);
}

static const char *const ops[] = { NULL, "GetObject" };

static char dir[64], socket_path[96];
static struct admin *admin;
static struct admin_env env;
static struct stats *stats;
static struct conf *conf;
static struct sockaddr_storage sa;
static socklen_t sa_len;

static int
start(struct admin **ret, const char *address, const char *path, char *err)
{
	struct admin_params p = { .address = address, .sa = &sa, .socket = path };

	if (address) {
		assert_int_equal(conf_addr_parse(address, &sa, &sa_len), 0);
		p.sa_len = sa_len;
	}
	return admin_start(&p, &env, ret, err, 256);
}

static int
setup(void **state)
{
	static const struct stats_names names = { ops, 2, ops, 0 };
	static const struct conf_override none[] = { { "rdma.dc_key=0x77aa77" },
						     { "admin.socket=/run/\"x" } };
	struct conf_source src = {
		.file = "/nonexistent/gantryd.yaml", .partial = true, .overrides = none, .override_nr = 2
	};
	char err[256];

	memset(&fake, 0, sizeof fake);
	strcpy(dir, "/tmp/test_admin.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(socket_path, sizeof socket_path, "%s/admin.sock", dir);
	assert_int_equal(stats_new(2, &names, &stats), 0);
	assert_int_equal(conf_load(&src, &conf, stderr), 0);
	env = (struct admin_env){ .conf = conf,
				  .stats = stats,
				  .core_nr = fake_core_nr,
				  .core = fake_core,
				  .ready = fake_ready,
				  .health = fake_health,
				  .metrics = fake_metrics,
				  .status = fake_status,
				  .rails = fake_rails,
				  .request = fake_request };
	if (start(&admin, "127.0.0.1:0", socket_path, err) < 0)
		fail_msg("%s", err);
	assert_true(admin_port(admin) > 0);
	return 0;
}

static int
teardown(void **state)
{
	holds = false;
	admin_stop(admin);
	admin = NULL;
	/* The socket goes with it. */
	assert_int_equal(access(socket_path, F_OK), -1);
	rmdir(dir);
	stats_free(stats);
	conf_free(conf);
	return 0;
}

static int
connect_tcp(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)admin_port(admin)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
	return fd;
}

static int
connect_unix(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(un.sun_path, socket_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof un), 0);
	return fd;
}

static char reply[65536];
static const char *host_name = "localhost";

/* Sends a request and reads until the other side closes; returns the status, the text is in reply. */
static int
ask_on(int fd, const char *head)
{
	char request[512];
	size_t len = 0;
	ssize_t n;
	int status;

	n = snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", head,
		     host_name);
	assert_int_equal(write(fd, request, (size_t)n), n);
	while ((n = read(fd, reply + len, sizeof reply - 1 - len)) > 0)
		len += (size_t)n;
	reply[len] = 0;
	close(fd);
	if (sscanf(reply, "HTTP/1.1 %d", &status) != 1)
		fail_msg("no answer to %s: %s", head, reply);
	return status;
}

static int
ask(const char *head)
{
	return ask_on(connect_tcp(), head);
}

static void
assert_has(const char *text)
{
	if (!strstr(reply, text))
		fail_msg("no \"%s\" in\n%s", text, reply);
}

static void
test_health(void **state)
{
	static const char *const all[] = { "GET /livez",
					   "GET /readyz",
					   "GET /healthz",
					   "GET /health",
					   "GET /health/live",
					   "GET /health/ready",
					   "GET /minio/health/live",
					   "GET /minio/health/ready",
					   "GET /minio/health/cluster" };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		assert_int_equal(ask(all[i]), 200);
		assert_has("{\"status\":\"ok\",\"reasons\":[]}\n");
		assert_has("Content-Type: application/json");
	}
	fake.not_ready = true;
	assert_int_equal(ask("GET /readyz"), 503);
	assert_has("{\"status\":\"unavailable\",\"reasons\":[{\"code\":\"draining\",\"text\":\"draining "
		   "5\",\"object\":null,");
	assert_has("\"link\":\"docs/health.md#draining\",\"muted\":null}]}\n");
	assert_int_equal(ask("GET /minio/health/cluster"), 503);
	/* Unavailable exactly while not ready, also when muted. */
	assert_int_equal(ask("GET /healthz"), 503);
	assert_int_equal(admin_mute(admin, "draining", 3600), -ENODEV);
	assert_int_equal(ask("GET /healthz"), 503);
	assert_has("{\"status\":\"unavailable\",\"reasons\":[{\"code\":\"draining\"");
	assert_has("\"muted\":\"2");
	assert_int_equal(ask("GET /readyz"), 503);
	assert_int_equal(ask("GET /metrics"), 200);
	assert_has("gantry_health_reason{code=\"draining\"} 1\n");
	admin_mute(admin, "draining", 0);
	assert_int_equal(ask("GET /livez"), 200);
	fake.not_ready = false;
	fake.not_healthy = true;
	assert_int_equal(ask("GET /health"), 200);
	assert_has("{\"status\":\"degraded\",\"reasons\":[{\"code\":\"disk_failed\",\"text\":\"disk 0: "
		   "\\\"gone\\\"\",\"object\":\"0\",\"since\":\"2");
	assert_has("\"text\":\"and more\"");
	assert_int_equal(ask("GET /readyz"), 200);
	assert_int_equal(ask("GET /metrics"), 200);
	assert_has("gantry_health_reason{code=\"disk_failed\"} 1\n");
	assert_has("gantry_health_reason{code=\"draining\"} 0\n");
}

/* Mutes are kept in a file, end by their time, and unknown codes are refused. */
static void
test_mutes(void **state)
{
	char path[128], line[128];
	struct admin *again;
	FILE *f;

	snprintf(path, sizeof path, "%s/mutes", dir);
	assert_int_equal(admin_keep_mutes(admin, path), 0);
	fake.not_healthy = true;
	assert_int_equal(admin_mute(admin, "nonsense", 60), -ENOENT);
	assert_int_equal(admin_mute(admin, "disk_failed", 3600), 0);
	assert_int_equal(ask("GET /healthz"), 200);
	assert_has("\"status\":\"degraded\"");
	assert_int_equal(admin_mute(admin, "rail_down", 3600), 0);
	assert_int_equal(ask("GET /healthz"), 200);
	assert_has("{\"status\":\"ok\",\"reasons\":[{\"code\":\"disk_failed\"");
	assert_has("\"muted\":\"2");
	assert_int_equal(ask("GET /metrics"), 200);
	assert_has("gantry_health_reason{code=\"disk_failed\"} 0\n");
	/* Another process of the same file. */
	again = admin;
	if (start(&admin, "127.0.0.1:0", NULL, line) < 0)
		fail_msg("%s", line);
	assert_int_equal(ask("GET /healthz"), 200);
	assert_has("\"status\":\"degraded\"");
	assert_int_equal(admin_keep_mutes(admin, path), 0);
	assert_int_equal(ask("GET /healthz"), 200);
	assert_has("\"status\":\"ok\"");
	admin_stop(admin);
	admin = again;
	assert_int_equal(admin_mute(admin, "rail_down", 0), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	assert_memory_equal(line, "disk_failed ", 12);
	assert_null(fgets(line, sizeof line, f));
	fclose(f);
	/* One whose time is over. */
	f = fopen(path, "w");
	fputs("disk_failed 1000\nanother_version 99999999999\nrail_down 1000\n", f);
	fclose(f);
	assert_int_equal(admin_mute(admin, "disk_failed", 0), 0);
	assert_int_equal(ask("GET /healthz"), 200);
	assert_has("\"status\":\"degraded\"");
	unlink(path);
}

/* A core that is awake and does not turn; one that sleeps may do so for ever. */
static void
test_stuck_core(void **state)
{
	fake.asleep[0] = true;
	fake.turned_ago_ns[0] = 3600 * NS_PER_S;
	assert_int_equal(ask("GET /livez"), 200);
	assert_int_equal(ask("GET /readyz"), 200);
	fake.turned_ago_ns[1] = 2500 * NS_PER_MS;
	assert_int_equal(ask("GET /livez"), 200);
	assert_int_equal(ask("GET /readyz"), 503);
	assert_has("core 1 is stuck: its loop has not turned for 2.5 s");
	assert_int_equal(ask("GET /healthz"), 503);
	assert_has("core 1 is stuck");
	fake.turned_ago_ns[1] = 11 * NS_PER_S;
	assert_int_equal(ask("GET /livez"), 503);
	assert_has("core 1 is stuck: its loop has not turned for 11.0 s");
	fake.turned_ago_ns[1] = 0;
	assert_int_equal(ask("GET /livez"), 200);
}

static void
test_pages(void **state)
{
	stats_request(stats_core(stats, 1), STATS_S3, 1, 200, STATS_RDMA, 1000);
	assert_int_equal(ask("GET /metrics"), 200);
	assert_has("Content-Type: text/plain; version=0.0.4; charset=utf-8");
	assert_has("gantry_requests_total{dialect=\"s3\",operation=\"GetObject\",code=\"200\",transport="
		   "\"rdma\"} 1\n");
	assert_has("gantry_rail_up{rail=\"mlx5_0\"} 1\n");
	assert_has("process_open_fds ");
	assert_int_equal(ask("GET /status"), 200);
	assert_has("{\"version\":\"1\\u000a\\\"\\\\?\xc3\xa4\\u0001\",\"none\":null}\n");
	assert_int_equal(ask("GET /rails"), 200);
	assert_has("\r\n\r\n[]\n");
	assert_int_equal(ask("GET /config"), 200);
	assert_has("\"rdma.hop_limit\":{\"value\":\"64\",\"origin\":\"default\"}");
	assert_has("\"admin.socket\":{\"value\":\"/run/\\\"x\",\"origin\":\"option -o\"}");
	assert_has("\"rdma.dc_key\":{\"value\":\"********\"");
	assert_null(strstr(reply, "77aa77"));
	/* Not given by this environment. */
	assert_int_equal(ask("GET /disks"), 404);
	assert_int_equal(ask("GET /requests"), 404);
	/* One of them. */
	assert_int_equal(ask("GET /requests/4711"), 200);
	assert_has("\r\n\r\n{\"id\":\"4711\"}\n");
	assert_int_equal(ask("GET /requests/4712"), 404);
	assert_has("{\"error\":\"no live request has that id\"}\n");
	assert_int_equal(ask("GET /requests/stuck"), 503);
	assert_int_equal(ask("GET /requests/"), 404);
	assert_int_equal(ask("POST /requests/4711"), 405);
	assert_int_equal(ask("POST /requests/4712"), 404);
}

/* The page that people look at, and what it alone asks. */
static void
test_page(void **state)
{
	struct stats_note declined = {
		.unix_ns = 1700000000123456789, .id = 0xabc, .op = 1, .status = 200, .reason = 1
	};
	struct stats_note failed = { .unix_ns = 1700000001000000000,
				     .id = 1,
				     .status = 503,
				     .code = "SlowDown",
				     .whose = { .client = "10.0.0.7", .bucket = "models" } };

	assert_int_equal(ask("GET /"), 200);
	assert_has("Content-Type: text/html; charset=utf-8");
	assert_has("Content-Security-Policy: default-src 'none'; ");
	assert_has("<title>Gantry</title>");
	assert_has("</html>");
	assert_int_equal(ask("GET /events"), 200);
	assert_has("\r\n\r\n[]\n");
	stats_note(stats_core(stats, 0), &declined);
	stats_note(stats_core(stats, 1), &failed);
	assert_int_equal(ask("GET /events"), 200);
	assert_has("[{\"time\":1700000001.000,\"id\":\"0000000000000001\",\"operation\":\"other\",\"status\":"
		   "503,"
		   "\"declined\":null,\"code\":\"SlowDown\",\"client\":\"10.0.0.7\",\"bucket\":\"models\"},"
		   "\n{\"time\":1700000000.123,\"id\":"
		   "\"0000000000000abc\",");
	assert_has("\"status\":200,\"declined\":\"");
	assert_has("\"client\":null,\"bucket\":null}]");
	assert_int_equal(ask("GET /runbook"), 200);
	assert_has("Content-Type: text/plain; charset=utf-8");
	assert_has("\n#### draining\n");
}

/* ---- control calls ---- */

static int
held(void *cookie, const struct admin_args *args, FILE *out)
{
	while (holds)
		usleep(1000);
	fputs("{\"held\":true}", out);
	return 200;
}

static int
quick(void *cookie, const struct admin_args *args, FILE *out)
{
	fputs("{\"quick\":true}", out);
	return 200;
}

static const struct admin_control controls[] = {
	{ "/control/disk/add", "", CONTROL_DISKS, held, NULL },
	{ "/control/reload", "", CONTROL_SLOW, quick, NULL },
	{ "/control/resume", "", CONTROL_AT_ONCE, quick, NULL },
};

static void
start_controls(void)
{
	char err[256];

	admin_stop(admin);
	env.controls = controls;
	env.control_nr = 3;
	if (start(&admin, "127.0.0.1:0", socket_path, err) < 0)
		fail_msg("%s", err);
}

/* While a disk is made, whatever else is asked is answered; two changes of disks are made one after the other. */
static void
test_lanes(void **state)
{
	static const char request[] =
		"POST /control/disk/add HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	int fd[2];

	start_controls();
	holds = true;
	for (int i = 0; i < 2; i++) {
		fd[i] = connect_unix();
		assert_int_equal(write(fd[i], request, sizeof request - 1), sizeof request - 1);
	}
	assert_int_equal(ask_on(connect_unix(), "POST /control/reload"), 200);
	assert_has("{\"quick\":true}");
	assert_int_equal(ask_on(connect_unix(), "POST /control/resume"), 200);
	assert_int_equal(ask("GET /livez"), 200);
	holds = false;
	for (int i = 0; i < 2; i++) {
		size_t len = 0;
		ssize_t n;

		while ((n = read(fd[i], reply + len, sizeof reply - 1 - len)) > 0)
			len += (size_t)n;
		reply[len] = 0;
		close(fd[i]);
		assert_has("{\"held\":true}");
	}
}

/* Nobody looks behind a byte 0, so nothing is done that stands in front of it. */
static void
test_zero(void **state)
{
	static const char raw[] = "POST /control/resume\0x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	size_t len = 0;
	ssize_t n;
	int fd;

	start_controls();
	assert_int_equal(ask_on(connect_unix(), "POST /control/resume%00"), 400);
	assert_int_equal(ask_on(connect_unix(), "POST /control/resume%00/x"), 400);
	assert_int_equal(ask_on(connect_unix(), "POST /control%2fresume"), 200);
	assert_int_equal(ask("GET /livez%00"), 400);
	assert_int_equal(ask("GET /livez?%00"), 200);
	fd = connect_unix();
	assert_int_equal(write(fd, raw, sizeof raw - 1), sizeof raw - 1);
	while ((n = read(fd, reply + len, sizeof reply - 1 - len)) > 0)
		len += (size_t)n;
	reply[len] = 0;
	close(fd);
	assert_has("HTTP/1.1 400");
}

static void
say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Sends the beginning of a request. */
static int
half(int fd)
{
	say(fd, "GET /livez HT");
	return fd;
}

/* More connections with half a request than there may be: who comes with a whole one is answered, on
 * either way in, and nobody takes the socket's from outside. */
static void
test_crowd(void **state)
{
	enum { N = 100 };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)admin_port(admin)) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
	int tcp[N], local[N], other = socket(AF_INET, SOCK_STREAM, 0);

	/* The first of all is from another address, and stays for that. */
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(other, (struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(other, (struct sockaddr *)&to, sizeof to), 0);
	half(other);
	for (int i = 0; i < N; i++)
		tcp[i] = half(connect_tcp());
	assert_int_equal(ask("GET /livez"), 200);
	assert_int_equal(ask_on(connect_unix(), "GET /livez"), 200);
	for (int i = 0; i < N; i++)
		local[i] = half(connect_unix());
	assert_int_equal(ask_on(connect_unix(), "GET /livez"), 200);
	/* None of TCP's had to go for those. */
	say(tcp[N - 1], "TP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(read(tcp[N - 1], reply, sizeof reply - 1) > 0);
	assert_int_equal(memcmp(reply, "HTTP/1.1 200", 12), 0);
	/* The idle one is older than no other, and half a request goes before it. */
	for (int i = 0; i < 80; i++) {
		close(tcp[i]);
		tcp[i] = half(connect_tcp());
	}
	say(tcp[N - 1], "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(read(tcp[N - 1], reply, sizeof reply - 1) > 0);
	assert_int_equal(memcmp(reply, "HTTP/1.1 200", 12), 0);
	say(other, "TP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(read(other, reply, sizeof reply - 1) > 0);
	assert_int_equal(memcmp(reply, "HTTP/1.1 200", 12), 0);
	close(other);
	for (int i = 0; i < N; i++) {
		close(tcp[i]);
		close(local[i]);
	}
	assert_int_equal(ask("GET /metrics"), 200);
	assert_has("gantry_admin_connections_closed_total{reason=\"room\"} ");
	assert_null(strstr(reply, "closed_total{reason=\"room\"} 0\n"));
}

static void
test_refusals(void **state)
{
	assert_int_equal(ask("GET /x"), 404);
	assert_has("{\"error\":\"no such page\"}\n");
	assert_has("Content-Type: application/json");
	assert_int_equal(ask("GET /status/"), 404);
	assert_int_equal(ask("GET /metricsx"), 404);
	assert_int_equal(ask("POST /status"), 405);
	assert_has("Allow: GET, HEAD");
	assert_int_equal(ask("DELETE /metrics"), 405);
	assert_int_equal(ask("BREW /metrics"), 405);
	assert_int_equal(ask("HEAD /livez"), 200);
	assert_null(strstr(reply, "status\":"));
	/* A query changes nothing. */
	assert_int_equal(ask("GET /livez?verbose"), 200);
	/* A body is read and forgotten. */
	assert_int_equal(ask("POST /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhallo\r\nGET /livez"), 405);
}

/* claim TM31: a name that a stranger's name server points at this machine; over the socket, and with no
 * name, nobody's page asks. */
static void
test_names(void **state)
{
	static const char *const pages[] = { "GET /", "GET /status", "GET /metrics", "GET /livez",
					     "POST /control/x" };
	static char domain[] = "s3.test";
	static struct conf_s3 s3 = { .domains = { domain }, .domain_nr = 1 };
	struct admin_params p = { .address = "127.0.0.1:0", .sa = &sa, .sa_len = sa_len, .s3 = &s3 };
	struct admin *first = admin;
	char err[256];

	host_name = "evil.example";
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		assert_int_equal(ask(pages[i]), 403);
		assert_has("{\"error\":\"Host: expected an address, localhost, or a name in s3.domain\"}");
		assert_int_not_equal(ask_on(connect_unix(), pages[i]), 403);
	}
	host_name = "gantry.s3.test:9001";
	assert_int_equal(ask("GET /livez"), 403);
	assert_int_equal(admin_start(&p, &env, &admin, err, sizeof err), 0);
	assert_int_equal(ask("GET /livez"), 200);
	admin_stop(admin);
	/* Where others reach it, any name may be the right one. */
	assert_int_equal(start(&admin, "0.0.0.0:0", NULL, err), 0);
	assert_int_equal(ask("GET /livez"), 200);
	admin_stop(admin);
	admin = first;
	host_name = "127.0.0.1:9001";
	assert_int_equal(ask("GET /livez"), 200);
	host_name = "localhost";
	assert_int_equal(ask("GET /livez"), 200);
}

static void
test_unix_socket(void **state)
{
	struct admin *second = NULL;
	char err[256], stale[96];
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	assert_int_equal(stat(socket_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ask_on(connect_unix(), "GET /livez"), 200);
	/* Somebody listens there. */
	assert_int_equal(start(&second, NULL, socket_path, err), -EADDRINUSE);
	assert_non_null(strstr(err, socket_path));
	assert_int_equal(ask_on(connect_unix(), "GET /livez"), 200);
	/* Nobody does any more. */
	snprintf(stale, sizeof stale, "%s/stale", dir);
	strcpy(un.sun_path, stale);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
	close(fd);
	assert_int_equal(start(&second, NULL, stale, err), 0);
	assert_int_equal(admin_port(second), 0);
	admin_stop(second);
	assert_int_equal(access(stale, F_OK), -1);
	/* A file is no socket of ours. */
	fd = open(stale, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(start(&second, NULL, stale, err), -EADDRINUSE);
	assert_int_equal(unlink(stale), 0);
	snprintf(stale, sizeof stale, "%s/none/admin.sock", dir);
	assert_int_equal(start(&second, NULL, stale, err), -ENOENT);
}

static void
test_port_taken(void **state)
{
	struct admin *second = NULL;
	char address[32], err[256];

	snprintf(address, sizeof address, "127.0.0.1:%d", admin_port(admin));
	assert_int_equal(start(&second, address, NULL, err), -EADDRINUSE);
	assert_non_null(strstr(err, address));
	assert_int_equal(start(&second, "192.0.2.1:0", NULL, err), -EADDRNOTAVAIL);
	admin_stop(NULL);
}

/* Silent and half-said requests hold nobody up, and stopping does not wait for them. */
static void
test_silent_clients(void **state)
{
	int fds[40];

	for (int i = 0; i < 40; i++) {
		fds[i] = connect_tcp();
		if (i % 2)
			assert_true(write(fds[i], "GET /live", 9) == 9);
	}
	assert_int_equal(ask("GET /livez"), 200);
	admin_stop(admin);
	for (int i = 0; i < 40; i++)
		close(fds[i]);
	char err[256];
	assert_int_equal(start(&admin, "127.0.0.1:0", socket_path, err), 0);
}

static void *
ask_often(void *arg)
{
	int *port = arg;

	for (int i = 0; i < 50; i++) {
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)*port) };
		char buf[4096];
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (connect(fd, (struct sockaddr *)&in, sizeof in) < 0 ||
		    write(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 60) !=
			    60 ||
		    read(fd, buf, sizeof buf) < 12 || memcmp(buf, "HTTP/1.1 200", 12) != 0)
			*port = -1;
		close(fd);
	}
	return NULL;
}

static void
test_many_clients(void **state)
{
	pthread_t thread[4];
	int port[4];

	for (int i = 0; i < 4; i++) {
		port[i] = admin_port(admin);
		assert_int_equal(pthread_create(&thread[i], NULL, ask_often, &port[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4; i++)
		assert_true(port[i] > 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_health),     T(test_mutes),          T(test_stuck_core),   T(test_pages),
		T(test_page),       T(test_refusals),       T(test_names),        T(test_unix_socket),
		T(test_port_taken), T(test_silent_clients), T(test_many_clients), T(test_crowd),
		T(test_lanes),      T(test_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
