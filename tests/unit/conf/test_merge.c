/* SPDX-License-Identifier: Apache-2.0 */
/* conf_merge(): what a reload takes over and what waits for a restart; and counted references. */
#include "conf/conf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char file[64], said[8192];

static struct conf *
load(const char *yaml)
{
	struct conf_source src = { .file = file, .file_required = true };
	struct conf *c = NULL;
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(yaml, f);
	fclose(f);
	assert_int_equal(conf_load(&src, &c, stderr), 0);
	return c;
}

static void
on_change(void *cookie, const char *path, const char *from, const char *to, bool applied)
{
	size_t n = strlen(said);

	snprintf(said + n, sizeof said - n, "%s %s: %s -> %s\n", applied ? "now" : "restart", path, from, to);
}

static struct conf *
merge(const struct conf *running, const char *yaml)
{
	struct conf *fresh = load(yaml);

	said[0] = 0;
	assert_int_equal(conf_merge(fresh, running, on_change, NULL), 0);
	return fresh;
}

#define BASE                                                                                                 \
	"listen:\n"                                                                                          \
	"  - { address: \"127.0.0.1:1\", dialect: s3, anonymous: true }\n"                                   \
	"  - { address: \"127.0.0.1:2\", dialect: scality, bucket: \"a.b\" }\n"                              \
	"store: { disks: [{ path: \"/x\\\"y\", size: 1GiB }] }\n"

static void
same(void **state)
{
	struct conf *a = load(BASE), *b = merge(a, BASE);

	assert_string_equal(said, "");
	conf_free(a);
	conf_free(b);
}

static void
applied(void **state)
{
	struct conf *a = load(BASE);
	struct conf *b = merge(a, BASE "limits: { s3_total: 3s, object: 1GiB, idle: 9s }\n"
				       "rdma: { allow: [10.0.0.0/8], linger: 1ms, bind_gid: exact }\n"
				       "log: { level: debug, levels: { rdma: error }, access: false }\n");

	assert_string_equal(said, "now rdma.linger: 20ms -> 1ms\n"
				  "now rdma.allow: [] -> [\"10.0.0.0/8\"]\n"
				  "now rdma.bind_gid: off -> exact\n"
				  "now limits.object: 5TiB -> 1GiB\n"
				  "now limits.idle: 75s -> 9s\n"
				  "now limits.s3_total: 8s -> 3s\n"
				  "now log.level: info -> debug\n"
				  "now log.levels: {} -> {rdma: error}\n"
				  "now log.access: true -> false\n");
	assert_int_equal(b->limits.s3_total_ns, 3000000000ull);
	assert_int_equal(b->rdma.allow_nr, 1);
	assert_int_equal(b->log.levels[log_module_find("rdma")], LOG_ERROR);
	assert_int_equal(b->log.levels[log_module_find("chan")], LOG_LEVEL_COMMON);
	conf_free(a);
	conf_free(b);
}

static void
kept(void **state)
{
	struct conf *a = load(BASE "rdma: { devices: [mlx5_7, \"10.0.0.5\"], dc_key: 0x1234 }\n"
				   "admin: { address: \"127.0.0.1:7\", socket: \"/a b\" }\ncores: 1\n");
	struct conf *b = merge(a, BASE "rdma: { devices: none, dc_key: 0x9999, channels: 7 }\n"
				       "admin: { address: none }\ncores: 2\nmemory: { buffers: 1GiB }\n");
	char *text, *want;
	size_t len;
	FILE *f;

	assert_non_null(strstr(said, "restart admin.address: \"127.0.0.1:7\" -> none\n"));
	assert_non_null(strstr(said, "restart admin.socket: \"/a b\" -> none\n"));
	assert_non_null(strstr(said, "restart rdma.devices: [\"mlx5_7\", \"10.0.0.5\"] -> none\n"));
	assert_non_null(strstr(said, "restart rdma.channels: 128 -> 7\n"));
	assert_non_null(strstr(said, "restart memory.buffers: 512MiB -> 1GiB\n"));
	assert_non_null(strstr(said, "restart cores: "));
	/* A secret is not said, but that it changed is. */
	assert_non_null(strstr(said, "restart rdma.dc_key: \"********\" -> \"********\"\n"));
	assert_int_equal(b->core_nr, 1);
	assert_int_equal(b->rdma.device_nr, 2);
	assert_int_equal(b->admin.sa_len, a->admin.sa_len);
	assert_memory_equal(&b->admin.sa, &a->admin.sa, sizeof a->admin.sa);
	/* All in all it is what runs, with where that came from. */
	f = open_memstream(&want, &len);
	conf_print(a, f);
	fclose(f);
	f = open_memstream(&text, &len);
	conf_print(b, f);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
	free(want);
	conf_free(a);
	conf_free(b);
}

/* A key of a list is changed only while the list's elements are the same ones. */
static void
lists(void **state)
{
	struct conf *a = load(BASE), *b;

	b = merge(a, "listen:\n"
		     "  - { address: \"127.0.0.1:1\", dialect: s3, anonymous: true }\n"
		     "  - { address: \"127.0.0.1:2\", dialect: scality, bucket: \"a.b\", delete_404: true }\n"
		     "store: { disks: [{ path: \"/x\\\"y\", size: 1GiB }] }\n");
	assert_string_equal(said, "now listen[1].delete_404: false -> true\n");
	assert_true(b->listen[1].delete_404);
	conf_free(b);
	b = merge(a, "listen:\n"
		     "  - { address: \"127.0.0.1:3\", dialect: s3, anonymous: true }\n"
		     "  - { address: \"127.0.0.1:2\", dialect: scality, bucket: \"a.b\", delete_404: true }\n"
		     "store: { disks: [{ path: \"/x\\\"y\", size: 1GiB }] }\n");
	assert_string_equal(said, "restart listen[0].address: \"127.0.0.1:1\" -> \"127.0.0.1:3\"\n"
				  "restart listen[1].delete_404: false -> true\n");
	assert_false(b->listen[1].delete_404);
	assert_string_equal(b->listen[0].address, "127.0.0.1:1");
	conf_free(b);
	b = merge(a, "listen: [{ address: \"127.0.0.1:2\", dialect: scality }]\n"
		     "store: { disks: [{ path: \"/z\" }] }\n");
	assert_non_null(strstr(said, "restart listen:  -> \n"));
	assert_non_null(strstr(said, "restart store.disks[0].path: \"/x\\\"y\" -> \"/z\"\n"));
	assert_int_equal(b->listen_nr, 2);
	assert_string_equal(b->listen[1].bucket, "a.b");
	assert_string_equal(b->store.disks[0].path, "/x\"y");
	assert_int_equal(b->store.disks[0].size_bytes, 1ull << 30);
	conf_free(b);
	/* TLS comes and goes with a restart alone; another file is fine. */
	b = merge(a, "listen:\n"
		     "  - { address: \"127.0.0.1:1\", dialect: s3, anonymous: true, tls_certificate: \"/c\","
		     " tls_key: \"/k\" }\n"
		     "  - { address: \"127.0.0.1:2\", dialect: scality, bucket: \"a.b\" }\n"
		     "store: { disks: [{ path: \"/x\\\"y\", size: 1GiB }] }\n");
	assert_non_null(strstr(said, "restart listen[0].tls_certificate"));
	assert_null(b->listen[0].tls_certificate);
	conf_free(b);
	conf_free(a);
}

/* Rules have no places to keep: a reload takes them all, more or fewer. */
static void
decline_rules(void **state)
{
	struct conf *a = load(BASE), *b, *c;

	b = merge(a, BASE "rdma: { decline_2xx: [{ user_agent: x }, { access_key: k }] }\n");
	assert_string_equal(said, "now rdma.decline_2xx:  -> \n");
	assert_int_equal(b->rdma.decline_2xx_nr, 2);
	assert_string_equal(b->rdma.decline_2xx[0].user_agent, "x");
	assert_string_equal(b->rdma.decline_2xx[1].access_key, "k");
	c = merge(b, BASE
		  "rdma: { decline_2xx: [{ user_agent: x }, { access_key: l, header: x-rdma-info }] }\n");
	assert_string_equal(said, "now rdma.decline_2xx[1].header: x-amz-rdma-token -> x-rdma-info\n"
				  "now rdma.decline_2xx[1].access_key: \"k\" -> \"l\"\n");
	assert_string_equal(c->rdma.decline_2xx[1].access_key, "l");
	conf_free(b);
	b = merge(c, BASE);
	assert_string_equal(said, "now rdma.decline_2xx:  -> \n");
	assert_int_equal(b->rdma.decline_2xx_nr, 0);
	conf_free(a);
	conf_free(b);
	conf_free(c);
}

static void
references(void **state)
{
	struct conf *a = load(BASE);

	assert_ptr_equal(conf_get(a), a);
	conf_free(a);
	assert_string_equal(a->listen[0].address, "127.0.0.1:1");
	conf_free(a);
}

static int
setup(void **state)
{
	int fd;

	strcpy(file, "/tmp/test_merge.XXXXXX");
	fd = mkstemp(file);
	close(fd);
	return fd < 0;
}

static int
teardown(void **state)
{
	unlink(file);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),  cmocka_unit_test(applied),    cmocka_unit_test(kept),
		cmocka_unit_test(lists), cmocka_unit_test(references), cmocka_unit_test(decline_rules),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
