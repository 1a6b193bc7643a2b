/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of the software NIC that are reset (softnicctl device reset): the context that was open is dead for
 * good, in each of the ways there are, and a new one works beside it.  The target is another process, which
 * the reset is not for.  Run in both modes.
 */
#include "sn_test.h"

#include <unistd.h>

enum { LEN = 1 << 20 };

static struct sn_remote target;

struct side {
	struct hw_port dev;
	struct hw_dci dci;
	struct ibv_mr *mr;
	struct ibv_comp_channel *chan;
};

static void
side_init(struct side *s)
{
	sn_open(&s->dev, "mlx5_0");
	s->chan = ibv_create_comp_channel(s->dev.ctx);
	must(s->chan);
	s->mr = sn_mem_new(&s->dev, LEN);
	sn_dci_init(&s->dci, &s->dev,
		    &(struct hw_dci_opt){ .depth = 16,
					  .sge = 1,
					  .cqe = 63,
					  .timeout = 8,
					  .retry = 3,
					  .send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
					  .chan = s->chan });
	sn_dci_to(&s->dci, &target.tok);
}

static int
write_byte(struct side *s, int byte)
{
	memset(s->mr->addr, byte, LEN);
	return sn_xfer(&s->dci, false, &target.tok, s->mr, s->mr->addr, LEN);
}

static void
side_fini(struct side *s)
{
	sn_dci_fini(&s->dci);
	sn_mem_free(s->mr);
	ok(ibv_destroy_comp_channel(s->chan) == 0, "destroy the channel");
	sn_close(&s->dev);
}

static void
reset(const char *words)
{
	char args[128];

	snprintf(args, sizeof(args), "device mlx5_0 reset pid=%d %s", (int)getpid(), words);
	sn_ctl(args);
}

static bool
completes(struct side *s)
{
	struct ibv_poll_cq_attr pa = { 0 };

	if (ibv_start_poll(s->dci.cq, &pa))
		return false;
	ibv_end_poll(s->dci.cq);
	return true;
}

static void
check_dead(struct side *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	struct ibv_device_attr da;
	struct ibv_port_attr pa;
	struct ibv_gid_entry e[16];
	union ibv_gid gid;

	ok(sn_next_event(s->dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL");
	ok(ibv_modify_qp(s->dci.qp, &a, IBV_QP_STATE) == EIO, "modify_qp");
	ok(ibv_query_device(s->dev.ctx, &da) == EIO, "query_device");
	ok(ibv_query_port(s->dev.ctx, 1, &pa) == EIO, "query_port");
	ok(ibv_query_gid(s->dev.ctx, 1, SN_GID_ROW, &gid) && errno == EIO, "query_gid");
	ok(ibv_query_gid_table(s->dev.ctx, e, 16, 0) == -EIO, "query_gid_table");
	ok(!ibv_reg_mr(s->dev.pd, s->mr->addr, 8, IBV_ACCESS_LOCAL_WRITE) && errno == EIO, "reg_mr");
	ok(!ibv_alloc_pd(s->dev.ctx) && errno == EIO, "alloc_pd");
	ok(!ibv_create_cq(s->dev.ctx, 1, NULL, NULL, 0) && errno == EIO, "create_cq");
	ok(!ibv_create_comp_channel(s->dev.ctx) && errno == EIO, "create_comp_channel");
}

/* Stopped: nothing completes, nothing moves.  Everything can be destroyed, and a new context serves. */
static void
test_stops(void)
{
	struct side s, n;

	side_init(&s);
	ok(write_byte(&s, 1) == IBV_WC_SUCCESS, "before");
	sn_ctl("rule add delay=3600s limit=1"); /* until the rule goes */
	memset(s.mr->addr, 2, LEN);
	must(sn_post(&s.dci, false, &target.tok, target.tok.addr, s.mr, s.mr->addr, LEN, 1) == 0);
	reset("");
	check_dead(&s);
	ok(sn_post(&s.dci, false, &target.tok, target.tok.addr, s.mr, s.mr->addr, LEN, 2) == 0,
	   "posts are taken");
	side_init(&n);
	sn_ctl("rule clear");
	/* The watcher, which ends the waits for the rule, has looked at both contexts, and the engines have no work left. */
	ok(sn_quiet(n.dev.ctx), "a new context has no event");
	sn_engines_rest();
	ok(!completes(&s), "nothing completes");
	ok(sn_remote_ask(&target, SN_SAME, 1) == 1, "nothing was moved");
	ok(write_byte(&n, 3) == IBV_WC_SUCCESS, "a new context works beside it");
	sn_ctl("port mlx5_0 down");
	sn_ctl("port mlx5_0 up");
	ok(sn_next_event(n.dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ERR &&
		   sn_next_event(n.dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_PORT_ACTIVE,
	   "its first events are those of the port");
	ok(sn_quiet(n.dev.ctx), "and no more");
	ok(sn_next_event(s.dev.ctx, 0, NULL) < 0, "the dead one has no event of the port");
	side_fini(&s);
	ok(write_byte(&n, 4) == IBV_WC_SUCCESS, "still");
	ok(sn_remote_ask(&target, SN_SAME, 4) == 1, "every byte");
	side_fini(&n);
}

static void
test_flush(void)
{
	struct side s;

	side_init(&s);
	sn_ctl("rule add delay=3600s limit=1");
	must(sn_post(&s.dci, false, &target.tok, target.tok.addr, s.mr, s.mr->addr, LEN, 1) == 0);
	reset("flush");
	check_dead(&s);
	ok(sn_wait(&s.dci, NULL) == IBV_WC_WR_FLUSH_ERR, "flushed");
	sn_ctl("rule clear");
	side_fini(&s);
}

/* The adapter goes on until its context is closed, whatever is said about destroying. */
static void
test_runs(bool lies)
{
	struct side s;
	int want = lies ? 0 : EIO, chan_fd;

	side_init(&s);
	ok(write_byte(&s, 5) == IBV_WC_SUCCESS, "before");
	sn_ctl("rule add delay=3600s limit=1"); /* until the rule goes */
	memset(s.mr->addr, 6, LEN);
	must(sn_post(&s.dci, false, &target.tok, target.tok.addr, s.mr, s.mr->addr, LEN, 1) == 0);
	reset(lies ? "runs destroy=lies" : "runs destroy=fails");
	check_dead(&s);
	chan_fd = s.chan->fd;
	ok(ibv_destroy_qp(s.dci.qp) == want, "destroy_qp");
	ok(ibv_destroy_cq(ibv_cq_ex_to_cq(s.dci.cq)) == want, "destroy_cq");
	ok(ibv_destroy_ah(s.dci.ah) == want, "destroy_ah");
	ok(ibv_dereg_mr(s.mr) == want, "dereg_mr");
	ok(ibv_dealloc_pd(s.dev.pd) == want, "dealloc_pd");
	if (ibv_destroy_comp_channel(s.chan))
		ok(!lies && close(chan_fd) == 0, "the channel stays with its queue");
	ok(sn_remote_ask(&target, SN_SAME, 5) == 1, "nothing has been moved yet");
	sn_ctl("rule clear");
	for (uint64_t end = sn_now_ms() + SN_PATIENCE_MS;
	     sn_remote_ask(&target, SN_SAME, 6) != 1 && sn_now_ms() < end;)
		sn_nap_ms(10);
	ok(sn_remote_ask(&target, SN_SAME, 6) == 1, "but now");
	ok(ibv_close_device(s.dev.ctx) == 0, "close");
	ok(sn_remote_ask(&target, SN_FILL, 7) >= 0, "fill");
	sn_threads_wait("softnic-engine", 0);
	ok(sn_remote_ask(&target, SN_SAME, 7) == 1, "nothing comes after it");
}

/* Closed amid a transfer: not a byte later. */
static void
test_close_ends_it(void)
{
	struct side s;

	side_init(&s);
	sn_ctl("rule add delay=3600s limit=1");
	memset(s.mr->addr, 8, LEN);
	must(sn_post(&s.dci, false, &target.tok, target.tok.addr, s.mr, s.mr->addr, LEN, 1) == 0);
	reset("runs destroy=lies");
	check_dead(&s);
	ok(ibv_destroy_qp(s.dci.qp) == 0, "destroy_qp");
	ok(ibv_destroy_cq(ibv_cq_ex_to_cq(s.dci.cq)) == 0, "destroy_cq");
	ok(ibv_destroy_ah(s.dci.ah) == 0, "destroy_ah");
	ok(ibv_dereg_mr(s.mr) == 0 && ibv_dealloc_pd(s.dev.pd) == 0, "dereg_mr, dealloc_pd");
	ok(ibv_destroy_comp_channel(s.chan) == 0, "destroy the channel");
	ok(ibv_close_device(s.dev.ctx) == 0, "close");
	ok(sn_remote_ask(&target, SN_FILL, 9) >= 0, "fill");
	sn_ctl("rule clear");
	side_init(&s);
	ok(sn_quiet(s.dev.ctx), "the watcher has seen that the rule is gone");
	side_fini(&s);
	sn_threads_wait("softnic-engine", 0);
	ok(sn_remote_ask(&target, SN_SAME, 9) == 1, "not a byte");
}

/* Once more, in another way: what could not be destroyed can be now, once. */
static void
test_dies_twice(void)
{
	struct side s;

	side_init(&s);
	reset("destroy=fails");
	check_dead(&s);
	ok(ibv_destroy_qp(s.dci.qp) == EIO, "destroy_qp fails");
	ok(ibv_destroy_ah(s.dci.ah) == EIO, "destroy_ah fails");
	ok(ibv_dereg_mr(s.mr) == EIO, "dereg_mr fails");
	reset("");
	side_fini(&s);
	side_init(&s);
	ok(write_byte(&s, 11) == IBV_WC_SUCCESS, "and serves");
	side_fini(&s);
}

static void
test_away(void)
{
	struct ibv_device **list;
	struct ibv_device *dev;
	uint64_t start;
	struct side s;
	int n = -1;

	list = ibv_get_device_list(NULL);
	must(list && list[0]);
	dev = list[0];
	ibv_free_device_list(list);
	start = sn_now_ms();
	reset("away=500ms");
	list = ibv_get_device_list(&n);
	ok(list && (n == 1 || sn_now_ms() - start >= 500), "not in the list: %d", n);
	ibv_free_device_list(list);
	ok((!ibv_open_device(dev) && errno == ENODEV) || sn_now_ms() - start >= 500, "cannot be opened");
	do {
		sn_nap_ms(20);
		list = ibv_get_device_list(&n);
		ibv_free_device_list(list);
	} while (n == 1 && sn_now_ms() - start < 10000);
	ok(n == 2 && sn_now_ms() - start >= 400, "back in time");
	reset("away=3600s");
	ok(!ibv_open_device(dev) && errno == ENODEV, "away again");
	sn_ctl("device mlx5_0 back");
	side_init(&s);
	ok(write_byte(&s, 10) == IBV_WC_SUCCESS, "and serves");
	side_fini(&s);
}

int
main(int argc, char **argv)
{
	setenv("SOFTNIC_DEVICES", "2", 1);
	sn_maybe_target(argc, argv);
	sn_remote_start(&target, LEN);
	test_stops();
	test_flush();
	test_runs(false);
	test_runs(true);
	test_close_ends_it();
	test_dies_twice();
	test_away();
	sn_remote_stop(&target);

	return sn_summary("t_reset");
}
