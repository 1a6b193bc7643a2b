/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: what the adapter says of itself, see hw.h. */
#include "client/cmd/hwcheck/hw.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void
check_limits(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct ibv_device_attr a;
	struct ibv_port_attr p;

	(void)arg;
	if (ibv_query_device(r->port.ctx, &a) != 0 || ibv_query_port(r->port.ctx, r->port.nr, &p) != 0) {
		hw_fail(row, "the device cannot be asked: %s", strerror(errno));
		return;
	}
	hw_fact(row, "max_qp", json_integer(a.max_qp));
	hw_fact(row, "max_qp_wr", json_integer(a.max_qp_wr));
	hw_fact(row, "max_sge", json_integer(a.max_sge));
	hw_fact(row, "max_cqe", json_integer(a.max_cqe));
	hw_fact(row, "max_mr", json_integer(a.max_mr));
	hw_fact(row, "max_qp_rd_atom", json_integer(a.max_qp_rd_atom));
	hw_fact(row, "max_qp_init_rd_atom", json_integer(a.max_qp_init_rd_atom));
	hw_fact(row, "completion_vectors", json_integer(r->port.ctx->num_comp_vectors));
	hw_fact(row, "link", text_of(r->port.is_ib ? "infiniband" : "ethernet"));
	hw_fact(row, "active_mtu", json_integer(128 << p.active_mtu));
	hw_fact(row, "max_msg_sz", json_integer(p.max_msg_sz));
	hw_fact(row, "gid_tbl_len", json_integer(p.gid_tbl_len));
	hw_fact(row, "pkey_tbl_len", json_integer(p.pkey_tbl_len));
	if (p.max_msg_sz < BUF_RUN_BYTES)
		hw_fail(row, "gantryd sends up to %u bytes in a work request, and the port takes %u",
			BUF_RUN_BYTES, p.max_msg_sz);
}

static void
check_fork(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	static const char *const words[] = { "disabled", "enabled", "unneeded" };
	unsigned s = (unsigned)ibv_is_fork_initialized();

	(void)r;
	(void)arg;
	hw_fact(row, "state", text_of(s < 3 ? words[s] : "unknown"));
}

/* Receiving is nothing that an initiator does: is asking for it refused, or rounded away? */
static void
check_recv_caps(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct hw_dci_opt o = hw_dci_plain;
	struct hw_dci i;
	int e;

	o.recv_wr = (unsigned)arg;
	e = hw_dci_create(&i, &r->port, &o);
	if (e == 0)
		hw_dci_free(&i);
	hw_fact(row, "answer", text_of(e ? strerror(-e) : "ok"));
	if (e && arg == 0)
		hw_fail(row, "an initiator cannot be created: %s", strerror(-e));
}

/* The device's attributes have the number for other queue pairs; what an initiator may have only trying tells. */
static void
check_reads(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	unsigned largest = 0;
	struct hw_dci i;
	int e = hw_dci_create(&i, &r->port, &hw_dci_plain);

	(void)arg;
	if (e < 0) {
		hw_fail(row, "an initiator cannot be created: %s", strerror(-e));
		return;
	}
	for (unsigned n = 1; n <= 128; n *= 2) {
		char name[16];
		const char *step = "to RTR";

		snprintf(name, sizeof name, "%u", n);
		e = hw_dci_rtr(&i);
		if (e == 0) {
			step = "RTR to RTS";
			e = hw_dci_rtr_to_rts(&i, 14, 7, n);
		}
		hw_fact(row, name, e ? json_sprintf("%s: %s", step, strerror(-e)) : text_of("ok"));
		if (e == 0)
			largest = n;
		hw_dci_move(&i, IBV_QPS_RESET);
	}
	hw_fact(row, "largest", json_integer(largest));
	if (largest == 0)
		hw_fail(row, "no initiator comes to RTS, not even with one READ");
	hw_dci_free(&i);
}

static void
check_dct(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_cq *cq = ibv_create_cq(r->port.ctx, 2, NULL, NULL, 0);
	struct ibv_srq *srq = ibv_create_srq(r->port.pd, &sa);
	struct ibv_qp *dct = NULL;
	int e = 0;

	(void)arg;
	errno = 0;
	if (cq && srq)
		dct = hw_dct_new(&r->port, cq, srq, 1);
	if (!dct) {
		hw_fail(row, "a target cannot be created: %s%s", strerror(errno),
			errno == EOPNOTSUPP ? " (a bonded port, and firmware that has no lag_dct?)" : "");
	} else {
		hw_fact(row, "number_in_reset", json_boolean(dct->qp_num != 0));
		e = hw_dct_init(&r->port, dct, HW_ACCESS);
		hw_fact(row, "number_in_init", json_boolean(dct->qp_num != 0));
		if (e == 0)
			e = hw_dct_rtr(&r->port, dct, 0);
		hw_fact(row, "number_in_rtr", json_boolean(dct->qp_num != 0));
		if (e < 0)
			hw_fail(row, "a target is refused on its way to RTR: %s", strerror(-e));
		else if (dct->qp_num == 0)
			hw_fail(row, "a target in RTR has no number");
		ibv_destroy_qp(dct);
	}
	if (srq)
		ibv_destroy_srq(srq);
	if (cq)
		ibv_destroy_cq(cq);
}

/* A network that no host has (RFC 5737), by way of whatever route there is. */
static void
check_absent(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct hw_token t = { .gid.raw = { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
	struct hw_dci i = { .port = &r->port };
	uint64_t began;
	int e;

	(void)arg;
	if (r->port.is_ib) {
		hw_skip(row, "InfiniBand resolves no neighbours");
		return;
	}
	began = clock_ns();
	e = hw_dci_to(&i, &t);
	hw_measured(row, "ms", (double)(clock_ns() - began) / 1e6);
	hw_fact(row, "answer", text_of(e ? strerror(-e) : "ok"));
	if (e == 0)
		ibv_destroy_ah(i.ah);
}

/* How many READs at once a connected queue pair may have outstanding here; each is connected to itself. */
static void
check_rc_reads(struct hw_run *r, struct hw_row *row, uint64_t arg)
{
	struct hw_dci_opt o = hw_dci_plain;
	unsigned largest = 0;

	(void)arg;
	for (unsigned n = 1; n <= 128; n *= 2) {
		struct hw_end self;
		struct hw_dci i;
		char name[16];
		int e = hw_rc_new(&i, &r->port, &o);

		if (e < 0) {
			hw_fail(row, "a queue pair cannot be created: %s", strerror(-e));
			return;
		}
		snprintf(name, sizeof name, "%u", n);
		o.reads = n;
		e = hw_rc_end(&r->port, i.qp, &self);
		if (e == 0)
			e = hw_rc_connect(&r->port, i.qp, &self, 0, &o);
		hw_fact(row, name, text_of(e ? strerror(-e) : "ok"));
		if (e == 0)
			largest = n;
		hw_dci_free(&i);
	}
	hw_fact(row, "largest", json_integer(largest));
	if (largest == 0)
		hw_fail(row, "no queue pair comes to RTS, not even with one READ");
}

const struct hw_check hw_device_checks[] = {
	{ "device.limits", check_limits, 0 },
	{ "device.fork", check_fork, 0 },
	{ "dci.create", check_recv_caps, 0, HW_DC },
	{ "dci.create.receiving", check_recv_caps, 1, HW_DC },
	{ "dci.reads", check_reads, 0, HW_DC },
	{ "dct.create", check_dct, 0, HW_DC },
	{ "rc.reads", check_rc_reads, 0, HW_RC },
	{ "ah.absent", check_absent, 0 },
	{ NULL, NULL, 0 },
};
