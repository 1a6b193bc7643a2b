/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of rdma/: devices, rails, the views from which routes are chosen. Verbs
 * types end here. */
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
#define WHY_BYTES 192     /* reason why a device lacks a transport */
#define PATHS_ROCE 4
#define TRAFFIC_CLASS 96 /* default traffic class */
#define AH_THREADS_MAX 16
#define AH_MAKING_PER_CLIENT 8

/* ---- gid.c: what a GID is.  IPv4 is v4-mapped. ---- */

bool gid_is_v4(const uint8_t gid[16]);
bool gid_is_loopback(const uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]);
bool gid_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits);
/* Takes the address of an AF_INET or AF_INET6 socket; false for other families. */
bool gid_from_sockaddr(const struct sockaddr *sa, uint8_t ret_gid[16]);
/* Writes "10.0.0.5", "::ffff:10.0.0.5" or ::, never longer than INET6_ADDRSTRLEN. */
const char *gid_text(const uint8_t gid[16], char *text, size_t len);

/* ---- ahattr.c: pure choices over a view of the rails ---- */

struct rail_gid {
	uint8_t raw[16];
	uint32_t index;
	uint32_t ifindex; /* of the GID's network interface; 0: none, or unknown */
	uint8_t prefix;   /* length of its subnet's prefix, of 128 bits; 128: unknown */
};

/* A snapshot of a rail; may be copied under the lock of struct rdma. */
struct rail_view {
	bool is_ethernet;
	uint8_t port;
	uint16_t lid;
	int gid_nr, gids_cut;               /* gids_cut: number of GIDs beyond RAIL_GIDS_MAX */
	struct rail_gid gid[RAIL_GIDS_MAX]; /* usable ones only: RoCEv2 on Ethernet, all on InfiniBand */
	int ip_nr;
	uint8_t ip[RAIL_IPS_MAX][16]; /* addresses of this rail that are in no GID table (IPoIB) */
};

struct ah_params {
	uint8_t service_level, traffic_class, hop_limit;
};

/* Chooses as rdma_route() does, over views. Bit i of up: rail i is up. cost[i]: load of rail i; NULL: all
 * equal. */
int rdma_choose(const struct rail_view *const *views, int view_nr, unsigned up, const int *cost,
		const struct token *tok, const struct rdma_asker *asker, struct rail_route *ret_route);
/* Fills in the attributes of an address handle: the table of protocol.md 2.8. */
void rdma_ah_build(const struct rdma_ah_key *key, uint8_t port, const struct ah_params *params,
		   struct ibv_ah_attr *ret_attr);

/* The trusted subnets and own addresses, for rdma_gid_allowed(). */
struct rdma_trust {
	struct {
		uint8_t addr[16];
		uint8_t prefix;
		bool is_ib; /* a native InfiniBand subnet, even if it looks link-local */
	} net[RDMA_RAILS_MAX * RAIL_GIDS_MAX];
	int net_nr;
	uint8_t own[RDMA_RAILS_MAX * RAIL_GIDS_MAX][16];
	int own_nr;
};
void rdma_trust_build(const struct rail_view *const *views, int view_nr, struct rdma_trust *ret_trust);
int rdma_trust_check(const struct rdma_trust *trust, const struct conf_rdma *conf, const uint8_t *gid,
		     const struct sockaddr *peer);
/* Returns the reason why an address may not be named, and the remedy, as part of a sentence. */
const char *rdma_trust_why(const struct rdma_trust *trust, const struct conf_rdma *conf,
			   const uint8_t gid[16]);
/* Implements rdma_shares_subnet(). */
bool rdma_trust_shares(const struct rdma_trust *trust, const struct sockaddr *listen);

/* ---- netroute.c ---- */

/* Asks the kernel whether packets from src to dst leave by that interface (0: by any): 0; -ENETUNREACH: there
 * is no such route; -EADDRINUSE: dst is an address of this machine; -EADDRNOTAVAIL: dst is no machine's
 * address (broadcast); another -errno: unknown. Blocks for the duration of a system call. */
int net_route(uint32_t ifindex, const uint8_t src[16], const uint8_t dst[16]);
/* Checks by the kernel's routes whether the rail leads there: 0 or -ENETUNREACH. An unknown result counts as
 * the latter if only a route allows the address (key->must_route). *ret_level (not NULL): the service level
 * of the path; -1: unknown. */
int rail_routes(const struct rdma_rail *rail, const struct rdma_ah_key *key, int *ret_level);

/* ---- cmroute.c ---- */

struct cm_question {
	bool is_ib;
	uint16_t pkey;            /* is_ib */
	uint8_t src[16], dst[16]; /* src: only for is_ib, otherwise the kernel chooses it */
};

struct cm_answer {
	__be64 guid; /* of the device that leads there */
	int port;
	int service_level; /* -1: unknown */
};

struct cm_oracle;
int cm_oracle_new(struct cm_oracle **ret_oracle);
/* Frees the oracle after its last use; NULL is allowed. */
void cm_oracle_free(struct cm_oracle *o);
/* Asks librdmacm for the device that leads to an address: 0, -ENETUNREACH (none does) or -ENODATA (unknown).
 * Blocks for at most 200 ms. */
int cm_oracle_ask(struct cm_oracle *o, const struct cm_question *q, struct cm_answer *ret_answer);

/* ---- select.c: which devices the operator meant ---- */

struct selector {
	char text[64];
	char device[64]; /* "" for an address */
	int port;        /* 0: all */
	bool is_address;
	uint8_t gid[16];
};
/* Parses a name, name:port, IPv4 or IPv6 address, GID.  0 or -EINVAL. */
int selector_parse(const char *text, struct selector *ret_sel);
/* Finds the device name and port of an address that is in no GID table, through librdmacm; -ENODEV, -ENOENT
 * (no kernel CM). */
int selector_by_cm(const struct selector *sel, char *ret_device, size_t device_len, int *ret_port);

/* ---- ahcache.c ---- */

struct rdma_ah {
	struct ibv_ah *ah,
		/* old: handle of the slot's previous use, destroyed by the helper that makes the next */
		*old;
	_Atomic unsigned context; /* number of the context of ah */
	struct rdma_rail *rail;
	struct rdma_ah_key key;
	enum { AH_FREE, AH_MAKING, AH_READY, AH_FAILED } state;
	_Atomic bool forgotten; /* not found by look-ups any longer; written under the lock */
	int refs;
	uint64_t since_ns; /* MAKING: time of the request */
	uint64_t failed_until_ns;
	int failures;                           /* consecutive failures */
	uint8_t client;                         /* MAKING: client number of the request (base/fair.h) */
	bool is_counted;                        /* MAKING: counted in making[] of that client */
	struct list bucket, lru, work, waiters; /* lru: linked only while refs is 0 and not being made */
};

#define AH_BUCKETS 1024
struct ah_cache {
	pthread_mutex_t lock;
	struct rdma_ah *slot;
	int slot_nr;
	struct list bucket[AH_BUCKETS];
	struct list lru; /* the first is evicted next */
};

/* The threads that make address handles; struct rdma owns them. Clients take turns. */
struct ah_helpers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct fair work;
	_Atomic uint8_t making[FAIR_CLIENTS]; /* per client: handles that wait or are being made */
	pthread_t thread[AH_THREADS_MAX];
	int thread_nr, idle;
	bool stop;
	bool started; /* owned by the thread that opens */
};

/* Finds or makes an address handle, as rdma_target_get(); sets target.at of the waiter. */
int ah_get(struct rdma_rail *rail, const struct rdma_ah_key *key, struct rdma_target_wait *w,
	   struct rdma_ah **ret_ah);
void ah_put(struct rdma_rail *rail, struct rdma_ah *ah);
bool ah_leave(struct rdma_rail *rail, struct rdma_target_wait *w);
void ah_forget(struct rdma_rail *rail, struct rdma_ah *ah);

int ah_cache_init(struct rdma_rail *rail, int slot_nr);
void ah_cache_fini(struct rdma_rail *rail);
void ah_cache_forget_all(struct rdma_rail *rail);
/* Destroys every handle, referenced or not: their context is about to be closed, and no holder of a reference
 * has an endpoint left to post with. */
void ah_cache_drop(struct rdma_rail *rail);
int ah_helpers_start(struct ah_helpers *h);
void ah_helpers_stop(struct ah_helpers *h);

/* ---- devices and rails ---- */

/* The keys of a context for consecutive slots of regions. */
#define REGION_CHUNK 1024
struct region_keys {
	struct ibv_mr *mr[REGION_CHUNK];
	/* The local key for posting, below the number of the slot's use (from 1); 0: none. */
	_Atomic uint64_t key[REGION_CHUNK];
};

/*
 * One opening of a device and its objects. A context may die while the device lives on (a firmware reset, a
 * driver bound again). It is then abandoned, closed when the last reference is gone, and the device
 * re-opened: reopen.c.
 */
struct rdma_context {
	struct rdma_device *dev;
	unsigned nr; /* 1 for the first context of the device, and so on */
	/* under dev->lock: one of the device while this is `cur`, one for each completion queue and endpoint,
	 * and one for each address handle being made */
	int refs;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const struct conf_rdma *conf;
	struct ibv_device_attr attr;
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	char why[WHY_BYTES]; /* reason why it lacks the other transports; "": it has all */
	/* Owned by region.c; NULL: none of these slots was ever used. Freed with the context. */
	struct region_keys *_Atomic keys[RDMA_REGIONS_MAX / REGION_CHUNK];
};

struct rdma_device {
	struct rdma *rd;
	int index; /* index in rdma.dev[] */
	char name[64];
	__be64 guid; /* identity of the device; names change */
	int numa_node;
	/* Transports of every context of the device: set when it is first opened. */
	const struct rdma_ep_ops *transport[RDMA_TRANSPORTS_MAX];
	int transport_nr;
	struct ibv_device_attr attr; /* of the latest context; under rd->table_lock */

	pthread_mutex_t lock; /* the last lock in the order */
	/* old: abandoned, and not closed yet. At most one of the two is set. */
	struct rdma_context *cur, *old;
	unsigned opened;          /* number of the latest context */
	_Atomic unsigned serving; /* number of the context that rails may use; 0: none */
	_Atomic unsigned closed;  /* number of the latest closed context */

	/* Fetching and acknowledging an event (write lock) against destroying the object that it may concern
	 * (read lock). The library treats a destroy call as done if the device is gone, and does not wait for
	 * acknowledgements then. */
	pthread_rwlock_t event_lock;

	bool fatal; /* under rd->state_lock */

	/* owned by the async helper */
	int async_fd; /* -1: none, or dead */
	uint64_t fatal_ns, again_ns;
	/* The job that closes and re-opens the device, on the recovery helper of its first rail. */
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
	_Atomic int class; /* rdma.traffic_class, or the driver's class of the port */
	bool is_read;      /* true after the first read */

	/* written under rd->state_lock */
	_Atomic int state;
	_Atomic unsigned generation;
	_Atomic unsigned path; /* written under table_lock */
	_Atomic bool suspect;
	/* owned by the async helper: time of the last re-read because of a suspicion */
	uint64_t suspect_ns;
	bool port_up, broken;
	bool was_up;          /* true if the rail was ever up */
	_Atomic bool refused; /* the log has a line about refused initiators */
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

/* A region: see region.c. */
struct rdma_region {
	struct iovec iov;
	enum { REGION_FREE, REGION_LIVE, REGION_GOING, REGION_SPENT } state;
	uint32_t count;                 /* number of this use of the slot, from 1 */
	int next;                       /* FREE: the next free slot, or -1 */
	unsigned until[RDMA_RAILS_MAX]; /* GOING: for each device, the context that must be closed first */
};

/* Devices without use: see open.c and look.c. */
#define UNUSED_MAX 64
#define WHY_MISSING_BYTES 320
struct rdma_look {
	pthread_t thread;
	bool started;
	/* owned by the thread that looks for devices */
	struct selector sel[CONF_DEVICES_MAX]; /* rdma.devices */
	bool found[CONF_DEVICES_MAX];
	struct unused {
		__be64 guid;
		char name[64];
		bool opened; /* true if the device is open, and serves no known family */
	} unused[UNUSED_MAX];
	int unused_nr;
	bool said_none; /* the log has a line that there is no device */

	pthread_mutex_t lock;
	pthread_cond_t more;
	bool asked, stop;
	char missing[WHY_MISSING_BYTES]; /* description of missing devices; "": none */
};

struct rdma {
	/* a copy, because the configuration may be reloaded; its strings are used during opening only */
	struct conf_rdma conf;
	/* Only grows: a reader of dev_nr may read that many. */
	struct rdma_device *dev[RDMA_RAILS_MAX];
	_Atomic int dev_nr;
	struct rdma_rail *rail[RDMA_RAILS_MAX];
	_Atomic int rail_nr;
	struct rdma_look look;
	/* views and trust: read for each request, written on port and GID events */
	pthread_rwlock_t table_lock;
	struct rdma_trust trust;
	/* Held while regions are registered: with all devices by rdma_region_add(), or with a re-opened
	 * device. Taken before dev->lock and state_lock. */
	pthread_mutex_t region_lock;
	struct rdma_region *region; /* region_nr entries, with room for region_cap */
	int region_nr, region_cap;
	int region_free; /* the first free slot, or -1 */
	/* rail states and watches; no other lock of rdma/ is taken while it is held */
	pthread_mutex_t state_lock;
	struct list watches;
	_Atomic uint64_t say_ns; /* earliest time of the next line of rdma_say_not_allowed() */
	struct ah_helpers helpers;
	struct cm_oracle *oracle;
	struct {
		pthread_t thread;
		int stop_fd, wake_fd;
		bool started;
		_Atomic bool read_now; /* read every port now, instead of at the end of the minute */
		uint64_t read_ns;      /* time of the last read */
	} async;
};

static inline int
min_int(int a, int b)
{
	return a < b ? a : b;
}

/* Returns the number of READs to request. */
static inline int
reads_wanted(const struct conf_rdma *conf)
{
	return conf->max_rd_atomic > 0 ? conf->max_rd_atomic : RDMA_MAX_READS;
}

/* Returns the number of pieces that a work request may have on a device with that limit (0: unknown). */
static inline int
sge_max(const struct rdma *rd, int allowed)
{
	int sge = min_int(rd->conf.max_sge, RDMA_SGE_MAX);

	if (allowed > 0)
		sge = min_int(sge, allowed);
	return sge < 1 ? 1 : sge;
}

/* Finds the region's local key on a context: 0, or -ESTALE if the region was removed. Core. */
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

/* Returns the rail's transport for that family; NULL: none. */
static inline const struct rdma_ep_ops *
rail_transport_for(const struct rdma_rail *rail, enum token_kind kind)
{
	for (int i = 0; i < rail->dev->transport_nr; i++) {
		if (rdma_ep_serves(rail->dev->transport[i], kind))
			return rail->dev->transport[i];
	}
	return NULL;
}

/* Returns true if one of these transports serves any token. */
static inline bool
transports_serve(const struct rdma_ep_ops *const *transport, int nr)
{
	unsigned families = 0;

	for (int i = 0; i < nr; i++)
		families |= transport[i]->families;
	return families != 0;
}

/* Returns true if one of the device's transports serves any token. */
static inline bool
device_serves(const struct rdma_device *dev)
{
	return transports_serve(dev->transport, dev->transport_nr);
}

/* ---- transport.c ---- */

/* Determines the transports of a newly opened context. */
void context_probe(struct rdma_context *c);
extern const struct rdma_ep_ops rdma_dc; /* dc.c */

/* ---- cq.c ---- */

struct verbs_cq {
	struct rdma_cq base;
	struct rdma_context *c;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_td *td; /* rdma.thread_domains; NULL: none */
	/* for queue pairs: the context's domain, or one with doorbells for this core only */
	struct ibv_pd *pd;
};
extern const struct rdma_cq_ops verbs_cq_ops;

/* ---- context.c: references.  Any thread. ---- */

/* Returns a reference to the device's context; NULL: it has none. */
struct rdma_context *context_get(struct rdma_device *dev);
/* Takes another reference. */
void context_hold(struct rdma_context *c);
void context_put(struct rdma_context *c);
bool context_is_given_up(const struct rdma_context *c);

/* ---- rail.c ---- */

/* Reads port, P_Key and GID table again; false: the device does not answer. *ret_changed (may be NULL): the
 * values have changed. */
bool rail_refresh(struct rdma_rail *rail, bool *ret_changed);
/* Reads the values again without a reported change, and drops address handles only if they changed. */
void rail_reread(struct rdma_rail *rail);
/* Returns the number of paths through the fabric per client on the rail. */
int rail_paths(const struct rdma_rail *rail);
/* Returns the number of READs that an endpoint of the rail may have outstanding. */
int rail_reads_max(const struct rdma_rail *rail);
/* Reads ports (0: all) and GID tables of the device again, and drops its address handles. */
void device_refresh(struct rdma_device *dev, int port);
void device_set_fatal(struct rdma_device *dev, bool fatal);
/* Returns true if one of the device's rails has abandoned a completion queue: only a new context repairs
 * that. */
bool device_is_broken(struct rdma_device *dev);
/* Opens the device again, working or not: it did not answer when a region was registered or removed. */
void device_lost_region(struct rdma_device *dev);
/* Copies the values of the context that serves from now on to the device's rails, and marks them as not
 * broken. */
void device_renew(struct rdma_device *dev, const struct rdma_context *c);
/* Returns true if one of the rails serves any token. */
bool any_rail_serves(const struct rdma *rd);
struct rdma_rail *device_first_rail(const struct rdma_device *dev);
/* Notifies the watches although no state has changed. */
void watches_notify(struct rdma *rd);
void trust_refresh(struct rdma *rd);
int mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu mtu_enum(int bytes);

/* ---- ahattr.c ---- */

struct ah_params rail_ah_params(const struct rdma_rail *rail);

/* ---- open.c ---- */

/* Searches for devices, and makes rails of new ones: 0, or -errno without any change. */
int rdma_look_once(struct rdma *rd);

/* ---- look.c ---- */

void look_init(struct rdma *rd);
int look_start(struct rdma *rd);
void look_stop(struct rdma *rd);
/* Stores the description of missing devices; "": none is missing. */
void look_missing(struct rdma *rd, const char *what);

/* ---- async.c ---- */

/* Makes the descriptor that wakes the async helper. */
int async_init(struct rdma *rd);
int async_start(struct rdma *rd);
void async_stop(struct rdma *rd);
/* Frees that descriptor; after the last helper that may use it. */
void async_fini(struct rdma *rd);

/* ---- device.c: what a device can do; also for --list-devices ---- */

/* Opens a device and determines its capabilities: a context without a device and without a number. 0, or
 * -errno and the reason. */
int context_open(const struct conf_rdma *conf, struct ibv_device *ibdev, struct rdma_context **ret_c,
		 const char **ret_why);
/* Returns the traffic class of packets from a port: rdma.traffic_class, or the driver's setting. */
int port_class(const struct conf_rdma *conf, const char *device, int port);
/* Returns true if payload buffers may be written in any order. */
bool relaxed_ordering(const struct conf_rdma *conf);
/* Closes a context: every object made on it is gone, or can be destroyed in no other way. After a return of 0
 * the hardware does no more work for it. */
int context_close(struct rdma_context *c);
/* Reads the whole GID table: the number of entries, to be freed by the caller, or -errno. */
ssize_t context_gids(const struct rdma_context *c, struct ibv_gid_entry **ret_entries);
int device_open(struct rdma *rd, struct ibv_device *ibdev, struct rdma_device **ret_dev,
		const char **ret_why);
void device_free(struct rdma_device *dev);
int device_read_numa_node(const char *name);

/* ---- region.c ---- */

/* Registers all existing regions with a context that has none; under rd->region_lock. 0 or -errno. */
int regions_register(struct rdma *rd, struct rdma_context *c);
/* Deregisters all regions of a context without references. */
void regions_deregister(struct rdma_context *c);
/* Frees the regions' keys of a closed context. */
void regions_free(struct rdma_context *c);

/* ---- reopen.c: contexts that die ---- */

enum reopen_state { REOPEN_IDLE, REOPEN_OUT, REOPEN_DONE };

/* Handles a device that is fatal: it serves again, or is abandoned, or re-opened. Returns the time until the
 * next step in ms; -1: the device is healthy. Async helper. */
int device_tend(struct rdma_device *dev);

/* ---- recovery.c ---- */

int recovery_start(struct rdma_rail *rail);
void recovery_stop(struct rdma_rail *rail);

/* ---- thread.c ---- */

/* Starts a helper with all signals blocked; 0 or -errno. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*fn)(void *), void *arg);
int fd_nonblock(int fd);
/* Wakes the async helper, which checks everything that is not healthy. Any thread. */
void async_wake(struct rdma *rd);

#endif
