/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations and tokens on the software NIC, and that a window ends with its call. */
#include "tests/fake/client_rig.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tokens ---- */

/* item 112, item 113, item 114, item 115 */
static void
tokens_name_exactly_the_window(void **state)
{
	struct fix *f = *state;
	struct token t;
	char *text, *other, copy[100];
	const char *why;
	size_t len;

	assert_int_equal(gantry_is_connected(f->g), 1);
	assert_string_equal(gantry_rdma_reason(f->g), "");
	assert_non_null(gantry_port(f->g, 0));
	assert_int_equal(gantry_token_get(f->g, f->buf, 100, 0, GANTRY_OP_GET, &text, &len), -ENOENT);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf, 4096, 1234, GANTRY_OP_GET, &text, &len), 0);
	assert_int_equal(len, 82);
	assert_int_equal(strlen(text), 81);
	assert_int_equal(token_parse(text, 81, &t, &why), 0);
	assert_int_equal(t.addr, (uintptr_t)f->buf + 1234);
	assert_int_equal(t.size, 4096);
	assert_true(t.have_gid);
	assert_int_equal(t.lid, 0);
	assert_int_equal(t.dctn, f->g->port[0].shared[0]->dctn);
	assert_memory_equal(t.gid, f->g->port[0].gid, 16);
	/* Byte for byte the form of 2.1. */
	snprintf(copy, sizeof copy,
		 "%016llx:%08x:%08x:0000:%06x:1:", (unsigned long long)(uintptr_t)f->buf + 1234, 4096, t.rkey,
		 t.dctn);
	for (int i = 0; i < 16; i++)
		snprintf(copy + 49 + 2 * i, 3, "%02x", t.gid[i]);
	assert_string_equal(text, copy);
	/* Outside of what is registered; too large; nothing. */
	assert_int_equal(gantry_token_get(f->g, f->buf, BUF_LEN, 1, GANTRY_OP_PUT, &other, &len), -ENOENT);
	assert_int_equal(gantry_token_get(f->g, f->buf, 1ull << 32, 0, GANTRY_OP_PUT, &other, &len), -EFBIG);
	assert_int_equal(gantry_token_get(f->g, f->buf, 0, 0, GANTRY_OP_PUT, &other, &len), -EINVAL);
	assert_int_equal(gantry_token_get(f->g, f->buf, 1, 0, GANTRY_OP_INVALID, &other, &len), -EINVAL);
	assert_int_equal(gantry_register(f->g, (void *)4096, 1ull << 32, 0), -EFBIG);
	assert_int_equal(gantry_token_put(f->g, text), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), -ENOENT);
	assert_int_equal(gantry_memory_type(f->buf), GANTRY_MEM_SYSTEM);
	assert_int_equal(gantry_memory_type(NULL), GANTRY_MEM_INVALID);
}

/* Several ports take turns, and each token names the GID of its own (protocol.md 6). */
static void
ports_take_turns(void **state)
{
	struct fix *f = *state;
	struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "127.0.0.2" };
	static const uint8_t second[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 };
	struct token t[3];
	const char *why;
	char *text;

	assert_non_null(gantry_port(f->g, 1));
	assert_null(gantry_port(f->g, 2));
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_PUT, &text, NULL), 0);
		assert_int_equal(token_parse(text, 81, &t[i], &why), 0);
		assert_int_equal(gantry_token_put(f->g, text), 0);
	}
	assert_memory_not_equal(t[0].gid, t[1].gid, 16);
	assert_memory_equal(t[0].gid, t[2].gid, 16);
	gantry_close(f->g);
	/* One port by its address, and by name with a port number. */
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_string_equal(gantry_port(f->g, 0), "mlx5_1:1");
	assert_null(gantry_port(f->g, 1));
	assert_memory_equal(f->g->port[0].gid, second, 16);
	gantry_close(f->g);
	o.device = "mlx5_0:1,mlx5_1";
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_string_equal(gantry_port(f->g, 1), "mlx5_1:1");
	gantry_close(f->g);
	f->g = NULL;
	o.device = "mlx5_0:2";
	assert_int_equal(gantry_open(&o, &f->g), -ENODEV);
	o.device = "127.0.0.77";
	assert_int_equal(gantry_open(&o, &f->g), -ENODEV);
}

struct kept {
	char *descr[4];
	size_t len;
	off_t offset[4];
	size_t size[4];
	int nr;
	ssize_t give;
};

static ssize_t
keep(const void *handle, size_t size, off_t offset, const struct gantry_io_info *info)
{
	struct kept *k = gantry_handle_ctx(handle);

	k->descr[k->nr] = (char *)(uintptr_t)info->descr;
	k->len = info->descr_len;
	k->offset[k->nr] = offset;
	k->size[k->nr++] = size;
	return k->give < 0 ? k->give : (ssize_t)size;
}

static ssize_t
on_get(const void *handle, char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return keep(handle, size, offset, info);
}

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return keep(handle, size, offset, info);
}

/* item 115, and the rest of the operations table (protocol.md 6) */
static void
callbacks_get_tokens_that_live_on(void **state)
{
	struct fix *f = *state;
	static const struct gantry_ops ops = { .get = on_get, .put = on_put };
	struct gantry_options o = { .size = sizeof o, .config_file = "", .max_callback_bytes = 40000 };
	struct kept k = { .nr = 0 };
	struct token t;
	const char *why;

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(gantry_set_ops(f->g, &ops, 1000), -EPROTONOSUPPORT);
	assert_int_equal(gantry_set_ops(f->g, &ops, GANTRY_PROTOCOL_RDMA_DC_V1), 0);
	assert_int_equal(gantry_obj_get(f->g, &k, f->buf, 10, 0, 0), -ENOENT);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_max_callback_size(f->g, f->buf), 40000);
	/* Three pieces, offsets advancing in both. */
	assert_int_equal(gantry_obj_get(f->g, &k, f->buf, 90000, 1000, 500), 90000);
	assert_int_equal(k.nr, 3);
	assert_int_equal(k.offset[2], 81000);
	assert_int_equal(k.size[2], 10000);
	assert_int_equal(k.len, 82);
	/* Long after the callbacks. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(token_parse(k.descr[i], 81, &t, &why), 0);
		assert_int_equal(t.addr, (uintptr_t)f->buf + 500 + 40000 * (uintptr_t)i);
	}
	k = (struct kept){ .give = -1 };
	assert_int_equal(gantry_obj_put(f->g, &k, f->buf, 100, 0, 0), -1);
	assert_int_equal(k.nr, 1);
	k = (struct kept){ .give = -EAGAIN };
	assert_int_equal(gantry_obj_put(f->g, &k, f->buf, 100, 0, 0), -EAGAIN);
	assert_int_equal(gantry_obj_put(f->g, &k, f->buf, BUF_LEN, 0, 1), -ENOENT);
}

/* ---- the end of a window ---- */

static struct token late;

static void
serve_late(int fd, const struct request *rq)
{
	token_of(rq, &late);
	hold = true;
	while (hold)
		usleep(1000);
	answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\ncontent-length: 0\r\n\r\n");
}

/* A server that answers too late finds nobody: the memory stays as it was (protocol.md 6, last paragraph). */
static void
a_timeout_closes_the_window(void **state)
{
	struct fix *f = *state;
	struct gantry_request req = { .size = sizeof req, .timeout_ms = 200 };
	struct token other;
	char *text;
	const char *why;

	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_GET, &text, NULL), 0);
	assert_int_equal(token_parse(text, 81, &other, &why), 0);
	serve = serve_late;
	unsigned char before = f->buf[0];

	/* With other work on the machine the time may be over before the server has read it all; then with
	 * more. */
	do
		assert_int_equal(gantry_get(f->g, url, f->buf, 3000, 0, &req, &f->res), -ETIMEDOUT);
	while (!hold && (req.timeout_ms *= 2) < 60000);
	assert_true(hold); /* it has the token, and has not answered */
	assert_int_equal(late.addr, (uintptr_t)f->buf);
	assert_int_not_equal(write_to(&f->g->port[0], &late), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], before);
	/* Only that call's window: the registration and other tokens live on. */
	assert_int_equal(write_to(&f->g->port[0], &other), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'x');
	hold = false;
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_not_equal(write_to(&f->g->port[0], &other), IBV_WC_SUCCESS);
}

/* Answers as a server that moved the bytes, and keeps the token. */
static void
serve_kept(int fd, const struct request *rq)
{
	token_of(rq, &late);
	answer(fd, "HTTP/1.1 200 OK\r\nx-amz-rdma-reply: 200\r\ncontent-length: 0\r\n\r\n");
}

/* Opens with those options and puts a piece of registered memory; its token is in `late`. */
static void
put_with(struct fix *f, unsigned flags, unsigned target_life_ms)
{
	struct gantry_options o = {
		.size = sizeof o, .config_file = "", .flags = flags, .target_life_ms = target_life_ms
	};

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	serve = serve_kept;
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(f->res.path, GANTRY_PATH_RDMA);
	assert_int_equal(late.addr, (uintptr_t)f->buf);
}

static struct port *
port_of(const struct fix *f, const struct token *t)
{
	int i = memcmp(f->g->port[0].gid, t->gid, 16) != 0;

	assert_memory_equal(f->g->port[i].gid, t->gid, 16);
	return &f->g->port[i];
}

/* claim TM5: what was seen on the wire is good for as long as its target: calls hand it on, and it ends by
 * age. */
static void
a_token_dies_with_its_target(void **state)
{
	struct fix *f = *state;
	struct port *p;
	uint32_t first;

	assert_int_equal(f->g->target_life_ns, 5000000000ull);
	/* Until then the next call on that port has the same. */
	put_with(f, 0, 3600000);
	first = late.dctn;
	p = port_of(f, &late);
	for (int i = 0; i < f->g->port_nr; i++)
		assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	assert_int_equal(late.dctn, first);
	assert_int_equal(write_to(p, &late), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'x');
	/* A short life ends though nothing else is called. */
	put_with(f, 0, 1);
	wait_until(write_to(port_of(f, &late), &late) != IBV_WC_SUCCESS)
		usleep(1000);
	f->buf[0] = 'y';
	assert_int_not_equal(write_to(port_of(f, &late), &late), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'y');
	assert_int_equal(gantry_put(f->g, url, f->buf, 3000, NULL, &f->res), 0);
	/* None at all. */
	put_with(f, GANTRY_TARGET_PER_CALL, 0);
	assert_int_not_equal(write_to(port_of(f, &late), &late), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'y');
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_token_dies_with_its_target, setup, teardown),
		cmocka_unit_test_setup_teardown(tokens_name_exactly_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(ports_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(callbacks_get_tokens_that_live_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_timeout_closes_the_window, setup, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
