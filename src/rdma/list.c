/* SPDX-License-Identifier: Apache-2.0 */
/* --list-devices: each device with its transports, each port and GID, and what it would be used for, or why
 * not.  Opens nothing for longer than it asks. */
#include "rdma/rdma_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *
port_state_text(enum ibv_port_state s)
{
	return s == IBV_PORT_ACTIVE ? "active" : ibv_port_state_str(s);
}

/* Does the configuration pick this port, and by this GID? */
static bool
is_selected(const struct conf_rdma *conf, const char *device, int port, const uint8_t *gid)
{
	if (conf->mode == RDMA_NONE)
		return false;
	if (conf->mode == RDMA_AUTO)
		return true;
	for (int i = 0; i < conf->device_nr; i++) {
		struct selector s;

		if (selector_parse(conf->devices[i], &s) < 0)
			continue;
		if (s.is_address ? gid && memcmp(gid, s.gid, 16) == 0
				 : strcmp(s.device, device) == 0 && (!s.port || s.port == port))
			return true;
	}
	return false;
}

static const char *
gid_use(const struct conf_rdma *conf, const char *device, const struct ibv_gid_entry *e, bool ethernet,
	bool active, bool serves)
{
	if (!serves)
		return "not used: the device has no transport that serves tokens";
	if (ethernet && e->gid_type != IBV_GID_TYPE_ROCE_V2)
		return "not used: RoCE v1";
	if (e->gid_index > 255)
		return "not used: its index does not fit an address handle";
	if (!is_selected(conf, device, (int)e->port_num, e->gid.raw))
		return conf->mode == RDMA_NONE ? "not used: rdma.devices is none"
					       : "not used: not in rdma.devices";
	if (!active)
		return "used once the port is active";
	if (gid_is_link_local(e->gid.raw) && ethernet)
		return "source for link-local targets";
	return gid_is_v4(e->gid.raw) ? "source for IPv4 targets"
	       : ethernet            ? "source for IPv6 targets"
				     : "source";
}

static void
list_port(const struct conf_rdma *conf, const struct rdma_context *c, const char *device, int port, FILE *out)
{
	struct ibv_gid_entry *e = NULL;
	struct ibv_port_attr attr;
	char text[INET6_ADDRSTRLEN];
	bool ethernet;
	ssize_t n;
	int r = ibv_query_port(c->ctx, (uint8_t)port, &attr);

	if (r) {
		fprintf(out, "  port %d: cannot be queried: %s\n", port, strerror(r));
		return;
	}
	ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	fprintf(out, "  port %d: %s, %s, MTU %d, LID %u, class %d, %d paths\n", port,
		ethernet ? "Ethernet" : "InfiniBand", port_state_text(attr.state), mtu_bytes(attr.active_mtu),
		attr.lid, port_class(conf, device, port),
		conf->paths ? conf->paths
		: ethernet  ? PATHS_ROCE
			    : 1);
	n = context_gids(c, &e);
	if (n < 0)
		fprintf(out, "    GID table: %s\n", strerror((int)-n));
	for (ssize_t i = 0; i < n; i++) {
		if ((int)e[i].port_num == port)
			fprintf(out, "    GID %u %s: %s\n", e[i].gid_index,
				gid_text(e[i].gid.raw, text, sizeof text),
				gid_use(conf, device, &e[i], ethernet, attr.state == IBV_PORT_ACTIVE,
					transports_serve(c->transport, c->transport_nr)));
	}
	free(e);
}

static const char *
thread_domains_text(const struct rdma_context *c)
{
	struct ibv_td_init_attr attr = { 0 };
	struct ibv_td *td = c->conf->thread_domains ? ibv_alloc_td(c->ctx, &attr) : NULL;

	if (td)
		ibv_dealloc_td(td);
	return td ? "on" : c->conf->thread_domains ? "not possible" : "off";
}

/* "DC", or why not; of several both what it has and what it lacks. */
static void
list_transports(const struct rdma_context *c, FILE *out)
{
	for (int i = 0; i < c->transport_nr; i++)
		fprintf(out, "%s%s", i ? ", " : "", c->transport[i]->name);
	if (c->transport_nr)
		fprintf(out, ", %d READs at once",
			min_int(c->attr.max_qp_init_rd_atom, reads_wanted(c->conf)));
	if (c->transport_nr)
		fprintf(out, ", relaxed ordering %s, thread domains %s",
			relaxed_ordering(c->conf) ? "on" : "off", thread_domains_text(c));
	if (c->why[0])
		fprintf(out, "%s%s", c->transport_nr ? ", " : "", c->why);
}

int
rdma_list(const struct conf_rdma *conf, FILE *out)
{
	struct ibv_device **list;
	int nr = 0;

	errno = 0;
	list = ibv_get_device_list(&nr);
	if (!list || nr == 0)
		fprintf(out, "no RDMA device%s%s\n", !list && errno && errno != ENOSYS ? ": " : "",
			!list && errno && errno != ENOSYS ? strerror(errno) : "");
	for (int i = 0; list && i < nr; i++) {
		const char *name = ibv_get_device_name(list[i]), *why;
		struct rdma_context *c;
		int r = context_open(conf, list[i], &c, &why);

		if (r < 0) {
			fprintf(out, "%s: not used: %s: %s\n", name, why, strerror(-r));
			continue;
		}
		fprintf(out, "%s: firmware %.*s, ", name, (int)sizeof c->attr.fw_ver, c->attr.fw_ver);
		list_transports(c, out);
		fprintf(out, ", NUMA node %d\n", device_read_numa_node(name));
		for (int port = 1; port <= c->attr.phys_port_cnt; port++)
			list_port(conf, c, name, port, out);
		context_close(c);
	}
	if (list)
		ibv_free_device_list(list);
	return ferror(out) ? -EIO : 0;
}
