/* SPDX-License-Identifier: Apache-2.0 */
/* gantry hwcheck: chooses ports, runs the checks on each, and says what they found, as a table or as JSON. */
#include "client/cmd/hwcheck/hw.h"

#include "base/printable.h"
#include "base/tclass.h"
#include "client/gid.h"
#include "client/cmd/common/cmd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static const char *const result_words[] = { "pass", "FAIL", "skip" };

struct seen {
	int ports, failed, rows /* of the port */, nr[3];
};

/*
 * Is the port in the list of --device: by the device's name, alone or with the port's number, or by address?  NULL takes all.  Then row and
 * gid are those of its GID table to use.
 */
static bool
is_wanted(const char *list, struct ibv_context *ctx, int port, uint8_t *ret_row, uint8_t ret_gid[16])
{
	const char *device = ibv_get_device_name(ctx->device);
	char copy[512], name[80], *save = NULL;
	uint8_t raw[16];

	if (!list || !strcmp(list, "auto"))
		return port_gid(ctx, (unsigned)port, NULL, ret_row, ret_gid);
	snprintf(copy, sizeof copy, "%s", list);
	snprintf(name, sizeof name, "%s:%d", device, port);
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		bool is_name = !strcmp(w, device) || !strcmp(w, name);

		memset(raw, 0, sizeof raw);
		raw[10] = raw[11] = 0xff;
		if (!is_name && inet_pton(AF_INET, w, raw + 12) != 1 && inet_pton(AF_INET6, w, raw) != 1)
			continue;
		if (port_gid(ctx, (unsigned)port, is_name ? NULL : raw, ret_row, ret_gid))
			return true;
	}
	return false;
}

/* ---- what is said ---- */

static json_t *
machine(const struct hw_run *r)
{
	char gid[INET6_ADDRSTRLEN], firmware[64];
	struct ibv_device_attr a = { 0 };
	struct utsname u;
	json_t *o;

	uname(&u);
	ibv_query_device(r->port.ctx, &a);
	snprintf(firmware, sizeof firmware, "%.63s", a.fw_ver);
	printable(firmware, "");
	inet_ntop(AF_INET6, r->hello.token.gid.raw, gid, sizeof gid);
	o = json_pack("{s:s, s:i, s:i, s:s, s:s, s:s, s:s}", "firmware", firmware, "vendor_part_id",
		      (int)a.vendor_part_id, "hw_ver", (int)a.hw_ver, "kernel", u.release, "gantry",
		      gantry_version(), "far_gid", gid, "far_firmware", r->hello.firmware);
	return o;
}

/* "a=1 b=x" of an object, for the table. */
static void
show_pairs(const json_t *o)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)o, name, v)
	{
		char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));

		if (json_is_string(v))
			printf(" %s=%s", name, json_string_value(v));
		else
			printf(" %s=%s", name, text ? text : "?");
		free(text);
	}
}

static void
show_row(const struct cmd *c, const struct hw_row *row, bool first)
{
	json_t *o;
	char *text;

	if (!c->json) {
		if (c->quiet && row->result != HW_FAIL)
			return;
		printf("  %-5s %-26s", result_words[row->result], row->name);
		show_pairs(row->facts);
		if (!c->no_times)
			show_pairs(row->measured);
		printf("%s%s\n", *row->why ? "  " : "", row->why);
		fflush(stdout);
		return;
	}
	o = json_pack("{s:s, s:s}", "name", row->name, "result",
		      row->result == HW_FAIL ? "fail" : result_words[row->result]);
	if (*row->why)
		json_object_set_new(o, "why", text_of(row->why));
	if (json_object_size(row->facts))
		json_object_set(o, "facts", row->facts);
	if (!c->no_times && json_object_size(row->measured))
		json_object_set(o, "measured", row->measured);
	text = json_dumps(o, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
	printf("%s\n   %s", first ? "" : ",", text ? text : "{}");
	free(text);
	json_decref(o);
}

/* ---- one port ---- */

static void
run_check(const struct cmd *c, struct hw_run *r, const struct hw_check *check, const char *why_not,
	  struct seen *seen)
{
	struct hw_row row = { .name = check->name, .facts = json_object(), .measured = json_object() };
	bool is_size = !strncmp(check->name, "write.", 6) || !strncmp(check->name, "read.", 5);

	if (why_not)
		hw_skip(&row, "%s", why_not);
	else if (r->far_is_lost)
		hw_skip(&row, "%s", r->far.why);
	else if (is_size && check->arg > r->largest)
		hw_skip(&row, "larger than --largest allows, here or on the far side");
	else if (is_size && check->arg > r->message_max)
		hw_skip(&row, "the port takes %u bytes in a work request", r->message_max);
	else
		check->check(r, &row, check->arg);
	seen->nr[row.result]++;
	show_row(c, &row, seen->rows++ == 0);
	json_decref(row.facts);
	json_decref(row.measured);
}

/* Returns why the port, or the far side, does not have the transport; NULL: it has. */
static const char *
lacks_transport(struct hw_run *r)
{
	struct hw_dci probe;
	struct hw_end self;
	int e;

	if (r->is_rc && !r->hello.has_rc)
		return "the gantry of the other host does not know RC";
	if (!r->is_rc && !mlx5dv_is_supported(r->port.ctx->device))
		return "no DC transport: not an mlx5 device";
	e = r->is_rc ? hw_rc_new(&probe, &r->port, &hw_dci_plain)
		     : hw_dci_new(&probe, &r->port, &hw_dci_plain);
	if (e < 0)
		return r->is_rc ? "no RC transport: a queue pair cannot be created"
				: "no DC transport: no initiator comes to RTS (dci.create, dci.reads)";
	if (r->is_rc) {
		e = hw_rc_end(&r->port, probe.qp, &self);
		if (e == 0)
			e = hw_rc_connect(&r->port, probe.qp, &self, 0, &hw_dci_plain);
	}
	hw_dci_free(&probe);
	return e < 0 ? "no RC transport: no queue pair comes to RTS (rc.reads)" : NULL;
}

static void
check_port(const struct cmd *c, struct hw_run *r, const char *name, struct seen *seen)
{
	const struct hw_check *const groups[] = { hw_device_checks, hw_transfer_checks, hw_error_checks,
						  hw_life_checks, hw_cost_checks };
	bool asks = r->is_rc || mlx5dv_is_supported(r->port.ctx->device);
	const char *why_not;

	if (c->json) {
		printf("%s\n  {\"port\": \"%s\", \"transport\": \"%s\",\n", seen->ports ? "," : "", name,
		       r->is_rc ? "rc" : "dc");
		if (!c->no_times) {
			json_t *m = machine(r);
			char *text = json_dumps(m, JSON_ENSURE_ASCII);

			printf("   \"machine\": %s,\n", text ? text : "{}");
			free(text);
			json_decref(m);
		}
		printf("   \"rows\": [");
	} else if (!c->quiet) {
		printf("%s, %s\n", name, r->is_rc ? "RC" : "DC");
	}
	seen->ports++;
	why_not = lacks_transport(r);
	seen->rows = 0;
	for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
		for (const struct hw_check *k = groups[g]; k->name; k++)
			if (k->of != (r->is_rc ? HW_DC : HW_RC) &&
			    (!c->only || !strncmp(k->name, c->only, strlen(c->only))))
				run_check(c, r, k, g == 0 && asks ? NULL : why_not, seen);
	if (c->json)
		printf("\n  ]}");
}

/* Runs the checks of the transport that was asked for: of both without --transport, of DC where the device is one of mlx5. */
static void
check_transports(const struct cmd *c, struct hw_run *r, const char *name, struct seen *seen)
{
	bool is_auto = c->transport == GANTRY_TRANSPORT_AUTO;

	if (is_auto ? mlx5dv_is_supported(r->port.ctx->device) : c->transport == GANTRY_TRANSPORT_DC)
		check_port(c, r, name, seen);
	r->is_rc = true;
	if (is_auto || c->transport == GANTRY_TRANSPORT_RC)
		check_port(c, r, name, seen);
}

/* The port's checks; host NULL: against itself. */
static void
look_at_port(const struct cmd *c, struct hw_port *port, uint32_t message_max, const char *device,
	     const char *host, struct seen *seen)
{
	struct hw_run r = { .port = *port,
			    .far = { .fd = -1 },
			    .device = device,
			    .largest = c->largest ? c->largest : HW_LARGEST,
			    .message_max = message_max };
	struct hw_ask q = { .op = HW_HELLO };
	char name[80];
	int e = 0;

	snprintf(name, sizeof name, "%s:%d", device, port->nr);
	r.far.side = (struct hw_side){ .port = &r.port, .largest = HW_LARGEST };
	if (host)
		e = hw_far_connect(&r.far, host);
	if (e == 0)
		e = hw_far_ask(&r.far, &q, &r.hello);
	if (e < 0) {
		fprintf(stderr, "gantry: hwcheck: %s\n", *r.far.why ? r.far.why : strerror(-e));
		seen->failed++;
	} else if (r.hello.is_ib != port->is_ib) {
		fprintf(stderr, "gantry: hwcheck: %s is on %s, and the port of the other host is not\n", name,
			port->is_ib ? "InfiniBand" : "Ethernet");
		seen->failed++;
	} else {
		if (r.hello.value < r.largest)
			r.largest = r.hello.value;
		/* A path takes the smaller MTU of both ends. */
		if (r.hello.mtu && (int)r.hello.mtu < (int)r.port.mtu)
			r.port.mtu = (enum ibv_mtu)r.hello.mtu;
		check_transports(c, &r, name, seen);
	}
	hw_far_close(&r.far);
}

static int
look_at_device(const struct cmd *c, struct ibv_device *dev, const char *host, struct seen *seen)
{
	const char *device = ibv_get_device_name(dev);
	struct ibv_device_attr a;
	struct hw_port port;
	int r = hw_open(&port, dev), done = 0;

	if (r < 0 || ibv_query_device(port.ctx, &a) != 0) {
		fprintf(stderr, "gantry: hwcheck: %s cannot be opened: %s\n", device,
			strerror(r < 0 ? -r : errno));
		if (r == 0)
			hw_close(&port);
		return 0;
	}
	for (int nr = 1; nr <= a.phys_port_cnt && !(host && seen->ports); nr++) {
		struct ibv_port_attr p;
		uint8_t gid[16], row;
		int class = c->traffic_class ? c->traffic_class : tclass_forced(device, (unsigned)nr);

		if (ibv_query_port(port.ctx, (uint8_t)nr, &p) != 0 || p.state != IBV_PORT_ACTIVE ||
		    !is_wanted(c->device, port.ctx, nr, &row, gid))
			continue;
		if (hw_port_ask(&port, (uint8_t)nr, row) < 0)
			continue;
		port.traffic_class = (uint8_t)(class == GANTRY_TRAFFIC_CLASS_0 ? 0 : class < 0 ? 96 : class);
		done++;
		if (c->listens) {
			char name[80];

			snprintf(name, sizeof name, "%s:%d", device, nr);
			seen->ports++;
			seen->failed +=
				hw_listen(&port, name, host ? host : "", c->largest ? c->largest : HW_LARGEST,
					  c->count, c->quiet) != EXIT_OK;
			break;
		}
		look_at_port(c, &port, p.max_msg_sz, device, host, seen);
	}
	hw_close(&port);
	return done;
}

int
cmd_hwcheck(struct cmd *c, const char *host)
{
	struct ibv_device **list;
	struct seen seen = { 0 };
	int nr = 0, done = 0;

	list = ibv_get_device_list(&nr);
	if (c->json && !c->listens)
		printf("{\"hwcheck\": 1,\n \"ports\": [");
	/* With another host it is one port: the first that will do. */
	for (int i = 0; list && i < nr && !((host || c->listens) && seen.ports + seen.failed); i++)
		done += look_at_device(c, list[i], host, &seen);
	if (list)
		ibv_free_device_list(list);
	if (done == 0)
		fprintf(stderr, "gantry: hwcheck: no RDMA port %s (gantry doctor says why)\n",
			c->device ? "of that name or address is active" : "is active here");
	if (c->json && !c->listens)
		printf("\n ],\n \"passed\": %d, \"failed\": %d, \"skipped\": %d}\n", seen.nr[HW_PASS],
		       seen.nr[HW_FAIL], seen.nr[HW_SKIP]);
	else if (done && !c->listens)
		printf("%d passed, %d failed, %d skipped\n", seen.nr[HW_PASS], seen.nr[HW_FAIL],
		       seen.nr[HW_SKIP]);
	return done && !seen.failed && !seen.nr[HW_FAIL] ? EXIT_OK : EXIT_FAILED;
}
