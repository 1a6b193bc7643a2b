/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of ids, with the device and the path that programs see in them. */
#include "softnic/cm.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <unistd.h>

#define ACK_TIMEOUT 17 /* as for paths of RoCE: about half a second */

struct cm_id *
cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps, uint8_t qp_type)
{
	struct cm_id *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->pub.channel = channel;
	i->pub.context = context;
	i->pub.ps = ps;
	i->pub.qp_type = qp_type;
	i->bound = i->fd = -1;
	i->ack_timeout = ACK_TIMEOUT;
	pthread_cond_init(&i->acks, NULL);
	i->next = cm_ids;
	cm_ids = i;

	return i;
}

void
cm_id_free(struct cm_id *i)
{
	struct cm_id **at = &cm_ids;

	cm_forget(i);
	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	if (i->fd >= 0)
		close(i->fd);
	if (i->bound >= 0)
		close(i->bound);
	pthread_cond_destroy(&i->acks);
	free(i->pub.route.path_rec);
	free(i->ep_attr);
	free(i);
}

void
cm_id_bind_dev(struct cm_id *i, struct cm_dev *d)
{
	i->dev = d;
	i->pub.verbs = d->verbs;
	i->pub.port_num = 1;
	i->pub.route.addr.addr.ibaddr.sgid = i->from;
	i->pub.route.addr.addr.ibaddr.dgid = i->to;
	i->pub.route.addr.addr.ibaddr.pkey = htons(0xffff);
}

void
cm_id_path(struct cm_id *i)
{
	struct ibv_port_attr a = { 0 };
	struct ibv_sa_path_rec *p = i->pub.route.path_rec;

	if (!p)
		p = calloc(1, sizeof(*p));
	if (!p)
		return;
	ibv_query_port(i->pub.verbs, 1, &a);
	*p = (struct ibv_sa_path_rec){ .dgid = i->to,
				       .sgid = i->from,
				       .hop_limit = 64,
				       .reversible = 1,
				       .numb_path = 1,
				       .pkey = htons(0xffff),
				       .mtu_selector = 2,
				       .mtu = (uint8_t)a.active_mtu,
				       .rate_selector = 2,
				       .packet_life_time_selector = 2,
				       .packet_life_time = ACK_TIMEOUT - 1 };
	i->pub.route.path_rec = p;
	i->pub.route.num_paths = 1;
}
