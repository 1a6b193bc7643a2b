/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the kernel whether a network interface leads to an address: some 10 us, where an address handle for one that it does not
 * lead to takes a second to fail.  Helper threads.
 */
#include "rdma/rdma_int.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_S 1 /* the kernel answers within the call; this is for one that does not */

struct question {
	struct nlmsghdr h;
	struct rtmsg rt;
	char attr[64];
};

static void
put(struct question *q, unsigned short type, const void *data, unsigned short len)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)q + NLMSG_ALIGN(q->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->h.nlmsg_len = NLMSG_ALIGN(q->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* The interface that a route leaves by; 0: the answer does not say. */
static uint32_t
interface_of(const struct nlmsghdr *h)
{
	const struct rtmsg *rt = NLMSG_DATA(h);
	int left = (int)RTM_PAYLOAD(h);
	uint32_t index = 0;

	for (const struct rtattr *a = RTM_RTA(rt); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) >= sizeof index)
			memcpy(&index, RTA_DATA(a), sizeof index);
	}
	return index;
}

static int
judge(const struct nlmsghdr *h, size_t len, uint32_t ifindex)
{
	if (!NLMSG_OK(h, len))
		return -EPROTO;
	if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr))) {
		int err = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;

		return err == -EHOSTUNREACH ? -ENETUNREACH : err < 0 ? err : -EPROTO;
	}
	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return -EPROTO;
	if (((const struct rtmsg *)NLMSG_DATA(h))->rtm_type == RTN_LOCAL)
		return -EADDRINUSE;
	/* With a source given IPv6 names the best route, whatever interface it was asked about. */
	if (ifindex && interface_of(h) != 0 && interface_of(h) != ifindex)
		return -ENETUNREACH;
	return ((const struct rtmsg *)NLMSG_DATA(h))->rtm_type == RTN_UNICAST ? 0 : -EADDRNOTAVAIL;
}

int
net_route(uint32_t ifindex, const uint8_t src[16], const uint8_t dst[16])
{
	bool v4 = gid_is_v4(dst);
	struct question q = {
		.h = { .nlmsg_len = NLMSG_LENGTH(sizeof q.rt),
		       .nlmsg_type = RTM_GETROUTE,
		       .nlmsg_flags = NLM_F_REQUEST },
		/* The entry that matched: without it IPv4 takes who is not routed for a neighbour. */
		.rt = { .rtm_family = v4 ? AF_INET : AF_INET6, .rtm_flags = RTM_F_FIB_MATCH },
	};
	struct timeval patience = { .tv_sec = PATIENCE_S };
	union {
		struct nlmsghdr h;
		char bytes[4096];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), r;
	ssize_t n;

	if (fd < 0)
		return -errno;
	q.rt.rtm_dst_len = q.rt.rtm_src_len = v4 ? 32 : 128;
	put(&q, RTA_DST, v4 ? dst + 12 : dst, v4 ? 4 : 16);
	put(&q, RTA_SRC, v4 ? src + 12 : src, v4 ? 4 : 16);
	if (ifindex)
		put(&q, RTA_OIF, &ifindex, sizeof ifindex);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
	    send(fd, &q, q.h.nlmsg_len, 0) < 0) {
		r = -errno;
	} else {
		n = recv(fd, &answer, sizeof answer, 0);
		r = n < 0 ? -errno : judge(&answer.h, (size_t)n, ifindex);
	}
	close(fd);
	return r;
}
