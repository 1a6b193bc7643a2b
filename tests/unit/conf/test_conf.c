/* SPDX-License-Identifier: Apache-2.0 */
/* conf_load(): what the keys say, and what they are when nothing is said. */
#include "rig.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Buffers that cannot be locked are told before anything starts; to who only checks a file they are not. */
static void
test_memlock(void **state)
{
	static const struct conf_override devices[] = { { "rdma.devices=mlx5_0" },
							{ "memory.buffers=64MiB" } };
	struct conf_source src = { .file = "/nonexistent/gantryd.yaml",
				   .partial = true,
				   .starts = true,
				   .overrides = devices,
				   .override_nr = 2 };
	struct rlimit small = { 1 << 20, 1 << 20 };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char *text;
		size_t len;
		FILE *err = open_memstream(&text, &len);
		struct conf *c;
		int bad = 0;

		if (setrlimit(RLIMIT_MEMLOCK, &small) < 0 || (geteuid() == 0 && setuid(65534) < 0))
			_exit(2);
		bad |= conf_load(&src, &c, err) == 0;
		fflush(err);
		bad |= !strstr(text, "memory.buffers: 64MiB have to be locked");
		src.starts = false;
		bad |= conf_load(&src, &c, err) < 0;
		src.starts = true;
		src.override_nr = 0; /* auto: there may be no device */
		bad |= conf_load(&src, &c, err) < 0;
		_exit(bad);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* item 24: the settings of protocol.md 2.8 and 5, with their defaults. */
static void
test_defaults(void **state)
{
	assert_good(GOOD_LISTEN GOOD_DISK);
	assert_int_equal(conf->rdma.mode, RDMA_AUTO);
	assert_int_equal(conf->rdma.dc_key, 0xffeeddcc);
	assert_int_equal(conf->rdma.channels, 128);
	assert_int_equal(conf->rdma.cq_depth, 0);
	assert_int_equal(conf->rdma.max_sge, 0);
	assert_int_equal(conf->rdma.service_level, 0);
	assert_int_equal(conf->rdma.traffic_class, 96);
	assert_int_equal(conf->rdma.hop_limit, 64);
	assert_int_equal(conf->rdma.pkey_index, 0);
	assert_int_equal(conf->rdma.timeout, 16);
	assert_int_equal(conf->rdma.retry_cnt, 7);
	assert_int_equal(conf->rdma.rnr_retry, 7);
	assert_int_equal(conf->rdma.max_rd_atomic, 0);
	assert_int_equal(conf->rdma.path_mtu, 0);
	assert_int_equal(conf->rdma.delay_mode, DELAY_BATCH);
	assert_int_equal(conf->rdma.delay_interval_ns, 5000);
	assert_true(conf->rdma.qp_reset_on_failure);
	assert_int_equal(conf->rdma.poll_batch, 16);
	assert_int_equal(conf->rdma.linger_ns, 20000000);
	assert_int_equal(conf->rdma.inflight_bytes, 2 << 20);
	assert_int_equal(conf->rdma.allow_nr, 0);
	assert_int_equal(conf->rdma.bind_gid, BIND_GID_OFF);
	assert_false(conf->rdma.meta_token || conf->rdma.short_get_reject || conf->rdma.allow_loopback);
	assert_int_equal(conf->limits.connections, 4096);
	assert_int_equal(conf->limits.requests, 1024);
	assert_int_equal(conf->limits.pieces_per_request, 8);
	assert_int_equal(conf->limits.queue, 4096);
	assert_int_equal(conf->limits.s3_progress_ns, 8000000000);
	assert_int_equal(conf->limits.s3_total_ns, 8000000000);
	assert_int_equal(conf->limits.s3_rate, 256 << 20);
	assert_int_equal(conf->limits.scality_total_ns, 1500000000);
	assert_int_equal(conf->limits.idle_ns, 75000000000);
	assert_int_equal(conf->limits.drain_ns, 30000000000);
	assert_int_equal(conf->log.level, LOG_INFO);
	assert_int_equal(conf->log.format, LOG_AUTO);
	assert_true(conf->log.access);
	assert_string_equal(conf->auth.region, "us-east-1");
	assert_null(conf->auth.credentials_file);
	assert_string_equal(conf->admin.address, "127.0.0.1:9001");
	assert_null(conf->admin.socket);
	assert_true(conf->core_nr >= 1 && conf->pin);
	assert_true(conf->memory.buffers_bytes >= 512 << 20);
	assert_int_equal(conf->store.disks[0].size_bytes, 1 << 30);
}

static void
test_listeners(void **state)
{
	assert_good("listen:\n"
		    "  - { address: \"127.0.0.1:9000\", dialect: s3, anonymous: yes }\n"
		    "  - address: \"[::1]:10000\"\n"
		    "    dialect: scality\n"
		    "    v1_prefix: on\n"
		    "    decode: off\n"
		    "    delete_404: true\n"
		    "  - { address: \"*:10001\", dialect: scality, bucket: other }\n" GOOD_DISK);
	assert_int_equal(conf->listen_nr, 3);
	assert_int_equal(conf->listen[0].dialect, DIALECT_S3);
	assert_true(conf->listen[0].anonymous);
	assert_int_equal(ntohs(((struct sockaddr_in *)&conf->listen[0].sa)->sin_port), 9000);
	assert_int_equal(conf->listen[1].sa.ss_family, AF_INET6);
	assert_string_equal(conf->listen[1].bucket, ".scality");
	assert_true(conf->listen[1].v1_prefix && !conf->listen[1].decode && conf->listen[1].delete_404);
	assert_string_equal(conf->listen[2].bucket, "other");
	assert_true(conf->listen[2].decode);

	assert_refused(GOOD_DISK, "listen: missing");
	assert_refused("listen: []\n" GOOD_DISK, "listen: missing");
	assert_refused("listen: 5\n" GOOD_DISK,
		       "gantryd.yaml:1:9: listen: expected a list of maps, each a listener");
	assert_refused("listen: [ 7 ]\n" GOOD_DISK, ":1:11: listen[0]: expected a map");
	assert_refused("listen: [{ dialect: scality }]\n" GOOD_DISK, "listen[0].address: missing");
	assert_refused("listen: [{ address: \"1.2.3.4:5\" }]\n" GOOD_DISK, "listen[0].dialect: missing");
	assert_refused("listen: [{ address: \"1.2.3.4\", dialect: scality }]\n" GOOD_DISK,
		       ":1:21: listen[0].address: expected an address and port");
	assert_refused("listen: [{ address: \"1.2.3.4:5\", dialect: swift }]\n" GOOD_DISK,
		       "listen[0].dialect: expected one of s3, scality, not \"swift\"");
	assert_refused("listen: [{ address: \"1.2.3.4:5\", dialect: s3, anonymos: true }]\n" GOOD_DISK,
		       ":1:47: listen[0].anonymos: unknown key; did you mean anonymous?");
	assert_refused(
		"listen: [{ address: \"1.2.3.4:5\", dialect: s3, anonymous: true, bucket: x }]\n" GOOD_DISK,
		"listen[0].bucket: only a listener of dialect scality");
	assert_refused("listen: [{ address: \"1.2.3.4:5\", dialect: scality, anonymous: true }]\n" GOOD_DISK,
		       "listen[0].anonymous: only a listener of dialect s3");
	assert_refused("listen: [{ address: \"1.2.3.4:5\", dialect: s3, dialect: s3 }]\n" GOOD_DISK,
		       "listen[0].dialect: given twice");
	assert_refused("listen: [{ address: \"1.2.3.4:5\", dialect: scality, bucket: A/b }]\n" GOOD_DISK,
		       "listen[0].bucket: expected a bucket's name");
}

/* Who is told of a decline by a 2xx: never everybody. */
static void
test_decline_rules(void **state)
{
	const struct conf_decline_rule *r;

	assert_good(GOOD_LISTEN GOOD_DISK);
	assert_int_equal(conf->rdma.decline_2xx_nr, 0);
	assert_good(
		"listen: [{ address: \"127.0.0.1:9\", dialect: s3, anonymous: true }]\n" GOOD_DISK "rdma:\n"
		"  decline_2xx:\n"
		"    - user_agent: \"CRT/\"\n"
		"    - { header: x-rdma-info, access_key: AK, listen: \"127.0.0.1:9\", user_agent: none }\n"
		"    - { header: x-cuobj-rdma-descr, access_key: AK }\n");
	r = conf->rdma.decline_2xx;
	assert_int_equal(conf->rdma.decline_2xx_nr, 3);
	assert_int_equal(r[0].header, TOKEN_HEADER_AMZ);
	assert_string_equal(r[0].user_agent, "CRT/");
	assert_true(!r[0].access_key && !r[0].listen && !r[1].user_agent);
	assert_int_equal(r[1].header, TOKEN_HEADER_INFO);
	assert_string_equal(r[1].listen, "127.0.0.1:9");
	assert_int_equal(r[2].header, TOKEN_HEADER_CUOBJ);
	assert_string_equal(conf_token_header[r[2].header], "x-cuobj-rdma-descr");

	assert_refused(GOOD_LISTEN GOOD_DISK "rdma: { decline_2xx: [{ header: x-rdma-info }] }\n",
		       "rdma.decline_2xx[0].header: a rule for everybody");
	assert_refused(GOOD_LISTEN GOOD_DISK "rdma: { decline_2xx: [{ access_key: none }] }\n",
		       "a rule for everybody; it needs an access_key, a listen or a user_agent");
	assert_refused(GOOD_LISTEN GOOD_DISK
		       "rdma: { decline_2xx: [{ header: x-scal-rdma, access_key: k }] }\n",
		       "rdma.decline_2xx[0].header: expected one of x-amz-rdma-token, x-rdma-info");
	assert_refused(GOOD_LISTEN GOOD_DISK "rdma: { decline_2xx: [{ listen: \"1.2.3.4:5\" }] }\n",
		       "rdma.decline_2xx[0].listen: there is no s3 listener with the address 1.2.3.4:5");
	assert_refused(GOOD_LISTEN GOOD_DISK "rdma: { decline_2xx: [{ useragent: x }] }\n",
		       "rdma.decline_2xx[0].useragent: unknown key; did you mean user_agent?");
	assert_refused(GOOD_LISTEN GOOD_DISK "rdma: { decline_2xx: x }\n",
		       "rdma.decline_2xx: expected a list of maps, each a rule");
}

/* Anonymous, or access keys, or both; never a listener that can serve nobody. */
static void
test_signatures(void **state)
{
	assert_refused("listen: [{ address: \"127.0.0.1:0\", dialect: s3 }]\n" GOOD_DISK,
		       "listen[0].anonymous: nobody could use this listener");
	assert_refused("listen: [{ address: \"127.0.0.1:0\", dialect: s3, anonymous: false }]\n" GOOD_DISK,
		       "gantryd.yaml:1:60: listen[0].anonymous: nobody could");
	assert_good("listen: [{ address: \"127.0.0.1:0\", dialect: s3 }]\n" GOOD_DISK
		    "auth: { credentials_file: /etc/gantry/credentials.yaml }\n");
	assert_good(GOOD_LISTEN GOOD_DISK "auth: { credentials_file: /etc/gantry/credentials.yaml }\n");
	assert_good(GOOD_LISTEN GOOD_DISK "auth: { credentials_file: none }\n");
	assert_refused(GOOD_LISTEN GOOD_DISK "auth: { region: \"a/b\" }\n", "auth.region: expected 1 to 63");
	assert_refused(GOOD_LISTEN GOOD_DISK "auth: { replay: twice }\n",
		       "auth.replay: expected one of off, peer, once, reject");
	assert_refused(GOOD_LISTEN GOOD_DISK "auth: { clock_skew: 0s }\n",
		       "auth.clock_skew: expected a time");
	assert_good(GOOD_LISTEN GOOD_DISK
		    "auth: { replay: reject, clock_skew: 5s, require_signed_headers: false }\n");
	assert_good(GOOD_LISTEN GOOD_DISK "auth: { replay: once }\nmemory: { replay: 1MiB }\n");
	assert_refused(GOOD_LISTEN GOOD_DISK "memory: { replay: 1023KiB }\n",
		       "memory.replay: expected a size");
}

static void
test_scalars(void **state)
{
	assert_good(GOOD_LISTEN GOOD_DISK "rdma:\n  dc_key: 0x123456789abcdef0\n  qp_reset_on_failure: no\n"
					  "  delay_mode: adaptive\n  delay_interval: 2us\n  linger: 0\n"
					  "  max_rd_atomic: 4\n  path_mtu: 2048\n  bind_gid: exact\n"
					  "  in_flight: 1.5MiB\n  cq_depth: \"4096\"\n"
					  "limits: { scality_total: 2.25s, idle: 5000ms, s3_rate: 1048576 }\n"
					  "log: { level: warning, format: json, access: off }\n");
	assert_true(conf->rdma.dc_key == 0x123456789abcdef0);
	assert_false(conf->rdma.qp_reset_on_failure);
	assert_int_equal(conf->rdma.delay_mode, DELAY_ADAPTIVE);
	assert_int_equal(conf->rdma.delay_interval_ns, 2000);
	assert_int_equal(conf->rdma.linger_ns, 0);
	assert_int_equal(conf->rdma.max_rd_atomic, 4);
	assert_int_equal(conf->rdma.path_mtu, 2048);
	assert_int_equal(conf->rdma.bind_gid, BIND_GID_EXACT);
	assert_int_equal(conf->rdma.inflight_bytes, 3 << 19);
	assert_int_equal(conf->rdma.cq_depth, 4096);
	assert_int_equal(conf->limits.scality_total_ns, 2250000000);
	assert_int_equal(conf->limits.idle_ns, 5000000000);
	assert_int_equal(conf->limits.s3_rate, 1 << 20);
	assert_int_equal(conf->log.level, LOG_WARN);
	assert_int_equal(conf->log.format, LOG_JSON);
	assert_false(conf->log.access);
}

static void
test_devices_and_nets(void **state)
{
	struct in6_addr a;

	assert_good(GOOD_LISTEN GOOD_DISK
		    "rdma:\n  devices: [mlx5_0, \"mlx5_1:2\", 10.0.0.5, \"fe80::1\"]\n"
		    "  allow: [10.0.0.0/8, fd00::/9, 192.168.1.7]\n  allow_special: [self, loopback]\n");
	assert_int_equal(conf->rdma.mode, RDMA_LIST);
	assert_int_equal(conf->rdma.device_nr, 4);
	assert_string_equal(conf->rdma.devices[1], "mlx5_1:2");
	assert_int_equal(conf->rdma.allow_nr, 3);
	assert_int_equal(conf->rdma.allow[0].prefix, 104);
	inet_pton(AF_INET6, "::ffff:10.255.0.1", &a);
	assert_true(conf_net_has(&conf->rdma.allow[0], &a));
	assert_false(conf_net_has(&conf->rdma.allow[1], &a));
	inet_pton(AF_INET6, "fd7f::1", &a);
	assert_true(conf_net_has(&conf->rdma.allow[1], &a));
	inet_pton(AF_INET6, "fd80::1", &a);
	assert_false(conf_net_has(&conf->rdma.allow[1], &a));
	assert_true(conf->rdma.allow_self && conf->rdma.allow_loopback && !conf->rdma.allow_link_local);
	assert_false(conf->rdma.allow_routed);
	assert_good(GOOD_LISTEN GOOD_DISK "rdma: { allow: [10.0.0.0/8, routed, fd00::/9] }\n");
	assert_int_equal(conf->rdma.allow_nr, 2);
	assert_int_equal(conf->rdma.allow[1].prefix, 9);
	assert_true(conf->rdma.allow_routed);
	assert_good(GOOD_LISTEN GOOD_DISK "rdma: { devices: none }\n");
	assert_int_equal(conf->rdma.mode, RDMA_NONE);
	assert_int_equal(conf->rdma.device_nr, 0);
}

/* Only a block of mapped addresses is printed as IPv4, not every one whose prefix is long. */
static void
test_nets_printed(void **state)
{
	char *text;

	assert_good(GOOD_LISTEN GOOD_DISK "rdma:\n  allow: [\"fd00::1\", \"fd00:1::/96\", "
					  "\"fd00:2::8000:0/97\", \"::fffe:10.0.0.0/104\",\n"
					  "    10.1.2.3, 10.1.0.0/16, 0.0.0.0/0, \"::ffff:10.0.0.0/104\", "
					  "\"::fffe:0:0/95\", \"::/0\"]\n");
	text = printed();
	assert_non_null(strstr(text, "allow: [\"fd00::1/128\", \"fd00:1::/96\", \"fd00:2::8000:0/97\", "
				     "\"::fffe:a00:0/104\", \"10.1.2.3/32\", \"10.1.0.0/16\", \"0.0.0.0/0\", "
				     "\"10.0.0.0/8\", \"::fffe:0:0/95\", \"::/0\"]"));
	free(text);
}

static void
test_disks(void **state)
{
	char text[512];

	assert_good(GOOD_LISTEN
		    "store: { lock_wait: 1s, disks: [{ path: /a, size: 64MiB }, { path: /b }] }\n");
	assert_int_equal(conf->store.disk_nr, 2);
	assert_int_equal(conf->store.disks[1].size_bytes, 0);
	assert_refused(GOOD_LISTEN "store: { disks: [] }\n", "store.disks: missing");
	/* A cluster takes their place. */
	assert_good(GOOD_LISTEN "store: { backend: rados }\n");
	assert_string_equal(conf->rados.meta_pool, "gantry.meta");
	assert_refused(GOOD_LISTEN "store: { backend: rados, disks: [{ path: /a }] }\n",
		       "store.disks: store.backend is rados");
	assert_refused(GOOD_LISTEN "store: { backend: rados }\nrados: { object_size: 2500KiB }\n",
		       "rados.object_size: must be a multiple of 1MiB");
	assert_refused(GOOD_LISTEN "store: { backend: rados, default_copies: 2 }\n",
		       "store.default_copies: is 2, and store.backend is rados");
	assert_refused(GOOD_LISTEN "store: { disks: [{ size: 1GiB }] }\n", "store.disks[0].path: missing");
	assert_refused(GOOD_LISTEN "store: { disks: [{ path: /a, size: 1MiB }] }\n",
		       "store.disks[0].size: expected a size (bytes, or KiB MiB GiB TiB) from 64MiB");
	assert_refused(GOOD_LISTEN "store: { disks: [{ path: /a }, { path: /a }] }\n",
		       "store.disks[1].path: /a is store.disks[0] already: take one of the "
		       "two off");
	snprintf(text, sizeof text, GOOD_LISTEN "store: { disks: [{ path: %s }, { path: %s/. }] }\n", dir,
		 dir);
	assert_refused(text, "store.disks[1].path: is the same disk");
}

static void
test_cores(void **state)
{
	assert_good(GOOD_LISTEN GOOD_DISK "cores: 1\n");
	assert_int_equal(conf->core_nr, 1);
	assert_true(conf->pin);
	assert_good(GOOD_LISTEN GOOD_DISK
		    "cores: 200\nmemory: { buffers: 3GiB, http_buffers: 800MiB, index: 64MiB }\n");
	assert_int_equal(conf->core_nr, 200);
	assert_true(!conf->pin || sysconf(_SC_NPROCESSORS_ONLN) >= 200);
	assert_good(GOOD_LISTEN GOOD_DISK "cores: auto\n");
	for (int i = 1; i < conf->core_nr; i++)
		assert_true(conf->cores[i] > conf->cores[i - 1]);
}

static void
test_addresses(void **state)
{
	static const char *const bad[] = { "",
					   ":",
					   "9000",
					   "1.2.3.4",
					   "1.2.3.4:",
					   "1.2.3.4:x",
					   "1.2.3.4:65536",
					   "1.2.3.4:-1",
					   "1.2.3:80",
					   "host:80",
					   "[1.2.3.4]:80",
					   "[::1:80",
					   "::1]:80",
					   "[]:80",
					   ":80",
					   "::1",
					   "1.2.3.4:000080",
					   "[::1]80",
					   "[::1%lo]:80" };
	static const char *const bad_nets[] = {
		"",         "/8",         "10.0.0.0/",          "10.0.0.0/x",  "10.0.0.0/33",
		"10.0.0/8", "fd00::/129", "::ffff:10.0.0.0/-1", "10.0.0.0/8/8"
	};
	struct sockaddr_storage sa;
	struct conf_net net;
	static const char *const wide[][2] = {
		{ "10.1.2.3/8", "write 10.0.0.0/8" },
		{ "10.0.0.1/31", "write 10.0.0.0/31" },
		{ "128.0.0.0/0", "write 0.0.0.0/0" },
		{ "10.0.128.0/16", "write 10.0.0.0/16" },
		{ "fd00::1/64", "write fd00::/64" },
		{ "fd80::/8", "write fd00::/8" },
		{ "::1/0", "write ::/0" },
		{ "::ffff:10.0.0.0/8", "write ::/8" },
		{ "::ffff:10.1.0.0/104", "write 10.0.0.0/8" },
		{ "fe80::1/127", "write fe80::/127" },
	};
	char why[CONF_NET_REFUSAL_MAX];
	struct in6_addr a;
	socklen_t len;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (conf_addr_parse(bad[i], &sa, &len) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof bad_nets / sizeof *bad_nets; i++) {
		if (conf_net_parse(bad_nets[i], &net) != -EINVAL)
			fail_msg("taken: %s", bad_nets[i]);
		assert_non_null(strstr(conf_net_refusal(bad_nets[i], why), "expected an address or a block"));
	}
	/* Claim TM75.  Bits after the length: it would be another block than it looks like. */
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
		if (conf_net_parse(wide[i][0], &net) != -ERANGE)
			fail_msg("taken: %s", wide[i][0]);
		if (!strstr(conf_net_refusal(wide[i][0], why), wide[i][1]))
			fail_msg("%s: %s", wide[i][0], why);
		assert_int_equal(conf_net_parse(wide[i][1] + strlen("write "), &net), 0);
	}
	assert_int_equal(conf_addr_parse("localhost:80", &sa, &len), 0);
	assert_int_equal(((struct sockaddr_in *)&sa)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	/* IPv6 with brackets and without. */
	assert_int_equal(conf_addr_parse("[fd00::1]:80", &sa, &len), 0);
	assert_int_equal(sa.ss_family, AF_INET6);
	assert_int_equal(len, sizeof(struct sockaddr_in6));
	assert_int_equal(conf_addr_parse("fd00::1:80", &sa, &len), 0);
	assert_int_equal(ntohs(((struct sockaddr_in6 *)&sa)->sin6_port), 80);
	assert_int_equal(((struct sockaddr_in6 *)&sa)->sin6_addr.s6_addr[15], 1);
	/* A block of everything, in either family. */
	inet_pton(AF_INET6, "::ffff:10.9.8.7", &a);
	assert_int_equal(conf_net_parse("0.0.0.0/0", &net), 0);
	assert_int_equal(net.prefix, 96);
	assert_true(conf_net_has(&net, &a));
	inet_pton(AF_INET6, "fe80::1", &a);
	assert_false(conf_net_has(&net, &a));
	assert_int_equal(conf_net_parse("::/0", &net), 0);
	assert_true(conf_net_has(&net, &a));
	assert_int_equal(conf_net_parse("fe80::1", &net), 0);
	assert_int_equal(net.prefix, 128);
	assert_true(conf_net_has(&net, &a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memlock),
		T(test_defaults),
		T(test_listeners),
		T(test_decline_rules),
		T(test_signatures),
		T(test_scalars),
		T(test_devices_and_nets),
		T(test_nets_printed),
		T(test_disks),
		T(test_cores),
		T(test_addresses),
	};

	forget_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
