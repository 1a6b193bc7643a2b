/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening: which devices are picked, what is said of them, regions, routes over two rails.  Needs two
 * devices, at 127.0.0.1 and 127.0.0.2 (tests/system/chan_rails.sh); exits 77 without.
 */
#include "rdma/rdma_int.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/fake/wait.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- closing a context, stretched behind its end ---- */

static _Atomic bool slow_close, closing, seen;
static _Thread_local bool pause_now;

static void
pause_here(void)
{
	atomic_store_explicit(&closing, true, memory_order_relaxed);
	/* Until somebody has tried what is tried amid it; a minute, if nobody does. */
	for (int i = 0; i < 60000 && !atomic_load_explicit(&seen, memory_order_relaxed); i++)
		usleep(1000);
	atomic_store_explicit(&closing, false, memory_order_relaxed);
}

int
ibv_close_device(struct ibv_context *context)
{
	int (*next)(struct ibv_context *);
	int r;

	*(void **)&next = dlsym(RTLD_NEXT, "ibv_close_device");
	r = next(context);
	pause_now = atomic_load_explicit(&slow_close, memory_order_relaxed);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* free() is the sanitizer's, which sees by itself who comes too late. */
	if (pause_now)
		pause_here();
#endif
	return r;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void __libc_free(void *p);

/* What is freed right behind the close is our own memory of the context. */
void
free(void *p)
{
	__libc_free(p);
	if (!pause_now)
		return;
	pause_now = false;
	pause_here();
}
#endif

/* ---- a device without DC: the library's answer, bent ---- */

static const char *without_dc; /* the device's name; NULL: all have it */

bool
mlx5dv_is_supported(struct ibv_device *device)
{
	bool (*next)(struct ibv_device *);

	if (without_dc && strcmp(ibv_get_device_name(device), without_dc) == 0)
		return false;
	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_is_supported");
	return next(device);
}

/* ---- what memory and address handles are asked for with ---- */

static unsigned access_asked;
static uint32_t labels[16];
static _Atomic int label_nr;

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int);

	access_asked = access;
	*(void **)&next = dlsym(RTLD_NEXT, "ibv_reg_mr_iova2");
	return next(pd, addr, length, iova, access);
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *(*next)(struct ibv_pd *, struct ibv_ah_attr *);
	int n = atomic_fetch_add(&label_nr, 1);

	if (n < 16)
		labels[n] = attr->grh.flow_label;
	*(void **)&next = dlsym(RTLD_NEXT, "ibv_create_ah");
	return next(pd, attr);
}

static struct conf_rdma conf;
static char err[256];

static void
configure(int n, char *const *devices)
{
	conf = (struct conf_rdma){
		.mode = n ? RDMA_LIST : RDMA_AUTO, .device_nr = n, .traffic_class = 96, .hop_limit = 64
	};
	conf.timeout = 16;
	conf.retry_cnt = 7;
	conf.max_sge = 10;
	for (int i = 0; i < n; i++)
		conf.devices[i] = devices[i];
}

static struct rdma *
must_open(int n, char *const *devices)
{
	struct rdma *rd;

	configure(n, devices);
	assert_int_equal(rdma_open(&conf, &rd, err, sizeof err), 0);
	return rd;
}

static const struct rdma_ep_ops *
dc(struct rdma *rd)
{
	return rdma_rail_transport(rdma_rail(rd, 0), 0);
}

static void
expect_missing(char *device, const char *said)
{
	struct rdma *rd = must_open(1, &device);
	char what[256];

	assert_int_equal(rdma_rail_nr(rd), 0);
	assert_true(rdma_missing(rd, what, sizeof what));
	assert_non_null(strstr(what, device));
	assert_non_null(strstr(what, said));
	rdma_close(rd);
}

static void
expect_nonsense(char *device, const char *said)
{
	struct rdma *rd = NULL;

	configure(1, &device);
	err[0] = 0;
	assert_int_equal(rdma_open(&conf, &rd, err, sizeof err), -EINVAL);
	assert_null(rd);
	assert_non_null(strstr(err, device));
	assert_non_null(strstr(err, said));
}

static void
automatic(void **state)
{
	struct rdma *rd = must_open(0, NULL);
	struct rdma_rail_info info;

	assert_int_equal(rdma_rail_nr(rd), 2);
	rdma_rail_get_info(rdma_rail(rd, 1), &info);
	assert_string_equal(info.device, "mlx5_1");
	assert_int_equal(info.port, 1);
	assert_true(info.is_ethernet);
	assert_int_equal(info.state, RAIL_UP);
	assert_true(info.fw_ver[0]);
	assert_int_equal(info.gid[10], 0xff);
	assert_int_equal(info.gid[15], 2);
	assert_int_equal(info.max_rd_atomic, 16);
	assert_true(info.active_mtu >= 256);
	assert_true(info.max_msg_bytes >= 1u << 20);
	rdma_close(rd);
}

static void
none(void **state)
{
	struct rdma *rd;

	configure(0, NULL);
	conf.mode = RDMA_NONE;
	assert_int_equal(rdma_open(&conf, &rd, err, sizeof err), 0);
	assert_int_equal(rdma_rail_nr(rd), 0);
	rdma_close(rd);
	rdma_close(NULL);
}

static void
by_name_address_and_gid(void **state)
{
	static char *one[] = { "mlx5_1" }, *port[] = { "mlx5_0:1" }, *v4[] = { "127.0.0.2" };
	static char *gid[] = { "0000:0000:0000:0000:0000:ffff:7f00:0001" },
		    *twice[] = { "mlx5_0", "127.0.0.1", "mlx5_0:1" };
	struct {
		char **names;
		int n;
		const char *device;
	} row[] = { { one, 1, "mlx5_1" },
		    { port, 1, "mlx5_0" },
		    { v4, 1, "mlx5_1" },
		    { gid, 1, "mlx5_0" },
		    { twice, 3, "mlx5_0" } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct rdma *rd = must_open(row[i].n, row[i].names);
		struct rdma_rail_info info;

		assert_int_equal(rdma_rail_nr(rd), 1);
		rdma_rail_get_info(rdma_rail(rd, 0), &info);
		assert_string_equal(info.device, row[i].device);
		rdma_close(rd);
	}
	expect_missing("mlx5_9", "no such device");
	expect_missing("mlx5_0:2", "no such port");
	expect_missing("10.9.8.7", "no GID table");
	expect_missing("fd12::1", "no GID table");
	expect_nonsense("mlx5_0:x", "no device, address or GID");
}

static int
route(struct rdma *rd, const char *to, const char *local, struct rail_route *ret)
{
	struct token tok = { .kind = TOKEN_DC, .have_gid = true, .gid = { [10] = 0xff, [11] = 0xff } };
	struct sockaddr_in sin = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, to, tok.gid + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, to, tok.gid), 1);
	if (local)
		assert_int_equal(inet_pton(AF_INET, local, &sin.sin_addr), 1);
	return rdma_route(
		rd, &tok,
		&(struct rdma_asker){ .local = local ? (struct sockaddr *)&sin : NULL, .numa_node = -1 },
		ret);
}

/* item 26 */
static void
routes(void **state)
{
	static char *v4[] = { "127.0.0.2" };
	struct rdma *rd = must_open(0, NULL);
	struct rail_route r;

	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.2", &r), 0);
	assert_int_equal(r.rail, 1);
	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	assert_int_equal(r.rail, 0);
	/* In no rail's subnet: where HTTP came in means nothing. */
	assert_int_equal(route(rd, "fd00::9", "127.0.0.2", &r), 0);
	assert_int_equal(r.rail, 0);
	rdma_close(rd);
	/* Chosen by an address, a rail uses only that. */
	rd = must_open(1, v4);
	assert_int_equal(route(rd, "127.0.0.9", NULL, &r), 0);
	assert_int_equal(route(rd, "fd00::9", NULL, &r), -ENETDOWN);
	rdma_close(rd);
}

static void
trust(void **state)
{
	struct rdma *rd = must_open(0, NULL);
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };

	assert_int_equal(rdma_gid_allowed(rd, &conf, gid, NULL), -EHOSTUNREACH);
	conf.allow_loopback = true;
	assert_int_equal(rdma_gid_allowed(rd, &conf, gid, NULL), 0);
	gid[12] = 10;
	assert_int_equal(rdma_gid_allowed(rd, &conf, gid, NULL), -EHOSTUNREACH);
	rdma_close(rd);
}

static void
regions(void **state)
{
	struct rdma *rd = must_open(0, NULL);
	static char mem[2][65536];
	uint64_t n[2], was;

	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_region_add(rd, mem[i], sizeof mem[i], &n[i], err, sizeof err), 0);
	assert_int_equal((uint32_t)n[0], 0);
	assert_int_equal((uint32_t)n[1], 1);
	was = n[0];
	/* Nothing is mapped there: an error with a reason, and the number is not used up. */
	assert_true(rdma_region_add(rd, (void *)4096, 65536, &n[0], err, sizeof err) < 0);
	assert_non_null(strstr(err, "65536"));
	assert_true(n[0] == was);
	assert_int_equal(rdma_region_add(rd, mem[1], 4096, &n[0], err, sizeof err), 0);
	assert_int_equal((uint32_t)n[0], 2);
	rdma_close(rd);
}

struct waiter {
	struct rdma_target_wait w;
	_Atomic bool heard;
};

static void
on_target(struct rdma_target_wait *w)
{
	atomic_store(&container_of(w, struct waiter, w)->heard, true);
}

/* Buffers are written to in any order where that is asked for, and never by a peer. */
static void
ordering(void **state)
{
	static const struct {
		enum conf_ordering how;
		unsigned want;
	} row[] = { { ORDERING_ON, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING },
		    { ORDERING_OFF, IBV_ACCESS_LOCAL_WRITE } };
	static char mem[65536];

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct rdma_rail_info info;
		struct rdma *rd;
		uint64_t n;

		configure(0, NULL);
		conf.relaxed_ordering = row[i].how;
		assert_int_equal(rdma_open(&conf, &rd, err, sizeof err), 0);
		assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &n, err, sizeof err), 0);
		assert_int_equal(access_asked, row[i].want);
		rdma_rail_get_info(rdma_rail(rd, 0), &info);
		assert_int_equal(info.relaxed_ordering, row[i].how == ORDERING_ON);
		rdma_close(rd);
	}
}

/* A number is a region's own: it does not come again, whatever slot is free.  There may be more of them than
 * anybody has thought of. */
static void
regions_come_and_go(void **state)
{
	enum { MANY = 2100 };
	struct rdma *rd = must_open(0, NULL);
	static char mem[65536];
	static uint64_t many[MANY];
	uint64_t first, n, was = 0;

	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &first, err, sizeof err), 0);
	assert_int_equal((uint32_t)first, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rdma_region_add(rd, mem, 4096, &n, err, sizeof err), 0);
		assert_int_equal((uint32_t)n, 1);
		assert_true(n > was);
		was = n;
		assert_int_equal(rdma_region_del(rd, n), 0);
		assert_int_equal(rdma_region_del(rd, n), -ENOENT);
	}
	assert_int_equal(rdma_region_del(rd, first), 0);
	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &n, err, sizeof err), 0);
	assert_true(n != first);
	assert_int_equal((uint32_t)n, (uint32_t)first);
	assert_int_equal(rdma_region_del(rd, first), -ENOENT);
	assert_int_equal(rdma_region_del(rd, RDMA_NO_REGION), -ENOENT);
	assert_int_equal(rdma_region_del(rd, INT_MAX), -ENOENT);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(rdma_region_add(rd, mem, 4096, &many[i], err, sizeof err), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(rdma_region_del(rd, many[i]), 0);
	assert_int_equal(rdma_region_del(rd, many[MANY - 1]), -ENOENT);
	assert_int_equal(rdma_region_del(rd, n), 0);
	rdma_close(rd);
}

struct adder {
	struct rdma *rd;
	pthread_t thread;
	_Atomic int adds;
	char mem[8192];
	_Atomic bool stop, failed;
};

static void *
add_and_remove(void *arg)
{
	struct adder *a = arg;
	char why[256];
	uint64_t n;
	int r;

	while (!atomic_load(&a->stop)) {
		if (rdma_region_add(a->rd, a->mem, sizeof a->mem, &n, why, sizeof why) < 0) {
			fprintf(stderr, "%s\n", why);
			atomic_store(&a->failed, true);
			break;
		}
		/* A device that has died keeps it until it was closed. */
		wait_until((r = rdma_region_del(a->rd, n)) != -EINPROGRESS && r != -EIO && r != -ENODEV)
			usleep(1000);
		if (r < 0) {
			fprintf(stderr, "it cannot be removed: %s\n", strerror(-r));
			atomic_store(&a->failed, true);
			break;
		}
		a->adds++;
	}
	return NULL;
}

static void wait_rail(struct rdma_rail *rail, unsigned context, enum rail_state state);

/* From several threads, while another posts, and while a device dies and is opened anew. */
static void
regions_from_any_thread(void **state)
{
	static struct adder a[3];
	static char mem[65536];
	struct rdma *rd = must_open(0, NULL);
	struct rdma_rail *rail = rdma_rail(rd, 0);
	struct token tok = { .kind = TOKEN_DC, .dctn = 9 };
	struct waiter w = { .w.done = on_target };
	struct rdma_completion wc[16];
	struct rdma_target to;
	struct rail_route r;
	struct rdma_cq *cq;
	struct rdma_ep *ep;
	struct rdma_sge sge = { .mem = mem, .len = 64 };
	char cmd[512];
	int n;

	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &sge.region, err, sizeof err), 0);
	memset(a, 0, sizeof a);
	for (int i = 0; i < 3; i++) {
		a[i].rd = rd;
		assert_int_equal(pthread_create(&a[i].thread, NULL, add_and_remove, &a[i]), 0);
	}
	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	n = rdma_target_get(rail, &tok, &r, &w.w, &to);
	wait_until(n != 0 || atomic_load(&w.heard))
		usleep(100);
	to = n > 0 ? to : w.w.target;
	assert_int_equal(rdma_cq_new(dc(rd), rail, 1024, 0, &cq), 0);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &ep), 0);
	/* Nobody is there: the first fails, the others flush, and that is all the same here. */
	for (int i = 0; i < 12; i++)
		assert_int_equal(rdma_ep_post(ep, &(struct rdma_wr){ .is_write = true,
								     .target = &to,
								     .sge = &sge,
								     .sge_nr = 1 }),
				 0);
	for (int done = 0; done < 12; done += n) {
		n = rdma_cq_poll(cq, wc, 16);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			assert_int_not_equal(wc[i].status, WCS_SUCCESS);
			assert_int_not_equal(wc[i].wc_status, IBV_WC_SUCCESS);
		}
	}
	assert_int_equal(rdma_ep_free(ep, true), 0);
	rdma_target_put(rail, &to);
	rdma_cq_free(cq);
	if (getenv("PORTCTL")) {
		snprintf(cmd, sizeof cmd, "%s device mlx5_0 reset pid=%d destroy=lies", getenv("PORTCTL"),
			 getpid());
		assert_int_equal(system(cmd), 0);
		wait_rail(rail, 2, RAIL_UP);
	}
	for (int i = 0; i < 3; i++) {
		int before = a[i].adds;

		wait_until(a[i].adds >= before + 10 || atomic_load(&a[i].failed))
			usleep(1000);
		atomic_store(&a[i].stop, true);
		pthread_join(a[i].thread, NULL);
		assert_false(atomic_load(&a[i].failed));
		assert_true(a[i].adds > 10);
	}
	rdma_close(rd);
}

/* Rails, regions and what is configured are each instance's own. */
static void
two_instances(void **state)
{
	static char *second[] = { "mlx5_1" };
	static char mem[2][65536];
	struct rdma *a = must_open(0, NULL), *b = must_open(1, second);
	struct rdma_ep_limits la, lb;
	uint64_t ra, rb;

	assert_int_equal(rdma_rail_nr(a), 2);
	assert_int_equal(rdma_rail_nr(b), 1);
	assert_int_equal(rdma_region_add(a, mem[0], sizeof mem[0], &ra, err, sizeof err), 0);
	assert_int_equal(rdma_region_add(b, mem[1], sizeof mem[1], &rb, err, sizeof err), 0);
	assert_int_equal((uint32_t)ra, 0);
	assert_int_equal((uint32_t)rb, 0);
	assert_int_equal(rdma_region_del(a, ra), 0);
	assert_int_equal(rdma_region_del(b, rb), 0);
	rdma_ep_limits(dc(a), rdma_rail(a, 0), 12, &la);
	configure(0, NULL); /* a copy was taken */
	rdma_ep_limits(dc(b), rdma_rail(b, 0), 12, &lb);
	assert_int_equal(la.max_sge, lb.max_sge);
	rdma_close(a);
	assert_int_equal(rdma_region_add(b, mem[1], sizeof mem[1], &rb, err, sizeof err), 0);
	assert_int_equal(rdma_rail_state(rdma_rail(b, 0)), RAIL_UP);
	rdma_close(b);
}

/* ---- a device without DC ---- */

static int
route_of(struct rdma *rd, enum token_kind kind)
{
	struct token tok = { .kind = kind,
			     .have_gid = true,
			     .gid = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 9 } };
	struct rail_route r;

	return rdma_route(rd, &tok, &(struct rdma_asker){ .numa_node = -1 }, &r);
}

static void
a_device_without_dc(void **state)
{
	static char *both[] = { "mlx5_0", "mlx5_1" }, *one[] = { "mlx5_1" };
	static char mem[65536];
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
	struct rdma_rail_info info;
	struct rail_route r;
	struct rdma *rd;
	uint64_t n;

	/* By itself it is not picked. */
	without_dc = "mlx5_1";
	rd = must_open(0, NULL);
	assert_int_equal(rdma_rail_nr(rd), 1);
	assert_int_equal(route_of(rd, TOKEN_DC), 0);
	rdma_close(rd);
	/* Named it is a rail, to which no route leads; nothing is registered with it. */
	rd = must_open(2, both);
	assert_int_equal(rdma_rail_nr(rd), 2);
	rdma_rail_get_info(rdma_rail(rd, 0), &info);
	assert_true(info.serves);
	rdma_rail_get_info(rdma_rail(rd, 1), &info);
	assert_string_equal(info.device, "mlx5_1");
	assert_false(info.serves);
	assert_int_equal(info.state, RAIL_UP);
	assert_null(rdma_rail_transport(rdma_rail(rd, 1), 0));
	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.2", &r), 0);
	assert_int_equal(r.rail, 0);
	assert_ptr_equal(r.ops, rdma_rail_transport(rdma_rail(rd, 0), 0));
	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &n, err, sizeof err), 0);
	assert_int_equal(rdma_region_del(rd, n), 0);
	rdma_close(rd);
	/* Alone: as if there were no device, for tokens and for what they may name. */
	rd = must_open(1, one);
	assert_int_equal(rdma_rail_nr(rd), 1);
	assert_int_equal(route_of(rd, TOKEN_DC), -ENODEV);
	assert_int_equal(rdma_gid_allowed(rd, &conf, gid, NULL), 0);
	assert_true(rdma_serves(rd, TOKEN_DC)); /* by another device, should it come */
	assert_false(rdma_serves(rd, TOKEN_RC_SHIM));
	rdma_close(rd);
	without_dc = NULL;
	assert_true(rdma_serves(NULL, TOKEN_DC));
	assert_false(rdma_serves(NULL, TOKEN_OFI));
}

static void
a_device_without_dc_is_listed(void **state)
{
	char *text = NULL, *line;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	configure(0, NULL);
	without_dc = "mlx5_1";
	assert_int_equal(rdma_list(&conf, out), 0);
	without_dc = NULL;
	fclose(out);
	line = strstr(text, "mlx5_0: firmware");
	assert_non_null(line);
	assert_non_null(strstr(line, ", DC, 16 READs at once, relaxed ordering "));
	assert_non_null(strstr(line, ", RC only with rdma.rc.shim: on, NUMA node"));
	line = strstr(text, "mlx5_1: firmware");
	assert_non_null(line);
	assert_non_null(strstr(line,
			       ", no DC transport: not an mlx5 device, RC only with rdma.rc.shim: on, NUMA "
			       "node"));
	assert_non_null(strstr(line, "port 1: Ethernet, active"));
	assert_non_null(strstr(line, "127.0.0.2: not used: the device has no transport that serves tokens"));
	assert_null(strstr(line, "source for"));
	free(text);
}

/* The transports of a device, and of one without DC, where RC is switched on. */
static void
rc_is_listed(void **state)
{
	char *text = NULL, *line;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	configure(0, NULL);
	conf.rc.shim = true;
	without_dc = "mlx5_1";
	assert_int_equal(rdma_list(&conf, out), 0);
	without_dc = NULL;
	fclose(out);
	assert_non_null(strstr(text, "mlx5_0: firmware"));
	assert_non_null(strstr(text, ", DC, RC, 16 READs at once, relaxed ordering "));
	assert_null(strstr(text, "only with"));
	line = strstr(text, "mlx5_1: firmware");
	assert_non_null(line);
	assert_non_null(strstr(line, ", RC, 16 READs at once, relaxed ordering "));
	assert_non_null(strstr(line, ", no DC transport: not an mlx5 device, NUMA node"));
	assert_non_null(strstr(line, "127.0.0.2: source for IPv4 targets"));
	free(text);
}

static void
listing(void **state)
{
	static char *v4[] = { "127.0.0.2" };
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	configure(1, v4);
	assert_int_equal(rdma_list(&conf, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "mlx5_0: firmware"));
	assert_non_null(strstr(text, "port 1: Ethernet, active"));
	assert_non_null(strstr(text, "127.0.0.1: not used: not in rdma.devices"));
	assert_non_null(strstr(text, "127.0.0.2: source for IPv4 targets"));
	assert_non_null(strstr(text, "not used: RoCE v1"));
	free(text);
}

static int
port(const char *state)
{
	char cmd[512];

	snprintf(cmd, sizeof cmd, "%s port mlx5_1 %s", getenv("PORTCTL"), state);
	return system(cmd);
}

/* A port that is down at the start is a rail that is down, and serves when it comes up; picked by itself it is spare until then. */
static void
down_at_the_start(void **state)
{
	static char *named[] = { "mlx5_1" };
	struct rdma_rail_info info;
	struct rdma *rd;

	if (!getenv("PORTCTL"))
		skip();
	for (int by_name = 0; by_name < 2; by_name++) {
		assert_int_equal(port("down"), 0);
		rd = must_open(by_name, named);
		assert_int_equal(rdma_rail_nr(rd), by_name ? 1 : 2);
		rdma_rail_get_info(rdma_rail(rd, !by_name), &info);
		assert_int_equal(info.state, RAIL_DOWN);
		assert_int_equal(info.spare, !by_name);
		assert_int_equal(port("up"), 0);
		wait_until((rdma_rail_get_info(rdma_rail(rd, !by_name), &info), info.state == RAIL_UP))
			usleep(1000);
		assert_false(info.spare);
		rdma_close(rd);
	}
}

/* ---- targets: address handles with a number ---- */

/* Equal destinations coalesce: a hundred waiters, one handle; each its own number. */
static void
handles_coalesce(void **state)
{
	struct rdma *rd = must_open(0, NULL);
	struct rdma_rail *rail = rdma_rail(rd, 0);
	static struct waiter w[100];
	struct token tok = { .kind = TOKEN_DC };
	struct rdma_target to, first = { 0 };
	struct rail_route r;

	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	for (int i = 0; i < 100; i++) {
		memset(&w[i], 0, sizeof w[i]);
		w[i].w.done = on_target;
		tok.dctn = (uint32_t)i;
		if (rdma_target_get(rail, &tok, &r, &w[i].w, &to) > 0) {
			w[i].w.target = to;
			w[i].heard = true;
		}
	}
	for (int i = 0; i < 100; i++) {
		wait_until(atomic_load(&w[i].heard))
			usleep(100);
		assert_int_equal(w[i].w.result, 0);
		first = first.ops ? first : w[i].w.target;
		assert_ptr_equal(w[i].w.target.at, first.at);
		assert_int_equal(w[i].w.target.nr, i);
	}
	assert_int_equal(rdma_rail_stats(rail)->ah_misses, 1);
	rdma_target_forget(rail, &first);
	rdma_target_forget(rail, &first);
	for (int i = 0; i < 100; i++)
		rdma_target_put(rail, &w[i].w.target);
	memset(&w[0], 0, sizeof w[0]);
	w[0].w.done = on_target;
	assert_int_equal(rdma_target_get(rail, &tok, &r, &w[0].w, &to), 0);
	wait_until(atomic_load(&w[0].heard))
		usleep(100);
	assert_int_equal(rdma_rail_stats(rail)->ah_misses, 2);
	rdma_target_put(rail, &w[0].w.target);
	rdma_close(rd);
}

/* A failure is remembered 5 s and then tried again; the next one twice as long, up to 2 minutes. */
static void
failures_are_remembered(void **state)
{
	static const uint64_t s[] = { 5, 10, 20, 40, 80, 120, 120 };
	static uint64_t now = 1000 * NS_PER_S;
	struct rail_route route = { .key = { .is_global = true, .sgid_index = 200 } }; /* no such source */
	struct token tok = { .kind = TOKEN_DC };
	struct rdma_rail *rail;
	struct rdma_target to;
	struct rdma *rd;

	clock_fake(&now);
	rd = must_open(0, NULL);
	rail = rdma_rail(rd, 0);
	route.ops = rdma_rail_transport(rail, 0);
	for (size_t i = 0; i < sizeof s / sizeof *s; i++) {
		struct waiter w = { .w.done = on_target };

		assert_int_equal(rdma_target_get(rail, &tok, &route, &w.w, &to), 0);
		wait_until(atomic_load(&w.heard))
			usleep(100);
		assert_int_equal(w.w.result, -EHOSTUNREACH);
		assert_null(w.w.target.at);
		assert_int_equal(rdma_rail_stats(rail)->ah_failed, i + 1);
		for (int again = 0; again < 3; again++)
			assert_int_equal(rdma_target_get(rail, &tok, &route, &w.w, &to), -EHOSTUNREACH);
		now += s[i] * NS_PER_S - 1;
		assert_int_equal(rdma_target_get(rail, &tok, &route, &w.w, &to), -EHOSTUNREACH);
		now++;
	}
	rdma_close(rd);
	clock_fake(NULL);
}

static struct waiter many[128];
static int many_nr;

/* How many of so many absent addresses of one client are waited for. */
static int
ask_many(struct rdma_rail *rail, int nr, uint8_t client, uint8_t net)
{
	struct rail_route route = { .ops = rdma_rail_transport(rail, 0),
				    .key = { .is_global = true, .sgid_index = 3 } };
	struct token tok = { .kind = TOKEN_DC };
	struct rdma_target to;
	int waits = 0;

	memcpy(route.key.dgid, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, [12] = 127, [13] = net }, 16);
	for (int i = 0; i < nr; i++) {
		int r;

		many[many_nr] = (struct waiter){ .w = { .done = on_target, .client = client } };
		route.key.dgid[15] = (uint8_t)(i + 100);
		r = rdma_target_get(rail, &tok, &route, &many[many_nr].w, &to);
		assert_true(r == 0 || r == -EHOSTUNREACH);
		waits += r == 0;
		many_nr += r == 0;
	}
	return waits;
}

/* A client has at most 8 handles under way, and others theirs all the same; who left hears nothing; who asks for one that takes
 * its time does not wait for it. */
static void
slow_handles_are_limited(void **state)
{
	static uint64_t now = 1000 * NS_PER_S;
	struct rail_route route = { .key = { .is_global = true, .sgid_index = 3 } };
	struct token tok = { .kind = TOKEN_DC };
	struct rdma *rd;
	struct rdma_rail *rail;
	struct rdma_target to;
	struct waiter w = { .w.done = on_target };

	if (!getenv("PORTCTL"))
		skip();
	clock_fake(&now);
	rd = must_open(0, NULL);
	rail = rdma_rail(rd, 0);
	route.ops = rdma_rail_transport(rail, 0);
	assert_int_equal(system("\"$PORTCTL\" reach absent=3600s"), 0);
	/* They hang for an hour. */
	assert_int_equal(ask_many(rail, 64, 1, 1), 8);
	assert_int_equal(ask_many(rail, 8, 1, 1), 8); /* the same ones again are no more work */
	for (int i = 0; i < 16; i++) {
		assert_true(rdma_target_leave(route.ops, rail, &many[i].w));
		assert_false(rdma_target_leave(route.ops, rail, &many[i].w));
	}
	now += RDMA_TARGET_WAIT_NS + 1;
	assert_int_equal(ask_many(rail, 8, 2, 1), 0); /* known to be slow */
	/* One that is there. */
	memcpy(route.key.dgid, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 }, 16);
	w.w.client = 2;
	assert_int_equal(rdma_target_get(rail, &tok, &route, &w.w, &to), 0);
	wait_until(atomic_load(&w.heard))
		usleep(100);
	assert_int_equal(w.w.result, 0);
	rdma_target_put(rail, &w.w.target);
	assert_int_equal(system("\"$PORTCTL\" reach absent=0"), 0);
	rdma_close(rd);
	clock_fake(NULL);
}

/* --- endpoints --- */

/* item 24: whatever the operator configures reaches RTS, and comes back from the error state. */
static void
endpoints_take_the_settings(void **state)
{
	static const struct {
		int mtu, timeout, retry, rnr, rd, tclass, hops, sl;
	} row[] = { { 0, 16, 7, 7, 0, 96, 64, 0 },
		    { 1024, 1, 0, 0, 1, 106, 4, 3 },
		    { 4096, 31, 7, 7, 16, 255, 255, 7 },
		    { 256, 14, 3, 1, 8, 0, 1, 5 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct rdma_ep_limits lim;
		struct rdma_cq *cq;
		struct rdma_ep *ep;
		struct rdma *rd;

		configure(0, NULL);
		conf.path_mtu = row[i].mtu;
		conf.timeout = row[i].timeout;
		conf.retry_cnt = row[i].retry;
		conf.rnr_retry = row[i].rnr;
		conf.max_rd_atomic = row[i].rd;
		conf.traffic_class = row[i].tclass;
		conf.hop_limit = row[i].hops;
		conf.service_level = row[i].sl;
		assert_int_equal(rdma_open(&conf, &rd, err, sizeof err), 0);
		rdma_ep_limits(dc(rd), rdma_rail(rd, 0), 12, &lim);
		assert_int_equal(lim.send_depth, 12);
		assert_int_equal(lim.read_depth, row[i].rd ? row[i].rd : 16); /* item 32 */
		assert_int_equal(rdma_cq_new(dc(rd), rdma_rail(rd, 0), 64, 0, &cq), 0);
		assert_int_equal(rdma_cq_new(dc(rd), rdma_rail(rd, 0), 1 << 30, 0, &cq), -EINVAL);
		assert_int_equal(rdma_ep_new(dc(rd), rdma_rail(rd, 0), cq, 12, &ep), 0);
		assert_int_equal(rdma_ep_error(ep), 0);
		assert_int_equal(rdma_ep_reset(ep), 0);
		assert_int_equal(rdma_ep_free(ep, true), 0);
		rdma_cq_free(cq);
		rdma_close(rd);
	}
}

/* Each core takes one of four ways to a client, each with a flow label of its own; the first to ask finds the address, for all, and
 * nobody waits again. */
static void
paths_to_a_client(void **state)
{
	struct rdma *rd = must_open(0, NULL);
	struct rdma_rail *rail = rdma_rail(rd, 0);
	struct token tok = { .kind = TOKEN_DC,
			     .have_gid = true,
			     .gid = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 } };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int handles = atomic_load(&label_nr), hits = 0;

	for (unsigned core = 0; core < 8; core++) {
		struct waiter w = { .w.done = on_target };
		struct rdma_target to = { 0 };
		struct rail_route r;
		int n;

		assert_int_equal(rdma_route(rd, &tok,
					    &(struct rdma_asker){ .local = (struct sockaddr *)&sin,
								  .numa_node = -1,
								  .core = core },
					    &r),
				 0);
		assert_int_equal(r.key.path, core % 4);
		n = rdma_target_get(rail, &tok, &r, &w.w, &to);
		assert_int_equal(n, core > 0);
		wait_until(n != 0 || atomic_load(&w.heard))
			usleep(100);
		to = n > 0 ? to : w.w.target;
		assert_int_equal(w.w.result, 0);
		assert_non_null(to.ops);
		rdma_target_put(rail, &to);
		/* Each is made by the time that the next core asks. */
		wait_until(atomic_load(&label_nr) - handles >= (int)(core < 4 ? core + 1 : 4))
			usleep(100);
	}
	assert_int_equal(atomic_load(&label_nr) - handles, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_not_equal(labels[handles + i], 0);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(labels[handles + i], labels[handles + k]);
	}
	/* Three took the first way, while their own was made. */
	for (int i = 0; i < 4; i++)
		hits += (int)rdma_rail_stats(rail)->ah_hits[i];
	assert_int_equal(hits, 7);
	assert_true(rdma_rail_stats(rail)->ah_hits[0] >= 1);
	assert_int_equal(rdma_rail_stats(rail)->ah_misses, 4);
	rdma_close(rd);
}

/* --- contexts --- */

static void
wait_rail(struct rdma_rail *rail, unsigned context, enum rail_state state)
{
	wait_until(rdma_rail_context(rail) == context && rdma_rail_state(rail) == state)
		usleep(1000);
}

struct last_job {
	struct rdma_job job;
	_Atomic bool is_run;
};

static void
on_last_job(struct rdma_job *job)
{
	atomic_store(&container_of(job, struct last_job, job)->is_run, true);
}

/* Waits until the async helper has looked at every device since the call, and the recovery helper of the rail
 * has run each job that the async helper gave it. */
static void
helpers_turn(struct rdma *rd, struct rdma_rail *rail)
{
	struct last_job last = { .job.run = on_last_job };

	/* The flag is taken at the beginning of a round, so after the second time a whole one is over. */
	for (int i = 0; i < 2; i++) {
		atomic_store(&rd->async.read_now, true);
		async_wake(rd);
		wait_until(!atomic_load(&rd->async.read_now))
			usleep(100);
	}
	rdma_job_post(rail, &last.job);
	wait_until(atomic_load(&last.is_run))
		usleep(100);
}

/* A context that dies, under a library that says that destroying works: regions are registered anew, an old
 * handle is refused, and an initiator is gone when the context is closed, not before. */
static void
a_context_dies(void **state)
{
	static char mem[65536], gone_mem[4096];
	struct rdma_rail_info info;
	struct rdma_ep *ep, *idle;
	struct token tok = { .kind = TOKEN_DC, .dctn = 9 };
	struct rdma_target to = { 0 };
	struct rdma_sge sge = { .mem = mem, .len = 64 };
	struct waiter w = { .w.done = on_target };
	struct rail_route r;
	struct rdma_rail *rail;
	char cmd[512];
	struct rdma_cq *cq;
	struct rdma *rd;
	uint64_t region, gone;
	int n;

	if (!getenv("PORTCTL"))
		skip();
	rd = must_open(0, NULL);
	rail = rdma_rail(rd, 0);
	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &region, err, sizeof err), 0);
	assert_int_equal(rdma_region_add(rd, gone_mem, sizeof gone_mem, &gone, err, sizeof err), 0);
	assert_int_equal(rdma_cq_new(dc(rd), rail, 64, 0, &cq), 0);
	assert_int_equal(rdma_cq_context(cq), 1);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &ep), 0);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &idle), 0);
	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	n = rdma_target_get(rail, &tok, &r, &w.w, &to);
	wait_until(n != 0 || atomic_load(&w.heard))
		usleep(100);
	to = n > 0 ? to : w.w.target;
	assert_non_null(to.at);

	snprintf(cmd, sizeof cmd, "%s device mlx5_0 reset pid=%d destroy=lies", getenv("PORTCTL"), getpid());
	assert_int_equal(system(cmd), 0);
	wait_rail(rail, 1, RAIL_LOST);
	n = rdma_ep_free(ep, false);
	assert_true(n == -EAGAIN || n == -EINPROGRESS);
	wait_rail(rail, 0, RAIL_LOST);
	assert_int_equal(rdma_cq_new(dc(rd), rail, 64, 0, &(struct rdma_cq *){ NULL }), -ENODEV);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &(struct rdma_ep *){ NULL }), -ENODEV);
	assert_int_equal(rdma_ep_free(ep, false), -EINPROGRESS);
	assert_int_equal(rdma_ep_free(idle, true), 0);
	/* So is the memory of a region that is removed now. */
	assert_int_equal(rdma_region_del(rd, gone), -EINPROGRESS);
	helpers_turn(rd, rail);
	assert_int_equal(rdma_region_del(rd, gone), -EINPROGRESS);
	assert_int_equal(rdma_rail_context(rail), 0); /* the queue still refers to the old one */
	assert_int_equal(rdma_ep_free(ep, false), -EINPROGRESS);
	rdma_cq_free(cq);
	wait_rail(rail, 2, RAIL_UP);
	assert_int_equal(rdma_region_del(rd, gone), 0);
	assert_int_equal(rdma_region_del(rd, gone), -ENOENT);
	assert_int_equal(rdma_ep_free(ep, false), 0);
	assert_int_equal(rdma_rail_stats(rail)->reopens, 1);
	assert_int_equal(rdma_rail_context(rdma_rail(rd, 1)), 1);
	assert_int_equal(rdma_rail_state(rdma_rail(rd, 1)), RAIL_UP);
	rdma_rail_get_info(rail, &info);
	assert_true(info.fw_ver[0]);

	assert_int_equal(rdma_cq_new(dc(rd), rail, 64, 0, &cq), 0);
	assert_int_equal(rdma_cq_context(cq), 2);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &ep), 0);
	sge.region = region;
	assert_int_equal(
		rdma_ep_post(ep,
			     &(struct rdma_wr){ .is_write = true, .target = &to, .sge = &sge, .sge_nr = 1 }),
		-ESTALE);
	rdma_target_put(rail, &to);
	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	atomic_store(&w.heard, false);
	assert_int_equal(rdma_target_get(rail, &tok, &r, &w.w, &to), 0);
	wait_until(atomic_load(&w.heard))
		usleep(100);
	assert_int_equal(w.w.result, 0);
	assert_int_equal(rdma_ep_post(ep, &(struct rdma_wr){ .is_write = true,
							     .target = &w.w.target,
							     .sge = &sge,
							     .sge_nr = 1 }),
			 0);
	sge.region = gone;
	assert_int_equal(rdma_ep_post(ep, &(struct rdma_wr){ .is_write = true,
							     .target = &w.w.target,
							     .sge = &sge,
							     .sge_nr = 1 }),
			 -ESTALE);
	rdma_target_put(rail, &w.w.target);
	assert_int_equal(rdma_ep_free(ep, true), 0);
	rdma_cq_free(cq);

	/* The end amid all this: the context is closed on the way. */
	assert_int_equal(rdma_cq_new(dc(rd), rail, 64, 0, &cq), 0);
	assert_int_equal(system(cmd), 0);
	wait_rail(rail, 0, RAIL_LOST);
	rdma_cq_free(cq);
	rdma_close(rd);
}

/* Who removes a region while the old context is being closed finds that one's memory gone, and its number
 * not. */
static void
a_region_leaves_amid_the_close(void **state)
{
	static char mem[65536];
	struct rdma_rail *rail;
	uint64_t start = clock_ns();
	struct rdma *rd;
	char cmd[512];
	uint64_t region;
	int n = -EINPROGRESS, tries = 0;

	if (!getenv("PORTCTL"))
		skip();
	rd = must_open(0, NULL);
	rail = rdma_rail(rd, 0);
	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &region, err, sizeof err), 0);
	atomic_store(&slow_close, true);
	snprintf(cmd, sizeof cmd, "%s device mlx5_0 reset pid=%d destroy=lies", getenv("PORTCTL"), getpid());
	assert_int_equal(system(cmd), 0);
	wait_until(atomic_load_explicit(&closing, memory_order_relaxed))
		usleep(100);
	for (start = clock_ns(); atomic_load_explicit(&closing, memory_order_relaxed); tries++) {
		n = rdma_region_del(rd, region);
		assert_true(n == -EINPROGRESS || n == 0 || n == -ENOENT);
		if (clock_ns() - start > 300 * NS_PER_MS)
			atomic_store_explicit(&seen, true, memory_order_relaxed);
	}
	assert_true(tries > 0);
	atomic_store(&slow_close, false);
	wait_rail(rail, 2, RAIL_UP);
	if (n == -EINPROGRESS)
		assert_int_equal(rdma_region_del(rd, region), 0);
	assert_int_equal(rdma_region_del(rd, region), -ENOENT);
	rdma_close(rd);
}

/* What was added and removed while a device did not answer is not lost in a device that answers again
 * soon: it is opened anew all the same. */
static void
regions_of_a_device_that_comes_back(void **state)
{
	static char mem[65536], gone_mem[4096];
	struct token tok = { .kind = TOKEN_DC, .dctn = 9 };
	struct waiter w = { .w.done = on_target };
	struct rdma_sge sge = { .mem = mem, .len = 64 };
	struct rdma_target to;
	struct rdma_rail *rail;
	struct rail_route r;
	struct rdma_cq *cq;
	struct rdma_ep *ep;
	struct rdma *rd;
	char cmd[512];
	uint64_t gone;
	int n;

	if (!getenv("PORTCTL"))
		skip();
	rd = must_open(0, NULL);
	rail = rdma_rail(rd, 0);
	assert_int_equal(rdma_region_add(rd, gone_mem, sizeof gone_mem, &gone, err, sizeof err), 0);
	snprintf(cmd, sizeof cmd, "%s device mlx5_0 lost", getenv("PORTCTL"));
	assert_int_equal(system(cmd), 0);
	wait_rail(rail, 1, RAIL_LOST);
	assert_int_equal(rdma_region_add(rd, mem, sizeof mem, &sge.region, err, sizeof err), 0);
	assert_int_equal(rdma_region_del(rd, gone), -EINPROGRESS);
	snprintf(cmd, sizeof cmd, "%s device mlx5_0 back", getenv("PORTCTL"));
	assert_int_equal(system(cmd), 0);
	wait_rail(rail, 2, RAIL_UP);
	assert_int_equal(rdma_region_del(rd, gone), 0);

	assert_int_equal(route(rd, "127.0.0.9", "127.0.0.1", &r), 0);
	n = rdma_target_get(rail, &tok, &r, &w.w, &to);
	wait_until(n != 0 || atomic_load(&w.heard))
		usleep(100);
	to = n > 0 ? to : w.w.target;
	assert_int_equal(rdma_cq_new(dc(rd), rail, 64, 0, &cq), 0);
	assert_int_equal(rdma_ep_new(dc(rd), rail, cq, 12, &ep), 0);
	assert_int_equal(
		rdma_ep_post(ep,
			     &(struct rdma_wr){ .is_write = true, .target = &to, .sge = &sge, .sge_nr = 1 }),
		0);
	assert_int_equal(rdma_ep_free(ep, true), 0);
	rdma_target_put(rail, &to);
	rdma_cq_free(cq);
	rdma_close(rd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(automatic),
		cmocka_unit_test(none),
		cmocka_unit_test(by_name_address_and_gid),
		cmocka_unit_test(routes),
		cmocka_unit_test(trust),
		cmocka_unit_test(paths_to_a_client), /* before other handles */
		cmocka_unit_test(regions),
		cmocka_unit_test(ordering),
		cmocka_unit_test(regions_come_and_go),
		cmocka_unit_test(regions_from_any_thread),
		cmocka_unit_test(two_instances),
		cmocka_unit_test(a_device_without_dc),
		cmocka_unit_test(a_device_without_dc_is_listed),
		cmocka_unit_test(rc_is_listed),
		cmocka_unit_test(listing),
		cmocka_unit_test(down_at_the_start),
		cmocka_unit_test(handles_coalesce),
		cmocka_unit_test(failures_are_remembered),
		cmocka_unit_test(slow_handles_are_limited),
		cmocka_unit_test(endpoints_take_the_settings),
		cmocka_unit_test(a_context_dies),
		cmocka_unit_test(a_region_leaves_amid_the_close),
		cmocka_unit_test(regions_of_a_device_that_comes_back),
	};
	struct rdma *rd;
	int nr;

	log_init(LOG_PLAIN, getenv("VERBOSE") ? LOG_DEBUG : LOG_ERROR);
	configure(0, NULL);
	if (rdma_open(&conf, &rd, err, sizeof err) < 0) {
		fprintf(stderr, "rdma_open: %s\n", err);
		return 1;
	}
	nr = rdma_rail_nr(rd);
	rdma_close(rd);
	if (nr != 2) {
		printf("%d RDMA rails, and two are needed\n", nr);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
