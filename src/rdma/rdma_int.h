/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rdma/ share: devices, rails, the views that routes are chosen from.  Verbs types end
 * here. */
#ifndef GANTRY_RDMA_INT_H
#define GANTRY_RDMA_INT_H

#include "rdma/ep.h"
#include "rdma/rdma.h"

#include "base/fair.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#define RAIL_GIDS_MAX 64
#define RAIL_IPS_MAX 8
#define RDMA_MAX_READS 16 /* item 32 */
#define WHY_BYTES 192     /* why a device lacks a transport */
#define PATHS_ROCE 4
#define TRAFFIC_CLASS 96 /* where nobody says another */
#define AH_THREADS_MAX 16
#define AH_MAKING_PER_CLIENT 8

/* ---- gid.c: what a GID is.  IPv4 is v4-mapped. ---- */

bool gid_is_v4(const uint8_t gid[16]);
bool gid_is_loopback(const uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]);
bool gid_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits);
/* Takes the address of an AF_INET or AF_INET6 socket; false for others. */
bool gid_from_sockaddr(const struct sockaddr *sa, uint8_t ret_gid[16]);
/* Writes "10.0.0.5", "::ffff:10.0.0.5" or ::, never longer than INET6_ADDRSTRLEN. */
const char *gid_text(const uint8_t gid[16], char *text, size_t len);

/* ---- ahattr.c: pure choices over a view of the rails ---- */

struct rail_gid {
	uint8_t raw[16];
	uint32_t index;
	uint32_t ifindex; /* of its network interface; 0: none, or unknown */
	uint8_t prefix;   /* bits of the subnet around it, of 128; 128: unknown */
};

/* What is known of a rail at some moment; a copy may be taken under the lock of struct rdma. */
struct rail_view {
	bool is_ethernet;
	uint8_t port;
	uint16_t lid;
	int gid_nr, gids_cut;               /* gids_cut: for which there is no room */
	struct rail_gid gid[RAIL_GIDS_MAX]; /* usable ones only: RoCEv2 on Ethernet, all on InfiniBand */
	int ip_nr;
	uint8_t ip[RAIL_IPS_MAX][16]; /* addresses that lead here and are in no GID table (IPoIB) */
};

struct ah_params {
	uint8_t service_level, traffic_class, hop_limit;
};

/* Does what rdma_route() says, over views.  Bit i of up: rail i is.  cost[i]: what rail i has to do; NULL: all the same. */
int rdma_choose(const struct rail_view *const *views, int view_nr, unsigned up, const int *cost,
		const struct token *tok, const struct rdma_asker *asker, struct rail_route *ret_route);
/* Fills in the attributes of an address handle: the table of protocol.md 2.8. */
void rdma_ah_build(const struct rdma_ah_key *key, uint8_t port, const struct ah_params *params,
		   struct ibv_ah_attr *ret_attr);

/* A subnet of ours, and the own addresses; what rdma_gid_allowed() asks. */
struct rdma_trust {
	struct {
		uint8_t addr[16];
		uint8_t prefix;
		bool is_ib; /* a native InfiniBand subnet: link-local in form or not */
	} net[RDMA_RAILS_MAX * RAIL_GIDS_MAX];
	int net_nr;
	uint8_t own[RDMA_RAILS_MAX * RAIL_GIDS_MAX][16];
	int own_nr;
};
void rdma_trust_build(const struct rail_view *const *views, int view_nr, struct rdma_trust *ret_trust);
int rdma_trust_check(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t *gid,
		     const struct sockaddr *peer);
/* Returns what is wrong with an address that may not be named, and what to do, as a part of a sentence. */
const char *rdma_trust_why(const struct rdma_trust *trust, const struct conf_rdma *conf,
			   const uint8_t gid[16]);
/* Serves as rdma_shares_subnet(). */
bool rdma_trust_shares(const struct rdma_trust *trust, const struct sockaddr *listen);

/* ---- netroute.c ---- */

/* Asks whether packets from src to dst leave by that interface (0: by any): 0; -ENETUNREACH: there is no such route; -EADDRINUSE: it is
 * one of this machine's; -EADDRNOTAVAIL: it is no machine's (broadcast); another -errno: nobody knows.  Blocks for as long as a system call. */
int net_route(uint32_t ifindex, const uint8_t src[16], const uint8_t dst[16]);
/* Tells whether the rail leads there, as far as the kernel's routes say: 0 or -ENETUNREACH.  What nobody knows is the latter where
 * a route is what allows the address (key->must_route).  *ret_level (not NULL): the service level of the path; -1: unknown. */
int rail_routes(const struct rdma_rail *rail, const struct rdma_ah_key *key, int *ret_level);

/* ---- cmroute.c ---- */

struct cm_question {
	bool is_ib;
	uint16_t pkey;            /* is_ib */
	uint8_t src[16], dst[16]; /* src: is_ib, otherwise the kernel chooses it */
};

struct cm_answer {
	__be64 guid; /* the device that leads there */
	int port;
	int service_level; /* -1: unknown */
};

struct cm_oracle;
int cm_oracle_new(struct cm_oracle **ret_oracle);
/* Frees it once nobody asks any more; NULL is fine. */
void cm_oracle_free(struct cm_oracle *o);
/* Asks librdmacm what leads to an address: 0, -ENETUNREACH (nothing does) or -ENODATA (nobody knows).  Blocks, 200 ms at most. */
int cm_oracle_ask(struct cm_oracle *o, const struct cm_question *q, struct cm_answer *ret_answer);

/* ---- select.c: which devices the operator meant ---- */

struct selector {
	char text[64];
	char device[64]; /* "" when it is an address */
	int port;        /* 0: all */
	bool is_address;
	uint8_t gid[16];
};
/* Parses a name, name:port, IPv4 or IPv6 address, GID.  0 or -EINVAL. */
int selector_parse(const char *text, struct selector *ret_sel);
/* Finds device name and port that own an address that no GID table holds, through librdmacm; -ENODEV,
 * -ENOENT (no kernel CM). */
int selector_by_cm(const struct selector *sel, char *ret_device, size_t device_len, int *ret_port);

/* ---- ahcache.c ---- */

struct rdma_ah {
	struct ibv_ah *ah,
		*old; /* old: left from this slot's last life, destroyed by the helper that makes the next */
	_Atomic unsigned context; /* the number of the context that ah was made on */
	struct rdma_rail *rail;
	struct rdma_ah_key key;
	enum { AH_FREE, AH_MAKING, AH_READY, AH_FAILED } state;
	_Atomic bool forgotten; /* no longer found; written under the lock */
	int refs;
	uint64_t since_ns; /* MAKING: when it was asked for */
	uint64_t failed_until_ns;
	int failures;                           /* one after the other */
	uint8_t client;                         /* MAKING: for whom (base/fair.h) */
	bool is_counted;                        /* MAKING: among those of that client */
	struct list bucket, lru, work, waiters; /* lru: only while refs is 0 and not being made */
};

#define AH_BUCKETS 1024
struct ah_cache {
	pthread_mutex_t lock;
	struct rdma_ah *slot;
	int slot_nr;
	struct list bucket[AH_BUCKETS];
	struct list lru; /* first: evicted next */
};

/* Makes address handles; the threads belong to struct rdma.  Clients take turns. */
struct ah_helpers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct fair work;
	_Atomic uint8_t making[FAIR_CLIENTS]; /* for each client, waiting or on a thread */
	pthread_t thread[AH_THREADS_MAX];
	int thread_nr, idle;
	bool stop;
	bool started; /* the opener's */
};

/* Finds or makes an address handle, as rdma_target_get(); a waiter's target.at is set. */
int ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_target_wait *w,
	   struct rdma_ah **ret_ah);
void ah_put(struct rdma_rail *rail, struct rdma_ah *ah);
bool ah_leave(struct rdma_rail *rail, struct rdma_target_wait *w);
void ah_forget(struct rdma_rail *rail, struct rdma_ah *ah);

int ah_cache_init(struct rdma_rail *rail, int slot_nr);
void ah_cache_fini(struct rdma_rail *rail);
void ah_cache_forget_all(struct rdma_rail *rail);
/* Destroys every handle, held or not: the context that they were made on is about to be closed, and whoever
 * holds one has no initiator any more that could post with it. */
void ah_cache_drop(struct rdma_rail *rail);
int ah_helpers_start(struct ah_helpers *h);
void ah_helpers_stop(struct ah_helpers *h);

/* ---- devices and rails ---- */

/* What a context has of some slots of regions, one behind the other. */
#define REGION_CHUNK 1024
struct region_keys {
	struct ibv_mr *mr[REGION_CHUNK];
	/* The same for who posts: the number of the slot's use, from 1, above the local key; 0: none. */
	_Atomic uint64_t key[REGION_CHUNK];
};

/*
 * One opening of a device and what hangs on it.  A context may die while the device lives on (a firmware that
 * was reset, a driver that was bound anew); then it is given up, closed when nothing refers to it, and the
 * device opened anew: reopen.c.
 */
struct rdma_context {
	struct rdma_device *dev;
	unsigned nr; /* 1 for the first of its device, and so on */
	int refs;    /* under dev->lock: the device's own while this is `cur`, one for each completion queue
			and endpoint, and for each address handle while it is being made */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const struct conf_rdma *conf;
	struct ibv_device_attr attr;
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	char why[WHY_BYTES]; /* not the others; "": it has all */
	/* region.c's; NULL: none of these slots was ever used.  Freed with the context. */
	struct region_keys *_Atomic keys[RDMA_REGIONS_MAX / REGION_CHUNK];
};

struct rdma_device {
	struct rdma *rd;
	int index; /* of rdma.dev[] */
	char name[64];
	__be64 guid; /* what it is known by: names change */
	int numa_node;
	/* What every context of it can do: set when it is opened first. */
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	struct ibv_device_attr attr; /* of the latest context; under rd->table_lock */

	pthread_mutex_t lock;           /* taken last of all */
	struct rdma_context *cur, *old; /* old: given up, and not closed yet.  Never both. */
	unsigned opened;                /* the number of the latest context */
	_Atomic unsigned serving;       /* the number of the one that rails may use; 0: none */
	_Atomic unsigned closed;        /* the number of the latest one that was closed */

	/* Fetching an event and acknowledging it (written) against destroying what it may be of (read):
	 * where the library takes a destroy call for done because the device is gone, it does not wait for
	 * acknowledgements. */
	pthread_rwlock_t event_lock;

	bool fatal; /* under rd->state_lock */

	/* the async helper's */
	int async_fd; /* -1: none, or dead */
	uint64_t fatal_ns, again_ns;
	/* the job that closes and opens: on the recovery helper of the device's first rail */
	struct rdma_job job;
	_Atomic int job_state; /* enum reopen_state */
};

struct rdma_rail {
	struct rdma *rd;
	struct rdma_device *dev;
	uint8_t port;
	bool is_ethernet;
	int only_nr; /* chosen by address: only these GIDs are used */
	uint8_t only[CONF_DEVICES_MAX][16];
	int ip_nr;
	uint8_t ip[RAIL_IPS_MAX][16];

	/* under rd->table_lock */
	struct rail_view view;
	struct ibv_port_attr port_attr;
	uint16_t pkey;
	_Atomic int class; /* rdma.traffic_class, or what the driver has for the port */
	bool is_read;      /* once, at least */

	/* written under rd->state_lock */
	_Atomic int state;
	_Atomic unsigned generation;
	_Atomic unsigned path; /* under table_lock, to be written */
	_Atomic bool suspect;
	uint64_t suspect_ns; /* the async helper's: it was read again because of that */
	bool port_up, broken;
	bool was_up;          /* ever */
	_Atomic bool refused; /* the log knows that initiators are */
	int stuck;

	struct rdma_rail_stats stats;
	struct ah_cache ahs;

	struct {
		pthread_mutex_t lock;
		pthread_cond_t more;
		struct list jobs;
		pthread_t thread;
		bool started, stop;
	} recovery;
};

/* See region.c. */
struct rdma_region {
	struct iovec iov;
	enum { REGION_FREE, REGION_LIVE, REGION_GOING, REGION_SPENT } state;
	uint32_t count;                 /* how often the slot was used before, and once more */
	int next;                       /* FREE: the next one that is, or -1 */
	unsigned until[RDMA_RAILS_MAX]; /* GOING: the context of a device that has to be closed first */
};

/* See open.c and look.c. */
#define UNUSED_MAX 64
#define WHY_MISSING_BYTES 320
struct rdma_look {
	pthread_t thread;
	bool started;
	/* who looks alone */
	struct selector sel[CONF_DEVICES_MAX]; /* rdma.devices */
	bool found[CONF_DEVICES_MAX];
	struct unused {
		__be64 guid;
		char name[64];
		bool opened; /* it is, and serves nothing that we know */
	} unused[UNUSED_MAX];
	int unused_nr;
	bool said_none; /* the log knows that there is no device */

	pthread_mutex_t lock;
	pthread_cond_t more;
	bool asked, stop;
	char missing[WHY_MISSING_BYTES]; /* what ought to be there; "": nothing more */
};

struct rdma {
	struct conf_rdma
		conf; /* a copy: the configuration may be reloaded; its strings are used while opening only */
	/* They only grow: who reads the number may read as many. */
	struct rdma_device *dev[RDMA_RAILS_MAX];
	_Atomic int dev_nr;
	struct rdma_rail *rail[RDMA_RAILS_MAX];
	_Atomic int rail_nr;
	struct rdma_look look;
	pthread_rwlock_t table_lock; /* views and trust: read per request, written on port and GID events */
	struct rdma_trust trust;
	/* Held while regions are registered: with all devices by rdma_region_add(), with one that is opened
	 * anew.  Taken before dev->lock and state_lock. */
	pthread_mutex_t region_lock;
	struct rdma_region *region; /* region_nr of them, with room for region_cap */
	int region_nr, region_cap;
	int region_free;            /* the first that is FREE, or -1 */
	pthread_mutex_t state_lock; /* rail states and watches; taken before nothing else of ours */
	struct list watches;
	_Atomic uint64_t say_ns; /* not before: rdma_say_not_allowed() */
	struct ah_helpers helpers;
	struct cm_oracle *oracle;
	struct {
		pthread_t thread;
		int stop_fd, wake_fd;
		bool started;
		_Atomic bool read_now; /* every port, and not at the end of the minute */
		uint64_t read_ns;      /* when they were read last */
	} async;
};

static inline int
min_int(int a, int b)
{
	return a < b ? a : b;
}

/* Returns how many READs are asked for. */
static inline int
reads_wanted(const struct conf_rdma *conf)
{
	return conf->max_rd_atomic > 0 ? conf->max_rd_atomic : RDMA_MAX_READS;
}

/* Returns how many pieces a work request may have, on a device that allows so many (0: it does not say). */
static inline int
sge_max(const struct rdma *rd, int allowed)
{
	int sge = min_int(rd->conf.max_sge, RDMA_SGE_MAX);

	if (allowed > 0)
		sge = min_int(sge, allowed);
	return sge < 1 ? 1 : sge;
}

/* Finds the region's local key on a context: 0, or -ESTALE when it was removed.  Core. */
static inline int
region_key(const struct rdma_context *c, uint64_t region, uint32_t *ret_lkey)
{
	uint32_t slot = (uint32_t)region;
	const struct region_keys *keys;
	uint64_t key;

	if (slot >= RDMA_REGIONS_MAX)
		return -ESTALE;
	keys = atomic_load_explicit(&c->keys[slot / REGION_CHUNK], memory_order_acquire);
	key = keys ? atomic_load_explicit(&keys->key[slot % REGION_CHUNK], memory_order_acquire) : 0;
	if (key >> 32 != region >> 32 || key == 0)
		return -ESTALE;
	*ret_lkey = (uint32_t)key;
	return 0;
}

/* Returns the rail's transport for that family; NULL: it has none. */
static inline const struct rdma_ep_ops *
rail_transport_for(const struct rdma_rail *rail, enum token_kind kind)
{
	for (int i = 0; i < rail->dev->transport_nr; i++) {
		if (rdma_ep_serves(rail->dev->transport[i], kind))
			return rail->dev->transport[i];
	}
	return NULL;
}

/* Says whether one of these transports serves any token. */
static inline bool
transports_serve(const struct rdma_ep_ops *const *transport, int nr)
{
	unsigned families = 0;

	for (int i = 0; i < nr; i++)
		families |= transport[i]->families;
	return families != 0;
}

/* Says whether one of the device's transports serves any token. */
static inline bool
device_serves(const struct rdma_device *dev)
{
	return transports_serve(dev->transport, dev->transport_nr);
}

/* ---- transport.c ---- */

/* Finds out which transports a context that was just opened can do. */
void context_probe(struct rdma_context *c);
extern const struct rdma_ep_ops rdma_dc; /* dc.c */

/* ---- cq.c ---- */

struct verbs_cq {
	struct rdma_cq base;
	struct rdma_context *c;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_td *td; /* rdma.thread_domains; NULL: none */
	struct ibv_pd *pd; /* for queue pairs: the context's, or one with doorbells of the core's own */
};
extern const struct rdma_cq_ops verbs_cq_ops;

/* ---- context.c: references.  Any thread. ---- */

/* Returns a reference to the context that the device has; NULL: it has none. */
struct rdma_context *context_get(struct rdma_device *dev);
/* Takes another one. */
void context_hold(struct rdma_context *c);
void context_put(struct rdma_context *c);
bool context_is_given_up(const struct rdma_context *c);

/* ---- rail.c ---- */

/* Reads port, P_Key and GID table again; false: the device does not answer.  *ret_changed (NULL: whatever): something has. */
bool rail_refresh(struct rdma_rail *rail, bool *ret_changed);
/* Reads them again without anybody having said that they changed, and forgets address handles only if they did. */
void rail_reread(struct rdma_rail *rail);
/* Returns how many ways through the fabric each client has on the rail. */
int rail_paths(const struct rdma_rail *rail);
/* Returns how many READs an endpoint of the rail may have outstanding. */
int rail_reads_max(const struct rdma_rail *rail);
/* Reads ports (0: all) and GID tables of the device again, and forgets its address handles. */
void device_refresh(struct rdma_device *dev, int port);
void device_set_fatal(struct rdma_device *dev, bool fatal);
/* Says whether one of its rails has given up a completion queue: only another context heals that. */
bool device_is_broken(struct rdma_device *dev);
/* Has the device opened anew, well or not: it did not answer when a region was registered or taken back. */
void device_lost_region(struct rdma_device *dev);
/* Makes rails say what the context that serves from now on says, and none of them broken. */
void device_renew(struct rdma_device *dev, const struct rdma_context *c);
/* Says whether one of the rails serves any token. */
bool any_rail_serves(const struct rdma *rd);
struct rdma_rail *device_first_rail(const struct rdma_device *dev);
/* Notifies the watches, though no state has changed. */
void watches_notify(struct rdma *rd);
void trust_refresh(struct rdma *rd);
int mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu mtu_enum(int bytes);

/* ---- ahattr.c ---- */

struct ah_params rail_ah_params(const struct rdma_rail *rail);

/* ---- open.c ---- */

/* Looks for devices, and makes rails of those that nobody has seen: 0 or -errno, and nothing has changed. */
int rdma_look_once(struct rdma *rd);

/* ---- look.c ---- */

void look_init(struct rdma *rd);
int look_start(struct rdma *rd);
void look_stop(struct rdma *rd);
/* Notes what ought to be there and is not; "": nothing. */
void look_missing(struct rdma *rd, const char *what);

/* ---- async.c ---- */

/* Makes what wakes the async helper. */
int async_init(struct rdma *rd);
int async_start(struct rdma *rd);
void async_stop(struct rdma *rd);
/* Frees what wakes the async helper; after the last helper that may do so. */
void async_fini(struct rdma *rd);

/* ---- device.c: what a device can do; also for --list-devices ---- */

/* Opens a device and finds out what it can do: a context without a device, numberless.  0, or -errno and
 * why. */
int context_open(const struct conf_rdma *conf, struct ibv_device *ibdev, struct rdma_context **ret_c,
		 const char **ret_why);
/* Returns the class of packets from a port: rdma.traffic_class, or what the driver has for it. */
int port_class(const struct conf_rdma *conf, const char *device, int port);
/* Says whether payload buffers are written to in any order. */
bool relaxed_ordering(const struct conf_rdma *conf);
/* Closes a context: everything that was made on it is gone, or cannot be got rid of otherwise.  When this
 * returned 0, the hardware does nothing more on its behalf. */
int context_close(struct rdma_context *c);
/* Reads the whole GID table: how many entries, to be freed, or -errno. */
ssize_t context_gids(const struct rdma_context *c, struct ibv_gid_entry **ret_entries);
int device_open(struct rdma *rd, struct ibv_device *ibdev, struct rdma_device **ret_dev,
		const char **ret_why);
void device_free(struct rdma_device *dev);
int device_read_numa_node(const char *name);

/* ---- region.c ---- */

/* Registers all regions there are with a context that has none; under rd->region_lock.  0 or -errno. */
int regions_register(struct rdma *rd, struct rdma_context *c);
/* Deregisters all of a context that nobody refers to. */
void regions_deregister(struct rdma_context *c);
/* Frees what a context has of regions, when it was closed. */
void regions_free(struct rdma_context *c);

/* ---- reopen.c: contexts that die ---- */

enum reopen_state { REOPEN_IDLE, REOPEN_OUT, REOPEN_DONE };

/* Does what is due for a device that is fatal: it serves again, or it is given up, or opened anew.  Returns
 * in how many ms the next turn is due; -1: it is well.  Async helper. */
int device_tend(struct rdma_device *dev);

/* ---- recovery.c ---- */

int recovery_start(struct rdma_rail *rail);
void recovery_stop(struct rdma_rail *rail);

/* ---- thread.c ---- */

/* Starts a helper with all signals blocked; 0 or -errno. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg);
int fd_nonblock(int fd);
/* Has the async helper check again whatever is not well.  Any thread. */
void async_wake(struct rdma *rd);

#endif
