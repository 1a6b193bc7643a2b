/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration files of cuObject and cuFile, and the arguments before them. */
#include "client/client_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[64];

static int
parse(const char *text, struct config *c, char *err)
{
	*c = (struct config){ .dc_key = DEFAULT_DC_KEY };
	return config_parse(text, strlen(text), c, err, 200);
}

static const char *
file(const char *name, const char *text)
{
	static char path[4][128];
	static int turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", dir, name);
	FILE *f = fopen(p, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return p;
}

/* item 117: the keys of section 6, with comments as the shipped file has them */
static void
reads_cufile_json(void **state)
{
	static const char text[] = "{\n"
				   "  // NOTE : a comment\n"
				   "  \"logging\": { \"level\": \"ERROR\" /* another */ },\n"
				   "  \"properties\": {\n"
				   "    \"max_direct_io_size_kb\" : 16384,\n"
				   "    \"use_pci_p2pdma\": false, \"allow_compat_mode\": true,\n"
				   "    \"rdma_dev_addr_list\": [ \"192.168.0.1\", \"mlx5_1\" , ],\n"
				   "    \"rdma_load_balancing_policy\": \"RoundRobin\",\n"
				   "    \"rdma_access_mask\": \"0x1f\", \"rdma_peer_type\": 0,\n"
				   "    # and a third kind\n"
				   "    \"rdma_dc_key\": \"0xffeeddcd\",\n"
				   "  },\n"
				   "  \"fs\": { \"generic\": { \"posix_unaligned_writes\" : false } }\n"
				   "}\n";
	struct config c;
	char err[200];

	assert_int_equal(parse(text, &c, err), 0);
	assert_int_equal(c.device_nr, 2);
	assert_string_equal(c.device[0], "192.168.0.1");
	assert_string_equal(c.device[1], "mlx5_1");
	assert_true(c.has_dc_key);
	assert_int_equal(c.dc_key, 0xffeeddcd);
	/* A number without quotes, and one that is not there. */
	assert_int_equal(parse("{\"rdma_dc_key\": 4293844428}", &c, err), 0);
	assert_int_equal(c.dc_key, 0xffeeddcc);
	assert_int_equal(parse("\xef\xbb\xbf{}", &c, err), 0);
	assert_false(c.has_dc_key);
	assert_int_equal(c.dc_key, 0xffeeddcc); /* item 25 */
}

static void
reads_a_transport(void **state)
{
	static const struct {
		const char *text;
		enum gantry_transport asked, want;
	} row[] = {
		{ "{}", GANTRY_TRANSPORT_AUTO, GANTRY_TRANSPORT_AUTO },
		{ "{}", GANTRY_TRANSPORT_RC, GANTRY_TRANSPORT_RC },
		{ "{\"rdma_transport\": \"rc\"}", GANTRY_TRANSPORT_AUTO, GANTRY_TRANSPORT_RC },
		{ "{\"rdma_transport\": \"dc\"}", GANTRY_TRANSPORT_RC, GANTRY_TRANSPORT_RC },
		{ "{\"rdma_transport\": \"auto\"}", GANTRY_TRANSPORT_DC, GANTRY_TRANSPORT_DC },
	};
	struct gantry_options o = { .size = sizeof o };
	struct config c;
	char err[200];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		o.config_file = file("transport.json", row[i].text);
		o.transport = row[i].asked;
		assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
		assert_int_equal(c.transport, row[i].want);
	}
	o.transport = (enum gantry_transport)3;
	assert_int_equal(config_load(&o, &c, err, sizeof err), -EINVAL);
	assert_string_equal(err, "unknown transport 3");
	o = (struct gantry_options){ .size = sizeof o,
				     .dialect = GANTRY_SCALITY,
				     .config_file = "",
				     .transport = GANTRY_TRANSPORT_RC };
	assert_int_equal(config_load(&o, &c, err, sizeof err), -EINVAL);
	assert_string_equal(err, "the scality dialect has no RC");
	assert_int_equal(parse("{\"rdma_transport\": \"ib\"}", &c, err), -EINVAL);
	assert_string_equal(err, "rdma_transport is not auto, dc or rc");
	assert_int_equal(parse("{\"rdma_transport\": 2}", &c, err), -EINVAL);
}

static void
refuses_what_is_not_json(void **state)
{
	static const struct {
		const char *text, *say;
	} row[] = {
		{ "", "empty" },
		{ "{", "not closed" },
		{ "{ \"a\": 1 ", "not closed" },
		{ "{ \"a\" 1 }", "':'" },
		{ "{ \"a\": 1 \"b\": 2 }", "','" },
		{ "{ a: 1 }", "key" },
		{ "{ \"a\": \"x }", "does not end" },
		{ "{ \"a\": \"\\q\" }", "escape" },
		{ "{ \"a\": \"\\u00g0\" }", "escape" },
		{ "{ \"a\": \"\\u0000\" }", "NUL" },
		{ "{ \"a\": nope }", "value" },
		{ "{ \"a\": }", "value" },
		{ "{} {}", "follows" },
		{ "[1,]]", "follows" },
		{ "{ /* }", "comment" },
		{ "{ \"rdma_dc_key\": \"abc\" }", "rdma_dc_key" },
		{ "{ \"rdma_dc_key\": -1 }", "rdma_dc_key" },
		{ "{ \"rdma_dc_key\": \" -1\" }", "rdma_dc_key" },
		{ "{ \"rdma_dc_key\": \"+1\" }", "rdma_dc_key" },
		{ "{ \"rdma_dc_key\": true }", "rdma_dc_key" },
	};
	struct config c;
	char err[200], deep[256];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		assert_int_equal(parse(row[i].text, &c, err), -EINVAL);
		if (!strstr(err, row[i].say))
			fail_msg("%s: \"%s\" lacks \"%s\"", row[i].text, err, row[i].say);
	}
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	assert_int_equal(parse(deep, &c, err), -EINVAL);
	assert_non_null(strstr(err, "deep"));
	assert_int_equal(parse("{\n\n \"a\": ? }", &c, err), -EINVAL);
	assert_non_null(strstr(err, "line 3"));
}

struct seen {
	char text[200];
};

static int
collect(void *cookie, const char *key, enum json_type type, const char *text, size_t len)
{
	struct seen *s = cookie;
	size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof s->text - n, "%s=%d:%s;", key, (int)type, text);
	return 0;
}

static void
reports_scalars_with_their_key(void **state)
{
	static const char text[] =
		"{\"a\":[1,{\"b\":\"x\\n\\u00e4\\\"\"},2],\"c\":null,\"d\":{\"e\":-1.5e3},\"f\":true}";
	struct seen s = { "" };
	const char *why;
	int line;

	assert_int_equal(json_parse(text, strlen(text), collect, &s, &line, &why), 0);
	assert_string_equal(s.text, "a=1:1;b=0:x\n\xc3\xa4\";a=1:2;c=4:null;e=1:-1.5e3;f=2:true;");
}

/* item 117: which file is read */
static void
chooses_the_file(void **state)
{
	struct gantry_options o = { 0 };
	struct config c;
	char err[512];

	setenv("CUFILE_ENV_PATH_JSON",
	       file("cufile.json", "{\"rdma_dc_key\": 1, \"rdma_dev_addr_list\": [\"a\"]}"), 1);
	unsetenv("CUOBJ_ENV_PATH_JSON");
	if (access("/etc/cuobj.json", F_OK) != 0) {
		assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
		assert_int_equal(c.dc_key, 1);
	}
	/* cuobj.json comes first; an empty variable is none. */
	setenv("CUOBJ_ENV_PATH_JSON", file("cuobj.json", "{\"rdma_dc_key\": \"2\"}"), 1);
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.dc_key, 2);
	assert_int_equal(c.device_nr, 0); /* in its place, not on top */
	/* A file that is named must be there. */
	setenv("CUOBJ_ENV_PATH_JSON", "/nonexistent/cuobj.json", 1);
	assert_int_equal(config_load(&o, &c, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "/nonexistent/cuobj.json"));
	/* Arguments win; "" reads no file. */
	o.config_file = "";
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.dc_key, DEFAULT_DC_KEY);
	o.config_file = file("own.json", "{\"rdma_dc_key\": 3, \"rdma_dev_addr_list\": [\"a\", \"b\"]}");
	o.dc_key = "0x44";
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.dc_key, 0x44);
	assert_int_equal(c.device_nr, 2);
	o.device = "mlx5_0, 10.0.0.5";
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.device_nr, 2);
	assert_string_equal(c.device[1], "10.0.0.5");
	o.device = "auto";
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.device_nr, 0);
	o.dc_key = "12x";
	assert_int_equal(config_load(&o, &c, err, sizeof err), -EINVAL);
	assert_non_null(strstr(err, "12x"));
}

static int
setup(void **state)
{
	snprintf(dir, sizeof dir, "/tmp/gantry-config.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
	static const char *const name[] = { "cufile.json", "cuobj.json", "own.json" };
	char path[128];

	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, name[i]);
		unlink(path);
	}
	rmdir(dir);
	return 0;
}

/* How packets are marked: from the file, over it from the options. */
static void
marks(void **state)
{
	struct gantry_options o = { .size = sizeof o };
	struct config c;
	char err[200];

	assert_int_equal(parse("{\"rdma_traffic_class\": 0, \"rdma_service_level\": \"3\", "
			       "\"rdma_path_mtu\": 1024, \"rdma_pkey_index\": 7}",
			       &c, err),
			 0);
	assert_int_equal(c.traffic_class, 0);
	assert_int_equal(c.service_level, 3);
	assert_int_equal(c.path_mtu, 1024);
	assert_int_equal(c.pkey_index, 7);
	assert_int_equal(parse("{\"rdma_traffic_class\": 256}", &c, err), -EINVAL);
	assert_string_equal(err, "rdma_traffic_class 256: 0 to 255");
	assert_int_equal(parse("{\"rdma_path_mtu\": 9000}", &c, err), -EINVAL);
	assert_string_equal(err, "rdma_path_mtu 9000: 256 to 4096, a power of two");
	assert_int_equal(parse("{\"rdma_service_level\": \"high\"}", &c, err), -EINVAL);
	assert_string_equal(err, "rdma_service_level is not a number");
	o.config_file = "";
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.traffic_class, -1);
	assert_int_equal(c.path_mtu, 0);
	o.config_file = file("marks.json", "{\"rdma_traffic_class\": 104, \"rdma_service_level\": 5}");
	o.traffic_class = 106;
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.traffic_class, 106);
	assert_int_equal(c.service_level, 5);
	o.traffic_class = GANTRY_TRAFFIC_CLASS_0;
	o.service_level = 16;
	assert_int_equal(config_load(&o, &c, err, sizeof err), -EINVAL);
	assert_string_equal(err, "rdma_service_level 16: 0 to 15");
	o.service_level = 0;
	assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
	assert_int_equal(c.traffic_class, 0);
}

/* What registers memory that CUDA knows. */
static void
dmabufs_may_be_switched_off(void **state)
{
	static const char *const off[] = { "0", "false", "No", "OFF" }, *const on[] = { "1", "true", "" };
	struct gantry_options o = { .size = sizeof o, .config_file = "" };
	struct config c = { 0 };
	char err[200];

	assert_int_equal(parse("{\"rdma_peer_type\": \"dmabuf\"}", &c, err), 0);
	assert_false(c.no_dmabuf);
	assert_int_equal(parse("{\"rdma_peer_type\": \"nvidia_peermem\"}", &c, err), 0);
	assert_true(c.no_dmabuf);
	for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
		setenv("CUFILE_DMABUF_ENABLE", off[i], 1);
		assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
		assert_true(c.no_dmabuf);
	}
	for (size_t i = 0; i < sizeof on / sizeof *on; i++) {
		setenv("CUFILE_DMABUF_ENABLE", on[i], 1);
		assert_int_equal(config_load(&o, &c, err, sizeof err), 0);
		assert_false(c.no_dmabuf);
	}
	unsetenv("CUFILE_DMABUF_ENABLE");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_cufile_json),
		cmocka_unit_test(marks),
		cmocka_unit_test(reads_a_transport),
		cmocka_unit_test(refuses_what_is_not_json),
		cmocka_unit_test(reports_scalars_with_their_key),
		cmocka_unit_test(chooses_the_file),
		cmocka_unit_test(dmabufs_may_be_switched_off),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
