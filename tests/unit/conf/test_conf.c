/* conf_load(): precedence, origins, and every kind of thing an operator can write wrongly. */
#include "conf/conf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD_LISTEN "listen: [{ address: \"127.0.0.1:0\", dialect: s3, anonymous: true }]\n"
#define GOOD_DISK "store: { disks: [{ path: /d0, size: 1GiB }] }\n"

static char dir[64], file[96];
static char *errors;
static struct conf *conf;

static int
setup(void **state)
{
	strcpy(dir, "/tmp/test_conf.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/gantryd.yaml", dir);
	conf = NULL;
	errors = NULL;
	return 0;
}

static int
teardown(void **state)
{
	char cmd[128];

	conf_free(conf);
	free(errors);
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
	return system(cmd) == 0 ? 0 : -1;
}

static void
write_file(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int
load_with(const struct conf_source *src)
{
	size_t len;
	FILE *err;
	int r;

	free(errors);
	errors = NULL;
	conf_free(conf);
	conf = NULL;
	err = open_memstream(&errors, &len);
	assert_non_null(err);
	r = conf_load(src, &conf, err);
	fclose(err);
	return r;
}

static int
load(const char *text)
{
	write_file("gantryd.yaml", text);
	return load_with(&(struct conf_source){ .file = file, .file_required = true });
}

static int
load_override(const char *text, const char *override)
{
	struct conf_override o = { override };

	write_file("gantryd.yaml", text);
	return load_with(&(struct conf_source){
		.file = file, .file_required = true, .overrides = &o, .override_nr = 1 });
}

/* The file must be refused, with `wanted` in what is said (behind the file's name). */
static void
assert_refused(const char *text, const char *wanted)
{
	int r = load(text);

	if (r != -EINVAL || !strstr(errors, wanted))
		fail_msg("wanted an error with \"%s\", got %d and \"%s\" from\n%s", wanted, r, errors, text);
}

static void
assert_good(const char *text)
{
	int r = load(text);

	if (r < 0 || *errors)
		fail_msg("refused: %s\n%s", errors, text);
}

static int
count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static char *
printed(void)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	conf_print(conf, f);
	fclose(f);
	return text;
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
	assert_int_equal(conf->rdma.max_sge, 10);
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

static void
test_listeners_clash(void **state)
{
	static const char *const pairs[][2] = {
		{ "127.0.0.1:9000", "127.0.0.1:9000" },
		{ "127.0.0.1:9000", "*:9000" },
		{ "0.0.0.0:9000", "127.0.0.1:9000" },
		{ "[::]:9000", "0.0.0.0:9000" },
		{ "[::1]:9000", "*:9000" },
		{ "[::ffff:127.0.0.1]:9000", "127.0.0.1:9000" },
		{ "127.0.0.1:9001", "127.0.0.2:1" }, /* with the admin's */
	};
	static const char *const fine[][2] = {
		{ "127.0.0.1:9000", "127.0.0.2:9000" },
		{ "127.0.0.1:0", "127.0.0.1:0" },
		{ "0.0.0.0:9000", "[::1]:9000" },
		{ "127.0.0.2:9001", "127.0.0.3:9001" },
	};
	char text[512];

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		snprintf(text, sizeof text,
			 "listen: [{ address: \"%s\", dialect: scality }, { address: \"%s\", dialect: "
			 "scality }]\n" GOOD_DISK,
			 pairs[i][0], pairs[i][1]);
		assert_refused(text, "clashes with");
	}
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		snprintf(text, sizeof text,
			 "listen: [{ address: \"%s\", dialect: scality }, { address: \"%s\", dialect: "
			 "scality }]\n" GOOD_DISK,
			 fine[i][0], fine[i][1]);
		assert_good(text);
	}
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
	assert_refused(GOOD_LISTEN GOOD_DISK "auth: { replay: once }\n", "auth.replay: expected one of off");
	assert_refused(GOOD_LISTEN GOOD_DISK "auth: { clock_skew: 0s }\n",
		       "auth.clock_skew: expected a time");
	assert_good(GOOD_LISTEN GOOD_DISK
		    "auth: { replay: reject, clock_skew: 5s, require_signed_headers: false }\n");
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
test_scalars_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "rdma: { traffic_class: 256 }",
		  "rdma.traffic_class: expected an integer from 0 to 255, not \"256\"" },
		{ "rdma: { retry_cnt: 8 }", "rdma.retry_cnt: expected an integer from 0 to 7, not \"8\"" },
		{ "rdma: { rnr_retry: -1 }", "rdma.rnr_retry: expected an integer from 0 to 7" },
		{ "rdma: { hop_limit: 0 }", "rdma.hop_limit: expected" },
		{ "rdma: { timeout: 32 }", "rdma.timeout: expected" },
		{ "rdma: { max_rd_atomic: 17 }",
		  "rdma.max_rd_atomic: expected an integer from 1 to 16, or auto" },
		{ "rdma: { path_mtu: 1500 }", "rdma.path_mtu: expected 256, 512" },
		{ "rdma: { channels: many }", "rdma.channels: expected an integer" },
		{ "rdma: { channels: 1e2 }", "rdma.channels: expected an integer" },
		{ "rdma: { channels: [1] }",
		  "rdma.channels: expected an integer from 1 to 32768, not a list" },
		{ "rdma: { channels: }", "rdma.channels: expected an integer from 1 to 32768, not nothing" },
		{ "rdma: { dc_key: 0xfffffffffffffffff }",
		  "rdma.dc_key: expected a number of at most 64 bits" },
		{ "rdma: { dc_key: 0x }", "rdma.dc_key: expected" },
		{ "rdma: { delay_mode: lazy }",
		  "rdma.delay_mode: expected one of none, batch, entry, adaptive" },
		{ "rdma: { delay_interval: 5 }", "rdma.delay_interval: expected a time (ns us ms s)" },
		{ "rdma: { linger: 2s }", "rdma.linger: expected a time (ns us ms s) from 0ns to 1s" },
		{ "rdma: { linger: 1.0000000001s }", "rdma.linger: expected" },
		{ "rdma: { meta_token: maybe }", "rdma.meta_token: expected true or false, not \"maybe\"" },
		{ "rdma: { in_flight: 2MB }", "rdma.in_flight: expected a size (bytes, or KiB MiB GiB TiB)" },
		{ "rdma: { in_flight: 2 MiB x }", "rdma.in_flight: expected a size" },
		{ "rdma: { in_flight: 99999999999999999999TiB }", "rdma.in_flight: expected a size" },
		{ "rdma: { in_flight: { } }", "rdma.in_flight: expected a size (bytes, or KiB MiB GiB TiB) "
					      "from 64KiB to 1GiB, not a map" },
		{ "s3: { domain: s3.test }", "s3.domain: expected a list of up to 16 domain names" },
		{ "s3: { domain: [\"s3.test:9000\"] }", "s3.domain: expected a domain name without a port" },
		{ "s3: { domain: [a..b] }", "s3.domain: expected a domain name without a port" },
		{ "s3: { domain: [a.b, A.b] }", "s3.domain: A.b is named twice" },
		{ "rdma: { allow: 10.0.0.0/8 }", "rdma.allow: expected a list of addresses or blocks" },
		{ "rdma: { allow: [ 10.0.0.0/33 ] }", "rdma.allow: expected an address or a block" },
		{ "rdma: { allow_special: [ multicast ] }",
		  "rdma.allow_special: expected a list of any of loopback, self, link_local" },
		{ "rdma: { devices: mlx5_0 }", "rdma.devices: expected auto, none, or a list" },
		{ "rdma: { devices: [] }", "rdma.devices: expected auto, none, or a list" },
		{ "rdma: { devices: [a, a] }", "rdma.devices: a is named twice" },
		{ "rdma: { devices: [ \"a b\" ] }", "rdma.devices: expected a device name" },
		{ "auth: { region: \"\" }", "auth.region: expected a text" },
		{ "auth: { region: \"a\\0b\" }", "auth.region: expected a text" },
		{ "log: { level: loud }", "log.level: expected one of error, warning, notice, info, debug" },
		{ "admin: { address: here }", "admin.address: expected an address and port" },
		{ "admin: 5", "admin: expected the keys of this section, not a value" },
		{ "admin: [ a ]", "admin: expected the keys of this section, not a list" },
		{ "limits: { idle: 0 }", "limits.idle: expected a time" },
		{ "cores: 0", "cores: expected auto, a number of threads" },
		{ "cores: 257", "cores: expected auto, a number of threads" },
		{ "cores: [0, 0]", "cores: CPU 0 is named twice" },
		{ "cores: [x]", "cores: expected a CPU number" },
		{ "cores: [4000]", "cores: CPU 4000 does not exist" },
		{ "memory: { buffers: 100TiB }", "memory.buffers: expected a size" },
		{ "memory: { buffers: 4TiB }", "memory.buffers: too large for" },
		{ "memory: { index: 64TiB }", "memory.index: buffers, http_buffers and index do not fit" },
		{ "cores: 1\nmemory: { buffers: 9MiB }",
		  "memory.buffers: too small for 1 cores; at least 10MiB" },
		{ "cores: 2\nmemory: { http_buffers: 2MiB }",
		  "memory.http_buffers: too small for 2 cores; at least 4MiB" },
		{ "[x]: 5", "expected a key" },
	};
	char text[512];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, GOOD_LISTEN GOOD_DISK "%s\n", bad[i][0]);
		assert_refused(text, bad[i][1]);
		assert_true(strstr(errors, "gantryd.yaml:3:") || strstr(errors, "gantryd.yaml:4:"));
		assert_int_equal(count(errors, "\n"), 1);
	}
}

static void
test_keys_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "rdma: { dckey: 1 }", ":3:9: rdma.dckey: unknown key; did you mean rdma.dc_key?" },
		{ "rmda: { dc_key: 1 }", ":3:1: rmda: unknown key; did you mean rdma?" },
		{ "rdma: { retries: 1 }", "rdma.retries: unknown key" },
		{ "limits: { retry_cnt: 1 }", "limits.retry_cnt: unknown key; did you mean rdma.retry_cnt?" },
		{ "dc_key: 1", "dc_key: unknown key; did you mean rdma.dc_key?" },
		{ "core: 1", "core: unknown key; did you mean cores?" },
		{ "rdma.dc_key: 1", "rdma.dc_key: unknown key; did you mean rdma.dc_key?" },
		{ "qwertzuiop: 1", "qwertzuiop: unknown key\n" },
		{ "rdma: { timeout: 3, timeout: 4 }", ":3:21: rdma.timeout: given twice; first in line 3" },
		{ "store: { lock_wait: 3s }", ":3:1: store: given twice; first in line 2" },
		{ "<<: { dc_key: 1 }", "<<: unknown key" },
	};
	char text[512];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, GOOD_LISTEN GOOD_DISK "%s\n", bad[i][0]);
		assert_refused(text, bad[i][1]);
	}
}

static void
test_all_errors_are_told(void **state)
{
	assert_refused("listen: [{ address: \"127.0.0.1:0\", dialect: s3 }]\n"
		       "rdma:\n  retry_cnt: 9\n  hop_limt: 3\n  devices: 5\n"
		       "auth: { region: \"\" }\n" GOOD_DISK,
		       "rdma.retry_cnt");
	assert_int_equal(count(errors, "\n"), 5);
	assert_non_null(strstr(errors, ":3:14: rdma.retry_cnt"));
	assert_non_null(strstr(errors, ":4:3: rdma.hop_limt: unknown key; did you mean rdma.hop_limit?"));
	assert_non_null(strstr(errors, "rdma.devices"));
	assert_non_null(strstr(errors, "listen[0].anonymous"));
	assert_non_null(strstr(errors, "auth.region"));
}

static void
test_too_many_errors(void **state)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs(GOOD_LISTEN GOOD_DISK "rdma:\n", f);
	for (int i = 0; i < 300; i++)
		fprintf(f, "  key%d: 1\n", i);
	fclose(f);
	assert_refused(text, "and 200 more errors");
	assert_int_equal(count(errors, "\n"), 101);
	free(text);
}

static void
test_not_yaml(void **state)
{
	assert_refused("listen: [ {\n", "not valid YAML");
	assert_refused("rdma:\n\tdc_key: 1\n", "gantryd.yaml:2:1: not valid YAML");
	assert_refused("rdma: *nothing\n", "not valid YAML");
	assert_refused("- 1\n", "expected sections");
	assert_refused("just words\n", "expected sections");
	assert_refused(GOOD_LISTEN "---\n" GOOD_DISK, "a second document");
	assert_refused("\xff\xfe\x00", "listen: missing");
	assert_refused("a: \xff\xff\n", "not valid text");
	/* Aliases: a circle, and one that grows without bound. */
	assert_refused("rdma: &a [ *a ]\n", "too large");
	assert_refused("a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		       "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
		       "too large");
	assert_refused("", "listen: missing");
	assert_refused("# nothing\n", "store.disks: missing");
	/* A section whose keys are all commented out is empty, not wrong. */
	assert_good(GOOD_LISTEN GOOD_DISK "rdma:\n#  dc_key: 1\nlog: ~\n");
}

static void
test_files(void **state)
{
	struct conf_source none = { .file = file, .file_required = true };
	char *big = malloc(2 << 20);

	assert_int_equal(load_with(&none), -EINVAL);
	assert_non_null(strstr(errors, "gantryd.yaml: cannot read it: No such file"));
	/* The default file may be missing; what it would have said is then missing. */
	none.file_required = false;
	assert_int_equal(load_with(&none), -EINVAL);
	assert_null(strstr(errors, "cannot read"));
	assert_non_null(strstr(errors, "listen: missing"));
	none.partial = true;
	assert_int_equal(load_with(&none), 0);

	memset(big, '#', (2 << 20) - 1);
	big[(2 << 20) - 1] = 0;
	assert_refused(big, "cannot read it: File too large");
	free(big);
	none.file = dir;
	none.file_required = true;
	assert_int_equal(load_with(&none), -EINVAL);
	assert_non_null(strstr(errors, "Is a directory"));
}

static void
test_devices_and_nets(void **state)
{
	struct in6_addr a;

	assert_good(GOOD_LISTEN GOOD_DISK
		    "rdma:\n  devices: [mlx5_0, \"mlx5_1:2\", 10.0.0.5, \"fe80::1\"]\n"
		    "  allow: [\"10.1.2.3/8\", fd00::/9, 192.168.1.7]\n  allow_special: [self, loopback]\n");
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
	assert_good(GOOD_LISTEN GOOD_DISK "rdma: { devices: none }\n");
	assert_int_equal(conf->rdma.mode, RDMA_NONE);
	assert_int_equal(conf->rdma.device_nr, 0);
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
	assert_refused(GOOD_LISTEN "store: { disks: [{ size: 1GiB }] }\n", "store.disks[0].path: missing");
	assert_refused(GOOD_LISTEN "store: { disks: [{ path: /a, size: 1MiB }] }\n",
		       "store.disks[0].size: expected a size (bytes, or KiB MiB GiB TiB) from 64MiB");
	assert_refused(GOOD_LISTEN "store: { disks: [{ path: /a }, { path: /a }] }\n",
		       "store.disks[1].path: is the same disk as store.disks[0]");
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

/* defaults < file < conf.d (in order) < environment < command line; each value knows where it came from. */
static void
test_precedence(void **state)
{
	char text[256], *out;

	snprintf(text, sizeof text, "%s/conf.d", dir);
	assert_int_equal(mkdir(text, 0700), 0);
	write_file("conf.d/20-b.yaml", "rdma: { hop_limit: 20, retry_cnt: 2, timeout: 12 }\n");
	write_file("conf.d/10-a.yaml", "rdma: { hop_limit: 10, poll_batch: 10 }\n");
	write_file("conf.d/readme.txt", "not yaml: [\n");
	setenv("GANTRY_RDMA_RETRY_CNT", "3", 1);
	setenv("GANTRY_RDMA_TIMEOUT", "13", 1);
	setenv("GANTRY_SOMETHING_ELSE", "1", 1);
	assert_int_equal(load_override(GOOD_LISTEN GOOD_DISK
				       "rdma: { hop_limit: 5, poll_batch: 5, max_sge: 5 }\n",
				       "rdma.timeout=14"),
			 0);
	assert_string_equal(errors, "");
	assert_int_equal(conf->rdma.max_sge, 5);
	assert_int_equal(conf->rdma.poll_batch, 10);
	assert_int_equal(conf->rdma.hop_limit, 20);
	assert_int_equal(conf->rdma.retry_cnt, 3);
	assert_int_equal(conf->rdma.timeout, 14);
	assert_int_equal(conf->rdma.traffic_class, 96);
	out = printed();
	assert_non_null(strstr(out, "  max_sge: 5  "));
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
		if (strstr(line, " max_sge:"))
			assert_non_null(strstr(line, "/gantryd.yaml:3"));
		if (strstr(line, " hop_limit:"))
			assert_non_null(strstr(line, "/conf.d/20-b.yaml:1"));
		if (strstr(line, " poll_batch:"))
			assert_non_null(strstr(line, "/conf.d/10-a.yaml:1"));
		if (strstr(line, " retry_cnt:"))
			assert_non_null(strstr(line, "# environment GANTRY_RDMA_RETRY_CNT"));
		if (strstr(line, " timeout:"))
			assert_non_null(strstr(line, "# option -o"));
		if (strstr(line, " traffic_class:"))
			assert_non_null(strstr(line, "# default"));
		if (strstr(line, " address: \"127.0.0.1:0\""))
			assert_non_null(strstr(line, "/gantryd.yaml:1"));
	}
	free(out);
	unsetenv("GANTRY_SOMETHING_ELSE");

	write_file("conf.d/30-bad.yaml", "rdma: { hop_limit: x }\n");
	setenv("GANTRY_RDMA_RETRY_CNT", "9", 1);
	setenv("GANTRY_RDMA_TIMEOUTT", "9", 1);
	assert_int_equal(load_override(GOOD_LISTEN GOOD_DISK, "rdma.poll_batch=0"), -EINVAL);
	assert_non_null(strstr(errors, "/conf.d/30-bad.yaml:1:20: rdma.hop_limit"));
	assert_non_null(strstr(errors, "environment GANTRY_RDMA_RETRY_CNT: rdma.retry_cnt: expected"));
	assert_non_null(strstr(
		errors,
		"environment GANTRY_RDMA_TIMEOUTT: rdma.timeoutt: unknown key; did you mean rdma.timeout?"));
	assert_non_null(strstr(errors, "option -o: rdma.poll_batch: expected"));
	unsetenv("GANTRY_RDMA_RETRY_CNT");
	unsetenv("GANTRY_RDMA_TIMEOUTT");
	unsetenv("GANTRY_RDMA_TIMEOUT");
}

static void
test_overrides(void **state)
{
	static const char base[] = GOOD_LISTEN GOOD_DISK;

	assert_int_equal(load_override(base, "rdma.devices=mlx5_0, mlx5_1"), 0);
	assert_int_equal(conf->rdma.device_nr, 2);
	assert_string_equal(conf->rdma.devices[1], "mlx5_1");
	assert_int_equal(load_override(base, "rdma.devices=none"), 0);
	assert_int_equal(conf->rdma.mode, RDMA_NONE);
	assert_int_equal(load_override(base, "rdma.allow=10.0.0.0/8,fd00::/8"), 0);
	assert_int_equal(conf->rdma.allow_nr, 2);
	assert_int_equal(load_override(base, "s3.domain=S3.test,b.test"), 0);
	assert_int_equal(conf->s3.domain_nr, 2);
	assert_string_equal(conf->s3.domains[0], "s3.test");
	assert_int_equal(load_override(base, "rdma.allow="), 0);
	assert_int_equal(conf->rdma.allow_nr, 0);
	assert_int_equal(load_override(base, "rdma.allow_special=[self, loopback]"), 0);
	assert_true(conf->rdma.allow_self);
	assert_int_equal(load_override(base, "cores=1"), 0);
	assert_int_equal(conf->core_nr, 1);
	assert_int_equal(load_override(base, "admin.address=none"), 0);
	assert_null(conf->admin.address);
	assert_int_equal(load_override(base, "admin.socket=/run/x.sock"), 0);
	assert_string_equal(conf->admin.socket, "/run/x.sock");
	assert_int_equal(load_override(base, "listen=[{address: \"*:80\", dialect: scality}]"), 0);
	assert_int_equal(conf->listen_nr, 1);
	assert_int_equal(conf->listen[0].dialect, DIALECT_SCALITY);
	assert_int_equal(load_override(base, "listen=["), -EINVAL);
	assert_non_null(strstr(errors, "option -o: not valid YAML"));
	assert_int_equal(load_override(base, "listen="), -EINVAL);
	assert_non_null(strstr(errors, "listen: expected a list of maps"));
	assert_int_equal(load_override(base, "rdma.dc_key"), -EINVAL);
	assert_non_null(strstr(errors, "option -o: expected section.key=value"));
	assert_int_equal(load_override(base, "rdma.dkey=1"), -EINVAL);
	assert_non_null(strstr(errors, "did you mean rdma.dc_key?"));
	assert_int_equal(load_override(base, "auth.region="), -EINVAL);
	assert_int_equal(load_override(base, "rdma.channels=auto"), -EINVAL);
}

/* What is printed can be read back and prints the same values; secrets are not shown. */
static void
test_print(void **state)
{
	char *first, *second, *p;

	assert_good("listen:\n  - { address: \"127.0.0.1:9000\", dialect: s3, anonymous: true }\n"
		    "  - { address: \"[::1]:9000\", dialect: scality, bucket: b-1, v1_prefix: true }\n"
		    "admin: { socket: \"/run/a \\\"b\\\\.sock\" }\n"
		    "cores: [0]\n"
		    "rdma: { devices: [mlx5_0], allow: [10.0.0.0/8, fd00::/8], allow_special: [self], "
		    "linger: 1500us }\n"
		    "store: { disks: [{ path: /d0 }, { path: /d1, size: 3GiB }] }\n");
	first = printed();
	assert_good(first);
	second = printed();
	for (char *text = first; text; text = text == first ? second : NULL) {
		for (p = text; (p = strstr(p, "# ")); p++)
			memset(p, ' ', strcspn(p, "\n"));
	}
	/* Origins moved their lines about; the values may not have changed. */
	for (char *a = first, *b = second; *a || *b;) {
		while (*a == ' ')
			a++;
		while (*b == ' ')
			b++;
		assert_int_equal(*a, *b);
		a += *a != 0;
		b += *b != 0;
	}
	assert_null(strstr(first, "credentials_file: /"));
	free(first);
	free(second);

	assert_good(GOOD_LISTEN GOOD_DISK "rdma: { dc_key: 0x5ec4e7 }\n");
	first = printed();
	assert_null(strstr(first, "5ec4e7"));
	assert_non_null(strstr(first, "dc_key: \"********\""));
	free(first);
	assert_good(GOOD_LISTEN GOOD_DISK);
	first = printed();
	assert_non_null(strstr(first, "dc_key: 0xffeeddcc"));
	free(first);
}

static void
test_table(void **state)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rows = 0;

	conf_print_table(f);
	fclose(f);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		assert_int_equal(count(line, "\t"), 4);
		assert_true(strstr(line, "\treload\t") || strstr(line, "\trestart\t"));
		rows++;
	}
	assert_true(rows > 50);
	free(text);
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
	struct in6_addr a;
	socklen_t len;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (conf_addr_parse(bad[i], &sa, &len) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof bad_nets / sizeof *bad_nets; i++) {
		if (conf_net_parse(bad_nets[i], &net) != -EINVAL)
			fail_msg("taken: %s", bad_nets[i]);
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

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memlock),
		T(test_defaults),
		T(test_listeners),
		T(test_listeners_clash),
		T(test_signatures),
		T(test_scalars),
		T(test_scalars_refused),
		T(test_keys_refused),
		T(test_all_errors_are_told),
		T(test_too_many_errors),
		T(test_not_yaml),
		T(test_files),
		T(test_devices_and_nets),
		T(test_disks),
		T(test_cores),
		T(test_precedence),
		T(test_overrides),
		T(test_print),
		T(test_table),
		T(test_addresses),
	};

	/* Whoever runs this may have set some of ours. */
	for (char **e = environ; *e;) {
		char name[128];

		snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
		if (strncmp(name, "GANTRY_", 7) == 0)
			unsetenv(name);
		else
			e++;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
