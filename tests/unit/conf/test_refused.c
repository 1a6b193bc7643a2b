/* SPDX-License-Identifier: Apache-2.0 */
/* conf_load(): every kind of thing an operator can write wrongly, and how he is told. */
#include "rig.h"

static void
test_listeners_clash(void **state)
{
	static const char *const pairs[][2] = {
		{ "127.0.0.1:9000", "127.0.0.1:9000" },
		{ "127.0.0.1:9000", "*:9000" },
		{ "0.0.0.0:9000", "127.0.0.1:9000" },
		{ "*:9000", "0.0.0.0:9000" },
		{ "[::]:9000", "*:9000" },
		{ "[::]:9000", "[::]:9000" },
		{ "[::1]:9000", "[::]:9000" },
		{ "[::1]:9000", "*:9000" },
		{ "[::ffff:127.0.0.1]:9000", "127.0.0.1:9000" },
		{ "127.0.0.1:9001", "127.0.0.2:1" }, /* with the admin's */
	};
	static const char *const fine[][2] = {
		{ "127.0.0.1:9000", "127.0.0.2:9000" }, { "127.0.0.1:0", "127.0.0.1:0" },
		{ "0.0.0.0:9000", "[::1]:9000" },       { "0.0.0.0:9000", "[::]:9000" },
		{ "[::]:9000", "127.0.0.1:9000" },      { "127.0.0.2:9001", "127.0.0.3:9001" },
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

static void
test_scalars_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "rdma: { traffic_class: 256 }",
		  "rdma.traffic_class: expected an integer from 0 to 255, or auto, not \"256\"" },
		{ "rdma: { retry_cnt: 8 }", "rdma.retry_cnt: expected an integer from 0 to 7, not \"8\"" },
		{ "rdma: { rnr_retry: -1 }", "rdma.rnr_retry: expected an integer from 0 to 7" },
		{ "rdma: { hop_limit: 0 }", "rdma.hop_limit: expected" },
		{ "rdma: { timeout: 32 }", "rdma.timeout: expected" },
		{ "rdma: { max_rd_atomic: 256 }",
		  "rdma.max_rd_atomic: expected an integer from 1 to 255, or auto" },
		{ "rdma: { paths: 0 }", "rdma.paths: expected an integer from 1 to 16, or auto" },
		{ "rdma: { relaxed_ordering: yes }", "rdma.relaxed_ordering: expected one of auto, on, off" },
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
		{ "rdma: { delay_interval: 5 }",
		  "rdma.delay_interval: expected a time (ns us ms s m h d) from 0ns to 1ms, not \"5\"\n" },
		{ "limits: { idle: 8 }", "not \"8\"; did you mean 8s?" },
		{ "rdma: { linger: 2s }", "rdma.linger: expected a time (ns us ms s m h d) from 0ns to 1s" },
		{ "rdma: { linger: 1.0000000001s }", "rdma.linger: expected" },
		{ "rdma: { meta_token: maybe }", "rdma.meta_token: expected true or false, not \"maybe\"" },
		{ "rdma: { in_flight: 2MB }",
		  "rdma.in_flight: expected a size (bytes, or KiB MiB GiB TiB) from "
		  "64KiB to 1GiB, not \"2MB\"; did you mean 2MiB?" },
		{ "rdma: { in_flight: 512m }", "not \"512m\"; did you mean 512MiB?" },
		{ "rdma: { in_flight: 1Gib }", "not \"1Gib\"; did you mean 1GiB?" },
		{ "rdma: { in_flight: 100 K }", "not \"100 K\"; did you mean 100KiB?" },
		{ "limits: { idle: 1w }", "not \"1w\"" },
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
		{ "rdma: { allow: [ 10.1.2.3/8 ] }",
		  "rdma.allow: the address has bits set after the block's length: write 10.0.0.0/8" },
		{ "rdma: { allow: [ routed, 'fd00::1/64' ] }",
		  "rdma.allow: the address has bits set after the block's length: write fd00::/64" },
		{ "rdma: { allow: [ everybody ] }", "or routed, not \"everybody\"" },
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
		{ "limits: { pieces_per_request: 17 }",
		  "limits.pieces_per_request: expected an integer from 1 to 16, not \"17\"" },
		{ "cores: 0", "cores: expected auto, a number of threads" },
		{ "cores: 257", "cores: expected auto, a number of threads" },
		{ "cores: [0, 0]", "cores: CPU 0 is named twice" },
		{ "cores: [x]", "cores: expected a CPU number" },
		{ "cores: [4000]", "cores: CPU 4000 does not exist" },
		{ "memory: { buffers: 100TiB }", "memory.buffers: expected a size" },
		{ "memory: { buffers: 4TiB }", "memory.buffers: too large for" },
		{ "memory: { index: 64TiB }", "memory.index: buffers, http_buffers, index and replay are" },
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
		{ "rdma: { max_sge: 1 }", ":3:9: rdma.max_sge: this key was removed: a work request of this "
					  "daemon has one scatter entry; "
					  "delete the line" },
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
	assert_refused("rdma:\n\tdc_key: 1\n",
		       "gantryd.yaml:2:1: not valid YAML: a tab; YAML is indented with blanks");
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
	assert_refused(GOOD_LISTEN "store: { disks: [{ path: a }, { path: b }], min_disks: 3 }\n",
		       "store.min_disks: is 3, and there are 2 disks");
	assert_good(GOOD_LISTEN "store: { disks: [{ path: a }, { path: b }], min_disks: 2 }\n");
	assert_good(GOOD_LISTEN "store: { accept_missing: [1b4e28ba-2fa1-11d2-883f-0016d3cca427], "
				"disks: [{ path: a }, { path: b }], min_disks: 3 }\n");
	assert_refused("# nothing\n", "store.disks: missing");
	/* A section whose keys are all commented out is empty, not wrong. */
	assert_good(GOOD_LISTEN GOOD_DISK "rdma:\n#  dc_key: 1\nlog: ~\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_listeners_clash),     T(test_scalars_refused), T(test_keys_refused),
		T(test_all_errors_are_told), T(test_too_many_errors), T(test_not_yaml),
	};

	forget_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
