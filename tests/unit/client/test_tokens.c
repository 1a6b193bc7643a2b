/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations that overlap and are counted, what becomes of tokens when they are given back, withdrawn or outlived,
 * ports that go down, the one context of a process, what is told; by one thread and by many, on the software NIC.
 */
#include "tests/fake/client_rig.h"
#include "tests/fake/others.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct token
parsed(const char *text)
{
	struct token t;
	const char *why;

	assert_int_equal(token_parse(text, strlen(text), &t, &why), 0);
	return t;
}

static char *
minted(struct fix *f, size_t offset, size_t size)
{
	char *text = NULL;

	assert_int_equal(gantry_token_get(f->g, f->buf + offset, size, 0, GANTRY_OP_GET, &text, NULL), 0);
	return text;
}

static void
one_port(struct fix *f)
{
	const struct gantry_options o = { .size = sizeof o, .config_file = "", .device = "mlx5_0" };

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
}

/* ---- registrations ---- */

static void
a_token_is_of_the_smallest_registration(void **state)
{
	struct fix *f = *state;
	uint32_t outer, inner;

	one_port(f);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	outer = parsed(minted(f, 5000, 100)).rkey;
	assert_int_equal(gantry_register(f->g, f->buf + 4096, 8192, 0), 0);
	inner = parsed(minted(f, 5000, 100)).rkey;
	assert_int_not_equal(outer, inner);
	assert_int_equal(parsed(minted(f, 4095, 100)).rkey, outer);
	assert_int_equal(parsed(minted(f, 12287, 1)).rkey, inner);
	assert_int_equal(parsed(minted(f, 12287, 2)).rkey, outer);
	assert_int_equal(gantry_deregister(f->g, f->buf + 4096), 0);
	assert_int_equal(parsed(minted(f, 5000, 100)).rkey, outer);
}

static void
a_start_is_counted_where_that_is_asked_for(void **state)
{
	struct fix *f = *state;
	struct token t;
	char *text;

	one_port(f);
	assert_int_equal(gantry_register(f->g, f->buf, 5000, GANTRY_COUNTED), 0);
	assert_int_equal(gantry_register(f->g, f->buf, 5000, 0), -EEXIST);
	assert_non_null(strstr(gantry_register_error(), "registered already"));
	/* A part, the whole, and more than there is: that is registered beside. */
	assert_int_equal(gantry_register(f->g, f->buf, 100, GANTRY_COUNTED), 0);
	assert_int_equal(f->g->map.nr, 1);
	assert_int_equal(gantry_register(f->g, f->buf, 9000, GANTRY_COUNTED), 0);
	assert_int_equal(f->g->map.nr, 2);
	t = parsed(minted(f, 0, 9000));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gantry_deregister(f->g, f->buf), 0);
		assert_int_equal(write_to(f->g->port, &t), IBV_WC_SUCCESS);
	}
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(f->g->map.nr, 0);
	assert_int_not_equal(write_to(f->g->port, &t), IBV_WC_SUCCESS);
	assert_int_equal(gantry_deregister(f->g, f->buf), -ENOENT);
	assert_int_equal(gantry_token_get(f->g, f->buf, 1, 0, GANTRY_OP_PUT, &text, NULL), -ENOENT);
	/* One that can only be read does not count for one that must be written to. */
	assert_int_equal(gantry_register(f->g, f->buf, 5000, GANTRY_COUNTED | GANTRY_READ_ONLY), 0);
	assert_int_equal(gantry_register(f->g, f->buf, 5000, GANTRY_COUNTED), 0);
	t = parsed(minted(f, 0, 5000));
	assert_int_equal(write_to(f->g->port, &t), IBV_WC_SUCCESS);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_deregister(f->g, f->buf), -ENOENT);
}

/* ---- tokens ---- */

static void
a_token_may_be_given_back_after_its_memory(void **state)
{
	struct fix *f = *state;
	char *text[3], other[100];

	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	for (int i = 0; i < 3; i++)
		text[i] = minted(f, 0, 100);
	assert_int_equal(gantry_token_put(f->g, text[0]), 0);
	assert_int_equal(gantry_token_put(f->g, text[0]), -ENOENT);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	assert_int_equal(gantry_token_put(f->g, text[1]), 0);
	assert_int_equal(gantry_token_put(f->g, text[1]), -ENOENT);
	assert_int_equal(gantry_token_drop(f->g, text[2], 5), 0);
	/* Pointers that are none of the library's. */
	assert_int_equal(gantry_token_put(f->g, other), -ENOENT);
	assert_int_equal(gantry_token_put(f->g, text[1] + 1), -ENOENT);
	assert_int_equal(gantry_token_put(f->g, (char *)f->buf), -ENOENT);
	assert_int_equal(gantry_token_put(f->g, NULL), -ENOENT);
	/* A program that never gives one back costs no more than some thousand. */
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
		minted(f, 0, 100);
		assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	}
	assert_true(f->g->dead_nr <= 4096);
}

static void
a_token_that_is_withdrawn_works_no_more(void **state)
{
	struct fix *f = *state;
	struct token t[20];
	char *text[20];
	int dead = 0;

	one_port(f);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	for (int i = 0; i < 20; i++) {
		text[i] = minted(f, 100 * (size_t)i, 100);
		t[i] = parsed(text[i]);
		assert_int_equal(write_to(f->g->port, &t[i]), IBV_WC_SUCCESS);
	}
	/* Sixteen have a target of their own. */
	for (int i = 0; i < SHARED_MAX; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(t[i].dctn, t[k].dctn);
	assert_int_equal(gantry_token_drop(f->g, text[19], 1), 0);
	assert_int_equal(gantry_token_drop(f->g, text[19], 1), -ENOENT);
	f->buf[1900] = 'y';
	assert_int_not_equal(write_to(f->g->port, &t[19]), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[1900], 'y');
	for (int i = 0; i < 19; i++)
		dead += write_to(f->g->port, &t[i]) != IBV_WC_SUCCESS;
	assert_int_equal(dead, 1);
	/* Without an error it may still be used by whoever has copied it. */
	assert_int_equal(gantry_token_drop(f->g, text[7], 0), 0);
	assert_int_equal(write_to(f->g->port, &t[7]), IBV_WC_SUCCESS);
	/* And the next ones work. */
	for (int i = 0; i < 40; i++) {
		t[0] = parsed(minted(f, 0, 100));
		assert_int_equal(write_to(f->g->port, &t[0]), IBV_WC_SUCCESS);
	}
}

/* ---- callbacks ---- */

static int called;
static ssize_t answers;

static ssize_t
on_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	struct fix *f = gantry_handle_ctx(handle);

	called++;
	assert_int_equal(parsed(info->descr).addr, (uintptr_t)ptr);
	assert_int_equal(parsed(info->descr).size, size);
	/* Callbacks may call the library; what they are about cannot be taken from under them. */
	assert_int_equal(gantry_deregister(f->g, f->buf), -EBUSY);
	assert_int_equal(gantry_token_put(f->g, minted(f, 0, 1)), 0);
	if (called == 2)
		return answers;
	return (ssize_t)size;
}

static void
the_table_comes_with_the_call(void **state)
{
	struct gantry_options o = { .size = sizeof o, .config_file = "", .max_callback_bytes = 100 };
	struct fix *f = *state;
	struct gantry_ops ops = { .put = on_put };

	gantry_close(f->g);
	assert_int_equal(gantry_open(&o, &f->g), 0);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_int_equal(gantry_obj_put(f->g, f, f->buf, 100, 0, 0), -EINVAL);
	called = 0;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 100, 0, 0), 100);
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_GET, &ops, f, f->buf, 100, 0, 0), -EINVAL);
	/* What a callback says after others have moved something. */
	called = 0;
	answers = -EAGAIN;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 300, 0, 0), 100);
	called = 1;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 300, 0, 0), -EAGAIN);
	called = 1;
	answers = 0;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 300, 0, 0), 0);
	called = 0;
	answers = 40;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 300, 0, 0), 140);
	/* A table without callbacks is one. */
	assert_int_equal(gantry_set_ops(f->g, &(struct gantry_ops){ 0 }, GANTRY_PROTOCOL_RDMA_DC_V1), 0);
	assert_int_equal(gantry_obj_get(f->g, f, f->buf, 100, 0, 0), -EINVAL);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
}

/* ---- what is told ---- */

static ssize_t
quiet_put(const void *handle, const char *ptr, size_t size, off_t offset, const struct gantry_io_info *info)
{
	return parsed(info->descr).addr == (uintptr_t)ptr ? (ssize_t)size : -1;
}

static char told[8192];

static void
take_line(void *cookie, enum gantry_log_level level, const char *text)
{
	size_t at = strlen(told);

	snprintf(told + at, sizeof told - at, "%d %s\n", (int)level, text);
}

static void
failures_and_registrations_are_told(void **state)
{
	const struct gantry_ops ops = { .put = quiet_put };
	struct fix *f = *state;
	char *text;

	*told = 0;
	gantry_set_log(f->g, take_line, NULL);
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_non_null(strstr(told, "1 100000 bytes at "));
	assert_int_equal(gantry_register(f->g, f->buf, 1ull << 32, 0), -EFBIG);
	assert_non_null(strstr(told, "4 GiB - 1 are the most"));
	assert_int_equal(gantry_token_get(f->g, f->buf, BUF_LEN, 1, GANTRY_OP_GET, &text, NULL), -ENOENT);
	assert_non_null(strstr(told, "0 token of 100000 bytes from byte 1 on of "));
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 100, 0, 0), 100);
	assert_non_null(strstr(told, "3 put of 100 bytes at "));
	/* Only what is asked for; failures always. */
	gantry_set_log_level(f->g, GANTRY_LOG_ERROR);
	*told = 0;
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_PUT, &ops, f, f->buf, 100, 0, 0), 100);
	assert_string_equal(told, "");
	assert_int_equal(gantry_obj_move(f->g, GANTRY_OP_GET, &ops, f, f->buf, 100, 0, 0), -EINVAL);
	assert_non_null(strstr(told, "0 get of 100 bytes"));
	gantry_set_log_level(f->g, GANTRY_LOG_INFO);
	assert_int_equal(gantry_deregister(f->g, f->buf), 0);
	gantry_set_log(f->g, NULL, NULL);
	*told = 0;
	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	assert_string_equal(told, "");
}

/* ---- ports ---- */

static void
port(const char *device, const char *what)
{
	char line[700], self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	assert_true(n > 0);
	self[n] = 0;
	for (int i = 0; i < 3; i++)
		*strrchr(self, '/') = 0;
	snprintf(line, sizeof line, "%s/softnicctl port %s %s", self, device, what);
	assert_int_equal(system(line), 0);
}

static void
ports_that_go_down_get_no_tokens(void **state)
{
	struct fix *f = *state;
	char *text;

	assert_int_equal(gantry_register(f->g, f->buf, BUF_LEN, 0), 0);
	port("mlx5_1", "down");
	wait_until(f->g->port[1].is_down)
		usleep(1000);
	for (int i = 0; i < 10; i++)
		assert_memory_equal(parsed(minted(f, 0, 10)).gid, f->g->port[0].gid, 16);
	assert_int_equal(gantry_is_connected(f->g), 1);
	port("mlx5_0", "down");
	wait_until(f->g->port[0].is_down)
		usleep(1000);
	assert_int_equal(gantry_token_get(f->g, f->buf, 10, 0, GANTRY_OP_GET, &text, NULL), -ENETDOWN);
	assert_int_equal(gantry_is_connected(f->g), 0);
	assert_string_equal(gantry_rdma_reason(f->g), "every port is down");
	port("mlx5_0", "up");
	port("mlx5_1", "up");
	wait_until(!f->g->port[0].is_down && !f->g->port[1].is_down)
		usleep(1000);
	assert_memory_not_equal(parsed(minted(f, 0, 10)).gid, parsed(minted(f, 0, 10)).gid, 16);
	assert_string_equal(gantry_rdma_reason(f->g), "");
}

/* ---- the process's context ---- */

/* In a child: its own context works, its parent's is left alone.  The number of what is not so. */
static int
child_has_its_own(struct fix *f, struct gantry *parents)
{
	static char mine[4096];
	struct gantry *g;
	char *text;

	if (gantry_is_connected(parents) || gantry_register(parents, mine, sizeof mine, 0) != -ENODEV)
		return 1;
	if (!strstr(gantry_rdma_reason(parents), "fork()"))
		return 2;
	if (gantry_token_get(parents, f->buf, 10, 0, GANTRY_OP_GET, &text, NULL) != -ENODEV)
		return 3;
	gantry_close(parents);
#ifdef __SANITIZE_THREAD__
	/* It takes a child's first thread for one of the parent's, which has its address, and ends it. */
	return 0;
#endif
	if (gantry_open_shared(&g) < 0 || g == parents || !gantry_is_connected(g))
		return 4;
	if (gantry_register(g, mine, sizeof mine, 0) < 0 ||
	    gantry_token_get(g, mine, 10, 0, GANTRY_OP_GET, &text, NULL) < 0)
		return 5;
	struct token t = parsed(text);

	if (write_to(g->port, &t) != IBV_WC_SUCCESS || *mine != 'x')
		return 6;
	gantry_deregister(g, mine);
	gantry_close(g);
	return 0;
}

static void
a_process_has_one_context(void **state)
{
	struct fix *f = *state;
	struct gantry *a, *b, *own = f->g;
	struct token t;
	int status;
	pid_t pid;

	setenv("CUFILE_ENV_PATH_JSON", "/nowhere/cufile.json", 1);
	assert_int_equal(gantry_open_shared(&a), -EINVAL);
	assert_non_null(strstr(gantry_open_error(), "/nowhere/cufile.json"));
	unsetenv("CUFILE_ENV_PATH_JSON");
	assert_int_equal(gantry_open_shared(&a), 0);
	assert_int_equal(gantry_open_shared(&b), 0);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, own);
	gantry_close(b);
	assert_int_equal(gantry_register(a, f->buf, BUF_LEN, 0), 0);
	f->g = a;
	t = parsed(minted(f, 0, 10));
	/* The last one leaves what is registered. */
	gantry_close(a);
	for (int i = 0; i < 2; i++)
		if (!memcmp(a->port[i].gid, t.gid, 16))
			assert_int_equal(write_to(&a->port[i], &t), IBV_WC_SUCCESS);
	assert_int_equal(f->buf[0], 'x');
	assert_int_equal(gantry_open_shared(&b), 0);
	assert_ptr_equal(a, b);
	fflush(NULL);
	wait_others();
	pid = fork();
	if (pid == 0)
		_exit(child_has_its_own(f, b));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(gantry_token_put(b, minted(f, 0, 10)), 0);
	assert_int_equal(gantry_deregister(b, f->buf), 0);
	gantry_close(b);
	f->g = own;
}

/* ---- threads ---- */

#define THREADS 4

static struct fix *rig;
static _Atomic bool ends;

/* Registers and releases the same memory as others do, and tokens of it. */
static void *
same_memory(void *arg)
{
	uintptr_t nr = (uintptr_t)arg;

	for (int i = 0; i < 300; i++) {
		char *text[3];
		int have = 0;

		assert_int_equal(gantry_register(rig->g, rig->buf, 1000 + 500 * nr, GANTRY_COUNTED), 0);
		for (int k = 0; k < 3; k++) {
			if (gantry_token_get(rig->g, rig->buf, 500, 0, GANTRY_OP_GET, &text[have], NULL) == 0)
				have++;
		}
		assert_int_equal(have, 3);
		if (i % 2)
			assert_int_equal(gantry_deregister(rig->g, rig->buf), 0);
		for (int k = 0; k < have; k++)
			assert_int_equal(gantry_token_drop(rig->g, text[k], k == 1 && i % 50 == 0), 0);
		if (i % 2 == 0)
			assert_int_equal(gantry_deregister(rig->g, rig->buf), 0);
	}
	return NULL;
}

/* Moves objects through memory of its own. */
static void *
own_memory(void *arg)
{
	const struct gantry_ops ops = { .put = quiet_put };
	static char memory[THREADS][4096];
	char *mine = memory[(uintptr_t)arg];

	while (!ends) {
		assert_int_equal(gantry_register(rig->g, mine, 4096, 0), 0);
		for (int i = 0; i < 10; i++)
			assert_int_equal(gantry_obj_move(rig->g, GANTRY_OP_PUT, &ops, NULL, mine, 100, 0, i),
					 100);
		assert_int_equal(gantry_deregister(rig->g, mine), 0);
	}
	return NULL;
}

static void *
addresses(void *arg)
{
	while (!ends) {
		map_wrlock(rig->g);
		rig->g->port[0].gid[15] ^= 0x40;
		map_wrunlock(rig->g);
		port_reread(rig->g, &rig->g->port[0]);
		gantry_set_log(rig->g, take_line, NULL);
		gantry_set_log(rig->g, NULL, NULL);
		usleep(1000);
	}
	return NULL;
}

static void
threads_share_a_context(void **state)
{
	pthread_t same[THREADS], own[THREADS], address;

	rig = *state;
	ends = false;
	for (uintptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&same[i], NULL, same_memory, (void *)i), 0);
		assert_int_equal(pthread_create(&own[i], NULL, own_memory, (void *)i), 0);
	}
	assert_int_equal(pthread_create(&address, NULL, addresses, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(same[i], NULL);
	ends = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(own[i], NULL);
	pthread_join(address, NULL);
	assert_int_equal(rig->g->map.nr, 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_token_is_of_the_smallest_registration, setup, teardown),
		cmocka_unit_test_setup_teardown(a_start_is_counted_where_that_is_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(a_token_may_be_given_back_after_its_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(a_token_that_is_withdrawn_works_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(the_table_comes_with_the_call, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_and_registrations_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(ports_that_go_down_get_no_tokens, setup, teardown),
		cmocka_unit_test_setup_teardown(a_process_has_one_context, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_share_a_context, setup, teardown),
	};

	start_on_the_nic(argv);
	return end_on_the_nic(cmocka_run_group_tests(tests, rig_start, rig_stop));
}
