/* SPDX-License-Identifier: Apache-2.0 */
/* Which port a token names, with what it is registered and how its packets are marked, on the software NIC. */
#include "tests/fake/client_rig.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gantry *seen_by_server;
static int ports_of_region, declined, served;
static const char *decline_reason;
static _Atomic int declined_many;

/* How many ports the call's temporary registration is with.  The caller waits for us. */
static int
count_ports(void)
{
	struct region *r = container_of(seen_by_server->regions.next, struct region, link);
	int nr = 0;

	assert_true(r->is_temporary);
	for (int i = 0; i < PORTS_MAX; i++)
		nr += r->mr[i] != NULL;
	return nr;
}

/* Declines the port with 127.0.0.1, for that reason; serves the other. */
static void
serve_one_rail(int fd, const struct request *rq)
{
	struct token t;
	char text[200];

	if (!token_of(rq, &t)) {
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"h\"\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	ports_of_region = count_ports();
	if (t.gid[15] == 1 && decline_reason) {
		declined++;
		snprintf(text, sizeof text,
			 "HTTP/1.1 501 Not Implemented\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
			 "%s\r\n"
			 "content-length: 0\r\n\r\n",
			 decline_reason);
		answer(fd, text);
		return;
	}
	served++;
	answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\netag: \"r\"\r\ncontent-length: 0\r\n\r\n");
}

static void
puts_by(struct fix *f, int nr, enum gantry_path path)
{
	for (int i = 0; i < nr; i++) {
		assert_int_equal(gantry_put(f->g, url, f->buf, 5000, NULL, &f->res), 0);
		assert_int_equal(f->res.path, path);
	}
}

static void
begin(struct fix *f, const char *reason)
{
	seen_by_server = f->g;
	decline_reason = reason;
	declined = served = ports_of_region = 0;
	serve = serve_one_rail;
}

static void
a_call_registers_with_its_port_alone(void **state)
{
	struct fix *f = *state;

	begin(f, NULL);
	assert_non_null(gantry_port(f->g, 1));
	puts_by(f, 4, GANTRY_PATH_RDMA);
	assert_int_equal(ports_of_region, 1);
	assert_int_equal(served, 4);
}

static void
a_port_that_is_not_reached_is_left_alone_for_a_while(void **state)
{
	static const char *const reasons[] = { "unreachable", "not-allowed", "needs-router", "no-rail" };
	struct fix *f = *state;

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		begin(f, reasons[i]);
		puts_by(f, 20, GANTRY_PATH_RDMA);
		assert_int_equal(declined, 1);
		assert_int_equal(served, 20);
		/* It is of this server, and of this minute. */
		assert_ptr_equal(port_take(f->g, NULL, server_of(url)), &f->g->port[1]);
		assert_ptr_equal(port_take(f->g, NULL, server_of(url)), &f->g->port[1]);
		assert_ptr_not_equal(port_take(f->g, NULL, server_of("http://10.0.0.1:9000/b/k")),
				     port_take(f->g, NULL, server_of("http://10.0.0.1:9000/other")));
		for (int k = 0; k < REACH_MAX; k++)
			f->g->reach[k].until_ns = f->g->reach[k].until_ns ? 1 : 0;
		assert_ptr_not_equal(port_take(f->g, NULL, server_of(url)),
				     port_take(f->g, NULL, server_of(url)));
		memset(f->g->reach, 0, sizeof f->g->reach); /* no request came of these */
	}
}

/* However many threads begin at once: one of them is told. */
static void
serve_slowly(int fd, const struct request *rq)
{
	struct token t;

	if (token_of(rq, &t) && t.gid[15] == 1) {
		atomic_fetch_add(&declined_many, 1);
		usleep(20000); /* so that others come meanwhile */
		answer(fd, "HTTP/1.1 501 Not Implemented\r\nx-amz-rdma-reply: 501\r\n"
			   "x-gantry-rdma-reason: unreachable\r\ncontent-length: 0\r\n\r\n");
		return;
	}
	answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\netag: \"r\"\r\ncontent-length: 0\r\n\r\n");
}

static void *
put_some(void *arg)
{
	struct fix *f = arg;
	struct gantry_result res = { .size = sizeof res };

	for (int i = 0; i < 10; i++) {
		assert_int_equal(gantry_put(f->g, url, f->buf, 5000, NULL, &res), 0);
		assert_int_equal(res.path, GANTRY_PATH_RDMA);
	}
	return NULL;
}

static void
many_threads_are_declined_once(void **state)
{
	struct fix *f = *state;
	pthread_t thread[16];

	serve = serve_slowly;
	for (int round = 1; round <= 2; round++) {
		for (int i = 0; i < 16; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, put_some, f), 0);
		for (int i = 0; i < 16; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(declined_many, round);
		/* Its minute is over. */
		for (int k = 0; k < REACH_MAX; k++) {
			if (f->g->reach[k].state == REACH_AVOIDED)
				f->g->reach[k].until_ns = 0;
		}
	}
}

/* Registered memory goes by the ports that have it; a reason that is no port's costs one request. */
static void
a_decline_for_another_reason_is_one(void **state)
{
	struct fix *f = *state;

	begin(f, "no-channel");
	puts_by(f, 1, GANTRY_PATH_HTTP);
	assert_int_equal(declined, 1);
	assert_int_equal(served, 0);
	assert_string_equal(f->res.reason, "no-channel");
}

/* A server that reaches the address which the ports really have, and no other. */
static uint8_t real_gid[16];
static const char *other_answer;
static bool is_watched; /* the device tells, and the library hears it before the answer */

static void
serve_the_real_address(int fd, const struct request *rq)
{
	struct token t;

	if (!token_of(rq, &t)) {
		answer(fd, "HTTP/1.1 200 OK\r\netag: \"h\"\r\ncontent-length: 0\r\n\r\n");
	} else if (memcmp(t.gid, real_gid, sizeof real_gid) != 0) {
		declined++;
		if (is_watched)
			port_reread(seen_by_server, &seen_by_server->port[0]);
		answer(fd, other_answer);
	} else {
		served++;
		answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\netag: \"r\"\r\ncontent-length: "
			   "0\r\n\r\n");
	}
}

/* The address of a port changed behind the library: one request finds out, and none is lost for RDMA. */
static void
an_address_that_changed_is_read_anew(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 500 Failed\r\nx-amz-rdma-reply: 500\r\nx-gantry-rdma-reason: retry-exceeded\r\n"
		"content-length: 0\r\n\r\n",
		"HTTP/1.1 501 Not Implemented\r\nx-amz-rdma-reply: 501\r\nx-gantry-rdma-reason: "
		"unreachable\r\n"
		"content-length: 0\r\n\r\n",
	};
	struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_0" };
	struct fix *f = *state;
	struct token t;
	const char *why;
	char *text;

	for (size_t i = 0; i < 2 * sizeof answers / sizeof *answers; i++) {
		gantry_close(f->g);
		assert_int_equal(gantry_open(&o, &f->g), 0);
		begin(f, NULL);
		is_watched = i & 1;
		serve = serve_the_real_address;
		other_answer = answers[i / 2];
		memcpy(real_gid, f->g->port[0].gid, sizeof real_gid);
		assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
		puts_by(f, 3, GANTRY_PATH_RDMA);
		f->g->port[0].gid[15] ^= 0x77;
		puts_by(f, 3, GANTRY_PATH_RDMA);
		assert_int_equal(declined, 1);
		assert_int_equal(served, 6);
		assert_int_equal(f->g->port[0].changes, 1);
		/* The tokens of programs name it, too. */
		assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &text, NULL), 0);
		assert_int_equal(token_parse(text, 81, &t, &why), 0);
		assert_memory_equal(t.gid, real_gid, sizeof real_gid);
		assert_int_equal(t.dctn, f->g->port[0].shared[0]->dctn);
	}
}

static void
all_ports_unreached_goes_over_http(void **state)
{
	struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_0" };
	struct fix *f = *state;

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	begin(f, "unreachable");
	puts_by(f, 2, GANTRY_PATH_HTTP);
	/* Asked each time: it is the only one. */
	assert_int_equal(declined, 2);
}

static void
registrations_may_overlap(void **state)
{
	struct fix *f = *state;
	char *text;

	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, GANTRY_READ_ONLY), 0);
	assert_int_equal(gantry_register(f->g, f->buf + 4096, 8192, 0), 0);
	assert_int_equal(gantry_register(f->g, f->buf + 4096, 100, 0), -EEXIST);
	/* For gets the one that can be written to; for puts either. */
	assert_int_equal(gantry_token_get(f->g, f->buf, 100, 0, GANTRY_OP_GET, &text, NULL), -EINVAL);
	assert_int_equal(gantry_token_get(f->g, f->buf + 5000, 100, 0, GANTRY_OP_GET, &text, NULL), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf + 5000, 50000, 0, GANTRY_OP_PUT, &text, NULL), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf + 4096), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf + 5000, 100, 0, GANTRY_OP_GET, &text, NULL), -EINVAL);
	assert_int_equal(gantry_token_get(f->g, f->buf + 5000, 100, 0, GANTRY_OP_PUT, &text, NULL), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
}

static const char *last_descr;
static bool is_refused;

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	last_descr = info->descr;
	return is_refused ? -1 : (ssize_t)size;
}

static ssize_t
on_get(const void *handle, char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return on_put(handle, ptr, size, offset, info);
}

#define OPERATIONS 100000

static void
operations_cost_no_memory(void **state)
{
	static const struct gantry_ops ops = { .get = on_get, .put = on_put };
	struct fix *f = *state;
	const char *first;
	char copy[100];
	size_t before;

	assert_int_equal(gantry_set_ops(f->g, &ops, GANTRY_PROTOCOL_RDMA_DC_V1), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_obj_put(f->g, NULL, f->buf, 100, 0, 0), 100);
	first = last_descr;
	snprintf(copy, sizeof copy, "%s", first);
	for (int i = 1; i < REGION_TEXTS; i++)
		assert_int_equal(gantry_obj_put(f->g, NULL, f->buf, 100, 0, i), 100);
	/* The text of the oldest is still there. */
	assert_string_equal(first, copy);
	/* One more makes room for itself, and no other does. */
	assert_int_equal(gantry_obj_put(f->g, NULL, f->buf, 100, 0, 0), 100);
	before = mallinfo2().uordblks;
	for (int i = 0; i < OPERATIONS; i++)
		assert_int_equal(gantry_obj_put(f->g, NULL, f->buf, 100, 0, i % 1000), 100);
	/* The sum is of all threads: a watcher that allocates or frees changes it by less than a byte for two operations. */
	assert_true(mallinfo2().uordblks < before + OPERATIONS / 2);
	for (int i = 0; i < OPERATIONS; i++) {
		char *text;

		assert_int_equal(gantry_token_get(f->g, f->buf, 100, i % 1000, GANTRY_OP_GET, &text, NULL),
				 0);
		assert_int_equal(gantry_token_put(f->g, text), 0);
	}
	assert_true(mallinfo2().uordblks < before + OPERATIONS / 2);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
}

/* A program's own control plane says only that something failed. */
static void
a_callback_that_fails_has_the_address_read_anew(void **state)
{
	static const struct gantry_ops ops = { .get = on_get, .put = on_put };
	struct fix *f = *state;
	struct port *p = f->g->port;
	uint8_t real[2] = { p[0].gid[15], p[1].gid[15] };

	assert_int_equal(gantry_set_ops(f->g, &ops, GANTRY_PROTOCOL_RDMA_DC_V1), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	p[0].gid[15] = p[1].gid[15] = 0x77;
	assert_int_equal(gantry_obj_put(f->g, NULL, f->buf, 100, 0, 0), 100);
	assert_int_equal(p[0].gid[15], 0x77);
	is_refused = true;
	assert_int_equal(gantry_obj_get(f->g, NULL, f->buf, 100, 0, 0), -1);
	is_refused = false;
	assert_int_equal(p[0].gid[15], real[0]);
	assert_int_equal(p[1].gid[15], real[1]);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
}

/* What this end's packets carry: of the bytes of puts, too, which the target sends. */
static void
targets_are_marked(void **state)
{
	struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_0" };
	struct fix *f = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(f->g->port[0].shared[0]->qp, &a, IBV_QP_AV, &init), 0);
	assert_int_equal(a.ah_attr.grh.traffic_class, 96);
	assert_int_equal(a.ah_attr.sl, 0);
	assert_int_equal(a.path_mtu, IBV_MTU_4096);
	gantry_close(f->g);
	o.traffic_class = 106;
	o.service_level = 3;
	o.path_mtu = 1024;
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(ibv_query_qp(f->g->port[0].shared[0]->qp, &a, IBV_QP_AV, &init), 0);
	assert_int_equal(a.ah_attr.grh.traffic_class, 106);
	assert_int_equal(a.ah_attr.sl, 3);
	assert_int_equal(a.path_mtu, IBV_MTU_1024);
	gantry_close(f->g);
	o.traffic_class = GANTRY_TRAFFIC_CLASS_0;
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(ibv_query_qp(f->g->port[0].shared[0]->qp, &a, IBV_QP_AV, &init), 0);
	assert_int_equal(a.ah_attr.grh.traffic_class, 0);
	gantry_close(f->g);
	f->g = NULL;
	o.traffic_class = 256;
	assert_int_equal(gantry_open(&o, &f->g), -EINVAL);
	assert_string_equal(gantry_open_error(), "rdma_traffic_class 256: 0 to 255");
	o.traffic_class = 0;
	o.path_mtu = 1500;
	assert_int_equal(gantry_open(&o, &f->g), -EINVAL);
	assert_string_equal(gantry_open_error(), "rdma_path_mtu 1500: 256 to 4096, a power of two");
	o.path_mtu = 0;
	o.pkey_index = 60000;
	assert_int_equal(gantry_open(&o, &f->g), -ENODEV);
	assert_non_null(strstr(gantry_open_error(), "partitions"));
}

static void
forks_are_prepared(void **state)
{
	struct gantry_options o = { .size = sizeof o, .config_file = "" };
	struct fix *f = *state;

	gantry_close(f->g);
	f->g = NULL;
	setenv("SOFTNIC_FORK", "late", 1);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(gantry_is_connected(f->g), 0);
	assert_non_null(strstr(gantry_rdma_reason(f->g), "ibv_fork_init"));
	gantry_close(f->g);
	f->g = NULL;
	o.device = "mlx5_0";
	assert_int_equal(gantry_open(&o, &f->g), -ENODEV);
	assert_non_null(strstr(gantry_open_error(), "ibv_fork_init"));
	setenv("SOFTNIC_FORK", "init", 1);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_DISABLED);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_ENABLED);
	assert_int_equal(gantry_is_connected(f->g), 1);
	unsetenv("SOFTNIC_FORK");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_registers_with_its_port_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_that_is_not_reached_is_left_alone_for_a_while, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_threads_are_declined_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_decline_for_another_reason_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(all_ports_unreached_goes_over_http, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_that_changed_is_read_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(registrations_may_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(a_callback_that_fails_has_the_address_read_anew, setup,
						teardown),
		cmocka_unit_test_setup_teardown(operations_cost_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(targets_are_marked, setup, teardown),
		cmocka_unit_test_setup_teardown(forks_are_prepared, setup, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
