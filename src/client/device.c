/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports and DC targets: all verbs of libgantry but memory registration.  Ports are opened and closed with the
 * context; targets come and go with calls, under no lock of ours (verbs are thread-safe).
 */
#include "client/client_int.h"

#include "base/tclass.h"
#include "client/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TRAFFIC_CLASS 96 /* the daemon's, rdma.traffic_class */

/* A port that the user named: a device, perhaps with a port number, or an address. */
struct wish {
	const char *text;
	char device[64];
	unsigned port_num; /* 0: any */
	bool is_address;
	uint8_t gid[16];
};

static void
parse_wish(const char *text, struct wish *w)
{
	char *colon, *end;
	struct in_addr v4;

	*w = (struct wish){ .text = text };
	snprintf(w->device, sizeof w->device, "%s", text);
	if (inet_pton(AF_INET, text, &v4) == 1) {
		w->is_address = true;
		memset(w->gid + 10, 0xff, 2);
		memcpy(w->gid + 12, &v4, 4);
		return;
	}
	if (inet_pton(AF_INET6, text, w->gid) == 1) {
		w->is_address = true;
		return;
	}
	colon = strchr(w->device, ':');
	if (colon) {
		unsigned long n = strtoul(colon + 1, &end, 10);

		if (end != colon + 1 && !*end && n >= 1 && n <= 255) {
			w->port_num = (unsigned)n;
			*colon = 0;
		}
	}
}

/*
 * Which row of the GID table to put into tokens.  On Ethernet only RoCE v2 will do; IPv4 first, since that is
 * what servers are configured for, link-local last.  Native InfiniBand: the first row, which every port has.
 */
static int
gid_rank(const struct ibv_gid_entry *e)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (e->gid_type == IBV_GID_TYPE_IB)
		return 1;
	if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	if (!memcmp(e->gid.raw, mapped, 12))
		return 4;
	return e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80 ? 2 : 3;
}

struct ibv_gid_entry *
gid_table(struct ibv_context *ctx, ssize_t *ret_nr)
{
	struct ibv_gid_entry *e;
	struct ibv_device_attr a;
	size_t max = 0;

	*ret_nr = 0;
	for (unsigned port = 1; ibv_query_device(ctx, &a) == 0 && port <= a.phys_port_cnt; port++) {
		struct ibv_port_attr attr;

		if (ibv_query_port(ctx, (uint8_t)port, &attr) == 0 && attr.gid_tbl_len > 0)
			max += (size_t)attr.gid_tbl_len;
	}
	e = calloc(max ? max : 1, sizeof *e);
	if (e && max)
		*ret_nr = ibv_query_gid_table(ctx, e, max, 0);
	return e;
}

bool
port_gid(struct ibv_context *ctx, unsigned port_num, const uint8_t *want, uint8_t *ret_index,
	 uint8_t ret_gid[16])
{
	ssize_t nr;
	struct ibv_gid_entry *e = gid_table(ctx, &nr);
	int best = 0;

	for (ssize_t i = 0; i < nr; i++) {
		int rank = gid_rank(&e[i]);

		if (e[i].port_num != port_num || rank <= best || e[i].gid_index > UINT8_MAX)
			continue;
		if (want && memcmp(e[i].gid.raw, want, 16) != 0)
			continue;
		best = rank;
		*ret_index = (uint8_t)e[i].gid_index;
		memcpy(ret_gid, e[i].gid.raw, 16);
	}
	free(e);
	return best > 0;
}

static bool
address_of(const struct port *p, struct address *ret)
{
	return port_gid(p->ctx, p->port_num, p->has_wish ? p->wish : NULL, &ret->gid_index, ret->gid);
}

bool
port_address(const struct port *p, struct address *ret)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(p->ctx, p->port_num, &attr) != 0 || !address_of(p, ret))
		return false;
	ret->lid = p->is_ethernet ? 0 : attr.lid;
	return true;
}

struct target *
target_new(struct port *p)
{
	struct ibv_qp_init_attr_ex qa = { .qp_type = IBV_QPT_DRIVER,
					  .send_cq = p->cq,
					  .recv_cq = p->cq,
					  .srq = p->srq,
					  .pd = p->pd,
					  .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCT,
							    .dct_access_key = p->dc_key } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = p->port_num,
				    .pkey_index = p->pkey_index,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = (enum ibv_mtu)p->mtu,
				   .min_rnr_timer = 12,
				   .ah_attr = { .is_global = 1,
						.port_num = p->port_num,
						.sl = p->service_level,
						.grh = { .hop_limit = HOP_LIMIT,
							 .traffic_class = p->traffic_class } } };
	struct target *t = stripe_alloc(sizeof *t);
	int r;

	if (!t)
		return NULL;
	/* Before the address is read, so that one made while it changes is an old one. */
	t->changes = p->changes;
	rtr.ah_attr.grh.sgid_index = p->gid_index;
	t->qp = mlx5dv_create_qp(p->ctx, &qa, &dv);
	if (!t->qp)
		goto fail;
	r = ibv_modify_qp(t->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (!r)
		r = ibv_modify_qp(t->qp, &rtr,
				  IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MIN_RNR_TIMER);
	if (r) {
		ibv_destroy_qp(t->qp);
		errno = r;
		goto fail;
	}
	t->dctn = t->qp->qp_num; /* known from RTR on, not before */
	return t;
fail:
	free(t);
	return NULL;
}

int
target_free(struct target *t)
{
	int r = t ? ibv_destroy_qp(t->qp) : 0;

	if (r)
		return -r;
	free(t);
	return 0;
}

void
port_close(struct port *p)
{
	for (int i = 0; i < SHARED_MAX; i++)
		target_free(p->shared[i]);
	while (p->retired) {
		struct target *t = p->retired;

		p->retired = t->next;
		target_free(t);
	}
	if (p->srq)
		ibv_destroy_srq(p->srq);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->pd)
		ibv_dealloc_pd(p->pd);
	if (p->ctx)
		ibv_close_device(p->ctx);
	*p = (struct port){ 0 };
}

/* How what this end sends is marked: as configured, else as the port has it. */
static void
mark(const struct config *c, const char *device, enum ibv_mtu active, struct port *p)
{
	int class = c->traffic_class < 0 ? tclass_forced(device, p->port_num) : c->traffic_class;
	int mtu = c->path_mtu ? __builtin_ctz((unsigned)c->path_mtu) - 7 : IBV_MTU_4096;

	p->traffic_class = (uint8_t)(class < 0 ? DEFAULT_TRAFFIC_CLASS : class);
	p->service_level = (uint8_t)c->service_level;
	p->pkey_index = (uint16_t)c->pkey_index;
	p->mtu = (int)active < mtu ? (int)active : mtu;
}

/* Makes what DC takes. NULL, or why the port has none. */
static const char *
port_dc(struct port *p)
{
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 1, .max_sge = 1 } };

	p->srq = ibv_create_srq(p->pd, &sa);
	if (!p->srq)
		return "lacks resources (SRQ)";
	p->shared[0] = target_new(p);
	p->has_dc = p->shared[0] != NULL;
	if (p->has_dc)
		return NULL;
	return errno == EOPNOTSUPP ? "makes no DC targets (a bonded port needs firmware that has lag_dct)"
				   : "cannot do DC (dynamically connected) transport";
}

struct ibv_qp *
port_qp(struct port *p)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	return ibv_create_qp(p->pd, &attr);
}

/* Finds out what the port has of the transports that may be used. NULL, or why it is none. */
static const char *
port_transports(struct port *p, enum gantry_transport wanted)
{
	const char *why = wanted == GANTRY_TRANSPORT_RC ? NULL : port_dc(p);
	struct ibv_qp *qp;

	if (p->has_dc || wanted == GANTRY_TRANSPORT_DC)
		return why;
	qp = port_qp(p);
	if (!qp)
		return why ? why : "cannot do RC (reliably connected) transport";
	ibv_destroy_qp(qp);
	return NULL;
}

/* NULL when the port is ready, else why not; p is closed then. */
static const char *
port_open(struct ibv_device *dev, unsigned port_num, const struct wish *w, const struct config *c,
	  struct port *p)
{
	struct ibv_port_attr attr;
	struct address address;
	const char *why = NULL;

	*p = (struct port){ .port_num = (uint8_t)port_num,
			    .dc_key = c->dc_key,
			    .has_wish = w && w->is_address };
	if (p->has_wish)
		memcpy(p->wish, w->gid, sizeof p->wish);
	snprintf(p->name, sizeof p->name, "%s:%u", ibv_get_device_name(dev), port_num);
	p->ctx = ibv_open_device(dev);
	if (!p->ctx)
		return "cannot be opened";
	if (ibv_query_port(p->ctx, p->port_num, &attr) != 0)
		why = "does not answer";
	else if (attr.state != IBV_PORT_ACTIVE)
		why = "is not active";
	else if (!address_of(p, &address))
		why = "has no such address";
	if (why)
		goto out;
	p->is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	p->lid = p->is_ethernet ? 0 : attr.lid;
	p->gid_index = address.gid_index;
	memcpy(p->gid, address.gid, sizeof p->gid);
	if (c->pkey_index >= attr.pkey_tbl_len) {
		why = "has no such row in its table of partitions (rdma_pkey_index)";
		goto out;
	}
	mark(c, ibv_get_device_name(dev), attr.active_mtu, p);
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, 2, NULL, NULL, 0);
	if (!p->pd || !p->cq) {
		why = "lacks resources (PD or CQ)";
		goto out;
	}
	why = port_transports(p, c->transport);
out:
	if (why)
		port_close(p);
	return why;
}

static bool
already_open(const struct port *ports, int nr, const char *device, unsigned port_num)
{
	char name[80];

	snprintf(name, sizeof name, "%s:%u", device, port_num);
	for (int i = 0; i < nr; i++)
		if (!strcmp(ports[i].name, name))
			return true;
	return false;
}

/* Opens every port of the list that fits the wish (NULL: all).  The last reason against one goes to why. */
static int
open_matching(struct ibv_device **list, int list_nr, const struct wish *w, const struct config *c,
	      struct port *ports, int *nr, char *why, size_t why_len)
{
	int found = 0;

	for (int i = 0; i < list_nr; i++) {
		const char *name = ibv_get_device_name(list[i]);

		if (w && !w->is_address && strcmp(w->device, name) != 0)
			continue;
		for (unsigned n = 1; n <= 2 && *nr < PORTS_MAX; n++) {
			if ((w && w->port_num && w->port_num != n) || already_open(ports, *nr, name, n))
				continue;
			const char *reason = port_open(list[i], n, w, c, &ports[*nr]);

			if (!reason) {
				++*nr;
				found++;
			} else if (n == 1 || (w && w->port_num == n)) {
				snprintf(why, why_len, "%s port %u %s", name, n, reason);
			}
		}
	}
	return found;
}

/*
 * Before a first registration.  A kernel older than 5.12 makes registered pages copy-on-write at a fork(), of the
 * parent as well, which then writes to pages that the adapter does not know; ibv_fork_init() keeps them out of
 * children.  False: it cannot, because memory was registered already; then bytes could be lost without a word.
 */
static bool
is_fork_safe(void)
{
	return ibv_is_fork_initialized() != IBV_FORK_DISABLED || ibv_fork_init() == 0;
}

int
ports_open(const struct config *c, struct port *ports, int *ret_nr, char *why, size_t why_len)
{
	int list_nr = 0, nr = 0, r = 0;
	struct ibv_device **list = ibv_get_device_list(&list_nr);

	*ret_nr = 0;
	if (list_nr > 0 && !is_fork_safe()) {
		snprintf(why, why_len,
			 "this kernel needs ibv_fork_init() before anything is registered, and it came too "
			 "late: call "
			 "it, or gantry_open(), first");
		ibv_free_device_list(list);
		return c->device_nr ? -ENODEV : 0;
	}
	snprintf(why, why_len, "no RDMA device here");
	if (!list)
		list_nr = 0;
	for (int i = 0; i < c->device_nr; i++) {
		struct wish w;
		char reason[128] = "no such device or address";

		parse_wish(c->device[i], &w);
		if (open_matching(list, list_nr, &w, c, ports, &nr, reason, sizeof reason) == 0) {
			snprintf(why, why_len, "RDMA device \"%.40s\": %.100s", w.text, reason);
			r = -ENODEV;
			break;
		}
	}
	if (c->device_nr == 0)
		open_matching(list, list_nr, NULL, c, ports, &nr, why, why_len);
	if (list)
		ibv_free_device_list(list);
	if (r < 0)
		while (nr > 0)
			port_close(&ports[--nr]);
	*ret_nr = nr;
	return r;
}
