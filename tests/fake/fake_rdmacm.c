/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon asks of librdmacm, answered by a script: linked by unit tests, and made a librdmacm.so.1 of by system tests.
 * FAKE_RDMACM names the script, which is read at each question:
 *
 *     to ADDRESS DEVICE PORT [LEVEL]    the kernel would go there by that port; on InfiniBand with that service level
 *     no ADDRESS ERRNO                  it would not, and says so
 *     absent                            there is no connection manager
 *     silent                            no event comes
 *     stuck                             the call does not return
 *
 * An address that is in no line is -ENODEV, which is what the kernel says of one behind an interface without RDMA.  Each question is
 * appended to FAKE_RDMACM.asked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct answer {
	bool absent, silent, stuck, found;
	char device[64];
	int port, level, err;
};

struct one {
	struct rdma_cm_id id;
	struct rdma_event_channel channel;
	int ends[2];
	struct ibv_context *verbs;
	struct ibv_sa_path_rec path;
	struct rdma_cm_event event;
	int level;
};

static struct answer
look_up(const char *address)
{
	const char *path = getenv("FAKE_RDMACM");
	FILE *f = path ? fopen(path, "r") : NULL;
	struct answer a = { .absent = !f, .err = ENODEV };
	char line[256], word[64], name[64], device[64];

	while (f && fgets(line, sizeof line, f)) {
		int port, level = 0, err;

		if (sscanf(line, "%63s", word) != 1)
			continue;
		a.absent |= strcmp(word, "absent") == 0;
		a.silent |= strcmp(word, "silent") == 0;
		a.stuck |= strcmp(word, "stuck") == 0;
		if (sscanf(line, "to %63s %63s %d %d", name, device, &port, &level) >= 3 &&
		    strcmp(name, address) == 0) {
			a.found = true;
			a.port = port;
			a.level = level;
			snprintf(a.device, sizeof a.device, "%s", device);
		}
		if (sscanf(line, "no %63s %d", name, &err) == 2 && strcmp(name, address) == 0)
			a.err = err;
	}
	if (f)
		fclose(f);
	return a;
}

static void
note(const char *address)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s.asked", getenv("FAKE_RDMACM"));
	f = fopen(path, "a");
	if (!f)
		return;
	fprintf(f, "%s\n", address);
	fclose(f);
}

static struct ibv_context *
open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (int i = 0; list && list[i] && !c; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			c = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	return c;
}

static struct one *
of_id(struct rdma_cm_id *id)
{
	return (struct one *)(void *)id;
}

static int
happen(struct one *o, enum rdma_cm_event_type event, int status)
{
	o->event = (struct rdma_cm_event){ .id = &o->id, .event = event, .status = status };
	return write(o->ends[1], "", 1) == 1 ? 0 : -1;
}

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct answer a = look_up("");
	struct one *o;

	errno = ENODEV;
	if (a.absent)
		return NULL;
	o = calloc(1, sizeof *o);
	if (!o || pipe(o->ends) < 0)
		abort();
	o->channel.fd = o->ends[0];
	return &o->channel;
}

static struct one *
of_channel(struct rdma_event_channel *channel)
{
	return (struct one *)(void *)((char *)channel - offsetof(struct one, channel));
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct one *o = of_channel(channel);

	close(o->ends[0]);
	close(o->ends[1]);
	free(o);
}

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	       enum rdma_port_space ps)
{
	struct one *o = of_channel(channel);

	(void)ps;
	o->id.channel = channel;
	o->id.context = context;
	*id = &o->id;
	return 0;
}

int
rdma_destroy_id(struct rdma_cm_id *id)
{
	if (of_id(id)->verbs)
		ibv_close_device(of_id(id)->verbs);
	return 0;
}

int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return 0;
}

int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct one *o = of_id(id);
	char text[INET6_ADDRSTRLEN] = "?";
	struct answer a;

	(void)src;
	(void)timeout_ms;
	if (dst->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)dst)->sin_addr, text, sizeof text);
	else if (dst->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)dst)->sin6_addr, text, sizeof text);
	else if (dst->sa_family == AF_IB)
		inet_ntop(AF_INET6, &((struct sockaddr_ib *)(void *)dst)->sib_addr, text, sizeof text);
	a = look_up(text);
	note(text);
	while (a.stuck)
		pause();
	if (a.silent)
		return 0;
	if (!a.found)
		return happen(o, RDMA_CM_EVENT_ADDR_ERROR, -a.err);
	o->verbs = o->id.verbs = open_by_name(a.device);
	o->id.port_num = (uint8_t)a.port;
	o->level = a.level;
	return happen(o, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct one *o = of_id(id);

	(void)timeout_ms;
	o->path.sl = (uint8_t)o->level;
	id->route.path_rec = &o->path;
	id->route.num_paths = 1;
	return happen(o, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct one *o = of_channel(channel);
	char c;

	if (read(o->ends[0], &c, 1) != 1)
		return -1;
	*event = &o->event;
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	(void)event;
	return 0;
}
