/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the connection manager says of an address (fake_rdmacm.c), and that one that is absent, silent or stuck costs one short wait.
 * Needs two devices (tests/system/chan_rails.sh); exits 77 without.
 */
#include "rdma/rdma_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char script[] = "/tmp/gantry-cmroute.XXXXXX", asked[sizeof script + 8];

static void
say(const char *text)
{
	FILE *f = fopen(script, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	unlink(asked);
}

static int
questions(void)
{
	FILE *f = fopen(asked, "r");
	int n = 0, c;

	while (f && (c = fgetc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static int
ask(struct cm_oracle *o, const char *to, bool is_ib, struct cm_answer *ret)
{
	struct cm_question q = { .is_ib = is_ib, .pkey = 0xffff };
	struct selector sel;

	assert_int_equal(selector_parse(to, &sel), 0);
	memcpy(q.dst, sel.gid, 16);
	return cm_oracle_ask(o, &q, ret);
}

static void
tells(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct cm_oracle *o;
	struct cm_answer a;

	assert_int_equal(cm_oracle_new(&o), 0);
	say("to 10.1.1.1 mlx5_0 1\nto fd00::1 mlx5_1 1\nto fe80::1 mlx5_1 1 7\nno 10.1.1.2 101\nno 10.1.1.3 "
	    "113\nno 10.1.1.4 110\n");
	assert_int_equal(ask(o, "10.1.1.1", false, &a), 0);
	assert_true(a.guid == ibv_get_device_guid(list[0]) && a.port == 1);
	assert_int_equal(a.service_level, -1);
	assert_int_equal(ask(o, "fd00::1", false, &a), 0);
	assert_true(a.guid == ibv_get_device_guid(list[1]));
	assert_int_equal(ask(o, "fe80::1", true, &a), 0);
	assert_true(a.guid == ibv_get_device_guid(list[1]));
	assert_int_equal(a.service_level, 7);
	assert_int_equal(ask(o, "10.1.1.2", false, &a), -ENETUNREACH);
	assert_int_equal(ask(o, "10.1.1.3", false, &a), -ENETUNREACH);
	/* A neighbour that does not answer, an interface without RDMA: that says nothing of the rail. */
	assert_int_equal(ask(o, "10.1.1.4", false, &a), -ENODATA);
	assert_int_equal(ask(o, "10.1.1.5", false, &a), -ENODATA);
	assert_int_equal(questions(), 7);
	cm_oracle_free(o);
	ibv_free_device_list(list);
}

/* It does not know, once, and is left alone for a minute. */
static void
rests(const char *how, int asked_nr)
{
	uint64_t now = clock_ns();
	struct cm_oracle *o;
	struct cm_answer a;

	clock_fake(&now);
	assert_int_equal(cm_oracle_new(&o), 0);
	say(how);
	assert_int_equal(ask(o, "10.1.1.1", false, &a), -ENODATA);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(o, "10.1.1.1", false, &a), -ENODATA);
	assert_int_equal(questions(), asked_nr);
	say("to 10.1.1.1 mlx5_0 1\n");
	assert_int_equal(ask(o, "10.1.1.1", false, &a), -ENODATA);
	now += 61 * NS_PER_S;
	/* A thread that is still in the library answers nobody. */
	assert_int_equal(ask(o, "10.1.1.1", false, &a), strcmp(how, "stuck\n") == 0 ? -ENODATA : 0);
	cm_oracle_free(o);
	clock_fake(NULL);
}

static void
absent(void **state)
{
	rests("absent\n", 0);
}

static void
silent(void **state)
{
	rests("silent\n", 1);
}

static void
stuck(void **state)
{
	rests("stuck\n", 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells),
		cmocka_unit_test(absent),
		cmocka_unit_test(silent),
		cmocka_unit_test(stuck),
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	int r, fd;

	if (!list || !list[0] || !list[1]) {
		printf("needs two devices of the software NIC: tests/system/chan_rails.sh\n");
		return 77;
	}
	ibv_free_device_list(list);
	fd = mkstemp(script);
	snprintf(asked, sizeof asked, "%s.asked", script);
	setenv("FAKE_RDMACM", script, 1);
	r = fd < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	close(fd);
	unlink(script);
	unlink(asked);
	return r;
}
