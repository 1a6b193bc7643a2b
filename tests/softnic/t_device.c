/* SPDX-License-Identifier: Apache-2.0 */
/* Lost devices, flapping ports and failing creations of the software NIC, by softnicctl.
 * Run in both modes. */
#include "pair.h"

enum { LEN = 256 << 10 };

static void
test_creations(void)
{
	struct ibv_ah_attr aa = { .is_global = 1, .port_num = 1 };
	struct ibv_mr *m;
	struct ibv_qp *qp;
	struct ibv_ah *ah;

	aa.grh.dgid = tok.gid;
	aa.grh.sgid_index = SN_GID_ROW;
	rule("op=reg_mr skip=1 limit=1");
	for (int n = 0; n < 3; n++) {
		errno = 0;
		m = ibv_reg_mr(dev.pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE);
		ok(n == 1 ? !m && errno == ENOMEM : m != NULL, "reg_mr %d", n);
		if (m)
			ibv_dereg_mr(m);
	}
	rule("op=create_ah error=EAGAIN");
	errno = 0;
	ah = ibv_create_ah(dev.pd, &aa);
	ok(!ah && errno == EAGAIN, "create_ah");
	rule("op=create_qp limit=1");
	errno = 0;
	qp = sn_dct_new(&dev, target.cq, target.srq);
	ok(!qp && errno == ENOMEM, "create_qp");
	qp = sn_dct_new(&dev, target.cq, target.srq);
	ok(qp && ibv_destroy_qp(qp) == 0, "the next one works");
	clear();
	ah = ibv_create_ah(dev.pd, &aa);
	ok(ah && ibv_destroy_ah(ah) == 0, "and without rules so does the other");
}

static void
test_flap(void)
{
	char line[512];

	ok(ctl(line, "port mlx5_0 flap 20 40 3") == 0, "three flaps");
	for (int n = 0; n < 6; n++)
		ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) ==
			   (n % 2 ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR),
		   "event %d of three flaps", n);
	ok(sn_quiet(dev.ctx), "and no more");
	ok(go(false, 8) == IBV_WC_SUCCESS, "up afterwards");
	ok(ctl(line, "port mlx5_0 flap 20 20") < 0 && ctl(line, "port mlx5_0 flap 20") < 0, "wrong periods");
}

static void
test_lost(void)
{
	struct ibv_port_attr p;
	struct ibv_device **list;
	struct hw_port d;
	struct hw_target t;
	struct hw_token old;
	char line[512];
	int n = -1;

	sn_open(&d, "mlx5_0");
	sn_target_init(&t, &d, 4096, all, all);
	sn_target_token(&t, &old);
	rule("delay=3600s limit=1");
	post(false, 8, 1);
	post(false, 8, 2);
	ok(ctl(line, "device mlx5_0") == 0 && strcmp(line, "mlx5_0 there\n") == 0, "there");
	sn_ctl("device mlx5_0 lost");
	ok(sn_next_event(dev.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_DEVICE_FATAL, "DEVICE_FATAL");
	ok(sn_next_event(d.ctx, SN_PATIENCE_MS, NULL) == IBV_EVENT_DEVICE_FATAL, "in every context");
	ok(sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR && sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR,
	   "flushed");
	ok(sn_post(&dci, false, &tok, tok.addr, mr, buf, 8, 3) == 0 &&
		   sn_wait(&dci, NULL) == IBV_WC_WR_FLUSH_ERR,
	   "posts are flushed");
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	ok(ibv_modify_qp(dci.qp, &a, IBV_QP_STATE) == EIO, "modify_qp");
	ok(ibv_query_port(dev.ctx, 1, &p) == EIO, "query_port");
	ok(!ibv_reg_mr(dev.pd, buf, 8, IBV_ACCESS_LOCAL_WRITE) && errno == EIO, "reg_mr");
	ok(!ibv_alloc_pd(dev.ctx) && errno == EIO, "alloc_pd");
	ok(!ibv_create_cq(dev.ctx, 1, NULL, NULL, 0) && errno == EIO, "create_cq");
	ok(!sn_dct_new(&dev, target.cq, target.srq) && errno == EIO, "create_qp");
	list = ibv_get_device_list(&n);
	ok(list && n == 0, "not in the list: %d", n);
	ibv_free_device_list(list);
	clear();
	sn_ctl("device 0 back");
	ready();
	/* The targets of before the loss stay silent until they are made anew. */
	sn_dci_to(&dci, &old);
	ok(sn_xfer(&dci, false, &old, mr, buf, 8) == IBV_WC_RETRY_EXC_ERR, "an old target");
	sn_target_fini(&t);
	sn_close(&d);
	sn_target_fini(&target);
	sn_target_init(&target, &dev, LEN, all, all);
	sn_target_token(&target, &tok);
	sn_dci_to(&dci, &tok);
	ok(go(false, LEN) == IBV_WC_SUCCESS, "a new one");
	ok(sn_quiet(dev.ctx), "no further events");
}

int
main(int argc, char **argv)
{
	pair_open(argc, argv, LEN);
	test_creations();
	test_flap();
	test_lost();
	pair_close();

	return sn_summary("devices");
}
