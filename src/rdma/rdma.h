/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma - a wrapper of verbs and mlx5dv: devices, rails (a port and its GID), memory regions. No verbs type is
 * visible above chan/. A rail has the transports that its device supports (rdma/ep.h); a rail without a
 * transport serves no token. A process may open several struct rdma, each with its own rails and regions.
 *
 * rdma_open() and rdma_close() of one struct run on one thread. A rail's state changes at run time (async
 * events, on a helper thread) and may be read by any thread. If there is no device, or the list of devices
 * cannot be read, a warning is logged, rail_nr is 0, and all bytes move over HTTP.
 *
 * A device whose context has died (a firmware reset, a driver bound again) is re-opened by its name, once a
 * second until that succeeds. Its rails are LOST until then, and then serve again. Cores release their
 * objects of the old context and make them again: rdma/ep.h, "contexts".
 */
#ifndef GANTRY_RDMA_RDMA_H
#define GANTRY_RDMA_RDMA_H

#include "conf/rdma.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/uio.h>

struct rdma;
struct rdma_rail;

#define RDMA_RAILS_MAX 16
#define RDMA_TRANSPORTS_MAX 4 /* largest number of transports of a rail */
#define RDMA_REGIONS_MAX (1 << 20)

enum rail_state { RAIL_UP, RAIL_DOWN, RAIL_LOST, RAIL_STATE_NR };

/* The state of a rail as shown by /rails, --list-devices and the log. */
struct rdma_rail_info {
	const char *device;
	char fw_ver[64]; /* firmware version; may differ after the device was re-opened */
	int port;
	bool is_ethernet;
	enum rail_state state;
	uint16_t lid;
	uint8_t gid[16]; /* IPv4-mapped GID in use, if there is one; otherwise the first usable GID */
	int active_mtu;  /* active MTU of the port, in bytes */
	uint32_t max_msg_bytes;
	/* largest numbers of endpoints and of entries of a completion queue on the device; 0: unknown */
	int max_eps, max_cq_depth;
	int max_rd_atomic;
	int numa_node; /* NUMA node of the device; -1: unknown */
	int traffic_class, paths;
	bool relaxed_ordering;
	char transports[32]; /* names of the transports of the rail, such as "DC, RC"; "": none */
	bool serves;         /* true: a transport of the rail serves at least one family of tokens */
	/* true: the configuration does not name the rail, and it was never up: possibly the port has no
	 * cable */
	bool spare;
};

/* Sets the environment variables that libibverbs reads at its first call. Called before all other functions
 * of this header, and before any thread starts. */
void rdma_prepare(void);

/* Opens devices and their rails, and searches for further devices every 10 s. Rails are added, and never
 * removed. Returns 0, also if there is no rail, or -errno with the reason in err. */
int rdma_open(const struct conf_rdma *conf, struct rdma **ret_rdma, char *err, size_t err_len);
/* Makes the helper threads search for devices, and read the known ports again, immediately. Any thread may
 * call this function. */
void rdma_look(struct rdma *rd);
/* Writes a description of the missing devices to `what`: devices that the configuration names, or, while
 * there is no rail, adapters that cannot be opened. Returns false if no device is missing. Any thread may
 * call this function. */
bool rdma_missing(struct rdma *rd, char *what, size_t cap);
/* Closes all devices, after every struct chan was freed. NULL is allowed. */
void rdma_close(struct rdma *rd);

/* Returns true if an Ethernet rail that serves has an address of gid's family, IPv4 or IPv6. Any thread may
 * call this function. */
bool rdma_has_family(struct rdma *rd, const uint8_t gid[16]);
/* Returns true if a rail that serves is native InfiniBand. Any thread may call this function. */
bool rdma_has_infiniband(struct rdma *rd);

int rdma_rail_nr(const struct rdma *rd);
struct rdma_rail *rdma_rail(struct rdma *rd, int i);
void rdma_rail_get_info(const struct rdma_rail *rail, struct rdma_rail_info *ret_info);

#define RDMA_NO_REGION UINT64_MAX /* value of a region's number that means no region */

/* Registers a buffer region with every rail. *ret_region is the number of the region, which is the same on
 * all rails. A number is never reused, so a work request for a removed region cannot reach another region.
 * Returns 0, or the -errno of the driver. -ENOSPC: there are RDMA_REGIONS_MAX regions; -ENOMEM: the limit of
 * locked memory is too small for len bytes, with a message in err. May block. Any thread may call this
 * function. */
int rdma_region_add(struct rdma *rd, void *mem, size_t len, uint64_t *ret_region, char *err, size_t err_len);

/*
 * Removes a region. Work requests in it that are posted later are refused (-ESTALE), and outstanding work
 * requests in it fail. May block. Any thread may call this function.
 *
 *   0              no device accesses the memory any longer
 *   -ENOENT        there is no such region, or it was removed
 *   -EINPROGRESS a device that has died may still access the memory until its context is closed: the memory
 *   must stay, and the caller calls again later
 *   other -errno   a device did not deregister the region: call again later
 */
int rdma_region_del(struct rdma *rd, uint64_t region);

/* Checks whether a token may name the address gid: first by rdma.allow (or the subnets of our rails), then by
 * rdma.allow_special; see "Tokens" in docs/threat-model.md. gid NULL: the token has no GID, and counts as one
 * of our own subnet. peer: address of the HTTP client, for rdma.bind_gid. Returns 0 if the address is
 * allowed; 1 if it is allowed only with a route through a rail (`routed`): the caller then sets must_route in
 * struct rdma_asker; -EHOSTUNREACH if it is not allowed, so that the token is declined; -EACCES (403) if it
 * is not the address of one host (multicast, broadcast, anycast, a subnet's address), or if rdma.bind_gid
 * forbids this client to name it. */
int rdma_gid_allowed(const struct rdma *rd, const struct conf_rdma *conf, const uint8_t *gid,
		     const struct sockaddr *peer);

/* Logs that a token named an address that is not allowed, and the setting that would allow it; at most one
 * line a minute. Any thread may call this function. */
void rdma_say_not_allowed(struct rdma *rd, const struct conf_rdma *conf, const uint8_t *gid);

/* The result of rdma_reach() for an address. */
struct rdma_reach {
	bool allowed;
	int rail;       /* index of the best rail that leads to the address now; -1: no rail leads there */
	char text[320]; /* sentence for the operator */
};
/* Determines whether tokens may name an address and which rail leads there, asking the kernel for routes.
 * Returns 0 with *ret_reach, or -EINVAL if `address` is not an address. May block for the duration of some
 * system calls. */
int rdma_reach(struct rdma *rd, const struct conf_rdma *conf, const char *address,
	       struct rdma_reach *ret_reach);

/* Returns true if rdma.bind_gid is useful for a listener, because clients of the listener may be in a subnet
 * of our rails: the address of the listener is in a subnet of a rail, or is a wildcard, which also accepts
 * connections on the addresses of the rails. */
bool rdma_shares_subnet(const struct rdma *rd, const struct sockaddr *listen);

/* Writes the output of --list-devices: each device with its transports, each port and GID, and its intended
 * use, or the reason why it is not used. May be called without rdma_open(). Returns 0, or the -errno of
 * listing the devices. */
int rdma_list(const struct conf_rdma *conf, FILE *out);

/* Completion statuses (protocol.md, section 5). Each rail counts each status, as item 109 of protocol.md,
 * section 7, requires. */
enum rdma_status {
	WCS_SUCCESS,
	WCS_FLUSHED,
	WCS_LOCAL_PROT,
	WCS_REM_ACCESS,
	WCS_REM_OP,
	WCS_RETRY_EXC,
	WCS_RNR_EXC,
	WCS_FATAL,
	WCS_RESP_TIMEOUT,
	WCS_GENERAL,
	WCS_NR
};
extern const char *const rdma_status_name[WCS_NR];

/* Numbers of endpoints or channels, on all cores. */
struct rdma_ep_counts {
	_Atomic int all, free, leased, recovering;
};

struct rdma_rail_stats {
	_Atomic uint64_t status[WCS_NR];
	_Atomic uint64_t read_bytes, written_bytes, read_ops,
		/* read_ops: number of READs posted, for PUTs; write_ops: number of WRITEs posted, for GETs */
		write_ops;
	/* for each path: number of look-ups that found an address handle in the cache */
	_Atomic uint64_t ah_hits[CONF_PATHS_MAX];
	_Atomic uint64_t ep_resets, ep_recreated, ah_misses, ah_failed;
	/* number of times that the rail's device was re-opened after its context had died */
	_Atomic uint64_t reopens;
	/* eps: endpoints that are made before a lease (DC); conns: channels of the cores for connections (RC) */
	struct rdma_ep_counts eps, conns;
	_Atomic int eps_unusable; /* number of endpoints that are fenced, or whose creation fails */
	_Atomic int eps_made;     /* number of existing endpoints, on all cores */
	_Atomic int rc_open;      /* number of connections of the RC transport that are ready or leased */
	/* largest number of endpoints per core until eps_share_until_ns; 0: no limit */
	_Atomic int eps_share;
	_Atomic uint64_t eps_share_until_ns;
};
struct rdma_rail_stats *rdma_rail_stats(struct rdma_rail *rail);

#endif
