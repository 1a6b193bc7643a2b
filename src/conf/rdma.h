/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of RDMA, as one plain struct. This header includes no code of the configuration file, so
 * that rdma/, chan/ and a program that fills the struct by hand need no YAML.
 */
#ifndef GANTRY_CONF_RDMA_H
#define GANTRY_CONF_RDMA_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CONF_DEVICES_MAX 16
#define CONF_NETS_MAX 64
#define CONF_DECLINE_RULES_MAX 32

/* An address block. addr: its address, IPv4 as an IPv4-mapped IPv6 address; prefix: number of fixed bits, 0
 * to 128, for IPv4 at least 96. */
struct conf_net {
	struct in6_addr addr;
	uint8_t prefix;
};

/* A list of address blocks, filled by the loader. */
struct conf_nets {
	struct conf_net net[CONF_NETS_MAX];
	int nr;
	bool routed; /* true: the list has the word `routed`, which only some keys allow */
};

enum conf_bind_gid { BIND_GID_OFF, BIND_GID_SUBNET, BIND_GID_EXACT };
enum conf_delay_mode {
	DELAY_NONE,
	DELAY_BATCH,
	DELAY_ENTRY,
	DELAY_ADAPTIVE
}; /* the modes 0 to 3 of protocol.md 5 */

enum conf_ordering { ORDERING_AUTO, ORDERING_ON, ORDERING_OFF };
#define CONF_CLASS_AUTO 256
#define CONF_LEVEL_AUTO 16 /* value of rdma.service_level: the service level of the path */
#define CONF_PATHS_MAX 16

/* The headers in which a token can arrive, for rules of rdma.decline_2xx. */
enum conf_token_header { TOKEN_HEADER_AMZ, TOKEN_HEADER_INFO, TOKEN_HEADER_CUOBJ };
extern const char *const conf_token_header[]; /* "x-amz-rdma-token", ...; ends with NULL */

/* A rule of rdma.decline_2xx: it selects clients that fall back to HTTP only if their token is declined with
 * a status of 2xx. A request matches if its token is in `header` and every field that is not NULL matches. */
struct conf_decline_rule {
	enum conf_token_header header;
	char *access_key;
	char *listen;     /* address of the listener, as written in listen[].address */
	char *user_agent; /* substring of the User-Agent */
};

/* The connections of the RC transport, rdma.rc. */
struct conf_rc {
	bool shim;        /* true: clients may connect, and rc: tokens are served */
	int connections;  /* largest number of connections */
	int per_peer;     /* largest number of connections of a client address */
	int connect_rate; /* largest number of connects of a client address, per second */
	uint64_t idle_ns; /* time after which an unused connection is closed */
};

struct conf_rdma {
	enum { RDMA_AUTO, RDMA_LIST, RDMA_NONE } mode;
	/* with RDMA_LIST: names of devices (mlx5_0) or ports (mlx5_0:1), addresses or GIDs */
	char *devices[CONF_DEVICES_MAX];
	int device_nr;
	bool require; /* true: the daemon is not ready while no rail is up */
	uint64_t dc_key;
	int channels; /* number of DCIs per rail, over all cores; at least 8 per core */
	int cq_depth; /* number of entries of a completion queue; 0: the sum of the send depths */
	/* largest number of scatter entries of a work request; 0: one. Not a configuration key:
	 * libgantry-server sets it */
	int max_sge;
	/* traffic_class CONF_CLASS_AUTO: the setting of the port is used; service_level CONF_LEVEL_AUTO: that
	 * of the path */
	int service_level, traffic_class, hop_limit, pkey_index;
	/* number of address handles for each client address, each of which takes another path through the
	 * fabric; 0: 4 on RoCE, 1 on InfiniBand */
	int paths;
	enum conf_ordering relaxed_ordering;
	bool thread_domains;
	int timeout, retry_cnt, rnr_retry,
		/* timeout: exponent t of the time limit 4.096 us * 2^t; max_rd_atomic: largest number of RDMA
		 * reads in flight, 0: automatic */
		max_rd_atomic;
	int path_mtu; /* path MTU in bytes; 0: the active MTU of the port, at most 4096 */
	enum conf_delay_mode delay_mode;
	uint64_t delay_interval_ns;
	bool qp_reset_on_failure;
	int poll_batch;
	uint64_t linger_ns;
	int ah_cache;                         /* number of address handles kept for each rail */
	struct conf_net allow[CONF_NETS_MAX]; /* allowed clients; an empty list: the subnets of the rails */
	int allow_nr;
	/* true: addresses to which the kernel has a route through the interface of a rail are allowed as
	 * well */
	bool allow_routed;
	bool allow_loopback, allow_self, allow_link_local; /* the words of rdma.allow_special */
	enum conf_bind_gid bind_gid;
	struct conf_decline_rule decline_2xx[CONF_DECLINE_RULES_MAX];
	int decline_2xx_nr;
	bool meta_token; /* true: tokens in x-amz-meta-rdma-token are served (protocol.md 2.7) */
	/* true: a GET without Range into a window smaller than the object is answered with 400; false: with
	 * 206 (4.3) */
	bool short_get_reject;
	struct conf_rc rc;
	uint64_t inflight_bytes; /* largest number of bytes of one request on the wire */
};

/* Returns true if address a is in net; an IPv4 address is IPv4-mapped. The function is inline, so that a
 * program with this header needs no library. */
static inline bool
conf_net_has(const struct conf_net *net, const struct in6_addr *a)
{
	int whole = net->prefix / 8, rest = net->prefix % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	if (memcmp(net->addr.s6_addr, a->s6_addr, (size_t)whole) != 0)
		return false;
	return rest == 0 || ((net->addr.s6_addr[whole] ^ a->s6_addr[whole]) & mask) == 0;
}

/* Returns true if a is in at least one of the nets. */
static inline bool
conf_nets_have(const struct conf_net *net, int nr, const struct in6_addr *a)
{
	for (int i = 0; i < nr; i++) {
		if (conf_net_has(&net[i], a))
			return true;
	}
	return false;
}

#endif
