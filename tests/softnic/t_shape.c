/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of the software NIC's network: subnets and routes, neighbours that are not there, InfiniBand beside Ethernet, calls
 * that take their time, the READ limit of an initiator, completion vectors.  shape.sh sets the devices up:
 *
 *     mlx5_0 10.1.1.1/24    mlx5_1 10.1.2.1/24    mlx5_2, mlx5_3 InfiniBand
 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 64 << 10 };

static struct hw_port devs[4];

/* errno of an address handle from a device to a token; 0: it was made. */
static int
handle(struct hw_port *d, const struct hw_token *t)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = 1, .dlid = t->lid };
	struct ibv_ah *ah;

	a.grh.dgid = t->gid;
	a.grh.sgid_index = t->lid ? 0 : SN_GID_ROW;
	errno = 0;
	ah = ibv_create_ah(d->pd, &a);
	if (!ah)
		return errno;
	ibv_destroy_ah(ah);

	return 0;
}

static int
transfer(struct hw_port *from, const struct hw_token *t)
{
	struct ibv_mr *mem = sn_mem_new(from, LEN);
	struct hw_dci i;
	int status;

	sn_dci_init(&i, from, NULL);
	sn_dci_to(&i, t);
	status = sn_xfer(&i, false, t, mem, mem->addr, LEN);
	sn_dci_fini(&i);
	sn_mem_free(mem);

	return status;
}

static void
test_subnets(void)
{
	struct hw_token near, far;
	struct hw_target a, b;
	struct hw_dci i;
	char line[512];

	sn_target_init(&a, &devs[0], LEN, all, all);
	sn_target_init(&b, &devs[1], LEN, all, all);
	sn_target_token(&a, &near);
	sn_target_token(&b, &far);
	ok(handle(&devs[0], &far) == 0 && transfer(&devs[0], &far) == IBV_WC_SUCCESS,
	   "a flat network at first");
	sn_dci_init(&i, &devs[0], NULL);
	sn_dci_to(&i, &far);
	sn_ctl("reach subnet");
	ok(ctl(line, "reach") == 0 && strncmp(line, "subnet", 6) == 0, "reach says so: %s", line);
	ok(handle(&devs[0], &near) == 0 && transfer(&devs[0], &near) == IBV_WC_SUCCESS, "its own subnet");
	ok(handle(&devs[0], &far) == ENETUNREACH, "another subnet");
	sn_ctl("route add mlx5_0 10.1.2.0/24");
	ok(ctl(line, "route list") == 0 && strcmp(line, "mlx5_0 10.1.2.0/24\n") == 0, "route list: %s", line);
	ok(handle(&devs[0], &far) == 0 && transfer(&devs[0], &far) == IBV_WC_SUCCESS, "with a route");
	ok(handle(&devs[1], &near) == ENETUNREACH, "which is that device's alone");
	sn_ctl("route del mlx5_0 10.1.2.0/24");
	ok(ctl(line, "route del mlx5_0 10.1.2.0/24") < 0, "no route is there twice");
	{
		struct ibv_mr *mem = sn_mem_new(&devs[0], LEN);

		ok(sn_xfer(&i, false, &far, mem, mem->addr, LEN) == IBV_WC_RETRY_EXC_ERR,
		   "a handle from before: the packets do not arrive");
		sn_mem_free(mem);
	}
	sn_dci_fini(&i);
	sn_ctl("reach all");
	ok(transfer(&devs[0], &far) == IBV_WC_SUCCESS, "flat again");
	ok(ctl(line, "reach nowhere") < 0 && ctl(line, "route add mlx5_0 10.1.2.0/33") < 0, "wrong words");
	sn_target_fini(&a);
	sn_target_fini(&b);
}

static void
test_absent(void)
{
	struct hw_token t = { 0 };
	uint64_t from_ms = sn_now_ms();

	must(ibv_query_gid(devs[0].ctx, 1, SN_GID_ROW, &t.gid) == 0);
	t.gid.raw[15] = 77;
	ok(handle(&devs[0], &t) == 0, "nobody is asked for at first");
	sn_ctl("reach absent=100ms");
	ok(handle(&devs[0], &t) == ETIMEDOUT && sn_now_ms() - from_ms >= 100,
	   "a neighbour that is not there");
	t.gid.raw[15] = 1;
	ok(handle(&devs[0], &t) == 0, "one that is");
	sn_ctl("reach absent=0");
}

static void
test_infiniband(void)
{
	char line[512];
	struct hw_token t, eth;
	struct hw_target ib, roce;
	struct ibv_gid_entry e[32];
	struct ibv_port_attr p;
	ssize_t n;

	must(ibv_query_port(devs[2].ctx, 1, &p) == 0);
	ok(p.link_layer == IBV_LINK_LAYER_INFINIBAND && p.lid == 0x13 && p.sm_lid, "a port with a LID");
	n = ibv_query_gid_table(devs[2].ctx, e, 32, 0);
	ok(n == 2 && e[0].gid_type == IBV_GID_TYPE_IB && e[0].gid.raw[0] == 0xfe &&
		   e[1].gid_type == IBV_GID_TYPE_IB,
	   "its GIDs: %zd", n);
	sn_target_init(&ib, &devs[3], LEN, all, all);
	sn_target_init(&roce, &devs[0], LEN, all, all);
	sn_target_token(&ib, &t);
	sn_target_token(&roce, &eth);
	ok(t.lid == 0x14 && transfer(&devs[2], &t) == IBV_WC_SUCCESS, "by LID");
	ok(handle(&devs[2], &t) == 0, "and by LID and GID");
	sn_ctl("port 3 lid 0x77");
	ok(sn_next_event(devs[3].ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_LID_CHANGE,
	   "an event of the new LID");
	ok(transfer(&devs[2], &t) == IBV_WC_RETRY_EXC_ERR, "the old one leads nowhere");
	sn_target_token(&ib, &t);
	ok(t.lid == 0x77 && transfer(&devs[2], &t) == IBV_WC_SUCCESS, "the new one does");
	ok(ctl(line, "port 0 lid 5") < 0 && ctl(line, "port 3 lid 0") < 0, "not on Ethernet, and not none");
	sn_ctl("port 3 lid 0x14");
	ok(sn_next_event(devs[3].ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_LID_CHANGE, "and back");
	t.lid = 0x55;
	ok(transfer(&devs[2], &t) == IBV_WC_RETRY_EXC_ERR, "a LID that nobody has");
	t.lid = 0;
	ok(transfer(&devs[0], &t) == IBV_WC_RETRY_EXC_ERR, "InfiniBand from an Ethernet port");
	eth.lid = 0x11;
	ok(transfer(&devs[2], &eth) == IBV_WC_RETRY_EXC_ERR, "Ethernet from an InfiniBand port");
	sn_target_fini(&ib);
	sn_target_fini(&roce);
}

static void
test_calls(void)
{
	static const char *const ops[] = { "create_cq", "create_qp",  "reg_mr",  "create_ah",
					   "modify_qp", "destroy_qp", "dereg_mr" };
	struct hw_token t = { 0 };
	struct hw_target a;
	char line[512];

	must(ibv_query_gid(devs[0].ctx, 1, SN_GID_ROW, &t.gid) == 0);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		uint64_t from_ms = sn_now_ms();

		must(ctl(line, "rule add op=%s delay=30ms limit=1", ops[i]) == 0);
		ok(!strstr(line, "error="), "it need not fail: %s", line);
		sn_target_init(&a, &devs[0], LEN, all, all);
		handle(&devs[0], &t);
		sn_target_fini(&a);
		must(ctl(line, "rule list") == 0);
		ok(strstr(line, "hits=1") && sn_now_ms() - from_ms >= 30, "%s takes its time: %s", ops[i],
		   line);
		clear();
	}
	rule("op=create_ah error=EHOSTUNREACH");
	ok(handle(&devs[0], &t) == EHOSTUNREACH, "EHOSTUNREACH");
	clear();
	rule("op=modify_qp error=EINVAL skip=2 limit=1");
	{
		struct ibv_cq *cq = ibv_create_cq(devs[0].ctx, 2, NULL, NULL, 0);
		struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
		struct ibv_srq *srq = ibv_create_srq(devs[0].pd, &sa);
		struct ibv_qp *qp = sn_dct_new(&devs[0], cq, srq);

		ok(sn_dct_init(&devs[0], qp, all) == 0 && sn_dct_rtr(&devs[0], qp) == 0, "two changes pass");
		ok(sn_dct_rtr(&devs[0], qp) == EINVAL, "the third is refused");
		clear();
		rule("op=destroy_qp error=EBUSY limit=1");
		ok(ibv_destroy_qp(qp) == EBUSY && ibv_destroy_qp(qp) == 0, "destroying refused once");
		clear();
		ibv_destroy_srq(srq);
		ibv_destroy_cq(cq);
	}
	ok(ctl(line, "rule add op=create_qp hold=1ms") < 0, "nothing else is for calls");
}

/* What firmware refuses, and that it takes its time. */
static void
test_firmware(void)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(devs[0].ctx, 2, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(devs[0].pd, &sa);
	struct hw_dci made[4];
	struct ibv_device_attr a;
	struct ibv_qp *qp;
	char line[512];
	int n = 0, r = 0;

	must(cq && srq);
	rule("op=create_dct error=EOPNOTSUPP");
	ok(!sn_dct_new(&devs[0], cq, srq) && errno == EOPNOTSUPP, "no target on a bond");
	ok(hw_dci_create(&made[0], &devs[0], &hw_dci_plain) == 0 && hw_dci_free(&made[0]) == 0,
	   "an initiator is there");
	clear();
	sn_ctl("firmware qps=3");
	ok(ibv_query_device(devs[0].ctx, &a) == 0 && a.max_qp == 3, "the attributes say three");
	qp = sn_dct_new(&devs[0], cq, srq);
	ok(qp != NULL, "a target is one of them");
	while (n < 4 && (r = hw_dci_create(&made[n], &devs[0], &hw_dci_plain)) == 0)
		n++;
	ok(n == 2 && r == -ENOMEM, "after two initiators more: %d, %d", n, r);
	ok(hw_dci_create(&made[3], &devs[1], &hw_dci_plain) == 0 && hw_dci_free(&made[3]) == 0,
	   "another device");
	ok(hw_dci_free(&made[0]) == 0 && hw_dci_create(&made[0], &devs[0], &hw_dci_plain) == 0,
	   "one destroyed makes room for one");
	while (n > 0)
		hw_dci_free(&made[--n]);
	ibv_destroy_qp(qp);
	ibv_destroy_srq(srq);
	ibv_destroy_cq(cq);
	sn_ctl("firmware qps=0 call=5ms");
	must(ctl(line, "firmware") == 0);
	ok(strcmp(line, "qps=0 call=5ms\n") == 0, "it says so: %s", line);

	uint64_t from_ms = sn_now_ms();

	/* Completion queue, queue pair, three steps, both destroyed: the queue pair alone by a command that can be refused. */
	ok(hw_dci_new(&made[0], &devs[0], &hw_dci_plain) == 0 && hw_dci_free(&made[0]) == 0, "commands");
	ok(sn_now_ms() - from_ms >= 6 * 5, "six of them took %d ms", (int)(sn_now_ms() - from_ms));
	sn_ctl("profile realistic");
	must(ctl(line, "firmware") == 0);
	ok(strcmp(line, "qps=0 call=60us\n") == 0, "realistic: %s", line);
	must(ctl(line, "reach") == 0);
	ok(strcmp(line, "subnet absent=1s\n") == 0, "realistic: %s", line);
	sn_ctl("profile flat");
	must(ctl(line, "reach") == 0);
	ok(strcmp(line, "all\n") == 0, "flat: %s", line);
	ok(ctl(line, "firmware call=x") < 0 && ctl(line, "firmware qps=-1") < 0 &&
		   ctl(line, "profile steep") < 0,
	   "nonsense");
}

/* Bytes of a WRITE that land when its initiator is in ERR, flushed, and polled. */
static void
test_ghost(void)
{
	struct hw_target t;
	struct hw_token to;
	struct hw_done done;
	struct hw_dci i;
	struct ibv_mr *from = sn_mem_new(&devs[0], LEN);
	uint64_t end;
	int threads;

	memset(from->addr, 0x5a, LEN);
	sn_target_init(&t, &devs[0], LEN, all, all);
	sn_target_token(&t, &to);
	sn_ctl("firmware ghost=30ms");
	threads = sn_threads(NULL);
	for (int later = 0; later < 2; later++) {
		memset(t.buf, 0, LEN);
		must(hw_dci_new(&i, &devs[0], &hw_dci_plain) == 0);
		sn_dci_to(&i, &to);
		rule("op=write delay=3600s limit=1");
		must(sn_post(&i, false, &to, to.addr, from, from->addr, LEN, 1) == 0);
		under_way(1);
		must(hw_dci_move(&i, IBV_QPS_ERR) == 0 && hw_wait(&i, SN_PATIENCE_MS, &done) == 0);
		ok(done.status == IBV_WC_WR_FLUSH_ERR, "flushed");
		ok(hw_dci_free(&i) == 0, "and destroyed");
		clear();
		memset(from->addr, 0x5a + later, LEN); /* ours again: what comes is what was there */
		for (end = sn_now_ms() + SN_PATIENCE_MS;
		     later == 0 && ((volatile uint8_t *)t.buf)[LEN - 1] == 0;)
			must(sn_now_ms() < end);
		ok(later || (t.buf[0] == 0x5a && t.buf[LEN - 1] == 0x5a), "its bytes come all the same");
		if (later == 0)
			sn_ctl("firmware ghost=0");
	}
	/* A ghost is a thread, which is there before the work request is flushed. */
	sn_threads_wait(NULL, threads);
	ok(t.buf[0] == 0 && t.buf[LEN - 1] == 0, "and do not without a ghost");
	sn_target_fini(&t);
	sn_mem_free(from);
}

/* Makes the kernel move what it may move, as it does for huge pages. */
static void
compact_memory(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);

	must(fd >= 0 || errno == ENOENT || errno == EROFS);
	must(fd < 0 || write(fd, "1", 1) == 1);
	close(fd);
}

/* Returns the smallest number that no descriptor has. */
static int
free_descriptor(void)
{
	int fd = dup(0);

	must(fd >= 0 && close(fd) == 0);
	return fd;
}

/* Registers a region again several times, deregisters it, and registers as much memory as the limit still allows. */
static void
reregister(struct ibv_mr *region, void *addr, size_t most)
{
	int fd = free_descriptor();

	for (int i = 0; i < 3; i++)
		ok(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ==
			   0,
		   "a region that is registered again counts once");
	ok(free_descriptor() == fd, "and has as many descriptors as before");
	ok(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, most, 0) != 0,
	   "no memory is there");
	ibv_dereg_mr(region);
	region = ibv_reg_mr(devs[0].pd, addr, most, IBV_ACCESS_LOCAL_WRITE);
	ok(region != NULL, "the region that is gone counts no more");
	ok(!ibv_reg_mr(devs[0].pd, addr, 1, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM,
	   "and was not subtracted twice");
	if (region)
		ibv_dereg_mr(region);
}

/* --pin: memory that moves after it was registered, here or there; more of it than may be locked. */
static int
pinned(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_mr *from = sn_mem_new(&devs[0], 4 * page), *again;
	struct rlimit limit;
	struct sn_remote r;
	int status = 0;

	sn_remote_start(&r, 1 << 16);
	sn_dci_init(&dci, &devs[0], NULL);
	sn_dci_to(&dci, &r.tok);
	ok(sn_xfer(&dci, false, &r.tok, from, from->addr, (uint32_t)(4 * page)) == 0 &&
		   sn_xfer(&dci, true, &r.tok, from, from->addr, (uint32_t)page) == 0,
	   "what stays is good");
	for (int i = 0; i < 20; i++) {
		compact_memory();
		must(sn_xfer(&dci, false, &r.tok, from, from->addr, (uint32_t)(4 * page)) == 0 &&
		     sn_xfer(&dci, true, &r.tok, from, from->addr, (uint32_t)page) == 0);
	}
	ok(true, "what is registered stays when the kernel moves pages");
	sn_remote_ask(&r, SN_REMAP, 0);
	ok(sn_xfer(&dci, false, &r.tok, from, from->addr, 64) != 0, "what moved there is not");
	must(waitpid(r.pid, &status, 0) == r.pid);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "its process was killed: %#x",
	   (unsigned)status);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	limit.rlim_cur = 6 * page; /* of which four are taken */
	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	again = ibv_reg_mr(devs[0].pd, from->addr, 2 * page, IBV_ACCESS_LOCAL_WRITE);
	ok(again != NULL, "the same pages again are counted again, and two more there may be");
	ok(!ibv_reg_mr(devs[0].pd, from->addr, 1, IBV_ACCESS_LOCAL_WRITE) && errno == ENOMEM,
	   "a third is one too many");
	ok(again && ibv_dereg_mr(again) == 0 &&
		   (again = ibv_reg_mr(devs[0].pd, from->addr, 1, IBV_ACCESS_LOCAL_WRITE)) != NULL,
	   "deregistered ones count no more");
	reregister(again, from->addr, 2 * page);
	sn_dci_fini(&dci);

	limit.rlim_cur = limit.rlim_max;
	must(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);

	pid_t child = fork();

	must(child >= 0);
	if (child == 0) {
		/* A program of its own: what it does to its memory is found by itself. */
		execl("/proc/self/exe", "t_shape", "--pin-own", (char *)NULL);
		_exit(127);
	}
	must(waitpid(child, &status, 0) == child);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "a buffer of our own that moved: %#x",
	   (unsigned)status);
	sn_mem_free(from);
	for (int i = 0; i < 4; i++)
		sn_close(&devs[i]);

	return sn_summary("pinned");
}

static int
pinned_own(void)
{
	struct rlimit no_core = { 0 };
	struct ibv_mr *from = sn_mem_new(&devs[0], LEN);
	struct hw_target t;
	struct hw_token to;

	setrlimit(RLIMIT_CORE, &no_core);
	sn_target_init(&t, &devs[0], LEN, all, all);
	sn_target_token(&t, &to);
	sn_dci_init(&dci, &devs[0], NULL);
	sn_dci_to(&dci, &to);
	must(mmap(from->addr, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	     from->addr);
	memset(from->addr, 1, LEN);
	sn_xfer(&dci, false, &to, from, from->addr, 64);

	return 3;
}

/* --reads: how many READs an initiator may have. */
static int
print_reads(void)
{
	struct ibv_cq *cq = ibv_create_cq(devs[0].ctx, 4, NULL, NULL, 5);
	struct ibv_qp_init_attr_ex x = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 2, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = devs[0].pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};
	struct mlx5dv_qp_init_attr m = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI } };
	struct ibv_qp *qp = mlx5dv_create_qp(devs[0].ctx, &x, &m);
	int most = 0;

	must(qp);
	for (int reads = 1; reads <= 32; reads++) {
		struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

		must(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0);
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
		must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) == 0);
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024 };
		must(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PATH_MTU) == 0);
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .max_rd_atomic = (uint8_t)reads };
		if (ibv_modify_qp(qp, &a,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN) == 0)
			most = reads;
	}
	printf("%d\n", most);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);

	return 0;
}

/* Names and the last byte of the GUIDs, which stay. */
static int
print_names(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++) {
		__be64 guid = ibv_get_device_guid(list[i]);

		printf("%s:%d\n", ibv_get_device_name(list[i]), ((const uint8_t *)&guid)[7]);
	}
	ibv_free_device_list(list);
	return 0;
}

/* Whether a fork takes preparation, what comes of that, and whether it still does. */
static int
print_fork(void)
{
	int before = ibv_is_fork_initialized(), r = ibv_fork_init();

	printf("%d %d %d\n", before, r != 0, ibv_is_fork_initialized());
	return 0;
}

int
main(int argc, char **argv)
{
	sn_maybe_target(argc, argv);
	if (argc == 2 && strcmp(argv[1], "--names") == 0)
		return print_names();
	if (argc == 2 && strcmp(argv[1], "--fork") == 0)
		return print_fork();
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		sn_open(&devs[i], name);
	}
	if (argc == 2 && strcmp(argv[1], "--reads") == 0)
		return print_reads();
	if (argc == 2 && strcmp(argv[1], "--pin") == 0)
		return pinned();
	if (argc == 2 && strcmp(argv[1], "--pin-own") == 0)
		return pinned_own();
	test_subnets();
	test_absent();
	test_infiniband();
	test_calls();
	test_firmware();
	test_ghost();
	for (int i = 0; i < 4; i++)
		sn_close(&devs[i]);

	return sn_summary("t_shape");
}
