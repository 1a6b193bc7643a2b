/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses by name, endpoints without an event channel, and names of events. */
#include "softnic/cm.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS 2000

CM_EXPORT const char *
rdma_event_str(enum rdma_cm_event_type event)
{
#define NAME(e) [RDMA_CM_EVENT_##e] = "RDMA_CM_EVENT_" #e
	static const char *const names[] = {
		NAME(ADDR_RESOLVED),   NAME(ADDR_ERROR),       NAME(ROUTE_RESOLVED), NAME(ROUTE_ERROR),
		NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE), NAME(CONNECT_ERROR),  NAME(UNREACHABLE),
		NAME(REJECTED),        NAME(ESTABLISHED),      NAME(DISCONNECTED),   NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),  NAME(MULTICAST_ERROR),  NAME(ADDR_CHANGE),    NAME(TIMEWAIT_EXIT)
	};
#undef NAME

	return event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}

/* ---- rdma_getaddrinfo ---- */

static struct sockaddr *
copy_of(const struct sockaddr *a, socklen_t len)
{
	struct sockaddr *c = len ? malloc(len) : NULL;

	return c ? memcpy(c, a, len) : NULL;
}

CM_EXPORT void
rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res);
	}
}

static struct rdma_addrinfo *
entry(const struct addrinfo *a, const struct rdma_addrinfo *hints)
{
	bool passive = hints && hints->ai_flags & RAI_PASSIVE;
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	char *canon = a->ai_canonname ? strdup(a->ai_canonname) : NULL;

	if (!r) {
		free(canon);
		return NULL;
	}
	r->ai_flags = hints ? hints->ai_flags : 0;
	r->ai_family = a->ai_family;
	r->ai_port_space = hints && hints->ai_port_space ? hints->ai_port_space : RDMA_PS_TCP;
	r->ai_qp_type = hints && hints->ai_qp_type        ? hints->ai_qp_type
			: r->ai_port_space == RDMA_PS_UDP ? IBV_QPT_UD
							  : IBV_QPT_RC;
	*(passive ? &r->ai_src_addr : &r->ai_dst_addr) = copy_of(a->ai_addr, a->ai_addrlen);
	*(passive ? &r->ai_src_len : &r->ai_dst_len) = a->ai_addrlen;
	*(passive ? &r->ai_src_canonname : &r->ai_dst_canonname) = canon;
	if (!passive && hints && hints->ai_src_len) {
		r->ai_src_addr = copy_of(hints->ai_src_addr, hints->ai_src_len);
		r->ai_src_len = hints->ai_src_len;
	}

	return r;
}

CM_EXPORT int
rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		 struct rdma_addrinfo **res)
{
	struct addrinfo h = { .ai_socktype = SOCK_STREAM }, *all = NULL;
	struct rdma_addrinfo **at = res;
	int r;

	if (!node && !service)
		return cm_err(EINVAL);
	*res = NULL;
	if (hints) {
		h.ai_family = hints->ai_flags & RAI_FAMILY ? hints->ai_family : AF_UNSPEC;
		h.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			     (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
	}
	r = getaddrinfo(node, service, &h, &all);
	if (r)
		return r == EAI_SYSTEM ? -1
				       : cm_err(r == EAI_MEMORY   ? ENOMEM
						: r == EAI_FAMILY ? EAFNOSUPPORT
								  : ENODATA);
	for (const struct addrinfo *a = all; a; a = a->ai_next) {
		*at = entry(a, hints);
		if (!*at)
			break;
		at = &(*at)->ai_next;
	}
	freeaddrinfo(all);

	return *res ? 0 : cm_err(ENOMEM);
}

/* ---- endpoints ---- */

static int
listening(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	  const struct ibv_qp_init_attr *attr)
{
	struct cm_id *i = cm_id(id);

	if (rdma_bind_addr(id, res->ai_src_addr))
		return -1;
	i->ep_pd = pd;
	if (attr) {
		i->ep_attr = malloc(sizeof(*attr));
		if (!i->ep_attr)
			return -1;
		*i->ep_attr = *attr;
		i->ep_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	}

	return 0;
}

CM_EXPORT int
rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	       struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *i;
	int r;

	if (rdma_create_id(NULL, &i, NULL, (enum rdma_port_space)res->ai_port_space))
		return -1;
	if (res->ai_flags & RAI_PASSIVE) {
		r = listening(i, res, pd, qp_init_attr);
	} else {
		r = rdma_resolve_addr(i, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) ||
		    rdma_resolve_route(i, RESOLVE_MS);
		if (r == 0 && qp_init_attr) {
			qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
			r = rdma_create_qp(i, pd, qp_init_attr);
		}
	}
	if (r) {
		r = errno;
		rdma_destroy_ep(i);
		return cm_err(r);
	}
	*id = i;

	return 0;
}

CM_EXPORT void
rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

CM_EXPORT int
rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct cm_id *l = cm_id(listen);
	struct rdma_cm_event *e;
	struct ibv_qp_init_attr attr;
	int r;

	if (!l->sync)
		return cm_err(EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &e))
		return -1;
	if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rdma_ack_cm_event(e);
		return cm_err(EINVAL);
	}
	r = rdma_migrate_id(e->id, NULL);
	if (r == 0 && l->ep_attr) {
		attr = *l->ep_attr;
		r = rdma_create_qp(e->id, l->ep_pd, &attr);
	}
	if (r) {
		r = errno;
		rdma_reject(e->id, NULL, 0);
		rdma_destroy_ep(e->id);
		rdma_ack_cm_event(e);
		return cm_err(r);
	}
	*id = e->id;
	(*id)->event = e;

	return 0;
}

/* A program may say that it has received a message before RTU; here RTU is not lost. */
CM_EXPORT int
rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return 0;
}
