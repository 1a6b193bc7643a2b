/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, RDMA: device files, devices, ports, GIDs, DC and RC, and the way to a client. */
#include "client/cmd/doctor/doctor.h"

#include "client/cmd/common/cmd.h"
#include "client/cmd/hwcheck/hw_verbs.h"
#include "client/gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIDS_MAX 256

static const char *
gid_text(const union ibv_gid *gid, char out[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(gid->raw, mapped, sizeof mapped) == 0)
		inet_ntop(AF_INET, gid->raw + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, out, INET6_ADDRSTRLEN);
	return out;
}

/* Why the list of devices is empty, as far as files tell. */
static void
why_none(struct doctor *d)
{
	glob_t g = { 0 };

	if (access("/sys/class/infiniband", F_OK) < 0)
		doctor_say(d, FOUND_STOP, "devices",
			   "none: no RDMA driver is loaded (for ConnectX: modprobe mlx5_ib; is there such a "
			   "NIC: lspci | grep Mellanox)");
	else if (glob("/sys/class/infiniband/*", 0, NULL, &g) != 0)
		doctor_say(d, FOUND_STOP, "devices",
			   "none: the drivers are loaded and have found no RDMA NIC (dmesg | grep mlx5)");
	else if (glob("/dev/infiniband/uverbs*", 0, NULL, &g) != 0)
		doctor_say(d, FOUND_STOP, "devices",
			   "the kernel has some, but there is no /dev/infiniband/uverbs*: modprobe "
			   "ib_uverbs; in a container, hand the "
			   "device files in");
	else
		doctor_say(d, FOUND_STOP, "devices",
			   "the kernel has some, but the library does not find them: is the provider package "
			   "installed "
			   "(ibverbs-providers)?");
	globfree(&g);
}

/*
 * Does the port make DC initiators?  No query answers that, so one is made and brought as far as it must come.  0, or -errno with the step
 * that is refused.
 */
static int
try_dc(struct hw_port *p, const char **ret_step)
{
	struct hw_dci i;
	int r;

	*ret_step = "not an mlx5 device";
	if (!mlx5dv_is_supported(p->ctx->device))
		return -EOPNOTSUPP;
	*ret_step = "creating it";
	r = hw_dci_create(&i, p, &hw_dci_plain);
	if (r < 0)
		return r;
	*ret_step = "RESET to RTR";
	r = hw_dci_rtr(&i);
	if (r == 0) {
		*ret_step = "RTR to RTS";
		r = hw_dci_rtr_to_rts(&i, 14, 7, 1);
	}
	hw_dci_free(&i);
	return r;
}

/* Tries both transports of a port: *ret_dc and *ret_rc are 0, or -errno with the step that is refused. */
static void
try_transports(struct ibv_context *ctx, int port, int *ret_dc, int *ret_rc, const char *step[2])
{
	struct hw_port p = { .ctx = ctx, .pd = ibv_alloc_pd(ctx) };
	uint8_t row, gid[16];
	int r = p.pd ? 0 : -errno;

	step[0] = step[1] = "a protection domain";
	if (r == 0 && port_gid(ctx, (unsigned)port, NULL, &row, gid))
		r = hw_port_ask(&p, (uint8_t)port, row);
	*ret_dc = r < 0 ? r : try_dc(&p, &step[0]);
	*ret_rc = r < 0 ? r : hw_rc_try(&p, &step[1]);
	if (p.pd)
		ibv_dealloc_pd(p.pd);
}

/* Names a limit that is a usual cause of the error. */
static const char *
usual_cause(int r)
{
	return r == -ENOMEM ? "; is the limit of locked memory too small (ulimit -l)?" : "";
}

/* Says which transports an active port has, and the setting that its use needs.  True: the port can be used. */
static bool
say_transports(struct doctor *d, const char *topic, struct ibv_context *ctx, int port, const char *about)
{
	const char *step[2];
	int dc, rc;

	try_transports(ctx, port, &dc, &rc, step);
	if (dc == 0) {
		doctor_say(d, FOUND_OK, topic, "%s, %s", about, rc == 0 ? "DC and RC" : "DC");
		if (rc < 0)
			doctor_say(d, d->rc == RC_ON ? FOUND_WARN : FOUND_NOTE, topic,
				   "a connection of RC is refused (%s: %s%s): clients without DC will use "
				   "HTTP",
				   step[1], strerror(-rc), usual_cause(rc));
		return true;
	}
	if (dc == -EOPNOTSUPP && rc < 0)
		doctor_say(d, FOUND_WARN, topic,
			   "active, but without DC (%s), and a connection of RC is refused (%s: %s%s)",
			   step[0], step[1], strerror(-rc), usual_cause(rc));
	else if (rc < 0)
		doctor_say(d, FOUND_WARN, topic,
			   "active, but a DC initiator is refused (%s: %s), and clients' tokens need them, "
			   "and a "
			   "connection of RC is refused (%s: %s%s); gantry hwcheck tells more",
			   step[0], strerror(-dc), step[1], strerror(-rc), usual_cause(rc));
	else if (d->rc == RC_ON)
		doctor_say(d, FOUND_OK, topic, "%s, RC alone (no DC: %s)", about, step[0]);
	else if (d->rc == RC_OFF)
		doctor_say(d, FOUND_WARN, topic,
			   "%s, but without DC (%s); RC works here: set rdma.rc.shim: on in the daemon's "
			   "configuration, and restart it",
			   about, step[0]);
	else
		doctor_say(d, FOUND_NOTE, topic,
			   "%s, RC alone (no DC: %s): it is used with servers that have rdma.rc.shim: on",
			   about, step[0]);
	return rc == 0 && d->rc != RC_OFF;
}

/* How many GIDs of a port clients can name; the first of the best kind into out. */
static int
usable_gids(struct ibv_context *ctx, int port, bool ethernet, char out[INET6_ADDRSTRLEN])
{
	ssize_t nr;
	struct ibv_gid_entry *e = gid_table(ctx, &nr);
	int usable = 0;

	*out = 0;
	for (ssize_t i = 0; i < nr; i++) {
		if (e[i].port_num != (uint32_t)port ||
		    e[i].gid_type != (ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB))
			continue;
		if (usable++ == 0 || memcmp(e[i].gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0)
			gid_text(&e[i].gid, out);
	}
	free(e);
	return usable;
}

static bool
look_at_port(struct doctor *d, struct ibv_context *ctx, int port)
{
	char topic[80], gid[INET6_ADDRSTRLEN], about[160];
	struct ibv_port_attr a;
	bool ethernet;
	int gids;

	snprintf(topic, sizeof topic, "%s:%d", ibv_get_device_name(ctx->device), port);
	if (ibv_query_port(ctx, (uint8_t)port, &a) != 0) {
		doctor_say(d, FOUND_WARN, topic, "the port cannot be asked: %s", strerror(errno));
		return false;
	}
	ethernet = a.link_layer == IBV_LINK_LAYER_ETHERNET;
	if (a.state != IBV_PORT_ACTIVE) {
		doctor_say(d, FOUND_NOTE, topic, "%s: not used (%s)", ibv_port_state_str(a.state),
			   ethernet ? "is its cable in, and its network interface up?"
				    : "is its cable in, and is there a subnet manager?");
		return false;
	}
	gids = usable_gids(ctx, port, ethernet, gid);
	if (gids == 0) {
		doctor_say(d, FOUND_WARN, topic,
			   "active, but without a %s GID: give its network interface an IP address",
			   ethernet ? "RoCE v2" : "usable");
		return false;
	}
	snprintf(about, sizeof about, "active, %s, MTU %d, %d usable GIDs, such as %s",
		 ethernet ? "RoCE" : "InfiniBand", 128 << a.active_mtu, gids, gid);
	if (!say_transports(d, topic, ctx, port, about))
		return false;
	if (ethernet && a.active_mtu < IBV_MTU_4096)
		doctor_say(d, FOUND_NOTE, topic,
			   "an RDMA MTU of 4096 needs an Ethernet MTU of 4200 or more (ip link set dev ... "
			   "mtu 9000), on every switch too");
	return true;
}

/* The address handle that a request from there would need.  On RoCE making it asks for the neighbour. */
static void
reach(struct doctor *d, struct ibv_context *ctx, int port, const union ibv_gid *gid)
{
	struct ibv_ah_attr a = { .is_global = 1,
				 .port_num = (uint8_t)port,
				 .grh = { .dgid = *gid, .hop_limit = 64 } };
	struct ibv_gid_entry e;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_ah *ah = NULL;
	char topic[80], text[INET6_ADDRSTRLEN];
	double began = now_s();
	int why = ENOENT;

	snprintf(topic, sizeof topic, "%s:%d", ibv_get_device_name(ctx->device), port);
	for (int i = 0; pd && !ah && i < GIDS_MAX; i++) {
		bool v4 = memcmp(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;

		if (ibv_query_gid_ex(ctx, (uint32_t)port, (uint32_t)i, &e, 0) != 0 ||
		    e.gid_type == IBV_GID_TYPE_ROCE_V1 ||
		    (memcmp(e.gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0) != v4)
			continue;
		a.grh.sgid_index = (uint8_t)i;
		ah = ibv_create_ah(pd, &a);
		why = errno;
	}
	if (ah)
		doctor_say(d, FOUND_OK, topic, "%s can be reached (address handle after %.0f ms)",
			   gid_text(gid, text), (now_s() - began) * 1000);
	else
		doctor_say(
			d, FOUND_STOP, topic,
			"%s cannot be reached: %s after %.1f s; is it up, in this network, and routed? (ip "
			"route get, ip neigh)",
			gid_text(gid, text), why == ENOENT ? "no GID of its kind here" : strerror(why),
			now_s() - began);
	if (ah)
		ibv_destroy_ah(ah);
	if (pd)
		ibv_dealloc_pd(pd);
}

static bool
client_gid(const char *text, union ibv_gid *ret)
{
	memset(ret, 0, sizeof *ret);
	if (inet_pton(AF_INET6, text, ret->raw) == 1)
		return true;
	ret->raw[10] = ret->raw[11] = 0xff;
	return inet_pton(AF_INET, text, ret->raw + 12) == 1;
}

static int
look_at_device(struct doctor *d, struct ibv_device *dev)
{
	const char *name = ibv_get_device_name(dev);
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr a;
	union ibv_gid gid;
	int good = 0;

	if (!ctx) {
		doctor_say(d, FOUND_WARN, name, "cannot be opened: %s%s", strerror(errno),
			   errno == EACCES || errno == EPERM ? " (who may use /dev/infiniband/uverbs*?)"
							     : "");
		return 0;
	}
	if (ibv_query_device(ctx, &a) != 0) {
		doctor_say(d, FOUND_WARN, name, "cannot be asked: %s", strerror(errno));
	} else {
		doctor_say(d, FOUND_OK, name, "firmware %s", a.fw_ver);
		for (int port = 1; port <= a.phys_port_cnt; port++) {
			if (!look_at_port(d, ctx, port))
				continue;
			good++;
			if (d->client && client_gid(d->client, &gid))
				reach(d, ctx, port, &gid);
		}
	}
	ibv_close_device(ctx);
	return good;
}

void
doctor_rdma(struct doctor *d)
{
	union ibv_gid gid;
	int nr = 0, good = 0;
	struct ibv_device **list = ibv_get_device_list(&nr);

	if (d->client && !client_gid(d->client, &gid))
		doctor_say(d, FOUND_STOP, "client", "%s is no address and no GID", d->client);
	if (!list || nr == 0) {
		why_none(d);
	} else {
		for (int i = 0; i < nr; i++)
			good += look_at_device(d, list[i]);
		if (good == 0)
			doctor_say(d, FOUND_STOP, "devices", "no port can be used");
	}
	if (list)
		ibv_free_device_list(list);
}
