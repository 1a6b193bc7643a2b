/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices the operator meant: rdma.devices.  Pure, but for the question to librdmacm.  Main thread. */
#include "rdma/rdma_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
selector_parse(const char *text, struct selector *ret_sel)
{
	struct selector s = { 0 };
	const char *colon;
	struct in_addr v4;

	if (strlen(text) >= sizeof s.text)
		return -EINVAL;
	snprintf(s.text, sizeof s.text, "%s", text);

	if (inet_pton(AF_INET6, text, s.gid) == 1) {
		s.is_address = true;
	} else if (inet_pton(AF_INET, text, &v4) == 1) {
		s.is_address = true;
		s.gid[10] = s.gid[11] = 0xff;
		memcpy(s.gid + 12, &v4, 4);
	} else {
		size_t len = strlen(text);

		colon = strchr(text, ':');
		if (colon) {
			char *end;
			long port = strtol(colon + 1, &end, 10);

			if (end == colon + 1 || *end || port < 1 || port > 255)
				return -EINVAL;
			s.port = (int)port;
			len = (size_t)(colon - text);
		}
		if (len == 0 || len >= sizeof s.device)
			return -EINVAL;
		memcpy(s.device, text, len);
	}
	*ret_sel = s;
	return 0;
}

/*
 * An address that is in no GID table is one of IPoIB on native InfiniBand: only the kernel's connection
 * manager knows which port has it.  Where there is none (no /dev/infiniband/rdma_cm) that is -ENOENT or
 * -ENODEV, and no reason to fail.
 */
int
selector_by_cm(const struct selector *sel, char *ret_device, size_t device_len, int *ret_port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int r = 0;

	errno = 0;
	channel = rdma_create_event_channel();
	if (!channel)
		return errno ? -errno : -ENODEV;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		r = errno ? -errno : -ENODEV;
		goto out;
	}
	memcpy(&sin.sin_addr, sel->gid + 12, 4);
	memcpy(&sin6.sin6_addr, sel->gid, 16);
	if (rdma_bind_addr(id, gid_is_v4(sel->gid) ? (struct sockaddr *)&sin : (struct sockaddr *)&sin6)) {
		r = errno ? -errno : -ENODEV;
	} else if (!id->verbs) {
		r = -ENODEV; /* 0.0.0.0, or loopback: bound to no device */
	} else {
		snprintf(ret_device, device_len, "%s", ibv_get_device_name(id->verbs->device));
		*ret_port = id->port_num;
	}
	rdma_destroy_id(id);
out:
	rdma_destroy_event_channel(channel);
	return r;
}
