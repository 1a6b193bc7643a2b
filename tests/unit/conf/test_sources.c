/* SPDX-License-Identifier: Apache-2.0 */
/* conf_load(): files, the environment and the command line, which of them counts, and where a value came
 * from. */
#include "rig.h"

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
	write_file("conf.d/.hidden.yml", "not yaml: [\n");
	setenv("GANTRY_RDMA_RETRY_CNT", "3", 1);
	setenv("GANTRY_RDMA_TIMEOUT", "13", 1);
	setenv("GANTRY_SOMETHING_ELSE", "1", 1);
	assert_int_equal(load_override(GOOD_LISTEN GOOD_DISK
				       "rdma: { hop_limit: 5, poll_batch: 5, ah_cache: 50 }\n",
				       "rdma.timeout=14"),
			 0);
	assert_string_equal(errors, "");
	assert_int_equal(conf->rdma.ah_cache, 50);
	assert_int_equal(conf->rdma.poll_batch, 10);
	assert_int_equal(conf->rdma.hop_limit, 20);
	assert_int_equal(conf->rdma.retry_cnt, 3);
	assert_int_equal(conf->rdma.timeout, 14);
	assert_int_equal(conf->rdma.traffic_class, 96);
	out = printed();
	assert_non_null(strstr(out, "  ah_cache: 50  "));
	for (char *line = strtok(out, "\n"); line; line = strtok(NULL, "\n")) {
		if (strstr(line, " ah_cache:"))
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

	/* A name that is not quite right is named, and its file is not read; that is no error. */
	write_file("conf.d/40-site.yml", "rdma: { hop_limit: 40 }\n");
	write_file("conf.d/50-site.YAML", "rdma: { hop_limit: 50 }\n");
	assert_int_equal(load_override(GOOD_LISTEN GOOD_DISK, "rdma.timeout=14"), 0);
	assert_int_equal(conf->rdma.hop_limit, 20);
	assert_non_null(
		strstr(errors, "/conf.d/40-site.yml: not read: names of files in conf.d end with .yaml"));
	assert_non_null(strstr(errors, "/conf.d/50-site.YAML: not read"));
	assert_null(strstr(errors, "hidden"));

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
		const char *class = strrchr(line, '\t');

		assert_int_equal(count(line, "\t"), 5);
		assert_true(strcmp(class, "\tbasic") == 0 || strcmp(class, "\ttuning") == 0 ||
			    strcmp(class, "\ttest") == 0);
		assert_true(strncmp(line, "lifecycle.day\t", 14) != 0 || strcmp(class, "\ttest") == 0);
		assert_true(strstr(line, "\treload\t") || strstr(line, "\trestart\t"));
		rows++;
	}
	assert_true(rows > 50);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_files), T(test_precedence), T(test_overrides), T(test_print), T(test_table),
	};

	forget_environment();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
